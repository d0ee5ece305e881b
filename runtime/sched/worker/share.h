/* SPDX-License-Identifier: Apache-2.0 */
/* One device's share of one job: what it may still take, and what it has done. */
#ifndef FL_SCHED_WORKER_SHARE_H
#define FL_SCHED_WORKER_SHARE_H

#include "base/bits.h"
#include "sched/worker/job_part.h"
#include "sched/worker/ledger.h"
#include "sync/range.h"

/* What a job is charged for its time on a device. The device's worker writes, anybody reads, but
 * for what is said to be others'; all relaxed: statistics, which are exact once the job is complete
 * as the count that completes it comes after them. */
typedef struct fl_account {
    _Alignas(64) _Atomic uint64_t timed; /* tiles that were timed, … */
    _Atomic uint64_t timed_ns;           /* … and how long those took that did not fail; … */
    _Atomic uint64_t timed_rated_ns;     /* … of these, those of codelets that declare work */
    _Atomic uint64_t guessed_ns;         /* devices that compute by themselves: the other ones */
    _Atomic uint64_t data_ns;            /* waiting for copies, or for memory */
    _Atomic uint64_t preempted_ns;       /* without the core */
    _Atomic uint64_t spoiled_ns;         /* of tiles that failed, … */
    _Atomic uint64_t spoiled;            /* … and how many of those were timed */
    _Atomic uint64_t taken;              /* when the last tile was taken; 0: none was */
    /* What the ledger said as the job began; written by who starts it. */
    _Atomic uint64_t begin[FL_SPELLS];
    _Atomic uint64_t refused[FL_REFUSALS];
    /* What became of its time, when it ended; written by who completes it. */
    _Atomic uint64_t starved_ns, held_ns, unshared_ns, tail_ns, own_ns, other_ns;
    _Atomic uint64_t gap_ns; /* what a dispatch cost */
    _Atomic uint64_t is_off; /* the device was withdrawn, or lost */
    /* Chunks run twice (speculate.c): second runs here, those of them that counted, and chunks that
     * nobody could run a second time though their codelet allows it. */
    _Atomic uint64_t restarts, restarts_won, restarts_refused;
    /* Tasks that were begun in pieces here, and pieces run here (divide.c). */
    _Atomic uint64_t divided, pieces;
    _Atomic uint64_t refusals[FL_REFUSALS];
} fl_account;

/* Codelets of a job that declare work, whose best speeds are looked at; of more, the others are as
 * if they declared none. */
#define FL_RATED 8

/* What the device did of one of them. */
typedef struct fl_rated {
    _Atomic uint64_t tiles; /* that succeeded, … */
    _Atomic uint64_t work;  /* … and their work: bits of a double, as is what follows */
    /* The best speed of the device (fl_proven); 0: not known for tiles like these. Written by the
     * worker, and at the job's end by who completes it. */
    _Atomic uint64_t rate, fixed;
} fl_rated;

/* Counts are written by the device's worker alone (relaxed load and store) and read by anybody;
 * they are exact once the job is complete. */
typedef struct fl_share {
    fl_range range; /* grains of a batch, or positions in the graph's roots */
    /* Of a batch that a policy cut: grains that the device had taken, and could not do. Anyone
     * takes them. */
    fl_range left;
    _Alignas(64) _Atomic uint64_t tiles;
    _Atomic uint64_t items;
    _Atomic uint64_t done; /* tasks, or items, that succeeded */
    _Atomic uint64_t failed;
    _Atomic uint64_t skipped;
    _Atomic uint64_t stolen_in;
    _Atomic uint64_t moved; /* tasks whose main tile another core had used last (place.c) */
    _Atomic uint64_t busy_ns;
    _Atomic uint64_t work;   /* bits of a double */
    _Atomic uint64_t recent; /* bits of a double: ns a unit of work of its last chunk; 0 none */
    uint32_t fill;    /* grains whose threads fill the device; 0: not known, or one will do */
    uint32_t quantum; /* so many are launched with as many threads as one; 0: not known */
    uint32_t chunk;   /* grains that the device took last from this range; 0 none yet */
    /* The owner's: grains of the chunk of this range that was over last, 0: none is; chunks taken
     * until then; and, of a range that was stolen, what it was: chunks of others say nothing of it.
     */
    uint32_t known, unseen, stolen_lo, stolen_hi;
    /* The owner's: ns until all devices are through with the batch, and for how many chunks more
     * that is believed. */
    double until_end;
    uint32_t believed;
    /* The device had no room for a grain of the batch: others have what is left of it here, while
     * there are any (execute/unavailable.c). Only ever set; relaxed: who finds out late tries in
     * vain. */
    _Atomic uint32_t is_out;
    /* The graph's positions for the device, since a thief that looks at the job does not keep its
     * graph alive; constant while the job runs. */
    uint32_t root_begin, root_kind, root_free;
    float root_ns; /* predicted for the first of its roots on a core; 0: not known; likewise */
    fl_link *roots_first, *roots_last; /* while they are placed (policy.c) */
    /* The owner's: which codelet was counted last, and where in rated; FL_RATED: nowhere. */
    const filch_codelet *rated_last;
    uint32_t rated_at;
    fl_rated rated[FL_RATED];
    fl_account account;
    /* Of the first device: names of the codelets that `rated` of all devices is of. */
    _Alignas(64) _Atomic uintptr_t rated_of[FL_RATED];
    _Alignas(64) _Atomic uint64_t stolen_out; /* added to by thieves */
    /* Likewise, by who decides a race between two runs of a chunk: second runs here that did not
     * count; time in runs that did not, up to `wasted_until` (+ 1; 0: none yet); and how many of
     * these are not over. */
    _Atomic uint64_t restarts_lost, wasted_ns, wasted_until;
    _Atomic uint32_t losing;
} fl_share;

/* The owner's range is filled with what was another's, of which its chunks so far say nothing. */
static inline void fl_share_refill(fl_share *share, uint32_t lo, uint32_t hi)
{
    share->chunk = share->known = share->unseen = 0;
    share->stolen_lo = lo;
    share->stolen_hi = hi;
    fl_store_relaxed(&share->recent, 0); /* an estimate: no order */
    fl_range_set(&share->range, lo, hi);
}

static inline fl_share *fl_job_share(const filch_job *job, uint32_t device)
{
    return (fl_share *)(void *)(fl_part_of_job(job) + 1) + device;
}

/* The job's copies, one a device of count; behind the shares. */
static inline fl_traffic *fl_job_traffic(const filch_job *job, uint32_t count)
{
    return (fl_traffic *)(void *)fl_job_share(job, count);
}

/* Notes grains or tasks skipped without a failure. */
static inline void fl_job_note_left_out(filch_job *job)
{
    /* Relaxed: precedes the subtraction that completes the job. */
    fl_store_relaxed(&job->left_out, 1);
}

/* Owner-only counters. */
static inline void fl_count(_Atomic uint64_t *counter, uint64_t n)
{
    fl_store_relaxed(counter, fl_load_relaxed(counter) + n);
}

#endif
