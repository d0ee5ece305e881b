/* SPDX-License-Identifier: Apache-2.0 */
/* Checks and page-locks memory not owned by filch. */
#ifndef FL_BACKEND_CUDA_DRIVER_POINTER_H
#define FL_BACKEND_CUDA_DRIVER_POINTER_H

#include "backend/backend.h"

filch_status fl_cuda_memory_check(const fl_device *device, const void *pointer, size_t bytes,
                                  const char *label, filch_error *error);
filch_status fl_cuda_memory_pin(fl_device *device, void *buffer, size_t bytes, const char *label,
                                filch_error *error);
void fl_cuda_memory_unpin(fl_device *device, void *buffer);

#endif
