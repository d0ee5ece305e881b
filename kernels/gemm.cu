/* SPDX-License-Identifier: Apache-2.0 */
/* C := alpha op(A) op(B) + beta C; see filch/kernels.h. Over product.cuh. */
#include "filch/kernel.h"

struct gemm_args {
    double alpha, beta;
    bool transpose_a, transpose_b;
};

template <typename T, int BM, int BN, int BK>
__device__ void gemm_block(const filch_view &a, const filch_view &b, const filch_view &c,
                           const gemm_args &args, T *shared)
{
    unsigned long long i0 = (unsigned long long)blockIdx.x * BM;
    unsigned long long j0 = (unsigned long long)blockIdx.y * BN;
    bool ta = args.transpose_a != 0;
    bool tb = args.transpose_b != 0;
    int rows = (int)(c.rows - i0 < BM ? c.rows - i0 : BM);
    int cols = (int)(c.cols - j0 < BN ? c.cols - j0 : BN);
    T alpha = (T)args.alpha;
    T beta = (T)args.beta;
    product<T, BM, BN, BK> p;
    p.add((const T *)a.ptr + (ta ? i0 * a.ld : i0), a.ld, ta,
          (const T *)b.ptr + (tb ? j0 : j0 * b.ld), b.ld, tb, rows, cols,
          (int)(ta ? a.rows : a.cols), shared);
    p.each([&](int i, int j, T sum) {
        if (i < rows && j < cols) {
            T &to = filch_at<T>(c, i0 + i, j0 + j);
            to = beta == T(0) ? alpha * sum : alpha * sum + beta * to;
        }
    });
}

/* The host's choice of blocks shows in the grid: 64 x 64 where 128 x 128 would be too few. */
__device__ inline bool is_small(const filch_view &c)
{
    return gridDim.x == (c.rows + 63) / 64 && gridDim.y == (c.cols + 63) / 64;
}

#define GEMM(T, suffix)                                                                            \
    extern "C" __global__ void __launch_bounds__(THREADS)                                          \
        filch_gemm_##suffix(filch_view a, filch_view b, filch_view c, gemm_args args)              \
    {                                                                                              \
        __shared__ __align__(16) unsigned char shared[SHARED_BYTES];                               \
        filch_wait();                                                                              \
        if (is_small(c))                                                                           \
            gemm_block<T, 64, 64, 128 / sizeof(T)>(a, b, c, args, (T *)shared);                    \
        else                                                                                       \
            gemm_block<T, 128, 128, 64 / sizeof(T)>(a, b, c, args, (T *)shared);                   \
    }

GEMM(double, f64)
GEMM(float, f32)
