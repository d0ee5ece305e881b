/* SPDX-License-Identifier: Apache-2.0 */
/* The task graph of a Cholesky factorization by tiles, for whoever has codelets for its tasks. */
#ifndef FL_KERNELS_DENSE_DEFINITE_H
#define FL_KERNELS_DENSE_DEFINITE_H

#include "kernels/dense/tiles.h"

/* Least and largest side of tiles whose diagonal ones are inverted, so that the tiles below are
 * multiplied by the inverses. LEAST is that of filch's own kernel (filch/kernels.h). Smaller tiles
 * are solved for as fast as they are multiplied, launches included; larger ones are too few. */
#define FL_CHOLESKY_INVERTED_LEAST 256
#define FL_CHOLESKY_INVERTED_MOST 4096

/* Adds a task of step k, whose last operand is the tile (i, j) of L:
 * - FL_TILE_POTRF: (k, k) is factored.
 * - FL_TILE_TRSM: (i, k) is solved for by (k, k).
 * - FL_TILE_SYRK: (j, j) is updated by (j, k).
 * - FL_TILE_GEMM: (i, j) is updated by (i, k) and (j, k). */
typedef filch_status (*fl_cholesky_add)(void *user, fl_tile_op op, uint32_t i, uint32_t j,
                                        uint32_t k);

/* Adds the tasks of a matrix of so many rows of tiles, step by step, until one cannot be added;
 * returns its status. */
filch_status fl_cholesky_each(uint32_t rows, fl_cholesky_add add, void *user);

#endif
