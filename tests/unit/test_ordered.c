/* SPDX-License-Identifier: Apache-2.0 */
/* Reductions in order (FILCH_DATA_ORDERED): the bits of the result are those that the header
 * promises, on every schedule. */
#include "fixture.h"

#include <string.h>

#include "patience.h"
#include "random.h"

enum { ROWS = 3, TILES = 2, PARTS = 64, FAIL_CODE = 5 };

/* What a task adds: to the elements of a tile, sums that round. */
typedef struct addend {
    double value;
    int code;
} addend;

static fixture_memory memory;
static filch_runtime *runtime;
static filch_codelet *look, *add, *zero, *sum;
static double result[ROWS * TILES], model[ROWS * TILES];
static filch_data *handle;
static _Atomic int zeroes, sums;
static fl_random numbers;

static void add_value(double *to, double value)
{
    for (int i = 0; i < ROWS; ++i) {
        to[i] += value / (i + 3);
    }
}

static int run_add(const filch_call *call)
{
    const addend *a = call->args;
    for (uint32_t v = 0; v < call->view_count; ++v) {
        add_value(call->views[v].ptr, a->value);
    }
    return a->code;
}

static int run_zero(const filch_call *call)
{
    memset(call->views[0].ptr, 0, ROWS * sizeof(double));
    atomic_fetch_add(&zeroes, 1);
    return 0;
}

static int run_sum(const filch_call *call)
{
    double *to = call->views[0].ptr;
    const double *from = call->views[1].ptr;
    for (int i = 0; i < ROWS; ++i) {
        to[i] += from[i];
    }
    atomic_fetch_add(&sums, 1);
    return 0;
}

static void start(const char *devices, filch_drive drive, uint32_t flags)
{
    fixture_memory_init(&memory);
    runtime = fixture_runtime(devices, drive, &memory);
    look = fixture_codelet(runtime, "look", fixture_nothing, 0);
    add = fixture_codelet(runtime, "add", run_add, sizeof(addend));
    zero = fixture_codelet(runtime, "zero", run_zero, 0);
    sum = fixture_codelet(runtime, "sum", run_sum, 0);
    filch_data_desc desc = FILCH_DATA_DESC_INIT;
    desc.ptr = result;
    desc.element = sizeof(double);
    desc.rows = ROWS * TILES;
    desc.tile_rows = ROWS;
    desc.flags = flags;
    assert_ok(filch_data_create(runtime, &desc, &handle));
    assert_ok(filch_data_reduction(handle, zero, sum));
    for (int i = 0; i < ROWS * TILES; ++i) {
        result[i] = model[i] = 1.0 / (i + 7);
    }
    zeroes = sums = 0;
}

static void stop(void)
{
    assert_ok(filch_runtime_destroy(runtime));
    assert_int_equal(memory.bytes, 0);
}

static double any_value(void)
{
    return ((double)fl_random_below(&numbers, 2000001) - 1e6) / 3e5;
}

/* Tasks that reduce to a tile, and what they add, in the order of their addition. */
typedef struct group {
    uint32_t tile;
    int count;
    double values[200];
} group;

static void add_group(filch_graph *graph, group *g, uint32_t tile, int count)
{
    filch_access access = {.data = handle, .row = tile, .mode = FILCH_REDUCE};
    g->tile = tile;
    g->count = count;
    for (int k = 0; k < count; ++k) {
        addend a = {.value = g->values[k] = any_value()};
        fixture_add(graph, add, &a, &access, 1);
    }
    access.mode = FILCH_READ;
    fixture_add(graph, look, NULL, &access, 1);
}

static void model_group(const group *g)
{
    double parts[PARTS][ROWS] = {{0}};
    for (int k = 0; k < g->count; ++k) {
        add_value(parts[k % PARTS], g->values[k]);
    }
    for (int p = 0; p < PARTS && p < g->count; ++p) {
        for (int i = 0; i < ROWS; ++i) {
            model[g->tile * ROWS + (uint32_t)i] += parts[p][i];
        }
    }
}

static int parts_of(const group *g)
{
    return g->count < PARTS ? g->count : PARTS;
}

static void compare(void)
{
    for (int i = 0; i < ROWS * TILES; ++i) {
        assert_memory_equal(&result[i], &model[i], sizeof *model);
    }
}

static void run_on(const char *devices, filch_drive drive)
{
    static group groups[3];
    start(devices, drive, FILCH_DATA_ORDERED);
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    add_group(graph, &groups[0], 0, 200);
    add_group(graph, &groups[1], 1, 130);
    add_group(graph, &groups[2], 0, 5);
    int parts = parts_of(&groups[0]) + parts_of(&groups[1]) + parts_of(&groups[2]);
    for (int run = 1; run <= 20; ++run) {
        assert_int_equal(fixture_run(graph), FILCH_OK);
        for (int g = 0; g < 3; ++g) {
            model_group(&groups[g]);
        }
        compare();
        assert_int_equal(zeroes, run * parts);
        assert_int_equal(sums, run * parts);
    }
    assert_ok(filch_graph_destroy(graph));
    stop();
}

static void the_bits_are_the_same_on_every_device(void **state)
{
    (void)state;
    fl_random_init(&numbers, 20, 0);
    run_on("host:1", FILCH_DRIVE_POLL);
    run_on("host:1", FILCH_DRIVE_THREADS);
    run_on("host:2@any", FILCH_DRIVE_THREADS);
    run_on("host:4@any", FILCH_DRIVE_THREADS);
    run_on("host:3@any", FILCH_DRIVE_POLL);
}

static void open_graphs_count_the_tasks_as_closed_ones(void **state)
{
    (void)state;
    fl_random_init(&numbers, 21, 0);
    static group g;
    start("host:2@any", FILCH_DRIVE_THREADS, FILCH_DATA_ORDERED);
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_OPEN);
    filch_job *job = NULL;
    assert_ok(filch_graph_submit(graph, NULL, &job));
    for (int round = 0; round < 30; ++round) {
        add_group(graph, &g, (uint32_t)round % TILES, 1 + (int)fl_random_below(&numbers, 150));
        model_group(&g);
    }
    assert_ok(filch_graph_close(graph));
    assert_ok(filch_job_wait(job, PATIENCE));
    compare();
    assert_ok(filch_job_release(job));
    assert_ok(filch_graph_destroy(graph));
    stop();
}

/* One task, two tiles, each with numbers of its own. */
static void tiles_have_numbers_of_their_own(void **state)
{
    (void)state;
    fl_random_init(&numbers, 22, 0);
    static group g[TILES];
    start("host:2@any", FILCH_DRIVE_THREADS, FILCH_DATA_ORDERED);
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    for (int k = 0; k < 180; ++k) {
        bool is_both = k % 3 == 0;
        uint32_t tile = (uint32_t)(k % TILES);
        const filch_access accesses[] = {
            {.data = handle, .row = tile, .mode = FILCH_REDUCE},
            {.data = handle, .row = 1 - tile, .mode = FILCH_REDUCE},
        };
        addend a = {.value = any_value()};
        fixture_add(graph, add, &a, accesses, is_both ? 2 : 1);
        for (uint32_t t = 0; t < TILES; ++t) {
            g[t].tile = t;
            if (t == tile || is_both) {
                g[t].values[g[t].count++] = a.value;
            }
        }
    }
    for (int run = 0; run < 20; ++run) {
        assert_int_equal(fixture_run(graph), FILCH_OK);
        model_group(&g[0]);
        model_group(&g[1]);
        compare();
    }
    assert_ok(filch_graph_destroy(graph));
    stop();
}

static void a_failed_task_lets_nothing_be_combined(void **state)
{
    (void)state;
    fl_random_init(&numbers, 23, 0);
    static group g;
    start("host:2@any", FILCH_DRIVE_THREADS, FILCH_DATA_ORDERED);
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    const filch_access access = {.data = handle, .mode = FILCH_REDUCE};
    const addend bad = {.value = 1, .code = FAIL_CODE};
    add_group(graph, &g, 0, 70);
    fixture_add(graph, add, &bad, &access, 1);
    add_group(graph, &g, 0, 70);
    filch_job *job = NULL;
    assert_ok(filch_graph_submit(graph, NULL, &job));
    assert_status(filch_job_wait(job, PATIENCE), FILCH_TASK_FAILED);
    assert_ok(filch_job_release(job));
    assert_ok(filch_graph_destroy(graph));
    assert_in_range(sums, 0, 64); /* of the group before alone */
    stop();
}

static void partitions_are_as_their_handles(void **state)
{
    (void)state;
    start("host:2@any", FILCH_DRIVE_THREADS, FILCH_DATA_ORDERED);
    filch_data_desc tiling = {.size = sizeof tiling, .tile_rows = ROWS};
    filch_data *part = NULL;
    assert_ok(filch_data_partition(handle, &tiling, &part));
    assert_ok(filch_data_reduction(part, zero, sum));
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    assert_ok(filch_graph_partition(graph, handle, part));
    filch_access access = {.data = part, .row = 1, .mode = FILCH_REDUCE};
    static group g = {.tile = 1, .count = 150};
    for (int k = 0; k < g.count; ++k) {
        addend a = {.value = g.values[k] = any_value()};
        fixture_add(graph, add, &a, &access, 1);
    }
    for (int run = 0; run < 20; ++run) {
        assert_int_equal(fixture_run(graph), FILCH_OK);
        model_group(&g);
        compare();
    }
    assert_ok(filch_graph_destroy(graph));
    assert_ok(filch_data_destroy(part));
    stop();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_bits_are_the_same_on_every_device),
        cmocka_unit_test(open_graphs_count_the_tasks_as_closed_ones),
        cmocka_unit_test(tiles_have_numbers_of_their_own),
        cmocka_unit_test(a_failed_task_lets_nothing_be_combined),
        cmocka_unit_test(partitions_are_as_their_handles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
