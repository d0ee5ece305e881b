/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels whose thread blocks wait for each other, launched with one, two, three and many
 * blocks, more than run at once included: LU and QR of a panel (kernels/dense/lu_panel.cu and
 * qr_panel.cu), and the factor and the inverse of a diagonal tile (potrf_trtri), of both
 * precisions, also with pivots that fail. */
#include "gpu.h"

#include "kernels/dense/codelets.h"
#include "kernels/dense/state.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LU, QR, POTRF_TRTRI, KERNELS, MOST_ROWS = 600, MOST_COLS = 290, MOST_ORDER = 260 };

extern const char fl_text_lu_panel[];
extern const char fl_text_qr_panel[];

static filch_codelet *codelets[KERNELS][2]; /* of the runtime that is open; then single precision */

/* Thread blocks of the launch, and bytes of shared memory; 0: what the kernel's own shape says. */
static uint32_t grid, shared;

typedef struct matrix {
    size_t rows, cols;
    bool is_single;
    void *at;
    filch_data *data;
} matrix;

static size_t element(const matrix *m)
{
    return m->is_single ? sizeof(float) : sizeof(double);
}

static double get(const matrix *m, size_t i, size_t j)
{
    size_t at = i + j * m->rows;
    return m->is_single ? ((const float *)m->at)[at] : ((const double *)m->at)[at];
}

static void set(const matrix *m, size_t i, size_t j, double value)
{
    size_t at = i + j * m->rows;
    if (m->is_single)
        ((float *)m->at)[at] = (float)value;
    else
        ((double *)m->at)[at] = value;
}

static double unit(const matrix *m)
{
    return m->is_single ? FLT_EPSILON : DBL_EPSILON;
}

static matrix make(gpu_world *world, size_t rows, size_t cols, bool is_single)
{
    matrix m = {.rows = rows, .cols = cols, .is_single = is_single};
    m.at = gpu_alloc(rows * cols, element(&m));
    for (size_t j = 0; j < cols; j++)
        for (size_t i = 0; i < rows; i++)
            set(&m, i, j, 2 * fl_random_unit(&world->random) - 1);
    return m;
}

static filch_data *handle(gpu_world *world, void *at, size_t bytes, size_t rows, size_t cols)
{
    filch_data_desc desc = FILCH_DATA_DESC_INIT;
    filch_data *data = NULL;
    desc.ptr = at;
    desc.element = bytes;
    desc.rows = rows;
    desc.cols = cols;
    gpu_ok(filch_data_create(world->runtime, &desc, &data));
    return data;
}

/* --- The kernels --- */

static double *row_of(const matrix *m)
{
    return gpu_alloc(m->cols, sizeof(double));
}

/* Rows k and `at` change places. */
static void exchange_rows(const matrix *m, size_t k, size_t at)
{
    for (size_t j = 0; j < m->cols && at != k; j++) {
        double kept = get(m, at, j);
        set(m, at, j, get(m, k, j));
        set(m, k, j, kept);
    }
}

/* Of row i what row k leaves, in columns [from, to). */
static void subtract(const matrix *m, size_t i, size_t k, size_t from, size_t to)
{
    for (size_t j = from; j < to; j++)
        set(m, i, j, get(m, i, j) - get(m, i, k) * get(m, k, j));
}

/* What lu_panel.cu does, row by row as LAPACK's getf2, with columns [first, end). */
static int32_t eliminate(const matrix *m, size_t first, size_t end, int32_t *pivots)
{
    int32_t info = 0;
    for (size_t k = first; k < end; k++) {
        size_t at = k;
        for (size_t i = at + 1; i < m->rows; i++)
            at = fabs(get(m, i, k)) > fabs(get(m, at, k)) ? i : at;
        pivots[k] = (int32_t)at + 1;
        double pivot = get(m, at, k);
        if (pivot == 0 && info == 0)
            info = (int32_t)k + 1;
        exchange_rows(m, k, at);
        for (size_t i = k + 1; i < m->rows && pivot != 0; i++) {
            set(m, i, k, get(m, i, k) / pivot);
            subtract(m, i, k, k + 1, end);
        }
    }
    for (size_t k = first; k < end; k++)
        for (size_t i = k + 1; i < end; i++)
            subtract(m, i, k, end, m->cols);
    return info;
}

static int run_lu(const filch_call *call)
{
    const filch_view *a = &call->views[0];
    const fl_dense_args *args = call->args;
    const matrix m = {a->ld, a->cols, a->element == sizeof(float), a->ptr, NULL};
    int32_t *info = call->views[2].ptr;
    int32_t own = eliminate(&m, args->row, args->row + args->order, call->views[1].ptr);
    if (args->row == 0 || *info == 0)
        *info = own;
    return 0;
}

/* Column j as reflector k leaves it. */
static void reflect(const matrix *m, size_t k, double tau, size_t j)
{
    double sum = get(m, k, j);
    for (size_t i = k + 1; i < m->rows; i++)
        sum += get(m, i, k) * get(m, i, j);
    set(m, k, j, get(m, k, j) - tau * sum);
    for (size_t i = k + 1; i < m->rows; i++)
        set(m, i, j, get(m, i, j) - tau * sum * get(m, i, k));
}

/* Column k below the diagonal becomes a reflector. Its tau. */
static double make_reflector(const matrix *m, size_t k)
{
    double squares = 0, x = get(m, k, k);
    for (size_t i = k + 1; i < m->rows; i++)
        squares += get(m, i, k) * get(m, i, k);
    double norm = sqrt(x * x + squares), beta = x < 0 ? norm : -norm;
    for (size_t i = k + 1; i < m->rows && squares > 0; i++)
        set(m, i, k, get(m, i, k) / (x - beta));
    set(m, k, k, squares > 0 ? beta : x);
    return squares > 0 ? (beta - x) / beta : 0;
}

/* Column j of a group's triangle, whose first column is `first`. */
static void make_triangle(const matrix *v, const matrix *t, size_t first, size_t j, double tau)
{
    for (size_t i = first; i < j; i++) {
        double sum = 0;
        for (size_t c = i; c < j; c++) {
            double dot = 0;
            for (size_t e = j; e < v->rows; e++)
                dot += get(v, e, c) * get(v, e, j);
            sum += get(t, i, c) * dot;
        }
        set(t, i, j, -tau * sum);
    }
    set(t, j, j, tau);
}

static matrix viewed(const filch_view *view)
{
    return (matrix){view->ld, view->cols, view->element == sizeof(float), view->ptr, NULL};
}

/* What qr_panel.cu does. */
static int run_qr(const filch_call *call)
{
    const fl_dense_args *args = call->args;
    const matrix m = viewed(&call->views[0]), tau = viewed(&call->views[1]);
    const matrix v = viewed(&call->views[2]), t = viewed(&call->views[3]);
    size_t first = args->row, end = first + args->order;
    for (size_t k = first; k < end; k++) {
        double own = make_reflector(&m, k);
        set(&tau, k, 0, own);
        for (size_t j = k + 1; j < end; j++)
            reflect(&m, k, own, j);
        for (size_t i = 0; i < m.rows; i++)
            set(&v, i, k, i > k ? get(&m, i, k) : i == k);
        for (size_t i = first; i < end; i++)
            set(&t, i, k, 0);
        make_triangle(&v, &t, first, k, own);
    }
    return 0;
}

/* A kernel cannot fail its task. */
static int run_potrf(const filch_call *call)
{
    bool is_double = call->views[0].element == sizeof(double);
    int code = filch_kernel_find(is_double ? "potrf_trtri_f64" : "potrf_trtri_f32")->host(call);
    return code > 0 ? 0 : code;
}

static int lu_shape(const filch_call *call, filch_shape *shape)
{
    int code = fl_dense_lu_shape(call, shape);
    shape->grid[0] = grid;
    if (shared != 0)
        shape->shared_bytes = shared;
    return code;
}

static int qr_shape(const filch_call *call, filch_shape *shape)
{
    int code = fl_dense_qr_shape(call, shape);
    shape->grid[0] = grid;
    return code;
}

static int potrf_shape(const filch_call *call, filch_shape *shape)
{
    bool is_double = call->views[0].element == sizeof(double);
    const filch_kernel *kernel =
        filch_kernel_find(is_double ? "potrf_trtri_f64" : "potrf_trtri_f32");
    int code = kernel->cuda->shape_of(call, shape);
    shape->grid[0] = grid;
    return code;
}

static filch_status open(gpu_world *world)
{
    static const char *const names[2] = {"potrf_trtri_f64", "potrf_trtri_f32"};
    static const char *const lu[2] = {"fl_lu_panel_f64", "fl_lu_panel_f32"};
    static const char *const qr[2] = {"fl_qr_panel_f64", "fl_qr_panel_f32"};
    filch_status status = FILCH_OK;
    for (int k = 0; k < 2; k++) {
        gpu_twin(lu[k], run_lu, 4, false, sizeof(fl_dense_args));
        gpu_twin(qr[k], run_qr, 6, false, sizeof(fl_dense_args));
        gpu_twin(filch_kernel_find(names[k])->cuda->entry, run_potrf, 3, false,
                 sizeof(filch_potrf_trtri_args));
    }
    for (int k = 0; k < 2 && status == FILCH_OK; k++) {
        const filch_kernel *potrf = filch_kernel_find(names[k]);
        status = gpu_codelet(world->runtime, fl_text_lu_panel, lu[k], run_lu, sizeof(fl_dense_args),
                             lu_shape, &codelets[LU][k]);
        if (status == FILCH_OK)
            status = gpu_codelet(world->runtime, fl_text_qr_panel, qr[k], run_qr,
                                 sizeof(fl_dense_args), qr_shape, &codelets[QR][k]);
        if (status == FILCH_OK)
            status = gpu_codelet(world->runtime, potrf->cuda->source, potrf->cuda->entry, run_potrf,
                                 potrf->arg_size, potrf_shape, &codelets[POTRF_TRTRI][k]);
    }
    return status;
}

static void run(gpu_world *world, filch_codelet *codelet, const void *args,
                const filch_access *accesses, uint32_t count)
{
    filch_task_desc desc = FILCH_TASK_DESC_INIT;
    filch_graph *graph = NULL;
    filch_job *job = NULL;
    desc.codelet = codelet;
    desc.args = args;
    desc.accesses = accesses;
    desc.access_count = count;
    gpu_ok(filch_graph_create(world->runtime, NULL, &graph));
    gpu_ok(filch_graph_add(graph, &desc, NULL));
    gpu_ok(filch_graph_submit(graph, NULL, &job));
    gpu_wait(world->runtime, job, FILCH_OK);
    gpu_ok(filch_graph_destroy(graph));
}

static void choose_grid(gpu_world *world, uint32_t many)
{
    const uint32_t grids[] = {1, 2, 3, many};
    grid = grids[fl_random_below(&world->random, 4)];
}

/* --- LU --- */

/* Row i of P A is that of L U, up to roundoff. */
static void check_row(const matrix *a, const matrix *f, size_t from, size_t i, double *row)
{
    size_t order = f->rows < f->cols ? f->rows : f->cols;
    memset(row, 0, f->cols * sizeof *row);
    for (size_t k = 0; k < order && k <= i; k++) {
        double l = k == i ? 1 : get(f, i, k);
        if (k < i && !(fabs(l) <= 1 + 4 * unit(f)))
            gpu_fail("a pivot of column %zu is not the largest: %g", k, l);
        for (size_t j = k; j < f->cols; j++)
            row[j] += l * get(f, k, j);
    }
    for (size_t j = 0; j < f->cols; j++) {
        double off = fabs(row[j] - get(a, from, j));
        if (!(off <= 40 * unit(f) * (double)(order + 4)) && !gpu_has_failed())
            gpu_fail("element %zu, %zu of L U is off by %g", i, j, off);
    }
}

static void check_lu(const matrix *a, const matrix *f, const int32_t *pivots)
{
    size_t order = f->rows < f->cols ? f->rows : f->cols;
    size_t *from = gpu_alloc(f->rows, sizeof *from);
    double *row = row_of(f);
    for (size_t i = 0; i < f->rows; i++)
        from[i] = i;
    for (size_t k = 0; k < order; k++) {
        size_t at = (size_t)pivots[k] - 1, kept = from[k];
        if (at < k || at >= f->rows) {
            gpu_fail("pivot %zu is %d", k, pivots[k]);
            break;
        }
        from[k] = from[at];
        from[at] = kept;
    }
    for (size_t i = 0; i < f->rows && !gpu_has_failed(); i++)
        check_row(a, f, from[i], i, row);
    free(from);
    free(row);
}

/* Columns [first, end), and what they leave of those on their right. */
static void factor_group(gpu_world *world, const matrix *f, size_t first, size_t end,
                         int32_t *pivots, int32_t *info, filch_data *state)
{
    size_t order = f->rows < f->cols ? f->rows : f->cols;
    filch_data *matrix_data = handle(world, f->at, element(f), f->rows, f->cols);
    filch_data *list = handle(world, pivots, sizeof *pivots, order, 1);
    filch_data *result = handle(world, info, sizeof *info, 1, 1);
    const fl_dense_args args = {.row = first, .order = end - first};
    const filch_access accesses[] = {FILCH_RW(matrix_data, 0, 0), FILCH_RW(list, 0, 0),
                                     FILCH_RW(result, 0, 0), FILCH_RW(state, 0, 0)};
    choose_grid(world, gpu_chance(world, 50) ? 255 : 5);
    shared = gpu_chance(world, 30) ? 64 << 10 : 0;
    run(world, codelets[LU][f->is_single], &args, accesses, 4);
    gpu_ok(filch_data_destroy(matrix_data));
    gpu_ok(filch_data_destroy(list));
    gpu_ok(filch_data_destroy(result));
    for (size_t k = first; k < end; k++)
        for (size_t i = end; i < f->rows; i++)
            subtract(f, i, k, end, f->cols);
}

/* A panel, group by group, and at times one more by the same state. */
static void factor(gpu_world *world, bool is_single, filch_data *state)
{
    size_t m = gpu_between(world, 1, MOST_ROWS);
    size_t n = gpu_between(world, 1, gpu_chance(world, 50) ? 40 : MOST_COLS);
    size_t order = m < n ? m : n, zero = gpu_chance(world, 20) ? gpu_between(world, 1, n) : 0;
    matrix a = make(world, m, n, is_single), f = a;
    int32_t *pivots = gpu_alloc(order, sizeof *pivots), info = -1;
    for (size_t i = 0; i < m && zero > 0; i++)
        set(&a, i, zero - 1, 0);
    f.at = gpu_alloc(f.rows * f.cols, element(&f));
    memcpy(f.at, a.at, f.rows * f.cols * element(&f));
    for (size_t first = 0; first < order && !gpu_has_failed(); first += FL_PANEL_GROUP) {
        size_t end = order - first < FL_PANEL_GROUP ? order : first + FL_PANEL_GROUP;
        factor_group(world, &f, first, end, pivots, &info, state);
    }
    if (info != (zero <= order ? (int32_t)zero : 0))
        gpu_fail("info is %d, zero column %zu of %zu", info, zero, order);
    check_lu(&a, &f, pivots);
    if (gpu_has_failed())
        gpu_fail("%zu x %zu by %u blocks, %u bytes, %s", m, n, grid, shared,
                 is_single ? "single" : "double");
    free(a.at);
    free(f.at);
    free(pivots);
}

static void check_factors(gpu_world *world, bool is_single)
{
    uint32_t *words = gpu_alloc(FL_LU_PANEL_WORDS, sizeof *words);
    filch_data *state = handle(world, words, sizeof *words, FL_LU_PANEL_WORDS, 1);
    for (uint64_t k = gpu_between(world, 1, 3); k > 0 && !gpu_has_failed(); k--)
        factor(world, is_single, state);
    gpu_ok(filch_data_destroy(state));
    free(words);
}

/* --- QR --- */

typedef struct reflectors {
    matrix a, tau, v, t;
} reflectors;

/* Column j of the panel loses V T' V' times it, of the group [first, end). */
static void apply_block(const reflectors *r, size_t first, size_t end, size_t j, double *w)
{
    for (size_t k = first; k < end; k++) {
        w[k] = 0;
        for (size_t i = first; i < r->a.rows; i++)
            w[k] += get(&r->v, i, k) * get(&r->a, i, j);
    }
    for (size_t k = end; k-- > first;) { /* from the last on: T is an upper triangle */
        double sum = 0;
        for (size_t i = first; i < end; i++)
            sum += get(&r->t, i, k) * (i <= k ? w[i] : 0);
        w[k] = sum;
    }
    for (size_t i = first; i < r->a.rows; i++) {
        double sum = 0;
        for (size_t k = first; k < end; k++)
            sum += get(&r->v, i, k) * w[k];
        set(&r->a, i, j, get(&r->a, i, j) - sum);
    }
}

static void check_qr(const matrix *a, const reflectors *r)
{
    size_t order = r->tau.rows;
    matrix x = {r->a.rows, r->a.cols, false, NULL, NULL};
    x.at = gpu_alloc(x.rows * x.cols, sizeof(double));
    for (size_t j = 0; j < x.cols; j++)
        for (size_t i = 0; i < x.rows; i++)
            set(&x, i, j, get(&r->a, i, j));
    for (size_t j = 0; j < x.cols && !gpu_has_failed(); j++) {
        double *column = gpu_alloc(x.rows, sizeof *column), off = 0;
        const matrix one = {x.rows, 1, false, column, NULL};
        for (size_t i = 0; i < x.rows && i <= j; i++)
            column[i] = get(&x, i, j);
        for (size_t k = order; k-- > 0;) {
            double sum = column[k], tau = get(&r->tau, k, 0);
            for (size_t i = k + 1; i < x.rows; i++)
                sum += get(&x, i, k) * column[i];
            column[k] -= tau * sum;
            for (size_t i = k + 1; i < x.rows; i++)
                column[i] -= tau * sum * get(&x, i, k);
        }
        for (size_t i = 0; i < x.rows; i++)
            off = fmax(off, fabs(get(&one, i, 0) - get(a, i, j)));
        if (!(off <= 40 * unit(a) * (double)(order + 4)))
            gpu_fail("column %zu of Q R is off by %g", j, off);
        free(column);
    }
    free(x.at);
}

static void reflect_group(gpu_world *world, const reflectors *r, size_t first, size_t end,
                          filch_data *state)
{
    const matrix *all[] = {&r->a, &r->tau, &r->v, &r->t};
    filch_data *data[4];
    for (int k = 0; k < 4; k++)
        data[k] = handle(world, all[k]->at, element(all[k]), all[k]->rows, all[k]->cols);
    const fl_dense_args args = {.row = first, .order = end - first};
    choose_grid(world, gpu_chance(world, 50) ? 127 : 5);
    const filch_access accesses[] = {
        FILCH_RW(data[0], 0, 0),
        FILCH_RW(data[1], 0, 0),
        FILCH_RW(data[2], 0, 0),
        FILCH_RW(data[3], 0, 0),
        FILCH_RW(state, 0, 0),
        {.mode = FILCH_SCRATCH, .bytes = (grid + 1) * 32 * FL_PANEL_GROUP * element(&r->a)}};
    run(world, codelets[QR][r->a.is_single], &args, accesses, 6);
    for (int k = 0; k < 4; k++)
        gpu_ok(filch_data_destroy(data[k]));
    double *w = gpu_alloc(end, sizeof *w);
    for (size_t j = end; j < r->a.cols; j++)
        apply_block(r, first, end, j, w);
    free(w);
}

static void reflect_panel(gpu_world *world, bool is_single, filch_data *state)
{
    size_t m = gpu_between(world, 1, gpu_chance(world, 50) ? 150 : MOST_ROWS);
    size_t n = gpu_between(world, 1, gpu_chance(world, 70) ? 40 : 150);
    size_t order = m < n ? m : n, zero = gpu_chance(world, 20) ? gpu_between(world, 1, n) : 0;
    matrix a = make(world, m, n, is_single);
    for (size_t i = 0; i < m && zero > 0; i++)
        set(&a, i, zero - 1, 0);
    reflectors r = {a, make(world, order, 1, is_single), make(world, m, order, is_single),
                    make(world, order, order, is_single)};
    r.a.at = gpu_alloc(m * n, element(&a));
    memcpy(r.a.at, a.at, m * n * element(&a));
    for (size_t first = 0; first < order && !gpu_has_failed(); first += FL_PANEL_GROUP) {
        size_t end = order - first < FL_PANEL_GROUP ? order : first + FL_PANEL_GROUP;
        reflect_group(world, &r, first, end, state);
    }
    check_qr(&a, &r);
    if (gpu_has_failed())
        gpu_fail("QR of %zu x %zu by %u blocks, %s", m, n, grid, is_single ? "single" : "double");
    free(a.at);
    free(r.a.at);
    free(r.tau.at);
    free(r.v.at);
    free(r.t.at);
}

static void check_reflectors(gpu_world *world, bool is_single)
{
    uint32_t *words = gpu_alloc(FL_QR_PANEL_WORDS, sizeof *words);
    filch_data *state = handle(world, words, sizeof *words, FL_QR_PANEL_WORDS, 1);
    for (uint64_t k = gpu_between(world, 1, 3); k > 0 && !gpu_has_failed(); k--)
        reflect_panel(world, is_single, state);
    gpu_ok(filch_data_destroy(state));
    free(words);
}

/* --- Factor and inverse --- */

/* Element (i, j) of L L' and of W L, i >= j. */
static void check_tile(const matrix *a, const matrix *l, const matrix *w)
{
    double most = 40 * unit(l) * (double)(l->rows + 4);
    for (size_t j = 0; j < l->cols && !gpu_has_failed(); j++)
        for (size_t i = j; i < l->rows; i++) {
            double product = 0, one = 0;
            for (size_t k = 0; k <= j; k++)
                product += get(l, i, k) * get(l, j, k);
            for (size_t k = j; k <= i; k++)
                one += get(w, i, k) * get(l, k, j);
            if (!(fabs(product - get(a, i, j)) <= most * (double)l->rows))
                gpu_fail("element %zu, %zu of L L' is off", i, j);
            if (!(fabs(one - (i == j)) <= most) || (i > j && get(w, j, i) != 0))
                gpu_fail("element %zu, %zu of the inverse is wrong", i, j);
        }
}

static void check_inverse(gpu_world *world, bool is_single)
{
    size_t n = gpu_between(world, 1, MOST_ORDER);
    size_t bad = gpu_chance(world, 30) ? gpu_between(world, 1, n) : 0;
    matrix a = make(world, n, n, is_single), w = make(world, n, n, is_single), l = a;
    int32_t *state = gpu_alloc(FILCH_POTRF_TRTRI_STATE(n), sizeof *state);
    for (size_t k = 0; k < n; k++)
        set(&a, k, k, k + 1 == bad ? -1 : (double)n + get(&a, k, k));
    l.at = gpu_alloc(n * n, element(&l));
    memcpy(l.at, a.at, n * n * element(&l));
    filch_data *tile = handle(world, l.at, element(&l), n, n);
    filch_data *words = handle(world, state, sizeof *state, FILCH_POTRF_TRTRI_STATE(n), 1);
    filch_data *inverse = handle(world, w.at, element(&w), n, n);
    const filch_potrf_trtri_args args = {.inverts = true};
    const filch_access accesses[] = {FILCH_RW(tile, 0, 0), FILCH_RW(words, 0, 0),
                                     FILCH_W(inverse, 0, 0)};
    choose_grid(world, 2 * (uint32_t)((n + 63) / 64));
    run(world, codelets[POTRF_TRTRI][is_single], &args, accesses, 3);
    gpu_ok(filch_data_destroy(tile));
    gpu_ok(filch_data_destroy(words));
    gpu_ok(filch_data_destroy(inverse));
    if (state[0] != (int32_t)bad)
        gpu_fail("info is %d, the pivot in row %zu is not positive", state[0], bad);
    if (bad == 0)
        check_tile(&a, &l, &w);
    if (gpu_has_failed())
        gpu_fail("order %zu by %u blocks, %s", n, grid, is_single ? "single" : "double");
    free(a.at);
    free(w.at);
    free(l.at);
    free(state);
}

static void check(gpu_world *world)
{
    bool is_single = gpu_chance(world, 50);
    uint64_t kernel = gpu_between(world, 0, 9);
    if (kernel < 4)
        check_factors(world, is_single);
    else if (kernel < 8)
        check_reflectors(world, is_single);
    else
        check_inverse(world, is_single);
}

int main(int argc, char **argv)
{
    static const gpu_test test = {"panels", open, check, 60};
    return gpu_main(&test, argc, argv);
}
