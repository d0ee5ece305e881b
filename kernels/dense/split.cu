/* SPDX-License-Identifier: Apache-2.0 */
/* A number of single precision cut in two of eleven bits: its upper bits, and what these leave. A
 * product of matrices is then one with three times the inner dimension, of upper by upper, lower by
 * upper and upper by lower parts, whose factors TF32 holds (with FP16: S. Markidis et al., "NVIDIA
 * tensor core programmability, performance & precision", IPDPS Workshops 2018). What is left out,
 * lower by lower, is a 2^-22nd of the product. */
#include "filch/kernel.h"

constexpr int THREADS = 256;
constexpr unsigned LOWER = 0x1fff; /* bits of a significand that TF32 has not */

/* The layout of codelets.h's fl_dense_args. */
struct split_args {
    const void *host;
    unsigned long long row, order;
    int words[4];
};

static_assert(sizeof(split_args) == 40, "the layout is that of fl_dense_args");

__device__ inline float split_upper(float x)
{
    return __uint_as_float(__float_as_uint(x) & ~LOWER);
}

/* To := [U L U] for what is below the diagonal block of a block column. */
extern "C" __global__ void __launch_bounds__(THREADS)
    fl_split_left(filch_view from, filch_view to, split_args args)
{
    unsigned long long col = blockIdx.y, step = (unsigned long long)gridDim.x * THREADS;
    for (unsigned long long i = args.row + args.order + blockIdx.x * THREADS + threadIdx.x;
         i < from.rows; i += step) {
        float x = filch_at<float>(from, i, col), upper = split_upper(x);
        filch_at<float>(to, i, col) = upper;
        filch_at<float>(to, i, col + args.order) = x - upper;
        filch_at<float>(to, i, col + 2 * args.order) = upper;
    }
}

/* To := [U; U; L] for the diagonal block's rows of a block column. */
extern "C" __global__ void __launch_bounds__(THREADS)
    fl_split_right(filch_view from, filch_view to, split_args args)
{
    unsigned long long col = blockIdx.x;
    for (unsigned long long i = threadIdx.x; i < args.order; i += THREADS) {
        float x = filch_at<float>(from, args.row + i, col), upper = split_upper(x);
        filch_at<float>(to, i, col) = upper;
        filch_at<float>(to, i + args.order, col) = upper;
        filch_at<float>(to, i + 2 * args.order, col) = x - upper;
    }
}
