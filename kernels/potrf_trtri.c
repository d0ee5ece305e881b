/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/kernels.h"

#include <math.h>
#include <string.h>

/* What a block of potrf_trtri.cu has in shared memory: two stages of two pieces of 64 x 32, four
 * blocks of 64 columns of 68 elements, two of 32 columns of 36, and two words. */
_Static_assert(FILCH_POTRF_TRTRI_SHARED(8) ==
                   (2 * 2 * 64 * 32 + 4 * 64 * 68 + 2 * 32 * 36) * 8 + 16,
               "the header's number is not the kernel's");

static bool inverts(const filch_call *call)
{
    return call->args && ((const filch_potrf_trtri_args *)call->args)->inverts;
}

static bool fits(const filch_call *call, uint64_t element)
{
    if (call->view_count != 3 || !call->args)
        return false;
    const filch_view *a = &call->views[0], *state = &call->views[1], *w = &call->views[2];
    uint64_t cols = inverts(call) ? a->rows : a->rows < 64 ? a->rows : 64;
    return fl_is_matrix(a, element) && fl_is_matrix(w, element) && a->rows == a->cols &&
           w->rows >= a->rows && w->cols >= cols && state->element == sizeof(int32_t) &&
           state->cols >= 1 && state->rows >= FILCH_POTRF_TRTRI_STATE(a->rows);
}

/* Two thread blocks for each block of rows have enough to do while one factors. */
static int shape_of(const filch_call *call, filch_shape *shape, uint64_t element)
{
    if (!fits(call, element))
        return FILCH_KERNEL_MISFIT;
    shape->grid[0] = 2 * fl_blocks(call->views[0].rows, 64, UINT32_MAX / 2);
    if (call->team > 0 && shape->grid[0] > call->team)
        shape->grid[0] = call->team;
    shape->block[0] = 256;
    shape->shared_bytes = (uint32_t)FILCH_POTRF_TRTRI_SHARED(element);
    return 0;
}

double fl_potrf_trtri_work(const filch_call *call)
{
    if (call->view_count != 3)
        return 0;
    double n = (double)call->views[0].rows;
    return (inverts(call) ? 2 : 1) * (n * n * n / 3 + n * n / 2);
}

/* Products in a partial sum: its error grows with their number, as that of the whole sum does with
 * the number of partial sums (N. Higham, "The accuracy of floating point summation", SIAM Journal
 * on Scientific Computing 14, 1993). An inverse that multiplies adds to the factor's errors. */
#define PART 64

#define POTRF_TRTRI(T, suffix)                                                                   \
    /* Of n elements in a row of a matrix, and n others with a step. */                          \
    static double dot_##suffix(uint64_t n, const T *x, uint64_t ld, const T *y, uint64_t step)   \
    {                                                                                            \
        double sum = 0;                                                                          \
        for (uint64_t first = 0; first < n; first += PART) {                                     \
            uint64_t last = n - first < PART ? n : first + PART;                                 \
            double part = 0;                                                                     \
            for (uint64_t k = first; k < last; k++)                                              \
                part += (double)x[k * ld] * (double)y[k * step];                                 \
            sum += part;                                                                         \
        }                                                                                        \
        return sum;                                                                              \
    }                                                                                            \
    static int factor_##suffix(const filch_view *a)                                              \
    {                                                                                            \
        for (uint64_t j = 0; j < a->cols; j++)                                                   \
            for (uint64_t i = j; i < a->rows; i++) {                                             \
                const T *left = a->ptr;                                                          \
                fl_##suffix *own = (T *)a->ptr + j * a->ld + i, *pivot = own + j - i;            \
                double sum = (double)*own - dot_##suffix(j, left + i, a->ld, left + j, a->ld);   \
                if (i == j && !(sum > 0))                                                        \
                    return (int)(a->row + j + 1);                                                \
                *own = (T)(i == j ? sqrt(sum) : sum / (double)*pivot);                           \
            }                                                                                    \
        return 0;                                                                                \
    }                                                                                            \
    static void invert_##suffix(const filch_view *a, const filch_view *w)                        \
    {                                                                                            \
        const T *l = a->ptr;                                                                     \
        for (uint64_t j = 0; j < a->rows; j++) {                                                 \
            fl_##suffix *x = (T *)w->ptr + j * w->ld;                                            \
            memset(x, 0, a->rows * sizeof *x);                                                   \
            for (uint64_t i = j; i < a->rows; i++) {                                             \
                double sum = (i == j) - dot_##suffix(i - j, l + i + j * a->ld, a->ld, x + j, 1); \
                x[i] = (T)(sum / (double)l[i + i * a->ld]);                                      \
            }                                                                                    \
        }                                                                                        \
    }                                                                                            \
    int fl_potrf_trtri_##suffix(const filch_call *call)                                          \
    {                                                                                            \
        if (!fits(call, sizeof(T)))                                                              \
            return FILCH_KERNEL_MISFIT;                                                          \
        int32_t *info = call->views[1].ptr;                                                      \
        if (*info != 0)                                                                          \
            return *info;                                                                        \
        *info = factor_##suffix(&call->views[0]);                                                \
        if (*info == 0 && inverts(call))                                                         \
            invert_##suffix(&call->views[0], &call->views[2]);                                   \
        return *info;                                                                            \
    }                                                                                            \
    int fl_potrf_trtri_shape_##suffix(const filch_call *call, filch_shape *shape)                \
    {                                                                                            \
        return shape_of(call, shape, sizeof(T));                                                 \
    }

POTRF_TRTRI(double, f64)
POTRF_TRTRI(float, f32)
