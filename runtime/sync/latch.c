/* SPDX-License-Identifier: Apache-2.0 */
#include "sync/latch.h"

/* Looks at a taken latch before sleeping: about a microsecond. */
#define LOOKS 32u

filch_status fl_latch_init(fl_latch *latch)
{
    fl_store_relaxed(&latch->state, (uint32_t)FL_LATCH_FREE); /* not yet shared */
    filch_status status = fl_mutex_init(&latch->lock);
    if (status != FILCH_OK) {
        return status;
    }
    status = fl_cond_init(&latch->cond);
    if (status != FILCH_OK) {
        fl_mutex_fini(&latch->lock);
    }
    return status;
}

void fl_latch_fini(fl_latch *latch)
{
    fl_cond_fini(&latch->cond);
    fl_mutex_fini(&latch->lock);
}

/* Tries for a moment; false: the latch stayed taken. */
static bool spin(fl_latch *latch)
{
    for (uint32_t i = 0; i < LOOKS; ++i) {
        fl_relax();
        uint32_t seen = fl_load_relaxed(&latch->state); /* relaxed: the swap does the ordering */
        /* Acquire: as in fl_latch_lock. */
        if (seen == FL_LATCH_FREE &&
            fl_cas_acquire(&latch->state, &seen, (uint32_t)FL_LATCH_TAKEN)) {
            return true;
        }
    }
    return false;
}

void fl_latch_wait(fl_latch *latch)
{
    if (spin(latch)) {
        return;
    }
    fl_mutex_lock(&latch->lock);
    /* A holder that exchanges after this exchange finds the latch awaited, and cannot signal before
     * the sleep gives the mutex back. The latch stays marked as awaited for this thread, too: a
     * second thread may still sleep. Acquire: as in fl_latch_lock. */
    while (fl_exchange_acquire(&latch->state, (uint32_t)FL_LATCH_AWAITED) != FL_LATCH_FREE) {
        fl_cond_wait(&latch->cond, &latch->lock);
    }
    fl_mutex_unlock(&latch->lock);
}

void fl_latch_wake(fl_latch *latch)
{
    fl_mutex_lock(&latch->lock);
    fl_cond_signal(&latch->cond);
    fl_mutex_unlock(&latch->lock);
}
