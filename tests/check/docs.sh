#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# docs.sh OUTPUT: the API reference builds without one warning.
set -euo pipefail
command -v doxygen >/dev/null || { echo "doxygen is not installed: skipped"; exit 77; }
mkdir -p "$1"
(cat docs/Doxyfile && echo "OUTPUT_DIRECTORY = $1") | doxygen -
[ -f "$1/html/index.html" ]
