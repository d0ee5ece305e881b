# SPDX-License-Identifier: Apache-2.0
# Texts that the library carries as constants.
#
# filch_embed(RESULT SYMBOL FILE...): appends to the list RESULT a C source, made anew whenever a FILE
# changes, that defines
#     const char SYMBOL[];              the FILEs' texts, one after the other, and a terminator
#     const unsigned long SYMBOL_size;  its bytes without the terminator

set(filch_embed_script ${CMAKE_CURRENT_LIST_FILE})

function(filch_embed result symbol)
    set(output ${CMAKE_CURRENT_BINARY_DIR}/embedded/${symbol}.c)
    add_custom_command(OUTPUT ${output}
        COMMAND ${CMAKE_COMMAND} -DSYMBOL=${symbol} "-DINPUT=${ARGN}" -DOUTPUT=${output}
                -P ${filch_embed_script}
        DEPENDS ${ARGN} ${filch_embed_script} VERBATIM)
    set(${result} ${${result}} ${output} PARENT_SCOPE)
endfunction()

if(CMAKE_SCRIPT_MODE_FILE)
    # As bytes: C11 promises no string literal over 4,095 characters.
    set(bytes "")
    set(names "")
    foreach(file IN LISTS INPUT)
        file(READ ${file} part HEX)
        string(APPEND bytes ${part})
        cmake_path(GET file FILENAME name)
        string(APPEND names " ${name}")
    endforeach()
    string(REGEX REPLACE "(................................)" "\\1\n    " bytes "${bytes}")
    string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1, " bytes "${bytes}")
    file(WRITE ${OUTPUT} "/* Made from${names} by embed.cmake. */
extern const char ${SYMBOL}[];
extern const unsigned long ${SYMBOL}_size;
const char ${SYMBOL}[] = {
    ${bytes}0};
const unsigned long ${SYMBOL}_size = sizeof ${SYMBOL} - 1;
")
endif()
