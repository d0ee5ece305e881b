#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# cuda_source.sh PROGRAM.c OUTPUT: the CUDA source in a program, of which each line is a string that
# ends in \n.
set -eu
sed -n 's/^ *"\(.*\)\\n";\{0,1\}$/\1/p' "$1" | sed 's/\\"/"/g' >"$2"
[ -s "$2" ]
