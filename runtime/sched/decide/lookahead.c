/* SPDX-License-Identifier: Apache-2.0 */
/* Looking ahead: a task whose predecessors are over, or on lanes where others can wait for them, is
 * put on a device behind them before the host has seen them end. Only the worker that put one of
 * them there looks, when its window has room and nothing is ready, so that such tasks need be in no
 * deque. Closed graphs only.
 *
 * Who owns such a task? Its word decides. All tasks of a graph are in one epoch e when a run begins
 * (graph/build/behind.c), and each moves to e + 1 when it is claimed. From {e} there are two ways
 * on:
 * - the last predecessor to retire sets READY, and only then gives hints to it;
 * - a worker that looks ahead moves it to e + 1, which claims it.
 * Both are compare-and-swaps on the word, so one of them wins. A task claimed ahead has
 * predecessors that are still to count down `pending`; adding the number of all predecessors
 * instead of setting it leaves it right for the next run, whenever they come. */
#include "sched/decide/lookahead.h"

#include "sched/decide/slow.h"
#include "sched/execute/divide.h"
#include "sched/execute/step.h"
#include "sched/ready/shared_queue.h"
#include "sched/worker/device.h"
#include "sched/worker/sched.h"

#define SEQUENCE_BITS FL_MARK_RUN_SHIFT
#define SEQUENCE_MASK (((uint64_t)1 << SEQUENCE_BITS) - 1)
/* In place of a sequence number: nobody may follow. */
#define UNFOLLOWABLE SEQUENCE_MASK

static uint64_t make_marker(fl_marker marker, uint32_t epoch)
{
    uint64_t sequence = fl_marker_sequence(marker);
    /* A lane would have to run for months to get there. */
    sequence = sequence < UNFOLLOWABLE ? sequence : UNFOLLOWABLE;
    return (marker >> 50 << 50) | fl_mark_run(epoch) | sequence;
}

/* What there is to wait for; 0: nothing, as the task is over. */
static fl_marker lane_marker(uint64_t marker)
{
    uint64_t sequence = marker & SEQUENCE_MASK;
    return sequence != 0 && sequence != UNFOLLOWABLE ? (marker >> 50 << 50) | sequence : 0;
}

static _Atomic uint64_t *marker_of(const fl_task *task)
{
    return &task->graph->markers[task->order];
}

static uint32_t epoch_of(const fl_task *task)
{
    return fl_word_epoch(fl_load_relaxed(&task->word)); /* of a task that we know the state of */
}

void fl_lookahead_retired(fl_task *task, bool failed)
{
    /* Each run gives every task a mark, a failed one too: one that is left from 256 runs ago would
     * pass for this run's. Release: its effects, before others follow it. */
    fl_store_release(marker_of(task), make_marker(failed ? UNFOLLOWABLE : 0, epoch_of(task)));
}

void fl_lookahead_launched(fl_worker *w, uint32_t index, fl_marker marker)
{
    fl_offload *offload = w->offload;
    fl_in_flight *flight = &w->flights[index];
    fl_task *task = flight->item.task;
    if (!w->sched->looks_ahead || task == NULL || task->graph->kind != FILCH_GRAPH_CLOSED ||
        task->begins || task->combines) {
        return; /* it is over when it retires, if that is all of it */
    }
    /* Release: the replicas that the task makes valid, before others follow it. */
    fl_store_release(marker_of(task), make_marker(marker, epoch_of(task)));
    if (task->successor_count != 0 && offload->ahead_count < FL_LOOKAHEAD) {
        uint32_t at = (offload->ahead_first + offload->ahead_count++) % FL_LOOKAHEAD;
        offload->ahead[at] = index;
        flight->is_ahead = true;
    }
}

/* Whether others may follow the predecessor on this worker's device. is_alone: only if that is
 * where it runs, if it is not over. */
static bool is_followable(const fl_worker *w, const fl_task *task, uint32_t run, bool is_alone)
{
    /* Acquire: pairs with the releases above. A marker of an earlier run has another number, since
     * each run gives every task one, and sealing the number before the first. */
    uint64_t marker = fl_load_acquire(marker_of(task));
    if ((marker & FL_MARK_RUN) != fl_mark_run(run + 1) ||
        (marker & SEQUENCE_MASK) == UNFOLLOWABLE) {
        return false;
    }
    fl_marker point = lane_marker(marker);
    if (point == 0 || fl_marker_device(point) == w->index) {
        return true;
    }
    const fl_worker *other = &w->sched->workers[fl_marker_device(point)];
    /* Lanes are in order: what waits for a device that lags would be in the way of what need not.
     */
    return !is_alone && !fl_slow_is_on(other) &&
           other->device->backend->is_marked(other->device, point);
}

/* Claims a task if it may be put behind its predecessors on this worker's device. */
static bool claim_ahead(fl_worker *w, fl_task *task, uint32_t run)
{
    const filch_graph *graph = task->graph;
    uint64_t word = (uint64_t)run << 32;
    /* Of a task that is divided nothing is in flight that others could follow, nor does it follow.
     */
    if (fl_load_relaxed(&task->word) != word || fl_task_is_patient(task) ||
        (FL_UNLIKELY(task->has_items) && fl_divide_is_due(w, task)) ||
        !fl_worker_can_run(w, task) ||
        (w->sched->policy == FILCH_POLICY_STATIC && task->home != 0 &&
         task->home != w->index + 1)) {
        return false;
    }
    /* Relaxed: of an old value comes what does without the board. */
    bool is_on_board = fl_load_relaxed(&graph->is_on_board) != 0;
    for (uint32_t i = graph->pred_begin[task->order]; i < graph->pred_begin[task->order + 1]; ++i) {
        if (!is_followable(w, fl_graph_task_at(graph, graph->pred_list[i]), run, is_on_board)) {
            return false;
        }
    }
    if ((is_on_board && !fl_shared_queue_bid_ahead(w, task)) || fl_slow_holds_up(w, task)) {
        return false;
    }
    /* Acquire-release: as in fl_task_claim. */
    if (!fl_cas_acq_rel(&task->word, &word, fl_word_next_epoch(word))) {
        return false;
    }
    /* Relaxed: only counted down to this, before the run ends. */
    fl_add_relaxed(&task->pending, task->predecessors);
    return true;
}

/* The search among the successors of one task. */
typedef struct fl_search {
    fl_worker *worker;
    uint32_t run;
    fl_task *found;
} fl_search;

static void try_successor(fl_task *successor, void *user)
{
    fl_search *search = user;
    if (search->found == NULL && claim_ahead(search->worker, successor, search->run)) {
        search->found = successor;
    }
}

bool fl_lookahead_pick(fl_worker *w, fl_item *item)
{
    fl_offload *offload = w->offload;
    while (offload->ahead_count != 0) {
        fl_in_flight *flight = &w->flights[offload->ahead[offload->ahead_first]];
        /* One that has landed meanwhile has released its successors in the usual way. */
        if (flight->is_ahead && flight->launched != 0) {
            fl_search search = {w, epoch_of(flight->item.task) - 1, NULL};
            fl_graph_each_successor(flight->item.task, try_successor, &search);
            if (search.found != NULL) {
                fl_worker_take(w, search.found, false, item);
                item->is_ahead = true;
                return true;
            }
        }
        flight->is_ahead = false;
        offload->ahead_first = (offload->ahead_first + 1) % FL_LOOKAHEAD;
        --offload->ahead_count;
    }
    return false;
}

bool fl_lookahead_waits(fl_worker *w, const fl_task *task)
{
    const filch_graph *graph = task->graph;
    for (uint32_t i = graph->pred_begin[task->order]; i < graph->pred_begin[task->order + 1]; ++i) {
        const fl_task *before = fl_graph_task_at(graph, graph->pred_list[i]);
        /* Acquire: it may have retired since we looked; then there is nothing to wait for. */
        fl_marker marker = lane_marker(fl_load_acquire(marker_of(before)));
        if (fl_waits_add(&w->offload->waits, marker, &w->error) != FILCH_OK) {
            return false;
        }
    }
    return true;
}

fl_lookahead_state fl_lookahead_look(const fl_task *task)
{
    const filch_graph *graph = task->graph;
    fl_lookahead_state state = FL_LOOKAHEAD_OVER;
    for (uint32_t i = graph->pred_begin[task->order]; i < graph->pred_begin[task->order + 1]; ++i) {
        /* Acquire: what those did that are over. */
        uint64_t marker = fl_load_acquire(marker_of(fl_graph_task_at(graph, graph->pred_list[i])));
        bool is_this_run = (marker & FL_MARK_RUN) == fl_mark_run(epoch_of(task));
        if (is_this_run && (marker & SEQUENCE_MASK) == UNFOLLOWABLE) {
            return FL_LOOKAHEAD_FAILED;
        }
        if (!is_this_run || (marker & SEQUENCE_MASK) != 0) {
            state = FL_LOOKAHEAD_WAITS;
        }
    }
    return state;
}

bool fl_lookahead_release(fl_task *task, uint32_t run, bool poisoned)
{
    uint64_t word = fl_load_relaxed(&task->word);
    /* A task that was claimed ahead runs, and is not to be skipped in its next run. Relaxed: the
     * decrement below publishes the mark. */
    while (poisoned && fl_word_epoch(word) == run &&
           !fl_cas_weak_acq_rel(&task->word, &word, word | FL_TASK_POISONED)) {
    }
    /* Acquire-release: each predecessor's writes reach the last one, which hands them on. */
    if (fl_sub_acq_rel(&task->pending, 1) != 1) {
        return false;
    }
    word = fl_load_relaxed(&task->word);
    while (fl_word_epoch(word) == run) {
        /* Acquire-release: whoever finds the task ready sees what its predecessors did. */
        if (fl_cas_weak_acq_rel(&task->word, &word, word | FL_TASK_READY)) {
            return true;
        }
    }
    return false;
}
