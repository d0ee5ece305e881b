/* SPDX-License-Identifier: Apache-2.0 */
#include "backend/cuda/queue/lane.h"

#include <string.h>

#include "backend/cuda/device.h"
#include "backend/cuda/queue/graph.h"
#include "backend/cuda/queue/pack.h"
#include "backend/cuda/queue/span.h"
#include "backend/cuda/queue/stage.h"
#include "backend/cuda/queue/timer.h"
#include "base/clock.h"

/* Marks the device lost, after a lane could not be waited for or a wait failed: the driver reports
 * failed work by failed waits. */
static filch_status lose(const fl_device *device, CUresult result, const char *call,
                         filch_error *error)
{
    return fl_cuda_lose(fl_cuda_of(device)->gpu, result, call, device->info.name, error);
}

/* Returns whether the device now answers every call with the given result: queries an event no
 * longer needed. */
static bool is_stuck(const fl_device *device, CUresult result)
{
    const fl_cuda_device *state = fl_cuda_of(device);
    CUevent event = state->lanes != NULL ? state->lanes->lane[0].events[0] : NULL;
    return event != NULL && state->gpu->api->cuEventQuery(event) == result;
}

filch_status fl_cuda_call_fail(const fl_device *device, CUresult result, const char *call,
                               filch_error *error)
{
    /* Any call may report a failure of earlier work. */
    return is_stuck(device, result) ? lose(device, result, call, error)
                                    : fl_cuda_fail(fl_cuda_of(device)->gpu, result, call,
                                                   device->info.name, NULL, error);
}

static bool is_reached(const fl_cuda_lane *lane, uint64_t sequence)
{
    /* Acquire: all earlier writes of the device are visible. */
    return fl_load_acquire(&lane->reached) >= sequence;
}

static bool is_passed(const fl_cuda_lane *lane, uint64_t sequence)
{
    /* Acquire: see is_reached. */
    return fl_load_acquire(&lane->passed) >= sequence;
}

/* Returns the record in use, or null while no trace records. Acquire: the record was made before
 * its publication. The record lives as long as the lanes, and stays usable after recording has
 * stopped. */
static fl_cuda_record *recording(const fl_cuda_lanes *lanes)
{
    return fl_load_acquire(&lanes->recording);
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

/* Returns whether the device's context works. The driver hangs or crashes when destroying graphs of
 * a context reset by the host, but answers for events. */
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
    fl_cuda_timers_close(api, lanes);
    fl_cuda_record_free(device, memory, lanes->record);
    fl_free_aligned(memory, lanes, sizeof *lanes, 64);
    state->lanes = NULL;
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
        /* Slices get no batches: a graph's kernels run on the whole GPU, whatever the slice of the
         * stream. */
        if (status == FILCH_OK && i < lanes->count && state->slice == NULL &&
            (lanes->lane[i].pack = fl_cuda_pack_new(memory)) == NULL) {
            status = fl_error_fill(
                error, (fl_fault){.status = FILCH_OUT_OF_MEMORY, .device = device->info.name},
                "no memory for lanes");
        }
    }
    if (status == FILCH_OK) {
        CUresult result = fl_cuda_timers_open(state->gpu->api, lanes);
        status = result == FL_CUDA_SUCCESS
                     ? FILCH_OK
                     : fl_cuda_call_fail(device, result, "cuEventCreate", error);
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

/* --- Held launches --- */

/* Puts held launches on the lane; owner only. poll reports the driver's result for every item. */
static __attribute__((noinline)) void put_held(const fl_device *device, fl_cuda_lane *lane)
{
    CUresult results[FL_CUDA_PACK];
    uint32_t count = lane->pack != NULL ? fl_cuda_pack_count(lane->pack) : 0;
    if (count == 0 ||
        fl_cuda_pack_put(fl_cuda_of(device)->gpu->api, lane->pack, lane->stream, results)) {
        return;
    }
    /* Held items are the newest of the lane: no other operation is put on the lane meanwhile. */
    uint32_t oldest = lane->first + lane->in_flight - count;
    for (uint32_t i = 0; i < count; ++i) {
        lane->tiles[(oldest + i) % FL_CUDA_TILES].result = results[i];
    }
}

/* --- Events --- */

/* Notes that the device is past a point, and moves reached up to the first piece not landed. Under
 * the lane's lock. */
static void pass(fl_cuda_lane *lane, uint64_t point)
{
    /* Release: pairs with is_passed. The point only moves forward, as the lock is held. */
    fl_store_release(&lane->passed, point);
    /* Acquire: the bytes of landed pieces. Pieces come aboard under the lock only. */
    if (FL_UNLIKELY(fl_load_acquire(&lane->aboard) != 0)) {
        point = fl_cuda_stage_bound(lane->stage, lane, point);
    }
    /* Release: pairs with is_reached. Landed pieces stay landed: the point moves forward, too. */
    fl_store_release(&lane->reached, point);
}

/* Retires complete events. Under the lane's lock. */
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

/* Waits for all operations issued so far, after recording an event failed. Under the lane's lock.
 * Operations use the caller's memory; therefore no operation may stay unmarked. */
static CUresult wait_out(const fl_cuda_api *api, fl_cuda_lane *lane, CUresult why)
{
    uint64_t issued = fl_load_relaxed(&lane->issued); /* as in mark_lane */
    if (api->cuStreamSynchronize(lane->stream) != FL_CUDA_SUCCESS) {
        return why;
    }
    lane->recorded = 0;
    /* Keep the order of look and mark_lane: passed before marked. */
    pass(lane, issued);
    fl_store_release(&lane->marked, issued);
    return FL_CUDA_SUCCESS;
}

/* Marks all operations issued so far. Under the lane's lock. Waits for the oldest event where every
 * event is in use: far more events exist than items or copies needed at once. */
static CUresult mark_lane(const fl_cuda_api *api, fl_cuda_lane *lane)
{
    /* ours: only this thread issues, or the lock is held */
    uint64_t issued = fl_load_relaxed(&lane->issued);
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
    /* Release: the event is recorded, and in the ring, before any thread is told to wait for the
     * event. */
    fl_store_release(&lane->marked, issued);
    return FL_CUDA_SUCCESS;
}

/* Returns the number of a compute lane's items launched since its last mark; the owner. */
static uint64_t count_unmarked(const fl_cuda_lane *lane)
{
    /* both values are the owner's */
    return fl_load_relaxed(&lane->issued) - fl_load_relaxed(&lane->marked);
}

/* Puts held launches on a compute lane, and marks all its items; the owner. */
static __attribute__((noinline)) filch_status mark_all(const fl_device *device, fl_cuda_lane *lane,
                                                       filch_error *error)
{
    if (count_unmarked(lane) == 0) {
        return FILCH_OK;
    }
    put_held(device, lane);
    fl_mutex_lock(&lane->lock);
    CUresult result = mark_lane(fl_cuda_of(device)->gpu->api, lane);
    fl_mutex_unlock(&lane->lock);
    return result == FL_CUDA_SUCCESS ? FILCH_OK : lose(device, result, "cuEventRecord", error);
}

filch_status fl_cuda_mark(fl_device *device, filch_error *error)
{
    fl_cuda_lanes *lanes = fl_cuda_of(device)->lanes;
    filch_status status = FILCH_OK;
    for (uint32_t i = 0; i < lanes->count && status == FILCH_OK; ++i) {
        status = mark_all(device, &lanes->lane[i], error);
    }
    return status;
}

/* Marks the lanes that have an old unmarked item. Ignores a failure: the device is lost then, as
 * the worker's next step finds (fl_pipeline_is_down). */
static __attribute__((noinline)) void mark_old(const fl_device *device, uint64_t now)
{
    fl_cuda_lanes *lanes = fl_cuda_of(device)->lanes;
    lanes->oldest_at = now;
    for (uint32_t i = 0; i < lanes->count; ++i) {
        fl_cuda_lane *lane = &lanes->lane[i];
        if (count_unmarked(lane) == 0) {
            continue;
        }
        if (now - lane->unmarked_at >= FL_MARK_NS) {
            (void)mark_all(device, lane, NULL);
        } else if (lane->unmarked_at < lanes->oldest_at) {
            lanes->oldest_at = lane->unmarked_at;
        }
    }
}

bool fl_cuda_is_marked(const fl_device *device, fl_marker marker)
{
    const fl_cuda_lane *lane = &fl_cuda_of(device)->lanes->lane[fl_marker_lane(marker)];
    /* Acquire: the ring of events at the time of the mark. */
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
        fl_cuda_stage_quiet(state->gpu->stage); /* the caller may free the target of landings */
    }
    return status != FILCH_OK ? status : is_reached(lane, sequence) ? FILCH_OK : FILCH_NOT_READY;
}

/* Makes the stream's next operation wait for a marker of any device of the backend. */
static filch_status wait_for(const fl_device *device, fl_cuda_lane *waiting, fl_marker marker,
                             filch_error *error)
{
    fl_cuda_device *state = fl_cuda_of(device);
    const fl_device *pool = device - device->info.index;
    const fl_device *other = pool + fl_marker_device(marker);
    fl_cuda_lane *lane = &fl_cuda_of(other)->lanes->lane[fl_marker_lane(marker)];
    uint64_t sequence = fl_marker_sequence(marker);
    /* No wait needed: a lane is in order, and passed operations are over on the device. A piece may
     * still be landing on the host; the waiting operation uses only the piece's source. */
    if (lane == waiting || is_passed(lane, sequence)) {
        return FILCH_OK;
    }
    CUresult result = FL_CUDA_SUCCESS;
    put_held(device, waiting); /* earlier launches do not wait */
    /* Relaxed: the caller knows of the mark, or owns the lane. */
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
            /* Wait under the lock: no thread records the event anew meanwhile. */
            result = state->gpu->api->cuStreamWaitEvent(waiting->stream, lane->events[at], 0);
            break;
        }
    }
    fl_mutex_unlock(&lane->lock);
    if (result == FL_CUDA_SUCCESS) {
        return FILCH_OK;
    }
    /* A failure of the event's own context is no loss of the waiting device. */
    return fl_cuda_of(other)->gpu != state->gpu && is_stuck(other, result)
               ? lose(other, result, "cuStreamWaitEvent", error)
               : fl_cuda_call_fail(device, result, "cuStreamWaitEvent", error);
}

static __attribute__((noinline)) filch_status wait_for_all(const fl_device *device,
                                                           fl_cuda_lane *waiting,
                                                           const fl_marker *behind, uint32_t count,
                                                           filch_error *error)
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

/* --- Work items --- */

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
    if (launch->graph != NULL) {
        CUresult launched =
            api->cuGraphLaunch(fl_cuda_graph_executable(launch->graph), lane->stream);
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

/* Holds a launch back, where possible; the device has other items to run meanwhile. */
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

/* Gives an item on the lane, or held back, the next sequence number. */
static void issue(fl_device *device, fl_cuda_lane *lane, fl_launch *launch, uint32_t timer,
                  uint64_t now)
{
    /* only the owner issues on a compute lane */
    uint64_t sequence = fl_load_relaxed(&lane->issued) + 1;
    fl_store_relaxed(&lane->issued, sequence);
    launch->marker = fl_marker_make(device->info.index, launch->lane, sequence);
    lane->tiles[(lane->first + lane->in_flight) % FL_CUDA_TILES] =
        (fl_cuda_tile){launch->tag, timer, FL_CUDA_SUCCESS};
    ++lane->in_flight;
    uint64_t unmarked = count_unmarked(lane);
    if (unmarked == 1) {
        lane->unmarked_at = now;
    }
    if (unmarked >= FL_MARK_TILES) {
        (void)mark_all(device, lane, NULL); /* a failure: as in mark_old */
    }
    if (now - fl_cuda_of(device)->lanes->oldest_at >= FL_MARK_NS) {
        mark_old(device, now);
    }
}

/* Puts an item on the lane's stream, behind the held launches. *timer: the item's, or none. */
static __attribute__((noinline)) filch_status put_behind_held(fl_device *device, fl_launch *launch,
                                                              fl_cuda_lane *lane, uint32_t *timer,
                                                              filch_error *error)
{
    fl_cuda_device *state = fl_cuda_of(device);
    fl_cuda_lanes *lanes = state->lanes;
    put_held(device, lane);
    if (launch->timed) {
        *timer = fl_cuda_timer_start(device, lane, recording(lanes));
    }
    filch_status status = put(device, launch, lane, error);
    /* An operation on the lane is in flight, whatever else fails. */
    if (*timer != FL_CUDA_NO_TIMER && status != FILCH_OK) {
        fl_cuda_timer_drop(lanes, *timer);
    } else if (*timer != FL_CUDA_NO_TIMER && !fl_cuda_timer_stop(device, lane, *timer)) {
        *timer = FL_CUDA_NO_TIMER;
    }
    if (status != FILCH_OK && launch->enqueue != NULL) {
        /* a failed enqueue may have put work on the stream */
        (void)state->gpu->api->cuStreamSynchronize(lane->stream);
    }
    return status;
}

filch_status fl_cuda_launch(fl_device *device, fl_launch *launch, uint64_t now, filch_error *error)
{
    fl_cuda_lane *lane = &fl_cuda_of(device)->lanes->lane[launch->lane];
    uint32_t timer = FL_CUDA_NO_TIMER;
    if (lane->in_flight == FL_CUDA_TILES) {
        return FILCH_BUSY;
    }
    filch_status status = FILCH_OK;
    if (launch->behind_count != 0) {
        status = wait_for_all(device, lane, launch->behind, launch->behind_count, error);
    }
    if (status == FILCH_OK && !hold(device, lane, launch)) {
        status = put_behind_held(device, launch, lane, &timer, error);
    }
    if (status == FILCH_OK) {
        issue(device, lane, launch, timer, now);
    }
    return status;
}

/* Tells whether the lane's oldest item is known to be over. False without an item in flight. */
static bool is_finished(const fl_cuda_lane *lane)
{
    /* Every operation of a compute lane is an item. Relaxed: only the owner issues. Without an item
     * in flight the number is the next item's. */
    return is_reached(lane, fl_load_relaxed(&lane->issued) - lane->in_flight + 1);
}

static bool is_timed(const fl_cuda_lane *lane)
{
    return lane->tiles[lane->first].timer != FL_CUDA_NO_TIMER;
}

/* Of the lanes whose oldest item is finished and timed, returns the one whose item ended first. At
 * least one is. */
static __attribute__((noinline)) fl_cuda_lane *find_first_timed(const fl_device *device)
{
    fl_cuda_lanes *lanes = fl_cuda_of(device)->lanes;
    fl_cuda_lane *first = NULL;
    for (uint32_t i = 0; i < lanes->count; ++i) {
        fl_cuda_lane *lane = &lanes->lane[i];
        if (is_finished(lane) && is_timed(lane) &&
            (first == NULL || fl_cuda_timer_is_before(device, lane->tiles[lane->first].timer,
                                                      first->tiles[first->first].timer))) {
            first = lane;
        }
    }
    return first;
}

/* Returns a lane whose oldest item is known to be finished: an item without a timer, or the item
 * that ended first. Null: none. In line: runs for each item. */
static inline __attribute__((always_inline)) fl_cuda_lane *find_finished(const fl_device *device)
{
    fl_cuda_lanes *lanes = fl_cuda_of(device)->lanes;
    bool any_timed = false;
    for (uint32_t i = 0; i < lanes->count; ++i) {
        fl_cuda_lane *lane = &lanes->lane[i];
        if (is_finished(lane)) {
            if (!is_timed(lane)) {
                return lane;
            }
            any_timed = true;
        }
    }
    return FL_UNLIKELY(any_timed) ? find_first_timed(device) : NULL;
}

/* Reports the refusal of a launch that was held back. */
static __attribute__((noinline)) filch_status refuse_held(const fl_device *device, CUresult result,
                                                          filch_error *error)
{
    filch_status status = fl_cuda_call_fail(device, result, "cuLaunchKernel", error);
    return status == FILCH_DEVICE_LOST ? status : FILCH_TASK_FAILED;
}

/* Reports the lane's oldest item, which is finished, with the statuses of poll. In line: runs for
 * each item. */
static inline __attribute__((always_inline)) filch_status
take_finished(const fl_device *device, fl_cuda_lane *lane, uint64_t *tag, uint64_t *busy_ns,
              filch_error *error)
{
    const fl_cuda_tile *tile = &lane->tiles[lane->first];
    *tag = tile->tag;
    *busy_ns = is_timed(lane) ? fl_cuda_timer_read(device, lane) : UINT64_MAX;
    lane->first = (lane->first + 1) % FL_CUDA_TILES;
    --lane->in_flight;
    return FL_LIKELY(tile->result == FL_CUDA_SUCCESS) ? FILCH_OK
                                                      : refuse_held(device, tile->result, error);
}

/* Looks at the oldest events of the lanes, until an item without a timer is finished. *next: now
 * where an item is in flight; else unchanged. */
static filch_status look_at_lanes(const fl_device *device, uint64_t now, uint64_t *next,
                                  filch_error *error)
{
    const fl_cuda_device *state = fl_cuda_of(device);
    fl_cuda_lanes *lanes = state->lanes;
    for (uint32_t i = 0; i < lanes->count; ++i) {
        fl_cuda_lane *lane = &lanes->lane[i];
        if (lane->in_flight == 0) {
            continue;
        }
        *next = now;
        fl_mutex_lock(&lane->lock);
        CUresult result = look(state->gpu->api, lane);
        fl_mutex_unlock(&lane->lock);
        if (result != FL_CUDA_SUCCESS) {
            return lose(device, result, "cuEventQuery", error);
        }
        /* Another lane's timed item may have ended before this one. */
        if (is_finished(lane) && !is_timed(lane)) {
            break;
        }
    }
    return FILCH_OK;
}

/* Asks the driver, and reports an item as poll does. */
static __attribute__((noinline)) filch_status ask_driver(const fl_device *device, uint64_t now,
                                                         uint64_t *tag, uint64_t *busy_ns,
                                                         uint64_t *next, filch_error *error)
{
    filch_status status = look_at_lanes(device, now, next, error);
    if (status != FILCH_OK) {
        return status;
    }
    fl_cuda_lane *finished = find_finished(device);
    return finished != NULL ? take_finished(device, finished, tag, busy_ns, error)
                            : FILCH_NOT_READY;
}

filch_status fl_cuda_poll(fl_device *device, uint64_t now, uint64_t *tag, uint64_t *busy_ns,
                          uint64_t *next, filch_error *error)
{
    /* Take items known to be finished first. */
    fl_cuda_lane *finished = find_finished(device);
    *next = FL_TIME_NEVER;
    return finished != NULL ? take_finished(device, finished, tag, busy_ns, error)
                            : ask_driver(device, now, tag, busy_ns, next, error);
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

/* Gives the last operation put on the copy lane the next sequence number, and marks the operation.
 * Under the lane's lock. */
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
    fl_cuda_record *record = recording(fl_cuda_of(device)->lanes);
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
        uint64_t sequence = fl_load_relaxed(&lane->issued) + 1; /* as in issue_copy */
        fl_cuda_span_end(device, record, lane, span, result == FL_CUDA_SUCCESS ? sequence : 0);
    }
    filch_status status = result == FL_CUDA_SUCCESS
                              ? issue_copy(device, index, slot, &copy->marker, error)
                              : fl_cuda_call_fail(device, result, call, error);
    fl_mutex_unlock(&lane->lock);
    return status;
}

/* Waits for the bytes of a copy from the host's memory: streams wait for the device, not for
 * landings. is_read: the call itself reads the bytes. */
static filch_status wait_for_bytes(const fl_device *device, const fl_copy *copy, bool is_read,
                                   filch_error *error)
{
    const fl_device *pool = device - device->info.index;
    filch_status status = FILCH_OK;
    for (uint32_t i = 0; i < copy->behind_count && status == FILCH_OK; ++i) {
        fl_marker marker = copy->behind[i];
        if (marker == 0 || fl_marker_lane(marker) != FL_LANE_OUT) {
            continue; /* no other lane writes to the host's memory */
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
    uint32_t index = fl_lane_of_copy(device, copy);
    fl_cuda_lane *lane = &state->lanes->lane[index];
    fl_cuda_scope scope;
    filch_status status = fl_cuda_enter(state->gpu, &scope, error);
    if (status != FILCH_OK) {
        return status;
    }
    /* Wait without this lane's lock: each wait takes another lane's lock, and a holder of the other
     * lock may wait for this lane's. Another thread's copy may come between and wait needlessly,
     * but only for operations put on their lanes earlier. No cycle of waits is possible. */
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
    status = wait_for_all(device, lane, &behind, 1, error); /* no lock held: see fl_cuda_copy */
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

/* --- Draining and streams --- */

/* Waits for pieces aboard, or for landings under way on a lost device. */
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
    /* A failed lane is no reason to leave another lane working. */
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
