/* SPDX-License-Identifier: Apache-2.0 */
/* Devices without capacity for a task or a grain that was given to them. */
#ifndef FL_SCHED_EXECUTE_FULL_H
#define FL_SCHED_EXECUTE_FULL_H

#include "sched/worker/worker.h"

/* Gives a ready task that the caller has claimed to another device with capacity for it. False:
 * none. */
bool fl_full_move(fl_worker *worker, fl_task *task);
/* Tasks that other devices gave to this one are picked next. */
void fl_full_gather(fl_worker *worker);
/* Takes over tasks given to workers that nobody can drive: they wait in tasks further down the
 * stack of the thread that drives this worker. False: none. */
bool fl_full_relieve(fl_worker *worker);
/* Whether a second device may still run grains of the batch: it answers, and had capacity for its
 * grains. False under FILCH_POLICY_STATIC. */
bool fl_full_others(const fl_worker *worker, const filch_job *job);
/* The device has no capacity for a grain of the chunk that the caller took last from its range:
 * leaves the chunk and the rest of the range to other devices. False: none can take them. */
bool fl_full_leave(fl_worker *worker, const fl_item *item);

/* Whether the worker left its range of the job to others, and one of them can take it. */
static inline bool fl_full_is_out(const fl_worker *w, const filch_job *job)
{
    return FL_UNLIKELY(fl_load_relaxed(&fl_job_share(job, w->index)->is_out) != 0) &&
           fl_full_others(w, job);
}

#endif
