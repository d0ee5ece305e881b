/* SPDX-License-Identifier: Apache-2.0 */
/* Solves by tiles, on GPUs of the fake driver by inverses of diagonal blocks, beside BLAS: all
 * forms, blocks smaller and larger than tiles, triangles that are badly scaled or conditioned. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "dense.h"
#include "gpu/twins.h"
#include "kernels/dense/tiles.h"

static const place places[] = {
    {"{\"devices\": [{}]}", "cuda:0", false},
    {"{\"devices\": [{\"count\": 2}]}", "cuda", false},
    {"{\"devices\": [{}]}", "cuda:0,host:1", false},
    {"{\"devices\": [{}]}", "host:2", false},
};
#define PLACES (sizeof places / sizeof *places)

/* How a case is cut. */
typedef struct cut {
    size_t n, others, tile;
    uint32_t inverted; /* 0: what the codelets begin with */
} cut;

static const cut cuts[] = {{100, 70, 40, 16}, {230, 120, 150, 80}, {97, 60, 40, 0}, {5, 9, 8, 0}};
#define CUTS (sizeof cuts / sizeof *cuts)

static double get(const matrix *m, size_t i, size_t j)
{
    size_t at = i + j * m->ld;
    return m->element == sizeof(double) ? ((const double *)m->at)[at] : ((const float *)m->at)[at];
}

static void set(const matrix *m, size_t i, size_t j, double value)
{
    size_t at = i + j * m->ld;
    if (m->element == sizeof(double))
        ((double *)m->at)[at] = value;
    else
        ((float *)m->at)[at] = (float)value;
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

static fl_tiled tiled(const bed *b, const matrix *m, size_t tile)
{
    filch_data_desc desc = FILCH_DATA_DESC_INIT;
    desc.ptr = m->at;
    desc.element = m->element;
    desc.rows = m->rows;
    desc.cols = m->cols;
    desc.ld = m->ld;
    desc.tile_rows = least(tile, m->rows);
    desc.tile_cols = least(tile, m->cols);
    fl_tiled t = {.rows = (uint32_t)((m->rows + tile - 1) / tile),
                  .cols = (uint32_t)((m->cols + tile - 1) / tile),
                  .tile_rows = desc.tile_rows,
                  .tile_cols = desc.tile_cols};
    must(filch_data_create(b->runtime, &desc, &t.data));
    return t;
}

static bool is_inside(int fill, size_t i, size_t j)
{
    return fill == FL_VENDOR_FILL_LOWER ? i >= j : i <= j;
}

/* Not a number where a routine may not read. */
static void fill_triangle(const matrix *a, const fl_vendor_form *form)
{
    uint64_t seed = 3;
    for (size_t j = 0; j < a->cols; j++)
        for (size_t i = 0; i < a->rows; i++) {
            double value = draw(&seed) / (double)a->rows;
            bool is_read =
                is_inside(form->fill, i, j) && !(i == j && form->diagonal == FL_VENDOR_UNIT);
            set(a, i, j, !is_read ? NAN : i == j ? 2 + value : value);
        }
}

static void fill(const matrix *m)
{
    uint64_t seed = 1;
    for (size_t j = 0; j < m->cols; j++)
        for (size_t i = 0; i < m->rows; i++)
            set(m, i, j, draw(&seed));
}

static void blas_trsm(const fl_vendor_form *form, const matrix *a, const matrix *b)
{
    const char *side = form->side == FL_VENDOR_SIDE_LEFT ? "L" : "R";
    const char *fill_of = form->fill == FL_VENDOR_FILL_LOWER ? "L" : "U";
    const char *op = form->op_a == FL_VENDOR_OP_N ? "N" : "T";
    const char *diagonal = form->diagonal == FL_VENDOR_UNIT ? "U" : "N";
    int m = (int)b->rows, n = (int)b->cols, lda = (int)a->ld, ldb = (int)b->ld;
    double alpha = form->alpha;
    float single = (float)alpha;
    if (a->element == sizeof(double))
        host.d.trsm(side, fill_of, op, diagonal, &m, &n, &alpha, a->at, &lda, b->at, &ldb, 1, 1, 1,
                    1);
    else
        host.s.trsm(side, fill_of, op, diagonal, &m, &n, &single, a->at, &lda, b->at, &ldb, 1, 1, 1,
                    1);
}

static void are_equal(const matrix *x, const matrix *y, double factor)
{
    double most = 0, size = 0;
    for (size_t j = 0; j < x->cols; j++)
        for (size_t i = 0; i < x->rows; i++) {
            assert_true(isfinite(get(x, i, j)));
            most = fmax(most, fabs(get(x, i, j) - get(y, i, j)));
            size = fmax(size, fabs(get(y, i, j)));
        }
    assert_true(most <= factor * (x->element == sizeof(double) ? DBL_EPSILON : FLT_EPSILON) * size);
}

typedef void (*add_fn)(fl_tile_graph *g, const fl_vendor_form *form, const fl_tiled *a,
                       const fl_tiled *b);

static void solve_potrs(fl_tile_graph *g, const fl_vendor_form *form, const fl_tiled *a,
                        const fl_tiled *b)
{
    fl_tiles_potrs(g, form->fill, a, b);
}

/* B := what the routine makes of A and B, twice from the same graph. */
static void run(const bed *b, const cut *c, add_fn add, const fl_vendor_form *form, const matrix *a,
                const matrix *x)
{
    fl_tiles tiles;
    fl_tile_graph graph;
    fl_tiled left = tiled(b, a, c->tile), right = tiled(b, x, c->tile);
    matrix first = copy_of(b, x);
    must(fl_tiles_open(&tiles, b->runtime, b->vendor, &host, false));
    if (c->inverted)
        tiles.inverted = c->inverted;
    fl_tile_graph_open(&graph, &tiles, b->element == sizeof(float), true);
    add(&graph, form, &left, &right);
    must(graph.status);
    must(filch_graph_run(graph.graph, NULL, NULL));
    memcpy(x->at, first.at, x->ld * x->cols * x->element);
    must(filch_graph_run(graph.graph, NULL, NULL));
    fl_tile_graph_close(&graph);
    must(filch_data_destroy(left.data));
    must(filch_data_destroy(right.data));
    give(&first);
}

/* --- Tests --- */

static void solve_form(const bed *b, const cut *c, const fl_vendor_form *form)
{
    bool is_left = form->side == FL_VENDOR_SIDE_LEFT;
    matrix a = take(b, c->n, c->n);
    matrix x = take(b, is_left ? c->n : c->others, is_left ? c->others : c->n);
    fill_triangle(&a, form);
    fill(&x);
    matrix theirs = copy_of(b, &x);
    blas_trsm(form, &a, &theirs);
    run(b, c, fl_tiles_trsm, form, &a, &x);
    are_equal(&x, &theirs, 100);
    give(&theirs);
    give(&x);
    give(&a);
}

static void all_forms_are_solved(void **state)
{
    (void)state;
    for (size_t p = 0; p < PLACES; p++)
        for (size_t element = sizeof(float); element <= sizeof(double); element *= 2) {
            bed b;
            begin(&b, &places[p], element, 0);
            for (size_t k = 0; k < CUTS; k++)
                for (int bits = 0; bits < 16; bits++) {
                    const fl_vendor_form form = {.side = bits & 1,
                                                 .fill = bits >> 1 & 1,
                                                 .op_a = bits >> 2 & 1,
                                                 .diagonal = bits >> 3 & 1,
                                                 .alpha = bits % 3 == 0 ? 1 : -2.5};
                    solve_form(&b, &cuts[k], &form);
                }
            end(&b);
        }
}

/* A factor, whose product with its transpose is solved by. */
static void solve_system(const bed *b, const cut *c, int fill_of)
{
    fl_vendor_form form = {
        .fill = fill_of, .op_a = fill_of == FL_VENDOR_FILL_LOWER ? 0 : 1, .alpha = 1};
    matrix a = take(b, c->n, c->n), x = take(b, c->n, c->others);
    fill_triangle(&a, &form);
    fill(&x);
    matrix theirs = copy_of(b, &x);
    blas_trsm(&form, &a, &theirs);
    form.op_a = 1 - form.op_a;
    blas_trsm(&form, &a, &theirs);
    run(b, c, solve_potrs, &form, &a, &x);
    are_equal(&x, &theirs, 100);
    give(&theirs);
    give(&x);
    give(&a);
}

static void systems_are_solved(void **state)
{
    (void)state;
    for (size_t p = 0; p < PLACES; p++)
        for (size_t element = sizeof(float); element <= sizeof(double); element *= 2) {
            bed b;
            begin(&b, &places[p], element, 0);
            for (size_t k = 0; k < CUTS; k++) {
                solve_system(&b, &cuts[k], FL_VENDOR_FILL_LOWER);
                solve_system(&b, &cuts[k], FL_VENDOR_FILL_UPPER);
            }
            end(&b);
        }
}

/* Rows, columns or both from 1 to 1e-12; W. Kahan's triangle ("Numerical linear algebra", Canadian
 * Mathematical Bulletin 9, 1966); ones above random elements, whose inverse has huge ones. */
enum bad { ROWS_GRADED, COLS_GRADED, BOTH_GRADED, KAHAN, UNIT, BADS };

static double bad_value(enum bad which, size_t n, size_t i, size_t j, double random)
{
    double row = pow(10, -12 * (double)i / (double)n), col = pow(10, -12 * (double)j / (double)n);
    double plain = i == j ? 1.5 + random / 2 : random / sqrt((double)n);
    switch (which) {
    case ROWS_GRADED:
        return row * plain;
    case COLS_GRADED:
        return col * plain;
    case BOTH_GRADED:
        return plain * row * col;
    case KAHAN:
        return pow(sin(1.2), (double)j) * (i == j ? 1 : -cos(1.2));
    default:
        return i == j ? 1 : random;
    }
}

/* The largest of |B - L X| over |L| |X|, by elements, in roundoffs (W. Oettli, W. Prager,
 * Numerische Mathematik 6, 1964). */
static double backward_error(const matrix *l, const matrix *x, const matrix *right)
{
    double worst = 0;
    for (size_t j = 0; j < x->cols; j++)
        for (size_t i = 0; i < l->rows; i++) {
            long double left = get(right, i, j), size = 0;
            for (size_t k = 0; k <= i; k++) {
                long double part = (long double)get(l, i, k) * get(x, k, j);
                left -= part;
                size += fabsl(part);
            }
            assert_true(isfinite((double)left) && size > 0);
            worst = fmax(worst, (double)(fabsl(left) / size));
        }
    return worst / DBL_EPSILON;
}

/* For right sides that are random, or those of random solutions, which are far smaller than the
 * inverse lets expect. */
static void solve_bad(const bed *b, enum bad which, bool is_of_random)
{
    static const cut bad_cut = {300, 100, 150, 128};
    static const fl_vendor_form form = {.alpha = 1};
    uint64_t seed = 7;
    matrix l = take(b, bad_cut.n, bad_cut.n), x = take(b, bad_cut.n, bad_cut.others);
    for (size_t j = 0; j < l.cols; j++)
        for (size_t i = j; i < l.rows; i++)
            set(&l, i, j, bad_value(which, l.rows, i, j, draw(&seed)));
    fill(&x);
    for (size_t j = 0; is_of_random && j < x.cols; j++)
        for (size_t i = l.rows; i-- > 0;) {
            long double sum = 0;
            for (size_t k = 0; k <= i; k++)
                sum += (long double)get(&l, i, k) * get(&x, k, j);
            set(&x, i, j, (double)sum);
        }
    matrix right = copy_of(b, &x);
    run(b, &bad_cut, fl_tiles_trsm, &form, &l, &x);
    assert_true(backward_error(&l, &x, &right) <= 16);
    give(&right);
    give(&x);
    give(&l);
}

static void bad_triangles_are_solved(void **state)
{
    bed b;
    (void)state;
    begin(&b, &places[0], sizeof(double), 0);
    for (int which = 0; which < BADS; which++) {
        solve_bad(&b, (enum bad)which, false);
        solve_bad(&b, (enum bad)which, true);
    }
    end(&b);
}

/* A tile's inverses are made once, of as many products with an identity, and where they pay. */
static void inverses_are_made_where_they_pay(void **state)
{
    static const struct {
        cut cut;
        bool is_system;
        unsigned inverted; /* blocks */
    } cases[] = {{{100, 70, 40, 0}, false, 3}, {{100, 70, 40, 20}, false, 5},
                 {{100, 70, 40, 0}, true, 3},  {{100, 1, 40, 0}, false, 0},
                 {{100, 19, 40, 0}, false, 0}, {{100, 20, 40, 0}, false, 3},
                 {{100, 9, 40, 0}, true, 0},   {{100, 10, 40, 0}, true, 3}};
    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        static const fl_vendor_form form = {.alpha = 1};
        bed b;
        begin(&b, &places[0], sizeof(double), 0);
        matrix a = take(&b, cases[k].cut.n, cases[k].cut.n);
        matrix x = take(&b, cases[k].cut.n, cases[k].cut.others);
        fill_triangle(&a, &form);
        fill(&x);
        run(&b, &cases[k].cut, cases[k].is_system ? solve_potrs : fl_tiles_trsm, &form, &a, &x);
        assert_int_equal(fakecuda_count("cublasDtrmm"), 2 * cases[k].inverted); /* two runs */
        give(&x);
        give(&a);
        end(&b);
    }
}

/* --- Factorizations --- */

static _Atomic unsigned launched;

static int factor_tile(const filch_call *call)
{
    launched++;
    return gpu_twin_potrf(call);
}

static void blas_potrf(int fill_of, const matrix *a)
{
    int n = (int)a->rows, ld = (int)a->ld, info = 0;
    const char *word = fill_of == FL_VENDOR_FILL_LOWER ? "L" : "U";
    if (a->element == sizeof(double))
        host.d.potrf(word, &n, a->at, &ld, &info, 1);
    else
        host.s.potrf(word, &n, a->at, &ld, &info, 1);
}

/* A definite matrix, or one whose minor of order `bad` is not positive. */
static void fill_definite(const matrix *a, size_t bad)
{
    uint64_t seed = 5;
    for (size_t j = 0; j < a->cols; j++)
        for (size_t i = 0; i <= j; i++) {
            double value = i != j ? draw(&seed) : i + 1 == bad ? -1 : (double)a->rows;
            set(a, i, j, value);
            set(a, j, i, value);
        }
}

/* Returns info: the words of a tile tell rows of the matrix, a single one those of the tile. */
static int factor(const bed *b, int fill_of, size_t tile, const matrix *a)
{
    fl_tiles tiles;
    fl_tile_graph graph;
    fl_tiled whole = tiled(b, a, tile);
    must(fl_tiles_open(&tiles, b->runtime, b->vendor, NULL, false));
    fl_tiles_open_panels(&tiles, a->element == sizeof(float));
    fl_tile_graph_open(&graph, &tiles, a->element == sizeof(float), true);
    uint32_t words = fl_tiles_potrf_words(&graph, fill_of, &whole);
    int32_t *infos = calloc((size_t)whole.rows * words, sizeof *infos);
    assert_non_null(infos);
    const filch_data_desc desc = {.size = sizeof desc,
                                  .ptr = infos,
                                  .element = sizeof *infos,
                                  .rows = (size_t)whole.rows * words,
                                  .tile_rows = words};
    filch_data *data = NULL;
    must(filch_data_create(b->runtime, &desc, &data));
    fl_tiles_potrf(&graph, fill_of, &whole, data);
    must(graph.status);
    must(filch_graph_run(graph.graph, NULL, NULL));
    fl_tile_graph_close(&graph);
    must(filch_data_destroy(data));
    must(filch_data_destroy(whole.data));
    int info = 0;
    for (uint32_t k = whole.rows; k-- > 0;)
        if (infos[k * words] != 0)
            info = infos[k * words] + (words > 1 ? 0 : (int)(k * tile));
    free(infos);
    return info;
}

/* Filch's kernel factors lower triangles in tiles of 256 and more, where there is a compiler; the
 * other triangle stays. */
static void panels_are_filch_s_where_they_may_be(void **state)
{
    static const struct {
        place where;
        int fill;
        size_t tile;
        unsigned own; /* tiles */
    } cases[] = {{{"{\"devices\": [{}]}", "cuda:0", true}, FL_VENDOR_FILL_LOWER, 256, 3},
                 {{"{\"devices\": [{\"count\": 2}]}", "cuda", true}, FL_VENDOR_FILL_LOWER, 300, 2},
                 {{"{\"devices\": [{}]}", "cuda:0", true}, FL_VENDOR_FILL_LOWER, 600, 1},
                 {{"{\"devices\": [{}]}", "cuda:0", true}, FL_VENDOR_FILL_LOWER, 250, 0},
                 {{"{\"devices\": [{}]}", "cuda:0", true}, FL_VENDOR_FILL_UPPER, 256, 0},
                 {{"{\"devices\": [{}]}", "cuda:0", false}, FL_VENDOR_FILL_LOWER, 256, 0},
                 {{"{\"devices\": [{\"attributes\": {\"97\": 101376}}]}", "cuda:0", true},
                  FL_VENDOR_FILL_LOWER,
                  256,
                  0}};
    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
        for (size_t element = sizeof(float); element <= sizeof(double); element *= 2) {
            bed b;
            begin(&b, &cases[k].where, element, 0);
            matrix a = take(&b, 520, 520);
            fill_definite(&a, 0);
            matrix theirs = copy_of(&b, &a);
            blas_potrf(cases[k].fill, &theirs);
            launched = 0;
            assert_int_equal(factor(&b, cases[k].fill, cases[k].tile, &a), 0);
            assert_int_equal(launched, cases[k].own);
            are_equal(&a, &theirs, 100);
            fill_definite(&a, 400);
            assert_int_equal(factor(&b, cases[k].fill, cases[k].tile, &a), 400);
            give(&theirs);
            give(&a);
            end(&b);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_forms_are_solved),
        cmocka_unit_test(systems_are_solved),
        cmocka_unit_test(bad_triangles_are_solved),
        cmocka_unit_test(inverses_are_made_where_they_pay),
        cmocka_unit_test(panels_are_filch_s_where_they_may_be),
    };
    for (int is_double = 0; is_double < 2; is_double++) {
        const filch_kernel *kernel =
            filch_kernel_find(is_double ? "potrf_trtri_f64" : "potrf_trtri_f32");
        fakecuda_register_filch(kernel->cuda->entry, factor_tile, kernel->view_count, false,
                                kernel->arg_size);
    }
    if (dlopen("libcublas.so.13", RTLD_NOW) == NULL)
        return 77;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
