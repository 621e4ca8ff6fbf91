# SPDX-License-Identifier: BSD-3-Clause
# What can be chosen, and what was found.
#
# HEDDLE_WITH_<X> = AUTO | ON | OFF in the cache. AUTO takes what is there, ON
# fails when it is not. After this file the variable of the same name is 0 or 1
# everywhere, in CMake and in the generated heddle_config.h.
set(HEDDLE_DEBUG 0 CACHE STRING
  "0 no checks, 1 cheap asserts, 2 ownership and lock ranks, 3 whole structures")
set_property(CACHE HEDDLE_DEBUG PROPERTY STRINGS 0 1 2 3)
set(HEDDLE_SANITIZE "" CACHE STRING "empty, address or thread")
set_property(CACHE HEDDLE_SANITIZE PROPERTY STRINGS "" address thread)
option(HEDDLE_COVERAGE "count executed lines (gcov)" OFF)
option(HEDDLE_FUZZ "instrument for libFuzzer (clang)" OFF)
option(HEDDLE_WERROR "warnings are errors (always so when CI=true)" OFF)

foreach(x HWLOC BLAS CUDA OPENCL HTTP)
  set(HEDDLE_WITH_${x} AUTO CACHE STRING "AUTO, ON or OFF")
  set_property(CACHE HEDDLE_WITH_${x} PROPERTY STRINGS AUTO ON OFF)
endforeach()

if(NOT HEDDLE_DEBUG MATCHES "^[0-3]$")
  message(FATAL_ERROR "HEDDLE_DEBUG is '${HEDDLE_DEBUG}': 0, 1, 2 or 3")
endif()
if(NOT HEDDLE_SANITIZE MATCHES "^(address|thread)?$")
  message(FATAL_ERROR
    "HEDDLE_SANITIZE is '${HEDDLE_SANITIZE}': empty, address or thread")
endif()

include(CheckCSourceCompiles)
include(CheckLanguage)
set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)

# Does `source` build with these headers and libraries? The answer is kept.
function(heddle_try result source includes libraries)
  set(CMAKE_REQUIRED_INCLUDES ${includes})
  set(CMAKE_REQUIRED_LIBRARIES ${libraries})
  set(CMAKE_REQUIRED_QUIET ON)
  check_c_source_compiles("${source}" ${result})
endfunction()

function(heddle_imported name includes libraries)
  add_library(${name} INTERFACE IMPORTED GLOBAL)
  set_target_properties(${name} PROPERTIES
    INTERFACE_INCLUDE_DIRECTORIES "${includes}"
    INTERFACE_LINK_LIBRARIES "${libraries}")
endfunction()

# heddle::hwloc: topology and binding, used by src/topo.
function(heddle_find_hwloc found)
  find_path(HEDDLE_HWLOC_INCLUDE hwloc.h)
  find_library(HEDDLE_HWLOC_LIBRARY hwloc)
  mark_as_advanced(HEDDLE_HWLOC_INCLUDE HEDDLE_HWLOC_LIBRARY)
  if(HEDDLE_HWLOC_INCLUDE AND HEDDLE_HWLOC_LIBRARY)
    heddle_try(HEDDLE_HWLOC_WORKS "
      #include <hwloc.h>
      #if HWLOC_API_VERSION < 0x00020000
      #error too old
      #endif
      int main(void) { hwloc_topology_t t; return hwloc_topology_init(&t); }"
      "${HEDDLE_HWLOC_INCLUDE}" "${HEDDLE_HWLOC_LIBRARY}")
  endif()
  if(HEDDLE_HWLOC_WORKS)
    heddle_imported(heddle::hwloc
      "${HEDDLE_HWLOC_INCLUDE}" "${HEDDLE_HWLOC_LIBRARY}")
  endif()
  set(${found} "${HEDDLE_HWLOC_WORKS}" PARENT_SCOPE)
endfunction()

# heddle::blas: CBLAS and LAPACKE, for the demo and the examples only. The
# library itself never links it.
function(heddle_find_blas found)
  find_path(HEDDLE_CBLAS_INCLUDE cblas.h PATH_SUFFIXES openblas)
  find_path(HEDDLE_LAPACKE_INCLUDE lapacke.h PATH_SUFFIXES openblas)
  find_library(HEDDLE_CBLAS_LIBRARY NAMES openblas cblas blas)
  find_library(HEDDLE_LAPACKE_LIBRARY NAMES lapacke openblas)
  mark_as_advanced(HEDDLE_CBLAS_INCLUDE HEDDLE_LAPACKE_INCLUDE
    HEDDLE_CBLAS_LIBRARY HEDDLE_LAPACKE_LIBRARY)
  set(includes ${HEDDLE_CBLAS_INCLUDE} ${HEDDLE_LAPACKE_INCLUDE})
  set(libraries ${HEDDLE_LAPACKE_LIBRARY} ${HEDDLE_CBLAS_LIBRARY} m)
  if(NOT "${includes};${libraries}" MATCHES "-NOTFOUND")
    heddle_try(HEDDLE_BLAS_WORKS "
      #include <cblas.h>
      #include <lapacke.h>
      int main(void) {
        double a = 4.0;
        cblas_dscal(1, 1.0, &a, 1);
        return (int)LAPACKE_dpotrf(LAPACK_COL_MAJOR, 'L', 1, &a, 1);
      }" "${includes}" "${libraries}")
  endif()
  if(HEDDLE_BLAS_WORKS)
    list(REMOVE_DUPLICATES includes)
    heddle_imported(heddle::blas "${includes}" "${libraries}")
  endif()
  set(${found} "${HEDDLE_BLAS_WORKS}" PARENT_SCOPE)
endfunction()

# The CUDA driver of src/drive needs nothing but dlopen: libcuda.so.1 is loaded
# when there is a GPU. cuda.h, where it is, is only compared with our own
# declarations.
function(heddle_find_cuda found)
  heddle_try(HEDDLE_CUDA_WORKS "
    #include <dlfcn.h>
    int main(void) { return dlopen(\"libcuda.so.1\", RTLD_NOW) != 0; }"
    "" "${CMAKE_DL_LIBS}")
  find_path(HEDDLE_CUDA_INCLUDE cuda.h
    HINTS ENV CUDA_PATH ENV CUDA_HOME /usr/local/cuda PATH_SUFFIXES include)
  mark_as_advanced(HEDDLE_CUDA_INCLUDE)
  set(${found} "${HEDDLE_CUDA_WORKS}" PARENT_SCOPE)
endfunction()

# heddle::opencl: headers only. src/drive loads the library when it runs, so a
# build that has it works on machines without any OpenCL.
function(heddle_find_opencl found)
  find_path(HEDDLE_OPENCL_INCLUDE CL/cl.h)
  mark_as_advanced(HEDDLE_OPENCL_INCLUDE)
  if(HEDDLE_OPENCL_INCLUDE)
    heddle_try(HEDDLE_OPENCL_WORKS "
      #define CL_TARGET_OPENCL_VERSION 120
      #include <CL/cl.h>
      #include <dlfcn.h>
      int main(void) {
        void *lib = dlopen(\"libOpenCL.so.1\", RTLD_NOW);
        return lib != 0 && CL_SUCCESS != 0;
      }" "${HEDDLE_OPENCL_INCLUDE}" "${CMAKE_DL_LIBS}")
  endif()
  if(HEDDLE_OPENCL_WORKS)
    heddle_imported(heddle::opencl
      "${HEDDLE_OPENCL_INCLUDE}" "${CMAKE_DL_LIBS}")
  endif()
  set(${found} "${HEDDLE_OPENCL_WORKS}" PARENT_SCOPE)
endfunction()

# The HTTP server of the tool: headers only, libmicrohttpd is loaded when it serves.
function(heddle_find_http found)
  find_path(HEDDLE_HTTP_INCLUDE microhttpd.h)
  mark_as_advanced(HEDDLE_HTTP_INCLUDE)
  if(HEDDLE_HTTP_INCLUDE)
    heddle_try(HEDDLE_HTTP_WORKS "
      #include <microhttpd.h>
      #if MHD_VERSION < 0x00096600
      #error too old
      #endif
      int main(void) { return MHD_YES != 1; }" "${HEDDLE_HTTP_INCLUDE}" "")
  endif()
  if(HEDDLE_HTTP_WORKS)
    heddle_imported(heddle::http "${HEDDLE_HTTP_INCLUDE}" "${CMAKE_DL_LIBS}")
  endif()
  set(${found} "${HEDDLE_HTTP_WORKS}" PARENT_SCOPE)
endfunction()

# A macro: the 0 or 1 has to reach the caller and hide the cache entry.
macro(heddle_decide x)
  if(NOT "$CACHE{HEDDLE_WITH_${x}}" MATCHES "^(AUTO|ON|OFF)$")
    message(FATAL_ERROR
      "HEDDLE_WITH_${x} is '$CACHE{HEDDLE_WITH_${x}}': AUTO, ON or OFF")
  endif()
  set(HEDDLE_WHY_${x} "switched off")
  set(heddle_found 0)
  if(NOT "$CACHE{HEDDLE_WITH_${x}}" STREQUAL "OFF")
    set(HEDDLE_WHY_${x} "not found")
    cmake_language(CALL heddle_find_${ARGV1} heddle_found)
  endif()
  if(heddle_found)
    set(HEDDLE_WITH_${x} 1)
    set(HEDDLE_WHY_${x} "found")
  else()
    if("$CACHE{HEDDLE_WITH_${x}}" STREQUAL "ON")
      message(FATAL_ERROR "HEDDLE_WITH_${x}=ON, but it was not found")
    endif()
    set(HEDDLE_WITH_${x} 0)
  endif()
endmacro()

heddle_decide(HWLOC hwloc)
heddle_decide(BLAS blas)
heddle_decide(CUDA cuda)
heddle_decide(OPENCL opencl)
heddle_decide(HTTP http)

# Not a choice: the instruction sets of src/dnn beyond the base are those of x86-64.
set(HEDDLE_WITH_X86 0)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$" AND CMAKE_SIZEOF_VOID_P EQUAL 8)
  set(HEDDLE_WITH_X86 1)
endif()

# HEDDLE_NVCC: 1 when CUDA C can be compiled; an example alone needs it. nvcc
# does not take our sanitizers, and check_language() tries it in a project of
# its own, so that one that does not work is no failure.
set(HEDDLE_NVCC 0)
if(HEDDLE_WITH_CUDA AND NOT HEDDLE_SANITIZE AND NOT HEDDLE_COVERAGE)
  if(NOT DEFINED CMAKE_CUDA_COMPILER AND NOT DEFINED ENV{CUDACXX})
    find_program(HEDDLE_NVCC_PATH nvcc
      HINTS ENV CUDA_PATH ENV CUDA_HOME /usr/local/cuda PATH_SUFFIXES bin)
    mark_as_advanced(HEDDLE_NVCC_PATH)
    if(HEDDLE_NVCC_PATH)
      set(CMAKE_CUDA_COMPILER ${HEDDLE_NVCC_PATH})
    endif()
  endif()
  if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
    set(CMAKE_CUDA_ARCHITECTURES 80 90)
  endif()
  check_language(CUDA)
  if(CMAKE_CUDA_COMPILER)
    enable_language(CUDA)
    set(HEDDLE_NVCC 1)
  endif()
endif()
configure_file(${CMAKE_CURRENT_LIST_DIR}/heddle_config.h.in
  ${PROJECT_BINARY_DIR}/generated/heddle_config.h @ONLY)

function(heddle_print_summary)
  set(on_0 no)
  set(on_1 yes)
  message(STATUS "")
  message(STATUS "heddle ${PROJECT_VERSION}")
  message(STATUS "  compiler   ${CMAKE_C_COMPILER_ID} ${CMAKE_C_COMPILER_VERSION}")
  message(STATUS "  build type ${CMAKE_BUILD_TYPE}, HEDDLE_DEBUG=${HEDDLE_DEBUG}")
  if(HEDDLE_SANITIZE)
    message(STATUS "  sanitizer  ${HEDDLE_SANITIZE}")
  endif()
  foreach(row "HWLOC;hwloc      " "BLAS;blas       " "CUDA;cuda       "
      "OPENCL;opencl     " "HTTP;http       ")
    list(GET row 0 x)
    list(GET row 1 label)
    message(STATUS
      "  ${label}${on_${HEDDLE_WITH_${x}}} (${HEDDLE_WHY_${x}})")
  endforeach()
  message(STATUS "  nvcc       ${on_${HEDDLE_NVCC}}")
  message(STATUS "  warnings   ${HEDDLE_WARNINGS_ARE}")
  message(STATUS "")
endfunction()
