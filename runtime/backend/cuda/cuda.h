/* SPDX-License-Identifier: Apache-2.0 */
/* NVIDIA GPUs through the CUDA driver: whole GPUs, MIG instances, and slices of a GPU. */
#ifndef FL_BACKEND_CUDA_CUDA_H
#define FL_BACKEND_CUDA_CUDA_H

#include "backend/backend.h"

extern const fl_backend fl_cuda_backend;

#endif
