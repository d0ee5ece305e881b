/* SPDX-License-Identifier: Apache-2.0 */
#include "backend/cuda/queue/known.h"

/* Bytes of a region, as a power of two. An entry: copies until the driver is asked again, a bit,
 * and the region from the eighth bit on. */
#define REGION_BITS 16
#define ASK_AGAIN 63u
#define KNOWN_PINNED 64u

bool fl_cuda_is_pageable(const fl_cuda_api *api, fl_cuda_known *known, const void *pointer)
{
    /* Relaxed throughout: each entry is complete by itself, and may be wrong. */
    uint64_t region = (uint64_t)(uintptr_t)pointer >> REGION_BITS;
    _Atomic uint64_t *at = &known->at[region % FL_CUDA_KNOWN];
    uint64_t entry = fl_load_relaxed(at);
    if (entry >> 8 == region && (entry & ASK_AGAIN) != 0) {
        fl_store_relaxed(at, entry - 1);
        return (entry & KNOWN_PINNED) == 0;
    }
    unsigned type = 0;
    CUresult result = api->cuPointerGetAttribute(&type, FL_CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                                 (CUdeviceptr)(uintptr_t)pointer);
    /* Ignore other failures: the copy will report the cause. */
    bool is_pinned = result != FL_CUDA_ERROR_INVALID_VALUE;
    fl_store_relaxed(at, region << 8 | (is_pinned ? KNOWN_PINNED : 0) | ASK_AGAIN);
    return !is_pinned;
}
