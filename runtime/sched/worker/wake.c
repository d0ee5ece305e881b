/* SPDX-License-Identifier: Apache-2.0 */
#include "sched/worker/wake.h"

#include <math.h>

#include "sched/worker/device.h"
#include "sched/worker/event_queue.h"
#include "sched/worker/sched.h"

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
    double mean = fl_worker_mean_ns(w);
    if (mean == 0 || mean * w->ready.queued >= FL_WAKE_UP_NS || is_owed_enough(w, mean)) {
        fl_sched_wake(w->sched, 1);
    }
}

/* --- Whoever it is --- */

/* Notifies the worker after the idle bit was cleared. */
static void notify(fl_sched *sched, uint32_t index)
{
    if (sched->events != NULL) {
        fl_event_queue_add(sched->events, index);
    } else {
        fl_eventcount_notify_fenced(&sched->workers[index].signals.event);
    }
}

/* Counts a wake-up by a thread that is no worker: the driver of a virtual clock may be about to
 * announce an idle worker. */
static void stir(fl_sched *sched)
{
    if (sched->events != NULL && fl_sched_self(sched) == NULL) {
        /* Relaxed: follows the waker's fence. */
        fl_add_relaxed(&sched->events->stirs, 1);
    }
}

/* Tells whether the worker sleeps through general wake-ups. A worker of an offline device sleeps
 * until work is sent directly. Two exceptions are woken: a worker waiting inside a task, because
 * the work waited for may be over; and a worker whose device failed as well, because the device
 * meant to take over its work may have failed, too. */
static bool is_resting(const fl_worker *w)
{
    return FL_UNLIKELY(fl_worker_is_offline(w)) && !fl_worker_has_failed(w) &&
           fl_load_relaxed(&w->signals.nested) == 0;
}

/* Wakes up to count idle workers of the set, or of every device for a null set. Follows a full
 * fence. */
static void wake_among(fl_sched *sched, const uint64_t *set, uint32_t count)
{
    for (uint32_t word = 0; word < FL_IDLE_WORDS && word * 64 < sched->count; ++word) {
        /* Follows the fence. Acquire: orders a worker's nested waits before the bit. */
        uint64_t bits = fl_load_acquire(&sched->idle[word]);
        bits &= set != NULL ? set[word] : UINT64_MAX;
        while (bits != 0 && count != 0) {
            uint64_t bit = bits & (~bits + 1);
            bits ^= bit;
            uint32_t index = word * 64 + (uint32_t)__builtin_ctzll(bit);
            bool is_lost = fl_worker_has_failed(&sched->workers[index]);
            if (is_lost && sched->events != NULL) {
                /* Skipped: two failed devices would for ever offer remaining work to the second. */
                continue;
            }
            if (is_resting(&sched->workers[index])) {
                continue;
            }
            /* The thread clearing the bit wakes the worker: one waker per worker. */
            if ((fl_and_acq_rel(&sched->idle[word], ~bit) & bit) != 0) {
                notify(sched, index);
                /* A failed device only gives work away, and a slow device may find no suitable
                 * work. */
                count -= !is_lost && !fl_slow_is_on(&sched->workers[index]);
            }
        }
    }
}

/* In poll mode no worker has a thread of its own that could sleep: whoever waits drives all. */
static void turn_polled(fl_sched *sched)
{
    if (FL_UNLIKELY(sched->drive == FILCH_DRIVE_POLL) && sched->events == NULL) {
        fl_sched_turn(sched);
    }
}

void fl_sched_wake(fl_sched *sched, uint32_t count)
{
    /* Fence: orders earlier publications before the sleepers' second look. */
    fl_fence_seq_cst();
    stir(sched);
    turn_polled(sched);
    if (!sched->mails) {
        wake_among(sched, NULL, count);
        return;
    }
    for (uint32_t kinds = 1; kinds < FL_KINDS; ++kinds) {
        wake_among(sched, sched->kinds[kinds], count);
    }
}

bool fl_sched_wake_worker(fl_sched *sched, uint32_t index)
{
    fl_fence_seq_cst(); /* as in fl_sched_wake */
    stir(sched);
    turn_polled(sched);
    uint64_t bit = (uint64_t)1 << (index % 64);
    if ((fl_load_relaxed(&sched->idle[index / 64]) & bit) == 0 ||
        (fl_and_acq_rel(&sched->idle[index / 64], ~bit) & bit) == 0) {
        return false;
    }
    notify(sched, index);
    return true;
}

static void tell_all(fl_sched *sched)
{
    fl_mutex_lock(&sched->done_lock);
    fl_cond_broadcast(&sched->done);
    fl_mutex_unlock(&sched->done_lock);
}

void fl_sched_turn(fl_sched *sched)
{
    /* Release: what was made before. Fence: orders the turn before the listener's second look. */
    fl_add_release(&sched->turn, 1);
    fl_fence_seq_cst();
    if (fl_load_relaxed(&sched->listeners) != 0) {
        tell_all(sched);
    }
}

void fl_sched_tell(fl_sched *sched)
{
    /* Fence: orders the result before the waiter's second look. */
    fl_fence_seq_cst();
    if (fl_load_relaxed(&sched->waiters) != 0) {
        tell_all(sched);
    }
}
