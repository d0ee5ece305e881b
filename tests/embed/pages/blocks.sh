#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# blocks.sh PAGE.md FOLDER: takes a page's blocks of C and C++ apart, for a program that includes the parts. Block N
# below a heading, written as-this, gives FOLDER/as-this-N.functions.inc, its functions and includes, and
# FOLDER/as-this-N.P.inc, its statements; "..." on a line of its own ends part P.
set -eu
page=$1
folder=$2
rm -rf "$folder"
mkdir -p "$folder"
awk -v folder="$folder" '
function flush_chunk(    kind) {
    if (chunk == "")
        return
    kind = chunk ~ /^#include / || chunk ~ /^(static|extern "C") [^;=\n]*\)\n/ ? "functions" : part
    print "/* " FILENAME ":" begin " */" "\n" chunk >(folder "/" slug "-" count[slug] "." kind ".inc")
    chunk = ""
}
/^#+ / && !is_inside {
    slug = tolower($0)
    gsub(/^#+ /, "", slug)
    gsub(/[^a-z0-9 -]/, "", slug)
    gsub(/ /, "-", slug)
}
/^```(c|cpp)$/ { is_inside = 1; part = 1; count[slug]++; begin = NR + 1; next }
/^```/ { if (is_inside) flush_chunk(); is_inside = 0; next }
!is_inside { next }
/^$/ { flush_chunk(); begin = NR + 1; next }
/^\.\.\.$/ { flush_chunk(); part++; begin = NR + 1; next }
{ chunk = chunk $0 "\n" }
' "$page"
