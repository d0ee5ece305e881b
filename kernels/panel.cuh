/* SPDX-License-Identifier: Apache-2.0 */
/* One step of a left-looking solve against a lower triangular matrix, 32 columns wide;
 * kernels/CMakeLists.txt puts this text behind product.cuh, before the kernels that use it. */
constexpr int PANEL = 32;

/* A 32 x 32 block of L's diagonal in shared memory: column p, row q at [p][q], and the reciprocals
 * of its diagonal. */
template <typename T> struct diagonal {
    T element[PANEL][PANEL + 1];
    T reciprocal[PANEL];
};

/* rows x width elements, rows at most BM: with X being what lies left of the column `done`,
 *
 *     x(:, done ..) := (x(:, done ..) - X L(0 .. width, 0 .. done)') D^-T.
 *
 * x and l point to column 0. The block's threads must have met since D was written; they meet at
 * the end. */
template <typename T, int BM, int BK>
__device__ void panel_solve(T *x, unsigned long long ldx, int rows, const T *l,
                            unsigned long long ldl, int done, int width, const diagonal<T> &d,
                            T *shared)
{
    product<T, BM, PANEL, BK> p;
    p.add(x, ldx, false, l, ldl, true, rows, width, done, shared);
    __syncthreads();
    T *target = x + (unsigned long long)done * ldx;
    p.each([&](int i, int j, T sum) {
        shared[j * BM + i] =
            i < rows && j < width ? target[(unsigned long long)j * ldx + i] - sum : T(0);
    });
    __syncthreads();
    int row = (int)threadIdx.x;
    if (row < rows) {
        T value[PANEL];
#pragma unroll
        for (int j = 0; j < PANEL; j++)
            value[j] = shared[j * BM + row];
#pragma unroll
        for (int j = 0; j < PANEL; j++) {
            value[j] *= d.reciprocal[j];
#pragma unroll
            for (int q = j + 1; q < PANEL; q++)
                value[q] -= value[j] * d.element[j][q];
        }
#pragma unroll
        for (int j = 0; j < PANEL; j++)
            if (j < width)
                target[(unsigned long long)j * ldx + row] = value[j];
    }
    __syncthreads();
}
