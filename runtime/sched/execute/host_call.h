/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of host functions. */
#ifndef FL_SCHED_EXECUTE_HOST_CALL_H
#define FL_SCHED_EXECUTE_HOST_CALL_H

#include "sched/worker/worker.h"

/* Runs worker->now.item on the calling thread. */
void fl_worker_run(fl_worker *worker);
/* Duration of an item on a device that only pretends to run it, ns. */
double fl_item_cost(const fl_worker *worker, const fl_item *item);

#endif
