/* SPDX-License-Identifier: Apache-2.0 */
/* Cholesky factorization by tiles, right-looking, of either triangle (A. Buttari et al., "A class
 * of parallel tiled linear algebra algorithms for multicore architectures", Parallel Computing 35,
 * 2009), and the solution by it. */
#include "kernels/dense/inverses.h"

/* Tile (i, k) of L, or (k, i) of U. */
static filch_access factor(int fill, const fl_tiled *a, uint32_t i, uint32_t k,
                           filch_access_mode mode)
{
    return fl_tile(a, fill == FL_VENDOR_FILL_LOWER ? FL_VENDOR_OP_N : FL_VENDOR_OP_T, i, k, mode);
}

static void panel(fl_tile_graph *g, int fill, const fl_tiled *a, filch_data *infos, uint32_t k)
{
    bool is_lower = fill == FL_VENDOR_FILL_LOWER;
    const fl_vendor_form diagonal = {.fill = fill};
    const fl_vendor_form solve = {.side = is_lower ? FL_VENDOR_SIDE_RIGHT : FL_VENDOR_SIDE_LEFT,
                                  .fill = fill,
                                  .op_a = FL_VENDOR_OP_T,
                                  .diagonal = FL_VENDOR_NON_UNIT,
                                  .alpha = 1};
    const filch_access pivot[] = {factor(fill, a, k, k, FILCH_READWRITE),
                                  {.data = infos, .row = k, .mode = FILCH_WRITE}};
    fl_tile_add(g, FL_TILE_POTRF, &diagonal, pivot, 2);
    for (uint32_t i = k + 1; i < a->rows; i++)
        fl_tile_add(g, FL_TILE_TRSM, &solve,
                    (filch_access[]){factor(fill, a, k, k, FILCH_READ),
                                     factor(fill, a, i, k, FILCH_READWRITE)},
                    2);
}

static void update(fl_tile_graph *g, int fill, const fl_tiled *a, uint32_t k, uint32_t j)
{
    bool is_lower = fill == FL_VENDOR_FILL_LOWER;
    const fl_vendor_form form = {.fill = fill,
                                 .op_a = is_lower ? FL_VENDOR_OP_N : FL_VENDOR_OP_T,
                                 .op_b = is_lower ? FL_VENDOR_OP_T : FL_VENDOR_OP_N,
                                 .alpha = -1,
                                 .beta = 1};
    const filch_access by = factor(fill, a, j, k, FILCH_READ);
    fl_tile_add(g, FL_TILE_SYRK, &form,
                (filch_access[]){by, factor(fill, a, j, j, FILCH_READWRITE)}, 2);
    for (uint32_t i = j + 1; i < a->rows; i++) {
        const filch_access with = factor(fill, a, i, k, FILCH_READ);
        const filch_access to = factor(fill, a, i, j, FILCH_READWRITE);
        fl_tile_add(g, FL_TILE_GEMM, &form,
                    (filch_access[]){is_lower ? with : by, is_lower ? by : with, to}, 3);
    }
}

void fl_tiles_potrf(fl_tile_graph *g, int fill, const fl_tiled *a, filch_data *infos)
{
    for (uint32_t k = 0; k < a->rows; k++) {
        panel(g, fill, a, infos, k);
        for (uint32_t j = k + 1; j < a->rows; j++)
            update(g, fill, a, k, j);
    }
}

void fl_tiles_potrs(fl_tile_graph *g, int fill, const fl_tiled *a, const fl_tiled *b)
{
    bool is_lower = fill == FL_VENDOR_FILL_LOWER;
    fl_vendor_form form = {.side = FL_VENDOR_SIDE_LEFT,
                           .fill = fill,
                           .op_a = is_lower ? FL_VENDOR_OP_N : FL_VENDOR_OP_T,
                           .diagonal = FL_VENDOR_NON_UNIT,
                           .alpha = 1};
    filch_data *inverses = fl_inverses_add(g, &form, a, 2 * b->cols * b->tile_cols);
    fl_inverses_trsm(g, &form, a, b, inverses);
    form.op_a = fl_tile_flip(form.op_a);
    fl_inverses_trsm(g, &form, a, b, inverses);
}
