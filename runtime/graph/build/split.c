/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/build/split.h"

#include "graph/build/block_readers.h"
#include "graph/build/read_only.h"
#include "graph/job/job.h"

#define PARTITION "filch_graph_partition"
#define UNPARTITION "filch_graph_unpartition"

static filch_data *data_of(const filch_graph *graph, const fl_split_part *part)
{
    return graph->slots[part->slot]->use.data;
}

static fl_tile_state *state_of(const filch_graph *graph, const fl_split_part *part, uint32_t tile)
{
    return &graph->slots[part->slot]->tiles[tile];
}

/* --- Overlap of tiles --- */

/* Returns the tiles of data overlapped by a tile of a second tiling. */
static fl_tiles overlapped(const filch_data *by, uint32_t tile, const filch_data *data)
{
    filch_view view = fl_data_tile_view(by, tile);
    return (fl_tiles){
        fl_data_row_of(data, view.row), fl_data_row_of(data, view.row + view.rows - 1) + 1,
        fl_data_col_of(data, view.col), fl_data_col_of(data, view.col + view.cols - 1) + 1};
}

/* --- Gates added by filch --- */

static fl_task_access access_to(const fl_split_part *part, uint32_t tile, uint32_t mode)
{
    return (fl_task_access){
        .slot = part->slot & FL_MOST_SLOTS, .is_final = 1, .mode = mode & 0xfu, .tile = tile};
}

/* Adds the gate in front of a tile that no task of the graph has used. */
static bool note_gate(filch_graph *graph, const fl_split_part *part)
{
    const fl_slot *slot = graph->slots[part->slot];
    return slot->gate == NULL || fl_infer_note(graph, slot->gate, slot->gate_epoch);
}

/* Adds the gate in front of writes to a handle that the graph has only read so far. */
static bool note_write_gate(filch_graph *graph, const fl_split_part *parent)
{
    const fl_slot *slot = graph->slots[parent->slot];
    return slot->write_gate == NULL || fl_infer_note(graph, slot->write_gate, slot->write_epoch);
}

static bool note_writer(filch_graph *graph, const fl_split_part *part, uint32_t tile)
{
    const fl_tile_state *state = state_of(graph, part, tile);
    return state->writer != NULL ? fl_infer_note(graph, state->writer, state->writer_epoch)
                                 : note_gate(graph, part);
}

/* Replaces the users of the tile by a task behind graph->preds. moves: the task copies the tile. If
 * no copy is needed and graph->preds has a single task, the single task serves instead. False: no
 * memory. */
static bool stand_in(filch_graph *graph, const fl_split_part *part, uint32_t tile, uint32_t mode,
                     bool moves)
{
    fl_tile_state *state = state_of(graph, part, tile);
    moves = moves && graph->object.core->places->count > 1;
    if (moves || graph->pred_count > 1) {
        fl_task_access access = access_to(part, tile, mode);
        const char *label = data_of(graph, part)->label;
        fl_task *task =
            fl_own_add(graph, NULL, moves ? &access : NULL, label[0] != '\0' ? label : "partition");
        if (task == NULL) {
            return false;
        }
        fl_infer_stand_in(graph, state, task);
        fl_own_let_run(graph, task);
        return true;
    }
    if (graph->pred_count == 1) {
        state->writer = graph->preds[0].task;
        state->writer_epoch = graph->preds[0].epoch;
    }
    fl_infer_forget(graph, state);
    return true;
}

/* Adds the gate behind the tile's users: writes the tile back. False: no memory. */
static bool park(filch_graph *graph, const fl_split_part *part, uint32_t tile)
{
    fl_part_tile *own = &part->tiles[tile];
    fl_tile_state *state = state_of(graph, part, tile);
    if (own->is_parked) {
        return true;
    }
    bool fits = fl_group_end(graph, state) == FILCH_OK && fl_infer_note_users(graph, state);
    if (fits && state->readers == NULL && state->writer == NULL) {
        fits = note_gate(graph, part);
    }
    fits = fits && stand_in(graph, part, tile, FILCH_READ, own->is_dirty);
    if (fits) {
        own->is_parked = true;
        own->is_dirty = false;
    }
    return fits;
}

/* Search of the overlapping tiles in different tilings. Parks the tiles used since a phase, or adds
 * the tasks behind their users to graph->preds. */
typedef struct fl_look {
    filch_graph *graph;
    uint32_t since;
    bool parks;
    bool is_used, is_written; /* found: a tile used or written since the phase */
} fl_look;

static bool look_at(fl_look *look, const fl_split_part *part, fl_tiles tiles)
{
    const filch_data *data = data_of(look->graph, part);
    bool fits = true;
    for (uint32_t col = tiles.col0; col < tiles.col1; ++col) {
        for (uint32_t row = tiles.row0; row < tiles.row1 && fits; ++row) {
            uint32_t tile = fl_data_tile(data, row, col);
            const fl_part_tile *other = &part->tiles[tile];
            if (other->used > look->since) {
                look->is_used = true;
                look->is_written = look->is_written || other->written > look->since;
                fits = look->parks ? park(look->graph, part, tile)
                                   : note_writer(look->graph, part, tile);
            }
        }
    }
    return fits;
}

static bool look_around(fl_look *look, const fl_split_part *part, uint32_t tile)
{
    bool fits = true;
    for (const fl_split_part *other = part->split->parts; other != NULL && fits;
         other = other->next) {
        if (other != part) {
            const filch_data *data = data_of(look->graph, other);
            fits = look_at(look, other, overlapped(data_of(look->graph, part), tile, data));
        }
    }
    return fits;
}

/* Adds the gate before the tile's first users in the phase: the tile receives the current contents.
 * False: no memory. */
static bool bring(filch_graph *graph, const fl_split_part *part, uint32_t tile)
{
    fl_part_tile *own = &part->tiles[tile];
    fl_tile_state *state = state_of(graph, part, tile);
    fl_look look = {.graph = graph, .since = own->used, .parks = true};
    if (!look_around(&look, part, tile)) {
        return false;
    }
    if (look.is_used) {
        look.parks = false;
        graph->pred_count = 0;
        bool fits = look_around(&look, part, tile);
        if (fits && state->writer == NULL) {
            fits = note_gate(graph, part);
        }
        fits = fits && note_write_gate(graph, part->split->parent);
        if (!fits || !stand_in(graph, part, tile, FILCH_WRITE, look.is_written)) {
            return false;
        }
        fl_infer_note_written(graph, state);
    }
    own->used = part->split->phase;
    return true;
}

/* --- Tasks being added --- */

/* Returns the handle's part of the graph's splits; null: no part. */
static fl_split_part *find_part(const filch_graph *graph, const filch_data *data)
{
    uint32_t slot;
    return fl_graph_find_slot(graph, data, &slot) ? graph->slots[slot]->part : NULL;
}

filch_status fl_splits_check(const filch_graph *graph, const filch_task_desc *desc)
{
    for (uint32_t i = 0; i < desc->access_count; ++i) {
        const filch_data *data = desc->accesses[i].data;
        if (data == NULL || (data->parent == NULL && graph->splits == NULL)) {
            continue;
        }
        const fl_split_part *part = find_part(graph, data);
        if (part == NULL ? data->parent == NULL : part == part->split->current) {
            continue;
        }
        return data->parent != NULL
                   ? fl_graph_refuse(
                         graph, desc, FILCH_WRONG_STATE,
                         "access %u: the graph does not use '%s' as partitioned into '%s' "
                         "(filch_graph_partition)",
                         i, data->parent->label, data->label)
                   : fl_graph_refuse(graph, desc, FILCH_WRONG_STATE,
                                     "access %u: the graph uses '%s' as partitioned into '%s' "
                                     "(filch_graph_unpartition)",
                                     i, data->label, data_of(graph, part->split->current)->label);
    }
    return FILCH_OK;
}

static bool enter_tile(filch_graph *graph, fl_split_part *part, uint32_t tile, uint32_t mode)
{
    fl_part_tile *own = &part->tiles[tile];
    if (own->used != part->split->phase && !bring(graph, part, tile)) {
        return false;
    }
    /* If the add fails later, an unnecessary write-back may happen. */
    own->is_parked = false;
    if ((mode & FILCH_WRITE) != 0) {
        own->written = own->used;
        own->is_dirty = true;
    }
    return true;
}

filch_status fl_splits_enter(filch_graph *graph, const fl_access_list *list)
{
    for (uint32_t i = 0; i < list->count; ++i) {
        fl_task_access access = list->at[i];
        fl_split_part *part = access.mode != FILCH_SCRATCH ? graph->slots[access.slot]->part : NULL;
        fl_rect tiles = part != NULL ? fl_list_tiles(list, i) : (fl_rect){.rows = 0};
        for (uint32_t t = 0; t < fl_rect_count(tiles); ++t) {
            if (!enter_tile(graph, part, fl_rect_at(tiles, t), access.mode)) {
                return FILCH_OUT_OF_MEMORY;
            }
        }
    }
    return FILCH_OK;
}

/* Brings back the parent's tiles with contents in a partition. */
static bool bring_back(filch_graph *graph, fl_split *split)
{
    fl_split_part *part = split->parent;
    bool fits = true;
    for (uint32_t tile = 0; tile < graph->slots[part->slot]->tile_count && fits; ++tile) {
        fl_look look = {.graph = graph, .since = part->tiles[tile].used};
        graph->pred_count = 0; /* the predecessors found by the search are not used */
        fits = look_around(&look, part, tile);
        if (fits && look.is_written) {
            fits = bring(graph, part, tile);
            part->tiles[tile].is_parked = false;
        }
    }
    return fits;
}

filch_status fl_splits_end(filch_graph *graph)
{
    for (fl_split *split = graph->splits; split != NULL; split = split->next) {
        ++split->phase;
        bool fits = bring_back(graph, split);
        ++split->phase; /* phase of tasks added after a failure */
        if (!fits) {
            return FILCH_OUT_OF_MEMORY;
        }
    }
    for (fl_split *split = graph->splits; split != NULL; split = split->next) {
        split->current = split->parent;
    }
    return FILCH_OK;
}

void fl_splits_drop(filch_graph *graph)
{
    const fl_memory *memory = &graph->object.core->memory;
    for (fl_split *split = graph->splits; split != NULL; split = split->next) {
        for (fl_split_part *part = split->parts; part != NULL; part = part->next) {
            fl_free(memory, part->tiles,
                    graph->slots[part->slot]->tile_count * sizeof *part->tiles);
            part->tiles = NULL;
        }
    }
}

/* --- Partitioning --- */

static fl_split_part *add_part(filch_graph *graph, fl_split *split, uint32_t slot)
{
    const fl_memory *memory = &graph->object.core->memory;
    size_t bytes = graph->slots[slot]->tile_count * sizeof(fl_part_tile);
    fl_split_part *part = fl_arena_alloc(&graph->arena, sizeof *part);
    fl_part_tile *tiles = part != NULL ? fl_alloc_zeroed(memory, bytes) : NULL;
    if (tiles == NULL) {
        fl_arena_free(&graph->arena, part, sizeof *part);
        return NULL;
    }
    *part = (fl_split_part){.next = split->parts, .split = split, .slot = slot, .tiles = tiles};
    split->parts = part;
    graph->slots[slot]->part = part;
    return part;
}

static fl_split *add_split(filch_graph *graph, uint32_t slot)
{
    fl_split *split = fl_arena_alloc(&graph->arena, sizeof *split);
    if (split == NULL) {
        return NULL;
    }
    *split = (fl_split){.phase = 1};
    fl_split_part *part = add_part(graph, split, slot);
    if (part == NULL) {
        fl_arena_free(&graph->arena, split, sizeof *split);
        return NULL;
    }
    for (uint32_t tile = 0; tile < graph->slots[slot]->tile_count; ++tile) {
        part->tiles[tile] = (fl_part_tile){.used = 1, .written = 1, .is_dirty = true};
    }
    split->parent = split->current = part;
    split->next = graph->splits;
    graph->splits = split;
    return split;
}

/* Tells the order of jobs that the graph writes the whole handle. */
static void use_all(const filch_graph *graph, const fl_split_part *part)
{
    fl_queued_access *use = &graph->slots[part->slot]->use;
    if (graph->kind == FILCH_GRAPH_CLOSED) { /* an open graph's use is queued as writing */
        use->used = use->wrote = fl_data_all_tiles(use->data);
        use->writes = true;
    }
}

/* Finds the slots of a handle and its partition; an open graph takes its places in the access
 * queues. */
static filch_status join(filch_graph *graph, filch_data *const data[2], uint32_t slots[2],
                         char *text, size_t bytes)
{
    size_t known = graph->slot_count;
    fl_task_access accesses[2];
    filch_status status = FILCH_OK;
    for (int i = 0; i < 2 && status == FILCH_OK; ++i) {
        status = fl_graph_slot(graph, data[i], &slots[i]);
        accesses[i] = (fl_task_access){.slot = slots[i] & FL_MOST_SLOTS, .mode = FILCH_READWRITE};
    }
    if (graph->kind == FILCH_GRAPH_OPEN) {
        status = status == FILCH_OK ? fl_open_enter(graph, accesses, 2, text, bytes) : status;
        if (status != FILCH_OK) {
            fl_graph_drop_slots(graph, known);
        }
    }
    return status;
}

static filch_status partition(filch_graph *graph, filch_data *parent, filch_data *child)
{
    fl_core *core = graph->object.core;
    uint32_t slots[2];
    fl_split_part *part = find_part(graph, parent);
    if (part != NULL && part->split->current != part) {
        return fl_core_fail(core, FILCH_WRONG_STATE, PARTITION, parent->label,
                            "the graph uses '%s' as partitioned into '%s'", parent->label,
                            data_of(graph, part->split->current)->label);
    }
    if (fl_read_only_is(graph, parent)) {
        return fl_core_fail(core, FILCH_WRONG_STATE, PARTITION, parent->label,
                            "the graph only reads '%s' (filch_graph_read_only)", parent->label);
    }
    char text[sizeof((filch_error *)NULL)->text];
    filch_status status = join(graph, (filch_data *[]){parent, child}, slots, text, sizeof text);
    if (status == FILCH_DEADLOCK || status == FILCH_BUSY) {
        return fl_core_fail(core, status, PARTITION, parent->label, "%s", text);
    }
    fl_split *split = NULL;
    if (status == FILCH_OK) {
        bool fits = fl_block_readers_end(graph, graph->slots[slots[0]]) == FILCH_OK;
        split = part != NULL ? part->split : fits ? add_split(graph, slots[0]) : NULL;
    }
    if (split != NULL) {
        part = graph->slots[slots[1]]->part;
        part = part != NULL ? part : add_part(graph, split, slots[1]);
    }
    if (split == NULL || part == NULL) {
        return fl_core_fail(core, FILCH_OUT_OF_MEMORY, PARTITION, parent->label,
                            "no memory to partition '%s'", parent->label);
    }
    use_all(graph, split->parent);
    use_all(graph, part);
    split->current = part;
    ++split->phase;
    return FILCH_OK;
}

static filch_status unpartition(filch_graph *graph, filch_data *parent, filch_data *child)
{
    fl_split_part *part = find_part(graph, child);
    if (part == NULL || part->split->current != part) {
        return fl_core_fail(graph->object.core, FILCH_WRONG_STATE, UNPARTITION, parent->label,
                            "the graph does not use '%s' as partitioned into '%s'", parent->label,
                            child->label);
    }
    part->split->current = part->split->parent;
    ++part->split->phase;
    return FILCH_OK;
}

static filch_status check_handles(const filch_graph *graph, const filch_data *parent,
                                  const filch_data *child, const char *call)
{
    fl_core *core = graph->object.core;
    const fl_argument whole = fl_data_argument(parent, "'parent'");
    const fl_argument part = fl_data_argument(child, "'child'");
    filch_status status = fl_argument_check(core, &whole, call, graph->label);
    status = status == FILCH_OK ? fl_argument_check(core, &part, call, graph->label) : status;
    if (status != FILCH_OK) {
        return status;
    }
    return child->parent == parent
               ? FILCH_OK
               : fl_core_fail(core, FILCH_INVALID_ARGUMENT, call, parent->label,
                              "'%s' is not a partition of '%s'", child->label, parent->label);
}

/* Changes the tiling that the graph uses, by a step: partition or unpartition. */
static filch_status change(filch_graph *graph, filch_data *parent, filch_data *child,
                           const char *call,
                           filch_status (*step)(filch_graph *, filch_data *, filch_data *))
{
    filch_status status = fl_object_check_for(graph, FL_MAGIC_GRAPH, call);
    status = status == FILCH_OK ? check_handles(graph, parent, child, call) : status;
    if (status != FILCH_OK) {
        return status;
    }
    fl_latch_lock(&graph->lock);
    status = fl_graph_check_grows(graph, call);
    status = status == FILCH_OK ? step(graph, parent, child) : status;
    fl_latch_unlock(&graph->lock);
    return status;
}

filch_status filch_graph_partition(filch_graph *graph, filch_data *parent, filch_data *child)
{
    return change(graph, parent, child, PARTITION, partition);
}

filch_status filch_graph_unpartition(filch_graph *graph, filch_data *parent, filch_data *child)
{
    return change(graph, parent, child, UNPARTITION, unpartition);
}
