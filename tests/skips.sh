#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# skips.sh PROGRAM ARGUMENT...: passes where the program skips, that is, exits 77 and says why.
said=$("$@" 2>&1)
code=$?
printf '%s\nexit status %d\n' "$said" "$code"
[ "$code" -eq 77 ] || exit 1
printf '%s\n' "$said" | grep -q -i -e 'skipped' || { echo "it does not say why"; exit 1; }
