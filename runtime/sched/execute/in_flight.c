/* SPDX-License-Identifier: Apache-2.0 */
/* Step of a worker whose device runs items asynchronously: a GPU, or a simulated device. The step
 * launches items until the queue depth is reached, and retires items seen past on the device. */
#include "sched/execute/in_flight.h"

#include "sched/account/account.h"
#include "sched/decide/depth.h"
#include "sched/decide/locality.h"
#include "sched/decide/lookahead.h"
#include "sched/decide/shared_queue.h"
#include "sched/decide/slow.h"
#include "sched/decide/speculate.h"
#include "sched/decide/steal.h"
#include "sched/execute/divide.h"
#include "sched/execute/graph_launch.h"
#include "sched/execute/host_call.h"
#include "sched/execute/offload.h"
#include "sched/execute/pick.h"
#include "sched/execute/poll_interval.h"
#include "sched/execute/step.h"
#include "sched/execute/unavailable.h"
#include "sched/model/predict.h"
#include "sched/model/speed.h"
#include "sched/ready/queue.h"
#include "sched/worker/device.h"
#include "sched/worker/item.h"
#include "sched/worker/jobs.h"
#include "sched/worker/sched.h"
#include "sched/worker/tuning.h"

static uint64_t now(const fl_worker *w)
{
    return fl_clock_now(&w->sched->core->clock);
}

static bool computes(const fl_worker *w)
{
    return w->device->backend->lane != NULL;
}

/* --- Landing --- */

static void fail(fl_item *item)
{
    item->code = -1;
    item->is_refused = true;
    item->timed = false;
}

void fl_in_flight_fail(fl_worker *w, fl_in_flight *flight, const filch_error *error)
{
    flight->has_failed = true;
    w->stall.late = *error;
}

/* Lands a finished item. The slot in flights is freed before retiring, because retiring may
 * launch. */
static void land(fl_worker *w, uint32_t index)
{
    fl_in_flight *flight = &w->pipeline.flights[index];
    if (flight->is_admitted) {
        fl_offload_release(w, flight);
    }
    fl_account_land(w, flight);
    fl_item item = flight->item;
    if (FL_UNLIKELY(flight->has_failed)) {
        fail(&item);
        w->stall.error = w->stall.late;
    }
    flight->next = w->pipeline.free_flight;
    w->pipeline.free_flight = index;
    --w->pipeline.in_flight;
    if (flight->is_timed) {
        --w->offload->timed;
    }
    fl_worker_retire(w, &item);
}

/* Checks the item's copies from remote memory nodes: a failed copy fails the item. The copies are
 * over, because the lane waited. */
static void check_foreign(fl_worker *w, fl_in_flight *flight)
{
    filch_error error = FILCH_ERROR_INIT;
    while (flight->foreign_count != 0) {
        fl_marker marker = flight->foreign[--flight->foreign_count];
        fl_device *other = w->sched->workers[fl_marker_device(marker)].device;
        if (fl_device_await(other, marker, &error) != FILCH_OK) {
            fl_in_flight_fail(w, flight, &error);
        }
    }
}

/* Finishes an item past on the lane; write-back may still be under way. */
static void finish(fl_worker *w, uint32_t index)
{
    fl_in_flight *flight = &w->pipeline.flights[index];
    if (FL_UNLIKELY(flight->foreign_count != 0)) {
        check_foreign(w, flight);
    }
    if (FL_UNLIKELY(flight->item.task == NULL && flight->item.run != NULL) && computes(w)) {
        fl_speculate_settle(w, flight);
    }
    if (flight->home_count == 0) {
        land(w, index);
        return;
    }
    flight->next = FL_NO_FLIGHT;
    ++w->pipeline.writing_back_count;
    if (w->pipeline.writing_back == FL_NO_FLIGHT) {
        w->pipeline.writing_back = index;
    } else {
        w->pipeline.flights[w->pipeline.writing_back_last].next = index;
    }
    w->pipeline.writing_back_last = index;
}

void fl_in_flight_add_home(fl_worker *w, fl_in_flight *flight, fl_marker home)
{
    filch_error error = FILCH_ERROR_INIT;
    for (uint32_t i = 0; i < flight->home_count; ++i) {
        /* Lanes are in order: the later marker covers the earlier. */
        if (flight->homes[i] >> 50 == home >> 50) {
            flight->homes[i] = home;
            return;
        }
    }
    if (flight->home_count == FL_HOMES) {
        --flight->home_count;
        if (fl_marker_await(w->sched->core->places, flight->homes[0], &error) != FILCH_OK) {
            fl_in_flight_fail(w, flight, &error);
        }
        flight->homes[0] = flight->homes[flight->home_count];
    }
    flight->homes[flight->home_count++] = home;
}

/* Tells whether every write-back copy is past; a failed copy counts as past. */
static bool is_home(fl_worker *w, fl_in_flight *flight)
{
    filch_error error = FILCH_ERROR_INIT;
    while (flight->home_count != 0) {
        fl_marker home = flight->homes[flight->home_count - 1];
        fl_device *device = &w->sched->core->places->devices[fl_marker_device(home)];
        filch_status status = device->backend->lane->reached(device, home, &error);
        if (status == FILCH_NOT_READY) {
            return false;
        }
        --flight->home_count;
        if (status != FILCH_OK) {
            fl_in_flight_fail(w, flight, &error);
        }
    }
    return true;
}

/* Lands items with finished write-back, in the order of finishing. */
static bool land_homing(fl_worker *w)
{
    bool any = false;
    while (w->pipeline.writing_back != FL_NO_FLIGHT) {
        uint32_t index = w->pipeline.writing_back;
        fl_in_flight *flight = &w->pipeline.flights[index];
        if (!is_home(w, flight)) {
            return any;
        }
        w->pipeline.writing_back = flight->next;
        --w->pipeline.writing_back_count;
        land(w, index);
        any = true;
    }
    return any;
}

static void fail_flight(fl_worker *w, uint32_t index)
{
    fl_in_flight *flight = &w->pipeline.flights[index];
    flight->launched = 0;
    /* Copies of our own device are over; copies by other devices lead to buffers of the caller. */
    while (flight->home_count != 0) {
        fl_marker home = flight->homes[--flight->home_count];
        if (fl_marker_device(home) != w->index) {
            fl_marker_await(w->sched->core->places, home, NULL);
        }
    }
    fl_in_flight_fail(w, flight, &w->stall.failure);
    land(w, index);
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
        fl_account_lost(w);
    }
    w->pipeline.computing = 0;
    w->pipeline.long_ns = 0;
    if (backend->queue->discard != NULL) {
        backend->queue->discard(w->device);
    }
    if (backend->lane != NULL) {
        backend->lane->drain(w->device, NULL);
    }
    for (uint32_t i = 0; i < w->pipeline.flight_count; ++i) {
        if (w->pipeline.flights[i].launched != 0) {
            fail_flight(w, i);
        }
    }
    while (w->pipeline.writing_back != FL_NO_FLIGHT) {
        uint32_t index = w->pipeline.writing_back;
        w->pipeline.writing_back = w->pipeline.flights[index].next;
        --w->pipeline.writing_back_count;
        fail_flight(w, index);
    }
    if (w->stall.has_stalled) {
        w->stall.has_stalled = false;
        w->stall.piece = 0;
        fail(&w->stall.stalled);
        w->stall.error = w->stall.failure;
        fl_worker_retire(w, &w->stall.stalled);
    }
    if (w->offload != NULL) {
        w->offload->ahead_count = 0;
        fl_offload_drop_scratch(w);
    }
}

/* Tells whether the device has failed, as seen by a call of a worker or of the host. */
static bool is_down(fl_worker *w)
{
    if (!fl_worker_has_failed(w) && fl_device_is_lost(w->device, &w->stall.error)) {
        lose(w);
    }
    return fl_worker_has_failed(w);
}

/* Start time of an item just seen past: the device's own time if a trace is recording. */
static uint64_t start_of(const fl_worker *w, uint64_t ns)
{
    const fl_queue_ops *queue = w->device->backend->queue;
    uint64_t start =
        FL_UNLIKELY(fl_trace_of(w) != NULL) && queue->began != NULL ? queue->began(w->device) : 0;
    return start != 0 ? start : w->pipeline.last_done - ns;
}

static bool retire_finished(fl_worker *w)
{
    const fl_queue_ops *queue = w->device->backend->queue;
    uint64_t t = w->pipeline.computing != 0 ? now(w) : 0;
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
            fl_in_flight_fail(w, flight, &w->stall.error);
        }
        --w->pipeline.computing;
        w->pipeline.long_ns -= fl_depth_part(flight);
        w->pipeline.last_done = t;
        flight->item.timed = busy != UINT64_MAX;
        flight->item.ns = flight->item.timed ? busy : 0;
        fl_account_divide(w, &flight->item);
        flight->item.start = start_of(w, flight->item.ns);
        if (!flight->item.timed) {
            flight->item.ns = fl_account_guess(w, flight);
        }
        flight->launched = 0;
        if (w->offload != NULL) {
            --w->offload->lane_load[flight->lane];
        }
        finish(w, (uint32_t)tag);
        any = true;
    }
    return land_homing(w) || any;
}

/* --- Launching --- */

/* Takes a free slot for an item in flight; the caller knows of a free slot. */
static inline fl_in_flight *take_flight(fl_worker *w, const fl_item *item)
{
    fl_in_flight *flight = &w->pipeline.flights[w->pipeline.free_flight];
    w->pipeline.free_flight = flight->next;
    ++w->pipeline.in_flight;
    flight->item = *item;
    /* The item has not run. */
    flight->item.ns = 0;
    flight->home_count = 0;
    flight->foreign_count = 0;
    flight->is_timed = flight->is_ahead = flight->has_failed = flight->is_admitted = false;
    return flight;
}

void fl_in_flight_conclude(fl_worker *w, const fl_item *item)
{
    uint32_t index = w->pipeline.free_flight;
    fl_in_flight *flight = take_flight(w, item);
    /* No part of the item is on a lane. */
    flight->launched = 0;
    flight->item.start = now(w);
    /* Operands are held for every piece. */
    flight->is_admitted = true;
    if (!fl_offload_commit_pieces(w, flight) && item->code == 0) {
        fl_in_flight_fail(w, flight, &w->stall.error);
    }
    finish(w, index);
}

/* Launches on a simulated device. The host function, if needed for the results, runs here and
 * now. */
static bool launch_pretended(fl_worker *w, fl_in_flight *flight, uint32_t index)
{
    fl_item *item = &flight->item;
    fl_launch launch = {.cost = fl_item_cost(w, item), .tag = index};
    if (w->device->calls_host_fn) {
        fl_item kept = w->now.item;
        w->now.item = *item;
        fl_worker_run(w);
        item->code = w->now.item.code;
        w->now.item = kept;
    }
    if (w->device->backend->queue->launch(w->device, &launch, item->start, &w->stall.error) ==
        FILCH_OK) {
        return true;
    }
    item->code = -1;
    /* A launch failure counts as a refusal if a second run of the chunk may be under way: the host
     * function's code is not the outcome. */
    item->is_refused = item->task == NULL && item->run != NULL;
    return false;
}

/* Predicted duration of an item here, ns; 0 when unknown. */
static double predict(const fl_worker *w, const fl_item *item)
{
    return fl_speed_time(fl_codelet_speed(fl_item_codelet(item), w->index), item->work);
}

/* Takes back an item that found no room, for a retry when memory may be free. A piece of a chunk is
 * rejoined with the rest. */
static void stall(fl_worker *w, uint32_t index, const fl_item *picked)
{
    fl_in_flight *flight = &w->pipeline.flights[index];
    if (w->stall.has_stalled) {
        w->stall.stalled.lo = picked->lo;
    } else {
        w->stall.stalled = *picked;
    }
    w->stall.has_stalled = true;
    w->stall.stalled_at = now(w);
    flight->next = w->pipeline.free_flight;
    w->pipeline.free_flight = index;
    --w->pipeline.in_flight;
}

/* Tells whether a launch lacked only memory, and a retry may succeed. Items in flight, on the
 * device or on devices sharing the memory node, may free memory when over. If the device has no
 * further items in flight, evicts every evictable tile and lets the item be tried once more. */
static bool may_retry(fl_worker *w)
{
    return w->stall.error.status == FILCH_NOT_READY ||
           (w->stall.error.status == FILCH_NO_DEVICE_MEMORY &&
            (w->pipeline.in_flight > 1 || fl_offload_clear(w)));
}

/* Tells whether to try a chunk in pieces, because other users leave too little of the device's
 * memory. A single grain is not divided: the rest of the chunk then fails, too. */
static bool may_divide(fl_worker *w, fl_item *item)
{
    if (w->stall.error.status != FILCH_NO_DEVICE_MEMORY || item->task != NULL || item->is_graph) {
        return false;
    }
    if (item->hi - item->lo > 1) {
        w->stall.piece = (item->hi - item->lo) / 2;
        return true;
    }
    if (w->stall.has_stalled) {
        item->hi = w->stall.stalled.hi;
        w->stall.has_stalled = false;
    }
    w->stall.piece = 0;
    return false;
}

/* Notes an item taken by the device. */
static void note_taken(fl_worker *w, fl_in_flight *flight)
{
    ++w->pipeline.computing;
    w->pipeline.long_ns += fl_depth_part(flight);
    fl_account_launched(w, flight);
    flight->arriving = computes(w) ? fl_offload_arriving(w) : 0;
    flight->arrived = 0;
}

/* Launches every task of a graph in one call. */
static void launch_replay(fl_worker *w, fl_in_flight *flight, uint32_t index)
{
    flight->launched = flight->item.start = now(w);
    flight->expected = 0;
    if (fl_graph_launch_launch(w, flight, index)) {
        note_taken(w, flight);
        return;
    }
    flight->launched = 0;
    fail(&flight->item);
    fl_offload_abandon(w);
    land(w, index);
    (void)is_down(w);
}

/* Finds a second device for an item lacking memory here. True: the item is dealt with. */
static bool find_room(fl_worker *w, uint32_t index, const fl_item *picked)
{
    /* Chunk with the rest of the picked chunk. */
    fl_item chunk = w->pipeline.flights[index].item;
    fl_task *task = picked->task;
    if (w->stall.error.status != FILCH_NO_DEVICE_MEMORY || picked->is_graph) {
        return false;
    }
    fl_lookahead_state before = picked->is_ahead ? fl_lookahead_look(task) : FL_LOOKAHEAD_OVER;
    if (before == FL_LOOKAHEAD_WAITS) {
        /* No second device may have the task yet. */
        stall(w, index, picked);
        return true;
    }
    if (task == NULL ? !fl_full_leave(w, &chunk)
                     : before == FL_LOOKAHEAD_FAILED || !fl_full_move(w, task)) {
        return false;
    }
    w->pipeline.flights[index].next = w->pipeline.free_flight;
    w->pipeline.free_flight = index;
    --w->pipeline.in_flight;
    return true;
}

/* Handles an item after a failed launch. */
static void fail_launch(fl_worker *w, uint32_t index, const fl_item *picked)
{
    fl_in_flight *flight = &w->pipeline.flights[index];
    fl_item *item = &flight->item;
    flight->launched = 0;
    item->timed = false;
    if (computes(w)) {
        /* A nonzero code came from a function of the caller. */
        item->is_refused = item->code == 0;
    }
    item->code = item->code != 0 ? item->code : -1;
    if (computes(w)) {
        fl_offload_abandon(w);
    }
    /* Pieces of a divided task have memory already; no device may wait with a piece or take over
     * the task. */
    bool may_wait = item->is_refused && (item->task == NULL || !fl_task_is_divided(item->task));
    if (may_wait && (may_retry(w) || may_divide(w, item))) {
        stall(w, index, picked);
        return;
    }
    if (w->offload != NULL) {
        w->offload->is_tight = false;
    }
    if (may_wait && find_room(w, index, picked)) {
        return;
    }
    land(w, index);
    (void)is_down(w);
}

/* Drops the second run of a chunk after a failed launch. The first run continues. */
static void drop_second(fl_worker *w, uint32_t index)
{
    fl_in_flight *flight = &w->pipeline.flights[index];
    flight->launched = 0;
    fl_offload_abandon(w);
    flight->next = w->pipeline.free_flight;
    w->pipeline.free_flight = index;
    --w->pipeline.in_flight;
    fl_speculate_refused(w, &flight->item);
    (void)is_down(w);
}

/* Launches a gate moving a tile to the host's memory. The gate is over when the copies are over. */
static void launch_move(fl_worker *w, uint32_t index)
{
    fl_in_flight *flight = &w->pipeline.flights[index];
    fl_item *item = &flight->item;
    item->timed = false;
    /* No part of the item is on a lane. */
    flight->launched = 0;
    item->start = now(w);
    if (!computes(w) || fl_offload_move(w, flight)) {
        finish(w, index);
        return;
    }
    fail(item);
    land(w, index);
    (void)is_down(w);
}

/* Makes an item in flight wait for copies fetched ahead. False: every copy has arrived. */
static bool note_coming(fl_worker *w, fl_in_flight *flight)
{
    fl_offload *offload = w->offload;
    bool any = false;
    for (int from = 0; from < 2; ++from) {
        if (!w->device->backend->lane->is_past(w->device, offload->fetched[from])) {
            fl_in_flight_add_home(w, flight, offload->fetched[from]);
            any = true;
        } else {
            offload->fetched[from] = 0;
        }
    }
    return any;
}

/* Passes over an item with nothing to run. Copies fetched ahead for a skipped item still arrive,
 * maybe from memory the caller owns again once the job is over. */
static void pass_over(fl_worker *w, uint32_t index)
{
    fl_offload *offload = w->offload;
    fl_in_flight *flight = &w->pipeline.flights[index];
    bool passes = flight->item.task != NULL && fl_task_passes(flight->item.task);
    flight->item.timed = false;
    if (FL_UNLIKELY(offload != NULL && (offload->fetched[0] | offload->fetched[1]) != 0) &&
        !passes && note_coming(w, flight)) {
        /* No part of the item is on a lane. */
        flight->launched = 0;
        flight->item.start = now(w);
        finish(w, index);
        return;
    }
    land(w, index);
}

/* Notes whether the device is out of work, while further devices may have a surplus. */
static void note_hunger(fl_worker *w, bool is_hungry)
{
    if (FL_UNLIKELY(w->stall.is_hungry != is_hungry) && w->offload != NULL && w->sched->mails) {
        w->stall.is_hungry = is_hungry;
        if (is_hungry) {
            /* Relaxed: an estimate, as documented at the member. */
            fl_add_relaxed(&w->sched->hungry, 1);
        } else {
            fl_sub_relaxed(&w->sched->hungry, 1);
        }
    }
}

/* Puts an item on the device, or lands the item at once if there is nothing to run. */
static void launch(fl_worker *w, const fl_item *picked)
{
    uint32_t index = w->pipeline.free_flight;
    note_hunger(w, false);
    fl_in_flight *flight = take_flight(w, picked);
    fl_item *item = &flight->item;
    if (item->task != NULL && item->task->is_gate) {
        fl_item_pass(item);
    }
    if (item->skip) {
        pass_over(w, index);
        return;
    }
    if (item->is_graph) {
        launch_replay(w, flight, index);
        return;
    }
    if (FL_UNLIKELY(item->task != NULL && item->task->is_gate)) {
        launch_move(w, index);
        return;
    }
    const filch_codelet *codelet = fl_item_codelet(item);
    /* A computing device clears the flag if not measuring. */
    fl_item_set_timed(item, codelet);
    bool races = FL_UNLIKELY(fl_item_may_race(item, codelet));
    if (races) {
        fl_speculate_offer(w, item);
    }
    if (!computes(w) || w->pipeline.clock_age++ % FL_LAUNCHES_A_CLOCK == 0) {
        w->pipeline.clock = now(w);
    }
    item->start = w->pipeline.clock;
    /* Zero marks an item not on the device. */
    flight->launched = w->pipeline.clock != 0 ? w->pipeline.clock : 1;
    flight->expected = predict(w, item);
    w->stall.error.status = FILCH_OK;
    bool flies =
        computes(w) ? fl_offload_launch(w, flight, index) : launch_pretended(w, flight, index);
    if (flies) {
        if (races && computes(w)) {
            fl_speculate_launched(w, item);
        }
        note_taken(w, flight);
        if (item->task != NULL && flight->expected > FL_SHORT_NS && computes(w)) {
            /* Marks the end of a long item. Seen together with later items on the lane, the end
             * would be known so late that the device would run out of work. A later wait marks
             * again, and reports an error. */
            (void)w->device->backend->lane->mark(w->device, NULL);
        }
        if (FL_UNLIKELY(item->task != NULL && item->task->moves != 0)) {
            item->task->moves = 0;
        }
        return;
    }
    if (races && computes(w)) {
        if (item->run != NULL && item->run->is_second) {
            drop_second(w, index);
            return;
        }
        fl_speculate_refused(w, item);
    }
    fail_launch(w, index, picked);
}

/* Launches the item waiting for memory, once an item has landed here, or after a while: memory may
 * be freed on a second device, or by a copy. */
static void launch_stalled(fl_worker *w, bool any)
{
    fl_item item = w->stall.stalled;
    if (!any && now(w) - w->stall.stalled_at < FL_NAP_STALL_NS) {
        return;
    }
    if (FL_UNLIKELY(w->stall.piece != 0 && w->stall.piece < item.hi - item.lo)) {
        item.hi = item.lo + w->stall.piece;
        item.work = fl_batch_work(w, item.job, item.lo, item.hi);
        w->stall.stalled.lo = item.hi;
        w->stall.stalled_at = now(w);
    } else {
        w->stall.has_stalled = false;
        w->stall.piece = 0;
    }
    launch(w, &item);
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
        w->stall.has_stalled && fl_depth_has_room(w, window) &&
        ((task = fl_divide_part(w)) != NULL || (w->pipeline.in_flight == 0 && fl_divide_join(w)))) {
        if (task == NULL) {
            /* The worker has joined, or is to look again. */
            continue;
        }
        fl_worker_take(w, task, false, &item);
        if (fl_item_admit(w, &item)) {
            launch(w, &item);
        }
    }
}

/* --- The step --- */

/* Sets the wake-up time on a virtual clock, known to the device. Write-back on a second device's
 * lane is polled. */
static fl_act wait_virtual(fl_worker *w)
{
    uint64_t t = now(w);
    w->idle.wake_at = w->device->backend->lane->next_event(w->device, t);
    if (w->pipeline.writing_back != FL_NO_FLIGHT && w->idle.wake_at > t + FL_ARRIVAL_NS) {
        w->idle.wake_at = t + FL_ARRIVAL_NS;
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
    if (w->pipeline.in_flight != 0 && computes(w) && w->device->backend->is_virtual &&
        !w->device->is_looked_at) {
        return wait_virtual(w);
    }
    if (w->pipeline.in_flight != 0 && computes(w)) {
        if (w->pipeline.computing != 0 &&
            w->device->backend->lane->mark(w->device, &w->stall.error) != FILCH_OK) {
            lose(w);
            return FL_ACT_MORE;
        }
        w->idle.wake_at = fl_poll_interval_next(w);
        /* Tasks in the locality window may be waiting for a copy, which ends independently of
         * items. */
        if (w->offload != NULL && w->offload->window_count != 0 && is_fetching(w)) {
            uint64_t arrival = now(w) + FL_ARRIVAL_NS;
            w->idle.wake_at = arrival < w->idle.wake_at ? arrival : w->idle.wake_at;
        }
    }
    return FL_ACT_WAIT;
}

/* Marks before completions: the callback is host code and may take long. Items able to run
 * meanwhile must not wait. */
static void mark_held(fl_worker *w)
{
    if (w->pipeline.computing != 0 && computes(w)) {
        /* A later mark reports an error. */
        (void)w->device->backend->lane->mark(w->device, NULL);
    }
}

/* Tells whether the device has yet to join. Work sent meanwhile can be found by other workers. */
static bool is_absent(fl_worker *w)
{
    w->idle.wake_at = w->device->joins_at;
    return w->device->joins_at > now(w);
}

/* Tells whether the step repeats: on a virtual clock, items launched may be over at once. */
static bool is_stepped_again(const fl_worker *w)
{
    return !computes(w) || w->device->backend->is_virtual;
}

/* Notes arrived copies, because the next call may find the device failed. */
static void look_at_copies(const fl_worker *w)
{
    (void)fl_flow_in(w->sched->core->places, w->device->place);
    (void)fl_flow_peer(w->sched->core->places, w->device->place);
    (void)fl_flow_out(w->sched->core->places, w->device->place);
}

/* Time of the next try of the item waiting for memory. A worker helping with a divided task does
 * not try the item meanwhile: the nap after the last try may be over, and a worker with a past
 * wake-up time never sleeps. */
static uint64_t stall_look_at(const fl_worker *w)
{
    return (w->ready.is_dividing ? now(w) : w->stall.stalled_at) + FL_NAP_STALL_NS;
}

/* Ends a step; no further item can be put on the device now. any: an item was launched or landed.
 * is_away: the device was offline when the step began; only then has the step given its work
 * away. */
static fl_act end_step(fl_worker *w, bool any, bool is_away)
{
    if (FL_UNLIKELY(fl_depth_is_held(w))) {
        w->idle.wake_at = w->device->held_until;
        return FL_ACT_WAIT;
    }
    if ((any && is_stepped_again(w)) || FL_UNLIKELY(fl_worker_has_failed(w))) {
        return FL_ACT_MORE;
    }
    fl_worker_leave(w);
    if (w->now.completed != NULL) {
        mark_held(w);
        return FL_ACT_MORE;
    }
    if (w->offload != NULL && w->pipeline.in_flight == 0) {
        /* Devices sharing the memory node may need the memory. */
        fl_offload_drop_scratch(w);
    }
    if (FL_UNLIKELY(w->stall.has_stalled) && w->pipeline.in_flight == 0) {
        w->idle.wake_at = stall_look_at(w);
        return FL_ACT_WAIT;
    }
    if (w->pipeline.in_flight == 0) {
        fl_act act = FL_ACT_WAIT;
        note_hunger(w, !is_away && !fl_slow_is_on(w));
        if (is_away) {
            act = fl_offline_rest(w);
        } else {
            fl_worker_begin_idle(w);
        }
        return any ? FL_ACT_MORE : act;
    }
    if (w->offload != NULL && w->offload->window_count != 0 && !is_away) {
        fl_locality_fetch(w);
    }
    fl_act act = wait_computing(w);
    /* Relaxed: as in fl_worker_begin_idle. */
    if (FL_UNLIKELY(fl_load_relaxed(&w->sched->shared_jobs) != 0)) {
        uint64_t at = fl_shared_queue_look_at(w);
        w->idle.wake_at = at < w->idle.wake_at ? at : w->idle.wake_at;
    }
    if (FL_UNLIKELY(w->stall.has_stalled)) {
        uint64_t at = stall_look_at(w);
        w->idle.wake_at = at < w->idle.wake_at ? at : w->idle.wake_at;
    }
    return act;
}

/* Tells whether to steal now. With an item in flight a theft can wait: a better victim may show
 * meanwhile. A theft cannot wait in two cases. Every item is in write-back, so the device has
 * nothing to compute. Or one item computes, and the next item's data could be copied in
 * parallel. */
static bool is_time_to_steal(const fl_worker *w)
{
    return w->pipeline.in_flight - w->pipeline.writing_back_count <= (w->theft.brought_ns > 0);
}

fl_act fl_in_flight_step(fl_worker *w)
{
    if (FL_UNLIKELY(is_down(w))) {
        note_hunger(w, false);
        return fl_failed_step(w);
    }
    if (FL_UNLIKELY(w->device->joins_at != 0) && is_absent(w)) {
        return FL_ACT_WAIT;
    }
    if (w->pipeline.in_flight == 0 && w->offload != NULL && computes(w)) {
        look_at_copies(w);
    }
    bool any = retire_finished(w);
    uint32_t launches = 0, window = fl_depth_of(w);
    if (FL_UNLIKELY(w->stall.has_stalled)) {
        launch_parts(w, window);
        /* Otherwise the memory belongs to the divided task. */
        if (!w->ready.is_dividing) {
            launch_stalled(w, any);
        }
    }
    if (w->offload != NULL && w->offload->window_count != 0) {
        fl_flow_look(w->sched->core->places, w->device->place);
    }
    while (fl_depth_has_room(w, window) && !w->stall.has_stalled && !fl_worker_has_failed(w)) {
        fl_item item;
        if (++launches % FL_LAUNCHES_A_LOOK == 0) {
            retire_finished(w);
            window = fl_depth_of(w);
            if (fl_worker_has_failed(w)) {
                break;
            }
        }
        if (w->offload != NULL && fl_locality_waits(w)) {
            fl_locality_fetch(w);
            break;
        }
        if (fl_worker_pick(w, &item)) {
            if (FL_UNLIKELY(fl_slow_passes_on(w, &item))) {
                continue;
            }
            fl_worker_end_idle(w);
            launch(w, &item);
            any = true;
            continue;
        }
        if (w->pipeline.in_flight == 0) {
            fl_worker_flush(w);
            fl_worker_leave(w);
            if (w->now.completed != NULL) {
                return FL_ACT_MORE;
            }
        }
        if (w->offload != NULL && fl_lookahead_pick(w, &item)) {
            launch(w, &item);
            any = true;
            continue;
        }
        if (!is_time_to_steal(w)) {
            break;
        }
        if (fl_worker_steal(w)) {
            continue;
        }
        if (w->pipeline.in_flight != w->pipeline.writing_back_count ||
            !fl_speculate_pick(w, &item)) {
            break;
        }
        fl_worker_end_idle(w);
        launch(w, &item);
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
                      : fl_task_is_own(task) ||
                            (item->is_ahead && fl_lookahead_look(task) != FL_LOOKAHEAD_OVER) ||
                            !fl_offline_give(w, task))) {
        return false;
    }
    w->stall.has_stalled = false;
    w->stall.piece = 0;
    return true;
}

fl_act fl_in_flight_rest(fl_worker *w)
{
    fl_item item;
    if (FL_UNLIKELY(is_down(w))) {
        note_hunger(w, false);
        return fl_failed_step(w);
    }
    bool any = retire_finished(w);
    if (w->stall.has_stalled && !leave_stalled(w)) {
        launch_stalled(w, any);
    }
    fl_offline_settle(w);
    while (fl_depth_has_room(w, fl_depth_of(w)) && !w->stall.has_stalled &&
           !fl_worker_has_failed(w) && fl_offline_pick(w, &item)) {
        launch(w, &item);
        any = true;
    }
    if (w->pipeline.in_flight == 0) {
        fl_worker_flush(w);
    }
    return end_step(w, any, true);
}
