/* SPDX-License-Identifier: Apache-2.0 */
#include "workloads/square.h"

#include "problems/dense.h"
#include "problems/matrix_market.h"
#include "support/fail.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_N 4096
/* LAPACK's 32-bit integers, and the tasks that fit in a usual memory. */
#define N_MAX 1000000
#define TASKS_MAX 2e7

/* Tasks of so many tiles along a side. A block column updates each one behind it, a tile each one
 * of the smaller triangle; a tile of a product's triangle has a chain along its row; a tile of a
 * triangle takes part once for each column of right sides (in potrs twice, which the limit bears),
 * or twice, as a block column of a system. */
static double of_columns(double blocks)
{
    return blocks * (blocks + 1) / 2;
}

static double of_definite(double blocks)
{
    return blocks * (blocks + 1) * (blocks + 2) / 6;
}

static double of_triangle(double blocks)
{
    return blocks * blocks * (blocks + 1) / 2;
}

static double of_system(double blocks)
{
    return of_columns(blocks) + 3 * blocks * blocks;
}

static const struct {
    bool is_tiled, is_definite;
    size_t host_tile; /* where none is given or chosen */
    double (*tasks)(double blocks);
} kinds[] = {[BENCH_SQUARE_COLUMNS] = {false, false, 128, of_columns},
             [BENCH_SQUARE_DEFINITE] = {true, true, 256, of_definite},
             [BENCH_SQUARE_FACTOR] = {true, false, 256, of_triangle},
             [BENCH_SQUARE_TRIANGLE] = {true, true, 256, of_triangle},
             [BENCH_SQUARE_SYSTEM] = {false, false, 128, of_system}};

/* Least height of a piece that is copied to the host's memory, in bytes: shorter columns use the
 * link worse, taller pieces become final later. */
#define STORED_BYTES ((size_t)16 << 10)
/* Matrices that the devices' memories have room for, at least, where a factorization goes by way of
 * one: with less, what comes and what goes displace it. */
#define STAGED_ROOM 2
/* Columns of a block where there are GPUs. */
#define GPU_COLUMNS 512
static const size_t gpu_columns[] = {256, 512, 1024};

FL_DENSE_DECLARE
static const fl_dense_host host = FL_DENSE_LINKED;

/* --- Input --- */

/* A tile of 0 will be chosen. */
static filch_status check_size(const bench_square *s, size_t tile, filch_error *error)
{
    if (s->n > N_MAX)
        return bench_fail(error, FILCH_TOO_LARGE, "--n", 0, "%zu is above %d", s->n, N_MAX);
    if (tile > s->n)
        return bench_fail(error, FILCH_INVALID_ARGUMENT, "--tile", 0,
                          "%zu is larger than the matrix, whose order is %zu", tile, s->n);
    double tasks = tile ? kinds[s->kind].tasks(ceil((double)s->n / (double)tile)) : 0;
    if (tasks > TASKS_MAX)
        return bench_fail(error, FILCH_TOO_LARGE, "--tile", 0,
                          "%zu is too small: order %zu makes %.3g tasks of it, above %.3g", tile,
                          s->n, tasks, TASKS_MAX);
    return FILCH_OK;
}

static filch_status read_matrix(bench_square *s, const char *path, filch_error *error)
{
    bench_matrix matrix;
    filch_status status = bench_matrix_read(path, BENCH_MATRIX_SYMMETRIC, 0, error, &matrix);
    if (status != FILCH_OK)
        return status;
    void *a = NULL;
    s->n = matrix.rows;
    s->is_from_file = true;
    status = bench_offload_squares(&s->offload, s->n, 1, sizeof *s->a, "--matrix", error, &a);
    if (status == FILCH_OK)
        memcpy(a, matrix.values, s->n * s->n * sizeof *s->a);
    s->a = a;
    free(matrix.values);
    return status;
}

static filch_status make_matrix(bench_square *s, uint64_t seed, filch_error *error)
{
    void *a = NULL;
    filch_status status =
        bench_offload_squares(&s->offload, s->n, 1, sizeof *s->a, "--n", error, &a);
    s->a = a;
    if (status != FILCH_OK)
        return status;
    if (s->is_idle) /* nothing reads it: zeros, whose pages are never touched */
        return FILCH_OK;
    if (kinds[s->kind].is_definite)
        bench_dense_fill_spd(s->n, s->n, s->a, seed ? seed : 1);
    else
        bench_dense_fill(s->n, s->n, s->n, s->a, seed ? seed : 1);
    return FILCH_OK;
}

static filch_status make_input(bench_square *s, filch_error *error)
{
    s->input = s->a;
    if (s->kernels == &bench_kernels_double)
        return FILCH_OK;
    s->input = NULL;
    filch_status status =
        bench_offload_squares(&s->offload, s->n, 1, s->kernels->element, "--n", error, &s->input);
    if (status == FILCH_OK && !s->kernels->round(s->n * s->n, s->a, s->input))
        return bench_fail(error, FILCH_DATA, "--precision", 0,
                          "the matrix has an element beyond the range of single precision");
    return status;
}

filch_status bench_square_open(bench_square *s, bench_square_kind kind,
                               const bench_options *options, filch_error *error)
{
    s->kind = kind;
    s->n = options->n ? options->n : DEFAULT_N;
    s->is_idle = bench_is_simulated(options) && !options->check;
    s->kernels = options->precision == BENCH_SINGLE ? &bench_kernels_single : &bench_kernels_double;
    if (options->matrix && !kinds[kind].is_definite)
        return bench_fail(error, FILCH_UNSUPPORTED, "--matrix", 0,
                          "is for symmetric matrices; this workload generates its own");
    filch_status status = bench_offload_choose(&s->offload, options, error);
    if (status == FILCH_OK && options->matrix)
        status = read_matrix(s, options->matrix, error);
    if (status == FILCH_OK)
        status = check_size(s, options->tile, error);
    if (status == FILCH_OK && !s->a)
        status = make_matrix(s, options->seed, error);
    if (status == FILCH_OK)
        status = make_input(s, error);
    s->has_tile = options->tile != 0;
    s->tile = s->has_tile                    ? options->tile
              : s->n < kinds[kind].host_tile ? s->n
                                             : kinds[kind].host_tile;
    s->is_resident = options->resident;
    s->offload.has_no_vendor = options->own_kernels;
    return status;
}

filch_status bench_square_add_result(bench_square *s, filch_error *error)
{
    return bench_offload_squares(&s->offload, s->n, 1, s->kernels->element, "--n", error,
                                 &s->result);
}

void bench_square_close(bench_square *s)
{
    bench_offload_close(&s->offload);
}

/* --- Tiles --- */

void bench_square_describe(const bench_square *s, double work, bench_problem *problem)
{
    problem->n = s->n;
    problem->tile = s->tile;
    problem->vendor_s = bench_offload_vendor_s(&s->offload);
    problem->work = work;
}

bool bench_square_is_tiled(const bench_square *s)
{
    return kinds[s->kind].is_tiled;
}

size_t bench_square_tiles(const bench_square *s, const size_t *on_host, size_t on_host_count,
                          size_t *tiles, size_t capacity)
{
    if (s->offload.has_gpus && kinds[s->kind].is_tiled)
        return bench_offload_tiles(s->n, tiles, capacity);
    const size_t *candidates = s->offload.has_gpus ? gpu_columns : on_host;
    size_t most = s->offload.has_gpus ? sizeof gpu_columns / sizeof *gpu_columns : on_host_count;
    size_t count = 0;
    for (size_t k = 0; k < most && count < capacity; k++)
        if (candidates[k] * 2 <= s->n && check_size(s, candidates[k], NULL) == FILCH_OK)
            tiles[count++] = candidates[k];
    return count;
}

void bench_square_tile_set(void *state, size_t tile)
{
    bench_square *s = state;
    s->tile = tile;
    s->has_tile = true;
}

/* Halving adds up to two tiles. */
bool bench_square_can_halve(const bench_square *s, size_t tile)
{
    size_t count = (s->n + tile - 1) / tile;
    return count > 1 && count + 2 <= BENCH_SQUARE_HALVED_MOST;
}

const char *bench_square_way(const void *state, size_t index)
{
    static const char *const names[] = {
        [FL_PANELS_VENDOR] = "with cuSOLVER's panels", [FL_PANELS_OWN] = "with filch's panels"};
    const bench_square *s = state;
    return s->offload.vendor && index < sizeof names / sizeof *names ? names[index] : NULL;
}

void bench_square_way_set(void *state, size_t index)
{
    bench_square *s = state;
    s->panels = (fl_panels)index;
}

/* --- In a runtime --- */

static size_t gpu_tile(const bench_square *s)
{
    if (kinds[s->kind].is_tiled)
        return bench_offload_tile(s->n);
    return s->n < GPU_COLUMNS ? s->n : GPU_COLUMNS;
}

static void cut(bench_square *s)
{
    s->count = (s->n + s->tile - 1) / s->tile;
    s->halves_last = s->halves_last && bench_square_can_halve(s, s->tile);
    if (!s->halves_last)
        return;
    s->count = 0;
    for (size_t left = s->n; left > 0; left -= s->sides[s->count++]) {
        size_t side = left < 2 * s->tile ? (s->tile + 1) / 2 : s->tile;
        s->sides[s->count] = side < left ? side : left;
    }
}

size_t bench_square_row(const bench_square *s, size_t k)
{
    size_t row = s->halves_last ? 0 : k * s->tile;
    for (size_t before = 0; s->halves_last && before < k; before++)
        row += s->sides[before];
    return row;
}

void bench_square_meet(bench_square *s, filch_runtime *runtime)
{
    size_t bytes = s->n * s->n * s->kernels->element;
    bench_offload_meet(&s->offload, runtime);
    bool is_factored = s->kind == BENCH_SQUARE_COLUMNS || s->kind == BENCH_SQUARE_DEFINITE;
    bool comes = is_factored && s->result && !s->is_resident && s->offload.has_memories;
    s->is_staged =
        comes && !kinds[s->kind].is_tiled && s->offload.total_budget / STAGED_ROOM >= bytes;
    s->dealt = s->is_resident || comes ? bench_offload_alike(runtime) : 0;
    s->is_arriving = comes && (s->dealt != 0 || filch_device_count(runtime) == 1);
    if (s->result)
        bench_offload_pin(&s->offload, s->result, bytes);
    if (s->is_resident || s->is_staged || !s->result)
        bench_offload_pin(&s->offload, s->input, bytes);
    if (s->offload.has_gpus && !s->has_tile)
        s->tile = gpu_tile(s);
    cut(s);
}

/* From the host's memory by rows, which come one after the other: a row's tiles are updated where
 * they are. */
uint32_t bench_square_owner(const bench_square *s, size_t i, size_t j)
{
    size_t at = s->is_arriving && kinds[s->kind].is_tiled ? i : i + j;
    return s->dealt ? (uint32_t)(at % s->dealt) + 1 : FILCH_ANY_DEVICE;
}

/* A handle in the matrix's tiles; matrix null: one without a buffer. */
static filch_data_desc matrix_desc(const bench_square *s, void *matrix, const char *label)
{
    filch_data_desc desc = FILCH_DATA_DESC_INIT;
    desc.ptr = matrix;
    desc.element = s->kernels->element;
    desc.rows = desc.cols = s->n;
    desc.ld = matrix ? s->n : 0;
    desc.tile_rows = kinds[s->kind].is_tiled ? s->tile : 0;
    desc.tile_cols = s->tile;
    if (s->halves_last) {
        desc.tile_rows = desc.tile_cols = 0;
        desc.row_cuts = desc.col_cuts = s->sides;
        desc.row_cut_count = desc.col_cut_count = (uint32_t)s->count;
    }
    desc.label = label;
    desc.flags = !matrix                           ? FILCH_DATA_NO_BUFFER
                 : s->is_resident || s->is_managed ? FILCH_DATA_MANAGED
                                                   : 0;
    return desc;
}

filch_status bench_square_data(const bench_square *s, bench_built *built, void *matrix,
                               size_t index)
{
    const filch_data_desc desc =
        matrix_desc(s, matrix, s->result && matrix == s->input ? "input" : "matrix");
    return filch_data_create(built->runtime, &desc, &built->data[index]);
}

filch_status bench_square_staging(const bench_square *s, bench_built *built, size_t input,
                                  size_t result, bool is_by_temporary, fl_staging *staging)
{
    size_t least = STORED_BYTES / s->kernels->element;
    size_t rows = (least + s->tile - 1) / s->tile * s->tile;
    filch_data_desc to = matrix_desc(s, s->result, "result");
    filch_data_desc between = matrix_desc(s, NULL, "between");
    to.tile_rows = between.tile_rows = rows < s->n ? rows : 0;
    between.flags = FILCH_DATA_TEMPORARY;
    filch_status status = bench_square_data(s, built, s->input, input);
    if (status == FILCH_OK)
        status = filch_data_create(built->runtime, &to, &built->data[result]);
    if (status == FILCH_OK && is_by_temporary)
        status = filch_data_create(built->runtime, &between, &built->data[result + 1]);
    *staging = (fl_staging){built->data[input], built->data[result], built->data[result + 1], rows};
    return status;
}

static filch_status make_copy(bench_square *s, bench_built *built, size_t copy)
{
    filch_codelet_desc desc = FILCH_CODELET_DESC_INIT;
    filch_cuda_desc cuda = FILCH_CUDA_DESC_INIT;
    desc.name = "copy";
    desc.host = bench_offload_copy_on_host;
    bench_offload_copy(&s->offload, &cuda);
    desc.cuda = s->offload.has_gpus ? &cuda : NULL;
    return filch_codelet_create(built->runtime, &desc, &built->codelets[copy]);
}

filch_status bench_square_restore(bench_square *s, bench_built *built, size_t input, size_t result,
                                  size_t copy)
{
    size_t count = s->count;
    filch_status status = make_copy(s, built, copy);
    if (status == FILCH_OK)
        status = filch_graph_create(built->runtime, NULL, &built->restore);
    for (size_t j = 0; j < count; j++) {
        size_t first = s->kind == BENCH_SQUARE_DEFINITE ? j : 0;
        size_t end = kinds[s->kind].is_tiled ? count : 1;
        for (size_t i = first; i < end && status == FILCH_OK; i++) {
            const filch_access accesses[] = {FILCH_R(built->data[input], i, j),
                                             FILCH_W(built->data[result], i, j)};
            filch_task_desc desc = FILCH_TASK_DESC_INIT;
            desc.codelet = built->codelets[copy];
            desc.accesses = accesses;
            desc.access_count = 2;
            desc.affinity = bench_square_owner(s, i, j);
            status = filch_graph_add(built->restore, &desc, NULL);
        }
    }
    return status;
}

fl_columns bench_square_columns(const bench_square *s, filch_data *data)
{
    return (fl_columns){
        .data = data, .rows = s->n, .cols = s->n, .tile = s->tile, .dealt = s->dealt};
}

filch_status bench_square_dense(const bench_square *s, filch_runtime *runtime, size_t panel_element,
                                fl_dense **dense)
{
    const fl_dense_desc desc = {.runtime = runtime,
                                .host = &host,
                                .vendor = s->offload.vendor,
                                .element = s->kernels->element,
                                .is_idle = s->is_idle};
    if (s->offload.vendor)
        fl_vendor_expect_panel(s->offload.vendor, panel_element, s->n, s->tile);
    return fl_dense_open(&desc, dense);
}

filch_status bench_square_routines(const bench_square *s, filch_runtime *runtime, fl_tiles *tiles)
{
    return fl_tiles_open(tiles, runtime, s->offload.vendor, &host, s->is_idle);
}

void bench_square_reset(void *state)
{
    bench_square *s = state;
    if (!s->is_idle && !s->is_resident && !s->is_staged)
        memcpy(s->result, s->input, s->n * s->n * s->kernels->element);
}

/* --- Results --- */

filch_status bench_square_singular(int32_t row, filch_error *error)
{
    return bench_fail(error, FILCH_DATA, "matrix", 0, "it is singular: the pivot in row %d is 0",
                      row);
}

filch_status bench_square_accept(double residual, double most, filch_error *error)
{
    return residual <= most ? FILCH_OK
                            : bench_fail(error, FILCH_DATA, "check", 0,
                                         "backward error %.3g is above %.3g", residual, most);
}

filch_status bench_square_solves(const bench_square *s, const double *x, const double *b,
                                 double most, double *residual, filch_error *error)
{
    *residual = bench_backward_error(s->n, s->n, s->a, x, b);
    return *residual < 0
               ? bench_fail(error, FILCH_OUT_OF_MEMORY, "check", 0, "no memory for the residual")
               : bench_square_accept(*residual, most, error);
}

filch_status bench_square_add_theirs(bench_square *s, filch_error *error)
{
    return s->theirs ? FILCH_OK
                     : bench_offload_squares(&s->offload, s->n, 1, s->kernels->element, "--versus",
                                             error, &s->theirs);
}

bench_peer_work *bench_square_work(bench_square *s, bench_peer_kind kind, unsigned workers)
{
    s->work = (bench_peer_work){.kind = kind,
                                .workers = workers,
                                .n = s->n,
                                .tile = s->tile,
                                .kernels = s->kernels,
                                .a = s->input,
                                .c = s->theirs,
                                .keeps_memory = s->offload.memory != BENCH_MEMORY_LOCKED,
                                .is_resident = s->is_resident};
    return &s->work;
}
