#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# run.sh LIBRARY MODULES FILE [ARGUMENT...]: runs a program in the system's Python with the package
# of the sources and a library of the build. MODULES, separated by commas, are wanted: without one
# the test skips.
set -euo pipefail
library=$1 modules=$2
shift 2
python=/usr/bin/python3
"$python" -c "import $modules" 2>/dev/null || {
    echo "skipped: Python does not have all of $modules"
    exit 77
}
export LIBFILCH=$library PYTHONPATH=$PWD/bindings/python:$PWD/tests/python PYTHONDONTWRITEBYTECODE=1
export CPATH=$PWD/include OPENBLAS_NUM_THREADS=1
"$python" -W error -X faulthandler "$@"
