/* SPDX-License-Identifier: Apache-2.0 */
/* Edges: parts of tiles that a node lacks, for items with halos.
 *
 * The elements of an edge lie at their place in the tile's memory, so that an item sees its tile
 * and the halo as one view. The tile stays invalid. An edge belongs to the items between their
 * fetch and their release. Meanwhile nothing is copied to the tile's memory in the node: not the
 * tile, and no larger part of it, because items read there. A second item shares an edge that has
 * its elements, and otherwise waits or uses private memory.
 *
 * The order of a graph's tasks keeps writers of the tile apart from the items. A writer may be put
 * on a device behind items in flight, and further readers behind the writer. The edges of a tile
 * therefore end when a writer has been put on a device: copies to the memory follow the writer,
 * which follows the items. */
#ifndef FL_MEMORY_TILES_EDGE_H
#define FL_MEMORY_TILES_EDGE_H

#include "memory/tiles/tiles.h"

#define FL_EDGE_COPIES 4u

typedef struct fl_edge {
    struct fl_edge *next;
    uint32_t tile, place;
    uint64_t born;     /* least number of a fetch that uses the edge */
    uint32_t users;    /* uses by items between fetch and release */
    uint32_t fetching; /* of these, uses by an item being fetched */
    filch_view part;   /* the elements, as on the host */
    fl_marker copies[FL_EDGE_COPIES];
    uint32_t copy_count; /* beyond FL_EDGE_COPIES: further copies are unknown */
    bool is_filled;      /* copies of all elements have been started */
} fl_edge;

/* All functions require the handle's lock. */

/* Returns the edge of a tile in a node, or null. */
fl_edge *fl_edge_find(const fl_replicas *replicas, uint32_t tile, uint32_t place);
/* Tells whether an item may use a part of a tile that the node lacks. */
bool fl_edge_admits(const fl_replicas *replicas, uint32_t tile, uint32_t place,
                    const filch_view *part);
/* Makes the item being fetched a user of the edge with the part, and makes the edge if missing.
 * now: the number of the fetch; later fetches of the node have greater numbers. The caller then
 * fills an edge that is not filled. FILCH_NOT_READY, with *error unset: other items use the edge,
 * which lacks the part. FILCH_OUT_OF_MEMORY. */
filch_status fl_edge_join(const fl_memory *memory, const struct filch_data *data,
                          fl_replicas *replicas, uint32_t tile, uint32_t place,
                          const filch_view *part, uint64_t now, fl_edge **found,
                          filch_error *error);
/* Notes a copy to the edge. */
void fl_edge_note(fl_edge *edge, fl_marker marker);
/* Ends a fetch: the item is like other users now. */
void fl_edge_fetched(const fl_replicas *replicas, uint32_t tile, uint32_t place);
/* Ends the use of an edge by an item fetched with the given number, if the tile has an edge as old
 * in the node. The last user's end frees the edge. */
void fl_edge_leave(const fl_memory *memory, fl_replicas *replicas, uint32_t tile, uint32_t place,
                   uint64_t fetched);
/* Ends the edges of a tile in every node: a writer of the tile has been put on a device. */
void fl_edge_end(const fl_memory *memory, fl_replicas *replicas, uint32_t tile);

#endif
