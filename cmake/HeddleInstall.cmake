# SPDX-License-Identifier: BSD-3-Clause
# What `make install` copies: headers, libheddle.so.0 and libheddle.a, heddle.pc, the
# CMake package, man pages, completions of shells, the guide, examples with their machine
# files, licence. Tools install themselves (heddle_tool). Nothing installed holds an
# absolute path, so the tree may be moved.
include(CMakePackageConfigHelpers)

set(heddle_cmake_dir ${CMAKE_INSTALL_LIBDIR}/cmake/heddle)

install(DIRECTORY include/heddle DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
  FILES_MATCHING PATTERN "*.h" PATTERN "*.hpp")
install(TARGETS heddle_shared EXPORT heddleTargets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
# The static library names what it needs in heddle.pc (pkg-config --static) and in
# heddleConfig.cmake (heddle::heddle_static).
install(TARGETS heddle_static ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
set(heddle_static_libs -lpthread -lm -ldl)
if(HEDDLE_WITH_HWLOC)
  list(PREPEND heddle_static_libs -lhwloc)
endif()
list(JOIN heddle_static_libs " " heddle_libs_private)
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

install(DIRECTORY docs/guide DESTINATION ${CMAKE_INSTALL_DOCDIR}
  FILES_MATCHING PATTERN "*.md" PATTERN "*.svg" PATTERN "*.png")
install(FILES docs/glossary.md CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY examples DESTINATION ${CMAKE_INSTALL_DOCDIR}
  PATTERN CMakeLists.txt EXCLUDE PATTERN "machines" EXCLUDE)
install(DIRECTORY examples/machines DESTINATION ${CMAKE_INSTALL_DATADIR}/heddle)
install(FILES tools/shell/heddle.bash RENAME heddle
  DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
install(FILES tools/shell/_heddle DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
install(FILES tools/shell/heddle.fish
  DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)

# Section 3 is made from the headers, where there is a Python.
find_package(Python3 3.9 COMPONENTS Interpreter QUIET)
if(Python3_FOUND)
  file(GLOB heddle_headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/include/heddle/*.h)
  add_custom_command(OUTPUT ${PROJECT_BINARY_DIR}/generated/man3.stamp
    COMMAND ${CMAKE_COMMAND} -E rm -rf ${PROJECT_BINARY_DIR}/generated/man3
    COMMAND ${CMAKE_COMMAND} -E env PYTHONDONTWRITEBYTECODE=1 ${Python3_EXECUTABLE}
      ${PROJECT_SOURCE_DIR}/scripts/reference.py --man
      ${PROJECT_BINARY_DIR}/generated/man3 ${PROJECT_SOURCE_DIR}
    COMMAND ${CMAKE_COMMAND} -E touch ${PROJECT_BINARY_DIR}/generated/man3.stamp
    DEPENDS ${heddle_headers} ${PROJECT_SOURCE_DIR}/scripts/reference.py
      ${PROJECT_SOURCE_DIR}/scripts/manual.py
    COMMENT "Making man pages of section 3" VERBATIM)
  add_custom_target(man3 ALL DEPENDS ${PROJECT_BINARY_DIR}/generated/man3.stamp)
  install(DIRECTORY ${PROJECT_BINARY_DIR}/generated/man3/
    DESTINATION ${CMAKE_INSTALL_MANDIR}/man3 OPTIONAL FILES_MATCHING PATTERN "*.3")
endif()

install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
foreach(section 1 7)
  install(DIRECTORY docs/man/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man${section}
    OPTIONAL FILES_MATCHING PATTERN "*.${section}")
endforeach()
