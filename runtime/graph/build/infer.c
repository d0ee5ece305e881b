/* SPDX-License-Identifier: Apache-2.0 */
/* Dependencies inferred from accesses. A reader waits for the last writer of its tile. A writer
 * waits for the readers since the last write, or for the last writer if no task has read. Tasks
 * that commute on a tile, or reduce to the tile, need not wait for each other, like readers
 * (group.c). */
#include <string.h>

#include "base/hash.h"
#include "graph/build/block_readers.h"
#include "graph/job/job.h"

#define FIRST_SLOTS 16u

/* Returns the entry of a handle, or the free entry where the handle would be. */
static fl_slot_entry *probe(fl_slot_entry *table, size_t capacity, const filch_data *data)
{
    size_t at = (size_t)fl_hash_mix((uint64_t)(uintptr_t)data) & (capacity - 1);
    while (table[at].data != data && table[at].data != NULL) {
        at = (at + 1) & (capacity - 1);
    }
    return &table[at];
}

static bool table_grow(filch_graph *graph)
{
    const fl_memory *memory = &graph->object.core->memory;
    size_t capacity = graph->table_capacity != 0 ? graph->table_capacity * 2 : 16;
    fl_slot_entry *table = fl_alloc_zeroed(memory, capacity * sizeof *table);
    if (table == NULL) {
        return false;
    }
    for (size_t i = 0; i < graph->slot_count; ++i) {
        const filch_data *data = graph->slots[i]->use.data;
        *probe(table, capacity, data) = (fl_slot_entry){data, (uint32_t)i};
    }
    fl_free(memory, graph->slot_table, graph->table_capacity * sizeof *table);
    graph->slot_table = table;
    graph->table_capacity = capacity;
    return true;
}

/* Notes the tiles used by a job of a closed graph. The tiles of an open graph are not known in
 * advance. */
static inline void note_tiles(const filch_graph *graph, fl_slot *slot, uint32_t mode,
                              fl_tiles tiles)
{
    /* Written tiles are used tiles, too. */
    const fl_tiles *noted = mode != FILCH_READ ? &slot->use.wrote : &slot->use.used;
    bool is_noted = noted->row0 <= tiles.row0 && tiles.row1 <= noted->row1 &&
                    noted->col0 <= tiles.col0 && tiles.col1 <= noted->col1;
    if (is_noted || graph->kind != FILCH_GRAPH_CLOSED) {
        return;
    }
    fl_tiles_grow(&slot->use.used, tiles);
    if (mode != FILCH_READ) {
        fl_tiles_grow(&slot->use.wrote, tiles);
        slot->use.writes = true; /* already set in an open graph */
    }
}

static inline void note_need(fl_slot *slot, uint32_t mode, uint32_t tile)
{
    if (slot->needs != NULL) {
        uint8_t *needs = &slot->needs[tile];
        *needs |= *needs == 0 && mode != FILCH_WRITE ? FL_NEEDED : 0;
        *needs |= mode != FILCH_READ ? FL_WRITTEN : 0;
    }
}

/* Prepares a slot for a handle without a home buffer. False: no memory. */
static bool slot_furnish(filch_graph *graph, filch_data *data, uint8_t **needs)
{
    const fl_core *core = graph->object.core;
    uint32_t tiles = fl_data_tile_count(data);
    if (data->has_home) {
        return true;
    }
    if (graph->kind == FILCH_GRAPH_CLOSED || fl_data_is_temporary(data)) {
        *needs = fl_alloc_zeroed(&core->memory, tiles);
        if (*needs == NULL) {
            return false;
        }
    }
    /* A runtime with a single memory node never locates tiles before a task runs: allocate the host
     * buffer now. */
    return core->places->count != 1 || fl_data_is_temporary(data) ||
           fl_data_need_host(data, NULL) == FILCH_OK;
}

static bool slots_grow(filch_graph *graph)
{
    size_t capacity = graph->slot_capacity != 0 ? graph->slot_capacity * 2 : FIRST_SLOTS;
    fl_slot **slots = fl_alloc(&graph->object.core->memory, (capacity + 1) * sizeof *slots);
    if (slots == NULL) {
        return false;
    }
    if (graph->slots != NULL) {
        memcpy(slots, graph->slots, graph->slot_count * sizeof *slots);
    }
    slots[capacity] = (fl_slot *)(void *)graph->slots;
    graph->slots = slots;
    graph->slot_capacity = capacity;
    /* Release: the copied slots are visible before workers look at the new array. */
    fl_store_release(&graph->seen_slots, slots);
    return true;
}

void fl_graph_free_slots(filch_graph *graph)
{
    while (graph->slots != NULL) {
        fl_slot **slots = graph->slots;
        graph->slots = (fl_slot **)(void *)slots[graph->slot_capacity];
        fl_free(&graph->object.core->memory, slots, (graph->slot_capacity + 1) * sizeof *slots);
        graph->slot_capacity /= 2;
    }
}

static filch_status slot_make(filch_graph *graph, filch_data *data)
{
    const fl_memory *memory = &graph->object.core->memory;
    if (graph->slot_count >= FL_MOST_SLOTS ||
        (graph->slot_count == graph->slot_capacity && !slots_grow(graph))) {
        return FILCH_OUT_OF_MEMORY;
    }
    if ((graph->slot_count + 1) * 2 > graph->table_capacity && !table_grow(graph)) {
        return FILCH_OUT_OF_MEMORY;
    }
    fl_slot *slot = fl_arena_alloc(&graph->arena, sizeof *slot);
    uint32_t tiles = fl_data_tile_count(data);
    fl_tile_state *states = fl_alloc_zeroed(memory, tiles * sizeof *states);
    filch_status status = FILCH_OUT_OF_MEMORY;
    uint8_t *needs = NULL;
    if (slot != NULL && states != NULL && slot_furnish(graph, data, &needs)) {
        *slot =
            (fl_slot){.use = {.data = data}, .tiles = states, .tile_count = tiles, .needs = needs};
        bool is_open = graph->kind == FILCH_GRAPH_OPEN;
        slot->admits = is_open ? 0 : FL_ADMITS_READ | FL_ADMITS_WRITE;
        status = FILCH_OK;
    }
    if (status != FILCH_OK) {
        fl_free(memory, states, tiles * sizeof *states);
        fl_free(memory, needs, tiles);
        fl_arena_free(&graph->arena, slot, sizeof *slot);
        return status;
    }
    fl_add_relaxed(&data->graphs, 1);
    graph->slots[graph->slot_count++] = slot;
    return FILCH_OK;
}

bool fl_graph_find_slot(const filch_graph *graph, const filch_data *data, uint32_t *index)
{
    if (graph->table_capacity == 0) {
        return false;
    }
    const fl_slot_entry *entry = probe(graph->slot_table, graph->table_capacity, data);
    *index = entry->slot;
    return entry->data != NULL;
}

void fl_graph_drop_slots(filch_graph *graph, size_t from)
{
    const fl_memory *memory = &graph->object.core->memory;
    while (graph->slot_count > from) {
        fl_slot *slot = graph->slots[--graph->slot_count];
        /* The entry belongs to the newest slot: no later slot's probe sequence passes it. */
        probe(graph->slot_table, graph->table_capacity, slot->use.data)->data = NULL;
        graph->last_data = NULL;
        fl_sub_relaxed(&slot->use.data->graphs, 1);
        fl_free(memory, slot->tiles, slot->tile_count * sizeof *slot->tiles);
        fl_free(memory, slot->needs, slot->tile_count);
        fl_final_drop(graph, slot);
        fl_arena_free(&graph->arena, slot, sizeof *slot);
    }
}

filch_status fl_graph_slot_find(filch_graph *graph, filch_data *data, uint32_t *index)
{
    if (!fl_graph_find_slot(graph, data, index)) {
        filch_status status = slot_make(graph, data);
        if (status != FILCH_OK) {
            return status;
        }
        *index = (uint32_t)graph->slot_count - 1;
        *probe(graph->slot_table, graph->table_capacity, data) = (fl_slot_entry){data, *index};
    }
    graph->last_data = data;
    graph->last_slot = *index;
    return FILCH_OK;
}

/* Number of latest predecessors compared for repetition. Beyond the limit, fl_edge_add drops
 * repeated edges. */
#define COMPARED 16

static inline bool note(filch_graph *graph, fl_task *task, uint32_t epoch)
{
    size_t count = graph->pred_count;
    for (size_t i = count > COMPARED ? count - COMPARED : 0; i < count; ++i) {
        /* Task memory in a different epoch is a different task. */
        if (graph->preds[i].task == task && graph->preds[i].epoch == epoch) {
            return true;
        }
    }
    if (FL_UNLIKELY(count == graph->pred_capacity) &&
        fl_array_reserve(&graph->object.core->memory, &graph->preds, &graph->pred_capacity,
                         count + 1, sizeof *graph->preds) != FILCH_OK) {
        return false;
    }
    graph->preds[count] = (fl_pred){task, epoch};
    graph->pred_count = count + 1;
    return true;
}

bool fl_infer_note(filch_graph *graph, fl_task *task, uint32_t epoch)
{
    return note(graph, task, epoch);
}

bool fl_infer_note_users(filch_graph *graph, const fl_tile_state *state)
{
    bool fits = true;
    graph->pred_count = 0;
    for (const fl_reader *r = state->readers; r != NULL && fits; r = r->next) {
        fits = note(graph, r->task, r->epoch);
    }
    /* Every reader or member in an open graph may have retired. */
    if (fits && state->readers == NULL && state->writer != NULL) {
        fits = note(graph, state->writer, state->writer_epoch);
    }
    return fits;
}

/* Drops the retired readers of an open graph. Otherwise a tile that is never written would collect
 * readers without limit. Called when the list has doubled since the last call. */
static void prune_readers(filch_graph *graph, fl_reader **at, uint32_t *count)
{
    uint32_t kept = 0;
    while (*at != NULL) {
        fl_reader *reader = *at;
        /* Acquire: a thread that finds the reader retired sees the reader's effects. A failed
         * reader stays, and poisons the next writer. */
        uint64_t word = fl_load_acquire(&reader->task->word);
        bool gone = fl_word_epoch(word) != reader->epoch;
        uint64_t key = fl_hint_make(reader->task, (uint64_t)reader->epoch << 32);
        if (gone && !graph->poisoned && !fl_hint_set_has(&graph->failed, key)) {
            *at = reader->next;
            fl_arena_free(&graph->readers, reader, sizeof *reader);
        } else {
            at = &reader->next;
            ++kept;
        }
    }
    *count = kept;
}

static inline void add_reader(filch_graph *graph, fl_reader **readers, uint32_t *count,
                              fl_reader *reader)
{
    reader->next = *readers;
    *readers = reader;
    uint32_t now = ++*count;
    if (FL_UNLIKELY(now >= 64 && (now & (now - 1)) == 0) && graph->kind == FILCH_GRAPH_OPEN) {
        prune_readers(graph, readers, count);
    }
}

void fl_infer_add_reader(filch_graph *graph, fl_reader **readers, uint32_t *count,
                         fl_reader *reader)
{
    add_reader(graph, readers, count, reader);
}

/* Tells whether a task with the mode waits for every member of the tile's group. A writing task
 * waits. After fl_groups_enter, a task that does not write is itself a member of the remaining
 * group. */
static bool waits_for_group(uint32_t mode)
{
    return mode == FILCH_WRITE || mode == FILCH_READWRITE;
}

/* Adds the last task with the partial result of the next task of an ordered reduction; false: no
 * memory. */
static bool gather_order(filch_graph *graph, const fl_reduction *reduction)
{
    if (!reduction->is_ordered) {
        return true;
    }
    fl_pred last = reduction->last[reduction->members % FL_ORDERED_PARTS];
    return last.task == NULL || note(graph, last.task, last.epoch);
}

/* Adds the tasks that a task with the access mode to the tile waits for; false: no memory. */
static inline bool gather_tile(filch_graph *graph, const fl_slot *slot, uint32_t tile,
                               uint32_t mode)
{
    const fl_tile_state *state = &slot->tiles[tile];
    bool fits = true;
    if (waits_for_group(mode) && state->readers != NULL) {
        for (const fl_reader *r = state->readers; r != NULL && fits; r = r->next) {
            fits = note(graph, r->task, r->epoch);
        }
    } else if (state->writer != NULL) {
        fits = note(graph, state->writer, state->writer_epoch);
    } else if (slot->gate != NULL) {
        fits = note(graph, slot->gate, slot->gate_epoch);
    } else if (FL_UNLIKELY(mode == FILCH_COMMUTE) && graph->start != NULL) {
        fits = note(graph, graph->start, 0);
    }
    if (FL_UNLIKELY(mode == FILCH_REDUCE)) {
        fits = fits && gather_order(graph, state->extra->reduction);
    }
    return fits;
}

static bool gather_tiles(filch_graph *graph, const fl_slot *slot, fl_rect tiles, uint32_t mode)
{
    bool fits = true;
    for (uint32_t i = 0; i < fl_rect_count(tiles) && fits; ++i) {
        fits = gather_tile(graph, slot, fl_rect_at(tiles, i), mode);
    }
    return fits;
}

bool fl_infer_note_writers(filch_graph *graph, const fl_slot *slot, fl_rect tiles)
{
    return gather_tiles(graph, slot, tiles, FILCH_READ);
}

/* Adds the tasks that a task with an access to a block waits for, and counts the reader nodes;
 * false: no memory. */
static bool gather_block(filch_graph *graph, const fl_slot *slot, fl_rect tiles, uint32_t mode,
                         uint32_t *reader_count)
{
    const fl_block_readers *block = mode == FILCH_READ ? fl_block_readers_find(slot, tiles) : NULL;
    if (mode == FILCH_READ) {
        *reader_count += block != NULL ? 1 : fl_rect_count(tiles);
    }
    if (block == NULL || !block->has_entry) {
        return gather_tiles(graph, slot, tiles, mode);
    }
    return block->entry.task == NULL || fl_infer_note(graph, block->entry.task, block->entry.epoch);
}

filch_status fl_infer_gather(filch_graph *graph, const fl_access_list *list)
{
    const filch_access *given = list->given, *end = given + list->count;
    const fl_task_access *at = list->at;
    uint32_t readers = 0;
    graph->pred_count = 0;
    for (; given != end; ++given, ++at) {
        uint32_t mode = (uint32_t)given->mode;
        if (mode == FILCH_SCRATCH) {
            continue;
        }
        fl_task_access access = *at;
        const fl_slot *slot = graph->slots[access.slot];
        bool fits;
        if (FL_UNLIKELY(access.is_block)) {
            uint32_t nodes = 0;
            fits = gather_block(graph, slot, list->blocks[access.tile].tiles, mode, &nodes);
            readers += nodes;
        } else {
            fits = gather_tile(graph, slot, access.tile, mode);
            readers += !waits_for_group(mode);
        }
        if (FL_UNLIKELY(slot->write_gate != NULL) && mode != FILCH_READ) {
            fits = fits && fl_infer_note(graph, slot->write_gate, slot->write_epoch);
        }
        if (FL_UNLIKELY(!fits)) {
            return FILCH_OUT_OF_MEMORY;
        }
    }
    bool fits = fl_arena_reserve(&graph->readers, readers, sizeof(fl_reader));
    return fits ? FILCH_OK : FILCH_OUT_OF_MEMORY;
}

static inline void forget(filch_graph *graph, fl_tile_state *state)
{
    while (state->readers != NULL) {
        fl_reader *reader = state->readers;
        state->readers = reader->next;
        fl_arena_free(&graph->readers, reader, sizeof *reader);
    }
    state->reader_count = 0;
    if (FL_UNLIKELY(state->extra != NULL)) {
        state->extra->group = FL_GROUP_READS;
    }
}

void fl_infer_forget(filch_graph *graph, fl_tile_state *state)
{
    forget(graph, state);
}

void fl_infer_stand_in(filch_graph *graph, fl_tile_state *state, fl_task *task)
{
    state->writer = task;
    state->writer_epoch = fl_word_epoch(fl_load_relaxed(&task->word)); /* not yet shared */
    forget(graph, state);
}

static void enter_group(const filch_graph *graph, fl_tile_extra *extra, fl_pred self, uint32_t mode)
{
    extra->group = mode == FILCH_COMMUTE ? FL_GROUP_COMMUTES : FL_GROUP_REDUCES;
    fl_reduction *reduction = mode == FILCH_REDUCE ? extra->reduction : NULL;
    if (reduction != NULL && reduction->is_ordered) {
        reduction->last[reduction->members++ % FL_ORDERED_PARTS] = self;
    }
    /* Tasks of an open graph may hold commute locks already; members stays unused. */
    if (mode == FILCH_COMMUTE && graph->kind == FILCH_GRAPH_CLOSED) {
        ++extra->turn->members;
    }
}

/* Makes a reader in reserved memory. */
static inline fl_reader *make_reader(filch_graph *graph, fl_pred self)
{
    fl_reader *reader = fl_arena_alloc(&graph->readers, sizeof *reader);
    reader->task = self.task;
    reader->epoch = self.epoch;
    return reader;
}

/* Makes the task the last writer, or a group member, of a tile. */
static inline void commit_tile(filch_graph *graph, fl_slot *slot, uint32_t tile, fl_pred self,
                               uint32_t mode)
{
    fl_tile_state *state = &slot->tiles[tile];
    note_need(slot, mode, tile);
    if (waits_for_group(mode)) {
        forget(graph, state);
        state->writer = self.task;
        state->writer_epoch = self.epoch;
        fl_infer_note_written(graph, state);
    } else {
        if (FL_UNLIKELY(mode != FILCH_READ)) {
            enter_group(graph, state->extra, self, mode);
        }
        add_reader(graph, &state->readers, &state->reader_count, make_reader(graph, self));
    }
}

static void commit_block(filch_graph *graph, fl_slot *slot, fl_rect tiles, fl_pred self,
                         uint32_t mode)
{
    fl_block_readers *block = mode == FILCH_READ ? fl_block_readers_find(slot, tiles) : NULL;
    note_tiles(graph, slot, mode, fl_rect_tiles(slot->use.data, tiles));
    if (block != NULL) {
        add_reader(graph, &block->readers, &block->reader_count, make_reader(graph, self));
    }
    for (uint32_t i = 0; i < fl_rect_count(tiles); ++i) {
        uint32_t tile = fl_rect_at(tiles, i);
        if (block != NULL) {
            note_need(slot, mode, tile);
        } else {
            commit_tile(graph, slot, tile, self, mode);
        }
    }
}

void fl_infer_commit(filch_graph *graph, const fl_access_list *list, fl_task *task)
{
    /* The task is the caller's own and not yet shared. */
    const fl_pred self = {task, fl_word_epoch(fl_load_relaxed(&task->word))};
    const filch_access *given = list->given, *end = given + list->count;
    const fl_task_access *at = list->at;
    for (; given != end; ++given, ++at) {
        uint32_t mode = (uint32_t)given->mode, row = given->row, col = given->col;
        if (mode == FILCH_SCRATCH) {
            continue;
        }
        fl_task_access access = *at;
        fl_slot *slot = graph->slots[access.slot];
        if (FL_UNLIKELY(access.is_block)) {
            commit_block(graph, slot, list->blocks[access.tile].tiles, self, mode);
            continue;
        }
        note_tiles(graph, slot, mode, (fl_tiles){row, row + 1, col, col + 1});
        commit_tile(graph, slot, access.tile, self, mode);
    }
}

void fl_infer_drop(filch_graph *graph)
{
    const fl_memory *memory = &graph->object.core->memory;
    fl_arena_fini(&graph->readers);
    fl_splits_drop(graph);
    for (size_t i = 0; i < graph->slot_count; ++i) {
        fl_slot *slot = graph->slots[i];
        fl_free(memory, slot->tiles, slot->tile_count * sizeof *slot->tiles);
        slot->tiles = NULL;
        slot->block_readers = NULL; /* in the arena of readers */
        slot->block_count = 0;
    }
    fl_free(memory, graph->preds, graph->pred_capacity * sizeof *graph->preds);
    graph->preds = NULL;
    graph->pred_capacity = 0;
}
