/* SPDX-License-Identifier: Apache-2.0 */
/* Lanes: in-order queues of a device. A lane is a stream with events telling the stream's progress.
 *
 * An operation put on a lane gets the lane's next sequence number. Recording an event marks all
 * earlier operations of the lane; an event found complete moves `reached`. Not every operation is
 * marked: an event costs a tenth of a launch, so compute lanes record one event for many short work
 * items. */
#ifndef FL_BACKEND_CUDA_QUEUE_LANE_H
#define FL_BACKEND_CUDA_QUEUE_LANE_H

#include "backend/backend.h"
#include "backend/cuda/driver/api.h"
#include "base/atomic.h"
#include "base/thread.h"

/* Capacity of a device's lane, in work items in flight. */
#define FL_CUDA_TILES 256
/* Largest number of a lane's events recorded and not yet seen complete. */
#define FL_CUDA_EVENTS 128
/* Number of a device's items timed at once; while a trace records, as many as the worker has in
 * flight. */
#define FL_CUDA_TIMERS 32
#define FL_CUDA_TIMERS_MOST 256

/* A work item launched on a compute lane; the owner's. */
typedef struct fl_cuda_tile {
    uint64_t tag;
    uint32_t timer;  /* index, or FL_CUDA_NO_TIMER */
    CUresult result; /* result of a launch held back and put on the lane later */
} fl_cuda_tile;

struct fl_cuda_record;
struct fl_cuda_slot;
struct fl_cuda_stage;

typedef struct fl_cuda_lane {
    CUstream stream;
    _Atomic uint64_t issued; /* sequence number of the newest operation; compute: the owner's */
    /* newest sequence covered by an event; release after recording the event */
    _Atomic uint64_t marked;
    /* newest sequence passed by the device; release after the event was seen */
    _Atomic uint64_t passed;
    /* newest sequence known complete; release: passed, and all pieces landed */
    _Atomic uint64_t reached;
    _Atomic uint32_t aboard;     /* pieces put on the lane and not yet landed; see stage.h */
    struct fl_cuda_stage *stage; /* stage of the copy lane out; else null */
    fl_mutex lock;               /* guards the ring of events; on copy lanes also issuing */
    CUevent events[FL_CUDA_EVENTS];
    uint64_t covers[FL_CUDA_EVENTS];
    uint32_t oldest, recorded;
    /* Compute lanes only: */
    /* In flight, oldest first: the newest in_flight operations of the lane. */
    fl_cuda_tile tiles[FL_CUDA_TILES];
    uint32_t first, in_flight;
    uint64_t unmarked_at; /* launch time of the oldest unmarked item, ns */
    /* own share of the oldest item up to the newest timer's stop, ns; NAN: not known */
    double own_ns;
    struct fl_cuda_pack *pack; /* launch batch holding back the newest items; null: no batching */
} fl_cuda_lane;

typedef struct fl_cuda_timer {
    CUevent start, stop;
    uint64_t epoch; /* epoch of the record's base; 0: no trace records */
} fl_cuda_timer;

typedef struct fl_cuda_lanes {
    uint32_t count; /* number of compute lanes */
    fl_cuda_lane lane[FL_LANES];
    fl_cuda_timer timers[FL_CUDA_TIMERS_MOST]; /* the first timer_count are made */
    uint32_t free_timers[FL_CUDA_TIMERS_MOST];
    uint32_t timer_count, free_timer_count;
    /* timer with the latest stop among the timers read; not free yet */
    uint32_t newest;
    /* own share and start of the item last reported by poll; see backend.h */
    uint64_t own, began;
    uint64_t oldest_at; /* lower bound of the lanes' unmarked_at, ns */
    /* made by the first trace, for starting and writing traces; null: never traced */
    struct fl_cuda_record *record;
    /* equal to record while a trace records, else null */
    _Atomic(struct fl_cuda_record *) recording;
} fl_cuda_lanes;

/* Makes the streams and events of an open device, in the device's context or slice: device->lanes
 * compute lanes and two copy lanes. A failure leaves nothing. Enters the context itself. */
filch_status fl_cuda_lanes_open(fl_device *device, const fl_memory *memory, filch_error *error);
/* Opens the lane for copies from other devices' memory, unless open. False: the driver refuses. One
 * call at a time, before the first copy. */
bool fl_cuda_lanes_link(fl_device *device);
/* Waits for all work in flight, and frees the lanes. */
void fl_cuda_lanes_close(fl_device *device, const fl_memory *memory);

/* Fills *error for a failed call on the device's context, and returns FILCH_DEVICE_LOST for a lost
 * device. */
filch_status fl_cuda_call_fail(const fl_device *device, CUresult result, const char *call,
                               filch_error *error);

/* Retires complete events of a lane; may return FILCH_DEVICE_LOST. Any thread. */
filch_status fl_cuda_lane_look(fl_device *device, uint32_t index, filch_error *error);
/* Puts a copy on a copy lane and marks the copy, without waits; the context is current. slot: slot
 * of a piece going aboard, or null. Any thread. */
filch_status fl_cuda_lane_put(fl_device *device, uint32_t index, fl_copy *copy,
                              struct fl_cuda_slot *slot, filch_error *error);

/* Destroys graphs naming kernels of a module about to be unloaded; the device's context is current.
 * Any thread. */
void fl_cuda_lanes_forget(const fl_device *device);

/* Members of the table of operations; see backend.h. */
filch_status fl_cuda_launch(fl_device *device, fl_launch *launch, uint64_t now, filch_error *error);
filch_status fl_cuda_poll(fl_device *device, uint64_t now, uint64_t *tag, uint64_t *busy_ns,
                          uint64_t *next, filch_error *error);
uint64_t fl_cuda_own(const fl_device *device);
filch_status fl_cuda_mark(fl_device *device, filch_error *error);
bool fl_cuda_is_marked(const fl_device *device, fl_marker marker);
filch_status fl_cuda_reached(fl_device *device, fl_marker marker, filch_error *error);
bool fl_cuda_is_past(const fl_device *device, fl_marker marker);
filch_status fl_cuda_copy(fl_device *device, fl_copy *copy, filch_error *error);
filch_status fl_cuda_clear(fl_device *device, void *block, size_t bytes, fl_marker behind,
                           fl_marker *marker, filch_error *error);
filch_status fl_cuda_drain(fl_device *device, filch_error *error);
void fl_cuda_discard(fl_device *device);
int fl_cuda_each_lane(fl_device *device, int (*body)(const filch_lane *lane, void *user),
                      void *user);

#endif
