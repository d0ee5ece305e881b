/* SPDX-License-Identifier: Apache-2.0 */
/* When copies and tiles ran, by the device's own clock, while a trace records.
 *
 * A copy is put between two events; once its lane is past it, they tell when it began and how long
 * it took. Events tell only how far apart they are, so that a device has a *base*: an event whose
 * time on the host's clock is known. The distance comes as a float of milliseconds, which is why
 * the base is made anew every few seconds. Those of the last two epochs are kept, for what was
 * under way when the newer was made. */
#ifndef FL_BACKEND_CUDA_QUEUE_SPAN_H
#define FL_BACKEND_CUDA_QUEUE_SPAN_H

#include "backend/backend.h"
#include "backend/cuda/driver/api.h"
#include "base/atomic.h"
#include "base/thread.h"
#include "observe/trace.h"

/* One more than the operations of a copy lane that are marked and not past: no copy need go
 * unrecorded. */
#define FL_CUDA_SPANS 129

struct fl_cuda_lane;

typedef struct fl_cuda_span {
    CUevent start, stop;
    uint64_t sequence, bytes;
    uint64_t epoch; /* of the base when it was put on the lane */
    uint32_t other; /* the other device, or FL_TRACE_HOST */
    uint16_t kind;
} fl_cuda_span;

/* Of a copy lane, under its lock. */
typedef struct fl_cuda_spans {
    fl_cuda_span at[FL_CUDA_SPANS];
    uint32_t made; /* that have events: fewer where the driver refused some */
    uint32_t oldest, count;
    uint32_t readers; /* of the ring: nothing is added meanwhile */
    fl_trace_ring *ring;
} fl_cuda_spans;

/* What a device needs to record; made when a trace first starts, gone with its lanes. */
typedef struct fl_cuda_record {
    fl_mutex lock;   /* all but the spans; taken inside a lane's lock, and never outside of one */
    CUstream stream; /* nothing but the bases is put there */
    CUevent base[2]; /* of an epoch, that of its lowest bit */
    uint64_t host[2];
    _Atomic uint64_t epoch; /* relaxed: each has all it needs under the lock; 0: no base yet */
    _Atomic uint64_t tried; /* when the last base was to be made; relaxed: a guess whether it is old
                             */
    fl_cuda_spans spans[FL_COPY_LANES];
} fl_cuda_record;

/* Frees it; the device's context is current. Null: nothing. */
void fl_cuda_record_free(fl_device *device, const fl_memory *memory, fl_cuda_record *record);
/* Makes the base anew where it is old, with the context current. Any thread; may wait for a few
 * microseconds. */
void fl_cuda_record_renew(fl_device *device, fl_cuda_record *record);
/* When an event was passed, by the host's clock, 0 where that cannot be told. With the context
 * current; the event, put on a stream in that epoch, is past. */
uint64_t fl_cuda_record_when(const fl_device *device, fl_cuda_record *record, uint64_t epoch,
                             CUevent event);

/* Under the copy lane's lock, around putting a copy there, with the context current. Null: it is
 * not recorded. sequence: what the copy is about to get; 0 if it failed. */
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
