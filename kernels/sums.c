/* SPDX-License-Identifier: Apache-2.0 */
/* Sums of pieces in the order that filch/kernels.h promises: sums.cu's, whose threads are PARTS
 * partial sums. */
#include "kernels/kernels.h"

#define PARTS 256

static bool fits(const filch_call *call, uint32_t inputs, uint64_t element)
{
    if (call->view_count != inputs + 1 || !call->args)
        return false;
    const filch_view *x = &call->views[0];
    const filch_view *sums = &call->views[inputs];
    uint64_t items = call->hi - call->lo;
    uint64_t piece = ((const filch_sums_args *)call->args)->piece;
    for (uint32_t v = 0; v <= inputs; v++)
        if (call->views[v].element != element || call->views[v].cols != 1)
            return false;
    /* The last piece may be shorter, but not missing. */
    return piece > 0 && sums->rows >= items && call->views[inputs - 1].rows == x->rows &&
           (items == 0 || (x->rows > 0 && (x->rows - 1) / piece >= items - 1));
}

static int shape_of(const filch_call *call, filch_shape *shape, uint32_t inputs, uint64_t element)
{
    if (!fits(call, inputs, element))
        return FILCH_KERNEL_MISFIT;
    shape->grid[0] = fl_blocks(call->hi - call->lo, 1, INT32_MAX);
    shape->block[0] = PARTS;
    return 0;
}

#define SUMS(T, suffix)                                                                       \
    static T piece_##suffix(const T *x, const T *y, uint64_t n)                               \
    {                                                                                         \
        T part[PARTS] = {0};                                                                  \
        for (uint64_t k = 0; k < n; k++)                                                      \
            part[k % PARTS] += y ? x[k] * y[k] : x[k];                                        \
        for (uint32_t half = PARTS / 2; half > 0; half /= 2)                                  \
            for (uint32_t k = 0; k < half; k++)                                               \
                part[k] += part[k + half];                                                    \
        return part[0];                                                                       \
    }                                                                                         \
    static void all_##suffix(const filch_call *call, const T *x, const T *y)                  \
    {                                                                                         \
        uint64_t piece = ((const filch_sums_args *)call->args)->piece;                        \
        fl_##suffix *sums = call->views[call->view_count - 1].ptr;                            \
        for (uint64_t item = 0; item < call->hi - call->lo; item++) {                         \
            uint64_t first = item * piece;                                                    \
            uint64_t left = call->views[0].rows - first;                                      \
            sums[item] =                                                                      \
                piece_##suffix(x + first, y ? y + first : NULL, left < piece ? left : piece); \
        }                                                                                     \
    }                                                                                         \
    int fl_dot_##suffix(const filch_call *call)                                               \
    {                                                                                         \
        if (!fits(call, 2, sizeof(T)))                                                        \
            return FILCH_KERNEL_MISFIT;                                                       \
        all_##suffix(call, call->views[0].ptr, call->views[1].ptr);                           \
        return 0;                                                                             \
    }                                                                                         \
    int fl_reduce_##suffix(const filch_call *call)                                            \
    {                                                                                         \
        if (!fits(call, 1, sizeof(T)))                                                        \
            return FILCH_KERNEL_MISFIT;                                                       \
        all_##suffix(call, call->views[0].ptr, NULL);                                         \
        return 0;                                                                             \
    }                                                                                         \
    int fl_dot_shape_##suffix(const filch_call *call, filch_shape *shape)                     \
    {                                                                                         \
        return shape_of(call, shape, 2, sizeof(T));                                           \
    }                                                                                         \
    int fl_reduce_shape_##suffix(const filch_call *call, filch_shape *shape)                  \
    {                                                                                         \
        return shape_of(call, shape, 1, sizeof(T));                                           \
    }

SUMS(double, f64)
SUMS(float, f32)
