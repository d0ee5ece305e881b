/* SPDX-License-Identifier: Apache-2.0 */
/* Operations of place.h on symmetric matrices. */
#include "kernels/dense/place.h"

#include "kernels/vendor/definite.h"

static const char *fill_of(int fill)
{
    return fill == FL_VENDOR_FILL_LOWER ? "L" : "U";
}

/* NOLINTBEGIN(bugprone-macro-parentheses): a declaration's parts take none */
#define OPERATIONS(p, real)                                                                        \
    static void p##_symm(const fl_dense_host *host, const fl_vendor_form *f, const filch_view *a,  \
                         const filch_view *b, const filch_view *c)                                 \
    {                                                                                              \
        const real alpha = (real)f->alpha, beta = (real)f->beta;                                   \
        int m = (int)c->rows, n = (int)c->cols;                                                    \
        int lda = (int)a->ld, ldb = (int)b->ld, ldc = (int)c->ld;                                  \
        host->p.symm(f->side == FL_VENDOR_SIDE_LEFT ? "L" : "R", fill_of(f->fill), &m, &n, &alpha, \
                     a->ptr, &lda, b->ptr, &ldb, &beta, c->ptr, &ldc, 1, 1);                       \
    }                                                                                              \
    static int p##_potrf(const fl_dense_host *host, int fill, const filch_view *a, int32_t *info)  \
    {                                                                                              \
        int n = (int)a->rows, lda = (int)a->ld;                                                    \
        host->p.potrf(fill_of(fill), &n, a->ptr, &lda, info, 1);                                   \
        return *info < 0 ? *info : 0;                                                              \
    }
/* NOLINTEND(bugprone-macro-parentheses) */

OPERATIONS(d, double)
OPERATIONS(s, float)

int fl_place_symm(const fl_place *on, const fl_vendor_form *form, const filch_view *a,
                  const filch_view *b, const filch_view *c)
{
    if (on->lane)
        return fl_vendor_blas_symm(on->lane, form, a, b, c);
    if (c->element == sizeof(double))
        d_symm(on->host, form, a, b, c);
    else
        s_symm(on->host, form, a, b, c);
    return 0;
}

int fl_place_potrf(const fl_place *on, int fill, const filch_view *a, int32_t *info)
{
    if (on->lane)
        return fl_vendor_potrf_fill(on->lane, fill, a, info);
    return a->element == sizeof(double) ? d_potrf(on->host, fill, a, info)
                                        : s_potrf(on->host, fill, a, info);
}
