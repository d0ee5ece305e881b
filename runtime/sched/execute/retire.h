/* SPDX-License-Identifier: Apache-2.0 */
/* The end of an item: counts it, learns from it, and releases the task's successors. */
#ifndef FL_SCHED_EXECUTE_RETIRE_H
#define FL_SCHED_EXECUTE_RETIRE_H

#include "sched/worker/pending.h"
#include "sched/worker/worker.h"

void fl_worker_retire(fl_worker *worker, fl_item *item);
/* A task's item is over: notes a failure, and the duration. */
void fl_worker_note(fl_worker *worker, const fl_item *item);
/* Counts the function of a task that becomes pending as run on the device, and leaves the job. */
void fl_worker_let_go(fl_worker *worker, const fl_item *item);
/* Retires a pending task, whose function ran on any device. */
void fl_worker_retire_pending(fl_worker *worker, const fl_pending_task *pending);

#endif
