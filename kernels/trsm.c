/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/kernels.h"

static bool fits(const filch_call *call, uint64_t element)
{
    if (call->view_count != 2)
        return false;
    const filch_view *l = &call->views[0];
    const filch_view *a = &call->views[1];
    return fl_is_matrix(l, element) && fl_is_matrix(a, element) && l->rows == l->cols &&
           a->cols == l->cols;
}

static int shape_of(const filch_call *call, filch_shape *shape, uint64_t element)
{
    if (!fits(call, element))
        return FILCH_KERNEL_MISFIT;
    shape->grid[0] = fl_blocks(call->views[1].rows, 32, UINT32_MAX);
    shape->block[0] = 256;
    return 0;
}

double fl_trsm_work(const filch_call *call)
{
    if (call->view_count != 2)
        return 0;
    double cols = (double)call->views[1].cols;
    return (double)call->views[1].rows * cols * cols;
}

#define TRSM(T, suffix)                                                    \
    int fl_trsm_##suffix(const filch_call *call)                           \
    {                                                                      \
        if (!fits(call, sizeof(T)))                                        \
            return FILCH_KERNEL_MISFIT;                                    \
        const filch_view *l = &call->views[0];                             \
        const filch_view *a = &call->views[1];                             \
        for (uint64_t j = 0; j < a->cols; j++) {                           \
            const T *column = (const T *)l->ptr + j * l->ld;               \
            fl_##suffix *own = (T *)a->ptr + j * a->ld;                    \
            for (uint64_t i = 0; i < a->rows; i++)                         \
                own[i] /= column[j];                                       \
            for (uint64_t q = j + 1; q < a->cols; q++) {                   \
                fl_##suffix *to = (T *)a->ptr + q * a->ld;                 \
                for (uint64_t i = 0; i < a->rows; i++)                     \
                    to[i] -= own[i] * column[q];                           \
            }                                                              \
        }                                                                  \
        return 0;                                                          \
    }                                                                      \
    int fl_trsm_shape_##suffix(const filch_call *call, filch_shape *shape) \
    {                                                                      \
        return shape_of(call, shape, sizeof(T));                           \
    }

TRSM(double, f64)
TRSM(float, f32)
