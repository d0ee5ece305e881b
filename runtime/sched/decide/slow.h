/* SPDX-License-Identifier: Apache-2.0 */
/* Slow and weakly linked devices, among devices with memories of their own. A slow device takes
 * longer than other devices for the same task. A weakly linked device has no link to a second
 * device's memory, although other devices have. Either device lags. On a lagging device a ready
 * task may be better left alone, because the successors would wait. (Devices of one memory use the
 * shared ready queue instead.)
 *
 * A lagging device takes a task in two cases. The predictions use the measured speeds and links,
 * the items in flight, the missing bytes and the write-back.
 *
 * - The device ends the task before the other devices would, after all work of equal urgency: the
 *   earliest finish time of list schedulers, as in eft.c.
 * - The device ends the task early enough: the successors, on the fastest device, are over before
 *   all devices together complete the rest of the graph.
 *
 * A refused task goes to the device with the earliest finish time. Devices without a lag skip the
 * test. */
#ifndef FL_SCHED_DECIDE_SLOW_H
#define FL_SCHED_DECIDE_SLOW_H

#include "sched/worker/worker.h"

/* Sets the lag by the scores and the links; the workers exist, and do nothing yet. */
void fl_slow_init(fl_sched *sched);
/* Updates the worker's lag after a timed task. */
void fl_slow_learn(fl_worker *worker, const fl_task *task);

/* Notes that the worker takes a claimed task given by a lagging device. Relaxed: an estimate; a few
 * tasks came by other ways. */
static inline void fl_slow_note_taken(fl_worker *w)
{
    if (fl_load_relaxed(&w->theft.slow.given) != 0) {
        fl_sub_relaxed(&w->theft.slow.given, 1);
    }
}

/* Tells whether the calling worker should leave a ready task to other devices. The task is the
 * worker's, or belongs to a job kept alive. */
bool fl_slow_holds_up(const fl_worker *worker, const fl_task *task);
/* Gives an unclaimed task of the worker away, if fl_slow_holds_up; true: given away. */
bool fl_slow_sends(fl_worker *worker, fl_task *task);
/* Gives a claimed task, already picked, away, if fl_slow_holds_up; true: given away. */
bool fl_slow_passes_on(fl_worker *worker, const fl_item *item);

#endif
