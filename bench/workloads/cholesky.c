/* SPDX-License-Identifier: Apache-2.0 */
/* Cholesky factorization of a dense symmetric positive definite matrix by tiles, right-looking
 * (A. Buttari et al., "A class of parallel tiled linear algebra algorithms for multicore
 * architectures", Parallel Computing 35, 2009). A sparse matrix from a file is factored densely,
 * all its zeros included. The matrix is one handle in full column-major storage, of which the lower
 * triangle of tiles is used.
 *
 * With the vendor's libraries the factorization of a diagonal tile inverts it as well, so that the
 * tiles below are multiplied by the inverse in place of being solved for: a GPU multiplies tiles
 * several times faster (as in J. Dongarra et al., "The design and performance of batched BLAS on
 * modern high-performance computing systems", Procedia Computer Science 108, 2017, and MAGMA).
 *
 * A kernel cannot fail its task: on GPUs the diagonal tiles' factorizations leave what they found
 * in a handle of their own, which is looked at after the job. */
#include "kernels/dense/definite.h"
#include "problems/dense.h"
#include "support/fail.h"
#include "workloads/square.h"

#include "filch/kernels.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The vendor's inverse of a smaller tile takes as long as it spares. Halves of larger ones are
 * inverted, too. */
#define INVERTED_LEAST_BY_VENDOR 512
/* Larger matrices take less time in several tiles than in one, which has no products of the
 * vendor's. */
#define WHOLE_MOST 8192
/* Of scratch, for a tile that is factored alone (filch/kernels.h). */
#define SCRATCH_COLS 64
/* Nine unit roundoffs: 1e-15 in double precision, about 5.4e-7 in single. A backward stable solver
 * stays within a modest multiple of the roundoff whatever the matrix (dense.h), so the same
 * multiple holds in both; in single, one roundoff of it is the input's, which is checked as it was
 * before it was rounded. The error of a generated matrix, which is dense, grows with the square
 * root of its order; from this order on that is allowed for. Matrices from files are held to the
 * figure itself. */
#define BACKWARD_ERROR_ROUNDOFFS (1e-15 / 0x1p-53)
#define BACKWARD_ERROR_ORDER 64.0

enum kernel { POTRF, TRSM, SYRK, GEMM, MULTIPLY, COPY };

enum handle { MATRIX, PIVOTS, INPUT, INVERSES };

typedef struct cholesky {
    bench_square square; /* the first member */
    /* With GPUs: rows of pivots that are not positive, from 1, or 0. cuSOLVER has one a diagonal
     * tile, whose rows it counts; filch's kernels count those of the whole matrix, and have one
     * number, or where they invert a state a diagonal tile that begins with it. */
    int32_t *pivots;
    size_t pivot_count, pivot_step;
    bool has_tried_panels;
    bool has_panels; /* filch's own kernel factors and inverts diagonal tiles, where inverts() */
    void *inverses;  /* of the diagonal tiles; null: there are none */
} cholesky;

static const bench_kernels *kernels_of(const filch_call *call)
{
    return call->views[0].element == sizeof(double) ? &bench_kernels_double : &bench_kernels_single;
}

/* Filch's own kernel gets room for an inverse also where none is wanted. */
static bool inverts_call(const filch_call *call)
{
    return !call->args || ((const filch_potrf_trtri_args *)call->args)->inverts;
}

static void invert(const bench_kernels *kernels, const filch_view *l, const filch_view *inverse)
{
    char *to = inverse->ptr;
    for (uint64_t j = 0; j < inverse->cols; j++) {
        memset(to + j * inverse->ld * inverse->element, 0, inverse->rows * inverse->element);
        kernels->set(inverse->ptr, j * (inverse->ld + 1), 1);
    }
    kernels->trsm_left(l->rows, l->ptr, l->ld, inverse->ptr, inverse->ld);
}

/* The code of a failure is the row of the failing pivot in the whole matrix, from 1. */
static int run_potrf(const filch_call *call)
{
    const filch_view *a = &call->views[0];
    int info = kernels_of(call)->potrf(a->rows, a->ptr, a->ld);
    if (call->view_count > 1)
        *(int32_t *)call->views[1].ptr = 0; /* a failure fails the task */
    if (call->view_count > 2 && info == 0 && inverts_call(call))
        invert(kernels_of(call), a, &call->views[2]);
    return info > 0 ? info + (int)a->row : info;
}

static int run_multiply(const filch_call *call)
{
    const filch_view *inverse = &call->views[0];
    const filch_view *a = &call->views[1];
    kernels_of(call)->trmm(a->rows, a->cols, inverse->ptr, inverse->ld, a->ptr, a->ld);
    return 0;
}

static int run_trsm(const filch_call *call)
{
    const filch_view *l = &call->views[0];
    const filch_view *a = &call->views[1];
    kernels_of(call)->trsm(a->rows, a->cols, l->ptr, l->ld, a->ptr, a->ld);
    return 0;
}

static int run_syrk(const filch_call *call)
{
    const filch_view *a = &call->views[0];
    const filch_view *c = &call->views[1];
    kernels_of(call)->syrk(c->rows, a->cols, a->ptr, a->ld, c->ptr, c->ld);
    return 0;
}

static int run_gemm(const filch_call *call)
{
    const filch_view *a = &call->views[0];
    const filch_view *b = &call->views[1];
    const filch_view *c = &call->views[2];
    kernels_of(call)->gemm_nt(c->rows, c->cols, a->cols, a->ptr, a->ld, b->ptr, b->ld, c->ptr,
                              c->ld);
    return 0;
}

static int enqueue_potrf(const filch_call *call, const filch_lane *lane, void *state)
{
    (void)lane;
    int code = fl_vendor_potrf(state, &call->views[0], &call->views[1]);
    return code != 0 || call->view_count == 2
               ? code
               : fl_vendor_invert(state, &call->views[0], &call->views[2]);
}

static int enqueue_multiply(const filch_call *call, const filch_lane *lane, void *state)
{
    (void)lane;
    return fl_vendor_multiply(state, &call->views[0], &call->views[1], call->views[2].ptr);
}

static int enqueue_trsm(const filch_call *call, const filch_lane *lane, void *state)
{
    (void)lane;
    return fl_vendor_trsm(state, &call->views[0], &call->views[1]);
}

static int enqueue_syrk(const filch_call *call, const filch_lane *lane, void *state)
{
    (void)lane;
    return fl_vendor_syrk(state, &call->views[0], &call->views[1]);
}

static int enqueue_gemm(const filch_call *call, const filch_lane *lane, void *state)
{
    (void)lane;
    return fl_vendor_gemm_nt(state, &call->views[0], &call->views[1], &call->views[2]);
}

static double work_potrf(const filch_call *call)
{
    return bench_flops_cholesky((double)call->views[0].rows);
}

static double work_trsm(const filch_call *call)
{
    return bench_flops_trsm((double)call->views[1].rows, (double)call->views[1].cols);
}

static double work_syrk(const filch_call *call)
{
    return bench_flops_syrk((double)call->views[1].rows, (double)call->views[0].cols);
}

static double work_gemm(const filch_call *call)
{
    const filch_view *c = &call->views[2];
    return bench_flops_gemm((double)c->rows, (double)c->cols, (double)call->views[0].cols);
}

static void teardown(void *state)
{
    cholesky *c = state;
    bench_square_close(&c->square);
    free(c->pivots);
    free(c->inverses);
    free(c);
}

static filch_status setup(const bench_options *options, filch_error *error, void **state)
{
    cholesky *c = calloc(1, sizeof *c);
    if (!c)
        return bench_fail(error, FILCH_OUT_OF_MEMORY, "cholesky", 0, "no memory");
    filch_status status = bench_square_open(&c->square, BENCH_SQUARE_DEFINITE, options, error);
    if (status == FILCH_OK)
        status = bench_square_add_result(&c->square, error);
    if (status != FILCH_OK) {
        teardown(c);
        return status;
    }
    *state = c;
    return FILCH_OK;
}

/* Whether diagonal tiles are inverted. */
static bool inverts(const cholesky *c)
{
    size_t least = c->has_panels ? FL_CHOLESKY_INVERTED_LEAST : INVERTED_LEAST_BY_VENDOR;
    bool is_whole = c->has_panels && c->square.tile == c->square.n;
    return c->square.offload.vendor &&
           (is_whole || (c->square.tile >= least && c->square.tile <= FL_CHOLESKY_INVERTED_MOST));
}

static void describe(const void *state, bench_problem *problem)
{
    const cholesky *c = state;
    char by[48];
    bench_square_describe(&c->square, bench_flops_cholesky((double)c->square.n), problem);
    if (c->square.halves_last)
        snprintf(problem->variant, sizeof problem->variant, "the last tiles halved");
    snprintf(
        problem->text, sizeof problem->text,
        "Cholesky factorization of a %s of order %zu, factored densely%s, %zu x %zu tiles%s%s%s",
        c->square.is_from_file ? "matrix from a file" : "random matrix", c->square.n,
        c->square.kernels == &bench_kernels_single ? " in single precision" : "", c->square.tile,
        c->square.tile, c->square.halves_last ? ", the last ones halved" : "",
        bench_offload_text(&c->square.offload, by, sizeof by),
        c->has_panels && inverts(c) ? ", filch's panels" : "");
}

static size_t tiles(const void *state, size_t *tiles_out, size_t capacity)
{
    static const size_t on_host[] = {96, 128, 160, 192, 224, 256, 320, 384, 512};
    const cholesky *c = state;
    size_t count = bench_square_tiles(&c->square, on_host, sizeof on_host / sizeof *on_host,
                                      tiles_out, capacity);
    if (c->has_panels && c->square.n <= WHOLE_MOST && count < capacity)
        tiles_out[count++] = c->square.n;
    return count;
}

static const char *way(const void *state, size_t index)
{
    static const char *const names[] = {"all equal", "halved at the end"};
    const cholesky *c = state;
    return c->square.offload.vendor && index < sizeof names / sizeof *names ? names[index] : NULL;
}

static bool way_fits(const void *state, size_t tile, size_t index)
{
    const cholesky *c = state;
    return index == 0 || bench_square_can_halve(&c->square, tile);
}

static void way_set(void *state, size_t index)
{
    cholesky *c = state;
    c->square.halves_last = index != 0;
}

/* One of the kernels: the vendor's, or filch's own where that is not installed. */
static filch_status make_codelet(cholesky *c, bench_built *built, enum kernel which)
{
    static const struct {
        const char *name;
        const char *builtin[2]; /* in double and in single precision */
        filch_host_fn host;
        filch_enqueue_fn enqueue;
        filch_work_fn work;
    } kernels[] = {
        [POTRF] = {"potrf", {"potrf_f64", "potrf_f32"}, run_potrf, enqueue_potrf, work_potrf},
        [TRSM] = {"trsm", {"trsm_f64", "trsm_f32"}, run_trsm, enqueue_trsm, work_trsm},
        [SYRK] = {"syrk", {"syrk_f64", "syrk_f32"}, run_syrk, enqueue_syrk, work_syrk},
        [GEMM] = {"gemm", {"gemm_f64", "gemm_f32"}, run_gemm, enqueue_gemm, work_gemm},
        [MULTIPLY] = {"multiply", {NULL, NULL}, run_multiply, enqueue_multiply, work_trsm},
    };
    const char *name = kernels[which].builtin[c->square.kernels == &bench_kernels_single];
    const filch_kernel *builtin = name ? filch_kernel_find(name) : NULL;
    const filch_kernel *panels = filch_kernel_find(
        c->square.kernels == &bench_kernels_single ? "potrf_trtri_f32" : "potrf_trtri_f64");
    filch_codelet_desc desc = FILCH_CODELET_DESC_INIT;
    filch_cuda_desc cuda = FILCH_CUDA_DESC_INIT;
    desc.name = kernels[which].name;
    desc.host = c->square.is_idle ? bench_run_nothing : kernels[which].host;
    desc.work = kernels[which].work;
    if (which == POTRF && c->has_panels && inverts(c)) {
        desc.cuda = panels->cuda;
        desc.arg_size = panels->arg_size;
    } else if (bench_offload_enqueue(&c->square.offload, kernels[which].enqueue, &cuda)) {
        desc.cuda = &cuda;
    } else if (c->square.offload.has_gpus && builtin) {
        desc.cuda = builtin->cuda;
        desc.arg_size = builtin->arg_size;
    }
    return filch_codelet_create(built->runtime, &desc, &built->codelets[which]);
}

static filch_status make_codelets(cholesky *c, bench_built *built)
{
    filch_status status = FILCH_OK;
    if (c->square.offload.vendor)
        fl_vendor_expect(c->square.offload.vendor, c->square.kernels->element, c->square.tile,
                         inverts(c));
    for (int k = POTRF; k <= (inverts(c) ? MULTIPLY : GEMM) && status == FILCH_OK; k++)
        status = make_codelet(c, built, (enum kernel)k);
    return status;
}

/* --- Tasks --- */

/* What a diagonal tile's factorization writes beside it: no tile is below the last one. */
static uint32_t add_pivot(const cholesky *c, const bench_built *built, size_t k,
                          filch_access *accesses)
{
    bool has_state = c->has_panels && inverts(c), is_shared = !c->square.offload.vendor;
    uint32_t count = 0;
    accesses[count++] =
        (filch_access){.data = built->data[PIVOTS],
                       .row = is_shared || has_state ? 0 : (uint32_t)k,
                       .col = has_state ? (uint32_t)k : 0,
                       .mode = is_shared || has_state ? FILCH_READWRITE : FILCH_WRITE};
    if (has_state || (inverts(c) && k + 1 < c->square.count))
        accesses[count++] =
            (filch_access){.data = built->data[INVERSES], .col = (uint32_t)k, .mode = FILCH_WRITE};
    return count;
}

/* The tile (i, k) by the inverse of the tile (k, k). */
static filch_status add_multiply(const cholesky *c, const bench_built *built, size_t i, size_t k)
{
    const filch_access accesses[] = {
        {.data = built->data[INVERSES], .col = (uint32_t)k, .mode = FILCH_READ},
        {.data = built->data[MATRIX],
         .row = (uint32_t)i,
         .col = (uint32_t)k,
         .mode = FILCH_READWRITE},
        {.mode = FILCH_SCRATCH,
         .bytes = c->square.tile * c->square.tile * c->square.kernels->element},
    };
    filch_task_desc desc = FILCH_TASK_DESC_INIT;
    desc.codelet = built->codelets[MULTIPLY];
    desc.accesses = accesses;
    desc.access_count = 3;
    desc.affinity = bench_square_owner(&c->square, i, k);
    desc.priority = -(int32_t)i;
    return filch_graph_add(built->graph, &desc, NULL);
}

/* One task whose accesses are reads of tiles and, last, the tile that it updates. */
static filch_status add(const cholesky *c, const bench_built *built, enum kernel kernel,
                        const size_t (*where)[2], uint32_t count)
{
    static const filch_gemm_args gemm_args = {-1, 1, 0, 1};
    static const filch_syrk_args syrk_args = {-1, 1, 0, 0};
    static const filch_potrf_trtri_args panel_args[] = {{0, 0}, {1, 0}}; /* the last, others */
    bool is_builtin = c->square.offload.has_gpus && !c->square.offload.vendor;
    const size_t *written = where[count - 1];
    filch_access accesses[6];
    for (uint32_t k = 0; k < count; k++)
        accesses[k] = (filch_access){.data = built->data[MATRIX],
                                     .row = (uint32_t)where[k][0],
                                     .col = (uint32_t)where[k][1],
                                     .mode = k + 1 < count ? FILCH_READ : FILCH_READWRITE};
    if (kernel == POTRF && c->square.offload.has_gpus)
        count += add_pivot(c, built, where[0][0], accesses + count);
    filch_task_desc desc = FILCH_TASK_DESC_INIT;
    desc.codelet = built->codelets[kernel];
    if (is_builtin && kernel == GEMM)
        desc.args = &gemm_args;
    if (is_builtin && kernel == SYRK)
        desc.args = &syrk_args;
    if (c->has_panels && inverts(c) && kernel == POTRF)
        desc.args = &panel_args[where[0][0] + 1 < c->square.count];
    desc.accesses = accesses;
    desc.access_count = count;
    desc.affinity = bench_square_owner(&c->square, written[0], written[1]);
    desc.priority = -(int32_t)written[0];
    return filch_graph_add(built->graph, &desc, NULL);
}

/* The graph is that of kernels/dense; codelets, devices and priorities are the bench's. */
typedef struct construction {
    const cholesky *c;
    const bench_built *built;
} construction;

static filch_status add_task(void *user, fl_tile_op op, uint32_t i, uint32_t j, uint32_t k)
{
    const construction *at = user;
    switch (op) {
    case FL_TILE_POTRF:
        return add(at->c, at->built, POTRF, (const size_t[][2]){{k, k}}, 1);
    case FL_TILE_TRSM:
        return inverts(at->c) ? add_multiply(at->c, at->built, i, k)
                              : add(at->c, at->built, TRSM, (const size_t[][2]){{k, k}, {i, k}}, 2);
    case FL_TILE_SYRK:
        return add(at->c, at->built, SYRK, (const size_t[][2]){{j, k}, {j, j}}, 2);
    default:
        return add(at->c, at->built, GEMM, (const size_t[][2]){{i, k}, {j, k}, {i, j}}, 3);
    }
}

/* --- Data --- */

static filch_status make_pivots(cholesky *c, bench_built *built, size_t count)
{
    filch_data_desc desc = FILCH_DATA_DESC_INIT;
    bool has_state = c->has_panels && inverts(c);
    /* Once for every tile size: other runtimes' handles are of the same memory. At most
     * n / tile + 3 tiles, two of them by halving; a tile that is inverted has no more words than
     * rows. */
    if (!c->pivots)
        c->pivots =
            calloc(c->square.n + 3 * FILCH_POTRF_TRTRI_STATE(c->square.n), sizeof *c->pivots);
    if (!c->pivots)
        return FILCH_OUT_OF_MEMORY;
    c->pivot_count = count;
    c->pivot_step = has_state ? FILCH_POTRF_TRTRI_STATE(c->square.tile) : 1;
    desc.ptr = c->pivots;
    desc.element = sizeof *c->pivots;
    desc.rows = has_state ? c->pivot_step : count;
    desc.cols = has_state ? count : 1;
    desc.tile_rows = c->pivot_step;
    desc.tile_cols = 1;
    desc.label = "pivots";
    return filch_data_create(built->runtime, &desc, &built->data[PIVOTS]);
}

/* A handle that stays on the devices; the host's memory of it is touched by host tasks alone. */
static filch_status make_inverses(cholesky *c, bench_built *built, size_t count)
{
    size_t element = c->square.kernels->element;
    size_t most = c->square.n < FL_CHOLESKY_INVERTED_MOST ? c->square.n : FL_CHOLESKY_INVERTED_MOST;
    filch_data_desc desc = FILCH_DATA_DESC_INIT;
    /* Once for every tile size: other runtimes' handles are of the same memory. */
    if (!c->inverses)
        c->inverses = calloc(most * (c->square.n + most), element);
    if (!c->inverses)
        return FILCH_OUT_OF_MEMORY;
    desc.ptr = c->inverses;
    desc.element = element;
    desc.rows = desc.ld = c->square.tile;
    desc.tile_cols = count > 1 || c->square.n < SCRATCH_COLS ? c->square.tile : SCRATCH_COLS;
    desc.cols = count * desc.tile_cols;
    if (c->square.halves_last) {
        desc.cols = c->square.n;
        desc.tile_cols = 0;
        desc.col_cuts = c->square.sides;
        desc.col_cut_count = (uint32_t)count;
    }
    desc.flags = FILCH_DATA_MANAGED;
    desc.label = "inverses";
    return filch_data_create(built->runtime, &desc, &built->data[INVERSES]);
}

static filch_status make_data(cholesky *c, bench_built *built, size_t count)
{
    filch_status status = bench_square_data(&c->square, built, c->square.result, MATRIX);
    if (status == FILCH_OK && c->square.is_resident) {
        status = bench_square_data(&c->square, built, c->square.input, INPUT);
        built->result = built->data[MATRIX];
    }
    if (status == FILCH_OK && c->square.offload.has_gpus)
        status = make_pivots(c, built, c->square.offload.vendor ? count : 1);
    if (status == FILCH_OK && inverts(c))
        status = make_inverses(c, built, count);
    return status;
}

/* From the host's memory upper rows run first: of all sets of as many tiles, the first rows let the
 * most tasks run. */
static filch_status make_graph(const cholesky *c, bench_built *built)
{
    filch_graph_desc desc = FILCH_GRAPH_DESC_INIT;
    desc.priorities = c->square.is_arriving ? FILCH_PRIORITIES_CALLER : FILCH_PRIORITIES_RANK;
    return filch_graph_create(built->runtime, &desc, &built->graph);
}

/* Once: the answer is that of the first runtime's GPUs. */
static void try_panels(cholesky *c, filch_runtime *runtime)
{
    bool is_single = c->square.kernels == &bench_kernels_single;
    if (!c->has_tried_panels && c->square.offload.vendor)
        c->has_panels = fl_tiles_make_panels(runtime, is_single) != NULL;
    c->has_tried_panels = true;
}

static filch_status build(void *state, bench_built *built)
{
    cholesky *c = state;
    bench_square_meet(&c->square, built->runtime);
    try_panels(c, built->runtime);
    size_t count = c->square.count;
    filch_status status = make_codelets(c, built);
    if (status == FILCH_OK)
        status = make_data(c, built, count);
    if (status == FILCH_OK)
        status = make_graph(c, built);
    if (status == FILCH_OK)
        status = fl_cholesky_each((uint32_t)count, add_task, &(construction){c, built});
    if (status == FILCH_OK && c->square.is_resident)
        status = bench_square_restore(&c->square, built, INPUT, MATRIX, COPY);
    return status;
}

static void reset(void *state)
{
    cholesky *c = state;
    bench_square_reset(state);
    if (c->pivots)
        memset(c->pivots, 0, c->pivot_count * c->pivot_step * sizeof *c->pivots);
}

static filch_status not_positive(const cholesky *c, int32_t row, filch_error *error)
{
    return bench_fail(error, FILCH_DATA, "matrix", 0,
                      "it is not positive definite%s: the pivot in row %d is not positive",
                      c->square.kernels == &bench_kernels_single ? " in single precision" : "",
                      row);
}

static filch_status finish(void *state, bench_built *built, filch_error *error)
{
    (void)built;
    const cholesky *c = state;
    for (size_t k = 0; k < c->pivot_count; k++) {
        int32_t row = c->pivots[k * c->pivot_step];
        if (row != 0)
            return not_positive(
                c, c->pivot_step > 1 ? row : row + (int32_t)bench_square_row(&c->square, k), error);
    }
    return FILCH_OK;
}

static void explain(const void *state, filch_error *error)
{
    int32_t code = error->native_code;
    if (code > 0)
        (void)not_positive(state, code, error);
    else
        bench_offload_explain(state, error);
}

/* Solves A x = b with a factor, in its precision, for the b of the x of all ones. */
static filch_status solve(const cholesky *c, const void *factor, double *residual,
                          filch_error *error)
{
    const bench_kernels *kernels = c->square.kernels;
    double *b = calloc(3 * c->square.n, sizeof *b);
    if (!b)
        return bench_fail(error, FILCH_OUT_OF_MEMORY, "check", 0, "no memory for three vectors");
    double *x = b + c->square.n;
    void *solution = x + c->square.n;
    bench_dense_row_sums(c->square.n, c->square.n, c->square.a, b);
    (void)kernels->round(c->square.n, b, solution);
    kernels->solve(c->square.n, factor, c->square.n, solution);
    for (size_t k = 0; k < c->square.n; k++)
        x[k] = kernels->get(solution, k);
    double most = BACKWARD_ERROR_ROUNDOFFS * kernels->unit;
    if (!c->square.is_from_file)
        most *= fmax(1, sqrt((double)c->square.n / BACKWARD_ERROR_ORDER));
    filch_status status = bench_square_solves(&c->square, x, b, most, residual, error);
    free(b);
    return status;
}

static filch_status check(void *state, double *residual, filch_error *error)
{
    const cholesky *c = state;
    return solve(c, c->square.result, residual, error);
}

static filch_status peer(void *state, unsigned workers, filch_error *error, bench_peer_work **work)
{
    cholesky *c = state;
    filch_status status = bench_square_add_theirs(&c->square, error);
    *work = bench_square_work(&c->square, BENCH_PEER_CHOLESKY, workers);
    return status;
}

/* Factors of an ill-conditioned matrix may differ in many digits and both be right: what must agree
 * is that they solve the same system. */
static filch_status agree(void *state, filch_error *error)
{
    const cholesky *c = state;
    double ours, theirs;
    filch_status status = solve(c, c->square.result, &ours, error);
    return status == FILCH_OK ? solve(c, c->square.theirs, &theirs, error) : status;
}

const bench_workload bench_cholesky = {
    .name = "cholesky",
    .help = "factors a symmetric positive definite matrix, densely, by tiles",
    .unit = "flop",
    .takes_memory = true,
    .setup = setup,
    .teardown = teardown,
    .describe = describe,
    .tiles = tiles,
    .tile_set = bench_square_tile_set,
    .way = way,
    .way_set = way_set,
    .way_fits = way_fits,
    .build = build,
    .reset = reset,
    .finish = finish,
    .explain = explain,
    .check = check,
    .peer = peer,
    .agree = agree,
};
