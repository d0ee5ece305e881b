/* SPDX-License-Identifier: Apache-2.0 */
/* Retiring and releasing stand in one file: both run for every task, in line. */
#include "sched/execute/retire.h"
#include "sched/execute/ahead.h"

#include "sched/account/account.h"
#include "sched/account/rated.h"
#include "sched/decide/place.h"
#include "sched/execute/backup.h"
#include "sched/execute/divide.h"
#include "sched/execute/give.h"
#include "sched/execute/host_call.h"
#include "sched/execute/reduce.h"
#include "sched/execute/shared_queue.h"
#include "sched/model/explore.h"
#include "sched/model/kind.h"
#include "sched/model/predict.h"
#include "sched/model/proven.h"
#include "sched/model/slowness.h"
#include "sched/model/speed.h"
#include "sched/ready/queue.h"
#include "sched/worker/device.h"
#include "sched/worker/item.h"
#include "sched/worker/job_part.h"
#include "sched/worker/pressure.h"
#include "sched/worker/sched.h"
#include "sched/worker/tuning.h"

static void end_lifetime(fl_worker *w, fl_task *gate);

/* --- Releasing --- */

static void make_ready(fl_worker *w, fl_task *task)
{
    if (FL_UNLIKELY(task->is_gate) && fl_task_ends_lifetime(task)) {
        end_lifetime(w, task);
        return;
    }
    /* Relaxed: a worker with a stale value leaves the task in a deque. */
    if (FL_UNLIKELY(fl_sched_attends(w->sched, FL_ATTEND_CAREFUL)) && fl_give_ready(w, task)) {
        return;
    }
    if (FL_UNLIKELY(!fl_worker_can_run(w, task))) {
        fl_sched_route(w->sched, task);
        return;
    }
    if (w->sched->keeps_holders && task->access_count != 0 && fl_give_to_owner(w, task)) {
        return;
    }
    fl_ready_put(w, task);
}

/* Message of a finished predecessor to the successors. */
typedef struct fl_release {
    uint32_t run; /* epoch of tasks not yet claimed in the run; with is_looked_ahead */
    bool poisoned, is_open, is_looked_ahead;
} fl_release;

/* Counts a task of the current job that becomes ready, before another worker can end it. */
static inline void count_ready(fl_worker *w, bool is_open)
{
    if (is_open) {
        fl_count(&w->now.share->readied, 1);
    }
}

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
        count_ready(w, how->is_open);
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
        if (fl_ahead_release(task, how->run, poisoned)) {
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
        count_ready(w, is_open);
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
    if (item->only_traced) {
        return;
    }
    double ns = fl_speed_add(fl_codelet_speed(codelet, w->index), item->work, (double)item->fair,
                             item->start + item->ns);
    if (item->task != NULL) {
        if (FL_UNLIKELY(w->sched->keeps_holders && codelet != w->theft.kind)) {
            /* The item waited for nested tasks of a second kind. */
            fl_kind_turn(w, codelet);
        }
        /* Relaxed: written by the worker only; thieves read an estimate. */
        double mean = fl_worker_mean_ns(w);
        ns = ns != 0 ? ns : 1;
        mean = FL_UNLIKELY(fl_task_is_divided(item->task)) ? mean_by_piece(item, mean, ns)
                                                           : fl_explore_mean(w, item, mean, ns);
        fl_store_relaxed(&w->queues.item_ns, fl_double_bits(mean));
        /* Short tasks carry no evidence while the shared ready queue is out of use. Relaxed: an
         * estimate. */
        fl_slow_learn(w, item->task);
        if (w->sched->shared_queue != NULL &&
            (mean > FL_SHARED_QUEUE_LEAST_NS || fl_sched_attends(w->sched, FL_ATTEND_SHARED))) {
            fl_shared_queue_learn(w, item);
        }
    }
}

/* Accounts a failed item without a measured time: the predicted time counts as lost. A refused item
 * never ran, or its time is counted at the landing. */
static void account_failed(fl_worker *w, const fl_item *item)
{
    double known = 0;
    if (item->timed || item->is_refused) {
        return;
    }
    if (item->task != NULL) {
        known = fl_speed_get(fl_codelet_speed(item->task->codelet, w->index));
    }
    fl_item failed = *item;
    failed.ns = (uint64_t)(known > 0 ? known * (double)item->task->work : fl_worker_mean_ns(w));
    fl_account_event(w, FL_EVENT_SPOILED, &failed);
}

static void fail_tile(fl_worker *w, const fl_item *item, uint64_t first, uint64_t last)
{
    account_failed(w, item);
    if (item->is_refused) {
        fl_job_fail_device(w->now.job, item->task, &w->stall.error, first, last);
    } else {
        const fl_failure why = {
            .code = item->code, .text = fl_host_call_text(w, item), .device = w->device->info.name};
        fl_job_fail(w->now.job, item->task, &why, first, last);
    }
}

/* Accounts a timed item of the current job. */
static void account_timed(fl_worker *w, const fl_item *item, const filch_codelet *codelet)
{
    fl_account_event(w, FL_EVENT_TIMED, item);
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
static __attribute__((noinline)) void give_turns(fl_worker *w, fl_task *task, bool is_open)
{
    for (fl_link *link = fl_commute_locks_give(task); link != NULL;) {
        /* Read first: making the task ready gives the link away. */
        fl_link *next = link->next;
        count_ready(w, is_open);
        make_ready(w, fl_task_of_link(link));
        link = next;
    }
}

/* Counts an ended task of an open graph, and gives its memory back. */
static inline void count_end(fl_worker *w, fl_task *task, bool is_own)
{
    fl_share *share = w->now.share;
    _Atomic uint64_t *ended = is_own ? &share->ended_own : &share->ended;
    filch_graph *graph = task->graph;
    fl_store_release(ended, fl_load_relaxed(ended) + 1);
    fl_open_recycle(task);
    fl_pressure_ended(w->sched, graph);
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
        fl_ahead_mark(task, failed ? FL_MARK_UNFOLLOWABLE : 0);
    }
    if (FL_UNLIKELY(!is_plain) && task->commutes) {
        give_turns(w, task, is_open);
    }
    if (task->successor_count != 0) {
        release_successors(w, task, failed, is_open);
    }
    if (is_open) {
        count_end(w, task, !is_plain && fl_task_is_own(task));
    }
    fl_worker_add_retired(w, 1);
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

static inline void count_work(fl_worker *w, const fl_task *task)
{
    double work = fl_bits_double(fl_load_relaxed(&w->now.share->work)) + (double)task->work;
    fl_store_relaxed(&w->now.share->work, fl_double_bits(work));
}

/* Tells whether the job of a gate has the handle that the gate names. A job cancelled in the queue
 * of a handle has not: its tasks are skipped while another job uses the handle. The use leaves the
 * queue before such a job starts, and otherwise after the job's last task. */
static bool has_handle(const fl_task *task)
{
    const filch_job *job = task->graph->job;
    uint32_t slot = task->accesses[0].slot;
    /* Acquire: as fl_graph_data. */
    const fl_queued_access *use =
        job->is_open ? &fl_load_acquire(&task->graph->seen_slots)[slot]->use : &job->uses->at[slot];
    return use->queued || (use->upgrade != NULL && use->upgrade->queued);
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
        if (fl_task_ends_lifetime(task) && has_handle(task)) {
            fl_tile_end_lifetime(fl_worker_places(w),
                                 fl_graph_data(task->graph, task->accesses[0].slot),
                                 task->accesses[0].tile);
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
            count_work(w, task);
            if (task->codelet->work != NULL && item->code == 0) {
                fl_rated_count(w, task->codelet, (double)task->work);
            }
        }
    }
    end_task(w, task, is_plain, failed);
}

/* Ends a ready gate at once: no device has to be found, and the next item may need the memory. */
static __attribute__((noinline)) void end_lifetime(fl_worker *w, fl_task *gate)
{
    fl_item item = {.job = gate->graph->job, .task = gate, .skip = fl_ready_own(gate)};
    fl_item_pass(&item);
    retire_task(w, &item);
}

/* --- Pending tasks --- */

void fl_worker_let_go(fl_worker *w, const fl_item *item)
{
    fl_task *task = item->task;
    fl_worker_enter(w, task);
    if (item->timed) {
        /* The time that the function held the worker. */
        learn(w, item, task->codelet);
        fl_account_event(w, FL_EVENT_TIMED, item);
    }
    if (w->sched->keeps_holders && task->access_count != 0) {
        fl_place_note(w, task);
    }
    fl_count(&w->now.share->tiles, 1);
    fl_count(&w->now.share->pended, 1);
    if (task->codelet->work != NULL) {
        count_work(w, task);
    }
    fl_worker_flush(w);
}

void fl_worker_retire_pending(fl_worker *w, const fl_pending_task *pending)
{
    const fl_item *item = &pending->item;
    fl_task *task = item->task;
    fl_worker_enter(w, task);
    if (item->is_refused) {
        fl_job_fail_device(w->now.job, task, &w->stall.error, 0, 0);
    } else if (item->code != 0) {
        const fl_failure why = {.was_told = true,
                                .code = item->code,
                                .text = pending->text[0] != '\0' ? pending->text : NULL,
                                .device = w->sched->workers[pending->worker].device->info.name};
        fl_job_fail(w->now.job, task, &why, 0, 0);
    }
    fl_count(&w->now.share->unpended, 1);
    fl_count(item->code == 0 ? &w->now.share->done : &w->now.share->failed, 1);
    end_task(w, task, fl_task_is_plain(task), item->code != 0);
}

/* --- Chunks --- */

/* Retires a run of a chunk that lost to a second run. Only the sample of the device's speed
 * counts. */
static void retire_lost(fl_worker *w, fl_item *item)
{
    if (item->timed) {
        learn(w, item, fl_batch_codelet(item->job->batch));
        fl_account_event(w, FL_EVENT_DEFEATED, item);
    }
    fl_backup_drop(w, item);
}

static __attribute__((noinline)) void retire_chunk(fl_worker *w, fl_item *item)
{
    filch_job *job = item->job;
    if (FL_UNLIKELY(item->run != NULL) && !fl_backup_decide(w, item, NULL)) {
        retire_lost(w, item);
        return;
    }
    fl_worker_switch(w, job, NULL);
    uint64_t first, last;
    fl_batch_range(job->batch, item->lo, item->hi, &first, &last);
    if (item->skip) {
        fl_job_note_left_out(job);
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
    fl_worker_add_retired(w, (int64_t)(item->hi - item->lo));
}

/* Retires every task of a graph launch (graph_launch.c). After a failure, the tasks done cannot be
 * told from the tasks not done. */
static __attribute__((noinline)) void retire_replay(fl_worker *w, const fl_item *item)
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
            fl_count(&w->now.share->account.weighted_ns, item->ns);
        }
        double work = fl_bits_double(fl_load_relaxed(&w->now.share->work)) + item->work;
        fl_store_relaxed(&w->now.share->work, fl_double_bits(work));
    }
    fl_worker_add_retired(w, count);
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
