/* SPDX-License-Identifier: Apache-2.0 */
/* Begin and end of the time that a worker has nothing to do. */
#ifndef FL_SCHED_EXECUTE_IDLE_H
#define FL_SCHED_EXECUTE_IDLE_H

#include "sched/worker/worker.h"

/* The worker has found nothing: sets worker->idle.wake_at. */
void fl_worker_begin_idle(fl_worker *worker);
/* Ends a spell of idle time. Out of line: tested before each item, seldom needed. */
void fl_worker_end_spell(fl_worker *worker);

/* The worker has an item. */
static inline void fl_worker_end_idle(fl_worker *w)
{
    w->idle.nap_ns = 0;
    if (FL_UNLIKELY(w->idle.idle_since != 0)) {
        fl_worker_end_spell(w);
    }
}

#endif
