#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# declared.sh CC: the declarations for other languages are what the headers declare, and layouts and
# constants are the compiler's.
set -euo pipefail
command -v python3 >/dev/null || { echo "python3 is not installed: skipped"; exit 77; }
export PYTHONDONTWRITEBYTECODE=1
python3 bindings/declare.py --check
program=$(mktemp -d)
trap 'rm -rf "$program"' EXIT
python3 bindings/declare.py --layout >"$program/layout.c"
"$1" -std=c11 -Iinclude "$program/layout.c" -o "$program/layout"
"$program/layout"
