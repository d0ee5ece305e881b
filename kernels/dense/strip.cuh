/* SPDX-License-Identifier: Apache-2.0 */
/* Products of a strip of W columns, which a block's own rows lose; this text is put in front of the
 * kernels that factor panels, behind meeting.cuh. */
constexpr int FRAGMENTS = 4; /* of columns that a warp updates at once */

/* C := C - S B, C being own rows of columns, S(i, row) column i of the strip, and B in shared
 * memory with W rows, a column Step elements behind the one before. */
template <typename T, typename S, int Step> struct strip_update {
    S strip;
    T *c;
    unsigned long long ldc;
    int rows;

    __device__ T *at(int row, int col) const
    {
        return c + (unsigned long long)col * ldc + row;
    }

    /* Rows from `begin` on of `cols` columns. */
    __device__ void run(int begin, int cols, const T *batch) const
    {
#if HAS_ASYNC && __CUDA_ARCH__ >= 900
        if constexpr (is_double<T>::value)
            return by_fragments(begin, cols, batch);
#endif
#pragma unroll 1
        for (int r = begin + (int)threadIdx.x; r < rows; r += THREADS)
            row(r, cols, batch);
    }

#if HAS_ASYNC && __CUDA_ARCH__ >= 900
    /* Sixteen rows a warp, by tensor cores; product.cuh has the fragments' layout. */
    __device__ void by_fragments(int begin, int cols, const T *batch) const
    {
        int group = (int)threadIdx.x % 32 / 4, lane = (int)threadIdx.x % 4;
#pragma unroll 1
        for (int top = begin + (int)threadIdx.x / 32 * 16; top < rows; top += WARPS * 16) {
            T l[W / 8][4];
#pragma unroll
            for (int i = 0; i < W / 8; i++)
#pragma unroll
                for (int e = 0; e < 4; e++) {
                    int row = top + group + e % 2 * 8;
                    l[i][e] = row < rows ? -strip(8 * i + e / 2 * 4 + lane, row) : T(0);
                }
#pragma unroll 1
            for (int first = 0; first < cols; first += 8 * FRAGMENTS)
                fragment(l, top + group, first, cols, batch + first * Step);
        }
    }

    /* Of rows `row` and `row` + 8, and columns from `first` on. */
    __device__ void fragment(const T (&l)[W / 8][4], int row, int first, int cols,
                             const T *batch) const
    {
        int group = (int)threadIdx.x % 32 / 4, lane = (int)threadIdx.x % 4;
        T x[FRAGMENTS][2][2];
#pragma unroll
        for (int f = 0; f < FRAGMENTS; f++)
#pragma unroll
            for (int e = 0; e < 4; e++) {
                int col = first + 8 * f + 2 * lane + e % 2, r = row + e / 2 * 8;
                x[f][e / 2][e % 2] = col < cols && r < rows ? *at(r, col) : T(0);
            }
#pragma unroll
        for (int f = 0; f < FRAGMENTS; f++)
#pragma unroll
            for (int i = 0; i < W / 8; i++) {
                const T *from = batch + (8 * f + group) * Step + 8 * i + lane;
                const T u[2] = {from[0], from[4]};
                multiply_16x8x8(x[f][0], x[f][1], l[i], u);
            }
#pragma unroll
        for (int f = 0; f < FRAGMENTS; f++)
#pragma unroll
            for (int e = 0; e < 4; e++) {
                int col = first + 8 * f + 2 * lane + e % 2, r = row + e / 2 * 8;
                if (col < cols && r < rows)
                    *at(r, col) = x[f][e / 2][e % 2];
            }
    }
#endif

    __device__ void row(int r, int cols, const T *batch) const
    {
        T l[W];
#pragma unroll
        for (int i = 0; i < W; i++)
            l[i] = strip(i, r);
#pragma unroll 1
        for (int col = 0; col < cols; col += 4) {
            T x[4];
#pragma unroll
            for (int e = 0; e < 4; e++)
                x[e] = col + e < cols ? *at(r, col + e) : T(0);
#pragma unroll
            for (int i = 0; i < W; i++)
#pragma unroll
                for (int e = 0; e < 4; e++)
                    x[e] -= l[i] * batch[(col + e) * Step + i];
#pragma unroll
            for (int e = 0; e < 4; e++)
                if (col + e < cols)
                    *at(r, col + e) = x[e];
        }
    }
};
