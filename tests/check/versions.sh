#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# versions.sh MAP HEADERS VERSION PROGRAM LIBRARY.so...: each exported symbol has the version of the node of MAP that its
# header's "Since" names, and nothing else is exported. The nodes are those of MAP, the newest that of VERSION. The soname
# has its major number. PROGRAM, which is linked with a library, asks for the symbols by version.
set -euo pipefail
export LC_ALL=C
map=$1 headers=$2 version=$3 program=$4
shift 4
failed=0
bad()
{
    echo "$*"
    failed=1
}

nodes=$(sed -nE 's/^(FILCH_[0-9.]+) \{$/\1/p' "$map" | sort)
[ -n "$nodes" ] || { echo "$map: no nodes"; exit 1; }
newest=FILCH_$(cut -d. -f1,2 <<<"$version")
[ "$(sort -V <<<"$nodes" | tail -n 1)" = "$newest" ] || bad "$map: the newest node is not $newest, that of $version"

# "NAME NODE" of each function of the headers: the text in front of it says since when it is there.
declared=$(cat "$headers"/*.h | awk '
    /^\/\*\*/ { since = "" }
    /^ \*/ || /^\/\*\*/ {
        line = last " " substr($0, 4) # the words may be torn over two lines
        if (match(line, /Since [0-9]+\.[0-9]+/))
            since = substr(line, RSTART + 6, RLENGTH - 6)
        last = substr($0, 4)
    }
    /^FILCH_API / || is_open { text = text " " $0; is_open = 1 }
    is_open && /\(/ {
        match(text, /filch_[a-z0-9_]+ *\(/)
        name = substr(text, RSTART, RLENGTH - 1)
        sub(/ +$/, "", name)
        print name, since == "" ? "without-a-version" : "FILCH_" since
        text = ""
        is_open = 0
        since = ""
    }' | sort)
[ -n "$declared" ] || { echo "no functions read"; exit 1; }
! grep 'without-a-version$' <<<"$declared" || bad "headers: functions without a \"Since\""

for library in "$@"; do
    name=$(basename "$library")
    soname=$(readelf -d "$library" | sed -n 's/.*Library soname: \[\(.*\)\]/\1/p')
    [ "$soname" = "${name%%.so*}.so.${version%%.*}" ] || bad "$name: soname $soname"
    # Value, size, type, binding, visibility, section, name: defined symbols, with versions as the linker sees them.
    symbols=$(readelf --dyn-syms -W "$library" | awk '$1 ~ /^[0-9]+:$/ && $5 != "LOCAL" && $7 != "UND"')
    difference=$(diff <(sed 's/ /@@/' <<<"$declared") <(awk '$7 != "ABS" { print $8 }' <<<"$symbols" | sort)) ||
        bad "$name: < of the headers only, > exported only"$'\n'"$(grep '^[<>]' <<<"$difference")"
    kinds=$(awk '$7 != "ABS" { print $4, $5, $6 }' <<<"$symbols" | sort -u)
    [ "$kinds" = "FUNC GLOBAL DEFAULT" ] || bad "$name: exports other than functions: $kinds"
    [ "$(awk '$7 == "ABS" { print $8 }' <<<"$symbols" | sort)" = "$nodes" ] || bad "$name: nodes other than those of $map"
    echo "$name: soname $soname, $(awk '$7 != "ABS"' <<<"$symbols" | wc -l) functions of $(tr '\n' ' ' <<<"$nodes")"
done

needs=$(readelf --dyn-syms -W "$program" | awk '$7 == "UND" && $8 ~ /^filch_/ { print $8 }')
[ -n "$needs" ] || bad "$(basename "$program"): needs nothing of filch"
! grep -vE '@FILCH_[0-9.]+$' <<<"$needs" || bad "$(basename "$program"): needs symbols without a version"
exit $failed
