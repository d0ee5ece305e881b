/* SPDX-License-Identifier: Apache-2.0 */
/* Ledger of a worker's activities. Every instant belongs to exactly one kind of spell, so the parts
 * of a period add up to the period. Readings of the ledger at the beginning and the end of a job
 * tell the job's charges (account.c). Only the worker writes the ledger: when taking up a job, when
 * dropping a job, and when idle for a new reason; never once an item. */
#ifndef FL_SCHED_ACCOUNT_LEDGER_H
#define FL_SCHED_ACCOUNT_LEDGER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"
#include "sched/account/preempt.h"

typedef enum fl_spell {
    FL_SPELL_STARVED,  /* idle: no work to take */
    FL_SPELL_HELD,     /* idle: other workers will complete the visible work first */
    FL_SPELL_ON,       /* working on a job */
    FL_SPELL_OFF,      /* idle: the device is offline, or has failed */
    FL_SPELL_UNSHARED, /* not a spell of its own: the part of a starved spell in which other workers
                          had ready work queued for the device */
    FL_SPELLS
} fl_spell;

/* Backlog of the workers with equally able devices: time with ready work queued at a worker; every
 * instant counts once. Workers check the queues at timed items. A check finding queued work counts
 * the time since the previous check. */
typedef struct fl_backlog {
    _Alignas(64) _Atomic uint64_t until; /* earlier time is counted, or will never be */
    _Atomic uint64_t ns;
} fl_backlog;

/* Adds a period in which a worker had queued work. Thread-safe; lock-free. */
void fl_backlog_add(fl_backlog *backlog, uint64_t from, uint64_t to);

/* Reason for the failure of a theft. */
typedef enum fl_refusal {
    FL_REFUSED_HELD,
    FL_REFUSED_EMPTY,
    FL_REFUSED_UNABLE,
    FL_REFUSED_RACED,
    FL_REFUSED_DEAR, /* transfer of the missing data takes longer than the theft saves */
    FL_REFUSALS
} fl_refusal;

/* Samples of what a dispatch costs, of which the median is published. */
#define FL_GAPS 7

typedef struct fl_ledger {
    /* Present spell and completed spells, guarded by the sequence counter `turn`: odd during a
     * change. */
    _Alignas(64) _Atomic uint64_t turn;
    _Atomic uint64_t since;         /* begin of the present spell */
    _Atomic uint64_t idle_since;    /* begin of the present series of idle spells */
    _Atomic uint64_t kind;          /* kind of the present spell, an fl_spell */
    _Atomic uintptr_t job;          /* job of an FL_SPELL_ON spell: a name, never dereferenced */
    _Atomic uint64_t ns[FL_SPELLS]; /* time of completed spells, by kind */
    _Atomic uint64_t backlog_ns;    /* value of the backlog at the begin of the spell */
    fl_backlog *backlog;            /* common to equally able devices; constant */
    _Alignas(64) _Atomic uint64_t refused[FL_REFUSALS];
    _Atomic uint64_t gap_ns; /* cost of a dispatch; 0: unknown */
    /* The owner's fields: for the accounts of the current job (account.c). */
    uint32_t gaps[FL_GAPS]; /* costs of the last measured dispatches */
    uint32_t gap_count;
    uint32_t gap_turn;   /* timed tasks until the next measured dispatch */
    bool is_gap;         /* a dispatch is being measured */
    bool waits;          /* the job waits for data */
    uint64_t clock_ns;   /* duration of reading the clock at the measured dispatch */
    uint64_t wait_since; /* begin of the wait for data */
    int64_t timed_at;    /* value of w->now.retired with the last timed item included */
    uint64_t own_ns;     /* time of the last timed item, without waits for nested work */
    uint64_t nested_ns;  /* total time in waits for nested work; nested waits count once */
    uint64_t looked_at;  /* time of the last check for queued work */
    fl_preempt preempt;  /* of the thread; silent where the host's threads drive */
} fl_ledger;

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

/* Returns the number of thefts that failed although work was visible. Owner only. */
static inline uint64_t fl_ledger_refused(const fl_ledger *ledger)
{
    return fl_load_relaxed(&ledger->refused[FL_REFUSED_HELD]) +
           fl_load_relaxed(&ledger->refused[FL_REFUSED_UNABLE]) +
           fl_load_relaxed(&ledger->refused[FL_REFUSED_RACED]) +
           fl_load_relaxed(&ledger->refused[FL_REFUSED_DEAR]);
}

#endif
