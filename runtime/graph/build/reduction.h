/* SPDX-License-Identifier: Apache-2.0 */
/* Reductions: tasks add to a partial result of their device, and a task of filch's own, which comes
 * after all of them, combines the partial results into the tile.
 *
 * A partial result is a handle of its own, of one tile, with a buffer in the host's memory that
 * nobody touches unless the contents come there. So it gets device memory, moves and is ordered on
 * the lanes of its device as any other handle's tile. It is made by the worker of its device when
 * that first needs it, and kept until the graph goes.
 *
 * Who touches what. The list of partial results is fixed when the first task that reduces to the
 * tile is added. Each entry is its device's worker's alone (sched/execute/reduce.c), until the
 * combining task is ready; that has the tasks that reduce as its predecessors, so its runner sees
 * all they did, and whoever reduces next waits for it. */
#ifndef FL_GRAPH_BUILD_REDUCTION_H
#define FL_GRAPH_BUILD_REDUCTION_H

#include "graph/task/task.h"

typedef enum fl_partial_state {
    FL_PARTIAL_FRESH, /* nothing was added since it was last combined */
    FL_PARTIAL_BEGUN, /* being made neutral */
    FL_PARTIAL_READY, /* may be added to */
    FL_PARTIAL_FAILED /* cannot be made neutral */
} fl_partial_state;

/* The partial result of one device. */
typedef struct fl_partial {
    fl_task begin; /* makes it neutral; in no graph's count, and in no deque */
    struct {
        fl_task_access access;
        fl_extra extra;
    } begins; /* what that task accesses */
    filch_data *data;
    char *buffer;
    size_t bytes;
    fl_partial_state state;
    fl_task *holder;  /* synchronous devices: the task that runs on it, maybe while it waits */
    fl_link *waiting; /* claimed tasks that cannot have it now */
} fl_partial;

/* What is reduced to one tile of a graph. Groups of tasks that do, with other accesses to the tile
 * between them, never meet, and share it. */
typedef struct fl_reduction {
    struct fl_reduction *next; /* in graph->reductions */
    filch_data *data;
    const filch_codelet *init, *combine;
    uint32_t slot, tile;
    int32_t priority; /* of the task that was last added; under graph->lock */
    uint32_t devices;
    uint32_t current; /* the combining task's: which device's comes next */
    fl_partial *at[]; /* one a device; null: it never reduced */
} fl_reduction;

/* Under graph->lock. Null: no memory. */
fl_reduction *fl_reduction_new(struct filch_graph *graph, uint32_t slot, uint32_t tile);
/* The partial result of a device, for its worker alone; null: no memory. */
fl_partial *fl_reduction_at(fl_reduction *reduction, struct filch_graph *graph, uint32_t device);
/* The first device from `from` on that added to the tile since it was last combined, or the number
 * of devices. */
uint32_t fl_reduction_next(const fl_reduction *reduction, uint32_t from);
/* All is combined, or never will be. */
void fl_reduction_reset(fl_reduction *reduction);
/* Frees a graph's partial results. */
void fl_reductions_fini(struct filch_graph *graph);

/* The handle that stands in for the tile in an access of a task that runs on the device; null where
 * none does. */
filch_data *fl_reduction_stand_in(const fl_task *task, uint32_t access, uint32_t device);
/* How the task uses that. */
uint32_t fl_reduction_mode(const fl_task *task);
/* Makes the views of such accesses those of the partial results, as handles of their own … */
void fl_reduction_views(const fl_task *task, uint32_t device, filch_view *views);
/* … and then, for the task, parts of the handle that it reduces to. */
void fl_reduction_place_views(const fl_task *task, filch_view *views);

#endif
