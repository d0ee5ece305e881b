#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What README.md shows of a program is what the test compiles and runs, and links to files lead
# somewhere.
set -euo pipefail

diff <(sed -n '/README begins here/,/README ends here/p' docs/examples/cholesky.c | sed '1d;$d') \
    <(sed -n '/^```c$/,/^```$/p' README.md | sed '1d;/^```$/,$d') ||
    { echo "README.md and docs/examples/cholesky.c differ"; exit 1; }

count=0
for page in README.md docs/*.md; do
    while read -r target; do
        count=$((count + 1))
        [ -e "$(dirname "$page")/$target" ] || { echo "$page: no such file: $target"; exit 1; }
    done < <(grep -oE '\]\([^)#:]+(#[^)]*)?\)' "$page" | sed -E 's/^\]\(//; s/[#)].*$//')
done
echo "readme: the program is the tested one; $count links lead somewhere"
