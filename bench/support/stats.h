/* SPDX-License-Identifier: Apache-2.0 */
/* Robust figures of repeated measurements: one disturbed repeat must not move them. */
#ifndef BENCH_STATS_H
#define BENCH_STATS_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct bench_stats {
    size_t count;
    double median;
    double mad; /* median of |value - median| */
    double min;
    double max;
} bench_stats;

/* False when count is 0, a value is not finite, or memory is out; *stats is then untouched. The
 * values stay in their order. */
bool bench_stats_of(const double *values, size_t count, bench_stats *stats);

/* The MAD scaled to the standard deviation of normal noise (factor 1.4826). */
double bench_stats_noise(const bench_stats *stats);

#ifdef __cplusplus
}
#endif

#endif
