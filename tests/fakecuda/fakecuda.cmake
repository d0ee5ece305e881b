# SPDX-License-Identifier: Apache-2.0
# The fake CUDA driver, libcuda.so.1, and the libraries over it.

set(fakecuda_dir ${CMAKE_CURRENT_SOURCE_DIR}/fakecuda)
set(fakecuda_out ${CMAKE_CURRENT_BINARY_DIR}/fakecuda)
set(fakecuda_include ${fakecuda_dir} ${PROJECT_SOURCE_DIR}/runtime ${PROJECT_SOURCE_DIR}/include)

file(GLOB sources CONFIGURE_DEPENDS ${fakecuda_dir}/*.c)
list(FILTER sources EXCLUDE REGEX "/(fakeblas|fakext|fakesolver|fakesolvermg|fakesparse)\\.c$")

add_library(fakecuda SHARED ${sources})
set_target_properties(fakecuda PROPERTIES
    OUTPUT_NAME cuda VERSION 1 SOVERSION 1 C_VISIBILITY_PRESET hidden
    LIBRARY_OUTPUT_DIRECTORY ${fakecuda_out})
target_include_directories(fakecuda PRIVATE ${fakecuda_include} INTERFACE ${fakecuda_dir})
target_link_libraries(fakecuda PRIVATE filch_flags PkgConfig::jansson Threads::Threads)
# What is left behind is looked for when the process ends, whatever was unloaded before.
target_link_options(fakecuda PRIVATE -Wl,-z,nodelete)

# cuBLAS, cuSOLVER, cuSOLVERMg and cuSPARSE over it, with the host's BLAS behind.
function(fakecuda_library name version)
    list(TRANSFORM ARGN PREPEND ${fakecuda_dir}/)
    add_library(fake${name} SHARED ${ARGN})
    set_target_properties(fake${name} PROPERTIES
        OUTPUT_NAME ${name} VERSION ${version} SOVERSION ${version}
        C_VISIBILITY_PRESET hidden LIBRARY_OUTPUT_DIRECTORY ${fakecuda_out})
    target_include_directories(fake${name} PRIVATE ${fakecuda_include})
    target_link_libraries(fake${name} PRIVATE filch_flags fakecuda PkgConfig::openblas)
endfunction()

pkg_check_modules(openblas IMPORTED_TARGET openblas)
if(openblas_FOUND)
    fakecuda_library(cublas 13 fakeblas.c fakext.c)
    fakecuda_library(cusolver 12 fakesolver.c)
    fakecuda_library(cusolverMg 12 fakesolvermg.c)
    fakecuda_library(cusparse 12 fakesparse.c)
else()
    message(STATUS "filch tests: no fake cuBLAS, cuSOLVER and cuSPARSE (no OpenBLAS)")
endif()
