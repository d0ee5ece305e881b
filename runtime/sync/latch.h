/* SPDX-License-Identifier: Apache-2.0 */
/* Lock for a critical section of some hundred instructions.
 *
 * A free latch is taken by one compare-and-swap and given back by one exchange, both inline. A
 * thread that finds the latch taken spins for about a microsecond, and then sleeps. state tells the
 * holder whether a thread may sleep: only then does giving back touch the mutex.
 *
 * Source of the three states: U. Drepper, "Futexes Are Tricky", 2011, mutex2; here with a mutex and
 * a condition variable in place of a futex. */
#ifndef FL_SYNC_LATCH_H
#define FL_SYNC_LATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/thread.h"

enum {
    FL_LATCH_FREE = 0,
    FL_LATCH_TAKEN = 1,
    FL_LATCH_AWAITED = 2 /* taken, and some thread may sleep */
};

typedef struct fl_latch {
    _Atomic uint32_t state;
    fl_mutex lock; /* held by a thread between its last look at state and its sleep */
    fl_cond cond;
} fl_latch;

filch_status fl_latch_init(fl_latch *latch);
/* Destroys the latch. No thread may be inside a call. */
void fl_latch_fini(fl_latch *latch);
/* Slow path of fl_latch_lock. */
void fl_latch_wait(fl_latch *latch);
/* Slow path of fl_latch_unlock. */
void fl_latch_wake(fl_latch *latch);

/* Takes the latch. Blocking; not recursive. */
static inline void fl_latch_lock(fl_latch *latch)
{
    uint32_t seen = FL_LATCH_FREE;
    /* Acquire: what the last holder wrote is visible. */
    if (FL_UNLIKELY(!fl_cas_acquire(&latch->state, &seen, (uint32_t)FL_LATCH_TAKEN))) {
        fl_latch_wait(latch);
    }
}

/* Gives the latch back; called by the holder. */
static inline void fl_latch_unlock(fl_latch *latch)
{
    /* Release: the next holder sees what this one wrote. */
    if (FL_UNLIKELY(fl_exchange_release(&latch->state, (uint32_t)FL_LATCH_FREE) ==
                    FL_LATCH_AWAITED)) {
        fl_latch_wake(latch);
    }
}

#endif
