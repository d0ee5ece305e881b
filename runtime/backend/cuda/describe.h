/* SPDX-License-Identifier: Apache-2.0 */
/* What the driver and the system tell about a GPU. */
#ifndef FL_BACKEND_CUDA_DESCRIBE_H
#define FL_BACKEND_CUDA_DESCRIBE_H

#include "backend/cuda/gpu.h"

/* Fills *gpu (api and ordinal are set) and *info but for what belongs to one device: its name,
 * index, place and team. The GPU has no context yet, so neither free bytes nor a budget. A GPU that
 * takes no contexts is FILCH_UNSUPPORTED. settings (null: the defaults) say what the affinity is.
 */
filch_status fl_cuda_describe(fl_cuda_gpu *gpu, const fl_settings *settings,
                              filch_device_info *info, filch_error *error);
/* Bytes free in the GPU's memory, and all; its context must be open. */
filch_status fl_cuda_memory(fl_cuda_gpu *gpu, uint64_t *free_bytes, uint64_t *total,
                            filch_error *error);
/* What filch may take where that much is free and the limit, a setting, allows it. FILCH_TOO_LARGE
 * where it allows more than there is. */
filch_status fl_cuda_budget(const fl_cuda_gpu *gpu, int64_t limit, uint64_t free_bytes,
                            uint64_t total, uint64_t *budget, filch_error *error);
/* Single-precision multiply-adds that one multiprocessor does in a cycle. */
uint32_t fl_cuda_single_lanes(uint32_t capability);

#endif
