# SPDX-License-Identifier: Apache-2.0
# The C++ interface: tests/cpp/NAME.cpp is a program and a test, in every build. gpu runs on two
# fake GPUs. In the release build, too: what must not compile, and every program with other compilers,
# standards and without RTTI; and the programs of docs/examples in C++, which docs/cpp.md quotes.

if(NOT CMAKE_CXX_COMPILER)
    message(STATUS "filch tests: cpp left out (no C++ compiler)")
    return()
endif()

set(cpp ${CMAKE_CURRENT_SOURCE_DIR}/cpp)
set(cpp_library filch_static)
if(build STREQUAL "release")
    set(cpp_library filch)
endif()

# filch_cpp_test(NAME FILE SECONDS LIBRARY...)
function(filch_cpp_test name file seconds)
    add_executable(cpp_${name} ${file})
    target_link_libraries(cpp_${name} PRIVATE ${ARGN} filch_flags Threads::Threads)
    target_compile_options(cpp_${name} PRIVATE -Wconversion)
    filch_test(${name} cpp ${seconds} cpp_${name})
endfunction()

foreach(name IN ITEMS allocations batches csr devices failures halos jobs owners pending
                     reports tasks)
    filch_cpp_test(${name} ${cpp}/${name}.cpp 60 ${cpp_library})
endforeach()
target_sources(cpp_owners PRIVATE ${cpp}/elsewhere.cpp)
filch_cpp_test(gpu ${cpp}/gpu.cpp 120 filch_static fakecuda)
set_property(TEST cpp.gpu.${build} APPEND PROPERTY ENVIRONMENT "LD_LIBRARY_PATH=${fakecuda_out}"
             "FILCH_NVRTC=$<TARGET_FILE:fakenvrtc_kernels>" "FILCH_CACHE_DIR=off"
             "FAKECUDA_CONFIG={\"devices\": [{\"count\": 2}]}")
add_dependencies(cpp_gpu fakenvrtc_kernels)

if(build STREQUAL "release")
    # The programs of docs/cpp.md. OpenMP is for the plain loops beside CG.
    filch_cpp_test(example-cg ${PROJECT_SOURCE_DIR}/docs/examples/cg.cpp 60 filch)
    set_property(TEST cpp.example-cg.${build} APPEND PROPERTY ENVIRONMENT OMP_WAIT_POLICY=passive)
    filch_cpp_test(example-cholesky ${PROJECT_SOURCE_DIR}/docs/examples/cholesky.cpp 60 filch)
    filch_cpp_test(example-heat ${PROJECT_SOURCE_DIR}/docs/examples/heat.cpp 60 filch)
    filch_cpp_test(example-tour ${PROJECT_SOURCE_DIR}/docs/examples/tour.cpp 60 filch)
    find_package(OpenMP QUIET COMPONENTS CXX)
    if(OpenMP_CXX_FOUND)
        target_link_libraries(cpp_example-cg PRIVATE OpenMP::OpenMP_CXX)
    endif()
    filch_test(refuse cpp 120 ${cpp}/refuse.sh ${CMAKE_CXX_COMPILER})
    filch_test(compilers cpp 240 ${cpp}/compilers.sh ${CMAKE_CXX_COMPILER} $<TARGET_FILE:filch>
               ${PROJECT_BINARY_DIR}/cpp)
endif()
