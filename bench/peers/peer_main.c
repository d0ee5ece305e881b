/* SPDX-License-Identifier: Apache-2.0 */
/* `filch-bench peers`: the peers measured alone, interleaved with one another. */
#define _GNU_SOURCE
#include "cli/cli.h"
#include "offload/gpu.h"
#include "peers/peer.h"
#include "problems/dense.h"
#include "support/fail.h"
#include "support/stats.h"
#include "support/table.h"
#include "support/timing.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#define PEERS_MAX 16
#define WORKERS_MAX 8
#define SETTLE_LIMIT_S 2.0
#define INDEPENDENT_TASKS 100000
#define WAVEFRONT_SIDE 256
#define MATRIX_ORDER 2048
#define MATRIX_TILE 256
#define PAGE 4096
/* The factors of two runtimes differ by the order of their sums only. */
#define AGREEMENT 1e-11

typedef struct request {
    bool kinds[BENCH_PEER_ALONE];
    unsigned workers[WORKERS_MAX];
    size_t worker_counts;
    size_t repeat;
    size_t n; /* 0: each kind's own */
    size_t tile;
    bool check;
    bool is_resident;
    uint32_t gpus; /* 0: none, for the reason in why */
    filch_error why;
} request;

typedef struct contender {
    const bench_peer *peer;
    void *state;
    double *seconds;
} contender;

static const char usage[] =
    "usage: filch-bench peers [options] [WORK...]\n"
    "  WORK         empty (created and run), rerun (created before), wavefront, chain,\n"
    "               cholesky, gemm; default: the first four\n"
    "  --workers W,W,...  numbers of workers, or of GPUs, to measure with (default 1,2)\n"
    "  --repeat R   interleaved rounds (default 7)\n"
    "  --n N        tasks, side of the wavefront, order of the matrices\n"
    "  --tile T     of the matrices (default 256)\n"
    "  --check      run once more and check results, and that every task ran in order\n"
    "  --resident   on GPUs: matrices are there beforehand, results stay there\n"
    "  --list       the peers of this build\n";

static filch_status parse_number(const char *option, const char *text, size_t limit, size_t *value,
                                 filch_error *error)
{
    char *end;
    errno = 0;
    unsigned long long parsed = strtoull(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end || errno || parsed < 1 || parsed > limit)
        return bench_fail(error, FILCH_PARSE, option, 0, "'%s' is not a whole number in 1..%zu",
                          text, limit);
    *value = (size_t)parsed;
    return FILCH_OK;
}

static filch_status parse_workers(char *text, request *r, filch_error *error)
{
    r->worker_counts = 0;
    char *place = NULL;
    for (char *word = strtok_r(text, ",", &place); word; word = strtok_r(NULL, ",", &place)) {
        size_t workers = 0;
        if (r->worker_counts == WORKERS_MAX)
            return bench_fail(error, FILCH_PARSE, "--workers", 0, "more than %d numbers",
                              WORKERS_MAX);
        filch_status status = parse_number("--workers", word, 1024, &workers, error);
        if (status != FILCH_OK)
            return status;
        r->workers[r->worker_counts++] = (unsigned)workers;
    }
    if (r->worker_counts == 0)
        return bench_fail(error, FILCH_PARSE, "--workers", 0, "no number is given");
    return FILCH_OK;
}

static filch_status parse_kind(const char *word, request *r, filch_error *error)
{
    for (int k = 0; k < BENCH_PEER_ALONE; k++)
        if (strcmp(word, bench_peer_kind_name((bench_peer_kind)k)) == 0) {
            r->kinds[k] = true;
            return FILCH_OK;
        }
    return bench_fail(error, FILCH_PARSE, word, 0, "is not a work");
}

static int list_peers(void)
{
    filch_error why = FILCH_ERROR_INIT;
    uint32_t gpus = bench_gpu_count(&why);
    for (size_t p = 0; bench_peer_at(p); p++) {
        const bench_peer *peer = bench_peer_at(p);
        printf("%-10s %s%s%s\n", peer->name, peer->description,
               peer->needs_gpu && gpus == 0 ? "; not here: " : "",
               peer->needs_gpu && gpus == 0 ? why.text : "");
    }
    return BENCH_EXIT_OK;
}

/* FILCH_OK with *done set where there is nothing more to do. */
static filch_status parse(int argc, char **argv, request *r, bool *done, filch_error *error)
{
    static const struct option options[] = {
        {"workers", required_argument, NULL, 'w'},
        {"repeat", required_argument, NULL, 'r'},
        {"n", required_argument, NULL, 'n'},
        {"tile", required_argument, NULL, 't'},
        {"check", no_argument, NULL, 'c'},
        {"list", no_argument, NULL, 'l'},
        {"resident", no_argument, NULL, 'd'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    filch_status status = FILCH_OK;
    int id;
    optind = 0;
    opterr = 0;
    while (status == FILCH_OK && (id = getopt_long(argc, argv, ":", options, NULL)) != -1) {
        if (id == 'w')
            status = parse_workers(optarg, r, error);
        else if (id == 'r')
            status = parse_number("--repeat", optarg, 10000, &r->repeat, error);
        else if (id == 'n')
            status = parse_number("--n", optarg, 1u << 30, &r->n, error);
        else if (id == 't')
            status = parse_number("--tile", optarg, 1u << 20, &r->tile, error);
        else if (id == 'c')
            r->check = true;
        else if (id == 'd')
            r->is_resident = true;
        else if (id == 'l' || id == 'h') {
            *done = true;
            id == 'l' ? (void)list_peers() : (void)fputs(usage, stdout);
        } else
            status = bench_fail(error, FILCH_PARSE, argv[optind - 1], 0,
                                "is not an option, or its value is missing");
    }
    bool any = false;
    for (; status == FILCH_OK && optind < argc; optind++, any = true)
        status = parse_kind(argv[optind], r, error);
    for (int k = BENCH_PEER_EMPTY; !any && k <= BENCH_PEER_CHAIN; k++)
        r->kinds[k] = true;
    return status;
}

static bool is_dense(bench_peer_kind kind)
{
    return kind == BENCH_PEER_CHOLESKY || kind == BENCH_PEER_GEMM;
}

static size_t default_n(bench_peer_kind kind)
{
    return kind == BENCH_PEER_WAVEFRONT ? WAVEFRONT_SIDE
           : is_dense(kind)             ? MATRIX_ORDER
                                        : INDEPENDENT_TASKS;
}

/* From one matrix to the next: whole pages, so that each can be locked by itself. */
static size_t matrix_elements(const bench_peer_work *work)
{
    size_t page = PAGE / sizeof(double);
    return (work->n * work->n + page - 1) / page * page;
}

/* Matrices for the work: a, b and one result for every contender, so that results can be compared
 * after all have run. */
static filch_status take_matrices(bench_peer_work *work, double **memory, filch_error *error)
{
    *memory = NULL;
    if (!is_dense(work->kind))
        return FILCH_OK;
    size_t elements = matrix_elements(work);
    if (work->n > 46340 || !(*memory = aligned_alloc(PAGE, elements * 4 * sizeof(double))))
        return bench_fail(error, FILCH_OUT_OF_MEMORY, "--n", 0, "no memory for matrices of %zu",
                          work->n);
    memset(*memory, 0, elements * 4 * sizeof(double));
    double *a = *memory;
    double *b = a + elements;
    if (work->kind == BENCH_PEER_CHOLESKY)
        bench_dense_fill_spd(work->n, work->n, a, 1);
    else
        bench_dense_fill(work->n, work->n, work->n, a, 1);
    bench_dense_fill(work->n, work->n, work->n, b, 2);
    work->a = a;
    work->b = b;
    work->c = b + elements;
    work->kernels = &bench_kernels_double;
    return FILCH_OK;
}

/* One run that proves what it did: marks for empty tasks, else agreement with the reference in the
 * fourth matrix, which the first peer's result becomes. */
static filch_status check_one(const contender *c, bench_peer_work *work, double *reference,
                              bool *has_reference, filch_error *error)
{
    double seconds;
    size_t tasks = bench_peer_tasks(work);
    if (!is_dense(work->kind)) {
        work->marks = calloc(tasks, sizeof *work->marks);
        if (!work->marks)
            return bench_fail(error, FILCH_OUT_OF_MEMORY, c->peer->name, 0, "no memory");
    }
    filch_status status = c->peer->run(c->state, error, &seconds);
    bool holds = true;
    if (status == FILCH_OK && !is_dense(work->kind)) {
        holds = bench_peer_marks_hold(work);
    } else if (status == FILCH_OK && *has_reference) {
        holds = bench_dense_difference(work->n, work->n, work->n, work->c, work->n, reference,
                                       work->kind == BENCH_PEER_CHOLESKY) < AGREEMENT;
    } else if (status == FILCH_OK) {
        memcpy(reference, work->c, work->n * work->n * sizeof(double));
        *has_reference = true;
    }
    free(work->marks);
    work->marks = NULL;
    if (status == FILCH_OK && !holds)
        status = bench_fail(error, FILCH_DATA, c->peer->name, 0, "the result of %s is wrong",
                            bench_peer_kind_name(work->kind));
    return status;
}

/* Each measured run directly follows one that is not counted: other peers' runs and their memory
 * have just gone through the caches, and threads asleep would have to be woken first. */
static filch_status measure_warm(contender *c, size_t round, filch_error *error)
{
    bench_settle(SETTLE_LIMIT_S);
    filch_status status = c->peer->run(c->state, error, &c->seconds[round]);
    if (status == FILCH_OK)
        status = c->peer->run(c->state, error, &c->seconds[round]);
    return status;
}

static filch_status measure(contender *contenders, size_t count, bench_peer_work *work,
                            const request *r, filch_error *error)
{
    filch_status status = FILCH_OK;
    bench_progress progress;
    bench_progress_start(&progress, stderr, bench_peer_kind_name(work->kind), r->repeat);
    for (size_t k = 0; k < r->repeat && status == FILCH_OK; k++) {
        for (size_t p = 0; p < count && status == FILCH_OK; p++)
            status = measure_warm(&contenders[p], k, error);
        bench_progress_step(&progress);
    }
    bench_progress_end(&progress);
    bool has_reference = false;
    double *reference = work->c ? (double *)work->c + matrix_elements(work) : NULL;
    for (size_t p = 0; p < count && status == FILCH_OK && r->check; p++)
        status = check_one(&contenders[p], work, reference, &has_reference, error);
    return status;
}

static void add_rows(const contender *contenders, size_t count, const bench_peer_work *work,
                     size_t repeat, bench_table *table)
{
    for (size_t p = 0; p < count; p++) {
        bench_stats stats;
        char text[32];
        if (!bench_stats_of(contenders[p].seconds, repeat, &stats))
            continue;
        double tasks = (double)bench_peer_tasks(work);
        double n = (double)work->n;
        bench_table_cell(table, "%s", bench_peer_kind_name(work->kind));
        bench_table_cell(table, "%u", work->workers);
        bench_table_cell(table, "%s", contenders[p].peer->name);
        bench_format_seconds(stats.median, text, sizeof text);
        bench_table_cell(table, "%s", text);
        bench_format_seconds(stats.min, text, sizeof text);
        bench_table_cell(table, "%s", text);
        bench_table_cell(table, "%.1f %%", 100 * bench_stats_noise(&stats) / stats.median);
        if (is_dense(work->kind)) {
            double flops =
                work->kind == BENCH_PEER_GEMM ? bench_flops_gemm(n, n, n) : bench_flops_cholesky(n);
            bench_table_cell(table, "%.1f GFLOP/s", flops / stats.median * 1e-9);
        } else {
            bench_table_cell(table, "%.1f ns/task", stats.median / tasks * 1e9);
        }
    }
}

static filch_status run_kind(bench_peer_kind kind, unsigned workers, const request *r,
                             bench_table *table, filch_error *error)
{
    bench_peer_work work = {.kind = kind,
                            .workers = workers,
                            .n = r->n ? r->n : default_n(kind),
                            .tile = is_dense(kind) ? r->tile : 0,
                            .is_resident = r->is_resident,
                            .gpu_count = workers < r->gpus ? workers : r->gpus};
    for (unsigned g = 0; g < work.gpu_count; g++)
        work.gpus[g] = g;
    contender contenders[PEERS_MAX] = {0};
    size_t count = 0;
    double *memory;
    filch_status status = take_matrices(&work, &memory, error);
    for (size_t p = 0; bench_peer_at(p) && count < PEERS_MAX && status == FILCH_OK; p++) {
        contender *c = &contenders[count];
        c->peer = bench_peer_at(p);
        if (!c->peer->supports(kind) || (c->peer->needs_gpu && r->gpus == 0))
            continue;
        c->seconds = calloc(r->repeat, sizeof *c->seconds);
        if (!c->seconds)
            status = bench_fail(error, FILCH_OUT_OF_MEMORY, c->peer->name, 0, "no memory");
        else
            status = c->peer->setup(&work, error, &c->state);
        if (status == FILCH_OK)
            count++;
        else
            free(c->seconds);
    }
    if (status == FILCH_OK)
        status = measure(contenders, count, &work, r, error);
    if (status == FILCH_OK)
        add_rows(contenders, count, &work, r->repeat, table);
    for (size_t p = 0; p < count; p++) {
        contenders[p].peer->teardown(contenders[p].state);
        free(contenders[p].seconds);
    }
    free(memory);
    return status;
}

int bench_peers_main(int argc, char **argv)
{
    request r = {.workers = {1, 2},
                 .worker_counts = 2,
                 .repeat = 7,
                 .tile = MATRIX_TILE,
                 .why = FILCH_ERROR_INIT};
    filch_error error = FILCH_ERROR_INIT;
    bool done = false;
    filch_status status = parse(argc, argv, &r, &done, &error);
    if (status == FILCH_OK && done)
        return BENCH_EXIT_OK;
    r.gpus = bench_gpu_count(&r.why);
    if (r.gpus > BENCH_PEER_GPUS)
        r.gpus = BENCH_PEER_GPUS;
    if (status == FILCH_OK && r.gpus == 0)
        fprintf(stderr, "peers on GPUs are left out: %s\n", r.why.text);
    bench_table table = {0};
    bench_table_column(&table, true, "work");
    bench_table_column(&table, false, "workers");
    bench_table_column(&table, true, "peer");
    bench_table_column(&table, false, "median");
    bench_table_column(&table, false, "least");
    bench_table_column(&table, false, "noise");
    bench_table_column(&table, false, "cost");
    for (int kind = 0; kind < BENCH_PEER_ALONE; kind++)
        for (size_t w = 0; w < r.worker_counts && status == FILCH_OK; w++)
            if (r.kinds[kind])
                status = run_kind((bench_peer_kind)kind, r.workers[w], &r, &table, &error);
    if (status == FILCH_OK)
        bench_table_print(&table, stdout);
    bench_table_free(&table);
    return status == FILCH_OK ? BENCH_EXIT_OK : bench_cli_fail("peers", &error);
}
