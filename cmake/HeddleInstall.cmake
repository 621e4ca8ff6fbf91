# SPDX-License-Identifier: BSD-3-Clause
# What `make install` copies: headers, libheddle.so.0, heddle.pc, the CMake
# package, man pages, licence. Tools install themselves (heddle_tool). Nothing
# installed holds an absolute path, so the tree may be moved.
include(CMakePackageConfigHelpers)

set(heddle_cmake_dir ${CMAKE_INSTALL_LIBDIR}/cmake/heddle)

install(DIRECTORY include/heddle DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp")
install(TARGETS heddle_shared EXPORT heddleTargets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT heddleTargets NAMESPACE heddle:: DESTINATION ${heddle_cmake_dir})

configure_package_config_file(cmake/heddleConfig.cmake.in
  ${PROJECT_BINARY_DIR}/generated/heddleConfig.cmake
  INSTALL_DESTINATION ${heddle_cmake_dir}
  NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(
  ${PROJECT_BINARY_DIR}/generated/heddleConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES
  ${PROJECT_BINARY_DIR}/generated/heddleConfig.cmake
  ${PROJECT_BINARY_DIR}/generated/heddleConfigVersion.cmake
  DESTINATION ${heddle_cmake_dir})

file(RELATIVE_PATH heddle_pc_to_prefix
  ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
string(REGEX REPLACE "/$" "" heddle_pc_to_prefix ${heddle_pc_to_prefix})
configure_file(cmake/heddle.pc.in ${PROJECT_BINARY_DIR}/generated/heddle.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/generated/heddle.pc
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
foreach(section 1 7)
  install(DIRECTORY docs/man/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man${section}
    OPTIONAL FILES_MATCHING PATTERN "*.${section}")
endforeach()
