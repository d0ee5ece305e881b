/* SPDX-License-Identifier: Apache-2.0 */
/* Handles that a graph uses in several tilings: a parent and its partitions, one of them at a time.
 *
 * Phases. filch_graph_partition and filch_graph_unpartition begin a new one each, in which tasks
 * use one of the tilings; the handle's contents are in the replicas of that one, and of what it did
 * not use in those of others. All share the buffer on the host, and contents go from one to the
 * other there. So a tile has two tasks of filch's own (both gates, but for what they bring and
 * note):
 * - behind its users in a phase, one that brings it home, where something wrote to it since that
 *   was last done. Made when another tiling first needs elements of it; all that do wait for it.
 * - before its first users in a later phase, one that waits for those of the tiles of other tilings
 *   that have been used since the tile itself was, and have elements in common with it. Where some
 *   was written, it makes the copy on the host the only good one: what devices have is old.
 * So a tile waits for the users of what it overlaps, and for nobody else; and where nothing has
 * changed, nothing moves.
 *
 * Why the buffer is always right where it is read. Let y and x be tiles of two tilings with
 * elements in common. When y is first used after x was written, x is brought home, and stays valid
 * there, as nobody writes to x before it is its turn again. So nothing of x is copied over what is
 * written to y: to make room, to be brought home again, or for others. When x is used next, y is
 * home if it was written, and what no such y covers is in the buffer from when the first of them
 * was used.
 *
 * All of it is known when tasks are added. A run begins and ends with the contents in the parent:
 * sealing or closing the graph gives back what is partitioned. A graph that partitions a handle is
 * one that writes all of it, as it is to other jobs (job.h). */
#ifndef FL_GRAPH_BUILD_SPLIT_H
#define FL_GRAPH_BUILD_SPLIT_H

#include "graph/build/graph.h"

/* One tile. */
typedef struct fl_part_tile {
    uint32_t used, written; /* the last phases in which tasks did; 0: never */
    bool is_dirty;          /* written since it was last brought home */
    bool is_parked;         /* its state's writer is the task behind its users */
} fl_part_tile;

/* One tiling as the graph uses it. */
typedef struct fl_split_part {
    struct fl_split_part *next; /* of the same split */
    struct fl_split *split;
    uint32_t slot;
    fl_part_tile *tiles; /* null once a closed graph is sealed */
} fl_split_part;

typedef struct fl_split {
    struct fl_split *next;
    fl_split_part *parts; /* that of the parent is the last */
    fl_split_part *parent;
    fl_split_part *current;
    uint32_t phase; /* from 1; in that, the parent's tiles count as written */
} fl_split;

#endif
