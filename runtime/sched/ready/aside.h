/* SPDX-License-Identifier: Apache-2.0 */
/* Ready tasks that workers deep in nested waits have set aside (execute/nested_wait.h), claimed, by
 * job, under one lock. Every worker can find them: a wait takes the tasks of the jobs that it
 * needs, and a worker that is in no deep wait takes any task. Without deep waits nobody takes the
 * lock. */
#ifndef FL_SCHED_READY_ASIDE_H
#define FL_SCHED_READY_ASIDE_H

#include "sched/ready/shared.h"

/* Sets a task aside that the caller has claimed. Wakes nobody. */
void fl_aside_put(fl_sched *sched, fl_task *task, bool poisoned);
/* Takes a claimed task that `may` accepts; task->is_poisoned says whether to skip it. Null: none.
 */
fl_task *fl_aside_take(const fl_worker *worker, fl_may_fn may, const void *user);
/* Takes a task of the job for a wait. */
fl_task *fl_aside_take_of(const fl_worker *worker, const fl_sought *sought);

#endif
