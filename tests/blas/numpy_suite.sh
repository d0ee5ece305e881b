#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# numpy_suite.sh FILCH-RUN: bench/suites/numpy measures in each way that is there and says why another
# is not; a product, a factorization and a solve go to filch.
set -euo pipefail
suite=bench/suites/numpy
/usr/bin/python3 -c 'import numpy' || { echo "NumPy is not installed: skipped"; exit 77; }
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

# measured OPTIONS...: the table is in OUT/log.
measured()
{
    "$suite" --n 60 --repeat 2 --python /usr/bin/python3 --run "$run" "$@" >"$out/log"
    cat "$out/log"
}

# refused TEXT OPTIONS...
refused()
{
    local code=0 text=$1
    shift
    "$suite" "$@" >"$out/log" 2>&1 || code=$?
    if [ $code -ne 2 ] || ! grep -q -e "$text" "$out/log"; then
        echo "$*: exit $code, $(cat "$out/log")"
        exit 1
    fi
}

run=$1
measured --nvblas /nonexistent.so
grep -q '^nvblas  *skipped: /nonexistent.so cannot be loaded' "$out/log"
# Three pairs of times; a product, a factor and a solve, three times each.
awk '$1 == "alone" && NF == 8 && $8 == "-" { alone++ }
    $1 == "filch-run" && NF == 8 && $8 == 9 { filch++ }
    END { exit alone != 1 || filch != 1 }' <(tr -d '()' <"$out/log")
# A library that takes nothing stands for one that cannot.
measured --nvblas libm.so.6
grep -q '^nvblas .* 0$' "$out/log"
grep -q 'NVBLAS saw no call' "$out/log"
measured --nvblas libm.so.6 --blas /nonexistent.so
grep -q '^nvblas  *skipped: its BLAS for the host, /nonexistent.so' "$out/log"

refused "'x' is not a number above 0" --n x
refused "repeat needs a value" --repeat
refused "^One NumPy program" --nonsense
code=0
"$suite" --python /bin/false --run "$run" >"$out/log" || code=$?
[ $code -eq 77 ] && grep -q 'no NumPy for /bin/false' "$out/log"
