#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# adaptivity.sh FILCH-BENCH: a part of bench/suites/adaptivity, on the virtual clock: filch's own policy
# is near the bound where the static one is far from it, but for where a device is withdrawn, whose
# work that moves, too.
set -euo pipefail
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
"$(dirname "$0")/../../bench/suites/adaptivity" --bench "$(realpath "$1")" --out "$out" \
    --policies "steal static" --only 'regular-11-3-1-[ws][rli]*'
awk -F '\t' '
    NR == 1 { for (i = 2; i <= NF; i++) column[$i] = i }
    NR > 1 { rows++; if ($column["steal"] < 0.98 || $column["static"] > ($1 ~ /withdrawn/ ? 0.95 : 0.7)) bad = 1 }
    END { exit bad || rows != 3 }' "$out/efficiency.tsv"
