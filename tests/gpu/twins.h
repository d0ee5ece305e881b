/* SPDX-License-Identifier: Apache-2.0 */
/* The host functions of filch's kernels on the fake driver. */
#ifndef TESTS_GPU_TWINS_H
#define TESTS_GPU_TWINS_H

#include "fake/twins.h"

#include <stdbool.h>

/* A kernel cannot fail its task, as the host functions of both factorizations do for a pivot. */
static inline int gpu_twin_potrf(const filch_call *call)
{
    static const char *const names[2][2] = {{"potrf_f32", "potrf_f64"},
                                            {"potrf_trtri_f32", "potrf_trtri_f64"}};
    bool is_double = call->views[0].element == sizeof(double);
    int code = filch_kernel_find(names[call->view_count == 3][is_double])->host(call);
    return code > 0 ? 0 : code;
}

static inline void gpu_twins_register(void)
{
    static const char *const names[] = {"potrf_f64", "potrf_f32", "potrf_trtri_f64",
                                        "potrf_trtri_f32"};
    fake_twins_register();
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        const filch_kernel *kernel = filch_kernel_find(names[k]);
        fakecuda_register_filch(kernel->cuda->entry, gpu_twin_potrf, kernel->view_count, false,
                                kernel->arg_size);
    }
}

#endif
