#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# path.sh [DIR]: how many functions and files one GPU task passes through in its device's worker, from
# ready to home, and how often the file changes from one function's first call to the next one's. Builds
# the library in DIR (build/path) with -finstrument-functions, without optimization and inlining, and runs
# tests/path/one_task.c on the fake driver. A function of a header counts once, however many units have
# a copy. Polls find a copy under way or not, so the counts differ from run to run: the median stands for
# all, and its run's list is left in DIR/path.tsv. Before the scheduler had rooms: 256 functions, 43 files,
# 151 changes of file; when the tree had been moved and named: 255, 48, 152.
set -euo pipefail
cd "$(dirname "$0")/../.."
dir=${1:-build/path}
mkdir -p "$dir"
# Version 4: of version 5, addr2line takes the first file of a unit for the unit's own.
cmake -S . -B "$dir" -G Ninja -DCMAKE_BUILD_TYPE=Debug -DFILCH_BENCH=OFF -DFILCH_JEMALLOC=OFF \
    -DCMAKE_C_FLAGS="-finstrument-functions" -DCMAKE_C_FLAGS_DEBUG="-g -gdwarf-4 -O0" >"$dir.log" 2>&1 ||
    { cat "$dir.log" >&2; exit 1; }
cmake --build "$dir" --target path_one_task >>"$dir.log" 2>&1 || { tail -n 40 "$dir.log" >&2; exit 1; }
program=$dir/tests/path_one_task
LD_LIBRARY_PATH=$dir/tests/fakecuda "$program" 2>>"$dir.log" | grep -E '^(0x.*)?$' >"$dir/path.runs"
# Address, function and file, of the library's own functions alone.
grep . "$dir/path.runs" | sort -u | addr2line -a -f -e "$program" | paste - - - |
    sed -nE 's#^0x0*([^\t]*)\t([^\t]*)\t.*/runtime/([^:]*):.*#0x\1\t\2\t\3#p' >"$dir/path.names"
# A line a run: functions, files, changes, and the run's number. A name with fl_ is one function; a
# static one is its file's.
count_runs()
{
    awk -F '\t' -v wanted="$1" '
        function ended() {
            if (functions && !wanted)
                print functions, count, changes - 1, run
            functions = count = changes = 0
            before = ""
            run++
            split("", seen)
            split("", files)
        }
        BEGIN { run = 1 }
        NR == FNR { name[$1] = $2; file[$1] = $3; next }
        $0 == "" { ended(); next }
        $1 in name {
            key = name[$1] ~ /^fl_/ ? name[$1] : name[$1] " " file[$1]
            if (key in seen)
                next
            seen[key]
            functions++
            if (!(file[$1] in files)) {
                files[file[$1]]
                count++
            }
            changes += file[$1] != before
            before = file[$1]
            if (wanted == run)
                print name[$1] "\t" file[$1]
        }' "$dir/path.names" "$dir/path.runs"
}
runs=$(count_runs "" | sort -n -k1,1 -k3,3)
read -r functions files changes run <<<"$(sed -n "$((($(wc -l <<<"$runs") + 1) / 2))p" <<<"$runs")"
count_runs "$run" >"$dir/path.tsv"
echo "one GPU task: $functions functions, $files files, $changes changes of file"
