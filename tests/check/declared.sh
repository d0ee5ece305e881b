#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# declared.sh CC [FORTRAN]: the declarations for other languages are what the headers declare, and
# layouts and constants are the compilers'.
set -euo pipefail
command -v python3 >/dev/null || { echo "python3 is not installed: skipped"; exit 77; }
export PYTHONDONTWRITEBYTECODE=1
python3 bindings/declare.py --check
program=$(mktemp -d)
trap 'rm -rf "$program"' EXIT
python3 bindings/declare.py --layout >"$program/layout.c"
"$1" -std=c11 -Iinclude "$program/layout.c" -o "$program/layout"
[ -n "${2-}" ] || { echo "no Fortran compiler: its layouts are not compared"; exit 0; }
python3 bindings/declare.py --layout-fortran >"$program/layout.f90"
"$2" -J "$program" -w bindings/fortran/filch_c.f90 "$program/layout.f90" -o "$program/layout-fortran"
"$program/layout-fortran"
"$program/layout"
[ -n "${2-}" ] || { echo "no Fortran compiler: its layouts are not compared"; exit 0; }
python3 bindings/declare.py --layout-fortran >"$program/layout.f90"
"$2" -J "$program" -w bindings/fortran/filch_c.f90 "$program/layout.f90" -o "$program/layout-fortran"
"$program/layout-fortran"
