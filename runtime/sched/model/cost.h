/* SPDX-License-Identifier: Apache-2.0 */
/* Cost model: how long a device needs for an item (exec), how long until the device begins one more
 * item (available), and when the item is over (finish). All times are in ns from now; an unknown
 * time is 0. Predictions change no state. Estimates of other threads are read in relaxed order. */
#ifndef FL_SCHED_MODEL_COST_H
#define FL_SCHED_MODEL_COST_H

#include <math.h>

#include "sched/model/speed.h"
#include "sched/worker/device.h"

/* --- Exec --- */

/* Substitutes for the speed of a codelet that the device has not measured. A sum of flags. */
enum {
    FL_GUESS_NONE = 0,
    FL_GUESS_SCORES = 1, /* another device's speed at the codelet, by the scores */
    FL_GUESS_MEANS = 2,  /* the mean task of the device, if shorter; or another device's mean task,
                            by the scores */
    FL_GUESS_USUAL = 4,  /* a usual unit of work, by the score */
    FL_GUESS_ALL = FL_GUESS_SCORES | FL_GUESS_MEANS | FL_GUESS_USUAL
};

/* Time of `work` units of a codelet as one item on a device, if measured. */
static inline double fl_cost_measured(const filch_codelet *codelet, uint32_t device, double work)
{
    return fl_speed_time(fl_codelet_speed(codelet, device), work);
}

/* Time of a task, no gate, if measured. */
static inline double fl_cost_of_task(const fl_worker *w, const fl_task *task)
{
    return fl_cost_measured(task->codelet, w->index, (double)task->work);
}

/* Time of one unit of work, without an item's fixed part: measured, or guessed by the scores. */
double fl_cost_rate(const fl_sched *sched, const filch_codelet *codelet, uint32_t device);
/* Time of one unit of a batch's work: at least as long as in the device's last chunk. A last chunk
 * dearer than the median says more of the items to come. */
double fl_cost_batch_rate(const fl_sched *sched, const filch_job *job, uint32_t device);
/* Time of `work` units, without an item's fixed part; guess: FL_GUESS_*. */
double fl_cost_of_work(const fl_worker *worker, const filch_codelet *codelet, double work,
                       uint32_t guess);
/* Time of a task: measured, or by every guess; 1 or more. */
double fl_cost_of_any(const fl_worker *worker, const fl_task *task);
/* Time of an unseen task of the victim on the thief, by mean times. */
double fl_cost_of_unseen(const fl_worker *thief, const fl_worker *victim);

/* --- Available --- */

/* Time until the items in flight are over, as though all began now. An item of unknown time takes
 * `unknown`. */
double fl_cost_in_flight(const fl_worker *worker, double unknown);

/* The estimate for a worker that asks for itself, of one mean item. */
static inline double fl_cost_in_flight_mean(const fl_worker *w)
{
    return w->pipeline.in_flight != w->pipeline.writing_back_count ? fl_worker_mean_ns(w) : 0;
}

/* --- Finish --- */

/* Earliest finish time: the item begins when the device is available and the missing bytes have
 * arrived. extra: time beside the item, of a theft, of a dispatch, or until results are where they
 * are needed. A finish on one device is compared with a finish on another: every rule adds up
 * here. */
static inline double fl_cost_finish(double available, double transfer, double exec, double extra)
{
    return fmax(available, transfer) + exec + extra;
}

#endif
