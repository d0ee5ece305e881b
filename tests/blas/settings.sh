#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# settings.sh FILCH-RUN CLIENT: misspelt and malformed settings of the drop-in are told with --verbose,
# each once, and have no effect; filch's runtime knows that the others are the drop-in's.
set -uo pipefail
run=$1 client=$2 failed=0
export FILCH_BLAS_TYLE=16 FILCH_BLAS_START_S=-1 FILCH_BLAS_TILE=1e6 FILCH_LOG=warning FILCH_POLCY=steal
said=$("$run" --verbose "$client" --sizes 40 gemm 2>&1) || { echo "$said"; exit 1; }
expected='filch-blas: the environment sets FILCH_BLAS_TYLE, which the drop-in does not know
filch-blas: FILCH_BLAS_START_S is "-1"; allowed is a number from 0 to inf; it is left out
filch-blas: FILCH_BLAS_TILE is "1e6"; allowed is a number from 0 to 999999; it is left out'
diff <(echo "$expected") <(grep '^filch-blas:' <<<"$said") || failed=1
# One warning of the runtime's, of its own name.
diff <(echo FILCH_POLCY) <(grep -o 'sets FILCH_[A-Z_]*, which filch' <<<"$said" | sed 's/sets //; s/,.*//') ||
    failed=1
# Nothing is said unasked.
said=$(env -u FILCH_LOG "$run" "$client" --sizes 40 gemm 2>&1 >/dev/null)
[ -z "$said" ] || { echo "unasked: $said"; failed=1; }
exit $failed
