/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/dense/inverses.h"

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* --- Tasks --- */

filch_data *fl_inverses_add(fl_tile_graph *g, const fl_vendor_form *form, const fl_tiled *a,
                            uint64_t cols)
{
    uint64_t order = least(g->tiles->inverted, a->tile_rows);
    filch_data_desc desc = FILCH_DATA_DESC_INIT;
    if (order == 0 || !fl_inverses_pay(order, cols))
        return NULL;
    desc.element = g->is_single ? sizeof(float) : sizeof(double);
    desc.rows = 2 * order;
    desc.tile_cols = a->tile_cols;
    desc.cols = a->cols * a->tile_cols;
    desc.label = "inverses";
    desc.flags = FILCH_DATA_NO_BUFFER;
    filch_data *inverses = fl_tile_keep(g, &desc);
    for (uint32_t k = 0; k < a->rows; k++) {
        const filch_access accesses[] = {fl_tile(a, FL_VENDOR_OP_N, k, k, FILCH_READ),
                                         {.data = inverses, .col = k, .mode = FILCH_WRITE}};
        fl_tile_add(g, FL_TILE_INVERT, form, accesses, 2);
    }
    return inverses;
}

void fl_inverses_add_solve(fl_tile_graph *g, const fl_vendor_form *form, filch_access a,
                           filch_data *inverses, uint32_t k, const fl_tiled *b_tiles,
                           filch_access b)
{
    bool is_left = form->side == FL_VENDOR_SIDE_LEFT;
    uint64_t order = is_left ? b_tiles->tile_rows : b_tiles->tile_cols;
    uint64_t others = is_left ? b_tiles->tile_cols : b_tiles->tile_rows;
    uint64_t elements = least(g->tiles->inverted, order) * others;
    const filch_access accesses[] = {
        a,
        {.data = inverses, .col = k, .mode = FILCH_READ},
        b,
        {.mode = FILCH_SCRATCH,
         .bytes = elements * (g->is_single ? sizeof(float) : sizeof(double))}};
    fl_tile_add(g, FL_TILE_SOLVE, form, accesses, 4);
}

/* --- What they do --- */

/* A block's inverse, and below it the triangle. */
static filch_view inverse_of(const filch_view *blocks, uint64_t first, uint64_t order)
{
    return fl_part(blocks, 0, first, order, order);
}

static filch_view triangle_of(const filch_view *blocks, uint64_t first, uint64_t order)
{
    return fl_part(blocks, blocks->rows / 2, first, order, order);
}

int fl_inverses_make(const fl_place *on, const fl_vendor_form *form, const filch_view *views)
{
    const filch_view *a = &views[0], *blocks = &views[1];
    uint64_t most = blocks->rows / 2;
    int code = 0;
    for (uint64_t first = 0; first < a->rows && code == 0; first += most) {
        uint64_t order = least(most, a->rows - first);
        const filch_view block = fl_part(a, first, first, order, order);
        const filch_view inverse = inverse_of(blocks, first, order);
        const filch_view triangle = triangle_of(blocks, first, order);
        code = fl_place_invert_triangle(on, form, &block, &triangle, &inverse);
    }
    return code;
}

/* A solve of a tile under way. */
typedef struct solve {
    const fl_place *on;
    const fl_vendor_form *form;
    const filch_view *a, *blocks, *b;
    void *room;
    bool is_left;
} solve;

/* Rows of B, or from the right columns. */
static filch_view lines_of(const solve *s, uint64_t first, uint64_t count)
{
    return s->is_left ? fl_part(s->b, first, 0, count, s->b->cols)
                      : fl_part(s->b, 0, first, s->b->rows, count);
}

/* To := alpha t from + beta to, or from the right alpha from t + beta to. */
static int add_product(const solve *s, double alpha, const filch_view *t, const filch_view *from,
                       double beta, const filch_view *to)
{
    int op = s->form->fill == FL_VENDOR_FILL_LOWER ? s->form->op_a : fl_tile_flip(s->form->op_a);
    const fl_vendor_form left = {.op_a = op, .alpha = alpha, .beta = beta};
    const fl_vendor_form right = {.op_b = op, .alpha = alpha, .beta = beta};
    return s->is_left ? fl_place_gemm(s->on, &left, t, from, to)
                      : fl_place_gemm(s->on, &right, from, t, to);
}

/* The lines of a block: by its inverse, and their residual by it. */
static int solve_block(const solve *s, double alpha, uint64_t first, uint64_t count)
{
    const filch_view inverse = inverse_of(s->blocks, first, count);
    const filch_view triangle = triangle_of(s->blocks, first, count);
    const filch_view lines = lines_of(s, first, count);
    filch_view residual = lines;
    residual.ptr = s->room;
    residual.ld = lines.rows;
    int code = fl_place_copy(s->on, &lines, &residual);
    if (code == 0)
        code = add_product(s, alpha, &inverse, &residual, 0, &lines);
    if (code == 0)
        code = add_product(s, -1, &triangle, &lines, alpha, &residual);
    return code ? code : add_product(s, 1, &inverse, &residual, 1, &lines);
}

/* Lines not solved for := beta times themselves, less what those that are bring to them. */
static int update(const solve *s, double beta, uint64_t first, uint64_t count, uint64_t rest,
                  uint64_t rest_count)
{
    int op = s->form->op_a;
    bool is_across = (op == FL_VENDOR_OP_N) == s->is_left;
    const filch_view a = is_across ? fl_part(s->a, rest, first, rest_count, count)
                                   : fl_part(s->a, first, rest, count, rest_count);
    const filch_view from = lines_of(s, first, count), to = lines_of(s, rest, rest_count);
    const fl_vendor_form left = {.op_a = op, .alpha = -1, .beta = beta};
    const fl_vendor_form right = {.op_b = op, .alpha = -1, .beta = beta};
    if (rest_count == 0)
        return 0;
    return s->is_left ? fl_place_gemm(s->on, &left, &a, &from, &to)
                      : fl_place_gemm(s->on, &right, &from, &a, &to);
}

int fl_inverses_solve(const fl_place *on, const fl_vendor_form *form, const filch_view *views)
{
    bool is_left = form->side == FL_VENDOR_SIDE_LEFT;
    bool is_lower = (form->fill == FL_VENDOR_FILL_LOWER) == (form->op_a == FL_VENDOR_OP_N);
    const solve s = {.on = on,
                     .form = form,
                     .a = &views[0],
                     .blocks = &views[1],
                     .b = &views[2],
                     .room = views[3].ptr,
                     .is_left = is_left};
    uint64_t order = s.a->rows, most = s.blocks->rows / 2, count = (order + most - 1) / most;
    int code = 0;
    if (!on->lane)
        return fl_place_trsm(on, form, s.a, s.b);
    for (uint64_t step = 0; step < count && code == 0; step++) {
        bool is_forward = is_lower == is_left;
        uint64_t first = (is_forward ? step : count - 1 - step) * most;
        uint64_t end = least(first + most, order);
        double alpha = step == 0 ? form->alpha : 1;
        code = solve_block(&s, alpha, first, end - first);
        if (code == 0)
            code = update(&s, alpha, first, end - first, is_forward ? end : 0,
                          is_forward ? order - end : first);
    }
    return code;
}
