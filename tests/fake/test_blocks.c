/* SPDX-License-Identifier: Apache-2.0 */
/* Accesses to blocks of tiles on the fake driver: a block is contiguous on a GPU, wherever its
 * tiles were before; where it stays there, nothing is copied the next time. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "make.h"

#define IMAGE "FAKECUBIN arch=90 entry=bump,sum,two"
enum { SIDE = 12, TILE = 3, ACROSS = SIDE / TILE };

static filch_runtime *runtime;
static filch_codelet *bumps, *sums, *twos;
static uint64_t cells[SIDE * SIDE], model[SIDE * SIDE], totals[2];
static filch_data *matrix, *results;

static uint64_t *cell(const filch_view *view, uint64_t row, uint64_t col)
{
    return (uint64_t *)view->ptr + col * view->ld + row;
}

/* bump(block) */
static int bump(const filch_call *call)
{
    const filch_view *own = &call->views[0];
    for (uint64_t c = 0; c < own->cols; c++)
        for (uint64_t r = 0; r < own->rows; r++)
            *cell(own, r, c) += (own->row + r) * SIDE + own->col + c;
    return 0;
}

static uint64_t sum_of(const filch_view *view)
{
    uint64_t sum = 0;
    for (uint64_t c = 0; c < view->cols; c++)
        for (uint64_t r = 0; r < view->rows; r++)
            sum = 3 * sum + *cell(view, r, c);
    return sum;
}

/* sum(block, block, total) */
static int sum(const filch_call *call)
{
    *(uint64_t *)call->views[2].ptr += sum_of(&call->views[0]) + 7 * sum_of(&call->views[1]);
    return 0;
}

/* two(block, block): both are bumped. */
static int two(const filch_call *call)
{
    filch_call second = *call;
    second.views++;
    return bump(call) + bump(&second);
}

static void make_matrix(uint32_t flags)
{
    filch_data_desc desc = FILCH_DATA_DESC_INIT;
    desc.ptr = cells;
    desc.element = sizeof *cells;
    desc.rows = desc.cols = desc.ld = SIDE;
    desc.tile_rows = desc.tile_cols = TILE;
    desc.flags = flags;
    desc.label = "matrix";
    assert_ok(filch_data_create(runtime, &desc, &matrix));
}

static void start(const char *devices, const char *memory)
{
    filch_runtime_desc config = FILCH_RUNTIME_DESC_INIT;
    fakecuda_reset();
    assert_true(fakecuda_configure("{\"devices\": [{\"count\": 2}]}"));
    fakecuda_register_filch("bump", bump, 1, false, 0);
    fakecuda_register_filch("sum", sum, 3, false, 0);
    fakecuda_register_filch("two", two, 2, false, 0);
    config.devices = devices;
    if (memory != NULL)
        (void)setenv("FILCH_MEMORY_LIMIT", memory, 1);
    (void)setenv("FILCH_REPLAY", "0", 1);
    runtime = runtime_of(&config);
    (void)unsetenv("FILCH_MEMORY_LIMIT");
    (void)unsetenv("FILCH_REPLAY");
    bumps = codelet_of(runtime, IMAGE, "bump", NULL, 0);
    sums = codelet_of(runtime, IMAGE, "sum", NULL, 0);
    twos = codelet_of(runtime, IMAGE, "two", NULL, 0);
    for (uint64_t i = 0; i < SIDE * SIDE; i++)
        cells[i] = model[i] = i * i;
    memset(totals, 0, sizeof totals);
    make_matrix(FILCH_DATA_MANAGED);
    results = vector_of(runtime, totals, 2, 1, 0);
}

static void stop(void)
{
    assert_ok(filch_runtime_destroy(runtime));
    assert_int_equal(fakecuda_violations(), 0);
}

static filch_status add(filch_graph *graph, filch_codelet *codelet, const filch_access *accesses,
                        uint32_t count)
{
    filch_task_desc desc = FILCH_TASK_DESC_INIT;
    desc.codelet = codelet;
    desc.accesses = accesses;
    desc.access_count = count;
    return filch_graph_add(graph, &desc, NULL);
}

static filch_access block(uint32_t row, uint32_t col, uint32_t rows, uint32_t cols,
                          filch_access_mode mode)
{
    return (filch_access)FILCH_BLOCK(matrix, row, col, rows, cols, mode);
}

/* The view on the model that a task has on the block. */
static filch_view model_of(const filch_access *access)
{
    filch_view view = {.ld = SIDE,
                       .row = access->row * TILE,
                       .col = access->col * TILE,
                       .rows = access->rows * TILE,
                       .cols = access->cols * TILE};
    view.ptr = model + view.col * SIDE + view.row;
    return view;
}

/* Adds a task, and does the same to the model. */
static void step(filch_graph *graph, filch_codelet *codelet, const filch_access *accesses,
                 uint32_t count, uint64_t *total)
{
    filch_view views[3];
    const filch_call call = {.views = views};
    for (uint32_t i = 0; i < count && i < 2; i++)
        views[i] = model_of(&accesses[i]);
    views[2].ptr = total;
    assert_ok(add(graph, codelet, accesses, count));
    (void)(codelet == bumps ? bump(&call) : codelet == twos ? two(&call) : sum(&call));
}

static void bump_tiles(filch_graph *graph)
{
    for (uint32_t col = 0; col < ACROSS; col++)
        for (uint32_t row = 0; row < ACROSS; row++) {
            const filch_access access = block(row, col, 1, 1, FILCH_READWRITE);
            step(graph, bumps, &access, 1, NULL);
        }
}

static void run(filch_graph *graph)
{
    finish(submit(graph), FILCH_OK);
    assert_ok(filch_graph_destroy(graph));
}

static void check(const uint64_t *wanted)
{
    assert_ok(filch_data_acquire(matrix, FILCH_READ));
    assert_memory_equal(cells, model, sizeof cells);
    assert_ok(filch_data_release(matrix));
    assert_int_equal(totals[0], wanted[0]);
    assert_int_equal(totals[1], wanted[1]);
}

static void add_sum(filch_graph *graph, filch_access a, filch_access b, uint32_t to,
                    uint64_t *wanted)
{
    const filch_access accesses[] = {a, b, FILCH_RW(results, to, 0)};
    step(graph, sums, accesses, 3, &wanted[to]);
}

/* Tiles that lie apart on the device move together once; the next reader finds them so. */
static void whole_handles_stay_together(void **state)
{
    const filch_access all = {.mode = FILCH_READ, .rows = ACROSS, .cols = ACROSS};
    (void)state;
    start("cuda:0", NULL);
    uint64_t wanted[2] = {0, 0}, copies[3];
    for (int round = 0; round < 3; round++) {
        filch_graph *graph = graph_of(runtime);
        filch_access whole = all;
        whole.data = matrix;
        bump_tiles(graph);
        run(graph); /* tiles in use do not move */
        graph = graph_of(runtime);
        add_sum(graph, whole, whole, 0, wanted);
        run(graph);
        copies[round] = fakecuda_count("cuMemcpyDtoDAsync") + fakecuda_count("cuMemcpy2DAsync") +
                        fakecuda_count("cuMemcpyHtoDAsync");
    }
    check(wanted);
    /* The first round brings the tiles and moves them; from then on only the total is copied. */
    assert_true(copies[0] >= 2u * ACROSS * ACROSS);
    assert_true(copies[2] - copies[1] <= 2);
    stop();
}

/* Blocks across the blocks that earlier tasks made, of tasks with several of them. */
static void blocks_cross_each_other(void **state)
{
    static const char *const devices[] = {"cuda:0", "cuda:0,cuda:1", "cuda:0/88+24"};
    /* Two blocks and a little, in bytes: everything leaves and comes back. */
    static const char *const limits[] = {NULL, "3K"};
    (void)state;
    for (size_t d = 0; d < sizeof devices / sizeof *devices; d++)
        for (size_t l = 0; l < sizeof limits / sizeof *limits; l++) {
            uint64_t wanted[2] = {0, 0};
            start(devices[d], limits[l]);
            filch_graph *graph = graph_of(runtime);
            bump_tiles(graph);
            for (uint32_t round = 0; round < 3; round++) {
                const filch_access middle = block(1, round, 2, 2, FILCH_READWRITE);
                const filch_access halves[] = {block(0, 0, 2, 4, FILCH_READWRITE),
                                               block(2, 1, 2, 3, FILCH_READWRITE)};
                const filch_access thirds[] = {block(1, 3, 3, 1, FILCH_READWRITE),
                                               block(2, 0, 2, 3, FILCH_READWRITE)};
                step(graph, bumps, &middle, 1, NULL);
                step(graph, twos, halves, 2, NULL);
                step(graph, twos, thirds, 2, NULL);
                add_sum(graph, block(0, 1, 3, 2, FILCH_READ), block(1, 1, 3, 2, FILCH_READ), 0,
                        wanted);
                add_sum(graph, block(0, 0, 1, 1, FILCH_READ), block(0, 0, 4, 2, FILCH_READ), 1,
                        wanted);
            }
            run(graph);
            check(wanted);
            stop();
        }
}

/* A block that no device has room for, while each of its tiles would fit. */
static void blocks_may_be_too_large(void **state)
{
    filch_error error = FILCH_ERROR_INIT;
    (void)state;
    start("cuda:0", "1K");
    filch_graph *graph = graph_of(runtime);
    const filch_access tile = block(3, 3, 1, 1, FILCH_READWRITE);
    const filch_access whole = FILCH_WHOLE(matrix, FILCH_READWRITE);
    assert_ok(add(graph, bumps, &tile, 1));
    assert_int_equal(add(graph, bumps, &whole, 1), FILCH_NO_DEVICE_MEMORY);
    assert_ok(filch_runtime_error(runtime, &error));
    assert_non_null(strstr(error.text, "needs 1152 bytes"));
    assert_ok(filch_graph_destroy(graph));
    stop();
}

/* Runs a graph, and returns the bytes that it copied to the host. */
static uint64_t bytes_out(filch_graph *graph)
{
    filch_device_stats stats[2] = {{0}};
    filch_job_info info = {.size = sizeof info};
    filch_job *job = submit(graph);
    assert_ok(filch_job_wait(job, -1));
    assert_ok(filch_job_stats(job, &info, stats, 2));
    assert_ok(filch_job_release(job));
    assert_ok(filch_graph_destroy(graph));
    return stats[0].bytes_out + stats[1].bytes_out;
}

/* A tile of a block that a later task writes goes back to the host once, behind that task. */
static void tiles_go_back_behind_their_last_writer(void **state)
{
    static const char *const devices[] = {"cuda:0", "cuda:0,cuda:1"};
    (void)state;
    for (size_t d = 0; d < sizeof devices / sizeof *devices; d++) {
        const uint64_t wanted[2] = {0, 0};
        start(devices[d], NULL);
        assert_ok(filch_data_destroy(matrix));
        make_matrix(0);
        const filch_access two_by_four = block(0, 0, 2, ACROSS, FILCH_READWRITE);
        const filch_access inner = block(1, 1, 2, 2, FILCH_READWRITE);
        const filch_access tile = block(1, 2, 1, 1, FILCH_READWRITE);
        filch_graph *graph = graph_of(runtime);
        step(graph, bumps, &two_by_four, 1, NULL);
        step(graph, bumps, &inner, 1, NULL);
        step(graph, bumps, &tile, 1, NULL);
        /* Rows 0 and 1 of tiles, and two tiles of row 2, each once. */
        assert_int_equal(bytes_out(graph), 10 * TILE * TILE * sizeof *cells);
        assert_memory_equal(cells, model, sizeof cells);
        assert_memory_equal(totals, wanted, sizeof totals);
        stop();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_handles_stay_together),
        cmocka_unit_test(blocks_cross_each_other),
        cmocka_unit_test(blocks_may_be_too_large),
        cmocka_unit_test(tiles_go_back_behind_their_last_writer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
