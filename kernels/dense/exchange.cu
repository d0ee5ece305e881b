/* SPDX-License-Identifier: Apache-2.0 */
/* Row exchanges by pivots, all at once: LAPACK's laswp does them one after the other, and a GPU has
 * little to do in each. A list, made once a panel, has of every row that is exchanged the row that
 * comes there; by it the columns of any number of blocks are read and written whole. */
#include "filch/kernel.h"

constexpr int THREADS = 256;
constexpr int MOST = 1024; /* pivots; codelets.h has the number, too */
constexpr int EACH = 2 * MOST / THREADS;

/* Those of codelets.h, of which none counts. */
struct exchange_args {
    const void *host;
    unsigned long long row, order;
    int words[4];
};

static_assert(sizeof(exchange_args) == 40, "the layout is that of fl_dense_args");

/* The list's entries: the rows of the pivots, then those that the pivots name. Of each the
 * exchanges are followed backwards. Rows count from the first pivot's. */
extern "C" __global__ void __launch_bounds__(THREADS)
    fl_exchange_list(filch_view pivots, filch_view list, exchange_args args)
{
    __shared__ int pivot[MOST];
    int count = (int)pivots.rows, i = (int)(blockIdx.x * THREADS + threadIdx.x);
    (void)args;
    for (int k = (int)threadIdx.x; k < count; k += THREADS)
        pivot[k] = filch_at<int>(pivots, (unsigned long long)k) - 1;
    __syncthreads();
    if (i >= 2 * count)
        return;
    int at = i < count ? i : pivot[i - count];
#pragma unroll 8
    for (int k = count - 1; k >= 0; k--)
        at = at == k ? pivot[k] : at == pivot[k] ? k : at;
    filch_at<int>(list, (unsigned long long)i) = at;
}

template <typename T>
__device__ void exchange_run(const filch_view &a, const filch_view &pivots, const filch_view &list)
{
    int count = (int)pivots.rows;
    int to[EACH], from[EACH];
#pragma unroll
    for (int e = 0; e < EACH; e++) {
        int i = e * THREADS + (int)threadIdx.x;
        to[e] = i < count       ? i
                : i < 2 * count ? filch_at<int>(pivots, (unsigned long long)(i - count)) - 1
                                : -1;
        from[e] = to[e] < 0 ? 0 : filch_at<int>(list, (unsigned long long)i);
    }
    for (unsigned long long col = blockIdx.x; col < a.cols; col += gridDim.x) {
        T *x = &filch_at<T>(a, pivots.row, col);
        T value[EACH];
#pragma unroll
        for (int e = 0; e < EACH; e++)
            value[e] = x[from[e]];
        __syncthreads(); /* all of the column is read before any of it is written */
#pragma unroll
        for (int e = 0; e < EACH; e++)
            if (to[e] >= 0) /* a row that is written twice gets one value */
                x[to[e]] = value[e];
    }
}

#define EXCHANGE(T, suffix)                                                                        \
    extern "C" __global__ void __launch_bounds__(THREADS)                                          \
        fl_exchange_##suffix(filch_view a, filch_view pivots, filch_view list, exchange_args args) \
    {                                                                                              \
        (void)args;                                                                                \
        exchange_run<T>(a, pivots, list);                                                          \
    }

EXCHANGE(double, f64)
EXCHANGE(float, f32)
