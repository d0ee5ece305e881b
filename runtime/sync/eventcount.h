/* SPDX-License-Identifier: Apache-2.0 */
/* Event count: how a worker sleeps without losing a wake-up.
 *
 * Sleeper:  fl_eventcount_announce(e); re-check for work; if there is some fl_eventcount_cancel(e),
 *           else fl_eventcount_sleep(e, ns).
 * Waker:    publish work; fl_eventcount_notify(e).
 *
 * announce and notify each make a full fence between their own store and the other's (Dekker):
 * either the waker sees the announcement, or the sleeper's re-check sees the work. notify costs one
 * fence and one load when nobody sleeps. One sleeper an event; any number of wakers. */
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
/* No waker may be inside. */
void fl_eventcount_fini(fl_eventcount *event);
/* Sleeper: from here on, notify will be seen. */
void fl_eventcount_announce(fl_eventcount *event);
/* Sleeper: awake after all. */
void fl_eventcount_cancel(fl_eventcount *event);
/* Sleeper: returns when notified since the announcement, or after ns nanoseconds (UINT64_MAX: no
 * limit). true when notified. */
bool fl_eventcount_sleep(fl_eventcount *event, uint64_t ns);
/* Sleeper, announced: has somebody notified it? */
static inline bool fl_eventcount_is_notified(const fl_eventcount *event)
{
    return fl_load_relaxed(&event->state) != 1; /* sleep or cancel orders what follows */
}
/* Waker, after publishing: full fence, then wakes the sleeper if one is announced. Lock-free unless
 * somebody sleeps. Returns whether it woke one. */
bool fl_eventcount_notify(fl_eventcount *event);
/* Waker that has already made a full fence after publishing: no second one. */
bool fl_eventcount_notify_fenced(fl_eventcount *event);

#endif
