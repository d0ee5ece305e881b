/* SPDX-License-Identifier: Apache-2.0 */
/* C := alpha op(A) op(A)' + beta C, lower triangle; see filch/kernels.h. Over product.cuh. */
#include "filch/kernel.h"

struct syrk_args {
    double alpha, beta;
    bool transpose;
    unsigned reserved;
};

template <typename T, int BM, int BK>
__device__ void syrk_block(const filch_view &a, const filch_view &c, const syrk_args &args,
                           T *shared)
{
    if (blockIdx.x < blockIdx.y)
        return; /* above the diagonal */
    unsigned long long i0 = (unsigned long long)blockIdx.x * BM;
    unsigned long long j0 = (unsigned long long)blockIdx.y * BM;
    bool is_transposed = args.transpose != 0;
    int rows = (int)(c.rows - i0 < BM ? c.rows - i0 : BM);
    int cols = (int)(c.cols - j0 < BM ? c.cols - j0 : BM);
    T alpha = (T)args.alpha;
    T beta = (T)args.beta;
    const T *from = (const T *)a.ptr;
    unsigned long long step = is_transposed ? a.ld : 1;
    product<T, BM, BM, BK> p;
    p.add(from + i0 * step, a.ld, is_transposed, from + j0 * step, a.ld, !is_transposed, rows, cols,
          (int)(is_transposed ? a.rows : a.cols), shared);
    p.each([&](int i, int j, T sum) {
        if (i < rows && j < cols && i0 + i >= j0 + j) {
            T &to = filch_at<T>(c, i0 + i, j0 + j);
            to = beta == T(0) ? alpha * sum : alpha * sum + beta * to;
        }
    });
}

#define SYRK(T, suffix)                                                                            \
    extern "C" __global__ void __launch_bounds__(THREADS)                                          \
        filch_syrk_##suffix(filch_view a, filch_view c, syrk_args args)                            \
    {                                                                                              \
        __shared__ __align__(16) unsigned char shared[SHARED_BYTES];                               \
        filch_wait();                                                                              \
        if (gridDim.x == (c.rows + 63) / 64)                                                       \
            syrk_block<T, 64, 128 / sizeof(T)>(a, c, args, (T *)shared);                           \
        else                                                                                       \
            syrk_block<T, 128, 64 / sizeof(T)>(a, c, args, (T *)shared);                           \
    }

SYRK(double, f64)
SYRK(float, f32)
