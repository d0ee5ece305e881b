/* SPDX-License-Identifier: Apache-2.0 */
/* cuBLAS and cuSOLVER, loaded at run time, as the work of enqueue codelets: one pair of handles for
 * each lane, shared by every codelet that runs there.
 *
 * Operations take filch's views, of doubles or of floats as the views' element size says. They
 * return 0, or a code for bench_vendor_explain() that is never above 0, so that it cannot be taken
 * for the row of a pivot. */
#ifndef BENCH_VENDOR_H
#define BENCH_VENDOR_H

#include "filch/filch.h"
#include "offload/gpu.h"

#include <stdbool.h>

typedef struct bench_vendor bench_vendor;
typedef struct bench_vendor_lane bench_vendor_lane;

/* FILCH_NOT_FOUND where a library is missing or too new for the driver, with its name in the text.
 * The libraries stay loaded after the last close: the CUDA runtime inside them does not stand being
 * unloaded. The GPU must stay open as long as this. */
filch_status bench_vendor_open(const bench_gpu *gpu, filch_error *error, bench_vendor **out);
/* After the runtimes whose lanes were opened; null is allowed. */
void bench_vendor_close(bench_vendor *vendor);
/* Seconds that the libraries took to load and their lanes to open, so far. */
double bench_vendor_seconds(const bench_vendor *vendor);
/* E.g. "cuBLAS 13.1.0"; empty before a lane was opened. */
const char *bench_vendor_text(const bench_vendor *vendor);

/* Lanes opened from now on take the memory that factorizations of this order work in, and
 * inversions if there are any, so that none is taken while tasks run. */
void bench_vendor_expect(bench_vendor *vendor, size_t element, size_t n, bool inverts);

/* For filch_cuda_desc, with the vendor as user. */
int bench_vendor_lane_open(const filch_lane *lane, void *user, void **state);
void bench_vendor_lane_close(const filch_lane *lane, void *user, void *state);

/* For those who have a stream of their own in place of a filch lane; the context of the stream is
 * current. Null where a handle cannot be made. */
bench_vendor_lane *bench_vendor_lane_make(bench_vendor *vendor, void *context, void *stream,
                                          uint32_t multiprocessors);
void bench_vendor_lane_drop(bench_vendor_lane *lane);

/* A := L, lower triangle. info, of one int in device memory, receives 0 or the order of the minor
 * that is not positive. */
int bench_vendor_potrf(bench_vendor_lane *lane, const filch_view *a, const filch_view *info);
/* A := A L^-T. */
int bench_vendor_trsm(bench_vendor_lane *lane, const filch_view *l, const filch_view *a);
/* Inverse := L^-1, with zeros above the diagonal. All of L must be finite, also above the diagonal,
 * where it counts for nothing else. */
int bench_vendor_invert(bench_vendor_lane *lane, const filch_view *l, const filch_view *inverse);
/* A := A L', with room for A elsewhere; nothing above L's diagonal is read. */
int bench_vendor_multiply(bench_vendor_lane *lane, const filch_view *l, const filch_view *a,
                          void *room);
/* C := C - A A', lower triangle. */
int bench_vendor_syrk(bench_vendor_lane *lane, const filch_view *a, const filch_view *c);
/* C := C - A B'. */
int bench_vendor_gemm_nt(bench_vendor_lane *lane, const filch_view *a, const filch_view *b,
                         const filch_view *c);
/* C := A B + keep C; keep is 0 or 1. */
int bench_vendor_gemm_nn(bench_vendor_lane *lane, const filch_view *a, const filch_view *b,
                         int keep, const filch_view *c);

/* To := from, both in device memory, as many elements as `to` has. */
int bench_vendor_copy(const bench_vendor_lane *lane, const filch_view *from, const filch_view *to);

/* Puts a code from above into words; false where it is none. */
bool bench_vendor_explain(int code, filch_error *error);

#endif
