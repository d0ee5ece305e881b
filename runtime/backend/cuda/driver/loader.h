/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the CUDA driver of the process, or of the machine, and takes its entry points. */
#ifndef FL_BACKEND_CUDA_DRIVER_LOADER_H
#define FL_BACKEND_CUDA_DRIVER_LOADER_H

#include "backend/cuda/driver/api.h"
#include "base/error.h"

typedef struct fl_cuda_library {
    fl_cuda_api api;
    void *handle;   /* of dlopen */
    int version;    /* of the driver, e.g. 12040 */
    uint32_t count; /* GPUs that CUDA_VISIBLE_DEVICES leaves */
    uint32_t users; /* GPUs described from it, and who looks for some; the creating thread's */
} fl_cuda_library;

/* A library already in the process is taken first; it is initialised, and must have at least the
 * entry points that every driver since 12.0 has. A driver without any GPU loads well, with a count
 * of 0. May be tried again after a failure, which leaves nothing behind:
 * FILCH_NO_DRIVER       there is none
 * FILCH_DRIVER_STUB     the library is the toolkit's stub, made for linking only
 * FILCH_DRIVER_TOO_OLD  older than CUDA 12.0
 * FILCH_DRIVER_BROKEN   an entry point is missing, or initialisation fails
 * Thread safety: any thread; blocks while the driver starts. */
filch_status fl_cuda_load(fl_cuda_library *library, filch_error *error);
/* The same on a library of the caller's choice; name is null for the usual ones. */
filch_status fl_cuda_load_named(fl_cuda_library *library, const char *name, filch_error *error);
/* The driver's threads and state may outlive every caller: only the reference is given back. */
void fl_cuda_unload(fl_cuda_library *library);

#endif
