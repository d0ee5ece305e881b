/* SPDX-License-Identifier: Apache-2.0 */
/* Groups: tasks that commute on a tile, or reduce to the tile, between two accesses of a different
 * mode. Members wait for the task before the group, not for each other. The task after the group
 * waits for every member.
 *
 * Where many tasks would wait for many tasks, filch adds a gate, a task that runs no function. The
 * later tasks wait for the gate, and the gate waits for the earlier tasks. The number of edges is
 * then at most twice the number of accesses. Behind reducing tasks, the combining task takes the
 * role of the gate.
 *
 * In a closed graph a commuting task is never a root, since roots are ready at once, without taking
 * commute locks. A commuting task without a predecessor waits for the graph's `start`. */
#include <string.h>

#include "graph/build/block_readers.h"
#include "graph/build/capacity.h"
#include "graph/job/job.h"

/* Memory for a task of filch, taken before the graph changes. */
typedef struct fl_own_parts {
    fl_task *task;
    fl_task_access *accesses; /* accesses of a combining task, or of a gate with a tile */
    size_t access_bytes;
} fl_own_parts;

#define COMBINE_ACCESSES 2u

static bool take_parts(filch_graph *graph, fl_own_parts *parts)
{
    bool fits = graph->task_count < UINT32_MAX - 1;
    if (fits && parts->access_bytes != 0) {
        parts->accesses = fl_arena_alloc(&graph->arena, parts->access_bytes);
        fits = parts->accesses != NULL;
    }
    parts->task = fits && fl_edges_reserve(graph) ? fl_graph_task_new(graph) : NULL;
    return parts->task != NULL;
}

static void fill_gate(fl_task *task)
{
    task->is_gate = 1;
    task->level = FL_LEVELS - 1; /* the gate costs nothing, and tasks wait for it */
    task->work = 0;
}

static double declared_work(const fl_task *task)
{
    filch_view views[COMBINE_ACCESSES];
    fl_task_views(task, views, NULL);
    filch_call call = {
        .views = views, .view_count = COMBINE_ACCESSES, .team = 1, .user = task->codelet->user};
    double units = task->codelet->work(&call);
    return units >= 0 ? units : 0; /* NaN fails the comparison, too */
}

/* Fills a combining task. View 0: the tile. View 1: the partial result of each device in turn. */
static void fill_combiner(filch_graph *graph, fl_reduction *reduction, fl_task_access *accesses,
                          fl_task *task)
{
    bool is_open = graph->kind == FILCH_GRAPH_OPEN;
    for (uint32_t i = 0; i < COMBINE_ACCESSES; ++i) {
        accesses[i] = (fl_task_access){.slot = reduction->slot & FL_MOST_SLOTS,
                                       .is_final = is_open,
                                       .mode = i == 0 ? FILCH_READWRITE : FILCH_REDUCE,
                                       .tile = reduction->tile};
    }
    fl_extra *extras = (fl_extra *)(void *)(accesses + COMBINE_ACCESSES);
    extras[0] = extras[1] = (fl_extra){.reduction = reduction};
    fl_core *core = graph->object.core;
    uint64_t set[FL_DEVICE_LIMIT / 64];
    task->combines = 1;
    task->codelet = reduction->combine;
    task->access_count = COMBINE_ACCESSES;
    task->accesses = accesses;
    task->is_large = fl_capacity_is_large(core, task, set) ? 1 : 0;
    /* Release: the set of devices is visible before its number, for a thief with an old hint. */
    fl_store_release(&task->able, task->is_large ? core->scheduler->able(core->scheduler, set)
                                                 : reduction->combine->able);
    if (graph->priorities == FILCH_PRIORITIES_CALLER) {
        task->rank = (float)reduction->priority;
        task->level = fl_graph_level(graph, reduction->priority);
    }
    if (reduction->combine->work != NULL) {
        task->work = (float)declared_work(task);
    }
}

/* Gives a gate its tile. */
static void fill_tile_gate(const fl_task_access *access, const char *label,
                           fl_task_access *accesses, fl_task *task)
{
    accesses[0] = *access;
    task->access_count = 1;
    task->accesses = accesses;
    task->label = label;
}

fl_task *fl_own_add(filch_graph *graph, fl_reduction *reduction, const fl_task_access *access,
                    const char *label)
{
    fl_own_parts parts = {.access_bytes = reduction != NULL
                                              ? fl_access_bytes(COMBINE_ACCESSES, true, false, 0)
                                          : access != NULL ? fl_access_bytes(1, false, false, 0)
                                                           : 0};
    if (!take_parts(graph, &parts)) {
        fl_arena_free(&graph->arena, parts.accesses, parts.access_bytes);
        return NULL;
    }
    fl_task *task = parts.task;
    task->order = graph->task_count;
    if (reduction != NULL) {
        fill_combiner(graph, reduction, parts.accesses, task);
    } else {
        fill_gate(task);
        if (access != NULL) {
            fill_tile_gate(access, label, parts.accesses, task);
        }
    }
    fl_edges_add(graph, task);
    fl_store_relaxed(&graph->task_count, graph->task_count + 1);
    ++graph->own_count;
    return task;
}

/* Lets a task of an open graph run: the task has its edges and is known to inference. */
void fl_own_let_run(filch_graph *graph, fl_task *task)
{
    fl_scheduler *scheduler = graph->object.core->scheduler;
    /* Acquire-release: if the predecessors have retired, the runner of the task sees their
     * results. */
    if (graph->kind == FILCH_GRAPH_OPEN && fl_sub_acq_rel(&task->pending, 1) == 1) {
        fl_open_count_ready(graph);
        scheduler->task_ready(scheduler, task);
    }
}

/* Replaces the tile's group, and the writer before the group, by a single task. */
static filch_status end_group(filch_graph *graph, fl_tile_state *state)
{
    bool combines = fl_tile_group(state) == FL_GROUP_REDUCES;
    if (state->readers != NULL && state->readers->next == NULL && !combines) {
        state->writer = state->readers->task;
        state->writer_epoch = state->readers->epoch;
        fl_infer_forget(graph, state);
    } else if (state->readers != NULL || combines) {
        fl_task *task =
            fl_infer_note_users(graph, state)
                ? fl_own_add(graph, combines ? state->extra->reduction : NULL, NULL, NULL)
                : NULL;
        if (task == NULL) {
            return FILCH_OUT_OF_MEMORY;
        }
        if (combines) {
            fl_infer_note_written(graph, state);
            fl_reduction_restart(state->extra->reduction);
        }
        fl_infer_stand_in(graph, state, task);
        fl_own_let_run(graph, task);
    } else {
        fl_infer_forget(graph, state);
    }
    return FILCH_OK;
}

filch_status fl_group_end(filch_graph *graph, fl_tile_state *state)
{
    return fl_tile_group(state) == FL_GROUP_READS ? FILCH_OK : end_group(graph, state);
}

/* Tells whether a single task must replace the group before a task with the access mode is added. A
 * writing task may wait for every commuting member directly, as for readers. */
static bool ends(const fl_tile_state *state, uint32_t mode)
{
    switch (fl_tile_group(state)) {
    case FL_GROUP_READS:
        return mode == FILCH_COMMUTE || mode == FILCH_REDUCE;
    case FL_GROUP_COMMUTES:
        return mode == FILCH_READ || mode == FILCH_REDUCE;
    default:
        return mode != FILCH_REDUCE;
    }
}

static bool find_start(filch_graph *graph)
{
    if (graph->start == NULL) {
        graph->pred_count = 0;
        graph->start = fl_own_add(graph, NULL, NULL, NULL);
    }
    return graph->start != NULL;
}

/* Returns the extra of a tile, made on first use; null: no memory. */
static fl_tile_extra *extra_of(filch_graph *graph, fl_tile_state *state)
{
    if (state->extra == NULL) {
        fl_tile_extra *extra = fl_arena_alloc(&graph->readers, sizeof *extra);
        if (extra != NULL) {
            *extra = (fl_tile_extra){.group = FL_GROUP_READS};
            state->extra = extra;
        }
    }
    return state->extra;
}

static fl_commute_lock *turn_of(filch_graph *graph, fl_tile_extra *extra)
{
    bool is_old = graph->kind == FILCH_GRAPH_OPEN || extra->group == FL_GROUP_COMMUTES;
    if (extra->turn == NULL || !is_old) {
        fl_commute_lock *turn = fl_arena_alloc(&graph->arena, sizeof *turn);
        if (turn != NULL) {
            *turn = (fl_commute_lock){0};
            extra->turn = turn;
        }
        return turn;
    }
    return extra->turn;
}

static fl_reduction *reduction_of(filch_graph *graph, const fl_task_access *access,
                                  fl_tile_extra *extra)
{
    if (extra->reduction == NULL) {
        extra->reduction = fl_reduction_new(graph, access->slot, access->tile);
    }
    return extra->reduction;
}

/* Fills the extra of an access that commutes or reduces; false: no memory. */
static bool fill_extra(filch_graph *graph, const fl_task_access *access, fl_tile_state *state,
                       int32_t priority, fl_extra *filled)
{
    fl_tile_extra *extra = extra_of(graph, state);
    if (extra == NULL) {
        return false;
    }
    graph->has_groups = true;
    if (access->mode == FILCH_COMMUTE) {
        filled->turn = turn_of(graph, extra);
        return filled->turn != NULL &&
               (graph->kind == FILCH_GRAPH_OPEN || state->writer != NULL || find_start(graph));
    }
    filled->reduction = reduction_of(graph, access, extra);
    if (filled->reduction == NULL) {
        return false;
    }
    filled->reduction->priority = priority;
    filled->part = filled->reduction->members % FL_ORDERED_PARTS;
    return true;
}

/* Ends the groups on the tiles of a block if the task ends them. */
static bool enter_block(filch_graph *graph, const fl_slot *slot, fl_rect tiles, uint32_t mode)
{
    const fl_block_readers *block = mode == FILCH_READ ? fl_block_readers_find(slot, tiles) : NULL;
    bool fits = true;
    /* A reader before has ended the groups of a listed block. */
    for (uint32_t i = 0; i < fl_rect_count(tiles) && fits; ++i) {
        fl_tile_state *state = &slot->tiles[fl_rect_at(tiles, i)];
        fits = (block != NULL && block->readers != NULL) || !ends(state, mode) ||
               end_group(graph, state) == FILCH_OK;
    }
    return fits;
}

filch_status fl_groups_enter(filch_graph *graph, const fl_access_list *list, int32_t priority,
                             fl_extra *extras)
{
    for (uint32_t i = 0; i < list->count; ++i) {
        const fl_task_access *access = &list->at[i];
        uint32_t mode = access->mode;
        if (extras != NULL) {
            extras[i] = (fl_extra){0};
        }
        if (mode == FILCH_SCRATCH) {
            continue;
        }
        const fl_slot *slot = graph->slots[access->slot];
        if (access->is_block) {
            if (!enter_block(graph, slot, list->blocks[access->tile].tiles, mode)) {
                return FILCH_OUT_OF_MEMORY;
            }
            continue;
        }
        fl_tile_state *state = &slot->tiles[access->tile];
        bool fits = !ends(state, mode) || end_group(graph, state) == FILCH_OK;
        if (fits && (mode == FILCH_COMMUTE || mode == FILCH_REDUCE)) {
            fits = fill_extra(graph, access, state, priority, &extras[i]);
        }
        if (!fits) {
            return FILCH_OUT_OF_MEMORY;
        }
    }
    return FILCH_OK;
}

filch_status fl_groups_end(filch_graph *graph)
{
    for (fl_reduction *r = graph->reductions; r != NULL; r = r->next) {
        fl_tile_state *state = &graph->slots[r->slot]->tiles[r->tile];
        if (fl_tile_group(state) == FL_GROUP_REDUCES && end_group(graph, state) != FILCH_OK) {
            return FILCH_OUT_OF_MEMORY;
        }
    }
    return FILCH_OK;
}

/* Tells whether the tasks that commute on a tile are the last to write the tile. */
static bool commutes_last(const filch_graph *graph, size_t slot, uint32_t tile)
{
    const fl_tile_state *state = &graph->slots[slot]->tiles[tile];
    const fl_task *writer = state->writer;
    bool writes = false;
    /* A group that has ended has left a gate, or its only member, as the writer. */
    for (uint32_t a = 0; writer != NULL && a < writer->access_count && !writes; ++a) {
        uint32_t mode = writer->accesses[a].mode;
        writes = (mode == FILCH_WRITE || mode == FILCH_READWRITE) &&
                 writer->accesses[a].slot == slot && fl_task_names(writer, a, tile);
    }
    return !writes || fl_tile_group(state) == FL_GROUP_COMMUTES;
}

void fl_groups_seal(filch_graph *graph)
{
    for (size_t s = 0; graph->has_groups && s < graph->slot_count; ++s) {
        const fl_slot *slot = graph->slots[s];
        for (uint32_t tile = 0; tile < slot->tile_count; ++tile) {
            const fl_tile_extra *extra = slot->tiles[tile].extra;
            if (extra != NULL && extra->turn != NULL) {
                extra->turn->is_final = commutes_last(graph, s, tile);
            }
        }
    }
    for (uint32_t i = 0; graph->has_groups && i < graph->task_count; ++i) {
        fl_task *task = fl_graph_task_at(graph, i);
        if (task->commutes) {
            ++task->predecessors;
            fl_store_relaxed(&task->pending, task->predecessors); /* no worker runs the task */
        }
    }
}
