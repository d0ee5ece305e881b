/* SPDX-License-Identifier: Apache-2.0 */
/* LU with partial pivoting of up to GROUP columns of a tall panel in one launch (LAPACK's getrf,
 * its pivots included), with the exchanges of rows and the solutions on top in the panel's other
 * columns. What is left of those is a product, and another task's. Over product.cuh, counters.cuh,
 * meeting.cuh and strip.cuh.
 *
 * The rows are dealt to thread blocks. A strip of W columns is factored in shared memory with one
 * exchange of all blocks a column: each publishes its candidate for the pivot and the candidate's
 * row; all choose alike, the largest and of equals the first; then each updates its rows. After a
 * strip its pivots go to the other columns of the group, and after the group to all other columns
 * of the panel: a warp exchanges the rows of a column and solves for the rows on top, and within
 * the group all blocks meet and each updates its own rows (S. Tomov, J. Dongarra, M. Baboulin,
 * "Towards dense linear algebra for hybrid GPU accelerated manycore systems", Parallel Computing
 * 36, 2010, has the blocking).
 *
 * Where so few blocks have come that a strip does not fit in their shared memory, they factor it
 * where it is. */
constexpr int MOST = THREADS; /* blocks: a thread reads the candidate of each */
constexpr int PER_LANE = GROUP / 32;
/* Columns that a strip updates at once, and elements from one to the next, so that fragments meet
 * all banks. */
constexpr int BATCH = 64, BATCH_STEP = W + 4;
constexpr int CANDIDATES = 0, ROWS = CANDIDATES + 2 * MOST, TOPS = ROWS + 2 * MOST * W;
constexpr int PACKETS = TOPS + 2 * W; /* state.h has the state's size */

#ifdef __CUDACC__
__device__ inline unsigned memory_bytes()
{
    unsigned bytes;
    asm("mov.u32 %0, %%dynamic_smem_size;" : "=r"(bytes));
    return bytes;
}
#else
static unsigned memory_bytes()
{
    return emulate::shared_bytes();
}
#endif

template <typename T> struct candidate {
    word size;
    unsigned row;
    T value;
};

template <typename T> struct workspace {
    candidate<T> found[2][WARPS];
    T top[W][W + 1]; /* the strip's first W rows, as they end */
    int pivot[GROUP];
    int from[2 * GROUP];
    unsigned seen[2];
};

/* One launch. */
template <typename T> struct panel : meeting {
    T *a;
    unsigned long long lda;
    int m, n;
    int first, end; /* the columns that are factored */
    int ld;         /* of the strip in shared memory */
    int *pivots;    /* LAPACK's, to be written */
    int info;

    __device__ static workspace<T> &space()
    {
        return *(workspace<T> *)memory;
    }

    /* Behind the workspace: the strip, and behind the strip a batch of columns. */
    __device__ static T *room()
    {
        return (T *)((char *)memory + (sizeof(workspace<T>) + 15) / 16 * 16);
    }

    __device__ T *at(int row, int col) const
    {
        return a + (unsigned long long)col * lda + row;
    }

    /* Own row of the strip that begins at column s. */
    template <bool IsHere> __device__ T &strip(int s, int j, int row) const
    {
        if constexpr (IsHere)
            return room()[j * ld + row];
        else
            return *at(first_row + row, s + j);
    }

    /* --- A step --- */

    /* The lane that has the warp's best. */
    __device__ static int leader(const candidate<T> &own)
    {
        unsigned high = (unsigned)(own.size >> 32), low = (unsigned)own.size;
        unsigned lanes = __ballot_sync(NONE, high == __reduce_max_sync(NONE, high));
        bool is_one = lanes >> threadIdx.x % 32 & 1;
        if ((lanes & (lanes - 1)) != 0) { /* which is rare, but where there are no candidates */
            unsigned most = __reduce_max_sync(NONE, is_one ? low : 0);
            is_one = is_one && low == most;
            unsigned row = __reduce_min_sync(NONE, is_one ? own.row : NONE);
            lanes = __ballot_sync(NONE, is_one && own.row == row);
        }
        return __ffs((int)lanes) - 1;
    }

    /* The block's best of its threads' candidates. Two places by turns: all have read one when all
     * have met at the other. */
    __device__ candidate<T> best(const candidate<T> &own, int turn)
    {
        int lane = (int)threadIdx.x % 32;
        candidate<T> *found = space().found[turn];
        if (!__any_sync(NONE, own.row != NONE)) {
            if (lane == 0)
                found[threadIdx.x / 32] = none();
        } else if (lane == leader(own)) {
            found[threadIdx.x / 32] = own;
        }
        __syncthreads();
        return found[leader(lane < WARPS ? found[lane] : none())];
    }

    __device__ static candidate<T> none()
    {
        candidate<T> c;
        c.size = 0;
        c.row = NONE;
        c.value = T(0);
        return c;
    }

    /* Rows come in their order. Row k counts whatever it has, so that a NaN below need not. */
    __device__ static candidate<T> consider(const candidate<T> &c, T value, int row, int k)
    {
        candidate<T> larger = c;
        word size = number_of<T>::magnitude(value, row == k);
        bool is_larger = size > c.size;
        larger.size = is_larger ? size : c.size;
        larger.row = is_larger ? (unsigned)row : c.row;
        larger.value = is_larger ? value : c.value;
        return larger;
    }

    __device__ packet *slot(int turn, unsigned block) const
    {
        return packets + CANDIDATES + turn * MOST + (int)block;
    }

    __device__ packet *row_of(int turn, unsigned block) const
    {
        return packets + ROWS + (turn * MOST + (int)block) * W;
    }

    __device__ packet *top_row(int turn) const
    {
        return packets + TOPS + turn * W;
    }

    /* Of own row r of the strip, before its column j: what the columns before leave of it. Column
     * j - 1 has been taken from column j alone, so that the candidates are known soon. */
    template <bool IsHere> __device__ T element(int s, int c, int r, int j) const
    {
        T x = strip<IsHere>(s, c, r);
        return j > 0 && c > j ? x - strip<IsHere>(s, j - 1, r) * space().top[j - 1][c] : x;
    }

    /* Takes column j - 1 from the others, too, while candidates are on their way. */
    template <bool IsHere> __device__ void finish(int s, int width, int j) const
    {
        constexpr int ahead = 8; /* loads before stores, which they cannot pass */
#pragma unroll 1
        for (int r = own_from(s + j) + (int)threadIdx.x; j > 0 && r < rows; r += THREADS) {
            T l = strip<IsHere>(s, j - 1, r);
#pragma unroll 1
            for (int c = j + 1; c < width; c += ahead) {
                T x[ahead];
#pragma unroll
                for (int e = 0; e < ahead; e++)
                    if (c + e < width)
                        x[e] = strip<IsHere>(s, c + e, r) - l * space().top[j - 1][c + e];
#pragma unroll
                for (int e = 0; e < ahead; e++)
                    if (c + e < width)
                        strip<IsHere>(s, c + e, r) = x[e];
            }
        }
    }

    template <bool IsHere>
    __device__ void publish_row(packet *to, int s, int width, int j, int row, int thread,
                                unsigned number)
    {
        if (thread >= 0 && thread < width) {
            T x = element<IsHere>(s, thread, row - first_row, j);
            packet_put(to + thread, number_of<T>::bits(x), 0, number);
        }
    }

    /* The block's best, and if the block has it row k, to all. */
    template <bool IsHere>
    __device__ void publish(const candidate<T> &c, int s, int width, int k, unsigned number)
    {
        int turn = k % 2, thread = (int)threadIdx.x;
        if (thread == 0)
            packet_put(slot(turn, me), number_of<T>::bits(c.value), c.row, number);
        if (c.row != NONE)
            publish_row<IsHere>(row_of(turn, me), s, width, k - s, (int)c.row, thread - 32, number);
        if (is_own(k))
            publish_row<IsHere>(top_row(turn), s, width, k - s, k, thread - 128, number);
    }

    /* Column j of the strip by a pivot whose reciprocal may overflow, as LAPACK does it. What is
     * left to multiply by. */
    template <bool IsHere> __device__ T divide(int s, int j, int k, T pivot)
    {
#pragma unroll 1
        for (int r = own_from(k + 1) + (int)threadIdx.x; pivot != T(0) && r < rows; r += THREADS)
            strip<IsHere>(s, j, r) /= pivot;
        return T(1);
    }

    /* Column k, whose candidates in own rows are known: the next column's. */
    template <bool IsHere>
    __device__ candidate<T> step(candidate<T> own, int s, int width, int k)
    {
        int turn = k % 2, thread = (int)threadIdx.x, j = k - s;
        unsigned number = epoch + (unsigned)k + 1;
        publish<IsHere>(best(own, 0), s, width, k, number);
        __syncthreads();
        finish<IsHere>(s, width, j);
        own = none();
        if (thread < (int)people) {
            packet got = packet_take(slot(turn, (unsigned)thread), number);
            own.value = number_of<T>::from(got.value);
            own.row = got.row;
            own.size = own.row == NONE ? 0 : number_of<T>::magnitude(own.value, (int)own.row == k);
        }
        const candidate<T> pivot = best(own, 1);
        T inverse = number_of<T>::reciprocal(pivot.value); /* while the row comes */
        int row = (int)pivot.row;
        if (thread < width) {
            const packet *from = row_of(turn, (unsigned)((row - first) / each)) + thread;
            T value = number_of<T>::from(packet_take(from, number).value);
            space().top[j][thread] = value;
            if (row != k && is_own(k))
                strip<IsHere>(s, thread, k - first_row) = value;
        } else if (thread >= 32 && thread < 32 + width) {
            if (row != k && is_own(row))
                strip<IsHere>(s, thread - 32, row - first_row) =
                    number_of<T>::from(packet_take(top_row(turn) + thread - 32, number).value);
        } else if (thread == 64) {
            space().pivot[k - first] = row;
            if (me == 0)
                pivots[k] = row + 1;
            info = info == 0 && pivot.value == T(0) ? k + 1 : info;
        }
        __syncthreads();
        if (fabs(pivot.value) < number_of<T>::safe)
            inverse = divide<IsHere>(s, j, k, pivot.value);
        own = none();
#pragma unroll 1
        for (int r = own_from(k + 1) + thread; r < rows; r += THREADS) {
            T x = strip<IsHere>(s, j, r) * inverse;
            T next = j + 1 < width ? strip<IsHere>(s, j + 1, r) - x * space().top[j][j + 1] : T(0);
            strip<IsHere>(s, j, r) = x;
            if (j + 1 == width)
                continue;
            strip<IsHere>(s, j + 1, r) = next;
            own = consider(own, next, first_row + r, k + 1);
        }
        return own;
    }

    template <bool IsHere> __device__ void factor(int s, int width)
    {
        int begin = own_from(s) + (int)threadIdx.x;
        candidate<T> own = none();
        arrive(); /* the block has done with all columns, for now */
        if constexpr (IsHere)
#pragma unroll 8
            for (int j = 0; j < width; j++)
#pragma unroll 1
                for (int r = begin; r < rows; r += THREADS)
                    strip<IsHere>(s, j, r) = *at(first_row + r, s + j);
#pragma unroll 1
        for (int r = begin; r < rows; r += THREADS)
            own = consider(own, strip<IsHere>(s, 0, r), first_row + r, s);
#pragma unroll 1
        for (int k = s; k < s + width; k++)
            own = step<IsHere>(own, s, width, k);
        __syncthreads();
        if constexpr (IsHere)
#pragma unroll 8
            for (int j = 0; j < width; j++)
#pragma unroll 1
                for (int r = begin; r < rows; r += THREADS)
                    *at(first_row + r, s + j) = strip<IsHere>(s, j, r);
    }

    /* --- Other columns --- */

    /* Row that exchange number i of `count` from row s on writes; then those of the pivots. */
    __device__ int row_at(int i, int s, int count) const
    {
        return i < count ? s + i : space().pivot[s - first + i - count];
    }

    /* Of every row that is written, the row that comes there: exchanges followed backwards. */
    __device__ void list(int s, int count)
    {
#pragma unroll 1
        for (int i = (int)threadIdx.x; i < 2 * count; i += THREADS) {
            int row = row_at(i, s, count);
#pragma unroll 8
            for (int k = count - 1; k >= 0; k--) {
                int pivot = space().pivot[s - first + k];
                row = row == s + k ? pivot : row == pivot ? s + k : row;
            }
            space().from[i] = row;
        }
        __syncthreads();
    }

    /* Between columns of a triangle in shared memory; odd, to meet all banks. */
    __device__ static int stride(int count)
    {
        return (count <= W ? W : GROUP) + 1;
    }

    /* Columns q W .. of the triangle whose order is `count`, into shared memory. */
    __device__ void load_piece(T *piece, int q, int s, int count)
    {
        __syncthreads();
        int width = count - q * W < W ? count - q * W : W;
#pragma unroll 8
        for (int e = (int)threadIdx.x; e < width * count; e += THREADS) {
            int i = e % count, c = e / count;
            piece[c * stride(count) + i] =
                count <= W ? space().top[i][c] : *at(s + i, s + q * W + c);
        }
        __syncthreads();
    }

    /* Rows of one column that a lane has: s + 32 h + lane, less what piece q adds. */
    __device__ static void solve(T (&x)[PER_LANE], const T *piece, int q, int count)
    {
        int lane = (int)threadIdx.x % 32, step = stride(count);
        int width = count - q * W < W ? count - q * W : W;
        T own = T(0);
#pragma unroll
        for (int h = 0; h < PER_LANE; h++)
            own = h == q ? x[h] : own;
#pragma unroll 1
        for (int c = 0; c < width; c++) {
            T solved = __shfl_sync(NONE, own, c);
            if (lane > c && q * W + lane < count)
                own -= solved * piece[c * step + q * W + lane];
#pragma unroll
            for (int h = 1; h < PER_LANE; h++)
                if (h > q && h * 32 + lane < count)
                    x[h] -= solved * piece[c * step + h * 32 + lane];
        }
#pragma unroll
        for (int h = 0; h < PER_LANE; h++)
            x[h] = h == q ? own : x[h];
    }

    /* Pivots s .. of `count` to columns [left, left_end) and [right, right_end), of which the
     * right ones are solved for. */
    __device__ void spread(int s, int count, int left, int left_end, int right, int right_end,
                           T *piece)
    {
        int lane = (int)threadIdx.x % 32, warp = (int)threadIdx.x / 32;
        int lefts = left_end - left, all = lefts + right_end - right;
        if (all > 0)
            list(s, count);
#pragma unroll 1
        for (int base = 0; base < all; base += (int)people * WARPS) {
            int t = base + (int)me * WARPS + warp;
            bool is_there = t < all, is_right = is_there && t >= lefts;
            bool has_right = base + ((int)me + 1) * WARPS > lefts && base + (int)me * WARPS < all;
            int col = is_right ? right + t - lefts : left + t;
            T x[PER_LANE], low[PER_LANE];
#pragma unroll
            for (int h = 0; h < PER_LANE; h++) {
                int i = h * 32 + lane;
                bool is_row = is_there && i < count;
                x[h] = is_row ? *at(space().from[i], col) : T(0);
                low[h] = is_row ? *at(space().from[count + i], col) : T(0);
            }
            __syncwarp(); /* before rows are written that other lanes read */
#pragma unroll 1
            for (int q = 0; has_right && q * W < count; q++) {
                load_piece(piece, q, s, count);
                if (is_right)
                    solve(x, piece, q, count);
            }
#pragma unroll
            for (int h = 0; h < PER_LANE; h++) {
                int i = h * 32 + lane;
                if (!is_there || i >= count)
                    continue;
                *at(s + i, col) = x[h];
                int row = row_at(count + i, s, count);
                if (row >= s + count)
                    *at(row, col) = low[h]; /* a row that several pivots name gets one value */
            }
        }
    }

    /* Own rows below a strip, of columns [right, right_end), less the strip's products. A strip
     * with such columns is W columns wide. */
    template <bool IsHere>
    __device__ void update_narrow(int s, int width, int right, int right_end, T *batch)
    {
        auto column = [&](int i, int row) { return strip<IsHere>(s, i, row); };
        strip_update<T, decltype(column), BATCH_STEP> by = {column, a, lda, rows};
#pragma unroll 1
        for (int c0 = right; c0 < right_end; c0 += BATCH) {
            int cols = right_end - c0 < BATCH ? right_end - c0 : BATCH;
            __syncthreads();
#pragma unroll 8
            for (int e = (int)threadIdx.x; e < BATCH * W; e += THREADS)
                batch[e / W * BATCH_STEP + e % W] =
                    e / W < cols && e % W < width ? *at(s + e % W, c0 + e / W) : T(0);
            __syncthreads();
            by.c = at(first_row, c0);
            by.run(own_from(s + width), cols, batch);
        }
    }

    template <bool IsHere> __device__ void run()
    {
        T *batch = IsHere ? room() + W * ld : room();
#pragma unroll 1
        for (int s = first; s < end; s += W) {
            int width = end - s < W ? end - s : W;
            factor<IsHere>(s, width);
            wait(); /* for all to have done with the columns that are exchanged */
            spread(s, width, first, s, s + width, end, batch);
            arrive();
            wait();
            update_narrow<IsHere>(s, width, s + width, end, batch);
        }
        __syncthreads();
        spread(first, end - first, 0, first, end, n, room());
    }

    __device__ bool fits() const
    {
        /* One block may have all rows: the product is beyond int. */
        return (char *)(room() + (long long)W * ld + BATCH * BATCH_STEP) - (char *)memory <=
               (long long)memory_bytes();
    }

    __device__ void work(int *result)
    {
        info = 0;
        deal(first, m);
        ld = each + 1; /* an odd distance of columns meets all banks */
        if (fits())
            run<true>();
        else
            run<false>();
        if (me == 0 && threadIdx.x == 64 && (first == 0 || *result == 0))
            *result = info;
    }
};

template <typename T>
__device__ void panel_run(const filch_view &a, const filch_view &pivots, const filch_view &info,
                          const filch_view &state, const panel_args &args)
{
    panel<T> p;
    p.a = &filch_at<T>(a, pivots.row);
    p.lda = a.ld;
    p.m = (int)(a.rows - pivots.row);
    p.n = (int)a.cols;
    p.first = (int)(args.row - pivots.row);
    p.end = p.first + (int)args.order;
    p.open((unsigned *)state.ptr);
    p.pivots = (int *)pivots.ptr;
    p.come(p.space().seen);
    if (p.people != 0)
        p.work((int *)info.ptr);
    p.leave(p.space().seen, PACKETS, (unsigned)p.end);
}

#define LU_PANEL(T, suffix)                                                                  \
    extern "C" __global__ void __launch_bounds__(THREADS) fl_lu_panel_##suffix(              \
        filch_view a, filch_view pivots, filch_view info, filch_view state, panel_args args) \
    {                                                                                        \
        panel_run<T>(a, pivots, info, state, args);                                          \
    }

/* Compiling takes seconds a precision: a program that needs one of them names its bits. */
#if !defined PANEL_BITS || PANEL_BITS == 64
LU_PANEL(double, f64)
#endif
#if !defined PANEL_BITS || PANEL_BITS == 32
LU_PANEL(float, f32)
#endif
