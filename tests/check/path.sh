#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# path.sh [DIR]: how many functions and files one GPU task passes through in its device's worker, from
# the submission of its graph until the job is over, and how often the file changes from one function's
# first call to the next one's. Builds the library in DIR (build/path) with -finstrument-functions, without
# optimization and inlining, and runs on the fake driver. The list is left in DIR/path.tsv. Before the
# scheduler had rooms: 396 functions, 56 files, 241 changes of file.
set -euo pipefail
cd "$(dirname "$0")/../.."
dir=${1:-build/path}
mkdir -p "$dir"
cmake -S . -B "$dir" -G Ninja -DCMAKE_BUILD_TYPE=Debug -DFILCH_BENCH=OFF -DFILCH_JEMALLOC=OFF \
    -DCMAKE_C_FLAGS="-finstrument-functions" -DCMAKE_C_FLAGS_DEBUG="-g -O0" >"$dir.log" 2>&1 ||
    { cat "$dir.log" >&2; exit 1; }
cmake --build "$dir" --target path_one_task >>"$dir.log" 2>&1 || { tail -n 40 "$dir.log" >&2; exit 1; }
program=$dir/tests/path_one_task
# The library's own functions alone.
LD_LIBRARY_PATH=$dir/tests/fakecuda "$program" 2>/dev/null | grep '^0x' |
    addr2line -f -e "$program" | paste - - |
    sed -n 's#\t.*/runtime/\([^:]*\):.*#\t\1#p' >"$dir/path.tsv"
awk -F '\t' '
    { functions++; if (!($2 in files)) { files[$2]; count++ } if ($2 != before) changes++; before = $2 }
    END {
        if (!functions)
            exit 1
        printf "one GPU task: %d functions, %d files, %d changes of file\n", functions, count, changes - 1
    }' "$dir/path.tsv"
