/* SPDX-License-Identifier: Apache-2.0 */
#include "sync/eventcount.h"

#include "base/clock.h"

enum { EVENT_AWAKE = 0, EVENT_ANNOUNCED = 1, EVENT_NOTIFIED = 2 };

filch_status fl_eventcount_init(fl_eventcount *event)
{
    atomic_init(&event->state, EVENT_AWAKE);
    filch_status status = fl_mutex_init(&event->lock);
    if (status != FILCH_OK)
        return status;
    status = fl_cond_init(&event->cond);
    if (status != FILCH_OK)
        fl_mutex_fini(&event->lock);
    return status;
}

void fl_eventcount_fini(fl_eventcount *event)
{
    fl_cond_fini(&event->cond);
    fl_mutex_fini(&event->lock);
}

void fl_eventcount_announce(fl_eventcount *event)
{
    /* Relaxed store, then the fence: the announcement before the re-check's loads, whatever order
     * those have. Pairs with the fence in fl_eventcount_notify. */
    fl_store_relaxed(&event->state, EVENT_ANNOUNCED);
    fl_fence_seq_cst();
}

void fl_eventcount_cancel(fl_eventcount *event)
{
    /* Relaxed: the re-check has found the work and synchronized with it. A waker that saw the
     * announcement either fails its swap or signals a condition on which nobody waits; its swap may
     * also hit the next announcement, which is then notified for work published before it. */
    fl_store_relaxed(&event->state, EVENT_AWAKE);
}

bool fl_eventcount_sleep(fl_eventcount *event, uint64_t ns)
{
    /* Relaxed: only whether to wait; the exchange below acquires. */
    if (fl_load_relaxed(&event->state) == EVENT_ANNOUNCED && ns > 0) {
        uint64_t start = ns == UINT64_MAX ? 0 : fl_time_now();
        uint64_t left = ns;
        fl_mutex_lock(&event->lock);
        /* A waker stores the state before it takes the lock to signal, so either this load sees it,
         * by the lock, or the wait began before and gets the signal. */
        while (fl_load_relaxed(&event->state) == EVENT_ANNOUNCED) {
            if (ns == UINT64_MAX) {
                fl_cond_wait(&event->cond, &event->lock);
                continue;
            }
            (void)fl_cond_wait_for(&event->cond, &event->lock, left);
            /* The clock decides: the wait may end early for no reason. */
            uint64_t passed = fl_time_now() - start;
            if (passed >= ns)
                break;
            left = ns - passed;
        }
        fl_mutex_unlock(&event->lock);
    }
    /* Acquire: what the waker published before its notification. */
    return fl_exchange_acquire(&event->state, EVENT_AWAKE) == EVENT_NOTIFIED;
}

bool fl_eventcount_notify(fl_eventcount *event)
{
    /* The work before the load of state; pairs with the fence in fl_eventcount_announce. Of two
     * fences one is first: then either that waker's work is seen by the re-check, or the
     * announcement here. */
    fl_fence_seq_cst();
    return fl_eventcount_notify_fenced(event);
}

bool fl_eventcount_notify_fenced(fl_eventcount *event)
{
    /* Relaxed: ordered by the caller's fence. Most of the time nobody sleeps, and this is all. */
    uint32_t state = fl_load_relaxed(&event->state);
    if (state != EVENT_ANNOUNCED)
        return false;
    /* Release half: the published work before the notification that the sleeper acquires. Failure
     * means that another waker was first or that the sleeper is awake, and has yet to look. */
    if (!fl_cas_acq_rel(&event->state, &state, EVENT_NOTIFIED))
        return false;
    /* Through the lock, so that the sleeper is before its check of the state or in its wait. */
    fl_mutex_lock(&event->lock);
    fl_cond_signal(&event->cond);
    fl_mutex_unlock(&event->lock);
    return true;
}
