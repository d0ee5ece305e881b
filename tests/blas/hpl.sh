#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# hpl.sh FILCH-RUN PROCESSES L1: HPL, as Debian's hpcc has it, under filch-run: one process alone, or two
# that MPI starts, in a row and in a column. HPL checks its solutions; all must pass. Every process
# must send a solve and a product for each of HPL's tests to filch. L1 tells HPL's form of the panel's
# triangle, 0: transposed, 1: not.
set -euo pipefail
run=$1 processes=$2 form=$3
for program in hpcc mpirun; do
    command -v $program >/dev/null || { echo "$program is not installed: skipped"; exit 77; }
done
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"

rows=1 cols=1
[ "$processes" -eq 1 ] || rows="1 $processes" cols="$processes 1"
grids=$(wc -w <<<"$rows")
# Two orders, neither a multiple of a block; two widths of blocks; the panels by three algorithms.
expected=$((2 * 2 * 3 * grids))
cat >hpccinf.txt <<EOF
HPL's input file; hpcc passes over the first four lines

file
8
2 orders
150 331
2 widths of blocks
32 80
0 processes by rows
$grids grids
$rows
$cols
16.0 bound of the scaled residual
3 factorizations of a panel's columns
0 1 2
1 width below which a panel is not halved
4
1 number of parts
2
1 factorization of a panel
1
1 broadcast
1
1 look-ahead
1
2 exchanges of rows
64
$form L1
0 U
1 equilibration
8 elements of alignment

0 more orders of other tests

0 more widths of other tests

EOF

# Processes are not bound: each one's devices are cores that it may use. Containers may forbid that one
# process reads another's memory. A process that waits leaves its core to filch's threads.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_mpi_yield_when_idle=1
export OMPI_MCA_btl_vader_single_copy_mechanism=none
launch=()
[ "$processes" -eq 1 ] || launch=(mpirun -np "$processes" --oversubscribe --bind-to none)
# shellcheck disable=SC2016 # expanded by each process
"${launch[@]}" sh -c 'exec "$@" 2>"report.${OMPI_COMM_WORLD_RANK:-0}"' - \
    "$run" --report --verbose hpcc || { echo "exit status $?"; cat report.*; exit 1; }
cat report.*

sed -n '/^Begin of HPL section/,/^End of HPL section/p' hpccoutf.txt >hpl.txt
for line in "$expected tests completed and passed" "0 tests completed and failed" "0 tests skipped"; do
    grep -q "^ *$line" hpl.txt || { cat hpl.txt; echo "HPL did not tell of $line"; exit 1; }
done
grep -q '^Success=1$' hpccoutf.txt || { cat hpccoutf.txt; echo "another test of hpcc failed"; exit 1; }
for ((rank = 0; rank < processes; rank++)); do
    if grep '^filch-blas:' "report.$rank"; then
        echo "a call of process $rank failed"
        exit 1
    fi
    # Solves and products without a row or column, of which HPL makes many, go to the next BLAS.
    awk -v least="$expected" '$1 == "dtrsm" { solves = $3 } $1 == "dgemm" { products = $3 }
        END { exit !(solves >= least && products >= least) }' "report.$rank" ||
        { echo "too few calls of process $rank went to filch"; exit 1; }
done
