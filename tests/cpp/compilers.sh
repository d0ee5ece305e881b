#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# compilers.sh CXX LIBRARY SCRATCH: the C++ interface in all strictness. Each program of tests/cpp
# and docs/examples compiles without a warning as C++17 and C++20, with and without RTTI, by the
# build's compiler and by Clang where it is installed; Clang's programs run, too.
set -euo pipefail
cxx=$1
library=$2
scratch=$3
mkdir -p "$scratch"

strict="-Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wold-style-cast
    -Wzero-as-null-pointer-constant -Werror -Iinclude"
clang=
for candidate in clang++ clang++-14; do
    if command -v $candidate >/dev/null; then
        clang=$candidate
        break
    fi
done

count=0
header=$scratch/filch.hpp # read once for all programs
for compiler in "$cxx" $clang; do
    for mode in "-std=c++17 -fno-rtti" "-std=c++20"; do
        # shellcheck disable=SC2086 # words
        $compiler $mode $strict -x c++-header include/filch/filch.hpp -o "$header.gch"
        for source in tests/cpp/*.cpp docs/examples/*.cpp; do
            [ "$source" != tests/cpp/gpu.cpp ] || continue # the fake driver is of the build
            # Clang compiles these with the same options when it makes the programs below.
            case $compiler:$mode:$source in
            "$clang":*c++17*:tests/*) continue ;;
            esac
            # shellcheck disable=SC2086 # words
            $compiler $mode $strict -include "$header" -fsyntax-only "$source" ||
                { echo "$source: $compiler $mode"; exit 1; }
            count=$((count + 1))
        done
    done
done

if [ -n "$clang" ]; then
    for source in tests/cpp/*.cpp; do
        case $source in
        */gpu.cpp | */elsewhere.cpp) continue ;;
        */owners.cpp) source+=" tests/cpp/elsewhere.cpp" ;;
        esac
        program=$scratch/clang-program
        # shellcheck disable=SC2086 # words
        $clang -std=c++17 -O1 -fno-rtti $strict $source -o "$program" "$library" -pthread \
            -Wl,-rpath,"$(dirname "$library")"
        "$program"
    done
else
    echo "no Clang: its programs are left out"
fi
echo "compilers: $count compilations without a warning"
