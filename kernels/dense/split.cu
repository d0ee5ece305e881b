/* SPDX-License-Identifier: Apache-2.0 */
/* A number of single precision cut in two: rounded to the eleven bits of TF32, and what that
 * leaves, at most a 2^-11th of the number, of which TF32 keeps all but the last bit. A product of
 * matrices is then one with three times the inner dimension, of upper by upper, lower by upper and
 * upper by lower parts (with FP16: S. Markidis et al., "NVIDIA tensor core programmability,
 * performance & precision", IPDPS Workshops 2018). What is left out, lower by lower, is at most a
 * 2^-22nd of a product. */
#include "filch/kernel.h"

constexpr int THREADS = 256;
constexpr unsigned LOWER = 0x1fff; /* bits of a significand that TF32 has not */
constexpr unsigned INFINITE = 0x7f800000;

/* The layout of codelets.h's fl_dense_args. */
struct split_args {
    const void *host;
    unsigned long long row, order;
    int words[4];
};

static_assert(sizeof(split_args) == 40, "the layout is that of fl_dense_args");

/* To the nearest; where that would be beyond the largest number, towards 0. */
__device__ inline float split_upper(float x)
{
    unsigned bits = __float_as_uint(x), up = bits + (LOWER / 2 + 1);
    return __uint_as_float(((up & INFINITE) == INFINITE ? bits : up) & ~LOWER);
}

__device__ inline float split_lower(float x, float upper)
{
    return x == upper ? 0.0f : x - upper;
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
        filch_at<float>(to, i, col + args.order) = split_lower(x, upper);
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
        filch_at<float>(to, i + 2 * args.order, col) = split_lower(x, upper);
    }
}
