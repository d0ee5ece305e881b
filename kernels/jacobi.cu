/* SPDX-License-Identifier: Apache-2.0 */
/* A Jacobi sweep over columns of a grid; see filch/kernels.h. */
#include "filch/kernel.h"

template <typename T>
__device__ void jacobi_sweep(const filch_view &from, const filch_view &f, const filch_view &to,
                             const filch_range &range)
{
    unsigned long long i = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x;
    unsigned long long j = range.lo + (unsigned long long)blockIdx.y * blockDim.y + threadIdx.y;
    if (i >= from.rows)
        return;
    bool is_edge = i == 0 || i + 1 == from.rows;
    for (; j < range.hi; j += (unsigned long long)gridDim.y * blockDim.y) {
        unsigned long long k = j - from.col;
        const T *u = &filch_at<T>(from, i, k);
        T value = *u;
        /* A column without a neighbour is the grid's first or last. */
        if (!is_edge && k > 0 && k + 1 < from.cols)
            value = ((u[-1] + u[1]) + (*(u - from.ld) + u[from.ld]) +
                     filch_at<T>(f, i, j - range.lo)) *
                    T(0.25);
        filch_at<T>(to, i, j - range.lo) = value;
    }
}

#define JACOBI(T, suffix)                                                                          \
    extern "C" __global__ void __launch_bounds__(256) filch_jacobi_##suffix(                       \
        filch_view from, filch_view f, filch_view to, filch_range range)                           \
    {                                                                                              \
        jacobi_sweep<T>(from, f, to, range);                                                       \
    }

JACOBI(double, f64)
JACOBI(float, f32)
