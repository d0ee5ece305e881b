/* SPDX-License-Identifier: Apache-2.0 */
/* Cholesky factorization by filch's own kernels, tiles of any size, both precisions, on GPUs (and
 * host cores where FILCH_DEVICES names some): the product of the factors is the matrix up to
 * roundoff, and a pivot that is not positive is named by its row. */
#include "gpu.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum kernel { POTRF, TRSM, SYRK, GEMM, KERNELS };

enum { LEAST_ORDER = 20, MOST_ORDER = 260, DOUBLE = 0, SINGLE = 1 };

typedef struct problem {
    int precision;
    uint64_t n, tile, count;
    double *a; /* as given */
    void *l;   /* the same in the precision, and then its factor */
    int32_t row;
    filch_data *matrix, *info;
    filch_graph *graph;
} problem;

static filch_codelet *codelets[2][KERNELS]; /* of the runtime that is open */

static filch_status open_codelets(gpu_world *world)
{
    static const char *const names[2][KERNELS] = {
        {"potrf_f64", "trsm_f64", "syrk_f64", "gemm_f64"},
        {"potrf_f32", "trsm_f32", "syrk_f32", "gemm_f32"}};
    filch_status status = FILCH_OK;
    for (int p = DOUBLE; p <= SINGLE; p++)
        for (int k = POTRF; k < KERNELS && status == FILCH_OK; k++)
            status = gpu_builtin(world->runtime, names[p][k], &codelets[p][k]);
    return status;
}

static size_t element(const problem *p)
{
    return p->precision == DOUBLE ? sizeof(double) : sizeof(float);
}

static double get(const problem *p, uint64_t i, uint64_t j)
{
    return p->precision == DOUBLE ? ((double *)p->l)[i + j * p->n] : ((float *)p->l)[i + j * p->n];
}

/* Diagonally dominant, and so positive definite, unless one diagonal element is turned negative:
 * then the pivot of that row is the first that is not positive. */
static void fill(gpu_world *world, problem *p, uint64_t bad)
{
    for (uint64_t j = 0; j < p->n; j++)
        for (uint64_t i = j; i < p->n; i++) {
            float value = (float)(2 * fl_random_unit(&world->random) - 1);
            if (i == j)
                value = j == bad ? -value * value - 1 : (float)p->n + value;
            p->a[i + j * p->n] = p->a[j + i * p->n] = value;
        }
    for (uint64_t k = 0; k < p->n * p->n; k++)
        if (p->precision == DOUBLE)
            ((double *)p->l)[k] = p->a[k];
        else
            ((float *)p->l)[k] = (float)p->a[k];
}

static void make_data(gpu_world *world, problem *p)
{
    filch_data_desc matrix = FILCH_DATA_DESC_INIT;
    filch_data_desc info = FILCH_DATA_DESC_INIT;
    matrix.ptr = p->l;
    matrix.element = element(p);
    matrix.rows = matrix.cols = p->n;
    matrix.tile_rows = matrix.tile_cols = p->tile;
    info.ptr = &p->row;
    info.element = sizeof p->row;
    info.rows = 1;
    gpu_ok(filch_data_create(world->runtime, &matrix, &p->matrix));
    gpu_ok(filch_data_create(world->runtime, &info, &p->info));
}

static void add(const problem *p, enum kernel kernel, const uint64_t (*where)[2], uint32_t count)
{
    static const filch_gemm_args gemm_args = {-1, 1, 0, 1};
    static const filch_syrk_args syrk_args = {-1, 1, 0, 0};
    filch_access accesses[4];
    filch_task_desc desc = FILCH_TASK_DESC_INIT;
    for (uint32_t k = 0; k < count; k++)
        accesses[k] = (filch_access){.data = p->matrix,
                                     .row = (uint32_t)where[k][0],
                                     .col = (uint32_t)where[k][1],
                                     .mode = k + 1 < count ? FILCH_READ : FILCH_READWRITE};
    if (kernel == POTRF)
        accesses[count++] = (filch_access){.data = p->info, .mode = FILCH_READWRITE};
    desc.codelet = codelets[p->precision][kernel];
    desc.args = kernel == GEMM ? (const void *)&gemm_args : kernel == SYRK ? &syrk_args : NULL;
    desc.accesses = accesses;
    desc.access_count = count;
    gpu_ok(filch_graph_add(p->graph, &desc, NULL));
}

static void make_graph(gpu_world *world, problem *p)
{
    gpu_ok(filch_graph_create(world->runtime, NULL, &p->graph));
    for (uint64_t k = 0; k < p->count && !gpu_has_failed(); k++) {
        add(p, POTRF, (const uint64_t[][2]){{k, k}}, 1);
        for (uint64_t i = k + 1; i < p->count; i++)
            add(p, TRSM, (const uint64_t[][2]){{k, k}, {i, k}}, 2);
        for (uint64_t j = k + 1; j < p->count; j++) {
            add(p, SYRK, (const uint64_t[][2]){{j, k}, {j, j}}, 2);
            for (uint64_t i = j + 1; i < p->count; i++)
                add(p, GEMM, (const uint64_t[][2]){{i, k}, {j, k}, {i, j}}, 3);
        }
    }
}

/* |A - L L'| in the lower triangle, elementwise against n roundoffs of the largest element: the
 * bound of the factorization for such matrices (N. Higham, Accuracy and Stability of Numerical
 * Algorithms, 2nd ed., theorem 10.3), some thirty times what comes out. */
static void compare(const problem *p)
{
    double unit = p->precision == DOUBLE ? 0x1p-53 : 0x1p-24;
    double most = (double)(p->n + 1) * unit * ((double)p->n + 1);
    for (uint64_t j = 0; j < p->n; j++)
        for (uint64_t i = j; i < p->n; i++) {
            long double sum = 0;
            for (uint64_t k = 0; k <= j; k++)
                sum += (long double)get(p, i, k) * (long double)get(p, j, k);
            double error = fabs((double)(sum - (long double)p->a[i + j * p->n]));
            if (!(error <= most)) {
                gpu_fail("order %llu, tile %llu, %s: row %llu, column %llu is off by %g",
                         (unsigned long long)p->n, (unsigned long long)p->tile,
                         p->precision == DOUBLE ? "double" : "single", (unsigned long long)i,
                         (unsigned long long)j, error);
                return;
            }
        }
}

/* A host device's task fails with the row as its code; a kernel leaves it behind. */
static void compare_failure(const problem *p, filch_job *job, filch_status status, uint64_t bad)
{
    filch_error error = FILCH_ERROR_INIT;
    int32_t row = p->row;
    if (status == FILCH_TASK_FAILED && filch_job_error(job, &error) == FILCH_OK)
        row = error.native_code;
    else
        gpu_expect(status, FILCH_OK, "filch_job_wait");
    if (row != (int32_t)bad + 1)
        gpu_fail("order %llu, tile %llu: the pivot of row %llu fails, not of row %d",
                 (unsigned long long)p->n, (unsigned long long)p->tile, (unsigned long long)bad + 1,
                 row);
}

static void run(gpu_world *world, problem *p)
{
    bool fails = gpu_chance(world, 30);
    uint64_t bad = fails ? gpu_between(world, 0, p->n - 1) : p->n;
    filch_job *job = NULL;
    fill(world, p, bad);
    p->row = 0;
    gpu_ok(filch_graph_submit(p->graph, NULL, &job));
    if (gpu_has_failed())
        return;
    filch_status status = filch_job_wait(job, -1);
    if (fails) {
        compare_failure(p, job, status, bad);
    } else {
        gpu_expect(status, FILCH_OK, "filch_job_wait");
        if (p->row != 0)
            gpu_fail("row %d of a positive definite matrix is said to fail", p->row);
        compare(p);
    }
    gpu_ok(filch_job_release(job));
}

static void check(gpu_world *world)
{
    problem p = {.precision = gpu_chance(world, 40) ? SINGLE : DOUBLE,
                 .n = gpu_between(world, LEAST_ORDER, MOST_ORDER)};
    p.tile = gpu_between(world, 1 + p.n / 8, p.n);
    p.count = (p.n + p.tile - 1) / p.tile;
    p.a = gpu_alloc(p.n * p.n, sizeof *p.a);
    p.l = gpu_alloc(p.n * p.n, element(&p));
    make_data(world, &p);
    make_graph(world, &p);
    for (int r = 0; r < 2 && !gpu_has_failed(); r++)
        run(world, &p);
    if (gpu_has_failed())
        return;
    gpu_ok(filch_graph_destroy(p.graph));
    gpu_ok(filch_data_destroy(p.matrix));
    gpu_ok(filch_data_destroy(p.info));
    free(p.a);
    free(p.l);
}

int main(int argc, char **argv)
{
    static const gpu_test test = {"solver", open_codelets, check, 700};
    return gpu_main(&test, argc, argv);
}
