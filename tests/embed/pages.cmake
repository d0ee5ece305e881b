# SPDX-License-Identifier: Apache-2.0
# The blocks of C and C++ of docs/concepts.md and docs/extending.md, compiled and run (pages/blocks.sh). check.readme sees
# to it that every block of a page under docs is compiled somewhere.

set(pages ${CMAKE_CURRENT_SOURCE_DIR}/embed/pages)
foreach(page IN ITEMS concepts extending)
    set(parts ${CMAKE_CURRENT_BINARY_DIR}/pages/${page})
    add_custom_command(OUTPUT ${parts}.stamp
        DEPENDS ${PROJECT_SOURCE_DIR}/docs/${page}.md ${pages}/blocks.sh
        COMMAND ${pages}/blocks.sh ${PROJECT_SOURCE_DIR}/docs/${page}.md ${parts}
        COMMAND ${CMAKE_COMMAND} -E touch ${parts}.stamp)
    add_executable(page_${page} ${pages}/${page}.c ${pages}/page.c)
    set_property(SOURCE ${pages}/${page}.c PROPERTY OBJECT_DEPENDS ${parts}.stamp)
    target_link_libraries(page_${page} PRIVATE filch filch_flags m)
    target_include_directories(page_${page} PRIVATE ${parts})
    # Pages leave out checks, and casts of what they do not use.
    target_compile_options(page_${page} PRIVATE -Wno-unused-parameter -Wno-unused-variable)
    filch_test(page-${page} embed 60 page_${page})
    set_property(TEST embed.page-${page}.${build} APPEND PROPERTY ENVIRONMENT FILCH_DEVICES=host)
endforeach()
if(CMAKE_CXX_COMPILER AND TARGET test_unit_kernels_emulated)
    target_sources(page_concepts PRIVATE ${pages}/concepts_kernel.cpp)
    set_property(SOURCE ${pages}/concepts_kernel.cpp PROPERTY OBJECT_DEPENDS
                 ${CMAKE_CURRENT_BINARY_DIR}/pages/concepts.stamp)
    target_include_directories(page_concepts PRIVATE ${CMAKE_CURRENT_SOURCE_DIR} ${CMAKE_CURRENT_BINARY_DIR}/emulated)
    target_compile_definitions(page_concepts PRIVATE HAVE_KERNEL)
endif()
