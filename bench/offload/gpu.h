/* SPDX-License-Identifier: Apache-2.0 */
/* The bench's own way to a GPU, beside filch's: for peers, for page-locked memory and for the
 * vendor's libraries. It stands on the same primary context, through a library and a reference of
 * its own. */
#ifndef BENCH_GPU_H
#define BENCH_GPU_H

#include "filch/filch.h"

#include "backend/cuda/driver/loader.h"

#include <stdbool.h>

typedef struct bench_gpu {
    fl_cuda_library library;
    CUdevice device;
    CUcontext context; /* null: not open */
} bench_gpu;

/* FILCH_UNKNOWN_ORDINAL where there is no such GPU, and what fl_cuda_load() gives where there is no
 * driver. On failure nothing is left open. */
filch_status bench_gpu_open(bench_gpu *gpu, uint32_t ordinal, filch_error *error);
/* What is not open is left alone. */
void bench_gpu_close(bench_gpu *gpu);
/* Ordinal of the first GPU of a specification (null: FILCH_DEVICES, else every GPU); UINT32_MAX
 * where it names none. */
uint32_t bench_gpu_first(const char *devices);
/* GPUs that the driver shows; 0 with the reason in error. */
uint32_t bench_gpu_count(filch_error *error);
/* Whether the devices of a specification can be GPUs, in part at least. */
bool bench_gpu_is_among(const char *devices);

static inline const fl_cuda_api *bench_gpu_api(const bench_gpu *gpu)
{
    return &gpu->library.api;
}

/* E.g. 13000. */
static inline int bench_gpu_driver(const bench_gpu *gpu)
{
    return gpu->library.version;
}

static inline void *bench_gpu_pointer(CUdeviceptr address)
{
    return (void *)(uintptr_t)address;
}

/* FILCH_BACKEND, with the driver's name of the result; FILCH_OK where it is a success. */
filch_status bench_gpu_check(const bench_gpu *gpu, CUresult result, const char *call,
                             filch_error *error);

/* Makes the context current to the calling thread until leave, which restores what was. */
filch_status bench_gpu_enter(const bench_gpu *gpu, filch_error *error);
void bench_gpu_leave(const bench_gpu *gpu);

/* --- With the context current. A failure is that of the driver's call. --- */

/* A stream that waits for no other. */
filch_status bench_gpu_stream(const bench_gpu *gpu, CUstream *stream, filch_error *error);
/* Until all that was put on the stream is done. */
filch_status bench_gpu_wait(const bench_gpu *gpu, CUstream stream, filch_error *error);
filch_status bench_gpu_alloc(const bench_gpu *gpu, CUdeviceptr *block, size_t bytes,
                             filch_error *error);
/* Frees a block and destroys a stream, and makes null of them; what is null is left alone. */
void bench_gpu_free(const bench_gpu *gpu, CUdeviceptr *block);
void bench_gpu_stream_free(const bench_gpu *gpu, CUstream *stream);
/* Copies to the GPU, from it and on it, in the order of the stream; they do not wait. */
filch_status bench_gpu_send(const bench_gpu *gpu, CUdeviceptr to, const void *from, size_t bytes,
                            CUstream stream, filch_error *error);
filch_status bench_gpu_fetch(const bench_gpu *gpu, void *to, CUdeviceptr from, size_t bytes,
                             CUstream stream, filch_error *error);
filch_status bench_gpu_copy(const bench_gpu *gpu, CUdeviceptr to, CUdeviceptr from, size_t bytes,
                            CUstream stream, filch_error *error);

/* --- On any thread --- */

/* Locks the pages of memory for every GPU: copies then run at full speed and beside the host. False
 * where the system does not allow that. Close the GPU after unpin, free the memory after both. */
bool bench_gpu_pin(const bench_gpu *gpu, void *memory, size_t bytes);
void bench_gpu_unpin(const bench_gpu *gpu, void *memory);
/* Zeroed memory of the host's that kernels of every GPU reach at the same address; null where there
 * is none. */
void *bench_gpu_shared_alloc(const bench_gpu *gpu, size_t bytes);
void bench_gpu_shared_free(const bench_gpu *gpu, void *memory);

#endif
