/* SPDX-License-Identifier: Apache-2.0 */
/* The work of tasks on a GPU: kernels for the sparse part, cuBLAS and cuSOLVER for the dense part.
 * Only a program that is built with WITH_CUBLAS has it. */
#ifndef TASKS_GPU_H
#define TASKS_GPU_H

#include <filch/filch.h>

/* The workspace of cuSOLVER for pivot blocks; it must outlive the runtime. */
typedef struct gpu_space {
    int order;    /* of the largest pivot block */
    int elements; /* found when the codelet is made; 0: no GPU */
} gpu_space;

/* Whether the program has it. */
bool gpu_is_built(void);

/* Describes the work of a kind of task on a GPU. False: it cannot run there. */
bool gpu_describe(const char *kind, gpu_space *space, filch_cuda_desc *made);

#endif
