# SPDX-License-Identifier: Apache-2.0
# Tests on the fake CUDA driver.

set(fake_include ${CMAKE_CURRENT_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR}/fake ${fakecuda_include})

# filch_fake_test(NAME SOURCES FILE... [KIND fake] [SECONDS 60] [CONFIG JSON] [LIBRARIES LIBRARY...])
# A cmocka test, linked with the runtime's static library and the fake driver, that finds the fake
# as its libcuda.so.1. CONFIG, JSON or the name of a file of it, is its FAKECUDA_CONFIG.
function(filch_fake_test name)
    cmake_parse_arguments(arg "" "KIND;SECONDS;CONFIG" "SOURCES;LIBRARIES" ${ARGN})
    if(NOT arg_KIND)
        set(arg_KIND fake)
    endif()
    if(NOT arg_SECONDS)
        set(arg_SECONDS 60)
    endif()
    set(target test_${arg_KIND}_${name})
    add_executable(${target} ${arg_SOURCES})
    target_link_libraries(${target} PRIVATE ${arg_LIBRARIES} filch_bench_policies filch_static filch_flags fakecuda
                          PkgConfig::cmocka PkgConfig::jansson ${CMAKE_DL_LIBS})
    target_include_directories(${target} PRIVATE ${fake_include})
    filch_test(${name} ${arg_KIND} ${arg_SECONDS} ${target})
    set_property(TEST ${arg_KIND}.${name}.${build} APPEND PROPERTY ENVIRONMENT
                 "LD_LIBRARY_PATH=${fakecuda_out}" "FAKECUDA_CONFIG=${arg_CONFIG}"
                 "OPENBLAS_NUM_THREADS=1")
    if(TARGET fakecublas)
        add_dependencies(${target} fakecublas fakecusolver fakecusolverMg fakecusparse)
    endif()
endfunction()

if(cmocka_FOUND)
    file(GLOB mains CONFIGURE_DEPENDS fake/test_*.c)
    foreach(main IN LISTS mains)
        cmake_path(GET main STEM name)
        string(REPLACE test_ "" name ${name})
        set(libraries)
        if(name MATCHES "^bench_") # a test of the bench's own parts
            if(NOT TARGET filch_bench_parts)
                continue()
            endif()
            set(libraries filch_bench_parts)
        elseif(name MATCHES "^(dense|inverses|mixed)") # beside the host's LAPACK
            if(NOT TARGET fakecublas)
                continue()
            endif()
            set(libraries filch_dense PkgConfig::openblas)
        endif()
        set(seconds 120)
        if(FILCH_SANITIZE MATCHES "thread")
            set(seconds 400) # the fake's threads and the runtime's, looked after by it
        endif()
        filch_fake_test(${name} SOURCES ${main} SECONDS ${seconds} LIBRARIES ${libraries})
    endforeach()
endif()

# For tests/check/path.sh alone, in a build with -finstrument-functions.
if(cmocka_FOUND)
    add_executable(path_one_task EXCLUDE_FROM_ALL path/one_task.c)
    target_link_libraries(path_one_task PRIVATE filch_static filch_flags fakecuda PkgConfig::cmocka
                          PkgConfig::jansson ${CMAKE_DL_LIBS})
    target_link_options(path_one_task PRIVATE -no-pie)
    target_include_directories(path_one_task PRIVATE ${fake_include})
endif()
