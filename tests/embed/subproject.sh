#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# subproject.sh SCRATCH: a project that has filch as a subproject builds filch's libraries and nothing else of it:
# no tests, no bench, no drop-in BLAS, and no warning of a newer compiler as an error.
set -euo pipefail
scratch=$1
case $scratch in
/?*/?*) ;;
*) echo "not a folder to make and remove: $scratch" && exit 1 ;;
esac
rm -rf "$scratch"
mkdir -p "$scratch"
cmake -G Ninja -S tests/embed/subproject -B "$scratch/build" -DFILCH_SOURCE="$PWD" -DCMAKE_BUILD_TYPE=None \
    -DCMAKE_C_FLAGS=-O0 -DCMAKE_INSTALL_PREFIX="$scratch/prefix" >"$scratch/log" || { cat "$scratch/log"; exit 1; }
if grep -nE -- '-Werror|^build (test_|example_|filch-bench|filch-man|.*libfilch_blas)' "$scratch/build/build.ninja"; then
    exit 1
fi
cmake --build "$scratch/build" >"$scratch/log" || { tail -n 30 "$scratch/log"; exit 1; }
"$scratch/build/solver"
if find "$scratch/build" -name '*.a' | grep .; then
    echo "is built, and nobody needs it"
    exit 1
fi
cmake --install "$scratch/build" >"$scratch/log"
diff <(cd include && find . -type f | sort) <(cd "$scratch/prefix/include" && find . -type f | sort)
rm -rf "$scratch"
