/* SPDX-License-Identifier: Apache-2.0 */
/* Devices with memories of their own, of which some lag: they take longer than others for the same
 * task, or no other device's memory is linked to theirs while others' are. There a task that is
 * ready may be better left alone: what follows from it would wait. (Devices of one memory have a
 * board for that.)
 *
 * A device that lags takes a task if by the measured speeds and links, with what it has in flight,
 * what has to be brought, and what has to be brought back,
 *
 * - it ends the task before the others would, when they have done all that is as urgent (the
 *   earliest finish of list schedulers, as in eft.c);
 * - or it ends it so early that what follows from it, on the fastest device, is over before all
 *   devices together are done with what is left of the graph.
 *
 * What it does not take goes to the device that ends it first. Devices that do not lag are asked
 * nothing. */
#ifndef FL_SCHED_DECIDE_SLOW_H
#define FL_SCHED_DECIDE_SLOW_H

#include "sched/worker/worker.h"

/* By the scores and the links; the workers are there, and do nothing yet. */
void fl_slow_init(fl_sched *sched);
/* A task was timed. */
void fl_slow_learn(fl_worker *worker, const fl_task *task);

/* Relaxed: a guess, for others than the worker; it was set by the worker, or before there was any
 * work. */
static inline bool fl_slow_is_on(const fl_worker *w)
{
    return fl_load_relaxed(&w->lag.is_on) != 0;
}

/* The worker takes a claimed task that was given to it. Relaxed: an estimate; some came otherwise.
 */
static inline void fl_slow_note_taken(fl_worker *w)
{
    if (fl_load_relaxed(&w->lag.given) != 0) {
        fl_sub_relaxed(&w->lag.given, 1);
    }
}

/* Whether the worker, which asks, had better leave the task, which is ready, to others: it is the
 * worker's, or one of a job that is kept. */
bool fl_slow_holds_up(const fl_worker *worker, const fl_task *task);
/* The same of a task of the worker's, not claimed: true if it was given away. */
bool fl_slow_sends(fl_worker *worker, fl_task *task);
/* The same of one that is claimed, and was picked to be run. */
bool fl_slow_passes_on(fl_worker *worker, const fl_item *item);

#endif
