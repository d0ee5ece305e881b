/* SPDX-License-Identifier: Apache-2.0 */
/* Kinds of tasks: a core's mean time of a task is of the present kind, by codelet. */
#ifndef FL_SCHED_MODEL_KIND_H
#define FL_SCHED_MODEL_KIND_H

#include "sched/worker/worker.h"

/* Turns the worker to a new kind of task. */
void fl_kind_turn(fl_worker *worker, const filch_codelet *codelet);

/* Publishes the kind and the bytes of a task just taken by the worker, for thieves. */
static inline void fl_kind_begin(fl_worker *worker, const fl_task *task)
{
    /* Relaxed, twice: estimates, written by the worker only. */
    uint32_t bytes = task->access_count != 0 ? task->bytes : 0;
    if (fl_load_relaxed(&worker->queues.cargo) != bytes) {
        fl_store_relaxed(&worker->queues.cargo, bytes);
    }
    if (FL_UNLIKELY(task->codelet != worker->theft.kind)) {
        fl_kind_turn(worker, task->codelet);
    }
}

#endif
