/* SPDX-License-Identifier: Apache-2.0 */
/* Triangular products and solves in place. op(A) is lower or upper; from the left, rows of B are
 * taken in the order in which op(A) lets them be, from the right columns. */
#include "kernels/dense/inverses.h"

/* How a triangle meets B. */
typedef struct meeting {
    const fl_vendor_form *form;
    const fl_tiled *a, *b;
    bool is_left;
    bool is_forward; /* from the first tile of the diagonal to the last */
} meeting;

static bool is_lower(const fl_vendor_form *form)
{
    return (form->fill == FL_VENDOR_FILL_LOWER) == (form->op_a == FL_VENDOR_OP_N);
}

/* Tile k of the diagonal on B's row or column k, of which `at` is the other index. */
static void on_diagonal(fl_tile_graph *g, fl_tile_op op, const meeting *m, double alpha, uint32_t k,
                        uint32_t at)
{
    fl_vendor_form own = *m->form;
    own.alpha = alpha;
    const filch_access accesses[] = {
        fl_tile(m->a, FL_VENDOR_OP_N, k, k, FILCH_READ),
        fl_tile(m->b, FL_VENDOR_OP_N, m->is_left ? k : at, m->is_left ? at : k, FILCH_READWRITE)};
    fl_tile_add(g, op, &own, accesses, 2);
}

/* B's row `to` += alpha op(A)(to, from) of row `from`; from the right, columns. */
static void beside(fl_tile_graph *g, const meeting *m, double alpha, double beta, uint32_t from,
                   uint32_t to, uint32_t at)
{
    const fl_vendor_form own = {.op_a = m->is_left ? m->form->op_a : FL_VENDOR_OP_N,
                                .op_b = m->is_left ? FL_VENDOR_OP_N : m->form->op_a,
                                .alpha = alpha,
                                .beta = beta};
    const filch_access a = m->is_left ? fl_tile(m->a, m->form->op_a, to, from, FILCH_READ)
                                      : fl_tile(m->a, m->form->op_a, from, to, FILCH_READ);
    const filch_access b =
        fl_tile(m->b, FL_VENDOR_OP_N, m->is_left ? from : at, m->is_left ? at : from, FILCH_READ);
    const filch_access c =
        fl_tile(m->b, FL_VENDOR_OP_N, m->is_left ? to : at, m->is_left ? at : to, FILCH_READWRITE);
    if (m->is_left)
        fl_tile_add(g, FL_TILE_GEMM, &own, (filch_access[]){a, b, c}, 3);
    else
        fl_tile_add(g, FL_TILE_GEMM, &own, (filch_access[]){b, a, c}, 3);
}

static meeting meet(const fl_vendor_form *form, const fl_tiled *a, const fl_tiled *b)
{
    return (meeting){form, a, b, form->side == FL_VENDOR_SIDE_LEFT, false};
}

/* The tile of the diagonal that is taken as number `step`. */
static uint32_t taken(const meeting *m, uint32_t step)
{
    return m->is_forward ? step : m->a->rows - 1 - step;
}

/* A row gets its product when all rows that need its old contents have theirs. */
void fl_tiles_trmm(fl_tile_graph *g, const fl_vendor_form *form, const fl_tiled *a,
                   const fl_tiled *b)
{
    meeting m = meet(form, a, b);
    uint32_t count = a->rows, others = m.is_left ? b->cols : b->rows;
    m.is_forward = is_lower(form) != m.is_left;
    for (uint32_t step = 0; step < count; step++)
        for (uint32_t at = 0; at < others; at++) {
            on_diagonal(g, FL_TILE_TRMM, &m, form->alpha, taken(&m, step), at);
            for (uint32_t rest = step + 1; rest < count; rest++)
                beside(g, &m, form->alpha, 1, taken(&m, rest), taken(&m, step), at);
        }
}

static void solve_on_diagonal(fl_tile_graph *g, const meeting *m, double alpha, uint32_t k,
                              uint32_t at, filch_data *inverses)
{
    fl_vendor_form own = *m->form;
    own.alpha = alpha;
    if (inverses)
        fl_inverses_add_solve(g, &own, fl_tile(m->a, FL_VENDOR_OP_N, k, k, FILCH_READ), inverses, k,
                              m->b,
                              fl_tile(m->b, FL_VENDOR_OP_N, m->is_left ? k : at,
                                      m->is_left ? at : k, FILCH_READWRITE));
    else
        on_diagonal(g, FL_TILE_TRSM, m, alpha, k, at);
}

/* A row that is solved for leaves those after it. The first step brings alpha to all rows. */
void fl_inverses_trsm(fl_tile_graph *g, const fl_vendor_form *form, const fl_tiled *a,
                      const fl_tiled *b, filch_data *inverses)
{
    meeting m = meet(form, a, b);
    uint32_t count = a->rows, others = m.is_left ? b->cols : b->rows;
    m.is_forward = is_lower(form) == m.is_left;
    for (uint32_t step = 0; step < count; step++) {
        double alpha = step == 0 ? form->alpha : 1;
        for (uint32_t at = 0; at < others; at++)
            solve_on_diagonal(g, &m, alpha, taken(&m, step), at, inverses);
        for (uint32_t rest = step + 1; rest < count; rest++)
            for (uint32_t at = 0; at < others; at++)
                beside(g, &m, -1, alpha, taken(&m, step), taken(&m, rest), at);
    }
}

void fl_tiles_trsm(fl_tile_graph *g, const fl_vendor_form *form, const fl_tiled *a,
                   const fl_tiled *b)
{
    bool is_left = form->side == FL_VENDOR_SIDE_LEFT;
    uint64_t others = is_left ? b->cols * b->tile_cols : b->rows * b->tile_rows;
    fl_inverses_trsm(g, form, a, b, fl_inverses_add(g, form, a, others));
}
