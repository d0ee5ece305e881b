/* SPDX-License-Identifier: Apache-2.0 */
/* A := L with A = L L', and W := L^-1; see filch/kernels.h. Over product.cuh
 * and counters.cuh.
 *
 * Both matrices are cut into blocks of 64 x 64. The launch's thread blocks share a list of tasks in
 * an order in which every task comes after those that it waits for; each takes the next until none
 * is left. So any number of them ends the work, whether or not they run at once. The first to come
 * does the one task that all others wait for, the chain:
 *
 *     chain        for every j: factors (j, j), solves for (j+1, j), updates (j+1, j+1) by it
 *     ahead r, b   updates (r, r-2+b) by all columns before r-2-AHEAD
 *     lead r       solves for (r, r-2), and updates (r, r-1) and (r, r) by the columns before r-1
 *                  that are left, so that the chain finds both ready
 *     tile i, j    solves for (i, j), i > j + 2
 *     inverse i, j solves for block (i, j) of W, j <= i; left out where W is not wanted
 *
 * A task adds up products of final blocks for as far as they are there, which are nearly all when
 * it begins, and waits for the others one by one: left-looking, so that nearly every block is read
 * and written once. Counters of each row's final blocks stand for the edges between tasks (J.
 * Kurzak, H. Ltaief, J. Dongarra, R. Badia, "Scheduling dense linear algebra operations on
 * multicore processors", Concurrency 22(1), 2010). */
#include "filch/kernel.h"

constexpr int BLOCK = 64, HALF = 32, BK = 32, BUFFERS = 2;
/* Between columns of a block in shared memory: fragments of doubles then meet all banks. */
constexpr int ROW = BLOCK + 4, HALF_ROW = HALF + 4;
/* Columns before its own that a lead updates by itself. */
constexpr int AHEAD = 3;

/* Words of the state, all but INFO zero before and after a launch. */
enum { INFO, TICKET, LEFT, STOP, COUNTERS };

constexpr unsigned NONE = ~0u;

/* The layout of filch/kernels.h's filch_potrf_trtri_args. */
struct potrf_trtri_args {
    bool inverts;
    unsigned reserved;
};

__device__ inline float approximate_root(float x)
{
    return rsqrtf(x);
}

/* The instruction has 20 bits or more; a step of the third order makes them 60. */
__device__ inline double approximate_root(double x)
{
#ifdef __CUDACC__
    double y;
    asm("rsqrt.approx.ftz.f64 %0, %1;" : "=d"(y) : "d"(x));
#else
    double y = rsqrt(x);
#endif
    double e = fma(x * y, -y, 1.0);
    return fma(fma(e, 0.375, 0.5), y * e, y);
}

__device__ inline bool is_moderate(double x)
{
    return x > 1e-290 && x < 1e290;
}

__device__ inline bool is_moderate(float x)
{
    return x > 1e-35f && x < 1e35f;
}

__device__ inline double exact_root(double x)
{
    return rsqrt(x);
}

__device__ inline float exact_root(float x)
{
    return rsqrtf(x);
}

/* A block's four columns at their diagonal: reciprocals of its diagonal, and what is below. */
template <typename T> struct corner {
    T r0, r1, r2, r3, l10, l20, l21, l30, l31, l32;

    /* A row of the columns, solved for. */
    __device__ void solve(const T *x, T *own) const
    {
        own[0] = x[0] * r0;
        own[1] = fma(-own[0], l10, x[1]) * r1;
        own[2] = fma(-own[1], l21, fma(-own[0], l20, x[2])) * r2;
        own[3] = fma(-own[2], l32, fma(-own[1], l31, fma(-own[0], l30, x[3]))) * r3;
    }
};

template <typename T> struct workspace {
    union {
        T stage[BUFFERS * 2 * BLOCK * BK]; /* of products */
        struct {
            /* A row's elements of four columns, rows beyond the half being anything. */
            T four[HALF / 4][2 * HALF][4];
            corner<T> corners[HALF / 4];
        } chain;
    };
    T factor[BLOCK][ROW]; /* a diagonal block of L, by columns */
    T target[BLOCK][ROW]; /* what is solved for, by columns */
    T beside[BLOCK][ROW], last[BLOCK][ROW];
    T inverse[2][HALF][HALF_ROW]; /* of the factor's diagonal halves, by columns */
    unsigned seen;
    int bad;
};

#ifdef __CUDACC__
extern __shared__ double2 memory[];
#else
alignas(16) static unsigned char memory[sizeof(workspace<double>)];
#endif

/* One launch. */
template <typename T> struct problem {
    filch_view a, w;
    unsigned *state;
    unsigned *rows;    /* final blocks of each row of L */
    unsigned *columns; /* final blocks of each column of W */
    unsigned *ready;   /* whether the chain may take a row's last two blocks */
    unsigned *ahead;   /* updates of a row's last three blocks that are done */
    int n, blocks;
    bool inverts;

    __device__ static workspace<T> &space()
    {
        return *(workspace<T> *)memory;
    }

    __device__ int size(int block) const
    {
        return n - block * BLOCK < BLOCK ? n - block * BLOCK : BLOCK;
    }

    __device__ T *at(const filch_view &x, int i, int j) const
    {
        return (T *)x.ptr + (unsigned long long)j * BLOCK * x.ld + (unsigned long long)i * BLOCK;
    }

    /* Until the word has reached `least`: its value; 0 if the launch was stopped. */
    __device__ unsigned poll(const unsigned *word, unsigned least) const
    {
        for (unsigned k = 1;; k++) {
            unsigned value = counter_acquire(word);
            if (value >= least)
                return value;
            if (k % 8 == 0 && counter_acquire(&state[STOP]) != 0)
                return 0;
        }
    }

    /* Until both have: the lesser of both. */
    __device__ unsigned await(const unsigned *one, const unsigned *other, unsigned least)
    {
        if (threadIdx.x == 0) {
            unsigned x = poll(one, least);
            unsigned y = x == 0 || one == other ? x : poll(other, least);
            space().seen = x < y ? x : y;
        }
        __syncthreads();
        unsigned lesser = space().seen;
        __syncthreads();
        return lesser;
    }

    /* When all threads have written what the word stands for. The last warp waits for the memory,
     * as the first has most to do. */
    __device__ void publish(unsigned *word, unsigned value)
    {
        __syncthreads();
        if (threadIdx.x == THREADS - 1)
            counter_release(word, value);
    }

    using sums = product<T, BLOCK, BLOCK, BK, BUFFERS>;

    /* Adds L(i, from .. to) L(j, from .. to)'. False: stopped. */
    __device__ bool add_outer(sums &p, int i, int j, int from, int to)
    {
        while (from < to) {
            unsigned there = await(&rows[i], &rows[j], from + 1);
            if (there == 0)
                return false;
            int end = (int)there < to ? (int)there : to;
            p.add(at(a, i, from), a.ld, false, at(a, j, from), a.ld, true, size(i), size(j),
                  (end - from) * BLOCK, space().stage);
            __syncthreads();
            from = end;
        }
        return true;
    }

    /* Adds L(i, j .. i) W(j .. i, j). */
    __device__ bool add_inner(sums &p, int i, int j)
    {
        int from = j;
        while (from < i) {
            /* W's column counts from j on, L's row from 0. */
            unsigned there = await(&rows[i], &rows[i], from + 1);
            unsigned also = await(&columns[j], &columns[j], from - j + 1);
            if (there == 0 || also == 0)
                return false;
            int end = (int)there < (int)also + j ? (int)there : (int)also + j;
            end = end < i ? end : i;
            p.add(at(a, i, from), a.ld, false, at(w, from, j), w.ld, false, size(i), size(j),
                  (end - from) * BLOCK, space().stage);
            __syncthreads();
            from = end;
        }
        return true;
    }

    /* to := block (i, j) of A, with zeros beyond the matrix; on its way until copies_wait. */
    __device__ void copy(T (*to)[ROW], int i, int j)
    {
        constexpr int wide = 16 / (int)sizeof(T), across = BLOCK / wide;
        const T *from = at(a, i, j);
        int m = size(i), width = size(j), thread = (int)threadIdx.x;
        if (is_wide(from, a.ld)) {
            int r = thread % across * wide;
#pragma unroll
            for (int c = thread / across; c < BLOCK; c += THREADS / across)
                copy_wide(&to[c][r], from + (unsigned long long)c * a.ld + r,
                          c < width ? m - r : 0);
        } else {
            int r = thread % BLOCK;
#pragma unroll
            for (int c = thread / BLOCK; c < BLOCK; c += THREADS / BLOCK)
                copy_to_shared(&to[c][r], from + (unsigned long long)c * a.ld + r,
                               c < width && r < m);
        }
        copies_commit();
    }

    __device__ void arrive()
    {
        copies_wait<0>();
        __syncthreads();
    }

    /* Where W has room for a diagonal block's inverses. */
    __device__ T *inverses(int j) const
    {
        return at(w, j, inverts ? j : 0);
    }

    /* to := 32 x 32 elements, of which m x width are there. */
    template <int Step>
    __device__ void copy_half(T *to, const T *from, unsigned long long ld, int m, int width)
    {
        constexpr int wide = 16 / (int)sizeof(T), across = HALF / wide;
        int thread = (int)threadIdx.x;
        if (is_wide(from, ld)) {
            int r = thread % across * wide;
            for (int c = thread / across; c < HALF; c += THREADS / across)
                copy_wide(to + c * Step + r, from + (unsigned long long)c * ld + r,
                          c < width ? m - r : 0);
        } else {
            int r = thread % HALF;
            for (int c = thread / HALF; c < HALF; c += THREADS / HALF)
                copy_to_shared(to + c * Step + r, from + (unsigned long long)c * ld + r,
                               c < width && r < m);
        }
    }

    /* What solutions take of the factor: its lower left half, and the inverses of the halves on its
     * diagonal, which the chain leaves in W. */
    __device__ __noinline__ void load_factor(int j)
    {
        int m = size(j);
        const T *v = inverses(j);
        copy_half<ROW>(&space().factor[0][HALF], at(a, j, j) + HALF, a.ld, m - HALF, m);
        copy_half<HALF_ROW>(&space().inverse[0][0][0], v, w.ld, m, m);
        copy_half<HALF_ROW>(&space().inverse[1][0][0], v + HALF * w.ld + HALF, w.ld, m - HALF,
                            m - HALF);
        copies_commit();
        arrive();
    }

    using layout = stepped<ROW>;

    /* Rows of y in the factor's right half, less those of x in its left half times the factor
     * between. */
    template <int Rows> __device__ void update_half(T (*y)[ROW], int first)
    {
        product<T, Rows, HALF, BK, BUFFERS> p;
        p.template multiply<HALF, layout, layout>(&y[0][first], &space().factor[0][HALF]);
        p.each([&](int r, int c, T sum) { y[HALF + c][first + r] -= sum; });
        __syncthreads();
    }

    /* Columns of target in one half, times the inverse of that half of the factor. */
    __device__ void solve_half(int half)
    {
        T(*x)[ROW] = space().target + half * HALF;
        product<T, BLOCK, HALF, BK, BUFFERS> p;
        p.template multiply<HALF, layout, stepped<HALF_ROW>>(&x[0][0],
                                                             &space().inverse[half][0][0]);
        __syncthreads();
        p.each([&](int r, int c, T sum) { x[c][r] = sum; });
        __syncthreads();
    }

    /* target := target factor^-T. */
    __device__ __noinline__ void solve()
    {
        solve_half(0);
        update_half<BLOCK>(space().target, 0);
        solve_half(1);
    }

    /* The roots' reciprocals of the next two pivots, given the block x y; y z. Two independent
     * roots: that of the second pivot is one of det / x. False: they may be inaccurate. */
    __device__ static bool roots(T x, T y, T z, T &r1, T &r2)
    {
        T det = fma(x, z, -y * y);
        T r = approximate_root(det);
        r1 = approximate_root(x);
        r2 = x * r1 * r;
        return is_moderate(x) & is_moderate(det);
    }

    /* The same one after the other; how many pivots are positive. */
    __device__ static int exact_roots(T x, T y, T z, T &r1, T &r2)
    {
        r1 = exact_root(x);
        T scaled = y * r1;
        T second = fma(-scaled, scaled, z);
        r2 = exact_root(second);
        return !(x > T(0)) ? 0 : second > T(0) ? 2 : 1;
    }

    /* Factors the corner d; four, or how many pivots come before one that is not positive. */
    __device__ static int factor_corner(const T (&d)[4][4], corner<T> &l)
    {
        bool is_fine = roots(d[0][0], d[1][0], d[1][1], l.r0, l.r1);
        is_fine &= finish_corner(d, l, false) == 4;
        if (is_fine)
            return 4;
        int sound = exact_roots(d[0][0], d[1][0], d[1][1], l.r0, l.r1);
        return sound < 2 ? sound : finish_corner(d, l, true);
    }

    /* From the first two roots on. */
    __device__ static int finish_corner(const T (&d)[4][4], corner<T> &l, bool exactly)
    {
        l.l10 = d[1][0] * l.r0;
        l.l20 = d[2][0] * l.r0;
        l.l30 = d[3][0] * l.r0;
        l.l21 = fma(-l.l20, l.l10, d[2][1]) * l.r1;
        l.l31 = fma(-l.l30, l.l10, d[3][1]) * l.r1;
        T e22 = fma(-l.l21, l.l21, fma(-l.l20, l.l20, d[2][2]));
        T e32 = fma(-l.l31, l.l21, fma(-l.l30, l.l20, d[3][2]));
        T e33 = fma(-l.l31, l.l31, fma(-l.l30, l.l30, d[3][3]));
        int sound = exactly ? exact_roots(e22, e32, e33, l.r2, l.r3)
                            : roots(e22, e32, e33, l.r2, l.r3) ? 2 : 0;
        l.l32 = e32 * l.r2;
        return 2 + sound;
    }

    /* Warps that follow the factorization of a half wait for its next four columns. */
    __device__ static void corner_done(int k, int threads)
    {
#if HAS_ASYNC
        asm volatile("bar.arrive %0, %1;" ::"r"(1 + k), "r"(threads) : "memory");
#else
        (void)k, (void)threads;
#endif
    }

    __device__ static void corner_wait(int k, int threads)
    {
#if HAS_ASYNC
        asm volatile("bar.sync %0, %1;" ::"r"(1 + k), "r"(threads) : "memory");
#else
        (void)k, (void)threads;
#endif
    }

    /* Columns begin .. end behind four, moved to the front, less what the four add to them. Those
     * past the half are anything: no branch parts what can go on at once. */
    __device__ static void advance(T (&value)[HALF], const T (&own)[4], int k, int begin, int end)
    {
#pragma unroll
        for (int q = begin; q < end; q++) {
            const T *four = space().chain.four[k][4 * k + q];
            T sum = value[q];
#pragma unroll
            for (int c = 0; c < 4; c++)
                sum = fma(-own[c], four[c], sum);
            value[q - 4] = sum;
        }
    }

    /* The diagonal block of the first four columns, whose rows are those from 4 k on. */
    __device__ static void lend_corner(const T (&value)[HALF], int k, T (&d)[4][4])
    {
#pragma unroll
        for (int c = 0; c < 4; c++)
#pragma unroll
            for (int q = c; q < 4; q++)
                d[q][c] = __shfl_sync(~0u, value[c], 4 * k + q);
    }

    /* Factors a half on the diagonal by one warp, a row a lane, and four columns at a time: every
     * lane factors their corner for itself, while it updates the columns behind the next four. */
    __device__ __noinline__ void factor_half(int half, int threads)
    {
        int row = (int)threadIdx.x, first = half * HALF;
        T value[HALF], d[4][4], own[4];
#pragma unroll
        for (int j = 0; j < HALF; j++)
            value[j] = space().factor[first + j][first + row];
        corner<T> l;
        lend_corner(value, 0, d);
        int sound = factor_corner(d, l);
#pragma unroll 1
        for (int k = 0; k < HALF / 4; k++) {
            l.solve(value, own);
#pragma unroll
            for (int c = 0; c < 4; c++)
                space().chain.four[k][row][c] = own[c];
            if (row == 0) {
                space().chain.corners[k] = l;
                if (sound < 4 && space().bad == 0)
                    space().bad = first + 4 * k + sound + 1;
            }
            __syncwarp();
            corner_done(k, threads);
#pragma unroll
            for (int c = 0; c < 4; c++)
                space().factor[first + 4 * k + c][first + row] = own[c];
            if (k + 1 == HALF / 4)
                break;
            advance(value, own, k, 4, 8);
            lend_corner(value, k + 1, d);
            advance(value, own, k, 8, HALF);
            sound = factor_corner(d, l);
        }
    }

    /* Solves for a row a lane against a half while it is factored: the row is one of an identity,
     * or of the factor below. */
    __device__ __noinline__ void follow(int half, bool is_below, int threads)
    {
        int row = (int)threadIdx.x % 32;
        T value[HALF];
#pragma unroll
        for (int j = 0; j < HALF; j++)
            value[j] = is_below ? space().factor[j][HALF + row] : T(j == row);
#pragma unroll 1
        for (int k = 0; k < HALF / 4; k++) {
            T own[4];
            corner_wait(k, threads);
            space().chain.corners[k].solve(value, own);
            advance(value, own, k, 4, HALF);
#pragma unroll
            for (int c = 0; c < 4; c++) {
                T *to = is_below ? &space().factor[4 * k + c][HALF + row]
                                 : &space().inverse[half][row][4 * k + c];
                *to = own[c];
            }
        }
    }

    /* Factors block j, by a few warps, while others give away the block solved for before. */
    __device__ void factor(int j)
    {
        int warp = (int)threadIdx.x / 32;
        if (warp == 0)
            factor_half(0, 96);
#if !HAS_ASYNC
        __syncthreads();
#endif
        if (warp == 1 || warp == 2)
            follow(0, warp == 1, 96);
        if (warp >= 4 && j > 0)
            give_solved(j);
#if !HAS_ASYNC
        else if (j > 0)
            __syncthreads();
#endif
        __syncthreads();
        update_half<HALF>(space().factor, HALF);
        if (warp == 0)
            factor_half(1, 64);
#if !HAS_ASYNC
        __syncthreads();
#endif
        if (warp == 1)
            follow(1, false, 64);
        __syncthreads();
    }

    /* The last four warps have written what the word stands for. */
    __device__ void give(unsigned *word, unsigned value)
    {
#if HAS_ASYNC
        asm volatile("bar.sync 9, 128;" ::: "memory");
#else
        __syncthreads();
#endif
        if (threadIdx.x == THREADS - 1)
            counter_release(word, value);
    }

    __device__ void give_solved(int j)
    {
        T *to = at(a, j, j - 1);
        int m = size(j), thread = (int)threadIdx.x - 128;
        for (int e = thread; e < BLOCK * BLOCK; e += 128) {
            int r = e % BLOCK, c = e / BLOCK;
            if (r < m)
                to[(unsigned long long)c * a.ld + r] = space().target[c][r];
        }
        give(&rows[j], j);
    }

    /* With the inverses, which W has room for. */
    __device__ void give_factor(int j)
    {
        T *to = at(a, j, j), *v = inverses(j);
        int m = size(j), thread = (int)threadIdx.x - 128;
        for (int e = thread; e < BLOCK * BLOCK; e += 128) {
            int r = e % BLOCK, c = e / BLOCK;
            if (r < m && c <= r)
                to[(unsigned long long)c * a.ld + r] = space().factor[c][r];
            if (r < m && c < m && r / HALF == c / HALF)
                v[(unsigned long long)c * w.ld + r] = space().inverse[r / HALF][c % HALF][r % HALF];
        }
        give(&rows[j], j + 1);
    }

    __device__ void store_target(int i, int j)
    {
        T *to = at(a, i, j);
        int m = size(i);
        for (int e = (int)threadIdx.x; e < BLOCK * BLOCK; e += THREADS) {
            int r = e % BLOCK, c = e / BLOCK;
            if (r < m && (i != j || r >= c))
                to[(unsigned long long)c * a.ld + r] = space().target[c][r];
        }
    }

    /* target target', where target has been solved for. */
    __device__ sums square()
    {
        sums p;
        p.template multiply<BLOCK, layout, layout>(&space().target[0][0], &space().target[0][0]);
        return p;
    }

    /* The next ticket if it is at most `last`, else NONE. */
    __device__ unsigned take(unsigned last)
    {
        if (threadIdx.x == 0) {
            unsigned next = counter_acquire(&state[TICKET]), was = NONE;
            while (next <= last && (was = atomicCAS(&state[TICKET], next, next + 1)) != next)
                next = was;
            space().seen = next <= last ? next : NONE;
        }
        __syncthreads();
        unsigned ticket = space().seen;
        __syncthreads();
        return ticket;
    }

    /* The chain waits for a lead. Nobody may have taken it yet: then the chain runs tasks up to it,
     * none of which waits for what the chain does later. The factor of block j is kept. False:
     * stopped. */
    __device__ bool help_until_ready(int r, int j)
    {
        unsigned last = ticket_of(r - 2);
        bool has_helped = false;
        for (unsigned ticket; (ticket = take(last)) != NONE; has_helped = true)
            if (!run(ticket))
                return false;
        if (has_helped)
            load_factor(j);
        return await(&ready[r], &ready[r], 1) != 0;
    }

    __device__ void chain()
    {
        copy(space().last, 0, 0);
        first_factor();
        for (int j = 0; j < blocks; j++) {
            factor(j);
            if (space().bad != 0) {
                if (threadIdx.x == 0) {
                    state[INFO] = (unsigned)a.row + j * BLOCK + space().bad;
                    counter_release(&state[STOP], 1);
                }
                return;
            }
            if (threadIdx.x >= 128)
                give_factor(j);
#if !HAS_ASYNC
            else
                __syncthreads();
#endif
            if (j + 1 == blocks || (j > 0 && !help_until_ready(j + 1, j)))
                return;
            copy(space().target, j + 1, j);
            copy(space().last, j + 1, j + 1);
            copies_wait<1>();
            __syncthreads();
            solve();
            next_factor(j + 1);
        }
    }

    __device__ void first_factor()
    {
        int m = size(0);
        arrive();
        for (int e = (int)threadIdx.x; e < BLOCK * BLOCK; e += THREADS) {
            int r = e % BLOCK, c = e / BLOCK;
            space().factor[c][r] = r < m && c <= r ? space().last[c][r] : T(r == c);
        }
        __syncthreads();
    }

    /* The block in `other`, less what the solved ones before add. */
    __device__ __noinline__ void next_factor(int j)
    {
        sums p = square();
        int m = size(j);
        arrive();
        p.each([&](int r, int c, T sum) {
            space().factor[c][r] = r < m && c <= r ? space().last[c][r] - sum : T(r == c);
        });
        __syncthreads();
    }

    /* to := block (i, j) less the products of columns from .. end. False: stopped. */
    __device__ __noinline__ bool partial(T (*to)[ROW], int i, int j, int from, int end)
    {
        sums p;
        if (!add_outer(p, i, j, from, end))
            return false;
        copy(to, i, j);
        arrive();
        p.each([&](int r, int c, T sum) { to[c][r] -= sum; });
        __syncthreads();
        return true;
    }

    __device__ bool solve_by(int j)
    {
        if (await(&rows[j], &rows[j], j + 1) == 0)
            return false;
        load_factor(j);
        solve();
        return true;
    }

    /* Solves for (i, j). False: stopped. */
    __device__ bool tile(int i, int j)
    {
        if (!partial(space().target, i, j, 0, j) || !solve_by(j))
            return false;
        store_target(i, j);
        publish(&rows[i], j + 1);
        return true;
    }

    __device__ bool update(int i, int j, int from, int to)
    {
        if (!partial(space().target, i, j, from, to))
            return false;
        store_target(i, j);
        return true;
    }

    __device__ bool go_ahead(int r, int which)
    {
        if (!update(r, r - 2 + which, 0, r - 2 - AHEAD))
            return false;
        __syncthreads();
        if (threadIdx.x == 0) {
            __threadfence();
            atomicAdd(&ahead[r], 1);
        }
        return true;
    }

    /* (i, j) of A := a block in shared memory less the sums. */
    __device__ void store_less(const sums &p, const T (*from)[ROW], int i, int j)
    {
        T *to = at(a, i, j);
        int m = size(i), width = size(j);
        p.each([&](int r, int c, T sum) {
            if (r < m && c < width && (i != j || r >= c))
                to[(unsigned long long)c * a.ld + r] = from[c][r] - sum;
        });
    }

    /* First what can be done before the chain gives away its factor, and of that first what waits
     * for the fewest others. */
    __device__ bool lead(int r)
    {
        int from = r - 2 - AHEAD > 0 ? r - 2 - AHEAD : 0;
        if ((from > 0 && await(&ahead[r], &ahead[r], 3) == 0) ||
            !partial(space().last, r, r, from, r - 2) ||
            !partial(space().beside, r, r - 1, from, r - 2) ||
            !partial(space().target, r, r - 2, from, r - 2) || !solve_by(r - 2))
            return false;
        store_target(r, r - 2);
        publish(&rows[r], r - 1);
        store_less(square(), space().last, r, r);
        if (await(&rows[r - 1], &rows[r - 1], r - 1) == 0)
            return false;
        copy(space().last, r - 1, r - 2);
        arrive();
        sums p;
        p.template multiply<BLOCK, layout, layout>(&space().target[0][0], &space().last[0][0]);
        store_less(p, space().beside, r, r - 1);
        publish(&ready[r], 1);
        return true;
    }

    __device__ __noinline__ bool inverse(int i, int j)
    {
        {
            sums p;
            if (!add_inner(p, i, j))
                return false;
            p.each([&](int r, int c, T sum) { space().target[r][c] = i == j ? T(r == c) : -sum; });
        }
        __syncthreads();
        if (!solve_by(i))
            return false;
        T *to = at(w, i, j), *above = at(w, j, i);
        int m = size(i), width = size(j);
        for (int e = (int)threadIdx.x; e < BLOCK * BLOCK; e += THREADS) {
            int r = e % BLOCK, c = e / BLOCK;
            if (r < m && c < width && (i != j || r / HALF != c / HALF))
                to[(unsigned long long)c * w.ld + r] = space().target[r][c];
            if (i != j && r < width && c < m)
                above[(unsigned long long)c * w.ld + r] = T(0);
        }
        publish(&columns[j], i - j + 1);
        return true;
    }

    /* Tasks of column c: the lead of row c + 2, three ahead for row c + 2 + AHEAD, tiles below, and
     * row c of the inverse. */
    __device__ int leads(int c) const
    {
        return c + 2 < blocks ? 1 : 0;
    }

    __device__ int aheads(int c) const
    {
        return c > 0 && c + 2 + AHEAD < blocks ? 3 : 0;
    }

    __device__ int count(int c) const
    {
        int below = blocks - c - 3;
        return leads(c) + aheads(c) + (below > 0 ? below : 0) + (inverts ? c + 1 : 0);
    }

    /* The ticket of column c's first task. */
    __device__ unsigned ticket_of(int c) const
    {
        unsigned ticket = 1;
        for (int k = 0; k < c; k++)
            ticket += count(k);
        return ticket;
    }

    /* False: stopped, or no such task. */
    __device__ __noinline__ bool run(unsigned ticket)
    {
        unsigned first = 1;
        int c = 0;
        for (; c < blocks && ticket >= first + count(c); c++)
            first += count(c);
        if (c == blocks)
            return false;
        int index = (int)(ticket - first);
        if (index < leads(c))
            return lead(c + 2);
        index -= leads(c);
        if (index < aheads(c))
            return go_ahead(c + 2 + AHEAD, index);
        index -= aheads(c);
        return c + 3 + index < blocks
                   ? tile(c + 3 + index, c)
                   : inverse(c, index - (blocks - c - 3 > 0 ? blocks - c - 3 : 0));
    }

    __device__ void work()
    {
        unsigned ticket = take(NONE - 1);
        if (ticket == 0) {
            chain();
            ticket = take(NONE - 1);
        }
        while (run(ticket))
            ticket = take(NONE - 1);
    }

    /* The last to leave readies the state for the next launch. */
    __device__ void leave()
    {
        if (!leaves_last(state, LEFT, &space().seen))
            return;
        for (int e = TICKET + (int)threadIdx.x; e < COUNTERS + 4 * blocks; e += THREADS)
            state[e] = 0;
    }
};

template <typename T>
__device__ void potrf_trtri_run(const filch_view &a, const filch_view &state, const filch_view &w,
                                bool inverts)
{
    problem<T> p;
    p.a = a;
    p.w = w;
    p.inverts = inverts;
    p.n = (int)a.rows;
    p.blocks = (p.n + BLOCK - 1) / BLOCK;
    p.state = (unsigned *)state.ptr;
    p.rows = p.state + COUNTERS;
    p.columns = p.rows + p.blocks;
    p.ready = p.columns + p.blocks;
    p.ahead = p.ready + p.blocks;
    if (threadIdx.x == 0)
        p.space().bad = p.state[INFO] != 0;
    __syncthreads();
    if (p.space().bad == 0)
        p.work();
    p.leave();
}

#define POTRF_TRTRI(T, suffix)                                                  \
    extern "C" __global__ void __launch_bounds__(THREADS)                       \
        filch_potrf_trtri_##suffix(filch_view a, filch_view state, filch_view w, \
                                   potrf_trtri_args args)                       \
    {                                                                           \
        potrf_trtri_run<T>(a, state, w, args.inverts);                          \
    }

/* As in dense/lu_panel.cu: doubles alone take the compiler a third of the time of both. */
#if !defined PANEL_BITS || PANEL_BITS == 64
POTRF_TRTRI(double, f64)
#endif
#if !defined PANEL_BITS || PANEL_BITS == 32
POTRF_TRTRI(float, f32)
#endif
