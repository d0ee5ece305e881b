#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Six concepts of the scheduler have one definition each: earliest finish, hold-off, chunk size, missing
# bytes, "is asynchronous", "who else could run it". Each has quantities that a second definition could
# not do without; the functions that name them are listed here.
set -euo pipefail
cd "$(dirname "$0")/../.."
bodies=$(mktemp) failed=0
trap 'rm -f "$bodies"' EXIT

# Functions without comments, one a line: FILE:NAME, tab, the body with the statements apart by ";".
# shellcheck disable=SC2046 # no file name has blanks
awk '
    FNR == 1 {
        file = substr(FILENAME, length("runtime/") + 1)
        text = ""
        depth = in_macro = in_comment = 0
    }
    in_macro || /^#/ { in_macro = /\\$/; next }
    {
        line = $0
        gsub(/"([^"\\]|\\.)*"/, "q", line)
        gsub(/\047([^\047\\]|\\.)\047/, "q", line)
        if (in_comment) {
            if (!match(line, /\*\//))
                next
            in_comment = 0
            line = substr(line, RSTART + 2)
        }
        gsub(/\/\*([^*]|\*+[^*\/])*\*+\//, "", line)
        if (match(line, /\/\*/)) {
            in_comment = 1
            line = substr(line, 1, RSTART - 1)
        }
        while (match(line, /[{};]/)) {
            before = substr(line, 1, RSTART - 1)
            mark = substr(line, RSTART, 1)
            line = substr(line, RSTART + 1)
            text = text " " before
            if (mark == "{" && depth++ == 0) {
                head = text
                gsub(/__attribute__\(\(([^()]|\([^()]*\))*\)\)/, "", head)
                is_function = head ~ /\) *$/
                sub(/\(.*/, "", head)
                sub(/.*[ *]/, "", head)
                body = text = ""
            } else if (depth == 0) {
                text = ""
            } else {
                body = body text mark
                text = ""
                if (mark == "}" && --depth == 0 && is_function) {
                    gsub(/[ \t]+/, " ", body)
                    print file ":" head "\t" body
                }
            }
        }
        text = text " " line
    }' $(find runtime -name '*.[ch]' | sort) >"$bodies"

# only CONCEPT WHERE PATTERNS FUNCTION...: of the functions whose FILE:NAME matches WHERE, those listed, and
# no others, have all PATTERNS, with " && " between them. A name that ends in "/" or ":" stands for all
# functions below.
only()
{
    local concept=$1 where=$2 pattern=$3 found name allowed is_allowed
    shift 3
    found=$(where=$where patterns=$pattern awk -F '\t' '
        BEGIN {
            where = ENVIRON["where"]
            count = split(ENVIRON["patterns"], wanted, / && /)
        }
        $1 ~ where {
            for (i = 1; i <= count && $2 ~ wanted[i]; i++)
                ;
            if (i > count)
                print $1
        }' "$bodies")
    for name in $found; do
        is_allowed=
        for allowed in "$@"; do
            [ "$name" != "$allowed" ] && { [[ $allowed != *[:/] ]] || [[ $name != "$allowed"* ]]; } ||
                is_allowed=1
        done
        [ -n "$is_allowed" ] || {
            echo "$name: has ${pattern}, of the definition of $concept"
            failed=1
        }
    done
    for allowed in "$@"; do
        grep -qF "$allowed" <<<"$found" || {
            echo "$allowed: has no ${pattern}; $concept is defined elsewhere, and the check looks at nothing"
            failed=1
        }
    done
}

# inside CONCEPT PATTERN CALL FUNCTION...: outside the functions listed, a statement of the scheduler that has
# PATTERN has CALL, too.
inside()
{
    local found
    found=$(pattern=$2 call=$3 but=" ${*:4} " awk -F '\t' '
        BEGIN {
            pattern = ENVIRON["pattern"]
            call = ENVIRON["call"]
            but = ENVIRON["but"]
        }
        $1 ~ /^sched\// && index(but, " " $1 " ") == 0 {
            count = split($2, statements, /[;{}]/)
            for (i = 1; i <= count; i++) {
                if (statements[i] ~ pattern)
                    print $1, (statements[i] ~ call) ": " statements[i]
            }
        }' "$bodies")
    if grep ' 0: ' <<<"$found"; then
        echo "... names $2 without $3: $1 has one definition"
        failed=1
    fi
    [ -n "$found" ] || { echo "no function names $2: the check for $1 looks at nothing"; failed=1; }
}

decide='^sched/(model|decide|execute|drive)/'

# Earliest finish: nothing else adds to the later of two times; what is in flight, and what a theft or a
# second run costs, go into it.
only 'earliest finish' '^sched/' 'fmax\([^;]*\) \+ ' sched/model/cost.h:fl_cost_finish
inside 'earliest finish' 'fl_cost_in_flight(_mean)?\(' 'fl_(cost_finish|theft_pays)\('
inside 'earliest finish' 'FL_RESTART_NS' 'fl_cost_finish\('
only 'earliest finish' '^sched/(model|decide)/' '(flight|flights\[[a-z]*\])(\.|->)expected' \
    sched/model/cost.c:fl_cost_in_flight sched/decide/depth.c:
only 'earliest finish' '^sched/' 'timelines\[[a-z]*\]\.rest|timeline->rest' sched/model/timeline.c:

# Hold-off (steal throttling): a theft is weighed by its cost in one function, which compares two ends.
only 'hold-off' "$decide" 'fl_cost_finish\([^;]*\) *<' sched/decide/steal.h:fl_theft_pays \
    sched/decide/eft.c:find_spare sched/decide/placement.c:fl_worker_is_outdone
inside 'hold-off' 'FL_THEFT_NS|[^.>_a-z]theft_ns\(' 'fl_theft_pays\(' sched/decide/steal.c:theft_ns \
    sched/worker/init.c:fl_worker_init
only 'hold-off' '^sched/' 'fl_theft_pays\(' sched/decide/steal.c: sched/decide/divisible.c:fl_piece_pays

# Chunk size.
only 'chunk size' '^sched/' 'FL_CHUNK_GROWTH' sched/decide/chunk.c:fl_chunk_grains
only 'chunk size' '^sched/' 'fl_chunk_grains\(' sched/decide/chunk.c:fl_chunk_size \
    sched/decide/divisible.c:fl_piece_size
only 'chunk size' '^sched/' 'FL_(CHUNK_[A-Z_]*DISPATCHES|CHUNK_[A-Z]*_FIXED|CHUNKS?_OF_REST|PIECE_DISPATCHES)' \
    sched/decide/chunk.c: sched/decide/divisible.c: sched/model/predict.c:fl_batch_learn
only 'chunk size' '^sched/' 'FL_(PIECE_)?PROBES_OF_REST' sched/decide/chunk.c:fl_chunk_size \
    sched/decide/divisible.c:fl_piece_size

# Missing bytes, and the time of their copies.
only 'missing bytes' '^(sched|graph)/' \
    'fl_tile_is_at\(|fl_replica_(is_valid|is_good|at)\(' sched/model/missing.c: graph/job/job_trace.c:count_resident
only 'missing bytes' '^sched/' 'fl_(coalesced|rect|tile_part)_bytes\(' sched/model/missing.c:lacking \
    sched/model/missing.c:fl_missing_haul
only 'missing bytes' '' 'fl_tile_is_at\([^;]*\?' sched/model/missing.c:lacking
only 'transfer time' '' 'fl_bandwidths_get\(' memory/alloc/node.c:fl_places_rate device/links.c:
only 'transfer time' '^sched/' 'fl_places_rate\(|FL_PEER_RATE' sched/model/transfer.c:fl_transfer_link_ns
only 'transfer time' '^sched/' 'FL_HOST_COPY_RATE' sched/model/transfer.h:fl_transfer_host_ns
only 'transfer time' '^sched/' 'FL_(SHARED_L[0-9]|APART|OTHER_NODE)_NS' sched/model/transfer.c:fl_transfer_ns

# "Is asynchronous".
only '"is asynchronous"' '' '(->|\.)is_synchronous = ' backend/host/host.c:
only '"is asynchronous"' '' '(backend|ops)(->|\.)lane [!=]= NULL|(->|\.)launch [!=]= NULL' \
    sched/worker/device.h:fl_device_computes sched/execute/graph_launch.c:

# "Who else could run it": nothing else looks for an able device that is not the own one.
able='fl_devices_have\(|fl_codelet_runs_on\(|fl_worker_can_run\(|fl_hint_is_for\(|fl_piece_may_run\(|fl_other_can\('
only '"who else could run it"' '^sched/' 'fl_other_is\(' sched/worker/others.h: sched/worker/others.c:
only '"who else could run it"' '^sched/' 'fl_other_can\(' sched/worker/others.c:fl_other_for \
    sched/decide/slow.c:can_take
only '"who else could run it"' '^sched/' '(->|\.)is_out[ ,;)]' sched/worker/others.h:fl_share_is_left \
    sched/worker/others.c:fl_others_can_batch sched/execute/
only '"who else could run it"' '^sched/' "< (w->)?sched->count && $able && fl_other_(is|can)\\(" \
    sched/worker/others.c:
only '"who else could run it"' '^sched/' "< (w->)?sched->count && $able && (other|[a-z]) [!=]= w(->index)?[ ;)]" \
    sched/decide/chunk.c:filling

[ $failed -eq 0 ] && echo "once: $(wc -l <"$bodies") functions, six concepts with one definition each"
exit $failed
