# SPDX-License-Identifier: Apache-2.0
# The kernels: one set of cases, run by the host functions and by the CUDA sources in an emulator.

if(NOT cmocka_FOUND OR NOT "unit" IN_LIST kinds)
    return()
endif()

set(kernels ${CMAKE_CURRENT_SOURCE_DIR}/kernels)
add_executable(test_unit_kernels ${kernels}/test_host.c ${kernels}/cases.c)
target_link_libraries(test_unit_kernels PRIVATE filch_static filch_flags PkgConfig::cmocka)
target_include_directories(test_unit_kernels PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
filch_test(kernels unit 120 test_unit_kernels)
if(build STREQUAL "tsan")
    # The results wanted are worked out in one thread, which takes most of the time.
    set_source_files_properties(${kernels}/cases.c PROPERTIES COMPILE_OPTIONS -fno-sanitize=thread)
endif()

# Coroutines change stacks under the sanitizers' feet.
if(CMAKE_CXX_COMPILER AND NOT FILCH_SANITIZE)
    configure_file(${PROJECT_SOURCE_DIR}/kernels/filch_kernel.h
                   ${CMAKE_CURRENT_BINARY_DIR}/emulated/filch/kernel.h COPYONLY)
    add_executable(test_unit_kernels_emulated ${kernels}/test_emulated.cpp ${kernels}/cases.c)
    target_link_libraries(test_unit_kernels_emulated PRIVATE filch_static filch_flags)
    target_include_directories(test_unit_kernels_emulated PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}
                               ${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_BINARY_DIR}/emulated)
    # The sources' unroll pragmas are another compiler's; bits as on the device.
    target_compile_options(test_unit_kernels_emulated PRIVATE -ffp-contract=off
        "$<$<COMPILE_LANGUAGE:CXX>:-Wno-unknown-pragmas>")
    filch_test(kernels-emulated unit 240 test_unit_kernels_emulated)
    add_executable(test_unit_exchange_emulated ${kernels}/test_exchange.cpp)
    target_link_libraries(test_unit_exchange_emulated PRIVATE filch_flags)
    target_include_directories(test_unit_exchange_emulated PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}
                               ${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_BINARY_DIR}/emulated)
    target_compile_options(test_unit_exchange_emulated PRIVATE -Wno-unknown-pragmas)
    filch_test(exchange-emulated unit 120 test_unit_exchange_emulated)
    add_executable(test_unit_narrow_emulated ${kernels}/test_narrow.cpp)
    target_link_libraries(test_unit_narrow_emulated PRIVATE filch_flags)
    target_include_directories(test_unit_narrow_emulated PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}
                               ${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_BINARY_DIR}/emulated)
    filch_test(narrow-emulated unit 120 test_unit_narrow_emulated)
    add_executable(test_unit_split_emulated ${kernels}/test_split.cpp)
    target_link_libraries(test_unit_split_emulated PRIVATE filch_flags)
    target_include_directories(test_unit_split_emulated PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}
                               ${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_BINARY_DIR}/emulated)
    filch_test(split-emulated unit 120 test_unit_split_emulated)
    if(TARGET filch_bench_parts)
        foreach(solver cg heat)
            add_executable(test_unit_${solver}_emulated ${kernels}/test_${solver}.cpp)
            target_link_libraries(test_unit_${solver}_emulated PRIVATE filch_bench_parts filch_flags)
            target_include_directories(test_unit_${solver}_emulated PRIVATE
                                       ${CMAKE_CURRENT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}
                                       ${CMAKE_CURRENT_BINARY_DIR}/emulated)
            target_compile_options(test_unit_${solver}_emulated PRIVATE -ffp-contract=off
                "$<$<COMPILE_LANGUAGE:CXX>:-Wno-unknown-pragmas>")
            filch_test(${solver}-emulated unit 120 test_unit_${solver}_emulated)
        endforeach()
    endif()
    foreach(panel lu qr)
        add_executable(test_unit_${panel}_panel_emulated ${kernels}/test_${panel}_panel.cpp)
        target_link_libraries(test_unit_${panel}_panel_emulated PRIVATE filch_flags)
        target_include_directories(test_unit_${panel}_panel_emulated PRIVATE
                                   ${CMAKE_CURRENT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}
                                   ${CMAKE_CURRENT_BINARY_DIR}/emulated)
        target_compile_options(test_unit_${panel}_panel_emulated PRIVATE -ffp-contract=off
            "$<$<COMPILE_LANGUAGE:CXX>:-Wno-unknown-pragmas>")
        filch_test(${panel}-panel-emulated unit 240 test_unit_${panel}_panel_emulated)
    endforeach()
endif()
