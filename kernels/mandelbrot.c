/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/kernels.h"

static bool fits(const filch_call *call)
{
    if (call->view_count != 1 || !call->args)
        return false;
    const filch_mandelbrot_args *args = call->args;
    return call->views[0].element == sizeof(uint16_t) &&
           call->views[0].cols >= call->hi - call->lo && args->limit <= UINT16_MAX;
}

/* The same operations in the same order as mandelbrot.cu. */
static uint16_t iterations(double x, double y, uint32_t limit)
{
    double re = 0;
    double im = 0;
    double re2 = 0;
    double im2 = 0;
    uint32_t k = 0;
    for (; k < limit && re2 + im2 <= 4.0; k++) {
        im = 2 * re * im + y;
        re = re2 - im2 + x;
        re2 = re * re;
        im2 = im * im;
    }
    return (uint16_t)k;
}

int fl_mandelbrot(const filch_call *call)
{
    if (!fits(call))
        return FILCH_KERNEL_MISFIT;
    const filch_mandelbrot_args *args = call->args;
    const filch_view *pixels = &call->views[0];
    for (uint64_t row = call->lo; row < call->hi; row++) {
        uint16_t *to = (uint16_t *)pixels->ptr + (row - call->lo) * pixels->ld;
        double y = args->low + (args->high - args->low) * ((double)row + 0.5) / (double)args->rows;
        for (uint64_t column = 0; column < pixels->rows; column++) {
            double x = args->left +
                       (args->right - args->left) * ((double)column + 0.5) / (double)pixels->rows;
            to[column] = iterations(x, y, args->limit);
        }
    }
    return 0;
}

/* Narrow in both directions: neighbours take about the same time, distant pixels do not. */
int fl_mandelbrot_shape(const filch_call *call, filch_shape *shape)
{
    if (!fits(call))
        return FILCH_KERNEL_MISFIT;
    shape->grid[0] = fl_blocks(call->views[0].rows, 16, UINT32_MAX);
    shape->grid[1] = fl_blocks(call->hi - call->lo, 8, FL_GRID_Y_LIMIT);
    shape->block[0] = 16;
    shape->block[1] = 8;
    return 0;
}
