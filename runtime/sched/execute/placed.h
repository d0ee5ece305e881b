/* SPDX-License-Identifier: Apache-2.0 */
/* Tasks placed by a policy: carries out the answers of decide/policy.h, and takes tasks left to any
 * worker. */
#ifndef FL_SCHED_EXECUTE_PLACED_H
#define FL_SCHED_EXECUTE_PLACED_H

#include "sched/ready/shared.h"
#include "sched/worker/sched.h"

typedef enum fl_placed {
    FL_PLACED_AUTO, /* the default rules apply */
    FL_PLACED_HERE, /* the task stays with the asking worker */
    FL_PLACED_AWAY  /* the task was sent elsewhere, and may be over */
} fl_placed;

/* Places a ready task of the caller, for a worker or a thread of the host (null). */
fl_placed fl_placed_give(fl_sched *sched, fl_worker *worker, fl_task *task);
/* Places the roots of a job that is visible by other means; the job may be over on return. */
void fl_placed_give_roots(fl_sched *sched, const filch_job *job);
/* Takes a task from the common list. */
bool fl_placed_pick(fl_worker *worker, fl_item *item);
/* Takes a task for a nested wait: a task of the job, from the common list or a second worker's
 * inbox. If the job has no such task and is_strict is false, takes a different task permitted in a
 * wait. */
bool fl_placed_pick_of(fl_worker *worker, const fl_sought *sought, bool is_strict, fl_item *item);
/* Takes a task out of the common list that no device can run any more, for the worker of a failed
 * device; `may` tests a task. null: no such task. */
fl_task *fl_placed_drop(fl_worker *worker, fl_may_fn may);
/* Notes an idle worker: the worker had not been given too much work. */
void fl_placed_note_idle(fl_worker *worker);

#endif
