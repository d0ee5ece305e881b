/* SPDX-License-Identifier: Apache-2.0 */
/* The table of active jobs, and the references of workers to its jobs (sched.h). */
#ifndef FL_SCHED_WORKER_JOBS_H
#define FL_SCHED_WORKER_JOBS_H

#include "sched/worker/sched.h"

/* Gives a job with filled ranges a slot, or lets the job wait for one. True: the job was cancelled
 * before. */
bool fl_jobs_add(fl_sched *sched, filch_job *job);
/* Takes a complete job out. Returns the waiting job that got its slot, or null; *is_cancelled: that
 * job was cancelled before. */
filch_job *fl_jobs_remove(fl_sched *sched, const filch_job *job, bool *is_cancelled);

/* A reference to a job has one of two strengths. A peek, by the hazard pointer, keeps the job's
 * object from being used again: the job may be over. A hold, counted in job->remaining, keeps the
 * job from being over; every item not yet retired is a hold. */

/* Begins a peek at the job in a slot, and ends an earlier peek. Null: the slot is empty. */
filch_job *fl_jobs_peek(fl_worker *worker, uint32_t slot);
/* Holds a job that the caller peeks at. False: the job is over, or about to end. */
bool fl_jobs_hold(filch_job *job);
/* Ends n holds. A job without holds is completed at the end of the worker's step. */
void fl_jobs_count_off(fl_worker *worker, filch_job *job, int64_t n);

/* Begins a peek at a job known by other means than a slot. The caller then looks once more whether
 * the job is there, and ends the peek if not. */
static inline void fl_jobs_peek_at(fl_worker *w, filch_job *job)
{
    /* Seq_cst: the hazard's store precedes the caller's second look. The thread that lets the job
     * go looks at the hazards later, before the job's memory is used again. */
    fl_store_seq_cst(&w->signals.hazard, job);
}

static inline void fl_jobs_end_peek(fl_worker *w)
{
    /* Release: the worker's reads of the job precede a reuse of the job. */
    if (fl_load_relaxed(&w->signals.hazard) != NULL) {
        fl_store_release(&w->signals.hazard, NULL);
    }
}

/* A walk over the active jobs; {0} before all. */
typedef struct fl_jobs_walk {
    uint32_t slot; /* of the last job */
    uint32_t word; /* next word of sched->active */
    uint64_t bits; /* slots of the word before that are left */
} fl_jobs_walk;

/* Function of fl_scheduler: whether no hazard pointer names the job. */
bool fl_jobs_is_quiet(fl_scheduler *self, const filch_job *job);

/* Begins a peek at the next active job. Null: the walk is over. */
static inline filch_job *fl_jobs_next(fl_worker *w, fl_jobs_walk *walk)
{
    filch_job *job = NULL;
    while (job == NULL) {
        while (walk->bits == 0) {
            if (walk->word == FL_ACTIVE_SLOTS / 64) {
                return NULL;
            }
            /* Acquire: the slot of a set bit is filled. */
            walk->bits = fl_load_acquire(&w->sched->active[walk->word++]);
        }
        walk->slot = (walk->word - 1) * 64 + (uint32_t)__builtin_ctzll(walk->bits);
        walk->bits &= walk->bits - 1;
        job = fl_jobs_peek(w, walk->slot);
    }
    return job;
}

#endif
