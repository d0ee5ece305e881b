/* SPDX-License-Identifier: Apache-2.0 */
/* Items in flight on an asynchronous device, and the step of its worker. */
#ifndef FL_SCHED_EXECUTE_PIPELINE_H
#define FL_SCHED_EXECUTE_PIPELINE_H

#include "sched/worker/worker.h"

/* As fl_worker_step. */
fl_act fl_pipeline_step(fl_worker *worker);
/* The step while the device is offline. */
fl_act fl_pipeline_rest(fl_worker *worker);

/* Index of an element of worker->pipeline.flights: the tag of a launch, the link of a list. */
uint32_t fl_pipeline_index(const fl_worker *worker, const fl_in_flight *flight);
/* PICKED: takes a free element of worker->pipeline.flights, which the caller knows of. */
fl_in_flight *fl_pipeline_take(fl_worker *worker, const fl_item *item);
/* PICKED to WRITING_BACK or DONE: the item is past on the lane, or was never there. */
void fl_pipeline_finish(fl_worker *worker, fl_in_flight *flight);
/* DONE: the item retires. */
void fl_pipeline_land(fl_worker *worker, fl_in_flight *flight);
/* DONE here: the item is stalled, or another device's. */
void fl_pipeline_give(fl_worker *worker, fl_in_flight *flight);
/* All pieces of a divided task are over: their results become valid; the item, which stands for the
 * whole task, retires when the results have come home where they are wanted. Needs a free element
 * of worker->pipeline.flights. */
void fl_pipeline_conclude(fl_worker *worker, const fl_item *item);
/* Whether the device has failed, as seen by a call of a worker or of the host. */
bool fl_pipeline_is_down(fl_worker *worker);
/* As fl_pipeline_note_hunger, for a device that is hungry or was. */
void fl_pipeline_count_hunger(fl_worker *worker, bool is_hungry);

/* Notes whether the device is hungry: it has no work, or found nothing to steal beside its item.
 * Counts it in fl_sched.hungry and hungry_fast, by its speed, where several memory nodes exist. */
static inline void fl_pipeline_note_hunger(fl_worker *w, bool is_hungry)
{
    if (is_hungry || w->stall.is_hungry) {
        fl_pipeline_count_hunger(w, is_hungry);
    }
}

#endif
