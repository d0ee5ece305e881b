/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a device is slow or weakly linked (decide/slow.h), as measured. */
#ifndef FL_SCHED_MODEL_SLOWNESS_H
#define FL_SCHED_MODEL_SLOWNESS_H

#include "sched/worker/device.h"

/* Sets what the scores and the links say; the workers exist, and do nothing yet. */
void fl_slow_init(fl_sched *sched);
/* Updates what is known of the worker's device after a timed task. */
void fl_slow_learn(fl_worker *worker, const fl_task *task);

/* Time of a task over the time on the fastest device. */
static inline double fl_slow_times(const fl_worker *w)
{
    return fl_bits_double(fl_load_relaxed(&w->theft.slow.times)); /* an estimate: no order */
}

/* Notes that the worker takes a claimed task given by a slow device. Relaxed: an estimate; a few
 * tasks came by other ways. */
static inline void fl_slow_note_taken(fl_worker *w)
{
    if (fl_load_relaxed(&w->theft.slow.given) != 0) {
        fl_sub_relaxed(&w->theft.slow.given, 1);
    }
}

#endif
