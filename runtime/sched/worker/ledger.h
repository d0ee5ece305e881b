/* SPDX-License-Identifier: Apache-2.0 */
/* Time accounting of a worker, as data. account/ledger.h and account/preempt.h have the rules. */
#ifndef FL_SCHED_WORKER_LEDGER_H
#define FL_SCHED_WORKER_LEDGER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"

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

/* Reason for the failure of a theft. */
typedef enum fl_refusal {
    FL_REFUSED_HELD,
    FL_REFUSED_EMPTY,
    FL_REFUSED_UNABLE,
    FL_REFUSED_RACED,
    FL_REFUSED_DEAR, /* transfer of the missing data takes longer than the theft saves */
    FL_REFUSALS
} fl_refusal;

/* System's times and counts of the calling thread, since the start of the thread. */
typedef struct fl_thread_times {
    uint64_t wall_ns; /* monotonic time now */
    uint64_t cpu_ns;
    uint64_t blocked; /* number of times the thread gave up the core voluntarily */
    uint64_t taken;   /* number of times the system took the core away */
} fl_thread_times;

/* Reads the times of the calling thread; false: the system does not report the times. */
typedef bool (*fl_thread_times_fn)(void *user, fl_thread_times *times);

typedef struct fl_preempt {
    fl_thread_times_fn read; /* null: no preemption is reported */
    void *user;
    fl_thread_times last;
    uint64_t slept_ns; /* voluntary sleep of the worker since `last`, ns */
    uint64_t sleeps;   /* number of voluntary sleeps since `last` */
} fl_preempt;

/* Number of samples of a dispatch's cost; the median is published. */
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
    /* Since the beginning. Relaxed: statistics of the owner's. */
    _Atomic uint64_t ended;  /* tasks and grains retired for jobs that the worker has left */
    _Atomic uint64_t stolen; /* tasks and grains taken from other workers */
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

#endif
