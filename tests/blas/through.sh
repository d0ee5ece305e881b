#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# through.sh FILCH-RUN "ROUTINE ..." COMMAND...: runs a program under filch-run; it must end well, and
# calls of each routine must have gone to filch. With "-" for the routines none may have.
set -uo pipefail
run=$1 routines=$2
shift 2
command -v "$1" >/dev/null || { echo "$1 is not installed: skipped"; exit 77; }
report=$(mktemp)
trap 'rm -f "$report"' EXIT
"$run" --report --verbose "$@" 2>"$report"
code=$?
cat "$report"
[ $code -ne 77 ] || exit 77
[ $code -eq 0 ] || { echo "exit status $code"; exit 1; }
if [ "$routines" = - ]; then
    awk '/^routine / { seen = 1; next } seen && $3 > 0 { exit 1 } END { if (!seen) exit 1 }' "$report" ||
        { echo "a call went to filch, or there was no report"; exit 1; }
    exit 0
fi
for routine in $routines; do
    awk -v r="$routine" '$1 == r && $3 > 0 { found = 1 } END { exit !found }' "$report" ||
        { echo "no call of $routine went to filch"; exit 1; }
done
