/* SPDX-License-Identifier: Apache-2.0 */
/* The scheduler's part of a job. The graph layer keeps the part as bytes behind the job
 * (fl_scheduler.job_bytes): the job's own state, then the shares of the devices (share.h), then the
 * copies. */
#ifndef FL_SCHED_WORKER_JOB_PART_H
#define FL_SCHED_WORKER_JOB_PART_H

#include "graph/job/job.h"

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
} fl_job_part;

static inline fl_job_part *fl_part_of_job(const filch_job *job)
{
    return (fl_job_part *)(void *)job->part;
}

/* Returns the job of a link in the inbox of jobs waiting for host events. */
static inline filch_job *fl_job_of_link(fl_link *link)
{
    return ((fl_job_part *)(void *)((char *)link - offsetof(fl_job_part, awaiting)))->job;
}

#endif
