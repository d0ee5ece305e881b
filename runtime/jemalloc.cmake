# SPDX-License-Identifier: Apache-2.0
# Makes one relocatable object of the distribution's position-independent jemalloc archive in which
# only the entry points that base/memory.c calls stay global. A library or program that links it
# therefore gets jemalloc for filch's own structures, and keeps its malloc, free and pthread_create.
#
# Sets FILCH_JEMALLOC_OBJECT, empty where filch stands on the system allocator alone.

set(FILCH_JEMALLOC_OBJECT "")
set(reason "")
if(FILCH_JEMALLOC STREQUAL "OFF" OR NOT FILCH_JEMALLOC)
    set(reason "switched off")
elseif(FILCH_SANITIZE)
    set(reason "sanitizers replace allocation themselves")
else()
    find_library(FILCH_JEMALLOC_ARCHIVE libjemalloc_pic.a)
    find_path(FILCH_JEMALLOC_INCLUDE jemalloc/jemalloc.h)
    mark_as_advanced(FILCH_JEMALLOC_ARCHIVE FILCH_JEMALLOC_INCLUDE)
    if(NOT FILCH_JEMALLOC_ARCHIVE OR NOT FILCH_JEMALLOC_INCLUDE)
        set(reason "libjemalloc_pic.a or jemalloc/jemalloc.h not found")
    elseif(NOT CMAKE_OBJCOPY)
        set(reason "objcopy not found")
    endif()
endif()

if(reason)
    if(FILCH_JEMALLOC STREQUAL "ON")
        message(FATAL_ERROR "jemalloc was asked for: ${reason}")
    endif()
    message(STATUS "filch allocator: system (${reason})")
    return()
endif()

set(keep mallocx sdallocx dallocx rallocx mallctl)
list(TRANSFORM keep PREPEND "-Wl,--undefined=" OUTPUT_VARIABLE pull)
list(TRANSFORM keep PREPEND "--keep-global-symbol=" OUTPUT_VARIABLE keep_global)
set(object ${CMAKE_CURRENT_BINARY_DIR}/filch_jemalloc.o)
# Members that nothing pulls in (the C++ operators) stay out: filch needs no C++ run-time library.
add_custom_command(OUTPUT ${object}
    COMMAND ${CMAKE_C_COMPILER} -r -nostdlib ${pull} -o ${object}.all ${FILCH_JEMALLOC_ARCHIVE}
    COMMAND ${CMAKE_OBJCOPY} ${keep_global} ${object}.all ${object}
    COMMAND ${CMAKE_COMMAND} -E rm ${object}.all
    DEPENDS ${FILCH_JEMALLOC_ARCHIVE} VERBATIM
    COMMENT "Hiding jemalloc's symbols but for ${keep}")
add_custom_target(filch_jemalloc DEPENDS ${object})
set(FILCH_JEMALLOC_OBJECT ${object})
set_source_files_properties(${object} PROPERTIES GENERATED ON EXTERNAL_OBJECT ON)
message(STATUS "filch allocator: jemalloc (${FILCH_JEMALLOC_ARCHIVE})")
