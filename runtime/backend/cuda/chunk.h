/* SPDX-License-Identifier: Apache-2.0 */
/* Chunks of a GPU's memory for the arena, and the driver's memory pools as an alternative. Members
 * of the table of operations; see backend.h. */
#ifndef FL_BACKEND_CUDA_CHUNK_H
#define FL_BACKEND_CUDA_CHUNK_H

#include "backend/backend.h"

/* Chunks of physical memory mapped into their own address ranges, on GPUs with virtual memory
 * management. Mapping serializes nothing running, and lets chunks go back in any order. On other
 * GPUs cuMemAlloc gives the chunks. */
filch_status fl_cuda_chunk_granularity(const fl_device *device, size_t *bytes, filch_error *error);
filch_status fl_cuda_chunk_take(fl_device *device, size_t bytes, void **chunk, filch_error *error);
void fl_cuda_chunk_give(fl_device *device, void *chunk, size_t bytes);

/* Pool of filch's own: the default pool's settings belong to the host program. */
filch_status fl_cuda_pool_open(fl_device *device, const fl_memory *memory, void **pool,
                               filch_error *error);
void fl_cuda_pool_close(fl_device *device, const fl_memory *memory, void *pool);
filch_status fl_cuda_pool_take(fl_device *device, void *pool, size_t bytes, void **block,
                               filch_error *error);
void fl_cuda_pool_give(fl_device *device, void *pool, void *block);
void fl_cuda_pool_trim(fl_device *device, void *pool);

#endif
