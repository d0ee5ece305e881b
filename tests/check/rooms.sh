#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# rooms.sh LIBRARY.a: who calls whom, by the names in the objects of the library, which lie beside it. A
# unit is an object. A call goes to the own room or to a room below; no circle of calls has units of two
# rooms, and none inside one room has over 12 units. What a room must never name is not named in its files.
set -euo pipefail
cd "$(dirname "$0")/../.."
objects=$(realpath "$(dirname "$1")/CMakeFiles/filch_objects.dir")
failed=0

# --- Calls ---

find "$objects" -name '*.c.o' -printf '%P\n' | sort | while read -r object; do
    # An object may be left of a source that is gone.
    [ ! -f "runtime/${object%.o}" ] || nm "$objects/$object" | sed "s|^|${object%.c.o} |"
done | awk '
# Room of a unit: the folder below runtime/, in sched/ the next one.
function room(unit,    parts)
{
    if (split(unit, parts, "/") == 1)
        return "runtime"
    return parts[1] == "sched" ? parts[1] "/" parts[2] : parts[1]
}

BEGIN {
    count = split("base sync observe backend device module memory graph sched/worker sched/account " \
                  "sched/model sched/ready sched/decide sched/execute sched/drive runtime", order, " ")
    for (i = 1; i <= count; i++)
        rank[order[i]] = i
}
NF == 3 && $2 == "U" { wanted[$1, $3] = 1; units[$1] = 1 }
NF == 4 && $3 ~ /^[TDBRCVW]$/ { owner[$4] = $1; units[$1] = 1 }

END {
    for (pair in wanted) {
        split(pair, names, SUBSEP)
        from = names[1]
        # A name that is not in the library, of the own unit, or of a generated one.
        if (!(names[2] in owner) || (to = owner[names[2]]) == from || to ~ /^embedded/)
            continue
        edge[from, to] = 1
        calls++
        if (!(room(from) in rank) || !(room(to) in rank)) {
            print from ": its room is not known"
            failed = 1
        } else if (rank[room(to)] > rank[room(from)]) {
            print from " calls " names[2] " of " to ", which lies above it"
            failed = 1
        }
    }
    if (!calls) {
        print "no calls found"
        exit 1
    }
    for (unit in units)
        node[++n] = unit
    for (pair in edge)
        reach[pair] = 1
    # All that can be reached (Warshall).
    for (k = 1; k <= n; k++)
        for (i = 1; i <= n; i++)
            if ((node[i], node[k]) in reach)
                for (j = 1; j <= n; j++)
                    if ((node[k], node[j]) in reach)
                        reach[node[i], node[j]] = 1
    for (i = 1; i <= n; i++) {
        if (node[i] in seen)
            continue
        size = 0
        rooms = list = ""
        for (j = 1; j <= n; j++)
            if (i == j || (((node[i], node[j]) in reach) && ((node[j], node[i]) in reach))) {
                seen[node[j]] = 1
                size++
                list = list " " node[j]
                if (index(rooms " ", " " room(node[j]) " ") == 0)
                    rooms = rooms " " room(node[j])
            }
        if (size > 1 && split(rooms, parts, " ") > 1) {
            print "circle across rooms:" list
            failed = 1
        } else if (size > 12) {
            print "circle of " size " units in" rooms ":" list
            failed = 1
        }
        largest = size > largest ? size : largest
    }
    if (!failed)
        print "rooms: " n " units, " calls " calls, the largest circle has " largest " units"
    exit failed
}' || failed=1

# --- Names ---

# never FOLDER PATTERN WHY: no line of code below runtime/FOLDER matches.
never()
{
    local lines
    # Comments are not code.
    lines=$(find "runtime/$1" -name '*.[ch]' | sort | while read -r file; do
        sed -e 's|/\*.*\*/||' -e '/^ *\/\*/,/\*\//d' "$file" | grep -nE "$2" | sed "s|^|$file:|" || true
    done)
    if [ -n "$lines" ]; then
        echo "runtime/$1 must not $3:"
        echo "$lines" | head -20
        failed=1
    fi
}

never sched/model 'fl_(deque|inbox|mailbox|mutex)_|fl_ready_(put|take|steal)' 'name a queue or a lock'
never sched/ready 'fl_(speed|cost|eft|missing|explore|transfer)_' 'predict'
never sched/decide 'fl_sched_wake|fl_(deque_push|inbox_push|mailbox_put|claimed_send)|->(launch|copy)\(' \
    'wake, give away or launch'
never sched/decide 'fl_(ready_(push|take|claim|reset|own)|claimed_(put|take)|range_(set|take|drain))' \
    'take or put ready work'
never sched/drive 'fl_task\b|codelet\b|fl_tile' 'name a task, a codelet or a tile'
never graph 'shared_queue|graph_launch|fl_lane|on_board|replay' \
    "name the scheduler's queues, lanes or graph launches"
exit $failed
