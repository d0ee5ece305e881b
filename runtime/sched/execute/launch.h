/* SPDX-License-Identifier: Apache-2.0 */
/* Puts an item on the device of an asynchronous worker. */
#ifndef FL_SCHED_EXECUTE_LAUNCH_H
#define FL_SCHED_EXECUTE_LAUNCH_H

#include "sched/worker/worker.h"

/* Puts a picked item on the device, or lands the item at once if there is nothing to run. */
void fl_launch_item(fl_worker *worker, const fl_item *picked);
/* Launches the item waiting for memory, once an item has landed here (any), or after a while:
 * memory may be freed on a second device, or by a copy. */
void fl_launch_stalled(fl_worker *worker, bool any);
/* Function, parameters and geometry of a kernel's item whose operands were fetched. False:
 * worker->stall.error says why not. */
bool fl_launch_fill(fl_worker *worker, fl_item *item, fl_launch *launch);
/* Gives the lanes' scratch memory back; nothing is in flight. */
void fl_launch_drop_scratch(fl_worker *worker);

#endif
