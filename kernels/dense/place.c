/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/dense/place.h"

#include "kernels/vendor/panel.h"

#include <stdlib.h>
#include <string.h>

/* Columns that a QR factorization of a panel works on at once, in the work memory given to it. */
#define QR_BLOCK 32
/* Order of a triangle that is solved for by one call on the host. */
#define SOLVED_AT_ONCE 32
#define NO_MEMORY (-12)

static bool is_double(const filch_view *view)
{
    return view->element == sizeof(double);
}

static bool is_empty(const filch_view *view)
{
    return view->rows == 0 || view->cols == 0;
}

static const char *op_of(int op)
{
    return op == FL_VENDOR_OP_N ? "N" : "T";
}

static const char *side_of(const fl_vendor_form *form)
{
    return form->side == FL_VENDOR_SIDE_LEFT ? "L" : "R";
}

static const char *fill_of(const fl_vendor_form *form)
{
    return form->fill == FL_VENDOR_FILL_LOWER ? "L" : "U";
}

static const char *diagonal_of(const fl_vendor_form *form)
{
    return form->diagonal == FL_VENDOR_NON_UNIT ? "N" : "U";
}

static int inner_of(const fl_vendor_form *form, const filch_view *a)
{
    return (int)(form->op_a == FL_VENDOR_OP_N ? a->cols : a->rows);
}

/* NOLINTBEGIN(bugprone-macro-parentheses): a declaration's parts take none */
#define OPERATIONS(p, real)                                                                        \
    static void p##_gemm(const fl_dense_host *host, const fl_vendor_form *f, const filch_view *a,  \
                         const filch_view *b, const filch_view *c)                                 \
    {                                                                                              \
        const real alpha = (real)f->alpha, beta = (real)f->beta;                                   \
        int m = (int)c->rows, n = (int)c->cols, k = inner_of(f, a);                                \
        int lda = (int)a->ld, ldb = (int)b->ld, ldc = (int)c->ld;                                  \
        host->p.gemm(op_of(f->op_a), op_of(f->op_b), &m, &n, &k, &alpha, a->ptr, &lda, b->ptr,     \
                     &ldb, &beta, c->ptr, &ldc, 1, 1);                                             \
    }                                                                                              \
    static void p##_syrk(const fl_dense_host *host, const fl_vendor_form *f, const filch_view *a,  \
                         const filch_view *c)                                                      \
    {                                                                                              \
        const real alpha = (real)f->alpha, beta = (real)f->beta;                                   \
        int n = (int)c->rows, k = inner_of(f, a), lda = (int)a->ld, ldc = (int)c->ld;              \
        host->p.syrk(fill_of(f), op_of(f->op_a), &n, &k, &alpha, a->ptr, &lda, &beta, c->ptr,      \
                     &ldc, 1, 1);                                                                  \
    }                                                                                              \
    static void p##_trsm(const fl_dense_host *host, const fl_vendor_form *f, const filch_view *a,  \
                         const filch_view *b)                                                      \
    {                                                                                              \
        const real alpha = (real)f->alpha;                                                         \
        int m = (int)b->rows, n = (int)b->cols, lda = (int)a->ld, ldb = (int)b->ld;                \
        host->p.trsm(side_of(f), fill_of(f), op_of(f->op_a), diagonal_of(f), &m, &n, &alpha,       \
                     a->ptr, &lda, b->ptr, &ldb, 1, 1, 1, 1);                                      \
    }                                                                                              \
    static void p##_trmm(const fl_dense_host *host, const fl_vendor_form *f, const filch_view *a,  \
                         const filch_view *b)                                                      \
    {                                                                                              \
        const real alpha = (real)f->alpha;                                                         \
        int m = (int)b->rows, n = (int)b->cols, lda = (int)a->ld, ldb = (int)b->ld;                \
        host->p.trmm(side_of(f), fill_of(f), op_of(f->op_a), diagonal_of(f), &m, &n, &alpha,       \
                     a->ptr, &lda, b->ptr, &ldb, 1, 1, 1, 1);                                      \
    }                                                                                              \
    static void p##_scale_rows(const filch_view *a, const real *x, const filch_view *c)            \
    {                                                                                              \
        for (uint64_t j = 0; j < c->cols; j++) {                                                   \
            const real *from = (const real *)a->ptr + j * a->ld;                                   \
            real *to = (real *)c->ptr + j * c->ld;                                                 \
            for (uint64_t i = 0; i < c->rows; i++)                                                 \
                to[i] = x[i] * from[i];                                                            \
        }                                                                                          \
    }                                                                                              \
    static void p##_scale(double factor, const filch_view *a)                                      \
    {                                                                                              \
        for (uint64_t j = 0; j < a->cols; j++) {                                                   \
            real *at = (real *)a->ptr + j * a->ld;                                                 \
            for (uint64_t i = 0; i < a->rows; i++)                                                 \
                at[i] = factor == 0 ? 0 : (real)factor * at[i];                                    \
        }                                                                                          \
    }                                                                                              \
    static void p##_unit_lower(const filch_view *a, const filch_view *c)                           \
    {                                                                                              \
        for (uint64_t j = 0; j < c->cols; j++) {                                                   \
            const real *from = (const real *)a->ptr + j * a->ld;                                   \
            real *to = (real *)c->ptr + j * c->ld;                                                 \
            memset(to, 0, j * sizeof *to);                                                         \
            to[j] = 1;                                                                             \
            memcpy(to + j + 1, from + j + 1, (c->rows - j - 1) * sizeof *to);                      \
        }                                                                                          \
    }                                                                                              \
    static void p##_turned_upper(const filch_view *a, const filch_view *c)                         \
    {                                                                                              \
        for (uint64_t j = 0; j < c->cols; j++)                                                     \
            for (uint64_t i = 0; i < c->rows; i++)                                                 \
                ((real *)c->ptr)[i + j * c->ld] =                                                  \
                    i < j ? 0 : ((const real *)a->ptr)[j + i * a->ld];                             \
    }                                                                                              \
    static int p##_getrf(const fl_dense_host *host, const filch_view *a, int32_t *pivots,          \
                         int32_t *info)                                                            \
    {                                                                                              \
        int m = (int)a->rows, n = (int)a->cols, lda = (int)a->ld;                                  \
        host->p.getrf(&m, &n, a->ptr, &lda, pivots, info);                                         \
        return *info < 0 ? *info : 0;                                                              \
    }                                                                                              \
    static void p##_laswp(const fl_dense_host *host, const filch_view *a, const int32_t *pivots,   \
                          int last, int step)                                                      \
    {                                                                                              \
        const int first = 1;                                                                       \
        int n = (int)a->cols, lda = (int)a->ld;                                                    \
        host->p.laswp(&n, a->ptr, &lda, &first, &last, pivots, &step);                             \
    }                                                                                              \
    static int p##_geqrf(const fl_dense_host *host, const filch_view *a, real *tau, int32_t *info) \
    {                                                                                              \
        int m = (int)a->rows, n = (int)a->cols, lda = (int)a->ld;                                  \
        int elements = QR_BLOCK * (n > 1 ? n : 1);                                                 \
        real *work = malloc((size_t)elements * sizeof *work);                                      \
        if (!work)                                                                                 \
            return NO_MEMORY;                                                                      \
        host->p.geqrf(&m, &n, a->ptr, &lda, tau, work, &elements, info);                           \
        free(work);                                                                                \
        return *info < 0 ? *info : 0;                                                              \
    }
/* NOLINTEND(bugprone-macro-parentheses) */

OPERATIONS(d, double)
OPERATIONS(s, float)

int fl_place_gemm(const fl_place *on, const fl_vendor_form *form, const filch_view *a,
                  const filch_view *b, const filch_view *c)
{
    if (on->lane)
        return fl_vendor_blas_gemm(on->lane, form, a, b, c);
    if (is_double(c))
        d_gemm(on->host, form, a, b, c);
    else
        s_gemm(on->host, form, a, b, c);
    return 0;
}

/* op(A) is lower triangular on the left, or upper on the right: what the first rows or columns of B
 * become depends on no others. */
static bool begins_at_first(const fl_vendor_form *form)
{
    bool is_lower = (form->fill == FL_VENDOR_FILL_LOWER) == (form->op_a == FL_VENDOR_OP_N);
    return is_lower == (form->side == FL_VENDOR_SIDE_LEFT);
}

static filch_view part_of_b(const fl_vendor_form *form, const filch_view *b, uint64_t at,
                            uint64_t count)
{
    return form->side == FL_VENDOR_SIDE_LEFT ? fl_part(b, at, 0, count, b->cols)
                                             : fl_part(b, 0, at, b->rows, count);
}

/* On cores with AVX-512, OpenBLAS 0.3's trsm runs at a third to two fifths of the rate of gemm.
 * Recursion over halves of the triangle is 1.6 to 1.9 times as fast in orders of 192 to 512. */
static void solve_on_host(const fl_dense_host *host, const fl_vendor_form *form,
                          const filch_view *a, const filch_view *b)
{
    const fl_place on = {.host = host};
    uint64_t n = a->rows, first = n / 2, rest = n - first;
    if (n <= SOLVED_AT_ONCE) {
        if (is_double(b))
            d_trsm(host, form, a, b);
        else
            s_trsm(host, form, a, b);
        return;
    }
    const filch_view corner[] = {fl_part(a, 0, 0, first, first),
                                 fl_part(a, first, first, rest, rest)};
    const filch_view between = form->fill == FL_VENDOR_FILL_LOWER
                                   ? fl_part(a, first, 0, rest, first)
                                   : fl_part(a, 0, first, first, rest);
    const filch_view x[] = {part_of_b(form, b, 0, first), part_of_b(form, b, first, rest)};
    int begin = begins_at_first(form) ? 0 : 1, end = 1 - begin;
    fl_vendor_form product = {.op_a = form->op_a, .alpha = -1, .beta = form->alpha};
    fl_vendor_form last = *form;
    last.alpha = 1;
    solve_on_host(host, form, &corner[begin], &x[begin]);
    if (form->side == FL_VENDOR_SIDE_LEFT) {
        product.op_b = FL_VENDOR_OP_N;
        (void)fl_place_gemm(&on, &product, &between, &x[begin], &x[end]);
    } else {
        product.op_a = FL_VENDOR_OP_N;
        product.op_b = form->op_a;
        (void)fl_place_gemm(&on, &product, &x[begin], &between, &x[end]);
    }
    solve_on_host(host, &last, &corner[end], &x[end]);
}

int fl_place_trsm(const fl_place *on, const fl_vendor_form *form, const filch_view *a,
                  const filch_view *b)
{
    if (on->lane)
        return fl_vendor_blas_trsm(on->lane, form, a, b);
    solve_on_host(on->host, form, a, b);
    return 0;
}

int fl_place_gemm_few(const fl_place *on, const fl_vendor_form *form, const filch_view *a,
                      const filch_view *b, const filch_view *c)
{
    return on->lane && b->cols == 1 && form->op_b == FL_VENDOR_OP_N
               ? fl_vendor_blas_gemv(on->lane, form, a, b, c)
               : fl_place_gemm(on, form, a, b, c);
}

int fl_place_trsm_few(const fl_place *on, const fl_vendor_form *form, const filch_view *a,
                      const filch_view *b)
{
    return on->lane && b->cols == 1 ? fl_vendor_blas_trsv(on->lane, form, a, b)
                                    : fl_place_trsm(on, form, a, b);
}

int fl_place_syrk(const fl_place *on, const fl_vendor_form *form, const filch_view *a,
                  const filch_view *c)
{
    if (on->lane)
        return fl_vendor_blas_syrk(on->lane, form, a, c);
    if (is_double(c))
        d_syrk(on->host, form, a, c);
    else
        s_syrk(on->host, form, a, c);
    return 0;
}

int fl_place_trmm(const fl_place *on, const fl_vendor_form *form, const filch_view *a,
                  const filch_view *b)
{
    if (on->lane)
        return fl_vendor_blas_trmm(on->lane, form, a, b, b);
    if (is_double(b))
        d_trmm(on->host, form, a, b);
    else
        s_trmm(on->host, form, a, b);
    return 0;
}

int fl_place_scale_rows(const fl_place *on, const filch_view *a, const void *x, const filch_view *c)
{
    if (on->lane)
        return fl_vendor_blas_scale_rows(on->lane, a, x, c);
    if (is_double(c))
        d_scale_rows(a, x, c);
    else
        s_scale_rows(a, x, c);
    return 0;
}

int fl_place_scale(const fl_place *on, double factor, const filch_view *a)
{
    if (on->lane)
        return fl_vendor_blas_scale(on->lane, factor, a);
    if (is_double(a))
        d_scale(factor, a);
    else
        s_scale(factor, a);
    return 0;
}

int fl_place_copy(const fl_place *on, const filch_view *from, const filch_view *to)
{
    if (is_empty(to))
        return 0;
    if (on->lane)
        return fl_vendor_copy(on->lane, from, to);
    for (uint64_t j = 0; j < to->cols; j++)
        memcpy((char *)to->ptr + j * to->ld * to->element,
               (const char *)from->ptr + j * from->ld * from->element, to->rows * to->element);
    return 0;
}

int fl_place_unit_lower(const fl_place *on, const filch_view *a, const filch_view *identity,
                        const filch_view *to)
{
    /* cuBLAS writes no triangle, but the product of one by the identity. */
    static const fl_vendor_form triangle = {.diagonal = FL_VENDOR_UNIT, .alpha = 1};
    if (on->lane)
        return fl_vendor_blas_trmm(on->lane, &triangle, a, identity, to);
    if (is_double(to))
        d_unit_lower(a, to);
    else
        s_unit_lower(a, to);
    return 0;
}

int fl_place_turned_upper(const fl_place *on, const filch_view *a, const filch_view *identity,
                          const filch_view *to)
{
    static const fl_vendor_form turned = {
        .fill = FL_VENDOR_FILL_UPPER, .op_a = FL_VENDOR_OP_T, .alpha = 1};
    if (on->lane)
        return fl_vendor_blas_trmm(on->lane, &turned, a, identity, to);
    if (is_double(to))
        d_turned_upper(a, to);
    else
        s_turned_upper(a, to);
    return 0;
}

int fl_place_invert(const fl_place *on, const filch_view *t, const filch_view *identity,
                    const filch_view *inverse)
{
    static const fl_vendor_form lower = {.alpha = 1};
    if (on->lane)
        return fl_vendor_invert(on->lane, t, inverse);
    int code = fl_place_copy(on, identity, inverse);
    return code ? code : fl_place_trsm(on, &lower, t, inverse);
}

static void write_identity(const filch_view *to)
{
    for (uint64_t j = 0; j < to->cols; j++) {
        char *column = (char *)to->ptr + j * to->ld * to->element;
        memset(column, 0, to->rows * to->element);
        if (is_double(to))
            ((double *)(void *)column)[j] = 1;
        else
            ((float *)(void *)column)[j] = 1;
    }
}

int fl_place_invert_triangle(const fl_place *on, const fl_vendor_form *form, const filch_view *a,
                             const filch_view *t, const filch_view *inverse)
{
    bool is_upper = form->fill == FL_VENDOR_FILL_UPPER;
    const fl_vendor_form whole = {.fill = form->fill,
                                  .op_a = is_upper ? FL_VENDOR_OP_T : FL_VENDOR_OP_N,
                                  .diagonal = form->diagonal,
                                  .alpha = 1};
    if (on->lane)
        return fl_vendor_invert_triangle(on->lane, form, a, t, inverse);
    write_identity(inverse);
    write_identity(t);
    int code = fl_place_trmm(on, &whole, a, t);
    return code ? code : fl_place_trsm(on, &whole, a, inverse);
}

int fl_place_multiply(const fl_place *on, const fl_vendor_form *form, const filch_view *t,
                      const filch_view *b, const filch_view *room)
{
    const fl_vendor_form whole = {.op_a = form->op_a, .alpha = form->alpha};
    if (!on->lane)
        return fl_place_trmm(on, form, t, b);
    int code = fl_place_copy(on, b, room);
    return code ? code : fl_place_gemm(on, &whole, t, room, b);
}

int fl_place_getrf(const fl_place *on, const filch_view *a, int32_t *pivots, int32_t *info)
{
    if (on->lane)
        return fl_vendor_getrf(on->lane, a, pivots, info);
    return is_double(a) ? d_getrf(on->host, a, pivots, info) : s_getrf(on->host, a, pivots, info);
}

int fl_place_laswp(const fl_place *on, const filch_view *a, const int32_t *pivots, size_t count,
                   bool is_back)
{
    if (on->lane)
        return fl_vendor_laswp(on->lane, a, pivots, count, is_back);
    if (is_double(a))
        d_laswp(on->host, a, pivots, (int)count, is_back ? -1 : 1);
    else
        s_laswp(on->host, a, pivots, (int)count, is_back ? -1 : 1);
    return 0;
}

int fl_place_geqrf(const fl_place *on, const filch_view *a, void *tau, int32_t *info)
{
    if (on->lane)
        return fl_vendor_geqrf(on->lane, a, tau, info);
    return is_double(a) ? d_geqrf(on->host, a, tau, info) : s_geqrf(on->host, a, tau, info);
}
