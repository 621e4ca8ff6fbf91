# SPDX-License-Identifier: BSD-3-Clause
# The one block of global flags: standard, warnings, sanitizers, coverage. They
# are global because a sanitizer must see every object of a program.
if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE RelWithDebInfo)
endif()

set(CMAKE_C_STANDARD 17)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_CXX_STANDARD 17)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
# The build tree may be moved, and the installed tree too.
set(CMAKE_BUILD_RPATH_USE_ORIGIN ON)
file(RELATIVE_PATH heddle_bin_to_lib
  ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_LIBDIR})
set(CMAKE_INSTALL_RPATH "$ORIGIN/${heddle_bin_to_lib}")

add_compile_definitions(_GNU_SOURCE HEDDLE_DEBUG=${HEDDLE_DEBUG})
# No path of the building machine ends up in what is installed.
add_compile_options("$<$<COMPILE_LANGUAGE:C>:-ffile-prefix-map=${PROJECT_SOURCE_DIR}/=>"
                    "$<$<COMPILE_LANGUAGE:C>:-ffile-prefix-map=${PROJECT_BINARY_DIR}=.>")
add_compile_options("$<$<COMPILE_LANGUAGE:C>:\
-Wall;-Wextra;-Wpedantic;-Wshadow;-Wstrict-prototypes;-Wmissing-prototypes;\
-Wundef;-Wvla;-Wcast-qual;-fno-semantic-interposition>")
add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-Wpedantic;-Wshadow>")

set(HEDDLE_WARNINGS_ARE "warnings")
if(HEDDLE_WERROR OR "$ENV{CI}" STREQUAL "true")
  set(HEDDLE_WARNINGS_ARE "errors")
  add_compile_options($<$<COMPILE_LANGUAGE:C,CXX>:-Werror>)
endif()

# Put before every test command; see below.
set(HEDDLE_TEST_LAUNCHER "")
if(HEDDLE_SANITIZE STREQUAL "address")
  set(heddle_san -fsanitize=address,undefined -fno-sanitize-recover=all)
elseif(HEDDLE_SANITIZE STREQUAL "thread")
  set(heddle_san -fsanitize=thread)
  # The TSan of gcc 12 and 13 needs its shadow memory at fixed places and dies
  # at random where the kernel randomises more than 28 bits.
  set(bits 0)
  if(EXISTS /proc/sys/vm/mmap_rnd_bits)
    execute_process(COMMAND cat /proc/sys/vm/mmap_rnd_bits
      OUTPUT_VARIABLE bits OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  endif()
  if("${bits}" STREQUAL "" OR bits GREATER 28)
    execute_process(COMMAND setarch -R true
      RESULT_VARIABLE rc OUTPUT_QUIET ERROR_QUIET)
    if(rc EQUAL 0)
      set(HEDDLE_TEST_LAUNCHER setarch -R)
    endif()
  endif()
endif()
if(HEDDLE_SANITIZE)
  add_compile_options(
    "$<$<COMPILE_LANGUAGE:C,CXX>:${heddle_san};-fno-omit-frame-pointer>")
  add_link_options(${heddle_san})
endif()

# Code that says to libFuzzer where it has been; programs link -fsanitize=fuzzer.
if(HEDDLE_FUZZ)
  add_compile_options($<$<COMPILE_LANGUAGE:C,CXX>:-fsanitize=fuzzer-no-link>)
  add_link_options(-fsanitize=fuzzer-no-link)
endif()

if(HEDDLE_COVERAGE)
  add_compile_options("$<$<COMPILE_LANGUAGE:C>:--coverage;-fprofile-update=atomic>")
  add_link_options(--coverage)
endif()
