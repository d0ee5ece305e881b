# SPDX-License-Identifier: Apache-2.0
# fuzz_NAME.c is a fuzzer of what is read: with FILCH_FUZZ a libFuzzer program that starts from
# corpus/NAME; in other builds a program that runs the files of corpus/NAME, with any compiler.

set(fuzz_dir ${CMAKE_CURRENT_SOURCE_DIR}/fuzz)
# Fuzzers of the bench's own parts.
set(fuzz_bench matrix trace results options)
# Runs that take each fuzzer about eight seconds; a hundred times as many with --long.
set(fuzz_runs_compiler 60000)
set(fuzz_runs_kernels 140000)
set(fuzz_runs_matrix 1400000)
set(fuzz_runs_names 430000)
set(fuzz_runs_options 950000)
set(fuzz_runs_results 120000)
set(fuzz_runs_settings 16000)
set(fuzz_runs_simulator 300000)
set(fuzz_runs_spec 850000)
set(fuzz_runs_speeds 125000)
set(fuzz_runs_trace 11500)
set(fuzz_times 1)
if(FILCH_TESTS_LONG)
    set(fuzz_times 100)
endif()

add_library(fuzz_shared OBJECT EXCLUDE_FROM_ALL ${fuzz_dir}/fuzz.c)
target_link_libraries(fuzz_shared PRIVATE filch_static filch_flags)
add_custom_target(fuzzers)

# Inputs that a run finds stay in the build's folder; one that fails is found/NAME-*.
function(fuzz_run name target)
    set(grown ${PROJECT_BINARY_DIR}/fuzz/${name})
    file(MAKE_DIRECTORY ${grown} ${PROJECT_BINARY_DIR}/found)
    set(words)
    if(EXISTS ${fuzz_dir}/words/${name})
        set(words -dict=${fuzz_dir}/words/${name})
    endif()
    math(EXPR seconds "15 * ${fuzz_times}")
    math(EXPR runs "${fuzz_runs_${name}} * ${fuzz_times}")
    # By itself libFuzzer exits 77, which is a skip here.
    filch_test(${name} fuzz ${seconds} ${target} -runs=${runs} -timeout=60
               -rss_limit_mb=1500 -error_exitcode=1 -timeout_exitcode=1 -max_len=8192 -verbosity=0 ${words}
               -artifact_prefix=${PROJECT_BINARY_DIR}/found/${name}- ${grown}
               ${fuzz_dir}/corpus/${name})
endfunction()

file(GLOB mains CONFIGURE_DEPENDS ${fuzz_dir}/fuzz_*.c)
foreach(main IN LISTS mains)
    cmake_path(GET main STEM name)
    string(REPLACE fuzz_ "" name ${name})
    set(libraries filch_static)
    if(name IN_LIST fuzz_bench)
        set(libraries filch_bench_parts)
        if(NOT TARGET filch_bench_parts)
            continue()
        endif()
    endif()
    if(FILCH_FUZZ AND NOT FILCH_HAVE_LIBFUZZER)
        filch_test(${name} fuzz 10 bash -c
                   "echo 'no libFuzzer: Clang 14 and libclang-rt-14-dev are needed' && exit 77")
        continue()
    endif()
    set(target test_fuzz_${name})
    add_executable(${target} ${main} $<TARGET_OBJECTS:fuzz_shared>)
    target_link_libraries(${target} PRIVATE ${libraries} filch_flags PkgConfig::jansson)
    target_include_directories(${target} PRIVATE ${fuzz_dir})
    add_dependencies(fuzzers ${target})
    if(FILCH_FUZZ)
        target_link_options(${target} PRIVATE -fsanitize=fuzzer)
        fuzz_run(${name} ${target})
    else()
        target_sources(${target} PRIVATE ${fuzz_dir}/replay.c)
        filch_test(${name} fuzz 60 ${target} ${fuzz_dir}/corpus/${name})
    endif()
endforeach()
