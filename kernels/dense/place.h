/* SPDX-License-Identifier: Apache-2.0 */
/* Private to kernels/dense: operations on views where a task runs, by the host's BLAS or by the
 * vendor's on the lane's stream, so that an algorithm is written once. Codes as in vendor.h. */
#ifndef FL_KERNELS_DENSE_PLACE_H
#define FL_KERNELS_DENSE_PLACE_H

#include "kernels/dense/host.h"
#include "kernels/vendor/blas.h"

typedef struct fl_place {
    const fl_dense_host *host;
    fl_vendor_lane *lane; /* null: the host */
} fl_place;

/* Rows and columns of a view from (row, col) on. */
static inline filch_view fl_part(const filch_view *view, uint64_t row, uint64_t col, uint64_t rows,
                                 uint64_t cols)
{
    filch_view part = *view;
    part.ptr = (char *)view->ptr + (row + col * view->ld) * view->element;
    part.rows = rows;
    part.cols = cols;
    return part;
}

/* As in kernels/vendor/blas.h. */
int fl_place_gemm(const fl_place *on, const fl_vendor_form *form, const filch_view *a,
                  const filch_view *b, const filch_view *c);
int fl_place_trsm(const fl_place *on, const fl_vendor_form *form, const filch_view *a,
                  const filch_view *b);
/* The same, by calls for one column where B has one. */
int fl_place_gemm_few(const fl_place *on, const fl_vendor_form *form, const filch_view *a,
                      const filch_view *b, const filch_view *c);
int fl_place_trsm_few(const fl_place *on, const fl_vendor_form *form, const filch_view *a,
                      const filch_view *b);
int fl_place_syrk(const fl_place *on, const fl_vendor_form *form, const filch_view *a,
                  const filch_view *c);
/* B := alpha op(A) B, or alpha B op(A). */
int fl_place_trmm(const fl_place *on, const fl_vendor_form *form, const filch_view *a,
                  const filch_view *b);
int fl_place_symm(const fl_place *on, const fl_vendor_form *form, const filch_view *a,
                  const filch_view *b, const filch_view *c);
/* As fl_vendor_potrf_fill(). */
int fl_place_potrf(const fl_place *on, int fill, const filch_view *a, int32_t *info);
/* C := diag(x) A; C may be A. */
int fl_place_scale_rows(const fl_place *on, const filch_view *a, const void *x,
                        const filch_view *c);
/* A := factor A; A is not read where the factor is 0. */
int fl_place_scale(const fl_place *on, double factor, const filch_view *a);
int fl_place_copy(const fl_place *on, const filch_view *from, const filch_view *to);
/* To := the lower triangle of A with ones on the diagonal, and zeros above. */
int fl_place_unit_lower(const fl_place *on, const filch_view *a, const filch_view *identity,
                        const filch_view *to);
/* To := the upper triangle of A, transposed, and zeros above. */
int fl_place_turned_upper(const fl_place *on, const filch_view *a, const filch_view *identity,
                          const filch_view *to);

/* Inverse := T^-1 of a lower triangle T with zeros above, which is as large as the identity. */
int fl_place_invert(const fl_place *on, const filch_view *t, const filch_view *identity,
                    const filch_view *inverse);
/* B := op(T) B for a triangle T, whose other triangle is 0. On GPUs room, as large as B, is worked
 * in: they multiply whole matrices several times faster. */
int fl_place_multiply(const fl_place *on, const fl_vendor_form *form, const filch_view *t,
                      const filch_view *b, const filch_view *room);

/* As fl_vendor_invert_triangle(). */
int fl_place_invert_triangle(const fl_place *on, const fl_vendor_form *form, const filch_view *a,
                             const filch_view *t, const filch_view *inverse);

/* As in kernels/vendor/panel.h. */
int fl_place_getrf(const fl_place *on, const filch_view *a, int32_t *pivots, int32_t *info);
int fl_place_laswp(const fl_place *on, const filch_view *a, const int32_t *pivots, size_t count,
                   bool is_back);
int fl_place_geqrf(const fl_place *on, const filch_view *a, void *tau, int32_t *info);

#endif
