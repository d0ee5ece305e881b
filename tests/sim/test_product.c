/* SPDX-License-Identifier: Apache-2.0 */
/* Dense linear algebra on simulated GPUs with links: tiles that all of them need are brought from
 * the host's memory once, over all of the links alike, while there is something to compute. Orders,
 * rates and times are those of DGEMM and DPOTRF on GPUs of 55 Tflop/s; nothing is computed. */
#define _GNU_SOURCE
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "sim.h"

enum { MOST_GPUS = 4 };

#define SPEED 55e12

/* The last entry is what one GPU reads of another's memory. */
#define MACHINE(count, lanes, between)                                                           \
    "{\"link\": {\"bandwidth\": 48e9, \"bandwidth_out\": 44e9, \"latency_us\": 8},"              \
    " \"devices\": [{\"name\": \"gpu\", \"speed\": 55e12, \"overhead_us\": 3, \"memory\": 80e9," \
    " \"lanes\": " lanes ", \"count\": " count "}],"                                             \
    " \"peers\": [{\"from\": \"gpu\", \"to\": \"gpu\", \"bandwidth\": " between                  \
    ", \"latency_us\": 5}]}"

static const struct machine {
    const char *text;
    int gpus;
    double slack;  /* times what the kernels alone take */
    double uneven; /* times its share of the bytes, over one link */
} one = {MACHINE("1", "2", "150e9"), 1, 1.09, 1}, two = {MACHINE("2", "2", "150e9"), 2, 1.12, 1.1},
  four = {MACHINE("4", "1", "370e9"), MOST_GPUS, 1.25, 1.6};

static sim_outcome outcome; /* too large for a stack */
static sim_world world;

static int must_not_run(const filch_call *call)
{
    (void)call;
    fail_msg("a device with a memory of its own computes nothing");
    return 1;
}

/* Of a task whose tiles are a, b and c, the last one being square or not: flops of c += a b. */
static double product_work(const filch_call *call)
{
    const filch_view *a = &call->views[0], *c = &call->views[call->view_count - 1];
    return 2.0 * (double)c->rows * (double)c->cols * (double)a->cols;
}

static void add(filch_graph *graph, filch_codelet *codelet, const filch_access *accesses,
                uint32_t count)
{
    filch_task_desc desc = FILCH_TASK_DESC_INIT;
    desc.codelet = codelet;
    desc.accesses = accesses;
    desc.access_count = count;
    sim_ok(filch_graph_add(graph, &desc, NULL));
}

static filch_access at(filch_data *data, uint32_t row, uint32_t col, filch_access_mode mode)
{
    return (filch_access){.data = data, .row = row, .col = col, .mode = mode};
}

static double no_work(const filch_call *call)
{
    (void)call;
    return 1;
}

static void run(filch_graph *graph)
{
    filch_job *job = NULL;
    sim_ok(filch_graph_submit(graph, NULL, &job));
    sim_finish(job, &outcome);
    assert_int_equal(outcome.status, FILCH_OK);
}

/* --- C = A B, operands in the host's memory, C by tiles and step by step --- */

static size_t order, tile, across; /* of a matrix; of a tile of A; columns of one of B and C */

/* Nothing of the buffer is touched. */
static filch_data *make_matrix(size_t cols, void **buffer)
{
    filch_data_desc desc = FILCH_DATA_DESC_INIT;
    filch_data *data = NULL;
    *buffer = mmap(NULL, order * order * sizeof(double), PROT_NONE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    assert_ptr_not_equal(*buffer, MAP_FAILED);
    desc.ptr = *buffer;
    desc.element = sizeof(double);
    desc.rows = desc.cols = desc.ld = order;
    desc.tile_rows = tile;
    desc.tile_cols = cols;
    sim_ok(filch_data_create(world.runtime, &desc, &data));
    return data;
}

static void add_step(filch_graph *graph, filch_codelet *codelet, filch_data *const data[3],
                     const uint32_t at[3], int32_t priority)
{
    uint32_t i = at[0], j = at[1], k = at[2];
    const filch_access accesses[] = {
        {.data = data[0], .row = i, .col = k, .mode = FILCH_READ},
        {.data = data[1], .row = k, .col = j, .mode = FILCH_READ},
        {.data = data[2], .row = i, .col = j, .mode = k == 0 ? FILCH_WRITE : FILCH_READWRITE},
    };
    filch_task_desc desc = FILCH_TASK_DESC_INIT;
    desc.codelet = codelet;
    desc.accesses = accesses;
    desc.access_count = 3;
    desc.priority = priority;
    sim_ok(filch_graph_add(graph, &desc, NULL));
}

/* All columns of C step by step, or one half of them after the other. */
static filch_graph *make_product(filch_data *const data[3], uint32_t blocks)
{
    filch_graph_desc desc = FILCH_GRAPH_DESC_INIT;
    filch_graph *graph = NULL;
    filch_codelet *codelet = sim_codelet(&world, must_not_run, product_work, NULL);
    uint32_t columns = (uint32_t)(order / across) / blocks;
    desc.priorities = FILCH_PRIORITIES_CALLER;
    sim_ok(filch_graph_create(world.runtime, &desc, &graph));
    for (uint32_t block = 0; block < blocks; ++block) {
        for (uint32_t k = 0; k < order / tile; ++k) {
            for (uint32_t j = block * columns; j < (block + 1) * columns; ++j) {
                for (uint32_t i = 0; i < order / tile; ++i)
                    add_step(graph, codelet, data, (const uint32_t[]){i, j, k}, -(int32_t)block);
            }
        }
    }
    return graph;
}

static void check_run(const struct machine *machine, const char *which)
{
    double n = (double)order, matrix = n * n * sizeof(double), most = 0, all = 0;
    for (int d = 0; d < machine->gpus; ++d) {
        double in = (double)outcome.devices[d].bytes_in;
        most = in > most ? in : most;
        all += in;
    }
    print_message("%d GPUs, %zu x %zu, %s run: %.1f ms, %.3f of the matrices brought, one link "
                  "%.2f of its share\n",
                  machine->gpus, tile, across, which, outcome.info.seconds * 1e3,
                  all / (2 * matrix), most * machine->gpus / all);
    assert_true(outcome.info.seconds < machine->slack * 2 * n * n * n / (machine->gpus * SPEED));
    assert_true(all < 1.02 * 2 * matrix);
    assert_true(most <= machine->uneven * all / machine->gpus);
}

/* Each device needs all of A, and its part of B: not much longer than the kernels take, and no link
 * brings much more than its share; of two GPUs also in the first run, in which nothing is known of
 * a tile's time. */
static void check_product(const struct machine *machine, size_t tile_rows, size_t tile_cols,
                          uint32_t blocks)
{
    filch_data *data[3];
    void *buffers[3];
    order = 16384;
    tile = tile_rows;
    across = tile_cols;
    sim_open_machine(&world, machine->text, BENCH_POLICY_STEAL);
    for (int m = 0; m < 3; ++m)
        data[m] = make_matrix(m == 0 ? tile : across, &buffers[m]);
    filch_graph *graph = make_product(data, blocks);
    run(graph);
    if (machine->gpus == 2)
        check_run(machine, "first");
    run(graph);
    check_run(machine, "second");
    sim_ok(filch_graph_destroy(graph));
    for (int m = 0; m < 3; ++m)
        sim_ok(filch_data_destroy(data[m]));
    sim_close(&world);
    for (int m = 0; m < 3; ++m)
        (void)munmap(buffers[m], order * order * sizeof(double));
}

static void test_product(void **state)
{
    (void)state;
    for (int m = 0; m < 2; ++m) {
        const struct machine *machine = m == 0 ? &two : &four;
        for (uint32_t blocks = 1; blocks <= 2; ++blocks) {
            check_product(machine, 2048, 2048, blocks);
            check_product(machine, 4096, 1024, blocks);
            check_product(machine, 2048, 1024, blocks);
        }
    }
}

/* One GPU waits for a tile of A and one of B, and for little afterwards; the last tile goes home.
 */
static void test_alone(void **state)
{
    (void)state;
    check_product(&one, 4096, 1024, 2);
}

/* --- Tiles whose columns are apart --- */

/* Time of a task of no work that reads the first of some tiles of a matrix of order 2048, us. */
static double reading_us(uint64_t tile_rows, uint64_t tile_cols)
{
    filch_graph_desc desc = FILCH_GRAPH_DESC_INIT;
    filch_graph *graph = NULL;
    void *buffer = NULL;
    sim_open_machine(&world,
                     "{\"link\": {\"bandwidth\": 1e9, \"column_us\": 2},"
                     " \"devices\": [{\"speed\": 1e12}]}",
                     BENCH_POLICY_STEAL);
    order = 2048;
    tile = tile_rows;
    filch_data *data = make_matrix(tile_cols, &buffer);
    filch_codelet *codelet = sim_codelet(&world, must_not_run, no_work, NULL);
    sim_ok(filch_graph_create(world.runtime, &desc, &graph));
    add(graph, codelet, (filch_access[]){at(data, 0, 0, FILCH_READ)}, 1);
    run(graph);
    sim_ok(filch_graph_destroy(graph));
    sim_ok(filch_data_destroy(data));
    sim_close(&world);
    (void)munmap(buffer, order * order * sizeof(double));
    return outcome.info.seconds * 1e6;
}

/* 8 MiB at 1 GB/s, and 2 us for each column but where the columns of a tile follow each other. */
static void test_columns(void **state)
{
    (void)state;
    double bytes_us = 1024.0 * 1024 * sizeof(double) / 1e3;
    assert_true(fabs(reading_us(2048, 512) - bytes_us) < 1);
    assert_true(fabs(reading_us(1024, 1024) - bytes_us - 1024 * 2) < 1);
    assert_true(fabs(reading_us(512, 2048) - bytes_us - 2048 * 2) < 1);
}

/* --- A = L L^T, the matrix on the devices --- */

enum { SIDE = 32, TILE = 1024 };

/* Once or twice the flops that the operation has: the diagonal's kernels are slower. */
static double slow_work(const filch_call *call)
{
    double b = (double)call->views[0].rows;
    return 4 * b * b * b;
}

static filch_graph *make_factorization(filch_data *data)
{
    filch_graph_desc desc = FILCH_GRAPH_DESC_INIT;
    filch_graph *graph = NULL;
    filch_codelet *diagonal = sim_codelet(&world, must_not_run, slow_work, NULL);
    filch_codelet *update = sim_codelet(&world, must_not_run, product_work, NULL);
    sim_ok(filch_graph_create(world.runtime, &desc, &graph));
    for (uint32_t k = 0; k < SIDE; ++k) {
        add(graph, diagonal, (filch_access[]){at(data, k, k, FILCH_READWRITE)}, 1);
        for (uint32_t i = k + 1; i < SIDE; ++i)
            add(graph, update,
                (filch_access[]){at(data, k, k, FILCH_READ), at(data, i, k, FILCH_READWRITE)}, 2);
        for (uint32_t j = k + 1; j < SIDE; ++j) {
            for (uint32_t i = j; i < SIDE; ++i)
                add(graph, update,
                    (filch_access[]){at(data, i, k, FILCH_READ), at(data, j, k, FILCH_READ),
                                     at(data, i, j, FILCH_READWRITE)},
                    3);
        }
    }
    return graph;
}

static filch_graph *make_contents(filch_data *data)
{
    filch_graph_desc desc = FILCH_GRAPH_DESC_INIT;
    filch_graph *graph = NULL;
    filch_codelet *codelet = sim_codelet(&world, must_not_run, no_work, NULL);
    sim_ok(filch_graph_create(world.runtime, &desc, &graph));
    for (uint32_t j = 0; j < SIDE; ++j) {
        for (uint32_t i = j; i < SIDE; ++i)
            add(graph, codelet, (filch_access[]){at(data, i, j, FILCH_WRITE)}, 1);
    }
    return graph;
}

/* Where tiles come over fast links, ready tasks are not kept from others for the copies' sake. */
static void test_factorization(void **state)
{
    (void)state;
    filch_data_desc desc = FILCH_DATA_DESC_INIT;
    filch_data *data = NULL;
    double b = TILE, work = 0;
    sim_open_machine(&world, four.text, BENCH_POLICY_STEAL);
    desc.flags = FILCH_DATA_NO_BUFFER;
    desc.element = sizeof(double);
    desc.rows = desc.cols = desc.ld = (uint64_t)SIDE * TILE;
    desc.tile_rows = desc.tile_cols = TILE;
    sim_ok(filch_data_create(world.runtime, &desc, &data));
    filch_graph *contents = make_contents(data), *graph = make_factorization(data);
    for (int i = 0; i < 2; ++i) {
        run(contents);
        run(graph);
    }
    for (int d = 0; d < MOST_GPUS; ++d)
        work += outcome.devices[d].work;
    print_message("%.1f ms, %.3f of the area bound\n", outcome.info.seconds * 1e3,
                  outcome.info.seconds * MOST_GPUS * SPEED / work);
    assert_true(work > (double)SIDE * SIDE * SIDE / 3 * b * b * b);
    assert_true(outcome.info.seconds < 1.2 * work / (MOST_GPUS * SPEED));
    sim_ok(filch_graph_destroy(graph));
    sim_ok(filch_graph_destroy(contents));
    sim_ok(filch_data_destroy(data));
    sim_close(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_product),
        cmocka_unit_test(test_alone),
        cmocka_unit_test(test_columns),
        cmocka_unit_test(test_factorization),
    };
    return cmocka_run_group_tests_name("sim.product", tests, NULL, NULL);
}
