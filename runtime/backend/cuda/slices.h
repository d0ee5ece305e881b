/* SPDX-License-Identifier: Apache-2.0 */
/* Slices: unequal devices made from a GPU by dividing its multiprocessors.
 *
 * The driver splits the multiprocessors once, into small groups; a slice consists of several
 * groups. A slice is a green context used only to make streams. The streams run in the primary
 * context on the slice's multiprocessors: kernels load once and memory is shared. The green context
 * is never current, as only one thread could make it current. */
#ifndef FL_BACKEND_CUDA_SLICES_H
#define FL_BACKEND_CUDA_SLICES_H

#include "backend/cuda/gpu.h"

/* Possible division of a GPU. */
typedef struct fl_cuda_cut {
    uint32_t sms;         /* multiprocessors available to slices */
    uint32_t granularity; /* unit of a slice's multiprocessors */
    uint32_t groups;      /* number of groups of `granularity` multiprocessors */
    bool ignores_coscheduling;
} fl_cuda_cut;

/* Checks whether gpu->slice_sms is possible, and fills *cut; asks the driver, makes nothing.
 * Returns FILCH_UNSUPPORTED for a driver without slices. Returns FILCH_INVALID_ARGUMENT, naming the
 * possible sizes, for sizes the GPU does not allow. */
filch_status fl_cuda_slices_check(fl_cuda_gpu *gpu, fl_cuda_cut *cut, filch_error *error);
/* Makes the slices of a GPU with an open context; a failure leaves none. Does nothing where
 * slice_count is 0. */
filch_status fl_cuda_slices_open(fl_cuda_gpu *gpu, filch_error *error);
void fl_cuda_slices_close(fl_cuda_gpu *gpu);

#endif
