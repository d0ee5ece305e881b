#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# make.sh OUTPUT [MANUAL-PAGE...]: the site, OUTPUT/index.html: the pages of docs, the API reference by Doxygen
# and, where mandoc is installed, the manual pages. A warning is an error.
set -euo pipefail
export PYTHONDONTWRITEBYTECODE=1
cd "$(dirname "$0")/../.."
output=$1
shift
for tool in doxygen python3; do
    command -v "$tool" >/dev/null || { echo "$tool is not installed" >&2; exit 77; }
done
case $output in
/?*/?*) ;;
*) echo "not a folder to make and remove: $output" >&2 && exit 1 ;;
esac
rm -rf "$output"
mkdir -p "$output"
work=$(mktemp -d)
trap 'rm -r "$work"' EXIT

# The reference, with a tab that leads back to the pages.
doxygen -l "$work/layout" >/dev/null
sed -i 's|<navindex>|&<tab type="user" url="../index.html" title="Manual"/>|' "$work/layout"
{
    cat docs/Doxyfile
    echo "OUTPUT_DIRECTORY = $work"
    echo "HTML_OUTPUT = $output/api"
    echo "LAYOUT_FILE = $work/layout"
} | doxygen -

manuals=()
if command -v mandoc >/dev/null; then
    for page in "$@"; do
        mandoc -T html -O fragment "$page" >"$work/$(basename "$page").html"
        manuals+=("$work/$(basename "$page").html")
    done
else
    echo "mandoc is not installed: the site has no manual pages"
fi
python3 docs/site/site.py "$output" ${manuals[@]+"${manuals[@]}"}
