/* SPDX-License-Identifier: Apache-2.0 */
/* Final accesses: those of a closed graph's last writers. Their tiles go back to the caller's
 * buffer. A task may be the last writer of some tiles of a block, and not of others. A later writer
 * of the others may run while a copy of the block reads them; a copy therefore takes only the tiles
 * that the task is the last to write. */
#include "graph/build/graph.h"

/* Tiles between the prefetch of a writer, of its accesses, and their use: tiles are in the order of
 * columns, their writers in the order of the program. */
#define TILES_AHEAD 8u

static void expect_writers(const fl_slot *slot, uint32_t tile)
{
    const fl_task *later = slot->tile_count - tile > 2 * TILES_AHEAD
                               ? slot->tiles[tile + 2 * TILES_AHEAD].writer
                               : NULL;
    const fl_task *next =
        slot->tile_count - tile > TILES_AHEAD ? slot->tiles[tile + TILES_AHEAD].writer : NULL;
    if (later != NULL) {
        __builtin_prefetch(&later->access_count);
        __builtin_prefetch(&later->accesses);
    }
    if (next != NULL) {
        __builtin_prefetch(next->accesses, 1);
    }
}

/* Tells whether an access writes, and names a tile of the slot. */
static bool writes(const fl_task *task, uint32_t access, size_t slot, uint32_t tile)
{
    const fl_task_access *at = &task->accesses[access];
    return at->mode != FILCH_SCRATCH && (at->mode & FILCH_WRITE) != 0 && at->slot == slot &&
           fl_task_names(task, access, tile);
}

/* Tells whether some task writes a block of several tiles of the slot. */
static bool has_written_block(const filch_graph *graph, size_t slot)
{
    const fl_slot *at = graph->slots[slot];
    for (uint32_t tile = 0; tile < at->tile_count; ++tile) {
        const fl_task *writer = at->tiles[tile].writer;
        for (uint32_t a = 0; writer != NULL && writer->has_blocks && a < writer->access_count;
             ++a) {
            if (writer->accesses[a].is_block && writes(writer, a, slot, tile)) {
                return true;
            }
        }
    }
    return false;
}

bool fl_final_reserve(filch_graph *graph)
{
    const fl_memory *memory = &graph->object.core->memory;
    for (size_t i = 0; graph->has_blocks && i < graph->slot_count; ++i) {
        fl_slot *slot = graph->slots[i];
        if (slot->last_writers == NULL && has_written_block(graph, i)) {
            slot->last_writers = fl_alloc(memory, slot->tile_count * sizeof(uint32_t));
            if (slot->last_writers == NULL) {
                return false;
            }
        }
    }
    return true;
}

void fl_final_mark(filch_graph *graph)
{
    for (size_t i = 0; i < graph->slot_count; ++i) {
        const fl_slot *slot = graph->slots[i];
        for (uint32_t tile = 0; tile < slot->tile_count; ++tile) {
            fl_task *writer = slot->tiles[tile].writer;
            expect_writers(slot, tile);
            /* Tasks that commute write the tile later. */
            bool is_last = fl_tile_group(&slot->tiles[tile]) != FL_GROUP_COMMUTES;
            for (uint32_t a = 0; is_last && writer != NULL && a < writer->access_count; ++a) {
                fl_task_access *access = &writer->accesses[a];
                if (access->mode != FILCH_SCRATCH && access->slot == i &&
                    fl_task_names(writer, a, tile)) {
                    access->is_final = 1;
                }
            }
            if (FL_UNLIKELY(slot->last_writers != NULL)) {
                slot->last_writers[tile] = is_last && writer != NULL ? writer->order : UINT32_MAX;
            }
        }
    }
}

void fl_final_drop(filch_graph *graph, fl_slot *slot)
{
    fl_free(&graph->object.core->memory, slot->last_writers,
            slot->tile_count * sizeof *slot->last_writers);
    slot->last_writers = NULL;
}
