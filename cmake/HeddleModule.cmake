# SPDX-License-Identifier: BSD-3-Clause
# The words the folders are described with.
#
#   heddle_module(<m> SOURCES a.c b.c [LIBS target ...])
#       one OBJECT library per folder of src/; LIBS also reach libheddle
#   heddle_plugins(<m> <MACRO> [DEF file] [DIR dir] [TARGET target] [PREFIX p])
#       adds <p><x>.c for each enabled line MACRO(x, ..., switch) of <m>.def, and
#       <p><x>.cu when it exists and CUDA is on. Where <x> is a folder: what its
#       CMakeLists.txt says; in a build without <x>, <x>/none.c where there is one
#   heddle_module_part(<m> SOURCES a.c b.c [LIBS target ...])
#       sources in a folder inside of the module
#   heddle_unit_tests(<m> a_test b_test ...)
#       a_test.c beside the code, a program each, as unit.<m>.a; dir/b_test of a
#       folder inside of the module is unit.<m>.dir.b
#   heddle_test(<level>.<name> [SOURCES f.c ...] [COMMAND prog args ...]
#               [ARGS ...] [LABELS ...] [LIBS ...] [ENV A=b ...] [TIMEOUT s]
#               [DIR dir] [SHARED] [SERIAL])
#       a test of tests/; SOURCES makes a program, COMMAND runs any program
#   heddle_tool(<name> SOURCES main.c ... [LIBS ...])
#       an installed command, at <build>/<name>
#   heddle_example(<name> [SOURCES f.c ...] [LIBS ...] [ARGS ...])
#       a program against the public headers alone, run as integration.<name>
#   heddle_bench(<name> [STATIC] SOURCES f.c ... [LIBS ...])
#       a program at <build>/bench/<name>, not run by CTest; STATIC: one that times
#       private functions
#
# Unit tests and tests link libheddle.a and may call private functions. Tools
# and benchmarks link libheddle.so and, beside it, the toolbox src/base.
# Labels say what a test can find; CMakePresets.json chooses by them. Besides the level:
#   pure    functions without threads: of HEDDLE_PURE_MODULES, or by LABELS
#   tool    options, files and sentences of the tool; other tests look at its threads
#   script  pages, scripts and documents: what no compiler made
#   gpu     needs a CUDA device, or the stand-in for one
#   timing  compares times: runs alone, as benchmarks do
# Exit status 77 of a test means skipped. HOME of each test is a folder of its own
# below <build>/home.

# Include folders of everything that may see more than the public headers.
function(heddle_private_includes target)
  target_include_directories(${target} PRIVATE
    ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src
    ${PROJECT_BINARY_DIR}/generated)
endfunction()

function(heddle_module name)
  cmake_parse_arguments(PARSE_ARGV 1 A "" "" "SOURCES;LIBS")
  list(TRANSFORM A_SOURCES PREPEND ${PROJECT_SOURCE_DIR}/src/${name}/)
  add_library(heddle_${name} OBJECT ${A_SOURCES})
  heddle_private_includes(heddle_${name})
  target_link_libraries(heddle_${name} PRIVATE Threads::Threads ${A_LIBS})
  foreach(lib heddle_shared heddle_static)
    target_sources(${lib} PRIVATE $<TARGET_OBJECTS:heddle_${name}>)
    target_link_libraries(${lib} PRIVATE ${A_LIBS})
  endforeach()
  if(name STREQUAL "base")
    # The toolbox for tools and benchmarks: base is private, so libheddle.so
    # does not export it.
    add_library(heddle_toolbox STATIC $<TARGET_OBJECTS:heddle_base>)
    set_target_properties(heddle_toolbox PROPERTIES LINKER_LANGUAGE C)
    target_link_libraries(heddle_toolbox PRIVATE Threads::Threads m ${A_LIBS})
  endif()
endfunction()

function(heddle_module_part name)
  cmake_parse_arguments(PARSE_ARGV 1 A "" "" "SOURCES;LIBS")
  list(TRANSFORM A_SOURCES PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/)
  target_sources(heddle_${name} PRIVATE ${A_SOURCES})
  foreach(target heddle_${name} heddle_shared heddle_static)
    target_link_libraries(${target} PRIVATE ${A_LIBS})
  endforeach()
endfunction()

function(heddle_plugins name macro)
  cmake_parse_arguments(PARSE_ARGV 2 A "" "DEF;DIR;TARGET;PREFIX" "")
  if(NOT A_DEF)
    set(A_DEF ${PROJECT_SOURCE_DIR}/src/${name}/${name}.def)
  endif()
  if(NOT A_TARGET)
    set(A_TARGET heddle_${name})
  endif()
  cmake_path(ABSOLUTE_PATH A_DEF BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR})
  cmake_path(GET A_DEF PARENT_PATH dir)
  if(A_DIR)
    set(dir ${A_DIR})
  endif()
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${A_DEF})
  file(READ ${A_DEF} text)
  string(REGEX MATCHALL "\n *${macro}\\([^)\n]*\\)" lines "${text}")
  foreach(line IN LISTS lines)
    if(NOT line MATCHES "${macro}\\(([a-z0-9_]+),[A-Z0-9_, ]* ([A-Z0-9_]+)\\)")
      message(FATAL_ERROR "${A_DEF}: cannot parse '${line}'")
    endif()
    set(file ${dir}/${A_PREFIX}${CMAKE_MATCH_1})
    set(switch ${CMAKE_MATCH_2})
    if(NOT switch MATCHES "^[01]$" AND NOT DEFINED ${switch})
      message(FATAL_ERROR "${A_DEF}: unknown switch '${switch}'")
    endif()
    if(switch STREQUAL "1" OR (NOT switch STREQUAL "0" AND ${switch}))
      set(is_on TRUE)
    else()
      set(is_on FALSE)
    endif()
    if(IS_DIRECTORY ${file} AND NOT EXISTS ${file}.c)
      if(is_on)
        add_subdirectory(${file})
      elseif(EXISTS ${file}/none.c)
        target_sources(${A_TARGET} PRIVATE ${file}/none.c)
      endif()
    elseif(is_on)
      target_sources(${A_TARGET} PRIVATE ${file}.c)
      if(HEDDLE_WITH_CUDA AND EXISTS ${file}.cu)
        target_sources(${A_TARGET} PRIVATE ${file}.cu)
      endif()
    endif()
  endforeach()
endfunction()

# What every test has in common.
function(heddle_test_properties name labels env timeout serial)
  string(REGEX REPLACE "\\..*" "" level ${name})
  list(APPEND labels ${level})
  list(REMOVE_DUPLICATES labels)
  if(NOT timeout)
    set(timeout 120)
  endif()
  if(HEDDLE_SANITIZE OR HEDDLE_COVERAGE)
    math(EXPR timeout "3 * ${timeout}")
  endif()
  if("bench" IN_LIST labels OR "timing" IN_LIST labels)
    set(serial TRUE)
  endif()
  # A thread of PoCL that compiles loses its pass manager. Whether it compiles depends on
  # PoCL's cache and, with random programs, on who runs what: so that leak was found now and
  # then. The fuzzer counts by itself what we do not free.
  if(HEDDLE_SANITIZE STREQUAL "address" AND name STREQUAL "property.fuzz.opencl")
    set(asan detect_leaks=0:strict_string_checks=1:detect_stack_use_after_return=1)
    list(APPEND env ASAN_OPTIONS=${asan})
  endif()
  # Nothing of the user's: models, caches and settings of a test are its own. PoCL's
  # compiled kernels are the same for all, and for all presets: with a full cache PoCL
  # starts no compiler, so that the leak above is not there.
  set(home ${PROJECT_BINARY_DIR}/home/${name})
  file(MAKE_DIRECTORY ${home})
  list(PREPEND env HOME=${home} XDG_CACHE_HOME=${home}/.cache
    XDG_CONFIG_HOME=${home}/.config POCL_CACHE_DIR=${PROJECT_BINARY_DIR}/../pocl)
  set_tests_properties(${name} PROPERTIES
    SKIP_RETURN_CODE 77
    LABELS "${labels}"
    ENVIRONMENT "${env}"
    TIMEOUT ${timeout}
    RUN_SERIAL ${serial})
endfunction()

# A test program: sees tests/test.h and the private headers.
function(heddle_test_program target sources library libs)
  add_executable(${target} ${sources})
  heddle_private_includes(${target})
  target_include_directories(${target} PRIVATE
    ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/tests)
  target_link_libraries(${target} PRIVATE
    ${libs} ${library} Threads::Threads m)
endfunction()

# Modules whose functions start no thread and share nothing.
set(HEDDLE_PURE_MODULES bound energy explain log_graph nn offline onnx pipeline plan plat split
  spread)

function(heddle_unit_tests module)
  if(NOT BUILD_TESTING)
    return()
  endif()
  foreach(t IN LISTS ARGN)
    string(REGEX REPLACE "_test$" "" short ${t})
    string(REPLACE "/" "." short ${short})
    string(REPLACE "." "_" target unit_${module}_${short})
    heddle_test_program(${target}
      ${PROJECT_SOURCE_DIR}/src/${module}/${t}.c heddle_static "")
    set(name unit.${module}.${short})
    add_test(NAME ${name}
      COMMAND ${HEDDLE_TEST_LAUNCHER} $<TARGET_FILE:${target}>)
    set(labels)
    file(STRINGS ${PROJECT_SOURCE_DIR}/src/${module}/${t}.c context
      REGEX "heddle_ctx_create" LIMIT_COUNT 1)
    if(module IN_LIST HEDDLE_PURE_MODULES AND NOT context)
      set(labels pure)
    endif()
    heddle_test_properties(${name} "${labels}" "" "" FALSE)
  endforeach()
endfunction()

function(heddle_test name)
  if(NOT BUILD_TESTING)
    return()
  endif()
  cmake_parse_arguments(PARSE_ARGV 1 A "SHARED;SERIAL" "TIMEOUT;DIR"
    "SOURCES;COMMAND;ARGS;LABELS;LIBS;ENV")
  if(A_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "heddle_test(${name}): ${A_UNPARSED_ARGUMENTS}?")
  endif()
  if(A_SOURCES)
    string(REPLACE "." "_" target ${name})
    set(library heddle_static)
    if(A_SHARED)
      set(library heddle_shared heddle_toolbox)
    endif()
    heddle_test_program(${target} "${A_SOURCES}" "${library}" "${A_LIBS}")
    if(NOT A_COMMAND)
      set(A_COMMAND $<TARGET_FILE:${target}>)
    endif()
  endif()
  if(NOT A_DIR)
    set(A_DIR ${CMAKE_CURRENT_BINARY_DIR})
  endif()
  add_test(NAME ${name}
    COMMAND ${HEDDLE_TEST_LAUNCHER} ${A_COMMAND} ${A_ARGS}
    WORKING_DIRECTORY ${A_DIR})
  heddle_test_properties(${name} "${A_LABELS}" "${A_ENV}" "${A_TIMEOUT}"
    ${A_SERIAL})
endfunction()

function(heddle_tool name)
  cmake_parse_arguments(PARSE_ARGV 1 A "" "" "SOURCES;LIBS")
  add_executable(${name} ${A_SOURCES})
  heddle_private_includes(${name})
  target_link_libraries(${name} PRIVATE
    ${A_LIBS} heddle_shared heddle_toolbox Threads::Threads m)
  set_target_properties(${name} PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})
  install(TARGETS ${name} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endfunction()

function(heddle_example name)
  cmake_parse_arguments(PARSE_ARGV 1 A "" "" "SOURCES;LIBS;ARGS")
  if(NOT A_SOURCES)
    set(A_SOURCES ${name}.c)
  endif()
  # An outside program: C11, public headers, the shared library.
  add_executable(example_${name} ${A_SOURCES})
  set_target_properties(example_${name} PROPERTIES
    C_STANDARD 11
    CXX_STANDARD 17
    OUTPUT_NAME ${name}
    RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/examples)
  target_link_libraries(example_${name} PRIVATE ${A_LIBS} heddle_shared m)
  heddle_test(integration.example.${name}
    COMMAND $<TARGET_FILE:example_${name}> ARGS ${A_ARGS} LABELS example)
endfunction()

function(heddle_bench name)
  cmake_parse_arguments(PARSE_ARGV 1 A "STATIC" "" "SOURCES;LIBS")
  set(library heddle_shared heddle_toolbox)
  if(A_STATIC)
    set(library heddle_static)
  endif()
  add_executable(bench_${name} ${A_SOURCES})
  heddle_private_includes(bench_${name})
  set_target_properties(bench_${name} PROPERTIES
    OUTPUT_NAME ${name}
    RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bench)
  target_link_libraries(bench_${name} PRIVATE
    ${A_LIBS} ${library} Threads::Threads m)
endfunction()
