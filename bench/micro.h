/* SPDX-License-Identifier: Apache-2.0 */
/* What `filch-bench micro NAME` runs: single mechanisms of the library, measured alone. Each
 * function prints a table on out (null: nothing), adds its figures to the list and returns 0, or
 * non-zero when it could not measure. Figures are medians of MICRO_ROUNDS rounds. */
#ifndef BENCH_MICRO_H
#define BENCH_MICRO_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum { MICRO_ROUNDS = 7, MICRO_FIGURES_MAX = 32 };

typedef struct micro_figure {
    const char *name; /* static text */
    double value;
    const char *unit; /* static text */
} micro_figure;

typedef struct micro_list {
    micro_figure figures[MICRO_FIGURES_MAX];
    size_t count;
} micro_list;

int micro_deque(FILE *out, micro_list *list);
int micro_span(FILE *out, micro_list *list);
int micro_dispatch(FILE *out, micro_list *list);

/* Sorts the MICRO_ROUNDS values and returns the middle one. */
double micro_median(double *rounds);
/* Adds a figure and prints its line. */
void micro_report(FILE *out, micro_list *list, const char *name, double value, const char *unit);

#endif
