#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# verify.sh MODEL.pml SCRATCH: explores every interleaving of the model, or fails. A search that was
# cut short (depth, memory) is a failure, not a pass. Each variant that the model names as broken must
# then be found wrong, or the model could not fail.
set -euo pipefail
command -v spin >/dev/null || { echo "spin is not installed: skipped"; exit 77; }
model=$(realpath "$1")
mkdir -p "$2"
cd "$2"

option()
{
    sed -n "s,^/\* $1: \(.*\) \*/\$,\1,p" "$model"
}

# search [-DNAME]: leaves pan.log
search()
{
    rm -f pan.log ./*.trail
    spin -a "$@" "$model"
    # shellcheck disable=SC2046 # words
    cc -O2 -w $(option cc) -o pan pan.c
    # shellcheck disable=SC2046 # words
    ./pan -m10000000 $(option pan) >pan.log || true
}

search
cat pan.log
grep -q 'errors: 0$' pan.log
if grep -E 'max search depth too small|Search not completed|out of memory' pan.log; then
    exit 1
fi
for broken in $(sed -n 's,^/\* broken: \([A-Z_]*\) \*/.*,\1,p' "$model"); do
    search "-D$broken"
    if ! grep -q 'errors: [1-9]' pan.log || grep -E 'max search depth too small|out of memory' pan.log
    then
        echo "$broken: not found out"
        exit 1
    fi
    echo "$broken: found out"
done
