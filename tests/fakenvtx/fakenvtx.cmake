# SPDX-License-Identifier: Apache-2.0
# The fake profiler in its variants, and filch_fake_profiler(TARGET), which tells a test where they
# are.

function(filch_fake_nvtx name)
    add_library(fakenvtx_${name} SHARED ${CMAKE_CURRENT_SOURCE_DIR}/fakenvtx/fakenvtx.c)
    target_compile_definitions(fakenvtx_${name} PRIVATE ${ARGN})
    target_link_libraries(fakenvtx_${name} PRIVATE filch_flags Threads::Threads)
endfunction()

filch_fake_nvtx(whole)
filch_fake_nvtx(mute FAKE_MUTE=1)
filch_fake_nvtx(refuses FAKE_REFUSES=1)

# NVIDIA's headers, for the comparison with the runtime's declarations.
find_path(FILCH_NVTX_HEADERS nvtx3/nvToolsExt.h PATHS /usr/local/cuda/include)

function(filch_fake_profiler target)
    if(NOT TARGET ${target})
        return()
    endif()
    foreach(name IN ITEMS whole mute refuses)
        string(TOUPPER ${name} upper)
        target_compile_definitions(${target} PRIVATE
            FL_NVTX_${upper}="$<TARGET_FILE:fakenvtx_${name}>")
        add_dependencies(${target} fakenvtx_${name})
    endforeach()
    target_link_libraries(${target} PRIVATE ${CMAKE_DL_LIBS})
    if(FILCH_NVTX_HEADERS)
        target_compile_definitions(${target} PRIVATE FL_HAVE_NVTX_H)
        target_include_directories(${target} SYSTEM PRIVATE ${FILCH_NVTX_HEADERS})
    endif()
endfunction()

filch_fake_profiler(test_unit_nvtx)
filch_fake_profiler(test_fake_nvtx)
