/* SPDX-License-Identifier: Apache-2.0 */
/* The shared ready queue has one lock. `shared_jobs`, in fl_sched, counts the jobs whose tasks may
 * be in the queue. The count changes under the lock; while the count is 0 the queue is empty.
 *
 * No wake-up is lost. A worker finding no task says so under the lock, and the driver lets the
 * worker look again after the worker has announced idleness. A thread putting a task sees under the
 * lock which workers have found nothing and announced idleness, and wakes one worker. A worker
 * announcing later looks later. A worker unaware of tasks in the queue is woken with every worker
 * when the count leaves 0, behind a full fence. A worker leaving a task after a wake-up has a time
 * for the next look. Every worker looks when the device favoured for a task fails or goes offline.
 *
 * No task stays in the queue for ever. A worker leaving a task to a free device wakes the device.
 * While the device does not come, its predicted wait grows with the time passed, so a second device
 * soon has the earliest finish time (eft.c). Any device may take a cancelled task. */

#include <math.h>
#include <string.h>

#include "sched/execute/shared_queue.h"

#include "sched/account/ledger.h"
#include "sched/decide/admission.h"
#include "sched/decide/eft.h"
#include "sched/decide/locality.h"
#include "sched/execute/give.h"
#include "sched/model/explore.h"
#include "sched/model/timeline.h"
#include "sched/ready/shared.h"
#include "sched/worker/device.h"
#include "sched/worker/graph_part.h"
#include "sched/worker/others.h"
#include "sched/worker/sched.h"
#include "sched/worker/timeline.h"
#include "sched/worker/tuning.h"
#include "sched/worker/wake.h"

static uint64_t now(const fl_sched *sched)
{
    return fl_clock_now(&sched->core->clock);
}

static bool is_boarding(const fl_sched *sched)
{
    /* A worker reading a stale mask is woken; see the head of the file. */
    return fl_sched_attends(sched, FL_ATTEND_SHARED);
}

/* --- Beginning and end --- */

static size_t board_bytes(const fl_sched *sched)
{
    return sizeof(fl_shared_queue) + sched->count * sizeof(fl_timeline);
}

filch_status fl_shared_queue_open(fl_sched *sched)
{
    if (!fl_admission_may_share(sched)) {
        return FILCH_OK;
    }
    fl_shared_queue *shared = fl_alloc_aligned(&sched->core->memory, board_bytes(sched), 64);
    if (shared == NULL) {
        return FILCH_OUT_OF_MEMORY;
    }
    memset(shared, 0, board_bytes(sched));
    filch_status status = fl_mutex_init(&shared->lock);
    if (status != FILCH_OK) {
        fl_free_aligned(&sched->core->memory, shared, board_bytes(sched), 64);
        return status;
    }
    /* Relaxed: no second thread is running yet. */
    fl_store_relaxed(&shared->is_unlike, fl_admission_has_unlike_scores(sched));
    for (uint32_t d = 0; d < sched->count; ++d) {
        shared->timelines[d].look_at = FL_TIME_NEVER;
    }
    sched->shared_queue = shared;
    return FILCH_OK;
}

void fl_shared_queue_close(fl_sched *sched)
{
    if (sched->shared_queue != NULL) {
        fl_mutex_fini(&sched->shared_queue->lock);
        fl_free_aligned(&sched->core->memory, sched->shared_queue, board_bytes(sched), 64);
        sched->shared_queue = NULL;
    }
}

/* --- Lists. Under the lock. --- */

static uint32_t rank_of(const fl_task *task)
{
    float most = task->graph->rank_most;
    if (most <= 0) {
        return (task->level + 1u) * (FL_RANKS / FL_LEVELS) - 1;
    }
    float rank = task->rank / most * (float)FL_RANKS;
    return rank <= 0 ? 0 : rank < (float)FL_RANKS ? (uint32_t)rank : FL_RANKS - 1;
}

static void add(fl_shared_queue *shared, fl_task *task)
{
    fl_ranked_add(&shared->tasks, rank_of(task), &task->link);
    ++shared->changes;
}

static fl_task *take(fl_shared_queue *shared, uint32_t timelines, fl_ranked_spot spot)
{
    fl_ranked_remove(&shared->tasks, spot);
    ++shared->changes;
    for (uint32_t d = 0; d < timelines; ++d) {
        /* Every device has seen the tasks left in the list, but not the next task put. */
        fl_timeline *timeline = &shared->timelines[d];
        timeline->seen =
            timeline->seen < shared->tasks.count ? timeline->seen : shared->tasks.count;
    }
    return fl_task_of_link(spot.link);
}

/* --- Admission of graphs --- */

/* Admits the graph: from now on ready tasks go to the shared ready queue. Under the lock. */
static void admit(fl_sched *sched, filch_graph *graph)
{
    fl_graph_part *part = fl_part_of_graph(graph);
    part->was_shared = true;
    /* Relaxed, for every store: a worker with a stale value leaves a task in a deque, and is told
     * before sleeping. */
    fl_store_relaxed(&part->is_shared, 1);
    fl_or_relaxed(&sched->attention,
                  (uint32_t)(FL_ATTEND_CAREFUL | FL_ATTEND_OFFERS | FL_ATTEND_SHARED));
    ++sched->shared_jobs;
}

/* Judges whether tasks are too short for weighing; then any worker with a free slot takes the most
 * urgent task. Weighing a short task would cost more than a bad choice. The verdict is computed
 * after a measurement and kept, because devices write the cache lines of the means with each
 * step. */
static void judge_length(const fl_sched *sched)
{
    fl_shared_queue *shared = sched->shared_queue;
    uint32_t is_hasty = fl_admission_runs_beside(sched) &&
                        !fl_admission_is_weighed(sched, fl_load_relaxed(&shared->is_unlike) != 0);
    /* Relaxed, both accesses: an estimate. */
    if (fl_load_relaxed(&shared->is_hasty) != is_hasty) {
        fl_store_relaxed(&shared->is_hasty, is_hasty);
    }
}

/* Records the task's evidence about the devices, for later graphs. */
static void judge(fl_shared_queue *shared, bool is_unlike)
{
    /* Relaxed, every access: estimates. */
    if (is_unlike) {
        fl_store_relaxed(&shared->alike, 0);
        fl_store_relaxed(&shared->is_unlike, 1);
    } else if (fl_load_relaxed(&shared->is_unlike) != 0 &&
               fl_add_relaxed(&shared->alike, 1) >= FL_ALIKE_TASKS) {
        fl_store_relaxed(&shared->is_unlike, 0);
    }
}

void fl_shared_queue_learn(fl_worker *w, const fl_item *item)
{
    fl_sched *sched = w->sched;
    fl_shared_queue *shared = sched->shared_queue;
    filch_graph *graph = item->task->graph;
    bool is_known;
    judge_length(sched);
    if (graph->kind != FILCH_GRAPH_CLOSED) {
        return;
    }
    bool is_unlike = fl_admission_is_unlike_at(sched, item->task, &is_known);
    if (!is_known) {
        return;
    }
    judge(shared, is_unlike);
    fl_graph_part *part = fl_part_of_graph(graph);
    bool is_shared = fl_load_relaxed(&part->is_shared) != 0;
    if (is_shared && !fl_admission_runs_beside(sched) && fl_admission_length(sched) < 1) {
        fl_store_relaxed(&part->is_shared, 0); /* relaxed, as in admit */
    }
    if (is_shared || !fl_admission_is_shared(sched, graph, is_unlike)) {
        return;
    }
    filch_job *job = graph->job;
    fl_mutex_lock_soon(&shared->lock);
    bool is_new = !part->was_shared;
    if (is_new) {
        /* Assumes for tasks without an account of work an average share of the graph's work. */
        /* Relaxed: an estimate, no order needed. */
        int64_t left = fl_load_relaxed(&job->remaining);
        double rest = (double)left / (double)fl_load_relaxed(&graph->task_count);
        part->rank_taken = graph->rank_sum * fmin(fmax(1 - rest, 0), 1);
        admit(sched, graph);
    } else {
        fl_store_relaxed(&part->is_shared, 1); /* relaxed, as in admit */
    }
    fl_mutex_unlock(&shared->lock);
    if (is_new) {
        fl_sched_wake(sched, sched->count);
    }
}

bool fl_shared_queue_begin(fl_sched *sched, filch_job *job)
{
    filch_graph *graph = job->graph;
    fl_shared_queue *shared = sched->shared_queue;
    uint32_t count = graph->root_count, own = 0;
    fl_graph_part *part = fl_part_of_graph(graph);
    part->rank_taken = 0;
    part->was_shared = false;
    /* Relaxed: a later publication makes the graph known to workers. */
    fl_store_relaxed(&part->is_shared, 0);
    part->has_shared_roots =
        shared != NULL &&
        fl_admission_is_shared(sched, graph, fl_load_relaxed(&shared->is_unlike) != 0);
    if (!part->has_shared_roots) {
        return false;
    }
    judge_length(sched);
    for (uint32_t i = 0; i < count; ++i) {
        own += fl_task_is_own(graph->roots[i]);
    }
    fl_mutex_lock_soon(&shared->lock);
    admit(sched, graph);
    fl_mutex_unlock(&shared->lock);
    /* Routes filch's own roots first: the job cannot end until the remaining roots are queued. */
    for (uint32_t i = 0, left = own; left != 0; ++i) {
        if (fl_task_is_own(graph->roots[i])) {
            --left;
            fl_sched_route(sched, graph->roots[i]);
        }
    }
    /* A graph with only filch's own roots may be finished and gone at the loop. */
    fl_mutex_lock_soon(&shared->lock);
    for (uint32_t i = 0; i < count && own != count; ++i) {
        if (!fl_task_is_own(graph->roots[i])) {
            add(shared, graph->roots[i]);
        }
    }
    fl_mutex_unlock(&shared->lock);
    fl_sched_wake(sched, sched->count);
    return true;
}

void fl_shared_queue_end(fl_sched *sched, const filch_job *job)
{
    if (job->batch != NULL || !fl_part_of_graph(job->graph)->was_shared) {
        return;
    }
    /* The lock keeps the stores apart from the stores of a second job's admission. */
    fl_mutex_lock_soon(&sched->shared_queue->lock);
    /* Relaxed, for every access: no task of the job is left in the queue; a worker with a stale
     * value looks once more. */
    if (--sched->shared_jobs == 0) {
        uint32_t off =
            FL_ATTEND_SHARED | (sched->mails ? 0u : FL_ATTEND_CAREFUL | FL_ATTEND_OFFERS);
        fl_and_relaxed(&sched->attention, ~off);
    }
    fl_mutex_unlock(&sched->shared_queue->lock);
}

/* --- Taking --- */

/* Takes the task at `spot`, now owned by the worker. Under the lock. */
static fl_task *take_for(fl_worker *w, uint64_t t, bool is_weighed, fl_ranked_spot spot)
{
    fl_sched *sched = w->sched;
    fl_task *task = take(sched->shared_queue, sched->count, spot);
    if (is_weighed) {
        fl_timeline_take(w, t, task);
    }
    if (task->home != 0 && task->home != w->index + 1) {
        const filch_job *job = task->graph->job;
        fl_count(&fl_job_share(job, w->index)->stolen_in, 1);
        fl_ledger_add_stolen(&w->ledger, 1);
        fl_add_relaxed(&fl_job_share(job, task->home - 1)->stolen_out, 1);
    }
    return task;
}

static void set_waiting(fl_shared_queue *shared, uint32_t index, bool waits)
{
    uint64_t bit = (uint64_t)1 << index % 64;
    shared->waiting[index / 64] =
        waits ? shared->waiting[index / 64] | bit : shared->waiting[index / 64] & ~bit;
}

static bool is_hasty(const fl_sched *sched)
{
    return fl_load_relaxed(&sched->shared_queue->is_hasty) != 0;
}

/* Wakes the devices left with tasks. */
static void wake_called(fl_sched *sched, const uint64_t *called)
{
    for (uint32_t word = 0; word < FL_IDLE_WORDS && word * 64 < sched->count; ++word) {
        for (uint64_t bits = called[word]; bits != 0; bits &= bits - 1) {
            (void)fl_sched_wake_worker(sched, word * 64 + (uint32_t)__builtin_ctzll(bits));
        }
    }
}

/* Carries out what a choice says beside the task to take. Under the lock. */
static void note_choice(fl_worker *w, const fl_eft_choice *choice)
{
    const fl_shared_queue *shared = w->sched->shared_queue;
    fl_timeline *timeline = fl_timeline_of(w);
    if (choice->explores) {
        fl_explore_begin(w, fl_worker_mean_ns(w), fl_task_of_link(choice->spot.link));
    }
    if (choice->look_at != 0) {
        timeline->look_at = choice->look_at;
        fl_ledger_refuse(&w->ledger, FL_REFUSED_HELD);
    }
    if (choice->leaves_all) {
        timeline->has_left_all = true;
        timeline->seen = shared->tasks.count;
    }
}

bool fl_shared_queue_pick(fl_worker *w, fl_item *item)
{
    fl_shared_queue *shared = w->sched->shared_queue;
    shared->timelines[w->index].look_at = FL_TIME_NEVER;
    if (!is_boarding(w->sched)) {
        return false;
    }
    bool hurries = is_hasty(w->sched);
    /* A task waiting behind an item in flight could begin on a second device. */
    if (!hurries && fl_timeline_in_flight(w) >= fl_eft_depth(w)) {
        return false;
    }
    fl_task *task = NULL;
    fl_eft_choice choice = {0};
    uint64_t t = hurries ? 0 : now(w->sched);
    fl_mutex_lock_soon(&shared->lock);
    fl_timeline_update(w);
    if (shared->tasks.count != 0 && hurries) {
        choice.is_found = fl_shared_find(&shared->tasks, w, fl_may_run, NULL, &choice.spot);
    } else if (shared->tasks.count != 0) {
        fl_eft_choose(w, t, &choice);
        note_choice(w, &choice);
    }
    if (choice.is_found) {
        task = take_for(w, t, !hurries, choice.spot);
    }
    set_waiting(shared, w->index, task == NULL);
    fl_mutex_unlock(&shared->lock);
    wake_called(w->sched, choice.called);
    return fl_item_set_task(item, task);
}

bool fl_shared_queue_pick_of(fl_worker *w, const fl_sought *sought, bool is_strict, fl_item *item)
{
    fl_shared_queue *shared = w->sched->shared_queue;
    fl_task *task = NULL;
    fl_ranked_spot spot;
    if (!is_boarding(w->sched)) {
        return false;
    }
    fl_mutex_lock_soon(&shared->lock);
    fl_timeline_update(w);
    /* The job's tasks come first, regardless of rank: an unrelated task might wait in turn. */
    if (fl_shared_find(&shared->tasks, w, fl_may_run_of, sought, &spot) ||
        (!is_strict && !fl_worker_is_offline(w) &&
         fl_shared_find(&shared->tasks, w, fl_may_run_waiting, NULL, &spot))) {
        uint64_t t = now(w->sched);
        fl_timeline_survey(w, t, fl_task_of_link(spot.link));
        task = take_for(w, t, true, spot);
    }
    set_waiting(shared, w->index, task == NULL);
    fl_mutex_unlock(&shared->lock);
    return fl_item_set_task(item, task);
}

bool fl_shared_queue_bid_ahead(fl_worker *w, fl_task *task)
{
    fl_shared_queue *shared = w->sched->shared_queue;
    if (is_hasty(w->sched)) {
        return !fl_admission_is_wide(w->sched, task->graph, FL_WIDE_ENOUGH_HASTY);
    }
    if (fl_timeline_in_flight(w) >= fl_eft_depth(w)) {
        return false;
    }
    uint64_t t = now(w->sched);
    fl_mutex_lock_soon(&shared->lock);
    fl_timeline_update(w);
    bool wins = fl_eft_wins(w, t, task);
    if (wins) {
        fl_timeline_take(w, t, task);
        /* The worker looks again before running out of work. */
        set_waiting(shared, w->index, false);
    }
    fl_mutex_unlock(&shared->lock);
    return wins;
}

uint64_t fl_shared_queue_look_at(fl_worker *w)
{
    fl_timeline *timeline = &w->sched->shared_queue->timelines[w->index];
    uint64_t at = timeline->look_at;
    /* A full worker woken for a different reason need not look. */
    timeline->look_at = FL_TIME_NEVER;
    return at;
}

/* --- Unavailable devices --- */

fl_task *fl_shared_queue_drop(fl_worker *w, fl_may_fn may)
{
    fl_shared_queue *shared = w->sched->shared_queue;
    fl_task *task = NULL;
    fl_ranked_spot spot;
    if (shared == NULL || !is_boarding(w->sched)) {
        return NULL;
    }
    fl_mutex_lock_soon(&shared->lock);
    fl_timeline_update(w);
    if (fl_shared_find(&shared->tasks, w, may, NULL, &spot)) {
        task = take(shared, w->sched->count, spot);
    }
    fl_mutex_unlock(&shared->lock);
    return task;
}

bool fl_shared_queue_leave(fl_worker *w)
{
    fl_shared_queue *shared = w->sched->shared_queue;
    if (shared == NULL) {
        return false;
    }
    fl_mutex_lock_soon(&shared->lock);
    bool is_first = !shared->timelines[w->index].is_gone;
    shared->timelines[w->index].is_gone = true;
    fl_mutex_unlock(&shared->lock);
    return is_first && is_boarding(w->sched);
}

/* --- Putting --- */

bool fl_shared_queue_put(fl_sched *sched, const fl_worker *self, fl_task *task)
{
    fl_shared_queue *shared = sched->shared_queue;
    /* Relaxed: a stale value only leaves the task in a deque. */
    if (fl_load_relaxed(&fl_part_of_graph(task->graph)->is_shared) == 0 || fl_task_is_own(task) ||
        (self != NULL && FL_UNLIKELY(fl_locality_keeps(self, task)))) {
        return false;
    }
    fl_mutex_lock_soon(&shared->lock);
    /* Unavailable devices look at the queue once, when going offline or failing. */
    if (fl_other_for(sched, NULL, task, FL_OTHERS_ONLINE, 0, NULL) == NULL) {
        fl_mutex_unlock(&shared->lock);
        return false;
    }
    add(shared, task);
    uint32_t called = fl_admission_called(sched, task);
    if (called != UINT32_MAX) {
        set_waiting(shared, called, false);
    }
    fl_mutex_unlock(&shared->lock);
    if (called != UINT32_MAX) {
        fl_sched_wake_worker(sched, called);
    }
    return true;
}
