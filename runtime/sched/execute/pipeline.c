/* SPDX-License-Identifier: Apache-2.0 */
/* Items in flight on an asynchronous device, a GPU or a simulated device: their states, and the
 * step, which launches items until the queue depth is reached, and retires items seen past on the
 * device. */
#include "sched/execute/pipeline.h"
#include "sched/execute/ahead.h"

#include "sched/account/account.h"
#include "sched/decide/depth.h"
#include "sched/decide/locality.h"
#include "sched/decide/lookahead.h"
#include "sched/decide/slow.h"
#include "sched/execute/backup.h"
#include "sched/execute/divide.h"
#include "sched/execute/fetch.h"
#include "sched/execute/give.h"
#include "sched/execute/graph_launch.h"
#include "sched/execute/launch.h"
#include "sched/execute/pending.h"
#include "sched/execute/pick.h"
#include "sched/execute/poll_interval.h"
#include "sched/execute/publish.h"
#include "sched/execute/shared_queue.h"
#include "sched/execute/step.h"
#include "sched/execute/theft.h"
#include "sched/execute/unavailable.h"
#include "sched/execute/window.h"
#include "sched/ready/queue.h"
#include "sched/worker/device.h"
#include "sched/worker/jobs.h"
#include "sched/worker/sched.h"
#include "sched/worker/tuning.h"

/* --- States --- */

uint32_t fl_pipeline_index(const fl_worker *w, const fl_in_flight *flight)
{
    return (uint32_t)(flight - w->pipeline.flights);
}

void fl_pipeline_give(fl_worker *w, fl_in_flight *flight)
{
    flight->item.state = FL_ITEM_DONE;
    flight->next = w->pipeline.free_flight;
    w->pipeline.free_flight = fl_pipeline_index(w, flight);
    --w->pipeline.in_flight;
}

fl_in_flight *fl_pipeline_take(fl_worker *w, const fl_item *item)
{
    fl_in_flight *flight = &w->pipeline.flights[w->pipeline.free_flight];
    w->pipeline.free_flight = flight->next;
    ++w->pipeline.in_flight;
    flight->item = *item;
    flight->item.state = FL_ITEM_PICKED;
    /* The item has not run. */
    flight->item.ns = 0;
    flight->home_count = 0;
    flight->foreign_count = 0;
    flight->is_sample = flight->is_ahead = flight->has_failed = flight->is_admitted = false;
    flight->pending = NULL;
    return flight;
}

/* Lands a finished item. The slot is freed before retiring, because retiring may launch. In line:
 * runs for every item. */
static inline __attribute__((always_inline)) void land(fl_worker *w, fl_in_flight *flight)
{
    w->now.has_worked = true;
    if (flight->is_admitted && flight->item.is_graph) {
        fl_graph_launch_release(w, flight->item.job->graph);
    } else if (flight->is_admitted && fl_operands_matter(&flight->item)) {
        fl_fetch_release(w, flight);
    }
    fl_item item = flight->item;
    if (FL_LIKELY(!flight->has_failed)) {
        fl_account_event(w, FL_EVENT_LANDED, &item);
    } else {
        fl_account_event(w, FL_EVENT_SPOILED, &item);
        fl_item_refuse(&item);
        w->stall.error = w->stall.late;
    }
    if (flight->is_sample) {
        --w->offload->samples;
    }
    fl_pending_task *pending = flight->pending;
    fl_pipeline_give(w, flight);
    if (FL_UNLIKELY(pending != NULL)) {
        /* The function has run, also where the simulated device was then lost. */
        item.code = 0;
        item.is_refused = false;
        fl_pending_let_go(w, &item, pending);
        return;
    }
    fl_worker_retire(w, &item);
}

void fl_pipeline_land(fl_worker *w, fl_in_flight *flight)
{
    land(w, flight);
}

/* In line: runs for every item. */
static inline __attribute__((always_inline)) void finish(fl_worker *w, fl_in_flight *flight)
{
    w->now.has_worked = true;
    if (FL_UNLIKELY(flight->foreign_count != 0)) {
        fl_publish_check_foreign(w, flight);
    }
    if (FL_UNLIKELY(flight->item.task == NULL && flight->item.run != NULL) &&
        fl_worker_computes(w)) {
        fl_backup_settle(w, flight);
    }
    if (flight->home_count == 0) {
        land(w, flight);
        return;
    }
    uint32_t index = fl_pipeline_index(w, flight);
    flight->item.state = FL_ITEM_WRITING_BACK;
    flight->next = FL_NO_FLIGHT;
    ++w->pipeline.writing_back_count;
    if (w->pipeline.writing_back == FL_NO_FLIGHT) {
        w->pipeline.writing_back = index;
    } else {
        w->pipeline.flights[w->pipeline.writing_back_last].next = index;
    }
    w->pipeline.writing_back_last = index;
}

void fl_pipeline_finish(fl_worker *w, fl_in_flight *flight)
{
    finish(w, flight);
}

/* Takes the oldest item in write-back out of the list. */
static fl_in_flight *take_written(fl_worker *w)
{
    fl_in_flight *flight = &w->pipeline.flights[w->pipeline.writing_back];
    w->pipeline.writing_back = flight->next;
    --w->pipeline.writing_back_count;
    return flight;
}

/* Lands items with finished write-back, in the order of finishing. */
static bool land_written(fl_worker *w)
{
    bool any = false;
    while (w->pipeline.writing_back != FL_NO_FLIGHT &&
           fl_publish_is_home(w, &w->pipeline.flights[w->pipeline.writing_back])) {
        fl_pipeline_land(w, take_written(w));
        any = true;
    }
    return any;
}

void fl_pipeline_conclude(fl_worker *w, const fl_item *item)
{
    fl_in_flight *flight = fl_pipeline_take(w, item);
    flight->item.start = fl_worker_clock(w);
    /* Operands are held for every piece. */
    flight->is_admitted = true;
    if (!fl_publish_pieces(w, flight) && item->code == 0) {
        fl_publish_fail(w, flight, &w->stall.error);
    }
    fl_pipeline_finish(w, flight);
}

/* --- The device fails --- */

static void fail_flight(fl_worker *w, fl_in_flight *flight)
{
    /* Copies of our own device are over; copies by other devices lead to buffers of the caller. */
    while (flight->home_count != 0) {
        fl_marker home = flight->homes[--flight->home_count];
        if (fl_marker_device(home) != w->index) {
            fl_marker_await(w->sched->core->places, home, NULL);
        }
    }
    fl_publish_fail(w, flight, &w->stall.failure);
    fl_pipeline_land(w, flight);
}

/* Handles the failure of the device: every item in flight has failed. */
static void lose(fl_worker *w)
{
    const fl_backend *backend = w->device->backend;
    w->stall.failure = w->stall.error;
    fl_store_relaxed(&w->signals.has_failed, 1);
    fl_log_write(&w->sched->core->log, FILCH_LOG_ERROR, "device %s is lost: %s",
                 w->device->info.name, w->stall.failure.text);
    /* A single lane may have failed: the remaining lanes are drained before the memory in use is
     * reported free, and nothing more is launched. */
    if (w->pipeline.computing != 0) {
        fl_account_event(w, FL_EVENT_DEVICE_LOST, NULL);
    }
    w->pipeline.computing = 0;
    w->pipeline.long_ns = 0;
    if (backend->queue->discard != NULL) {
        backend->queue->discard(w->device);
    }
    if (fl_worker_computes(w)) {
        backend->lane->drain(w->device, NULL);
    }
    for (uint32_t i = 0; i < w->pipeline.flight_count; ++i) {
        if (w->pipeline.flights[i].item.state == FL_ITEM_LAUNCHED) {
            fail_flight(w, &w->pipeline.flights[i]);
        }
    }
    while (w->pipeline.writing_back != FL_NO_FLIGHT) {
        fail_flight(w, take_written(w));
    }
    if (fl_worker_is_stalled(w)) {
        w->stall.stalled.state = FL_ITEM_DONE;
        w->stall.piece = 0;
        fl_item_refuse(&w->stall.stalled);
        w->stall.error = w->stall.failure;
        fl_worker_retire(w, &w->stall.stalled);
    }
    if (w->offload != NULL) {
        w->offload->ahead_count = 0;
        fl_launch_drop_scratch(w);
    }
}

bool fl_pipeline_is_down(fl_worker *w)
{
    if (!fl_worker_has_failed(w) && fl_device_is_lost(w->device, &w->stall.error)) {
        lose(w);
    }
    return fl_worker_has_failed(w);
}

/* --- Ends of items --- */

/* Sets the times of an item just seen past. busy: duration, ns; UINT64_MAX: not timed. */
static void time_item(fl_worker *w, fl_in_flight *flight, uint64_t busy)
{
    const fl_queue_ops *queue = w->device->backend->queue;
    fl_item *item = &flight->item;
    item->timed = busy != UINT64_MAX;
    item->ns = item->timed ? busy : 0;
    fl_account_divide(w, item);
    /* While a trace is recording, the start is the device's own time. */
    item->start =
        FL_UNLIKELY(fl_trace_of(w) != NULL) && queue->began != NULL ? queue->began(w->device) : 0;
    item->start = item->start != 0 ? item->start : w->pipeline.last_done - item->ns;
    if (item->timed) {
        return;
    }
    item->ns = item->is_graph         ? w->pipeline.last_done - flight->launched
               : flight->expected > 0 ? (uint64_t)flight->expected
                                      : (uint64_t)fl_worker_mean_ns(w);
}

static bool retire_finished(fl_worker *w)
{
    const fl_queue_ops *queue = w->device->backend->queue;
    uint64_t t = w->pipeline.computing != 0 ? fl_worker_clock(w) : 0;
    bool any = false;
    while (w->pipeline.computing != 0) {
        uint64_t tag, busy;
        filch_status status =
            queue->poll(w->device, t, &tag, &busy, &w->idle.wake_at, &w->stall.error);
        if (status == FILCH_NOT_READY) {
            break;
        }
        if (status != FILCH_OK && status != FILCH_TASK_FAILED) {
            lose(w);
            return true;
        }
        fl_in_flight *flight = &w->pipeline.flights[tag];
        if (FL_UNLIKELY(status == FILCH_TASK_FAILED)) {
            fl_publish_fail(w, flight, &w->stall.error);
        }
        --w->pipeline.computing;
        w->pipeline.long_ns -= fl_depth_part(flight);
        w->pipeline.last_done = t;
        time_item(w, flight, busy);
        if (w->offload != NULL) {
            --w->offload->lane_load[flight->lane];
            w->offload->lane_continued[flight->lane] -= flight->item.continues;
        }
        finish(w, flight);
        any = true;
    }
    if (FL_UNLIKELY(fl_pending_has_ended(w))) {
        fl_pending_retire_ended(w);
        any = true;
    }
    return land_written(w) || any;
}

static void count(_Atomic uint32_t *number, bool *is_counted, bool counts)
{
    if (*is_counted != counts) {
        *is_counted = counts;
        /* Relaxed, twice: an estimate, as documented at the member. */
        if (counts) {
            fl_add_relaxed(number, 1);
        } else {
            fl_sub_relaxed(number, 1);
        }
    }
}

void fl_pipeline_count_hunger(fl_worker *w, bool is_hungry)
{
    if (w->offload == NULL || !w->sched->mails) {
        return;
    }
    count(&w->sched->hungry, &w->stall.is_hungry, is_hungry && fl_slow_keeps_up(w));
    count(&w->sched->hungry_fast, &w->stall.is_hungry_fast, is_hungry && !fl_slow_is_on(w));
}

/* Fetches operands of tasks in the locality window ahead. */
static void fetch_ahead(fl_worker *w)
{
    fl_local_task *next;
    fl_window_share(w);
    /* Without capacity now, the reason is reported when the task is due to run. */
    while ((next = fl_window_to_fetch(w)) != NULL &&
           fl_fetch_ahead(w, next->task, next->is_claimed)) {
        next->is_fetched = true;
    }
}

/* Launches pieces of divided tasks while an item waits for memory: parts given to the worker, or,
 * with nothing in flight, a task joined now. A divided task may hold the memory. Pieces themselves
 * wait for no memory. */
static void launch_parts(fl_worker *w, uint32_t window)
{
    fl_task *task;
    fl_item item;
    fl_claimed_gather(w);
    while (
        fl_worker_is_stalled(w) && fl_depth_has_room(w, window) &&
        ((task = fl_divide_part(w)) != NULL || (w->pipeline.in_flight == 0 && fl_divide_join(w)))) {
        if (task == NULL) {
            /* The worker has joined, or is to look again. */
            continue;
        }
        fl_worker_take(w, task, false, &item);
        if (fl_item_admit(w, &item)) {
            fl_launch_item(w, &item);
        }
    }
}

/* --- The step --- */

/* Sets the wake-up time on a virtual clock, known to the device. Write-back on a second device's
 * lane is polled. */
static fl_act wait_virtual(fl_worker *w)
{
    uint64_t t = fl_worker_clock(w);
    w->idle.wake_at = w->device->backend->lane->next_event(w->device, t);
    if (w->pipeline.writing_back != FL_NO_FLIGHT && w->idle.wake_at > t + FL_POLL_BLIND_NS) {
        w->idle.wake_at = t + FL_POLL_BLIND_NS;
    }
    return FL_ACT_WAIT;
}

/* Tells whether copies to the device's memory node are under way. */
static bool is_fetching(const fl_worker *w)
{
    const fl_places *places = w->sched->core->places;
    return fl_flow_in(places, w->device->place) != 0 || fl_flow_peer(places, w->device->place) != 0;
}

static fl_act wait_computing(fl_worker *w)
{
    w->pipeline.clock_age = 0;
    if (w->pipeline.in_flight != 0 && fl_worker_computes(w) && w->device->backend->is_virtual &&
        !w->device->is_looked_at) {
        return wait_virtual(w);
    }
    if (w->pipeline.in_flight != 0 && fl_worker_computes(w)) {
        if (w->pipeline.computing != 0 &&
            w->device->backend->lane->mark(w->device, &w->stall.error) != FILCH_OK) {
            lose(w);
            return FL_ACT_MORE;
        }
        w->idle.wake_at = fl_poll_interval_next(w);
        /* Tasks in the locality window may be waiting for a copy, which ends independently of
         * items. */
        if (w->offload != NULL && w->offload->window_count != 0 && is_fetching(w)) {
            uint64_t arrival = fl_worker_clock(w) + FL_POLL_BLIND_NS;
            w->idle.wake_at = arrival < w->idle.wake_at ? arrival : w->idle.wake_at;
        }
    }
    return FL_ACT_WAIT;
}

/* Tells whether the device has yet to join. Work sent meanwhile can be found by other workers. */
static bool is_absent(fl_worker *w)
{
    w->idle.wake_at = w->device->joins_at;
    return w->device->joins_at > fl_worker_clock(w);
}

/* Time of the next try of the item waiting for memory. A worker helping with a divided task does
 * not try the item meanwhile: the nap after the last try may be over, and a worker with a past
 * wake-up time never sleeps. */
static uint64_t stall_look_at(const fl_worker *w)
{
    return (w->ready.is_dividing ? fl_worker_clock(w) : w->stall.stalled_at) + FL_LOOK_AGAIN_NS;
}

/* Ends a step; no further item can be put on the device now. any: an item was launched or landed.
 * is_away: the device was offline when the step began; only then has the step given its work
 * away. */
static fl_act end_step(fl_worker *w, bool any, bool is_away)
{
    if (FL_UNLIKELY(fl_depth_is_launching(w))) {
        w->idle.wake_at = w->device->held_until;
        return FL_ACT_WAIT;
    }
    /* On a virtual clock, items launched may be over at once. */
    bool repeats = any && (!fl_worker_computes(w) || w->device->backend->is_virtual);
    if (repeats || FL_UNLIKELY(fl_worker_has_failed(w))) {
        return FL_ACT_MORE;
    }
    fl_jobs_end_peek(w);
    if (w->now.completed != NULL) {
        /* The callback is host code and may take long: items able to run meanwhile must not wait.
         */
        fl_worker_mark(w);
        return FL_ACT_MORE;
    }
    if (w->offload != NULL && w->pipeline.in_flight == 0) {
        /* Devices sharing the memory node may need the memory. */
        fl_launch_drop_scratch(w);
    }
    if (FL_UNLIKELY(fl_worker_is_stalled(w)) && w->pipeline.in_flight == 0) {
        w->idle.wake_at = stall_look_at(w);
        return FL_ACT_WAIT;
    }
    if (w->pipeline.in_flight == 0) {
        fl_act act = FL_ACT_WAIT;
        fl_pipeline_note_hunger(w, !is_away);
        if (is_away) {
            act = fl_offline_rest(w);
        } else {
            fl_worker_begin_idle(w);
        }
        return any ? FL_ACT_MORE : act;
    }
    if (w->offload != NULL && w->offload->window_count != 0 && !is_away) {
        fetch_ahead(w);
    }
    fl_act act = wait_computing(w);
    /* Relaxed: as in fl_worker_begin_idle. */
    if (FL_UNLIKELY(fl_sched_attends(w->sched, FL_ATTEND_SHARED))) {
        uint64_t at = fl_shared_queue_look_at(w);
        w->idle.wake_at = at < w->idle.wake_at ? at : w->idle.wake_at;
    }
    if (FL_UNLIKELY(fl_worker_is_stalled(w))) {
        uint64_t at = stall_look_at(w);
        w->idle.wake_at = at < w->idle.wake_at ? at : w->idle.wake_at;
    }
    return act;
}

/* Tells whether to steal now. With an item in flight a theft can wait: a better victim may show
 * meanwhile. A theft cannot wait in two cases. Every item is in write-back, so the device has
 * nothing to compute. Or one item computes, stolen tasks lacked data, and the next item's could be
 * copied in parallel. */
static bool is_time_to_steal(const fl_worker *w)
{
    return w->pipeline.in_flight - w->pipeline.writing_back_count <= (w->theft.brought_bytes != 0);
}

/* Steals tasks, or a piece of a divided task. False: nothing was found, and the device is noted as
 * hungry. */
static bool take_from_others(fl_worker *w)
{
    bool is_found = fl_worker_steal(w) || (fl_worker_may_join(w) && fl_divide_join(w));
    fl_pipeline_note_hunger(w, !is_found);
    return is_found;
}

/* Tells whether to launch nothing before a copy has arrived. While a lane is free, tasks just made
 * ready count, and claimed tasks go first. */
static bool waits_for_copies(fl_worker *w)
{
    if (w->offload->window_count == 0) {
        return false;
    }
    if (w->pipeline.computing < w->device->lanes) {
        if (fl_claimed_has(w) || !fl_window_gather(w)) {
            return false;
        }
    }
    return fl_locality_waits(w);
}

/* Puts continuations behind the lanes' newest items, before ready tasks. A lone device is busy with
 * other tasks while an urgent one waits in its lanes; of several devices, one may run out of tasks
 * meanwhile. Short items are quickly over: finding their continuations would take longer. */
static bool launch_continuations(fl_worker *w)
{
    fl_task *next;
    bool any = false;
    while (w->sched->mails && w->offload != NULL && w->pipeline.long_ns != 0 &&
           !fl_worker_is_stalled(w) && !fl_worker_has_failed(w) &&
           (next = fl_ahead_continuation(w)) != NULL) {
        fl_item item;
        fl_worker_take(w, next, false, &item);
        item.is_ahead = item.continues = true;
        fl_launch_item(w, &item);
        any = true;
    }
    return any;
}

fl_act fl_pipeline_step(fl_worker *w)
{
    if (FL_UNLIKELY(fl_pipeline_is_down(w))) {
        fl_pipeline_note_hunger(w, false);
        return fl_failed_step(w);
    }
    if (FL_UNLIKELY(w->device->joins_at != 0) && is_absent(w)) {
        return FL_ACT_WAIT;
    }
    if (w->pipeline.in_flight == 0 && w->offload != NULL && fl_worker_computes(w)) {
        /* The next call may find the device failed. */
        fl_flow_note_past(w->sched->core->places, w->device->place);
    }
    bool any = retire_finished(w);
    uint32_t launches = 0, window = fl_depth_of(w);
    if (FL_UNLIKELY(fl_worker_is_stalled(w))) {
        launch_parts(w, window);
        /* Otherwise the memory belongs to the divided task. */
        if (!w->ready.is_dividing) {
            fl_launch_stalled(w, any);
        }
    }
    if (w->offload != NULL && w->offload->window_count != 0) {
        fl_flow_look(w->sched->core->places, w->device->place);
    }
    any |= launch_continuations(w);
    while (fl_depth_has_room(w, window) && !fl_worker_is_stalled(w) && !fl_worker_has_failed(w)) {
        fl_item item;
        if (++launches % FL_LAUNCHES_A_LOOK == 0) {
            retire_finished(w);
            window = fl_depth_of(w);
            if (fl_worker_has_failed(w)) {
                break;
            }
        }
        if (w->offload != NULL && waits_for_copies(w)) {
            fetch_ahead(w);
            break;
        }
        if (fl_worker_pick(w, &item)) {
            if (FL_UNLIKELY(fl_slow_is_on(w)) && fl_give_picked(w, &item)) {
                continue;
            }
            fl_worker_end_idle(w);
            fl_launch_item(w, &item);
            launch_continuations(w);
            any = true;
            continue;
        }
        if (w->pipeline.in_flight == 0) {
            fl_worker_flush(w);
            fl_jobs_end_peek(w);
            if (w->now.completed != NULL) {
                return FL_ACT_MORE;
            }
        }
        fl_task *next = w->offload != NULL ? fl_ahead_next(w) : NULL;
        if (next != NULL) {
            fl_worker_take(w, next, false, &item);
            item.is_ahead = true;
            fl_launch_item(w, &item);
            any = true;
            continue;
        }
        if (!is_time_to_steal(w)) {
            break;
        }
        if (take_from_others(w)) {
            continue;
        }
        if (w->pipeline.in_flight != w->pipeline.writing_back_count || !fl_backup_pick(w, &item)) {
            break;
        }
        fl_worker_end_idle(w);
        fl_launch_item(w, &item);
        any = true;
    }
    return end_step(w, any, false);
}

/* --- Offline --- */

/* Gives the item waiting for memory to a second device, if possible. */
static bool leave_stalled(fl_worker *w)
{
    fl_item *item = &w->stall.stalled;
    fl_task *task = item->task;
    if (item->is_graph ||
        (task == NULL ? !fl_pieces_return(w, item)
                      : fl_task_is_own(task) || fl_fetch_is_coming(w) ||
                            (item->is_ahead && fl_lookahead_look(task) != FL_LOOKAHEAD_OVER) ||
                            !fl_offline_give(w, task))) {
        return false;
    }
    w->stall.stalled.state = FL_ITEM_DONE;
    w->stall.piece = 0;
    return true;
}

fl_act fl_pipeline_rest(fl_worker *w)
{
    fl_item item;
    fl_pipeline_note_hunger(w, false);
    if (FL_UNLIKELY(fl_pipeline_is_down(w))) {
        return fl_failed_step(w);
    }
    bool any = retire_finished(w);
    if (fl_worker_is_stalled(w) && !leave_stalled(w)) {
        fl_launch_stalled(w, any);
    }
    fl_offline_settle(w);
    while (fl_depth_has_room(w, fl_depth_of(w)) && !fl_worker_is_stalled(w) &&
           !fl_worker_has_failed(w) && fl_offline_pick(w, &item)) {
        fl_launch_item(w, &item);
        any = true;
    }
    if (w->pipeline.in_flight == 0) {
        fl_worker_flush(w);
    }
    return end_step(w, any, true);
}
