/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
/* `filch-bench-starpu`: the Cholesky factorization of `filch-bench run cholesky --resident` on GPUs
 * under StarPU, with filch's kernels (tile_kernels.h): the same tasks on the same matrix, in
 * uniform tiles, with the priorities of StarPU's own example.
 *
 * It is a program of its own. StarPU resets the GPUs of its process where it measures the links,
 * and copies between two of them only where it was the first to join them; beside filch in one
 * process the one would end filch's contexts and the other slow StarPU. */
#include "peers/tile_kernels.h"
#include "problems/dense.h"
#include "problems/tiles.h"
#include "support/fail.h"
#include "support/stats.h"
#include "support/timing.h"

#include <starpu.h>

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define PAGE 4096
#define TILES_MOST 8
#define GPUS_MOST 16
#define N_MOST 100000
#define REPEAT_MOST 1000
/* As filch-bench's check of the workload. */
#define BACKWARD_ERROR 1e-15
#define BACKWARD_ERROR_ORDER 64.0

enum kernel { FACTOR, MULTIPLY, SYRK, GEMM, COPY, KERNELS };

static const char *const kernel_names[KERNELS] = {"potrf", "multiply", "syrk", "gemm", "copy"};

typedef struct request {
    size_t n;
    size_t tiles[TILES_MOST];
    size_t tile_count;
    size_t gpus;
    size_t workers; /* a GPU */
    size_t repeat;
    size_t warm; /* runs before, in which StarPU learns how long tasks take */
    const char *policy;
    bool check;
    bool help;
} request;

typedef struct bench bench;

/* A step of the factorization, for its tasks. */
typedef struct step {
    bench *owner;
    size_t k;
} step;

struct bench {
    const request *request;
    double *a;      /* n x n */
    double *factor; /* likewise; null: the factor stays on the GPUs */
    bench_tile_kernels *kernels;
    bench_tile_lane *lanes[STARPU_NMAXWORKERS]; /* by worker */
    struct starpu_codelet codelets[KERNELS];
    struct starpu_perfmodel models[KERNELS];
    char symbols[KERNELS][48];
    atomic_int code; /* of the first task that failed */
    /* With tiles of one size. */
    size_t tile, count;
    starpu_data_handle_t *input, *matrix; /* tile (i, j) at i + j count; null above the diagonal */
    starpu_data_handle_t *inverses;
    step *steps;
};

static const char usage[] =
    "usage: filch-bench-starpu [options]\n"
    "  --n N          order of the matrix (default 16384)\n"
    "  --tile T,...   sides of tiles, one after the other (default 1024,1536,2048)\n"
    "  --gpus G       the first G GPUs (default 1)\n"
    "  --workers W    StarPU's workers a GPU (default 2)\n"
    "  --policy NAME  StarPU's scheduling policy (default dmdas)\n"
    "  --repeat R     measured runs (default 5)\n"
    "  --warm R       runs before them, in which StarPU learns (default 6)\n"
    "  --check        the backward error of a system that the last factor solves\n"
    "StarPU measures the links of a machine when it first runs there: run it once before.\n";

/* --- Options --- */

static filch_status parse_number(const char *option, const char *text, size_t least, size_t most,
                                 size_t *value, filch_error *error)
{
    char *end;
    errno = 0;
    unsigned long long parsed = strtoull(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end || errno || parsed < least || parsed > most)
        return bench_fail(error, FILCH_PARSE, option, 0, "'%s' is not a whole number in %zu..%zu",
                          text, least, most);
    *value = (size_t)parsed;
    return FILCH_OK;
}

static filch_status parse_tiles(char *text, request *r, filch_error *error)
{
    char *place = NULL;
    filch_status status = FILCH_OK;
    r->tile_count = 0;
    for (char *word = strtok_r(text, ",", &place); word && status == FILCH_OK;
         word = strtok_r(NULL, ",", &place)) {
        if (r->tile_count == TILES_MOST)
            return bench_fail(error, FILCH_PARSE, "--tile", 0, "more than %d numbers", TILES_MOST);
        status = parse_number("--tile", word, 64, N_MOST, &r->tiles[r->tile_count++], error);
    }
    return status == FILCH_OK && r->tile_count == 0
               ? bench_fail(error, FILCH_PARSE, "--tile", 0, "no number is given")
               : status;
}

static filch_status parse_option(int id, char *word, request *r, filch_error *error)
{
    switch (id) {
    case 'n':
        return parse_number("--n", word, 64, N_MOST, &r->n, error);
    case 't':
        return parse_tiles(word, r, error);
    case 'g':
        return parse_number("--gpus", word, 1, GPUS_MOST, &r->gpus, error);
    case 'w':
        return parse_number("--workers", word, 1, GPUS_MOST, &r->workers, error);
    case 'r':
        return parse_number("--repeat", word, 1, REPEAT_MOST, &r->repeat, error);
    case 'u':
        return parse_number("--warm", word, 1, REPEAT_MOST, &r->warm, error);
    case 'p':
        r->policy = word;
        return FILCH_OK;
    default:
        r->check |= id == 'c';
        r->help |= id == 'h';
        return FILCH_OK;
    }
}

static filch_status parse(int argc, char **argv, request *r, filch_error *error)
{
    static const struct option options[] = {
        {"n", required_argument, NULL, 'n'},      {"tile", required_argument, NULL, 't'},
        {"gpus", required_argument, NULL, 'g'},   {"workers", required_argument, NULL, 'w'},
        {"repeat", required_argument, NULL, 'r'}, {"warm", required_argument, NULL, 'u'},
        {"policy", required_argument, NULL, 'p'}, {"check", no_argument, NULL, 'c'},
        {"help", no_argument, NULL, 'h'},         {NULL, 0, NULL, 0},
    };
    filch_status status = FILCH_OK;
    int id;
    opterr = 0;
    while (status == FILCH_OK && (id = getopt_long(argc, argv, ":", options, NULL)) != -1) {
        if (id == '?' || id == ':')
            return bench_fail(error, FILCH_PARSE, argv[optind - 1], 0,
                              "is not an option, or its value is missing");
        status = parse_option(id, optarg, r, error);
    }
    if (status == FILCH_OK && optind < argc)
        return bench_fail(error, FILCH_PARSE, argv[optind], 0, "is no option");
    for (size_t t = 0; t < r->tile_count && status == FILCH_OK; t++)
        if (r->tiles[t] > r->n)
            status =
                bench_fail(error, FILCH_PARSE, "--tile", 0,
                           "%zu is larger than the matrix, whose order is %zu", r->tiles[t], r->n);
    return status;
}

/* --- Codelets --- */

static filch_view view_of(void *buffer)
{
    return (filch_view){.ptr = (void *)STARPU_MATRIX_GET_PTR(buffer),
                        .rows = STARPU_MATRIX_GET_NX(buffer),
                        .cols = STARPU_MATRIX_GET_NY(buffer),
                        .ld = STARPU_MATRIX_GET_LD(buffer),
                        .element = STARPU_MATRIX_GET_ELEMSIZE(buffer)};
}

static const bench_tile_lane *lane_of(const step *at)
{
    return at->owner->lanes[starpu_worker_get_id_check()];
}

/* Read after starpu_task_wait_for_all(), which orders it. */
static void note(const step *at, int code)
{
    int none = 0;
    if (code != 0)
        atomic_compare_exchange_strong_explicit(&at->owner->code, &none, code, memory_order_relaxed,
                                                memory_order_relaxed);
}

/* No tile is below the last one, which is not inverted. */
static void run_factor(void *buffers[], void *argument)
{
    const step *at = argument;
    filch_view a = view_of(buffers[0]), inverse = view_of(buffers[1]);
    a.row = at->k * at->owner->tile;
    note(at, bench_tile_factor(lane_of(at), &a, &inverse, at->k + 1 < at->owner->count));
}

static void run_multiply(void *buffers[], void *argument)
{
    const filch_view inverse = view_of(buffers[0]), a = view_of(buffers[1]);
    note(argument, bench_tile_multiply(lane_of(argument), &inverse, &a));
}

static void run_syrk(void *buffers[], void *argument)
{
    const filch_view a = view_of(buffers[0]), c = view_of(buffers[1]);
    note(argument, bench_tile_syrk(lane_of(argument), &a, &c));
}

static void run_gemm(void *buffers[], void *argument)
{
    const filch_view a = view_of(buffers[0]), b = view_of(buffers[1]), c = view_of(buffers[2]);
    note(argument, bench_tile_gemm(lane_of(argument), &a, &b, &c));
}

static void run_copy(void *buffers[], void *argument)
{
    const filch_view from = view_of(buffers[0]), to = view_of(buffers[1]);
    note(argument, bench_tile_copy(lane_of(argument), &from, &to));
}

/* Times differ with the number of workers that share a GPU, so each number has models of its own.
 */
static void fill_codelets(bench *b)
{
    static const struct {
        starpu_cuda_func_t function;
        int buffers;
        enum starpu_data_access_mode modes[3];
    } kernels[KERNELS] = {
        [FACTOR] = {run_factor, 2, {STARPU_RW, STARPU_W}},
        [MULTIPLY] = {run_multiply, 2, {STARPU_R, STARPU_RW}},
        [SYRK] = {run_syrk, 2, {STARPU_R, STARPU_RW}},
        [GEMM] = {run_gemm, 3, {STARPU_R, STARPU_R, STARPU_RW}},
        [COPY] = {run_copy, 2, {STARPU_R, STARPU_W}},
    };
    for (int k = 0; k < KERNELS; k++) {
        struct starpu_codelet *c = &b->codelets[k];
        snprintf(b->symbols[k], sizeof b->symbols[k], "filch_%s_%zu", kernel_names[k],
                 b->request->workers);
        b->models[k] =
            (struct starpu_perfmodel){.type = STARPU_HISTORY_BASED, .symbol = b->symbols[k]};
        starpu_codelet_init(c);
        c->where = STARPU_CUDA;
        c->cuda_funcs[0] = kernels[k].function;
        c->cuda_flags[0] = STARPU_CUDA_ASYNC;
        c->nbuffers = kernels[k].buffers;
        c->name = kernel_names[k];
        memcpy(c->modes, kernels[k].modes, sizeof kernels[k].modes);
    }
}

/* First runs load modules and take memory, and their times would stay in the models' means. Copies
 * are told where to run and need no model. */
static void use_models(bench *b, bool use)
{
    for (int k = 0; k < KERNELS; k++)
        b->codelets[k].model = use && k != COPY ? &b->models[k] : NULL;
}

/* --- StarPU --- */

static filch_status start(const request *r, filch_error *error)
{
    struct starpu_conf conf;
    char workers[24];
    snprintf(workers, sizeof workers, "%zu", r->workers);
    /* A product takes twice its time beside another, and the last diagonal tile half of the
     * others': no reason to forget a model. */
    if (setenv("STARPU_NWORKER_PER_CUDA", workers, 1) != 0 ||
        setenv("STARPU_HISTORY_MAX_ERROR", "10000", 0) != 0)
        return bench_fail(error, FILCH_OUT_OF_MEMORY, "starpu", 0, "no memory");
    starpu_conf_init(&conf);
    conf.precedence_over_environment_variables = 1;
    conf.sched_policy_name = r->policy;
    conf.ncpus = 0;
    conf.ncuda = (int)r->gpus;
    conf.nopencl = 0;
    conf.use_explicit_workers_cuda_gpuid = 1;
    for (unsigned g = 0; g < r->gpus; g++)
        conf.workers_cuda_gpuid[g] = g;
    conf.catch_signals = 0;
    int code = starpu_init(&conf);
    if (code == -ENODEV)
        return bench_fail(error, FILCH_NO_DEVICE, "starpu", 0, "StarPU finds no GPU here");
    if (code != 0)
        return bench_fail(error, FILCH_SYSTEM, "starpu", 0, "starpu_init: %s", strerror(-code));
    unsigned got = starpu_cuda_worker_get_count();
    if (got == r->gpus * r->workers)
        return FILCH_OK;
    starpu_shutdown();
    return bench_fail(error, FILCH_NO_DEVICE, "starpu", 0,
                      "StarPU has %u workers on GPUs, not the %zu of %zu GPUs", got,
                      r->gpus * r->workers, r->gpus);
}

typedef struct opening {
    bench *b;
    filch_error errors[STARPU_NMAXWORKERS];
} opening;

static void open_lane(void *argument)
{
    opening *o = argument;
    int worker = (int)starpu_worker_get_id_check();
    o->errors[worker] = (filch_error)FILCH_ERROR_INIT;
    (void)bench_tile_lane_open(o->b->kernels, (unsigned)starpu_worker_get_devid(worker),
                               starpu_cuda_get_local_stream(), &o->errors[worker],
                               &o->b->lanes[worker]);
}

static filch_status open_lanes(bench *b, filch_error *error)
{
    size_t most = 0;
    for (size_t t = 0; t < b->request->tile_count; t++)
        most = b->request->tiles[t] > most ? b->request->tiles[t] : most;
    filch_status status = bench_tile_kernels_open(most, error, &b->kernels);
    if (status != FILCH_OK)
        return status;
    opening *o = calloc(1, sizeof *o);
    if (!o)
        return bench_fail(error, FILCH_OUT_OF_MEMORY, "starpu", 0, "no memory");
    o->b = b;
    starpu_execute_on_each_worker(open_lane, o, STARPU_CUDA);
    for (unsigned w = 0; w < starpu_worker_get_count() && status == FILCH_OK; w++)
        if (starpu_worker_get_type((int)w) == STARPU_CUDA_WORKER && !b->lanes[w]) {
            *error = o->errors[w];
            status = error->status;
        }
    free(o);
    return status;
}

static void close_lanes(bench *b)
{
    for (unsigned w = 0; w < STARPU_NMAXWORKERS; w++)
        bench_tile_lane_close(b->lanes[w]);
    bench_tile_kernels_close(b->kernels);
}

/* --- Tiles --- */

static uint32_t extent(const bench *b, size_t index)
{
    size_t left = b->request->n - index * b->tile;
    return (uint32_t)(left < b->tile ? left : b->tile);
}

static void register_tile(const bench *b, double *matrix, size_t i, size_t j,
                          starpu_data_handle_t *handle)
{
    size_t n = b->request->n;
    uintptr_t first = matrix ? (uintptr_t)(matrix + i * b->tile + j * b->tile * n) : 0;
    starpu_matrix_data_register(handle, matrix ? STARPU_MAIN_RAM : -1, first,
                                matrix ? (uint32_t)n : extent(b, i), extent(b, i), extent(b, j),
                                sizeof(double));
}

/* The input's tiles lie in the host's memory at first; the factor's do if it is looked at. */
static void register_tiles(bench *b)
{
    for (size_t j = 0; j < b->count; j++) {
        for (size_t i = j; i < b->count; i++) {
            register_tile(b, b->a, i, j, &b->input[i + j * b->count]);
            register_tile(b, b->factor, i, j, &b->matrix[i + j * b->count]);
        }
        register_tile(b, NULL, j, j, &b->inverses[j]);
    }
}

static void unregister_tiles(bench *b)
{
    for (size_t j = 0; j < b->count; j++) {
        for (size_t i = j; i < b->count; i++) {
            starpu_data_unregister_no_coherency(b->input[i + j * b->count]);
            starpu_data_unregister_no_coherency(b->matrix[i + j * b->count]);
        }
        starpu_data_unregister_no_coherency(b->inverses[j]);
    }
}

static void close_tiles(bench *b)
{
    free(b->input);
    free(b->matrix);
    free(b->inverses);
    free(b->steps);
    b->input = b->matrix = b->inverses = NULL;
    b->steps = NULL;
}

static filch_status open_tiles(bench *b, size_t tile, filch_error *error)
{
    b->tile = tile;
    b->count = (b->request->n + tile - 1) / tile;
    b->input = calloc(b->count * b->count, sizeof(starpu_data_handle_t));
    b->matrix = calloc(b->count * b->count, sizeof(starpu_data_handle_t));
    b->inverses = calloc(b->count, sizeof(starpu_data_handle_t));
    b->steps = calloc(b->count, sizeof *b->steps);
    if (!b->input || !b->matrix || !b->inverses || !b->steps) {
        close_tiles(b);
        return bench_fail(error, FILCH_OUT_OF_MEMORY, "--tile", 0, "no memory for handles");
    }
    for (size_t k = 0; k < b->count; k++)
        b->steps[k] = (step){b, k};
    register_tiles(b);
    return FILCH_OK;
}

/* --- Tasks --- */

static struct starpu_task *new_task(bench *b, enum kernel kernel, size_t k,
                                    const starpu_data_handle_t *handles)
{
    struct starpu_task *task = starpu_task_create();
    task->cl = &b->codelets[kernel];
    task->cl_arg = &b->steps[k];
    task->cl_arg_size = sizeof b->steps[k];
    for (int h = 0; h < b->codelets[kernel].nbuffers; h++)
        task->handles[h] = handles[h];
    return task;
}

static int submit(bench *b, enum kernel kernel, size_t k, size_t behind,
                  const starpu_data_handle_t *handles)
{
    struct starpu_task *task = new_task(b, kernel, k, handles);
    task->priority = (int)(2 * b->count - 2 * k) - (int)behind;
    return starpu_task_submit(task);
}

/* Tile (i, j) to GPU (i + j) mod GPUs, as filch deals resident tiles, and there to a worker. */
static int submit_copy(bench *b, size_t i, size_t j)
{
    const request *r = b->request;
    const starpu_data_handle_t handles[] = {b->input[i + j * b->count],
                                            b->matrix[i + j * b->count]};
    struct starpu_task *task = new_task(b, COPY, 0, handles);
    unsigned gpu = (unsigned)((i + j) % r->gpus);
    int ids[STARPU_NMAXWORKERS];
    unsigned count = 0;
    for (unsigned w = 0; w < starpu_worker_get_count(); w++)
        if (starpu_worker_get_type((int)w) == STARPU_CUDA_WORKER &&
            starpu_worker_get_devid((int)w) == (int)gpu)
            ids[count++] = (int)w;
    task->execute_on_a_specific_worker = 1;
    task->workerid = (unsigned)ids[(i + j) / r->gpus % count];
    return starpu_task_submit(task);
}

static int submit_step(bench *b, size_t k)
{
    size_t m = b->count;
    const starpu_data_handle_t *t = b->matrix;
    int code = submit(b, FACTOR, k, 0, (starpu_data_handle_t[]){t[k + k * m], b->inverses[k]});
    for (size_t i = k + 1; i < m && code == 0; i++)
        code = submit(b, MULTIPLY, k, i, (starpu_data_handle_t[]){b->inverses[k], t[i + k * m]});
    for (size_t j = k + 1; j < m && code == 0; j++) {
        code = submit(b, SYRK, k, j, (starpu_data_handle_t[]){t[j + k * m], t[j + j * m]});
        for (size_t i = j + 1; i < m && code == 0; i++)
            code = submit(b, GEMM, k, i + j,
                          (starpu_data_handle_t[]){t[i + k * m], t[j + k * m], t[i + j * m]});
    }
    return code;
}

static filch_status settle(bench *b, int submitted, filch_error *error)
{
    int waited = starpu_task_wait_for_all();
    int code = atomic_load_explicit(&b->code, memory_order_relaxed);
    if (submitted != 0 || waited != 0)
        return bench_fail(error, FILCH_SYSTEM, "starpu", 0, "a task was refused: %s",
                          strerror(submitted ? -submitted : -waited));
    return code != 0 ? bench_tile_explain(code, error) : FILCH_OK;
}

/* The input is on the GPUs before the clock starts; the factor stays there. */
static filch_status run(bench *b, double *seconds, filch_error *error)
{
    int code = 0;
    for (size_t j = 0; j < b->count; j++)
        for (size_t i = j; i < b->count && code == 0; i++)
            code = submit_copy(b, i, j);
    filch_status status = settle(b, code, error);
    if (status != FILCH_OK)
        return status;
    double begin = bench_now_s();
    for (size_t k = 0; k < b->count && code == 0; k++)
        code = submit_step(b, k);
    status = settle(b, code, error);
    *seconds = bench_now_s() - begin;
    return status;
}

/* --- Results --- */

static filch_status look_for_pivots(const bench *b, filch_error *error)
{
    for (unsigned w = 0; w < STARPU_NMAXWORKERS; w++) {
        int32_t row = 0;
        if (!b->lanes[w])
            continue;
        filch_status status = bench_tile_lane_info(b->lanes[w], &row, error);
        if (status == FILCH_OK && row != 0)
            status = bench_fail(error, FILCH_DATA, "matrix", 0,
                                "the pivot in row %d is not positive", row);
        if (status != FILCH_OK)
            return status;
    }
    return FILCH_OK;
}

/* Into the host's memory, where its tiles are registered. */
static filch_status fetch(const bench *b, filch_error *error)
{
    for (size_t j = 0; j < b->count; j++)
        for (size_t i = j; i < b->count; i++) {
            starpu_data_handle_t tile = b->matrix[i + j * b->count];
            if (starpu_data_acquire(tile, STARPU_R) != 0)
                return bench_fail(error, FILCH_SYSTEM, "starpu", 0, "a tile cannot be fetched");
            starpu_data_release(tile);
        }
    return FILCH_OK;
}

/* As filch-bench checks its own: A x = b for the b of the x of all ones. */
static filch_status check(const bench *b, double *residual, filch_error *error)
{
    size_t n = b->request->n;
    double *right = calloc(2 * n, sizeof *right), most = BACKWARD_ERROR;
    if (!right)
        return bench_fail(error, FILCH_OUT_OF_MEMORY, "--check", 0, "no memory for two vectors");
    filch_status status = fetch(b, error);
    if (status == FILCH_OK) {
        double *x = right + n;
        bench_dense_row_sums(n, n, b->a, right);
        memcpy(x, right, n * sizeof *x);
        bench_kernels_double.solve(n, b->factor, n, x);
        *residual = bench_backward_error(n, n, b->a, x, right);
        most *= fmax(1, sqrt((double)n / BACKWARD_ERROR_ORDER));
        if (!(*residual >= 0 && *residual <= most))
            status = bench_fail(error, FILCH_DATA, "--check", 0,
                                "backward error %.3g is above %.3g", *residual, most);
    }
    free(right);
    return status;
}

static void report(const bench *b, const bench_stats *s, double residual)
{
    const request *r = b->request;
    printf("starpu %d.%d.%d %s, %zu GPUs, %zu workers each, n %zu, tile %zu: median %.3f ms, least "
           "%.3f, most %.3f, %.2f Tflop/s",
           STARPU_MAJOR_VERSION, STARPU_MINOR_VERSION, STARPU_RELEASE_VERSION, r->policy, r->gpus,
           r->workers, r->n, b->tile, s->median * 1e3, s->min * 1e3, s->max * 1e3,
           bench_flops_cholesky((double)r->n) / s->median * 1e-12);
    if (r->check)
        printf(", backward error %.2g", residual);
    printf("\n");
    fflush(stdout);
}

static filch_status measure(bench *b, filch_error *error)
{
    const request *r = b->request;
    double seconds[REPEAT_MOST], ignored, residual = 0;
    bench_stats stats;
    use_models(b, false);
    filch_status status = run(b, &ignored, error);
    use_models(b, true);
    for (size_t k = 0; k < r->warm && status == FILCH_OK; k++)
        status = run(b, &ignored, error);
    for (size_t k = 0; k < r->repeat && status == FILCH_OK; k++)
        status = run(b, &seconds[k], error);
    if (status == FILCH_OK)
        status = look_for_pivots(b, error);
    if (status == FILCH_OK && r->check)
        status = check(b, &residual, error);
    if (status == FILCH_OK && bench_stats_of(seconds, r->repeat, &stats))
        report(b, &stats, residual);
    return status;
}

/* --- The program --- */

static filch_status take_matrix(const request *r, double **out, filch_error *error)
{
    size_t bytes = (r->n * r->n * sizeof **out + PAGE - 1) / PAGE * PAGE;
    *out = aligned_alloc(PAGE, bytes);
    if (!*out)
        return bench_fail(error, FILCH_OUT_OF_MEMORY, "--n", 0, "no memory for %zu bytes", bytes);
    return FILCH_OK;
}

static size_t bytes_of(const request *r)
{
    return r->n * r->n * sizeof(double);
}

/* Page-locks a matrix: copies of pageable memory would be slower than StarPU's user has them. */
static filch_status pin(const request *r, double *matrix, filch_error *error)
{
    return starpu_memory_pin(matrix, bytes_of(r)) == 0
               ? FILCH_OK
               : bench_fail(error, FILCH_SYSTEM, "--n", 0,
                            "StarPU cannot page-lock %zu bytes (starpu_memory_pin)", bytes_of(r));
}

static filch_status measure_tiles(bench *b, filch_error *error)
{
    const request *r = b->request;
    filch_status status = FILCH_OK;
    for (size_t t = 0; t < r->tile_count && status == FILCH_OK; t++) {
        status = open_tiles(b, r->tiles[t], error);
        if (status != FILCH_OK)
            break;
        status = measure(b, error);
        unregister_tiles(b);
        close_tiles(b);
    }
    return status;
}

static filch_status with_matrices(bench *b, filch_error *error)
{
    const request *r = b->request;
    filch_status status = pin(r, b->a, error);
    if (status != FILCH_OK)
        return status;
    status = b->factor ? pin(r, b->factor, error) : FILCH_OK;
    if (status == FILCH_OK) {
        status = measure_tiles(b, error);
        if (b->factor)
            starpu_memory_unpin(b->factor, bytes_of(r));
    }
    starpu_memory_unpin(b->a, bytes_of(r));
    return status;
}

static filch_status work(bench *b, filch_error *error)
{
    const request *r = b->request;
    filch_status status = start(r, error);
    if (status != FILCH_OK)
        return status;
    fill_codelets(b);
    status = take_matrix(r, &b->a, error);
    if (status == FILCH_OK && r->check)
        status = take_matrix(r, &b->factor, error);
    if (status == FILCH_OK) {
        bench_dense_fill_spd(r->n, r->n, b->a, 1);
        if (b->factor)
            memset(b->factor, 0, bytes_of(r));
        status = open_lanes(b, error);
    }
    if (status == FILCH_OK)
        status = with_matrices(b, error);
    close_lanes(b);
    starpu_shutdown();
    free(b->factor);
    free(b->a);
    return status;
}

int main(int argc, char **argv)
{
    request r = {.n = 16384,
                 .tiles = {1024, 1536, 2048},
                 .tile_count = 3,
                 .gpus = 1,
                 .workers = 2,
                 .repeat = 5,
                 .warm = 6,
                 .policy = "dmdas"};
    filch_error error = FILCH_ERROR_INIT;
    filch_status status = parse(argc, argv, &r, &error);
    if (status == FILCH_OK && r.help)
        return fputs(usage, stdout) < 0;
    bench *b = calloc(1, sizeof *b);
    if (status == FILCH_OK && !b)
        status = bench_fail(&error, FILCH_OUT_OF_MEMORY, "starpu", 0, "no memory");
    if (status == FILCH_OK) {
        b->request = &r;
        status = work(b, &error);
    }
    free(b);
    if (status == FILCH_OK)
        return 0;
    fprintf(stderr, "filch-bench-starpu: %s: %s\n", error.label, error.text);
    return status == FILCH_DATA ? 1 : 2;
}
