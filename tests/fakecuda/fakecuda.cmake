# SPDX-License-Identifier: BSD-3-Clause
# Tests that need a CUDA device; see README.md. Include it where it is used:
#
#   include(${PROJECT_SOURCE_DIR}/tests/fakecuda/fakecuda.cmake)
#   heddle_fake_cuda_test(<level>.<name> [SOURCES ... | COMMAND ...] ...)
#       as heddle_test(), with the stand-in for CUDA in the environment, or, when
#       HEDDLE_REAL_GPU is set as the test runs, without. Label gpu.
include_guard(GLOBAL)

function(heddle_fake_cuda_test name)
  if(NOT BUILD_TESTING OR NOT HEDDLE_WITH_CUDA)
    return()
  endif()
  cmake_parse_arguments(PARSE_ARGV 1 A "SHARED;SERIAL" "TIMEOUT;DIR"
    "SOURCES;COMMAND;ARGS;LABELS;LIBS;ENV")
  if(A_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR
      "heddle_fake_cuda_test(${name}): ${A_UNPARSED_ARGUMENTS}?")
  endif()
  string(REPLACE "." "_" target ${name})
  if(NOT A_COMMAND)
    set(A_COMMAND $<TARGET_FILE:${target}>)
  endif()
  set(given)
  foreach(word SHARED SERIAL)
    if(A_${word})
      list(APPEND given ${word})
    endif()
  endforeach()
  foreach(word TIMEOUT DIR SOURCES ARGS LIBS ENV)
    if(NOT "${A_${word}}" STREQUAL "")
      list(APPEND given ${word} ${A_${word}})
    endif()
  endforeach()
  heddle_test(${name} ${given}
    COMMAND sh ${PROJECT_SOURCE_DIR}/tests/fakecuda/with_fakecuda.sh
      $<TARGET_FILE:fakecuda> ${A_COMMAND}
    LABELS ${A_LABELS} gpu)
  if(A_SOURCES) # a program that is built by its name finds its libraries
    add_dependencies(${target} fakecuda fakeblas fakesolver fakeml)
  endif()
endfunction()
