/* SPDX-License-Identifier: Apache-2.0 */
/* Private to kernels/dense: solves by inverses of blocks on a triangle's diagonal, which GPUs
 * multiply by several times as fast as they solve (as in J. Dongarra et al., "The design and
 * performance of batched BLAS on modern high-performance computing systems", Procedia Computer
 * Science 108, 2017, and MAGMA).
 *
 * The residual after a product with an inverse may exceed that of a substitution by the block's
 * condition number. So the residual is solved for, once, which makes it as small as BLAS's
 * (N. Higham, "Accuracy and stability of numerical algorithms", 2002, chapter 12), unless the block
 * is singular to working precision: the smaller blocks are, the fewer are that.
 *
 * A tile of the diagonal has one task that makes the blocks, and every tile of right sides one that
 * solves. Below each inverse is its triangle without what the matrix has beyond it; both are of
 * the lower triangle, or of the upper one transposed. */
#ifndef FL_KERNELS_DENSE_INVERSES_H
#define FL_KERNELS_DENSE_INVERSES_H

#include "kernels/dense/place.h"
#include "kernels/dense/tiles.h"

/* Whether solutions for so many right sides, of all solves by a triangle of this order taken
 * together, are made sooner by its inverse, on GPUs. The inverse takes a third of order^3
 * operations, a product with it order^2 a right side, several times as fast as a solution. */
static inline bool fl_inverses_pay(uint64_t order, uint64_t cols)
{
    return 2 * cols >= order;
}

/* Adds the tasks that invert, for solutions of so many right sides in all; form->fill and diagonal
 * count. Null, and nothing is added: there are no GPUs, solving is as fast (fl_inverses_pay()), or
 * the graph has failed. */
filch_data *fl_inverses_add(fl_tile_graph *g, const fl_vendor_form *form, const fl_tiled *a,
                            uint64_t cols);
/* As fl_tiles_trsm(), by those inverses where they are not null. */
void fl_inverses_trsm(fl_tile_graph *g, const fl_vendor_form *form, const fl_tiled *a,
                      const fl_tiled *b, filch_data *inverses);
/* FL_TILE_SOLVE of the tile of the diagonal, of number k, and of a tile of B. */
void fl_inverses_add_solve(fl_tile_graph *g, const fl_vendor_form *form, filch_access a,
                           filch_data *inverses, uint32_t k, const fl_tiled *b_tiles,
                           filch_access b);

/* Order of a block: at this order GPUs are near their best in products with many right sides. */
#define FL_INVERTED 256

/* FL_TILE_INVERT: A, blocks side by side. */
int fl_inverses_make(const fl_place *on, const fl_vendor_form *form, const filch_view *views);
/* FL_TILE_SOLVE: A, blocks, B, scratch. On the host by BLAS's trsm. */
int fl_inverses_solve(const fl_place *on, const fl_vendor_form *form, const filch_view *views);

#endif
