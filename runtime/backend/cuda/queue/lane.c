/* SPDX-License-Identifier: Apache-2.0 */
#include "backend/cuda/queue/lane.h"

#include <string.h>

#include "backend/cuda/device.h"
#include "backend/cuda/queue/graph.h"
#include "backend/cuda/queue/pack.h"
#include "backend/cuda/queue/span.h"
#include "backend/cuda/queue/stage.h"
#include "base/clock.h"

#define NO_TIMER UINT32_MAX

/* Where a lane cannot be waited for, or a wait failed: the driver hands out there what went wrong
 * with the work itself. */
static filch_status lose(const fl_device *device, CUresult result, const char *call,
                         filch_error *error)
{
    return fl_cuda_lose(fl_cuda_of(device)->gpu, result, call, device->info.name, error);
}

/* Whether the device gives a result to everybody now, whatever it is asked: an event that is no
 * longer wanted tells. */
static bool is_stuck(const fl_device *device, CUresult result)
{
    const fl_cuda_device *state = fl_cuda_of(device);
    CUevent event = state->lanes != NULL ? state->lanes->lane[0].events[0] : NULL;
    return event != NULL && state->gpu->api->cuEventQuery(event) == result;
}

filch_status fl_cuda_call_fail(const fl_device *device, CUresult result, const char *call,
                               filch_error *error)
{
    /* Any call may hand out what went wrong with work before it. */
    return is_stuck(device, result) ? lose(device, result, call, error)
                                    : fl_cuda_fail(fl_cuda_of(device)->gpu, result, call,
                                                   device->info.name, NULL, error);
}

static bool is_reached(const fl_cuda_lane *lane, uint64_t sequence)
{
    /* Acquire: what the device wrote before is seen with it. */
    return fl_load_acquire(&lane->reached) >= sequence;
}

static bool is_passed(const fl_cuda_lane *lane, uint64_t sequence)
{
    /* Acquire: as is_reached. */
    return fl_load_acquire(&lane->passed) >= sequence;
}

/* --- Beginning and end --- */

static filch_status open_lane(const fl_device *device, fl_cuda_lane *lane, filch_error *error)
{
    const fl_cuda_api *api = fl_cuda_of(device)->gpu->api;
    filch_status status = fl_mutex_init(&lane->lock);
    if (status != FILCH_OK) {
        return fl_error_fill(error, (fl_fault){.status = status, .device = device->info.name},
                             "a lane has no lock");
    }
    status = fl_cuda_stream_create(device, &lane->stream, error);
    if (status != FILCH_OK) {
        lane->stream = NULL;
        fl_mutex_fini(&lane->lock);
        return status;
    }
    CUresult result = FL_CUDA_SUCCESS;
    for (uint32_t i = 0; i < FL_CUDA_EVENTS && result == FL_CUDA_SUCCESS; ++i) {
        result = api->cuEventCreate(&lane->events[i], FL_CU_EVENT_DISABLE_TIMING);
        if (result != FL_CUDA_SUCCESS) {
            lane->events[i] = NULL;
        }
    }
    return result == FL_CUDA_SUCCESS ? FILCH_OK
                                     : fl_cuda_call_fail(device, result, "cuEventCreate", error);
}

/* Whether the device's context works: the driver hangs or crashes when graphs of one that the host
 * has reset are destroyed, but answers for events. */
static bool works(const fl_cuda_api *api, const fl_cuda_lane *lane)
{
    CUresult result =
        lane->events[0] != NULL ? api->cuEventQuery(lane->events[0]) : FL_CUDA_ERROR_INVALID_HANDLE;
    return result == FL_CUDA_SUCCESS || result == FL_CUDA_ERROR_NOT_READY;
}

static void close_lane(const fl_cuda_api *api, fl_cuda_lane *lane)
{
    fl_cuda_pack_free(works(api, lane) ? api : NULL, lane->pack);
    if (lane->stream == NULL) {
        return;
    }
    for (uint32_t i = 0; i < FL_CUDA_EVENTS && lane->events[i] != NULL; ++i) {
        api->cuEventDestroy(lane->events[i]);
    }
    api->cuStreamDestroy(lane->stream);
    fl_mutex_fini(&lane->lock);
}

static bool is_used(const fl_cuda_lanes *lanes, uint32_t index)
{
    return index < lanes->count || lanes->lane[index].stream != NULL;
}

static void free_lanes(fl_device *device, const fl_memory *memory)
{
    fl_cuda_device *state = fl_cuda_of(device);
    const fl_cuda_api *api = state->gpu->api;
    fl_cuda_lanes *lanes = state->lanes;
    fl_cuda_stage_forget(state->gpu->stage, &lanes->lane[FL_LANE_IN]);
    fl_cuda_stage_forget(state->gpu->stage, &lanes->lane[FL_LANE_OUT]);
    for (uint32_t i = 0; i < FL_LANES; ++i) {
        close_lane(api, &lanes->lane[i]);
    }
    for (uint32_t i = 0; i < lanes->timer_count; ++i) {
        api->cuEventDestroy(lanes->timers[i].start);
        api->cuEventDestroy(lanes->timers[i].stop);
    }
    fl_cuda_record_free(device, memory, lanes->record);
    fl_free_aligned(memory, lanes, sizeof *lanes, 64);
    state->lanes = NULL;
}

/* One more. The owner, or before there is one. */
static CUresult open_timer(const fl_cuda_api *api, fl_cuda_lanes *lanes)
{
    fl_cuda_timer *timer = &lanes->timers[lanes->timer_count];
    CUresult result = api->cuEventCreate(&timer->start, FL_CU_EVENT_DEFAULT);
    if (result != FL_CUDA_SUCCESS) {
        return result;
    }
    result = api->cuEventCreate(&timer->stop, FL_CU_EVENT_DEFAULT);
    if (result != FL_CUDA_SUCCESS) {
        api->cuEventDestroy(timer->start);
        return result;
    }
    lanes->free_timers[lanes->free_timer_count++] = lanes->timer_count++;
    return FL_CUDA_SUCCESS;
}

static filch_status open_timers(const fl_device *device, fl_cuda_lanes *lanes, filch_error *error)
{
    CUresult result = FL_CUDA_SUCCESS;
    while (lanes->timer_count < FL_CUDA_TIMERS && result == FL_CUDA_SUCCESS) {
        result = open_timer(fl_cuda_of(device)->gpu->api, lanes);
    }
    return result == FL_CUDA_SUCCESS ? FILCH_OK
                                     : fl_cuda_call_fail(device, result, "cuEventCreate", error);
}

filch_status fl_cuda_lanes_open(fl_device *device, const fl_memory *memory, filch_error *error)
{
    fl_cuda_device *state = fl_cuda_of(device);
    fl_cuda_lanes *lanes = fl_alloc_aligned(memory, sizeof *lanes, 64);
    if (lanes == NULL) {
        return fl_error_fill(error,
                             (fl_fault){.status = FILCH_OUT_OF_MEMORY, .device = device->info.name},
                             "no memory for lanes");
    }
    memset(lanes, 0, sizeof *lanes);
    lanes->count = device->lanes;
    lanes->newest = NO_TIMER;
    lanes->lane[FL_LANE_OUT].stage = state->gpu->stage;
    state->lanes = lanes;
    fl_cuda_scope scope;
    filch_status status = fl_cuda_enter(state->gpu, &scope, error);
    if (status != FILCH_OK) {
        fl_free_aligned(memory, lanes, sizeof *lanes, 64);
        state->lanes = NULL;
        return status;
    }
    for (uint32_t i = 0; i < FL_LANES && status == FILCH_OK; ++i) {
        if (i < lanes->count || i == FL_LANE_IN || i == FL_LANE_OUT) {
            status = open_lane(device, &lanes->lane[i], error);
        }
        /* A graph's kernels run on all of the GPU, whatever slice its stream is of. */
        if (status == FILCH_OK && i < lanes->count && state->slice == NULL &&
            (lanes->lane[i].pack = fl_cuda_pack_new(memory)) == NULL) {
            status = fl_error_fill(
                error, (fl_fault){.status = FILCH_OUT_OF_MEMORY, .device = device->info.name},
                "no memory for lanes");
        }
    }
    if (status == FILCH_OK) {
        status = open_timers(device, lanes, error);
    }
    if (status != FILCH_OK) {
        free_lanes(device, memory);
    }
    fl_cuda_leave(&scope);
    return status;
}

bool fl_cuda_lanes_link(fl_device *device)
{
    fl_cuda_device *state = fl_cuda_of(device);
    fl_cuda_lane *lane = &state->lanes->lane[FL_LANE_PEER];
    fl_cuda_scope scope;
    if (lane->stream == NULL && fl_cuda_enter(state->gpu, &scope, NULL) == FILCH_OK) {
        if (open_lane(device, lane, NULL) != FILCH_OK) {
            close_lane(state->gpu->api, lane);
            memset(lane, 0, sizeof *lane);
        }
        fl_cuda_leave(&scope);
    }
    return lane->stream != NULL;
}

void fl_cuda_lanes_close(fl_device *device, const fl_memory *memory)
{
    fl_cuda_device *state = fl_cuda_of(device);
    if (state == NULL || state->lanes == NULL) {
        return;
    }
    fl_cuda_drain(device, NULL); /* a lost device has nothing to wait for */
    fl_cuda_scope scope;
    bool entered = fl_cuda_enter(state->gpu, &scope, NULL) == FILCH_OK;
    free_lanes(device, memory);
    if (entered) {
        fl_cuda_leave(&scope);
    }
}

void fl_cuda_lanes_forget(const fl_device *device)
{
    const fl_cuda_device *state = fl_cuda_of(device);
    for (uint32_t i = 0; state->lanes != NULL && i < state->lanes->count; ++i) {
        const fl_cuda_lane *lane = &state->lanes->lane[i];
        if (lane->pack != NULL && works(state->gpu->api, lane)) {
            fl_cuda_pack_forget(state->gpu->api, lane->pack);
        }
    }
}

void fl_cuda_discard(fl_device *device)
{
    fl_cuda_lanes *lanes = fl_cuda_of(device)->lanes;
    for (uint32_t i = 0; i < lanes->count; ++i) {
        if (lanes->lane[i].pack != NULL) {
            fl_cuda_pack_drop(lanes->lane[i].pack);
        }
    }
}

/* --- What is held back --- */

/* Puts it on the lane; the owner. What the driver said of each tile is told when it is polled. */
static void put_held(const fl_device *device, fl_cuda_lane *lane)
{
    CUresult results[FL_CUDA_PACK];
    uint32_t count = lane->pack != NULL ? fl_cuda_pack_count(lane->pack) : 0;
    if (count == 0) {
        return;
    }
    fl_cuda_pack_put(fl_cuda_of(device)->gpu->api, lane->pack, lane->stream, results);
    /* They are the newest: nothing else is put on the lane while some are held. */
    uint32_t oldest = lane->first + lane->in_flight - count;
    for (uint32_t i = 0; i < count; ++i) {
        lane->tiles[(oldest + i) % FL_CUDA_TILES].result = results[i];
    }
}

/* --- Events --- */

/* Under the lane's lock: the device is past a point, and all that has landed is reached. */
static void pass(fl_cuda_lane *lane, uint64_t point)
{
    /* Release: pairs with is_passed. Only moves forward, since we hold the lock. */
    fl_store_release(&lane->passed, point);
    /* Acquire: the bytes of pieces that have landed. Others come aboard under the lock only. */
    if (FL_UNLIKELY(fl_load_acquire(&lane->aboard) != 0)) {
        point = fl_cuda_stage_bound(lane->stage, lane, point);
    }
    /* Release: pairs with is_reached. What was landed once stays so: forward, too. */
    fl_store_release(&lane->reached, point);
}

/* Under the lane's lock: retires the events that are complete. */
static CUresult look(const fl_cuda_api *api, fl_cuda_lane *lane)
{
    uint64_t point = fl_load_relaxed(&lane->passed); /* under the lock */
    CUresult result = FL_CUDA_SUCCESS;
    while (lane->recorded != 0 &&
           (result = api->cuEventQuery(lane->events[lane->oldest])) == FL_CUDA_SUCCESS) {
        point = lane->covers[lane->oldest];
        lane->oldest = (lane->oldest + 1) % FL_CUDA_EVENTS;
        --lane->recorded;
    }
    if (fl_load_relaxed(&lane->reached) != point) {
        pass(lane, point);
    }
    return result == FL_CUDA_ERROR_NOT_READY ? FL_CUDA_SUCCESS : result;
}

/* Under the lane's lock, where no event can be recorded: waits for all that was issued so far. What
 * is on the lane uses memory of the caller's, so it must never be left unmarked. */
static CUresult wait_out(const fl_cuda_api *api, fl_cuda_lane *lane, CUresult why)
{
    uint64_t issued = fl_load_relaxed(&lane->issued); /* as in mark_lane */
    if (api->cuStreamSynchronize(lane->stream) != FL_CUDA_SUCCESS) {
        return why;
    }
    lane->recorded = 0;
    /* In this order, as look and mark_lane have it. */
    pass(lane, issued);
    fl_store_release(&lane->marked, issued);
    return FL_CUDA_SUCCESS;
}

/* Under the lane's lock: marks all that was issued so far. Where every event is in use, waits for
 * the oldest: far more are there than tiles or copies that anybody needs at once. */
static CUresult mark_lane(const fl_cuda_api *api, fl_cuda_lane *lane)
{
    uint64_t issued = fl_load_relaxed(&lane->issued); /* ours: we issue, or hold the lock */
    if (issued == fl_load_relaxed(&lane->marked)) {
        return FL_CUDA_SUCCESS;
    }
    CUresult result = FL_CUDA_SUCCESS;
    if (lane->recorded == FL_CUDA_EVENTS) {
        result = api->cuEventSynchronize(lane->events[lane->oldest]);
        result = result == FL_CUDA_SUCCESS ? look(api, lane) : result;
        if (result != FL_CUDA_SUCCESS) {
            return wait_out(api, lane, result);
        }
    }
    uint32_t at = (lane->oldest + lane->recorded) % FL_CUDA_EVENTS;
    result = api->cuEventRecord(lane->events[at], lane->stream);
    if (result != FL_CUDA_SUCCESS) {
        return wait_out(api, lane, result);
    }
    lane->covers[at] = issued;
    ++lane->recorded;
    /* Release: the event is recorded, and in the ring, before anybody is told to wait for it. */
    fl_store_release(&lane->marked, issued);
    return FL_CUDA_SUCCESS;
}

filch_status fl_cuda_mark(fl_device *device, filch_error *error)
{
    fl_cuda_device *state = fl_cuda_of(device);
    fl_cuda_lanes *lanes = state->lanes;
    lanes->unmarked = 0;
    for (uint32_t i = 0; i < lanes->count; ++i) {
        fl_cuda_lane *lane = &lanes->lane[i];
        if (fl_load_relaxed(&lane->issued) == fl_load_relaxed(&lane->marked)) {
            continue; /* both are the owner's */
        }
        put_held(device, lane);
        fl_mutex_lock(&lane->lock);
        CUresult result = mark_lane(state->gpu->api, lane);
        fl_mutex_unlock(&lane->lock);
        if (result != FL_CUDA_SUCCESS) {
            return lose(device, result, "cuEventRecord", error);
        }
    }
    return FILCH_OK;
}

bool fl_cuda_is_marked(const fl_device *device, fl_marker marker)
{
    const fl_cuda_lane *lane = &fl_cuda_of(device)->lanes->lane[fl_marker_lane(marker)];
    /* Acquire: the ring of events as it was when the marker was covered. */
    return fl_load_acquire(&lane->marked) >= fl_marker_sequence(marker);
}

bool fl_cuda_is_past(const fl_device *device, fl_marker marker)
{
    return is_reached(&fl_cuda_of(device)->lanes->lane[fl_marker_lane(marker)],
                      fl_marker_sequence(marker));
}

filch_status fl_cuda_lane_look(fl_device *device, uint32_t index, filch_error *error)
{
    fl_cuda_device *state = fl_cuda_of(device);
    fl_cuda_lane *lane = &state->lanes->lane[index];
    if (fl_cuda_lost(state->gpu, device->info.name, error)) {
        return FILCH_DEVICE_LOST;
    }
    fl_mutex_lock_soon(&lane->lock);
    CUresult result = look(state->gpu->api, lane);
    fl_mutex_unlock(&lane->lock);
    return result == FL_CUDA_SUCCESS ? FILCH_OK : lose(device, result, "cuEventQuery", error);
}

filch_status fl_cuda_reached(fl_device *device, fl_marker marker, filch_error *error)
{
    fl_cuda_device *state = fl_cuda_of(device);
    uint32_t index = fl_marker_lane(marker);
    const fl_cuda_lane *lane = &state->lanes->lane[index];
    uint64_t sequence = fl_marker_sequence(marker);
    if (is_reached(lane, sequence)) {
        return FILCH_OK;
    }
    filch_status status = fl_cuda_lane_look(device, index, error);
    if (status == FILCH_OK && !is_reached(lane, sequence) && is_passed(lane, sequence) &&
        fl_cuda_stage_help(state->gpu->stage)) {
        status = fl_cuda_lane_look(device, index, error);
    }
    if (status != FILCH_OK && index == FL_LANE_OUT) {
        fl_cuda_stage_quiet(state->gpu->stage); /* who is told may free what bytes would land in */
    }
    return status != FILCH_OK ? status : is_reached(lane, sequence) ? FILCH_OK : FILCH_NOT_READY;
}

/* Makes what comes next on the stream wait for a marker of any device of this backend. */
static filch_status wait_for(const fl_device *device, fl_cuda_lane *waiting, fl_marker marker,
                             filch_error *error)
{
    fl_cuda_device *state = fl_cuda_of(device);
    const fl_device *pool = device - device->info.index;
    const fl_device *other = pool + fl_marker_device(marker);
    fl_cuda_lane *lane = &fl_cuda_of(other)->lanes->lane[fl_marker_lane(marker)];
    uint64_t sequence = fl_marker_sequence(marker);
    /* A lane is in order anyway. Of pieces on the way to the host the device is past, who waits
     * here uses what they were copied from. */
    if (lane == waiting || is_passed(lane, sequence)) {
        return FILCH_OK;
    }
    CUresult result = FL_CUDA_SUCCESS;
    put_held(device, waiting); /* what was there before does not wait */
    /* Relaxed: whoever asks knows that it is marked, or owns the lane. */
    bool is_ours = fl_load_relaxed(&lane->marked) < sequence;
    if (is_ours) {
        put_held(other, lane);
    }
    fl_mutex_lock(&lane->lock);
    if (is_ours && (result = mark_lane(state->gpu->api, lane)) != FL_CUDA_SUCCESS) {
        fl_mutex_unlock(&lane->lock);
        return lose(device, result, "cuEventRecord", error);
    }
    for (uint32_t i = 0; i < lane->recorded && result == FL_CUDA_SUCCESS; ++i) {
        uint32_t at = (lane->oldest + i) % FL_CUDA_EVENTS;
        if (lane->covers[at] >= sequence) {
            /* Under the lock, so that the event is not recorded anew meanwhile. */
            result = state->gpu->api->cuStreamWaitEvent(waiting->stream, lane->events[at], 0);
            break;
        }
    }
    fl_mutex_unlock(&lane->lock);
    if (result == FL_CUDA_SUCCESS) {
        return FILCH_OK;
    }
    /* What the event says of its own context is no loss of ours. */
    return fl_cuda_of(other)->gpu != state->gpu && is_stuck(other, result)
               ? lose(other, result, "cuStreamWaitEvent", error)
               : fl_cuda_call_fail(device, result, "cuStreamWaitEvent", error);
}

static filch_status wait_for_all(const fl_device *device, fl_cuda_lane *waiting,
                                 const fl_marker *behind, uint32_t count, filch_error *error)
{
    for (uint32_t i = 0; i < count; ++i) {
        if (behind[i] != 0) {
            filch_status status = wait_for(device, waiting, behind[i], error);
            if (status != FILCH_OK) {
                return status;
            }
        }
    }
    return FILCH_OK;
}

/* --- Tiles --- */

static CUresult launch_cluster(const fl_cuda_api *api, const fl_launch *launch, CUstream stream)
{
    const filch_shape *shape = &launch->shape;
    CUlaunchAttribute attribute = {.id = FL_CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION};
    attribute.value.clusterDim.x = shape->cluster[0] != 0 ? shape->cluster[0] : 1;
    attribute.value.clusterDim.y = shape->cluster[1] != 0 ? shape->cluster[1] : 1;
    attribute.value.clusterDim.z = shape->cluster[2] != 0 ? shape->cluster[2] : 1;
    CUlaunchConfig config = {
        .gridDimX = shape->grid[0],
        .gridDimY = shape->grid[1],
        .gridDimZ = shape->grid[2],
        .blockDimX = shape->block[0],
        .blockDimY = shape->block[1],
        .blockDimZ = shape->block[2],
        .sharedMemBytes = shape->shared_bytes,
        .hStream = stream,
        .attrs = &attribute,
        .numAttrs = 1,
    };
    return api->cuLaunchKernelEx(&config, launch->function->handle, launch->params, NULL);
}

static CUresult launch_kernel(const fl_cuda_api *api, const fl_launch *launch, CUstream stream)
{
    const filch_shape *shape = &launch->shape;
    if (fl_shape_has_clusters(shape)) {
        return launch_cluster(api, launch, stream);
    }
    return api->cuLaunchKernel(launch->function->handle, shape->grid[0], shape->grid[1],
                               shape->grid[2], shape->block[0], shape->block[1], shape->block[2],
                               shape->shared_bytes, stream, launch->params, NULL);
}

static filch_lane describe_lane(const fl_device *device, uint32_t index)
{
    const fl_cuda_device *state = fl_cuda_of(device);
    return (filch_lane){
        .stream = state->lanes->lane[index].stream,
        .context = state->gpu->context,
        .cuda_device = state->gpu->device,
        .device = device->info.index,
        .lane = index,
        .lanes = state->lanes->count,
        .multiprocessors = state->sms,
    };
}

static filch_status put(const fl_device *device, fl_launch *launch, const fl_cuda_lane *lane,
                        filch_error *error)
{
    const fl_cuda_api *api = fl_cuda_of(device)->gpu->api;
    if (launch->enqueue != NULL) {
        filch_lane where = describe_lane(device, launch->lane);
        void *state = launch->states != NULL ? launch->states[launch->lane] : NULL;
        launch->code = launch->enqueue(launch->call, &where, state);
        return launch->code == 0 ? FILCH_OK : FILCH_TASK_FAILED;
    }
    if (launch->replay != NULL) {
        CUresult launched =
            api->cuGraphLaunch(fl_cuda_replay_executable(launch->replay), lane->stream);
        return launched == FL_CUDA_SUCCESS
                   ? FILCH_OK
                   : fl_cuda_call_fail(device, launched, "cuGraphLaunch", error);
    }
    CUresult result = launch_kernel(api, launch, lane->stream);
    return result == FL_CUDA_SUCCESS
               ? FILCH_OK
               : fl_cuda_call_fail(device, result,
                                   fl_shape_has_clusters(&launch->shape) ? "cuLaunchKernelEx"
                                                                         : "cuLaunchKernel",
                                   error);
}

/* Holds a tile back, where that is possible; the device has others to run meanwhile. */
static bool hold(const fl_device *device, fl_cuda_lane *lane, const fl_launch *launch)
{
    if (lane->pack == NULL || !launch->brief || launch->function->is_clustered ||
        fl_shape_has_clusters(&launch->shape)) {
        return false;
    }
    if (fl_cuda_pack_hold(lane->pack, launch)) {
        return true;
    }
    put_held(device, lane);
    return fl_cuda_pack_hold(lane->pack, launch);
}

/* Gives a tile that is on the lane, or held back, its place in the order. */
static void issue(fl_device *device, fl_launch *launch, uint32_t timer, uint64_t now)
{
    fl_cuda_lanes *lanes = fl_cuda_of(device)->lanes;
    fl_cuda_lane *lane = &lanes->lane[launch->lane];
    uint64_t sequence = fl_load_relaxed(&lane->issued) + 1; /* we alone issue here */
    fl_store_relaxed(&lane->issued, sequence);
    launch->marker = fl_marker_make(device->info.index, launch->lane, sequence);
    lane->tiles[(lane->first + lane->in_flight) % FL_CUDA_TILES] =
        (fl_cuda_tile){launch->tag, sequence, timer, FL_CUDA_SUCCESS};
    ++lane->in_flight;
    if (lanes->unmarked++ == 0) {
        lanes->marked_at = now;
    }
    if (lanes->unmarked >= FL_MARK_TILES || now - lanes->marked_at >= FL_MARK_NS) {
        (void)fl_cuda_mark(device, NULL); /* whoever waits for it marks again, and is told */
    }
}

/* Starts to time what is put on the lane next; the timer, or NO_TIMER. */
static uint32_t start_timer(fl_device *device, const fl_cuda_lane *lane)
{
    const fl_cuda_api *api = fl_cuda_of(device)->gpu->api;
    fl_cuda_lanes *lanes = fl_cuda_of(device)->lanes;
    fl_cuda_record *record = fl_cuda_recording(lanes);
    if (FL_UNLIKELY(record != NULL)) {
        fl_cuda_record_renew(device, record);
        if (lanes->free_timer_count == 0 && lanes->timer_count < FL_CUDA_TIMERS_MOST) {
            (void)open_timer(api, lanes); /* refused: not timed */
        }
    }
    if (lanes->free_timer_count == 0) {
        return NO_TIMER;
    }
    uint32_t at = lanes->free_timers[--lanes->free_timer_count];
    fl_cuda_timer *timer = &lanes->timers[at];
    /* Relaxed: as for spans. */
    timer->epoch = record != NULL ? fl_load_relaxed(&record->epoch) : 0;
    if (api->cuEventRecord(timer->start, lane->stream) != FL_CUDA_SUCCESS) {
        lanes->free_timers[lanes->free_timer_count++] = at;
        return NO_TIMER;
    }
    return at;
}

filch_status fl_cuda_launch(fl_device *device, fl_launch *launch, uint64_t now, filch_error *error)
{
    fl_cuda_device *state = fl_cuda_of(device);
    const fl_cuda_api *api = state->gpu->api;
    fl_cuda_lanes *lanes = state->lanes;
    fl_cuda_lane *lane = &lanes->lane[launch->lane];
    if (lane->in_flight == FL_CUDA_TILES) {
        return FILCH_BUSY;
    }
    filch_status status = wait_for_all(device, lane, launch->behind, launch->behind_count, error);
    if (status != FILCH_OK) {
        return status;
    }
    if (hold(device, lane, launch)) {
        issue(device, launch, NO_TIMER, now);
        return FILCH_OK;
    }
    put_held(device, lane);
    uint32_t timer = launch->timed ? start_timer(device, lane) : NO_TIMER;
    status = put(device, launch, lane, error);
    /* Once it is on the lane it is in flight, whatever else fails. */
    if (timer != NO_TIMER &&
        (status != FILCH_OK ||
         api->cuEventRecord(lanes->timers[timer].stop, lane->stream) != FL_CUDA_SUCCESS)) {
        lanes->free_timers[lanes->free_timer_count++] = timer;
        timer = NO_TIMER;
    }
    if (status != FILCH_OK) {
        if (launch->enqueue != NULL) {
            (void)api->cuStreamSynchronize(lane->stream); /* it may have come half-way */
        }
        return status;
    }
    issue(device, launch, timer, now);
    return FILCH_OK;
}

/* Tells how much of a tile's time is its own; of its timer and the newest so far, that which
 * stopped first is free. */
static void settle_timer(const fl_cuda_api *api, fl_cuda_lanes *lanes, uint32_t index,
                         uint64_t busy)
{
    uint32_t done = lanes->newest;
    float ms = 0;
    lanes->own = busy;
    lanes->newest = index;
    if (done == NO_TIMER) {
        return;
    }
    if (lanes->count > 1 && api->cuEventElapsedTime(&ms, lanes->timers[done].stop,
                                                    lanes->timers[index].stop) == FL_CUDA_SUCCESS) {
        uint64_t since = ms > 0 ? (uint64_t)((double)ms * 1e6) : 0;
        lanes->own = since < busy ? since : busy;
        if (ms < 0) {
            lanes->newest = done;
            done = index;
        }
    }
    lanes->free_timers[lanes->free_timer_count++] = done;
}

static uint64_t read_timer(const fl_device *device, uint32_t index)
{
    const fl_cuda_api *api = fl_cuda_of(device)->gpu->api;
    fl_cuda_lanes *lanes = fl_cuda_of(device)->lanes;
    const fl_cuda_timer *timer = &lanes->timers[index];
    float ms = 0;
    lanes->began = FL_UNLIKELY(timer->epoch != 0)
                       ? fl_cuda_record_when(device, lanes->record, timer->epoch, timer->start)
                       : 0;
    if (api->cuEventElapsedTime(&ms, timer->start, timer->stop) != FL_CUDA_SUCCESS) {
        lanes->free_timers[lanes->free_timer_count++] = index;
        return UINT64_MAX;
    }
    uint64_t busy = (uint64_t)((double)ms * 1e6);
    settle_timer(api, lanes, index, busy);
    return busy;
}

uint64_t fl_cuda_own(const fl_device *device)
{
    return fl_cuda_of(device)->lanes->own;
}

/* FILCH_NOT_READY: none has; else as poll. */
static filch_status take_finished(const fl_device *device, fl_cuda_lane *lane, uint64_t *tag,
                                  uint64_t *busy_ns, filch_error *error)
{
    const fl_cuda_tile *tile = &lane->tiles[lane->first];
    if (lane->in_flight == 0 || !is_reached(lane, tile->sequence)) {
        return FILCH_NOT_READY;
    }
    *tag = tile->tag;
    *busy_ns = tile->timer != NO_TIMER ? read_timer(device, tile->timer) : UINT64_MAX;
    lane->first = (lane->first + 1) % FL_CUDA_TILES;
    --lane->in_flight;
    if (FL_UNLIKELY(tile->result != FL_CUDA_SUCCESS)) {
        filch_status status = fl_cuda_call_fail(device, tile->result, "cuLaunchKernel", error);
        return status == FILCH_DEVICE_LOST ? status : FILCH_TASK_FAILED;
    }
    return FILCH_OK;
}

filch_status fl_cuda_poll(fl_device *device, uint64_t now, uint64_t *tag, uint64_t *busy_ns,
                          uint64_t *next, filch_error *error)
{
    fl_cuda_device *state = fl_cuda_of(device);
    const fl_cuda_api *api = state->gpu->api;
    fl_cuda_lanes *lanes = state->lanes;
    *next = FL_TIME_NEVER;
    /* First what is known already, then a look at each lane's oldest event. */
    for (uint32_t i = 0; i < lanes->count; ++i) {
        filch_status status = take_finished(device, &lanes->lane[i], tag, busy_ns, error);
        if (status != FILCH_NOT_READY) {
            return status;
        }
    }
    for (uint32_t i = 0; i < lanes->count; ++i) {
        fl_cuda_lane *lane = &lanes->lane[i];
        if (lane->in_flight == 0) {
            continue;
        }
        *next = now;
        fl_mutex_lock(&lane->lock);
        CUresult result = look(api, lane);
        fl_mutex_unlock(&lane->lock);
        if (result != FL_CUDA_SUCCESS) {
            return lose(device, result, "cuEventQuery", error);
        }
        filch_status status = take_finished(device, lane, tag, busy_ns, error);
        if (status != FILCH_NOT_READY) {
            return status;
        }
    }
    return FILCH_NOT_READY;
}

/* --- Copies --- */

static CUresult put_copy(const fl_cuda_api *api, const fl_copy *copy, CUstream stream,
                         const char **call)
{
    bool is_flat =
        copy->height == 1 || (copy->to_pitch == copy->width && copy->from_pitch == copy->width);
    size_t bytes = copy->width * copy->height;
    const fl_device *to = copy->to_device, *from = copy->from_device;
    CUdeviceptr to_ptr = (CUdeviceptr)(uintptr_t)copy->to;
    CUdeviceptr from_ptr = (CUdeviceptr)(uintptr_t)copy->from;
    if (is_flat) {
        if (from == NULL) {
            *call = "cuMemcpyHtoDAsync";
            return api->cuMemcpyHtoDAsync(to_ptr, copy->from, bytes, stream);
        }
        if (to == NULL) {
            *call = "cuMemcpyDtoHAsync";
            return api->cuMemcpyDtoHAsync(copy->to, from_ptr, bytes, stream);
        }
        if (to->place == from->place) {
            *call = "cuMemcpyDtoDAsync";
            return api->cuMemcpyDtoDAsync(to_ptr, from_ptr, bytes, stream);
        }
        *call = "cuMemcpyPeerAsync";
        return api->cuMemcpyPeerAsync(to_ptr, fl_cuda_of(to)->gpu->context, from_ptr,
                                      fl_cuda_of(from)->gpu->context, bytes, stream);
    }
    *call = "cuMemcpy2DAsync";
    CUDA_MEMCPY2D block = {
        .srcMemoryType = from != NULL ? FL_CU_MEMORYTYPE_DEVICE : FL_CU_MEMORYTYPE_HOST,
        .srcHost = copy->from,
        .srcDevice = from_ptr,
        .srcPitch = copy->from_pitch,
        .dstMemoryType = to != NULL ? FL_CU_MEMORYTYPE_DEVICE : FL_CU_MEMORYTYPE_HOST,
        .dstHost = copy->to,
        .dstDevice = to_ptr,
        .dstPitch = copy->to_pitch,
        .WidthInBytes = copy->width,
        .Height = copy->height,
    };
    if (from != NULL && to != NULL && from->place != to->place) {
        block.srcMemoryType = block.dstMemoryType = FL_CU_MEMORYTYPE_UNIFIED;
    }
    return api->cuMemcpy2DAsync(&block, stream);
}

/* Under the copy lane's lock: gives what was put there last its place in the order, and marks it.
 */
static filch_status issue_copy(fl_device *device, uint32_t index, fl_cuda_slot *slot,
                               fl_marker *marker, filch_error *error)
{
    fl_cuda_device *state = fl_cuda_of(device);
    fl_cuda_lane *lane = &state->lanes->lane[index];
    uint64_t sequence = fl_load_relaxed(&lane->issued) + 1; /* under the lock */
    fl_store_relaxed(&lane->issued, sequence);
    *marker = fl_marker_make(device->info.index, index, sequence);
    if (slot != NULL) {
        fl_cuda_stage_board(state->gpu->stage, slot, lane, sequence);
    }
    CUresult result = mark_lane(state->gpu->api, lane);
    return result == FL_CUDA_SUCCESS ? FILCH_OK : lose(device, result, "cuEventRecord", error);
}

filch_status fl_cuda_lane_put(fl_device *device, uint32_t index, fl_copy *copy, fl_cuda_slot *slot,
                              filch_error *error)
{
    const fl_cuda_api *api = fl_cuda_of(device)->gpu->api;
    fl_cuda_lane *lane = &fl_cuda_of(device)->lanes->lane[index];
    fl_cuda_record *record = fl_cuda_recording(fl_cuda_of(device)->lanes);
    fl_cuda_span *span = NULL;
    const char *call;
    if (FL_UNLIKELY(record != NULL)) {
        fl_cuda_record_renew(device, record);
    }
    fl_mutex_lock_soon(&lane->lock);
    if (FL_UNLIKELY(record != NULL)) {
        span = fl_cuda_span_begin(device, record, lane, copy);
    }
    CUresult result = put_copy(api, copy, lane->stream, &call);
    if (span != NULL) {
        uint64_t sequence = fl_load_relaxed(&lane->issued) + 1; /* as issue_copy has it */
        fl_cuda_span_end(device, record, lane, span, result == FL_CUDA_SUCCESS ? sequence : 0);
    }
    filch_status status = result == FL_CUDA_SUCCESS
                              ? issue_copy(device, index, slot, &copy->marker, error)
                              : fl_cuda_call_fail(device, result, call, error);
    fl_mutex_unlock(&lane->lock);
    return status;
}

/* What is copied from the host's memory must be there: streams wait for the device, not for pieces
 * to land. is_read: it is read now. */
static filch_status wait_for_bytes(const fl_device *device, const fl_copy *copy, bool is_read,
                                   filch_error *error)
{
    const fl_device *pool = device - device->info.index;
    filch_status status = FILCH_OK;
    for (uint32_t i = 0; i < copy->behind_count && status == FILCH_OK; ++i) {
        fl_marker marker = copy->behind[i];
        if (marker == 0 || fl_marker_lane(marker) != FL_LANE_OUT) {
            continue; /* nothing else writes there */
        }
        fl_device *other = (fl_device *)(uintptr_t)&pool[fl_marker_device(marker)];
        fl_cuda_lane *lane = &fl_cuda_of(other)->lanes->lane[FL_LANE_OUT];
        uint64_t sequence = fl_marker_sequence(marker);
        /* Acquire: as in pass. */
        if (is_read || (fl_load_acquire(&lane->aboard) != 0 &&
                        fl_cuda_stage_bound(lane->stage, lane, sequence) < sequence)) {
            status = fl_cuda_stage_await(other, marker, error);
        }
    }
    return status;
}

filch_status fl_cuda_copy(fl_device *device, fl_copy *copy, filch_error *error)
{
    fl_cuda_device *state = fl_cuda_of(device);
    bool is_inward = copy->to_device != NULL && copy->to_device->place == device->place;
    uint32_t from = copy->from_device != NULL ? copy->from_device->place : 0;
    uint32_t index = is_inward ? fl_copy_lane(device->place, from) : FL_LANE_OUT;
    fl_cuda_lane *lane = &state->lanes->lane[index];
    fl_cuda_scope scope;
    filch_status status = fl_cuda_enter(state->gpu, &scope, error);
    if (status != FILCH_OK) {
        return status;
    }
    /* Not under our lock: each wait takes another lane's, and that one may be waiting for ours.
     * Another thread's copy may come between; it then waits for what it need not, but which was
     * put on its lane before, so nothing can wait for each other. */
    status = wait_for_all(device, lane, copy->behind, copy->behind_count, error);
    status = status == FILCH_OK ? wait_for_all(device, lane, &copy->vacant, 1, error) : status;
    bool is_staged = status == FILCH_OK && fl_cuda_stage_takes(device, copy);
    if (status == FILCH_OK && copy->from_device == NULL) {
        status = wait_for_bytes(device, copy, is_staged, error);
    }
    if (status == FILCH_OK && is_staged) {
        status = fl_cuda_stage_copy(device, copy, error);
    } else if (status == FILCH_OK) {
        fl_cuda_stage_make_way(device, copy);
        status = fl_cuda_lane_put(device, index, copy, NULL, error);
    }
    fl_cuda_leave(&scope);
    return status;
}

filch_status fl_cuda_clear(fl_device *device, void *block, size_t bytes, fl_marker behind,
                           fl_marker *marker, filch_error *error)
{
    fl_cuda_device *state = fl_cuda_of(device);
    fl_cuda_lane *lane = &state->lanes->lane[FL_LANE_IN];
    fl_cuda_scope scope;
    filch_status status = fl_cuda_enter(state->gpu, &scope, error);
    if (status != FILCH_OK) {
        return status;
    }
    status = wait_for_all(device, lane, &behind, 1, error); /* not under our lock: as for copies */
    fl_mutex_lock(&lane->lock);
    if (status == FILCH_OK) {
        CUresult result =
            state->gpu->api->cuMemsetD8Async((CUdeviceptr)(uintptr_t)block, 0, bytes, lane->stream);
        status = result == FL_CUDA_SUCCESS
                     ? issue_copy(device, FL_LANE_IN, NULL, marker, error)
                     : fl_cuda_call_fail(device, result, "cuMemsetD8Async", error);
    }
    fl_mutex_unlock(&lane->lock);
    fl_cuda_leave(&scope);
    return status;
}

/* --- Others --- */

/* Waits for what is aboard, or is landing though the device is lost. */
static filch_status drain_aboard(fl_device *device, filch_error *error)
{
    fl_cuda_lane *lane = &fl_cuda_of(device)->lanes->lane[FL_LANE_OUT];
    /* Acquire: as in pass. */
    if (fl_load_acquire(&lane->aboard) == 0) {
        return FILCH_OK;
    }
    fl_mutex_lock(&lane->lock);
    uint64_t issued = fl_load_relaxed(&lane->issued);
    fl_mutex_unlock(&lane->lock);
    return fl_cuda_stage_await(device, fl_marker_make(device->info.index, FL_LANE_OUT, issued),
                               error);
}

filch_status fl_cuda_drain(fl_device *device, filch_error *error)
{
    fl_cuda_device *state = fl_cuda_of(device);
    fl_cuda_scope scope;
    filch_status status = fl_cuda_enter(state->gpu, &scope, error);
    if (status != FILCH_OK) {
        (void)drain_aboard(device, NULL);
        return status;
    }
    /* A lane that fails is no reason to leave another at its work. */
    for (uint32_t i = 0; i < FL_LANES; ++i) {
        CUresult result = FL_CUDA_SUCCESS;
        if (is_used(state->lanes, i)) {
            result = state->gpu->api->cuStreamSynchronize(state->lanes->lane[i].stream);
        }
        if (result != FL_CUDA_SUCCESS && status == FILCH_OK) {
            status = fl_cuda_call_fail(device, result, "cuStreamSynchronize", error);
        }
    }
    fl_cuda_leave(&scope);
    filch_status landed = drain_aboard(device, status == FILCH_OK ? error : NULL);
    return status == FILCH_OK ? landed : status;
}

int fl_cuda_each_lane(fl_device *device, int (*body)(const filch_lane *lane, void *user),
                      void *user)
{
    fl_cuda_device *state = fl_cuda_of(device);
    fl_cuda_scope scope;
    if (fl_cuda_enter(state->gpu, &scope, NULL) != FILCH_OK) {
        return -1;
    }
    int code = 0;
    for (uint32_t i = 0; i < state->lanes->count && code == 0; ++i) {
        filch_lane lane = describe_lane(device, i);
        code = body(&lane, user);
    }
    fl_cuda_leave(&scope);
    return code;
}
