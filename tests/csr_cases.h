/* SPDX-License-Identifier: Apache-2.0 */
/* Random sparse matrices for tests of row blocks. Numbers are small integers, so products are exact
 * in any order. */
#ifndef TESTS_CSR_CASES_H
#define TESTS_CSR_CASES_H

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "filch/filch.h"
#include "random.h"

/* A matrix in the widest types, counted from 0. */
typedef struct csr_case {
    uint64_t rows, cols, nnz;
    int64_t *pointers, *columns;
    double *values;
} csr_case;

/* The arrays of a case in the types of a description. */
typedef struct csr_arrays {
    void *pointers, *columns;
} csr_arrays;

static inline void *csr_memory(uint64_t count, size_t bytes)
{
    void *made = calloc(count + 1, bytes);
    if (made == NULL)
        abort();
    return made;
}

/* Rows with up to `most` entries each; where is_uneven, half are empty and one is ten times as
 * long. */
static inline csr_case csr_random(fl_random *random, uint64_t rows, uint64_t cols, uint32_t most,
                                  bool is_uneven)
{
    csr_case made = {.rows = rows, .cols = cols, .pointers = csr_memory(rows + 1, 8)};
    uint64_t longest = rows != 0 ? fl_random_below(random, (uint32_t)rows) : 0;
    for (uint64_t i = 0; i < rows; i++) {
        uint64_t count = fl_random_below(random, most + 1);
        if (is_uneven)
            count = i == longest ? 10 * (uint64_t)most : count * (fl_random_next(random) >> 63);
        made.nnz += cols != 0 ? count : 0;
        made.pointers[i + 1] = (int64_t)made.nnz;
    }
    made.columns = csr_memory(made.nnz, sizeof *made.columns);
    made.values = csr_memory(made.nnz, sizeof *made.values);
    for (uint64_t k = 0; k < made.nnz; k++) {
        made.columns[k] = fl_random_below(random, (uint32_t)cols);
        made.values[k] = (double)fl_random_below(random, 100) - 50;
    }
    return made;
}

static inline void csr_free(csr_case *of)
{
    free(of->pointers);
    free(of->columns);
    free(of->values);
}

static inline void *csr_cast(const int64_t *from, uint64_t count, uint32_t bytes, uint32_t base)
{
    char *made = csr_memory(count, bytes);
    for (uint64_t i = 0; i < count; i++) {
        int64_t wide = from[i] + (int64_t)base;
        int32_t narrow = (int32_t)wide;
        memcpy(made + i * bytes, bytes == 4 ? (void *)&narrow : (void *)&wide, bytes);
    }
    return made;
}

/* Describes the case with values of type double; the caller frees the arrays after the creation. */
static inline filch_csr_desc csr_describe(const csr_case *of, uint32_t pointer_bytes,
                                          uint32_t column_bytes, uint32_t base, csr_arrays *arrays)
{
    filch_csr_desc desc = FILCH_CSR_DESC_INIT;
    arrays->pointers = csr_cast(of->pointers, of->rows + 1, pointer_bytes, base);
    arrays->columns = csr_cast(of->columns, of->nnz, column_bytes, base);
    desc.rows = of->rows;
    desc.cols = of->cols;
    desc.nnz = of->nnz;
    desc.pointers = arrays->pointers;
    desc.columns = arrays->columns;
    desc.values = of->values;
    desc.element = sizeof *of->values;
    desc.pointer_bytes = pointer_bytes;
    desc.column_bytes = column_bytes;
    desc.base = base;
    desc.label = "A";
    return desc;
}

static inline void csr_drop(csr_arrays *arrays)
{
    /* Whoever still looks at the arrays finds nonsense. */
    free(arrays->pointers);
    free(arrays->columns);
}

static inline int64_t csr_integer(const void *array, uint32_t bytes, uint64_t at)
{
    return bytes == 4 ? ((const int32_t *)array)[at] : ((const int64_t *)array)[at];
}

/* y := A x for the rows of a block; the kernel of every test. */
static inline void csr_multiply(const filch_csr_block *a, const double *x, double *y)
{
    const double *values = a->values;
    for (uint64_t i = 0; i < a->rows; i++) {
        uint64_t k = (uint64_t)csr_integer(a->pointers, a->pointer_bytes, i) - a->base;
        uint64_t end = (uint64_t)csr_integer(a->pointers, a->pointer_bytes, i + 1) - a->base;
        y[i] = 0;
        for (; k < end; k++)
            y[i] += values[k] * x[csr_integer(a->columns, a->column_bytes, k) - a->base];
    }
}

static inline void csr_product(const csr_case *of, const double *x, double *y)
{
    for (uint64_t i = 0; i < of->rows; i++) {
        y[i] = 0;
        for (int64_t k = of->pointers[i]; k < of->pointers[i + 1]; k++)
            y[i] += of->values[k] * x[of->columns[k]];
    }
}

#endif
