#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Help and refused options of bench/run, and help of filch-bench's commands: nothing is built for
# them. $1: filch-bench, where it is built.
set -euo pipefail
stage=$(mktemp -d)
trap 'rm -r "$stage"' EXIT
for tool in cmake apt-get ninja; do
    printf '#!/bin/sh\ntouch "%s/built"\nexit 1\n' "$stage" >"$stage/$tool"
    chmod +x "$stage/$tool"
done

# expect CODE TEXT COMMAND...
expect()
{
    local code=0 wanted=$1 text=$2 output
    shift 2
    output=$(PATH=$stage:$PATH "$@" 2>&1) || code=$?
    [ "$code" -eq "$wanted" ] || { echo "$*: exit $code in place of $wanted: $output"; exit 1; }
    grep -q -e "$text" <<<"$output" || { echo "$*: no '$text' in: $output"; exit 1; }
    [ ! -e "$stage/built" ] || { echo "$*: builds"; exit 1; }
}

for option in --gpu --bundle --out "run --help"; do
    expect 0 "$option" bench/run --help
done
expect 0 usage bench/run --gpu --help
expect 2 "no option --devises" bench/run --devises host
expect 2 "no option -x" bench/run -x
expect 2 "what is --nonsense" bench/run --gpu --nonsense
expect 2 "what is --sanitizer" bench/run --gpu --sanitizer
expect 2 "there is no part nonsense; the parts: solver " bench/run --gpu --part lu,nonsense
expect 2 "what is --seconds 0" bench/run --gpu --seconds 0
expect 0 "^lu lu-16384-resident-two filch-bench run lu --n 16384 " bench/run --gpu --list --part qr,lu
expect 2 "what is --part" tests/run --gpu --part lu
for script in bench/run tests/run; do
    expect 0 "--seconds S" $script --help
done
# Items that would begin too late are left, and told.
# shellcheck disable=SC2016 # for the inner shell
expect 0 "left, for want of time: --only '^(two|three)\\$'" bash -c '. tests/bundle.sh
    gpu_bin=/bin gpu_out=$1 gpu_seconds=100
    SECONDS=0 && gpu_item one 5 true && SECONDS=100 && gpu_item two 5 true
    gpu_item three 5 true && gpu_summary' left "$stage"
# An item that has less time than it may take, and needs more, is left, and no failure.
# shellcheck disable=SC2016 # for the inner shell
expect 0 "left, for want of time: --only '^(two)\$'" bash -c '. tests/bundle.sh
    gpu_bin=/bin gpu_out=$1 gpu_seconds=100
    SECONDS=0 && gpu_item one 5 true && SECONDS=99 && gpu_item two 5 sleep 30
    gpu_summary' left "$stage"
if [ -n "${1-}" ]; then
    expect 0 "usage: filch-bench soak" "$1" soak --help
    for wrong in "--minutes 0" "--minutes x" "--rounds -1" "--worlds 17" "--rounds 1 --minutes 1" \
        "--round" "many"; do
        # shellcheck disable=SC2086 # words of an option
        expect 2 "filch-bench soak: " "$1" soak $wrong
    done
    # Of a recorded run: refused before anything is simulated or written.
    record=$stage/record.json
    echo '{}' >"$record"
    ln -s record.json "$stage/link.json"
    expect 0 "--policy WORD" "$1" sim --help
    expect 2 "sim: --policy: 'best' is not steal, static" "$1" sim --from "$record" --policy best
    expect 2 "sim: --policy: 'steal,static' is not" "$1" sim --from "$record" --policy steal,static
    expect 2 "sim: --policy: is no option of sim --from, or its value is missing" \
        "$1" sim --from "$record" --policy
    expect 2 "sim: --trace: $stage/none/t.json cannot be written: No such file" \
        "$1" sim --from "$record" --trace "$stage/none/t.json"
    expect 2 "sim: --trace: $stage cannot be written: is a directory" \
        "$1" sim --from "$record" --trace "$stage"
    expect 2 "sim: --trace: the value is empty" "$1" sim --from "$record" --trace ""
    for same in record link; do
        expect 2 "sim: --trace: $stage/$same.json is the trace that --from reads" \
            "$1" sim --from "$record" --trace "$stage/$same.json"
    done
    expect 2 "is no trace of filch" "$1" sim --from "$record" --trace "$stage/t.json"
    [ "$(cat "$record")" = '{}' ] || { echo "sim --from: its record was written to"; exit 1; }
    [ "$(cd "$stage" && echo *.json)" = "link.json record.json" ] ||
        { echo "sim --from: leaves $(ls "$stage")"; exit 1; }
    for command in table compare; do
        expect 0 "usage: filch-bench $command" "$1" "$command" --help
        expect 2 "usage: filch-bench $command" "$1" "$command"
    done
fi
echo "commands: help is only help, and unknown options build nothing"
