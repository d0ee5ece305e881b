/* SPDX-License-Identifier: Apache-2.0 */
/* Interface of a backend: plain data, and a table of functions for each capability. A new backend
 * is a new folder under runtime/backend and a line in backend.c. Members may be NULL where the text
 * says NULL.
 *
 * Every call returns a status, never aborts, and records its native code in the fl_fault of the
 * error. */
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

/* Largest number of devices of a runtime; a multiple of 64. */
#define FL_DEVICE_LIMIT 1024

struct fl_trace_ring;
typedef struct fl_backend fl_backend;
typedef struct fl_device fl_device;

/* Kinds of implementation of a codelet, as bits. */
#define FL_IMPL_HOST_FN 1u
#define FL_IMPL_CUDA 2u

/* Largest number of compute lanes of a device. */
#define FL_LANE_LIMIT 8

/* A lane's launches, and nanoseconds from its oldest unmarked launch, after which its work items
 * are marked, whichever limit comes first. Recording an event costs about 0.2 us, finding an event
 * complete 1.2 us, an empty launch 2.4 us. */
#define FL_MARK_TILES 64u
#define FL_MARK_NS 200000u

/* Largest number of CPUs named by an item of a device specification; CPU numbers are below
 * FL_CPU_NUMBERS. */
#define FL_SPEC_CPUS 1024
#define FL_CPU_NUMBERS 65536

typedef struct fl_named_cpu {
    uint16_t cpu;    /* the operating system's number, as used by taskset */
    uint16_t column; /* position in the text, from 1, of the number or range naming the CPU */
} fl_named_cpu;

/* An item of a device specification, parsed (device/spec.h). */
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
    fl_named_cpu cpus[FL_SPEC_CPUS]; /* in the order of the text, without duplicates */
    uint32_t column;                 /* position in the text where the item starts, from 1 */
} fl_device_spec;

/* A cache of a core. */
typedef struct fl_cache {
    uint32_t number; /* number shared by every core using the cache; 0: not known */
    uint64_t bytes;
} fl_cache;

#define FL_CACHE_LEVELS 2

/* An execution resource, described by its backend. The registry owns the array. */
struct fl_device {
    filch_device_info info;
    const fl_backend *backend;
    void *state; /* the backend's own state, made by open, gone after close */
    /* index of the device's memory node; 0 is always the host's memory */
    uint32_t place;
    uint32_t node;                    /* nearest NUMA node of a host device */
    fl_cache caches[FL_CACHE_LEVELS]; /* L2 and L3 of a host device's first core */
    /* FL_IMPL_* bits: kinds of implementation the device can run */
    uint32_t implementations;
    /* named individually in the specification: an unusable device is an error */
    bool is_named;
    bool is_pinned;      /* thread stays on the CPUs of info.affinity, a CPU per core */
    bool is_synchronous; /* work items run on the worker's own thread; launch is NULL */
    bool calls_host_fn;  /* asynchronous device whose results the host function makes */
    uint32_t window;     /* queue depth keeping the device busy; 1 when synchronous, 0: measured */
    uint32_t lanes;      /* compute lanes; 0 when synchronous or simulated */
    uint64_t peers; /* bits of the first 64 memory nodes: memory reachable by the device's copies */
    uint64_t overhead_ns; /* dispatch overhead per work item, a prior; measured later */
    /* time of joining: no work item starts earlier; 0: present from the start */
    uint64_t joins_at;
    /* absence: no work item starts in between; equal times: the device never leaves */
    uint64_t leaves_at, returns_at;
    /* Virtual devices: */
    bool is_looked_at; /* worker has to poll for the ends of work items, as for a GPU */
    /* end of the worker's current launch; the worker does nothing else until then */
    uint64_t held_until;
};

/* A point in the order of a lane: {device : 10, lane : 4, sequence : 50}; 0 is always past. The
 * device is the index in the pool. A device has compute lanes from 0, then copy lanes. FL_LANE_IN
 * copies to the device's memory node from the host's memory, or within the node. FL_LANE_OUT copies
 * from the node to any second node. FL_LANE_PEER copies to the node from a second device's node. A
 * peer copy may have to wait until the sender has the tile, and must not keep the host's link idle
 * meanwhile. Sequence numbers count from 1. */
typedef uint64_t fl_marker;

enum { FL_LANE_IN = 8, FL_LANE_OUT = 9, FL_LANE_PEER = 10, FL_LANES = 11 };
#define FL_COPY_LANES (FL_LANES - FL_LANE_IN)

/* Returns the lane of a copy between two memory nodes, or within a node. The lane belongs to the
 * device of node `to`; where `to` is the host's node (0), to the device of node `from`. */
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

/* A kernel loaded on a memory node, as known to the backend. */
typedef struct fl_function {
    void *handle;
    uint32_t param_count;   /* UINT32_MAX: the driver cannot tell */
    uint32_t most_grid[3];  /* blocks along every axis */
    uint32_t most_block[3]; /* threads of a block along every axis */
    uint32_t most_threads;  /* threads of a block in total, limited by the kernel's registers */
    uint32_t most_shared;   /* bytes of shared memory per block that a launch may ask for */
    bool has_clusters;      /* blocks may be launched in clusters */
    bool is_clustered;      /* the kernel was compiled to run in clusters */
    bool can_wait;          /* code and device know of kernels that wait for those before */
    bool waits;             /* the kernel waits by itself: it may start before those before end */
    size_t param_bytes;     /* end of the last parameter */
} fl_function;

static inline bool fl_shape_has_clusters(const filch_shape *shape)
{
    return (shape->cluster[0] | shape->cluster[1] | shape->cluster[2]) != 0;
}

/* A work item handed to an asynchronous device. */
typedef struct fl_launch {
    double cost;  /* abstract units of work, for simulated devices */
    uint64_t tag; /* the worker's own name for the work item */
    /* Devices computing for real: */
    uint32_t lane;               /* compute lane of the launch */
    const char *name;            /* the codelet's name */
    const fl_function *function; /* the kernel, or null */
    void **params;               /* the kernel's parameters */
    const uint32_t *param_bytes; /* size of every parameter, where the launch is brief */
    uint32_t param_count;
    filch_shape shape;        /* the kernel's geometry */
    filch_enqueue_fn enqueue; /* function called in place of a kernel */
    void *graph;              /* graph launched in place of a kernel: see fl_graph_ops */
    void *const *states;      /* states for enqueue, one per compute lane; or null */
    const filch_call *call;   /* argument of enqueue */
    /* markers to be past before the work item starts; mark was called for every marker */
    const fl_marker *behind;
    uint32_t behind_count;
    bool timed; /* the caller wants the device time */
    bool brief; /* short kernel: the backend may hold the launch back until the next mark */
    /* Results: */
    int code;         /* return code of enqueue */
    fl_marker marker; /* marker of the work item */
} fl_launch;

/* A block of `height` columns of `width` bytes, copied between the memory nodes of two devices; a
 * null device stands for the host's memory. */
typedef struct fl_copy {
    void *to;
    const void *from;
    const fl_device *to_device, *from_device;
    size_t to_pitch, from_pitch; /* bytes from a column to the next column */
    size_t width, height;
    const fl_marker *behind;
    uint32_t behind_count;
    /* marker of the target's last use: earlier contents are in use until then; or 0 */
    fl_marker vacant;
    fl_marker marker; /* result */
} fl_copy;

/* Returns the lane on which the device puts the copy. */
static inline uint32_t fl_lane_of_copy(const fl_device *device, const fl_copy *copy)
{
    uint32_t to = copy->to_device != NULL ? copy->to_device->place : 0;
    uint32_t from = copy->from_device != NULL ? copy->from_device->place : 0;
    return to == device->place ? fl_copy_lane(to, from) : FL_LANE_OUT;
}

/* Devices found but unusable, with their reasons. */
typedef struct fl_refusals {
    filch_device_refusal *items;
    size_t count;
    size_t capacity;
} fl_refusals;

/* Inputs of enumerate and open, and where to report failures. */
typedef struct fl_discovery {
    const fl_memory *memory;
    const fl_log *log;
    filch_error *error;          /* details of a failure; may be null */
    const fl_settings *settings; /* null: the defaults */
    fl_refusals *refusals;       /* devices left out; may be null */
    /* the runtime's clock, for virtual devices; outlives the devices. Null: only launch and poll
     * tell the time */
    const fl_clock *clock;
} fl_discovery;

/* State kept by a backend between enter and leave. */
typedef struct fl_stay {
    void *what, *before;
} fl_stay;

/* Devices: found, opened, entered by threads, closed. Every backend has the table. */
typedef struct fl_device_ops {
    /* Appends the devices named by spec to *devices (capacity grows with fl_array_reserve). A false
     * spec->has_number means every device of the backend. Devices come closed: state is NULL, or a
     * backend description freed by close. */
    filch_status (*enumerate)(const fl_discovery *how, const fl_device_spec *spec,
                              fl_device **devices, size_t *count, size_t *capacity);
    /* Makes the device ready for its worker; called on the creating thread. May be NULL. */
    filch_status (*open)(fl_device *device, const fl_discovery *how);
    /* Releases every resource taken by open or enumerate for the device. */
    void (*close)(fl_device *device, const fl_memory *memory);
    /* Called once on the worker's own thread before its first step: pins the thread, binds a
     * context. NULL: nothing. */
    filch_status (*bind)(fl_device *device);
    /* Called around a step on a thread other than the worker's own (poll mode). enter prepares the
     * thread; leave restores the thread's state. NULL: nothing. A failed enter needs no leave. */
    filch_status (*enter)(fl_device *device, fl_stay *stay, filch_error *error);
    void (*leave)(fl_stay *stay);
    /* Reads the free bytes of the device's memory node. */
    filch_status (*memory_free)(const fl_device *device, uint64_t *bytes);
    /* NULL: never lost. Returns whether a call has found the device lost, for good; a non-null
     * error then gives the cause. Any thread. */
    bool (*lost)(const fl_device *device, filch_error *error);
    /* Simulated devices: true ns of a work item of the given cost, begun at a given time on the
     * idle device, dispatch overhead included. NULL where unknown. Any thread. */
    double (*item_ns)(const fl_device *device, double cost, uint64_t from);
} fl_device_ops;

/* Work items handed to a device. Null where every device is synchronous. Owner only. */
typedef struct fl_queue_ops {
    /* Starts a work item at time now; items of a lane run in launch order. Returns FILCH_BUSY and
     * starts nothing where too many items are in flight. The limit is at least the device's window.
     * Brief items may start as late as the next call of mark (fl_lane_ops). */
    filch_status (*launch)(fl_device *device, fl_launch *launch, uint64_t now, filch_error *error);
    /* Reports tag and device time of a work item launched and finished by now, once per item, in
     * lane order. *busy_ns is UINT64_MAX where the item was not timed. FILCH_NOT_READY: no item is
     * finished. *next: time of the next useful call (FL_TIME_NEVER: nothing in flight).
     * FILCH_TASK_FAILED: the launch was held back and then refused, as error says. Any further
     * status: the device is lost, with every item in flight. */
    filch_status (*poll)(fl_device *device, uint64_t now, uint64_t *tag, uint64_t *busy_ns,
                         uint64_t *next, filch_error *error);
    /* Drops launches held back: after the loss of the device or of a lane they never start. NULL:
     * no launch is held back. */
    void (*discard)(fl_device *device);
    /* Returns the time at which the last work item reported by poll began, if timed; 0: not known,
     * as while no trace records. NULL: never known. */
    uint64_t (*began)(const fl_device *device);
    /* Returns the own share of the time of the timed work item last reported by poll, ns: at every
     * instant, the lanes at work share the device equally. Summed over timed items, the shares give
     * the device's busy time, however items overlapped. 0: not known, where an item without a time
     * is in flight beside it. NULL: items never overlap, or poll reports the own share. */
    uint64_t (*own)(const fl_device *device);
} fl_queue_ops;

/* Markers on the lanes of a device. Null for synchronous devices, and for simulated devices without
 * memory. A device with the table computes by itself: its backend has copies and memory, too. */
typedef struct fl_lane_ops {
    /* Makes every launch up to now available for waits elsewhere. Owner only. */
    filch_status (*mark)(fl_device *device, filch_error *error);
    /* Returns whether further devices may wait for the marker, of a compute lane of this device:
     * mark was called since the launch. Any thread. */
    bool (*is_marked)(const fl_device *device, fl_marker marker);
    /* Returns FILCH_OK once the marker, of this device, is past; FILCH_NOT_READY before. Any
     * thread. */
    filch_status (*reached)(fl_device *device, fl_marker marker, filch_error *error);
    /* Returns whether the marker, of this device, is known to be past, without asking the driver.
     * Any thread; wait-free. */
    bool (*is_past)(const fl_device *device, fl_marker marker);
    /* Blocks until the marker is past; otherwise as reached, but never FILCH_NOT_READY. NULL: the
     * caller repeats reached. A virtual device does not block, as no thread would move the clock:
     * work started next begins no sooner than the marker. Any thread. */
    filch_status (*await)(fl_device *device, fl_marker marker, filch_error *error);
    /* Virtual devices: returns the earliest time after now of an operation's end on a lane, or of
     * the device's loss. FL_TIME_NEVER: no event. Null for other devices. Owner only. */
    uint64_t (*next_event)(const fl_device *device, uint64_t now);
    /* Waits until nothing is in flight on any lane of the device. Any thread. */
    filch_status (*drain)(fl_device *device, filch_error *error);
} fl_lane_ops;

/* Copies on the copy lanes, and links between memories. Null unless devices compute by themselves.
 * Any thread. */
typedef struct fl_copy_ops {
    /* Starts a copy on a copy lane of the device: to its memory node, or from the node to the host
     * or to a reachable node. Copies from or to pageable memory may block for the copy's whole
     * time. */
    filch_status (*start)(fl_device *device, fl_copy *copy, filch_error *error);
    /* Lets the device's copies reach a second device's memory where the machine can: sets
     * device->peers. Both devices are open. unlink undoes the link before either device is
     * closed. */
    void (*link)(fl_device *device, const fl_device *other);
    void (*unlink)(fl_device *device, const fl_device *other);
    /* Describes the link from the device's memory to a second device of the backend, or (null) to
     * the host's memory. Fills has_access, has_atomics and rank. */
    filch_status (*link_describe)(const fl_device *device, const fl_device *other, filch_link *link,
                                  filch_error *error);
    /* Measures copies between the memories of two devices of the backend, in bytes a second. Either
     * device may be null: the host. Blocks. */
    filch_status (*link_measure)(const fl_device *from, const fl_device *to, double *rate,
                                 filch_error *error);
} fl_copy_ops;

/* Memory of the device's node. Null unless devices compute by themselves. Every call but clear may
 * serialize the device. Any thread. */
typedef struct fl_memory_ops {
    /* Take and give a block of the node's memory. */
    filch_status (*take)(fl_device *device, size_t bytes, void **block, filch_error *error);
    void (*give)(fl_device *device, void *block);
    /* Starts to fill a block with zeroes on the device's own FL_LANE_IN, after a marker (0: no
     * marker). */
    filch_status (*clear)(fl_device *device, void *block, size_t bytes, fl_marker behind,
                          fl_marker *marker, filch_error *error);
    /* Take and give chunks of the node's memory, for the arena to cut. Chunks are mapped readable
     * and writable for every device whose copies reach the node. bytes is a multiple of the
     * granularity. The granularity is a power of two of at least 4096 and the alignment of chunks.
     * A chunk given back is used by nothing in flight. */
    filch_status (*chunk_granularity)(const fl_device *device, size_t *bytes, filch_error *error);
    filch_status (*chunk_take)(fl_device *device, size_t bytes, void **chunk, filch_error *error);
    void (*chunk_give)(fl_device *device, void *chunk, size_t bytes);
} fl_memory_ops;

/* A driver's memory pool, made for filch, keeping blocks given back until a trim. Null for backends
 * without pools. Any thread. */
typedef struct fl_pool_ops {
    /* FILCH_UNSUPPORTED: the device has no pools. */
    filch_status (*open)(fl_device *device, const fl_memory *memory, void **pool,
                         filch_error *error);
    void (*close)(fl_device *device, const fl_memory *memory, void *pool);
    /* A block taken is usable on any lane at once; a block given back is used by nothing in
     * flight. */
    filch_status (*take)(fl_device *device, void *pool, size_t bytes, void **block,
                         filch_error *error);
    void (*give)(fl_device *device, void *pool, void *block);
    void (*trim)(fl_device *device, void *pool);
} fl_pool_ops;

/* Compiled images and their kernels. Null for backends without kernels. Any thread. */
typedef struct fl_module_ops {
    /* Code of the device's target, for which its images are compiled, e.g. 90. */
    uint32_t (*target)(const fl_device *device);
    /* Version of the driver loading the images, e.g. 12040 for CUDA 12.4. */
    int (*version)(const fl_device *device);
    /* Loads an image for the device's memory node, and finds a kernel in a loaded image. */
    filch_status (*load)(fl_device *device, const void *image, size_t bytes, const char *label,
                         void **module, filch_error *error);
    void (*unload)(fl_device *device, void *module);
    filch_status (*function_get)(fl_device *device, void *module, const char *entry,
                                 const char *label, fl_function *function, filch_error *error);
} fl_module_ops;

/* A graph of kernels and dependences, put on a lane repeatedly by a single call (fl_launch.graph).
 * Null for backends without graphs. Owner only. */
typedef struct fl_graph_ops {
    /* Makes an empty graph. */
    filch_status (*create)(fl_device *device, const fl_memory *memory, void **graph,
                           filch_error *error);
    /* Adds a kernel, numbered from 0, to run after the kernels listed in `behind`. Parameters are
     * copied. */
    filch_status (*add)(fl_device *device, void *graph, const fl_launch *launch,
                        const uint32_t *behind, uint32_t behind_count, filch_error *error);
    /* Makes the graph ready, and may take long. */
    filch_status (*seal)(fl_device *device, void *graph, filch_error *error);
    /* Frees a graph with no launch in flight. Any thread. */
    void (*free)(fl_device *device, void *graph);
} fl_graph_ops;

/* Traces of copies. Null for backends without copies. */
typedef struct fl_trace_ops {
    /* Starts to record the copies of every copy lane, from FL_LANE_IN on. Every call passes the
     * same rings; the rings outlive the lanes. Copies refused by the driver are counted as missed.
     * May return FILCH_OUT_OF_MEMORY. A single call at a time. */
    filch_status (*start)(fl_device *device, const fl_memory *memory,
                          struct fl_trace_ring *const rings[FL_COPY_LANES]);
    /* Stops recording, except for copies under way. Any thread; wait-free. */
    void (*stop)(fl_device *device);
    /* begins: adds copies known to be over to the rings, and then nothing until a second call with
     * false. Must not overlap with start. NULL: a copy is in its ring once it is over. */
    void (*hold)(fl_device *device, bool begins);
} fl_trace_ops;

/* The host program's own use of the device, by the device's programming interface: calls, events,
 * memory. Null for backends without an interface. Any thread. */
typedef struct fl_interop_ops {
    /* Calls body with the device's context current and a stream used by no work item (lane->lane is
     * the number of compute lanes); *code is the value returned by body. Restores the caller's
     * context, whatever body leaves. */
    filch_status (*within)(fl_device *device, int (*body)(const filch_lane *lane, void *user),
                           void *user, int *code, filch_error *error);
    /* Calls body once per compute lane, with the device's context current, until a call returns a
     * value other than 0, and returns the last value. */
    int (*each_lane)(fl_device *device, int (*body)(const filch_lane *lane, void *user),
                     void *user);
    /* Returns FILCH_OK once the event's last recording is past; FILCH_NOT_READY before. label names
     * the event's owner in errors. */
    filch_status (*event_past)(const fl_device *device, void *event, const char *label,
                               filch_error *error);
    /* Records an event of the device's context, after no work. */
    filch_status (*event_record)(fl_device *device, void *event, const char *label,
                                 filch_error *error);
    /* Checks whether `bytes` from a pointer on lie in a single allocation of the device's memory
     * node. Anybody may have made the allocation in the device's context; the device's kernels and
     * copies may use the memory. Returns FILCH_INVALID_ARGUMENT otherwise; error gives the
     * reason. */
    filch_status (*check)(const fl_device *device, const void *pointer, size_t bytes,
                          const char *label, filch_error *error);
    /* Page-locks a buffer of the host, until unpinned, for the copies of every device of the
     * backend. FILCH_WRONG_STATE: the buffer or a part is locked already. May serialize the device;
     * an unpinned buffer is used by nothing in flight. */
    filch_status (*pin)(fl_device *device, void *buffer, size_t bytes, const char *label,
                        filch_error *error);
    void (*unpin)(fl_device *device, void *buffer);
} fl_interop_ops;

/* A backend without a capability has a null table. */
struct fl_backend {
    const char *name; /* "host", "cuda", "sim": the word of the device grammar */
    filch_backend kind;
    bool is_virtual; /* runs on the virtual clock */
    const fl_device_ops *device;
    const fl_queue_ops *queue;
    const fl_lane_ops *lane;
    const fl_copy_ops *copy;
    const fl_memory_ops *memory;
    const fl_pool_ops *pool;
    const fl_module_ops *module;
    const fl_graph_ops *graph;
    const fl_trace_ops *trace;
    const fl_interop_ops *interop;
    /* Multicast objects. Only memory/host/multicast.c uses the table. */
    const struct fl_multicast_ops *multicast;
};

/* Returns whether a call has found the device lost; see fl_device_ops.lost. */
static inline bool fl_device_is_lost(const fl_device *device, filch_error *error)
{
    return device->backend->device->lost != NULL && device->backend->device->lost(device, error);
}

/* Blocks until the marker, of this device, is past; otherwise as fl_lane_ops.reached. */
static inline filch_status fl_device_await(fl_device *device, fl_marker marker, filch_error *error)
{
    const fl_lane_ops *lane = device->backend->lane;
    filch_status status;
    if (lane->await != NULL) {
        return lane->await(device, marker, error);
    }
    while ((status = lane->reached(device, marker, error)) == FILCH_NOT_READY) {
        fl_relax();
    }
    return status;
}

/* The table of built-in backends, NULL-terminated. */
const fl_backend *const *fl_backends(void);
const fl_backend *fl_backend_by_kind(filch_backend kind);
/* Check made by enumerate before allocating. Returns FILCH_UNSUPPORTED, at the line or label in
 * `where`, when `wanted` devices beyond the existing `count` exceed FL_DEVICE_LIMIT. */
filch_status fl_backend_check_limit(const fl_discovery *how, size_t count, size_t wanted,
                                    fl_fault where);

/* Adds a device to how->refusals and logs the device's name and the reason. Adds nothing when
 * memory is out: a record of a failure must not become a failure. */
void fl_backend_refuse(const fl_discovery *how, filch_backend kind, const char *name,
                       uint32_t ordinal, const filch_error *error);

#endif
