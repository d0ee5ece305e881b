/* SPDX-License-Identifier: Apache-2.0 */
/* The program of docs/tutorial-gpu.md: docs/examples/heat.c for GPUs, and for cores beside them.
 * heat_gpu [POINTS [STRIPS [TRACE.json]]] */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <filch/filch.h>

static const char source[] =
    "#include \"filch/kernel.h\"\n"
    "extern \"C\" __global__ void relax(filch_view before, filch_view now, filch_view behind,\n"
    "                                 filch_view next, filch_view change, int is_last)\n"
    "{\n"
    "    __shared__ unsigned long long block;\n"
    "    if (threadIdx.x == 0)\n"
    "        block = 0;\n"
    "    __syncthreads();\n"
    "    const unsigned long long n = now.rows;\n"
    "    double largest = 0;\n"
    "    for (unsigned long long k = filch_thread(); k < n * now.cols; k += filch_threads()) {\n"
    "        const unsigned long long i = k % n, j = k / n, col = now.col + j;\n"
    "        const double own = filch_at<double>(now, i, j);\n"
    "        double mean = own;\n"
    "        if (i > 0 && i < n - 1 && col > 0 && col < n - 1) {\n"
    "            const double left = j > 0 ? filch_at<double>(now, i, j - 1)\n"
    "                                      : filch_at<double>(before, i, before.cols - 1);\n"
    "            const double right = j + 1 < now.cols ? filch_at<double>(now, i, j + 1)\n"
    "                                                  : filch_at<double>(behind, i, 0);\n"
    "            mean = (left + right + filch_at<double>(now, i - 1, j) +\n"
    "                    filch_at<double>(now, i + 1, j)) / 4;\n"
    "        }\n"
    "        filch_at<double>(next, i, j) = mean;\n"
    "        largest = fmax(largest, fabs(mean - own));\n"
    "    }\n"
    "    unsigned long long *all = (unsigned long long *)change.ptr;\n"
    "    if (!is_last) {\n"
    "        if (filch_thread() == 0)\n"
    "            *all = 0;\n"
    "        return;\n"
    "    }\n"
    "    atomicMax(&block, (unsigned long long)__double_as_longlong(largest));\n"
    "    __syncthreads();\n"
    "    if (threadIdx.x == 0)\n"
    "        atomicMax(all, block);\n"
    "}\n";

static double *column(const filch_view *strip, uint64_t j)
{
    return (double *)strip->ptr + j * strip->ld;
}

/* New temperatures of a column. Returns the largest change. */
static double relax(size_t n, const double *left, const double *own, const double *right,
                    double *next)
{
    double largest = 0;
    next[0] = own[0];
    for (size_t i = 1; i < n - 1; i++) {
        next[i] = (left[i] + right[i] + own[i - 1] + own[i + 1]) / 4;
        double change = fabs(next[i] - own[i]);
        largest = change > largest ? change : largest;
    }
    next[n - 1] = own[n - 1];
    return largest;
}

/* The same on a core of the host. */
static int relax_strip(const filch_call *call)
{
    const filch_view *before = &call->views[0], *now = &call->views[1], *behind = &call->views[2];
    const filch_view *next = &call->views[3];
    const int *is_last = call->args;
    double *all = column(&call->views[4], 0), largest = 0;
    uint64_t n = now->rows;
    for (uint64_t j = 0; j < now->cols; j++) {
        if (now->col + j == 0 || now->col + j == n - 1) {
            memcpy(column(next, j), column(now, j), n * sizeof(double));
            continue;
        }
        const double *left = j > 0 ? column(now, j - 1) : column(before, before->cols - 1);
        const double *right = j + 1 < now->cols ? column(now, j + 1) : column(behind, 0);
        largest = fmax(largest, relax(n, left, column(now, j), right, column(next, j)));
    }
    *all = *is_last ? fmax(*all, largest) : 0;
    return 0;
}

static double points(const filch_call *call)
{
    return (double)(call->views[1].rows * call->views[1].cols);
}

enum { STRIPS_MAX = 32 };

typedef struct solver {
    filch_runtime *rt;
    filch_data *plate[2], *change;
    filch_codelet *relax;
    filch_graph *graph;
    uint32_t strips;
    double changes[STRIPS_MAX];
} solver;

static void stop(const filch_error *error)
{
    fprintf(stderr, "heat: %s: %s\n", filch_status_name(error->status), error->text);
    exit(1);
}

static void need(filch_status status, filch_runtime *rt)
{
    filch_error error = FILCH_ERROR_INIT;
    if (status == FILCH_OK)
        return;
    filch_runtime_error(rt, &error);
    if (error.status != status) { /* filch keeps no record: the call's first argument is wrong */
        error = (filch_error)FILCH_ERROR_INIT;
        error.status = status;
        snprintf(error.text, sizeof error.text, "%s", filch_status_message(status));
    }
    stop(&error);
}

static void make_codelet(solver *s)
{
    filch_cuda_desc cuda = FILCH_CUDA_DESC_INIT;
    filch_codelet_desc code = FILCH_CODELET_DESC_INIT;
    cuda.source = source;
    cuda.entry = "relax";
    cuda.shape = (filch_shape){.grid = {64}, .block = {256}};
    code.name = "relax";
    code.cuda = &cuda;
    code.host = relax_strip;
    code.work = points;
    code.arg_size = sizeof(int);
    need(filch_codelet_create(s->rt, &code, &s->relax), s->rt);
}

static filch_data *strips_of(filch_runtime *rt, double *values, uint64_t rows, uint64_t cols,
                             uint64_t width, uint32_t flags)
{
    filch_data_desc desc = FILCH_DATA_DESC_INIT;
    filch_data *data = NULL;
    desc.ptr = values;
    desc.element = sizeof *values;
    desc.rows = rows;
    desc.cols = cols;
    desc.tile_cols = width;
    desc.flags = flags;
    need(filch_data_create(rt, &desc, &data), rt);
    return data;
}

static void make_handles(solver *s, uint64_t n, double *grid[2])
{
    uint64_t width = (n + s->strips - 1) / s->strips;
    s->strips = (uint32_t)((n + width - 1) / width);
    s->plate[0] = strips_of(s->rt, grid[0], n, n, width, FILCH_DATA_MANAGED);
    s->plate[1] = strips_of(s->rt, grid[1], n, n, width, FILCH_DATA_MANAGED);
    s->change = strips_of(s->rt, s->changes, 1, s->strips, 1, 0);
}

static void add_sweep(solver *s, filch_data *now, filch_data *next, int is_last)
{
    for (uint32_t k = 0; k < s->strips; k++) {
        uint32_t before = k > 0 ? k - 1 : k, behind = k + 1 < s->strips ? k + 1 : k;
        filch_access tiles[] = {
            FILCH_R(now, 0, before), FILCH_R(now, 0, k), FILCH_R(now, 0, behind),
            FILCH_W(next, 0, k),
            FILCH_ACCESS(s->change, 0, k, is_last ? FILCH_READWRITE : FILCH_WRITE)};
        filch_task_desc task = FILCH_TASK_DESC_INIT;
        task.codelet = s->relax;
        task.args = &is_last;
        task.accesses = tiles;
        task.access_count = 5;
        need(filch_graph_add(s->graph, &task, NULL), s->rt);
    }
}

static int is_steady(uint64_t run, const void *value, void *user)
{
    const solver *s = user;
    double changes[STRIPS_MAX];
    memcpy(changes, value, s->strips * sizeof *changes);
    for (uint32_t k = 0; k < s->strips; k++)
        if (changes[k] > 0.01)
            return FILCH_REPEAT_AGAIN;
    printf("steady after run %llu\n", (unsigned long long)run);
    return FILCH_REPEAT_STOP;
}

static filch_job_info solve(solver *s)
{
    filch_repeat_desc until = FILCH_REPEAT_DESC_INIT;
    filch_job_info info = FILCH_JOB_INFO_INIT;
    filch_error error = FILCH_ERROR_INIT;
    filch_job *job = NULL;
    until.predicate = is_steady;
    until.user = s;
    until.value = s->changes;
    until.value_bytes = (uint32_t)(s->strips * sizeof *s->changes);
    until.lag = 1;
    need(filch_graph_repeat(s->graph, &until, NULL, &job), s->rt);
    if (filch_job_wait(job, -1) != FILCH_OK) {
        filch_job_error(job, &error);
        stop(&error);
    }
    filch_job_stats(job, &info, NULL, 0);
    filch_job_release(job);
    return info;
}

static double *cold_plate(size_t n) /* with a hot edge on the left */
{
    double *grid = calloc(n * n, sizeof *grid);
    for (size_t i = 0; grid != NULL && i < n; i++)
        grid[i] = 100;
    return grid;
}

int main(int argc, char **argv)
{
    size_t n = argc > 1 ? strtoul(argv[1], NULL, 10) : 500;
    solver s = {.strips = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 16};
    double *grid[2] = {cold_plate(n), cold_plate(n)};
    if (n < 3 || n > 20000 || s.strips < 1 || s.strips > STRIPS_MAX || !grid[0] || !grid[1]) {
        fprintf(stderr, "usage: heat_gpu [POINTS [STRIPS [TRACE.json]]]\n");
        return 2;
    }
    filch_error error = FILCH_ERROR_INIT;
    if (filch_runtime_create(NULL, &error, &s.rt) != FILCH_OK)
        stop(&error);
    if (argc > 3)
        need(filch_trace_start(s.rt), s.rt);
    make_handles(&s, n, grid);
    make_codelet(&s);
    need(filch_graph_create(s.rt, NULL, &s.graph), s.rt);
    add_sweep(&s, s.plate[0], s.plate[1], 0);
    add_sweep(&s, s.plate[1], s.plate[0], 1);
    filch_job_info info = solve(&s);
    if (argc > 3)
        need(filch_trace_write(s.rt, argv[3]), s.rt);
    need(filch_data_acquire(s.plate[0], FILCH_READ), s.rt); /* brings the plate home */
    printf("a tenth of the way in: %.4f\n", grid[0][n / 10 * n + n / 2]);
    printf("%llu sweeps, %.3f s, %.1f MB copied\n", (unsigned long long)info.runs * 2, info.seconds,
           (double)info.bytes / 1e6);
    need(filch_runtime_destroy(s.rt), s.rt);
    free(grid[0]);
    free(grid[1]);
    return 0;
}
