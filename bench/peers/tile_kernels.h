/* SPDX-License-Identifier: Apache-2.0 */
/* What filch's Cholesky factorization puts on a GPU for a tile, on streams of another runtime's:
 * the same kernel for a diagonal tile and the same calls of cuBLAS for the others. So a comparison
 * is one of runtimes. The header names no type of CUDA's, as a peer may include cuda.h. */
#ifndef BENCH_TILE_KERNELS_H
#define BENCH_TILE_KERNELS_H

#include "filch/filch.h"

#include <stdbool.h>

typedef struct bench_tile_kernels bench_tile_kernels;
/* A stream of a GPU. Work on it runs in order; calls for it must not overlap. */
typedef struct bench_tile_lane bench_tile_lane;

/* For tiles of doubles with `most` rows and columns or fewer. What fl_cuda_load() and
 * fl_vendor_open() give where the driver or a library is missing. */
filch_status bench_tile_kernels_open(size_t most, filch_error *error, bench_tile_kernels **out);
/* After the last lane; null is allowed. */
void bench_tile_kernels_close(bench_tile_kernels *kernels);

/* On any thread to which the stream's context is current. */
filch_status bench_tile_lane_open(bench_tile_kernels *kernels, unsigned ordinal, void *stream,
                                  filch_error *error, bench_tile_lane **out);
/* On any thread; null is allowed. The stream must be idle. */
void bench_tile_lane_close(bench_tile_lane *lane);
/* On any thread, when the stream is idle: the row of the first pivot that was not positive, from 1,
 * or 0. */
filch_status bench_tile_lane_info(const bench_tile_lane *lane, int32_t *row, filch_error *error);

/* All of these only enqueue. They return 0, or a code for bench_tile_explain(). */

/* A := L, lower triangle; inverse := L^-1 where it is wanted, else it is room to work in. a->row is
 * the tile's first row in the matrix. */
int bench_tile_factor(const bench_tile_lane *lane, const filch_view *a, const filch_view *inverse,
                      bool inverts);
/* A := A L^-T, by the inverse of L. */
int bench_tile_multiply(const bench_tile_lane *lane, const filch_view *inverse,
                        const filch_view *a);
/* C := C - A A', lower triangle. */
int bench_tile_syrk(const bench_tile_lane *lane, const filch_view *a, const filch_view *c);
/* C := C - A B'. */
int bench_tile_gemm(const bench_tile_lane *lane, const filch_view *a, const filch_view *b,
                    const filch_view *c);
/* To := from. */
int bench_tile_copy(const bench_tile_lane *lane, const filch_view *from, const filch_view *to);

/* FILCH_BACKEND, with the code in words. */
filch_status bench_tile_explain(int code, filch_error *error);

#endif
