# SPDX-License-Identifier: Apache-2.0
# The fake NVRTC in its variants, and filch_fake_nvrtc(TARGET), which tells a test where they are.
# fake13 and fake12 have the names by which the library is looked for.

function(filch_fake name)
    add_library(fakenvrtc_${name} SHARED ${CMAKE_CURRENT_SOURCE_DIR}/fakenvrtc/fakenvrtc.c)
    target_compile_definitions(fakenvrtc_${name} PRIVATE ${ARGN})
    target_link_libraries(fakenvrtc_${name} PRIVATE filch_flags)
    set_target_properties(fakenvrtc_${name} PROPERTIES OUTPUT_NAME nvrtc
        LIBRARY_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/fakenvrtc/${name})
endfunction()

filch_fake(fake13 FAKE_MAJOR=13)
filch_fake(fake12 FAKE_MAJOR=12 FAKE_ARCHS=90,50)
filch_fake(fake14 FAKE_MAJOR=14)
filch_fake(lacking FAKE_MAJOR=13 FAKE_NO_CUBIN=1)
filch_fake(mute FAKE_MAJOR=13 FAKE_MUTE=1)
filch_fake(kernels FAKE_MAJOR=13 FAKE_KERNELS=1)
set_target_properties(fakenvrtc_fake13 PROPERTIES SOVERSION 13)
set_target_properties(fakenvrtc_fake12 PROPERTIES SOVERSION 12)

function(filch_fake_nvrtc target)
    if(NOT TARGET ${target})
        return()
    endif()
    foreach(name IN ITEMS fake13 fake12 fake14 lacking mute kernels)
        string(TOUPPER ${name} upper)
        target_compile_definitions(${target} PRIVATE
            FL_NVRTC_${upper}="$<TARGET_FILE:fakenvrtc_${name}>")
        add_dependencies(${target} fakenvrtc_${name})
    endforeach()
    target_link_libraries(${target} PRIVATE ${CMAKE_DL_LIBS})
endfunction()

foreach(target IN ITEMS test_unit_nvrtc test_unit_image test_stress_images test_fake_mistakes
        test_fake_bench_cg test_fake_bench_heat test_fake_bench_memory test_fake_dense test_fake_inverses
        test_fake_mixed)
    filch_fake_nvrtc(${target})
endforeach()

# The real compiler makes every kernel for every target.
if(TARGET test_unit_compile)
    set_tests_properties(unit.compile.${build} PROPERTIES TIMEOUT 3600)
endif()
