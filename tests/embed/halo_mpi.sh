#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# halo_mpi.sh PROGRAM: the example that exchanges halos by requests of MPI inside a graph, on one rank to
# three. The program compares its bits with a plain loop's. Each rank has one worker; by the trace no
# message held it: requests were pending beside each other, and beside work of the same worker.
set -euo pipefail
program=$1
command -v mpirun >/dev/null || { echo "mpirun is not installed: skipped"; exit 77; }
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# Containers may forbid that one process reads another's memory. A rank that waits leaves its core to the
# others.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_mpi_yield_when_idle=1
export OMPI_MCA_btl_vader_single_copy_mechanism=none FILCH_TRACE=1

# spans TRACE: first the most tasks that were pending at a time, then how many functions of tasks ran
# while others were pending, and how many tasks were pending in all.
spans()
{
    awk -F '"ts":' '
        function time(text) { sub(/,.*/, "", text); return text + 0 }
        /"cat":"pending"/ { at[++n] = time($2); kind[n] = /"ph":"b"/ ? 2 : 0 }
        /"cat":"tile","name":"smooth"/ { at[++n] = time($2); kind[n] = 1 }
        END {
            for (i = 1; i <= n; i++)
                printf "%.3f %d\n", at[i], kind[i]
        }' "$1" | sort -n |
        awk '$2 == 2 { begun++; if (++now > most) most = now }
            $2 == 1 { beside += now > 0 }
            $2 == 0 { now-- }
            END { print most + 0, beside + 0, begun + 0 }'
}

for ranks in 1 2 3; do
    echo "$ranks ranks"
    mpirun -np "$ranks" --oversubscribe --bind-to none "$program" "$scratch/$ranks" |
        tee "$scratch/out"
    grep -q "^$ranks ranks, 40 steps: as by a plain loop\$" "$scratch/out"
    for ((rank = 0; rank < ranks; rank++)); do
        read -r most beside begun <<<"$(spans "$scratch/$ranks.$rank")"
        echo "rank $rank: $begun pending, $most at a time; $beside tasks ran meanwhile"
        neighbours=$(((rank > 0) + (rank < ranks - 1)))
        # In each step a message to each neighbour and one from it. At first two steps' messages are received
        # and one step's are sent before the first test of requests, and of the first step's six tiles those
        # run that need no message.
        [ "$begun" -eq $((40 * 2 * neighbours)) ]
        [ "$most" -ge $((3 * neighbours)) ]
        [ "$neighbours" -eq 0 ] || [ "$beside" -ge $((6 - neighbours)) ]
    done
done
