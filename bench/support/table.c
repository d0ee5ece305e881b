/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "support/table.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PROGRESS_WIDTH 30

static void append_owned(bench_table *table, char *text)
{
    if (table->count == table->capacity) {
        size_t capacity = table->capacity ? table->capacity * 2 : 64;
        char **cells = realloc(table->cells, capacity * sizeof *cells);
        if (!cells) {
            free(text);
            table->failed = true;
            return;
        }
        table->cells = cells;
        table->capacity = capacity;
    }
    table->cells[table->count++] = text;
}

void bench_table_column(bench_table *table, bool left, const char *title)
{
    if (table->columns == BENCH_TABLE_COLUMNS || table->count != table->columns) {
        table->failed = true;
        return;
    }
    table->left[table->columns++] = left;
    bench_table_cell(table, "%s", title);
}

void bench_table_cell(bench_table *table, const char *format, ...)
{
    char *text;
    va_list arguments;
    va_start(arguments, format);
    int length = vasprintf(&text, format, arguments);
    va_end(arguments);
    if (length < 0)
        table->failed = true;
    else
        append_owned(table, text);
}

/* Code points of UTF-8, which for what the bench prints are as many columns. */
static size_t text_width(const char *text)
{
    size_t width = 0;
    for (; *text; text++)
        width += ((unsigned char)*text & 0xc0) != 0x80;
    return width;
}

static void print_fill(FILE *stream, size_t count, char c)
{
    while (count--)
        putc(c, stream);
}

static void print_cell(const char *text, size_t width, bool left, bool last, FILE *stream)
{
    size_t fill = width - text_width(text);
    if (!left)
        print_fill(stream, fill, ' ');
    fputs(text, stream);
    if (left && !last)
        print_fill(stream, fill, ' ');
    fputs(last ? "\n" : "  ", stream);
}

bool bench_table_print(const bench_table *table, FILE *stream)
{
    if (table->failed || table->columns == 0)
        return false;
    size_t widths[BENCH_TABLE_COLUMNS] = {0};
    for (size_t k = 0; k < table->count; k++) {
        size_t width = text_width(table->cells[k]);
        if (width > widths[k % table->columns])
            widths[k % table->columns] = width;
    }
    for (size_t k = 0; k < table->count; k++) {
        size_t column = k % table->columns;
        bool last = column + 1 == table->columns || k + 1 == table->count;
        print_cell(table->cells[k], widths[column], table->left[column], last, stream);
        if (k + 1 == table->columns)
            for (size_t c = 0; c < table->columns; c++) {
                print_fill(stream, widths[c], '-');
                fputs(c + 1 == table->columns ? "\n" : "  ", stream);
            }
    }
    return !ferror(stream);
}

void bench_table_free(bench_table *table)
{
    for (size_t k = 0; k < table->count; k++)
        free(table->cells[k]);
    free(table->cells);
    *table = (bench_table){0};
}

void bench_format_si(double value, char *text, size_t size)
{
    static const char prefixes[] = {' ', 'k', 'M', 'G', 'T', 'P', 'E'};
    size_t step = 0;
    while (fabs(value) >= 1000 && step + 1 < sizeof prefixes) {
        value /= 1000;
        step++;
    }
    if (step == 0)
        snprintf(text, size, "%.4g", value);
    else
        snprintf(text, size, "%.4g %c", value, prefixes[step]);
}

void bench_format_seconds(double seconds, char *text, size_t size)
{
    double magnitude = fabs(seconds);
    if (magnitude >= 1 || !(magnitude > 0))
        snprintf(text, size, "%.4g s", seconds);
    else if (magnitude >= 1e-3)
        snprintf(text, size, "%.4g ms", seconds * 1e3);
    else if (magnitude >= 1e-6)
        snprintf(text, size, "%.4g us", seconds * 1e6);
    else
        snprintf(text, size, "%.4g ns", seconds * 1e9);
}

static void draw(const bench_progress *progress)
{
    if (!progress->shown)
        return;
    uint64_t done = progress->done < progress->total ? progress->done : progress->total;
    size_t filled = progress->total ? (size_t)(done * PROGRESS_WIDTH / progress->total) : 0;
    fprintf(progress->stream, "\r%s [", progress->label);
    print_fill(progress->stream, filled, '#');
    print_fill(progress->stream, PROGRESS_WIDTH - filled, '.');
    fprintf(progress->stream, "] %llu/%llu", (unsigned long long)done,
            (unsigned long long)progress->total);
    fflush(progress->stream);
}

void bench_progress_start(bench_progress *progress, FILE *stream, const char *label, uint64_t total)
{
    int fd = fileno(stream);
    *progress = (bench_progress){stream, label, total, 0, fd >= 0 && isatty(fd)};
    draw(progress);
}

void bench_progress_step(bench_progress *progress)
{
    progress->done++;
    draw(progress);
}

void bench_progress_end(bench_progress *progress)
{
    if (!progress->shown)
        return;
    fputs("\r\033[K", progress->stream);
    fflush(progress->stream);
    progress->shown = false;
}
