# SPDX-License-Identifier: Apache-2.0
# Each tests/gpu/test_*.c twice: on the GPUs of this machine (kind gpu, exit 77 where there is none)
# and, with the kernels' host functions, on the fake driver (kind fakegpu). The latter does without
# CUDA: the fake NVRTC compiles. In the release build two more tests run its program:
#
#   NAME_nvrtc    with the real NVRTC, whose machine code the fake driver reads (exit 77 where there
#                 is none)
#   NAME_hidden   with no NVRTC: it must be skipped, say why, and leave nothing on the fake driver

# Caches nothing: the fake's images are not for the user's folder.
set(fake_compiler "FILCH_NVRTC=$<TARGET_FILE:fakenvrtc_kernels>" "FILCH_CACHE_DIR=off")
set(no_compiler "FILCH_NVRTC=/nonexistent/libnvrtc.so" "FILCH_CACHE_DIR=off" "FILCH_DEVICES=cuda")
# Tests of the bench's on the fake driver that have filch's own kernels compiled.
foreach(name IN ITEMS bench_cholesky bench_tile_kernels)
    if(TARGET test_fake_${name})
        set_property(TEST fake.${name}.${build} APPEND PROPERTY ENVIRONMENT ${fake_compiler})
        add_dependencies(test_fake_${name} fakenvrtc_kernels)
    endif()
endforeach()

# filch_fakegpu_variant(NAME OF VARIABLE=VALUE... [COMMAND COMMAND...] [CASES COUNT]): another
# test of OF's program, in the environment that OF has so far and with these variables.
function(filch_fakegpu_variant name of)
    cmake_parse_arguments(arg "" "CASES" "COMMAND" ${ARGN})
    filch_test(${name} fakegpu 120 ${arg_COMMAND} $<TARGET_FILE:test_fakegpu_${of}> ${arg_CASES})
    get_property(environment TEST fakegpu.${of}.${build} PROPERTY ENVIRONMENT)
    set_property(TEST fakegpu.${name}.${build} APPEND PROPERTY ENVIRONMENT
                 ${environment} ${arg_UNPARSED_ARGUMENTS})
endfunction()

# Gives a fakegpu test the fake compiler, and in the release build its two variants.
function(filch_fakegpu_compilers name)
    if(build STREQUAL "release")
        filch_fakegpu_variant(${name}_nvrtc ${name} CASES 60)
        filch_fakegpu_variant(${name}_hidden ${name} ${no_compiler}
                              COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/skips.sh)
    endif()
    set_property(TEST fakegpu.${name}.${build} APPEND PROPERTY ENVIRONMENT ${fake_compiler})
    add_dependencies(test_fakegpu_${name} fakenvrtc_kernels)
endfunction()

file(GLOB gpu_mains CONFIGURE_DEPENDS gpu/test_*.c)
foreach(main IN LISTS gpu_mains)
    cmake_path(GET main STEM name)
    string(REPLACE test_ "" name ${name})
    set(libraries)
    if(name STREQUAL "panels") # a kernel that the table has not
        set(libraries filch_dense)
    endif()
    if(build STREQUAL "release")
        add_executable(test_gpu_${name} ${main} gpu/gpu.c gpu/steps.c)
        target_link_libraries(test_gpu_${name} PRIVATE ${libraries} filch_bench_policies filch_static
                              filch_flags ${CMAKE_DL_LIBS})
        target_include_directories(test_gpu_${name} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
        filch_test(${name} gpu 120 test_gpu_${name})
    endif()
    if(cmocka_FOUND)
        filch_fake_test(${name} SOURCES ${main} gpu/gpu.c gpu/steps.c KIND fakegpu SECONDS 120
            LIBRARIES ${libraries}
            CONFIG "{\"devices\": [{\"count\": 3}], \"links\": [{\"from\": 0, \"to\": 1}]}")
        target_compile_definitions(test_fakegpu_${name} PRIVATE FL_FAKE=1)
        filch_fakegpu_compilers(${name})
    endif()
endforeach()

# The same with so little memory that one task, or a few chunks, fit at a time.
if(cmocka_FOUND)
    foreach(pair IN ITEMS graphs:72K batches:256K csr:128K)
        string(REPLACE ":" ";" pair ${pair})
        list(GET pair 0 name)
        list(GET pair 1 limit)
        filch_fakegpu_variant(${name}_short ${name} "FILCH_MEMORY_LIMIT=${limit}")
    endforeach()
endif()

if(cmocka_FOUND AND TARGET filch_bench_parts)
    filch_fake_test(bench SOURCES gpu/fake_bench.c KIND fakegpu SECONDS 120
        LIBRARIES filch_bench_parts
        CONFIG "{\"devices\": [{\"count\": 2}], \"links\": [{\"from\": 0, \"to\": 1}]}")
    filch_fakegpu_compilers(bench)
    if(build STREQUAL "release")
        filch_fake_test(items SOURCES gpu/fake_items.c KIND fakegpu SECONDS 400
            LIBRARIES filch_bench_parts CONFIG "{\"devices\": [{\"count\": 4, \"memory\": 16e9}]}")
        set_property(TEST fakegpu.items.${build} APPEND PROPERTY ENVIRONMENT ${fake_compiler})
        add_dependencies(test_fakegpu_items fakenvrtc_kernels)
    endif()
    filch_fake_test(soak SOURCES gpu/fake_soak.c KIND fakegpu SECONDS 120
        LIBRARIES filch_bench_parts
        CONFIG "{\"devices\": [{\"count\": 2}], \"links\": [{\"from\": 0, \"to\": 1}]}")
    # As for bench.soak: what the address sanitizer keeps looks like a leak.
    set_property(TEST fakegpu.soak.${build} APPEND PROPERTY ENVIRONMENT ${fake_compiler}
                 "ASAN_OPTIONS=quarantine_size_mb=4")
    add_dependencies(test_fakegpu_soak fakenvrtc_kernels)
    filch_test(soak_faults fakegpu 120 test_fakegpu_soak)
    set(faults)
    foreach(fault IN ITEMS cuMemCreate:20:2 cuMemCreate:60:2 cuMemHostAlloc:9:2
            kernel:100:700 kernel:300:700 kernel:900:700)
        string(REGEX REPLACE "(.*):(.*):(.*)"
               "{\"call\": \"\\1\", \"nth\": \\2, \"count\": 1, \"result\": \\3}" fault ${fault})
        string(APPEND faults ", ${fault}")
    endforeach()
    string(SUBSTRING "${faults}" 2 -1 faults)
    get_property(environment TEST fakegpu.soak.${build} PROPERTY ENVIRONMENT)
    set_property(TEST fakegpu.soak_faults.${build} APPEND PROPERTY ENVIRONMENT ${environment}
                 "FAKECUDA_CONFIG={\"devices\": [{\"count\": 2}], \"failures\": [${faults}]}")
endif()

foreach(name IN ITEMS batches bench soak)
    if(TEST fakegpu.${name}.${build})
        set_property(TEST fakegpu.${name}.${build} APPEND PROPERTY ENVIRONMENT
            "TSAN_OPTIONS=second_deadlock_stack=1:suppressions=${CMAKE_CURRENT_SOURCE_DIR}/gpu/tsan.supp")
    endif()
endforeach()
