/* SPDX-License-Identifier: Apache-2.0 */
/* Puts an item on the device: fetches the operands, chooses the lane, fills the kernel's
 * parameters, and publishes the results behind the launch. An item that lacks memory waits, goes in
 * pieces, or goes to another device. */
#include "sched/execute/launch.h"
#include "sched/execute/ahead.h"

#include <stdio.h>

#include "sched/account/account.h"
#include "sched/decide/depth.h"
#include "sched/decide/locality.h"
#include "sched/decide/lookahead.h"
#include "sched/execute/backup.h"
#include "sched/execute/divide.h"
#include "sched/execute/fetch.h"
#include "sched/execute/fill.h"
#include "sched/execute/graph_launch.h"
#include "sched/execute/host_call.h"
#include "sched/execute/pipeline.h"
#include "sched/execute/private_output.h"
#include "sched/execute/profiler.h"
#include "sched/execute/publish.h"
#include "sched/execute/step.h"
#include "sched/execute/unavailable.h"
#include "sched/execute/window.h"
#include "sched/model/cost.h"
#include "sched/model/predict.h"
#include "sched/model/speed.h"
#include "sched/worker/device.h"
#include "sched/worker/sched.h"
#include "sched/worker/tuning.h"

/* --- Lanes and scratch --- */

/* Tells whether recent items were short. */
static bool is_short(const fl_worker *w)
{
    /* Relaxed: an estimate, no order needed. */
    double ns = fl_worker_mean_ns(w);
    return ns > 0 && ns <= FL_SHORT_NS;
}

/* Chooses a lane for an item that has no predecessor in flight on the device's lanes. An item that
 * waits for no copy prefers lanes that wait for none. Of two lanes the lane with fewer items in
 * flight is better. */
static inline uint32_t best_lane(const fl_worker *w, bool is_complete)
{
    const uint32_t *load = w->offload->lane_load;
    uint32_t best = 0;
    bool best_waits = is_complete && fl_locality_lane_waits(w, 0);
    for (uint32_t lane = 1; lane < w->device->lanes; ++lane) {
        bool waits = is_complete && fl_locality_lane_waits(w, lane);
        if (waits != best_waits ? best_waits : load[lane] < load[best]) {
            best = lane;
            best_waits = waits;
        }
    }
    return best;
}

/* Chooses the lane holding an item waited for, because no wait is then needed; otherwise the best
 * lane. are_short: recent items were short. */
static uint32_t choose_lane(const fl_worker *w, bool are_short)
{
    const fl_offload *offload = w->offload;
    uint32_t last = offload->lane_last;
    for (uint32_t i = 0; i < offload->waits.count; ++i) {
        fl_marker marker = offload->waits.at[i];
        uint32_t lane = fl_marker_lane(marker);
        if (fl_marker_device(marker) == w->index && lane < w->device->lanes &&
            offload->lane_load[lane] != 0 &&
            !w->device->backend->lane->is_past(w->device, marker)) {
            return lane;
        }
    }
    uint32_t best = best_lane(w, fl_fetch_arriving(w) == 0);
    bool stays = are_short && offload->lane_load[best] != 0 &&
                 offload->lane_load[last] < offload->lane_load[best] + FL_SHORT_IN_ROW;
    return stays ? last : best;
}

/* Reserves scratch memory for a lane's items, run in sequence. The size never shrinks. */
static bool reserve_scratch(fl_worker *w, size_t bytes, uint32_t lane)
{
    fl_block **scratch = &w->offload->scratch[lane], *taken;
    fl_residents *residents = &fl_worker_places(w)->residents[w->device->place];
    if (*scratch != NULL && bytes <= (*scratch)->bytes) {
        return true;
    }
    const fl_victims any = {.is_vacant = true};
    fl_mutex_lock(&residents->admit);
    filch_status status =
        fl_block_new_evict(fl_worker_places(w), w->device, bytes, &any, &taken, &w->stall.error);
    fl_mutex_unlock(&residents->admit);
    if (status != FILCH_OK) {
        w->stall.error.status = status;
        return false;
    }
    if (*scratch != NULL) {
        /* Items held back use the old block, too: marking puts the items on their lanes. */
        w->device->backend->lane->mark(w->device, &w->stall.error);
        w->device->backend->lane->drain(w->device, &w->stall.error);
        fl_block_give(fl_worker_places(w), *scratch, 0);
    } else {
        /* Devices wanting the memory wait for us. */
        fl_residents_come(fl_worker_places(w), w->device->place);
    }
    *scratch = taken;
    return true;
}

/* Points scratch accesses into the lane's block. */
static bool place_scratch(fl_worker *w, const fl_task *task, uint32_t lane)
{
    size_t bytes = fl_task_scratch(task);
    if (bytes == 0) {
        return true;
    }
    if (!reserve_scratch(w, bytes, lane)) {
        return false;
    }
    char *at = w->offload->scratch[lane]->ptr;
    for (uint32_t i = 0; i < task->access_count; ++i) {
        if (task->accesses[i].mode == FILCH_SCRATCH) {
            w->call.views[i].ptr = at;
            at += (size_t)task->accesses[i].tile * 64;
        }
    }
    return true;
}

void fl_launch_drop_scratch(fl_worker *w)
{
    for (uint32_t lane = 0; lane < FL_LANE_LIMIT; ++lane) {
        if (w->offload->scratch[lane] != NULL) {
            fl_block_give(fl_worker_places(w), w->offload->scratch[lane], 0);
            fl_residents_go(fl_worker_places(w), w->device->place);
            w->offload->scratch[lane] = NULL;
        }
    }
}

/* --- Parameters --- */

static __attribute__((noinline)) bool refuse(fl_worker *w, const filch_codelet *codelet,
                                             const char *what)
{
    fl_error_fill(&w->stall.error,
                  (fl_fault){.status = FILCH_INVALID_ARGUMENT,
                             .device = w->device->info.name,
                             .label = codelet->name},
                  "%s: %s", codelet->name, what);
    return false;
}

static __attribute__((noinline)) bool refuse_count(fl_worker *w, const filch_codelet *codelet,
                                                   uint32_t has, uint32_t given)
{
    char what[96];
    snprintf(what, sizeof what, "the kernel has %u parameters, but is called with %u", has, given);
    return refuse(w, codelet, what);
}

/* Tells whether the kernel's parameters end where the call's parameters do, for any alignment of
 * the arguments: the driver copies as many bytes as the kernel declares. */
static bool has_size(const fl_function *function, size_t views, bool is_range, size_t arg_size)
{
    size_t before = views * sizeof(filch_view) + (is_range ? 2 * sizeof(uint64_t) : 0);
    bool has = function->param_bytes == before + arg_size;
    for (size_t align = 16; align <= 128 && arg_size != 0 && !has; align *= 2) {
        has = function->param_bytes == (before + align - 1) / align * align + arg_size;
    }
    return has;
}

/* Fills the kernel's parameters: views, the range of items, the arguments. In line: runs for
 * every item. */
static inline __attribute__((always_inline)) bool
fill_params(fl_worker *w, const fl_item *item, const filch_call *call, fl_launch *launch)
{
    fl_offload *offload = w->offload;
    const filch_codelet *codelet = fl_item_codelet(item);
    const fl_function *function = launch->function;
    bool has_range = item->task == NULL || item->task->has_items;
    uint32_t count = 0;
    for (uint32_t i = 0; i < call->view_count; ++i) {
        offload->param_bytes[count] = sizeof w->call.views[i];
        offload->params[count++] = &w->call.views[i];
    }
    if (has_range) {
        offload->range[0] = call->lo;
        offload->range[1] = call->hi;
        offload->param_bytes[count] = sizeof offload->range;
        offload->params[count++] = offload->range;
    }
    if (codelet->arg_size != 0) {
        offload->param_bytes[count] = (uint32_t)codelet->arg_size;
        offload->params[count++] = (void *)(uintptr_t)call->args;
    }
    launch->param_count = count;
    if (function->param_count == UINT32_MAX) {
        return true;
    }
    if (FL_UNLIKELY(function->param_count != count)) {
        return refuse_count(w, codelet, function->param_count, count);
    }
    return has_size(function, call->view_count, has_range, codelet->arg_size) ||
           refuse(w, codelet, "the kernel's parameters have other sizes than the call's");
}

/* Asks the caller's function for the geometry. False: it failed with item->code. */
static __attribute__((noinline)) bool ask_shape(fl_item *item, const filch_call *call,
                                                const fl_kernel *kernel, filch_shape *shape)
{
    *shape = (filch_shape){{0}, {0}, {0}, 0};
    item->code = kernel->shape_of(call, shape);
    if (item->code == 0) {
        fl_kernel_complete_shape(shape);
    }
    return item->code == 0;
}

/* Fills the geometry. In line: runs for every item. */
static inline __attribute__((always_inline)) bool
fill_shape(fl_worker *w, fl_item *item, const filch_call *call, const fl_kernel *kernel,
           const fl_loaded *loaded, filch_shape *shape)
{
    if (kernel->shape_of == NULL) {
        *shape = kernel->shape;
    } else if (!ask_shape(item, call, kernel, shape)) {
        return false;
    }
    const char *wrong = loaded->fits ? NULL : fl_kernel_check_shape(&loaded->function, shape);
    return wrong == NULL || refuse(w, fl_item_codelet(item), wrong);
}

/* Describes a chunk. */
static __attribute__((noinline)) void describe_chunk(const fl_item *item, filch_call *call)
{
    const fl_batch *batch = item->job->batch;
    fl_batch_range(batch, item->lo, item->hi, &call->lo, &call->hi);
    call->view_count = fl_batch_view_count(batch);
    call->args = fl_batch_args(batch);
}

/* Fills the members of a call that differ from item to item: a kernel's parameters need no others.
 */
static inline void describe(const fl_item *item, filch_call *call)
{
    const fl_task *task = item->task;
    if (FL_UNLIKELY(task == NULL)) {
        describe_chunk(item, call);
        return;
    }
    call->view_count = task->access_count;
    call->args = task->args;
    call->lo = call->hi = 0;
    if (FL_UNLIKELY(task->has_items)) {
        fl_item_range(item, &call->lo, &call->hi);
    }
}

/* Fills the other members, for the caller's functions. */
static void complete_call(fl_worker *w, const fl_item *item, filch_call *call)
{
    call->views = w->call.views;
    call->device = w->index;
    call->team = w->device->info.team;
    call->reserved = 0;
    call->runtime = (filch_runtime *)(void *)w->sched->core;
    call->opaque = w;
    call->user = fl_item_codelet(item)->user;
    call->state = NULL;
}

/* Fills the launch of a kernel. In line: runs for every item. */
static inline __attribute__((always_inline)) bool fill(fl_worker *w, fl_item *item,
                                                       filch_call *call, fl_launch *launch)
{
    const fl_kernel *kernel = fl_item_codelet(item)->kernel;
    const fl_loaded *loaded = &kernel->places[w->device->place];
    launch->function = &loaded->function;
    if (kernel->shape_of != NULL) {
        complete_call(w, item, call);
    }
    if (!fill_params(w, item, call, launch) ||
        !fill_shape(w, item, call, kernel, loaded, &launch->shape)) {
        return false;
    }
    if (item->task == NULL) {
        fl_fill_note(w, item, call, kernel);
    }
    return true;
}

bool fl_launch_fill(fl_worker *w, fl_item *item, fl_launch *launch)
{
    filch_call call;
    describe(item, &call);
    return fill(w, item, &call, launch);
}

/* --- Kernels --- */

/* Tells whether the speed model wants the item's time. Timing takes three driver calls, as long as
 * a launch. Short items wait for the last sample to come back: otherwise hundreds may be launched
 * before enough samples are in. */
static bool wants_sample(const fl_worker *w, const fl_item *item, fl_speed *speed, bool are_short)
{
    if (item->task == NULL) {
        return true;
    }
    if (!are_short) {
        return fl_speed_wants_sample(speed);
    }
    if (w->offload->samples != 0) {
        fl_speed_put_in(speed);
        return false;
    }
    if (!fl_speed_wants_sample(speed)) {
        return false;
    }
    fl_speed_put_off(speed);
    return true;
}

/* Tells whether to time an item beside a sample. Items on other lanes share the device with the
 * sample, and its own share follows from their times. So the next items, two for each lane, are
 * samples, too. Short items do without: timing them takes too long. */
static bool is_beside_sample(fl_worker *w, const fl_in_flight *flight, bool is_sample)
{
    fl_offload *offload = w->offload;
    if (!(flight->expected > FL_SHORT_NS) || w->device->lanes < 2 || !w->sched->mails ||
        flight->item.task == NULL) {
        return false;
    }
    if (is_sample) {
        offload->beside = 2 * w->device->lanes;
        return false;
    }
    if (offload->beside == 0) {
        return false;
    }
    --offload->beside;
    return true;
}

/* Tells whether the launch may be held back. Not allowed are three kinds: an item awaited by an
 * idle device; a codelet's first item, which may be refused and must then be refused at once; an
 * item followed by write-back. */
static bool is_brief(const fl_worker *w, const fl_in_flight *flight, bool are_short)
{
    const fl_offload *offload = w->offload;
    if (w->pipeline.computing == 0 || flight->item.task == NULL || flight->expected <= 0 ||
        flight->expected > FL_SHORT_NS || !are_short) {
        return false;
    }
    for (uint32_t i = 0; i < offload->operand_count; ++i) {
        if (offload->operands[i].is_final && (offload->operands[i].mode & FILCH_WRITE) != 0) {
            return false;
        }
    }
    return true;
}

/* Fetches the operands. A chunk runs even without memory for a second run. */
static bool fetch_operands(fl_worker *w, fl_item *item)
{
    return fl_fetch_operands(w, item) ||
           (item->task == NULL && fl_backup_forgo(item) && fl_fetch_operands(w, item));
}

/* Notes how many items the item's time stands for: as many as the sample that the speed model
 * wanted, itself, or, untimed, none. */
static void weigh(fl_item *item, fl_speed *speed, bool is_wanted, bool is_timed)
{
    item->stands = is_wanted ? speed->stands : is_timed ? 1 : 0;
    if (!is_wanted && is_timed) {
        fl_speed_leave_out(speed);
    }
}

/* Puts an item with fetched operands on a lane. launch: tag and call are set, the function is
 * not. */
static bool put_on_lane(fl_worker *w, fl_in_flight *flight, fl_launch *launch, filch_call *call,
                        bool is_piece)
{
    fl_offload *offload = w->offload;
    fl_item *item = &flight->item;
    const fl_task *task = item->task;
    const filch_codelet *codelet = fl_item_codelet(item);
    fl_speed *speed = fl_codelet_speed(codelet, w->index);
    bool is_virtual = w->device->backend->is_virtual, are_short = is_short(w);
    /* A simulated device never runs the codelet's kernel. */
    const fl_kernel *kernel = is_virtual ? NULL : codelet->kernel;
    uint32_t lane = choose_lane(w, are_short);
    if (task != NULL && !place_scratch(w, task, lane)) {
        return false;
    }
    describe(item, call);
    bool is_wanted = is_piece || wants_sample(w, item, speed, are_short);
    bool is_sample = is_beside_sample(w, flight, is_wanted) || is_wanted;
    bool is_timed = is_sample || fl_trace_of(w) != NULL;
    bool is_weighed = task != NULL && !is_piece && !is_virtual;
    if (is_weighed) {
        weigh(item, speed, is_wanted, is_timed);
    }
    /* A simulated device times every item, with a trace or without. */
    item->only_traced = is_timed && !is_sample && !is_virtual;
    /* Assigns members singly: compilers clear a structure of the size as slowly as the whole rest
     * takes. */
    launch->cost = kernel == NULL ? fl_item_cost(w, item) : 0;
    launch->lane = lane;
    launch->name = codelet->name;
    launch->function = NULL;
    launch->params = offload->params;
    launch->param_bytes = offload->param_bytes;
    launch->param_count = 0;
    launch->enqueue = kernel != NULL ? kernel->enqueue : NULL;
    launch->graph = NULL;
    launch->states = kernel != NULL ? kernel->states[w->index] : NULL;
    launch->behind = offload->waits.at;
    launch->behind_count = offload->waits.count;
    launch->timed = is_timed;
    launch->brief = launch->enqueue == NULL && !is_timed && is_brief(w, flight, are_short);
    launch->code = 0;
    launch->marker = 0;
    bool is_full = true;
    if (launch->enqueue != NULL) {
        complete_call(w, item, call);
    } else if (kernel != NULL) {
        is_full = fill(w, item, call, launch);
    }
    if (!is_full || fl_launch_on(w, item, launch) != FILCH_OK) {
        item->code = is_full ? launch->code : item->code;
        if (is_weighed) {
            fl_speed_take_back(speed, item->stands);
        }
        return false;
    }
    flight->lane = offload->lane_last = lane;
    flight->is_sample = is_sample;
    flight->is_admitted = true;
    offload->is_admitted = offload->is_tight = false;
    offload->samples += is_sample;
    fl_offload_put(offload, lane);
    offload->lane_continued[lane] += item->continues;
    return true;
}

/* Puts a kernel's item on a lane. False: worker->stall.error says why not. */
static bool launch_kernel(fl_worker *w, fl_in_flight *flight)
{
    fl_item *item = &flight->item;
    fl_task *task = item->task;
    if (task != NULL && task->graph->kind == FILCH_GRAPH_CLOSED && task->successor_count != 0) {
        /* Prefetches successors: the driver call evicts the lines from near caches before the next
         * use. In an open graph, concurrent threads may be adding successors. */
        __builtin_prefetch(task->successors[0], 1);
        __builtin_prefetch(&task->successors[0]->more);
    }
    if (task != NULL && task->access_count != 0) {
        (void)fl_window_expect(w, task);
    }
    if (!fetch_operands(w, item) || (item->is_ahead && !fl_ahead_waits(w, task)) ||
        (w->offload->waits.count != 0 && !fl_publish_note_foreign(w, flight))) {
        return false;
    }
    bool is_piece = task != NULL && FL_UNLIKELY(task->has_items) && fl_divide_begin(w, flight);
    filch_call call;
    fl_launch launch;
    launch.tag = fl_pipeline_index(w, flight);
    launch.call = &call;
    if (!put_on_lane(w, flight, &launch, &call, is_piece)) {
        if (is_piece) {
            fl_divide_refused(item);
        }
        return false;
    }
    if (fl_item_may_stage(item)) {
        flight->staged = fl_operands_staged(w->offload->operands, w->offload->operand_count);
    }
    if (FL_UNLIKELY(is_piece)) {
        /* The piece's results are committed with the whole task. */
        fl_divide_launched(w, flight);
    } else if (w->offload->operand_count != 0 && !fl_publish_results(w, flight, launch.marker)) {
        fl_publish_fail(w, flight, &w->stall.error);
    } else {
        fl_ahead_launched(w, flight, launch.marker);
    }
    if (FL_UNLIKELY(task == NULL && item->run != NULL)) {
        fl_private_hold(w, item->run);
    }
    return true;
}

/* Launches on a simulated device. The host function, if needed for the results, runs here and
 * now. */
static bool launch_pretended(fl_worker *w, fl_in_flight *flight)
{
    fl_item *item = &flight->item;
    fl_launch launch = {.cost = fl_item_cost(w, item), .tag = fl_pipeline_index(w, flight)};
    if (w->device->calls_host_fn) {
        fl_item kept = w->now.item;
        w->now.item = *item;
        fl_worker_run(w);
        item->code = w->now.item.code;
        flight->pending = w->now.item.state == FL_ITEM_PENDING ? w->call.returned : NULL;
        if (FL_UNLIKELY(w->now.item.is_refused)) {
            fl_publish_fail(w, flight, &w->stall.error);
        }
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

/* --- Failed launches --- */

/* Takes back an item that found no room, for a retry when memory may be free. A piece of a chunk is
 * rejoined with the rest. */
static void stall(fl_worker *w, fl_in_flight *flight, const fl_item *picked)
{
    if (fl_worker_is_stalled(w)) {
        w->stall.stalled.lo = picked->lo;
    } else {
        w->stall.stalled = *picked;
    }
    w->stall.stalled.state = FL_ITEM_STALLED;
    w->stall.stalled_at = fl_worker_clock(w);
    fl_pipeline_give(w, flight);
}

/* Evicts every evictable tile: nothing of the worker's is in flight. False: that was tried before,
 * or other workers use the memory node. */
static bool clear_memory(fl_worker *w)
{
    fl_offload *offload = w->offload;
    if (offload->is_tight) {
        return false;
    }
    fl_launch_drop_scratch(w);
    (void)fl_residents_clear(fl_worker_places(w), w->device);
    offload->is_tight = true;
    return true;
}

/* Tells whether a launch lacked only memory, and a retry may succeed. Items in flight, on the
 * device or on devices sharing the memory node, may free memory when over. If the device has no
 * further items in flight, evicts every evictable tile and lets the item be tried once more. */
static bool may_retry(fl_worker *w)
{
    return w->stall.error.status == FILCH_NOT_READY ||
           (w->stall.error.status == FILCH_NO_DEVICE_MEMORY &&
            (w->pipeline.in_flight > 1 || clear_memory(w)));
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
    if (fl_worker_is_stalled(w)) {
        item->hi = w->stall.stalled.hi;
        w->stall.stalled.state = FL_ITEM_DONE;
    }
    w->stall.piece = 0;
    return false;
}

/* Finds a second device for an item lacking memory here. True: the item is dealt with. */
static bool find_room(fl_worker *w, fl_in_flight *flight, const fl_item *picked)
{
    /* Chunk with the rest of the picked chunk. */
    fl_item chunk = flight->item;
    fl_task *task = picked->task;
    if (w->stall.error.status != FILCH_NO_DEVICE_MEMORY || picked->is_graph) {
        return false;
    }
    fl_lookahead_state before = picked->is_ahead ? fl_lookahead_look(task) : FL_LOOKAHEAD_OVER;
    if (before == FL_LOOKAHEAD_WAITS) {
        /* No second device may have the task yet. */
        stall(w, flight, picked);
        return true;
    }
    if (task == NULL ? !fl_full_leave(w, &chunk)
                     : before == FL_LOOKAHEAD_FAILED || !fl_full_move(w, task)) {
        return false;
    }
    fl_pipeline_give(w, flight);
    return true;
}

/* Notes an item taken by the device. In line: runs for every item. */
static inline __attribute__((always_inline)) void note_taken(fl_worker *w, fl_in_flight *flight)
{
    flight->item.state = FL_ITEM_LAUNCHED;
    w->now.has_worked = true;
    ++w->pipeline.computing;
    w->pipeline.long_ns += fl_depth_part(flight);
    fl_account_event(w, FL_EVENT_LAUNCHED, &flight->item);
    flight->arriving = fl_worker_computes(w) ? fl_fetch_arriving(w) : 0;
    if (flight->arriving != 0) {
        w->offload->lane_arriving[flight->lane] = flight->arriving;
    }
    flight->arrived = 0;
}

/* Retires an item that could not be launched, and looks whether the device failed. */
static void land_unlaunched(fl_worker *w, fl_in_flight *flight)
{
    flight->item.timed = false;
    fl_pipeline_land(w, flight);
    (void)fl_pipeline_is_down(w);
}

/* Handles an item after a failed launch. */
static void fail_launch(fl_worker *w, fl_in_flight *flight, const fl_item *picked)
{
    fl_item *item = &flight->item;
    item->timed = false;
    if (fl_worker_computes(w)) {
        /* A nonzero code came from a function of the caller. */
        item->is_refused = item->code == 0;
        fl_fetch_abandon(w);
    }
    item->code = item->code != 0 ? item->code : -1;
    /* Pieces of a divided task have memory already; no device may wait with a piece or take over
     * the task. */
    bool may_wait = item->is_refused && (item->task == NULL || !fl_task_is_divided(item->task));
    if (may_wait && (may_retry(w) || may_divide(w, item))) {
        stall(w, flight, picked);
        return;
    }
    if (w->offload != NULL) {
        w->offload->is_tight = false;
    }
    if (!may_wait || !find_room(w, flight, picked)) {
        land_unlaunched(w, flight);
    }
}

/* Handles a chunk with two runs after a failed launch. True: it was the second run, which is
 * dropped; the first run continues. */
static bool drop_second(fl_worker *w, fl_in_flight *flight)
{
    bool is_second = flight->item.run != NULL && flight->item.run->is_second;
    if (is_second) {
        fl_fetch_abandon(w);
        fl_pipeline_give(w, flight);
    }
    fl_backup_refused(w, &flight->item);
    if (is_second) {
        (void)fl_pipeline_is_down(w);
    }
    return is_second;
}

/* --- Items without a kernel --- */

/* Launches every task of a graph in one call. */
static void launch_graph(fl_worker *w, fl_in_flight *flight)
{
    flight->launched = flight->item.start = fl_worker_clock(w);
    flight->expected = 0;
    if (fl_graph_launch_launch(w, flight)) {
        note_taken(w, flight);
        return;
    }
    fl_item_refuse(&flight->item);
    fl_fetch_abandon(w);
    land_unlaunched(w, flight);
}

/* Launches a gate moving a tile to the host's memory. The gate is over when the copies are over. */
static void launch_move(fl_worker *w, fl_in_flight *flight)
{
    flight->item.timed = false;
    flight->item.start = fl_worker_clock(w);
    if (!fl_worker_computes(w) || fl_publish_move(w, flight)) {
        fl_pipeline_finish(w, flight);
        return;
    }
    fl_item_refuse(&flight->item);
    land_unlaunched(w, flight);
}

/* Passes over an item with nothing to run. Copies fetched ahead for a skipped item still arrive,
 * maybe from memory the caller owns again once the job is over. */
static void pass_over(fl_worker *w, fl_in_flight *flight)
{
    const fl_offload *offload = w->offload;
    bool passes = flight->item.task != NULL && fl_task_passes(flight->item.task);
    flight->item.timed = false;
    if (FL_UNLIKELY(offload != NULL && (offload->fetched[0] | offload->fetched[1]) != 0) &&
        !passes && fl_publish_note_fetched(w, flight)) {
        flight->item.start = fl_worker_clock(w);
        fl_pipeline_finish(w, flight);
        return;
    }
    fl_pipeline_land(w, flight);
}

/* --- Launching an item --- */

/* In line: runs for every item. */
static inline __attribute__((always_inline)) void launch_codelet(fl_worker *w, fl_in_flight *flight,
                                                                 const fl_item *picked)
{
    fl_item *item = &flight->item;
    const filch_codelet *codelet = fl_item_codelet(item);
    bool computes = fl_worker_computes(w);
    /* A computing device clears the flag if not measuring. */
    fl_item_set_timed(item, codelet);
    bool races = FL_UNLIKELY(fl_item_may_race(item, codelet));
    if (races) {
        fl_backup_offer(w, item);
    }
    if (!computes || w->pipeline.clock_age++ % FL_CLOCK_PERIOD == 0) {
        w->pipeline.clock = fl_worker_clock(w);
    }
    flight->launched = item->start = w->pipeline.clock;
    flight->expected = fl_cost_measured(codelet, w->index, item->work);
    w->stall.error.status = FILCH_OK;
    bool is_long = item->task != NULL && flight->expected > FL_SHORT_NS;
    if (is_long && w->sched->mails) {
        /* Other devices may wait for the short items before it. */
        fl_worker_mark(w);
    }
    if (computes ? launch_kernel(w, flight) : launch_pretended(w, flight)) {
        if (races && computes) {
            fl_backup_launched(w, item);
        }
        note_taken(w, flight);
        if (is_long) {
            /* Known late, the end of a long item would leave the device out of work. */
            fl_worker_mark(w);
        }
        if (FL_UNLIKELY(item->task != NULL && item->task->moves != 0)) {
            item->task->moves = 0;
        }
    } else if (!races || !computes || !drop_second(w, flight)) {
        fail_launch(w, flight, picked);
    }
}

void fl_launch_item(fl_worker *w, const fl_item *picked)
{
    if (FL_UNLIKELY(w->theft.waited_at != 0)) {
        w->theft.waited_ns += (double)(fl_worker_clock(w) - w->theft.waited_at);
        w->theft.waited_at = 0;
    }
    fl_pipeline_note_hunger(w, false);
    fl_in_flight *flight = fl_pipeline_take(w, picked);
    fl_item *item = &flight->item;
    bool is_gate = FL_UNLIKELY(item->task != NULL && item->task->is_gate);
    if (is_gate) {
        fl_item_pass(item);
    }
    if (item->skip) {
        pass_over(w, flight);
    } else if (item->is_graph) {
        launch_graph(w, flight);
    } else if (is_gate) {
        launch_move(w, flight);
    } else {
        launch_codelet(w, flight, picked);
    }
}

void fl_launch_stalled(fl_worker *w, bool any)
{
    fl_item item = w->stall.stalled;
    if (!any && fl_worker_clock(w) - w->stall.stalled_at < FL_LOOK_AGAIN_NS) {
        return;
    }
    if (FL_UNLIKELY(w->stall.piece != 0 && w->stall.piece < item.hi - item.lo)) {
        item.hi = item.lo + w->stall.piece;
        item.work = fl_batch_work(w, item.job, item.lo, item.hi);
        w->stall.stalled.lo = item.hi;
        w->stall.stalled_at = fl_worker_clock(w);
    } else {
        w->stall.stalled.state = FL_ITEM_DONE;
        w->stall.piece = 0;
    }
    fl_launch_item(w, &item);
}
