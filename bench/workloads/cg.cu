/* SPDX-License-Identifier: Apache-2.0 */
/* Conjugate gradients by blocks of rows; see cg_tasks.h, which tells the views of each kernel. A
 * dot product is added up in a fixed order: each thread over its own rows, then the threads of a
 * thread block, then, by the thread block that is the last to come, all thread blocks. So the sum
 * depends on the number of rows alone. This text follows kernels/counters.cuh. */
constexpr unsigned THREADS = 256;
constexpr unsigned ROW_ELEMENTS = 7; /* of the matrix, at most */
constexpr unsigned STRIDE = 4;       /* rows of a thread at a time, where vectors are moved */
constexpr unsigned HEAD = 8;         /* elements of `work` in front of the thread blocks' sums */
constexpr unsigned PARTS = 16;       /* views of cg_sum's parts */

struct cg_arguments {
    const void *system;
    void *mark;
    unsigned long long block;
    unsigned sum, parts;
};

struct cg_scalars {
    double rr, alpha, beta;
};

/* Of all threads of the block; all get it. */
__device__ inline double block_sum(double value, double (&warps)[THREADS / 32])
{
    for (int other = 16; other > 0; other /= 2)
        value += __shfl_xor_sync(0xffffffffu, value, other);
    if (threadIdx.x % 32 == 0)
        warps[threadIdx.x / 32] = value;
    __syncthreads();
    double sum = 0;
    for (unsigned k = 0; k < THREADS / 32; k++)
        sum += warps[k];
    __syncthreads(); /* before the next sum's */
    return sum;
}

/* part = the sum of all threads' values. The first word of `work` is 0 before and after. */
__device__ inline void store_sum(double value, const filch_view &part, const filch_view &work,
                                 double (&warps)[THREADS / 32], unsigned *seen)
{
    unsigned *state = (unsigned *)work.ptr;
    double *sums = &filch_at<double>(work, HEAD);
    value = block_sum(value, warps);
    if (threadIdx.x == 0)
        sums[blockIdx.x] = value;
    if (!leaves_last(state, 0, seen))
        return;
    value = 0;
    for (unsigned k = threadIdx.x; k < gridDim.x; k += THREADS)
        value += __ldcg(&sums[k]);
    value = block_sum(value, warps);
    if (threadIdx.x == 0) {
        filch_at<double>(part, 0) = value;
        state[0] = 0;
    }
}

/* The first and the last plane of a block's direction, for its neighbours. */
__device__ inline void store_edges(double value, unsigned long long k, const filch_view &p,
                                   const filch_view &first, const filch_view &last)
{
    if (k < first.rows)
        filch_at<double>(first, k) = value;
    if (k + last.rows >= p.rows)
        filch_at<double>(last, k + last.rows - p.rows) = value;
}

extern "C" __global__ void __launch_bounds__(THREADS)
    cg_init(filch_view x, filch_view r, filch_view p, filch_view part, filch_view first,
            filch_view last, filch_view work, cg_arguments)
{
    __shared__ double warps[THREADS / 32];
    __shared__ unsigned seen;
    double sum = 0;
    filch_wait();
    for (unsigned long long k = filch_thread(); k < x.rows; k += filch_threads()) {
        double value = 1.0 + (double)((x.row + k) * 2654435761u % 1000) * 1e-3;
        filch_at<double>(x, k) = 0;
        filch_at<double>(r, k) = value;
        filch_at<double>(p, k) = value;
        store_edges(value, k, p, first, last);
        sum += value * value;
    }
    store_sum(sum, part, work, warps, &seen);
}

/* A thread block takes as many rows as it has threads at a time: it brings their elements to shared
 * memory, in the order in which they lie, and then each thread multiplies a row. What is read once
 * goes through the caches first (__ldcs), so that p, which is read seven times, stays there. */
extern "C" __global__ void __launch_bounds__(THREADS)
    cg_multiply(filch_view q, filch_view part, filch_view values, filch_view columns, filch_view p,
                filch_view starts, filch_view below, filch_view above, filch_view work,
                cg_arguments)
{
    __shared__ double value[THREADS * ROW_ELEMENTS];
    __shared__ int column[THREADS * ROW_ELEMENTS];
    __shared__ double warps[THREADS / 32];
    __shared__ unsigned seen;
    const unsigned *start = (const unsigned *)starts.ptr;
    const double *own = (const double *)p.ptr;
    /* Columns are counted from the block's first row. */
    const int lo = (int)p.row, count = (int)q.rows;
    const unsigned rows = (unsigned)q.rows;
    const double *before = (const double *)below.ptr + below.rows;
    const double *after = (const double *)above.ptr - count;
    double sum = 0;
    filch_wait();
    const unsigned base = start[0];
    for (unsigned first = blockIdx.x * THREADS; first < rows; first += gridDim.x * THREADS) {
        const unsigned row = first + threadIdx.x;
        const unsigned next = first + THREADS;
        const unsigned from = start[first] - base;
        const unsigned to = next < rows ? start[next] - base : (unsigned)values.rows;
        const double *value_at = (const double *)values.ptr + from;
        const int *column_at = (const int *)columns.ptr + from;
        double v[ROW_ELEMENTS];
        int c[ROW_ELEMENTS];
#pragma unroll
        for (unsigned k = 0; k < ROW_ELEMENTS; k++) {
            const unsigned at = k * THREADS + threadIdx.x;
            v[k] = at < to - from ? __ldcs(&value_at[at]) : 0;
            c[k] = at < to - from ? __ldcs(&column_at[at]) : 0;
        }
        unsigned at = 0, end = 0;
        if (row < rows) {
            at = start[row] - base - from;
            end = (row + 1 < rows ? start[row + 1] - base : (unsigned)values.rows) - from;
        }
        __syncthreads(); /* the rows before have been multiplied */
#pragma unroll
        for (unsigned k = 0; k < ROW_ELEMENTS; k++) {
            value[k * THREADS + threadIdx.x] = v[k];
            column[k * THREADS + threadIdx.x] = c[k];
        }
        __syncthreads();
        double product = 0;
#pragma unroll
        for (unsigned k = 0; k < ROW_ELEMENTS; k++)
            if (at + k < end) {
                const int to_take = column[at + k] - lo;
                const double *p_at = to_take < 0 ? before : to_take < count ? own : after;
                product += value[at + k] * __ldg(&p_at[to_take]);
            }
        if (row < rows) {
            filch_at<double>(q, row) = product;
            sum += product * own[row];
        }
    }
    store_sum(sum, part, work, warps, &seen);
}

__device__ inline double ratio(double above, double below)
{
    return below > 0 ? above / below : 0;
}

/* Adds parts in their order; what the sum means, the arguments tell. */
extern "C" __global__ void __launch_bounds__(32)
    cg_sum(filch_view scalars, filch_view part0, filch_view part1, filch_view part2,
           filch_view part3, filch_view part4, filch_view part5, filch_view part6, filch_view part7,
           filch_view part8, filch_view part9, filch_view part10, filch_view part11,
           filch_view part12, filch_view part13, filch_view part14, filch_view part15,
           cg_arguments arguments)
{
    const void *const parts[PARTS] = {part0.ptr,  part1.ptr,  part2.ptr,  part3.ptr,
                                      part4.ptr,  part5.ptr,  part6.ptr,  part7.ptr,
                                      part8.ptr,  part9.ptr,  part10.ptr, part11.ptr,
                                      part12.ptr, part13.ptr, part14.ptr, part15.ptr};
    cg_scalars *s = (cg_scalars *)scalars.ptr;
    double sum = 0;
    filch_wait();
    if (threadIdx.x != 0)
        return;
#pragma unroll
    for (unsigned k = 0; k < PARTS; k++)
        if (k < arguments.parts)
            sum += *(const double *)parts[k];
    if (arguments.sum == 0) {
        *s = cg_scalars{sum, 0, 0};
    } else if (arguments.sum == 1) {
        s->alpha = ratio(s->rr, sum);
    } else {
        s->beta = ratio(sum, s->rr);
        s->rr = sum;
    }
}

extern "C" __global__ void __launch_bounds__(THREADS)
    cg_update(filch_view x, filch_view r, filch_view p, filch_view q, filch_view part,
              filch_view scalars, filch_view work, cg_arguments)
{
    __shared__ double warps[THREADS / 32];
    __shared__ unsigned seen;
    double *to_x = (double *)x.ptr, *to_r = (double *)r.ptr;
    const double *from_p = (const double *)p.ptr, *from_q = (const double *)q.ptr;
    double sum = 0;
    filch_wait();
    const double alpha = ((const cg_scalars *)scalars.ptr)->alpha;
    for (unsigned long long first = blockIdx.x * (THREADS * STRIDE); first < x.rows;
         first += (unsigned long long)gridDim.x * (THREADS * STRIDE)) {
        double xs[STRIDE], rs[STRIDE], ps[STRIDE], qs[STRIDE];
#pragma unroll
        for (unsigned j = 0; j < STRIDE; j++) {
            unsigned long long k = first + j * THREADS + threadIdx.x;
            bool is_inside = k < x.rows;
            xs[j] = is_inside ? __ldcs(&to_x[k]) : 0;
            rs[j] = is_inside ? to_r[k] : 0;
            ps[j] = is_inside ? from_p[k] : 0;
            qs[j] = is_inside ? from_q[k] : 0;
        }
#pragma unroll
        for (unsigned j = 0; j < STRIDE; j++) {
            unsigned long long k = first + j * THREADS + threadIdx.x;
            rs[j] -= alpha * qs[j];
            sum += rs[j] * rs[j];
            if (k < x.rows) {
                __stcs(&to_x[k], xs[j] + alpha * ps[j]);
                to_r[k] = rs[j];
            }
        }
    }
    store_sum(sum, part, work, warps, &seen);
}

extern "C" __global__ void __launch_bounds__(THREADS)
    cg_direction(filch_view p, filch_view r, filch_view scalars, filch_view head, filch_view tail,
                 cg_arguments)
{
    double *to_p = (double *)p.ptr;
    const double *from_r = (const double *)r.ptr;
    filch_wait();
    const double beta = ((const cg_scalars *)scalars.ptr)->beta;
    for (unsigned long long first = blockIdx.x * (THREADS * STRIDE); first < p.rows;
         first += (unsigned long long)gridDim.x * (THREADS * STRIDE)) {
        double rs[STRIDE], ps[STRIDE];
#pragma unroll
        for (unsigned j = 0; j < STRIDE; j++) {
            unsigned long long k = first + j * THREADS + threadIdx.x;
            rs[j] = k < p.rows ? from_r[k] : 0;
            ps[j] = k < p.rows ? to_p[k] : 0;
        }
#pragma unroll
        for (unsigned j = 0; j < STRIDE; j++) {
            unsigned long long k = first + j * THREADS + threadIdx.x;
            double value = rs[j] + beta * ps[j];
            if (k < p.rows) {
                to_p[k] = value;
                store_edges(value, k, p, head, tail);
            }
        }
    }
}
