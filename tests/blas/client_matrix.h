/* SPDX-License-Identifier: Apache-2.0 */
/* Matrices of either layout, for a file that has defined REAL, P(name) and LETTER. */
#include "client.h"

#include <cblas.h>
#include <lapacke.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of the calling forms: Fortran; C column-major, C row-major. LAPACKE's with work space follow. */
enum { FORTRAN, COLUMNS, ROWS, FORMS, WORK_COLUMNS = FORMS, WORK_ROWS, LAPACK_FORMS };

#define GAP ((REAL)-77.25) /* between columns */

typedef struct matrix {
    REAL *p;
    int rows, cols, ld;
    int is_row_major;
} matrix;

static inline size_t elements(const matrix *a)
{
    return (size_t)a->ld * (size_t)(a->is_row_major ? a->rows : a->cols);
}

static inline REAL *at(const matrix *a, int i, int j)
{
    return a->is_row_major ? a->p + (size_t)i * (size_t)a->ld + j
                           : a->p + (size_t)j * (size_t)a->ld + i;
}

static inline REAL number(void)
{
    return (REAL)((double)(client_random() >> 11) * 0x1p-52 - 1);
}

static inline matrix make(int rows, int cols, int form)
{
    matrix a = {.rows = rows, .cols = cols, .is_row_major = form == ROWS || form == WORK_ROWS};
    a.ld = (a.is_row_major ? cols : rows) + client_pick(4);
    a.p = malloc((elements(&a) + 1) * sizeof(REAL));
    for (size_t k = 0; k < elements(&a); k++)
        a.p[k] = GAP;
    for (int j = 0; j < cols; j++)
        for (int i = 0; i < rows; i++)
            *at(&a, i, j) = number();
    return a;
}

static inline matrix copy(const matrix *a)
{
    matrix b = *a;
    b.p = malloc((elements(a) + 1) * sizeof(REAL));
    memcpy(b.p, a->p, elements(a) * sizeof(REAL));
    return b;
}

static inline double op(const matrix *a, char trans, int i, int j)
{
    return (double)(trans == 'N' ? *at(a, i, j) : *at(a, j, i));
}

/* Of a triangle; '0': of nothing; 0: of the whole. */
static inline int is_in(char uplo, int i, int j)
{
    return uplo == 'L' ? i >= j : uplo == 'U' ? i <= j : uplo != '0';
}

/* What is out of the triangle, and for a unit triangle its diagonal, is nobody's to read. */
static inline void hide(const matrix *a, char uplo, char diag)
{
    for (int j = 0; j < a->cols; j++)
        for (int i = 0; i < a->rows; i++)
            if (!is_in(uplo, i, j) || (diag == 'U' && i == j))
                *at(a, i, j) = (REAL)NAN;
}

static inline int same(REAL x, REAL y)
{
    return x == y || (isnan(x) && isnan(y));
}

/* Everything but the triangle is as it was. */
static inline void check_rest(const char *text, const matrix *a, const matrix *before, char uplo)
{
    matrix x = *a, y = *before;
    for (int j = 0; j < a->cols; j++)
        for (int i = 0; i < a->rows; i++)
            if (is_in(uplo, i, j))
                *at(&y, i, j) = *at(&x, i, j);
    for (size_t k = 0; k < elements(a); k++)
        if (!same(x.p[k], y.p[k])) {
            client_wrong("%s: writes where it must not", text);
            return;
        }
}

/* Whether |value - exact| is rounding of a sum of that many products of numbers below 1. Partial
 * sums of products that are all positive are as large as the sum: so are those of syrk's diagonal.
 */
static inline int near(double value, double exact, int terms, double scale)
{
    double unit = sizeof(REAL) == sizeof(double) ? 0x1p-53 : 0x1p-24;
    return fabs(value - exact) <= 8 * unit * (scale + fabs(exact)) * (sqrt(terms) + 4);
}

static inline void forget(matrix *a)
{
    free(a->p);
    a->p = NULL;
}

static inline int layout_of(int form)
{
    return form == ROWS || form == WORK_ROWS ? 101 : 102;
}

/* The letter in either case, as Fortran's callers write it. */
static inline const char *letter(char c)
{
    static _Thread_local char letters[4][2];
    static _Thread_local int next;
    next = (next + 1) % 4;
    letters[next][0] = client_pick(2) ? c : (char)(c + 'a' - 'A');
    return letters[next];
}

static inline int c_trans(char c)
{
    return c == 'N' ? CblasNoTrans : c == 'T' ? CblasTrans : CblasConjTrans;
}
