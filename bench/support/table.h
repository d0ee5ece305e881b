/* SPDX-License-Identifier: Apache-2.0 */
/* Aligned text tables, and a progress bar for terminals. */
#ifndef BENCH_TABLE_H
#define BENCH_TABLE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define BENCH_TABLE_COLUMNS 20

/* Zero-initialised is an empty table; add columns, then cells row by row. */
typedef struct bench_table {
    char **cells; /* the titles, then the rows */
    size_t count;
    size_t capacity;
    size_t columns;
    bool left[BENCH_TABLE_COLUMNS];
    bool failed; /* memory was out or there were too many columns: printing says so */
} bench_table;

/* Columns are aligned to the right (numbers) or the left (words). All before the first cell. */
void bench_table_column(bench_table *table, bool left, const char *title);
void bench_table_cell(bench_table *table, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Prints titles, a rule and the rows; a last row that is not full ends early. False when a cell was
 * lost or the stream failed. */
bool bench_table_print(const bench_table *table, FILE *stream);
void bench_table_free(bench_table *table);

/* value with an SI prefix, four digits: 12.35 G. */
void bench_format_si(double value, char *text, size_t size);
/* Seconds as s, ms, us or ns with four digits. */
void bench_format_seconds(double seconds, char *text, size_t size);

typedef struct bench_progress {
    FILE *stream;
    const char *label;
    uint64_t total;
    uint64_t done;
    bool shown; /* the stream is a terminal */
} bench_progress;

/* Nothing is ever written where stream is not a terminal. label must outlive the bar. */
void bench_progress_start(bench_progress *progress, FILE *stream, const char *label,
                          uint64_t total);
void bench_progress_step(bench_progress *progress);
/* Removes the bar. */
void bench_progress_end(bench_progress *progress);

#endif
