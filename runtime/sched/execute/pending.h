/* SPDX-License-Identifier: Apache-2.0 */
/* Pending tasks: a worker lets a task go whose function returned FILCH_PENDING, and the next worker
 * to step retires the task once its end is given. */
#ifndef FL_SCHED_EXECUTE_PENDING_H
#define FL_SCHED_EXECUTE_PENDING_H

#include "sched/worker/pending.h"
#include "sched/worker/sched.h"
#include "sched/worker/worker.h"

filch_status fl_pendings_init(fl_sched *sched);
/* Waits for threads that are about to leave filch_pending_end. No job runs. */
void fl_pendings_quiesce(fl_sched *sched);
void fl_pendings_fini(fl_sched *sched);
/* Function of fl_scheduler: prepares a new codelet. Puts filch's own function before the host
 * function of a codelet whose tasks may pend, and the profiler's before that. */
void fl_pending_codelet_init(fl_scheduler *self, filch_codelet *codelet);
/* Writes to text which task is pending; false: none is. Any thread. */
bool fl_pending_describe(fl_sched *sched, char *text, size_t bytes);

/* Lets the item of the call that returned last go: the item's function returned FILCH_PENDING. */
void fl_pending_let_go(fl_worker *worker, const fl_item *item, fl_pending_task *pending);
/* Retires the tasks whose ends were given. The worker holds no item that has run. */
void fl_pending_retire_ended(fl_worker *worker);

/* Whether the end of a task was given that some worker is to retire. Tested in every step. */
static inline bool fl_pending_has_ended(const fl_worker *w)
{
    return !fl_inbox_is_empty(&w->sched->pendings.ended);
}

#endif
