/* SPDX-License-Identifier: Apache-2.0 */
/* Cholesky factorization by tiles, right-looking, of either triangle (A. Buttari et al., "A class
 * of parallel tiled linear algebra algorithms for multicore architectures", Parallel Computing 35,
 * 2009), and the solution by it. */
#include "kernels/dense/definite.h"

#include "kernels/dense/inverses.h"

#include "filch/kernels.h"

/* Whether filch's kernel factors diagonal tiles, and the tiles below are multiplied by inverses. */
static bool has_own(const fl_tile_graph *g, int fill, const fl_tiled *a)
{
    return fill == FL_VENDOR_FILL_LOWER && g->tiles->panels[g->is_single] &&
           a->tile_rows >= FL_CHOLESKY_INVERTED_LEAST && a->tile_rows <= FL_CHOLESKY_INVERTED_MOST;
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

/* A factorization under construction. */
typedef struct cholesky {
    fl_tile_graph *graph;
    int fill;
    const fl_tiled *a;
    filch_data *infos;
    filch_data *inverses; /* of the diagonal tiles; null: there are none */
} cholesky;

/* Tile (i, k) of L, or (k, i) of U. */
static filch_access factor(const cholesky *c, uint32_t i, uint32_t k, filch_access_mode mode)
{
    return fl_tile(c->a, c->fill == FL_VENDOR_FILL_LOWER ? FL_VENDOR_OP_N : FL_VENDOR_OP_T, i, k,
                   mode);
}

static void add_panel(const cholesky *c, uint32_t k)
{
    const filch_access own[] = {factor(c, k, k, FILCH_READWRITE),
                                {.data = c->infos, .row = k, .mode = FILCH_READWRITE},
                                {.data = c->inverses, .col = k, .mode = FILCH_WRITE}};
    const filch_access pivot[] = {factor(c, k, k, FILCH_READWRITE),
                                  {.data = c->infos, .row = k, .mode = FILCH_WRITE}};
    const fl_vendor_form form = {.fill = c->fill};
    if (c->inverses)
        fl_tile_add_panel(c->graph, k + 1 < c->a->rows, own);
    else
        fl_tile_add(c->graph, FL_TILE_POTRF, &form, pivot, 2);
}

static void add_multiply(const cholesky *c, uint32_t i, uint32_t k)
{
    const fl_vendor_form form = {.alpha = 1};
    const filch_access accesses[] = {
        {.data = c->inverses, .col = k, .mode = FILCH_READ},
        factor(c, i, k, FILCH_READWRITE),
        {.mode = FILCH_SCRATCH,
         .bytes = c->a->tile_rows * c->a->tile_cols *
                  (c->graph->is_single ? sizeof(float) : sizeof(double))}};
    fl_tile_add(c->graph, FL_TILE_MULTIPLY, &form, accesses, 3);
}

static void add_trsm(const cholesky *c, uint32_t i, uint32_t k)
{
    const fl_vendor_form form = {.side = c->fill == FL_VENDOR_FILL_LOWER ? FL_VENDOR_SIDE_RIGHT
                                                                         : FL_VENDOR_SIDE_LEFT,
                                 .fill = c->fill,
                                 .op_a = FL_VENDOR_OP_T,
                                 .diagonal = FL_VENDOR_NON_UNIT,
                                 .alpha = 1};
    const filch_access accesses[] = {factor(c, k, k, FILCH_READ), factor(c, i, k, FILCH_READWRITE)};
    fl_tile_add(c->graph, FL_TILE_TRSM, &form, accesses, 2);
}

static void add_update(const cholesky *c, fl_tile_op op, uint32_t i, uint32_t j, uint32_t k)
{
    bool is_lower = c->fill == FL_VENDOR_FILL_LOWER;
    const fl_vendor_form form = {.fill = c->fill,
                                 .op_a = is_lower ? FL_VENDOR_OP_N : FL_VENDOR_OP_T,
                                 .op_b = is_lower ? FL_VENDOR_OP_T : FL_VENDOR_OP_N,
                                 .alpha = -1,
                                 .beta = 1};
    const filch_access with = factor(c, i, k, FILCH_READ), by = factor(c, j, k, FILCH_READ);
    const filch_access to = factor(c, i, j, FILCH_READWRITE);
    if (op == FL_TILE_SYRK)
        fl_tile_add(c->graph, op, &form, (filch_access[]){by, to}, 2);
    else
        fl_tile_add(c->graph, op, &form,
                    (filch_access[]){is_lower ? with : by, is_lower ? by : with, to}, 3);
}

static filch_status add_task(void *user, fl_tile_op op, uint32_t i, uint32_t j, uint32_t k)
{
    const cholesky *c = user;
    if (op == FL_TILE_POTRF)
        add_panel(c, k);
    else if (op != FL_TILE_TRSM)
        add_update(c, op, i, j, k);
    else if (c->inverses)
        add_multiply(c, i, k);
    else
        add_trsm(c, i, k);
    return c->graph->status;
}

filch_status fl_cholesky_each(uint32_t rows, fl_cholesky_add add, void *user)
{
    filch_status status = FILCH_OK;
    for (uint32_t k = 0; k < rows && status == FILCH_OK; k++) {
        status = add(user, FL_TILE_POTRF, k, k, k);
        for (uint32_t i = k + 1; i < rows && status == FILCH_OK; i++)
            status = add(user, FL_TILE_TRSM, i, k, k);
        for (uint32_t j = k + 1; j < rows && status == FILCH_OK; j++) {
            status = add(user, FL_TILE_SYRK, j, j, k);
            for (uint32_t i = j + 1; i < rows && status == FILCH_OK; i++)
                status = add(user, FL_TILE_GEMM, i, j, k);
        }
    }
    return status;
}

void fl_tiles_potrf(fl_tile_graph *g, int fill, const fl_tiled *a, filch_data *infos)
{
    cholesky c = {g, fill, a, infos, has_own(g, fill, a) ? make_inverses(g, a) : NULL};
    (void)fl_cholesky_each(a->rows, add_task, &c); /* the graph keeps the status */
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
