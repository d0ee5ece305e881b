/* SPDX-License-Identifier: Apache-2.0 */
/* The host functions of filch's kernels, as twins of their CUDA sources. */
#ifndef TESTS_FAKE_TWINS_H
#define TESTS_FAKE_TWINS_H

#include "fakecuda.h"
#include "filch/kernels.h"

static inline void fake_twins_register(void)
{
    const filch_kernel *kernel;

    for (size_t i = 0; (kernel = filch_kernel_at(i)) != NULL; i++) {
        fakecuda_register_filch(kernel->cuda->entry, kernel->host, kernel->view_count,
                                kernel->is_batch != 0, kernel->arg_size);
    }
}

#endif
