#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# schedules.sh FILCH-BENCH TEST-SIM-RANDOM [--record]: on the virtual clock every workload on every
# machine of bench/data/sim, and jobs on 300 random machines, have the schedules that are on record
# in tests/data/schedules. A change that is to alter them records them anew (--record) and says so.
set -euo pipefail
cd "$(dirname "$0")/../.."
bench=$(realpath "$1") random=$(realpath "$2") record=${3-}
kept=tests/data/schedules
if [ "$(uname -m)" != x86_64 ]; then
    echo "schedules: on record for x86_64 only, whose compilers round alike"
    exit 77
fi
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

options()
{
    case $1 in
    cholesky) echo --n 2000 --tile 100 ;;
    gemm) echo --n 2000 --tile 200 ;;
    lu | qr | syrk | trsm | potrs | getrs) echo --n 1000 --tile 50 ;;
    layered) echo --n 2000 --tile 20 --cost 100000 ;;
    mandelbrot | jacobi) echo --n 500 ;;
    nbody) echo --n 20000 ;;
    stream) echo --n 200 --tile 16 --cost 10 ;;
    wavefront) echo --n 64 ;;
    busy) echo --n 200 ;;
    chain | empty | create | open) echo --n 5000 ;;
    narrow) echo --width 8 --steps 200 --task-us 2 ;;
    heat | cg) echo --n 64 --steps 20 ;;
    esac
}

# solve goes by its numbers, and has no simulated devices.
workloads=$("$bench" run --help | sed -n '1,/^options:/s/^  \([a-z]*\)  .*/\1/p' | grep -vx solve)
for file in bench/data/sim/*.json; do
    for workload in $workloads; do
        # shellcheck disable=SC2046 # words
        "$bench" sim "$workload" $(options "$workload") --devices "sim:$file" --repeat 1 \
            >"$out/log" 2>&1 || { cat "$out/log" >&2; exit 1; }
        echo "$workload $(basename "$file" .json) $(sed -n 's/^schedule \([0-9a-f]*\),.*/\1/p' "$out/log")"
    done
done >"$out/schedules"
FL_TEST_SCHEDULES=$out/random "$random" 300 >"$out/log" 2>&1 || { cat "$out/log" >&2; exit 1; }
# Two runs of the same job are one line.
uniq "$out/random" >>"$out/schedules"
if [ "$record" = --record ]; then
    cp "$out/schedules" "$kept"
fi
if ! diff "$kept" "$out/schedules" >"$out/diff"; then
    grep -c '^>' "$out/diff" | sed 's/$/ schedules are not those on record; the first of them:/'
    head -20 "$out/diff"
    exit 1
fi
echo "schedules: $(wc -l <"$kept") as on record"
