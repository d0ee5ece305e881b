/* SPDX-License-Identifier: Apache-2.0 */
/* QR of up to GROUP columns of a tall panel in one launch (LAPACK's geqrf), with the reflectors V,
 * their ones and zeros included, and the triangle T of I - V T V'. The panel's other columns are
 * another task's. Over product.cuh, counters.cuh, meeting.cuh and strip.cuh.
 *
 * The rows are dealt to thread blocks. A block holds its rows of a strip of W columns in registers,
 * every eighth column in the same warp, and factors the strip with one exchange of all blocks a
 * column: each publishes the products of the column x, below the diagonal, with itself and with the
 * columns on its right, and one the elements of the diagonal's row. All add them in the same order.
 * From x'x and x's element on the diagonal follow the reflector's norm and scale, and from those
 * and x'a what v'a is: the reflector, which is a multiple of x, needs no exchange of its own.
 *
 * After a strip all blocks meet twice: their parts of V' times the group's columns are added up,
 * each column by one block, and each block solves for T' times that,
 *
 *     (D^-1 + U)' Y = V' C,    D = diag(tau), U the strict upper triangle of V'V,
 *
 * as far as a tau of 0 leaves a D^-1 (C. Puglisi, "Modification of the Householder method based on
 * the compact WY representation", SIAM J. Sci. Stat. Comput. 13, 1992). Columns on the right lose
 * V Y; the solutions for the strip's unit vectors are the rows of its T, and those for reflectors
 * on the left give T's columns above (R. Schreiber, C. Van Loan, "A storage-efficient WY
 * representation for products of Householder transformations", SIAM J. Sci. Stat. Comput. 10,
 * 1989).
 *
 * A column whose sum of squares may have over- or underflown is scaled first, with two exchanges
 * more, and products that are no numbers are made anew of v. All blocks see the same sums, and
 * decide alike. Where so few blocks have come that a strip does not fit in their registers, they
 * factor it where it is. */
constexpr int MOST = 128; /* blocks */
constexpr int MINE = W / WARPS; /* columns of a warp */
constexpr int LINE = 256; /* rows of a block that has them in registers */
constexpr int BN = 64, BK = 32; /* of products */
constexpr int STEP = W + 5; /* of solutions in shared memory */
#if HAS_ASYNC && __CUDA_ARCH__ >= 900
#define HAS_FRAGMENTS 1
#else
#define HAS_FRAGMENTS 0
#endif
/* Elements from one column to the next of a strip in shared memory, so that fragments of tensor
 * cores meet all banks. */
constexpr int STAGED_STEP = LINE + 4;

/* Packets: of a strip's columns and all blocks the products; of its columns the diagonal's row; of
 * all blocks the largest magnitudes, and squares after scaling; products with v. */
constexpr int SUMS = 0, TOPS = SUMS + 2 * W * MOST, SIZES = TOPS + 2 * W;
constexpr int SQUARES = SIZES + 2 * MOST, AGAIN = SQUARES + 2 * MOST;
constexpr int PACKETS = AGAIN + 2 * W * MOST; /* state.h has the state's size */

/* Sums of squares whose roundoff is that of their terms, and powers of two. */
template <typename T> struct range;

template <> struct range<double> {
    static constexpr double least = 0x1p-500, most = 0x1p500;
    static constexpr double largest = 0x1.fffffffffffffp+1023;

    /* A power of two near 1/x, which scales squares into the range; 1 where x is no number. */
    __device__ static double scale(double x)
    {
        int e = (int)((word)__double_as_longlong(x) >> 52 & 0x7ff);
        e = e == 0x7ff ? 0 : e < 23 ? -1000 : e > 2023 ? 1000 : e - 1023;
        return __longlong_as_double((long long)(1023 - e) << 52);
    }
};

template <> struct range<float> {
    static constexpr float least = 0x1p-60f, most = 0x1p60f;
    static constexpr float largest = 0x1.fffffep+127f;

    __device__ static float scale(float x)
    {
        int e = (int)(__float_as_uint(x) >> 23 & 0xff);
        e = e == 0xff ? 0 : e < 7 ? -120 : e > 247 ? 120 : e - 127;
        return __uint_as_float((unsigned)(127 - e) << 23);
    }
};

/* H = I - tau v v', v being x, the column below the diagonal, times `factor` and `scale`, and 1 on
 * the diagonal. */
template <typename T> struct reflector {
    T beta, tau, factor, scale;
};

/* A warp's part of a strip, R rows a lane: its columns, and the one that is factored. */
template <typename T, int R> struct held {
    T own[MINE][R], x[R];
};

template <typename T> struct workspace {
    T line[2][LINE]; /* columns that are factored, by turns */
    T part[WARPS][W];
    T tau[W];
    unsigned seen[2];
};

/* One launch. */
template <typename T> struct panel : meeting {
    T *a, *v, *t, *tau, *room;
    unsigned long long lda, ldv, ldt;
    int m;          /* rows */
    int first, end; /* the columns that are factored */

    __device__ static workspace<T> &space()
    {
        return *(workspace<T> *)memory;
    }

    /* Behind the workspace: stages of products, or solutions. */
    __device__ static T *behind()
    {
        return (T *)((char *)memory + (sizeof(workspace<T>) + 15) / 16 * 16);
    }

    __device__ T *at(int row, int col) const
    {
        return a + (unsigned long long)col * lda + row;
    }

    __device__ T *v_at(int row, int col) const
    {
        return v + (unsigned long long)col * ldv + row;
    }

    __device__ T *t_at(int row, int col) const
    {
        return t + (unsigned long long)(first + col) * ldt + first + row;
    }

    __device__ static int lane()
    {
        return (int)threadIdx.x % 32;
    }

    /* Column i of the warp's. */
    __device__ static int column(int i)
    {
        return (int)threadIdx.x / 32 + i * WARPS;
    }

    /* --- Sums --- */

    __device__ static T exchange(T x, int mask)
    {
        return __shfl_xor_sync(NONE, x, mask);
    }

    /* Over the warp: sum i in lanes 8 i and the seven behind. */
    __device__ static T add_four(const T (&x)[MINE])
    {
        static_assert(MINE == 4, "two halvings");
        bool is_high = (lane() & 16) != 0, is_odd = (lane() & 8) != 0;
        T low = is_high ? x[2] : x[0], high = is_high ? x[3] : x[1];
        low += exchange(is_high ? x[0] : x[2], 16);
        high += exchange(is_high ? x[1] : x[3], 16);
        T sum = is_odd ? high : low;
        sum += exchange(is_odd ? low : high, 8);
        for (int mask = 4; mask > 0; mask /= 2)
            sum += exchange(sum, mask);
        return sum;
    }

    __device__ static T add_all(T x)
    {
        for (int mask = 16; mask > 0; mask /= 2)
            x += exchange(x, mask);
        return x;
    }

    __device__ packet *place(int of, int turn, int col) const
    {
        return packets + of + (turn * W + col) * MOST;
    }

    __device__ packet *top(int turn, int col) const
    {
        return packets + TOPS + turn * W + col;
    }

    __device__ static void publish_one(packet *to, T value, unsigned number)
    {
        packet_put(to, number_of<T>::bits(value), 0, number);
    }

    /* The block's parts of the warp's columns from j on. */
    __device__ void publish(const T (&dots)[MINE], int of, int j, int width, int k)
    {
        T sum = add_four(dots);
        int col = column(lane() / 8);
        if (lane() % 8 == 0 && col >= j && col < width)
            publish_one(place(of, k % 2, col) + me, sum, epoch + (unsigned)k + 1);
    }

    /* All blocks' parts: of the warp's columns behind j and, where `is_whole`, of column j, and the
     * diagonal's row of both. Lanes look at blocks Ahead times 32 apart; all are looked at before
     * any is waited for. */
    template <int Ahead>
    __device__ void collect(T (&sums)[MINE + 1], T &row, int of, int j, int width, int k,
                            bool is_whole) const
    {
        unsigned number = epoch + (unsigned)k + 1;
        int lanes_col = lane() < MINE ? column(lane()) : j;
        bool wants_row = is_whole && lane() <= MINE && lanes_col >= j && lanes_col < width;
        packet tops = {}, got[MINE + 1][Ahead];
#pragma unroll
        for (int i = 0; i <= MINE; i++)
            sums[i] = T(0);
        for (int from = lane(); from - lane() < (int)people; from += 32 * Ahead) {
#pragma unroll
            for (int i = 0; i <= MINE; i++)
#pragma unroll
                for (int e = 0; e < Ahead; e++)
                    got[i][e] = {};
            bool is_there = false;
            while (!is_there) {
                is_there = true;
                if (wants_row && tops.number != number)
                    tops = packet_look(top(k % 2, lanes_col));
#pragma unroll
                for (int i = 0; i <= MINE; i++)
#pragma unroll
                    for (int e = 0; e < Ahead; e++)
                        if (wants(i, j, width, is_whole) && from + 32 * e < (int)people &&
                            got[i][e].number != number)
                            got[i][e] = packet_look(place(of, k % 2, i < MINE ? column(i) : j) +
                                                    from + 32 * e);
#pragma unroll
                for (int i = 0; i <= MINE; i++)
#pragma unroll
                    for (int e = 0; e < Ahead; e++)
                        if (wants(i, j, width, is_whole) && from + 32 * e < (int)people)
                            is_there = is_there && got[i][e].number == number;
                is_there = is_there && (!wants_row || tops.number == number);
                if (!is_there)
                    look_again();
            }
#pragma unroll
            for (int i = 0; i <= MINE; i++)
#pragma unroll
                for (int e = 0; e < Ahead; e++)
                    sums[i] += number_of<T>::from(got[i][e].value); /* 0 where none is wanted */
        }
        row = number_of<T>::from(tops.value);
        __syncwarp();
    }

    __device__ static bool wants(int i, int j, int width, bool is_whole)
    {
        return i < MINE ? column(i) > j && column(i) < width : is_whole;
    }

    /* All blocks' values, one each. */
    template <typename F> __device__ T collect_one(int of, int k, F join) const
    {
        unsigned number = epoch + (unsigned)k + 1;
        T all = T(0);
        for (int from = lane(); from < (int)people; from += 32)
            all = join(all, number_of<T>::from(packet_take(one(of, k, from), number).value));
        __syncwarp();
        for (int mask = 16; mask > 0; mask /= 2)
            all = join(all, exchange(all, mask));
        return all;
    }

    __device__ packet *one(int of, int k, int block) const
    {
        return packets + of + k % 2 * MOST + block;
    }

    /* --- A column --- */

    /* Own rows that the warp's lanes hold at once. */
    template <int R, bool IsHere> __device__ int chunks() const
    {
        return IsHere ? 1 : (rows + 32 * R - 1) / (32 * R);
    }

    /* Of chunk `chunk`, below row k. */
    template <int R, bool IsHere>
    __device__ __forceinline__ void take_x(held<T, R> &h, int chunk, int s, int k) const
    {
#pragma unroll
        for (int r = 0; r < R; r++)
            h.x[r] = x_at<IsHere>((chunk * R + r) * 32 + lane(), s, k);
    }

    /* Own row `row` of column k, below the diagonal. */
    template <bool IsHere> __device__ T x_at(int row, int s, int k) const
    {
        if (row >= rows || first_row + row <= k)
            return T(0);
        if constexpr (IsHere)
            return space().line[(k - s) % 2][row];
        else
            return *at(first_row + row, k);
    }

    template <int R>
    __device__ __forceinline__ void take_own(held<T, R> &h, int chunk, int s, int width) const
    {
#pragma unroll
        for (int i = 0; i < MINE; i++)
#pragma unroll
            for (int r = 0; r < R; r++) {
                int row = (chunk * R + r) * 32 + lane();
                bool is_there = row < rows && column(i) < width;
                h.own[i][r] = is_there ? *at(first_row + row, s + column(i)) : T(0);
            }
    }

    /* Row k of the warp's columns. */
    template <int R, bool IsHere>
    __device__ __forceinline__ void publish_top(const held<T, R> &h, int s, int width, int k) const
    {
        int local = k - first_row;
        if (!is_own(k) || lane() != local % 32)
            return;
#pragma unroll
        for (int i = 0; i < MINE; i++) {
            T value = T(0);
            if constexpr (IsHere) {
#pragma unroll
                for (int r = 0; r < R; r++)
                    value = r * 32 + lane() == local ? h.own[i][r] : value;
            } else if (column(i) < width) {
                value = *at(k, s + column(i));
            }
            if (column(i) >= k - s && column(i) < width)
                publish_one(top(k % 2, column(i)), value, epoch + (unsigned)k + 1);
        }
    }

    /* Products of x, scaled to v where it is `by` a reflector, with the warp's columns. */
    template <int R, bool IsHere>
    __device__ __forceinline__ void multiply(held<T, R> &h, T (&dots)[MINE], int s, int width,
                                             int k, const reflector<T> *by) const
    {
#pragma unroll
        for (int i = 0; i < MINE; i++)
            dots[i] = T(0);
        for (int chunk = 0; chunk < chunks<R, IsHere>(); chunk++) {
            take_x<R, IsHere>(h, chunk, s, k);
            if constexpr (!IsHere)
                take_own(h, chunk, s, width);
#pragma unroll
            for (int r = 0; r < R; r++) {
                T x = by ? h.x[r] * by->factor * by->scale : h.x[r];
#pragma unroll
                for (int i = 0; i < MINE; i++)
                    dots[i] += x * h.own[i][r];
            }
        }
    }

    __device__ static reflector<T> reflect(T alpha, T squares, T factor)
    {
        reflector<T> h;
        T x = alpha * factor, norm = sqrt(x * x + squares), beta = x < T(0) ? norm : -norm;
        h.tau = (beta - x) * number_of<T>::reciprocal(beta);
        h.scale = number_of<T>::reciprocal(x - beta);
        h.factor = factor;
        h.beta = beta;
        return h;
    }

    /* Of a column that is scaled before it is squared. */
    template <bool IsHere> __device__ reflector<T> reflect_scaled(int s, int k, T alpha) const
    {
        unsigned number = epoch + (unsigned)k + 1;
        bool is_first = lane() == 0 && (int)threadIdx.x / 32 == 0;
        T size = T(0), squares = T(0);
        for (int row = lane(); row < rows; row += 32)
            size = larger(size, fabs(x_at<IsHere>(row, s, k)));
        for (int mask = 16; mask > 0; mask /= 2)
            size = larger(size, exchange(size, mask));
        if (is_first)
            publish_one(one(SIZES, k, (int)me), size, number);
        size = collect_one(SIZES, k, larger);
        if (size == T(0))
            return {alpha, T(0), T(1), T(1)};
        T factor = range<T>::scale(larger(size, fabs(alpha)));
        for (int row = lane(); row < rows; row += 32) {
            T x = x_at<IsHere>(row, s, k) * factor;
            squares += x * x;
        }
        squares = add_all(squares);
        if (is_first)
            publish_one(one(SQUARES, k, (int)me), squares, number);
        squares = collect_one(SQUARES, k, [](T x, T y) { return x + y; });
        reflector<T> by = reflect(alpha, squares, factor);
        by.beta /= factor;
        return by;
    }

    /* A NaN is larger than all numbers. */
    __device__ static T larger(T x, T y)
    {
        return x > y || x != x ? x : y;
    }

    /* Column k, which lies in a line. */
    template <int R, bool IsHere>
    __device__ __forceinline__ void step(held<T, R> &h, int s, int width, int k)
    {
        constexpr int ahead = 2;
        T dots[MINE], sums[MINE + 1], row, f[MINE];
        int j = k - s;
        multiply<R, IsHere>(h, dots, s, width, k, nullptr);
        publish_top<R, IsHere>(h, s, width, k);
        publish(dots, SUMS, j, width, k);
        collect<ahead>(sums, row, SUMS, j, width, k, true);
        spread_sums(sums, f);
        T squares = add_all(sums[MINE]);
        T alpha = __shfl_sync(NONE, row, MINE);
        reflector<T> by = reflect(alpha, squares, T(1));
        bool is_odd = !(squares >= range<T>::least && alpha * alpha + squares <= range<T>::most);
        if (is_odd)
            by = reflect_scaled<IsHere>(s, k, alpha);
        bool is_again = is_odd;
#pragma unroll
        for (int i = 0; i < MINE; i++)
            is_again = is_again || !(fabs(f[i]) <= range<T>::largest);
        if (is_again && by.tau != T(0)) {
            multiply<R, IsHere>(h, dots, s, width, k, &by);
            publish(dots, AGAIN, j + 1, width, k);
            collect<1>(sums, alpha, AGAIN, j, width, k, false);
            spread_sums(sums, f);
        } else {
#pragma unroll
            for (int i = 0; i < MINE; i++)
                f[i] *= by.scale;
        }
#pragma unroll
        for (int i = 0; i < MINE; i++) {
            T product = __shfl_sync(NONE, row, i) + f[i];
            f[i] = column(i) > j && by.tau != T(0) ? by.tau * product : T(0);
        }
        update<R, IsHere>(h, s, width, k, by, f);
        if ((int)threadIdx.x == 0) {
            space().tau[j] = by.tau;
            if (me == 0)
                tau[k] = by.tau;
        }
    }

    __device__ static void spread_sums(const T (&sums)[MINE + 1], T (&f)[MINE])
    {
        const T own[MINE] = {sums[0], sums[1], sums[2], sums[3]};
        T sum = add_four(own);
#pragma unroll
        for (int i = 0; i < MINE; i++)
            f[i] = __shfl_sync(NONE, sum, 8 * i);
    }

    /* The warp's columns behind column k lose v times f; that column becomes v, and the next lies
     * in the other line. */
    template <int R, bool IsHere>
    __device__ __forceinline__ void update(held<T, R> &h, int s, int width, int k,
                                           const reflector<T> &by, const T (&f)[MINE])
    {
        for (int chunk = 0; chunk < chunks<R, IsHere>(); chunk++) {
            take_x<R, IsHere>(h, chunk, s, k); /* registers are short in between */
            if constexpr (!IsHere)
                take_own(h, chunk, s, width);
#pragma unroll
            for (int r = 0; r < R; r++) {
                int row = first_row + (chunk * R + r) * 32 + lane();
                h.x[r] = row > k ? h.x[r] * by.factor * by.scale : row == k ? T(1) : T(0);
            }
#pragma unroll
            for (int i = 0; i < MINE; i++)
                if (column(i) > k - s && column(i) < width)
                    update_column<R, IsHere>(h, i, chunk, s, k, f[i]);
                else if (column(i) == k - s)
                    finish_column<R, IsHere>(h, i, chunk, k, by.beta);
        }
    }

    template <int R, bool IsHere>
    __device__ __forceinline__ void update_column(held<T, R> &h, int i, int chunk, int s, int k,
                                                  T f) const
    {
        bool is_plain = fabs(f) <= range<T>::largest; /* zeros of v change nothing */
#pragma unroll
        for (int r = 0; r < R; r++) {
            int row = (chunk * R + r) * 32 + lane();
            if (is_plain || first_row + row >= k)
                h.own[i][r] -= f * h.x[r];
            if constexpr (!IsHere)
                if (row < rows)
                    *at(first_row + row, s + column(i)) = h.own[i][r];
            if constexpr (IsHere)
                if (column(i) == k + 1 - s)
                    space().line[(k + 1 - s) % 2][row] = h.own[i][r];
        }
    }

    /* v, which others still read where it is: it goes to V alone there, until the strip's end. */
    template <int R, bool IsHere>
    __device__ __forceinline__ void finish_column(held<T, R> &h, int i, int chunk, int k,
                                                  T beta) const
    {
#pragma unroll
        for (int r = 0; r < R; r++) {
            int row = (chunk * R + r) * 32 + lane();
            if constexpr (IsHere) {
                h.own[i][r] = first_row + row > k    ? h.x[r]
                              : first_row + row == k ? beta
                                                     : h.own[i][r];
            } else if (row < rows) {
                *v_at(first_row + row, k) = h.x[r];
                if (first_row + row == k)
                    *at(k, k) = beta;
            }
        }
    }

    /* A strip that is factored, to A and V. */
    template <int R, bool IsHere>
    __device__ __forceinline__ void put(const held<T, R> &h, int s, int width) const
    {
        for (int chunk = 0; chunk < chunks<R, IsHere>(); chunk++)
#pragma unroll
            for (int i = 0; i < MINE; i++)
#pragma unroll
                for (int r = 0; r < R; r++) {
                    int local = (chunk * R + r) * 32 + lane(), col = s + column(i);
                    int row = first_row + local;
                    bool is_there = local < rows && column(i) < width;
                    if constexpr (IsHere) {
                        T x = row > col ? h.own[i][r] : row == col ? T(1) : T(0);
                        if (is_staged())
                            behind()[column(i) * STAGED_STEP + local] = is_there ? x : T(0);
                        if (is_there)
                            *at(row, col) = h.own[i][r];
                        if (is_there)
                            *v_at(row, col) = x;
                    } else if (is_there && row > col) {
                        *at(row, col) = *v_at(row, col);
                    }
                }
    }

    template <int R, bool IsHere> __device__ __forceinline__ void factor(int s, int width)
    {
        held<T, R> h;
        if constexpr (IsHere) {
            take_own(h, 0, s, width);
            if ((int)threadIdx.x < 32)
#pragma unroll
                for (int r = 0; r < R; r++)
                    space().line[0][r * 32 + lane()] = h.own[0][r];
        }
        if ((int)threadIdx.x < W)
            space().tau[threadIdx.x] = T(0);
        for (int k = s; k < s + width; k++) {
            __syncthreads();
            step<R, IsHere>(h, s, width, k);
        }
        put<R, IsHere>(h, s, width);
        __syncthreads();
    }

    /* --- Other columns --- */

    /* The block's part of V' C, a column behind the other: of V's strip from s on, and `cols`
     * columns of C. */
    __device__ void multiply_columns(int s, int width, const T *c, unsigned long long ldc, int cols,
                                     T *to)
    {
        int begin = own_from(s), row = first_row + begin;
        for (int from = 0; from < cols; from += BN, c += BN * ldc, to += BN * W) {
            int count = cols - from < BN ? cols - from : BN;
            product<T, W, BN, BK> p;
            if (begin < rows)
                p.add(v_at(row, s), ldv, true, c + row, ldc, false, width, count, rows - begin,
                      behind());
            p.each([&](int i, int j, T sum) {
                if (j < count)
                    to[j * W + i] = sum;
            });
            __syncthreads();
        }
    }

    /* Whether a strip that is factored lies in shared memory. */
    __device__ bool is_staged() const
    {
        return HAS_FRAGMENTS && is_double<T>::value && each <= LINE;
    }

#if HAS_FRAGMENTS
    /* The same of a strip in shared memory, by tensor cores, with all of the group's columns, of
     * which those before `beyond` are V's; product.cuh has the fragments' layout. */
    __device__ void multiply_fragments(int s, int beyond, T *to) const
    {
        int group = lane() / 4, t = lane() % 4, cols = end - first;
        int c0 = (int)threadIdx.x / 32 * 16;
        static_assert(WARPS * 16 == GROUP, "a warp has sixteen columns");
        const T *staged = behind() + t, *from[2];
        T sum[2][2][2][2] = {};
#pragma unroll
        for (int f = 0; f < 2; f++) {
            int c = c0 + 8 * f + group, col = first + (c < cols ? c : cols - 1);
            from[f] = (col < beyond ? v_at(first_row, col) : at(first_row, col)) + t;
        }
#pragma unroll 4
        for (int k = own_from(s); k < rows && c0 < cols; k += 8) {
            T b[2][2];
#pragma unroll
            for (int f = 0; f < 2; f++)
#pragma unroll
                for (int e = 0; e < 2; e++)
                    b[f][e] = k + 4 * e + t < rows ? from[f][k + 4 * e] : T(0);
#pragma unroll
            for (int i = 0; i < 2; i++) {
                T x[4];
#pragma unroll
                for (int e = 0; e < 4; e++)
                    x[e] = staged[(16 * i + group + e % 2 * 8) * STAGED_STEP + k + e / 2 * 4];
#pragma unroll
                for (int f = 0; f < 2; f++)
                    multiply_16x8x8(sum[i][f][0], sum[i][f][1], x, b[f]);
            }
        }
#pragma unroll
        for (int e = 0; e < 16; e++) {
            int c = c0 + e / 4 % 2 * 8 + 2 * t + e % 2, i = e / 8 * 16 + e / 2 % 2 * 8 + group;
            if (c < cols)
                to[c * W + i] = sum[e / 8][e / 4 % 2][e / 2 % 2][e % 2];
        }
    }
#endif

    /* All blocks' parts of the group's columns; a column by one block. */
    __device__ void add_parts()
    {
        int warp = (int)threadIdx.x / 32;
        for (int c = (int)me; c < end - first; c += (int)people) {
            T got[MOST / WARPS], sum = T(0);
#pragma unroll
            for (int e = 0; e < MOST / WARPS; e++) {
                int block = e * WARPS + warp;
                got[e] = block < (int)people ? room[(block * GROUP + c) * W + lane()] : T(0);
            }
#pragma unroll
            for (int e = 0; e < MOST / WARPS; e++)
                sum += got[e];
            space().part[warp][lane()] = sum;
            __syncthreads();
            if (warp == 0) {
                for (int e = 1; e < WARPS; e++)
                    sum += space().part[e][lane()];
                totals()[c * W + lane()] = sum;
            }
            __syncthreads();
        }
    }

    /* Behind the parts of all blocks that may have come. */
    __device__ T *totals() const
    {
        return room + (unsigned long long)gridDim.x * GROUP * W;
    }

    /* T' V' C of the group's columns into y in shared memory, for T's strip from s on; of the
     * strip's own columns T's rows, behind. */
    __device__ void solve(int s, T *y)
    {
        int own = s - first, cols = end - first, c = (int)threadIdx.x;
#pragma unroll 8
        for (int e = c; e < cols * W; e += THREADS)
            y[e / W * STEP + e % W] = totals()[e];
        __syncthreads();
        bool is_own = c >= own && c < own + W;
        T *to = is_own ? y + (GROUP + W + c - own) * STEP : y + c * STEP;
        T x[W];
#pragma unroll
        for (int i = 0; i < W; i++)
            x[i] = c >= cols ? T(0) : !is_own ? y[c * STEP + i] : c - own == i ? T(1) : T(0);
        /* x moves by one in each step, so that the loop need not be unrolled. */
#pragma unroll 1
        for (int i = 0; i < W; i++) {
            T scale = space().tau[i], first_of_x = scale != T(0) ? x[0] * scale : T(0);
#pragma unroll
            for (int e = 0; e < W - 1; e++) {
                T u = i + 1 + e < W ? y[(own + i + 1 + e) * STEP + i] : T(0);
                x[e] = x[e + 1] - u * first_of_x;
            }
            x[W - 1] = T(0);
            if (c < cols)
                to[i] = first_of_x;
        }
        __syncthreads();
    }

    /* T's columns of the strip from s on; a column by one block. */
    __device__ void put_triangle(int s, int width, const T *y) const
    {
        int own = s - first, row = (int)threadIdx.x % GROUP, half = (int)threadIdx.x / GROUP;
        static_assert(THREADS == 2 * GROUP, "two threads a row");
        for (int i = (int)me; i < width; i += (int)people) {
            T sum = T(0);
            if (row < own) {
#pragma unroll 16
                for (int c = half; c < own; c += 2)
                    sum -= c >= row ? *t_at(row, c) * y[c * STEP + i] : T(0);
            } else if (half == 0 && row - own <= i) {
                sum = y[(GROUP + W + row - own) * STEP + i];
            }
            __syncthreads();
            if (half == 1)
                space().line[0][row] = sum;
            __syncthreads();
            if (half == 0 && row < end - first)
                *t_at(row, own + i) = sum + space().line[0][row];
        }
    }

    /* The block's part of V' times the group's columns. */
    __device__ void multiply_group(int s, int width, T *to)
    {
        int beyond = s + width;
#if HAS_FRAGMENTS
        if constexpr (is_double<T>::value)
            if (is_staged())
                return multiply_fragments(s, beyond, to);
#endif
        multiply_columns(s, width, v_at(0, first), ldv, beyond - first, to);
        multiply_columns(s, width, at(0, beyond), lda, end - beyond, to + (beyond - first) * W);
    }

    /* Block reflector of the strip from s on, to the group's columns on the right. */
    __device__ void apply(int s, int width)
    {
        int beyond = s + width;
        T *part = room + (unsigned long long)me * GROUP * W, *y = behind();
        multiply_group(s, width, part);
        arrive();
        wait();
        add_parts();
        arrive();
        wait();
        solve(s, y);
        put_triangle(s, width, y);
        auto column = [&](int i, int row) { return *v_at(first_row + row, s + i); };
        strip_update<T, decltype(column), STEP> by = {column, at(first_row, beyond), lda, rows};
        if (beyond < end)
            by.run(own_from(s), end - beyond, y + (beyond - first) * STEP);
        __syncthreads();
    }

    __device__ void work()
    {
        deal(first, m);
        if (me == 0)
            for (int e = (int)threadIdx.x; e < first * (end - first); e += THREADS)
                *v_at(e % first, first + e / first) = T(0);
        for (int s = first; s < end; s += W) {
            int width = end - s < W ? end - s : W;
            if (each <= LINE)
                factor<LINE / 32, true>(s, width);
            else
                factor<LINE / 32, false>(s, width);
            apply(s, width);
        }
    }
};

template <typename T>
__device__ void panel_run(const filch_view &a, const filch_view &tau, const filch_view &v,
                          const filch_view &t, const filch_view &state, const filch_view &room,
                          const panel_args &args)
{
    panel<T> p;
    p.a = &filch_at<T>(a, tau.row);
    p.lda = a.ld;
    p.m = (int)(a.rows - tau.row);
    p.first = (int)(args.row - tau.row);
    p.end = p.first + (int)args.order;
    p.tau = (T *)tau.ptr;
    p.v = &filch_at<T>(v, tau.row);
    p.ldv = v.ld;
    p.t = (T *)t.ptr;
    p.ldt = t.ld;
    p.room = (T *)room.ptr;
    p.open((unsigned *)state.ptr);
    p.come(p.space().seen);
    if (p.people != 0)
        p.work();
    p.leave(p.space().seen, PACKETS, (unsigned)p.end);
}

#define QR_PANEL(T, suffix)                                                                     \
    extern "C" __global__ void __launch_bounds__(THREADS)                                       \
        fl_qr_panel_##suffix(filch_view a, filch_view tau, filch_view v, filch_view t,          \
                             filch_view state, filch_view room, panel_args args)                \
    {                                                                                           \
        panel_run<T>(a, tau, v, t, state, room, args);                                          \
    }

/* Compiling takes seconds a precision: a program that needs one of them names its bits. */
#if !defined PANEL_BITS || PANEL_BITS == 64
QR_PANEL(double, f64)
#endif
#if !defined PANEL_BITS || PANEL_BITS == 32
QR_PANEL(float, f32)
#endif
