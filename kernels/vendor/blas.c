/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/vendor/blas.h"

#include "kernels/vendor/lane.h"

static bool is_empty(const filch_view *view)
{
    return view->rows == 0 || view->cols == 0;
}

static int inner_of(const fl_vendor_form *form, const filch_view *a)
{
    return (int)(form->op_a == FL_VENDOR_OP_N ? a->cols : a->rows);
}

/* Values of cudaDataType and cublasGemmAlgo_t. */
enum { TYPE_FLOAT = 0, ALGORITHM_DEFAULT = -1 };

static int gemm_rounded(const fl_vendor_lane *lane, const fl_vendor_form *f, const filch_view *a,
                        const filch_view *b, const filch_view *c)
{
    const float alpha = (float)f->alpha, beta = (float)f->beta;
    return lane->vendor->call.gemm_ex(lane->blas, f->op_a, f->op_b, (int)c->rows, (int)c->cols,
                                      inner_of(f, a), &alpha, a->ptr, TYPE_FLOAT, (int)a->ld,
                                      b->ptr, TYPE_FLOAT, (int)b->ld, &beta, c->ptr, TYPE_FLOAT,
                                      (int)c->ld, f->compute, ALGORITHM_DEFAULT);
}

/* NOLINTBEGIN(bugprone-macro-parentheses): a declaration's parts take none */
#define OPERATIONS(p, real)                                                                        \
    static int p##_gemv(const fl_vendor_lane *lane, const fl_vendor_form *f, const filch_view *a,  \
                        const filch_view *b, const filch_view *c)                                  \
    {                                                                                              \
        const real alpha = (real)f->alpha, beta = (real)f->beta;                                   \
        return lane->vendor->call.p##gemv(lane->blas, f->op_a, (int)a->rows, (int)a->cols, &alpha, \
                                          a->ptr, (int)a->ld, b->ptr, 1, &beta, c->ptr, 1);        \
    }                                                                                              \
    static int p##_trsv(const fl_vendor_lane *lane, const fl_vendor_form *f, const filch_view *a,  \
                        const filch_view *b)                                                       \
    {                                                                                              \
        return lane->vendor->call.p##trsv(lane->blas, f->fill, f->op_a, f->diagonal, (int)b->rows, \
                                          a->ptr, (int)a->ld, b->ptr, 1);                          \
    }                                                                                              \
    static int p##_scale(const fl_vendor_lane *lane, double factor, const filch_view *a)           \
    {                                                                                              \
        const real alpha = (real)factor, beta = 0;                                                 \
        return lane->vendor->call.p##geam(lane->blas, FL_VENDOR_OP_N, FL_VENDOR_OP_N,              \
                                          (int)a->rows, (int)a->cols, &alpha, a->ptr, (int)a->ld,  \
                                          &beta, a->ptr, (int)a->ld, a->ptr, (int)a->ld);          \
    }                                                                                              \
    static int p##_gemm(const fl_vendor_lane *lane, const fl_vendor_form *f, const filch_view *a,  \
                        const filch_view *b, const filch_view *c)                                  \
    {                                                                                              \
        const real alpha = (real)f->alpha, beta = (real)f->beta;                                   \
        return lane->vendor->call.p##gemm(                                                         \
            lane->blas, f->op_a, f->op_b, (int)c->rows, (int)c->cols, inner_of(f, a), &alpha,      \
            a->ptr, (int)a->ld, b->ptr, (int)b->ld, &beta, c->ptr, (int)c->ld);                    \
    }                                                                                              \
    static int p##_trsm(const fl_vendor_lane *lane, const fl_vendor_form *f, const filch_view *a,  \
                        const filch_view *b)                                                       \
    {                                                                                              \
        const real alpha = (real)f->alpha;                                                         \
        return lane->vendor->call.p##trsm(lane->blas, f->side, f->fill, f->op_a, f->diagonal,      \
                                          (int)b->rows, (int)b->cols, &alpha, a->ptr, (int)a->ld,  \
                                          b->ptr, (int)b->ld);                                     \
    }                                                                                              \
    static int p##_trmm(const fl_vendor_lane *lane, const fl_vendor_form *f, const filch_view *a,  \
                        const filch_view *b, const filch_view *c)                                  \
    {                                                                                              \
        const real alpha = (real)f->alpha;                                                         \
        return lane->vendor->call.p##trmm(lane->blas, f->side, f->fill, f->op_a, f->diagonal,      \
                                          (int)c->rows, (int)c->cols, &alpha, a->ptr, (int)a->ld,  \
                                          b->ptr, (int)b->ld, c->ptr, (int)c->ld);                 \
    }                                                                                              \
    static int p##_syrk(const fl_vendor_lane *lane, const fl_vendor_form *f, const filch_view *a,  \
                        const filch_view *c)                                                       \
    {                                                                                              \
        const real alpha = (real)f->alpha, beta = (real)f->beta;                                   \
        return lane->vendor->call.p##syrk(lane->blas, f->fill, f->op_a, (int)c->rows,              \
                                          inner_of(f, a), &alpha, a->ptr, (int)a->ld, &beta,       \
                                          c->ptr, (int)c->ld);                                     \
    }                                                                                              \
    static int p##_symm(const fl_vendor_lane *lane, const fl_vendor_form *f, const filch_view *a,  \
                        const filch_view *b, const filch_view *c)                                  \
    {                                                                                              \
        const real alpha = (real)f->alpha, beta = (real)f->beta;                                   \
        return lane->vendor->call.p##symm(lane->blas, f->side, f->fill, (int)c->rows,              \
                                          (int)c->cols, &alpha, a->ptr, (int)a->ld, b->ptr,        \
                                          (int)b->ld, &beta, c->ptr, (int)c->ld);                  \
    }                                                                                              \
    static int p##_scale_rows(const fl_vendor_lane *lane, const filch_view *a, const void *x,      \
                              const filch_view *c)                                                 \
    {                                                                                              \
        return lane->vendor->call.p##dgmm(lane->blas, FL_VENDOR_SIDE_LEFT, (int)c->rows,           \
                                          (int)c->cols, a->ptr, (int)a->ld, x, 1, c->ptr,          \
                                          (int)c->ld);                                             \
    }
/* NOLINTEND(bugprone-macro-parentheses) */

OPERATIONS(d, double)
OPERATIONS(s, float)

/* The precision is that of the written view. */
#define EITHER(written, operation, ...)                                             \
    (is_empty(written) ? 0                                                          \
                       : fl_vendor_blas_code((written)->element == sizeof(double)   \
                                                 ? d_##operation(lane, __VA_ARGS__) \
                                                 : s_##operation(lane, __VA_ARGS__)))

int fl_vendor_blas_gemm(fl_vendor_lane *lane, const fl_vendor_form *form, const filch_view *a,
                        const filch_view *b, const filch_view *c)
{
    if (form->compute != FL_VENDOR_COMPUTE_SINGLE && c->element == sizeof(float))
        return is_empty(c) ? 0 : fl_vendor_blas_code(gemm_rounded(lane, form, a, b, c));
    return EITHER(c, gemm, form, a, b, c);
}

int fl_vendor_blas_gemv(fl_vendor_lane *lane, const fl_vendor_form *form, const filch_view *a,
                        const filch_view *b, const filch_view *c)
{
    return EITHER(c, gemv, form, a, b, c);
}

int fl_vendor_blas_trsv(fl_vendor_lane *lane, const fl_vendor_form *form, const filch_view *a,
                        const filch_view *b)
{
    return EITHER(b, trsv, form, a, b);
}

int fl_vendor_blas_scale(fl_vendor_lane *lane, double factor, const filch_view *a)
{
    return EITHER(a, scale, factor, a);
}

int fl_vendor_blas_trsm(fl_vendor_lane *lane, const fl_vendor_form *form, const filch_view *a,
                        const filch_view *b)
{
    return EITHER(b, trsm, form, a, b);
}

int fl_vendor_blas_trmm(fl_vendor_lane *lane, const fl_vendor_form *form, const filch_view *a,
                        const filch_view *b, const filch_view *c)
{
    return EITHER(c, trmm, form, a, b, c);
}

int fl_vendor_blas_syrk(fl_vendor_lane *lane, const fl_vendor_form *form, const filch_view *a,
                        const filch_view *c)
{
    return EITHER(c, syrk, form, a, c);
}

int fl_vendor_blas_symm(fl_vendor_lane *lane, const fl_vendor_form *form, const filch_view *a,
                        const filch_view *b, const filch_view *c)
{
    return EITHER(c, symm, form, a, b, c);
}

int fl_vendor_blas_scale_rows(fl_vendor_lane *lane, const filch_view *a, const void *x,
                              const filch_view *c)
{
    return EITHER(c, scale_rows, a, x, c);
}
