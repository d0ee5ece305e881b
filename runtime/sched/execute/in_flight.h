/* SPDX-License-Identifier: Apache-2.0 */
/* The step of a worker whose device computes by itself, and its items in flight. */
#ifndef FL_SCHED_EXECUTE_IN_FLIGHT_H
#define FL_SCHED_EXECUTE_IN_FLIGHT_H

#include "sched/worker/worker.h"

/* As fl_worker_step. */
fl_act fl_in_flight_step(fl_worker *worker);
/* The step while the device is offline. */
fl_act fl_in_flight_rest(fl_worker *worker);
/* The item runs, but its results are no good: it retires as failed. */
void fl_in_flight_fail(fl_worker *worker, fl_in_flight *flight, const filch_error *error);
/* The item is over no earlier than that copy is past. */
void fl_in_flight_add_home(fl_worker *worker, fl_in_flight *flight, fl_marker home);
/* All pieces of a divided task are over: their results become valid; the item, which stands for the
 * whole task, retires when the results have come home where they are wanted. Needs a free element
 * of worker->pipeline.flights. */
void fl_in_flight_conclude(fl_worker *worker, const fl_item *item);

#endif
