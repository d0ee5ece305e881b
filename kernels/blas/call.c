/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/blas/call.h"

#include <ctype.h>
#include <math.h>

char fl_call_letter(int option)
{
    static const char c[] = {[111 - 111] = 'N', [112 - 111] = 'T', [113 - 111] = 'C',
                             [121 - 111] = 'U', [122 - 111] = 'L', [131 - 111] = 'N',
                             [132 - 111] = 'U', [141 - 111] = 'L', [142 - 111] = 'R'};
    /* Letters of ASCII overlap the enumerations: entries.h marks CBLAS's by 1000. */
    if (option >= 1000) {
        int at = option - 1000 - 111;
        return at >= 0 && at < (int)sizeof c && c[at] ? c[at] : 'X';
    }
    return (char)toupper((unsigned char)option);
}

static char flip(char is, char one, char other)
{
    return is == one ? other : is == other ? one : is;
}

static void swap(int64_t *x, int64_t *y)
{
    int64_t z = *x;
    *x = *y;
    *y = z;
}

/* Row-major memory is the column-major memory of the transposed matrix. */
static bool transpose(fl_blas_call *call)
{
    call->uplo = flip(call->uplo, 'U', 'L');
    switch (call->routine) {
    case FL_BLAS_GEMM: {
        void *a = call->a;
        char transa = call->transa;
        call->a = call->b;
        call->b = a;
        call->transa = call->transb;
        call->transb = transa;
        swap(&call->lda, &call->ldb);
        swap(&call->m, &call->n);
        return true;
    }
    case FL_BLAS_SYRK:
        call->transa = call->transa == 'N' ? 'T' : call->transa == 'X' ? 'X' : 'N';
        return true;
    case FL_BLAS_SYMM:
    case FL_BLAS_TRMM:
    case FL_BLAS_TRSM:
        call->side = flip(call->side, 'L', 'R');
        swap(&call->m, &call->n);
        return true;
    default:
        return call->routine == FL_BLAS_POTRF;
    }
}

static bool is_of(char letter, const char *letters)
{
    for (; *letters; letters++)
        if (letter == *letters)
            return true;
    return false;
}

/* 0: the routine has no such option. */
static bool has_good_options(const fl_blas_call *call)
{
    return (!call->side || is_of(call->side, "LR")) && (!call->uplo || is_of(call->uplo, "UL")) &&
           (!call->transa || is_of(call->transa, "NTC")) &&
           (!call->transb || is_of(call->transb, "NTC")) &&
           (!call->diag || is_of(call->diag, "NU"));
}

static bool holds(int64_t rows, int64_t ld)
{
    return rows > 0 && ld >= rows;
}

/* Every extent is above 0: with one of 0 nothing is left to do that is worth a GPU. */
static bool has_good_extents(const fl_blas_call *c)
{
    switch (c->routine) {
    case FL_BLAS_GEMM:
        return holds(c->m, c->ldc) && c->n > 0 && c->k > 0 &&
               holds(c->transa == 'N' ? c->m : c->k, c->lda) &&
               holds(c->transb == 'N' ? c->k : c->n, c->ldb);
    case FL_BLAS_SYMM:
        return holds(c->m, c->ldc) && holds(c->m, c->ldb) && c->n > 0 &&
               holds(fl_call_order(c), c->lda);
    case FL_BLAS_SYRK:
        return holds(c->n, c->ldc) && c->k > 0 && holds(c->transa == 'N' ? c->n : c->k, c->lda);
    case FL_BLAS_TRMM:
    case FL_BLAS_TRSM:
        return holds(c->m, c->ldb) && c->n > 0 && holds(fl_call_order(c), c->lda);
    case FL_BLAS_GETRF:
    case FL_BLAS_GEQRF:
        return holds(c->m, c->lda) && c->n > 0;
    case FL_BLAS_ORMQR: /* from the left */
        return c->side == 'L' && c->transa != 'C' && holds(c->m, c->ldc) && holds(c->m, c->lda) &&
               c->n > 0 && c->k > 0 && c->k <= c->m;
    case FL_BLAS_GELS: /* by QR, of at least as many rows as columns */
        return c->transa != 'C' && holds(c->m, c->lda) && holds(c->m, c->ldb) && c->n > 0 &&
               c->n <= c->m && c->nrhs > 0;
    case FL_BLAS_POTRF:
        return holds(c->n, c->lda);
    default:
        return holds(c->n, c->lda) && holds(c->n, c->ldb) && c->nrhs > 0;
    }
}

bool fl_call_settle(fl_blas_call *call)
{
    bool is_known = call->layout == 0 || call->layout == FL_BLAS_COL_MAJOR ||
                    (call->layout == FL_BLAS_ROW_MAJOR && transpose(call));
    if (!is_known)
        return false;
    call->layout = 0;
    return !call->is_left && has_good_options(call) && has_good_extents(call) &&
           (fl_call_is_lapack(call) || call->alpha != 0);
}

double fl_call_flops(const fl_blas_call *call)
{
    double m = (double)call->m, n = (double)call->n, k = (double)call->k;
    double order = (double)fl_call_order(call), nrhs = (double)call->nrhs;
    double least = m < n ? m : n, greatest = m > n ? m : n;
    switch (call->routine) {
    case FL_BLAS_GEMM:
        return 2 * m * n * k;
    case FL_BLAS_SYMM:
        return 2 * m * n * order;
    case FL_BLAS_SYRK:
        return n * n * k;
    case FL_BLAS_TRMM:
    case FL_BLAS_TRSM:
        return m * n * order;
    case FL_BLAS_GETRF:
        return least * least * (greatest - least / 3);
    case FL_BLAS_GEQRF:
        return 2 * least * least * (greatest - least / 3);
    case FL_BLAS_ORMQR:
        return 2 * n * k * (2 * m - k);
    case FL_BLAS_GELS:
        return 2 * least * least * (greatest - least / 3) + nrhs * n * (4 * m - n);
    case FL_BLAS_POTRF:
        return n * n * n / 3;
    case FL_BLAS_POSV:
        return n * n * (n / 3 + 2 * nrhs);
    case FL_BLAS_GESV:
        return n * n * (2 * n / 3 + 2 * nrhs);
    default:
        return 2 * n * n * nrhs;
    }
}

double fl_call_bytes(const fl_blas_call *call)
{
    double m = (double)call->m, n = (double)call->n, k = (double)call->k;
    double order = (double)fl_call_order(call), nrhs = (double)call->nrhs, elements = 0;
    switch (call->routine) {
    case FL_BLAS_GEMM:
        elements = m * k + k * n + (call->beta != 0 ? 2 : 1) * m * n;
        break;
    case FL_BLAS_SYMM:
        elements = order * order / 2 + (call->beta != 0 ? 3 : 2) * m * n;
        break;
    case FL_BLAS_SYRK:
        elements = n * k + (call->beta != 0 ? 1 : 0.5) * n * n;
        break;
    case FL_BLAS_TRMM:
    case FL_BLAS_TRSM:
        elements = order * order / 2 + 2 * m * n;
        break;
    case FL_BLAS_GETRF:
    case FL_BLAS_GEQRF:
        elements = 2 * m * n;
        break;
    case FL_BLAS_ORMQR:
        elements = m * k + 2 * m * n;
        break;
    case FL_BLAS_GELS:
        elements = 2 * m * n + 2 * m * nrhs;
        break;
    case FL_BLAS_POTRF:
        elements = n * n;
        break;
    case FL_BLAS_POTRS:
        elements = n * n / 2 + 2 * n * nrhs;
        break;
    case FL_BLAS_GETRS:
    case FL_BLAS_POSV:
        elements = n * n + 2 * n * nrhs;
        break;
    default:
        elements = 2 * n * n + 2 * n * nrhs;
    }
    return elements * (double)fl_call_element(call);
}

/* uplo 0: the whole matrix. */
static bool scan(const fl_blas_call *call, const void *matrix, int64_t rows, int64_t cols,
                 int64_t ld, char uplo)
{
    for (int64_t j = 0; j < cols; j++) {
        int64_t first = uplo == 'L' ? j : 0, last = uplo == 'U' ? j + 1 : rows;
        for (int64_t i = first; i < last; i++)
            if (call->is_single ? isnan(((const float *)matrix)[j * ld + i])
                                : isnan(((const double *)matrix)[j * ld + i]))
                return true;
    }
    return false;
}

static bool is_general(const fl_blas_call *call)
{
    return call->routine == FL_BLAS_GETRF || call->routine == FL_BLAS_GEQRF ||
           call->routine == FL_BLAS_GELS;
}

bool fl_call_has_nan(const fl_blas_call *call)
{
    int64_t rows = is_general(call) ? call->m : call->n;
    if (call->routine == FL_BLAS_ORMQR)
        return scan(call, call->a, call->m, call->k, call->lda, 0) ||
               scan(call, call->tau, call->k, 1, call->k, 0) ||
               scan(call, call->c, call->m, call->n, call->ldc, 0);
    return scan(call, call->a, rows, call->n, call->lda, call->uplo) ||
           (call->b && scan(call, call->b, rows, call->nrhs, call->ldb, 0));
}

int fl_call_outputs(const fl_blas_call *c, fl_blas_output outputs[2])
{
    bool is_lapack = fl_call_is_lapack(c);
    const fl_blas_output b = {c->b, is_lapack && c->routine != FL_BLAS_GELS ? c->n : c->m,
                              is_lapack ? c->nrhs : c->n, c->ldb, true};
    const fl_blas_output a = {c->a, is_general(c) ? c->m : c->n, c->n, c->lda, true};
    switch (c->routine) {
    case FL_BLAS_GEMM:
    case FL_BLAS_SYMM:
        outputs[0] = (fl_blas_output){c->c, c->m, c->n, c->ldc, c->beta != 0};
        return 1;
    case FL_BLAS_ORMQR:
        outputs[0] = (fl_blas_output){c->c, c->m, c->n, c->ldc, true};
        return 1;
    case FL_BLAS_SYRK:
        outputs[0] = (fl_blas_output){c->c, c->n, c->n, c->ldc, c->beta != 0};
        return 1;
    case FL_BLAS_POTRF:
    case FL_BLAS_GETRF:
    case FL_BLAS_GEQRF:
        outputs[0] = a;
        return 1;
    case FL_BLAS_POSV:
    case FL_BLAS_GESV:
    case FL_BLAS_GELS:
        outputs[0] = a;
        outputs[1] = b;
        return 2;
    default:
        outputs[0] = b;
        return 1;
    }
}
