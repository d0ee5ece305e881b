/* SPDX-License-Identifier: Apache-2.0 */
/* Sums and dot products of pieces of vectors; see filch/kernels.h, which fixes the order of the
 * additions: 256 strided partial sums, one a thread, then by halves. */
#include "filch/kernel.h"

constexpr int PARTS = 256;

struct sums_args {
    unsigned long long piece;
};

template <typename T, bool IsDot>
__device__ void sums_run(const filch_view &x, const filch_view &y, const filch_view &sums,
                         const filch_range &range, const sums_args &args, T (&part)[PARTS])
{
    unsigned thread = threadIdx.x;
    for (unsigned long long item = range.lo + blockIdx.x; item < range.hi; item += gridDim.x) {
        unsigned long long first = (item - range.lo) * args.piece;
        unsigned long long last = x.rows - first < args.piece ? x.rows : first + args.piece;
        T sum = T(0);
        for (unsigned long long k = first + thread; k < last; k += PARTS)
            sum += IsDot ? filch_at<T>(x, k) * filch_at<T>(y, k) : filch_at<T>(x, k);
        part[thread] = sum;
        for (unsigned half = PARTS / 2; half > 0; half /= 2) {
            __syncthreads();
            if (thread < half)
                part[thread] += part[thread + half];
        }
        if (thread == 0)
            filch_at<T>(sums, item - range.lo) = part[0];
        __syncthreads(); /* before the next item's sums */
    }
}

#define SUMS(T, suffix)                                                                            \
    extern "C" __global__ void __launch_bounds__(PARTS)                                            \
        filch_dot_##suffix(filch_view x, filch_view y, filch_view sums, filch_range range,         \
                           sums_args args)                                                         \
    {                                                                                              \
        __shared__ T part[PARTS];                                                                  \
        sums_run<T, true>(x, y, sums, range, args, part);                                          \
    }                                                                                              \
    extern "C" __global__ void __launch_bounds__(PARTS)                                            \
        filch_reduce_##suffix(filch_view x, filch_view sums, filch_range range, sums_args args)    \
    {                                                                                              \
        __shared__ T part[PARTS];                                                                  \
        sums_run<T, false>(x, x, sums, range, args, part);                                         \
    }

SUMS(double, f64)
SUMS(float, f32)
