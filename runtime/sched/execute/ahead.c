/* SPDX-License-Identifier: Apache-2.0 */
/* Look-ahead: a worker puts a task on a device behind the predecessors, before the host has seen
 * the predecessors end. Every predecessor is over, or runs on a lane that later work can wait for.
 * Only a worker that launched a predecessor looks ahead, so the task need not be in a deque: while
 * the queue depth permits and nothing is ready, or for a continuation of a lane's newest item,
 * which may go before ready tasks and beyond the queue depth. Closed graphs only.
 *
 * The task's word decides the ownership. All tasks of a graph are in one epoch e when a run begins
 * (graph/build/behind.c). A claim moves a task to e + 1. Two transitions lead on from {e}:
 * - the last retiring predecessor sets READY, and only then publishes hints;
 * - a worker looking ahead moves the word to e + 1, which claims the task.
 *
 * Either transition is a compare-and-swap on the word, so exactly one succeeds. Predecessors of a
 * task claimed ahead still count down `pending`. The claim adds the number of all predecessors
 * instead of storing the number. So `pending` is right for the next run, in every order of arrival.
 */
#include "sched/execute/ahead.h"

#include "memory/tiles/evict.h"
#include "sched/decide/depth.h"
#include "sched/decide/locality.h"
#include "sched/decide/lookahead.h"
#include "sched/decide/placement.h"
#include "sched/decide/slow.h"
#include "sched/execute/shared_queue.h"
#include "sched/execute/window.h"
#include "sched/ready/queue.h"
#include "sched/worker/operands.h"

bool fl_ahead_prepare(filch_graph *graph)
{
    const fl_memory *memory = &graph->object.core->memory;
    _Atomic uint64_t *markers = fl_alloc(memory, ((size_t)graph->task_count + 1) * sizeof *markers);
    if (markers == NULL) {
        return false;
    }
    /* Marks of a run carry the epoch after the claim. The tasks' present epoch belongs to no run.
     */
    for (uint32_t i = 0; i < graph->task_count; ++i) {
        fl_store_relaxed(&markers[i], fl_mark_run(fl_task_epoch(fl_graph_task_at(graph, i))));
    }
    fl_part_of_graph(graph)->markers = markers;
    return true;
}

void fl_ahead_drop(filch_graph *graph)
{
    fl_graph_part *part = fl_part_of_graph(graph);
    if (part->markers != NULL) {
        fl_free(&graph->object.core->memory, (void *)part->markers,
                ((size_t)graph->task_count + 1) * sizeof *part->markers);
        part->markers = NULL;
    }
}

void fl_ahead_mark(const fl_task *task, fl_marker marker)
{
    uint64_t sequence = fl_marker_sequence(marker);
    /* A lane would have to run for months to reach the limit. */
    sequence = sequence < FL_MARK_UNFOLLOWABLE ? sequence : FL_MARK_UNFOLLOWABLE;
    /* Release: the task's effects, or the replicas made valid by the task, are visible to
     * followers. */
    fl_store_release(fl_mark_of(task),
                     (marker >> 50 << 50) | fl_mark_run(fl_task_epoch(task)) | sequence);
}

void fl_ahead_launched(fl_worker *w, fl_in_flight *flight, fl_marker marker)
{
    fl_offload *offload = w->offload;
    fl_task *task = flight->item.task;
    if (!w->sched->looks_ahead || task == NULL || task->graph->kind != FILCH_GRAPH_CLOSED ||
        task->begins || task->combines) {
        /* The task is over at retirement; the launch may be only a part of the task. */
        return;
    }
    fl_ahead_mark(task, marker);
    if (task->successor_count == 0) {
        return;
    }
    offload->lane_tail[flight->lane] = flight;
    if (offload->ahead_count < FL_LOOKAHEAD) {
        uint32_t at = (offload->ahead_first + offload->ahead_count++) % FL_LOOKAHEAD;
        offload->ahead[at] = flight;
        flight->is_ahead = true;
    }
}

/* Claims a task if the task may be put behind the predecessors on the worker's device. */
static bool claim_ahead(fl_worker *w, fl_task *task, uint32_t run)
{
    uint64_t word = (uint64_t)run << 32;
    /* Relaxed: the swap decides. Most successors are claimed, or ready, when they are looked at. */
    if (fl_load_relaxed(&task->word) != word) {
        return false;
    }
    /* Relaxed: an old value leads to the rules without the shared ready queue. */
    bool is_shared = fl_load_relaxed(&fl_part_of_graph(task->graph)->is_shared) != 0;
    if (!fl_lookahead_may_follow(w, task, run, is_shared) ||
        (is_shared && !fl_shared_queue_bid_ahead(w, task)) ||
        (FL_UNLIKELY(fl_slow_is_on(w)) && fl_slow_holds_up(w, task)) ||
        fl_placement_is_dear(w, task)) {
        return false;
    }
    /* Acquire-release: as in fl_task_claim. */
    if (!fl_cas_acq_rel(&task->word, &word, fl_word_next_epoch(word))) {
        return false;
    }
    /* Relaxed: predecessors only count down, before the run ends. */
    fl_add_relaxed(&task->pending, task->predecessors);
    return true;
}

/* State of a search among the successors of a task. */
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

fl_task *fl_ahead_next(fl_worker *w)
{
    fl_offload *offload = w->offload;
    while (offload->ahead_count != 0) {
        fl_in_flight *flight = offload->ahead[offload->ahead_first];
        /* A task landed in the meantime has released the successors in the usual way. */
        if (flight->is_ahead && flight->item.state == FL_ITEM_LAUNCHED) {
            fl_search search = {w, fl_task_epoch(flight->item.task) - 1, NULL};
            fl_graph_each_successor(flight->item.task, try_successor, &search);
            if (search.found != NULL) {
                return search.found;
            }
        }
        flight->is_ahead = false;
        offload->ahead_first = (offload->ahead_first + 1) % FL_LOOKAHEAD;
        --offload->ahead_count;
    }
    return NULL;
}

/* --- Continuations --- */

/* State of a search for a continuation of a lane's newest item. */
typedef struct fl_continuing {
    fl_search search;
    const fl_task *before;
    uint32_t lane;
    int ready; /* level of the most urgent ready task */
} fl_continuing;

/* Returns the highest level of the tasks in flight on the device's other lanes; below 0: none. */
static int other_lanes_top(const fl_worker *w, uint32_t lane)
{
    int level = -1;
    for (uint32_t i = 0; i < w->pipeline.flight_count; ++i) {
        const fl_in_flight *flight = &w->pipeline.flights[i];
        if (flight->item.state == FL_ITEM_LAUNCHED && flight->item.task != NULL &&
            flight->lane != lane && flight->item.task->level > level) {
            level = flight->item.task->level;
        }
    }
    return level;
}

/* A task that lacks an operand holds its lane while the operand is copied: such a task has to be
 * more urgent than what other lanes run, too. */
static void try_continuation(fl_task *successor, void *user)
{
    fl_continuing *continuing = user;
    fl_worker *w = continuing->search.worker;
    if (successor->level > continuing->ready &&
        fl_lookahead_continues(continuing->before, successor) &&
        (!fl_locality_lacks(w, successor) ||
         successor->level > other_lanes_top(w, continuing->lane))) {
        try_successor(successor, &continuing->search);
    }
}

/* Tells whether tiles are on the way from the host's memory. Tasks wait for these, and those behind
 * them on a lane wait, too. */
static bool is_hauling(const fl_worker *w)
{
    const fl_places *places = w->sched->core->places;
    uint32_t place = w->device->place;
    if (fl_flow_in(places, place) == 0) {
        return false;
    }
    fl_flow_look(places, place);
    return fl_flow_in(places, place) != 0;
}

/* Tells whether a task may continue the lane's newest item. */
static bool may_continue(const fl_worker *w, uint32_t lane)
{
    const fl_in_flight *tail = w->offload->lane_tail[lane];
    return tail != NULL && tail->lane == lane && tail->item.state == FL_ITEM_LAUNCHED &&
           fl_depth_part(tail) != 0 && fl_depth_may_continue(w, lane) && !is_hauling(w);
}

/* Tells whether roots of the item's graph are left to the worker. A task that becomes ready goes
 * before roots where the worker does not choose by locality. The item keeps the job from ending. */
static bool has_roots(const fl_worker *w, const fl_item *item)
{
    uint32_t lo, hi;
    return fl_range_peek(&fl_job_share(item->job, w->index)->range, &lo, &hi) != 0;
}

/* Claims a continuation of the lane's newest item. Null: there is none. */
static fl_task *continue_lane(fl_worker *w, uint32_t lane)
{
    const fl_item *tail = &w->offload->lane_tail[lane]->item;
    fl_continuing continuing = {
        {w, fl_task_epoch(tail->task) - 1, NULL}, tail->task, lane, fl_window_top(w)};
    if (continuing.ready >= 0 || has_roots(w, tail)) {
        fl_graph_each_successor(tail->task, try_continuation, &continuing);
    }
    if (continuing.search.found != NULL) {
        /* The continuation is the new tail of this lane. Where it waits for an item on another
         * lane, too, it goes there. */
        w->offload->lane_tail[lane] = NULL;
    }
    return continuing.search.found;
}

fl_task *fl_ahead_continuation(fl_worker *w)
{
    fl_task *found = NULL;
    /* Claimed tasks and parts may hold memory that others wait for. */
    bool has_claimed = fl_claimed_has(w);
    for (uint32_t lane = 0; lane < w->device->lanes && found == NULL && !has_claimed; ++lane) {
        found = may_continue(w, lane) ? continue_lane(w, lane) : NULL;
    }
    return found;
}

bool fl_ahead_waits(fl_worker *w, const fl_task *task)
{
    const filch_graph *graph = task->graph;
    for (uint32_t i = graph->pred_begin[task->order]; i < graph->pred_begin[task->order + 1]; ++i) {
        /* Acquire: the task may have retired since the check; then no wait is necessary. */
        fl_marker marker = fl_mark_lane(fl_load_acquire(fl_mark_at(graph, graph->pred_list[i])));
        if (fl_waits_add(&w->offload->waits, marker, &w->stall.error) != FILCH_OK) {
            return false;
        }
    }
    return true;
}

bool fl_ahead_release(fl_task *task, uint32_t run, bool poisoned)
{
    uint64_t word = fl_load_relaxed(&task->word);
    /* A task claimed ahead runs, and is not to be skipped in the next run; the epoch tells. Relaxed
     * order would do: the decrement below publishes the mark. */
    while (poisoned && fl_word_epoch(word) == run &&
           !fl_cas_weak_acq_rel(&task->word, &word, word | FL_TASK_POISONED)) {
    }
    /* Acquire-release: every predecessor's writes reach the last predecessor, and the last
     * predecessor hands the writes on. */
    if (fl_sub_acq_rel(&task->pending, 1) != 1) {
        return false;
    }
    word = fl_load_relaxed(&task->word);
    while (fl_word_epoch(word) == run) {
        /* Acquire-release: a worker finding the task ready sees the effects of the predecessors. */
        if (fl_cas_weak_acq_rel(&task->word, &word, word | FL_TASK_READY)) {
            return true;
        }
    }
    return false;
}
