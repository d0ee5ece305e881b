#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# install.sh LIBRARY SCRATCH VERSION: pip makes and installs the package from a copy of the sources,
# without network, and a program runs with what is installed alone.
set -euo pipefail
library=$1 scratch=$2 version=$3
case $scratch in
/?*/?*) ;;
*) echo "not a folder to make and remove: $scratch" && exit 1 ;;
esac
python=/usr/bin/python3
for module in numpy pip setuptools wheel; do
    "$python" -c "import $module" 2>/dev/null || { echo "skipped: Python has no $module"; exit 77; }
done
rm -rf "$scratch"
mkdir -p "$scratch"
cp -r bindings/python "$scratch/source"
"$python" -m pip install --quiet --no-index --no-deps --no-build-isolation --no-compile \
    --target "$scratch/installed" "$scratch/source" >"$scratch/log" 2>&1 || {
    cat "$scratch/log"
    exit 1
}
diff <(cd bindings/python/filch && ls ./*.py) <(cd "$scratch/installed/filch" && ls ./*)
[ -d "$scratch/installed/filch-$version.dist-info" ] || { echo "not of version $version"; exit 1; }
cp docs/examples/cholesky.py "$scratch"
cd "$scratch"
LIBFILCH=$library PYTHONPATH=$scratch/installed PYTHONDONTWRITEBYTECODE=1 "$python" cholesky.py
