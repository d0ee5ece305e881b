/* SPDX-License-Identifier: Apache-2.0 */
/* Readers of a block of tiles, during inference.
 *
 * Ten thousand readers of ten thousand tiles are as many edges as their product if every reader
 * waits for the writer of every tile, and every later writer for every reader. Readers of a large
 * block are therefore listed once, at the block, and not at each of its tiles:
 * - The first reader waits for the writer of every tile. The second reader adds a gate behind these
 *   writers, the entry. The second and every later reader wait for the entry alone.
 * - The first task with a stronger access to one of the tiles ends the list. A gate behind every
 *   reader, the exit, becomes a reader of each tile; a single reader needs no gate.
 * The edges are then as many as the tiles and the readers together. No task waits for a task that
 * it would not wait for without the gates.
 *
 * While a block is listed, no task has written a tile of the block. */
#ifndef FL_GRAPH_BUILD_BLOCK_READERS_H
#define FL_GRAPH_BUILD_BLOCK_READERS_H

#include "graph/build/graph.h"

typedef struct fl_block_readers {
    struct fl_block_readers *next; /* next of the slot */
    fl_rect tiles;
    fl_reader *readers;
    uint32_t reader_count;
    bool has_entry; /* entry is known; a null task: nothing was written before */
    fl_pred entry;
} fl_block_readers;

/* Returns the list of readers of exactly the tiles; null: the block is not listed. */
fl_block_readers *fl_block_readers_find(const fl_slot *slot, fl_rect tiles);
/* Call before fl_groups_enter and fl_infer_gather. Ends the lists that a task ends by its accesses,
 * and makes lists, or their entries, for the blocks that the task reads. After FILCH_OUT_OF_MEMORY
 * some lists may have ended; the graph is otherwise unchanged. */
filch_status fl_block_readers_enter(struct filch_graph *graph, const fl_access_list *list);
/* Ends every list of a slot. May return FILCH_OUT_OF_MEMORY. */
filch_status fl_block_readers_end(struct filch_graph *graph, fl_slot *slot);

#endif
