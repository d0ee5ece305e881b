#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The scheduler's structure: a worker has at most 15 members, a part of it at most 25, a backend's table of
# functions at most 12; every file of code has a header of its name, but the second files of a unit; constants
# are in one table of at most 144 rows, and each is used.
set -euo pipefail
cd "$(dirname "$0")/../.."
sched=runtime/sched failed=0

# members FILE TYPE: how many members the structure has.
members()
{
    sed -n "/^typedef struct $2 {/,/^} $2;/p" "$1" | sed 's|/\*.*\*/||; s|//.*||' |
        awk '/^    [^ \/*}].*[;]/ { count += gsub(/,/, ",") + 1 } END { print count + 0 }'
}

check()
{
    if [ "$3" -gt "$4" ]; then
        echo "$1: $2 is $3, over $4"
        failed=1
    fi
}

own=$(members $sched/worker/worker.h fl_worker)
[ "$own" -gt 0 ]
check $sched/worker/worker.h "members of fl_worker" "$own" 15
for part in $(sed -n 's/^typedef struct \(fl_worker_[a-z_]*\) {/\1/p' $sched/worker/parts.h); do
    check $sched/worker/parts.h "members of $part" "$(members $sched/worker/parts.h "$part")" 25
done
check $sched/worker/worker.h "its length" "$(wc -l <$sched/worker/worker.h)" 150

# A backend's tables of functions.
for table in $(sed -n 's/^typedef struct \(fl_[a-z]*_ops\) {/\1/p' runtime/backend/backend.h); do
    count=$(sed -n "/^typedef struct $table {/,/^} $table;/p" runtime/backend/backend.h |
        grep -cE '^    [a-z]\S* \(\*[a-z_]+\)\(')
    check runtime/backend/backend.h "functions of $table" "$count" 12
done

# Second files of a unit: code FILE of header FILE.
second="init virtual report view pieces"
for file in "$sched"/*/*.c; do
    name=$(basename "$file" .c)
    [ -f "${file%.c}.h" ] || [[ " $second " == *" $name "* ]] || {
        echo "$file: has no header"
        failed=1
    }
done

constants=$(sed -n 's/.*X([a-z0-9_]*, \(FL_[A-Z0-9_]*\),.*/\1/p' $sched/worker/tuning.h)
check $sched/worker/tuning.h "rows of the table" "$(wc -w <<<"$constants")" 144
for name in $constants; do
    grep -rqw --include='*.c' --include='*.h' --exclude=tuning.h "$name" runtime || {
        echo "$sched/worker/tuning.h: $name is not used"
        failed=1
    }
done
[ $failed -eq 0 ] && echo "structure: fl_worker has $own members, the table $(wc -w <<<"$constants") rows"
exit $failed
