/* SPDX-License-Identifier: Apache-2.0 */
/* Ready tasks that every worker may take: ranked lists under one lock, and which task a worker may
 * take. Two lists are of this kind: the shared ready queue (execute/shared_queue.h), by rank, and
 * the tasks that a policy leaves to anyone, by arrival. */
#ifndef FL_SCHED_READY_SHARED_H
#define FL_SCHED_READY_SHARED_H

#include "graph/job/job.h"
#include "sched/worker/sched.h"
#include "sync/ranked.h"

/* Whether the worker may have the task; `user` is the caller's. */
typedef bool (*fl_may_fn)(const fl_worker *worker, const fl_task *task, const void *user);

/* Any task that the device can run. */
bool fl_may_run(const fl_worker *worker, const fl_task *task, const void *user);
/* A job whose ready tasks a wait takes. The job may be over, and its object in use for another job,
 * unless `sequence` is 0: then the caller keeps the job. */
typedef struct fl_sought {
    const filch_job *job;
    uint64_t sequence;
} fl_sought;

/* Whether it is the job sought; the job is in progress. */
static inline bool fl_is_sought(const fl_sought *sought, const filch_job *job)
{
    return job == sought->job && (sought->sequence == 0 || job->sequence == sought->sequence);
}

/* A task of the job `sought`, an fl_sought. */
bool fl_may_run_of(const fl_worker *worker, const fl_task *task, const void *sought);
/* A task that is not of the job waited for. Tasks with predecessors, ready since the jobs began,
 * qualify as the worker's own do. Roots of unrelated jobs do not: in deep waits each root might
 * wait in turn. */
bool fl_may_run_waiting(const fl_worker *worker, const fl_task *task, const void *user);

/* Finds the first task of the highest rank that the worker may have. Under the lock. */
bool fl_shared_find(const fl_ranked_lists *lists, const fl_worker *worker, fl_may_fn may,
                    const void *user, fl_ranked_spot *spot);

/* Tasks of a policy's for anyone, oldest first. */
void fl_common_put(fl_common *common, fl_task *task);
/* Takes the oldest task that the worker may have. Null: none. Where devices differ, the search may
 * read the whole list. */
fl_task *fl_common_take(fl_worker *worker, fl_may_fn may, const void *user);

#endif
