#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# No file over 1,000 lines, no function over 80, no line over 100 columns; a licence line on top.
set -euo pipefail

folders=$(ls -d include runtime kernels bench tests 2>/dev/null || true)
# shellcheck disable=SC2086 # no folder name has blanks
files=$(find $folders -name '*.c' -o -name '*.h' -o -name '*.cpp' -o -name '*.hpp' \
    -o -name '*.cu' -o -name '*.cuh' | sort)
# shellcheck disable=SC2086 # no file name has blanks
awk '
function bad(line, text) { print FILENAME ":" line ": " text; failed = 1 }

# Takes comments, strings and character constants out of a line. A function body is a brace at
# depth 0 that follows a closing parenthesis; its length counts from there to the last brace.
function code(line,    out, c, two) {
    out = ""
    while (line != "") {
        two = substr(line, 1, 2)
        c = substr(line, 1, 1)
        if (in_comment) {
            if (two == "*/") { in_comment = 0; line = substr(line, 3) }
            else line = substr(line, 2)
        } else if (two == "/*") {
            in_comment = 1
            line = substr(line, 3)
        } else if (two == "//") {
            break
        } else if (c == "\"" || c == "\047") {
            quote = c
            line = substr(line, 2)
            while (line != "" && substr(line, 1, 1) != quote)
                line = substr(line, substr(line, 1, 1) == "\\" ? 3 : 2)
            line = substr(line, 2)
            out = out "q"
        } else {
            out = out c
            line = substr(line, 2)
        }
    }
    return out
}

function finish() {
    if (last == "")
        return
    if (lines > 1000) { print last ": " lines " lines, over 1,000"; failed = 1 }
    if (depth != 0) { print last ": braces do not balance (an #if around a brace?)"; failed = 1 }
}

FNR == 1 {
    finish()
    last = FILENAME
    depth = in_comment = in_macro = body = 0
    head = ""
    if ($0 !~ /SPDX-License-Identifier: Apache-2\.0/)
        bad(1, "no licence line")
}

{
    lines = FNR
    if (length($0) > 100)
        bad(FNR, length($0) " columns, over 100")
    if (in_macro || (!in_comment && /^[ \t]*#/)) {
        in_macro = /\\$/
        next
    }
    text = code($0)
    while (match(text, /[{};]/)) {
        head = head " " substr(text, 1, RSTART - 1)
        c = substr(text, RSTART, 1)
        text = substr(text, RSTART + 1)
        gsub(/[ \t]+/, " ", head)
        if (c == "{") {
            if (head ~ /^ *(extern q|namespace( [a-zA-Z_0-9:]+)?) *$/) {
                linkage++
            } else {
                if (depth == 0 && !body && head ~ /\)( const| noexcept| override)* *$/) {
                    body = FNR
                    name = head
                    sub(/ *\(.*/, "", name)
                    sub(/.*[ *]/, "", name)
                }
                depth++
            }
        } else if (c == "}") {
            if (depth == 0 && linkage > 0) {
                linkage--
            } else {
                depth--
                if (depth == 0 && body) {
                    length_now = FNR - body + 1
                    functions++
                    if (length_now > longest) { longest = length_now; where = FILENAME ": " name }
                    if (length_now > 80)
                        bad(body, name " is " length_now " lines long, over 80")
                    body = 0
                }
            }
        }
        head = ""
    }
    head = head " " text
}

END {
    finish()
    print functions + 0 " functions, longest " longest + 0 " lines (" where ")"
    exit failed
}
' $files
