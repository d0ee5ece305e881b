#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# valgrind.sh PROGRAM...: no bad access, no use of what was never written (which the sanitizers do
# not look for), no leak. On the system allocator: valgrind does not know jemalloc's.
set -euo pipefail
valgrind -q true 2>/dev/null || { echo "valgrind does not run here: skipped"; exit 77; }
export FILCH_ALLOCATOR=system
exec valgrind -q --error-exitcode=9 --leak-check=full --show-leak-kinds=definite,possible \
    --errors-for-leak-kinds=definite,possible --fair-sched=yes "$@"
