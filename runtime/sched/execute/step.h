/* SPDX-License-Identifier: Apache-2.0 */
/* The step of a worker: retires, fills the device, says what is next. */
#ifndef FL_SCHED_EXECUTE_STEP_H
#define FL_SCHED_EXECUTE_STEP_H

#include "sched/execute/current_job.h"
#include "sched/execute/divide.h"
#include "sched/execute/idle.h"
#include "sched/execute/reduce.h"
#include "sched/worker/worker.h"

/* Never blocks. Only the worker's driver calls it. */
fl_act fl_worker_step(fl_worker *worker);
/* Retires the item that was run, without picking another. */
void fl_worker_settle(fl_worker *worker);
/* Queues a hint to a ready task; the owner only. */
void fl_worker_push(fl_worker *worker, fl_task *task);
/* Whether the job, or a job it waits for, is the job of the calling task. */
bool fl_worker_is_inside(const fl_worker *worker, const filch_job *job);
/* A task's item is over: notes a failure, and the duration. */
void fl_worker_note(fl_worker *worker, const fl_item *item);
/* Fills *item with a task that the caller owns. */
void fl_worker_take(fl_worker *worker, fl_task *task, bool poisoned, fl_item *item);
/* Picks the next item. False: none. */
bool fl_worker_pick(fl_worker *worker, fl_item *item);
/* Moves the tasks of the inbox to the deques. */
void fl_worker_drain(fl_worker *worker);
void fl_worker_retire(fl_worker *worker, fl_item *item);

/* A picked item. True: it can be run, though it may have become another; false: it is dealt with.
 */
static inline bool fl_item_admit(fl_worker *w, fl_item *item)
{
    const fl_task *task = item->task;
    if (FL_LIKELY(task == NULL ||
                  !(task->reduces || task->combines || task->begins || task->has_items))) {
        return true;
    }
    return (!fl_task_has_partials(task) || fl_reduce_admit(w, item)) &&
           (!item->task->has_items || fl_divide_admit(w, item));
}

#endif
