/* SPDX-License-Identifier: Apache-2.0 */
/* One GPU cut into unequal devices by its multiprocessors.
 *
 * The driver splits the multiprocessors once, into small groups; a slice is made of several. It is
 * a green context whose only use is to make streams: those run in the primary context on the
 * slice's multiprocessors, so that kernels load once and memory is shared. The green context is
 * never current: it may be so to one thread only. */
#ifndef FL_BACKEND_CUDA_SLICES_H
#define FL_BACKEND_CUDA_SLICES_H

#include "backend/cuda/gpu.h"

/* How a GPU can be cut. */
typedef struct fl_cuda_cut {
    uint32_t sms;         /* that can be shared out */
    uint32_t granularity; /* each slice is a multiple of it */
    uint32_t groups;      /* of that many multiprocessors */
    bool ignores_coscheduling;
} fl_cuda_cut;

/* Whether, and how, gpu->slice_sms can be cut; asks the driver, makes nothing. FILCH_UNSUPPORTED
 * where the driver cannot cut, FILCH_INVALID_ARGUMENT with the possible sizes where the GPU cannot
 * be cut so. */
filch_status fl_cuda_slices_check(fl_cuda_gpu *gpu, fl_cuda_cut *cut, filch_error *error);
/* Makes the slices of a GPU whose context is open; none is left after a failure. Nothing to do
 * where slice_count is 0. */
filch_status fl_cuda_slices_open(fl_cuda_gpu *gpu, filch_error *error);
void fl_cuda_slices_close(fl_cuda_gpu *gpu);

#endif
