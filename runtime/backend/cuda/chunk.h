/* SPDX-License-Identifier: Apache-2.0 */
/* Chunks of a GPU's memory for the arena, and pools of the driver's in its place. Members of the
 * table of operations; see backend.h. */
#ifndef FL_BACKEND_CUDA_CHUNK_H
#define FL_BACKEND_CUDA_CHUNK_H

#include "backend/backend.h"

/* Where the GPU has virtual memory management, a chunk is physical memory mapped into a range of
 * its own: that serializes nothing that runs, and it need not be given back as it was taken. Else
 * it is one of cuMemAlloc's. */
filch_status fl_cuda_chunk_granularity(const fl_device *device, size_t *bytes, filch_error *error);
filch_status fl_cuda_chunk_take(fl_device *device, size_t bytes, void **chunk, filch_error *error);
void fl_cuda_chunk_give(fl_device *device, void *chunk, size_t bytes);

/* The pool is filch's own: the default one's settings are the host program's. */
filch_status fl_cuda_pool_open(fl_device *device, const fl_memory *memory, void **pool,
                               filch_error *error);
void fl_cuda_pool_close(fl_device *device, const fl_memory *memory, void *pool);
filch_status fl_cuda_pool_take(fl_device *device, void *pool, size_t bytes, void **block,
                               filch_error *error);
void fl_cuda_pool_give(fl_device *device, void *pool, void *block);
void fl_cuda_pool_trim(fl_device *device, void *pool);

#endif
