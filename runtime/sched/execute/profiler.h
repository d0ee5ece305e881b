/* SPDX-License-Identifier: Apache-2.0 */
/* Ranges of work items for an attached profiler (observe/nvtx.h): around each call of a host
 * function and each launch, on the worker's thread. Without a profiler host functions are called
 * directly, and launches test a pointer. */
#ifndef FL_SCHED_EXECUTE_PROFILER_H
#define FL_SCHED_EXECUTE_PROFILER_H

#include "sched/worker/sched.h"

/* Puts a function that begins and ends the range before a new codelet's host function, where a
 * profiler is attached. */
void fl_profiler_codelet_init(filch_codelet *codelet);
/* Launches an item within its range, which has the name of the task, or of a graph launched at
 * once. A profiler is attached. As the backend's queue->launch. */
filch_status fl_profiler_launch(fl_worker *worker, const fl_item *item, fl_launch *launch);

/* Launches an item: as the backend's queue->launch, with errors to worker->stall.error. */
static inline filch_status fl_launch_on(fl_worker *w, const fl_item *item, fl_launch *launch)
{
    if (FL_UNLIKELY(w->sched->core->nvtx != NULL)) {
        return fl_profiler_launch(w, item, launch);
    }
    return w->device->backend->queue->launch(w->device, launch, item->start, &w->stall.error);
}

#endif
