/* SPDX-License-Identifier: Apache-2.0 */
#include "sched/decide/lookahead.h"

#include "sched/decide/divisible.h"
#include "sched/worker/device.h"
#include "sched/worker/graph_part.h"
#include "sched/worker/tuning.h"

/* Tells whether tasks may follow the predecessor with a mark on the worker's device. is_alone: only
 * if the predecessor is over, or runs on the worker's device. */
static inline bool is_followable(const fl_worker *w, uint64_t marker, uint32_t run, bool is_alone)
{
    /* A marker of an earlier run has a different number, since every run numbers every task anew,
     * and sealing stores the number before the first. */
    if ((marker & FL_MARK_RUN) != fl_mark_run(run + 1) ||
        (marker & FL_MARK_SEQUENCE) == FL_MARK_UNFOLLOWABLE) {
        return false;
    }
    fl_marker point = fl_mark_lane(marker);
    if (point == 0 || fl_marker_device(point) == w->index) {
        return true;
    }
    const fl_worker *other = &w->sched->workers[fl_marker_device(point)];
    /* Lanes are in order: an item waiting for a lagging device would delay items without a wait. */
    return !is_alone && !fl_slow_is_on(other) &&
           other->device->backend->lane->is_marked(other->device, point);
}

/* Tells whether the task begins a lifetime of a temporary's tile, or overwrites the tile again. */
static bool begins_lifetime(const fl_task *task)
{
    for (uint32_t i = 0; task->has_temporaries && i < task->access_count; ++i) {
        if (task->accesses[i].mode == FILCH_WRITE &&
            fl_data_is_temporary(fl_graph_data(task->graph, task->accesses[i].slot))) {
            return true;
        }
    }
    return false;
}

/* Tells whether the task would take memory too early for a temporary: the lifetimes before it end,
 * and give memory back, only once the host has seen their users end. */
static bool is_early(const fl_worker *w, const fl_task *task)
{
    uint32_t count = 0;
    if (FL_LIKELY(!begins_lifetime(task))) {
        return false;
    }
    for (uint32_t i = 0; i < w->pipeline.flight_count; ++i) {
        const fl_item *item = &w->pipeline.flights[i].item;
        count += item->state == FL_ITEM_LAUNCHED && item->task != NULL && !item->is_graph &&
                 begins_lifetime(item->task);
    }
    return count >= FL_DEPTH_OF_LANE;
}

bool fl_lookahead_may_follow(const fl_worker *w, const fl_task *task, uint32_t run, bool is_shared)
{
    const filch_graph *graph = task->graph;
    /* A task being divided has nothing in flight for followers, and does not follow predecessors.
     */
    if (fl_task_is_patient(task) || (FL_UNLIKELY(task->has_items) && fl_divide_is_due(w, task)) ||
        is_early(w, task) || !fl_worker_can_run(w, task) ||
        (w->sched->policy == FILCH_POLICY_STATIC && task->home != 0 &&
         task->home != w->index + 1)) {
        return false;
    }
    for (uint32_t i = graph->pred_begin[task->order]; i < graph->pred_begin[task->order + 1]; ++i) {
        /* Acquire: pairs with the releases of execute/ahead.c. */
        uint64_t marker = fl_load_acquire(fl_mark_at(graph, graph->pred_list[i]));
        if (!is_followable(w, marker, run, is_shared)) {
            return false;
        }
    }
    return true;
}

/* Tells whether the task writes the tile of an access, as one tile. */
static bool writes_tile(const fl_task *task, const fl_task_access *tile)
{
    for (uint32_t i = 0; i < task->access_count; ++i) {
        const fl_task_access *access = &task->accesses[i];
        if ((access->mode & FILCH_WRITE) != 0 && !access->is_block && access->slot == tile->slot &&
            access->tile == tile->tile) {
            return true;
        }
    }
    return false;
}

bool fl_lookahead_continues(const fl_task *before, const fl_task *task)
{
    for (uint32_t i = 0; i < before->access_count; ++i) {
        const fl_task_access *access = &before->accesses[i];
        if ((access->mode & FILCH_WRITE) != 0 && !access->is_block && writes_tile(task, access)) {
            return true;
        }
    }
    return false;
}

fl_lookahead_state fl_lookahead_look(const fl_task *task)
{
    const filch_graph *graph = task->graph;
    fl_lookahead_state state = FL_LOOKAHEAD_OVER;
    for (uint32_t i = graph->pred_begin[task->order]; i < graph->pred_begin[task->order + 1]; ++i) {
        /* Acquire: the effects of completed predecessors are visible. */
        uint64_t marker = fl_load_acquire(fl_mark_at(graph, graph->pred_list[i]));
        bool is_this_run = (marker & FL_MARK_RUN) == fl_mark_run(fl_task_epoch(task));
        if (is_this_run && (marker & FL_MARK_SEQUENCE) == FL_MARK_UNFOLLOWABLE) {
            return FL_LOOKAHEAD_FAILED;
        }
        if (!is_this_run || (marker & FL_MARK_SEQUENCE) != 0) {
            state = FL_LOOKAHEAD_WAITS;
        }
    }
    return state;
}
