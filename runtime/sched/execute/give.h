/* SPDX-License-Identifier: Apache-2.0 */
/* Gives ready tasks to other devices, as decided, and tasks made ready outside of a worker to some
 * device. True: the task was given away, and the caller does not touch the task any more. */
#ifndef FL_SCHED_EXECUTE_GIVE_H
#define FL_SCHED_EXECUTE_GIVE_H

#include "sched/worker/worker.h"

/* Gives a ready task away where devices differ, or where a policy places tasks. */
bool fl_give_ready(fl_worker *worker, fl_task *task);
/* Gives an unclaimed task of a slow device to a better device. */
bool fl_give_slow(fl_worker *worker, fl_task *task);
/* Gives a claimed task, already picked, of a slow device (fl_slow_is_on) to a better device. */
bool fl_give_picked(fl_worker *worker, const fl_item *item);
/* Cores of one memory: gives a ready task to the core that has the task's data. */
bool fl_give_to_owner(fl_worker *worker, fl_task *task);
/* Puts a ready task where a device that can run it will find it; any thread. */
void fl_sched_route(fl_sched *sched, fl_task *task);
/* Function of fl_scheduler: queues a ready task of the caller's, a worker's or another thread's. */
void fl_sched_task_ready(fl_scheduler *self, fl_task *task);

#endif
