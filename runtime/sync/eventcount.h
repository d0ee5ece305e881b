/* SPDX-License-Identifier: Apache-2.0 */
/* Event count: lets a worker sleep without losing a wake-up.
 *
 * Sleeper:  fl_eventcount_announce(e); re-check for work; with work: fl_eventcount_cancel(e);
 *           without work: fl_eventcount_sleep(e, ns).
 * Waker:    publish work; fl_eventcount_notify(e).
 *
 * announce and notify make a full fence between their own store and the load of the peer's store
 * (Dekker). Either the waker sees the announcement, or the sleeper's re-check sees the work. notify
 * costs one fence and one load while the worker is awake. One sleeper per event; the number of
 * wakers is free. */
#ifndef FL_SYNC_EVENTCOUNT_H
#define FL_SYNC_EVENTCOUNT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/thread.h"

typedef struct fl_eventcount {
    _Alignas(64) _Atomic uint32_t state; /* 0 awake, 1 announced, 2 notified */
    fl_mutex lock;
    fl_cond cond;
} fl_eventcount;

filch_status fl_eventcount_init(fl_eventcount *event);
/* Destroys the event. No waker may be inside. */
void fl_eventcount_fini(fl_eventcount *event);
/* Sleeper: announces the sleep; every later notify is seen. */
void fl_eventcount_announce(fl_eventcount *event);
/* Sleeper: withdraws the announcement and stays awake. */
void fl_eventcount_cancel(fl_eventcount *event);
/* Sleeper: returns when notified since the announcement, or after ns nanoseconds (UINT64_MAX: no
 * limit). Returns true when notified. */
bool fl_eventcount_sleep(fl_eventcount *event, uint64_t ns);
/* Sleeper, after the announcement: tells whether a notification arrived. */
static inline bool fl_eventcount_is_notified(const fl_eventcount *event)
{
    return fl_load_relaxed(&event->state) != 1; /* relaxed: sleep or cancel does the ordering */
}
/* Waker, after publishing: makes a full fence, then wakes the sleeper if announced. Lock-free
 * unless the worker sleeps. Returns whether a sleeper was woken. */
bool fl_eventcount_notify(fl_eventcount *event);
/* Notifies without a second fence: the waker made a full fence after publishing. */
bool fl_eventcount_notify_fenced(fl_eventcount *event);

#endif
