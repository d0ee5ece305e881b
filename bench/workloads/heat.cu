/* SPDX-License-Identifier: Apache-2.0 */
/* Steps of the heat equation; see heat_tasks.h, which tells the views of each kernel. Sums are in
 * the order of problems/heat.c, and no product is added unrounded, so that all bits are the host's.
 * A thread takes a row of some columns: what it reads of the columns beside it, it reads once. */
#include "filch/kernel.h"

constexpr unsigned THREADS = 256;
constexpr unsigned COLUMNS = 8; /* of a thread at a time */
constexpr double FLOW = 0.2;    /* as in problems/heat.c */

struct heat_arguments {
    const void *grid;
    void *mark;
    unsigned long long strip;
};

extern "C" __global__ void __launch_bounds__(THREADS) heat_init(filch_view to, heat_arguments)
{
    filch_wait();
    for (unsigned long long i = blockIdx.x * THREADS + threadIdx.x; i < to.rows;
         i += (unsigned long long)gridDim.x * THREADS)
        for (unsigned long long first = (unsigned long long)blockIdx.y * COLUMNS; first < to.cols;
             first += (unsigned long long)gridDim.y * COLUMNS)
            for (unsigned long long j = first; j < first + COLUMNS && j < to.cols; j++) {
                unsigned long long at = (to.col + j) * to.rows + i;
                filch_at<double>(to, i, j) = (double)(at * 2654435761u % 1000);
            }
}

/* Row i of the columns from `first` of `to` on, COLUMNS at most. The grid is a square. */
__device__ inline void step_row(const filch_view &from, const filch_view &to, unsigned long long i,
                                unsigned long long first)
{
    const unsigned long long n = to.rows, col = to.col + first;
    const bool is_inside = i > 0 && i + 1 < n;
    const double *own = (const double *)from.ptr +
                        ((long long)(col - from.col) * (long long)from.ld + (long long)i);
    const unsigned count = to.cols - first < COLUMNS ? (unsigned)(to.cols - first) : COLUMNS;
    double row[COLUMNS + 2], beside[COLUMNS]; /* the row, and the sum of both rows next to it */
#pragma unroll
    for (unsigned c = 0; c < COLUMNS + 2; c++) { /* column c is c - 1 from the first on */
        bool is_there = c <= count + 1 && col + c > 0 && col + c <= n;
        row[c] = is_there ? __ldg(&own[((long long)c - 1) * (long long)from.ld]) : 0;
    }
#pragma unroll
    for (unsigned c = 0; c < COLUMNS; c++) {
        const double *at = own + c * from.ld;
        beside[c] = is_inside && c < count ? __ldg(&at[-1]) + __ldg(&at[1]) : 0;
    }
#pragma unroll
    for (unsigned c = 0; c < COLUMNS; c++) {
        double value = row[c + 1];
        if (is_inside && col + c > 0 && col + c + 1 < n)
            value += FLOW * (((row[c] + row[c + 2]) + beside[c]) - 4.0 * value);
        if (c < count)
            filch_at<double>(to, i, first + c) = value;
    }
}

extern "C" __global__ void __launch_bounds__(THREADS)
    heat_step(filch_view from, filch_view to, heat_arguments)
{
    filch_wait();
    for (unsigned long long i = blockIdx.x * THREADS + threadIdx.x; i < to.rows;
         i += (unsigned long long)gridDim.x * THREADS)
        for (unsigned long long first = (unsigned long long)blockIdx.y * COLUMNS; first < to.cols;
             first += (unsigned long long)gridDim.y * COLUMNS)
            step_row(from, to, i, first);
}
