/* SPDX-License-Identifier: Apache-2.0 */
/* What a backend implements: plain data, one table a backend. A new backend is a new folder under
 * runtime/backend and one line in backend.c. Members may be NULL where the text says so.
 *
 * Every call returns a status, none aborts, and each records its native code in the fl_fault
 * of the error it fills. */
#ifndef FL_BACKEND_BACKEND_H
#define FL_BACKEND_BACKEND_H

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "filch/device.h"

/* Devices of one runtime at most; a multiple of 64. */
#define FL_DEVICE_LIMIT 1024

typedef struct fl_backend fl_backend;
typedef struct fl_device fl_device;

/* Kinds of implementation that a codelet may have, as bits. */
#define FL_IMPL_HOST_FN 1u

/* One item of a device specification, parsed (device/spec.h). */
typedef struct fl_device_spec {
    filch_backend backend;
    bool has_number;      /* cuda:N, host:N */
    uint32_t number;      /* ordinal of a GPU, count of host devices */
    uint32_t team;        /* host:NxT; 0 = not given */
    uint32_t slice_count; /* cuda:N/a+b+c */
    uint32_t slices[64];
    char file[256];  /* sim:FILE */
    uint32_t column; /* where the item starts in the text, from 1 */
} fl_device_spec;

/* An execution resource, as its backend describes it. The registry owns the array. */
struct fl_device {
    filch_device_info info;
    const fl_backend *backend;
    void *state;              /* the backend's own, made by open, gone after close */
    uint32_t place;           /* index of its memory place; 0 is always the host's memory */
    uint32_t implementations; /* FL_IMPL_* bits: what it can run */
    bool is_synchronous;      /* tiles run on the worker's own thread; launch is NULL */
    bool calls_host_fn;   /* an asynchronous device whose tiles' results the host function makes */
    uint32_t window;      /* tiles in flight that keep it busy; 1 when synchronous */
    uint64_t overhead_ns; /* dispatch overhead of one tile, a prior; measured later */
};

/* A tile handed to an asynchronous device. */
typedef struct fl_launch {
    double cost;  /* abstract units of work, for devices that only pretend */
    uint64_t tag; /* the worker's own name for the tile */
} fl_launch;

/* What enumerate needs and reports into. */
typedef struct fl_discovery {
    const fl_memory *memory;
    const fl_log *log;
    filch_error *error; /* details of a failure; may be null */
} fl_discovery;

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
    /* Free bytes of the device's place now. */
    filch_status (*memory_free)(const fl_device *device, uint64_t *bytes);

    /* Asynchronous devices only (NULL when is_synchronous): */
    /* Starts a tile at time now; tiles of one device run in launch order. FILCH_BUSY, and nothing
     * is started, where more tiles are in flight than the device can hold (at least its window). */
    filch_status (*launch)(fl_device *device, const fl_launch *launch, uint64_t now);
    /* Tag and device seconds of the oldest tile launched and finished by now;
     * FILCH_NOT_READY when none is. *next: when to ask again (FL_TIME_NEVER: nothing in flight). */
    filch_status (*poll)(fl_device *device, uint64_t now, uint64_t *tag, uint64_t *busy_ns,
                         uint64_t *next);
};

/* The table of backends built in, NULL-terminated. */
const fl_backend *const *fl_backends(void);
const fl_backend *fl_backend_by_kind(filch_backend kind);
/* For enumerate, before it allocates: FILCH_UNSUPPORTED, at line or label as `where` has it, when
 * `wanted` more devices than the `count` there are would be over FL_DEVICE_LIMIT. */
filch_status fl_backend_check_limit(const fl_discovery *how, size_t count, size_t wanted,
                                    fl_fault where);

#endif
