/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of the Mandelbrot set; see filch/kernels.h. Compiled without contraction to fused operations
 * so that every device finds the same iterations. */
#include "filch/kernel.h"

struct mandelbrot_args {
    double left, right, low, high;
    unsigned long long rows;
    unsigned limit, reserved;
};

extern "C" __global__ void __launch_bounds__(256)
    filch_mandelbrot(filch_view pixels, filch_range range, mandelbrot_args args)
{
    unsigned long long column = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x;
    unsigned long long row = range.lo + (unsigned long long)blockIdx.y * blockDim.y + threadIdx.y;
    if (column >= pixels.rows)
        return;
    double x = args.left +
               (args.right - args.left) * ((double)column + 0.5) / (double)pixels.rows;
    for (; row < range.hi; row += (unsigned long long)gridDim.y * blockDim.y) {
        double y = args.low + (args.high - args.low) * ((double)row + 0.5) / (double)args.rows;
        double re = 0, im = 0, re2 = 0, im2 = 0;
        unsigned k = 0;
        for (; k < args.limit && re2 + im2 <= 4.0; k++) {
            im = 2 * re * im + y;
            re = re2 - im2 + x;
            re2 = re * re;
            im2 = im * im;
        }
        filch_at<unsigned short>(pixels, column, row - range.lo) = (unsigned short)k;
    }
}
