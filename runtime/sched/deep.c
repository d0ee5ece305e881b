/* SPDX-License-Identifier: Apache-2.0 */
#include "sched/deep.h"

#include "graph/job.h"
#include "sched/sched.h"

/* So many jobs that a wait stands behind are looked for at once. */
#define MOST_AHEAD 16

/* Whether all workers have announced that they are idle, this one included. Of those that find
 * nothing and announce it, the last sees it so: each looks again after a full fence. */
static bool all_rest(const fl_sched *sched)
{
    for (uint32_t word = 0; word * 64 < sched->count; ++word) {
        uint32_t rest = sched->count - word * 64;
        uint64_t all = rest < 64 ? ((uint64_t)1 << rest) - 1 : UINT64_MAX;
        if (fl_load_relaxed(&sched->idle[word]) != all) { /* after the fence */
            return false;
        }
    }
    return true;
}

bool fl_deep_leaves_here(const fl_worker *w)
{
    return w->frames->depth > FL_DEEPEST_WAIT || (!w->frames->is_stuck && !all_rest(w->sched));
}

bool fl_deep_pick_of(fl_worker *w, filch_job *job, fl_tile *tile)
{
    return fl_pick_goal(w, job, tile) || fl_policy_pick_goal(w, job, tile) ||
           (w->sched->board != NULL && fl_board_pick_goal(w, job, tile));
}

/* Jobs that have begun, and that another one stands behind. */
typedef struct fl_ahead {
    uint32_t count;
    const filch_job *jobs[MOST_AHEAD]; /* may be over meanwhile, and be others */
} fl_ahead;

static bool note_ahead(const filch_job *job, const void *user)
{
    fl_ahead *ahead = (fl_ahead *)(uintptr_t)user;
    if (job->blocked == 0) { /* under core->lock */
        ahead->jobs[ahead->count++] = job;
    }
    return ahead->count == MOST_AHEAD;
}

static bool is_ahead(const fl_ahead *ahead, const filch_job *job)
{
    for (uint32_t i = 0; i < ahead->count; ++i) {
        if (ahead->jobs[i] == job) {
            return true;
        }
    }
    return false;
}

bool fl_deep_pick(fl_worker *w, fl_tile *tile)
{
    fl_sched *sched = w->sched;
    filch_job *goal = (filch_job *)(uintptr_t)w->frames->goal;
    fl_ahead ahead = {.count = 0};
    if (goal == NULL) {
        return false;
    }
    if (fl_policy_pick_sent(w, goal, tile)) {
        return true;
    }
    (void)fl_job_waits_for(goal, note_ahead, &ahead);
    for (uint32_t i = 0; i < ahead.count; ++i) {
        /* Here tasks only are compared with the job. */
        if (fl_policy_pick_sent(w, ahead.jobs[i], tile) ||
            fl_policy_pick_goal(w, ahead.jobs[i], tile) ||
            (sched->board != NULL && fl_board_pick_goal(w, ahead.jobs[i], tile))) {
            return true;
        }
    }
    for (uint32_t word = 0; ahead.count != 0 && word < FL_ACTIVE_SLOTS / 64; ++word) {
        /* Acquire: a set bit's slot is filled. */
        uint64_t bits = fl_load_acquire(&sched->active[word]);
        for (; bits != 0; bits &= bits - 1) {
            filch_job *job = fl_worker_visit(w, word * 64 + (uint32_t)__builtin_ctzll(bits));
            if (job != NULL && is_ahead(&ahead, job) && fl_pick_goal(w, job, tile)) {
                return true;
            }
        }
    }
    return false;
}
