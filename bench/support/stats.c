/* SPDX-License-Identifier: Apache-2.0 */
#include "support/stats.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

static double sorted_median(double *values, size_t count)
{
    qsort(values, count, sizeof *values, compare_doubles);
    double upper = values[count / 2];
    return count % 2 ? upper : values[count / 2 - 1] + (upper - values[count / 2 - 1]) / 2;
}

bool bench_stats_of(const double *values, size_t count, bench_stats *stats)
{
    if (count == 0)
        return false;
    for (size_t k = 0; k < count; k++)
        if (!isfinite(values[k]))
            return false;
    double *sorted = calloc(count, sizeof *sorted);
    if (!sorted)
        return false;
    memcpy(sorted, values, count * sizeof *sorted);
    bench_stats s = {.count = count};
    s.median = sorted_median(sorted, count);
    s.min = sorted[0];
    s.max = sorted[count - 1];
    for (size_t k = 0; k < count; k++)
        sorted[k] = fabs(sorted[k] - s.median);
    s.mad = sorted_median(sorted, count);
    free(sorted);
    *stats = s;
    return true;
}

double bench_stats_noise(const bench_stats *stats)
{
    return 1.4826 * stats->mad;
}
