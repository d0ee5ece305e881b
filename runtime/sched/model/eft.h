/* SPDX-License-Identifier: Apache-2.0 */
/* Earliest finish time (HEFT: Topcuoglu et al., IEEE TPDS 13, 2002), asked anew each time that a
 * device is free: which task of the shared ready queue a device takes. Under the queue's lock but
 * where said. */
#ifndef FL_SCHED_MODEL_EFT_H
#define FL_SCHED_MODEL_EFT_H

#include "sched/worker/timeline.h"

/* Recent mean of a device's tasks; 0: it has run none. Estimates, here and below: no order. */
static inline double fl_eft_mean(const fl_worker *w)
{
    return fl_bits_double(fl_load_relaxed(&w->queues.item_ns));
}

/* Tasks that a device computes at once. */
static inline uint32_t fl_eft_lanes(const fl_worker *w)
{
    uint32_t lanes = w->device->is_synchronous ? 1 : w->device->lanes;
    return lanes != 0 ? lanes : 1;
}

/* The worker's: tasks that keep its device from others. */
static inline uint32_t fl_eft_in_flight(const fl_worker *w)
{
    return w->pipeline.in_flight - w->pipeline.writing_back_count;
}

/* Ns of a task on a device; above 0. */
double fl_eft_ns(const fl_worker *worker, const fl_task *task);
/* Tasks in flight up to which the worker may take more. */
uint32_t fl_eft_depth(const fl_worker *worker);
/* The worker asks: what it has in flight is what it says. */
void fl_eft_arrive(fl_worker *worker);
/* A task for the worker, among those on the board; false: none as yet, and seat->look_at says when
 * to look again. */
bool fl_eft_choose(fl_worker *worker, uint64_t t, fl_ranked_spot *spot);
/* Whether the worker, behind what it has in flight, would end a task first that depends on some of
 * that. */
bool fl_eft_wins(fl_worker *worker, uint64_t t, const fl_task *task);
/* It has the task from now on. */
void fl_eft_take(fl_worker *worker, uint64_t t, const fl_task *task);

#endif
