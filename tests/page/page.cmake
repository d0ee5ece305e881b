# SPDX-License-Identifier: Apache-2.0
# Reports as a browser shows them.

if(build STREQUAL "release")
    add_executable(test_page_program ${CMAKE_CURRENT_SOURCE_DIR}/page/program.c)
    target_link_libraries(test_page_program PRIVATE filch_static filch_flags)
    set(bench)
    if(TARGET filch-bench)
        set(bench $<TARGET_FILE:filch-bench>)
    endif()
    filch_test(browser page 120 ${CMAKE_CURRENT_SOURCE_DIR}/page/page.sh
               $<TARGET_FILE:test_page_program> $<TARGET_FILE:fakecuda> $<TARGET_FILE:fakenvml_whole> ${bench})
endif()
