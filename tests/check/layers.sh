#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The include graph of runtime/ points downwards, also between the rooms of the scheduler; upper layers
# name no backend; no type has the name of another. kernels/vendor stands on base and on the driver;
# all else of kernels/ includes public headers and its own.
set -euo pipefail

folders=$(ls -d runtime include kernels 2>/dev/null || true)
# shellcheck disable=SC2086 # no folder name has blanks
files=$(find $folders -name '*.[ch]' | sort)
# shellcheck disable=SC2086 # no file name has blanks
awk '
function bad(text) { print FILENAME ":" FNR ": " text; failed = 1 }

# Layer of a path below runtime/; files directly in runtime/ own every part.
function layer(path,    parts) {
    if (path !~ /\//)
        return "runtime"
    split(path, parts, "/")
    return parts[1]
}

BEGIN {
    count = split("base sync observe backend device module memory graph sched runtime", order, " ")
    for (i = 1; i <= count; i++)
        rank[order[i]] = i
    count = split("worker account model ready decide execute drive", order, " ")
    for (i = 1; i <= count; i++)
        room_rank[order[i]] = i
}

# Room of a path below runtime/sched/.
function room(path,    parts)
{
    split(path, parts, "/")
    return parts[2]
}

FNR == 1 {
    own = FILENAME
    in_runtime = sub(/^runtime\//, "", own)
    mine = in_runtime ? layer(own) : FILENAME ~ /^kernels\// ? "kernels" : "public"
    if (in_runtime && !(mine in rank))
        bad("folder runtime/" mine " is not a layer")
}

(mine == "sched" || mine == "graph") && /FILCH_BACKEND_/ {
    bad(mine " names a backend")
}

# Names of the driver and of its compiler: own declarations make them possible anywhere.
in_runtime && own !~ /^(backend\/cuda|module)\// &&
    /(^|[^A-Za-z0-9_])(nvrtc[A-Z]|cu(Init|Get|Ctx|Mem|Stream|Event|Module|Func|Launch|Graph|Device|Driver|Multicast)[A-Z(]|CU(context|stream|event|module|function|device|result)|CUDA_ERROR_)/ {
    bad("only backend/cuda and module may name what is of CUDA")
}

/^[ \t]*#[ \t]*include/ {
    system_header = /</
    target = $0
    sub(/^[^"<]*["<]/, "", target)
    sub(/[">].*$/, "", target)

    # filch/cuda.h and backend/cuda/cuda.h are none of the toolkit.
    if (target !~ /^(filch|backend\/cuda)\/cuda\.h$/ &&
        target ~ /(^|\/)(cuda|nvrtc|cuda_runtime|cuda_runtime_api|cudaTypedefs)\.h$/ &&
        FILENAME !~ /^runtime\/(backend\/cuda|module)\// &&
        (system_header || system("test -f runtime/" target) != 0))
        bad("only backend/cuda and module may include " target)
    if (system_header)
        next
    if (target ~ /\.\./)
        bad("include " target " relative to runtime/ or include/")
    if (target ~ /^filch\//) {
        if (system("test -f include/" target) != 0)
            bad("no such public header: " target)
        next
    }
    if (target ~ /^kernels\// && mine != "public")
        next
    if (FILENAME ~ /^kernels\/vendor\// && target ~ /^(base|backend\/cuda\/driver)\//)
        next
    if (mine == "kernels") {
        bad("kernels include public headers and their own, not " target)
        next
    }
    if (mine == "public") {
        bad("a public header includes the internal " target)
        next
    }
    if (system("test -f runtime/" target) != 0) {
        bad("no such internal header: " target)
        next
    }
    if (rank[layer(target)] > rank[mine])
        bad(mine " includes " target ", which lies above it")
    if (mine == "sched" && target ~ /^sched\//) {
        if (!(room(own) in room_rank))
            bad("folder runtime/sched/" room(own) " is not a room")
        if (room_rank[room(target)] > room_rank[room(own)])
            bad("room " room(own) " includes " target ", which lies above it")
    }
    if (target ~ /^backend\/[^\/]+\//) {
        split(target, parts, "/")
        folder = parts[1] "/" parts[2]
        if (FILENAME != "runtime/backend/backend.c" && index(own, folder "/") != 1)
            bad("only backend/backend.c and the backend itself may include " target)
    }
}

/^} [a-z][a-z_0-9]*;$/ && in_runtime && opens_type {
    name = substr($2, 1, length($2) - 1)
    if (name in types)
        bad("type " name " is also one of " types[name])
    types[name] = own
}
/^typedef (struct|union|enum)/ { opens_type = 1 }
/^}/ { opens_type = 0 }

END {
    exit failed
}
' $files
echo "layers: $(wc -w <<<"$files") files in order"
