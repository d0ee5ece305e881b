/* SPDX-License-Identifier: Apache-2.0 */
/* Reductions. Tasks add to a partial result of their device. A combining task, added by filch
 * behind the reducing tasks, combines the partial results into the tile.
 *
 * Where the handle asks for an order (FILCH_DATA_ORDERED), a partial result belongs to a task of
 * the group instead of a device: the task's number in the group, modulo FL_ORDERED_PARTS. Tasks
 * with the same partial result run one after the other, in the order of their numbers, on any
 * device. The rounding therefore depends on the graph alone.
 *
 * A partial result is a separate handle with one tile and a buffer in the host's memory. The buffer
 * stays untouched unless the contents are written back. A partial result gets device memory, moves,
 * and is ordered on its device's lanes like the tile of a normal handle. The worker of the first
 * reducing task makes the partial result. The partial result exists until the graph is freed.
 *
 * Ownership. The list of partial results is fixed when the first task reducing to the tile is
 * added. An entry belongs to the worker of its device until the combining task is ready; in an
 * ordered reduction, to the worker of each of its tasks in turn, of which the next has the last as
 * a predecessor. The combining task has the reducing tasks as predecessors; its runner therefore
 * sees their effects. The next reducing task waits for the combining task. */
#ifndef FL_GRAPH_BUILD_REDUCTION_H
#define FL_GRAPH_BUILD_REDUCTION_H

#include "graph/task/task.h"

typedef enum fl_partial_state {
    FL_PARTIAL_FRESH, /* nothing was added since the last combination */
    FL_PARTIAL_BEGUN, /* being made neutral */
    FL_PARTIAL_READY, /* may be added to */
    FL_PARTIAL_FAILED /* cannot be made neutral */
} fl_partial_state;

/* Partial results of an ordered reduction: enough for the tasks that run at once on large nodes. */
#define FL_ORDERED_PARTS 64u

/* A partial result, of a device or of some tasks of an ordered reduction. */
typedef struct fl_partial {
    fl_task begin; /* makes the partial result neutral; in no graph's count, and in no deque */
    struct {
        fl_task_access access;
        fl_extra extra;
    } begins; /* access and extra of the task begin */
    filch_data *data;
    char *buffer;
    size_t bytes;
    fl_partial_state state;
    /* Synchronous devices: the task that runs on the partial result, possibly while the task waits
     * for nested work. */
    fl_task *holder;
    fl_link *waiting; /* claimed tasks waiting for the partial result */
} fl_partial;

/* Reduction to a tile of a graph. Every group of tasks reducing to the tile shares the object:
 * groups are separated by accesses of a different mode and never meet. */
typedef struct fl_reduction {
    struct fl_reduction *next; /* next in graph->reductions */
    filch_data *data;
    const filch_codelet *init, *combine;
    uint32_t slot, tile;
    int32_t priority; /* priority of the task added last; guarded by graph->lock */
    bool is_ordered;
    /* Ordered reductions: the tasks of the group so far, and the last with each partial result.
     * Guarded by graph->lock. */
    uint32_t members;
    struct fl_pred *last;
    uint32_t parts;   /* partial results at most: one a device, or FL_ORDERED_PARTS */
    uint32_t current; /* the next partial result to combine; the combining task's */
    fl_partial *at[]; /* null: nobody ever added to the partial result */
} fl_reduction;

/* Makes a reduction. The caller holds graph->lock. Null: no memory. */
fl_reduction *fl_reduction_new(struct filch_graph *graph, uint32_t slot, uint32_t tile);
/* Returns a partial result, made on first use. Only the worker that owns the entry calls the
 * function. Null: no memory. */
fl_partial *fl_reduction_at(fl_reduction *reduction, struct filch_graph *graph, uint32_t part);
/* Returns the partial result used by an access of a task running on the device. */
uint32_t fl_reduction_part(const fl_task *task, uint32_t access, uint32_t device);
/* Returns the first partial result from `from` on with additions since the last combination, or
 * `parts`. */
uint32_t fl_reduction_next(const fl_reduction *reduction, uint32_t from);
/* Resets every partial result to FL_PARTIAL_FRESH, after the combination or when the combination
 * will never run. */
void fl_reduction_reset(fl_reduction *reduction);
/* Numbers the tasks of the next group from 0. The caller holds graph->lock. */
void fl_reduction_restart(fl_reduction *reduction);
/* Frees a graph's partial results. */
void fl_reductions_fini(struct filch_graph *graph);

/* Returns the handle that replaces the tile in an access of a task running on the device; null: not
 * a reducing access. */
filch_data *fl_reduction_stand_in(const fl_task *task, uint32_t access, uint32_t device);
/* Returns the mode of the task's accesses to partial results. */
uint32_t fl_reduction_mode(const fl_task *task);
/* Replaces the views of reducing accesses by views of the partial results as separate handles. */
void fl_reduction_views(const fl_task *task, uint32_t device, filch_view *views);
/* Gives the views of reducing accesses the row and column of the tile in the reduced handle, as the
 * task expects. */
void fl_reduction_place_views(const fl_task *task, filch_view *views);

#endif
