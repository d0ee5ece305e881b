# SPDX-License-Identifier: Apache-2.0
# Each tests/gpu/test_*.c twice: on the GPUs of this machine (kind gpu, exit 77 where there is none)
# and, with the kernels' host functions, on the fake driver (kind fakegpu).

file(GLOB gpu_mains CONFIGURE_DEPENDS gpu/test_*.c)
foreach(main IN LISTS gpu_mains)
    cmake_path(GET main STEM name)
    string(REPLACE test_ "" name ${name})
    if(build STREQUAL "release")
        add_executable(test_gpu_${name} ${main} gpu/gpu.c gpu/steps.c)
        target_link_libraries(test_gpu_${name} PRIVATE filch_static filch_flags ${CMAKE_DL_LIBS})
        target_include_directories(test_gpu_${name} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
        filch_test(${name} gpu 120 test_gpu_${name})
    endif()
    if(cmocka_FOUND)
        filch_fake_test(${name} SOURCES ${main} gpu/gpu.c gpu/steps.c KIND fakegpu SECONDS 120
            CONFIG "{\"devices\": [{\"count\": 3}], \"links\": [{\"from\": 0, \"to\": 1}]}")
        target_compile_definitions(test_fakegpu_${name} PRIVATE FL_FAKE=1)
    endif()
endforeach()

# The same with so little memory that one task, or a few chunks, fit at a time.
if(cmocka_FOUND)
    foreach(pair IN ITEMS graphs:72K batches:256K)
        string(REPLACE ":" ";" pair ${pair})
        list(GET pair 0 name)
        list(GET pair 1 limit)
        filch_test(${name}_short fakegpu 120 test_fakegpu_${name})
        get_property(environment TEST fakegpu.${name}.${build} PROPERTY ENVIRONMENT)
        set_property(TEST fakegpu.${name}_short.${build} APPEND PROPERTY ENVIRONMENT
                     ${environment} "FILCH_MEMORY_LIMIT=${limit}")
    endforeach()
endif()

if(cmocka_FOUND AND TARGET filch_bench_parts)
    filch_fake_test(bench SOURCES gpu/fake_bench.c KIND fakegpu SECONDS 120
        LIBRARIES filch_bench_parts
        CONFIG "{\"devices\": [{\"count\": 2}], \"links\": [{\"from\": 0, \"to\": 1}]}")
endif()

foreach(name IN ITEMS batches bench)
    if(TEST fakegpu.${name}.${build})
        set_property(TEST fakegpu.${name}.${build} APPEND PROPERTY ENVIRONMENT
            "TSAN_OPTIONS=second_deadlock_stack=1:suppressions=${CMAKE_CURRENT_SOURCE_DIR}/gpu/tsan.supp")
    endif()
endforeach()
