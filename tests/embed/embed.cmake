# SPDX-License-Identifier: Apache-2.0
# What a host program meets: headers alone, the installed package, late loading, and how filch
# behaves in it.

set(embed ${CMAKE_CURRENT_SOURCE_DIR}/embed)
set(scratch ${PROJECT_BINARY_DIR}/embed)

set(cxx "")
if(CMAKE_CXX_COMPILER)
    set(cxx ${CMAKE_CXX_COMPILER})
endif()
filch_test(headers embed 120 ${embed}/headers.sh ${CMAKE_C_COMPILER} "${cxx}")
if(TARGET filch_blas)
    filch_test(install embed 180 ${embed}/install.sh ${PROJECT_BINARY_DIR} ${scratch}
               ${CMAKE_INSTALL_LIBDIR})
endif()
filch_test(subproject embed 120 ${embed}/subproject.sh ${PROJECT_BINARY_DIR}/subproject)
if(TARGET filch-bench AND TARGET filch_blas)
    filch_test(packages embed 120 ${embed}/packages.sh ${PROJECT_BINARY_DIR}
               ${PROJECT_BINARY_DIR}/packages)
    # Makes a root from the distribution's mirror.
    filch_test(clean-root embed 300 ${embed}/clean_root.sh
               ${PROJECT_BINARY_DIR}/packages/packages ${PROJECT_BINARY_DIR}/clean-root)
    set_tests_properties(embed.packages.${build} PROPERTIES FIXTURES_SETUP packages.${build})
    set_tests_properties(embed.clean-root.${build} PROPERTIES FIXTURES_REQUIRED packages.${build})
endif()

add_executable(embed_plain ${embed}/plain.c)
target_link_libraries(embed_plain PRIVATE filch_flags ${CMAKE_DL_LIBS})
target_include_directories(embed_plain PRIVATE ${PROJECT_SOURCE_DIR}/include)
filch_test(dlopen embed 60 ${embed}/dlopen.sh $<TARGET_FILE:embed_plain>
           $<TARGET_FILE:filch_system> $<TARGET_FILE:filch>)

add_executable(embed_malloc ${embed}/malloc.c)
target_link_libraries(embed_malloc PRIVATE filch filch_flags ${CMAKE_DL_LIBS})
filch_test(malloc embed 60 embed_malloc)

# How the library behaves in its host, as the shared library that hosts use.
foreach(name IN ITEMS affinity cores shared_cores fork host idle)
    add_executable(embed_${name} ${embed}/${name}.c)
    target_link_libraries(embed_${name} PRIVATE filch filch_flags)
    filch_test(${name} embed 60 embed_${name})
endforeach()
# With the threads that serve two fake GPUs, too.
add_executable(embed_affinity_fake ${embed}/affinity.c)
target_link_libraries(embed_affinity_fake PRIVATE filch filch_flags fakecuda)
filch_test(affinity-fake embed 60 embed_affinity_fake)
set_property(TEST embed.affinity-fake.${build} APPEND PROPERTY ENVIRONMENT
             "LD_LIBRARY_PATH=${fakecuda_out}" "FILCH_DEVICES=cuda,host:1")
# A copy of it runs as another user, who may not get at shared libraries in the build's folder.
add_executable(embed_setuid ${embed}/setuid.c)
target_link_libraries(embed_setuid PRIVATE filch_static filch_flags)
filch_test(setuid embed 60 embed_setuid)
if(CMAKE_CXX_COMPILER)
    add_executable(embed_cplusplus ${embed}/cplusplus.cpp)
    target_link_libraries(embed_cplusplus PRIVATE filch filch_flags)
    filch_test(cplusplus embed 60 embed_cplusplus)
endif()

# The programs of the documentation, against the shared library. README.md quotes them.
add_executable(example_smooth ${PROJECT_SOURCE_DIR}/docs/examples/smooth.c)
target_link_libraries(example_smooth PRIVATE filch filch_flags m)
filch_test(example-smooth embed 60 example_smooth)
# On two fake GPUs and a core, its kernel compiled by the real NVRTC.
add_executable(example_smooth_fake ${PROJECT_SOURCE_DIR}/docs/examples/smooth.c
               ${embed}/smooth_twin.c)
target_link_libraries(example_smooth_fake PRIVATE filch filch_flags fakecuda m)
filch_test(example-smooth-fake embed 60 example_smooth_fake)
set_property(TEST embed.example-smooth-fake.${build} APPEND PROPERTY ENVIRONMENT
             "LD_LIBRARY_PATH=${fakecuda_out}" "FILCH_DEVICES=cuda,host:1")
# The programs of the tutorials. The kernel of one, for the fake driver, is its CUDA source, emulated.
foreach(name IN ITEMS heat heat_gpu report)
    add_executable(example_${name} ${PROJECT_SOURCE_DIR}/docs/examples/${name}.c)
    target_link_libraries(example_${name} PRIVATE filch filch_flags m)
endforeach()
filch_test(example-heat embed 60 example_heat 200 8)
filch_test(example-heat-gpu embed 60 example_heat_gpu 200 8)
filch_test(example-report embed 60 example_report 40 3)
add_executable(example_need ${embed}/need.c)
target_link_libraries(example_need PRIVATE filch filch_flags m)
foreach(older IN ITEMS "" -older)
    filch_test(example-need${older} embed 60 example_need ${older})
    set_property(TEST embed.example-need${older}.${build} PROPERTY PASS_REGULAR_EXPRESSION
                 "^heat: INVALID_HANDLE: the graph is null")
endforeach()
if(CMAKE_CXX_COMPILER AND TARGET test_unit_kernels_emulated)
    set(relax ${CMAKE_CURRENT_BINARY_DIR}/tutorial/relax.cu)
    add_custom_command(OUTPUT ${relax} DEPENDS ${PROJECT_SOURCE_DIR}/docs/examples/heat_gpu.c
        COMMAND ${embed}/cuda_source.sh ${PROJECT_SOURCE_DIR}/docs/examples/heat_gpu.c ${relax})
    add_library(heat_twin MODULE ${embed}/heat_twin.cpp ${relax})
    target_link_libraries(heat_twin PRIVATE filch_flags fakecuda)
    target_include_directories(heat_twin PRIVATE ${CMAKE_CURRENT_SOURCE_DIR} ${fakecuda_include}
                               ${CMAKE_CURRENT_BINARY_DIR}/tutorial
                               ${CMAKE_CURRENT_BINARY_DIR}/emulated)
    # Its kernel compiled by the real NVRTC where there is one.
    filch_test(example-heat-gpu-fake embed 60 example_heat_gpu 40 4)
    set_property(TEST embed.example-heat-gpu-fake.${build} APPEND PROPERTY ENVIRONMENT
                 "LD_LIBRARY_PATH=${fakecuda_out}" "FILCH_DEVICES=cuda,host:1")
    filch_test_preload(embed.example-heat-gpu-fake.${build} heat_twin)
    if(TARGET filch-bench)
        filch_test(tutorials embed 240 ${embed}/tutorial.sh ${PROJECT_BINARY_DIR}
                   ${PROJECT_BINARY_DIR}/tutorials ${CMAKE_INSTALL_LIBDIR} ${fakecuda_out}
                   $<TARGET_FILE:fakenvrtc_kernels> $<TARGET_FILE:heat_twin>)
    endif()
endif()
if(TARGET fakecublas)
    # On cores, and with the fake cuBLAS and cuSPARSE, whose headers the toolkit would bring.
    foreach(library IN ITEMS cublas cusparse)
        add_executable(example_${library} ${PROJECT_SOURCE_DIR}/docs/examples/${library}.c)
        target_link_libraries(example_${library} PRIVATE filch filch_flags fake${library} fakecuda m)
        target_include_directories(example_${library} PRIVATE ${embed}/cublas)
        filch_test(example-${library} embed 60 example_${library})
        set_property(TEST embed.example-${library}.${build} APPEND PROPERTY ENVIRONMENT FILCH_DEVICES=host:2)
        filch_test(example-${library}-fake embed 60 example_${library})
        set_property(TEST embed.example-${library}-fake.${build} APPEND PROPERTY ENVIRONMENT
                     "LD_LIBRARY_PATH=${fakecuda_out}" "FILCH_DEVICES=cuda" "OPENBLAS_NUM_THREADS=1")
    endforeach()
    # Blocks and vectors move between two GPUs, and cores take part.
    filch_test(example-cusparse-two embed 60 example_cusparse)
    set_property(TEST embed.example-cusparse-two.${build} APPEND PROPERTY ENVIRONMENT
                 "LD_LIBRARY_PATH=${fakecuda_out}" "FILCH_DEVICES=cuda,host:1"
                 "FAKECUDA_CONFIG={\"devices\": [{\"count\": 2}]}")
endif()
pkg_check_modules(example_blas IMPORTED_TARGET openblas lapacke)
if(example_blas_FOUND)
    add_executable(example_cholesky ${PROJECT_SOURCE_DIR}/docs/examples/cholesky.c)
    target_link_libraries(example_cholesky PRIVATE filch filch_flags PkgConfig::example_blas m)
    filch_test(example-cholesky embed 60 example_cholesky)
else()
    message(STATUS "filch tests: embed.example-cholesky left out (no OpenBLAS or LAPACKE)")
endif()
pkg_check_modules(example_mpi IMPORTED_TARGET ompi-c)
if(example_mpi_FOUND)
    add_executable(example_halo_mpi ${PROJECT_SOURCE_DIR}/docs/examples/halo_mpi.c)
    target_link_libraries(example_halo_mpi PRIVATE filch filch_flags PkgConfig::example_mpi)
    filch_test(example-halo-mpi embed 60 ${embed}/halo_mpi.sh $<TARGET_FILE:example_halo_mpi>)
else()
    filch_test(example-halo-mpi embed 60 sh -c "echo 'Open MPI is not installed: skipped'; exit 77")
endif()
include(embed/pages.cmake)
filch_test(readme check 60 ${CMAKE_CURRENT_SOURCE_DIR}/check/readme.sh)
