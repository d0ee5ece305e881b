/* SPDX-License-Identifier: Apache-2.0 */
/* Lanes: in-order queues of one device, each a stream with the events that tell how far it is.
 *
 * An operation put on a lane gets the lane's next sequence number. Recording an event marks all
 * that was put there so far; an event found complete moves `reached`. Not every operation is
 * marked: an event costs a tenth of a launch, so compute lanes record one for many short tiles. */
#ifndef FL_BACKEND_CUDA_QUEUE_LANE_H
#define FL_BACKEND_CUDA_QUEUE_LANE_H

#include "backend/backend.h"
#include "backend/cuda/driver/api.h"
#include "base/atomic.h"
#include "base/thread.h"

/* Tiles in flight that a device can hold. */
#define FL_CUDA_TILES 256
/* Events of a lane that are recorded and not yet seen complete. */
#define FL_CUDA_EVENTS 128
/* Tiles of one device being timed at once; and while a trace records, as many as its worker has in
 * flight. */
#define FL_CUDA_TIMERS 32
#define FL_CUDA_TIMERS_MOST 256

/* A tile launched on a compute lane; the owner's. */
typedef struct fl_cuda_tile {
    uint64_t tag;
    uint64_t sequence;
    uint32_t timer;  /* index, or UINT32_MAX */
    CUresult result; /* of putting it on the lane, where that was done later */
} fl_cuda_tile;

struct fl_cuda_record;
struct fl_cuda_slot;
struct fl_cuda_stage;

typedef struct fl_cuda_lane {
    CUstream stream;
    _Atomic uint64_t issued;     /* sequence number of the newest operation; compute: the owner's */
    _Atomic uint64_t marked;     /* what the newest event covers; release after recording it */
    _Atomic uint64_t passed;     /* what the device is past; release after the event was seen */
    _Atomic uint64_t reached;    /* what is known to be complete; release: passed, and landed */
    _Atomic uint32_t aboard;     /* pieces put there that have not landed; see stage.h */
    struct fl_cuda_stage *stage; /* of the copy lane out; else null */
    fl_mutex lock;               /* the ring of events; on copy lanes also issuing */
    CUevent events[FL_CUDA_EVENTS];
    uint64_t covers[FL_CUDA_EVENTS];
    uint32_t oldest, recorded;
    /* Compute lanes: */
    fl_cuda_tile tiles[FL_CUDA_TILES]; /* in flight, oldest first */
    uint32_t first, in_flight;
    struct fl_cuda_pack *pack; /* holds the newest of them back; null: none may be */
} fl_cuda_lane;

typedef struct fl_cuda_timer {
    CUevent start, stop;
    uint64_t epoch; /* of the record's base; 0: no trace records */
} fl_cuda_timer;

typedef struct fl_cuda_lanes {
    uint32_t count; /* of compute lanes */
    fl_cuda_lane lane[FL_LANES];
    fl_cuda_timer timers[FL_CUDA_TIMERS_MOST]; /* timer_count of them made */
    uint32_t free_timers[FL_CUDA_TIMERS_MOST];
    uint32_t timer_count, free_timer_count;
    uint32_t newest;               /* the timer that stopped last of those read, not free yet */
    uint64_t own, began;           /* of the tile that poll told of last; see backend.h */
    uint32_t unmarked;             /* tiles launched since the last mark */
    uint64_t marked_at;            /* when that was */
    struct fl_cuda_record *record; /* null: no trace ever recorded; who starts and writes them */
    _Atomic(struct fl_cuda_record *) recording; /* the same while one does, else null */
} fl_cuda_lanes;

/* Null: no trace records. Acquire: the record was made before it was published. It lives as long as
 * the lanes, so that it may be used after recording was stopped. */
static inline struct fl_cuda_record *fl_cuda_recording(const fl_cuda_lanes *lanes)
{
    return fl_load_acquire(&lanes->recording);
}

/* Makes the streams and events of an open device (device->lanes of them, and two for copies), in
 * its context or slice; on failure nothing is left. Takes the context itself. */
filch_status fl_cuda_lanes_open(fl_device *device, const fl_memory *memory, filch_error *error);
/* Opens the lane for copies from other devices' memory, where it is not. False: the driver refuses.
 * One call at a time, before the first copy. */
bool fl_cuda_lanes_link(fl_device *device);
/* Waits for what is in flight, and frees them. */
void fl_cuda_lanes_close(fl_device *device, const fl_memory *memory);

/* A call on the device's context failed; fills *error, and says so where the device is lost. */
filch_status fl_cuda_call_fail(const fl_device *device, CUresult result, const char *call,
                               filch_error *error);

/* Retires what is complete on a lane; FILCH_DEVICE_LOST. Any thread. */
filch_status fl_cuda_lane_look(fl_device *device, uint32_t index, filch_error *error);
/* Puts a copy on a copy lane and marks it, without waits; the context is current. slot: the piece
 * is aboard from then on; or null. Any thread. */
filch_status fl_cuda_lane_put(fl_device *device, uint32_t index, fl_copy *copy,
                              struct fl_cuda_slot *slot, filch_error *error);

/* A module of the device's is about to be unloaded; its context is current. Any thread. */
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
