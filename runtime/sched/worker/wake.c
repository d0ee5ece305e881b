/* SPDX-License-Identifier: Apache-2.0 */
/* When a worker that has queued tasks wakes another one. */
#include "sched/worker/wake.h"

#include <math.h>

#include "sched/model/transfer.h"
#include "sched/worker/device.h"
#include "sched/worker/sched.h"
#include "sched/worker/tuning.h"

/* A step that leaves a task queued loses about one task's time of each core that sleeps. A core is
 * woken when that has added up to what waking costs (ski rental), and later where those that were
 * woken took nothing. */
static bool is_owed_enough(fl_worker *w, double mean)
{
    if (!w->sched->keeps_holders || mean <= FL_HANDOFF_NS) {
        return false;
    }
    w->ready.owed_ns += mean;
    if (w->ready.owed_ns < fmax(w->ready.dear_ns, FL_WAKE_UP_NS)) {
        return false;
    }
    /* Relaxed: a statistic. */
    uint64_t robbed = w->now.share != NULL ? fl_load_relaxed(&w->now.share->stolen_out) : 0;
    w->ready.dear_ns = robbed != w->ready.robbed ? FL_WAKE_UP_NS
                                                 : fmin(2 * fmax(w->ready.dear_ns, FL_WAKE_UP_NS),
                                                        FL_WAKE_UP_DEAREST * FL_WAKE_UP_NS);
    w->ready.robbed = robbed;
    w->ready.owed_ns = 0;
    return true;
}

void fl_worker_wake_others(fl_worker *w)
{
    if (FL_UNLIKELY(fl_worker_is_offline(w)) && w->now.frames == NULL) {
        return; /* the next step sees to it */
    }
    w->ready.pushed = false;
    if (w->sched->count == 1 || w->ready.queued == 0) {
        return;
    }
    /* Relaxed: a hint. Who searches finds the task without being told. */
    if (fl_load_relaxed(&w->sched->searching) != 0) {
        return;
    }
    /* Tasks of unknown length are taken for long ones. */
    double mean = fl_bits_double(fl_load_relaxed(&w->queues.item_ns));
    if (mean == 0 || mean * w->ready.queued >= FL_WAKE_UP_NS || is_owed_enough(w, mean)) {
        fl_sched_wake(w->sched, 1);
    }
}
