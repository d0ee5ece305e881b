/* SPDX-License-Identifier: Apache-2.0 */
/* What a backend implements: plain data, one table a backend. A new backend is a new folder under
 * runtime/backend and one line in backend.c. Members may be NULL where the text says so.
 *
 * Every call returns a status, none aborts, and each records its native code in the fl_fault
 * of the error it fills. */
#ifndef FL_BACKEND_BACKEND_H
#define FL_BACKEND_BACKEND_H

#include "base/atomic.h"
#include "base/clock.h"
#include "base/config.h"
#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "filch/cuda.h"
#include "filch/device.h"

/* Devices of one runtime at most; a multiple of 64. */
#define FL_DEVICE_LIMIT 1024

struct fl_trace_ring;
typedef struct fl_backend fl_backend;
typedef struct fl_device fl_device;

/* Kinds of implementation that a codelet may have, as bits. */
#define FL_IMPL_HOST_FN 1u
#define FL_IMPL_CUDA 2u

/* Compute lanes of one device at most. */
#define FL_LANE_LIMIT 8

/* A device's tiles are marked after so many launches, or so long a time, whichever comes first: an
 * event costs about 0.2 us to record and 1.2 us to find complete, an empty launch 2.4 us. */
#define FL_MARK_TILES 64u
#define FL_MARK_NS 200000u

/* CPUs that one item of a device specification names at most; numbers are below FL_CPU_NUMBERS. */
#define FL_SPEC_CPUS 1024
#define FL_CPU_NUMBERS 65536

typedef struct fl_named_cpu {
    uint16_t cpu;    /* the operating system's number, as taskset has it */
    uint16_t column; /* where the number or range that names it starts in the text, from 1 */
} fl_named_cpu;

/* One item of a device specification, parsed (device/spec.h). */
typedef struct fl_device_spec {
    filch_backend backend;
    bool has_number;      /* cuda:N, host:N */
    uint32_t number;      /* ordinal of a GPU, count of host devices */
    uint32_t team;        /* host:NxT; 0 = not given */
    uint32_t slice_count; /* cuda:N/a+b+c */
    uint32_t slices[64];
    char file[256];                  /* sim:FILE */
    bool is_unbound;                 /* host…@any */
    uint32_t cpu_count;              /* host…@LIST; 0 = not given */
    fl_named_cpu cpus[FL_SPEC_CPUS]; /* in the order of the text, none twice */
    uint32_t column;                 /* where the item starts in the text, from 1 */
} fl_device_spec;

/* A cache that a core uses. */
typedef struct fl_cache {
    uint32_t number; /* cores with one number share it; 0: not known */
    uint64_t bytes;
} fl_cache;

#define FL_CACHE_LEVELS 2

/* An execution resource, as its backend describes it. The registry owns the array. */
struct fl_device {
    filch_device_info info;
    const fl_backend *backend;
    void *state;                      /* the backend's own, made by open, gone after close */
    uint32_t place;                   /* index of its memory place; 0 is always the host's memory */
    uint32_t node;                    /* of a host device: its nearest memory node */
    fl_cache caches[FL_CACHE_LEVELS]; /* of a host device's first core: its L2 and L3 */
    uint32_t implementations;         /* FL_IMPL_* bits: what it can run */
    bool is_named;       /* by itself in the specification: that it cannot be used is an error */
    bool is_pinned;      /* its thread stays on the CPUs of info.affinity, one for each core */
    bool is_synchronous; /* tiles run on the worker's own thread; launch is NULL */
    bool calls_host_fn;  /* an asynchronous device whose tiles' results the host function makes */
    uint32_t window;     /* tiles in flight that keep it busy; 1 when synchronous, 0: measured */
    uint32_t lanes;      /* compute lanes; 0 when synchronous or pretended */
    uint64_t peers; /* bits of the places, of the first 64, whose memory its copies can reach */
    uint64_t overhead_ns; /* dispatch overhead of one tile, a prior; measured later */
    uint64_t joins_at;    /* it takes no tile before this time; 0: it is there from the start */
    uint64_t leaves_at, returns_at; /* nor between these; the same: it does not leave */
    /* Virtual devices: */
    bool is_looked_at;   /* its worker has to find out when tiles are over, as of a GPU */
    uint64_t held_until; /* its worker is at a launch until then, and does nothing else */
};

/* A point in the order of one lane: {device : 10, lane : 4, sequence : 50}; 0 is always past. The
 * device is the index in the pool. Lanes of a device: compute lanes from 0, then those for copies:
 * to its place from the host's memory, or within the place (FL_LANE_IN); from the place to any
 * other (FL_LANE_OUT); to the place from another device's (FL_LANE_PEER), which may have to wait
 * until that has the tile itself, and must not keep the host's link idle meanwhile. Sequence
 * numbers count from 1. */
typedef uint64_t fl_marker;

enum { FL_LANE_IN = 8, FL_LANE_OUT = 9, FL_LANE_PEER = 10, FL_LANES = 11 };
#define FL_COPY_LANES (FL_LANES - FL_LANE_IN)

/* The lane of a copy from one place to another, or within one; of a device whose place is `to`, or
 * where that is the host's (0), `from`. */
static inline uint32_t fl_copy_lane(uint32_t to, uint32_t from)
{
    return to == 0 ? FL_LANE_OUT : from == 0 || from == to ? FL_LANE_IN : FL_LANE_PEER;
}

static inline fl_marker fl_marker_make(uint32_t device, uint32_t lane, uint64_t sequence)
{
    return (uint64_t)device << 54 | (uint64_t)lane << 50 | sequence;
}

static inline uint32_t fl_marker_device(fl_marker marker)
{
    return (uint32_t)(marker >> 54);
}

static inline uint32_t fl_marker_lane(fl_marker marker)
{
    return (uint32_t)(marker >> 50) & 15u;
}

static inline uint64_t fl_marker_sequence(fl_marker marker)
{
    return marker & (((uint64_t)1 << 50) - 1);
}

/* A kernel loaded on a place, as its backend knows it. */
typedef struct fl_function {
    void *handle;
    uint32_t param_count;   /* UINT32_MAX: the driver cannot tell */
    uint32_t most_grid[3];  /* blocks along each axis */
    uint32_t most_block[3]; /* threads of a block along each axis … */
    uint32_t most_threads;  /* … and in all, as the kernel's registers allow */
    uint32_t most_shared;   /* bytes of shared memory that a launch may ask for, a block */
    bool has_clusters;      /* blocks may be launched in clusters … */
    bool is_clustered;      /* … and are, as the kernel was compiled so */
    size_t param_bytes;     /* where the last of them ends */
} fl_function;

static inline bool fl_shape_has_clusters(const filch_shape *shape)
{
    return (shape->cluster[0] | shape->cluster[1] | shape->cluster[2]) != 0;
}

/* A tile handed to an asynchronous device. */
typedef struct fl_launch {
    double cost;  /* abstract units of work, for devices that only pretend */
    uint64_t tag; /* the worker's own name for the tile */
    /* Devices that compute: */
    uint32_t lane;               /* compute lane to go on */
    const char *name;            /* the codelet's */
    const fl_function *function; /* the kernel, or null */
    void **params;               /* its parameters … */
    const uint32_t *param_bytes; /* … and the size of each, where it is brief */
    uint32_t param_count;
    filch_shape shape;        /* its geometry */
    filch_enqueue_fn enqueue; /* in place of a kernel */
    void *replay;             /* in place of a kernel: see replay_new */
    void *const *states;      /* for enqueue, one a compute lane; or null */
    const filch_call *call;   /* for enqueue */
    const fl_marker *behind;  /* what must be past before the tile starts; each was made by mark */
    uint32_t behind_count;
    bool timed; /* its device time is wanted */
    bool brief; /* a kernel, over so soon that it may be held back until the next mark */
    /* Results: */
    int code;         /* what enqueue returned */
    fl_marker marker; /* the tile's own */
} fl_launch;

/* A block of `height` columns of `width` bytes each, moved between the places of two devices; null
 * stands for the host's memory. */
typedef struct fl_copy {
    void *to;
    const void *from;
    const fl_device *to_device, *from_device;
    size_t to_pitch, from_pitch; /* bytes from one column to the next */
    size_t width, height;
    const fl_marker *behind;
    uint32_t behind_count;
    fl_marker vacant; /* of the place that it leads to: used until then by what was there; or 0 */
    fl_marker marker; /* result */
} fl_copy;

/* Devices that are there but cannot be used, each with its reason. */
typedef struct fl_refusals {
    filch_device_refusal *items;
    size_t count;
    size_t capacity;
} fl_refusals;

/* What enumerate and open need and report into. */
typedef struct fl_discovery {
    const fl_memory *memory;
    const fl_log *log;
    filch_error *error;          /* details of a failure; may be null */
    const fl_settings *settings; /* null: the defaults */
    fl_refusals *refusals;       /* devices left out; may be null */
    const fl_clock *clock;       /* of the runtime, for virtual devices; it outlives them. Null:
                                  * they know the time only when launch and poll tell it */
} fl_discovery;

/* Between a backend's enter and leave; its own. */
typedef struct fl_stay {
    void *what, *before;
} fl_stay;

struct fl_backend {
    const char *name; /* "host", "cuda", "sim": the word of the device grammar */
    filch_backend kind;
    bool is_virtual; /* runs on the virtual clock */

    /* Appends the devices that spec names to *devices (capacity grows with fl_array_reserve).
     * spec->has_number false means all of them. Devices come closed (state NULL, or backend
     * description that close frees). */
    filch_status (*enumerate)(const fl_discovery *how, const fl_device_spec *spec,
                              fl_device **devices, size_t *count, size_t *capacity);
    /* Makes the device ready for its worker; called on the creating thread. May be NULL. */
    filch_status (*open)(fl_device *device, const fl_discovery *how);
    /* Releases everything open or enumerate gave the device. */
    void (*close)(fl_device *device, const fl_memory *memory);
    /* Called once on the worker's own thread before its first step: pin, bind a context. NULL:
     * nothing. */
    filch_status (*bind)(fl_device *device);
    /* Around a step on a thread that is not the worker's own (poll mode): what a step needs of the
     * thread, and the thread as it was. NULL: nothing. What failed to enter is not left. */
    filch_status (*enter)(fl_device *device, fl_stay *stay, filch_error *error);
    void (*leave)(fl_stay *stay);
    /* Free bytes of the device's place now. */
    filch_status (*memory_free)(const fl_device *device, uint64_t *bytes);

    /* Asynchronous devices only (NULL when is_synchronous): */
    /* Starts a tile at time now; tiles of one lane run in launch order. FILCH_BUSY, and nothing
     * is started, where more tiles are in flight than the device can hold (at least its window).
     * Tiles that are brief may start as late as when mark is called. */
    filch_status (*launch)(fl_device *device, fl_launch *launch, uint64_t now, filch_error *error);
    /* Tag and device time of a tile launched and finished by now, each once, those of a lane in
     * order; *busy_ns is UINT64_MAX where it was not timed. FILCH_NOT_READY when none is. *next:
     * when to ask again (FL_TIME_NEVER: nothing in flight). FILCH_TASK_FAILED: the tile was held
     * back and then refused, as error says. Another status: the device is lost, and so are all
     * tiles in flight on it. */
    filch_status (*poll)(fl_device *device, uint64_t now, uint64_t *tag, uint64_t *busy_ns,
                         uint64_t *next, filch_error *error);

    /* Asynchronous devices that compute (NULL for those that only pretend). Calls that name a
     * compute lane's markers are the worker's own; the others are any thread's. */
    /* Makes sure that all that was launched so far can be waited for elsewhere. The owner. */
    filch_status (*mark)(fl_device *device, filch_error *error);
    /* Whether others may wait for the marker, a compute lane's of this device: mark was called
     * since. Any thread. */
    bool (*is_marked)(const fl_device *device, fl_marker marker);
    /* FILCH_OK once the marker, of this device, is past; FILCH_NOT_READY before. Any thread. */
    filch_status (*reached)(fl_device *device, fl_marker marker, filch_error *error);
    /* Blocks until the marker is past; as reached, but never FILCH_NOT_READY. NULL: reached is
     * asked again and again. A virtual device does not block, as nobody would move the clock: it
     * lets what is started next begin no sooner. Any thread. */
    filch_status (*await)(fl_device *device, fl_marker marker, filch_error *error);
    /* Virtual devices: the earliest time after now at which something on a lane is over, or the
     * device lost; FL_TIME_NEVER: nothing is. The owner. */
    uint64_t (*next_event)(const fl_device *device, uint64_t now);
    /* Whether the marker, of this device, is known to be past: nobody is asked. Any thread;
     * wait-free. */
    bool (*is_past)(const fl_device *device, fl_marker marker);
    /* Starts a copy on one of the device's own lanes: to its place, or from it to the host, or to
     * another place that its copies reach. Any thread. From or to pageable memory the
     * call may take as long as the copy. */
    filch_status (*copy)(fl_device *device, fl_copy *copy, filch_error *error);
    /* Lets the device's copies reach another's memory where the machine can: sets device->peers.
     * Both are open. Undone by unlink, before any is closed. */
    void (*link)(fl_device *device, const fl_device *other);
    void (*unlink)(fl_device *device, const fl_device *other);
    /* What joins the device's memory to that of another of this backend, or (null) to the host's:
     * fills has_access, has_atomics and rank. NULL where nothing is known. Any thread. */
    filch_status (*link_describe)(const fl_device *device, const fl_device *other, filch_link *link,
                                  filch_error *error);
    /* Bytes a second of copies from one device's memory to another's of this backend, one of which
     * may be null, the host's. Blocks. Any thread. */
    filch_status (*link_measure)(const fl_device *from, const fl_device *to, double *rate,
                                 filch_error *error);
    /* Memory of the device's place. These may serialize the device. Any thread. */
    filch_status (*memory_take)(fl_device *device, size_t bytes, void **block, filch_error *error);
    void (*memory_give)(fl_device *device, void *block);
    /* Chunks of that memory, for the arena to cut: mapped so that the devices whose copies reach
     * the place can read and write them. bytes: a multiple of the granularity, a power of two of
     * at least 4096, to which chunks are aligned. They may serialize the device. What is given is
     * used by nothing in flight. Any thread. */
    filch_status (*chunk_granularity)(const fl_device *device, size_t *bytes, filch_error *error);
    filch_status (*chunk_take)(fl_device *device, size_t bytes, void **chunk, filch_error *error);
    void (*chunk_give)(fl_device *device, void *chunk, size_t bytes);
    /* A pool of the driver's, made for filch, that keeps what is given until it is trimmed; NULL
     * where there are none. FILCH_UNSUPPORTED: the device has none. What is taken can be used on
     * any lane at once; what is given is used by nothing in flight. Any thread. */
    filch_status (*pool_open)(fl_device *device, const fl_memory *memory, void **pool,
                              filch_error *error);
    void (*pool_close)(fl_device *device, const fl_memory *memory, void *pool);
    filch_status (*pool_take)(fl_device *device, void *pool, size_t bytes, void **block,
                              filch_error *error);
    void (*pool_give)(fl_device *device, void *pool, void *block);
    void (*pool_trim)(fl_device *device, void *pool);
    /* Starts to fill a block with zeroes on the device's own FL_LANE_IN, behind a marker (0:
     * none). Any thread. */
    filch_status (*memory_clear)(fl_device *device, void *block, size_t bytes, fl_marker behind,
                                 fl_marker *marker, filch_error *error);
    /* Whether bytes from a pointer on are one allocation in the memory of the device's place, made
     * by anybody in its context, which the device's kernels and copies may use; else
     * FILCH_INVALID_ARGUMENT, the error saying why not. Null where the host's programs have no such
     * pointers. Any thread. */
    filch_status (*memory_check)(const fl_device *device, const void *pointer, size_t bytes,
                                 const char *label, filch_error *error);
    /* Page-locks a buffer of the host's, for the copies of all devices of this backend, until it is
     * unpinned. FILCH_WRONG_STATE: it is, or a part of it. Null where that means nothing. These may
     * serialize the device; what is unpinned is used by nothing in flight. Any thread. */
    filch_status (*memory_pin)(fl_device *device, void *buffer, size_t bytes, const char *label,
                               filch_error *error);
    void (*memory_unpin)(fl_device *device, void *buffer);
    /* Waits until nothing is in flight on any lane of the device. Any thread. */
    filch_status (*drain)(fl_device *device, filch_error *error);
    /* The device, or a lane, is lost: what launch holds back will never start. The owner. */
    void (*discard)(fl_device *device);
    /* Whether some call has found the device lost, for good; then error, if not null, says how. Any
     * thread. */
    bool (*lost)(const fl_device *device, filch_error *error);
    /* Code of the device's target: what the images it loads are compiled for, e.g. 90. */
    uint32_t (*target)(const fl_device *device);
    /* Version of the driver that loads them, e.g. 12040 for CUDA 12.4. */
    int (*version)(const fl_device *device);
    /* Multicast objects; null where there is no such thing. Only memory/host/multicast.c uses them.
     */
    const struct fl_multicast_ops *multicast;
    /* Loads an image for the device's place, and finds a kernel in it. Any thread. */
    filch_status (*module_load)(fl_device *device, const void *image, size_t bytes,
                                const char *label, void **module, filch_error *error);
    void (*module_unload)(fl_device *device, void *module);
    filch_status (*function_get)(fl_device *device, void *module, const char *entry,
                                 const char *label, fl_function *function, filch_error *error);
    /* Kernels and their order, put on a lane again and again by one call (fl_launch.replay); null
     * where the backend has no such thing. Added kernels are numbered from 0; each runs behind
     * those that it names. Parameters are copied. The owner; seal makes it ready, and may take
     * long. */
    filch_status (*replay_new)(fl_device *device, const fl_memory *memory, void **replay,
                               filch_error *error);
    filch_status (*replay_add)(fl_device *device, void *replay, const fl_launch *launch,
                               const uint32_t *behind, uint32_t behind_count, filch_error *error);
    filch_status (*replay_seal)(fl_device *device, void *replay, filch_error *error);
    /* Nothing of it is in flight. Any thread. */
    void (*replay_free)(fl_device *device, void *replay);
    /* Events of the host's, as its own programming interface has them; null where there is none.
     * label: whose they are, for errors. Any thread. */
    /* FILCH_OK once what was recorded last is past; FILCH_NOT_READY before. */
    filch_status (*event_past)(const fl_device *device, void *event, const char *label,
                               filch_error *error);
    /* Records an event of the device's context, with nothing before it. */
    filch_status (*event_record)(fl_device *device, void *event, const char *label,
                                 filch_error *error);
    /* Calls body once for each compute lane, with the device's context current, until one call does
     * not return 0; that is the result. Any thread. */
    int (*each_lane)(fl_device *device, int (*body)(const filch_lane *lane, void *user),
                     void *user);
    /* Calls body with the device's context current and a stream that no tile uses (lane->lane is
     * the number of compute lanes); *code is what it returned. The caller's context is restored
     * whatever body leaves. Any thread. */
    filch_status (*within)(fl_device *device, int (*body)(const filch_lane *lane, void *user),
                           void *user, int *code, filch_error *error);
    /* Traces; null where there are no copies. Starts to record the copies on each copy lane, from
     * FL_LANE_IN on; the rings, always the same, outlive the lanes. What the driver refuses to be
     * recorded is counted as missed; FILCH_OUT_OF_MEMORY. One call at a time. */
    filch_status (*trace_start)(fl_device *device, const fl_memory *memory,
                                struct fl_trace_ring *const rings[FL_COPY_LANES]);
    /* No more, but for copies that are under way. Any thread; wait-free. */
    void (*trace_stop)(fl_device *device);
    /* begins: adds to the rings what is known to be over, and then nothing until the call is made
     * again with false. Not at the same time as trace_start. */
    void (*trace_hold)(fl_device *device, bool begins);
    /* When the tile began that poll told of last, which was timed; 0: not known, as where no trace
     * records. The owner. */
    uint64_t (*began)(const fl_device *device);
    /* Of the tile that poll told of last, which was timed: how much of its time came after the ends
     * of all that poll told of before, in ns. Over tiles that are all timed the sum is how long the
     * device was at them, however they overlapped. NULL: tiles never overlap. The owner. */
    uint64_t (*own)(const fl_device *device);
    /* Devices that only pretend: true ns of a tile of that cost, begun at a time on the idle
     * device; the dispatch overhead included. NULL where nobody knows. Any thread. */
    double (*item_ns)(const fl_device *device, double cost, uint64_t from);
};

/* Blocks until the marker, of this device, is past; otherwise as fl_backend.reached. */
static inline filch_status fl_device_await(fl_device *device, fl_marker marker, filch_error *error)
{
    filch_status status;
    if (device->backend->await != NULL) {
        return device->backend->await(device, marker, error);
    }
    while ((status = device->backend->reached(device, marker, error)) == FILCH_NOT_READY) {
        fl_relax();
    }
    return status;
}

/* The table of backends built in, NULL-terminated. */
const fl_backend *const *fl_backends(void);
const fl_backend *fl_backend_by_kind(filch_backend kind);
/* For enumerate, before it allocates: FILCH_UNSUPPORTED, at line or label as `where` has it, when
 * `wanted` more devices than the `count` there are would be over FL_DEVICE_LIMIT. */
filch_status fl_backend_check_limit(const fl_discovery *how, size_t count, size_t wanted,
                                    fl_fault where);

/* Adds a device to how->refusals and logs it; how it is called and why it cannot be used. Nothing
 * where memory is out: a record of a failure must not become one. */
void fl_backend_refuse(const fl_discovery *how, filch_backend kind, const char *name,
                       uint32_t ordinal, const filch_error *error);

#endif
