/* SPDX-License-Identifier: Apache-2.0 */
/* Factorizations of panels by cuSOLVER. Integers and scalars beside the matrix are in device
 * memory; info receives LAPACK's value, and its positive values are no failure of the call. */
#ifndef FL_KERNELS_VENDOR_PANEL_H
#define FL_KERNELS_VENDOR_PANEL_H

#include "kernels/vendor/vendor.h"

/* A := P L U with partial pivoting; pivots are rows of the panel, from 1, as many as the smaller
 * side. */
int fl_vendor_getrf(fl_vendor_lane *lane, const filch_view *a, int32_t *pivots, int32_t *info);
/* Row k is exchanged with row pivots[k], for k from 1 to count, or back from count to 1. */
int fl_vendor_laswp(fl_vendor_lane *lane, const filch_view *a, const int32_t *pivots, size_t count,
                    bool is_back);
/* A := Q R, in LAPACK's layout. */
int fl_vendor_geqrf(fl_vendor_lane *lane, const filch_view *a, void *tau, int32_t *info);
/* C := op(Q) C, or C op(Q), of a factorization's reflectors, one a column of A. */
int fl_vendor_ormqr(fl_vendor_lane *lane, int side, int op, const filch_view *a, const void *tau,
                    const filch_view *c, int32_t *info);

#endif
