#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# supernodes.sh PROGRAM [--versus]: the example of sparse Cholesky. The program fails where the residual
# is over 1e-14. Matrices and cuts are such that each kind of task has many parts, or one.
set -euo pipefail
program=$1 versus=${2-}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
. tests/embed/outcomes.sh
# Threads of OpenMP that wait would take the cores; CHOLMOD uses OpenMP.
export OMP_THREAD_LIMIT=1

# market SYMMETRY: a Matrix Market file's header; sizes and entries follow.
market() { printf '%%%%MatrixMarket matrix coordinate real %s\n' "$1"; }

solves 'usage: supernodes' --help

# Orders and cuts: whole subtrees alone; as many tasks as there can be; a factor used again.
solves '1000 rows, 3700 entries' poisson:10 --devices host:1
solves 'graph of 1 tasks' poisson:1 --pieces 1
for order in metis amd; do
    solves "order $order" poisson:12 --devices host:2 --order "$order" --runs 3
    solves 'panels of 1 columns' poisson:6 --devices host:2 --order "$order" --panel 1 --pieces 100000
    solves 'panels of 7 columns' bench/data/lund_a.mtx --devices host:3 --order "$order" --panel 7 \
        --pieces 50 --runs 3
done
solves '3562 rows, 81736 entries' bench/data/bcsstk24.mtx --devices host:2 --runs 3
if [ -n "$versus" ]; then
    solves 'cholmod, 1 thread .* ratio' bench/data/bcsstk24.mtx --devices host:2 --versus --runs 3 \
        --json "$scratch/json"
    grep -q '"rows": 3562, "entries": 81736' "$scratch/json"
    [ ! -x /usr/bin/python3 ] || /usr/bin/python3 -c 'import json, sys
said = json.load(open(sys.argv[1]))
assert said["rows"] == 3562 and len(said["filch"]["times_s"]) == 3, said
assert said["cholmod_residual"] < 1e-14 and said["residual"] < 1e-14, said' "$scratch/json"
fi

# Many trees, none of which ends in another. Then one supernode under which more others stand than a task
# has accesses: a hub at the root, and one between its leaves and larger hubs, with an update of its own.
(market symmetric && awk 'BEGIN { print 900, 900, 900; for (i = 1; i <= 900; i++) print i, i, i }') \
    >"$scratch/diagonal.mtx"
solves '900 rows' "$scratch/diagonal.mtx" --devices host:2 --pieces 20
(market general && awk 'BEGIN {
    n = 1201; print n, n, n + 2 * (n - 1) + n - 1
    for (i = 1; i < n; i++) print i, i, 4 "\n" n, i, 1 "\n" i, n, 1
    for (i = 1; i < n; i += 2) print i, i + 1, -1 "\n" i + 1, i, -1
    print n, n, 3 * n }') >"$scratch/star.mtx"
for pieces in 900 100000; do
    solves '1201 rows' "$scratch/star.mtx" --devices host:2 --order amd --pieces "$pieces"
done
(market symmetric && awk '
    function add(i, j, value) { text = text i " " j " " value "\n"; count++ }
    BEGIN {
        for (j = 1; j <= 400; j++) { add(j, j, 4); add(401, j, 1); add(461, j, 1) }
        for (j = 401; j <= 720; j++)
            for (i = j; i <= (j > 460 ? 720 : 460); i++) add(i, j, i == j ? 1000 : 1)
        add(461, 401, 1)
        print 720, 720, count; printf "%s", text }') >"$scratch/hubs.mtx"
solves '720 rows' "$scratch/hubs.mtx" --devices host:2 --order amd --pieces 100000

# What is wrong, and where.
(market symmetric && printf '3 3 4\n1 1 2\n2 2 -1\n3 3 2\n3 1 1\n') >"$scratch/negative.mtx"
refuses 1 'not positive definite: the pivot of column 2 ' "$scratch/negative.mtx"
(market symmetric && printf '2 2 2\n1 1 2\n2 1 1\n') >"$scratch/hole.mtx"
refuses 1 'not positive definite: the pivot of column' "$scratch/hole.mtx"
awk 'NR > 1 && $1 == $2 && $1 == 3000 { $3 = -$3 } { print }' bench/data/bcsstk24.mtx >"$scratch/24.mtx"
for pieces in 1 1000; do
    refuses 1 'not positive definite: the pivot of column' "$scratch/24.mtx" --devices host:2 \
        --panel 16 --pieces "$pieces"
done
(market general && printf '2 2 4\n1 1 2\n2 2 2\n2 1 1\n1 2 3\n') >"$scratch/skew.mtx"
refuses 1 'not symmetric: (2, 1) is 1, (1, 2) is 3' "$scratch/skew.mtx"
(market general && printf '2 2 3\n1 1 2\n2 2 2\n1 2 3\n') >"$scratch/upper.mtx"
refuses 1 'not symmetric: (2, 1) is 0, (1, 2) is 3' "$scratch/upper.mtx"
(market general && printf '2 3 1\n1 1 2\n') >"$scratch/wide.mtx"
refuses 1 'not symmetric: 2 rows, 3 columns' "$scratch/wide.mtx"
(market symmetric && printf '2 2 3\n1 1 2\n2 2 2\n1 2 3\n') >"$scratch/above.mtx"
refuses 1 'line 5: (1, 2) is above the diagonal' "$scratch/above.mtx"
(market symmetric && printf '2 2 3\n1 1 2\n2 2 2\n2 2 2\n') >"$scratch/twice.mtx"
refuses 1 'entry (2, 2) is given twice' "$scratch/twice.mtx"
(market symmetric && printf '2 2 3\n1 1 2\n2 2 2\n') >"$scratch/short.mtx"
refuses 1 'ends after 2 of 3 entries' "$scratch/short.mtx"
(market symmetric && printf '2 2 1\n1 1 nan\n') >"$scratch/nan.mtx"
refuses 1 'line 3 must have a row and a column of 1 to 2 and a value' "$scratch/nan.mtx"
(market hermitian && printf '1 1 1\n1 1 1\n') >"$scratch/hermitian.mtx"
refuses 1 'the matrix is coordinate real hermitian, must be' "$scratch/hermitian.mtx"
(market symmetric && printf '%% a comment\n3 3\n') >"$scratch/sizes.mtx"
refuses 1 'line 3 must have rows, columns and entries' "$scratch/sizes.mtx"
echo nonsense >"$scratch/nonsense.mtx"
refuses 1 'line 1 is no header' "$scratch/nonsense.mtx"
refuses 1 'No such file' "$scratch/missing.mtx"
refuses 1 'must be poisson:1 to poisson:500' poisson:0
refuses 1 'nonsense' poisson:3 --devices nonsense
refuses 1 'cannot be written' poisson:3 --json "$scratch/none/json"
refuses 2 '--panel 0: must be 1 to' --panel 0
refuses 2 '--order none: must be' --order none
refuses 2 '--runs needs a value' --runs
refuses 2 "unknown option '--fast'" --fast
