/* SPDX-License-Identifier: Apache-2.0 */
/* cuBLAS and cuSOLVER, loaded at run time, as the work of enqueue codelets: one pair of handles for
 * each lane, shared by every codelet that runs there.
 *
 * Operations take filch's views, of doubles or of floats as the views' element size says. They
 * return 0, or a code for fl_vendor_explain() that is never above 0, so that it cannot be taken
 * for the row of a pivot. */
#ifndef FL_KERNELS_VENDOR_VENDOR_H
#define FL_KERNELS_VENDOR_VENDOR_H

#include "backend/cuda/driver/loader.h"
#include "filch/filch.h"

#include <stdbool.h>

/* Values of the libraries' enumerations. */
enum {
    FL_VENDOR_OP_N = 0,
    FL_VENDOR_OP_T = 1,
    FL_VENDOR_FILL_LOWER = 0,
    FL_VENDOR_FILL_UPPER = 1,
    FL_VENDOR_SIDE_LEFT = 0,
    FL_VENDOR_SIDE_RIGHT = 1,
    FL_VENDOR_NON_UNIT = 0,
    FL_VENDOR_UNIT = 1
};

typedef struct fl_vendor fl_vendor;
typedef struct fl_vendor_lane fl_vendor_lane;

/* FILCH_NOT_FOUND where a library is missing or too new for the driver, with its name in the text.
 * The libraries stay loaded after the last close: the CUDA runtime inside them does not stand being
 * unloaded. The driver must stay loaded as long as this. */
filch_status fl_vendor_open(const fl_cuda_library *driver, filch_error *error, fl_vendor **out);
/* After the runtimes whose lanes were opened; null is allowed. */
void fl_vendor_close(fl_vendor *vendor);
/* Seconds that the libraries took to load and their lanes to open, so far. */
double fl_vendor_seconds(const fl_vendor *vendor);
/* E.g. "cuBLAS 13.1.0"; empty before a lane was opened. */
const char *fl_vendor_text(const fl_vendor *vendor);

/* Lanes opened from now on take the memory that factorizations of this order work in, and
 * inversions if there are any, so that none is taken while tasks run. */
void fl_vendor_expect(fl_vendor *vendor, size_t element, size_t n, bool inverts);

/* The same for fl_vendor_getrf() and fl_vendor_geqrf() of m x n panels, and inverses of order n. */
void fl_vendor_expect_panel(fl_vendor *vendor, size_t element, size_t m, size_t n);

/* For filch_cuda_desc, with the vendor as user. */
int fl_vendor_lane_open(const filch_lane *lane, void *user, void **state);
void fl_vendor_lane_close(const filch_lane *lane, void *user, void *state);

/* For those who have a stream of their own in place of a filch lane; the context of the stream is
 * current. Null where a handle cannot be made. */
fl_vendor_lane *fl_vendor_lane_make(fl_vendor *vendor, void *context, void *stream,
                                    uint32_t multiprocessors);
void fl_vendor_lane_drop(fl_vendor_lane *lane);

/* A := L, lower triangle. info, of one int in device memory, receives 0 or the order of the minor
 * that is not positive. */
int fl_vendor_potrf(fl_vendor_lane *lane, const filch_view *a, const filch_view *info);
/* A := A L^-T. */
int fl_vendor_trsm(fl_vendor_lane *lane, const filch_view *l, const filch_view *a);
/* Inverse := L^-1, with zeros above the diagonal, in the view's first rows and columns; the
 * rest of the view stays as it is. All of L must be finite, also above the diagonal, where it
 * counts for nothing else. */
int fl_vendor_invert(fl_vendor_lane *lane, const filch_view *l, const filch_view *inverse);
/* A := A L', with room for A elsewhere; nothing above L's diagonal is read. */
int fl_vendor_multiply(fl_vendor_lane *lane, const filch_view *l, const filch_view *a, void *room);
/* C := C - A A', lower triangle. */
int fl_vendor_syrk(fl_vendor_lane *lane, const filch_view *a, const filch_view *c);
/* C := C - A B'. */
int fl_vendor_gemm_nt(fl_vendor_lane *lane, const filch_view *a, const filch_view *b,
                      const filch_view *c);
/* C := A B + keep C; keep is 0 or 1. */
int fl_vendor_gemm_nn(fl_vendor_lane *lane, const filch_view *a, const filch_view *b, int keep,
                      const filch_view *c);

/* To := from, both in device memory, as many elements as `to` has. */
int fl_vendor_copy(const fl_vendor_lane *lane, const filch_view *from, const filch_view *to);

/* Puts a code from above into words; false where it is none. */
bool fl_vendor_explain(int code, filch_error *error);

#endif
