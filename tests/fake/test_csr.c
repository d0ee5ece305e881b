/* SPDX-License-Identifier: Apache-2.0 */
/* Row blocks of sparse matrices on the fake driver: they stay on the GPU from job to job, their
 * changed values come back, and an enqueue function finds their arrays without looking at them. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "backend/cuda/driver/api.h"
#include "csr_cases.h"
#include "make.h"

#define IMAGE "FAKECUBIN arch=90 entry=multiply,twice"
enum { ROWS = 60, COLS = 40, BLOCKS = 6 };

static filch_runtime *runtime;
static filch_codelet *multiplies, *twices;
static csr_case model;
static filch_data *matrix, *x_data, *y_data;
static double x[COLS], y[ROWS], expected[ROWS];

static int multiply(const filch_call *call)
{
    filch_csr_block block = FILCH_CSR_BLOCK_INIT;
    if (filch_csr_view(NULL, &call->views[0], &block) != FILCH_OK)
        return 1;
    csr_multiply(&block, call->views[1].ptr, call->views[2].ptr);
    return 0;
}

static int twice(const filch_call *call)
{
    filch_csr_block block = FILCH_CSR_BLOCK_INIT;
    if (filch_csr_view(NULL, &call->views[0], &block) != FILCH_OK)
        return 1;
    for (uint64_t k = 0; k < block.nnz; k++)
        ((double *)block.values)[k] *= 2;
    return 0;
}

/* What an enqueue function has found, for its work on the stream. */
typedef struct found {
    filch_csr_block block;
    const double *x;
    double *y;
} found;

static int multiply_later(void *user)
{
    const found *f = user;
    filch_csr_block block = f->block;
    block.pointers = fakecuda_map(block.pointers, (block.rows + 1) * sizeof(int32_t));
    if (block.nnz != 0) {
        block.columns = fakecuda_map(block.columns, block.nnz * sizeof(int32_t));
        block.values = fakecuda_map(block.values, block.nnz * sizeof(double));
    }
    csr_multiply(&block, fakecuda_map(f->x, sizeof x), fakecuda_map(f->y, block.rows * sizeof *y));
    return 0;
}

static int enqueue(const filch_call *call, const filch_lane *lane, void *state)
{
    found f = {.block = FILCH_CSR_BLOCK_INIT, .x = call->views[1].ptr, .y = call->views[2].ptr};
    (void)state;
    if (filch_csr_view(matrix, &call->views[0], &f.block) != FILCH_OK)
        return 1;
    return fakecuda_enqueue_copy(lane->stream, multiply_later, &f, sizeof f);
}

static filch_codelet *enqueued_codelet(void)
{
    filch_cuda_desc cuda = FILCH_CUDA_DESC_INIT;
    filch_codelet_desc desc = FILCH_CODELET_DESC_INIT;
    filch_codelet *made = NULL;
    cuda.enqueue = enqueue;
    desc.name = "enqueue";
    desc.cuda = &cuda;
    assert_ok(filch_codelet_create(runtime, &desc, &made));
    return made;
}

static filch_data *vector(double *at, uint64_t rows, const uint64_t *heights, uint32_t count)
{
    filch_data_desc desc = FILCH_DATA_DESC_INIT;
    filch_data *made = NULL;
    desc.ptr = at;
    desc.element = sizeof *at;
    desc.rows = rows;
    desc.row_cuts = heights;
    desc.row_cut_count = count;
    desc.flags = FILCH_DATA_MANAGED;
    assert_ok(filch_data_create(runtime, &desc, &made));
    return made;
}

static void start(const char *devices, uint32_t flags)
{
    filch_runtime_desc config = FILCH_RUNTIME_DESC_INIT;
    uint64_t heights[BLOCKS];
    csr_arrays arrays;
    fl_random random;
    fakecuda_reset();
    assert_true(fakecuda_configure("{\"devices\": [{\"count\": 2}]}"));
    fakecuda_register_filch("multiply", multiply, 3, false, 0);
    fakecuda_register_filch("twice", twice, 1, false, 0);
    config.devices = devices;
    runtime = runtime_of(&config);
    multiplies = codelet_of(runtime, IMAGE, "multiply", NULL, 0);
    twices = codelet_of(runtime, IMAGE, "twice", NULL, 0);
    fl_random_init(&random, 22, 0);
    model = csr_random(&random, ROWS, COLS, 7, true);
    filch_csr_desc desc = csr_describe(&model, 4, 4, 0, &arrays);
    desc.blocks = BLOCKS;
    desc.flags = flags;
    assert_ok(filch_csr_create(runtime, &desc, &matrix));
    csr_drop(&arrays);
    for (uint32_t i = 0; i < BLOCKS; i++) {
        filch_csr_block block = FILCH_CSR_BLOCK_INIT;
        assert_ok(filch_csr_at(matrix, i, &block));
        heights[i] = block.rows;
    }
    for (int j = 0; j < COLS; j++)
        x[j] = j % 9 - 4;
    x_data = vector(x, COLS, NULL, 0);
    y_data = vector(y, ROWS, heights, BLOCKS);
}

static void stop(void)
{
    assert_ok(filch_runtime_destroy(runtime));
    assert_int_equal(fakecuda_violations(), 0);
    csr_free(&model);
}

static void add(filch_graph *graph, filch_codelet *codelet, const filch_access *accesses,
                uint32_t count)
{
    filch_task_desc desc = FILCH_TASK_DESC_INIT;
    desc.codelet = codelet;
    desc.accesses = accesses;
    desc.access_count = count;
    assert_ok(filch_graph_add(graph, &desc, NULL));
}

static filch_graph *product(filch_codelet *codelet)
{
    filch_graph *graph = graph_of(runtime);
    for (uint32_t i = 0; i < BLOCKS; i++) {
        const filch_access accesses[] = {FILCH_R(matrix, i, 0), FILCH_R(x_data, 0, 0),
                                         FILCH_W(y_data, i, 0)};
        add(graph, codelet, accesses, 3);
    }
    return graph;
}

/* Runs the graph; returns the bytes that it copied to GPUs. */
static uint64_t bytes_in(filch_graph *graph)
{
    filch_device_stats stats[2] = {{0}};
    filch_job_info info = {.size = sizeof info};
    filch_job *job = submit(graph);
    await_result(job, FILCH_OK);
    assert_ok(filch_job_stats(job, &info, stats, 2));
    assert_ok(filch_job_release(job));
    return stats[0].bytes_in + stats[1].bytes_in;
}

static void check(void)
{
    csr_product(&model, x, expected);
    assert_ok(filch_data_acquire(y_data, FILCH_READ));
    assert_memory_equal(y, expected, sizeof y);
    assert_ok(filch_data_release(y_data));
}

/* The first run brings blocks and x, the second nothing. */
static void blocks_stay(void **state)
{
    (void)state;
    start("cuda:0", 0);
    filch_graph *graph = product(multiplies);
    assert_true(bytes_in(graph) >= model.nnz * (sizeof(double) + sizeof(int32_t)));
    check();
    assert_int_equal(bytes_in(graph), 0);
    check();
    assert_ok(filch_graph_destroy(graph));
    stop();
}

static void values_come_back(void **state)
{
    static const char *const devices[] = {"cuda:0", "cuda:0,cuda:1", "cuda:0/88+24"};
    (void)state;
    for (size_t d = 0; d < sizeof devices / sizeof *devices; d++) {
        start(devices[d], d == 0 ? FILCH_DATA_PIN : 0);
        filch_graph *doubling = graph_of(runtime), *graph = product(multiplies);
        for (uint32_t i = 0; i < BLOCKS; i++) {
            const filch_access access = FILCH_RW(matrix, i, 0);
            add(doubling, twices, &access, 1);
        }
        for (int round = 0; round < 3; round++) {
            finish(submit(doubling), FILCH_OK);
            for (uint64_t k = 0; k < model.nnz; k++)
                model.values[k] *= 2;
            finish(submit(graph), FILCH_OK);
            check();
        }
        assert_ok(filch_data_acquire(matrix, FILCH_READ));
        for (uint32_t i = 0; i < BLOCKS; i++) {
            filch_csr_block block = FILCH_CSR_BLOCK_INIT;
            filch_view view;
            assert_ok(filch_data_view(matrix, i, 0, &view));
            assert_ok(filch_csr_view(NULL, &view, &block));
            if (block.nnz != 0)
                assert_memory_equal(block.values, model.values + block.entry,
                                    block.nnz * sizeof(double));
        }
        assert_ok(filch_data_release(matrix));
        assert_ok(filch_graph_destroy(doubling));
        assert_ok(filch_graph_destroy(graph));
        stop();
    }
}

static void enqueue_functions_name_the_matrix(void **state)
{
    (void)state;
    start("cuda:0,cuda:1", 0);
    filch_graph *graph = product(enqueued_codelet());
    finish(submit(graph), FILCH_OK);
    check();
    assert_ok(filch_graph_destroy(graph));
    stop();
}

static void refuse_pinned(CUresult result, filch_status wanted, const char *call)
{
    filch_data *made = NULL;
    filch_error error = FILCH_ERROR_INIT;
    csr_arrays arrays;
    filch_csr_desc desc = csr_describe(&model, 4, 4, 0, &arrays);
    desc.flags = FILCH_DATA_PIN;
    desc.label = "unpinned";
    fakecuda_fail("cuMemHostRegister", 1, 1, result, -1, false);
    assert_int_equal(filch_csr_create(runtime, &desc, &made), wanted);
    assert_null(made);
    assert_ok(filch_runtime_error(runtime, &error));
    assert_int_equal(error.status, wanted);
    assert_string_equal(error.call, call);
    assert_string_equal(error.label, "unpinned");
    csr_drop(&arrays);
}

static void errors_name_the_call(void **state)
{
    (void)state;
    start("cuda:0", 0);
    refuse_pinned(FL_CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, FILCH_WRONG_STATE,
                  "filch_csr_create");
    refuse_pinned(FL_CUDA_ERROR_OUT_OF_MEMORY, FILCH_NO_DEVICE_MEMORY, "cuMemHostRegister");
    stop();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_stay),
        cmocka_unit_test(values_come_back),
        cmocka_unit_test(enqueue_functions_name_the_matrix),
        cmocka_unit_test(errors_name_the_call),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
