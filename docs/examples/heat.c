/* SPDX-License-Identifier: Apache-2.0 */
/* The program of docs/tutorial-cpu.md: its code blocks, one after the other. */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <filch/filch.h>

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

static void sweep(size_t n, const double *now, double *next)
{
    for (size_t j = 1; j < n - 1; j++)
        relax(n, now + (j - 1) * n, now + j * n, now + (j + 1) * n, next + j * n);
}

static double *column(const filch_view *strip, uint64_t j)
{
    return (double *)strip->ptr + j * strip->ld;
}

/* Views: the strip before, the strip, the strip behind; the strip in the other grid; the change. */
static int relax_strip(const filch_call *call)
{
    const filch_view *before = &call->views[0], *now = &call->views[1], *behind = &call->views[2];
    const filch_view *next = &call->views[3];
    uint64_t n = now->rows;
    double largest = 0;
    for (uint64_t j = 0; j < now->cols; j++) {
        if (now->col + j == 0 || now->col + j == n - 1) { /* an edge of the plate stays */
            memcpy(column(next, j), column(now, j), n * sizeof(double));
            continue;
        }
        const double *left = j > 0 ? column(now, j - 1) : column(before, before->cols - 1);
        const double *right = j + 1 < now->cols ? column(now, j + 1) : column(behind, 0);
        largest = fmax(largest, relax(n, left, column(now, j), right, column(next, j)));
    }
    *column(&call->views[4], 0) = largest;
    return 0; /* any other code fails the task */
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

static filch_data *strips_of(filch_runtime *rt, double *values, uint64_t rows, uint64_t cols,
                             uint64_t width)
{
    filch_data_desc desc = FILCH_DATA_DESC_INIT;
    filch_data *data = NULL;
    desc.ptr = values;
    desc.element = sizeof *values;
    desc.rows = rows;
    desc.cols = cols;
    desc.tile_cols = width;
    need(filch_data_create(rt, &desc, &data), rt);
    return data;
}

static void make_parts(solver *s, uint64_t n, double *grid[2])
{
    uint64_t width = (n + s->strips - 1) / s->strips;
    filch_codelet_desc code = FILCH_CODELET_DESC_INIT;
    s->strips = (uint32_t)((n + width - 1) / width); /* the last one may be narrower */
    s->plate[0] = strips_of(s->rt, grid[0], n, n, width);
    s->plate[1] = strips_of(s->rt, grid[1], n, n, width);
    s->change = strips_of(s->rt, s->changes, 1, s->strips, 1);
    code.name = "relax";
    code.host = relax_strip;
    code.work = points;
    need(filch_codelet_create(s->rt, &code, &s->relax), s->rt);
}

static void add_sweep(solver *s, filch_data *now, filch_data *next)
{
    for (uint32_t k = 0; k < s->strips; k++) {
        uint32_t before = k > 0 ? k - 1 : k, behind = k + 1 < s->strips ? k + 1 : k;
        filch_access tiles[] = {FILCH_R(now, 0, before), FILCH_R(now, 0, k),
                                FILCH_R(now, 0, behind), FILCH_W(next, 0, k),
                                FILCH_W(s->change, 0, k)};
        filch_task_desc task = FILCH_TASK_DESC_INIT;
        task.codelet = s->relax;
        task.accesses = tiles;
        task.access_count = 5;
        need(filch_graph_add(s->graph, &task, NULL), s->rt);
    }
}

static void make_graph(solver *s)
{
    need(filch_graph_create(s->rt, NULL, &s->graph), s->rt);
    add_sweep(s, s->plate[0], s->plate[1]);
    add_sweep(s, s->plate[1], s->plate[0]);
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
    until.lag = 1; /* the next run need not wait for the answer */
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

static double now_s(void)
{
    struct timespec now;
    timespec_get(&now, TIME_UTC);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

int main(int argc, char **argv)
{
    size_t n = argc > 1 ? strtoul(argv[1], NULL, 10) : 500;
    solver s = {.strips = argc > 2 ? (uint32_t)strtoul(argv[2], NULL, 10) : 16};
    double *grid[2] = {cold_plate(n), cold_plate(n)}, *plain[2] = {cold_plate(n), cold_plate(n)};
    if (n < 3 || n > 20000 || s.strips < 1 || s.strips > STRIPS_MAX || !grid[0] || !grid[1] ||
        !plain[0] || !plain[1]) {
        fprintf(stderr, "usage: heat [POINTS [STRIPS]], strips up to %d\n", STRIPS_MAX);
        return 2;
    }

    filch_error error = FILCH_ERROR_INIT;
    if (filch_runtime_create(NULL, &error, &s.rt) != FILCH_OK)
        stop(&error);
    make_parts(&s, n, grid);
    make_graph(&s);
    filch_job_info info = solve(&s);
    need(filch_runtime_destroy(s.rt), s.rt); /* and all that was made from it */

    double start = now_s();
    for (uint64_t k = 0; k < info.runs; k++) {
        sweep(n, plain[0], plain[1]);
        sweep(n, plain[1], plain[0]);
    }
    double plain_s = now_s() - start;
    int is_same = memcmp(grid[0], plain[0], n * n * sizeof(double)) == 0;
    printf("a tenth of the way in: %.4f\n", grid[0][n / 10 * n + n / 2]);
    printf("%llu sweeps: filch %.3f s, plain loop %.3f s, results are %s\n",
           (unsigned long long)info.runs * 2, info.seconds, plain_s, is_same ? "equal" : "unequal");
    return !is_same;
}
