/* SPDX-License-Identifier: Apache-2.0 */
/* The next item of a worker: its sources, in order. */
#ifndef FL_SCHED_EXECUTE_NEXT_H
#define FL_SCHED_EXECUTE_NEXT_H

#include "sched/worker/worker.h"

/* Picks the next item. False: none. */
bool fl_worker_pick(fl_worker *worker, fl_item *item);
/* Fills *item with a task that the caller owns. */
void fl_worker_take(fl_worker *worker, fl_task *task, bool poisoned, fl_item *item);

/* A picked item. True: the item can be run, though it may have become another; false: the item is
 * dealt with. */
bool fl_item_admit(fl_worker *worker, fl_item *item);

/* Whether the worker is in a deep wait (FL_DEEP_WAIT). */
static inline bool fl_worker_waits_deep(const fl_worker *w)
{
    return w->now.frames != NULL && w->now.frames->depth > FL_DEEP_WAIT;
}

/* Whether a nested wait takes only work that it needs. */
static inline bool fl_worker_is_deep(const fl_worker *w)
{
    return fl_worker_waits_deep(w) && !w->now.frames->takes_any;
}

#endif
