#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# docs.sh OUTPUT MANUAL-PAGE...: the site is made without one warning: the API reference, the pages, the manual
# pages. Every link of a page leads somewhere.
set -euo pipefail
export PYTHONDONTWRITEBYTECODE=1
command -v python3 >/dev/null || { echo "python3 is not installed: skipped"; exit 77; }
python3 tests/check/site_cases.py
docs/site/make.sh "$@"
[ -f "$1/index.html" ] && [ -f "$1/api/files.html" ]
grep -q 'url:"../index.html"' "$1/api/menudata.js"
! command -v mandoc >/dev/null || [ $# -eq 1 ] || [ -f "$1/man/filch.7.html" ]
