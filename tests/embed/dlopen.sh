#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# dlopen.sh PROGRAM SYSTEM-LIBRARY LIBRARY: a plain program loads filch at run time.
#
# The library on the system allocator must load anywhere. The one with jemalloc needs more static
# thread-local storage than glibc keeps for late loading by default; with that raised it must load
# too, and without it must fail cleanly or work.
set -uo pipefail
program=$1
system=$2
library=$3

echo "== $(basename "$system")"
"$program" "$system" || exit 1

echo "== $(basename "$library"), as it is"
"$program" "$library"
status=$?
[ $status -eq 0 ] || [ $status -eq 3 ] || exit 1

echo "== $(basename "$library"), glibc.rtld.optional_static_tls=8192"
GLIBC_TUNABLES=glibc.rtld.optional_static_tls=8192 "$program" "$library" || exit 1
