/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/build/graph.h"

#include <stdio.h>
#include <string.h>

#include "graph/job/job.h"

/* Size of a graph's descriptor in the first version of the interface; later versions only append.
 */
#define GRAPH_SIZE_FIRST offsetof(filch_graph_desc, max_live)

static bool init_locks(filch_graph *graph)
{
    if (fl_latch_init(&graph->lock) != FILCH_OK) {
        return false;
    }
    if (fl_mutex_init(&graph->turn_lock) != FILCH_OK) {
        fl_latch_fini(&graph->lock);
        return false;
    }
    return true;
}

filch_status filch_graph_create(filch_runtime *runtime, const filch_graph_desc *desc,
                                filch_graph **graph)
{
    filch_status status = fl_object_check(runtime, FL_MAGIC_RUNTIME);
    if (status != FILCH_OK) {
        return status;
    }
    fl_core *core = fl_core_of(runtime);
    filch_graph_desc d = FILCH_GRAPH_DESC_INIT;
    status = fl_size_check(core, desc, GRAPH_SIZE_FIRST, sizeof d, "graph: the descriptor",
                           "filch_graph_create", NULL);
    if (status != FILCH_OK) {
        return status;
    }
    if (desc != NULL) {
        memcpy(&d, desc, desc->size < sizeof d ? GRAPH_SIZE_FIRST : sizeof d);
    }
    const char *wrong = graph == NULL                         ? "no place for the handle"
                        : (unsigned)d.kind > FILCH_GRAPH_OPEN ? "unknown kind"
                        : (unsigned)d.priorities > FILCH_PRIORITIES_CALLER ? "unknown priorities"
                        : d.priority_min > d.priority_max ? "priority_min is over priority_max"
                        : d.max_live != 0 && d.kind != FILCH_GRAPH_OPEN
                            ? "max_live is not 0, but the graph is closed"
                            : NULL;
    if (wrong != NULL) {
        return fl_core_fail(core, FILCH_INVALID_ARGUMENT, "filch_graph_create", d.label,
                            "graph: %s", wrong);
    }
    filch_graph *made = fl_object_new(
        core, FL_MAGIC_GRAPH, sizeof *made + core->scheduler->graph_bytes, _Alignof(filch_graph));
    if (made == NULL || !init_locks(made)) {
        if (made != NULL) {
            fl_object_delete(made);
        }
        return fl_core_fail(core, FILCH_OUT_OF_MEMORY, "filch_graph_create", d.label,
                            "no memory for a graph");
    }
    /* Relaxed: the number is only a name. */
    made->number = fl_add_relaxed(&core->jobs->graphs, 1) + 1;
    made->kind = d.kind;
    made->priorities = d.priorities;
    made->max_live = d.max_live;
    bool is_default = d.priority_min == 0 && d.priority_max == 0;
    made->priority_min = is_default ? -5 : d.priority_min;
    made->priority_max = is_default ? 5 : d.priority_max;
    snprintf(made->label, sizeof made->label, "%s", d.label != NULL ? d.label : "");
    fl_arena_init(&made->arena, &core->memory);
    fl_arena_init(&made->readers, &core->memory);
    fl_inbox_init(&made->retired);
    *graph = made;
    return FILCH_OK;
}

/* Prefetches a reusable task: its cache lines were last used by a second core. */
static void expect(fl_link *link)
{
    if (link != NULL) {
        fl_task *task = fl_task_of_link(link);
        __builtin_prefetch(task, 1);
        __builtin_prefetch(&task->more, 1);
    }
}

/* Takes a finished task of an open graph for reuse; null: no finished task. */
static fl_task *reclaim(filch_graph *graph)
{
    if (graph->left == NULL) {
        graph->left = fl_inbox_take(&graph->retired);
    }
    fl_link *link = graph->left;
    if (link == NULL) {
        return NULL;
    }
    graph->left = link->next;
    expect(link->next);
    fl_task *task = fl_task_of_link(link);
    if (task->args != NULL) {
        fl_arena_free(&graph->arena, task->args, task->codelet->arg_size);
    }
    fl_arena_free(&graph->arena, task->accesses,
                  fl_access_bytes(task->access_count, fl_task_has_extras(task), task->has_items,
                                  fl_task_block_count(task)));
    for (fl_more *more = task->more; more != NULL;) {
        fl_more *after = more->next;
        fl_arena_free(&graph->arena, more, sizeof *more);
        more = after;
    }
    return task;
}

/* Takes a task given back before it began, or else a finished task. */
static fl_task *take_spare(filch_graph *graph)
{
    fl_task *task = graph->spare;
    if (task == NULL) {
        return reclaim(graph);
    }
    fl_link *next = task->link.next;
    graph->spare = next != NULL ? fl_task_of_link(next) : NULL;
    return task;
}

static bool add_slab(filch_graph *graph)
{
    fl_core *core = graph->object.core;
    if (fl_array_reserve(&core->memory, &graph->slab_table, &graph->slab_capacity,
                         graph->slab_count + 1, sizeof *graph->slab_table) != FILCH_OK) {
        return false;
    }
    fl_slab *slab = fl_store_take(core->store);
    if (slab == NULL) {
        return false;
    }
    graph->slab_table[graph->slab_count++] = slab;
    slab->next = graph->slabs;
    graph->slabs = slab;
    return true;
}

fl_task *fl_graph_task_new(filch_graph *graph)
{
    fl_task *task = NULL;
    if (graph->kind == FILCH_GRAPH_OPEN) {
        task = take_spare(graph);
    }
    if (task == NULL) {
        if ((graph->slabs == NULL || graph->slabs->used == FL_SLAB_TASKS) && !add_slab(graph)) {
            return NULL;
        }
        task = &graph->slabs->tasks[graph->slabs->used++];
    }
    /* The word keeps counting epochs across graphs: hints to earlier lives stay stale. Workers may
     * be reading the word. It is the only member that is not simply overwritten. */
    uint64_t word = fl_word_next_epoch(fl_load_relaxed(&task->word));
    if (graph->kind == FILCH_GRAPH_OPEN) {
        word |= FL_TASK_OPEN;
    }
    /* Store pending before the word: no worker may claim a task under construction. */
    fl_store_relaxed(&task->pending, 1);
    fl_store_release(&task->word, word);
    task->predecessors = 0;
    task->codelet = NULL;
    task->graph = graph;
    memset(task->successors, 0, sizeof task->successors);
    task->successor_count = 0;
    task->level = FL_LEVELS / 2;
    task->access_count = 0;
    task->is_gate = task->commutes = task->reduces = task->combines = task->begins = 0;
    task->is_placed = 0;
    task->main_access = 0;
    task->mates = 0;
    task->bytes = 0;
    task->is_large = task->has_items = 0;
    task->has_blocks = task->has_temporaries = false;
    /* Relaxed: the value is for gates, and publishes no set of devices. */
    fl_store_relaxed(&task->able, FL_ABLE_ALL);
    task->more = NULL;
    task->args = NULL;
    task->accesses = NULL;
    task->label = NULL;
    task->link.next = NULL;
    task->work = 1;
    task->rank = 0;
    task->home = task->moves = 0;
    task->order = 0;
    return task;
}

void fl_graph_task_unmake(filch_graph *graph, fl_task *task)
{
    if (graph->kind == FILCH_GRAPH_OPEN) {
        task->link.next = graph->spare != NULL ? &graph->spare->link : NULL;
        graph->spare = task;
    } else {
        --graph->slabs->used; /* the newest task of the newest slab */
    }
}

uint8_t fl_graph_level(const filch_graph *graph, int32_t priority)
{
    int64_t low = graph->priority_min, high = graph->priority_max;
    int64_t p = priority < low ? low : priority > high ? high : priority;
    int64_t level = high == low ? FL_LEVELS / 2 : (p - low) * (FL_LEVELS - 1) / (high - low);
    return (uint8_t)level;
}

const char *fl_graph_why_shut(const filch_graph *graph)
{
    if (graph->kind == FILCH_GRAPH_CLOSED) {
        return graph->state != FL_GRAPH_BUILDING
                   ? "the graph is sealed, at the latest by its first run"
                   : NULL;
    }
    return graph->state == FL_GRAPH_BUILDING ? "the open graph is not submitted"
           : graph->state == FL_GRAPH_ENDED  ? "the open graph is closed"
                                             : NULL;
}

const char *fl_graph_why_over(const filch_graph *graph)
{
    const char *shut = fl_graph_why_shut(graph);
    bool is_over = shut == NULL && graph->kind == FILCH_GRAPH_OPEN &&
                   fl_load_relaxed(&graph->job->cancelled) != 0;
    return is_over ? "the open graph's job was cancelled or finished early" : shut;
}

filch_status fl_graph_check_grows(const filch_graph *graph, const char *call)
{
    const char *wrong = fl_graph_why_over(graph);
    return wrong == NULL ? FILCH_OK
                         : fl_core_fail(graph->object.core, FILCH_WRONG_STATE, call, graph->label,
                                        "%s", wrong);
}
