/* SPDX-License-Identifier: Apache-2.0 */
#include "matrix.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* An entry as a file has it, from 0. */
typedef struct entry {
    int row, col;
    double value;
} entry;

static bool matrix_alloc(matrix *a, int n, size_t entries, char why[WHY])
{
    *a = (matrix){.n = n,
                  .start = calloc((size_t)n + 1, sizeof(int)),
                  .row = malloc((entries + 1) * sizeof(int)),
                  .value = malloc((entries + 1) * sizeof(double))};
    if (a->start && a->row && a->value)
        return true;
    matrix_free(a);
    snprintf(why, WHY, "no memory for %zu entries", entries);
    return false;
}

void matrix_free(matrix *a)
{
    free(a->start);
    free(a->row);
    free(a->value);
    *a = (matrix){0};
}

bool matrix_poisson(matrix *made, int k, char why[WHY])
{
    const int n = k * k * k;
    if (!matrix_alloc(made, n, 4 * (size_t)n, why))
        return false;
    int at = 0;
    for (int j = 0; j < n; j++) {
        const int x = j % k, y = j / k % k, z = j / k / k;
        made->row[at] = j, made->value[at++] = 6;
        if (x + 1 < k)
            made->row[at] = j + 1, made->value[at++] = -1;
        if (y + 1 < k)
            made->row[at] = j + k, made->value[at++] = -1;
        if (z + 1 < k)
            made->row[at] = j + k * k, made->value[at++] = -1;
        made->start[j + 1] = at;
    }
    return true;
}

static int by_column(const void *left, const void *right)
{
    const entry *a = left, *b = right;
    return a->col != b->col ? (a->col < b->col ? -1 : 1) : (a->row > b->row) - (a->row < b->row);
}

/* Makes the matrix from the entries of its lower triangle, which are sorted. */
static bool matrix_from(matrix *made, int n, entry *entries, int count, char why[WHY])
{
    qsort(entries, (size_t)count, sizeof *entries, by_column);
    if (!matrix_alloc(made, n, (size_t)count, why))
        return false;
    for (int i = 0; i < count; i++) {
        const entry *e = &entries[i];
        if (i > 0 && by_column(e - 1, e) == 0) {
            snprintf(why, WHY, "entry (%d, %d) is given twice", e->row + 1, e->col + 1);
            matrix_free(made);
            return false;
        }
        made->row[i] = e->row, made->value[i] = e->value;
        made->start[e->col + 1] = i + 1;
    }
    for (int j = 0; j < n; j++) /* columns without an entry */
        if (made->start[j + 1] < made->start[j])
            made->start[j + 1] = made->start[j];
    return true;
}

/* Finds an entry of a general matrix whose mirror image is missing or differs. */
static bool is_symmetric(const matrix *lower, const matrix *upper, char why[WHY])
{
    for (int j = 0; j < lower->n; j++) {
        int a = lower->start[j], b = upper->start[j];
        while (a < lower->start[j + 1] || b < upper->start[j + 1]) {
            const int at = a < lower->start[j + 1] ? lower->row[a] : lower->n;
            const int mirror = b < upper->start[j + 1] ? upper->row[b] : upper->n;
            const int i = at < mirror ? at : mirror;
            const double below = at == i ? lower->value[a++] : 0;
            const double above = mirror == i ? upper->value[b++] : 0;
            if (below == above)
                continue;
            snprintf(why, WHY, "not symmetric: (%d, %d) is %g, (%d, %d) is %g", i + 1, j + 1, below,
                     j + 1, i + 1, above);
            return false;
        }
    }
    return true;
}

/* Makes the matrix from all entries of a general one: lower and upper triangle must agree. */
static bool matrix_from_general(matrix *made, int n, const entry *entries, int count, char why[WHY])
{
    entry *half = malloc(((size_t)count + 1) * sizeof *half);
    matrix part[2] = {{0}, {0}}; /* the lower triangle, and the transposed upper one */
    bool ok = half != NULL;
    if (!ok)
        snprintf(why, WHY, "no memory for %d entries", count);
    for (int upper = 0; ok && upper < 2; upper++) {
        int kept = 0;
        for (int i = 0; i < count; i++) {
            const entry e = entries[i];
            if (upper ? e.row <= e.col : e.row >= e.col)
                half[kept++] = upper ? (entry){e.col, e.row, e.value} : e;
        }
        ok = matrix_from(&part[upper], n, half, kept, why);
    }
    ok = ok && is_symmetric(&part[0], &part[1], why);
    free(half);
    matrix_free(&part[1]);
    if (ok)
        *made = part[0];
    else
        matrix_free(&part[0]);
    return ok;
}

/* Reads the header and the line of sizes. */
static bool read_sizes(FILE *file, int *line, int *n, int *count, bool *general, char why[WHY])
{
    char text[1024], format[64], field[64], symmetry[64];
    int rows = 0;
    *line = 1;
    if (!fgets(text, sizeof text, file) ||
        sscanf(text, "%%%%MatrixMarket matrix %63s %63s %63s", format, field, symmetry) != 3) {
        snprintf(why, WHY, "line 1 is no header of a Matrix Market matrix");
        return false;
    }
    *general = strcmp(symmetry, "general") == 0;
    if (strcmp(format, "coordinate") != 0 ||
        (strcmp(field, "real") != 0 && strcmp(field, "integer") != 0) ||
        (!*general && strcmp(symmetry, "symmetric") != 0)) {
        snprintf(why, WHY, "the matrix is %s %s %s, must be coordinate, real or integer, symmetric",
                 format, field, symmetry);
        return false;
    }
    do
        (*line)++;
    while (fgets(text, sizeof text, file) && text[0] == '%');
    if (sscanf(text, "%d %d %d", &rows, n, count) != 3 || rows < 1 || *count < 0) {
        snprintf(why, WHY, "line %d must have rows, columns and entries", *line);
        return false;
    }
    if (rows != *n) {
        snprintf(why, WHY, "not symmetric: %d rows, %d columns", rows, *n);
        return false;
    }
    return true;
}

static bool read_entries(FILE *file, int line, int n, int count, bool general, entry *entries,
                         char why[WHY])
{
    for (int i = 0; i < count; i++) {
        entry e;
        char text[1024];
        line++;
        if (!fgets(text, sizeof text, file)) {
            snprintf(why, WHY, "ends after %d of %d entries", i, count);
            return false;
        }
        if (sscanf(text, "%d %d %lf", &e.row, &e.col, &e.value) != 3 || e.row < 1 || e.row > n ||
            e.col < 1 || e.col > n || !isfinite(e.value)) {
            snprintf(why, WHY, "line %d must have a row and a column of 1 to %d and a value", line,
                     n);
            return false;
        }
        if (!general && e.row < e.col) {
            snprintf(why, WHY, "line %d: (%d, %d) is above the diagonal of a symmetric matrix",
                     line, e.row, e.col);
            return false;
        }
        entries[i] = (entry){e.row - 1, e.col - 1, e.value};
    }
    return true;
}

bool matrix_read(matrix *made, const char *path, char why[WHY])
{
    char what[WHY - 64] = "";
    int line, n, count;
    bool general, ok;
    FILE *file = fopen(path, "r");
    if (!file) {
        snprintf(why, WHY, "%.180s: %s", path, strerror(errno));
        return false;
    }
    entry *entries = NULL;
    ok = read_sizes(file, &line, &n, &count, &general, why);
    if (ok && !(entries = malloc(((size_t)count + 1) * sizeof *entries)))
        ok = false, snprintf(why, WHY, "no memory for %d entries", count);
    ok = ok && read_entries(file, line, n, count, general, entries, why);
    ok = ok && (general ? matrix_from_general(made, n, entries, count, why)
                        : matrix_from(made, n, entries, count, why));
    if (!ok) {
        snprintf(what, sizeof what, "%s", why);
        snprintf(why, WHY, "%.60s: %s", path, what);
    }
    free(entries);
    fclose(file);
    return ok;
}

void matrix_apply(const matrix *a, const double *x, double *y)
{
    memset(y, 0, (size_t)a->n * sizeof *y);
    for (int j = 0; j < a->n; j++) {
        for (int p = a->start[j]; p < a->start[j + 1]; p++) {
            const int i = a->row[p];
            y[i] += a->value[p] * x[j];
            if (i != j)
                y[j] += a->value[p] * x[i];
        }
    }
}

double matrix_residual(const matrix *a, const double *x, const double *b)
{
    double *ax = malloc((size_t)a->n * sizeof *ax), *sum = calloc((size_t)a->n, sizeof *sum);
    double residual = -1, norm = 0, size = 0, off = 0;
    if (ax && sum) {
        matrix_apply(a, x, ax);
        for (int j = 0; j < a->n; j++) {
            for (int p = a->start[j]; p < a->start[j + 1]; p++) {
                sum[j] += fabs(a->value[p]);
                if (a->row[p] != j)
                    sum[a->row[p]] += fabs(a->value[p]);
            }
        }
        for (int j = 0; j < a->n; j++) {
            norm = fmax(norm, sum[j]);
            size = fmax(size, fabs(x[j]));
            off = fmax(off, isnan(ax[j]) ? INFINITY : fabs(ax[j] - b[j]));
        }
        residual = off / (norm * size);
    }
    free(ax);
    free(sum);
    return residual;
}
