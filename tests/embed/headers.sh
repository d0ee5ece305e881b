#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# headers.sh CC CXX: each public header compiles alone, twice included, as C11 and as C++17, with
# the build's compilers and with Clang where it is installed; those of the C++ interface as C++17.
set -euo pipefail
cc=$1
cxx=$2

strict="-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror -fsyntax-only -Iinclude"
compilers=("$cc -x c -std=c11 -Wstrict-prototypes")
[ -z "$cxx" ] || compilers+=("$cxx -x c++ -std=c++17 -Wold-style-cast -Wzero-as-null-pointer-constant")
for clang in clang clang-14; do
    if command -v $clang >/dev/null; then
        compilers+=("$clang -x c -std=c11 -Wstrict-prototypes" "$clang -x c++ -std=c++17")
        break
    fi
done

count=0
for header in include/filch/*.h include/filch/*.hpp include/filch/cpp/*.hpp; do
    name=${header#include/}
    for compiler in "${compilers[@]}"; do
        [[ $name != *.hpp || $compiler == *c++* ]] || continue
        # shellcheck disable=SC2086 # words
        printf '#include "%s"\n#include "%s"\n' "$name" "$name" | $compiler $strict - ||
            { echo "$name does not compile alone: $compiler"; exit 1; }
    done
    count=$((count + 1))
done
[ $count -gt 0 ]
echo "headers: $count, by ${#compilers[@]} compilers"
