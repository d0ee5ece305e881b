/* SPDX-License-Identifier: Apache-2.0 */
/* Theft: takes work from another worker, by the rules of decide/steal.h or by a host's policy. */
#ifndef FL_SCHED_EXECUTE_THEFT_H
#define FL_SCHED_EXECUTE_THEFT_H

#include "sched/worker/sched.h"

/* Takes work from another worker; sets worker->idle.ready_at. True: look again, the worker has
 * work. */
bool fl_worker_steal(fl_worker *worker);

/* Tells whether a worker that found nothing to steal may join a work-sharing team. Teams are a part
 * of filch's own rule of theft; a nested wait takes work needed by the awaited job from every
 * owner. */
static inline bool fl_worker_may_join(const fl_worker *w)
{
    return w->sched->count > 1 && w->sched->policy != FILCH_POLICY_STATIC &&
           (w->sched->rules.with.steal == NULL || w->now.frames != NULL);
}

#endif
