/* SPDX-License-Identifier: Apache-2.0 */
/* Sealing a closed graph: order (and cycles), upward ranks, levels, placement, roots. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "graph/build/capacity.h"
#include "graph/build/graph.h"
#include "graph/build/lifetime.h"
#include "graph/build/run_uses.h"
#include "graph/job/job.h"

/* Tasks in topological order: predecessors come first. */
typedef struct fl_order {
    const filch_graph *graph;
    fl_task **tasks; /* null: the order of adding */
    uint32_t count;
    uint32_t roots; /* number of tasks without predecessors */
} fl_order;

static inline fl_task *task_at(const fl_order *order, uint32_t i)
{
    return order->tasks != NULL
               ? order->tasks[i]
               : &order->graph->slab_table[i / FL_SLAB_TASKS]->tasks[i % FL_SLAB_TASKS];
}

static void release_in_order(fl_task *successor, void *user)
{
    fl_order *order = user;
    if (fl_sub_relaxed(&successor->pending, 1) == 1) { /* no second thread sees the graph yet */
        order->tasks[order->count++] = successor;
    }
}

/* Kahn's algorithm (Comm. ACM 5, 1962). Leaves pending > 0 exactly on and behind cycles. */
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
        fl_graph_each_successor(order->tasks[done], release_in_order, order);
    }
}

/* State of the search for a cycle. before: for a stuck task, by order, a stuck predecessor. */
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

/* Finds a task of a cycle. A stuck task behind a cycle may have no stuck successor, but every stuck
 * task waits for a stuck predecessor: the walk goes from a task to a predecessor. Linear in tasks
 * and edges. */
static fl_task *find_cycle(const filch_graph *graph, fl_task **before)
{
    fl_stuck stuck = {.before = before};
    fl_task *at = NULL;
    for (fl_slab *slab = graph->slabs; slab != NULL; slab = slab->next) {
        for (uint32_t i = 0; i < slab->used; ++i) {
            if (fl_load_relaxed(&slab->tasks[i].pending) != 0) {
                stuck.at = at = &slab->tasks[i];
                fl_graph_each_successor(at, note_before, &stuck);
            }
        }
    }
    /* After as many steps as there are tasks, the walk has entered a cycle. */
    for (uint32_t i = 0; i < graph->task_count; ++i) {
        at = before[at->order];
    }
    return at;
}

/* Names the tasks of a cycle, as many as fit. before: array with a pointer per task. */
static filch_status report_cycle(filch_graph *graph, const char *call, fl_task **before)
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
    return fl_core_fail(graph->object.core, FILCH_CYCLE, call, graph->label,
                        "%u tasks wait for one another: %s%s <- (first)", length, text,
                        is_cut ? " <- ..." : "");
}

static void longest_below(fl_task *successor, void *user)
{
    float *longest = user;
    *longest = successor->rank > *longest ? successor->rank : *longest;
}

/* Scale of levels: level = share of the way from least to most. */
typedef struct fl_scale {
    float least, most;
    double sum; /* sum of the tasks' own parts of the ranks */
    bool is_rank;
} fl_scale;

/* Computes upward ranks: the longest path from the task to an exit, the task included. */
static fl_scale rank_tasks(filch_graph *graph, fl_order *order)
{
    fl_scale scale = {.is_rank = true};
    uint32_t at = 0;
    for (uint32_t i = order->count; i-- > 0;) {
        fl_task *task = task_at(order, i);
        float longest = 0;
        if (task->successor_count != 0) {
            fl_graph_each_successor(task, longest_below, &longest);
        }
        float own = task->is_gate ? 0 : fl_rank_own(graph, task, &at);
        task->rank = longest + own;
        scale.sum += (double)own;
        scale.most = task->rank > scale.most ? task->rank : scale.most;
        order->roots += task->predecessors == 0;
    }
    return scale;
}

/* Finds the range of the caller's priorities, from the least used to the greatest. */
static fl_scale scan_priorities(fl_order *order)
{
    fl_scale scale = {.least = INFINITY, .most = -INFINITY};
    for (uint32_t i = 0; i < order->count; ++i) {
        const fl_task *task = task_at(order, i);
        if (!task->is_gate) {
            scale.least = task->rank < scale.least ? task->rank : scale.least;
            scale.most = task->rank > scale.most ? task->rank : scale.most;
        }
        order->roots += task->predecessors == 0;
    }
    return scale;
}

static uint8_t level_of(const fl_scale *scale, float rank)
{
    float share =
        scale->most > scale->least ? (rank - scale->least) / (scale->most - scale->least) : 0;
    if (!scale->is_rank) {
        return (uint8_t)(share * (FL_LEVELS - 1) + 0.5f);
    }
    /* Round up and subtract one: the highest level is no wider than the others. */
    float level = ceilf(share * FL_LEVELS) - 1;
    return (uint8_t)(level <= 0 ? 0 : level < FL_LEVELS ? level : FL_LEVELS - 1);
}

/* Returns the devices that may own a task. A large task's set is written to room, an array with a
 * bit per device. Null: a gate, with every device allowed. */
static const uint64_t *devices_of(const filch_graph *graph, const fl_task *task, uint64_t *room)
{
    if (FL_UNLIKELY(task->is_large)) {
        (void)fl_capacity_is_large(graph->object.core, task, room);
        return room;
    }
    return task->codelet != NULL ? task->codelet->runs_on : NULL;
}

/* Returns the owner of the first tile that the task writes, + 1. The handle's tiles are divided by
 * the static partition over the devices able to run the task. 0: no owner. */
static uint32_t owner_of(const filch_graph *graph, const fl_task *task)
{
    uint64_t room[FL_DEVICE_LIMIT / 64];
    fl_scheduler *scheduler = graph->object.core->scheduler;
    for (uint32_t i = 0; i < task->access_count; ++i) {
        fl_task_access access = task->accesses[i];
        if (access.mode == FILCH_WRITE || access.mode == FILCH_READWRITE ||
            access.mode == FILCH_COMMUTE) {
            uint32_t tiles = graph->slots[access.slot]->tile_count;
            return tiles > 1 ? scheduler->owner(scheduler, devices_of(graph, task, room),
                                                fl_task_tiles(task, i).first, tiles) +
                                   1
                             : 0;
        }
    }
    return 0;
}

/* Finds by bisection the last position with the same owner as the given position. */
static uint32_t last_owned(fl_scheduler *scheduler, uint32_t position, uint32_t count)
{
    uint32_t owner = scheduler->owner(scheduler, NULL, position, count);
    uint32_t low = position, high = count - 1;
    while (low < high) {
        uint32_t middle = high - (high - low) / 2;
        if (scheduler->owner(scheduler, NULL, middle, count) == owner) {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    return low;
}

/* State for finding the owner of the root at a position. Positions are queried in ascending order,
 * and every owner is computed once. If the owner cannot run the root, a device able to run it owns
 * the position. */
typedef struct fl_seal_cut {
    uint32_t position, owner, end;
} fl_seal_cut;

static uint32_t next_owner(fl_scheduler *scheduler, const uint64_t *devices, fl_seal_cut *cut,
                           uint32_t roots)
{
    if (cut->position == cut->end) {
        cut->owner = scheduler->owner(scheduler, NULL, cut->position, roots);
        cut->end = last_owned(scheduler, cut->position, roots) + 1;
    }
    uint32_t position = cut->position++;
    return devices == NULL || fl_devices_have(devices, cut->owner)
               ? cut->owner
               : scheduler->owner(scheduler, devices, position, roots);
}

/* Groups of a device's roots, in order. FOR_SOME: large roots, and roots of codelets that only some
 * devices of the codelet's kinds run. FOR_KIND: roots of codelets that every device of the kinds
 * runs. FOR_ALL: roots that every device runs. The device takes from the front. A thief cuts from
 * the back, and only roots that the thief can surely run (fl_range_is_open). Hence the worker that
 * took a root can run the root. Within a group, roots are sorted by level, highest first. */
enum { FOR_SOME, FOR_KIND, FOR_ALL, ROOT_GROUPS };
#define ROOT_BINS ((size_t)ROOT_GROUPS * FL_LEVELS)

static size_t bin_of(const fl_task *task, uint32_t devices)
{
    const filch_codelet *codelet = task->codelet;
    size_t group = codelet == NULL /* a gate */                   ? FOR_ALL
                   : task->is_large                               ? FOR_SOME
                   : codelet->device_count == devices             ? FOR_ALL
                   : codelet->device_count == codelet->kind_count ? FOR_KIND
                                                                  : FOR_SOME;
    return (task->home - 1) * ROOT_BINS + group * FL_LEVELS + (FL_LEVELS - 1 - (size_t)task->level);
}

/* Gives every task its level and its preferred device, and counts the roots in bins. Roots without
 * a device from a handle or the caller are divided over the devices by position. */
static void settle_tasks(const fl_order *order, const fl_scale *scale, uint32_t *bins)
{
    fl_scheduler *scheduler = order->graph->object.core->scheduler;
    fl_seal_cut cut = {0};
    for (uint32_t i = 0; i < order->count; ++i) {
        fl_task *task = task_at(order, i);
        if (!task->is_gate || scale->is_rank) {
            task->level = level_of(scale, task->rank);
        }
        /* Relaxed: no second thread sees the graph yet. */
        fl_store_relaxed(&task->pending, task->predecessors);
        if (task->home == 0 && task->access_count != 0 && !task->is_gate) {
            task->home = (uint16_t)owner_of(order->graph, task);
        }
        if (task->predecessors == 0) {
            uint64_t room[FL_DEVICE_LIMIT / 64];
            uint32_t owner =
                next_owner(scheduler, devices_of(order->graph, task, room), &cut, order->roots);
            if (task->home == 0) {
                task->home = (uint16_t)(owner + 1);
            }
            ++bins[bin_of(task, scheduler->device_count) + 1];
        }
    }
}

/* Sorts roots by bin, by counting. */
static void list_roots(filch_graph *graph, const fl_order *order, uint32_t *bins)
{
    uint32_t devices = graph->object.core->scheduler->device_count;
    for (size_t bin = 0; bin < devices * ROOT_BINS; ++bin) {
        bins[bin + 1] += bins[bin];
    }
    graph->root_kind = graph->root_begin + devices + 1;
    graph->root_free = graph->root_kind + devices;
    for (uint32_t d = 0; d < devices; ++d) {
        graph->root_begin[d] = bins[d * ROOT_BINS];
        graph->root_kind[d] = bins[d * ROOT_BINS + FOR_KIND * FL_LEVELS];
        graph->root_free[d] = bins[d * ROOT_BINS + FOR_ALL * FL_LEVELS];
    }
    graph->root_begin[devices] = order->roots;
    for (uint32_t i = 0; i < order->count; ++i) {
        fl_task *task = task_at(order, i);
        if (task->predecessors == 0) {
            graph->roots[bins[bin_of(task, devices)]++] = task;
            graph->has_dear_roots =
                graph->has_dear_roots || (!task->is_placed && task->bytes > FL_TASK_CHEAP_BYTES);
        }
    }
}

static void drop_roots(filch_graph *graph)
{
    const fl_memory *memory = &graph->object.core->memory;
    size_t room = graph->root_count != 0 ? graph->root_count : 1;
    size_t positions = FL_ROOT_POSITIONS(graph->object.core->scheduler->device_count);
    fl_free(memory, graph->roots, room * sizeof *graph->roots);
    fl_free(memory, graph->root_begin, positions * sizeof *graph->root_begin);
    graph->roots = NULL;
    graph->root_begin = NULL;
}

/* Computes levels, preferred devices and roots. */
static filch_status arrange(filch_graph *graph, fl_order *order)
{
    const fl_memory *memory = &graph->object.core->memory;
    uint32_t devices = graph->object.core->scheduler->device_count;
    fl_scale scale = graph->priorities == FILCH_PRIORITIES_RANK ? rank_tasks(graph, order)
                                                                : scan_priorities(order);
    size_t bin_bytes = (devices * ROOT_BINS + 1) * sizeof(uint32_t);
    size_t begin_bytes = FL_ROOT_POSITIONS(devices) * sizeof *graph->root_begin;
    size_t room = order->roots != 0 ? order->roots : 1;
    uint32_t *bins = fl_alloc_zeroed(memory, bin_bytes);
    graph->roots = fl_alloc(memory, room * sizeof *graph->roots);
    graph->root_begin = fl_alloc(memory, begin_bytes);
    graph->root_count = order->roots;
    graph->rank_most = scale.is_rank ? scale.most : 0;
    graph->rank_sum = scale.sum;
    filch_status status = FILCH_OK;
    if (bins != NULL && graph->roots != NULL && graph->root_begin != NULL) {
        settle_tasks(order, &scale, bins);
        list_roots(graph, order, bins);
    } else {
        drop_roots(graph);
        status = FILCH_OUT_OF_MEMORY;
    }
    fl_free(memory, bins, bin_bytes);
    return status;
}

/* Sorts a group of a device's roots by level, after the levels have changed. The order within a
 * level stays. Needs no memory: the roots' links are free while the graph does not run. */
static void sort_roots(fl_task **roots, uint32_t count)
{
    fl_link *first[FL_LEVELS] = {NULL}, *last[FL_LEVELS] = {NULL};
    for (uint32_t i = 0; i < count; ++i) {
        fl_link *link = &roots[i]->link;
        uint32_t level = roots[i]->level;
        link->next = NULL;
        if (last[level] != NULL) {
            last[level]->next = link;
        } else {
            first[level] = link;
        }
        last[level] = link;
    }
    for (uint32_t level = FL_LEVELS; level-- > 0;) {
        for (fl_link *link = first[level]; link != NULL; link = link->next) {
            *roots++ = fl_task_of_link(link);
        }
    }
}

bool fl_graph_ranks_are_old(const filch_graph *graph)
{
    /* A single device runs every ready task sooner or later. With edges back, the order of adding
     * is unfit for ranking. */
    return graph->priorities == FILCH_PRIORITIES_RANK && !graph->has_edges_back &&
           graph->object.core->scheduler->device_count != 1 && fl_rank_is_old(graph);
}

void fl_graph_rank_anew(filch_graph *graph)
{
    uint32_t devices = graph->object.core->scheduler->device_count;
    fl_order order = {.graph = graph, .count = graph->task_count};
    if (!fl_graph_ranks_are_old(graph)) {
        return;
    }
    fl_rank_renew(graph);
    fl_scale scale = rank_tasks(graph, &order);
    for (uint32_t i = 0; i < order.count; ++i) {
        fl_task *task = task_at(&order, i);
        task->level = level_of(&scale, task->rank);
    }
    for (uint32_t d = 0; d < devices; ++d) {
        uint32_t begin = graph->root_begin[d], kind = graph->root_kind[d];
        uint32_t open = graph->root_free[d], end = graph->root_begin[d + 1];
        sort_roots(graph->roots + begin, kind - begin);
        sort_roots(graph->roots + kind, open - kind);
        sort_roots(graph->roots + open, end - open);
    }
    graph->rank_most = scale.most;
    graph->rank_sum = scale.sum;
}

filch_status fl_graph_seal_locked(filch_graph *graph, const char *call)
{
    fl_core *core = graph->object.core;
    filch_status status = graph->has_reserved ? FILCH_OK : fl_job_reserve(core);
    graph->has_reserved = status == FILCH_OK;
    status = status == FILCH_OK ? fl_splits_end(graph) : status;    /* may add tasks */
    status = status == FILCH_OK ? fl_groups_end(graph) : status;    /* may add tasks */
    status = status == FILCH_OK ? fl_lifetimes_end(graph) : status; /* may add tasks */
    size_t bytes = ((size_t)graph->task_count + 1) * sizeof(fl_task *);
    fl_order order = {.graph = graph, .count = graph->task_count};
    if (status == FILCH_OK && graph->has_edges_back) {
        order.tasks = fl_alloc(&core->memory, bytes);
        status = order.tasks != NULL ? FILCH_OK : FILCH_OUT_OF_MEMORY;
    }
    if (status == FILCH_OK && order.tasks != NULL) {
        collect_topological_order(graph, &order);
        if (order.count != graph->task_count) {
            status = report_cycle(graph, call, order.tasks); /* reuses the entries of the order */
            fl_free(&core->memory, order.tasks, bytes);
            return status;
        }
    }
    if (status == FILCH_OK) {
        status = fl_final_reserve(graph) ? arrange(graph, &order) : FILCH_OUT_OF_MEMORY;
    }
    if (status == FILCH_OK && !fl_run_uses_reserve(graph)) {
        drop_roots(graph); /* tasks may be added before the next try to seal */
        status = FILCH_OUT_OF_MEMORY;
    }
    if (status == FILCH_OK && core->scheduler->looks_ahead &&
        !(fl_graph_list_predecessors(graph) &&
          core->scheduler->graph_seal(core->scheduler, graph))) {
        fl_graph_drop_predecessors(graph);
        drop_roots(graph);
        status = FILCH_OUT_OF_MEMORY;
    }
    fl_free(&core->memory, order.tasks, bytes);
    if (status != FILCH_OK) {
        return fl_core_fail(core, status, call, graph->label, "no memory to seal %u tasks",
                            graph->task_count);
    }
    fl_final_mark(graph);
    fl_groups_seal(graph);
    fl_infer_drop(graph);
    graph->state = FL_GRAPH_SEALED;
    return FILCH_OK;
}
