/* SPDX-License-Identifier: Apache-2.0 */
/* Takes from ranges of grains and roots: the device's own share of every active job, or the range
 * of a goal job. */
#include "sched/execute/pick.h"

#include "sched/account/ledger.h"
#include "sched/decide/chunk.h"
#include "sched/decide/locality.h"
#include "sched/decide/policy.h"
#include "sched/execute/divide.h"
#include "sched/execute/give.h"
#include "sched/execute/graph_launch.h"
#include "sched/execute/step.h"
#include "sched/execute/window.h"
#include "sched/model/predict.h"
#include "sched/model/slowness.h"
#include "sched/worker/device.h"
#include "sched/worker/jobs.h"
#include "sched/worker/others.h"
#include "sched/worker/sched.h"
#include "sched/worker/tuning.h"

/* --- Batches cut by a policy --- */

static bool take_common(fl_worker *w, filch_job *job, uint32_t *lo, uint32_t *hi)
{
    fl_range *range = &fl_job_share(job, 0)->range;
    uint32_t rest;
    /* Acquire, in taking from the range: the cutting thread's writes are visible. */
    while (fl_devices_have(fl_batch_devices(job->batch), w->index) &&
           (rest = fl_range_peek(range, lo, hi)) != 0) {
        bool is_cancelled = fl_load_relaxed(&job->cancelled) != 0;
        uint32_t most = fl_batch_reach(job->batch, *lo) - *lo, want = rest;
        if (!is_cancelled) {
            want = fl_policy_chunk(w, job, *lo, rest, fl_chunk_equal(w->sched, job));
        }
        want = want < most ? want : most;
        want = is_cancelled ? want : fl_chunk_fit(w, job, *lo, want);
        if (fl_range_take_at(range, *lo, want, hi)) {
            return true;
        }
    }
    return false;
}

/* Takes grains that a device could not do, the worker's own device included when trying again. */
static bool take_left(const fl_worker *w, filch_job *job, uint32_t *lo, uint32_t *hi)
{
    bool is_cancelled = fl_load_relaxed(&job->cancelled) != 0;
    uint32_t rest;
    if (!fl_devices_have(fl_batch_devices(job->batch), w->index)) {
        return false;
    }
    for (uint32_t d = 0; d < w->sched->count; ++d) {
        fl_range *left = &fl_job_share(job, (w->index + d) % w->sched->count)->left;
        while ((rest = fl_range_peek(left, lo, hi)) != 0) {
            uint32_t want = is_cancelled ? rest : fl_chunk_fit(w, job, *lo, rest);
            if (fl_range_take_at(left, *lo, want, hi)) {
                return true;
            }
        }
    }
    return false;
}

static bool take_piece(const fl_worker *w, const filch_job *job, uint32_t *lo, uint32_t *hi)
{
    uint32_t position, end;
    if (!fl_range_take(&fl_job_share(job, w->index)->range, 1, &position, &end)) {
        return false;
    }
    *lo = fl_part_of_job(job)->pieces->at[position].lo;
    *hi = fl_part_of_job(job)->pieces->at[position].hi;
    return true;
}

static bool pick_piece(fl_worker *w, filch_job *job, fl_item *item)
{
    uint32_t lo, hi;
    if (fl_load_relaxed(&job->cancelled) == 0 && fl_share_is_left(w, job)) {
        return false;
    }
    if (!(fl_part_of_job(job)->cut == FL_CUT_COMMON ? take_common(w, job, &lo, &hi)
                                                    : take_piece(w, job, &lo, &hi)) &&
        !take_left(w, job, &lo, &hi)) {
        return false;
    }
    bool is_cancelled = fl_load_relaxed(&job->cancelled) != 0;
    *item =
        (fl_item){.job = job, .lo = lo, .hi = hi, .skip = is_cancelled, .timed = true, .stands = 1};
    item->work = is_cancelled ? 0 : fl_batch_work(w, job, lo, hi);
    return true;
}

static fl_range *own_range(const fl_worker *w, const filch_job *job)
{
    return &fl_job_share(job, fl_part_of_job(job)->cut == FL_CUT_COMMON ? 0 : w->index)->range;
}

bool fl_pieces_take_any(const fl_worker *w, filch_job *job, uint32_t *lo, uint32_t *hi)
{
    fl_range *range = own_range(w, job);
    if (fl_part_of_job(job)->cut != FL_CUT_SHARES &&
        fl_range_drain(&fl_job_share(job, w->index)->left, lo, hi)) {
        return true;
    }
    if (fl_part_of_job(job)->cut == FL_CUT_PIECES) {
        return take_piece(w, job, lo, hi);
    }
    while (fl_range_peek(range, lo, hi) != 0) {
        if (fl_range_take_at(range, *lo, fl_batch_reach(job->batch, *lo) - *lo, hi)) {
            return true;
        }
    }
    return false;
}

bool fl_pieces_return(const fl_worker *w, const fl_item *item)
{
    fl_share *share = fl_job_share(item->job, w->index);
    uint32_t lo, hi;
    if (fl_part_of_job(item->job)->cut == FL_CUT_SHARES) {
        return fl_range_return(&share->range, item->lo, item->hi);
    }
    if (fl_range_peek(&share->left, &lo, &hi) != 0) {
        return false;
    }
    /* The worker alone fills `left`. */
    fl_range_set(&share->left, item->lo, item->hi);
    return true;
}

uint32_t fl_pieces_rest(const fl_worker *w, const filch_job *job)
{
    uint32_t lo, hi;
    return fl_range_peek(own_range(w, job), &lo, &hi) +
           fl_range_peek(&fl_job_share(job, w->index)->left, &lo, &hi);
}

/* --- Shares --- */

static bool pick_chunk(fl_worker *w, filch_job *job, fl_item *item)
{
    if (FL_UNLIKELY(fl_part_of_job(job)->cut != FL_CUT_SHARES)) {
        return pick_piece(w, job, item);
    }
    fl_range *range = &fl_job_share(job, w->index)->range;
    uint32_t lo, hi;
    bool is_cancelled = fl_load_relaxed(&job->cancelled) != 0;
    uint32_t rest = fl_range_peek(range, &lo, &hi);
    bool is_others = rest != 0 && !is_cancelled && fl_share_is_left(w, job);
    uint32_t want = rest == 0 || is_others ? 0
                    : is_cancelled         ? rest
                                           : fl_chunk_size(w, job, lo, rest);
    if (FL_UNLIKELY(w->sched->rules.with.chunk != NULL) && want != 0 && !is_cancelled) {
        want = fl_policy_chunk(w, job, lo, rest, want);
    }
    /* Only the owner takes from the front of the range, so lo stays valid. */
    uint32_t most = want != 0 ? fl_batch_reach(job->batch, lo) - lo : 0;
    want = want < most ? want : most;
    if (want > 1 && !is_cancelled) {
        want = fl_chunk_fit(w, job, lo, want);
    }
    if (want == 0 || !fl_range_take(range, want, &lo, &hi)) {
        return false;
    }
    fl_job_share(job, w->index)->chunk = hi - lo;
    ++fl_job_share(job, w->index)->unseen;
    *item =
        (fl_item){.job = job, .lo = lo, .hi = hi, .skip = is_cancelled, .timed = true, .stands = 1};
    item->work = is_cancelled ? 0 : fl_batch_work(w, job, lo, hi);
    return true;
}

/* Gives a root just taken to a better device, where there is one. */
static __attribute__((noinline)) bool give_root(fl_worker *w, fl_task *root)
{
    /* The job may be over as soon as a second worker has the root. */
    fl_worker_flush(w);
    return fl_give_slow(w, root);
}

/* Takes up to `want` roots from the worker's range. Roots at the beginning of the range that are
 * better left to other devices are given away. */
static bool take_roots(fl_worker *w, filch_job *job, uint32_t want, uint32_t *lo, uint32_t *hi)
{
    while (fl_range_take(&fl_job_share(job, w->index)->range, want, lo, hi)) {
        if (FL_LIKELY(!fl_slow_is_on(w)) || !give_root(w, job->graph->roots[*lo])) {
            return true;
        }
    }
    return false;
}

/* Chooses the root to begin with from the worker's roots; the worker keeps the rest. */
static __attribute__((noinline)) void choose_root(fl_worker *w, const filch_graph *graph,
                                                  uint32_t lo, uint32_t hi, fl_item *item)
{
    for (uint32_t root = lo; root < hi; ++root) {
        fl_window_add(w, graph->roots[root]);
    }
    fl_window_take(w, item);
}

/* Takes more roots to choose from, beside the first root of a device without a completed item. The
 * first root was taken before missing tiles were known; the root keeps the job from ending. */
static __attribute__((noinline)) void begin_to_choose(fl_worker *w, filch_job *job, uint32_t first,
                                                      fl_item *item)
{
    uint32_t lo, hi;
    if (!fl_window_expect(w, job->graph->roots[first])) {
        return;
    }
    uint32_t rest = fl_range_peek(&fl_job_share(job, w->index)->range, &lo, &hi);
    fl_window_add(w, job->graph->roots[first]);
    bool has_more = rest != 0 && take_roots(w, job, fl_locality_room(w, rest), &lo, &hi);
    choose_root(w, job->graph, lo, has_more ? hi : lo, item);
}

static inline bool pick_root(fl_worker *w, filch_job *job, fl_item *item)
{
    uint32_t lo, hi, rest = fl_range_peek(&fl_job_share(job, w->index)->range, &lo, &hi);
    if (rest == 0) {
        return false;
    }
    if (FL_UNLIKELY(w->sched->looks_ahead) && fl_graph_launch_may_begin(w, job, rest) &&
        fl_graph_launch_pick(w, job, item)) {
        return true;
    }
    uint32_t want = fl_locality_chooses(w) ? fl_locality_room(w, rest) : 1;
    if (!take_roots(w, job, want, &lo, &hi)) {
        return false;
    }
    const filch_graph *graph = job->graph;
    (void)fl_item_set_task(item, graph->roots[lo]);
    if (FL_UNLIKELY(hi - lo > 1)) {
        choose_root(w, graph, lo, hi, item);
    } else if (FL_UNLIKELY(fl_locality_is_new(w))) {
        begin_to_choose(w, job, lo, item);
    } else if (lo + FL_ROOTS_AHEAD < graph->root_count) {
        const fl_task *soon = graph->roots[lo + FL_ROOTS_AHEAD];
        __builtin_prefetch(soon, 1);
        __builtin_prefetch(&soon->more);
    }
    return true;
}

bool fl_pick_range(fl_worker *w, bool may_begin, fl_item *item)
{
    fl_jobs_walk walk = {0};
    for (filch_job *job; (job = fl_jobs_next(w, &walk)) != NULL;) {
        if (job->batch == NULL ? pick_root(w, job, item) : may_begin && pick_chunk(w, job, item)) {
            return true;
        }
    }
    return false;
}

static bool cut_half(const fl_worker *w, const filch_job *job, fl_range *range, uint32_t *lo,
                     uint32_t *hi)
{
    uint32_t rest, floor;
    while ((rest = fl_range_peek(range, lo, hi)) != 0 && fl_range_is_open(w, job, *hi, &floor) &&
           floor < *hi) {
        if (fl_range_cut(range, rest / 2 + rest % 2, floor, *hi, lo, hi)) {
            return true;
        }
    }
    return false;
}

bool fl_pick_goal(fl_worker *w, filch_job *job, fl_item *item)
{
    fl_sched *sched = w->sched;
    /* Acquire: until then, the ranges are being filled one by one, and grains put into the worker's
     * range would be lost. */
    if (fl_load_acquire(&fl_part_of_job(job)->is_offered) == 0) {
        return false;
    }
    for (uint32_t i = 0; i < sched->count; ++i) {
        uint32_t lo, hi;
        if (job->batch != NULL ? pick_chunk(w, job, item) : pick_root(w, job, item)) {
            return true;
        }
        /* The worker's own range is empty, and only the worker fills the range. Cuts half of a
         * second range, regardless of policy and predictions: the owner may be in a deep wait, and
         * take only work needed there. */
        fl_range *theirs = &fl_job_share(job, i)->range;
        if (i != w->index && cut_half(w, job, theirs, &lo, &hi)) {
            fl_count(&fl_job_share(job, w->index)->stolen_in, hi - lo);
            fl_ledger_add_stolen(&w->ledger, hi - lo);
            fl_add_relaxed(&fl_job_share(job, i)->stolen_out, hi - lo);
            fl_share_refill(fl_job_share(job, w->index), lo, hi);
        }
    }
    return job->batch != NULL ? pick_chunk(w, job, item) : pick_root(w, job, item);
}
