/* SPDX-License-Identifier: Apache-2.0 */
/* Sealing a closed graph: order (and cycles), upward ranks, levels, placement, roots. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "graph/graph.h"
#include "graph/job.h"

/* Calls fn for each successor of a task. */
typedef void (*fl_successor_fn)(fl_task *successor, void *user);

static void for_each_successor(const fl_task *task, fl_successor_fn fn, void *user)
{
    uint32_t inlined =
        task->successor_count < FL_TASK_SUCCESSORS ? task->successor_count : FL_TASK_SUCCESSORS;
    for (uint32_t i = 0; i < inlined; ++i) {
        fn(task->successors[i], user);
    }
    for (const fl_more *more = task->more; more != NULL; more = more->next) {
        for (uint64_t i = 0; i < more->count; ++i) {
            fn(more->tasks[i], user);
        }
    }
}

/* Tasks in an order in which predecessors come first. */
typedef struct fl_order {
    fl_task **tasks;
    uint32_t count;
} fl_order;

static void collect_insertion_order(const filch_graph *graph, fl_order *order)
{
    for (fl_slab *slab = graph->slabs; slab != NULL; slab = slab->next) {
        for (uint32_t i = 0; i < slab->used; ++i) {
            order->tasks[slab->tasks[i].order] = &slab->tasks[i];
        }
    }
    order->count = graph->task_count;
}

static void release_in_order(fl_task *successor, void *user)
{
    fl_order *order = user;
    if (fl_sub_relaxed(&successor->pending, 1) == 1) { /* nobody else sees the graph yet */
        order->tasks[order->count++] = successor;
    }
}

/* Kahn's algorithm (Comm. ACM 5, 1962). Leaves pending > 0 exactly at tasks on or behind a cycle.
 */
static void collect_topological_order(const filch_graph *graph, fl_order *order)
{
    order->count = 0;
    for (fl_slab *slab = graph->slabs; slab != NULL; slab = slab->next) {
        for (uint32_t i = 0; i < slab->used; ++i) {
            fl_task *task = &slab->tasks[i];
            fl_store_relaxed(&task->pending, task->predecessors);
            if (task->predecessors == 0) {
                order->tasks[order->count++] = task;
            }
        }
    }
    for (uint32_t done = 0; done < order->count; ++done) {
        for_each_successor(order->tasks[done], release_in_order, order);
    }
}

/* The walk that names a cycle: for each stuck task, by its order, one stuck task it waits for. */
typedef struct fl_stuck {
    fl_task **before;
    fl_task *at;
} fl_stuck;

static void note_before(fl_task *successor, void *user)
{
    const fl_stuck *stuck = user;
    if (fl_load_relaxed(&successor->pending) != 0) {
        stuck->before[successor->order] = stuck->at;
    }
}

/* A stuck task that is only behind a cycle may have no stuck successor, but each one waits for a
 * stuck predecessor, so the walk goes that way. Linear in tasks and edges. */
static fl_task *find_cycle(const filch_graph *graph, fl_task **before)
{
    fl_stuck stuck = {.before = before};
    fl_task *at = NULL;
    for (fl_slab *slab = graph->slabs; slab != NULL; slab = slab->next) {
        for (uint32_t i = 0; i < slab->used; ++i) {
            if (fl_load_relaxed(&slab->tasks[i].pending) != 0) {
                stuck.at = at = &slab->tasks[i];
                for_each_successor(at, note_before, &stuck);
            }
        }
    }
    /* After as many steps as there are tasks the walk has entered a cycle. */
    for (uint32_t i = 0; i < graph->task_count; ++i) {
        at = before[at->order];
    }
    return at;
}

/* Names the tasks of one cycle, as many as fit. before: room for a pointer a task. */
static filch_status report_cycle(filch_graph *graph, fl_task **before)
{
    const fl_task *first = find_cycle(graph, before), *at = first;
    char text[192] = "";
    size_t used = 0;
    uint32_t length = 0;
    bool is_cut = false;
    do {
        char name[48], piece[56];
        fl_task_describe(at, name, sizeof name);
        int n = snprintf(piece, sizeof piece, "%s%s", length == 0 ? "" : " <- ", name);
        is_cut = is_cut || used + (size_t)n >= sizeof text - sizeof " <- ...";
        if (!is_cut) {
            memcpy(text + used, piece, (size_t)n + 1);
            used += (size_t)n;
        }
        at = before[at->order];
        ++length;
    } while (at != first);
    graph->state = FL_GRAPH_CYCLIC;
    return fl_core_fail(graph->object.core, FILCH_CYCLE, "filch_graph_seal", graph->label,
                        "%u tasks wait for one another: %s%s <- (first)", length, text,
                        is_cut ? " <- ..." : "");
}

static void longest_below(fl_task *successor, void *user)
{
    float *longest = user;
    *longest = successor->rank > *longest ? successor->rank : *longest;
}

/* Upward rank: the longest path from the task to an exit, itself included. */
static void rank_tasks(filch_graph *graph, const fl_order *order)
{
    fl_scheduler *scheduler = graph->object.core->scheduler;
    float most = 0, per_unit = 1;
    const filch_codelet *codelet = NULL;
    for (uint32_t i = order->count; i-- > 0;) {
        fl_task *task = order->tasks[i];
        float longest = 0;
        if (task->successor_count != 0) {
            for_each_successor(task, longest_below, &longest);
        }
        if (task->codelet != codelet) {
            codelet = task->codelet;
            per_unit = (float)scheduler->estimate(scheduler, codelet, 1);
        }
        task->rank = longest + per_unit * task->work;
        most = task->rank > most ? task->rank : most;
    }
    for (uint32_t i = 0; i < order->count; ++i) {
        float share = most > 0 ? order->tasks[i]->rank / most : 0;
        /* Rounded up, less one: the highest level is no wider than the others. */
        float level = ceilf(share * FL_LEVELS) - 1;
        order->tasks[i]->level = (uint8_t)(level <= 0          ? 0
                                           : level < FL_LEVELS ? level
                                                               : FL_LEVELS - 1);
    }
}

/* The caller's priorities, spread over the levels from the least one used to the greatest. */
static void spread_priorities(const fl_order *order)
{
    float least = order->tasks[0]->rank, most = least;
    for (uint32_t i = 1; i < order->count; ++i) {
        float rank = order->tasks[i]->rank;
        least = rank < least ? rank : least;
        most = rank > most ? rank : most;
    }
    for (uint32_t i = 0; i < order->count; ++i) {
        float share = most > least ? (order->tasks[i]->rank - least) / (most - least) : 0;
        order->tasks[i]->level = (uint8_t)(share * (FL_LEVELS - 1) + 0.5f);
    }
}

/* The owner of the first tile that the task writes, under the static partition of its handle. */
static uint32_t owner_of(const filch_graph *graph, const fl_task *task)
{
    fl_scheduler *scheduler = graph->object.core->scheduler;
    for (uint32_t i = 0; i < task->access_count; ++i) {
        fl_task_access access = task->accesses[i];
        if (access.mode == FILCH_WRITE || access.mode == FILCH_READWRITE) {
            uint32_t tiles = graph->slots[access.slot]->tile_count;
            return tiles > 1 ? scheduler->owner(scheduler, access.tile, tiles) + 1 : 0;
        }
    }
    return 0;
}

static void place_tasks(filch_graph *graph, const fl_order *order)
{
    for (uint32_t i = 0; i < order->count; ++i) {
        fl_task *task = order->tasks[i];
        fl_store_relaxed(&task->pending, task->predecessors);
        if (task->home == 0) {
            task->home = owner_of(graph, task);
        }
    }
}

/* The last position that has the same owner as this one, by bisection. */
static uint32_t last_owned(fl_scheduler *scheduler, uint32_t position, uint32_t count)
{
    uint32_t owner = scheduler->owner(scheduler, position, count);
    uint32_t low = position, high = count - 1;
    while (low < high) {
        uint32_t middle = high - (high - low) / 2;
        if (scheduler->owner(scheduler, middle, count) == owner) {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    return low;
}

/* Roots by device, and within one by level, highest first: a counting sort on (device, level). */
static filch_status list_roots(filch_graph *graph, const fl_order *order)
{
    fl_core *core = graph->object.core;
    fl_scheduler *scheduler = core->scheduler;
    uint32_t devices = scheduler->device_count;
    size_t bins = (size_t)devices * FL_LEVELS;
    uint32_t roots = 0;
    for (uint32_t i = 0; i < order->count; ++i) {
        roots += order->tasks[i]->predecessors == 0;
    }
    uint32_t *starts = fl_alloc_zeroed(&core->memory, (bins + 1) * sizeof *starts);
    graph->roots = fl_alloc(&core->memory, (roots != 0 ? roots : 1) * sizeof *graph->roots);
    graph->root_begin = fl_alloc(&core->memory, (devices + 1) * sizeof *graph->root_begin);
    graph->root_count = roots;
    if (starts == NULL || graph->roots == NULL || graph->root_begin == NULL) {
        fl_free(&core->memory, starts, (bins + 1) * sizeof *starts);
        fl_free(&core->memory, graph->roots, (roots != 0 ? roots : 1) * sizeof *graph->roots);
        fl_free(&core->memory, graph->root_begin, (devices + 1) * sizeof *graph->root_begin);
        graph->roots = NULL;
        graph->root_begin = NULL;
        return FILCH_OUT_OF_MEMORY;
    }
    /* Roots that no handle or caller places are cut over the devices by their position. Owners
     * ascend with it, so each is asked for once. */
    uint32_t position = 0, owner = 0, owner_end = 0;
    for (uint32_t i = 0; i < order->count; ++i) {
        fl_task *task = order->tasks[i];
        if (task->predecessors == 0) {
            if (position == owner_end) {
                owner = scheduler->owner(scheduler, position, roots);
                owner_end = last_owned(scheduler, position, roots) + 1;
            }
            if (task->home == 0) {
                task->home = owner + 1;
            }
            ++position;
            ++starts[(size_t)(task->home - 1) * FL_LEVELS + (FL_LEVELS - 1 - task->level) + 1];
        }
    }
    for (size_t bin = 0; bin < bins; ++bin) {
        starts[bin + 1] += starts[bin];
    }
    for (uint32_t d = 0; d <= devices; ++d) {
        graph->root_begin[d] = starts[(size_t)d * FL_LEVELS];
    }
    for (uint32_t i = 0; i < order->count; ++i) {
        fl_task *task = order->tasks[i];
        if (task->predecessors == 0) {
            size_t bin =
                (size_t)(task->home - 1) * FL_LEVELS + (FL_LEVELS - 1 - (size_t)task->level);
            graph->roots[starts[bin]++] = task;
        }
    }
    fl_free(&core->memory, starts, (bins + 1) * sizeof *starts);
    return FILCH_OK;
}

filch_status fl_graph_seal_locked(filch_graph *graph)
{
    fl_core *core = graph->object.core;
    size_t bytes = ((size_t)graph->task_count + 1) * sizeof(fl_task *);
    fl_order order = {.tasks = fl_alloc(&core->memory, bytes)};
    filch_status status = order.tasks == NULL   ? FILCH_OUT_OF_MEMORY
                          : graph->has_reserved ? FILCH_OK
                                                : fl_job_reserve(core);
    if (status != FILCH_OK) {
        goto out;
    }
    graph->has_reserved = true;
    if (graph->has_edges_back) {
        collect_topological_order(graph, &order);
        if (order.count != graph->task_count) {
            status = report_cycle(graph, order.tasks); /* whose entries have served */
            fl_free(&core->memory, order.tasks, bytes);
            return status;
        }
    } else {
        collect_insertion_order(graph, &order);
    }
    if (order.count != 0) {
        if (graph->priorities == FILCH_PRIORITIES_RANK) {
            rank_tasks(graph, &order);
        } else {
            spread_priorities(&order);
        }
        place_tasks(graph, &order);
    }
    status = list_roots(graph, &order);
    if (status == FILCH_OK) {
        fl_infer_drop(graph);
        graph->state = FL_GRAPH_SEALED;
    }
out:
    fl_free(&core->memory, order.tasks, bytes);
    return status == FILCH_OK ? FILCH_OK
                              : fl_core_fail(core, status, "filch_graph_seal", graph->label,
                                             "no memory to seal %u tasks", graph->task_count);
}
