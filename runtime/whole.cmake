# SPDX-License-Identifier: Apache-2.0
# Optimizes the library's rooms as one: for every task, short functions of one room call those of
# others. Taken together they take a fifth less time a task (docs/performance.md). The result is one
# object, which the shared libraries and filch-bench have in common. The tests of internals link the
# objects one by one, as other builds do.

option(FILCH_OPTIMIZE_WHOLE "Optimize the library as a whole, where the compiler is GCC" ON)

# filch_make_whole(OBJECTS NAME): NAME becomes what to link in place of the object library's objects.
# Where this is one object, a target of that name makes it.
function(filch_make_whole objects name)
    if(NOT FILCH_OPTIMIZE_WHOLE OR NOT CMAKE_C_COMPILER_ID STREQUAL GNU OR FILCH_SANITIZE
       OR NOT CMAKE_BUILD_TYPE MATCHES "^(Release|RelWithDebInfo|MinSizeRel)$")
        set(${name} $<TARGET_OBJECTS:${objects}> PARENT_SCOPE)
        return()
    endif()
    string(TOUPPER ${CMAKE_BUILD_TYPE} type)
    separate_arguments(flags NATIVE_COMMAND "${CMAKE_C_FLAGS} ${CMAKE_C_FLAGS_${type}}")
    set(object ${CMAKE_CURRENT_BINARY_DIR}/${name}.o)
    # Fat: the objects one by one are code, too.
    target_compile_options(${objects} PRIVATE -flto -ffat-lto-objects)
    add_custom_command(OUTPUT ${object}
        COMMAND ${CMAKE_C_COMPILER} ${flags} -fPIC $<$<BOOL:${FILCH_WERROR}>:-Werror> -flto=auto
                -flinker-output=nolto-rel -r -nostdlib -o ${object} $<TARGET_OBJECTS:${objects}>
        DEPENDS ${objects} $<TARGET_OBJECTS:${objects}> COMMAND_EXPAND_LISTS VERBATIM
        COMMENT "Optimizing the library as a whole")
    add_custom_target(${name} DEPENDS ${object})
    set_target_properties(${name} PROPERTIES FILCH_OBJECT ${object})
    set_source_files_properties(${object} PROPERTIES GENERATED ON EXTERNAL_OBJECT ON)
    set(${name} ${object} PARENT_SCOPE)
endfunction()
