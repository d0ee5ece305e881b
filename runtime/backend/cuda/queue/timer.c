/* SPDX-License-Identifier: Apache-2.0 */
#include "backend/cuda/queue/timer.h"

#include <math.h>

#include "backend/cuda/device.h"
#include "backend/cuda/queue/span.h"

/* --- Making and taking --- */

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
    fl_cuda_timer_drop(lanes, lanes->timer_count++);
    return FL_CUDA_SUCCESS;
}

CUresult fl_cuda_timers_open(const fl_cuda_api *api, fl_cuda_lanes *lanes)
{
    CUresult result = FL_CUDA_SUCCESS;
    lanes->newest = FL_CUDA_NO_TIMER;
    while (lanes->timer_count < FL_CUDA_TIMERS && result == FL_CUDA_SUCCESS) {
        result = open_timer(api, lanes);
    }
    return result;
}

void fl_cuda_timers_close(const fl_cuda_api *api, fl_cuda_lanes *lanes)
{
    for (uint32_t i = 0; i < lanes->timer_count; ++i) {
        api->cuEventDestroy(lanes->timers[i].start);
        api->cuEventDestroy(lanes->timers[i].stop);
    }
}

uint32_t fl_cuda_timer_start(fl_device *device, const fl_cuda_lane *lane, fl_cuda_record *record)
{
    const fl_cuda_api *api = fl_cuda_of(device)->gpu->api;
    fl_cuda_lanes *lanes = fl_cuda_of(device)->lanes;
    if (FL_UNLIKELY(record != NULL)) {
        fl_cuda_record_renew(device, record);
        if (lanes->free_timer_count == 0 && lanes->timer_count < FL_CUDA_TIMERS_MOST) {
            (void)open_timer(api, lanes); /* refused: not timed */
        }
    }
    if (lanes->free_timer_count == 0) {
        return FL_CUDA_NO_TIMER;
    }
    uint32_t at = lanes->free_timers[--lanes->free_timer_count];
    fl_cuda_timer *timer = &lanes->timers[at];
    /* Relaxed: see fl_cuda_span_begin. */
    timer->epoch = record != NULL ? fl_load_relaxed(&record->epoch) : 0;
    if (api->cuEventRecord(timer->start, lane->stream) != FL_CUDA_SUCCESS) {
        fl_cuda_timer_drop(lanes, at);
        return FL_CUDA_NO_TIMER;
    }
    return at;
}

bool fl_cuda_timer_stop(const fl_device *device, const fl_cuda_lane *lane, uint32_t timer)
{
    fl_cuda_lanes *lanes = fl_cuda_of(device)->lanes;
    CUresult result =
        fl_cuda_of(device)->gpu->api->cuEventRecord(lanes->timers[timer].stop, lane->stream);
    if (result != FL_CUDA_SUCCESS) {
        fl_cuda_timer_drop(lanes, timer);
    }
    return result == FL_CUDA_SUCCESS;
}

void fl_cuda_timer_drop(fl_cuda_lanes *lanes, uint32_t timer)
{
    lanes->free_timers[lanes->free_timer_count++] = timer;
}

/* --- Times of items that run at once --- */

/* Returns the time from one event to the other, ns; INFINITY: the device is not past them. */
static double ns_between(const fl_cuda_api *api, CUevent from, CUevent to)
{
    float ms = 0;
    return api->cuEventElapsedTime(&ms, from, to) == FL_CUDA_SUCCESS ? (double)ms * 1e6
                                                                     : (double)INFINITY;
}

bool fl_cuda_timer_is_before(const fl_device *device, uint32_t first, uint32_t second)
{
    const fl_cuda_device *state = fl_cuda_of(device);
    const fl_cuda_timer *timers = state->lanes->timers;
    return ns_between(state->gpu->api, timers[first].stop, timers[second].stop) > 0;
}

/* A lane at work: it has an item since `since`, ns after an event. */
typedef struct busy_lane {
    fl_cuda_lane *lane;
    double since;
} busy_lane;

/* Adds a lane in the order of the begins. */
static void add(busy_lane *busy, uint32_t count, fl_cuda_lane *lane, double since)
{
    for (; count != 0 && busy[count - 1].since > since; --count) {
        busy[count] = busy[count - 1];
    }
    busy[count] = (busy_lane){lane, since};
}

/* Finds the lanes at work within ns after the event: a lane works from the start of its oldest item
 * on. Returns their number. *is_known: no lane may be at an item without a timer. */
static uint32_t find_busy(const fl_cuda_api *api, fl_cuda_lanes *lanes, CUevent event, double ns,
                          busy_lane *busy, bool *is_known)
{
    uint32_t count = 0;
    *is_known = true;
    for (uint32_t i = 0; i < lanes->count; ++i) {
        fl_cuda_lane *lane = &lanes->lane[i];
        if (lane->in_flight == 0) {
            continue;
        }
        uint32_t timer = lane->tiles[lane->first].timer;
        if (timer == FL_CUDA_NO_TIMER) {
            *is_known = false;
            continue;
        }
        double begin = ns_between(api, event, lanes->timers[timer].start);
        if (begin < ns) {
            add(busy, count++, lane, fmax(begin, 0));
        }
    }
    return count;
}

/* Divides the time after the event equally among the lanes at work. */
static void divide(const fl_cuda_api *api, fl_cuda_lanes *lanes, CUevent event, double ns)
{
    busy_lane busy[FL_LANE_LIMIT];
    bool is_known;
    uint32_t count = find_busy(api, lanes, event, ns, busy, &is_known);
    for (uint32_t i = 0; i < count; ++i) {
        double until = i + 1 < count ? busy[i + 1].since : ns;
        double part = is_known ? (until - busy[i].since) / (i + 1) : (double)NAN;
        for (uint32_t earlier = 0; earlier <= i; ++earlier) {
            busy[earlier].lane->own_ns += part;
        }
    }
}

/* Returns the start of the oldest item that started first. `timer` is the timer of one. */
static CUevent first_start(const fl_cuda_api *api, const fl_cuda_lanes *lanes, uint32_t timer)
{
    CUevent first = lanes->timers[timer].start;
    for (uint32_t i = 0; i < lanes->count; ++i) {
        const fl_cuda_lane *lane = &lanes->lane[i];
        uint32_t other = lane->in_flight != 0 ? lane->tiles[lane->first].timer : FL_CUDA_NO_TIMER;
        if (other != FL_CUDA_NO_TIMER && ns_between(api, first, lanes->timers[other].start) < 0) {
            first = lanes->timers[other].start;
        }
    }
    return first;
}

/* Computes the own share of an item's time. Of the item's timer and the newest timer so far, frees
 * the timer stopped first. */
static void settle(const fl_cuda_api *api, fl_cuda_lanes *lanes, fl_cuda_lane *lane, uint32_t timer,
                   double busy)
{
    uint32_t newest = lanes->newest;
    /* After an idle time, the start: times are floats, and exact over short times only. */
    CUevent event = first_start(api, lanes, timer);
    if (newest != FL_CUDA_NO_TIMER && !(ns_between(api, lanes->timers[newest].stop, event) > 0)) {
        event = lanes->timers[newest].stop;
    }
    double since = ns_between(api, event, lanes->timers[timer].stop);
    /* An item that ended before the newest one had its time counted then, and little too much. */
    bool is_newest = since >= 0;
    if (is_newest && isfinite(since)) {
        divide(api, lanes, event, since);
    }
    lanes->own = isnan(lane->own_ns) ? 0 : (uint64_t)fmin(lane->own_ns, busy);
    lane->own_ns = 0;
    lanes->newest = is_newest ? timer : newest;
    uint32_t done = is_newest ? newest : timer;
    if (done != FL_CUDA_NO_TIMER) {
        fl_cuda_timer_drop(lanes, done);
    }
}

uint64_t fl_cuda_timer_read(const fl_device *device, fl_cuda_lane *lane)
{
    const fl_cuda_api *api = fl_cuda_of(device)->gpu->api;
    fl_cuda_lanes *lanes = fl_cuda_of(device)->lanes;
    uint32_t at = lane->tiles[lane->first].timer;
    const fl_cuda_timer *timer = &lanes->timers[at];
    lanes->began = FL_UNLIKELY(timer->epoch != 0)
                       ? fl_cuda_record_when(device, lanes->record, timer->epoch, timer->start)
                       : 0;
    double busy = ns_between(api, timer->start, timer->stop);
    if (isinf(busy)) {
        lane->own_ns = 0;
        fl_cuda_timer_drop(lanes, at);
        return UINT64_MAX;
    }
    if (lanes->count > 1) {
        settle(api, lanes, lane, at, busy);
    } else {
        lanes->own = (uint64_t)busy;
        fl_cuda_timer_drop(lanes, at);
    }
    return (uint64_t)busy;
}

uint64_t fl_cuda_own(const fl_device *device)
{
    return fl_cuda_of(device)->lanes->own;
}
