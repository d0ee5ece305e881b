/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/kernels.h"

/* Threads take several elements each beyond this many blocks. */
#define BLOCKS_MOST 4096

static bool fits(const filch_call *call, uint64_t element)
{
    if (call->view_count != 2 || !call->args)
        return false;
    const filch_view *x = &call->views[0];
    const filch_view *y = &call->views[1];
    uint64_t n = call->hi - call->lo;
    return x->element == element && y->element == element && x->cols == 1 && y->cols == 1 &&
           x->rows >= n && y->rows >= n;
}

static int shape_of(const filch_call *call, filch_shape *shape, uint64_t element)
{
    if (!fits(call, element))
        return FILCH_KERNEL_MISFIT;
    shape->grid[0] = fl_blocks(call->hi - call->lo, 256, BLOCKS_MOST);
    shape->block[0] = 256;
    return 0;
}

#define AXPY(T, suffix)                                                    \
    int fl_axpy_##suffix(const filch_call *call)                           \
    {                                                                      \
        if (!fits(call, sizeof(T)))                                        \
            return FILCH_KERNEL_MISFIT;                                    \
        T alpha = (T)((const filch_axpy_args *)call->args)->alpha;         \
        const T *x = call->views[0].ptr;                                   \
        fl_##suffix *y = call->views[1].ptr;                               \
        for (uint64_t k = 0; k < call->hi - call->lo; k++)                 \
            y[k] += alpha * x[k];                                          \
        return 0;                                                          \
    }                                                                      \
    int fl_axpy_shape_##suffix(const filch_call *call, filch_shape *shape) \
    {                                                                      \
        return shape_of(call, shape, sizeof(T));                           \
    }

AXPY(double, f64)
AXPY(float, f32)
