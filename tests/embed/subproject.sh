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
    -DCMAKE_C_FLAGS=-O0 -DCMAKE_INSTALL_PREFIX="$scratch/prefix" -DFILCH_PYTHON_DIR=lib/of/python >"$scratch/log" || { cat "$scratch/log"; exit 1; }
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
# The Python package is installed on request, and loads the library beside it wherever both are.
python=/usr/bin/python3
if "$python" -c 'import numpy' 2>/dev/null; then
    mv "$scratch/prefix" "$scratch/moved"
    export PYTHONPATH=$scratch/moved/lib/of/python PYTHONDONTWRITEBYTECODE=1
    (cd / && env -u LIBFILCH "$python" -c 'import filch
with filch.Runtime("host:1") as runtime: print([each.name for each in runtime.devices])
print(filch.library.find())') | grep "^$scratch/moved/lib.*/libfilch_system.so.0$"
fi
if cmake -G Ninja -S tests/embed/subproject -B "$scratch/refused" -DFILCH_SOURCE="$PWD" \
    -DFILCH_PYTHON_DIR=/lib >"$scratch/log" 2>&1; then
    echo "an absolute folder for the Python package is taken"
    exit 1
fi
grep -q 'FILCH_PYTHON_DIR is a folder below the prefix: /lib' "$scratch/log"
rm -rf "$scratch"
