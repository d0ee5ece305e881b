/* SPDX-License-Identifier: Apache-2.0 */
/* What the driver said of pointers of the host: page-locked or pageable. A question costs as much
 * as a small copy, so answers are remembered by regions for some copies. */
#ifndef FL_BACKEND_CUDA_QUEUE_KNOWN_H
#define FL_BACKEND_CUDA_QUEUE_KNOWN_H

#include <stdbool.h>
#include <stdint.h>

#include "backend/cuda/driver/api.h"
#include "base/atomic.h"

/* Number of remembered regions. */
#define FL_CUDA_KNOWN 512

/* Region, pinned or not, and copies until the next question. A wrong entry costs time and nothing
 * else. All zero: nothing is known. */
typedef struct fl_cuda_known {
    _Atomic uint64_t at[FL_CUDA_KNOWN];
} fl_cuda_known;

/* Returns whether the pointer is pageable, from the table or the driver. The context is current.
 * Any thread. */
bool fl_cuda_is_pageable(const fl_cuda_api *api, fl_cuda_known *known, const void *pointer);

#endif
