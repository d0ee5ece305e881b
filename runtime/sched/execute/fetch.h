/* SPDX-License-Identifier: Apache-2.0 */
/* Lists the operands of an item, and brings them to the worker's device. */
#ifndef FL_SCHED_EXECUTE_FETCH_H
#define FL_SCHED_EXECUTE_FETCH_H

#include "sched/execute/window.h"
#include "sched/worker/worker.h"

/* Whether an item has operands that may be in another memory. */
static inline bool fl_operands_matter(const fl_item *item)
{
    return item->task != NULL ? item->task->access_count != 0
                              : fl_batch_view_count(item->job->batch) != 0;
}

/* Fills worker->call.views and offload->operands only. False: worker->stall.error says why not. */
bool fl_operands_list(fl_worker *worker, const fl_item *item);
/* As fl_fetch_operands, for an item with operands. Out of line: many short items have none. */
bool fl_fetch_listed(fl_worker *worker, const fl_item *item);

/* Finds the item's operands, starts to bring them to the worker's device, and fills
 * worker->call.views. False: worker->stall.error says why not. */
static inline bool fl_fetch_operands(fl_worker *w, const fl_item *item)
{
    fl_offload *offload = w->offload;
    offload->waits.count = offload->operand_count = 0;
    offload->is_counted = fl_operands_matter(item);
    if (offload->is_counted) {
        return fl_fetch_listed(w, item);
    }
    offload->is_admitted = true;
    if (w->device->place != 0) {
        fl_window_note(w);
    }
    return true;
}

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
/* The launched item of `flight`, which has operands, is about to retire: they may be evicted. */
void fl_fetch_release(fl_worker *worker, fl_in_flight *flight);

#endif
