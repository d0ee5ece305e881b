/* SPDX-License-Identifier: Apache-2.0 */
/* Reductions: tasks that add to partial results, and tasks that combine them. */
#ifndef FL_SCHED_EXECUTE_REDUCE_H
#define FL_SCHED_EXECUTE_REDUCE_H

#include "sched/worker/worker.h"

/* A picked task that reduces or combines. True: the item can be run, though it may have become
 * another; false: it is dealt with. */
bool fl_reduce_admit(fl_worker *worker, fl_item *item);
/* The item of a task that reduces or combines is over. True: the task is not over. */
bool fl_reduce_retire(fl_worker *worker, const fl_item *item);

#endif
