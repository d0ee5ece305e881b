/* SPDX-License-Identifier: Apache-2.0 */
/* The scheduler's part of a job. The graph layer keeps the part as bytes behind the job
 * (fl_scheduler.job_bytes): the job's own state, then the share of each device (work left to the
 * device, and counts of work done), then the copies. */
#ifndef FL_SCHED_WORKER_JOB_PART_H
#define FL_SCHED_WORKER_JOB_PART_H

#include "base/bits.h"
#include "graph/job/job.h"
#include "sched/worker/ledger.h"
#include "sync/range.h"

/* Meaning of the positions in a job's ranges. */
enum {
    FL_CUT_SHARES, /* grains, or roots, of every device */
    FL_CUT_PIECES, /* positions of every device's pieces in fl_job_part.pieces */
    FL_CUT_COMMON  /* grains of the whole batch, in the first device's range */
};

/* Consecutive grains of a batch, put on a device together by a scheduling policy. */
typedef struct fl_piece {
    uint32_t lo, hi;
} fl_piece;

typedef struct fl_pieces {
    size_t bytes; /* size of the allocation */
    uint32_t count;
    fl_piece at[];
} fl_pieces;

typedef struct fl_job_part {
    /* The job stands in the table of active jobs, or in the queue for the table. Release: the job's
     * ranges are filled. */
    _Alignas(64) _Atomic uint32_t is_offered;
    /* FL_CUT_*; constant while the job is offered. */
    uint32_t cut;
    fl_pieces *pieces; /* a policy's pieces, or null; constant while the job is offered */
    /* State of time accounting. 1: the ledgers at the job's beginning are recorded; 2: the
     * breakdown at the job's end is recorded. Release: the records are written first. */
    _Atomic uint32_t accounted;
    filch_job *job;         /* the job itself */
    filch_job *queued_next; /* next job in the queue for the table */
    fl_link awaiting;       /* link in the inbox of jobs waiting for host events */
    /* Tasks set aside, newest first, and the place in the list of jobs that have some
     * (ready/aside.h); under the lock there. */
    fl_link *aside;
    struct fl_job_part *aside_next, **aside_at;
} fl_job_part;

/* --- Shares --- */

/* Account of a job's time on a device. The device's worker writes, except as noted; every thread
 * reads. Relaxed: statistics, exact once the job is complete, because the count that completes the
 * job comes after the writes. */
typedef struct fl_account {
    _Alignas(64) _Atomic uint64_t timed; /* number of timed items */
    _Atomic uint64_t timed_ns;           /* time of the timed items without failure */
    /* The same, each time multiplied by the number of items it stands for, because codelets are
     * timed at unlike rates; and the part of codelets that declare work. */
    _Atomic uint64_t weighted_ns, weighted_rated_ns;
    _Atomic uint64_t guessed_ns;   /* asynchronous device: predicted time of untimed items */
    _Atomic uint64_t data_ns;      /* time of waits for copies or for memory */
    _Atomic uint64_t preempted_ns; /* time without the core */
    _Atomic uint64_t spoiled_ns;   /* time of failed items */
    _Atomic uint64_t spoiled;      /* number of timed items that failed */
    _Atomic uint64_t taken;        /* time + 1 at which the last item was taken; 0: never */
    /* Readings of the ledger at the job's beginning; written by the thread that starts the job. */
    _Atomic uint64_t begin[FL_SPELLS];
    _Atomic uint64_t refused[FL_REFUSALS];
    /* Breakdown at the job's end; written by the thread that completes the job. */
    _Atomic uint64_t starved_ns, held_ns, unshared_ns, tail_ns, own_ns, other_ns;
    _Atomic uint64_t gap_ns; /* cost of a dispatch */
    _Atomic uint64_t is_off; /* the device was offline, or failed */
    /* Speculative execution (execute/backup.h): backup runs on the device, backup runs that
     * counted, and chunks that no device could run again, though the codelet allows backup runs. */
    _Atomic uint64_t restarts, restarts_won, restarts_refused;
    /* Divisible tasks begun in pieces on the device, and pieces run on the device (divide.h). */
    _Atomic uint64_t divided, pieces;
    _Atomic uint64_t refusals[FL_REFUSALS];
} fl_account;

/* Number of a job's codelets whose best speeds are recorded. Further codelets count as codelets
 * that declare no work. */
#define FL_RATED 8

/* Work of one codelet on the device. */
typedef struct fl_rated {
    _Atomic uint64_t tiles; /* number of successful items */
    _Atomic uint64_t work;  /* work of the successful items; bits of a double */
    /* Best speed of the device (fl_proven), bits of doubles; 0: unknown for items of this size.
     * Written by the worker, and by the thread that completes the job. */
    _Atomic uint64_t rate, fixed;
} fl_rated;

/* The device's worker writes the counts (relaxed load and store), and every thread reads; the
 * counts are exact once the job is complete. */
typedef struct fl_share {
    fl_range range; /* grains of a batch, or positions in the graph's roots */
    /* Batch cut by a policy: grains taken by the device that the device could not run. Every worker
     * may take the grains. */
    fl_range left;
    _Alignas(64) _Atomic uint64_t tiles; /* number of work items */
    _Atomic uint64_t items;
    _Atomic uint64_t done; /* tasks, or items, that succeeded */
    _Atomic uint64_t failed;
    _Atomic uint64_t skipped;
    _Atomic uint64_t stolen_in;
    _Atomic uint64_t moved; /* tasks whose main tile was last used by another core (place.h) */
    _Atomic uint64_t busy_ns;
    _Atomic uint64_t work;   /* bits of a double */
    _Atomic uint64_t recent; /* ns per unit of work of the last chunk, bits of a double; 0: none */
    uint32_t fill;    /* grains whose threads fill the device; 0: unknown, or a single grain does */
    uint32_t quantum; /* largest number of grains launched with the threads of one; 0: unknown */
    uint32_t chunk;   /* grains of the last chunk taken from this range; 0: none */
    /* The owner's. Size in grains of the newest chunk of this range that is over (0: none), and
     * number of chunks taken since. */
    uint32_t known, unseen;
    uint32_t stolen_lo, stolen_hi; /* the owner's: the range as stolen, of unknown items */
    /* The owner's: predicted time until all devices have done the batch, ns, and number of further
     * chunks for which the prediction stands. */
    double until_end;
    uint32_t believed;
    /* The device had no capacity for a grain of the batch, and leaves the range to other devices
     * (execute/unavailable.h). Never cleared. Relaxed: a late reader tries in vain. */
    _Atomic uint32_t is_out;
    /* Copies of the graph's positions for the device, because a thief peeks at the job without
     * keeping the graph. Constant while the job runs. */
    uint32_t root_begin, root_kind, root_free;
    float root_ns; /* predicted time of the device's first root on a core; 0: unknown; constant */
    fl_link *roots_first, *roots_last; /* roots while a policy places the roots (policy.h) */
    /* The owner's: the codelet counted last, and the index in rated; FL_RATED: none. */
    const filch_codelet *rated_last;
    uint32_t rated_at;
    _Atomic uint64_t pended;   /* tasks whose function, run here, returned FILCH_PENDING */
    _Atomic uint64_t unpended; /* pending tasks retired here, whoever ran the functions */
    /* Open graphs: tasks that a task retired here made ready; tasks of the caller's, and of filch,
     * retired here. Release: a task's effects, and the tasks it made ready, before its end. */
    _Atomic uint64_t readied, ended, ended_own;
    fl_rated rated[FL_RATED];
    fl_account account;
    /* First device only: names of the codelets in every device's `rated`. */
    _Alignas(64) _Atomic uintptr_t rated_of[FL_RATED];
    _Alignas(64) _Atomic uint64_t stolen_out; /* added to by thieves */
    /* Written by the worker that decides a race: lost backup runs on the device; time of lost runs,
     * up to `wasted_until` (+ 1; 0: none); and number of lost runs that still run. */
    _Atomic uint64_t restarts_lost, wasted_ns, wasted_until;
    _Atomic uint32_t losing;
} fl_share;

/* --- Parts of a job --- */

static inline fl_job_part *fl_part_of_job(const filch_job *job)
{
    return (fl_job_part *)(void *)job->part;
}

/* Returns the job of a link in the inbox of jobs waiting for host events. */
static inline filch_job *fl_job_of_link(fl_link *link)
{
    return ((fl_job_part *)(void *)((char *)link - offsetof(fl_job_part, awaiting)))->job;
}

/* Fills the owner's range with a stolen range: earlier chunks tell nothing of the stolen items. */
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

/* Copies of the job, one record for each of count devices; behind the shares. */
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
