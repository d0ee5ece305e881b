/* SPDX-License-Identifier: Apache-2.0 */
/* C = A B by tiles of C.
 *
 * On the host a task makes a tile, over the whole inner dimension: A is cut into panels of rows, B
 * into panels of columns. On GPUs, and on simulated devices with links, all three are cut both
 * ways, A into squares, B and C into tiles that may be narrower, and a tile of C is made by a chain
 * of tasks, one for each step of the inner dimension: so the first can run when two tiles are
 * there. Columns of C are taken in blocks, and each block step by step, which needs few tiles of A
 * and B at once, and has a step's to compute while it brings the next (R. van de Geijn, J. Watts,
 * "SUMMA: scalable universal matrix multiplication algorithm", Concurrency 9(4), 1997). */
#include "offload/offload.h"
#include "problems/dense.h"
#include "problems/product_check.h"
#include "problems/tiles.h"
#include "problems/traffic.h"
#include "support/fail.h"
#include "workloads/workload.h"

#include "filch/kernels.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define DEFAULT_N 2048
#define DEFAULT_TILE 256
#define N_MAX 1000000
#define TASKS_MAX 2e7
#define PROBE_TILES 3
/* A host's tile packs its rows of A and its columns of B, whatever the others packed: the larger it
 * is, the less of its time goes there. Tall tiles are as narrow as leaves each device this many; a
 * tile of all rows, one. */
#define DEVICE_TILES_LEAST 2
/* More tiles along a side make no difference to the balance, and cost packing. */
#define SIDE_TILES_MOST 64
/* From this order on there are enough tiles of the size at which a GPU is at its best. */
#define LARGE_N 16384
#define LARGE_TILE 2048
/* Links like columns of 32 KiB better than half as long ones: where not all fits into a GPU's
 * memory such tiles are square, as they come and go all the time; else those of B and C are narrow,
 * so that the first product can begin, and the last result is home, the sooner. */
#define WIDE_TILE 4096
#define NARROW_COLS 1024
/* Such tiles at least have to fit: two columns' worth of A and B, and one of C, of order LARGE_N.
 */
#define WIDE_LEAST 14
/* Tiles of C in a block. */
#define CHAINS_MOST 64
/* Of a GPU's memory, for a block of columns and what it needs at once. */
#define PART_OF_MEMORY 0.9
/* Sums of n products in another order, or of products of rounded elements, differ by about sqrt(n)
 * roundings of the largest sum, be it in double or in single precision: the errors are as good as
 * random (N. Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., section 2.8). Several
 * times that tells every wrong result, which is off by about the size of an element. */
#define AGREEMENT_ROUNDOFFS 8.0

enum matrix { A, B, C };

typedef struct gemm {
    size_t n;
    uint64_t seed;
    size_t tile;                  /* rows of a tile of C, and on GPUs the sides of one of A */
    size_t cols;                  /* of a tile of B or C; 0: as many */
    const bench_kernels *kernels; /* of the inputs, c and theirs */
    double *a;                    /* the problem: a, then b, in one allocation */
    double *b;
    void *c;         /* the result; in single precision rounded copies of a and b follow it */
    void *inputs[2]; /* what is multiplied: a and b, or their rounded copies */
    void *theirs;    /* the peer's c; null: there is none */
    bool is_idle;
    bool is_resident;
    bool is_probe;
    bool has_tile;    /* given or chosen */
    bool may_narrow;  /* the tile was chosen, not given */
    uint32_t devices; /* of the runtime */
    double room;      /* bytes that filch may take of the smallest GPU's memory */
    bench_peer_work work;
    bench_offload offload;
} gemm;

static int run(const filch_call *call, int keep)
{
    const filch_view *a = &call->views[A];
    const filch_view *b = &call->views[B];
    const filch_view *c = &call->views[C];
    const bench_kernels *kernels =
        c->element == sizeof(double) ? &bench_kernels_double : &bench_kernels_single;
    kernels->gemm_nn(c->rows, c->cols, a->cols, a->ptr, a->ld, b->ptr, b->ld, keep, c->ptr, c->ld);
    return 0;
}

static int run_gemm(const filch_call *call)
{
    return run(call, 0);
}

static int run_add(const filch_call *call)
{
    return run(call, 1);
}

static int enqueue_gemm(const filch_call *call, const filch_lane *lane, void *state)
{
    (void)lane;
    return fl_vendor_gemm_nn(state, &call->views[A], &call->views[B], 0, &call->views[C]);
}

static int enqueue_add(const filch_call *call, const filch_lane *lane, void *state)
{
    (void)lane;
    return fl_vendor_gemm_nn(state, &call->views[A], &call->views[B], 1, &call->views[C]);
}

static double work_gemm(const filch_call *call)
{
    const filch_view *c = &call->views[C];
    return bench_flops_gemm((double)c->rows, (double)c->cols, (double)call->views[A].cols);
}

/* Rows and columns of C: all, or those of a probe, enough to occupy a device's lanes. */
static size_t width(const gemm *g)
{
    return g->is_probe && PROBE_TILES * g->tile < g->n ? PROBE_TILES * g->tile : g->n;
}

/* Of tiles of 0 rows, others will be chosen; 0 columns are as many as rows. */
static filch_status check_size(size_t n, size_t tile, size_t cols, filch_error *error)
{
    if (n > N_MAX)
        return bench_fail(error, FILCH_TOO_LARGE, "--n", 0, "%zu is above %d", n, N_MAX);
    if (tile > n || cols > n)
        return bench_fail(error, FILCH_INVALID_ARGUMENT, tile > n ? "--tile" : "--tile-cols", 0,
                          "%zu is larger than the matrix, whose order is %zu",
                          tile > n ? tile : cols, n);
    if (tile == 0 && cols == 0)
        return FILCH_OK;
    size_t down = tile ? tile : n < DEFAULT_TILE ? n : DEFAULT_TILE;
    double tiles = ceil((double)n / (double)down) * ceil((double)n / (double)(cols ? cols : down));
    if (tiles > TASKS_MAX)
        return bench_fail(error, FILCH_TOO_LARGE, cols ? "--tile-cols" : "--tile", 0,
                          "%zu is too small: order %zu makes %.3g tasks of it, above %.3g",
                          cols ? cols : tile, n, tiles, TASKS_MAX);
    return FILCH_OK;
}

static void teardown(void *state)
{
    gemm *g = state;
    bench_offload_close(&g->offload);
    free(g);
}

static filch_status make_matrices(gemm *g, uint64_t seed, filch_error *error)
{
    bool is_rounded = g->kernels != &bench_kernels_double;
    size_t elements = g->n * g->n;
    void *problem = NULL;
    filch_status status =
        bench_offload_squares(&g->offload, g->n, 2, sizeof *g->a, "--n", error, &problem);
    if (status == FILCH_OK)
        status = bench_offload_squares(&g->offload, g->n, is_rounded ? 3 : 1, g->kernels->element,
                                       "--n", error, &g->c);
    g->a = problem;
    if (status != FILCH_OK)
        return status;
    g->b = g->a + elements;
    g->seed = seed;
    bench_dense_fill(g->n, g->n, g->n, g->a, seed);
    bench_dense_fill(g->n, g->n, g->n, g->b, seed + 1);
    g->inputs[A] = g->a;
    g->inputs[B] = g->b;
    if (is_rounded) {
        g->inputs[A] = (char *)g->c + elements * g->kernels->element;
        g->inputs[B] = (char *)g->inputs[A] + elements * g->kernels->element;
        (void)g->kernels->round(elements, g->a, g->inputs[A]); /* all below 1 */
        (void)g->kernels->round(elements, g->b, g->inputs[B]);
    }
    return FILCH_OK;
}

static filch_status setup(const bench_options *options, filch_error *error, void **state)
{
    if (options->matrix)
        return bench_fail(error, FILCH_UNSUPPORTED, "--matrix", 0, "gemm generates its matrices");
    size_t n = options->n ? options->n : DEFAULT_N;
    filch_status status = check_size(n, options->tile, options->tile_cols, error);
    if (status != FILCH_OK)
        return status;
    gemm *g = calloc(1, sizeof *g);
    if (!g)
        return bench_fail(error, FILCH_OUT_OF_MEMORY, "gemm", 0, "no memory");
    g->n = n;
    g->tile = options->tile ? options->tile : n < DEFAULT_TILE ? n : DEFAULT_TILE;
    g->is_idle = bench_is_simulated(options) && !options->check;
    g->has_tile = options->tile != 0;
    g->cols = options->tile_cols;
    g->is_resident = options->resident;
    g->offload.has_no_vendor = options->own_kernels;
    g->kernels = options->precision == BENCH_SINGLE ? &bench_kernels_single : &bench_kernels_double;
    status = bench_offload_choose(&g->offload, options, error);
    if (status == FILCH_OK)
        status = make_matrices(g, options->seed ? options->seed : 1, error);
    if (status != FILCH_OK) {
        teardown(g);
        return status;
    }
    *state = g;
    return FILCH_OK;
}

/* Tiles down A and C, and steps of the inner dimension. */
static size_t side(const gemm *g)
{
    return (g->n + g->tile - 1) / g->tile;
}

static size_t cols(const gemm *g)
{
    if (g->cols || !g->may_narrow || g->offload.has_memories)
        return g->cols ? g->cols : g->tile;
    size_t least = side(g) == 1 ? 1 : DEVICE_TILES_LEAST;
    size_t across = (least * (size_t)g->devices + side(g) - 1) / side(g);
    size_t widest = across > 0 ? (g->n + across - 1) / across : g->n;
    return g->tile < widest ? g->tile : widest;
}

static void describe(const void *state, bench_problem *problem)
{
    const gemm *g = state;
    double n = (double)g->n;
    char by[48];
    problem->n = g->n;
    problem->tile = g->tile;
    problem->tile_cols = cols(g) == g->tile ? 0 : cols(g);
    problem->vendor_s = bench_offload_vendor_s(&g->offload);
    problem->work = bench_flops_gemm((double)width(g), (double)width(g), n);
    snprintf(problem->text, sizeof problem->text,
             "Product of two random matrices of order %zu%s, %zu x %zu tiles%s", g->n,
             g->kernels == &bench_kernels_single ? " in single precision" : "", g->tile, cols(g),
             bench_offload_text(&g->offload, by, sizeof by));
}

static size_t tiles(const void *state, size_t *tiles_out, size_t capacity)
{
    static const size_t candidates[] = {128, 192, 256, 384, 512, 1024, 2048};
    const gemm *g = state;
    size_t count = 0;
    if (g->offload.has_memories)
        return bench_offload_tiles(g->n, tiles_out, capacity);
    for (size_t k = 0; k < sizeof candidates / sizeof *candidates && count < capacity; k++)
        if (candidates[k] <= g->n && candidates[k] * SIDE_TILES_MOST >= g->n &&
            check_size(g->n, candidates[k], g->cols, NULL) == FILCH_OK)
            tiles_out[count++] = candidates[k];
    return count;
}

static void tile_set(void *state, size_t tile)
{
    gemm *g = state;
    g->tile = tile;
    g->has_tile = true;
    g->may_narrow = true;
}

static filch_status make_data(const gemm *g, bench_built *built, enum matrix which, void *values,
                              size_t tile_rows, size_t tile_cols)
{
    static const char *const labels[] = {[A] = "A", [B] = "B", [C] = "C"};
    filch_data_desc desc = FILCH_DATA_DESC_INIT;
    desc.ptr = values;
    desc.element = g->kernels->element;
    desc.rows = which == B ? g->n : width(g);
    desc.cols = which == A ? g->n : width(g);
    desc.ld = g->n;
    desc.tile_rows = tile_rows;
    desc.tile_cols = tile_cols;
    desc.label = labels[which];
    desc.flags = g->is_resident || g->is_probe ? FILCH_DATA_MANAGED : 0;
    return filch_data_create(built->runtime, &desc, &built->data[which]);
}

static size_t across(const gemm *g)
{
    return (g->n + cols(g) - 1) / cols(g);
}

static size_t steps(const gemm *g)
{
    return g->offload.has_memories ? side(g) : 1;
}

/* Columns of tiles in a block: two blocks, or fewer columns, so that what is ready at once is not
 * more than filch chooses among, or what fits into the memory of the smallest GPU beside
 * two steps' tiles of A and B. */
static size_t block_columns(const gemm *g)
{
    double row = (double)g->tile * (double)g->kernels->element, down = (double)side(g);
    double left = PART_OF_MEMORY * g->room - 2 * down * row * (double)g->tile;
    double fit = floor(left / ((down + 2) * row * (double)cols(g)));
    size_t most = (across(g) + 1) / 2;
    most = most * side(g) <= CHAINS_MOST ? most : CHAINS_MOST / side(g);
    most = fit < (double)most ? (size_t)fmax(fit, 1) : most;
    return most > 0 ? most : 1;
}

/* Step k of tile (i, j). */
static filch_status add(const gemm *g, const bench_built *built, size_t i, size_t j, size_t k)
{
    static const filch_gemm_args args[] = {{1, 0, 0, 0}, {1, 1, 0, 0}};
    const filch_access accesses[] = {
        [A] = {.data = built->data[A], .row = (uint32_t)i, .col = (uint32_t)k, .mode = FILCH_READ},
        [B] = {.data = built->data[B], .row = (uint32_t)k, .col = (uint32_t)j, .mode = FILCH_READ},
        [C] = {.data = built->data[C],
               .row = (uint32_t)i,
               .col = (uint32_t)j,
               .mode = k == 0 ? FILCH_WRITE : FILCH_READWRITE},
    };
    filch_task_desc desc = FILCH_TASK_DESC_INIT;
    desc.codelet = built->codelets[k > 0];
    desc.args = g->offload.has_gpus && !g->offload.vendor ? &args[k > 0] : NULL;
    desc.accesses = accesses;
    desc.access_count = 3;
    desc.priority = -(int32_t)(j / block_columns(g)); /* heeded on GPUs */
    return filch_graph_add(built->graph, &desc, NULL);
}

static filch_status add_all(const gemm *g, bench_built *built)
{
    filch_graph_desc desc = FILCH_GRAPH_DESC_INIT;
    desc.priorities = g->offload.has_memories ? FILCH_PRIORITIES_CALLER : FILCH_PRIORITIES_RANK;
    filch_status status = filch_graph_create(built->runtime, &desc, &built->graph);
    size_t count = (width(g) + g->tile - 1) / g->tile, columns = block_columns(g);
    size_t count_across = (width(g) + cols(g) - 1) / cols(g);
    for (size_t first = 0; first < count_across; first += columns)
        for (size_t k = 0; k < steps(g); k++)
            for (size_t j = first; j < count_across && j < first + columns; j++)
                for (size_t i = 0; i < count && status == FILCH_OK; i++)
                    status = add(g, built, i, j, k);
    return status;
}

/* By the vendor's library, or filch's own kernel where that is not installed. */
static filch_status make_codelet(const gemm *g, bench_built *built, bool adds)
{
    bool is_single = g->kernels == &bench_kernels_single;
    const filch_kernel *builtin = filch_kernel_find(is_single ? "gemm_f32" : "gemm_f64");
    filch_codelet_desc desc = FILCH_CODELET_DESC_INIT;
    filch_cuda_desc cuda = FILCH_CUDA_DESC_INIT;
    desc.name = adds ? "gemm_add" : "gemm";
    desc.host = g->is_idle ? bench_run_nothing : adds ? run_add : run_gemm;
    desc.work = work_gemm;
    if (bench_offload_enqueue(&g->offload, adds ? enqueue_add : enqueue_gemm, &cuda)) {
        desc.cuda = &cuda;
    } else if (g->offload.has_gpus) {
        desc.cuda = builtin->cuda;
        desc.arg_size = builtin->arg_size;
    }
    return filch_codelet_create(built->runtime, &desc, &built->codelets[adds]);
}

static void choose_tile(gemm *g)
{
    double all = 3.0 * (double)g->n * (double)g->n * (double)g->kernels->element;
    double wide = (double)WIDE_TILE * WIDE_TILE * (double)g->kernels->element;
    bool fits = all <= PART_OF_MEMORY * g->room;
    if (g->n < LARGE_N) {
        g->tile = bench_offload_tile(g->n);
    } else if (g->is_resident || (!fits && g->room < WIDE_LEAST * wide)) {
        g->tile = LARGE_TILE;
    } else {
        g->tile = WIDE_TILE;
        g->cols = g->cols == 0 && fits ? NARROW_COLS : g->cols;
    }
}

static filch_status build(void *state, bench_built *built)
{
    gemm *g = state;
    size_t bytes = g->n * g->n * g->kernels->element;
    bench_offload_meet(&g->offload, built->runtime);
    bool is_rounded = g->inputs[A] != g->a;
    if (!is_rounded)
        bench_offload_pin(&g->offload, g->a, 2 * bytes);
    bench_offload_pin(&g->offload, g->c, is_rounded ? 3 * bytes : bytes);
    g->room = bench_offload_room(built->runtime);
    g->devices = filch_device_count(built->runtime);
    if (g->offload.has_memories && !g->has_tile)
        choose_tile(g);
    size_t inner = g->offload.has_memories ? g->tile : 0;
    filch_status status = make_codelet(g, built, false);
    if (status == FILCH_OK)
        status = make_codelet(g, built, true);
    if (status == FILCH_OK)
        status = make_data(g, built, A, g->inputs[A], g->tile, inner);
    if (status == FILCH_OK)
        status = make_data(g, built, B, g->inputs[B], inner, cols(g));
    if (status == FILCH_OK)
        status = make_data(g, built, C, g->c, g->tile, cols(g));
    built->result = g->is_resident && !g->is_probe ? built->data[C] : NULL;
    return status == FILCH_OK ? add_all(g, built) : status;
}

static void probe(void *state, bool on)
{
    ((gemm *)state)->is_probe = on;
}

/* Each memory is taken to have a stretch of the tiles of C, column after column, as long as the
 * number of tasks that its devices did, and to go through it in the order of the blocks. From the
 * host, a tile of A or B that several memories need must come once where they can pass it on. */
static bool traffic(const void *state, const bench_memory_share *shares, size_t count, bool joined,
                    bench_traffic *t)
{
    const gemm *g = state;
    double element = (double)g->kernels->element, n = (double)g->n, tile = (double)g->tile;
    size_t tiles = side(g) * across(g);
    bench_product product = {.side = side(g),
                             .across = across(g),
                             .columns = block_columns(g),
                             .tile = tile,
                             .last = n - (double)(side(g) - 1) * tile,
                             .tile_cols = (double)cols(g),
                             .last_cols = n - (double)((across(g) - 1) * cols(g)),
                             .element = element};
    double all = 0, done = 0, room = 0;
    size_t first = tiles, last = 0;
    if (g->is_resident)
        return false;
    for (size_t k = 0; k < count; k++)
        all += shares[k].tiles;
    for (size_t k = 0; k < count; k++) {
        product.begin = (size_t)lround(done / all * (double)tiles);
        done += shares[k].tiles;
        product.end = (size_t)lround(done / all * (double)tiles);
        if (shares[k].is_host || product.begin == product.end)
            continue;
        t->in += bench_traffic_least(&product, shares[k].room);
        t->out += (double)(product.end - product.begin) / (double)tiles * n * n * element;
        room += shares[k].room;
        first = product.begin < first ? product.begin : first;
        last = product.end;
    }
    t->all = t->in + t->out;
    product.begin = first;
    product.end = last;
    if (joined && last > first)
        t->in = fmin(t->in, bench_traffic_least(&product, room));
    return last > first && isfinite(t->all) && isfinite(t->in);
}

/* What elements differ by at most, and what they are at most. */
typedef struct comparison {
    double worst;
    double largest;
} comparison;

static void compare(comparison *c, double value, double reference)
{
    double difference = fabs(value - reference);
    /* Not fmax, which would lose a not-a-number. */
    if (!isnan(c->worst) && !(difference <= c->worst))
        c->worst = difference;
    c->largest = fmax(c->largest, fabs(reference));
}

static double most(const gemm *g)
{
    return AGREEMENT_ROUNDOFFS * sqrt((double)g->n) * g->kernels->unit;
}

/* The residual is the larger of the errors that product_check.h tells. */
static filch_status check(void *state, double *residual, filch_error *error)
{
    const gemm *g = state;
    bench_product_errors errors;
    bench_product_claim claim = {
        .n = g->n, .a = g->a, .b = g->b, .c = g->c, .get = g->kernels->get, .seed = g->seed};
    if (!bench_product_check(&claim, &errors))
        return bench_fail(error, FILCH_OUT_OF_MEMORY, "check", 0, "no memory for the check");
    /* Not fmax, which would lose a not-a-number. */
    *residual = errors.rows <= errors.sampled ? errors.sampled : errors.rows;
    if (!(errors.sampled <= most(g)))
        return bench_fail(error, FILCH_DATA, "check", 0,
                          "the largest difference from exact sums is %.3g of the largest element, "
                          "above %.3g",
                          errors.sampled, most(g));
    if (!(errors.rows <= most(g)))
        return bench_fail(
            error, FILCH_DATA, "check", 0,
            "a row differs, in sums with random signs, by %.3g of the largest element "
            "times the root of its length, above %.3g",
            errors.rows, most(g));
    return FILCH_OK;
}

static filch_status peer(void *state, unsigned workers, filch_error *error, bench_peer_work **work)
{
    gemm *g = state;
    filch_status status = g->theirs
                              ? FILCH_OK
                              : bench_offload_squares(&g->offload, g->n, 1, g->kernels->element,
                                                      "--versus", error, &g->theirs);
    g->work = (bench_peer_work){.kind = BENCH_PEER_GEMM,
                                .workers = workers,
                                .n = g->n,
                                .tile = g->tile,
                                .kernels = g->kernels,
                                .a = g->inputs[A],
                                .b = g->inputs[B],
                                .c = g->theirs,
                                .keeps_memory = g->offload.memory != BENCH_MEMORY_LOCKED,
                                .is_resident = g->is_resident};
    *work = &g->work;
    return status;
}

static filch_status agree(void *state, filch_error *error)
{
    const gemm *g = state;
    comparison c = {0};
    for (size_t k = 0; k < g->n * g->n; k++)
        compare(&c, g->kernels->get(g->c, k), g->kernels->get(g->theirs, k));
    /* Written so that theirs, all zero or not a number, does not agree. */
    if (!(c.worst <= most(g) * c.largest))
        return bench_fail(error, FILCH_DATA, "--versus", 0, "the results differ by %.3g of %.3g",
                          c.worst, c.largest);
    return FILCH_OK;
}

const bench_workload bench_gemm = {
    .name = "gemm",
    .help = "multiplies two dense matrices by tiles",
    .unit = "flop",
    .takes_memory = true,
    .takes_cols = true,
    .is_even = true,
    .setup = setup,
    .teardown = teardown,
    .describe = describe,
    .tiles = tiles,
    .tile_set = tile_set,
    .build = build,
    .explain = bench_offload_explain,
    .check = check,
    .peer = peer,
    .agree = agree,
    .traffic = traffic,
    .probe = probe,
};
