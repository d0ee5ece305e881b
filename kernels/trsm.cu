/* SPDX-License-Identifier: Apache-2.0 */
/* A := A L^-T; see filch/kernels.h. Rows are independent: a block takes 32 of them through all
 * columns. Over product.cuh and panel.cuh. */
#include "filch/kernel.h"

constexpr int ROWS = 32;

/* The block of L's diagonal at column j0, made whole with ones where L ends. */
template <typename T>
__device__ void diagonal_load(const filch_view &l, int j0, int width, diagonal<T> &d)
{
    for (int e = (int)threadIdx.x; e < PANEL * PANEL; e += THREADS) {
        int i = e % PANEL;
        int j = e / PANEL;
        bool is_inside = i >= j && i < width && j < width;
        T value = is_inside ? filch_at<T>(l, j0 + i, j0 + j) : T(i == j);
        d.element[j][i] = value;
        if (i == j)
            d.reciprocal[j] = T(1) / value;
    }
}

template <typename T>
__device__ void trsm_block(const filch_view &l, const filch_view &a, diagonal<T> &d, T *shared)
{
    unsigned long long i0 = (unsigned long long)blockIdx.x * ROWS;
    int rows = (int)(a.rows - i0 < ROWS ? a.rows - i0 : ROWS);
    int cols = (int)a.cols;
    for (int j0 = 0; j0 < cols; j0 += PANEL) {
        int width = cols - j0 < PANEL ? cols - j0 : PANEL;
        diagonal_load(l, j0, width, d);
        __syncthreads();
        panel_solve<T, ROWS, 16>((T *)a.ptr + i0, a.ld, rows, (const T *)l.ptr + j0, l.ld, j0,
                                 width, d, shared);
    }
}

#define TRSM(T, suffix)                                                                            \
    extern "C" __global__ void __launch_bounds__(THREADS)                                          \
        filch_trsm_##suffix(filch_view l, filch_view a)                                            \
    {                                                                                              \
        __shared__ __align__(16) T shared[STAGES * (ROWS + PANEL) * 16];                           \
        __shared__ diagonal<T> d;                                                                  \
        filch_wait();                                                                              \
        trsm_block<T>(l, a, d, shared);                                                            \
    }

TRSM(double, f64)
TRSM(float, f32)
