/* SPDX-License-Identifier: Apache-2.0 */
/* The blocks of C of docs/concepts.md, each in a function that gives it what it names, and run. The
 * included files are parts of the page (blocks.sh). */
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <filch/filch.h>

#include "page.h"

#include "the-first-half-hour-1.functions.inc"

static void first_half_hour(void)
{
    double values[1000] = {0};
#include "the-first-half-hour-1.1.inc"
    for (int i = 0; i < 1000; i++)
        EXPECT(values[i] == 1);
}

static void runtime_device_place(void)
{
#include "runtime-device-place-1.1.inc"
    EXPECT(error.status == FILCH_OK && filch_device_count(rt) == 2);
    EXPECT(filch_runtime_destroy(rt) == FILCH_OK);
}

#include "codelet-1.functions.inc"

/* A codelet, and a batch of it. */
static void codelet_and_batch(void)
{
    enum { N = 1000 };
    const uint64_t n = N;
    const double factor = 3;
    double values[N];
    filch_runtime *rt = start("host:2@any");
    filch_data *x = vector(rt, values, N, 100);
    filch_job *job = NULL;
    for (int i = 0; i < N; i++)
        values[i] = i;
#include "codelet-1.1.inc"
    EXPECT(codelet != NULL);
#include "batch-1.1.inc"
    EXPECT(wait_for(job) == FILCH_OK);
    for (int i = 0; i < N; i++)
        EXPECT(values[i] == 3 * i);
    stop(rt);
}

typedef struct solver {
    size_t room_bytes;
} solver;

#include "codelet-2.functions.inc"

static int use_room(const filch_call *call)
{
    memset(call->state, 1, ((const solver *)call->user)->room_bytes);
    return 0;
}

static void state_of_devices(void)
{
    solver with = {.room_bytes = 4096};
    filch_runtime *rt = start("host:2@any");
    filch_codelet_desc desc = FILCH_CODELET_DESC_INIT;
    filch_codelet *codelet = NULL;
    desc.name = "room";
    desc.host = use_room;
    desc.user = &with;
    desc.open = open_room;
    desc.close = close_room;
    EXPECT(filch_codelet_create(rt, &desc, &codelet) == FILCH_OK);
    filch_graph *graph = new_graph(rt);
    for (int k = 0; k < 10; k++)
        add(graph, codelet, NULL, 0);
    EXPECT(run(graph) == FILCH_OK);
    stop(rt);
}

static void handle_and_tile(void)
{
    enum { N = 300 };
    const uint64_t n = N;
    filch_tiling tiling = {.size = sizeof tiling};
    double *a = calloc(N * N, sizeof *a);
    filch_runtime *rt = start("host:2@any");
#include "handle-and-tile-1.1.inc"
    EXPECT(filch_data_tiles(A, &tiling) == FILCH_OK && tiling.rows == 2 && tiling.cols == 2);
    stop(rt);
    free(a);
}

static double printed;

static void print(const double *a)
{
    printed = a[0];
}

static void data_on_devices(void)
{
    double a[64] = {0};
    filch_runtime *rt = start("host:2@any");
    filch_codelet *codelet = host_codelet(rt, "add_one", add_one, 0);
    filch_data_desc matrix = FILCH_DATA_DESC_INIT;
    filch_data *A = NULL;
    matrix.ptr = a;
    matrix.element = sizeof *a;
    matrix.rows = matrix.cols = matrix.ld = 8;
    matrix.tile_rows = matrix.tile_cols = 2;
#include "data-on-devices-1.1.inc"
    EXPECT(filch_data_create(rt, &matrix, &A) == FILCH_OK);
    filch_graph *graph = new_graph(rt);
    add(graph, codelet, (filch_access[]){FILCH_RW(A, 0, 0)}, 1);
    EXPECT(run(graph) == FILCH_OK);
#include "data-on-devices-1.2.inc"
    EXPECT(printed == 1);
#include "data-on-devices-2.1.inc"
    EXPECT(hold != NULL && a[0] == 1);
#include "data-on-devices-2.2.inc"
#include "data-on-devices-3.1.inc"
    stop(rt);
}

static int left_to_add;

static int more(void)
{
    return left_to_add-- > 0;
}

static void open_graph(void)
{
    double values[4] = {0};
    filch_runtime *rt = start("host:2@any");
    filch_data *x = vector(rt, values, 4, 4);
    filch_task_desc task =
        task_of(host_codelet(rt, "add_one", add_one, 0), (filch_access[]){FILCH_RW(x, 0, 0)}, 1);
    left_to_add = 100;
#include "graph-1.1.inc"
    EXPECT(filch_job_status(job) == FILCH_OK && values[3] == 100);
    stop(rt);
}

static int sum_views(const filch_call *call)
{
    double sum = 0;
    for (uint32_t k = 0; k + 1 < call->view_count; k++) {
        const filch_view *view = &call->views[k];
        for (uint64_t j = 0; j < view->cols; j++)
            for (uint64_t i = 0; i < view->rows; i++)
                sum += ((const double *)view->ptr)[j * view->ld + i];
    }
    *(double *)call->views[call->view_count - 1].ptr += sum;
    return 0;
}

static void blocks_of_tiles(void)
{
    double a[36], ones[6] = {1, 1, 1, 1, 1, 1}, out[6] = {0};
    filch_runtime *rt = start("host:2@any");
    filch_data *x = vector(rt, ones, 6, 2), *y = vector(rt, out, 6, 2);
    filch_data *A = square(rt, a, 6, 2);
    const uint32_t i = 1;
    for (int k = 0; k < 36; k++)
        a[k] = k % 6; /* the row */
#include "blocks-of-tiles-1.1.inc"
    filch_graph *graph = new_graph(rt);
    add(graph, host_codelet(rt, "sum", sum_views, 0), accesses, 3);
    EXPECT(run(graph) == FILCH_OK && out[2] == 6 + 6 * (2 + 3));
    stop(rt);
}

#include "halos-2.functions.inc"

static void halos(void)
{
    double from[100], to[100] = {0};
    filch_runtime *rt = start("host:2@any");
    filch_data *u = vector(rt, from, 100, 30), *next = vector(rt, to, 100, 30);
    filch_codelet *codelet = host_codelet(rt, "smooth", smooth, 0);
    filch_graph *graph = new_graph(rt);
    for (int k = 0; k < 100; k++)
        from[k] = sin(k);
    for (uint32_t i = 0; i < 4; i++) {
#include "halos-1.1.inc"
        add(graph, codelet, accesses, 2);
    }
    EXPECT(run(graph) == FILCH_OK);
    for (int k = 0; k < 100; k++) {
        double left = k > 0 ? from[k - 1] : 0, right = k < 99 ? from[k + 1] : 0;
        EXPECT(fabs(to[k] - (from[k] + 0.1 * (left - 2 * from[k] + right))) < 1e-15);
    }
    stop(rt);
}

#include "sparse-matrices-2.functions.inc"

/* A vector cut as a sparse matrix' rows. */
static filch_data *cut_alike(filch_runtime *rt, const filch_data *A, double *values, uint64_t n)
{
    uint64_t cuts[64];
    filch_tiling tiling = {.size = sizeof tiling};
    filch_data_desc desc = FILCH_DATA_DESC_INIT;
    filch_data *data = NULL;
    EXPECT(filch_data_tiles(A, &tiling) == FILCH_OK && tiling.rows <= 64);
    for (uint32_t k = 0; k < tiling.rows; k++) {
        filch_csr_block b = FILCH_CSR_BLOCK_INIT;
        EXPECT(filch_csr_at(A, k, &b) == FILCH_OK);
        cuts[k] = b.rows;
    }
    desc.ptr = values;
    desc.element = sizeof *values;
    desc.rows = n;
    desc.cols = 1;
    desc.row_cuts = cuts;
    desc.row_cut_count = (uint32_t)tiling.rows;
    EXPECT(filch_data_create(rt, &desc, &data) == FILCH_OK);
    return data;
}

/* The page's block about block i of a product: 2 on the diagonal, -1 beside it. */
static void sparse_matrix(filch_host_fn product)
{
    enum { N = 240 };
    const uint64_t n = N;
    uint64_t nnz = 0;
    const uint32_t i = 3;
    int pointers[N + 1] = {0}, columns[3 * N];
    double values[3 * N], from[N], to[N] = {0};
    filch_runtime *runtime = start("host:2@any");
    filch_data *A = NULL;
    for (int row = 0; row < N; row++) {
        from[row] = cos(row);
        for (int column = row > 0 ? row - 1 : 0; column <= row + 1 && column < N; column++) {
            columns[nnz] = column;
            values[nnz++] = column == row ? 2 : -1;
        }
        pointers[row + 1] = (int)nnz;
    }
#include "sparse-matrices-1.1.inc"
    filch_data *x = cut_alike(runtime, A, from, N), *y = cut_alike(runtime, A, to, N);
#include "sparse-matrices-1.2.inc"
    filch_graph *graph = new_graph(runtime);
    add(graph, host_codelet(runtime, "multiply", product, 0), accesses, 3);
    EXPECT(run(graph) == FILCH_OK && b.rows > 1);
    for (uint64_t row = b.row; row < b.row + b.rows; row++)
        EXPECT(fabs(to[row] - (2 * from[row] - from[row - 1] - from[row + 1])) < 1e-14);
    stop(runtime);
}

static int make_zero(const filch_call *call)
{
    for (uint64_t k = 0; k < call->views[0].rows; k++)
        ((double *)call->views[0].ptr)[k] = 0;
    return 0;
}

/* View 0 += view 1. */
static int add_view(const filch_call *call)
{
    for (uint64_t k = 0; k < call->views[0].rows; k++)
        ((double *)call->views[0].ptr)[k] += ((const double *)call->views[1].ptr)[k];
    return 0;
}

static int add_to_last(const filch_call *call)
{
    *(double *)call->views[1].ptr += *(const double *)call->views[0].ptr;
    return 0;
}

static void tasks_that_only_add(void)
{
    double parts[50], total = 1;
    const uint32_t i = 0, j = 0;
    filch_runtime *rt = start("host:2@any");
    filch_data *A = vector(rt, &total, 1, 1), *part = vector(rt, parts, 50, 1);
    filch_codelet *zero = host_codelet(rt, "zero", make_zero, 0);
    filch_codelet *plus = host_codelet(rt, "plus", add_view, 0);
    filch_codelet *codelet = host_codelet(rt, "add", add_to_last, 0);
    filch_graph *graph = new_graph(rt);
#include "tasks-that-only-add-1.1.inc"
    for (uint32_t k = 0; k < 50; k++) {
        parts[k] = k;
#include "tasks-that-only-add-1.2.inc"
        add(graph, codelet, accesses, 2);
    }
    EXPECT(run(graph) == FILCH_OK && total == 1 + 49 * 50 / 2);
    stop(rt);
}

/* Items lo to hi are columns. */
static int update_columns(const filch_call *call)
{
    const filch_view *view = &call->views[0];
    for (uint64_t j = call->lo; j < call->hi; j++)
        for (uint64_t i = 0; i < view->rows; i++)
            ((double *)view->ptr)[j * view->ld + i] += (double)j;
    return 0;
}

static void divisible_tasks(void)
{
    static double a[100 * 100];
    const uint64_t columns = 100;
    filch_runtime *rt = start("host:2@any");
    filch_data *A = square(rt, a, 100, 100);
    const filch_access whole = FILCH_RW(A, 0, 0);
    filch_codelet *update = host_codelet(rt, "update", update_columns, 0);
    filch_graph *graph = new_graph(rt);
#include "divisible-tasks-1.1.inc"
    EXPECT(filch_graph_add(graph, &task, NULL) == FILCH_OK && run(graph) == FILCH_OK);
    for (int k = 0; k < 100 * 100; k++)
        EXPECT(a[k] == k / 100);
    stop(rt);
}

static int copy_view(const filch_call *call)
{
    memcpy(call->views[1].ptr, call->views[0].ptr, call->views[0].rows * sizeof(double));
    return 0;
}

static void temporaries(void)
{
    enum { N = 10 };
    static double in[100 * N], out[100 * N];
    const uint64_t n = N;
    filch_runtime *runtime = start("host:2@any");
    filch_data *A = vector(runtime, in, 100 * N, N), *B = vector(runtime, out, 100 * N, N),
               *W = NULL;
    filch_codelet *codelet = host_codelet(runtime, "copy", copy_view, 0);
    filch_graph *graph = new_graph(runtime);
    for (int k = 0; k < 100 * N; k++)
        in[k] = k;
#include "temporaries-1.1.inc"
    for (uint32_t k = 0; k < 100; k++) {
#include "temporaries-1.2.inc"
        add(graph, codelet, begin, 2);
        add(graph, codelet, end, 2);
    }
    EXPECT(run(graph) == FILCH_OK && memcmp(in, out, sizeof in) == 0);
    stop(runtime);
}

static int scale_tile(const filch_call *call)
{
    const filch_view *view = &call->views[0];
    for (uint64_t j = 0; j < view->cols; j++)
        for (uint64_t i = 0; i < view->rows; i++)
            ((double *)view->ptr)[j * view->ld + i] *= (double)view->rows;
    return 0;
}

static void other_tiles(void)
{
    static double a[128 * 128];
    filch_runtime *rt = start("host:2@any");
    filch_data *A = square(rt, a, 128, 128), *A64 = NULL;
    filch_codelet *codelet = host_codelet(rt, "scale", scale_tile, 0);
    filch_graph *graph = new_graph(rt);
    for (int k = 0; k < 128 * 128; k++)
        a[k] = 1;
#include "other-tiles-for-a-while-1.1.inc"
    add(graph, codelet, (filch_access[]){FILCH_RW(A, 0, 0)}, 1);
#include "other-tiles-for-a-while-1.2.inc"
    add(graph, codelet, (filch_access[]){FILCH_RW(A64, 1, 1)}, 1);
#include "other-tiles-for-a-while-1.3.inc"
    add(graph, codelet, (filch_access[]){FILCH_RW(A, 0, 0)}, 1);
    EXPECT(run(graph) == FILCH_OK && a[0] == 128 * 128 && a[128 * 128 - 1] == 128 * 64 * 128);
    stop(rt);
}

static void many_tasks_at_once(void)
{
    double values[4] = {0};
    const size_t count = 5;
    filch_error error = FILCH_ERROR_INIT;
    filch_runtime *rt = start("host:2@any");
    filch_data *x = vector(rt, values, 4, 4);
    filch_graph *graph = new_graph(rt);
    filch_task_desc tasks[5];
    for (size_t k = 0; k < count; k++)
        tasks[k] =
            task_of(host_codelet(rt, "add_one", add_one, 0),
                    (filch_access[]){FILCH_RW(x, k == 3 ? 7 : 0, 0)}, 1); /* there is no tile 7 */
#include "open-graphs-1.1.inc"
    EXPECT(added == 3 && strstr(error.text, "descs[3]") != NULL);
    EXPECT(run(graph) == FILCH_OK && values[0] == 3);
    stop(rt);
}

static int read_block(uint32_t block, filch_task_desc *task)
{
    (void)task;
    return block < 5000;
}

static void back_pressure(void)
{
    double values[4] = {0};
    filch_runtime *rt = start("host:2@any");
    filch_data *x = vector(rt, values, 4, 4);
    filch_job *job = NULL;
    filch_task_desc task =
        task_of(host_codelet(rt, "add_one", add_one, 0), (filch_access[]){FILCH_RW(x, 0, 0)}, 1);
#include "open-graphs-2.1.inc"
    EXPECT(values[0] == 5000 && filch_job_status(job) == FILCH_NOT_READY);
    EXPECT(filch_graph_close(stream) == FILCH_OK && wait_for(job) == FILCH_OK);
    stop(rt);
}

static filch_pending request;
static double *message;
static atomic_int is_started;

static void start_receive(void *ptr, filch_pending pending)
{
    message = ptr;
    request = pending;
    atomic_store(&is_started, 1);
}

#include "tasks-that-end-later-1.functions.inc"

static void tasks_that_end_later(int code)
{
    double value = 0;
    filch_runtime *rt = start("host:2@any");
    filch_data *x = vector(rt, &value, 1, 1);
    filch_graph *graph = new_graph(rt);
    filch_job *job = NULL;
    filch_error error = FILCH_ERROR_INIT;
    add(graph, host_codelet(rt, "receive", receive, FILCH_CODELET_MAY_PEND),
        (filch_access[]){FILCH_W(x, 0, 0)}, 1);
    atomic_store(&is_started, 0);
    EXPECT(filch_graph_submit(graph, NULL, &job) == FILCH_OK);
    while (!atomic_load(&is_started))
        ;
    *message = 42;
    const filch_pending pending = request;
#include "tasks-that-end-later-1.1.inc"
    EXPECT(filch_job_wait(job, -1) == (code != 0 ? FILCH_TASK_FAILED : FILCH_OK) && value == 42);
    EXPECT(filch_job_error(job, &error) == (code != 0 ? FILCH_OK : FILCH_NOT_FOUND));
    EXPECT((strstr(error.text, "the message is too long") != NULL) == (code != 0));
    EXPECT(filch_job_release(job) == FILCH_OK);
    stop(rt);
}

static int halve(const filch_call *call)
{
    *(double *)call->views[0].ptr /= 2;
    return 0;
}

static void runs_in_line(void)
{
    enum { steps = 10 };
    double value = 1024;
    filch_runtime *rt = start("host:2@any");
    filch_data *x = vector(rt, &value, 1, 1);
    filch_graph *graph = new_graph(rt);
    filch_job *last = NULL;
    add(graph, host_codelet(rt, "halve", halve, 0), (filch_access[]){FILCH_RW(x, 0, 0)}, 1);
#include "runs-in-line-1.1.inc"
    EXPECT(filch_job_status(last) == FILCH_OK && value == 1);
    EXPECT(filch_job_release(last) == FILCH_OK);
    stop(rt);
}

#include "until-converged-1.functions.inc"

static void until_converged(void)
{
    double residual = 1, tolerance = 1e-3;
    filch_runtime *rt = start("host:2@any");
    filch_data *x = vector(rt, &residual, 1, 1);
    filch_graph *graph = new_graph(rt);
    filch_job *job = NULL;
    add(graph, host_codelet(rt, "halve", halve, 0), (filch_access[]){FILCH_RW(x, 0, 0)}, 1);
#include "until-converged-1.1.inc"
    /* The first below is 2^-10, and one run more may end. */
    EXPECT(filch_job_status(job) == FILCH_OK && residual <= ldexp(1, -10) &&
           residual >= ldexp(1, -11));
    EXPECT(filch_job_release(job) == FILCH_OK);
    stop(rt);
}

static atomic_int is_broken;

static int fail_once(const filch_call *call)
{
    if (call->lo <= 50 && call->hi > 50 && atomic_exchange(&is_broken, 0))
        return 7;
    for (uint64_t i = 0; i < call->hi - call->lo; i++)
        ((double *)call->views[0].ptr)[i] += 1;
    return 0;
}

static void failure(void)
{
    double values[100] = {0};
    const uint32_t host_devices[] = {1}, host_device_count = 1;
    filch_runtime *rt = start("host:2@any");
    filch_data *x = vector(rt, values, 100, 100);
    filch_job *job = NULL, *rest = NULL;
    filch_batch_access access = {
        .data = x, .mode = FILCH_READWRITE, .map = FILCH_MAP_AFFINE, .scale = 1};
    filch_batch_desc batch = FILCH_BATCH_DESC_INIT;
    batch.codelet = host_codelet(rt, "fail_once", fail_once, 0);
    batch.n = 100;
    batch.grain = 10;
    batch.accesses = &access;
    batch.access_count = 1;
    atomic_store(&is_broken, 1);
    EXPECT(filch_batch_submit(rt, &batch, NULL, &job) == FILCH_OK);
#include "failure-1.1.inc"
    EXPECT(rest != NULL && wait_for(rest) == FILCH_OK);
    for (int k = 0; k < 100; k++)
        EXPECT(values[k] == 1);
    stop(rt);
}

#include "finishing-early-1.functions.inc"

static void finishing_early(void)
{
    double values[2] = {0};
    filch_runtime *rt = start("host:2@any");
    filch_data *x = vector(rt, values, 2, 1);
    filch_graph *graph = new_graph(rt);
    add(graph, host_codelet(rt, "test", test, 0), (filch_access[]){FILCH_RW(x, 0, 0)}, 1);
    add(graph, host_codelet(rt, "add_one", add_one, 0), (filch_access[]){FILCH_RW(x, 0, 0)}, 1);
    EXPECT(run(graph) == FILCH_OK && values[0] == 0); /* what came behind was skipped */
    values[0] = 1;
    EXPECT(run(graph) == FILCH_OK && values[0] == 2);
    stop(rt);
}

static void withdrawn_devices(void)
{
    double values[4] = {0};
    filch_runtime *rt = start("host:3@any");
    filch_data *x = vector(rt, values, 4, 1);
    filch_graph *graph = new_graph(rt);
    for (uint32_t k = 0; k < 4; k++)
        add(graph, host_codelet(rt, "add_one", add_one, 0), (filch_access[]){FILCH_RW(x, k, 0)}, 1);
    EXPECT(filch_graph_run(graph, NULL, NULL) == FILCH_OK);
#include "withdrawn-devices-1.1.inc"
    EXPECT(run(graph) == FILCH_OK && values[3] == 2);
    EXPECT(filch_device_readmit(rt, 3) != FILCH_OK); /* there are three */
    stop(rt);
}

static int rounds;

static void do_something_else(void)
{
    rounds++;
}

static void who_runs_the_workers(void)
{
    double values[100] = {0};
    filch_runtime *rt = NULL;
    filch_job *job = NULL;
    filch_runtime_desc config = FILCH_RUNTIME_DESC_INIT;
    config.devices = "host:2@any";
#include "who-runs-the-workers-1.1.inc"
    EXPECT(filch_runtime_create(&config, NULL, &rt) == FILCH_OK);
    filch_data *x = vector(rt, values, 100, 1);
    filch_graph *graph = new_graph(rt);
    for (uint32_t k = 0; k < 100; k++)
        add(graph, host_codelet(rt, "add_one", add_one, 0), (filch_access[]){FILCH_RW(x, k, 0)}, 1);
    EXPECT(filch_graph_submit(graph, NULL, &job) == FILCH_OK);
#include "who-runs-the-workers-1.2.inc"
    EXPECT(rounds > 0 && wait_for(job) == FILCH_OK && values[99] == 1);
    stop(rt);
}

static void speeds(void)
{
    double values[4] = {0};
    filch_runtime *rt = start("host:1@any");
    filch_data *x = vector(rt, values, 4, 4);
    filch_codelet *codelet = host_codelet(rt, "add_one", add_one, 0);
    filch_graph *graph = new_graph(rt);
    for (int k = 0; k < 100; k++)
        add(graph, codelet, (filch_access[]){FILCH_RW(x, 0, 0)}, 1);
    EXPECT(run(graph) == FILCH_OK);
#include "speeds-1.1.inc"
    EXPECT(speed.source == FILCH_SPEED_MEASURED && speed.ns_per_unit > 0);
    stop(rt);
}

int main(void)
{
    first_half_hour();
    runtime_device_place();
    codelet_and_batch();
    state_of_devices();
    handle_and_tile();
    data_on_devices();
    open_graph();
    blocks_of_tiles();
    halos();
    sparse_matrix(multiply);
#ifdef HAVE_KERNEL
    sparse_matrix(multiply_by_kernel);
#endif
    tasks_that_only_add();
    divisible_tasks();
    temporaries();
    other_tiles();
    many_tasks_at_once();
    back_pressure();
    tasks_that_end_later(0);
    tasks_that_end_later(5);
    runs_in_line();
    until_converged();
    failure();
    finishing_early();
    withdrawn_devices();
    who_runs_the_workers();
    speeds();
    return page_end("docs/concepts.md");
}
