/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the CUDA driver of the process, or of the machine, and takes its entry points. */
#ifndef FL_BACKEND_CUDA_DRIVER_LOADER_H
#define FL_BACKEND_CUDA_DRIVER_LOADER_H

#include "backend/cuda/driver/api.h"
#include "base/error.h"

typedef struct fl_cuda_library {
    fl_cuda_api api;
    void *handle;   /* handle returned by dlopen */
    int version;    /* version of the driver, e.g. 12040 */
    uint32_t count; /* GPUs visible under CUDA_VISIBLE_DEVICES */
    /* GPUs described from the library, and searches under way; of the creating thread */
    uint32_t users;
} fl_cuda_library;

/* Loads and initialises the driver's library, preferring a library already in the process. The
 * library must have at least the entry points common to all drivers since 12.0. A driver without
 * any GPU loads well, with a count of 0. A failure leaves nothing behind, and the caller may try
 * again:
 * FILCH_NO_DRIVER       the machine has no driver
 * FILCH_DRIVER_STUB     the library is the toolkit's stub, made for linking only
 * FILCH_DRIVER_TOO_OLD  older than CUDA 12.0
 * FILCH_DRIVER_BROKEN   an entry point is missing, or initialisation fails
 * Thread safety: any thread; blocks while the driver starts. */
filch_status fl_cuda_load(fl_cuda_library *library, filch_error *error);
/* Loads a library of the caller's choice, otherwise like fl_cuda_load; name is null for the usual
 * library. */
filch_status fl_cuda_load_named(fl_cuda_library *library, const char *name, filch_error *error);
/* Gives back the library's reference only: the driver's threads and state may outlive every
 * caller. */
void fl_cuda_unload(fl_cuda_library *library);

#endif
