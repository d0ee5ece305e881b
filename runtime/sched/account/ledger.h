/* SPDX-License-Identifier: Apache-2.0 */
/* What a worker was at, from one change to the next: each instant belongs to one kind of spell, so
 * that the parts of any stretch of time add up to it. Jobs are charged by what it says when they
 * begin and when they end (account.c). The worker writes it, when it takes up a job, drops it, or
 * is idle for another reason than before; never once a tile. */
#ifndef FL_SCHED_ACCOUNT_LEDGER_H
#define FL_SCHED_ACCOUNT_LEDGER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"
#include "sched/account/preempt.h"

typedef enum fl_spell {
    FL_SPELL_STARVED,  /* idle: nothing to take */
    FL_SPELL_HELD,     /* idle: what there is others will have done first */
    FL_SPELL_ON,       /* on some job */
    FL_SPELL_OFF,      /* idle: its device is withdrawn, or lost */
    FL_SPELL_UNSHARED, /* no spell by itself: the part of a starved one in which others had ready
                          work queued that the device could have run */
    FL_SPELLS
} fl_spell;

/* How long workers whose devices can run the same had ready work queued, each instant once. They
 * look at the tiles that they time, and take what is queued then to have been since the look
 * before. */
typedef struct fl_backlog {
    _Alignas(64) _Atomic uint64_t until; /* times before this one are counted, or never will be */
    _Atomic uint64_t ns;
} fl_backlog;

/* A worker that had work queued in that time. Any thread; lock-free. */
void fl_backlog_add(fl_backlog *backlog, uint64_t from, uint64_t to);

/* Why a theft came to nothing. */
typedef enum fl_refusal {
    FL_REFUSED_HELD,
    FL_REFUSED_EMPTY,
    FL_REFUSED_UNABLE,
    FL_REFUSED_RACED,
    FL_REFUSED_DEAR, /* bringing what it needs takes longer than the theft saves */
    FL_REFUSALS
} fl_refusal;

/* Samples of what a dispatch costs, of which the median is published. */
#define FL_GAPS 7

typedef struct fl_ledger {
    /* Of the present spell and those before, behind `turn`: odd while they change. */
    _Alignas(64) _Atomic uint64_t turn;
    _Atomic uint64_t since;         /* the spell began */
    _Atomic uint64_t idle_since;    /* the run of idle spells did */
    _Atomic uint64_t kind;          /* an fl_spell */
    _Atomic uintptr_t job;          /* of a spell on a job: a name, never followed */
    _Atomic uint64_t ns[FL_SPELLS]; /* of the spells that are over */
    _Atomic uint64_t backlog_ns;    /* of the backlog, when the spell began */
    fl_backlog *backlog;            /* of devices alike; constant */
    _Alignas(64) _Atomic uint64_t refused[FL_REFUSALS];
    _Atomic uint64_t gap_ns; /* what a dispatch costs; 0: not known */
    /* The owner's: for the accounts of the job that it is on (account.c). */
    uint32_t gaps[FL_GAPS]; /* what the last measured dispatches cost */
    uint32_t gap_count;
    uint32_t gap_turn;   /* timed tasks until one is measured */
    bool is_gap;         /* one is being measured … */
    bool waits;          /* the job waits for data … */
    uint64_t clock_ns;   /* … and what reading the clock took then */
    uint64_t wait_since; /* … from then on */
    int64_t timed_at;    /* tiles to count off, with the one that was timed last */
    uint64_t own_ns;     /* what that took, without waits for nested work */
    uint64_t nested_ns;  /* spent in such waits, ever; those inside others count once */
    uint64_t looked_at;  /* when it was last noted whether work is queued */
    fl_preempt preempt;  /* of its thread; nothing is told where the host's threads drive */
} fl_ledger;

/* What a ledger says of an instant. The sum of ns grows as time does. */
typedef struct fl_reading {
    uint64_t ns[FL_SPELLS];
    uint64_t refused[FL_REFUSALS];
    fl_spell kind;
    uint64_t since, idle_since, backlog_ns;
    uintptr_t job;
} fl_reading;

void fl_ledger_init(fl_ledger *ledger, fl_backlog *backlog, uint64_t now);
/* The owner: from now on it is at this. */
void fl_ledger_turn(fl_ledger *ledger, fl_spell kind, const void *job, uint64_t now);
/* Any thread, at about `now`. Lock-free; gives up consistency, not the sum, where the owner was
 * stopped in the middle of a change. */
void fl_ledger_read(const fl_ledger *ledger, uint64_t now, fl_reading *reading);
/* The owner: a dispatch took that long. */
void fl_ledger_add_gap(fl_ledger *ledger, uint64_t ns);

static inline void fl_ledger_refuse(fl_ledger *ledger, fl_refusal why)
{
    _Atomic uint64_t *count = &ledger->refused[why];
    fl_store_relaxed(count, fl_load_relaxed(count) + 1); /* a statistic; the owner's */
}

/* The owner: of all thefts that came to nothing though there was something. */
static inline uint64_t fl_ledger_refused(const fl_ledger *ledger)
{
    return fl_load_relaxed(&ledger->refused[FL_REFUSED_HELD]) +
           fl_load_relaxed(&ledger->refused[FL_REFUSED_UNABLE]) +
           fl_load_relaxed(&ledger->refused[FL_REFUSED_RACED]) +
           fl_load_relaxed(&ledger->refused[FL_REFUSED_DEAR]);
}

#endif
