# SPDX-License-Identifier: Apache-2.0
# The example of sparse Cholesky, docs/examples/supernodes: in the release build against the shared library
# and beside CHOLMOD, and with the sanitizers. In the release build on fake GPUs, too, with fake libraries
# and its kernels emulated. SuiteSparse orders its matrices; Debian's has no file for
# pkg-config.

set(embed ${CMAKE_CURRENT_SOURCE_DIR}/embed)
set(script ${embed}/supernodes.sh)
pkg_check_modules(supernodes_blas QUIET IMPORTED_TARGET openblas lapacke)
find_path(supernodes_include suitesparse/cholmod.h)
find_library(supernodes_cholmod cholmod)
if(NOT supernodes_blas_FOUND OR NOT supernodes_include OR NOT supernodes_cholmod)
    filch_test(example-supernodes embed 60
               sh -c "echo 'SuiteSparse, OpenBLAS or LAPACKE is not installed: skipped'; exit 77")
    return()
endif()

file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/docs/examples/supernodes/*.c)
add_executable(example_supernodes ${sources})
target_include_directories(example_supernodes SYSTEM PRIVATE ${supernodes_include})
target_link_libraries(example_supernodes PRIVATE filch_flags PkgConfig::supernodes_blas
                      ${supernodes_cholmod} m)
if(build STREQUAL "release")
    target_link_libraries(example_supernodes PRIVATE filch)
    set(versus --versus)
else()
    target_link_libraries(example_supernodes PRIVATE filch_static)
    set(versus)
endif()
filch_test(example-supernodes embed 60 ${script} $<TARGET_FILE:example_supernodes> ${versus})

if(build STREQUAL "release" AND CMAKE_CXX_COMPILER AND TARGET fakecublas AND TARGET test_unit_kernels_emulated)
    set(kernels ${CMAKE_CURRENT_BINARY_DIR}/supernodes/supernodes.cu)
    set(code ${PROJECT_SOURCE_DIR}/docs/examples/supernodes/tasks_gpu.c)
    add_custom_command(OUTPUT ${kernels} DEPENDS ${code} ${embed}/cuda_source.sh
        COMMAND ${embed}/cuda_source.sh ${code} ${kernels})
    add_library(supernodes_twin MODULE ${embed}/supernodes_twin.cpp ${kernels})
    target_link_libraries(supernodes_twin PRIVATE filch_flags fakecuda)
    target_include_directories(supernodes_twin PRIVATE ${CMAKE_CURRENT_SOURCE_DIR} ${fakecuda_include}
                               ${CMAKE_CURRENT_BINARY_DIR}/supernodes ${CMAKE_CURRENT_BINARY_DIR}/emulated)
    add_executable(example_supernodes_gpu ${sources})
    target_compile_definitions(example_supernodes_gpu PRIVATE WITH_CUBLAS)
    target_include_directories(example_supernodes_gpu SYSTEM PRIVATE ${supernodes_include})
    target_include_directories(example_supernodes_gpu PRIVATE ${embed}/cublas)
    target_link_libraries(example_supernodes_gpu PRIVATE filch_flags filch PkgConfig::supernodes_blas
                          ${supernodes_cholmod} fakecublas fakecusolver fakecuda m)
    filch_test(example-supernodes-fake embed 60 ${embed}/supernodes_gpu.sh
               $<TARGET_FILE:example_supernodes_gpu>)
    set_property(TEST embed.example-supernodes-fake.${build} APPEND PROPERTY ENVIRONMENT
                 "LD_LIBRARY_PATH=${fakecuda_out}" "OPENBLAS_NUM_THREADS=1")
    filch_test_preload(embed.example-supernodes-fake.${build} supernodes_twin)
endif()
