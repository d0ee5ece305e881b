#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# narrow.sh FILCH-BENCH: bench/suites/narrow runs every cell that it is asked for, and marks what is
# missed: by documents with times that are made up, so that no clock decides.
set -euo pipefail
suite=$(dirname "$0")/../../bench/suites/narrow
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

"$suite" --bench "$(realpath "$1")" --out "$out/run" --devices host:2 --patterns "stencil fft" \
    --widths "2 3" --task-us "0.5 10" --repeat 1 --tasks 60 >"$out/log"
[ "$(wc -l <"$out/run/narrow.tsv")" -eq 16 ]
# Two workers, a time of each contender but oneTBB, which may not be there; 10 steps at least.
awk -F '\t' '$6 != 2 || $7 <= 0 || $8 < 0 || $8 > 1 || $9 <= 0 || $10 <= 0 || $11 <= 0 { exit 1 }
    $3 == 2 && $5 != 30 || $3 == 3 && $5 != 20 { exit 1 }' "$out/run/narrow.tsv"
grep -q '"kind": "open", "pattern": "fft", "width": 3, "task_us": 10' "$out/run/narrow.json"

# document KIND-PATTERN-WIDTH-LENGTH STEPS STEAL ONE STATIC CENTRAL TBB
mkdir -p "$out/told/cells"
document()
{
    cat >"$out/told/cells/$1.json" <<END
{
  "devices": [
    {
      "name": "host:0",
      "backend": "host"
    },
    {
      "name": "host:1",
      "backend": "host"
    }
  ],
  "median_s": $3,
  "steps": $2,
  "moves": 0.25,
  "versus": {
    "name": "one",
    "median_s": $4
  },
  "contenders": [
    {
      "name": "one",
      "median_s": $4,
      "moves": 0
    },
    {
      "name": "static",
      "median_s": $5
    },
    {
      "name": "central",
      "median_s": $6
    },
    {
      "name": "tbb",
      "median_s": $7
    }
  ]
}
END
}
# A step of width 4 takes two tasks' time on two cores: 1,000 steps of 1 us 2 ms.
document closed-stencil-4-1 1000 0.0030 0.0044 0.0032 0.0029 0.0040
document closed-stencil-4-2 1000 0.0053 0.0080 0.0044 0.0060 0.0070
document closed-fft-4-4 1000 0.0100 0.0170 0.0095 0.0089 0.0095
document open-nearest-4-1 1000 0.0040 0.0044 0.0037 0.0036 0.0044
document open-nearest-4-8 1000 0.0180 0.0330 0.0180 0.0180 0.0190
document open-nearest-5-8 1000 0.0300 0.0400 0.0300 0.0300 0.0400
"$suite" --table --out "$out/told" >"$out/log"
cut -f 1-4,8,13,14 "$out/told/narrow.tsv" >"$out/got"
diff - "$out/got" <<'END'
closed	stencil	4	1	0.25	0.002	
closed	stencil	4	2	0.25	0.004	sh
closed	fft	4	4	0.25	0.008	c(t)
open	nearest	4	1	0.25	0.002	ct
open	nearest	4	8	0.25	0.016	(t)
open	nearest	5	8	0.25	0.024	h
END
grep -q '^4 of 6 lines miss something' "$out/log"
echo "narrow: cells run, and misses are marked"
