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
    /* Relaxed store, then the fence: the announcement before the re-check's loads, whatever their
     * order. Pairs with the fence in fl_eventcount_notify. */
    fl_store_relaxed(&event->state, EVENT_ANNOUNCED);
    fl_fence_seq_cst();
}

void fl_eventcount_cancel(fl_eventcount *event)
{
    /* Relaxed: the re-check has found the work and synchronized with the waker. A waker that saw
     * the announcement either fails its swap or signals a condition without a waiter. The swap may
     * also hit the next announcement, as a notification for work published earlier. */
    fl_store_relaxed(&event->state, EVENT_AWAKE);
}

bool fl_eventcount_sleep(fl_eventcount *event, uint64_t ns)
{
    /* Relaxed: only decides whether to wait; the exchange below acquires. */
    if (fl_load_relaxed(&event->state) == EVENT_ANNOUNCED && ns > 0) {
        uint64_t start = ns == UINT64_MAX ? 0 : fl_time_now();
        uint64_t left = ns;
        fl_mutex_lock(&event->lock);
        /* A waker stores the state before taking the lock to signal. Either the load sees the
         * state, by the lock, or the wait began earlier and gets the signal. */
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
    /* Acquire: data published by the waker before its notification. */
    return fl_exchange_acquire(&event->state, EVENT_AWAKE) == EVENT_NOTIFIED;
}

bool fl_eventcount_notify(fl_eventcount *event)
{
    /* The fence orders the work before the load of state; pairs with the fence in
     * fl_eventcount_announce. One of the two fences is first: either the re-check sees the waker's
     * work, or the waker sees the announcement. */
    fl_fence_seq_cst();
    return fl_eventcount_notify_fenced(event);
}

bool fl_eventcount_notify_fenced(fl_eventcount *event)
{
    /* Relaxed: ordered by the caller's fence. The function mostly ends after the load, because the
     * worker is awake. */
    uint32_t state = fl_load_relaxed(&event->state);
    if (state != EVENT_ANNOUNCED)
        return false;
    /* Release half: the published work before the notification acquired by the sleeper. A failed
     * swap means that a second waker was first, or that the sleeper is awake and has yet to look.
     */
    if (!fl_cas_acq_rel(&event->state, &state, EVENT_NOTIFIED))
        return false;
    /* Passing through the lock finds the sleeper either before its check of the state or in its
     * wait. */
    fl_mutex_lock(&event->lock);
    fl_cond_signal(&event->cond);
    fl_mutex_unlock(&event->lock);
    return true;
}
