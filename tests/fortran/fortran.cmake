# SPDX-License-Identifier: Apache-2.0
# The Fortran module, in the release build: tests/fortran/check.f90 and the programs of docs/fortran.md.

set(bindings ${PROJECT_SOURCE_DIR}/bindings/fortran)
set(examples ${PROJECT_SOURCE_DIR}/docs/examples)
set(modules ${CMAKE_CURRENT_BINARY_DIR}/fortran)
set(fortran_options)
if(CMAKE_Fortran_COMPILER_ID STREQUAL "GNU")
    # Not warned of: constants of unsigned C types, and allocations of temporaries, which GCC 12 takes
    # for reads of them.
    set(fortran_options -std=f2018 -Wall -Wextra -Werror -Wno-c-binding-type -Wno-compare-reals
                        -Wno-uninitialized -Wno-maybe-uninitialized)
endif()

add_library(filch_fortran_module STATIC ${bindings}/filch_c.f90 ${bindings}/filch_arrays.f90
            ${bindings}/filch.f90)
set_target_properties(filch_fortran_module PROPERTIES Fortran_MODULE_DIRECTORY ${modules})
target_include_directories(filch_fortran_module PUBLIC ${modules})
target_link_libraries(filch_fortran_module PUBLIC filch)
target_compile_options(filch_fortran_module PUBLIC ${fortran_options})

# filch_fortran_test(NAME FILE OPTION...): modules of one program are not another's.
function(filch_fortran_test name file)
    add_executable(fortran_${name} ${file})
    set_target_properties(fortran_${name} PROPERTIES
        Fortran_MODULE_DIRECTORY ${modules}/${name})
    target_link_libraries(fortran_${name} PRIVATE filch_fortran_module)
    target_compile_options(fortran_${name} PRIVATE ${ARGN})
    filch_test(${name} fortran 60 fortran_${name})
endfunction()

filch_fortran_test(check ${CMAKE_CURRENT_SOURCE_DIR}/fortran/check.f90 -O2)
filch_fortran_test(check-bounds ${CMAKE_CURRENT_SOURCE_DIR}/fortran/check.f90 -O0 -g -fcheck=all)
foreach(name IN ITEMS check check-bounds)
    target_sources(fortran_${name} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/fortran/leading.f90)
endforeach()
filch_fortran_test(calls ${CMAKE_CURRENT_SOURCE_DIR}/fortran/calls.f90 -O0 -g -fcheck=all)
filch_fortran_test(csr ${CMAKE_CURRENT_SOURCE_DIR}/fortran/csr.f90 -O0 -g -fcheck=all)
filch_fortran_test(halos ${CMAKE_CURRENT_SOURCE_DIR}/fortran/halos.f90 -O0 -g -fcheck=all)
filch_fortran_test(example-tour ${examples}/tour.f90)
filch_fortran_test(example-cg ${examples}/cg.f90)
filch_fortran_test(example-cholesky ${examples}/cholesky.f90)
find_package(OpenMP QUIET COMPONENTS Fortran)
if(OpenMP_Fortran_FOUND)
    foreach(name IN ITEMS cg cholesky)
        target_link_libraries(fortran_example-${name} PRIVATE OpenMP::OpenMP_Fortran)
        set_property(TEST fortran.example-${name}.${build} APPEND PROPERTY ENVIRONMENT
                     OMP_WAIT_POLICY=passive)
    endforeach()
endif()
