/* SPDX-License-Identifier: Apache-2.0 */
/* What tasks do on a GPU: kernels for the sparse work, cuBLAS and cuSOLVER for the dense. They are
 * there where the program is built with WITH_CUBLAS. */
#ifndef TASKS_GPU_H
#define TASKS_GPU_H

#include <filch/filch.h>

/* The workspace of cuSOLVER for pivot blocks; it must outlive the runtime. */
typedef struct gpu_space {
    int order;    /* of the largest pivot block */
    int elements; /* found when the codelet is made; 0: no GPU */
} gpu_space;

/* Describes what a kind of task does on a GPU. False: it cannot run there. */
bool gpu_describe(const char *kind, gpu_space *space, filch_cuda_desc *made);

#endif
