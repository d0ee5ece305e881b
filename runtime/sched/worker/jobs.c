/* SPDX-License-Identifier: Apache-2.0 */
/* The table of active jobs, and the references of workers to its jobs. */
#include "sched/worker/jobs.h"

/* --- The table --- */

/* Gives the job a free slot. Under slots_lock. */
static bool enter_slot(fl_sched *sched, filch_job *job)
{
    for (uint32_t word = 0; word < FL_ACTIVE_SLOTS / 64; ++word) {
        /* Relaxed: the mask changes under our lock only. */
        uint64_t bits = fl_load_relaxed(&sched->active[word]);
        if (bits != UINT64_MAX) {
            uint32_t slot = word * 64 + (uint32_t)__builtin_ctzll(~bits);
            /* Release: orders the job's fields and ranges before the slot leading to the job. */
            fl_store_release(&sched->slots[slot], job);
            /* Release: orders the slot before the bit. */
            fl_or_release(&sched->active[word], (uint64_t)1 << (slot % 64));
            return true;
        }
    }
    return false;
}

/* Appends the job to the queue. Under slots_lock. */
static void enqueue(fl_sched *sched, filch_job *job)
{
    fl_part_of_job(job)->queued_next = NULL;
    if (sched->queue == NULL) {
        sched->queue = job;
    } else {
        fl_part_of_job(sched->queue_last)->queued_next = job;
    }
    sched->queue_last = job;
}

/* Removes the job from the queue, most often the head. Under slots_lock. */
static void dequeue(fl_sched *sched, const filch_job *job)
{
    filch_job **at = &sched->queue, *before = NULL;
    while (*at != job) {
        before = *at;
        at = &fl_part_of_job(before)->queued_next;
    }
    *at = fl_part_of_job(job)->queued_next;
    if (sched->queue_last == job) {
        sched->queue_last = before;
    }
}

/* Empties the job's slot; false for a job without a slot. Under slots_lock. */
static bool leave_slot(fl_sched *sched, const filch_job *job)
{
    for (uint32_t slot = 0; slot < FL_ACTIVE_SLOTS; ++slot) {
        if (fl_load_relaxed(&sched->slots[slot]) == job) {
            fl_and_release(&sched->active[slot / 64], ~((uint64_t)1 << (slot % 64)));
            /* Seq_cst: precedes the loads of the hazards in fl_jobs_is_quiet. */
            fl_store_seq_cst(&sched->slots[slot], NULL);
            return true;
        }
    }
    return false;
}

/* Tells whether the job was cancelled before getting a slot. Under slots_lock, without which the
 * job cannot end. Fence: orders the slot before the load of `cancelled`, against job_cancelled,
 * after which workers of offline devices look at the slots. Either our load sees the cancellation,
 * or the workers see the slot. */
static bool was_cancelled(const filch_job *job)
{
    fl_fence_seq_cst();
    return fl_load_relaxed(&job->cancelled) != 0;
}

bool fl_jobs_add(fl_sched *sched, filch_job *job)
{
    fl_mutex_lock(&sched->slots_lock);
    if (!enter_slot(sched, job)) {
        enqueue(sched, job);
    }
    /* Release, and last: a waiting thread may run the job from here on, with or without a slot.
     * Completing the job needs our lock. */
    fl_store_release(&fl_part_of_job(job)->is_offered, 1);
    bool is_cancelled = was_cancelled(job);
    fl_mutex_unlock(&sched->slots_lock);
    return is_cancelled;
}

filch_job *fl_jobs_remove(fl_sched *sched, const filch_job *job, bool *is_cancelled)
{
    filch_job *next = NULL;
    *is_cancelled = false;
    fl_mutex_lock(&sched->slots_lock);
    if (leave_slot(sched, job)) {
        next = sched->queue;
        if (next != NULL) {
            dequeue(sched, next);
            enter_slot(sched, next);
            *is_cancelled = was_cancelled(next);
        }
    } else {
        /* Waiting threads ran the whole job. */
        dequeue(sched, job);
    }
    fl_mutex_unlock(&sched->slots_lock);
    return next;
}

/* --- References --- */

filch_job *fl_jobs_peek(fl_worker *w, uint32_t slot)
{
    fl_sched *sched = w->sched;
    /* Acquire: the worker reads the job right away if the hazard names the job already. Otherwise
     * the decisive load is the load after the hazard is visible. */
    filch_job *job = fl_load_acquire(&sched->slots[slot]);
    if (job == fl_load_relaxed(&w->signals.hazard)) {
        return job; /* already protected, or null */
    }
    while (job != NULL) {
        /* Seq_cst: the hazard's store precedes the second load of the slot. Completion empties the
         * slot before loading the hazards. */
        fl_store_seq_cst(&w->signals.hazard, job);
        filch_job *again = fl_load_seq_cst(&sched->slots[slot]);
        if (again == job) {
            return job;
        }
        job = again;
    }
    /* An unconfirmed hazard protects nothing. */
    fl_jobs_end_peek(w);
    return NULL;
}

bool fl_jobs_is_quiet(fl_scheduler *self, const filch_job *job)
{
    const fl_sched *sched = (const fl_sched *)(void *)self;
    for (uint32_t i = 0; i < sched->count; ++i) {
        /* Seq_cst: follows the emptying of the slot; pairs with fl_jobs_peek. Acquire: the
         * worker's reads are over. */
        if (fl_load_seq_cst(&sched->workers[i].signals.hazard) == job) {
            return false;
        }
    }
    return true;
}

bool fl_jobs_hold(filch_job *job)
{
    int64_t n = fl_load_relaxed(&job->remaining);
    while (n > 0) {
        /* Acquire: the job is held before the first read of the job. The release half publishes no
         * data and does no harm. */
        if (fl_cas_weak_acq_rel(&job->remaining, &n, n + 1)) {
            return true;
        }
    }
    return false;
}

void fl_jobs_count_off(fl_worker *w, filch_job *job, int64_t n)
{
    /* Acquire-release: our items' effects and our reads come before the job is completed by another
     * worker; if we complete the job, every worker's effects come to us. */
    if (fl_sub_acq_rel(&job->remaining, n) == n) {
        /* Completion runs the host's callback, so the job waits for the end of the step. No second
         * thread can complete the job meanwhile. */
        fl_add_relaxed(&job->remaining, 1);
        job->next = w->now.completed;
        w->now.completed = job;
    }
}
