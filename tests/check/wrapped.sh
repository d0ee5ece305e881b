#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Each function of the C interface has a counterpart in C++, Python and Fortran, or a reason in
# bindings/unwrapped.txt. The comparison finds a new function, a lost call and an idle reason.
set -euo pipefail
command -v python3 >/dev/null || { echo "python3 is not installed: skipped"; exit 77; }
export PYTHONDONTWRITEBYTECODE=1
python3 bindings/wrapped.py
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
cp -r bindings include "$copy"

# finds TEXT: the comparison of the copy fails and says so.
finds()
{
    if python3 "$copy/bindings/wrapped.py" >"$copy/log"; then
        echo "wrapped.py does not find: $1"
        exit 1
    fi
    grep -qF "$1" "$copy/log" || { cat "$copy/log"; echo "wrapped.py does not say: $1"; exit 1; }
}
sed -i 's/^FILCH_API uint32_t filch_version(void);/&\nFILCH_API uint32_t filch_new(void);/' \
    "$copy/include/filch/runtime.h"
finds "filch_new has no counterpart in fortran"
sed -i 's|filch_call_finish(call_)|FILCH_OK|' "$copy/include/filch/cpp/view.hpp"
sed -i 's|lib\.filch_trace_stop|lib.filch_trace_start|' "$copy/bindings/python/filch/runtime.py"
sed -i 's|filch_call_pend(|filch_call_finish(|' "$copy/bindings/fortran/filch.f90"
finds "filch_call_finish has no counterpart in cpp"
finds "filch_trace_stop has no counterpart in python"
finds "filch_call_pend has no counterpart in fortran"
echo "filch_graph_seal all a reason that is none" >>"$copy/bindings/unwrapped.txt"
finds "filch_graph_seal is called in cpp"
echo "filch_gone all a reason" >>"$copy/bindings/unwrapped.txt"
finds "no function, language or reason"
