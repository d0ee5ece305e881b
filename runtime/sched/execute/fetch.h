/* SPDX-License-Identifier: Apache-2.0 */
/* Lists the operands of an item, and brings them to the worker's device. */
#ifndef FL_SCHED_EXECUTE_FETCH_H
#define FL_SCHED_EXECUTE_FETCH_H

#include "sched/worker/worker.h"

/* Whether an item has operands that may be in another memory. */
bool fl_operands_matter(const fl_item *item);
/* Fills worker->call.views and offload->operands only. False: worker->stall.error says why not. */
bool fl_operands_list(fl_worker *worker, const fl_item *item);
/* Finds the item's operands, starts to bring them to the worker's device, and fills
 * worker->call.views. False: worker->stall.error says why not. */
bool fl_fetch_operands(fl_worker *worker, const fl_item *item);
/* Starts to bring the operands of a later task, and unpins them. False: not possible now. */
bool fl_fetch_ahead(fl_worker *worker, fl_task *task, bool is_claimed);
/* Tells whether a tile fetched ahead is on the way. The worker then keeps the task: memory of the
 * host may return to the caller at the job's end, and a second device would write the tile in its
 * own memory while the copy reads. */
bool fl_fetch_is_coming(const fl_worker *worker);
/* A copy to the worker's device that the item fetched last waits for; 0: none is known. */
fl_marker fl_fetch_arriving(const fl_worker *worker);
/* Undoes a fetch whose item was not launched: nothing is under way or reserved any more. Blocks. */
void fl_fetch_abandon(fl_worker *worker);
/* The launched item of `flight` is about to retire: its operands may be evicted. */
void fl_fetch_release(fl_worker *worker, fl_in_flight *flight);

#endif
