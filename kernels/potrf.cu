/* SPDX-License-Identifier: Apache-2.0 */
/* A := L with A = L L'; see filch/kernels.h. Left-looking by 32 columns, so that eight blocks need
 * to meet once a step: each computes and factors the step's diagonal block for itself, and then its
 * share of the rows below it. The blocks are one cluster (sm_90 and newer), which the GPU starts
 * together; on older GPUs the first block does everything. Over product.cuh and panel.cuh. */
#include "filch/kernel.h"

constexpr int ROWS = 64;

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
constexpr int BLOCKS = 8;
#define CLUSTER __cluster_dims__(8, 1, 1)
#else
constexpr int BLOCKS = 1;
#define CLUSTER
#endif

/* The blocks meet, and each sees what the others have written to the matrix. */
__device__ inline void meet()
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    __threadfence();
    asm volatile("barrier.cluster.arrive.aligned;\n\tbarrier.cluster.wait.aligned;" ::: "memory");
    __threadfence();
#else
    __syncthreads();
#endif
}

__device__ inline double reciprocal_root(double x)
{
    return rsqrt(x);
}

__device__ inline float reciprocal_root(float x)
{
    return rsqrtf(x);
}

/* Factors the block in place by one warp, a row a lane. The result is the column of the first pivot
 * that is not positive, from 1; 0 for none. Only the lower triangle means something. */
template <typename T> __device__ int diagonal_factor(diagonal<T> &d, int width)
{
    int row = (int)threadIdx.x;
    T value[PANEL];
    int bad = 0;
#pragma unroll
    for (int j = 0; j < PANEL; j++)
        value[j] = d.element[j][row];
#pragma unroll
    for (int j = 0; j < PANEL; j++) {
        /* Column j is complete but for its scale; everyone needs all of it. */
        d.element[j][row] = value[j];
        __syncwarp();
        T pivot = d.element[j][j];
        if (bad == 0 && j < width && !(pivot > T(0)))
            bad = j + 1;
        T scale = reciprocal_root(pivot);
        T root = pivot * scale;
        root += T(0.5) * scale * (pivot - root * root); /* a step of Newton's */
        T own = value[j] * scale;
#pragma unroll
        for (int q = j + 1; q < PANEL; q++)
            value[q] -= own * (d.element[j][q] * scale);
        value[j] = row == j ? root : own;
        if (row == j)
            d.reciprocal[j] = scale;
    }
    __syncwarp();
#pragma unroll
    for (int j = 0; j < PANEL; j++)
        d.element[j][row] = value[j];
    return bad;
}

/* The step's diagonal block less the product of the columns before, made whole with ones, and its
 * factor. */
template <typename T>
__device__ int diagonal_make(const filch_view &a, int j0, int width, diagonal<T> &d, int *bad,
                             T *shared)
{
    const T *left = (const T *)a.ptr + j0;
    product<T, PANEL, PANEL, 16> p;
    p.add(left, a.ld, false, left, a.ld, true, width, width, j0, shared);
    p.each([&](int i, int j, T sum) {
        bool is_inside = i >= j && i < width && j < width;
        d.element[j][i] = is_inside ? filch_at<T>(a, j0 + i, j0 + j) - sum : T(i == j);
    });
    __syncthreads();
    if (threadIdx.x < 32) {
        int found = diagonal_factor(d, width);
        if (threadIdx.x == 0)
            *bad = found;
    }
    __syncthreads();
    return *bad;
}

template <typename T>
__device__ void potrf_run(const filch_view &a, int *info, diagonal<T> &d, int *bad, T *shared)
{
    int rank = (int)blockIdx.x;
    if (rank >= BLOCKS || *info != 0)
        return;
    T *base = (T *)a.ptr;
    int n = (int)a.rows;
    for (int j0 = 0; j0 < n; j0 += PANEL) {
        int width = n - j0 < PANEL ? n - j0 : PANEL;
        int failed = diagonal_make(a, j0, width, d, bad, shared);
        if (failed != 0) {
            /* All blocks found the same, by the same arithmetic. */
            if (rank == 0 && threadIdx.x == 0)
                *info = (int)a.row + j0 + failed;
            return;
        }
        for (int i0 = j0 + PANEL + rank * ROWS; i0 < n; i0 += BLOCKS * ROWS)
            panel_solve<T, ROWS, 16>(base + i0, a.ld, n - i0 < ROWS ? n - i0 : ROWS, base + j0,
                                     a.ld, j0, width, d, shared);
        meet();
        /* Not before: the others read this block of A as it was. Nobody reads it again. */
        if (rank == 0)
            for (int e = (int)threadIdx.x; e < PANEL * PANEL; e += THREADS) {
                int i = e % PANEL;
                int j = e / PANEL;
                if (i >= j && i < width)
                    filch_at<T>(a, j0 + i, j0 + j) = d.element[j][i];
            }
        __syncthreads();
    }
}

#define POTRF(T, suffix)                                                                           \
    extern "C" __global__ void CLUSTER __launch_bounds__(THREADS)                                  \
        filch_potrf_##suffix(filch_view a, filch_view info)                                        \
    {                                                                                              \
        __shared__ __align__(16) T shared[STAGES * (ROWS + PANEL) * 16];                           \
        __shared__ diagonal<T> d;                                                                  \
        __shared__ int bad;                                                                        \
        potrf_run<T>(a, (int *)info.ptr, d, &bad, shared);                                         \
    }

POTRF(double, f64)
POTRF(float, f32)
