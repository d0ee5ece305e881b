/* SPDX-License-Identifier: Apache-2.0 */
/* Queue depth: how many items are in flight on a device that computes by itself. */
#ifndef FL_SCHED_DECIDE_DEPTH_H
#define FL_SCHED_DECIDE_DEPTH_H

#include "sched/worker/operands.h"
#include "sched/worker/tuning.h"
#include "sched/worker/worker.h"

/* Items in flight that keep the device busy. */
uint32_t fl_depth_of(const fl_worker *worker);
/* As fl_depth_has_room, in every case. */
bool fl_depth_finds_room(const fl_worker *worker, uint32_t window);

/* Tells whether one more item may be put on the device. Fast path: without long items, a divided
 * task, a held device or short memory fl_depth_finds_room() reduces to these two limits. */
static inline bool fl_depth_has_room(const fl_worker *w, uint32_t window)
{
    const fl_worker_pipeline *pipeline = &w->pipeline;
    if (FL_UNLIKELY(pipeline->long_ns != 0 || w->ready.is_dividing || w->device->held_until != 0) ||
        (w->offload != NULL && w->offload->pressed != 0)) {
        return fl_depth_finds_room(w, window);
    }
    return pipeline->in_flight - pipeline->writing_back_count < window &&
           pipeline->in_flight < pipeline->flight_count;
}

/* Whether one more item can be put on a lane behind an item that it continues: up to twice the
 * depth of a lane. Beyond two on a lane, or the lane's part of a smaller depth, continuations do
 * not count: other lanes are filled as without them. */
bool fl_depth_may_continue(const fl_worker *worker, uint32_t lane);
/* Whether a launch occupies the worker on a virtual clock, where a step takes no time. */
bool fl_depth_is_launching(const fl_worker *worker);
/* Part of worker->pipeline.long_ns that an item in flight adds, ns. */
uint64_t fl_depth_part(const fl_in_flight *flight);

#endif
