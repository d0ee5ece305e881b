#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# tidy.sh BUILD: clang-tidy, and with it Clang's own warnings, over the library and the bench.
#
# The analyzer follows at most so many states of a function: five times as many find nothing more,
# and take three times as long.
set -euo pipefail

nodes=40000
if [ "${FL_TEST_LONG:-0}" = 1 ]; then
    nodes=225000
fi
# The commands are a compiler's that knows more options of optimization.
limit=(--extra-arg=-Wno-ignored-optimization-argument)
for word in -Xclang -analyzer-config -Xclang "max-nodes=$nodes"; do
    limit+=("--extra-arg=$word")
done

for tool in clang-tidy-14 clang-tidy; do
    if [[ "$("$tool" --version 2>/dev/null)" == *"version 14."* ]]; then
        find runtime kernels bench -name '*.c' ! -path 'bench/peers/*' | sort |
            xargs -P "$(nproc)" -n 4 "$tool" -p "$1" --quiet "${limit[@]}" 2>/dev/null
        echo "tidy: clean"
        exit 0
    fi
done
echo "clang-tidy 14 is not installed: skipped"
exit 77
