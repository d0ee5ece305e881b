/* SPDX-License-Identifier: Apache-2.0 */
/* Solves a sparse symmetric positive definite system by supernodal Cholesky, and measures the
 * factorization, on request beside CHOLMOD's. */
#include <cblas.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <threads.h>
#include <time.h>

#include "factor.h"
#include "order.h"
#include "tasks_gpu.h"
#include "versus.h"

static const char usage[] =
    "usage: supernodes [OPTION...] [poisson:K | FILE.mtx]\n"
    "  poisson:K         the 7-point Laplacian on K x K x K points (default: poisson:20)\n"
    "  FILE.mtx          a symmetric matrix as a Matrix Market file\n"
    "  --order NAME      metis, amd, or best: the one with fewer operations (default: best)\n"
    "  --devices SPEC    devices, such as host:4 or, built with WITH_CUBLAS, cuda,host (default: "
    "host)\n"
    "  --panel N         most columns of a panel (default: by the matrix, wider on GPUs)\n"
    "  --pieces N        subtrees of less than 1/N of the work are one task (default: by the "
    "cores)\n"
    "  --cores-help      beside GPUs, cores take tasks of large supernodes, too\n"
    "  --runs N          factorizations to be timed, behind one more where N > 1 (default: 1)\n"
    "  --versus          CHOLMOD's factorization in turn with filch's: with one thread and with "
    "all\n"
    "  --versus-gpu      the same, with all threads and with all and a GPU\n"
    "  --json FILE       writes the figures\n";

enum { RUNS = 1000, SIDES = 3 };

typedef struct options {
    const char *problem, *order, *devices, *json;
    int panel, pieces, runs;
    bool cores_help, versus, versus_gpu;
} options;

/* What is solved, and with what. */
typedef struct work {
    matrix a;
    int *order;
    ordering by;
    symbolic s;
    cut c;
    filch_runtime *runtime;
    factor *f;
    versus *v[SIDES]; /* of CHOLMOD's sides */
    double *b, *x;
    double time[SIDES][RUNS], residual[SIDES];
    int cores, gpus, sides;
} work;

static double now(void)
{
    struct timespec t;
    timespec_get(&t, TIME_UTC);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int ascending(const void *left, const void *right)
{
    const double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

static bool read_problem(matrix *a, const char *problem, char why[WHY])
{
    char *end;
    if (strncmp(problem, "poisson:", 8) != 0)
        return matrix_read(a, problem, why);
    const long k = strtol(problem + 8, &end, 10);
    if (*end != '\0' || end == problem + 8 || k < 1 || k > 500) {
        snprintf(why, WHY, "'%.60s' must be poisson:1 to poisson:500", problem);
        return false;
    }
    return matrix_poisson(a, (int)k, why);
}

/* Orders and analyses; where both orders are tried, the better one stays. */
static bool analyse(work *w, const char *order, char why[WHY])
{
    const bool both = strcmp(order, "best") == 0;
    for (int by = ORDER_METIS; by <= ORDER_AMD; by++) {
        if (!both && strcmp(order, by == ORDER_METIS ? "metis" : "amd") != 0)
            continue;
        symbolic s;
        int *found = malloc((size_t)w->a.n * sizeof *found);
        if (!found)
            return snprintf(why, WHY, "no memory for an order"), false;
        if (!order_find(&w->a, by, found, why) || !symbolic_make(&s, &w->a, found, why))
            return free(found), false;
        if (w->order && w->s.flops <= s.flops) {
            symbolic_free(&s);
            free(found);
            continue;
        }
        symbolic_free(&w->s);
        free(w->order);
        w->s = s, w->order = found, w->by = (ordering)by;
    }
    return true;
}

/* GPUs for which the program has no code compute nothing. */
static void count_devices(work *w)
{
    for (uint32_t d = 0; d < filch_device_count(w->runtime); d++) {
        filch_device_info info = FILCH_DEVICE_INFO_INIT;
        const bool gpu =
            filch_device_at(w->runtime, d, &info) == FILCH_OK && info.backend == FILCH_BACKEND_CUDA;
        if (!gpu || gpu_is_built())
            *(gpu ? &w->gpus : &w->cores) += 1;
    }
}

/* Memory of a GPU for CHOLMOD: more than its six buffers for the largest supernode. */
static size_t gpu_bytes(const symbolic *s)
{
    size_t most = 1 << 22;
    for (int at = 0; at < s->count; at++) {
        const size_t size = (size_t)s->node[at].rows * (size_t)s->node[at].cols;
        most = size > most ? size : most;
    }
    return 8 * 16 * most;
}

/* What is compared: CHOLMOD with one thread and with all; or with all, and with all and a GPU. */
static bool start_versus(work *w, const options *o, char why[WHY])
{
    w->sides = o->versus || o->versus_gpu ? SIDES : 1;
    for (int side = 1; side < w->sides; side++)
        if (!versus_make(&w->v[side], &w->a, w->order,
                         o->versus_gpu && side == 2 ? gpu_bytes(&w->s) : 0, why))
            return false;
    return true;
}

static bool start(work *w, const options *o, char why[WHY])
{
    filch_error error = FILCH_ERROR_INIT;
    filch_runtime_desc config = FILCH_RUNTIME_DESC_INIT;
    config.devices = o->devices;
    openblas_set_num_threads(1); /* a task is one thread: the runtime spreads the tasks */
    if (filch_runtime_create(&config, &error, &w->runtime) != FILCH_OK) {
        snprintf(why, WHY, "%.200s", error.text);
        return false;
    }
    count_devices(w);
    w->b = malloc((size_t)w->a.n * sizeof *w->b);
    w->x = malloc((size_t)w->a.n * sizeof *w->x);
    if (!w->b || !w->x)
        return snprintf(why, WHY, "no memory for vectors"), false;
    for (int i = 0; i < w->a.n; i++)
        w->b[i] = 1 + i % 7;
    return cut_make(&w->c, &w->s, w->cores > 0 ? w->cores : 1, w->gpus > 0, o->panel, o->pieces,
                    why) &&
           factor_make(&w->f, w->runtime, &w->s, &w->c, &w->a, o->cores_help, why) &&
           start_versus(w, o, why);
}

/* One factorization by each side. Threads of OpenBLAS spin a while after their work. */
static bool run_sides(work *w, const options *o, int run, char why[WHY])
{
    const struct timespec pause = {.tv_nsec = 60 * 1000 * 1000};
    for (int side = 0; side < w->sides; side++) {
        const int threads = side == 1 && !o->versus_gpu ? 1 : w->cores;
        if (w->sides > 1)
            thrd_sleep(&pause, NULL);
        const double begin = now();
        if (side == 0 ? !factor_run(w->f, why) : !versus_run(w->v[side], threads, why))
            return false;
        w->time[side][run] = now() - begin;
    }
    return true;
}

static bool solve(work *w, char why[WHY])
{
    for (int side = 0; side < w->sides; side++) {
        if (side == 0 ? !factor_solve(w->f, w->b, w->x, why)
                      : !versus_solve(w->v[side], w->b, w->x, why))
            return false;
        w->residual[side] = matrix_residual(&w->a, w->x, w->b);
    }
    return true;
}

/* Sorts the times of a side; the median is in the middle, the least comes first. */
static double median(double *times, int runs)
{
    qsort(times, (size_t)runs, sizeof *times, ascending);
    return runs % 2 ? times[runs / 2] : 0.5 * (times[runs / 2 - 1] + times[runs / 2]);
}

static const char *name_side(const options *o, int side)
{
    static const char *const names[] = {"filch", "cholmod, 1 thread", "cholmod, all threads",
                                        "cholmod, GPU"};
    return names[side > 0 && o->versus_gpu ? side + 1 : side];
}

static void print(work *w, const options *o)
{
    const double mine = median(w->time[0], o->runs);
    printf("%s: %d rows, %d entries in the lower triangle\n", o->problem, w->a.n,
           w->a.start[w->a.n]);
    printf("order %s: factor of %.0f entries, %d supernodes, %.4g operations\n",
           w->by == ORDER_METIS ? "metis" : "amd", w->s.entries, w->s.count, w->s.flops);
    printf("graph of %d tasks for %d devices, panels of %d columns\n", factor_tasks(w->f),
           w->cores + w->gpus, w->c.panel);
    for (int side = 0; side < w->sides; side++) {
        const double time = median(w->time[side], o->runs);
        printf("%-20s  median %9.2f ms, least %9.2f ms, %5.1f Gflop/s, ratio %.2f\n",
               name_side(o, side), 1e3 * time, 1e3 * w->time[side][0], 1e-9 * w->s.flops / time,
               time / mine);
    }
    printf("||Ax-b|| / (||A|| ||x||) = %.1e", w->residual[0]);
    for (int side = 1; side < w->sides; side++)
        printf("%s %.1e", side == 1 ? ", CHOLMOD's" : " and", w->residual[side]);
    printf("\n");
}

static void write_text(FILE *file, const char *text)
{
    fputc('"', file);
    for (; *text; text++)
        fprintf(file, *text == '"' || *text == '\\' ? "\\%c" : "%c", *text);
    fputc('"', file);
}

static bool write_json(work *w, const options *o, char why[WHY])
{
    FILE *file = fopen(o->json, "w");
    if (!file)
        return snprintf(why, WHY, "%.200s cannot be written", o->json), false;
    fprintf(file, "{\"problem\": ");
    write_text(file, o->problem);
    fprintf(file, ", \"rows\": %d, \"entries\": %d, \"order\": \"%s\",\n", w->a.n,
            w->a.start[w->a.n], w->by == ORDER_METIS ? "metis" : "amd");
    fprintf(file, " \"factor_entries\": %.0f, \"supernodes\": %d, \"operations\": %.0f,\n",
            w->s.entries, w->s.count, w->s.flops);
    fprintf(file, " \"devices\": ");
    write_text(file, o->devices);
    fprintf(file, ", \"cores\": %d, \"gpus\": %d, \"tasks\": %d, \"panel\": %d, \"runs\": %d,\n",
            w->cores, w->gpus, factor_tasks(w->f), w->c.panel, o->runs);
    for (int side = 0; side < w->sides; side++) {
        fprintf(file, " \"%s\": {\"median_s\": %.6f, \"times_s\": [", name_side(o, side),
                median(w->time[side], o->runs));
        for (int i = 0; i < o->runs; i++)
            fprintf(file, "%s%.6f", i ? ", " : "", w->time[side][i]);
        fprintf(file, "]},\n");
    }
    fprintf(file, " \"residual\": %.3e", w->residual[0]);
    if (w->sides > 1)
        fprintf(file, ", \"cholmod_residual\": %.3e", w->residual[SIDES - 1]);
    fprintf(file, "}\n");
    if (fclose(file) == 0)
        return true;
    return snprintf(why, WHY, "%.200s cannot be written", o->json), false;
}

static bool read_count(const char *text, int most, int *count)
{
    char *end;
    const long value = strtol(text, &end, 10);
    *count = (int)value;
    return *text != '\0' && *end == '\0' && value >= 1 && value <= most;
}

/* False: the arguments are wrong, and why is told on standard error. */
static bool read_options(int argc, char **argv, options *o)
{
    static const char *const names[] = {"--order", "--devices", "--json",
                                        "--panel", "--pieces",  "--runs"};
    const char **const texts[] = {&o->order, &o->devices, &o->json};
    int *const counts[] = {&o->panel, &o->pieces, &o->runs};
    for (int i = 1; i < argc; i++) {
        int known = 0;
        while (known < 6 && strcmp(argv[i], names[known]) != 0)
            known++;
        if (strcmp(argv[i], "--help") == 0) {
            exit(fputs(usage, stdout) < 0);
        } else if (strcmp(argv[i], "--versus") == 0) {
            o->versus = true;
        } else if (strcmp(argv[i], "--versus-gpu") == 0) {
            o->versus_gpu = true;
        } else if (strcmp(argv[i], "--cores-help") == 0) {
            o->cores_help = true;
        } else if (known == 6 && argv[i][0] == '-') {
            return fprintf(stderr, "unknown option '%s'\n%s", argv[i], usage), false;
        } else if (known == 6) {
            o->problem = argv[i];
        } else if (++i == argc) {
            return fprintf(stderr, "%s needs a value\n%s", names[known], usage), false;
        } else if (known < 3) {
            *texts[known] = argv[i];
        } else if (!read_count(argv[i], known == 5 ? RUNS : 100000, counts[known - 3])) {
            return fprintf(stderr, "%s %s: must be 1 to %d\n", names[known], argv[i],
                           known == 5 ? RUNS : 100000),
                   false;
        }
    }
    if (strcmp(o->order, "best") == 0 || strcmp(o->order, "metis") == 0 ||
        strcmp(o->order, "amd") == 0)
        return true;
    return fprintf(stderr, "--order %s: must be best, metis or amd\n", o->order), false;
}

int main(int argc, char **argv)
{
    char why[WHY] = "";
    options o = {.problem = "poisson:20", .order = "best", .devices = "host", .runs = 1};
    if (!read_options(argc, argv, &o))
        return 2;
    work *w = calloc(1, sizeof *w);
    bool ok =
        w && read_problem(&w->a, o.problem, why) && analyse(w, o.order, why) && start(w, &o, why);
    for (int run = o.runs > 1 ? -1 : 0; ok && run < o.runs; run++) /* -1: memory is not there yet */
        ok = run_sides(w, &o, run < 0 ? 0 : run, why);
    ok = ok && solve(w, why);
    if (ok)
        print(w, &o);
    ok = ok && (!o.json || write_json(w, &o, why));
    if (!ok)
        fprintf(stderr, "%s\n", w ? why : "no memory");
    else if (!(w->residual[0] < 1e-14))
        ok = false, fprintf(stderr, "the residual is too large\n");
    if (w) {
        if (w->runtime)
            filch_runtime_abort(w->runtime); /* and all that was made from it */
        factor_free(w->f);
        for (int side = 1; side < SIDES; side++)
            versus_free(w->v[side]);
        cut_free(&w->c);
        symbolic_free(&w->s);
        matrix_free(&w->a);
        free(w->order);
        free(w->b);
        free(w->x);
    }
    free(w);
    return ok ? 0 : 1;
}
