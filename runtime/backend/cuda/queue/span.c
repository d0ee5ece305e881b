/* SPDX-License-Identifier: Apache-2.0 */
#include "backend/cuda/queue/span.h"

#include <string.h>

#include "backend/cuda/device.h"
#include "backend/cuda/queue/lane.h"
#include "base/clock.h"

/* Below 4.2 s, values of a float of milliseconds are a quarter of a microsecond apart. */
#define EPOCH_NS 4000000000u
/* Time from recording to seeing the event that makes a base good; every try allows twice the time
 * of the last. */
#define GOOD_NS 10000u
#define TRIES 8
/* Longest wait for an event on an otherwise empty stream; a slower stream never answers. */
#define MOST_NS 1000000000u

static fl_cuda_spans *spans_of(fl_cuda_record *record, const fl_device *device,
                               const fl_cuda_lane *lane)
{
    return &record->spans[lane - &fl_cuda_of(device)->lanes->lane[FL_LANE_IN]];
}

/* --- The base --- */

/* Records the event and waits for the event. Under the lock. False: the device does not answer. */
static bool try_base(const fl_cuda_api *api, const fl_cuda_record *record, CUevent event,
                     uint64_t *host, uint64_t *within)
{
    uint64_t before = fl_time_now(), after = before;
    CUresult result = api->cuEventRecord(event, record->stream);
    while (result == FL_CUDA_SUCCESS &&
           (result = api->cuEventQuery(event)) == FL_CUDA_ERROR_NOT_READY &&
           after - before < MOST_NS) {
        result = FL_CUDA_SUCCESS;
        fl_relax();
        after = fl_time_now();
    }
    after = fl_time_now();
    *host = before + (after - before) / 2;
    *within = after - before;
    return result == FL_CUDA_SUCCESS;
}

/* Makes the base of the next epoch. Under the lock. */
static void make_base(const fl_cuda_api *api, fl_cuda_record *record)
{
    uint64_t epoch = fl_load_relaxed(&record->epoch) + 1, within = 0;
    uint64_t *host = &record->host[epoch % 2];
    bool is_made = true, is_good = false;
    for (uint32_t i = 0; i < TRIES && is_made && !is_good; ++i) {
        is_made = try_base(api, record, record->base[epoch % 2], host, &within);
        is_good = within <= (uint64_t)GOOD_NS << i;
    }
    if (is_made) {
        fl_store_relaxed(&record->epoch, epoch);
    } else {
        *host = 0; /* the base before the last is overwritten; the last base still serves */
    }
}

uint64_t fl_cuda_record_when(const fl_device *device, fl_cuda_record *record, uint64_t epoch,
                             CUevent event)
{
    const fl_cuda_api *api = fl_cuda_of(device)->gpu->api;
    uint64_t when = 0;
    float ms = 0;
    fl_mutex_lock(&record->lock);
    uint64_t newest = fl_load_relaxed(&record->epoch);
    if (epoch != 0 && newest - epoch < 2 && record->host[epoch % 2] != 0 &&
        api->cuEventElapsedTime(&ms, record->base[epoch % 2], event) == FL_CUDA_SUCCESS) {
        when = record->host[epoch % 2] + (uint64_t)(int64_t)((double)ms * 1e6);
    }
    fl_mutex_unlock(&record->lock);
    return when;
}

/* --- Spans --- */

/* Adds spans already past to the trace. Under the lane's lock. */
static void take_spans(fl_device *device, fl_cuda_record *record, const fl_cuda_lane *lane)
{
    const fl_cuda_api *api = fl_cuda_of(device)->gpu->api;
    fl_cuda_spans *spans = spans_of(record, device, lane);
    /* Relaxed: passed moves under the lock, and the copied bytes are not read. */
    uint64_t passed = fl_load_relaxed(&lane->passed);
    while (spans->count != 0 && spans->readers == 0 &&
           spans->at[spans->oldest].sequence <= passed) {
        const fl_cuda_span *span = &spans->at[spans->oldest];
        uint64_t start = fl_cuda_record_when(device, record, span->epoch, span->start);
        float ms = 0;
        if (start != 0 &&
            api->cuEventElapsedTime(&ms, span->start, span->stop) == FL_CUDA_SUCCESS) {
            fl_trace_add(spans->ring, (fl_trace_event){.start = start,
                                                       .end = start + (uint64_t)((double)ms * 1e6),
                                                       .first = span->bytes,
                                                       .other = span->other,
                                                       .kind = span->kind});
        } else {
            ++spans->ring->missed;
        }
        spans->oldest = (spans->oldest + 1) % spans->made;
        --spans->count;
    }
}

static void take_lanes(fl_device *device, fl_cuda_record *record)
{
    for (uint32_t index = FL_LANE_IN; index < FL_LANES; ++index) {
        fl_cuda_lane *lane = &fl_cuda_of(device)->lanes->lane[index];
        if (lane->stream != NULL) {
            (void)fl_cuda_lane_look(device, index, NULL); /* other calls report a loss */
            fl_mutex_lock(&lane->lock);
            take_spans(device, record, lane);
            fl_mutex_unlock(&lane->lock);
        }
    }
}

void fl_cuda_record_renew(fl_device *device, fl_cuda_record *record)
{
    uint64_t now = fl_time_now();
    if (FL_LIKELY(now - fl_load_relaxed(&record->tried) < EPOCH_NS)) {
        return;
    }
    /* Time past spans by the existing bases first. */
    take_lanes(device, record);
    fl_mutex_lock(&record->lock);
    if (now - fl_load_relaxed(&record->tried) >= EPOCH_NS) {
        if (record->base[1] != NULL) {
            make_base(fl_cuda_of(device)->gpu->api, record);
        }
        fl_store_relaxed(&record->tried, fl_time_now());
    }
    fl_mutex_unlock(&record->lock);
}

static uint8_t kind_of(const fl_copy *copy)
{
    return copy->from_device == NULL                            ? FL_TRACE_IN
           : copy->to_device == NULL                            ? FL_TRACE_OUT
           : copy->to_device->place == copy->from_device->place ? FL_TRACE_INNER
                                                                : FL_TRACE_PEER;
}

fl_cuda_span *fl_cuda_span_begin(fl_device *device, fl_cuda_record *record, fl_cuda_lane *lane,
                                 const fl_copy *copy)
{
    fl_cuda_spans *spans = spans_of(record, device, lane);
    take_spans(device, record, lane);
    if (spans->count == spans->made) {
        ++spans->ring->missed;
        return NULL;
    }
    fl_cuda_span *span = &spans->at[(spans->oldest + spans->count) % spans->made];
    /* Relaxed: at worst the epoch is too new for the span, and the span is missed. */
    span->epoch = fl_load_relaxed(&record->epoch);
    span->bytes = copy->width * copy->height;
    span->kind = kind_of(copy);
    span->other = span->kind == FL_TRACE_IN || span->kind == FL_TRACE_OUT
                      ? FL_TRACE_HOST
                      : copy->from_device->info.index;
    if (fl_cuda_of(device)->gpu->api->cuEventRecord(span->start, lane->stream) != FL_CUDA_SUCCESS) {
        ++spans->ring->missed;
        return NULL;
    }
    return span;
}

void fl_cuda_span_end(fl_device *device, fl_cuda_record *record, fl_cuda_lane *lane,
                      fl_cuda_span *span, uint64_t sequence)
{
    fl_cuda_spans *spans = spans_of(record, device, lane);
    if (sequence == 0) {
        return; /* the span's place stays free */
    }
    if (fl_cuda_of(device)->gpu->api->cuEventRecord(span->stop, lane->stream) == FL_CUDA_SUCCESS) {
        span->sequence = sequence;
        ++spans->count;
    } else {
        ++spans->ring->missed;
    }
}

/* --- Beginning and end --- */

static void open_spans(const fl_cuda_api *api, fl_cuda_spans *spans, fl_trace_ring *ring)
{
    spans->ring = ring;
    while (spans->made < FL_CUDA_SPANS) {
        fl_cuda_span *span = &spans->at[spans->made];
        if (api->cuEventCreate(&span->start, FL_CU_EVENT_DEFAULT) != FL_CUDA_SUCCESS) {
            span->start = NULL;
            return;
        }
        if (api->cuEventCreate(&span->stop, FL_CU_EVENT_DEFAULT) != FL_CUDA_SUCCESS) {
            (void)api->cuEventDestroy(span->start);
            span->start = span->stop = NULL;
            return;
        }
        ++spans->made;
    }
}

static void close_spans(const fl_cuda_api *api, const fl_cuda_spans *spans)
{
    for (uint32_t i = 0; i < spans->made; ++i) {
        (void)api->cuEventDestroy(spans->at[i].start);
        (void)api->cuEventDestroy(spans->at[i].stop);
    }
}

/* Opens the record; copies without events, where the driver refuses, are counted as missed. */
static void open_record(fl_device *device, fl_cuda_record *record,
                        fl_trace_ring *const rings[FL_COPY_LANES])
{
    const fl_cuda_api *api = fl_cuda_of(device)->gpu->api;
    if (api->cuStreamCreate(&record->stream, FL_CU_STREAM_NON_BLOCKING) != FL_CUDA_SUCCESS) {
        record->stream = NULL;
    }
    for (uint32_t i = 0; i < 2 && record->stream != NULL; ++i) {
        if (api->cuEventCreate(&record->base[i], FL_CU_EVENT_DEFAULT) != FL_CUDA_SUCCESS) {
            record->base[i] = NULL;
            break;
        }
    }
    for (uint32_t i = 0; i < FL_COPY_LANES; ++i) {
        if (fl_cuda_of(device)->lanes->lane[FL_LANE_IN + i].stream != NULL) {
            open_spans(api, &record->spans[i], rings[i]);
        }
    }
}

void fl_cuda_record_free(fl_device *device, const fl_memory *memory, fl_cuda_record *record)
{
    const fl_cuda_api *api = fl_cuda_of(device)->gpu->api;
    if (record == NULL) {
        return;
    }
    for (uint32_t i = 0; i < FL_COPY_LANES; ++i) {
        close_spans(api, &record->spans[i]);
    }
    for (uint32_t i = 0; i < 2; ++i) {
        if (record->base[i] != NULL) {
            (void)api->cuEventDestroy(record->base[i]);
        }
    }
    if (record->stream != NULL) {
        (void)api->cuStreamDestroy(record->stream);
    }
    fl_mutex_fini(&record->lock);
    fl_free(memory, record, sizeof *record);
}

static fl_cuda_record *make_record(fl_device *device, const fl_memory *memory,
                                   fl_trace_ring *const rings[FL_COPY_LANES])
{
    fl_cuda_record *record = fl_alloc_zeroed(memory, sizeof *record);
    if (record != NULL && fl_mutex_init(&record->lock) != FILCH_OK) {
        fl_free(memory, record, sizeof *record);
        return NULL;
    }
    if (record != NULL) {
        open_record(device, record, rings);
    }
    return record;
}

filch_status fl_cuda_trace_start(fl_device *device, const fl_memory *memory,
                                 fl_trace_ring *const rings[FL_COPY_LANES])
{
    fl_cuda_lanes *lanes = fl_cuda_of(device)->lanes;
    fl_cuda_scope scope;
    if (fl_cuda_enter(fl_cuda_of(device)->gpu, &scope, NULL) != FILCH_OK) {
        return FILCH_OK; /* lost device: nothing to record */
    }
    if (lanes->record == NULL) {
        lanes->record = make_record(device, memory, rings);
    }
    fl_cuda_record *record = lanes->record;
    if (record != NULL) {
        fl_cuda_record_renew(device, record);
        /* Release: pairs with recording (lane.c); the record is complete. */
        fl_store_release(&lanes->recording, record);
    }
    (void)fl_cuda_leave(&scope);
    return record != NULL ? FILCH_OK : FILCH_OUT_OF_MEMORY;
}

void fl_cuda_trace_stop(fl_device *device)
{
    /* Relaxed: nothing is handed over, and the record stays. */
    fl_store_relaxed(&fl_cuda_of(device)->lanes->recording, NULL);
}

void fl_cuda_trace_hold(fl_device *device, bool begins)
{
    fl_cuda_lanes *lanes = fl_cuda_of(device)->lanes;
    fl_cuda_record *record = lanes->record;
    fl_cuda_scope scope;
    if (record == NULL) {
        return;
    }
    if (begins && fl_cuda_enter(fl_cuda_of(device)->gpu, &scope, NULL) == FILCH_OK) {
        take_lanes(device, record);
        (void)fl_cuda_leave(&scope);
    }
    for (uint32_t index = FL_LANE_IN; index < FL_LANES; ++index) {
        fl_cuda_lane *lane = &lanes->lane[index];
        if (lane->stream != NULL) {
            fl_mutex_lock(&lane->lock);
            spans_of(record, device, lane)->readers += begins ? 1u : -1u;
            fl_mutex_unlock(&lane->lock);
        }
    }
}

uint64_t fl_cuda_began(const fl_device *device)
{
    return fl_cuda_of(device)->lanes->began;
}
