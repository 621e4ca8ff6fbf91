# SPDX-License-Identifier: BSD-3-Clause
# The check scripts as tests lint.*, label lint. `make lint` runs them alone.
# Only in plain builds: sanitizers and gcov add symbols of their own.
if(HEDDLE_SANITIZE OR HEDDLE_COVERAGE)
  return()
endif()
find_package(Python3 3.9 COMPONENTS Interpreter)
find_program(HEDDLE_CXX NAMES c++ g++ clang++)
mark_as_advanced(HEDDLE_CXX)
set(heddle_scripts ${PROJECT_SOURCE_DIR}/scripts)

if(Python3_FOUND)
  set(py ${CMAKE_COMMAND} -E env PYTHONDONTWRITEBYTECODE=1
    ${Python3_EXECUTABLE})
  heddle_test(lint.man3
    COMMAND sh ${heddle_scripts}/check_man3.sh ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR})
  heddle_test(lint.layers
    COMMAND ${py} ${heddle_scripts}/check_layers.py ${PROJECT_SOURCE_DIR})
  heddle_test(lint.symbols
    COMMAND ${py} ${heddle_scripts}/check_symbols.py
      ${PROJECT_BINARY_DIR} ${PROJECT_SOURCE_DIR})
  heddle_test(lint.exports
    COMMAND ${py} ${heddle_scripts}/check_exports.py
      $<TARGET_FILE:heddle_shared> ${PROJECT_SOURCE_DIR})
  heddle_test(lint.abi
    COMMAND ${py} ${heddle_scripts}/check_abi.py rows ${PROJECT_SOURCE_DIR})
  heddle_test(lint.style
    COMMAND ${py} ${heddle_scripts}/check_style.py ${PROJECT_SOURCE_DIR})
  heddle_test(lint.walk
    COMMAND ${py} ${heddle_scripts}/check_walk.py ${PROJECT_SOURCE_DIR})
  heddle_test(lint.ptx
    COMMAND ${py} ${heddle_scripts}/check_ptx.py ${PROJECT_SOURCE_DIR})
  heddle_test(lint.routines
    COMMAND ${py} ${heddle_scripts}/check_routines.py ${PROJECT_SOURCE_DIR})
  heddle_test(lint.version
    COMMAND ${py} ${heddle_scripts}/check_version.py
      ${PROJECT_BINARY_DIR} ${PROJECT_SOURCE_DIR})
  heddle_test(lint.commits
    COMMAND ${py} ${heddle_scripts}/check_commits.py ${PROJECT_SOURCE_DIR})
  heddle_test(lint.reference
    COMMAND ${py} ${heddle_scripts}/check_reference.py $<TARGET_FILE:heddle_shared>
      ${PROJECT_BINARY_DIR}/docs/reference.html ${PROJECT_SOURCE_DIR})
  heddle_test(lint.docs
    COMMAND ${py} ${heddle_scripts}/check_docs.py ${PROJECT_SOURCE_DIR})
  heddle_test(lint.selftest TIMEOUT 300
    COMMAND ${py} ${PROJECT_SOURCE_DIR}/tests/lint_selftest.py
      ${PROJECT_SOURCE_DIR}
    ENV CC=${CMAKE_C_COMPILER} CXX=${HEDDLE_CXX})
else()
  message(WARNING "no python3: the lint tests in Python are left out")
endif()
heddle_test(lint.headers
  COMMAND sh ${heddle_scripts}/check_headers.sh
    ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR}
  ENV CC=${CMAKE_C_COMPILER} CXX=${HEDDLE_CXX})
heddle_test(lint.format
  COMMAND sh ${heddle_scripts}/check_format.sh ${PROJECT_SOURCE_DIR})
heddle_test(lint.man
  COMMAND sh ${heddle_scripts}/check_man.sh ${PROJECT_SOURCE_DIR})
