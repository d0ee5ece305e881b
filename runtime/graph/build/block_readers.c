/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/build/block_readers.h"

/* Tiles of the smallest block with a list. Readers of a smaller block are listed at its tiles. */
#define LEAST_TILES 16u
/* Blocks of a handle with a list at a time: every writing access looks at each. */
#define MOST_BLOCKS 4u

fl_block_readers *fl_block_readers_find(const fl_slot *slot, fl_rect tiles)
{
    fl_block_readers *block = slot->block_readers;
    while (block != NULL && !fl_rect_is_same(block->tiles, tiles)) {
        block = block->next;
    }
    return block;
}

/* --- End of a list --- */

static bool take_readers(filch_graph *graph, uint32_t count, fl_reader **readers)
{
    for (uint32_t i = 0; i < count; ++i) {
        fl_reader *reader = fl_arena_alloc(&graph->readers, sizeof *reader);
        if (reader == NULL) {
            return false;
        }
        reader->next = *readers;
        *readers = reader;
    }
    return true;
}

static void free_readers(filch_graph *graph, fl_reader *readers)
{
    while (readers != NULL) {
        fl_reader *next = readers->next;
        fl_arena_free(&graph->readers, readers, sizeof *readers);
        readers = next;
    }
}

/* Adds a gate behind graph->preds. A single task needs no gate. False: no memory. */
static bool add_gate(filch_graph *graph, fl_pred *gate)
{
    if (graph->pred_count <= 1) {
        *gate = graph->pred_count == 1 ? graph->preds[0] : (fl_pred){0};
        return true;
    }
    fl_task *task = fl_own_add(graph, NULL, NULL, NULL);
    if (task == NULL) {
        return false;
    }
    *gate = (fl_pred){task, fl_word_epoch(fl_load_relaxed(&task->word))}; /* not yet shared */
    fl_own_let_run(graph, task);
    return true;
}

/* Finds the task that stands for every reader of the list; null: every reader has retired. */
static bool find_exit(filch_graph *graph, const fl_block_readers *block, fl_pred *exit)
{
    bool fits = true;
    graph->pred_count = 0;
    for (const fl_reader *r = block->readers; r != NULL && fits; r = r->next) {
        fits = fl_infer_note(graph, r->task, r->epoch);
    }
    return fits && add_gate(graph, exit);
}

/* Ends the list at *at. */
static filch_status end_list(filch_graph *graph, fl_slot *slot, fl_block_readers **at)
{
    fl_block_readers *block = *at;
    uint32_t count = block->readers != NULL ? fl_rect_count(block->tiles) : 0;
    fl_reader *readers = NULL;
    fl_pred exit = {0};
    if (!take_readers(graph, count, &readers) || !find_exit(graph, block, &exit)) {
        free_readers(graph, readers);
        return FILCH_OUT_OF_MEMORY;
    }
    for (uint32_t i = 0; i < count; ++i) {
        fl_tile_state *state = &slot->tiles[fl_rect_at(block->tiles, i)];
        fl_reader *reader = readers;
        readers = reader->next;
        reader->task = exit.task;
        reader->epoch = exit.epoch;
        fl_infer_add_reader(graph, &state->readers, &state->reader_count, reader);
    }
    free_readers(graph, block->readers);
    *at = block->next;
    --slot->block_count;
    fl_arena_free(&graph->readers, block, sizeof *block);
    return FILCH_OK;
}

filch_status fl_block_readers_end(filch_graph *graph, fl_slot *slot)
{
    filch_status status = FILCH_OK;
    while (slot->block_readers != NULL && status == FILCH_OK) {
        status = end_list(graph, slot, &slot->block_readers);
    }
    return status;
}

/* Ends the lists of blocks that have one of the tiles. */
static filch_status end_meeting(filch_graph *graph, fl_slot *slot, fl_rect tiles)
{
    const filch_data *data = slot->use.data;
    fl_block_readers **at = &slot->block_readers;
    while (*at != NULL) {
        if (!fl_tiles_meet(fl_rect_tiles(data, (*at)->tiles), fl_rect_tiles(data, tiles))) {
            at = &(*at)->next;
        } else if (end_list(graph, slot, at) != FILCH_OK) {
            return FILCH_OUT_OF_MEMORY;
        }
    }
    return FILCH_OK;
}

/* --- Readers --- */

/* Adds a list without readers. */
static filch_status add_list(filch_graph *graph, fl_slot *slot, fl_rect tiles)
{
    fl_block_readers *block = fl_arena_alloc(&graph->readers, sizeof *block);
    if (block == NULL) {
        return FILCH_OUT_OF_MEMORY;
    }
    *block = (fl_block_readers){.next = slot->block_readers, .tiles = tiles};
    slot->block_readers = block;
    ++slot->block_count;
    return FILCH_OK;
}

/* Adds the entry of a list with a reader. */
static filch_status add_entry(filch_graph *graph, const fl_slot *slot, fl_block_readers *block)
{
    graph->pred_count = 0;
    if (!fl_infer_note_writers(graph, slot, block->tiles) || !add_gate(graph, &block->entry)) {
        return FILCH_OUT_OF_MEMORY;
    }
    block->has_entry = true;
    return FILCH_OK;
}

static filch_status enter_reader(filch_graph *graph, fl_slot *slot, fl_rect tiles)
{
    fl_block_readers *block = fl_block_readers_find(slot, tiles);
    if (block != NULL) {
        bool needs_entry = block->readers != NULL && !block->has_entry;
        return needs_entry ? add_entry(graph, slot, block) : FILCH_OK;
    }
    /* The tiles of a handle used in several tilings have users that only the tiles know. */
    bool has_list = fl_rect_count(tiles) >= LEAST_TILES && slot->part == NULL &&
                    slot->block_count < MOST_BLOCKS;
    return has_list ? add_list(graph, slot, tiles) : FILCH_OK;
}

filch_status fl_block_readers_enter(filch_graph *graph, const fl_access_list *list)
{
    filch_status status = FILCH_OK;
    for (uint32_t i = 0; i < list->count && status == FILCH_OK; ++i) {
        fl_task_access access = list->at[i];
        if (access.mode == FILCH_SCRATCH) {
            continue;
        }
        fl_slot *slot = graph->slots[access.slot];
        if (access.mode != FILCH_READ) {
            status = slot->block_readers != NULL ? end_meeting(graph, slot, fl_list_tiles(list, i))
                                                 : FILCH_OK;
        } else if (FL_UNLIKELY(access.is_block)) {
            status = enter_reader(graph, slot, list->blocks[access.tile].tiles);
        }
    }
    graph->pred_count = 0;
    return status;
}
