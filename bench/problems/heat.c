/* SPDX-License-Identifier: Apache-2.0 */
#include "problems/heat.h"

#include <string.h>

/* Of what flows to each neighbour in a step; below a quarter, so that the steps are stable. */
#define FLOW 0.2

size_t bench_heat_column(const bench_heat_grid *h, size_t strip)
{
    return h->n * strip / h->strips;
}

void bench_heat_init(const bench_heat_grid *h, size_t strip, double *to)
{
    size_t lo = bench_heat_column(h, strip), hi = bench_heat_column(h, strip + 1);
    for (size_t k = 0; k < (hi - lo) * h->n; k++)
        to[k] = (double)((lo * h->n + k) * 2654435761u % 1000);
}

/* One column between others. */
static void step_column(size_t n, const double *restrict left, const double *restrict own,
                        const double *restrict right, double *restrict to)
{
    to[0] = own[0];
    for (size_t i = 1; i + 1 < n; i++)
        to[i] = own[i] + FLOW * (((left[i] + right[i]) + (own[i - 1] + own[i + 1])) - 4.0 * own[i]);
    to[n - 1] = own[n - 1];
}

void bench_heat_step(const bench_heat_grid *h, size_t strip, const double *before,
                     const double *from, const double *after, double *to)
{
    size_t n = h->n, count = bench_heat_column(h, strip + 1) - bench_heat_column(h, strip);
    for (size_t c = 0; c < count; c++) {
        const double *own = from + c * n;
        const double *left = c > 0 ? own - n : before;
        const double *right = c + 1 < count ? own + n : after;
        if (left && right)
            step_column(n, left, own, right, to + c * n);
        else
            memcpy(to + c * n, own, n * sizeof *own);
    }
}

void bench_heat_step_whole(const bench_heat_grid *h, size_t strip, const double *from, double *to)
{
    size_t n = h->n, lo = bench_heat_column(h, strip), hi = bench_heat_column(h, strip + 1);
    bench_heat_step(h, strip, lo > 0 ? from + (lo - 1) * n : NULL, from + lo * n,
                    hi < n ? from + hi * n : NULL, to + lo * n);
}
