/* SPDX-License-Identifier: Apache-2.0 */
/* The job that a worker is at: its retired items are counted in the worker, and its time counts as
 * busy. */
#ifndef FL_SCHED_ACCOUNT_CURRENT_JOB_H
#define FL_SCHED_ACCOUNT_CURRENT_JOB_H

#include "sched/worker/worker.h"

/* Counts the retired items of the current job off the job, and leaves the job. */
void fl_worker_flush(fl_worker *worker);
/* The job becomes the current job, with a graph or null. */
void fl_worker_switch(fl_worker *worker, filch_job *job, const filch_graph *graph);
/* The worker is at a chunk of the job from now on. */
void fl_worker_turn(fl_worker *worker, filch_job *job);
/* Whether the job, or a job it waits for, is the job of the calling task. */
bool fl_worker_is_inside(const fl_worker *worker, const filch_job *job);
/* The item that has waited for nested work since `since` goes on. */
void fl_worker_resume(fl_worker *worker, uint64_t since);

/* The worker is at a task from now on. */
static inline void fl_worker_enter(fl_worker *w, const fl_task *task)
{
    if (FL_UNLIKELY(w->now.graph != task->graph)) {
        fl_worker_switch(w, task->graph->job, task->graph);
    }
}

#endif
