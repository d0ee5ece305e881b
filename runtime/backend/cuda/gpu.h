/* SPDX-License-Identifier: Apache-2.0 */
/* A physical GPU (or MIG instance) in a runtime: its properties, its context, and the scoped use of
 * the context. All slices of the GPU share the state. */
#ifndef FL_BACKEND_CUDA_GPU_H
#define FL_BACKEND_CUDA_GPU_H

#include "backend/backend.h"
#include "backend/cuda/driver/loader.h"
#include "base/atomic.h"
#include "base/config.h"

/* Largest number of slices of a GPU, as in the specification. */
#define FL_CUDA_SLICES 64

typedef struct fl_cuda_gpu {
    const fl_cuda_api *api; /* entry points of library */
    fl_cuda_library *library;
    CUcontext context; /* null before the first open */
    CUdevice device;
    uint32_t ordinal;       /* number used by cuDeviceGet */
    uint32_t arch;          /* 90: compute capability 9.0 */
    uint32_t sms;           /* multiprocessors of the whole GPU */
    uint32_t shared_most;   /* bytes of shared memory available to a block by opt-in */
    uint32_t grid_most[3];  /* blocks along each axis */
    uint32_t block_most[3]; /* threads of a block along each axis */
    bool is_private;        /* the context is filch's own, not the primary context */
    bool has_clusters;
    /* staging of copies of pageable memory; exists while a device is open */
    struct fl_cuda_stage *stage;
    bool maps_chunks; /* chunks of memory are mapped; set by the call for their granularity */
    char name[16];    /* "cuda:0" */
    /* set by note_lost, cleared by the first open; asked by fl_cuda_lost */
    _Atomic uint32_t is_lost;
    const char *lost_call; /* first call that reported the loss; for fl_cuda_lost */
    CUresult lost_result;  /* result of lost_call; for fl_cuda_lost */
    /* Members of the creating thread: */
    uint32_t users;   /* devices sharing the GPU */
    uint32_t opens;   /* number of open devices among users */
    uint64_t budget;  /* bytes all devices may take together; set by the first open */
    uint64_t reached; /* bits of the first 64 ordinals: GPUs reached by copies */
    uint64_t enabled; /* subset of reached: access enabled by filch */
    uint64_t readers; /* bits of the first 64 ordinals: GPUs whose copies reach this GPU */
    /* Slices; slice_count is 0 for a whole GPU. Made and destroyed with the context. */
    uint32_t slice_count;
    uint32_t slice_sms[FL_CUDA_SLICES];
    CUgreenCtx slices[FL_CUDA_SLICES];
} fl_cuda_gpu;

/* Use of a GPU's context by a host thread: the context is current between enter and leave. */
typedef struct fl_cuda_scope {
    fl_cuda_gpu *gpu;
    CUcontext before; /* context current before */
} fl_cuda_scope;

/* Records a driver call's failure and returns its status: FILCH_NO_DEVICE_MEMORY,
 * FILCH_DEVICE_LOST, or FILCH_BACKEND. FILCH_DEVICE_LOST marks the gpu lost: the context answers
 * every later call alike. device and label may be null; error may be null, too. Thread safety: any
 * thread. */
filch_status fl_cuda_fail(fl_cuda_gpu *gpu, CUresult result, const char *call, const char *device,
                          const char *label, filch_error *error);
/* Records a failure like fl_cuda_fail, before a GPU exists. */
filch_status fl_cuda_fail_api(const fl_cuda_api *api, CUresult result, const char *call,
                              const char *device, const char *label, filch_error *error);
/* Returns the status of a result. */
filch_status fl_cuda_status(CUresult result);
/* Marks the GPU lost, whatever the result's code: the context takes no calls, or the progress of
 * its work is unknown. Fills *error and returns FILCH_DEVICE_LOST. */
filch_status fl_cuda_lose(fl_cuda_gpu *gpu, CUresult result, const char *call, const char *device,
                          filch_error *error);
/* Returns whether the GPU is lost, and fills a non-null error if so. Any thread. */
bool fl_cuda_lost(const fl_cuda_gpu *gpu, const char *device, filch_error *error);

/* Makes the GPU's context current until fl_cuda_leave. Returns FILCH_DEVICE_LOST for a context
 * destroyed or reset by the host; the caller then has nothing to leave. Any thread. */
filch_status fl_cuda_enter(fl_cuda_gpu *gpu, fl_cuda_scope *scope, filch_error *error);
/* Ends the scope; inner scopes must have ended before. Returns false if an inner scope is still
 * open. The context before the scope is then current again, but unknown contexts may stay on the
 * stack. */
bool fl_cuda_leave(fl_cuda_scope *scope);

/* Guards a GPU's context around code of the host, which may leave the stack of contexts in any
 * state. The stack is emptied before and restored after, exactly, if no deeper than
 * FL_CUDA_GUARDED. */
#define FL_CUDA_GUARDED 32

typedef struct fl_cuda_guard {
    fl_cuda_gpu *gpu;
    uint32_t depth;
    CUcontext stack[FL_CUDA_GUARDED]; /* top first */
} fl_cuda_guard;

filch_status fl_cuda_guard_enter(fl_cuda_gpu *gpu, fl_cuda_guard *guard, filch_error *error);
void fl_cuda_guard_leave(fl_cuda_guard *guard);

/* Opens the context, primary or private as settings (null: the defaults) say, and makes the slices;
 * a second open only counts. A failure leaves nothing open. */
filch_status fl_cuda_gpu_open(fl_cuda_gpu *gpu, const fl_settings *settings, filch_error *error);
/* Undoes one open; the last close destroys or releases the context. */
void fl_cuda_gpu_close(fl_cuda_gpu *gpu);

#endif
