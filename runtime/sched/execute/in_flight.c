/* SPDX-License-Identifier: Apache-2.0 */
/* The step of a worker whose device runs tiles by itself: a GPU, or a simulated one. Tiles are put
 * on the device until its window is full, and retired when the device is seen to be past them. */
#include "sched/execute/in_flight.h"

#include "sched/account/account.h"
#include "sched/decide/depth.h"
#include "sched/decide/locality.h"
#include "sched/decide/lookahead.h"
#include "sched/decide/pick.h"
#include "sched/decide/slow.h"
#include "sched/decide/speculate.h"
#include "sched/decide/steal.h"
#include "sched/drive/poll_interval.h"
#include "sched/execute/divide.h"
#include "sched/execute/failed.h"
#include "sched/execute/full.h"
#include "sched/execute/graph_launch.h"
#include "sched/execute/host_call.h"
#include "sched/execute/offline.h"
#include "sched/execute/offload.h"
#include "sched/execute/step.h"
#include "sched/ready/shared_queue.h"
#include "sched/worker/device.h"
#include "sched/worker/item.h"
#include "sched/worker/sched.h"

#define NO_FLIGHT UINT32_MAX

/* Tiles that a device holds at once: what the simulated ones can, which is far more than theirs. */
#define FLIGHTS 64u
/* So many launches after the last look, those before are probably over. */
#define LOOK_LAUNCHES 64u
/* The clock is read once for so many launches: it serves only to predict when they end. */
#define CLOCK_LAUNCHES 8u
/* A tile that found no room is tried again so often. */
#define STALL_NAP_NS 20000u

static uint64_t now(const fl_worker *w)
{
    return fl_clock_now(&w->sched->core->clock);
}

static bool computes(const fl_worker *w)
{
    return w->device->backend->mark != NULL;
}

/* --- Beginning and end --- */

filch_status fl_in_flight_init(fl_worker *w)
{
    const fl_memory *memory = &w->sched->core->memory;
    w->homing = w->homing_last = NO_FLIGHT;
    if (w->sched->core->places->count > 1) {
        w->offload = fl_alloc_zeroed(memory, sizeof *w->offload);
        if (w->offload == NULL) {
            return FILCH_OUT_OF_MEMORY;
        }
    }
    if (w->device->is_synchronous) {
        return FILCH_OK;
    }
    w->flight_count = computes(w) ? FL_IN_FLIGHT_COMPUTING : FLIGHTS;
    w->flights = fl_alloc_zeroed(memory, w->flight_count * sizeof *w->flights);
    if (w->flights == NULL) {
        return FILCH_OUT_OF_MEMORY;
    }
    for (uint32_t i = 0; i < w->flight_count; ++i) {
        w->flights[i].next = i + 1 < w->flight_count ? i + 1 : NO_FLIGHT;
    }
    return FILCH_OK;
}

void fl_in_flight_fini(fl_worker *w)
{
    const fl_memory *memory = &w->sched->core->memory;
    if (w->offload != NULL) {
        fl_offload_drop_scratch(w);
        fl_free(memory, w->offload, sizeof *w->offload);
    }
    fl_free(memory, w->flights, w->flight_count * sizeof *w->flights);
    w->offload = NULL;
    w->flights = NULL;
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
    w->late = *error;
}

/* A tile is over: its flight is free before it retires, as that may want to launch. */
static void land(fl_worker *w, uint32_t index)
{
    fl_in_flight *flight = &w->flights[index];
    if (flight->is_admitted) {
        fl_offload_release(w, flight);
    }
    fl_account_land(w, flight);
    fl_item item = flight->item;
    if (FL_UNLIKELY(flight->has_failed)) {
        fail(&item);
        w->error = w->late;
    }
    flight->next = w->free_flight;
    w->free_flight = index;
    --w->in_flight;
    if (flight->is_timed) {
        --w->offload->timed;
    }
    fl_worker_retire(w, &item);
}

/* What the tile used was copied from other places behind these, which must not have failed. They
 * are over: the lane waited for them. */
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

/* The tile is past on its lane; what it wrote may still be on the way home. */
static void finish(fl_worker *w, uint32_t index)
{
    fl_in_flight *flight = &w->flights[index];
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
    flight->next = NO_FLIGHT;
    ++w->homing_count;
    if (w->homing == NO_FLIGHT) {
        w->homing = index;
    } else {
        w->flights[w->homing_last].next = index;
    }
    w->homing_last = index;
}

void fl_in_flight_add_home(fl_worker *w, fl_in_flight *flight, fl_marker home)
{
    filch_error error = FILCH_ERROR_INIT;
    for (uint32_t i = 0; i < flight->home_count; ++i) {
        if (flight->homes[i] >> 50 == home >> 50) { /* a lane is in order */
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

/* Whether all copies are past; those that failed are, too. */
static bool is_home(fl_worker *w, fl_in_flight *flight)
{
    filch_error error = FILCH_ERROR_INIT;
    while (flight->home_count != 0) {
        fl_marker home = flight->homes[flight->home_count - 1];
        fl_device *device = &w->sched->core->places->devices[fl_marker_device(home)];
        filch_status status = device->backend->reached(device, home, &error);
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

/* Lands the tiles whose results have come home, in the order of their launches. */
static bool land_homing(fl_worker *w)
{
    bool any = false;
    while (w->homing != NO_FLIGHT) {
        uint32_t index = w->homing;
        fl_in_flight *flight = &w->flights[index];
        if (!is_home(w, flight)) {
            return any;
        }
        w->homing = flight->next;
        --w->homing_count;
        land(w, index);
        any = true;
    }
    return any;
}

static void fail_flight(fl_worker *w, uint32_t index)
{
    fl_in_flight *flight = &w->flights[index];
    flight->launched = 0;
    /* Those of our own device are over; other devices' copies lead to buffers of the caller's. */
    while (flight->home_count != 0) {
        fl_marker home = flight->homes[--flight->home_count];
        if (fl_marker_device(home) != w->index) {
            fl_marker_await(w->sched->core->places, home, NULL);
        }
    }
    fl_in_flight_fail(w, flight, &w->loss);
    land(w, index);
}

/* The device does not answer: everything in flight on it has failed. */
static void lose(fl_worker *w)
{
    const fl_backend *backend = w->device->backend;
    w->loss = w->error;
    fl_store_relaxed(&w->is_lost, 1);
    fl_log_write(&w->sched->core->log, FILCH_LOG_ERROR, "device %s is lost: %s",
                 w->device->info.name, w->loss.text);
    /* It may be a lane alone that failed: what the others do is done before anybody is told that
     * the memory it uses is free, and nothing is put there any more. */
    if (w->computing != 0) {
        fl_account_lost(w);
    }
    w->computing = 0;
    w->long_ns = 0;
    if (backend->discard != NULL) {
        backend->discard(w->device);
    }
    if (backend->drain != NULL) {
        backend->drain(w->device, NULL);
    }
    for (uint32_t i = 0; i < w->flight_count; ++i) {
        if (w->flights[i].launched != 0) {
            fail_flight(w, i);
        }
    }
    while (w->homing != NO_FLIGHT) {
        uint32_t index = w->homing;
        w->homing = w->flights[index].next;
        --w->homing_count;
        fail_flight(w, index);
    }
    if (w->has_stalled) {
        w->has_stalled = false;
        w->piece = 0;
        fail(&w->stalled);
        w->error = w->loss;
        fl_worker_retire(w, &w->stalled);
    }
    if (w->offload != NULL) {
        w->offload->ahead_count = 0;
        fl_offload_drop_scratch(w);
    }
}

/* Whether the device is lost, as some call has found: another worker's or the host's, too. */
static bool is_down(fl_worker *w)
{
    const fl_backend *backend = w->device->backend;
    if (!fl_worker_has_failed(w) && backend->lost != NULL && backend->lost(w->device, &w->error)) {
        lose(w);
    }
    return fl_worker_has_failed(w);
}

/* When a tile began that was just seen past: as the device has it, where a trace wants to know. */
static uint64_t start_of(const fl_worker *w, uint64_t ns)
{
    const fl_backend *backend = w->device->backend;
    uint64_t start = FL_UNLIKELY(fl_trace_of(w) != NULL) && backend->began != NULL
                         ? backend->began(w->device)
                         : 0;
    return start != 0 ? start : w->last_done - ns;
}

static bool retire_finished(fl_worker *w)
{
    const fl_backend *backend = w->device->backend;
    uint64_t t = w->computing != 0 ? now(w) : 0;
    bool any = false;
    while (w->computing != 0) {
        uint64_t tag, busy;
        filch_status status = backend->poll(w->device, t, &tag, &busy, &w->wake_at, &w->error);
        if (status == FILCH_NOT_READY) {
            break;
        }
        if (status != FILCH_OK && status != FILCH_TASK_FAILED) {
            lose(w);
            return true;
        }
        fl_in_flight *flight = &w->flights[tag];
        if (FL_UNLIKELY(status == FILCH_TASK_FAILED)) {
            fl_in_flight_fail(w, flight, &w->error);
        }
        --w->computing;
        w->long_ns -= fl_depth_part(flight);
        w->last_done = t;
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

/* A flight of the tile; there is a free one. */
static inline fl_in_flight *take_flight(fl_worker *w, const fl_item *item)
{
    fl_in_flight *flight = &w->flights[w->free_flight];
    w->free_flight = flight->next;
    ++w->in_flight;
    flight->item = *item;
    flight->item.ns = 0; /* it has not run */
    flight->home_count = 0;
    flight->foreign_count = 0;
    flight->is_timed = flight->is_ahead = flight->has_failed = flight->is_admitted = false;
    return flight;
}

void fl_in_flight_conclude(fl_worker *w, const fl_item *item)
{
    uint32_t index = w->free_flight;
    fl_in_flight *flight = take_flight(w, item);
    flight->launched = 0; /* nothing of it is on a lane */
    flight->item.start = now(w);
    flight->is_admitted = true; /* what was held for all pieces */
    if (!fl_offload_commit_pieces(w, flight) && item->code == 0) {
        fl_in_flight_fail(w, flight, &w->error);
    }
    finish(w, index);
}

/* A device that pretends: the host function, where it makes the results, runs here and now. */
static bool launch_pretended(fl_worker *w, fl_in_flight *flight, uint32_t index)
{
    fl_item *item = &flight->item;
    fl_launch launch = {.cost = fl_item_cost(w, item), .tag = index};
    if (w->device->calls_host_fn) {
        fl_item kept = w->item;
        w->item = *item;
        fl_worker_run(w);
        item->code = w->item.code;
        w->item = kept;
    }
    if (w->device->backend->launch(w->device, &launch, item->start, &w->error) == FILCH_OK) {
        return true;
    }
    item->code = -1;
    /* Where another run of it may be under way, that is not what came of it. */
    item->is_refused = item->task == NULL && item->run != NULL;
    return false;
}

/* Predicted duration of a tile here; 0 when nothing is known. */
static double predict(const fl_worker *w, const fl_item *item)
{
    return fl_speed_time(fl_codelet_speed(fl_item_codelet(item), w->index), item->work);
}

/* Takes a tile back that found no room, to be tried again when there may be some; a piece of a
 * chunk with the rest of it. */
static void stall(fl_worker *w, uint32_t index, const fl_item *picked)
{
    fl_in_flight *flight = &w->flights[index];
    if (w->has_stalled) {
        w->stalled.lo = picked->lo;
    } else {
        w->stalled = *picked;
    }
    w->has_stalled = true;
    w->stalled_at = now(w);
    flight->next = w->free_flight;
    w->free_flight = index;
    --w->in_flight;
}

/* Whether memory is all that a tile lacked that was not put on the device. What other tiles use,
 * here or on other devices of the place, may have been given back when they are over; where there
 * are none, all that can be evicted is, and the tile tried once more. */
static bool may_retry(fl_worker *w)
{
    return w->error.status == FILCH_NOT_READY ||
           (w->error.status == FILCH_NO_DEVICE_MEMORY && (w->in_flight > 1 || fl_offload_clear(w)));
}

/* Whether the device has so little memory, as others use the most of it, that a chunk has to be
 * tried in pieces; of one that cannot be the rest fails, too. */
static bool may_divide(fl_worker *w, fl_item *item)
{
    if (w->error.status != FILCH_NO_DEVICE_MEMORY || item->task != NULL || item->is_graph) {
        return false;
    }
    if (item->hi - item->lo > 1) {
        w->piece = (item->hi - item->lo) / 2;
        return true;
    }
    if (w->has_stalled) {
        item->hi = w->stalled.hi;
        w->has_stalled = false;
    }
    w->piece = 0;
    return false;
}

/* The flight is on the device. */
static void note_taken(fl_worker *w, fl_in_flight *flight)
{
    ++w->computing;
    w->long_ns += fl_depth_part(flight);
    fl_account_launched(w, flight);
    flight->arriving = computes(w) ? fl_offload_arriving(w) : 0;
    flight->arrived = 0;
}

/* All of a graph at once. */
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

/* A tile that needs more memory than can be had here, of which others may have more. True: it is
 * seen to. */
static bool find_room(fl_worker *w, uint32_t index, const fl_item *picked)
{
    fl_item chunk = w->flights[index].item; /* with the rest of the one that was picked */
    fl_task *task = picked->task;
    if (w->error.status != FILCH_NO_DEVICE_MEMORY || picked->is_graph) {
        return false;
    }
    fl_lookahead_state before = picked->is_ahead ? fl_lookahead_look(task) : FL_LOOKAHEAD_OVER;
    if (before == FL_LOOKAHEAD_WAITS) {
        stall(w, index, picked); /* nobody else may have it as yet */
        return true;
    }
    if (task == NULL ? !fl_full_leave(w, &chunk)
                     : before == FL_LOOKAHEAD_FAILED || !fl_full_move(w, task)) {
        return false;
    }
    w->flights[index].next = w->free_flight;
    w->free_flight = index;
    --w->in_flight;
    return true;
}

/* The tile could not be put on the device. */
static void fail_launch(fl_worker *w, uint32_t index, const fl_item *picked)
{
    fl_in_flight *flight = &w->flights[index];
    fl_item *item = &flight->item;
    flight->launched = 0;
    item->timed = false;
    if (computes(w)) {
        item->is_refused = item->code == 0; /* else a function of the caller's said so */
    }
    item->code = item->code != 0 ? item->code : -1;
    if (computes(w)) {
        fl_offload_abandon(w);
    }
    /* A piece of a divided task has its memory; nobody else may wait for it, nor have the task. */
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

/* A second run of a chunk could not be put on the device: the first one is not concerned. */
static void drop_second(fl_worker *w, uint32_t index)
{
    fl_in_flight *flight = &w->flights[index];
    flight->launched = 0;
    fl_offload_abandon(w);
    flight->next = w->free_flight;
    w->free_flight = index;
    --w->in_flight;
    fl_speculate_refused(w, &flight->item);
    (void)is_down(w);
}

/* A gate with a tile that is to be in the host's memory: over when the copies are. */
static void launch_move(fl_worker *w, uint32_t index)
{
    fl_in_flight *flight = &w->flights[index];
    fl_item *item = &flight->item;
    item->timed = false;
    flight->launched = 0; /* nothing of it is on a lane */
    item->start = now(w);
    if (!computes(w) || fl_offload_move(w, flight)) {
        finish(w, index);
        return;
    }
    fail(item);
    land(w, index);
    (void)is_down(w);
}

/* Makes a flight wait for what was fetched ahead. False: all has come. */
static bool note_coming(fl_worker *w, fl_in_flight *flight)
{
    fl_offload *offload = w->offload;
    bool any = false;
    for (int from = 0; from < 2; ++from) {
        if (!w->device->backend->is_past(w->device, offload->fetched[from])) {
            fl_in_flight_add_home(w, flight, offload->fetched[from]);
            any = true;
        } else {
            offload->fetched[from] = 0;
        }
    }
    return any;
}

/* There is nothing to run. What was fetched ahead for one that is skipped comes all the same, maybe
 * from memory that is the caller's again when the job is over. */
static void pass_over(fl_worker *w, uint32_t index)
{
    fl_offload *offload = w->offload;
    fl_in_flight *flight = &w->flights[index];
    bool passes = flight->item.task != NULL && fl_task_passes(flight->item.task);
    flight->item.timed = false;
    if (FL_UNLIKELY(offload != NULL && (offload->fetched[0] | offload->fetched[1]) != 0) &&
        !passes && note_coming(w, flight)) {
        flight->launched = 0; /* nothing of it is on a lane */
        flight->item.start = now(w);
        finish(w, index);
        return;
    }
    land(w, index);
}

/* Whether the device has nothing to do, though others may have more than they can do at once. */
static void note_hunger(fl_worker *w, bool is_hungry)
{
    if (FL_UNLIKELY(w->is_hungry != is_hungry) && w->offload != NULL && w->sched->mails) {
        w->is_hungry = is_hungry;
        if (is_hungry) {
            fl_add_relaxed(&w->sched->hungry, 1); /* a guess, as it says */
        } else {
            fl_sub_relaxed(&w->sched->hungry, 1);
        }
    }
}

/* Puts a tile on the device, or lands it at once where there is nothing to run. */
static void launch(fl_worker *w, const fl_item *picked)
{
    uint32_t index = w->free_flight;
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
    fl_item_set_timed(item, codelet); /* a computing device clears it where it did not measure */
    bool races = FL_UNLIKELY(fl_item_may_race(item, codelet));
    if (races) {
        fl_speculate_offer(w, item);
    }
    if (!computes(w) || w->clock_age++ % CLOCK_LAUNCHES == 0) {
        w->clock = now(w);
    }
    item->start = w->clock;
    flight->launched = w->clock != 0 ? w->clock : 1; /* 0 is for what is not on the device */
    flight->expected = predict(w, item);
    w->error.status = FILCH_OK;
    bool flies =
        computes(w) ? fl_offload_launch(w, flight, index) : launch_pretended(w, flight, index);
    if (flies) {
        if (races && computes(w)) {
            fl_speculate_launched(w, item);
        }
        note_taken(w, flight);
        if (item->task != NULL && flight->expected > FL_SHORT_NS && computes(w)) {
            /* Seen to end by itself: with those behind it on the lane it would be seen so late that
             * the device had nothing left to do. Who waits marks again, and is told. */
            (void)w->device->backend->mark(w->device, NULL);
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

/* The tile that waits for memory, once something has landed here, or after a while: elsewhere, or
 * a copy may be over. */
static void launch_stalled(fl_worker *w, bool any)
{
    fl_item item = w->stalled;
    if (!any && now(w) - w->stalled_at < STALL_NAP_NS) {
        return;
    }
    if (FL_UNLIKELY(w->piece != 0 && w->piece < item.hi - item.lo)) {
        item.hi = item.lo + w->piece;
        item.work = fl_batch_work(w, item.job, item.lo, item.hi);
        w->stalled.lo = item.hi;
        w->stalled_at = now(w);
    } else {
        w->has_stalled = false;
        w->piece = 0;
    }
    launch(w, &item);
}

/* While a tile waits for memory: pieces of divided tasks, of which a part was given to this worker,
 * or which it joins if it has nothing else to do, as it may be what those hold. They wait for none.
 */
static void launch_parts(fl_worker *w, uint32_t window)
{
    fl_task *task;
    fl_item item;
    fl_full_gather(w);
    while (w->has_stalled && fl_depth_has_room(w, window) &&
           ((task = fl_divide_part(w)) != NULL ||
            (w->in_flight == 0 && w->adopted == NULL && fl_divide_join(w)))) {
        if (task == NULL) {
            continue; /* it has joined, or is to look again */
        }
        fl_worker_take(w, task, false, &item);
        if (fl_item_admit(w, &item)) {
            launch(w, &item);
        }
    }
}

/* --- The step --- */

/* A virtual device knows when. What comes home on another device's lane is looked for. */
static fl_act wait_virtual(fl_worker *w)
{
    uint64_t t = now(w);
    w->wake_at = w->device->backend->next_event(w->device, t);
    if (w->homing != NO_FLIGHT && w->wake_at > t + FL_ARRIVAL_NS) {
        w->wake_at = t + FL_ARRIVAL_NS;
    }
    return FL_ACT_WAIT;
}

/* Whether anything is on its way here. */
static bool is_fetching(const fl_worker *w)
{
    const fl_places *places = w->sched->core->places;
    return fl_flow_in(places, w->device->place) != 0 || fl_flow_peer(places, w->device->place) != 0;
}

static fl_act wait_computing(fl_worker *w)
{
    w->clock_age = 0;
    if (w->in_flight != 0 && w->device->backend->next_event != NULL && !w->device->is_looked_at) {
        return wait_virtual(w);
    }
    if (w->in_flight != 0 && computes(w)) {
        if (w->computing != 0 && w->device->backend->mark(w->device, &w->error) != FILCH_OK) {
            lose(w);
            return FL_ACT_MORE;
        }
        w->wake_at = fl_poll_interval_next(w);
        /* What is kept may be waiting for a copy, which ends without a tile's. */
        if (w->offload != NULL && w->offload->window_count != 0 && is_fetching(w)) {
            uint64_t arrival = now(w) + FL_ARRIVAL_NS;
            w->wake_at = arrival < w->wake_at ? arrival : w->wake_at;
        }
    }
    return FL_ACT_WAIT;
}

/* What is told of a completed job is the host's code, which may take long: nothing waits for it
 * that could run meanwhile. */
static void mark_held(fl_worker *w)
{
    if (w->computing != 0 && computes(w)) {
        (void)w->device->backend->mark(w->device, NULL); /* the next one is told */
    }
}

/* The device has not joined yet. What is sent to it meanwhile others find where it is. */
static bool is_absent(fl_worker *w)
{
    w->wake_at = w->device->joins_at;
    return w->device->joins_at > now(w);
}

/* On a virtual clock what was put on the device may be over at once. */
static bool is_stepped_again(const fl_worker *w)
{
    return !computes(w) || w->device->backend->is_virtual;
}

/* What arrived is known to have, should the device be lost by what comes next. */
static void look_at_copies(const fl_worker *w)
{
    (void)fl_flow_in(w->sched->core->places, w->device->place);
    (void)fl_flow_peer(w->sched->core->places, w->device->place);
    (void)fl_flow_out(w->sched->core->places, w->device->place);
}

/* When the tile that waits for memory is looked at again. A worker that helps with a divided task
 * does not try the tile meanwhile: the nap after its last try may be over, and a worker whose time
 * to look is past never sleeps. */
static uint64_t stall_look_at(const fl_worker *w)
{
    return (w->is_dividing ? now(w) : w->stalled_at) + STALL_NAP_NS;
}

/* Nothing more can be put on the device now; any: something was, or landed; is_away: as the step
 * began, as only such a one has given away what was here. */
static fl_act end_step(fl_worker *w, bool any, bool is_away)
{
    if (FL_UNLIKELY(fl_depth_is_held(w))) {
        w->wake_at = w->device->held_until;
        return FL_ACT_WAIT;
    }
    if ((any && is_stepped_again(w)) || FL_UNLIKELY(fl_worker_has_failed(w))) {
        return FL_ACT_MORE;
    }
    fl_worker_leave(w);
    if (w->completed != NULL) {
        mark_held(w);
        return FL_ACT_MORE;
    }
    if (w->offload != NULL && w->in_flight == 0) {
        fl_offload_drop_scratch(w); /* others of the place may want it */
    }
    if (FL_UNLIKELY(w->has_stalled) && w->in_flight == 0) {
        w->wake_at = stall_look_at(w);
        return FL_ACT_WAIT;
    }
    if (w->in_flight == 0) {
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
    /* Relaxed: as where a worker is idle. */
    if (FL_UNLIKELY(fl_load_relaxed(&w->sched->boarding) != 0)) {
        uint64_t at = fl_shared_queue_look_at(w);
        w->wake_at = at < w->wake_at ? at : w->wake_at;
    }
    if (FL_UNLIKELY(w->has_stalled)) {
        uint64_t at = stall_look_at(w);
        w->wake_at = at < w->wake_at ? at : w->wake_at;
    }
    return act;
}

/* With a tile in flight a theft can wait: a better victim may show meanwhile. Not so where all
 * of them are only on the way home: the device has nothing to do; nor where it has one, and
 * what the next one needs could be brought beside it. */
static bool is_time_to_steal(const fl_worker *w)
{
    return w->in_flight - w->homing_count <= (w->brought_ns > 0);
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
    if (w->in_flight == 0 && w->offload != NULL && computes(w)) {
        look_at_copies(w);
    }
    bool any = retire_finished(w);
    uint32_t launches = 0, window = fl_depth_of(w);
    if (FL_UNLIKELY(w->has_stalled)) {
        launch_parts(w, window);
        if (!w->is_dividing) { /* else the memory is others' */
            launch_stalled(w, any);
        }
    }
    if (w->offload != NULL && w->offload->window_count != 0) {
        fl_flow_look(w->sched->core->places, w->device->place);
    }
    while (fl_depth_has_room(w, window) && !w->has_stalled && !fl_worker_has_failed(w)) {
        fl_item item;
        if (++launches % LOOK_LAUNCHES == 0) {
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
        if (w->in_flight == 0) {
            fl_worker_flush(w);
            fl_worker_leave(w);
            if (w->completed != NULL) {
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
        if (w->in_flight != w->homing_count || !fl_speculate_pick(w, &item)) {
            break;
        }
        fl_worker_end_idle(w);
        launch(w, &item);
        any = true;
    }
    return end_step(w, any, false);
}

/* --- Withdrawn --- */

/* The tile that waits for memory goes to others, too, where it can. */
static bool leave_stalled(fl_worker *w)
{
    fl_item *item = &w->stalled;
    fl_task *task = item->task;
    if (item->is_graph ||
        (task == NULL ? !fl_pieces_return(w, item)
                      : fl_task_is_own(task) ||
                            (item->is_ahead && fl_lookahead_look(task) != FL_LOOKAHEAD_OVER) ||
                            !fl_offline_give(w, task))) {
        return false;
    }
    w->has_stalled = false;
    w->piece = 0;
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
    if (w->has_stalled && !leave_stalled(w)) {
        launch_stalled(w, any);
    }
    fl_offline_settle(w);
    while (fl_depth_has_room(w, fl_depth_of(w)) && !w->has_stalled && !fl_worker_has_failed(w) &&
           fl_offline_pick(w, &item)) {
        launch(w, &item);
        any = true;
    }
    if (w->in_flight == 0) {
        fl_worker_flush(w);
    }
    return end_step(w, any, true);
}
