#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The Spack recipe (spack_cases.py).
set -euo pipefail
command -v python3 >/dev/null || { echo "python3 is not installed: skipped"; exit 77; }
PYTHONDONTWRITEBYTECODE=1 python3 tests/check/spack_cases.py
