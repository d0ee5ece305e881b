/* SPDX-License-Identifier: Apache-2.0 */
/*
 * deep: what a wait that is nested deep in others does not take. Each tile that a wait runs may
 * wait in turn, on the same stack; with many tasks that wait for the same thing it would overflow.
 * So waits nested deeper than FL_DEEP_WAIT take only work of the job that they are for, and of
 * those that it stands behind; unless all workers have nothing else to do, so that the job may need
 * anything. Below FL_DEEPEST_WAIT that is not taken either.
 */
#ifndef FILCH_SCHED_DEEP_H
#define FILCH_SCHED_DEEP_H

#include "sched/worker.h"

#ifdef __cplusplus
extern "C" {
#endif

#define FL_DEEP_WAIT 16
#define FL_DEEPEST_WAIT 256

/* Whether the worker is in such a wait. These, all, by who drives it. */
static inline bool fl_deep_is(const fl_worker *worker)
{
    return FL_UNLIKELY(worker->frames != NULL) && worker->frames->depth > FL_DEEP_WAIT;
}

bool fl_deep_leaves_here(const fl_worker *worker);

/* Whether it leaves now what is not for its innermost wait. */
static inline bool fl_deep_leaves(const fl_worker *worker)
{
    return fl_deep_is(worker) && fl_deep_leaves_here(worker);
}

/* In a nested wait: takes a tile of the job, wherever its tasks are. */
bool fl_deep_pick_of(fl_worker *worker, filch_job *job, fl_tile *tile);

/* In a deep one: takes a tile of a job that the wait's own stands behind, or of its own that was
 * sent to this worker. The rest of its inbox stays there. */
bool fl_deep_pick(fl_worker *worker, fl_tile *tile);

#ifdef __cplusplus
}
#endif

#endif
