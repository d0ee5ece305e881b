#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# supernodes_gpu.sh PROGRAM: the example of sparse Cholesky on fake GPUs. The program fails where the
# residual is over 1e-14. Cuts are such that each kind of task has many parts, or one.
set -euo pipefail
program=$1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
. tests/embed/outcomes.sh

# A factor used again; cores that work on subtrees alone, and on all; no subtree is one task.
solves '"gpus": 2' poisson:12 --devices cuda,host:1 --runs 3 --json /dev/stdout
solves 'panels of 128 columns' poisson:12 --devices cuda,host:2 --cores-help --runs 3
solves 'panels of 7 columns' bench/data/lund_a.mtx --devices cuda:0,host:2 --panel 7 --pieces 50 --runs 3
solves 'panels of 1 columns' poisson:6 --devices cuda:0,host:1 --panel 1 --pieces 100000
solves '3562 rows' bench/data/bcsstk24.mtx --devices cuda,host:1 --panel 48 --pieces 60 --runs 2
solves '7 rows' <(printf '%%%%MatrixMarket matrix coordinate real symmetric\n7 7 7\n' &&
    awk 'BEGIN { for (i = 1; i <= 7; i++) print i, i, i }') --devices cuda:0,host:1 --pieces 100000

# The pivot of a panel of a GPU.
printf '%%%%MatrixMarket matrix coordinate real symmetric\n3 3 4\n1 1 2\n2 2 2\n3 3 -2\n3 1 1\n' \
    >"$scratch/negative.mtx"
refuses 1 'not positive definite: the pivot of column 3 is not positive' "$scratch/negative.mtx" \
    --devices cuda:0,host:1 --pieces 100000
awk 'NR > 1 && $1 == $2 && $1 == 3000 { $3 = -$3 } { print }' bench/data/bcsstk24.mtx >"$scratch/24.mtx"
refuses 1 'not positive definite: the pivot of column' "$scratch/24.mtx" --devices cuda:0,host:1 --panel 16 \
    --pieces 1000

# Subtrees need a core.
refuses 1 'no device' poisson:12 --devices cuda:0
# This CHOLMOD uses none, or the GPU is no real one.
refuses 1 'CHOLMOD uses no GPU' poisson:6 --devices cuda:0,host:1 --versus-gpu
