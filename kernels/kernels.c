/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/kernels.h"

#include <string.h>

/* No fused operations: the same bits as on the host. */
#define EXACT "--fmad=false"

/* waiting: the kernel calls filch_wait() first. */
#define CUDA(text, kernel, flags, shape_fn, waiting)                                              \
    &(const filch_cuda_desc)                                                                      \
    {                                                                                             \
        .size = sizeof(filch_cuda_desc), .source = (text), .entry = (kernel), .options = (flags), \
        .shape_of = (shape_fn), .waits = (waiting)                                                \
    }

#define ENTRY(kernel, suffix, file, views, args, flags, batch, work_fn, waiting)        \
    {                                                                                   \
        .name = #kernel "_" #suffix, .host = fl_##kernel##_##suffix, .work = (work_fn), \
        .cuda = CUDA(fl_text_##file, "filch_" #kernel "_" #suffix, flags,               \
                     fl_##kernel##_shape_##suffix, waiting),                            \
        .view_count = (views), .arg_size = (args), .is_batch = (batch)                  \
    }

#define TASK(kernel, views, args, waiting, flags64, flags32)                          \
    ENTRY(kernel, f64, kernel, views, args, flags64, 0, fl_##kernel##_work, waiting), \
        ENTRY(kernel, f32, kernel, views, args, flags32, 0, fl_##kernel##_work, waiting)

#define BATCH(kernel, file, views, args, flags)               \
    ENTRY(kernel, f64, file, views, args, flags, 1, NULL, 0), \
        ENTRY(kernel, f32, file, views, args, flags, 1, NULL, 0)

static const filch_kernel kernels[] = {
    TASK(gemm, 3, sizeof(filch_gemm_args), 1, NULL, NULL),
    TASK(syrk, 2, sizeof(filch_syrk_args), 1, NULL, NULL),
    TASK(trsm, 2, 0, 1, NULL, NULL),
    TASK(potrf, 2, 0, 0, NULL, NULL),
    TASK(potrf_trtri, 3, sizeof(filch_potrf_trtri_args), 0, "-DPANEL_BITS=64", "-DPANEL_BITS=32"),
    {
        .name = "mandelbrot",
        .host = fl_mandelbrot,
        .cuda = CUDA(fl_text_mandelbrot, "filch_mandelbrot", EXACT, fl_mandelbrot_shape, 0),
        .view_count = 1,
        .arg_size = sizeof(filch_mandelbrot_args),
        .is_batch = 1,
    },
    BATCH(nbody, nbody, 3, sizeof(filch_nbody_args), NULL),
    BATCH(jacobi, jacobi, 3, 0, EXACT),
    BATCH(axpy, axpy, 2, sizeof(filch_axpy_args), EXACT),
    BATCH(dot, sums, 3, sizeof(filch_sums_args), EXACT),
    BATCH(reduce, sums, 2, sizeof(filch_sums_args), EXACT),
};

const filch_kernel *filch_kernel_at(size_t index)
{
    return index < sizeof kernels / sizeof *kernels ? &kernels[index] : NULL;
}

const filch_kernel *filch_kernel_find(const char *name)
{
    for (size_t k = 0; name && k < sizeof kernels / sizeof *kernels; k++)
        if (strcmp(kernels[k].name, name) == 0)
            return &kernels[k];
    return NULL;
}
