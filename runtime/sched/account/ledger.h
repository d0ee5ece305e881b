/* SPDX-License-Identifier: Apache-2.0 */
/* Ledger of a worker's activities. Every instant belongs to exactly one kind of spell, so the parts
 * of a period add up to the period. Readings of the ledger at the beginning and the end of a job
 * tell the job's charges (account.c). Only the worker writes the ledger: when taking up a job, when
 * dropping a job, and when idle for a new reason; never once an item. */
#ifndef FL_SCHED_ACCOUNT_LEDGER_H
#define FL_SCHED_ACCOUNT_LEDGER_H

#include "sched/worker/ledger.h"

/* Adds a period in which a worker had queued work. Thread-safe; lock-free. */
void fl_backlog_add(fl_backlog *backlog, uint64_t from, uint64_t to);

/* State of a ledger at an instant. The sum of ns grows as time does. */
typedef struct fl_reading {
    uint64_t ns[FL_SPELLS];
    uint64_t refused[FL_REFUSALS];
    fl_spell kind;
    uint64_t since, idle_since, backlog_ns;
    uintptr_t job;
} fl_reading;

void fl_ledger_init(fl_ledger *ledger, fl_backlog *backlog, uint64_t now);
/* Begins a spell of the given kind at `now`. Owner only. */
void fl_ledger_turn(fl_ledger *ledger, fl_spell kind, const void *job, uint64_t now);
/* Reads the ledger at about `now`. Thread-safe; lock-free. If the owner was stopped in the middle
 * of a change, the values may be inconsistent, but the sum is exact. */
void fl_ledger_read(const fl_ledger *ledger, uint64_t now, fl_reading *reading);
/* Adds the cost of a measured dispatch. Owner only. */
void fl_ledger_add_gap(fl_ledger *ledger, uint64_t ns);

static inline void fl_ledger_refuse(fl_ledger *ledger, fl_refusal why)
{
    _Atomic uint64_t *count = &ledger->refused[why];
    fl_store_relaxed(count, fl_load_relaxed(count) + 1); /* relaxed: the owner's statistic */
}

/* Counts n stolen tasks or grains. Owner only. */
static inline void fl_ledger_add_stolen(fl_ledger *ledger, uint64_t n)
{
    /* Relaxed: the owner's statistic. */
    fl_store_relaxed(&ledger->stolen, fl_load_relaxed(&ledger->stolen) + n);
}

/* Returns the number of thefts that failed although work was visible. Owner only. */
static inline uint64_t fl_ledger_refused(const fl_ledger *ledger)
{
    return fl_load_relaxed(&ledger->refused[FL_REFUSED_HELD]) +
           fl_load_relaxed(&ledger->refused[FL_REFUSED_UNABLE]) +
           fl_load_relaxed(&ledger->refused[FL_REFUSED_RACED]) +
           fl_load_relaxed(&ledger->refused[FL_REFUSED_DEAR]);
}

#endif
