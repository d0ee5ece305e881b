# SPDX-License-Identifier: Apache-2.0
# To be sourced by scripts that run a program ($program) and have a folder to write to ($scratch).

# solves TEXT ARGUMENT...: the program ends well, and its output matches.
solves()
{
    local text=$1
    shift
    echo "== $*"
    "$program" "$@" | tee "$scratch/out"
    grep -q -e "$text" "$scratch/out"
}

# refuses CODE TEXT ARGUMENT...: the program ends with the code, and its output matches.
refuses()
{
    local code=0 wanted=$1 text=$2
    shift 2
    echo "== $*"
    "$program" "$@" >"$scratch/out" 2>&1 || code=$?
    cat "$scratch/out"
    [ "$code" -eq "$wanted" ] || { echo "exit $code in place of $wanted"; exit 1; }
    grep -q -e "$text" "$scratch/out"
}
