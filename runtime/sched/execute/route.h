/* SPDX-License-Identifier: Apache-2.0 */
/* Ready tasks without a worker: which worker's inbox takes the task. */
#ifndef FL_SCHED_EXECUTE_ROUTE_H
#define FL_SCHED_EXECUTE_ROUTE_H

#include "sched/worker/sched.h"

/* Function of fl_scheduler: queues a ready task of the caller's, a worker's or another thread's. */
void fl_sched_task_ready(fl_scheduler *self, fl_task *task);

#endif
