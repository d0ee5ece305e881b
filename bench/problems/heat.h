/* SPDX-License-Identifier: Apache-2.0 */
/* Explicit steps of the heat equation on a square, column-major grid whose border keeps its values.
 * The columns are cut into strips; filch and its peers call the functions below for each. */
#ifndef BENCH_HEAT_H
#define BENCH_HEAT_H

#include <stddef.h>

typedef struct bench_heat_grid {
    size_t n;      /* points a side */
    size_t strips; /* at most n */
    size_t steps;  /* of a run */
} bench_heat_grid;

/* First column of a strip; of strip `strips`: n. */
size_t bench_heat_column(const bench_heat_grid *h, size_t strip);
/* Writes the strip as it is before the first step. */
void bench_heat_init(const bench_heat_grid *h, size_t strip, double *to);
/* One step of a strip, from its first column on. before and after: the columns next to it, null at
 * the border. */
void bench_heat_step(const bench_heat_grid *h, size_t strip, const double *before,
                     const double *from, const double *after, double *to);
/* The same with whole grids. */
void bench_heat_step_whole(const bench_heat_grid *h, size_t strip, const double *from, double *to);

#endif
