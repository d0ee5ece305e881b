/* SPDX-License-Identifier: Apache-2.0 */
/* Products: a tile of C is made by a chain of tasks, one for each step of the inner dimension.
 * Columns of C are taken in blocks, and each block step by step, which needs few tiles of A and B
 * at once (R. van de Geijn, J. Watts, "SUMMA: scalable universal matrix multiplication algorithm",
 * Concurrency 9(4), 1997). */
#include "kernels/dense/tiles.h"

/* Tiles of C in a block: those that are ready at once are not more than filch chooses among. */
#define CHAINS_MOST 64

static uint32_t block_columns(const fl_tiled *c)
{
    uint32_t half = (c->cols + 1) / 2;
    uint32_t most = half * c->rows <= CHAINS_MOST ? half : CHAINS_MOST / c->rows;
    return most > 0 ? most : 1;
}

/* Adds step l of tile (i, j). */
typedef void (*step_fn)(fl_tile_graph *g, const fl_vendor_form *form, const fl_tiled *const m[3],
                        uint32_t i, uint32_t j, uint32_t l);

static void each_step(fl_tile_graph *g, const fl_vendor_form *form, const fl_tiled *const m[3],
                      uint32_t steps, step_fn add)
{
    uint32_t columns = block_columns(m[2]);
    for (uint32_t first = 0; first < m[2]->cols; first += columns, g->priority--)
        for (uint32_t l = 0; l < steps; l++)
            for (uint32_t j = first; j < m[2]->cols && j < first + columns; j++)
                for (uint32_t i = 0; i < m[2]->rows; i++)
                    add(g, form, m, i, j, l);
}

/* C is scaled by the first step alone. */
static fl_vendor_form form_of(const fl_vendor_form *form, uint32_t l)
{
    fl_vendor_form own = *form;
    own.beta = l == 0 ? form->beta : 1;
    return own;
}

static filch_access written(const fl_tiled *c, const fl_vendor_form *form, uint32_t i, uint32_t j)
{
    return fl_tile(c, FL_VENDOR_OP_N, i, j, form->beta == 0 ? FILCH_WRITE : FILCH_READWRITE);
}

static void gemm_step(fl_tile_graph *g, const fl_vendor_form *form, const fl_tiled *const m[3],
                      uint32_t i, uint32_t j, uint32_t l)
{
    fl_vendor_form own = form_of(form, l);
    const filch_access accesses[] = {fl_tile(m[0], form->op_a, i, l, FILCH_READ),
                                     fl_tile(m[1], form->op_b, l, j, FILCH_READ),
                                     written(m[2], &own, i, j)};
    fl_tile_add(g, FL_TILE_GEMM, &own, accesses, 3);
}

void fl_tiles_gemm(fl_tile_graph *g, const fl_vendor_form *form, const fl_tiled *a,
                   const fl_tiled *b, const fl_tiled *c)
{
    const fl_tiled *const m[] = {a, b, c};
    each_step(g, form, m, form->op_a == FL_VENDOR_OP_N ? a->cols : a->rows, gemm_step);
}

/* Beyond its triangle a tile of the diagonal stays as it is. */
static void syrk_step(fl_tile_graph *g, const fl_vendor_form *form, const fl_tiled *const m[3],
                      uint32_t i, uint32_t j, uint32_t l)
{
    fl_vendor_form own = form_of(form, l);
    const filch_access accesses[] = {fl_tile(m[0], form->op_a, i, l, FILCH_READ),
                                     fl_tile(m[2], FL_VENDOR_OP_N, i, i, FILCH_READWRITE)};
    if (i == j)
        fl_tile_add(g, FL_TILE_SYRK, &own, accesses, 2);
    else if ((i > j) == (form->fill == FL_VENDOR_FILL_LOWER))
        gemm_step(g, form, m, i, j, l);
}

void fl_tiles_syrk(fl_tile_graph *g, const fl_vendor_form *form, const fl_tiled *a,
                   const fl_tiled *c)
{
    const fl_tiled *const m[] = {a, a, c};
    fl_vendor_form own = *form;
    own.op_b = fl_tile_flip(form->op_a);
    each_step(g, &own, m, form->op_a == FL_VENDOR_OP_N ? a->cols : a->rows, syrk_step);
}

/* Tiles beyond the stored triangle are the transposed ones within. */
static void symm_step(fl_tile_graph *g, const fl_vendor_form *form, const fl_tiled *const m[3],
                      uint32_t i, uint32_t j, uint32_t l)
{
    bool is_left = form->side == FL_VENDOR_SIDE_LEFT, is_lower = form->fill == FL_VENDOR_FILL_LOWER;
    uint32_t row = is_left ? i : l, col = is_left ? l : j;
    fl_vendor_form own = form_of(form, l);
    int op = row == col || (row > col) == is_lower ? FL_VENDOR_OP_N : FL_VENDOR_OP_T;
    const filch_access a = fl_tile(m[0], op, row, col, FILCH_READ);
    const filch_access b =
        fl_tile(m[1], FL_VENDOR_OP_N, is_left ? l : i, is_left ? j : l, FILCH_READ);
    const filch_access c = written(m[2], &own, i, j);
    own.op_a = is_left ? op : FL_VENDOR_OP_N;
    own.op_b = is_left ? FL_VENDOR_OP_N : op;
    if (row == col)
        fl_tile_add(g, FL_TILE_SYMM, &own, (filch_access[]){a, b, c}, 3);
    else if (is_left)
        fl_tile_add(g, FL_TILE_GEMM, &own, (filch_access[]){a, b, c}, 3);
    else
        fl_tile_add(g, FL_TILE_GEMM, &own, (filch_access[]){b, a, c}, 3);
}

void fl_tiles_symm(fl_tile_graph *g, const fl_vendor_form *form, const fl_tiled *a,
                   const fl_tiled *b, const fl_tiled *c)
{
    const fl_tiled *const m[] = {a, b, c};
    each_step(g, form, m, a->rows, symm_step);
}
