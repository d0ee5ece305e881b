/* SPDX-License-Identifier: Apache-2.0 */
/* Products of blocks in shared memory and registers; kernels/CMakeLists.txt puts this text in front
 * of the kernels that use it. All matrices are column-major.
 *
 * A block of 256 threads computes BM x BN elements of op(A) op(B), BK of the inner dimension at a
 * time, from three stages in shared memory that asynchronous copies fill ahead (sm_80 and newer).
 * A warp's threads hold their elements as the tensor cores' double-precision instructions lay them
 * out (PTX ISA, "Matrix fragments for mma"): in each 8 x 8 fragment, lane 4 g + t has row g and
 * columns 2 t and 2 t + 1. The other types and older GPUs use the same layout with ordinary
 * arithmetic, where it is register blocking with strided rows. */
#include "filch/kernel.h"

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
#define HAS_ASYNC 1
#else
#define HAS_ASYNC 0
#endif

constexpr int THREADS = 256, STAGES = 3, SHARED_BYTES = 49152;

template <typename T> __device__ inline void copy_to_shared(T *to, const T *from, bool is_inside)
{
#if HAS_ASYNC
    /* What is outside is filled with zeros, and its address not read. */
    unsigned address = (unsigned)__cvta_generic_to_shared(to);
    int bytes = is_inside ? (int)sizeof(T) : 0;
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(address), "l"(from),
                 "n"(sizeof(T)), "r"(bytes)
                 : "memory");
#else
    *to = is_inside ? *from : T(0);
#endif
}

/* Sixteen bytes, of which the first `elements` are inside; both addresses are multiples of it. */
template <typename T> __device__ inline void copy_wide(T *to, const T *from, int elements)
{
    constexpr int most = 16 / (int)sizeof(T);
    int inside = elements < 0 ? 0 : elements < most ? elements : most;
#if HAS_ASYNC
    unsigned address = (unsigned)__cvta_generic_to_shared(to);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address), "l"(from),
                 "r"(inside * (int)sizeof(T))
                 : "memory");
#else
    for (int e = 0; e < most; e++)
        to[e] = e < inside ? from[e] : T(0);
#endif
}

/* Whether columns of x can be copied by sixteen bytes. */
template <typename T> __device__ inline bool is_wide(const T *x, unsigned long long ld)
{
    return ((unsigned long long)x | ld * sizeof(T)) % 16 == 0;
}

__device__ inline void copies_commit()
{
#if HAS_ASYNC
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

/* All groups but the `Newest` last ones have arrived, for this thread. */
template <int Newest> __device__ inline void copies_wait()
{
#if HAS_ASYNC
    asm volatile("cp.async.wait_group %0;" ::"n"(Newest) : "memory");
#endif
}

/* Where element (m, k) of a stage lies. Fragments are read with four values of k and eight of m at
 * once: the exclusive or spreads them over all banks without padding. */
template <int Width> __device__ inline int place(int m, int k)
{
    return k * Width + ((m & ~15) | ((m & 15) ^ ((k & 3) << 2)));
}

/* Where elements lie: in a stage, and in a matrix whose columns are Step elements apart. */
template <int Width> struct staged {
    __device__ static int at(int m, int k)
    {
        return place<Width>(m, k);
    }
};

template <int Step> struct stepped {
    __device__ static int at(int m, int k)
    {
        return k * Step + m;
    }
};

/* Copies Width x BK pieces of op(X), X being A with m along its rows or B with m along its columns.
 * Consecutive threads follow what is consecutive in memory. */
template <typename T, int Width, int BK> struct loader {
    static constexpr int wide = 16 / (int)sizeof(T); /* elements of the widest copy */
    const T *from;
    unsigned long long step, advance; /* elements from copy to copy, from stage to stage */
    int m, k;
    int m_limit, k_limit;
    bool along_k;
    bool by_wide; /* along m */

    __device__ loader(const T *x, unsigned long long ld, bool is_along_k, int width, int depth)
        : along_k(is_along_k)
    {
        int thread = (int)threadIdx.x;
        constexpr int across = Width / wide; /* wide copies along m */
        by_wide = !along_k && is_wide(x, ld);
        m = along_k ? thread / BK : by_wide ? thread % across * wide : thread % Width;
        k = along_k ? thread % BK : by_wide ? thread / across : thread / Width;
        m_limit = width;
        k_limit = depth;
        from = along_k ? x + m * ld + k : x + k * ld + m;
        step = (along_k ? THREADS / BK : by_wide ? THREADS / across : THREADS / Width) * ld;
        advance = along_k ? BK : BK * ld;
    }

    __device__ void next(T *stage)
    {
        constexpr int copies = Width * BK / THREADS;
        static_assert(Width * BK % THREADS == 0 && THREADS % Width == 0 && THREADS % BK == 0,
                      "every thread copies as much");
        const T *at = from;
        if (by_wide) {
#pragma unroll
            for (int r = 0; r < (copies + wide - 1) / wide; r++, at += step) {
                int kr = k + r * (THREADS / (Width / wide));
                if (kr < BK)
                    copy_wide(stage + place<Width>(m, kr), at, kr < k_limit ? m_limit - m : 0);
            }
        } else if (along_k) {
#pragma unroll
            for (int r = 0; r < copies; r++, at += step) {
                int mr = m + r * (THREADS / BK);
                copy_to_shared(stage + place<Width>(mr, k), at, mr < m_limit && k < k_limit);
            }
        } else {
#pragma unroll
            for (int r = 0; r < copies; r++, at += step) {
                int kr = k + r * (THREADS / Width);
                copy_to_shared(stage + place<Width>(m, kr), at, m < m_limit && kr < k_limit);
            }
        }
        from += advance;
        k_limit -= BK;
    }
};

#if HAS_ASYNC
__device__ inline void multiply_8x8x4(double (&c)[2], double a, double b)
{
    asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1}, {%2}, {%3}, {%0,%1};"
                 : "+d"(c[0]), "+d"(c[1])
                 : "d"(a), "d"(b));
}
#endif

#if HAS_ASYNC && __CUDA_ARCH__ >= 900
__device__ inline void multiply_16x8x8(double (&low)[2], double (&high)[2], const double (&a)[4],
                                       const double (&b)[2])
{
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 "
                 "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+d"(low[0]), "+d"(low[1]), "+d"(high[0]), "+d"(high[1])
                 : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(b[0]), "d"(b[1]));
}
#endif

template <typename T> struct is_double {
    static constexpr bool value = false;
};
template <> struct is_double<double> {
    static constexpr bool value = true;
};

template <typename T, int BM, int BN, int BK, int Stages = STAGES> struct product {
    static constexpr int warps_across = BM > 2 * BN || BN <= 32 ? 2 : 4;
    static constexpr int warps_down = THREADS / 32 / warps_across;
    static constexpr int down = BM / warps_down / 8; /* fragments of a warp */
    static constexpr int across = BN / warps_across / 8;
    static constexpr int stage_size = (BM + BN) * BK;
    static_assert(down >= 1 && across >= 1, "every warp has a fragment");

    T sum[down][across][2];
    int row, col; /* of this thread's first element */
    int group, lane;

    __device__ product()
    {
        int warp = (int)threadIdx.x / 32;
        group = (int)threadIdx.x % 32 / 4;
        lane = (int)threadIdx.x % 4;
        row = warp / warps_across * (BM / warps_down);
        col = warp % warps_across * (BN / warps_across);
#pragma unroll
        for (int i = 0; i < down; i++)
#pragma unroll
            for (int j = 0; j < across; j++)
                sum[i][j][0] = sum[i][j][1] = T(0);
    }

    /* Adds the product of rows x depth elements of op(A) and depth x cols of op(B), rows and cols
     * possibly fewer than BM and BN: the sums beyond stay 0. Nobody may use `shared` again until
     * all have met after the call. */
    __device__ void add(const T *a, unsigned long long lda, bool is_a_transposed, const T *b,
                        unsigned long long ldb, bool is_b_transposed, int rows, int cols, int depth,
                        T *shared)
    {
        loader<T, BM, BK> from_a(a, lda, is_a_transposed, rows, depth);
        loader<T, BN, BK> from_b(b, ldb, !is_b_transposed, cols, depth);
        int steps = (depth + BK - 1) / BK;
        for (int s = 0; s < Stages - 1; s++)
            fill(from_a, from_b, shared + s * stage_size, s < steps);
        for (int s = 0; s < steps; s++) {
            copies_wait<Stages - 2>();
            /* Stage s is here for everyone, and nobody reads the one before it any more. */
            __syncthreads();
            fill(from_a, from_b, shared + (s + Stages - 1) % Stages * stage_size,
                 s + Stages - 1 < steps);
            const T *stage = shared + s % Stages * stage_size;
            multiply<BK, staged<BM>, staged<BN>>(stage, stage + BM * BK);
        }
    }

    __device__ static void fill(loader<T, BM, BK> &a, loader<T, BN, BK> &b, T *stage, bool is_more)
    {
        if (is_more) {
            a.next(stage);
            b.next(stage + BM * BK);
        }
        copies_commit();
    }

    /* Adds the product of two matrices in shared memory, their inner dimension being Depth. */
    template <int Depth, typename A, typename B> __device__ void multiply(const T *a, const T *b)
    {
#if HAS_ASYNC
        if constexpr (is_double<T>::value) {
#if __CUDA_ARCH__ >= 900
            if constexpr (down % 2 == 0)
                return multiply_wide<Depth, A, B>(a, b);
#endif
            return multiply_narrow<Depth, A, B>(a, b);
        }
#endif
        multiply_plain<Depth, A, B>(a, b);
    }

#if HAS_ASYNC
    template <int Depth, typename A, typename B>
    __device__ void multiply_narrow(const T *a, const T *b)
    {
#pragma unroll
        for (int k = 0; k < Depth; k += 4) {
            T x[down], y[across];
#pragma unroll
            for (int i = 0; i < down; i++)
                x[i] = a[A::at(row + 8 * i + group, k + lane)];
#pragma unroll
            for (int j = 0; j < across; j++)
                y[j] = b[B::at(col + 8 * j + group, k + lane)];
#pragma unroll
            for (int i = 0; i < down; i++)
#pragma unroll
                for (int j = 0; j < across; j++)
                    multiply_8x8x4(sum[i][j], x[i], y[j]);
        }
    }
#endif

#if HAS_ASYNC && __CUDA_ARCH__ >= 900
    template <int Depth, typename A, typename B>
    __device__ void multiply_wide(const T *a, const T *b)
    {
#pragma unroll
        for (int k = 0; k < Depth; k += 8) {
            T y[across][2];
#pragma unroll
            for (int j = 0; j < across; j++) {
                y[j][0] = b[B::at(col + 8 * j + group, k + lane)];
                y[j][1] = b[B::at(col + 8 * j + group, k + 4 + lane)];
            }
#pragma unroll
            for (int i = 0; i < down; i += 2) {
                int m = row + 8 * i + group;
                T x[4] = {a[A::at(m, k + lane)], a[A::at(m + 8, k + lane)],
                          a[A::at(m, k + 4 + lane)], a[A::at(m + 8, k + 4 + lane)]};
#pragma unroll
                for (int j = 0; j < across; j++)
                    multiply_16x8x8(sum[i][j], sum[i + 1][j], x, y[j]);
            }
        }
    }
#endif

    template <int Depth, typename A, typename B>
    __device__ void multiply_plain(const T *a, const T *b)
    {
#pragma unroll
        for (int k = 0; k < Depth; k++) {
            T x[down];
#pragma unroll
            for (int i = 0; i < down; i++)
                x[i] = a[A::at(row + 8 * i + group, k)];
#pragma unroll
            for (int j = 0; j < across; j++) {
                int n = col + 8 * j + 2 * lane;
                T y0 = b[B::at(n, k)];
                T y1 = b[B::at(n + 1, k)];
#pragma unroll
                for (int i = 0; i < down; i++) {
                    sum[i][j][0] += x[i] * y0;
                    sum[i][j][1] += x[i] * y1;
                }
            }
        }
    }

    /* Calls take(row, col, sum) for each of this thread's elements. */
    template <typename F> __device__ void each(F take) const
    {
#pragma unroll
        for (int j = 0; j < across; j++)
#pragma unroll
            for (int e = 0; e < 2; e++)
#pragma unroll
                for (int i = 0; i < down; i++)
                    take(row + 8 * i + group, col + 8 * j + 2 * lane + e, sum[i][j][e]);
    }
};
