/* SPDX-License-Identifier: Apache-2.0 */
/* What `filch-bench micro NAME` runs: single mechanisms of the library, measured alone. Each
 * function prints a table on out (null: nothing), adds its figures to the list and returns 0, or
 * non-zero when it could not measure, having said why: MICRO_ABSENT where this machine lacks what
 * it needs. Figures are medians of MICRO_ROUNDS rounds. */
#ifndef BENCH_MICRO_H
#define BENCH_MICRO_H

#include "filch/status.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum { MICRO_ROUNDS = 7, MICRO_FIGURES_MAX = 128, MICRO_NAME = 64, MICRO_ABSENT = 77 };

typedef struct micro_figure {
    char name[MICRO_NAME];
    double value;
    const char *unit; /* static text */
} micro_figure;

typedef struct micro_list {
    micro_figure figures[MICRO_FIGURES_MAX];
    size_t count;
} micro_list;

int micro_deque(FILE *out, micro_list *list);
int micro_range(FILE *out, micro_list *list);
int micro_idle(FILE *out, micro_list *list);
int micro_dispatch(FILE *out, micro_list *list);
int micro_arena(FILE *out, micro_list *list);
int micro_copy(FILE *out, micro_list *list);
/* The same for tiles up to so many bytes. */
int micro_copy_upto(FILE *out, micro_list *list, size_t largest);

int micro_broadcast(FILE *out, micro_list *list);
/* The same for handles up to so many bytes. */
int micro_broadcast_upto(FILE *out, micro_list *list, size_t largest);

int micro_panels(FILE *out, micro_list *list);
/* The same for tiles up to this order. */
int micro_panels_upto(FILE *out, micro_list *list, size_t largest);

int micro_blocks(FILE *out, micro_list *list);
/* The same for blocks of so many rows, and up to so many columns. */
int micro_blocks_upto(FILE *out, micro_list *list, size_t rows, size_t most);

int micro_lu(FILE *out, micro_list *list);
/* The same for panels of up to so many rows and columns. */
int micro_lu_upto(FILE *out, micro_list *list, size_t rows, size_t cols);

int micro_qr(FILE *out, micro_list *list);
/* The same for panels of up to so many rows and columns. */
int micro_qr_upto(FILE *out, micro_list *list, size_t rows, size_t cols);

int micro_launch(FILE *out, micro_list *list);
/* The same with graphs of up to so many kernels. */
int micro_launch_upto(FILE *out, micro_list *list, size_t largest);

/* Sorts the MICRO_ROUNDS values and returns the middle one. */
double micro_median(double *rounds);
/* Adds a figure, by a copy of its name, and prints its line. */
void micro_report(FILE *out, micro_list *list, const char *name, double value, const char *unit);

typedef struct micro_result {
    const char *name;
    micro_list list;
} micro_result;

/* Writes what was measured; path "-" is standard output. FILCH_IO, FILCH_OUT_OF_MEMORY. */
filch_status micro_json_write(const char *path, const micro_result *results, size_t count,
                              filch_error *error);

#endif
