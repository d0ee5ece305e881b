/* SPDX-License-Identifier: Apache-2.0 */
/* One physical GPU (or MIG instance) in a runtime: what is known of it, its context, and the
 * scoped use of that context. Slices of the GPU share it. */
#ifndef FL_BACKEND_CUDA_GPU_H
#define FL_BACKEND_CUDA_GPU_H

#include "backend/backend.h"
#include "backend/cuda/driver/loader.h"
#include "base/atomic.h"
#include "base/config.h"

/* Slices of one GPU at most, as in the specification. */
#define FL_CUDA_SLICES 64

typedef struct fl_cuda_gpu {
    const fl_cuda_api *api; /* of library */
    fl_cuda_library *library;
    CUcontext context; /* null before the first open */
    CUdevice device;
    uint32_t ordinal;       /* as cuDeviceGet counts */
    uint32_t arch;          /* 90: compute capability 9.0 */
    uint32_t sms;           /* multiprocessors of the whole GPU */
    uint32_t shared_most;   /* bytes of shared memory that a block may opt in to */
    uint32_t grid_most[3];  /* blocks along each axis */
    uint32_t block_most[3]; /* threads of one along each axis */
    bool is_private;        /* the context is filch's own, else the primary one */
    bool has_clusters;
    struct fl_cuda_stage *stage; /* of copies of pageable memory; while some device is open */
    bool maps_chunks; /* chunks of its memory are mapped; since their granularity was asked for */
    char name[16];    /* "cuda:0" */
    _Atomic uint32_t is_lost; /* only ever set: fl_cuda_lost */
    const char *lost_call;    /* which said so first, … */
    CUresult lost_result;     /* … and what; for fl_cuda_lost */
    /* The creating thread's: */
    uint32_t users;   /* devices that share it */
    uint32_t opens;   /* of them, open */
    uint64_t budget;  /* bytes that they may take together; since the first open */
    uint64_t reached; /* bits of the ordinals, of the first 64, that copies reach */
    uint64_t enabled; /* of them, those that were not reached before */
    uint64_t readers; /* bits of the ordinals, of the first 64, whose copies reach this one */
    /* The cut; slice_count is 0 for a whole GPU. Made and destroyed with the context. */
    uint32_t slice_count;
    uint32_t slice_sms[FL_CUDA_SLICES];
    CUgreenCtx slices[FL_CUDA_SLICES];
} fl_cuda_gpu;

/* A host thread's use of a GPU's context: between enter and leave it is current. */
typedef struct fl_cuda_scope {
    fl_cuda_gpu *gpu;
    CUcontext before; /* what was current */
} fl_cuda_scope;

/* Records a driver call's failure and returns its status: FILCH_NO_DEVICE_MEMORY,
 * FILCH_DEVICE_LOST (the gpu is marked lost: its context answers every later call alike), or
 * FILCH_BACKEND. device and label may be null; so may error. Thread safety: any thread. */
filch_status fl_cuda_fail(fl_cuda_gpu *gpu, CUresult result, const char *call, const char *device,
                          const char *label, filch_error *error);
/* The same before there is a GPU. */
filch_status fl_cuda_fail_api(const fl_cuda_api *api, CUresult result, const char *call,
                              const char *device, const char *label, filch_error *error);
/* The status alone. */
filch_status fl_cuda_status(CUresult result);
/* Marks it lost, whatever code says so: the context takes no calls, or nobody can tell any more how
 * far its work is. Fills *error; FILCH_DEVICE_LOST. */
filch_status fl_cuda_lose(fl_cuda_gpu *gpu, CUresult result, const char *call, const char *device,
                          filch_error *error);
/* Whether it is; then, where error is not null, it is filled. Any thread. */
bool fl_cuda_lost(const fl_cuda_gpu *gpu, const char *device, filch_error *error);

/* Makes the GPU's context current until fl_cuda_leave. A context that the host destroyed or reset
 * is FILCH_DEVICE_LOST, and then there is nothing to leave. Any thread. */
filch_status fl_cuda_enter(fl_cuda_gpu *gpu, fl_cuda_scope *scope, filch_error *error);
/* Ends the scope; what was entered must have been left. False where it was not: then what was
 * current before is current again, but contexts may be on the stack that were not there. */
bool fl_cuda_leave(fl_cuda_scope *scope);

/* The same around code of the host's, which may leave the stack of contexts in any state: it is
 * emptied before and put back after, exactly, if it is no deeper than FL_CUDA_GUARDED. */
#define FL_CUDA_GUARDED 32

typedef struct fl_cuda_guard {
    fl_cuda_gpu *gpu;
    uint32_t depth;
    CUcontext stack[FL_CUDA_GUARDED]; /* top first */
} fl_cuda_guard;

filch_status fl_cuda_guard_enter(fl_cuda_gpu *gpu, fl_cuda_guard *guard, filch_error *error);
void fl_cuda_guard_leave(fl_cuda_guard *guard);

/* Opens the context, primary or private as settings (null: the defaults) say, and cuts the slices;
 * a second open only counts. On failure nothing is left open. */
filch_status fl_cuda_gpu_open(fl_cuda_gpu *gpu, const fl_settings *settings, filch_error *error);
/* Undoes one open; the last one destroys or releases the context. */
void fl_cuda_gpu_close(fl_cuda_gpu *gpu);

#endif
