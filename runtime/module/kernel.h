/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA implementation of a codelet. filch makes the implementation ready on every capable device
 * when the codelet is created: compiles for the devices' targets, loads once a place, and makes the
 * state of enqueue functions once a lane. No part of the preparation happens while tasks run. */
#ifndef FL_MODULE_KERNEL_H
#define FL_MODULE_KERNEL_H

#include "backend/backend.h"
#include "base/core.h"
#include "module/image.h"

/* Sources of kernels: images and devices, one object a runtime. */
typedef struct fl_modules {
    fl_core *core;
    fl_images images;
    fl_device *devices; /* devices of the pool, by index */
    uint32_t device_count, place_count;
} fl_modules;

/* Module of a place. */
typedef struct fl_loaded {
    void *module; /* null: not loaded in the place */
    fl_function function;
    bool fits; /* the geometry is constant, and within the function's limits */
} fl_loaded;

typedef struct fl_kernel {
    size_t bytes; /* size of the allocation */
    filch_enqueue_fn enqueue;
    filch_lane_open_fn open;
    filch_lane_close_fn close;
    void *user;
    filch_shape shape;
    filch_shape_fn shape_of;
    fl_loaded *places;              /* one element a place */
    void *(*states)[FL_LANE_LIMIT]; /* states of enqueue, by device and lane */
    uint8_t *open_lanes;            /* by device: bit set of the lanes with a state */
} fl_kernel;

filch_status fl_modules_init(fl_modules *modules, fl_core *core, fl_device *devices,
                             size_t device_count, uint32_t place_count);
void fl_modules_fini(fl_modules *modules);

/* Returns the fault of a descriptor, or null. */
const char *fl_kernel_check(const filch_cuda_desc *desc);

/* Makes the implementation ready on every device of the bit set runs_on that runs FL_IMPL_CUDA.
 * Clears the bits of devices without a usable implementation, and logs the reasons. Blocks during
 * compilation. *made is null where no device of the set runs FL_IMPL_CUDA.
 *
 * FILCH_COMPILE: the source is wrong, whatever the device. Further failures: the first device's
 * status, where no device of the set is left. */
filch_status fl_kernel_make(fl_modules *modules, const filch_cuda_desc *desc, const char *name,
                            uint64_t *runs_on, fl_kernel **made, filch_error *error);
/* Unloads the kernel everywhere; no call of the kernel may be in flight. Null is allowed. */
void fl_kernel_free(fl_modules *modules, fl_kernel *kernel);

/* Replaces zeros in the grid and the block by 1. */
void fl_kernel_complete_shape(filch_shape *shape);
/* Checks a geometry against the limits of the function. Returns null, or the fault. */
const char *fl_kernel_check_shape(const fl_function *function, const filch_shape *shape);

#endif
