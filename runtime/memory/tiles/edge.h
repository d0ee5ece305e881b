/* SPDX-License-Identifier: Apache-2.0 */
/* Edges: parts of tiles that a node lacks, for items with halos.
 *
 * The elements of an edge lie at their place in the tile's memory, so that an item sees its tile
 * and the halo as one view. The tile stays invalid. An edge belongs to the items between their
 * fetch and their release. Meanwhile nothing is copied to the edge, because items read there. A
 * second item shares an edge that has its elements, and otherwise waits or uses private memory. An
 * item that needs the tile as a whole brings the elements beside the edge (fl_tile_complete).
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
    const void *by;    /* a fetch in progress; null: none */
    uint32_t fetching; /* uses by the item of that fetch */
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
/* Makes the item being fetched a user of the edge with the part, and makes the edge if missing. by:
 * the fetch; now: its number, which does not fall from fetch to fetch of the node. The caller then
 * fills an edge that is not filled. FILCH_NOT_READY, with *error unset: other items use the edge,
 * which lacks the part. FILCH_OUT_OF_MEMORY. */
filch_status fl_edge_join(const fl_memory *memory, const struct filch_data *data,
                          fl_replicas *replicas, uint32_t tile, uint32_t place,
                          const filch_view *part, const void *by, uint64_t now, fl_edge **found,
                          filch_error *error);
/* Notes a copy to the edge. */
void fl_edge_note(fl_edge *edge, fl_marker marker);
/* Ends a fetch that has used edges of the first `count` tiles: the item is like other users now. */
void fl_edges_fetched(const fl_replicas *replicas, fl_rect tiles, uint32_t count, uint32_t place,
                      const void *by);
/* Ends the uses of edges at the first `count` tiles by an item fetched with the given number. A use
 * is over where the tile has no edge as old in the node. The last user's end frees an edge. */
void fl_edges_leave(const fl_memory *memory, fl_replicas *replicas, fl_rect tiles, uint32_t count,
                    uint32_t place, uint64_t fetched);
/* Ends the edges of a tile in every node: a writer of the tile has been put on a device. */
void fl_edge_end(const fl_memory *memory, fl_replicas *replicas, uint32_t tile);
/* Ends the edge of a tile in a node: the node has the tile now. */
void fl_edge_end_at(const fl_memory *memory, fl_replicas *replicas, uint32_t tile, uint32_t place);

#endif
