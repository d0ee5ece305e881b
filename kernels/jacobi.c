/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/kernels.h"

static bool fits(const filch_call *call, uint64_t element)
{
    if (call->view_count != 3)
        return false;
    const filch_view *from = &call->views[0];
    const filch_view *f = &call->views[1];
    const filch_view *to = &call->views[2];
    uint64_t columns = call->hi - call->lo;
    return from->element == element && f->element == element && to->element == element &&
           f->rows == from->rows && to->rows == from->rows && from->col <= call->lo &&
           from->col + from->cols >= call->hi && f->cols >= columns && to->cols >= columns;
}

static int shape_of(const filch_call *call, filch_shape *shape, uint64_t element)
{
    if (!fits(call, element))
        return FILCH_KERNEL_MISFIT;
    shape->grid[0] = fl_blocks(call->views[0].rows, 64, INT32_MAX);
    shape->grid[1] = fl_blocks(call->hi - call->lo, 4, FL_GRID_Y_LIMIT);
    shape->block[0] = 64;
    shape->block[1] = 4;
    return 0;
}

/* A column without a neighbour in the view is the grid's first or last. */
#define JACOBI(T, suffix)                                                                          \
    int fl_jacobi_##suffix(const filch_call *call)                                                 \
    {                                                                                              \
        if (!fits(call, sizeof(T)))                                                                \
            return FILCH_KERNEL_MISFIT;                                                            \
        const filch_view *from = &call->views[0];                                                  \
        for (uint64_t j = call->lo; j < call->hi; j++) {                                           \
            uint64_t k = j - from->col;                                                            \
            const T *u = (const T *)from->ptr + k * from->ld;                                      \
            const T *f = (const T *)call->views[1].ptr + (j - call->lo) * call->views[1].ld;       \
            fl_##suffix *to = (T *)call->views[2].ptr + (j - call->lo) * call->views[2].ld;        \
            bool is_edge = k == 0 || k + 1 == from->cols;                                          \
            for (uint64_t i = 0; i < from->rows; i++)                                              \
                to[i] =                                                                            \
                    is_edge || i == 0 || i + 1 == from->rows                                       \
                        ? u[i]                                                                     \
                        : ((u[i - 1] + u[i + 1]) + ((u - from->ld)[i] + u[i + from->ld]) + f[i]) * \
                              (T)0.25;                                                             \
        }                                                                                          \
        return 0;                                                                                  \
    }                                                                                              \
    int fl_jacobi_shape_##suffix(const filch_call *call, filch_shape *shape)                       \
    {                                                                                              \
        return shape_of(call, shape, sizeof(T));                                                   \
    }

JACOBI(double, f64)
JACOBI(float, f32)
