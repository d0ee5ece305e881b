/* SPDX-License-Identifier: Apache-2.0 */
/* The parts that the table of kernels is made of. Each kernels/NAME.c has the host functions of
 * NAME.cu, their geometry and their work; what they mean stands in filch/kernels.h. */
#ifndef FL_KERNELS_H
#define FL_KERNELS_H

#include "filch/kernels.h"

#include <stdbool.h>

/* The sources, with what CMakeLists.txt puts in front of them. */
extern const char fl_text_gemm[], fl_text_syrk[], fl_text_trsm[], fl_text_potrf[],
    fl_text_potrf_trtri[], fl_text_mandelbrot[], fl_text_nbody[], fl_text_jacobi[], fl_text_axpy[],
    fl_text_sums[];

/* The types of the suffixes, for macros that take one. */
typedef double fl_f64;
typedef float fl_f32;

#define FL_KERNEL_DECLARE(name)                                            \
    int fl_##name##_f64(const filch_call *call);                           \
    int fl_##name##_f32(const filch_call *call);                           \
    int fl_##name##_shape_f64(const filch_call *call, filch_shape *shape); \
    int fl_##name##_shape_f32(const filch_call *call, filch_shape *shape);

FL_KERNEL_DECLARE(gemm)
FL_KERNEL_DECLARE(syrk)
FL_KERNEL_DECLARE(trsm)
FL_KERNEL_DECLARE(potrf)
FL_KERNEL_DECLARE(potrf_trtri)
FL_KERNEL_DECLARE(nbody)
FL_KERNEL_DECLARE(jacobi)
FL_KERNEL_DECLARE(axpy)
FL_KERNEL_DECLARE(dot)
FL_KERNEL_DECLARE(reduce)

int fl_mandelbrot(const filch_call *call);
int fl_mandelbrot_shape(const filch_call *call, filch_shape *shape);

double fl_gemm_work(const filch_call *call);
double fl_syrk_work(const filch_call *call);
double fl_trsm_work(const filch_call *call);
double fl_potrf_work(const filch_call *call);
double fl_potrf_trtri_work(const filch_call *call);

/* Kernels count a tile's rows and columns in int, and a grid has at most 65,535 blocks along y. */
#define FL_TILE_LIMIT ((uint64_t)1 << 21)
#define FL_GRID_Y_LIMIT 65535u

static inline bool fl_is_matrix(const filch_view *view, uint64_t element)
{
    return view->element == element && view->rows <= FL_TILE_LIMIT && view->cols <= FL_TILE_LIMIT &&
           (view->cols <= 1 || view->ld >= view->rows);
}

/* Blocks of `each` that hold n; at most limit, and at least one, since a grid cannot be empty. */
static inline uint32_t fl_blocks(uint64_t n, uint64_t each, uint32_t limit)
{
    uint64_t blocks = n == 0 ? 1 : (n - 1) / each + 1;
    return blocks < limit ? (uint32_t)blocks : limit;
}

#endif
