/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/kernels.h"

/* As gemm's, of the blocks on and below the diagonal. Their last wave matters more, since those
 * above the diagonal end at once: 136 large blocks took half longer on 132 multiprocessors. */
#define LARGE_BLOCKS_LEAST 256

static bool fits(const filch_call *call, uint64_t element)
{
    if (call->view_count != 2 || !call->args)
        return false;
    const filch_syrk_args *args = call->args;
    const filch_view *a = &call->views[0];
    const filch_view *c = &call->views[1];
    return fl_is_matrix(a, element) && fl_is_matrix(c, element) && c->rows == c->cols &&
           (args->transpose ? a->cols : a->rows) == c->rows;
}

static int shape_of(const filch_call *call, filch_shape *shape, uint64_t element)
{
    if (!fits(call, element))
        return FILCH_KERNEL_MISFIT;
    uint64_t n = call->views[1].rows;
    uint64_t large = fl_blocks(n, 128, UINT32_MAX);
    uint64_t each = large * (large + 1) / 2 < LARGE_BLOCKS_LEAST ? 64 : 128;
    shape->grid[0] = shape->grid[1] = fl_blocks(n, each, UINT32_MAX);
    shape->block[0] = 256;
    return 0;
}

double fl_syrk_work(const filch_call *call)
{
    if (call->view_count != 2 || !call->args)
        return 0;
    const filch_syrk_args *args = call->args;
    const filch_view *a = &call->views[0];
    double n = (double)call->views[1].rows;
    return (double)(args->transpose ? a->rows : a->cols) * n * (n + 1);
}

#define SYRK(T, suffix)                                                              \
    int fl_syrk_##suffix(const filch_call *call)                                     \
    {                                                                                \
        if (!fits(call, sizeof(T)))                                                  \
            return FILCH_KERNEL_MISFIT;                                              \
        const filch_syrk_args *args = call->args;                                    \
        const filch_view *a = &call->views[0];                                       \
        const filch_view *c = &call->views[1];                                       \
        T alpha = (T)args->alpha;                                                    \
        T beta = (T)args->beta;                                                      \
        uint64_t inner = args->transpose ? a->rows : a->cols;                        \
        uint64_t step = args->transpose ? 1 : a->ld; /* along the inner dimension */ \
        uint64_t next = args->transpose ? a->ld : 1;                                 \
        for (uint64_t j = 0; j < c->cols; j++) {                                     \
            fl_##suffix *to = (T *)c->ptr + j * c->ld;                               \
            for (uint64_t i = j; i < c->rows; i++)                                   \
                to[i] = beta == 0 ? 0 : beta * to[i];                                \
            for (uint64_t k = 0; k < inner; k++) {                                   \
                const T *from = (const T *)a->ptr + k * step;                        \
                T scale = alpha * from[j * next];                                    \
                for (uint64_t i = j; i < c->rows; i++)                               \
                    to[i] += scale * from[i * next];                                 \
            }                                                                        \
        }                                                                            \
        return 0;                                                                    \
    }                                                                                \
    int fl_syrk_shape_##suffix(const filch_call *call, filch_shape *shape)           \
    {                                                                                \
        return shape_of(call, shape, sizeof(T));                                     \
    }

SYRK(double, f64)
SYRK(float, f32)
