#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# page.sh PROGRAM DRIVER NVML [BENCH]: reports of PROGRAM and filch-bench in a headless Chromium (page.py). Skips where there is none.
set -euo pipefail
cd "$(dirname "$0")"
chromium=$(command -v chromium || command -v chromium-browser || command -v google-chrome || true)
[ -n "$chromium" ] || { echo "no Chromium is installed: skipped"; exit 77; }
python=$(command -v /usr/bin/python3 || command -v python3 || true)
[ -n "$python" ] || { echo "no Python 3 is installed: skipped"; exit 77; }
PYTHONDONTWRITEBYTECODE=1 exec "$python" page.py "$1" "$chromium" "$2" "$3" "${4-}"
