/* SPDX-License-Identifier: Apache-2.0 */
#include "sched/execute/nested_wait.h"

#include "graph/job/job.h"
#include "sched/decide/shared_queue.h"
#include "sched/execute/pick.h"
#include "sched/worker/jobs.h"
#include "sched/worker/sched.h"

/* So many such jobs are looked for at once. */
#define MOST_AHEAD 16

typedef struct fl_ahead {
    uint32_t count;
    /* Jobs may be over meanwhile, and the objects reused. */
    const filch_job *jobs[MOST_AHEAD];
} fl_ahead;

static bool note(const filch_job *job, const void *user)
{
    fl_ahead *ahead = (fl_ahead *)(uintptr_t)user;
    /* Under core->lock. */
    if (job->blocked == 0) {
        ahead->jobs[ahead->count++] = job;
    }
    return ahead->count == MOST_AHEAD;
}

static bool has(const fl_ahead *ahead, const filch_job *job)
{
    for (uint32_t i = 0; i < ahead->count; ++i) {
        if (ahead->jobs[i] == job) {
            return true;
        }
    }
    return false;
}

bool fl_nested_pick_goal(fl_worker *w, fl_item *item)
{
    filch_job *goal = (filch_job *)(uintptr_t)w->now.frames->goal;
    return fl_pick_goal(w, goal, item) || fl_policy_pick_of(w, goal, false, item) ||
           (w->sched->shared_queue != NULL && fl_shared_queue_pick_of(w, goal, false, item));
}

bool fl_nested_pick_ahead(fl_worker *w, fl_item *item)
{
    fl_sched *sched = w->sched;
    filch_job *goal = (filch_job *)(uintptr_t)w->now.frames->goal;
    fl_ahead ahead = {.count = 0};
    if (goal != NULL) {
        (void)fl_job_waits_for(goal, note, &ahead);
    }
    for (uint32_t i = 0; i < ahead.count; ++i) {
        if (fl_policy_pick_of(w, ahead.jobs[i], true, item) ||
            (sched->shared_queue != NULL &&
             fl_shared_queue_pick_of(w, ahead.jobs[i], true, item))) {
            return true;
        }
    }
    for (uint32_t word = 0; ahead.count != 0 && word < FL_ACTIVE_SLOTS / 64; ++word) {
        /* Acquire: a set bit's slot is filled. */
        uint64_t bits = fl_load_acquire(&sched->active[word]);
        for (; bits != 0; bits &= bits - 1) {
            filch_job *job = fl_jobs_peek(w, word * 64 + (uint32_t)__builtin_ctzll(bits));
            if (job != NULL && has(&ahead, job) && fl_pick_goal(w, job, item)) {
                return true;
            }
        }
    }
    return false;
}
