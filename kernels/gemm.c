/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/kernels.h"

/* Below this many large blocks small ones fill a GPU better, although each is less efficient. */
#define LARGE_BLOCKS_LEAST 96

static bool fits(const filch_call *call, uint64_t element)
{
    if (call->view_count != 3 || !call->args)
        return false;
    const filch_gemm_args *args = call->args;
    const filch_view *a = &call->views[0];
    const filch_view *b = &call->views[1];
    const filch_view *c = &call->views[2];
    uint64_t inner = args->transpose_a ? a->rows : a->cols;
    return fl_is_matrix(a, element) && fl_is_matrix(b, element) && fl_is_matrix(c, element) &&
           (args->transpose_a ? a->cols : a->rows) == c->rows &&
           (args->transpose_b ? b->rows : b->cols) == c->cols &&
           (args->transpose_b ? b->cols : b->rows) == inner;
}

static int shape_of(const filch_call *call, filch_shape *shape, uint64_t element)
{
    if (!fits(call, element))
        return FILCH_KERNEL_MISFIT;
    const filch_view *c = &call->views[2];
    uint64_t large =
        (uint64_t)fl_blocks(c->rows, 128, UINT32_MAX) * fl_blocks(c->cols, 128, UINT32_MAX);
    uint64_t each = large < LARGE_BLOCKS_LEAST ? 64 : 128;
    shape->grid[0] = fl_blocks(c->rows, each, UINT32_MAX);
    shape->grid[1] = fl_blocks(c->cols, each, UINT32_MAX);
    shape->block[0] = 256;
    return 0;
}

double fl_gemm_work(const filch_call *call)
{
    if (call->view_count != 3 || !call->args)
        return 0;
    const filch_gemm_args *args = call->args;
    const filch_view *a = &call->views[0];
    const filch_view *c = &call->views[2];
    return 2.0 * (double)c->rows * (double)c->cols *
           (double)(args->transpose_a ? a->rows : a->cols);
}

/* Column by column of C; columns of op(A), where they are in one piece, are added to it whole. */
#define GEMM(T, suffix)                                                                          \
    static void multiply_##suffix(const filch_view *a, const filch_view *b, const filch_view *c, \
                                  const filch_gemm_args *args)                                   \
    {                                                                                            \
        bool ta = args->transpose_a != 0;                                                        \
        T alpha = (T)args->alpha;                                                                \
        T beta = (T)args->beta;                                                                  \
        uint64_t inner = ta ? a->rows : a->cols;                                                 \
        uint64_t b_step = args->transpose_b ? b->ld : 1;                                         \
        uint64_t b_next = args->transpose_b ? 1 : b->ld;                                         \
        for (uint64_t j = 0; j < c->cols; j++) {                                                 \
            fl_##suffix *to = (T *)c->ptr + j * c->ld;                                           \
            const T *factor = (const T *)b->ptr + j * b_next;                                    \
            for (uint64_t i = 0; i < c->rows; i++)                                               \
                to[i] = beta == 0 ? 0 : beta * to[i];                                            \
            for (uint64_t k = 0; k < inner && !ta; k++) {                                        \
                const T *from = (const T *)a->ptr + k * a->ld;                                   \
                T scale = alpha * factor[k * b_step];                                            \
                for (uint64_t i = 0; i < c->rows; i++)                                           \
                    to[i] += scale * from[i];                                                    \
            }                                                                                    \
            for (uint64_t i = 0; i < c->rows && ta; i++) {                                       \
                const T *from = (const T *)a->ptr + i * a->ld;                                   \
                T sum = 0;                                                                       \
                for (uint64_t k = 0; k < inner; k++)                                             \
                    sum += from[k] * factor[k * b_step];                                         \
                to[i] += alpha * sum;                                                            \
            }                                                                                    \
        }                                                                                        \
    }                                                                                            \
    int fl_gemm_##suffix(const filch_call *call)                                                 \
    {                                                                                            \
        if (!fits(call, sizeof(T)))                                                              \
            return FILCH_KERNEL_MISFIT;                                                          \
        multiply_##suffix(&call->views[0], &call->views[1], &call->views[2], call->args);        \
        return 0;                                                                                \
    }                                                                                            \
    int fl_gemm_shape_##suffix(const filch_call *call, filch_shape *shape)                       \
    {                                                                                            \
        return shape_of(call, shape, sizeof(T));                                                 \
    }

GEMM(double, f64)
GEMM(float, f32)
