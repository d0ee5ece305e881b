/* SPDX-License-Identifier: Apache-2.0 */
/* Start and end of copies and work items, by the device's own clock, while a trace records.
 *
 * A copy is put between two events. Once the copy's lane is past both, the events tell the copy's
 * start and duration. Events only tell distances, so a device has a *base*: an event whose time on
 * the host's clock is known. The distance comes as a float of milliseconds; the base is therefore
 * renewed every few seconds. The bases of the last two epochs are kept, for copies under way at the
 * renewal. */
#ifndef FL_BACKEND_CUDA_QUEUE_SPAN_H
#define FL_BACKEND_CUDA_QUEUE_SPAN_H

#include "backend/backend.h"
#include "backend/cuda/driver/api.h"
#include "base/atomic.h"
#include "base/thread.h"
#include "observe/trace.h"

/* Spans of a copy lane: one more than the operations marked and not past, so no copy need go
 * unrecorded. */
#define FL_CUDA_SPANS 129

struct fl_cuda_lane;

typedef struct fl_cuda_span {
    CUevent start, stop;
    uint64_t sequence, bytes;
    uint64_t epoch; /* epoch of the base when the copy was put on the lane */
    uint32_t other; /* index of the other device, or FL_TRACE_HOST */
    uint8_t kind;
} fl_cuda_span;

/* Spans of a copy lane, under the lane's lock. */
typedef struct fl_cuda_spans {
    fl_cuda_span at[FL_CUDA_SPANS];
    uint32_t made; /* spans with events: fewer where the driver refused events */
    uint32_t oldest, count;
    uint32_t readers; /* readers of the ring: nothing is added meanwhile */
    fl_trace_ring *ring;
} fl_cuda_spans;

/* State for recording a device; made by the device's first trace, freed with the lanes. */
typedef struct fl_cuda_record {
    /* guards everything but the spans; taken inside a lane's lock, never the other way round */
    fl_mutex lock;
    CUstream stream; /* stream of the bases alone */
    CUevent base[2]; /* base of an epoch, indexed by the epoch's lowest bit */
    uint64_t host[2];
    /* relaxed: the lock orders all data used with the epoch; 0: no base yet */
    _Atomic uint64_t epoch;
    /* time of the last attempt to make a base; relaxed: only guesses the base's age */
    _Atomic uint64_t tried;
    fl_cuda_spans spans[FL_COPY_LANES];
} fl_cuda_record;

/* Frees the record; the device's context is current. Null: nothing. */
void fl_cuda_record_free(fl_device *device, const fl_memory *memory, fl_cuda_record *record);
/* Renews an old base, with the context current. Any thread; may wait for a few microseconds. */
void fl_cuda_record_renew(fl_device *device, fl_cuda_record *record);
/* Returns the host's time at which an event was passed, or 0 where unknown. The context is current;
 * the event, put on a stream in the given epoch, is past. */
uint64_t fl_cuda_record_when(const fl_device *device, fl_cuda_record *record, uint64_t epoch,
                             CUevent event);

/* Begin and end recording a copy, around putting the copy on its lane. The lane's lock is held and
 * the context current. Null: the copy is not recorded. sequence: the copy's future sequence; 0 if
 * the copy failed. */
fl_cuda_span *fl_cuda_span_begin(fl_device *device, fl_cuda_record *record,
                                 struct fl_cuda_lane *lane, const fl_copy *copy);
void fl_cuda_span_end(fl_device *device, fl_cuda_record *record, struct fl_cuda_lane *lane,
                      fl_cuda_span *span, uint64_t sequence);

/* Members of the table of operations; see backend.h. */
filch_status fl_cuda_trace_start(fl_device *device, const fl_memory *memory,
                                 fl_trace_ring *const rings[FL_COPY_LANES]);
void fl_cuda_trace_stop(fl_device *device);
void fl_cuda_trace_hold(fl_device *device, bool begins);
uint64_t fl_cuda_began(const fl_device *device);

#endif
