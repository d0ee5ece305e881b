# SPDX-License-Identifier: Apache-2.0
# The fake NVML in its variants, and filch_fake_meter(TARGET), which tells a test where they are.

function(filch_fake_nvml name)
    add_library(fakenvml_${name} SHARED ${CMAKE_CURRENT_SOURCE_DIR}/fakenvml/fakenvml.c)
    target_compile_definitions(fakenvml_${name} PRIVATE ${ARGN})
    target_link_libraries(fakenvml_${name} PRIVATE filch_flags)
endfunction()

filch_fake_nvml(whole)
filch_fake_nvml(older FAKE_OLDER=1)
filch_fake_nvml(lacking FAKE_LACKING=1)

function(filch_fake_meter target)
    if(TARGET ${target})
        foreach(name IN ITEMS whole older lacking)
            string(TOUPPER ${name} upper)
            target_compile_definitions(${target} PRIVATE
                FL_NVML_${upper}="$<TARGET_FILE:fakenvml_${name}>")
            add_dependencies(${target} fakenvml_${name})
        endforeach()
    endif()
endfunction()

filch_fake_meter(test_fake_meter)
