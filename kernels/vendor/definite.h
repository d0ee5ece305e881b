/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FL_KERNELS_VENDOR_DEFINITE_H
#define FL_KERNELS_VENDOR_DEFINITE_H

#include "kernels/vendor/vendor.h"

/* As fl_vendor_potrf(), of the triangle `fill`: A := L, or U with A = U' U. */
int fl_vendor_potrf_fill(fl_vendor_lane *lane, int fill, const filch_view *a, int32_t *info);

#endif
