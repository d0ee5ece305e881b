#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# verify.sh MODEL.pml SCRATCH: explores every interleaving of the model, or fails. A search that was
# cut short (depth, memory) is a failure, not a pass.
set -euo pipefail
command -v spin >/dev/null || { echo "spin is not installed: skipped"; exit 77; }
model=$(realpath "$1")
mkdir -p "$2"
cd "$2"

option()
{
    sed -n "s,^/\* $1: \(.*\) \*/\$,\1,p" "$model"
}

spin -a "$model"
# shellcheck disable=SC2046 # words
cc -O2 -w $(option cc) -o pan pan.c
# shellcheck disable=SC2046 # words
./pan -m10000000 $(option pan) | tee pan.log
grep -q 'errors: 0$' pan.log
if grep -E 'max search depth too small|Search not completed|out of memory' pan.log; then
    exit 1
fi
