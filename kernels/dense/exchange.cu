/* SPDX-License-Identifier: Apache-2.0 */
/* Row exchanges by pivots, all at once: LAPACK's laswp does them one after the other, and a GPU has
 * little to do in each. Of every row that is exchanged a thread follows the exchanges backwards to
 * the row that comes there; then columns are read and written whole. */
#include "filch/kernel.h"

constexpr int THREADS = 256;
constexpr int MOST = 1024; /* pivots; dense.c has the number, too */

/* Those of codelets.h, of which none counts. */
struct exchange_args {
    const void *host;
    unsigned long long row, order;
    int words[4];
};

static_assert(sizeof(exchange_args) == 40, "the layout is that of fl_dense_args");

/* Rows that are written: those of the pivots, and those that the pivots name. */
__device__ inline int exchange_row(int i, int count, const int *pivot)
{
    return i < count ? i : pivot[i - count];
}

template <typename T>
__device__ void exchange_run(const filch_view &a, const filch_view &pivots, int *pivot, int *from,
                             T *value)
{
    int count = (int)pivots.rows;
    for (int i = (int)threadIdx.x; i < count; i += THREADS)
        pivot[i] = filch_at<int>(pivots, (unsigned long long)i) - 1;
    __syncthreads();
    for (int i = (int)threadIdx.x; i < 2 * count; i += THREADS) {
        int at = exchange_row(i, count, pivot);
        for (int k = count - 1; k >= 0; k--)
            at = at == k ? pivot[k] : at == pivot[k] ? k : at;
        from[i] = at;
    }
    __syncthreads();
    for (unsigned long long col = blockIdx.x; col < a.cols; col += gridDim.x) {
        T *x = &filch_at<T>(a, pivots.row, col);
        for (int i = (int)threadIdx.x; i < 2 * count; i += THREADS)
            value[i] = x[from[i]];
        __syncthreads();
        /* A row that is written twice gets one value. */
        for (int i = (int)threadIdx.x; i < 2 * count; i += THREADS)
            x[exchange_row(i, count, pivot)] = value[i];
        __syncthreads(); /* before the next column's values */
    }
}

#define EXCHANGE(T, suffix)                                                       \
    extern "C" __global__ void __launch_bounds__(THREADS)                         \
        fl_exchange_##suffix(filch_view a, filch_view pivots, exchange_args args) \
    {                                                                             \
        __shared__ int pivot[MOST];                                               \
        __shared__ int from[2 * MOST];                                            \
        __shared__ T value[2 * MOST];                                             \
        (void)args;                                                               \
        exchange_run<T>(a, pivots, pivot, from, value);                           \
    }

EXCHANGE(double, f64)
EXCHANGE(float, f32)
