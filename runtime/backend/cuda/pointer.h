/* SPDX-License-Identifier: Apache-2.0 */
/* Device memory that is not filch's own. */
#ifndef FL_BACKEND_CUDA_POINTER_H
#define FL_BACKEND_CUDA_POINTER_H

#include "backend/backend.h"

filch_status fl_cuda_memory_check(const fl_device *device, const void *pointer, size_t bytes,
                                  const char *label, filch_error *error);

#endif
