/* SPDX-License-Identifier: Apache-2.0 */
#include "sched/execute/step.h"

#include "sched/worker/worker.h"

#include "sched/account/account.h"
#include "sched/account/rated.h"
#include "sched/decide/locality.h"
#include "sched/decide/lookahead.h"
#include "sched/decide/place.h"
#include "sched/decide/placement.h"
#include "sched/decide/slow.h"
#include "sched/decide/speculate.h"
#include "sched/decide/steal.h"
#include "sched/execute/divide.h"
#include "sched/execute/full.h"
#include "sched/execute/host_events.h"
#include "sched/execute/in_flight.h"
#include "sched/execute/nested_wait.h"
#include "sched/execute/offline.h"
#include "sched/execute/offload.h"
#include "sched/execute/pick.h"
#include "sched/execute/reduce.h"
#include "sched/model/explore.h"
#include "sched/model/predict.h"
#include "sched/model/proven.h"
#include "sched/model/speed.h"
#include "sched/ready/shared_queue.h"
#include "sched/worker/device.h"
#include "sched/worker/item.h"
#include "sched/worker/jobs.h"
#include "sched/worker/sched.h"
#include "sched/worker/tuning.h"
#include "sched/worker/wake.h"

const fl_core *fl_worker_core(const fl_worker *w)
{
    return w->sched->core;
}

const filch_codelet *fl_item_codelet(const fl_item *item)
{
    return item->task != NULL ? item->task->codelet : fl_batch_codelet(item->job->batch);
}

static uint64_t now(const fl_worker *w)
{
    return fl_clock_now(&w->sched->core->clock);
}

/* --- Ready tasks --- */

void fl_worker_push(fl_worker *w, fl_task *task)
{
    uint32_t level = task->level;
    /* Relaxed: our own ready task. */
    uint64_t hint = fl_hint_make(task, fl_load_relaxed(&task->word));
    if (FL_UNLIKELY(!fl_deque_push(&w->queues.levels[level], hint))) {
        /* The inbox needs no memory. */
        fl_inbox_push(&w->queues.inbox, &task->link);
        return;
    }
    ++w->ready.queued;
    w->ready.pushed = true;
    if ((w->ready.mask & (1u << level)) == 0) {
        w->ready.mask |= 1u << level;
        /* Relaxed: the deque publishes the entry; a thief missing the bit is woken or looks
         * again. */
        fl_store_relaxed(&w->queues.level_mask, w->ready.mask);
    }
}

static void make_ready(fl_worker *w, fl_task *task)
{
    /* Relaxed: a worker with a stale value leaves the task in a deque. */
    if (FL_UNLIKELY(fl_load_relaxed(&w->sched->is_careful) != 0) && fl_worker_sends(w, task)) {
        return;
    }
    if (FL_UNLIKELY(!fl_worker_can_run(w, task))) {
        fl_sched_route(w->sched, task);
        return;
    }
    if (w->sched->keeps_holders && task->access_count != 0 && fl_place_gives(w, task)) {
        return;
    }
    if (w->ready.next_task == NULL) {
        w->ready.next_task = task;
    } else if (task->level > w->ready.next_task->level) {
        fl_worker_push(w, w->ready.next_task);
        w->ready.next_task = task;
    } else {
        fl_worker_push(w, task);
    }
}

/* Message of a finished predecessor to the successors. */
typedef struct fl_release {
    uint32_t run; /* epoch of tasks not yet claimed in the run; with is_looked_ahead */
    bool poisoned, is_open, is_looked_ahead;
} fl_release;

/* Releases a commuting task. The task becomes ready when holding the commute locks, too; the locks
 * count as one predecessor. */
static __attribute__((noinline)) void release_commuting(fl_worker *w, fl_task *task,
                                                        const fl_release *how)
{
    if (how->poisoned) {
        /* Relaxed: as in release_one. A commuting task is never claimed ahead: the word belongs to
         * the present run. */
        fl_or_relaxed(&task->word, (uint64_t)FL_TASK_POISONED);
    }
    /* Acquire-release: as in release_one. */
    if (fl_sub_acq_rel(&task->pending, 1) == 2 && fl_commute_locks_take(task)) {
        make_ready(w, task);
    }
}

static inline void release_one(fl_worker *w, fl_task *task, const fl_release *how)
{
    bool poisoned = how->poisoned, is_open = how->is_open;
    if (FL_UNLIKELY(task->commutes)) {
        release_commuting(w, task, how);
        return;
    }
    if (FL_UNLIKELY(how->is_looked_ahead)) {
        if (fl_lookahead_release(task, how->run, poisoned)) {
            make_ready(w, task);
        }
        return;
    }
    if (FL_UNLIKELY(poisoned)) {
        /* Relaxed: the decrement below publishes the bit to the worker making the task ready. */
        fl_or_relaxed(&task->word, (uint64_t)FL_TASK_POISONED);
    }
    if (!is_open && task->predecessors == 1) {
        /* Relaxed: we are the only predecessor. */
        fl_store_relaxed(&task->pending, 0);
        make_ready(w, task);
    } else if (fl_sub_acq_rel(&task->pending, 1) == 1) {
        /* Acquire-release: every predecessor's writes reach the last predecessor, and through the
         * last the task. */
        make_ready(w, task);
    }
}

/* Releases the successors. In line, as retiring is. */
static inline __attribute__((always_inline)) void release_successors(fl_worker *w, fl_task *task,
                                                                     bool poisoned, bool is_open)
{
    const fl_release how = {
        .poisoned = poisoned,
        .is_open = is_open,
        .is_looked_ahead = w->sched->looks_ahead && !is_open,
        /* Claiming advanced the epoch; only the claimer changes a claimed task's word. */
        .run = fl_word_epoch(fl_load_relaxed(&task->word)) - 1,
    };
    uint32_t inlined = task->successor_count;
    if (inlined > FL_TASK_SUCCESSORS) {
        inlined = FL_TASK_SUCCESSORS;
        for (const fl_more *more = task->more; more != NULL; more = more->next) {
            for (uint64_t i = 0; i < more->count; ++i) {
                release_one(w, more->tasks[i], &how);
            }
        }
    }
    for (uint32_t i = 0; i < inlined; ++i) {
        release_one(w, task->successors[i], &how);
    }
}

/* --- Retiring --- */

static inline void count_outcome(fl_worker *w, const fl_item *item, uint64_t n, uint64_t tiles)
{
    fl_share *share = w->now.share;
    if (FL_UNLIKELY(item->skip)) {
        fl_count(&share->skipped, n);
        return;
    }
    fl_count(&share->tiles, tiles);
    fl_count(item->code == 0 ? &share->done : &share->failed, n);
}

/* Updates the mean by a piece, scaled to the whole task. Exploration uses whole tasks only. */
static double mean_by_piece(const fl_item *item, double mean, double ns)
{
    double whole = fl_divide_whole(item, ns);
    /* Weight as in fl_explore_mean. */
    return mean == 0 ? whole : mean + (whole - mean) / 4;
}

static void learn(fl_worker *w, const fl_item *item, const filch_codelet *codelet)
{
    double ns = fl_speed_add(fl_codelet_speed(codelet, w->index), item->work, (double)item->fair,
                             item->start + item->ns);
    if (item->task != NULL) {
        if (FL_UNLIKELY(w->sched->keeps_holders && codelet != w->theft.kind)) {
            /* The item waited for nested tasks of a second kind. */
            fl_place_turn(w, codelet);
        }
        /* Relaxed: written by the worker only; thieves read an estimate. */
        double mean = fl_bits_double(fl_load_relaxed(&w->queues.item_ns));
        ns = ns != 0 ? ns : 1;
        mean = FL_UNLIKELY(fl_task_is_divided(item->task)) ? mean_by_piece(item, mean, ns)
                                                           : fl_explore_mean(w, item, mean, ns);
        fl_store_relaxed(&w->queues.item_ns, fl_double_bits(mean));
        /* Short tasks carry no evidence while the shared ready queue is out of use. Relaxed: an
         * estimate. */
        fl_slow_learn(w, item->task);
        if (w->sched->shared_queue != NULL &&
            (mean > FL_SHARED_QUEUE_LEAST_NS || fl_load_relaxed(&w->sched->shared_jobs) != 0)) {
            fl_shared_queue_learn(w, item);
        }
    }
}

/* Notes grains or tasks skipped without a failure. */
static void note_left_out(filch_job *job)
{
    /* Relaxed: precedes the subtraction that completes the job. */
    fl_store_relaxed(&job->left_out, 1);
}

static void fail_tile(fl_worker *w, const fl_item *item, uint64_t first, uint64_t last)
{
    if (!item->timed) {
        const fl_task *task = item->task;
        fl_account_spoiled(w, item,
                           task != NULL ? fl_speed_get(fl_codelet_speed(task->codelet, w->index)) *
                                              (double)task->work
                                        : 0);
    }
    if (item->is_refused) {
        fl_job_fail_device(w->now.job, item->task, &w->stall.error, first, last);
    } else {
        fl_job_fail(w->now.job, item->task, item->code, w->device->info.name, first, last);
    }
}

/* Accounts a timed item of the current job. */
static void account_timed(fl_worker *w, const fl_item *item, const filch_codelet *codelet)
{
    fl_account_record(w, item, codelet);
    fl_account_timed(w, item);
    if (item->code == 0 && codelet->work != NULL &&
        (item->task == NULL || !fl_task_is_own(item->task))) {
        fl_proven_note(w, codelet, item->work);
    }
}

static inline void note(fl_worker *w, const fl_item *item)
{
    fl_worker_enter(w, item->task);
    if (FL_UNLIKELY(item->code != 0 && !item->skip)) {
        fail_tile(w, item, 0, 0);
    }
    if (item->timed && !item->skip) {
        learn(w, item, item->task->codelet);
        account_timed(w, item, item->task->codelet);
    }
}

void fl_worker_note(fl_worker *w, const fl_item *item)
{
    note(w, item);
}

/* Hands on the commute locks of a finished task. */
static __attribute__((noinline)) void give_turns(fl_worker *w, fl_task *task)
{
    for (fl_link *link = fl_commute_locks_give(task); link != NULL;) {
        /* Read first: making the task ready gives the link away. */
        fl_link *next = link->next;
        make_ready(w, fl_task_of_link(link));
        link = next;
    }
}

/* Ends a task already noted and counted. In line: runs for each task. */
static inline __attribute__((always_inline)) void end_task(fl_worker *w, fl_task *task,
                                                           bool is_plain, bool failed)
{
    bool is_open = w->now.job->is_open;
    if (is_open) {
        fl_open_retire(task, failed);
    }
    if (FL_UNLIKELY(w->sched->looks_ahead) && !is_open) {
        fl_lookahead_retired(task, failed);
    }
    if (FL_UNLIKELY(!is_plain) && task->commutes) {
        give_turns(w, task);
    }
    if (task->successor_count != 0) {
        release_successors(w, task, failed, is_open);
    }
    if (is_open) {
        fl_open_recycle(task);
    }
    ++w->now.retired;
}

/* Retires a task run in pieces when the last piece is over. Each piece has been noted. */
static __attribute__((noinline)) void retire_divided(fl_worker *w, fl_item *item)
{
    if (fl_divide_retire(w, item)) {
        fl_worker_enter(w, item->task);
        count_outcome(w, item, 1, 0);
        end_task(w, item->task, false, item->code != 0 || item->skip);
    }
}

static void retire_task(fl_worker *w, fl_item *item)
{
    fl_task *task = item->task;
    /* One test covers every special property. */
    bool is_plain = fl_task_is_plain(task);
    if (FL_UNLIKELY(!is_plain)) {
        if (fl_task_is_divided(task)) {
            retire_divided(w, item);
            return;
        }
        if (fl_task_has_partials(task) && fl_reduce_retire(w, item)) {
            return;
        }
    }
    note(w, item);
    if (w->sched->keeps_holders && task->access_count != 0 && !item->skip) {
        fl_place_note(w, task);
    }
    /* Tasks behind a gate see a cancellation themselves. */
    bool failed = item->code != 0 || (item->skip && (is_plain || !fl_task_passes(task)));
    if (is_plain || !fl_task_is_own(task)) {
        count_outcome(w, item, 1, 1);
        if ((task->codelet->work != NULL || task->has_items) && !item->skip) {
            double work = fl_bits_double(fl_load_relaxed(&w->now.share->work)) + (double)task->work;
            fl_store_relaxed(&w->now.share->work, fl_double_bits(work));
            if (task->codelet->work != NULL && item->code == 0) {
                fl_rated_count(w, task->codelet, (double)task->work);
            }
        }
    }
    end_task(w, task, is_plain, failed);
}

/* Retires a run of a chunk that lost to a second run. Only the sample of the device's speed
 * counts. */
static void retire_lost(fl_worker *w, fl_item *item)
{
    if (item->timed) {
        learn(w, item, fl_batch_codelet(item->job->batch));
        fl_account_record(w, item, fl_batch_codelet(item->job->batch));
    }
    fl_speculate_drop(w, item);
}

static void retire_chunk(fl_worker *w, fl_item *item)
{
    filch_job *job = item->job;
    if (FL_UNLIKELY(item->run != NULL) && !fl_speculate_decide(w, item, NULL)) {
        retire_lost(w, item);
        return;
    }
    fl_worker_switch(w, job, NULL);
    uint64_t first, last;
    fl_batch_range(job->batch, item->lo, item->hi, &first, &last);
    if (item->skip) {
        note_left_out(job);
        fl_job_note_skipped(job, first, last);
    } else {
        if (item->code != 0) {
            fail_tile(w, item, first, last);
        }
        if (item->timed) {
            learn(w, item, fl_batch_codelet(job->batch));
            account_timed(w, item, fl_batch_codelet(job->batch));
        }
        fl_batch_learn(w, item);
        fl_count(&w->now.share->items, last - first);
        double work = fl_bits_double(fl_load_relaxed(&w->now.share->work)) + item->work;
        fl_store_relaxed(&w->now.share->work, fl_double_bits(work));
        if (fl_batch_codelet(job->batch)->work != NULL && item->code == 0) {
            fl_rated_count(w, fl_batch_codelet(job->batch), item->work);
        }
    }
    count_outcome(w, item, last - first, 1);
    w->now.retired += (int64_t)(item->hi - item->lo);
}

/* Retires every task of a graph launch (graph_launch.c). After a failure, the tasks done cannot be
 * told from the tasks not done. */
static void retire_replay(fl_worker *w, const fl_item *item)
{
    filch_job *job = item->job;
    const filch_graph *graph = job->graph;
    uint32_t count = graph->task_count;
    fl_worker_switch(w, job, graph);
    if (item->code != 0) {
        fl_job_fail_device(job, graph->roots[0], &w->stall.error, 0, 0);
        fl_count(&w->now.share->failed, 1);
        fl_count(&w->now.share->skipped, count - 1);
    } else {
        fl_count(&w->now.share->tiles, count);
        fl_count(&w->now.share->done, count);
        if (item->timed) {
            fl_count(&w->now.share->account.timed, count);
            fl_count(&w->now.share->account.timed_ns, item->ns);
        }
        double work = fl_bits_double(fl_load_relaxed(&w->now.share->work)) + item->work;
        fl_store_relaxed(&w->now.share->work, fl_double_bits(work));
    }
    w->now.retired += count;
}

void fl_worker_retire(fl_worker *w, fl_item *item)
{
    if (FL_UNLIKELY(item->is_graph)) {
        retire_replay(w, item);
    } else if (item->task != NULL) {
        retire_task(w, item);
    } else {
        retire_chunk(w, item);
    }
}

/* --- Picking --- */

static inline __attribute__((always_inline)) void take_claimed(fl_worker *w, fl_task *task,
                                                               bool poisoned, fl_item *item)
{
    fl_worker_enter(w, task);
    filch_job *job = w->now.job;
    item->job = job;
    item->task = task;
    item->code = 0;
    item->is_refused = item->is_ahead = item->is_graph = false;
    item->skip = poisoned;
    item->timed = false;
    if (w->sched->keeps_holders) {
        fl_place_begin(w, task);
    }
    if (FL_UNLIKELY(fl_load_relaxed(&job->cancelled) != 0 && !poisoned && !fl_task_passes(task))) {
        item->skip = true;
        if (FL_LIKELY(!fl_task_is_divided(item->task))) {
            /* A divided task counts as left out only if a piece is left out. */
            note_left_out(job);
        }
    }
}

void fl_worker_take(fl_worker *w, fl_task *task, bool poisoned, fl_item *item)
{
    take_claimed(w, task, poisoned, item);
}

/* Takes a ready task. In line: runs for every task. */
static inline __attribute__((always_inline)) void take_task(fl_worker *w, fl_task *task,
                                                            bool poisoned, fl_item *item)
{
    if (task->predecessors != 0) {
        /* Resets the count for the next run: the next run's first decrement follows the present
         * run's completion. With a single predecessor no decrement happens, but fl_task_claim reads
         * the count. */
        fl_store_relaxed(&task->pending, task->predecessors);
    }
    take_claimed(w, task, poisoned, item);
}

/* Pops the newest entry of a level at or above the position `floor`. */
static inline bool pop_level(fl_worker *w, uint32_t level, int64_t floor, fl_item *item)
{
    uint64_t hint;
    /* Relaxed: only we move bottom. */
    while (fl_load_relaxed(&w->queues.levels[level].bottom) > floor &&
           fl_deque_pop(&w->queues.levels[level], &hint)) {
        w->ready.queued -= w->ready.queued != 0;
        fl_task *task;
        bool poisoned;
        if (!w->sched->mails) {
            /* No notes are sent, so the entry is the only hint to the task. */
            task = fl_hint_task(hint);
            poisoned = fl_task_own(task);
        } else if (!fl_task_claim(hint, &task, &poisoned)) {
            continue;
        }
        take_task(w, task, poisoned, item);
        return true;
    }
    return false;
}

static bool pop_deques(fl_worker *w, fl_item *item)
{
    while (w->ready.mask != 0) {
        uint32_t level = 31u - (uint32_t)__builtin_clz(w->ready.mask);
        if (pop_level(w, level, -1, item)) {
            return true;
        }
        w->ready.mask &= ~(1u << level);
        /* Relaxed: a hint for thieves. */
        fl_store_relaxed(&w->queues.level_mask, w->ready.mask);
    }
    w->ready.queued = 0;
    return false;
}

void fl_worker_drain(fl_worker *w)
{
    fl_link *link = fl_inbox_drain(&w->queues.inbox);
    while (link != NULL) {
        /* Read before the push: a thief may run the task immediately. */
        fl_link *next = link->next;
        fl_worker_push(w, fl_task_of_link(link));
        link = next;
    }
}

static bool take_mail(fl_worker *w, fl_item *item)
{
    uint64_t hint;
    while (fl_mailbox_take(&w->queues.mailbox, &hint)) {
        fl_task *task;
        bool poisoned;
        if (fl_task_claim(hint, &task, &poisoned)) {
            take_task(w, task, poisoned, item);
            return true;
        }
    }
    return false;
}

static bool pick_local(fl_worker *w, fl_item *item)
{
    if (w->ready.next_task != NULL) {
        fl_task *task = w->ready.next_task;
        /* Levels above the task's own. */
        uint32_t above = w->ready.mask >> task->level >> 1;
        w->ready.next_task = NULL;
        if (FL_LIKELY(above == 0)) {
            take_task(w, task, fl_task_own(task), item);
            return true;
        }
        fl_worker_push(w, task);
    }
    if (FL_UNLIKELY(!fl_inbox_is_empty(&w->queues.inbox))) {
        fl_worker_drain(w);
    }
    return w->ready.mask != 0 && pop_deques(w, item);
}

/* Takes an item of a job in ranges: no second worker knows the item's task. */
static void take_from_range(fl_worker *w, fl_item *item)
{
    if (FL_UNLIKELY(item->is_graph)) {
        fl_worker_switch(w, item->job, item->job->graph);
    } else if (item->task != NULL) {
        bool poisoned = FL_UNLIKELY(item->is_claimed) ? item->skip : fl_task_own(item->task);
        take_task(w, item->task, poisoned, item);
    } else {
        /* Busy time of the job starts. */
        fl_worker_switch(w, item->job, NULL);
    }
}

/* Picks for a wait: first tasks made ready on the worker since the wait began, then the goal job's
 * ranges. Older tasks might wait in turn, in unlimited number, on our stack. */
static bool pick_for_wait(fl_worker *w, fl_item *item)
{
    const fl_frame *wait = w->now.frames;
    if (w->ready.next_task != NULL) {
        fl_worker_push(w, w->ready.next_task);
        w->ready.next_task = NULL;
    }
    for (uint32_t mask = w->ready.mask; mask != 0;) {
        uint32_t level = 31u - (uint32_t)__builtin_clz(mask);
        if (pop_level(w, level, wait->floors[level], item)) {
            return true;
        }
        mask &= ~(1u << level);
    }
    bool any = wait->goal != NULL && fl_nested_pick_goal(w, item);
    if (any) {
        take_from_range(w, item);
    }
    return any;
}

static bool is_deep(const fl_worker *w)
{
    return w->now.frames != NULL && w->now.frames->depth > FL_DEEP_WAIT;
}

/* Picks tasks offered by mail or by the shared ready queue. Precedes ranges: graphs in progress
 * come before jobs not yet begun. */
static __attribute__((noinline)) bool pick_offered(fl_worker *w, fl_item *item)
{
    if (w->sched->mails && take_mail(w, item)) {
        return true;
    }
    /* Relaxed: as for is_careful in make_ready. */
    if (fl_load_relaxed(&w->sched->shared_jobs) == 0 || is_deep(w) ||
        !fl_shared_queue_pick(w, item)) {
        return false;
    }
    take_from_range(w, item);
    return true;
}

/* Takes from the locality window a task kept since before the wait began. The goal may need the
 * task, and no second worker can find the task. */
static __attribute__((noinline)) bool take_near(fl_worker *w, fl_item *item)
{
    if (w->offload == NULL || w->offload->window_count == 0) {
        return false;
    }
    fl_locality_take(w, item);
    take_from_range(w, item);
    return true;
}

static bool pick(fl_worker *w, fl_item *item)
{
    if (FL_UNLIKELY(!fl_inbox_is_empty(&w->queues.moved))) {
        fl_full_gather(w);
    }
    if (FL_UNLIKELY(w->ready.kept != NULL || w->ready.adopted != NULL)) {
        return fl_pick_claimed(w, item);
    }
    if (FL_UNLIKELY(w->now.frames != NULL)) {
        bool is_away = fl_worker_is_offline(w);
        if (is_away) {
            fl_worker_drain(w);
        }
        if (pick_for_wait(w, item)) {
            return true;
        }
        fl_worker_flush(w);
        if (w->now.completed != NULL) {
            /* The wait may be over: a further item would add a frame to the stack. */
            return false;
        }
        if (is_away) {
            return take_near(w, item);
        }
        if (is_deep(w) && fl_nested_pick_ahead(w, item)) {
            take_from_range(w, item);
            return true;
        }
    }
    bool is_kept = FL_UNLIKELY(fl_locality_chooses(w)) && !is_deep(w) && fl_locality_gather(w);
    if (!is_kept && (pick_local(w, item) ||
                     /* Relaxed: a thread putting the first task into the shared ready queue wakes
                      * every worker. */
                     (fl_load_relaxed(&w->sched->has_offers) != 0 && pick_offered(w, item)))) {
        return true;
    }
    if (is_deep(w) || !fl_pick_range(w, item)) {
        return is_deep(w) && take_near(w, item);
    }
    take_from_range(w, item);
    return true;
}

bool fl_worker_pick(fl_worker *w, fl_item *item)
{
    while (pick(w, item)) {
        if (fl_item_admit(w, item)) {
            return true;
        }
    }
    return false;
}

/* --- The step --- */

static void run_completions(fl_worker *w)
{
    while (w->now.completed != NULL) {
        filch_job *job = w->now.completed;
        w->now.completed = job->next;
        job->next = NULL;
        fl_job_retired(job, 1);
    }
}

/* Counts off before a wait: a job must not look unfinished while an item of a second job is in
 * flight here. The device then counts as busy with the second job. */
static void count_off(fl_worker *w)
{
    fl_worker_flush(w);
    const fl_item *item = w->stall.has_stalled ? &w->stall.stalled : NULL;
    item = w->pipeline.writing_back_count != 0 ? &w->pipeline.flights[w->pipeline.writing_back].item
                                               : item;
    for (uint32_t i = 0; i < w->pipeline.flight_count && w->pipeline.computing != 0; ++i) {
        if (w->pipeline.flights[i].launched != 0) {
            item = &w->pipeline.flights[i].item;
            break;
        }
    }
    if (item != NULL) {
        fl_worker_switch(w, item->job,
                         item->task != NULL || item->is_graph ? item->job->graph : NULL);
    }
}

static fl_act end_step(fl_worker *w, fl_act act)
{
    if (act == FL_ACT_WAIT && !w->device->is_synchronous) {
        if (w->now.retired != 0) {
            count_off(w);
            act = w->now.completed != NULL ? FL_ACT_MORE : act;
        }
        fl_account_wait(w, w->pipeline.computing == 0 &&
                               (w->pipeline.in_flight != 0 || w->stall.has_stalled));
    }
    if (w->now.completed != NULL) {
        /* Completions come first: tasks made ready are offered to idle workers, too. */
        run_completions(w);
    }
    if (w->ready.pushed) {
        fl_worker_wake_others(w);
    }
    w->ready.in_step = false;
    return act;
}

static bool is_gate(const fl_item *item)
{
    return item->task != NULL && item->task->is_gate;
}

void fl_item_set_timed(fl_item *item, const filch_codelet *codelet)
{
    item->timed = true;
    if (item->task != NULL) {
        item->work = FL_UNLIKELY(item->task->has_items) ? fl_divide_work(item)
                     : codelet->work != NULL            ? (double)item->task->work
                                                        : 1;
    }
}

/* Prepares the item to be run by the driver. */
static inline __attribute__((always_inline)) void prepare(fl_worker *w, fl_item *item)
{
    if (is_gate(item)) {
        fl_item_pass(item);
        return;
    }
    const filch_codelet *codelet = fl_item_codelet(item);
    if (fl_speed_wants_sample(fl_codelet_speed(codelet, w->index)) || item->task == NULL ||
        fl_trace_of(w) != NULL) {
        fl_item_set_timed(item, codelet);
        if (FL_UNLIKELY(fl_item_may_race(item, codelet))) {
            fl_speculate_offer(w, item);
        }
    }
}

/* Refuses the item: the item retires as failed, without running. */
static void refuse(fl_item *item)
{
    item->code = -1;
    item->is_refused = true;
    item->timed = false;
}

/* Waits until the item's operands have arrived; without operands the item is not run. */
static fl_act await_operands(fl_worker *w)
{
    filch_status status =
        fl_waits_check(w->sched->core->places, &w->offload->waits, &w->stall.error);
    fl_account_wait(w, status == FILCH_NOT_READY);
    if (status == FILCH_NOT_READY) {
        w->idle.wake_at = now(w) + FL_NAP_FETCH_NS;
        return FL_ACT_WAIT;
    }
    w->stall.is_fetching = false;
    w->now.has_item = true;
    if (status != FILCH_OK) {
        refuse(&w->now.item);
        fl_offload_abandon(w);
        return FL_ACT_MORE;
    }
    return FL_ACT_RUN;
}

/* Copies the picked item's operands to the host's memory, if the data may be elsewhere. */
static fl_act fetch(fl_worker *w)
{
    if (!fl_offload_fetch(w, &w->now.item)) {
        refuse(&w->now.item);
        fl_offload_abandon(w);
        return FL_ACT_MORE;
    }
    w->stall.is_fetching = true;
    return await_operands(w);
}

static inline __attribute__((always_inline)) void retire_run(fl_worker *w)
{
    w->now.has_item = false;
    /* A racing item is committed after the decision only. */
    bool may_race = w->now.item.task == NULL && w->now.item.run != NULL;
    if (w->offload != NULL && !w->now.item.skip && w->now.item.code == 0 && !may_race &&
        fl_offload_concerns(&w->now.item) &&
        !(w->now.item.task != NULL &&
          /* A divided task is committed after the last piece only. */
          fl_task_is_divided(w->now.item.task))) {
        fl_offload_commit_host(w, &w->now.item);
    }
    fl_worker_retire(w, &w->now.item);
}

/* Begins the picked item. In line: runs for each item. */
static inline __attribute__((always_inline)) fl_act begin(fl_worker *w)
{
    prepare(w, &w->now.item);
    w->now.has_item = true;
    w->theft.waited_at = 0;
    fl_worker_end_idle(w);
    if (fl_load_relaxed(&w->signals.hazard) != w->now.item.job) {
        fl_worker_leave(w);
    }
    return w->offload != NULL && !w->now.item.skip && fl_offload_concerns(&w->now.item)
               ? fetch(w)
               : FL_ACT_RUN;
}

static __attribute__((noinline)) fl_act begin_rare(fl_worker *w)
{
    return begin(w);
}

static fl_act step_synchronous(fl_worker *w)
{
    if (FL_UNLIKELY(w->stall.is_fetching)) {
        return await_operands(w);
    }
    if (w->now.has_item) {
        retire_run(w);
    }
    for (;;) {
        if (fl_worker_pick(w, &w->now.item)) {
            return begin(w);
        }
        fl_worker_flush(w);
        fl_worker_leave(w);
        if (w->now.completed != NULL) {
            /* Completions may let further jobs start. */
            return FL_ACT_MORE;
        }
        if (!is_deep(w) && fl_worker_steal(w)) {
            continue;
        }
        if (fl_speculate_pick(w, &w->now.item)) {
            return begin_rare(w);
        }
        fl_worker_leave(w);
        fl_worker_begin_idle(w);
        return FL_ACT_WAIT;
    }
}

/* Steps a synchronous device offline: the present item ends. */
static fl_act rest_synchronous(fl_worker *w)
{
    if (w->stall.is_fetching) {
        return await_operands(w);
    }
    if (w->now.has_item) {
        retire_run(w);
    }
    fl_offline_settle(w);
    if (fl_offline_pick(w, &w->now.item)) {
        return begin_rare(w);
    }
    fl_worker_flush(w);
    return fl_offline_rest(w);
}

static __attribute__((noinline)) fl_act step_away(fl_worker *w)
{
    return w->device->is_synchronous ? rest_synchronous(w) : fl_in_flight_rest(w);
}

fl_act fl_worker_step(fl_worker *w)
{
    fl_act act;
    w->ready.in_step = true;
    fl_count(&w->queues.steps, 1);
    /* Relaxed: a thread changing the duties wakes the worker. */
    uint32_t duties = fl_load_relaxed(&w->signals.duties);
    if (FL_UNLIKELY((duties & FL_DUTY_OFFLINE) != 0)) {
        act = step_away(w);
    } else {
        act = w->device->is_synchronous ? step_synchronous(w) : fl_in_flight_step(w);
    }
    if (FL_UNLIKELY((duties & FL_DUTY_POLL_EVENTS) != 0)) {
        act = fl_host_events_step(w, act);
    }
    return end_step(w, act);
}

void fl_worker_settle(fl_worker *w)
{
    w->ready.in_step = true;
    if (w->now.has_item) {
        retire_run(w);
    }
    if (w->ready.next_task != NULL) {
        fl_worker_push(w, w->ready.next_task);
        w->ready.next_task = NULL;
    }
    fl_worker_flush(w);
    fl_worker_leave(w);
    end_step(w, FL_ACT_MORE);
}

bool fl_worker_is_inside(const fl_worker *w, const filch_job *job)
{
    if (w->now.has_item && w->now.item.job == job) {
        return true;
    }
    for (const fl_frame *frame = w->now.frames; frame != NULL; frame = frame->outer) {
        if (frame->item.job == job) {
            return true;
        }
    }
    return false;
}
