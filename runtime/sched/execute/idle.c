/* SPDX-License-Identifier: Apache-2.0 */
#include "sched/execute/idle.h"

#include "sched/account/account.h"
#include "sched/execute/placed.h"
#include "sched/execute/shared_queue.h"
#include "sched/worker/device.h"
#include "sched/worker/sched.h"
#include "sched/worker/tuning.h"

/* Time of the worker's sleep until the next look without a wake-up, ns. */
static uint64_t next_nap(const fl_worker *w)
{
    uint64_t nap = w->idle.nap_ns == 0 ? FL_NAP_LEAST_NS : w->idle.nap_ns * 2;
    if (FL_LIKELY(nap < FL_NAP_MOST_NS)) {
        return nap;
    }
    /* An item on a virtual clock may take years. The number of looks grows with the logarithm of
     * the time, and the delay of a look stays a fixed part of the idle time. */
    return w->sched->events == NULL || w->idle.nap_ns < FL_NAP_MOST_NS
               ? FL_NAP_MOST_NS
               : w->idle.nap_ns + w->idle.nap_ns / FL_NAP_LATE;
}

/* Sets the time of the next unrequested look. Wake-ups are left out where the queued work seems too
 * short to share, and predictions may be wrong. While jobs run, an idle worker therefore looks
 * again after a nap that doubles each time. */
void fl_worker_begin_idle(fl_worker *w)
{
    fl_sched *sched = w->sched;
    /* Relaxed: a stale nonzero value only makes the next look earlier; a worker reading a stale 0
     * is woken. */
    if (FL_UNLIKELY(fl_sched_attends(sched, FL_ATTEND_SHARED))) {
        uint64_t at = fl_shared_queue_look_at(w);
        w->idle.ready_at = at < w->idle.ready_at ? at : w->idle.ready_at;
    }
    fl_account_event(w, FL_EVENT_IDLE, NULL);
    w->idle.wake_at = w->idle.ready_at;
    if (FL_UNLIKELY(fl_rules_place(&sched->rules))) {
        fl_placed_note_idle(w);
    }
    if (sched->count > 1 && sched->policy != FILCH_POLICY_STATIC &&
        fl_load_relaxed(&sched->core->jobs->running) != fl_load_relaxed(&sched->core->jobs->kept)) {
        w->idle.nap_ns = next_nap(w);
        uint64_t at = fl_worker_clock(w) + w->idle.nap_ns;
        w->idle.wake_at = at < w->idle.wake_at ? at : w->idle.wake_at;
    }
    if (w->idle.idle_since == 0 && fl_trace_of(w) != NULL) {
        w->idle.idle_since = fl_worker_clock(w);
    }
}

void fl_worker_end_spell(fl_worker *w)
{
    fl_trace_ring *ring = fl_trace_of(w);
    if (w->ledger.is_gap) {
        fl_account_event(w, FL_EVENT_DISPATCHED, NULL);
        return;
    }
    if (ring != NULL) {
        fl_trace_add(ring, (fl_trace_event){.start = w->idle.idle_since,
                                            .end = fl_worker_clock(w),
                                            .kind = FL_TRACE_WAIT});
    }
    w->idle.idle_since = 0;
}
