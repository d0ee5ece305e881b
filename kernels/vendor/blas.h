/* SPDX-License-Identifier: Apache-2.0 */
/* BLAS 3 of cuBLAS on filch's views, in all its forms. Shapes are those of the views; an operand
 * without rows or columns is allowed, and then nothing may be done at all. Codes as in vendor.h. */
#ifndef FL_KERNELS_VENDOR_BLAS_H
#define FL_KERNELS_VENDOR_BLAS_H

#include "kernels/vendor/vendor.h"

/* How a routine reads its operands. Members that a routine has not count for nothing. */
typedef struct fl_vendor_form {
    int side;       /* of the triangle or the symmetric matrix */
    int fill;       /* of it */
    int op_a, op_b; /* FL_VENDOR_OP_* */
    int diagonal;   /* FL_VENDOR_UNIT: ones, not read */
    double alpha, beta;
    int compute; /* of fl_vendor_blas_gemm() in single precision: FL_VENDOR_COMPUTE_* */
} fl_vendor_form;

/* How a product in single precision rounds its operands before it multiplies on tensor cores, and
 * cuBLAS's values for it (cublasComputeType_t). Sums are in single precision, and so is storage. */
enum {
    FL_VENDOR_COMPUTE_SINGLE = 0, /* not at all */
    FL_VENDOR_COMPUTE_FP16 = 74,
    FL_VENDOR_COMPUTE_BF16 = 75,
    FL_VENDOR_COMPUTE_TF32 = 77
};

/* C := alpha op(A) op(B) + beta C. */
int fl_vendor_blas_gemm(fl_vendor_lane *lane, const fl_vendor_form *form, const filch_view *a,
                        const filch_view *b, const filch_view *c);
/* The same of one column, B and C. */
int fl_vendor_blas_gemv(fl_vendor_lane *lane, const fl_vendor_form *form, const filch_view *a,
                        const filch_view *b, const filch_view *c);
/* B := alpha op(A)^-1 B, or alpha B op(A)^-1. */
int fl_vendor_blas_trsm(fl_vendor_lane *lane, const fl_vendor_form *form, const filch_view *a,
                        const filch_view *b);
/* B := op(A)^-1 B of one column; alpha and side are of no account. */
int fl_vendor_blas_trsv(fl_vendor_lane *lane, const fl_vendor_form *form, const filch_view *a,
                        const filch_view *b);
/* A := factor A; A is not read where the factor is 0. */
int fl_vendor_blas_scale(fl_vendor_lane *lane, double factor, const filch_view *a);
/* C := alpha op(A) B, or alpha B op(A); C may be B. */
int fl_vendor_blas_trmm(fl_vendor_lane *lane, const fl_vendor_form *form, const filch_view *a,
                        const filch_view *b, const filch_view *c);
/* C := alpha A A' + beta C, or alpha A' A + beta C where A is transposed; the triangle `fill`. */
int fl_vendor_blas_syrk(fl_vendor_lane *lane, const fl_vendor_form *form, const filch_view *a,
                        const filch_view *c);
/* C := alpha A B + beta C, or alpha B A + beta C. */
int fl_vendor_blas_symm(fl_vendor_lane *lane, const fl_vendor_form *form, const filch_view *a,
                        const filch_view *b, const filch_view *c);
/* T := the lower triangle of A, or the upper one transposed, with zeros above the diagonal; the
 * form's fill and diagonal count. Inverse := T^-1. Nothing of A is read but the triangle. */
int fl_vendor_invert_triangle(fl_vendor_lane *lane, const fl_vendor_form *form, const filch_view *a,
                              const filch_view *t, const filch_view *inverse);
/* C := diag(x) A; C may be A. */
int fl_vendor_blas_scale_rows(fl_vendor_lane *lane, const filch_view *a, const void *x,
                              const filch_view *c);

#endif
