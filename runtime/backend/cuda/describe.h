/* SPDX-License-Identifier: Apache-2.0 */
/* Properties of a GPU, as told by the driver and the system. */
#ifndef FL_BACKEND_CUDA_DESCRIBE_H
#define FL_BACKEND_CUDA_DESCRIBE_H

#include "backend/cuda/gpu.h"

/* Fills *gpu (api and ordinal are set) and *info, except name, index, place and team of each
 * device. The GPU has no context yet; free bytes and budget stay unset. A GPU prohibiting contexts
 * is FILCH_UNSUPPORTED. settings (null: the defaults) select the affinity. */
filch_status fl_cuda_describe(fl_cuda_gpu *gpu, const fl_settings *settings,
                              filch_device_info *info, filch_error *error);
/* Reads the free and the total bytes of the GPU's memory; its context must be open. */
filch_status fl_cuda_memory(fl_cuda_gpu *gpu, uint64_t *free_bytes, uint64_t *total,
                            filch_error *error);
/* Computes the bytes filch may take, from the free bytes and the limit, a setting. Returns
 * FILCH_TOO_LARGE for a limit above the total. */
filch_status fl_cuda_budget(const fl_cuda_gpu *gpu, int64_t limit, uint64_t free_bytes,
                            uint64_t total, uint64_t *budget, filch_error *error);
/* Returns the single-precision multiply-adds a multiprocessor does in a cycle. */
uint32_t fl_cuda_single_lanes(uint32_t capability);

#endif
