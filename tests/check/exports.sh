#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# exports.sh HEADERS LIBRARY.so...: each library exports exactly the functions of the headers, and
# takes the functions of the malloc family, and threads, from the process it is loaded into.
set -euo pipefail
headers=$1
shift

# The preprocessor takes comments out and expands nothing of ours.
declared=$(cat "$headers"/*.h | sed 's/^ *# *include.*//' | cpp -P -fpreprocessed - 2>/dev/null |
    tr '\n' ' ' | grep -oE 'FILCH_API [^;(]*\(' | grep -oE 'filch_[a-z0-9_]+ *\($' | tr -d ' (' |
    sort)
[ -n "$declared" ] || { echo "no declarations read"; exit 1; }

failed=0
for library in "$@"; do
    exported=$(nm -D --defined-only "$library" | awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' |
        sort)
    if ! difference=$(diff <(echo "$declared") <(echo "$exported")); then
        echo "$(basename "$library"): < declared only, > exported only"
        grep '^[<>]' <<<"$difference"
        failed=1
    fi
    taken=$(nm -D -u "$library")
    for symbol in malloc free; do
        if ! grep -qE " $symbol(@|$)" <<<"$taken"; then
            echo "$(basename "$library") does not take $symbol from the process"
            failed=1
        fi
    done
done
[ $failed -eq 0 ] && echo "exports: $(wc -l <<<"$declared") functions in each library"
exit $failed
