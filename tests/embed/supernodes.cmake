# SPDX-License-Identifier: Apache-2.0
# The example of sparse Cholesky, docs/examples/supernodes: in the release build against the shared library
# and beside CHOLMOD, and with the sanitizers. SuiteSparse orders its matrices; Debian's has no file for
# pkg-config.

set(script ${CMAKE_CURRENT_SOURCE_DIR}/embed/supernodes.sh)
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
