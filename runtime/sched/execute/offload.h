/* SPDX-License-Identifier: Apache-2.0 */
/* Brings an item's operands to the device, launches the item, publishes its results. */
#ifndef FL_SCHED_EXECUTE_OFFLOAD_H
#define FL_SCHED_EXECUTE_OFFLOAD_H

#include "sched/model/next_use.h"
#include "sched/worker/operands.h"
#include "sched/worker/tuning.h"
#include "sched/worker/worker.h"

/* Finds the item's operands, starts to bring them to the worker's device, and fills
 * worker->call.views. False: worker->stall.error says why not. */
bool fl_offload_fetch(fl_worker *worker, const fl_item *item);
/* Fills worker->call.views and offload->operands only. False: worker->stall.error says why not. */
bool fl_offload_list(fl_worker *worker, const fl_item *item);
/* Puts the item on a lane. False: worker->stall.error says why not. */
bool fl_offload_launch(fl_worker *worker, fl_in_flight *flight, uint32_t tag);
/* All pieces of the task are over: makes its results valid, and sends them home with `flight`.
 * False: that failed. */
bool fl_offload_commit_pieces(fl_worker *worker, fl_in_flight *flight);
/* A copy to the worker's device that the item fetched last waits for; 0: none is known. */
fl_marker fl_offload_arriving(const fl_worker *worker);
/* Function, parameters and geometry of a kernel's item whose operands were fetched. False:
 * worker->stall.error says why not. */
bool fl_offload_fill(fl_worker *worker, fl_item *item, fl_launch *launch);
/* Brings a gate's operands to the host's memory, and notes them as valid there alone where the gate
 * writes; `flight` is over when they are there. False: impossible, and nothing is under way. */
bool fl_offload_move(fl_worker *worker, fl_in_flight *flight);
/* The item ran on the host: its results are valid there alone, until they are copied to a GPU whose
 * buffer is to have them. A copy that fails fails the item. */
void fl_offload_commit_host(fl_worker *worker, fl_item *item);
/* Whether an item has operands that may be in another memory. */
bool fl_offload_concerns(const fl_item *item);
/* Undoes what fl_offload_launch began before it failed: nothing is in flight or reserved any more.
 * Blocks. */
void fl_offload_abandon(fl_worker *worker);
/* The launched item of `flight` is about to retire: its operands may be evicted. */
void fl_offload_release(fl_worker *worker, fl_in_flight *flight);
/* Gives the lanes' scratch memory back; nothing is in flight. */
void fl_offload_drop_scratch(fl_worker *worker);
/* Nothing of the worker's is in flight: evicts every tile that can be evicted. False: that was
 * tried before, or other workers use the memory node. */
bool fl_offload_clear(fl_worker *worker);
/* Starts to bring the operands of a later task, and unpins them. False: not possible now. */
bool fl_offload_fetch_ahead(fl_worker *worker, fl_task *task, bool is_claimed);

#endif
