#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Sources are as clang-format 14 lays them out (versions differ: no other will do).
set -euo pipefail

for tool in clang-format-14 clang-format; do
    if [[ "$("$tool" --version 2>/dev/null)" == *"version 14."* ]]; then
        folders=$(ls -d include runtime kernels bench tests 2>/dev/null || true)
        # shellcheck disable=SC2086 # no folder name has blanks
        find $folders -name '*.c' -o -name '*.h' -o -name '*.cpp' -o -name '*.hpp' |
            sort | xargs "$tool" --dry-run -Werror
        exit 0
    fi
done
echo "clang-format 14 is not installed: skipped"
exit 77
