/* SPDX-License-Identifier: Apache-2.0 */
/* Columns in double precision to single precision and back (narrow.h). A block has one column: it
 * finds the column's largest element and its sum first, and reads the column again, from the cache
 * as a rule, to write it. */
#include "filch/kernel.h"

constexpr int THREADS = 512;

/* fl_narrow_args of narrow.h. */
struct narrow_args {
    unsigned long long col, count;
    int adds, weighs;
};

static_assert(sizeof(narrow_args) == 24, "the layout is that of fl_narrow_args");

/* The larger one, or what is not a number. */
__device__ inline double narrow_most(double a, double b)
{
    return a != a || a > b ? a : b;
}

/* The power of two above a column's largest element. */
__device__ inline int narrow_power(double most)
{
    int power = 0;
    if (most > 0 && most <= 1.7976931348623157e308)
        (void)frexp(most, &power);
    return power;
}

/* Every thread's parts of the largest element and of the sum put together, by all threads; the
 * largest element comes back. */
__device__ inline double narrow_norms(double most, double sum, double (*part)[2],
                                      const filch_view &norms, unsigned long long col)
{
    int own = (int)threadIdx.x;
    part[own][0] = most;
    part[own][1] = sum;
    for (int half = THREADS / 2; half > 0; half /= 2) {
        __syncthreads();
        if (own < half) {
            part[own][0] = narrow_most(part[own][0], part[own + half][0]);
            part[own][1] += part[own + half][1];
        }
    }
    __syncthreads();
    if (own == 0) {
        filch_at<double>(norms, 0, col) = part[0][0];
        filch_at<double>(norms, 1, col) = part[0][1];
    }
    return part[0][0];
}

__device__ inline void narrow_run(const filch_view &from, const filch_view &to,
                                  const filch_view &norms, const int *rows,
                                  const filch_view *scales, const narrow_args &args,
                                  double (*part)[2])
{
    unsigned long long col = blockIdx.x;
    const double *x = &filch_at<double>(from, 0, args.col + col);
    float *y = &filch_at<float>(to, 0, col);
    double most = 0, sum = 0;
    for (unsigned long long i = threadIdx.x; i < from.rows; i += THREADS) {
        double size = fabs(x[i]);
        most = narrow_most(size, most);
        sum += scales ? size * filch_at<double>(*scales, 1, i) : size;
    }
    int power = narrow_power(narrow_norms(most, sum, part, norms, col));
    for (unsigned long long i = threadIdx.x; i < from.rows; i += THREADS)
        y[i] = (float)ldexp(x[rows ? rows[i] : i], -power);
}

extern "C" __global__ void __launch_bounds__(THREADS)
    fl_narrow(filch_view from, filch_view to, filch_view norms, narrow_args args)
{
    __shared__ double part[THREADS][2];
    narrow_run(from, to, norms, nullptr, nullptr, args, part);
}

extern "C" __global__ void __launch_bounds__(THREADS)
    fl_narrow_rows(filch_view from, filch_view to, filch_view norms, filch_view rows,
                   filch_view scales, narrow_args args)
{
    __shared__ double part[THREADS][2];
    narrow_run(from, to, norms, static_cast<const int *>(rows.ptr),
               args.weighs ? &scales : nullptr, args, part);
}

extern "C" __global__ void __launch_bounds__(THREADS)
    fl_widen(filch_view from, filch_view to, filch_view norms, filch_view scales, filch_view powers,
             narrow_args args)
{
    __shared__ double part[THREADS][2];
    unsigned long long col = blockIdx.x;
    const float *x = &filch_at<float>(from, 0, col);
    double *y = &filch_at<double>(to, 0, args.col + col);
    int power = narrow_power(filch_at<double>(powers, 0, col));
    double most = 0, sum = 0;
    for (unsigned long long i = threadIdx.x; i < to.rows; i += THREADS) {
        double value =
            ldexp((double)x[i], power - narrow_power(filch_at<double>(scales, 0, i)));
        y[i] = args.adds ? y[i] + value : value;
        most = narrow_most(fabs(y[i]), most);
        sum += fabs(y[i]) * filch_at<double>(scales, 1, i);
    }
    (void)narrow_norms(most, sum, part, norms, col);
}
