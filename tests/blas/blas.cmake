# SPDX-License-Identifier: Apache-2.0
# The drop-in BLAS: programs that know nothing of filch, run with it in front of their BLAS.

if(NOT TARGET filch_blas OR NOT openblas_FOUND)
    return()
endif()
pkg_check_modules(blas_lapacke IMPORTED_TARGET lapacke)
if(NOT blas_lapacke_FOUND)
    message(STATUS "filch tests: blas left out (no LAPACKE)")
    return()
endif()

set(blas ${CMAKE_CURRENT_SOURCE_DIR}/blas)
file(GLOB sources CONFIGURE_DEPENDS ${blas}/client*.c)
add_executable(blas_client ${sources})
target_link_libraries(blas_client PRIVATE filch_flags PkgConfig::openblas PkgConfig::blas_lapacke m)

# filch_blas_test(NAME SECONDS COMMAND... ENVIRONMENT ...): the environment beside what all have.
function(filch_blas_test name seconds)
    cmake_parse_arguments(arg "" "" "COMMAND;ENVIRONMENT" ${ARGN})
    filch_test(${name} blas ${seconds} ${arg_COMMAND})
    set_property(TEST blas.${name}.${build} APPEND PROPERTY ENVIRONMENT OPENBLAS_NUM_THREADS=1
                 ${arg_ENVIRONMENT})
    filch_test_targets(blas.${name}.${build} $<TARGET_FILE:filch_blas> $<TARGET_FILE:filch_blas64>)
endfunction()

set(run ${PROJECT_BINARY_DIR}/kernels/blas/filch-run)
filch_blas_test(plain 60 COMMAND $<TARGET_FILE:blas_client>)
filch_blas_test(next 60 COMMAND ${run} $<TARGET_FILE:blas_client>)
