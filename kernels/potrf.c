/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/kernels.h"

#include <math.h>

static bool fits(const filch_call *call, uint64_t element)
{
    if (call->view_count != 2)
        return false;
    const filch_view *a = &call->views[0];
    const filch_view *info = &call->views[1];
    return fl_is_matrix(a, element) && a->rows == a->cols && info->element == sizeof(int32_t) &&
           info->rows >= 1 && info->cols >= 1;
}

static int shape_of(const filch_call *call, filch_shape *shape, uint64_t element)
{
    if (!fits(call, element))
        return FILCH_KERNEL_MISFIT;
    shape->grid[0] = 8; /* the blocks of potrf.cu's cluster */
    shape->block[0] = 256;
    return 0;
}

double fl_potrf_work(const filch_call *call)
{
    if (call->view_count != 2)
        return 0;
    double n = (double)call->views[0].rows;
    return n * n * n / 3 + n * n / 2 + n / 6;
}

#define POTRF(T, suffix, root)                                              \
    static int factor_##suffix(const filch_view *a)                         \
    {                                                                       \
        for (uint64_t j = 0; j < a->cols; j++) {                            \
            fl_##suffix *own = (T *)a->ptr + j * a->ld;                     \
            if (!(own[j] > 0))                                              \
                return (int)(a->row + j + 1);                               \
            own[j] = root(own[j]);                                          \
            for (uint64_t i = j + 1; i < a->rows; i++)                      \
                own[i] /= own[j];                                           \
            for (uint64_t q = j + 1; q < a->cols; q++) {                    \
                fl_##suffix *to = (T *)a->ptr + q * a->ld;                  \
                for (uint64_t i = q; i < a->rows; i++)                      \
                    to[i] -= own[i] * own[q];                               \
            }                                                               \
        }                                                                   \
        return 0;                                                           \
    }                                                                       \
    int fl_potrf_##suffix(const filch_call *call)                           \
    {                                                                       \
        if (!fits(call, sizeof(T)))                                         \
            return FILCH_KERNEL_MISFIT;                                     \
        int32_t *info = call->views[1].ptr;                                 \
        if (*info == 0)                                                     \
            *info = factor_##suffix(&call->views[0]);                       \
        return *info;                                                       \
    }                                                                       \
    int fl_potrf_shape_##suffix(const filch_call *call, filch_shape *shape) \
    {                                                                       \
        return shape_of(call, shape, sizeof(T));                            \
    }

POTRF(double, f64, sqrt)
POTRF(float, f32, sqrtf)
