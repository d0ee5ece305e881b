#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# man.sh FOLDER: the manual pages of a build are well-formed, and tell the commands, options and settings
# that the sources have, no more and no fewer.
set -euo pipefail
folder=$1
for name in filch filch-bench filch-run; do
    page=$(echo "$folder/$name".[17])
    said=$({ ! command -v mandoc >/dev/null || mandoc -T lint -W warning "$page"
             ! command -v groff >/dev/null || groff -man -ww -Tutf8 -z "$page"; } 2>&1) || true
    [ -z "$said" ] || { echo "$said"; exit 1; }
    grep -A1 '^\.SH NAME$' "$page" | sed 's/\\-/-/g' | grep -q "^$name - [a-z]" ||
        { echo "$page: the name's line is not '$name - what it is'"; exit 1; }
    ! grep -nE '^@|@[A-Z]+@|\]\(|`' "$page" || { echo "$page: is left of the template"; exit 1; }
done

# same WHAT: of two lists on descriptors 3 and 4, in the sources and on a page.
same()
{
    diff <(sort -u <&3) <(sort -u <&4) || { echo "$1: < sources, > manual page"; exit 1; }
}

# section PAGE COMMAND: a command's part of a page, and long its options.
section()
{
    awk -v command="$2" '/^\.S[SH] / { is_inside = $2 == command } is_inside' "$1" | sed 's/\\-/-/g'
}
long()
{
    sed -nE 's/^\\fB--([a-z0-9-]+).*/\1/p'
}

bench=$folder/filch-bench.1
same "commands of filch-bench" \
    3< <(sed -nE 's/^    \{"([a-z]+)", "[^"]*",.*/\1/p' bench/cli/main.c) \
    4< <(sed -n 's/^\.SS //p' "$bench")
for pair in run=cli/options.c devices=cli/devices.c sim=sim/sim.c peers=peers/peer_main.c soak=soak/soak.c; do
    command=${pair%%=*}
    same "options of filch-bench $command" \
        3< <(grep -oE '\{"[a-z-]+", +(no|required|optional)_argument' "bench/${pair#*=}" |
            sed -E 's/^\{"([a-z-]+)".*/\1/' | grep -vx help) \
        4< <(section "$bench" "$command" | long)
done
same "options of filch-run" \
    3< <(sed -nE 's/^    --([a-z0-9]+)\) .*/\1/p' kernels/blas/filch-run.in | grep -vx help) \
    4< <(long < <(sed 's/\\-/-/g' "$folder/filch-run.1"))
same "settings of filch" \
    3< <(sed -n 's/^ *X([a-z_]*, "\(FILCH_[A-Z_]*\)", [A-Z]*, .*/\1/p' runtime/base/config.h) \
    4< <(section "$folder/filch.7" ENVIRONMENT | sed -nE 's/^\\fB(FILCH_[A-Z_]+)\\fR$/\1/p')
same "settings of filch-run" \
    3< <(grep -ohE '"FILCH_BLAS_[A-Z_]+"' kernels/blas/*.c | tr -d '"' | grep -v '_$') \
    4< <(section "$folder/filch-run.1" ENVIRONMENT | sed -nE 's/^\\fB(FILCH_[A-Z_]+)\\fR$/\1/p')

if ! command -v mandoc >/dev/null && ! command -v groff >/dev/null; then
    echo "neither mandoc nor groff is installed: the form of the pages was not looked at"
    exit 77
fi
echo "man: $(cat "$folder"/*.[17] | grep -c '^\.TP') items on three pages, as the sources have them"
