/* SPDX-License-Identifier: Apache-2.0 */
/* Handles that a graph uses in several tilings: a parent and its partitions, one tiling at a time.
 *
 * Phases. Each call of filch_graph_partition or filch_graph_unpartition begins a new phase. Tasks
 * of a phase use a single tiling. The handle's current contents lie in the replicas of the phase's
 * tiling; contents not used in the phase lie in the replicas of earlier tilings. Tilings share the
 * buffer on the host, and contents move between tilings through the buffer. Filch therefore adds
 * two tasks to a tile. Both are gates, apart from their copies and notes:
 * - Gate behind the tile's users in a phase: writes the tile back, if a task wrote to the tile
 *   since the last write-back. Made when a second tiling first needs elements of the tile. Every
 *   tile needing the elements waits for the gate.
 * - Gate before the tile's first users in a later phase: waits for the gates behind overlapping
 *   tiles of different tilings, used since the tile's own last use. If a task wrote to an
 *   overlapping tile, the gate makes the host's copy the only valid copy: device replicas are old.
 *
 * Thus a tile waits only for the users of overlapping tiles, and unchanged contents do not move.
 *
 * Correctness of the buffer. Let y and x be tiles of two tilings with elements in common. At the
 * first use of y after a write to x, x is written back. The host's copy of x stays valid, since no
 * task writes to x before the phase of x comes again. Hence no copy of x overwrites data of y: not
 * for eviction, not for a second write-back, and not for a reader elsewhere. At the next use of x,
 * y is written back if a task wrote to y. Elements of x not covered by a written tile y are in the
 * buffer since the first use of such a tile.
 *
 * The gates are known when tasks are added. A run begins and ends with the contents in the parent:
 * sealing or closing the graph gives partitioned handles back. To the order of jobs (job.h), a
 * graph that partitions a handle writes the whole handle. */
#ifndef FL_GRAPH_BUILD_SPLIT_H
#define FL_GRAPH_BUILD_SPLIT_H

#include "graph/build/graph.h"

/* State of a tile during inference. */
typedef struct fl_part_tile {
    uint32_t used, written; /* last phases with a use or a write by tasks; 0: never */
    bool is_dirty;          /* written since the last write-back */
    bool is_parked;         /* the tile state's writer is the gate behind the users */
} fl_part_tile;

/* A tiling used by the graph. */
typedef struct fl_split_part {
    struct fl_split_part *next; /* next part of the split */
    struct fl_split *split;
    uint32_t slot;
    fl_part_tile *tiles; /* null once a closed graph is sealed */
} fl_split_part;

typedef struct fl_split {
    struct fl_split *next;
    fl_split_part *parts; /* parts; the parent's part is the last */
    fl_split_part *parent;
    fl_split_part *current;
    /* Number of the phase, from 1. The parent's tiles count as written in phase 1. */
    uint32_t phase;
} fl_split;

#endif
