/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of host functions. */
#ifndef FL_SCHED_EXECUTE_HOST_CALL_H
#define FL_SCHED_EXECUTE_HOST_CALL_H

#include "sched/worker/worker.h"

/* Runs worker->now.item on the calling thread. */
void fl_worker_run(fl_worker *worker);
/* The item whose host function the calling thread runs for the worker; null: none. */
const fl_item *fl_host_call_item(const fl_worker *worker);
/* The reason that the item's host function gave for its failure, or null. */
const char *fl_host_call_text(const fl_worker *worker, const fl_item *item);
/* Duration of an item on a device that only pretends to run it, ns. */
double fl_item_cost(const fl_worker *worker, const fl_item *item);

#endif
