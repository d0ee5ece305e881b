/* SPDX-License-Identifier: Apache-2.0 */
/* The CUDA implementation of a codelet, made ready on every device that can have it when the
 * codelet is created: compiled for the devices' targets, loaded once a place, the state of enqueue
 * functions made once a lane. Nothing of that happens while tasks run. */
#ifndef FL_MODULE_KERNEL_H
#define FL_MODULE_KERNEL_H

#include "backend/backend.h"
#include "base/core.h"
#include "module/image.h"

/* What kernels are made from, one a runtime. */
typedef struct fl_modules {
    fl_core *core;
    fl_images images;
    fl_device *devices; /* of the pool, by index */
    uint32_t device_count, place_count;
} fl_modules;

/* One place's. */
typedef struct fl_loaded {
    void *module; /* null: not loaded there */
    fl_function function;
    bool fits; /* the geometry is constant, and within the function's limits */
} fl_loaded;

typedef struct fl_kernel {
    size_t bytes; /* of this allocation */
    filch_enqueue_fn enqueue;
    filch_lane_open_fn open;
    filch_lane_close_fn close;
    void *user;
    filch_shape shape;
    filch_shape_fn shape_of;
    fl_loaded *places;              /* one a place */
    void *(*states)[FL_LANE_LIMIT]; /* of enqueue, one a device and lane */
    uint8_t *open_lanes;            /* a device: lanes whose state was made */
} fl_kernel;

filch_status fl_modules_init(fl_modules *modules, fl_core *core, fl_device *devices,
                             size_t device_count, uint32_t place_count);
void fl_modules_fini(fl_modules *modules);

/* What is wrong with a descriptor, or null. */
const char *fl_kernel_check(const filch_cuda_desc *desc);

/* Makes the implementation ready on each device of the bit set runs_on that runs FL_IMPL_CUDA;
 * clears the bits of those on which it cannot be had, and logs why. Blocks while it compiles.
 * *made is null where no device of the set wants it.
 *
 * FILCH_COMPILE: the source is wrong, whatever the device. Another failure, the first device's,
 * where no device of the set is left. */
filch_status fl_kernel_make(fl_modules *modules, const filch_cuda_desc *desc, const char *name,
                            uint64_t *runs_on, fl_kernel **made, filch_error *error);
/* Unloads it everywhere; nothing of it is in flight. Null is allowed. */
void fl_kernel_free(fl_modules *modules, fl_kernel *kernel);

/* What is 0 becomes 1. */
void fl_kernel_complete_shape(filch_shape *shape);
/* Checks a geometry against the limits of the function: null, or what is wrong. */
const char *fl_kernel_check_shape(const fl_function *function, const filch_shape *shape);

#endif
