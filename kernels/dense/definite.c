/* SPDX-License-Identifier: Apache-2.0 */
/* Cholesky factorization by tiles, right-looking, of either triangle (A. Buttari et al., "A class
 * of parallel tiled linear algebra algorithms for multicore architectures", Parallel Computing 35,
 * 2009), and the solution by it. */
#include "kernels/dense/inverses.h"

#include "filch/kernels.h"

/* Smaller tiles are solved for as fast as they are multiplied, launches included; larger ones are
 * too few (bench/workloads/cholesky.c). */
#define OWN_LEAST 256
#define OWN_MOST 4096

/* Tile (i, k) of L, or (k, i) of U. */
static filch_access factor(int fill, const fl_tiled *a, uint32_t i, uint32_t k,
                           filch_access_mode mode)
{
    return fl_tile(a, fill == FL_VENDOR_FILL_LOWER ? FL_VENDOR_OP_N : FL_VENDOR_OP_T, i, k, mode);
}

/* Whether filch's kernel factors diagonal tiles, and the tiles below are multiplied by inverses. */
static bool has_own(const fl_tile_graph *g, int fill, const fl_tiled *a)
{
    return fill == FL_VENDOR_FILL_LOWER && g->tiles->panels[g->is_single] &&
           a->tile_rows >= OWN_LEAST && a->tile_rows <= OWN_MOST;
}

uint32_t fl_tiles_potrf_words(const fl_tile_graph *g, int fill, const fl_tiled *a)
{
    return has_own(g, fill, a) ? (uint32_t)FILCH_POTRF_TRTRI_STATE(a->tile_rows) : 1;
}

static filch_data *make_inverses(fl_tile_graph *g, const fl_tiled *a)
{
    filch_data_desc desc = FILCH_DATA_DESC_INIT;
    desc.element = g->is_single ? sizeof(float) : sizeof(double);
    desc.rows = a->tile_rows;
    desc.tile_cols = a->tile_cols;
    desc.cols = a->cols * a->tile_cols;
    desc.label = "inverses";
    desc.flags = FILCH_DATA_NO_BUFFER;
    return fl_tile_keep(g, &desc);
}

static void own_panel(fl_tile_graph *g, const fl_tiled *a, filch_data *infos, filch_data *inverses,
                      uint32_t k)
{
    const fl_vendor_form form = {.alpha = 1};
    uint64_t bytes = a->tile_rows * a->tile_cols * (g->is_single ? sizeof(float) : sizeof(double));
    const filch_access pivot[] = {fl_tile(a, FL_VENDOR_OP_N, k, k, FILCH_READWRITE),
                                  {.data = infos, .row = k, .mode = FILCH_READWRITE},
                                  {.data = inverses, .col = k, .mode = FILCH_WRITE}};
    fl_tile_add_panel(g, k + 1 < a->rows, pivot);
    for (uint32_t i = k + 1; i < a->rows; i++)
        fl_tile_add(g, FL_TILE_MULTIPLY, &form,
                    (filch_access[]){{.data = inverses, .col = k, .mode = FILCH_READ},
                                     fl_tile(a, FL_VENDOR_OP_N, i, k, FILCH_READWRITE),
                                     {.mode = FILCH_SCRATCH, .bytes = bytes}},
                    3);
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
    filch_data *inverses = has_own(g, fill, a) ? make_inverses(g, a) : NULL;
    for (uint32_t k = 0; k < a->rows; k++) {
        if (inverses)
            own_panel(g, a, infos, inverses, k);
        else
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
