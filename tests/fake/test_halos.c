/* SPDX-License-Identifier: Apache-2.0 */
/* Halos on the fake driver: a GPU gets the part of a neighbouring tile, and nothing is copied
 * within a GPU where its memory has room for the handles. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "make.h"

#define IMAGE "FAKECUBIN arch=90 entry=smooth,blur,parts,compare"
enum { PARTS = 6, VECTORS = 32, ROUNDS = 40, TASKS = 6 };
enum { TILES = 8, TILE = 16, N = TILES * TILE, STEPS = 6, SIDE = 12, SQUARE = 4, HALO = 2 };

static filch_runtime *runtime;
static uint64_t now[N], next[N], model[2][N];
static uint64_t grid[2][SIDE * SIDE], grid_model[2][SIDE * SIDE];

/* smooth(tile with a halo, the same tile of another vector) */
static int smooth(const filch_call *call)
{
    const filch_view *from = &call->views[0], *to = &call->views[1];
    for (uint64_t i = 0; i < to->rows; i++) {
        uint64_t sum = 0;
        for (uint64_t k = 0; k <= 2 * HALO; k++) {
            uint64_t at = to->row + i + k - HALO; /* wraps below 0 */
            if (at - from->row < from->rows)
                sum += (k + 3) * ((const uint64_t *)from->ptr)[at - from->row];
        }
        ((uint64_t *)to->ptr)[i] = sum + to->row + i;
    }
    return 0;
}

/* blur(tile with a halo, the same tile of another matrix) */
static int blur(const filch_call *call)
{
    const filch_view *from = &call->views[0], *to = &call->views[1];
    for (uint64_t j = 0; j < to->cols; j++)
        for (uint64_t i = 0; i < to->rows; i++) {
            uint64_t sum = 0;
            for (uint64_t c = 0; c < from->cols; c++)
                for (uint64_t r = 0; r < from->rows; r++) {
                    uint64_t down = from->row + r - to->row - i + 1;
                    uint64_t across = from->col + c - to->col - j + 1;
                    if (down <= 2 && across <= 2)
                        sum += (3 * across + down + 1) *
                               ((const uint64_t *)from->ptr)[c * from->ld + r];
                }
            ((uint64_t *)to->ptr)[j * to->ld + i] = sum;
        }
    return 0;
}

/* Elements that differ from what the host has written. */
static _Atomic uint64_t wrong;
static uint64_t written;

/* Counts elements of views that differ from `written` + their row. */
static int count_wrong(const filch_call *call, uint32_t views)
{
    for (uint32_t k = 0; k < views; k++)
        for (uint64_t i = 0; i < call->views[k].rows; i++)
            wrong += ((const uint64_t *)call->views[k].ptr)[i] != written + call->views[k].row + i;
    return 0;
}

static int parts(const filch_call *call)
{
    return count_wrong(call, PARTS);
}

static int compare(const filch_call *call)
{
    return count_wrong(call, VECTORS);
}

static void start_with(const char *devices, const char *links, const char *memory,
                       const filch_allocator *allocator)
{
    filch_runtime_desc config = FILCH_RUNTIME_DESC_INIT;
    fakecuda_reset();
    assert_true(fakecuda_configure(links));
    fakecuda_register_filch("smooth", smooth, 2, false, 0);
    fakecuda_register_filch("blur", blur, 2, false, 0);
    fakecuda_register_filch("parts", parts, PARTS, false, 0);
    fakecuda_register_filch("compare", compare, VECTORS, false, 0);
    config.devices = devices;
    config.policy = FILCH_POLICY_STATIC;
    config.allocator = allocator;
    if (memory != NULL)
        (void)setenv("FILCH_MEMORY_LIMIT", memory, 1);
    (void)setenv("FILCH_REPLAY", "0", 1);
    runtime = runtime_of(&config);
    (void)unsetenv("FILCH_MEMORY_LIMIT");
    (void)unsetenv("FILCH_REPLAY");
}

static void start(const char *devices, const char *links, const char *memory)
{
    start_with(devices, links, memory, NULL);
}

static void stop(void)
{
    assert_ok(filch_runtime_destroy(runtime));
    assert_int_equal(fakecuda_violations(), 0);
}

static void add(filch_graph *graph, filch_codelet *codelet, filch_access from, filch_access to,
                uint32_t affinity)
{
    const filch_access accesses[] = {from, to};
    filch_task_desc desc = FILCH_TASK_DESC_INIT;
    desc.codelet = codelet;
    desc.accesses = accesses;
    desc.access_count = 2;
    desc.affinity = affinity;
    assert_ok(filch_graph_add(graph, &desc, NULL));
}

static void wait_for(filch_job *job, filch_device_stats *stats, uint32_t devices)
{
    filch_job_info info = {.size = sizeof info};
    await_result(job, FILCH_OK);
    assert_ok(filch_job_stats(job, &info, stats, devices));
    assert_ok(filch_job_release(job));
}

/* --- A vector in strips --- */

static void step_model(uint32_t step)
{
    const filch_view from = {.ptr = model[step % 2], .rows = N, .cols = 1};
    const filch_view to = {.ptr = model[1 - step % 2], .rows = N, .cols = 1};
    const filch_view views[] = {from, to};
    (void)smooth(&(const filch_call){.views = views});
}

/* The first half of the tiles belongs to device 0. */
static filch_graph *strips(filch_data *const data[2], uint32_t devices)
{
    static const filch_halo halo = {.rows_before = HALO, .rows_after = HALO};
    filch_codelet *codelet = codelet_of(runtime, IMAGE, "smooth", NULL, 0);
    filch_graph *graph = graph_of(runtime);
    for (uint32_t step = 0; step < STEPS; step++)
        for (uint32_t tile = 0; tile < TILES; tile++)
            add(graph, codelet, (filch_access)FILCH_R_HALO(data[step % 2], tile, 0, &halo),
                (filch_access)FILCH_W(data[1 - step % 2], tile, 0), 1 + tile * devices / TILES);
    return graph;
}

static void check_strips(filch_data *const data[2], uint32_t submissions)
{
    for (uint32_t step = 0; step < STEPS * submissions; step++)
        step_model(step);
    for (uint32_t i = 0; i < 2; i++)
        assert_ok(filch_data_acquire(data[i], FILCH_READ));
    assert_memory_equal(now, model[0], sizeof now);
    assert_memory_equal(next, model[1], sizeof next);
}

static void begin_strips(filch_data *data[2])
{
    for (uint64_t i = 0; i < N; i++)
        now[i] = model[0][i] = i * i + 1;
    memset(next, 0, sizeof next);
    memset(model[1], 0, sizeof model[1]);
    data[0] = vector_of(runtime, now, N, TILE, FILCH_DATA_MANAGED);
    data[1] = vector_of(runtime, next, N, TILE, FILCH_DATA_MANAGED);
}

static void neighbours_get_parts_of_tiles(void **state)
{
    filch_device_stats stats[2] = {{0}};
    filch_data *data[2];
    (void)state;
    start("cuda:0,cuda:1", "{\"devices\": [{\"count\": 2}]}", NULL);
    begin_strips(data);
    filch_graph *graph = strips(data, 2);
    wait_for(submit(graph), stats, 2);
    /* The first step brings the tiles, and parts of tiles that come as a whole later. */
    uint64_t most = N / 2 + TILES * HALO + (STEPS - 1) * HALO;
    for (int d = 0; d < 2; d++) {
        assert_in_range(stats[d].bytes_in + stats[d].bytes_peer, N / 2 * sizeof *now,
                        most * sizeof *now);
        assert_int_equal(stats[d].bytes_out, 0);
    }
    /* A second submission finds every tile in its place. */
    uint64_t within = fakecuda_count("cuMemcpyDtoDAsync");
    wait_for(submit(graph), stats, 2);
    assert_int_equal(fakecuda_count("cuMemcpyDtoDAsync"), within);
    for (int d = 0; d < 2; d++) {
        assert_int_equal(stats[d].bytes_in, 0);
        assert_int_equal(stats[d].bytes_peer, STEPS * HALO * sizeof *now);
    }
    assert_ok(filch_graph_destroy(graph));
    check_strips(data, 2);
    stop();
}

/* With room for everything, for some tiles, with slices of one GPU, and without peer access. */
static void results_are_right_everywhere(void **state)
{
    static const struct {
        const char *devices, *links, *memory;
        uint32_t count;
    } cases[] = {
        {"cuda:0", "{\"devices\": [{}]}", NULL, 1},
        {"cuda:0", "{\"devices\": [{}]}", "3K", 1},
        {"cuda:0,cuda:1", "{\"devices\": [{\"count\": 2}]}", "2K", 2},
        {"cuda:0/88+24", "{\"devices\": [{}]}", NULL, 2},
        {"cuda:0,cuda:1",
         "{\"devices\": [{\"count\": 2}], \"links\": [{\"from\": 0, \"to\": 1, \"peer\": false},"
         "{\"from\": 1, \"to\": 0, \"peer\": false}]}",
         NULL, 2},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        filch_data *data[2];
        start(cases[i].devices, cases[i].links, cases[i].memory);
        begin_strips(data);
        filch_graph *graph = strips(data, cases[i].count);
        for (int submission = 0; submission < 2; submission++)
            finish(submit(graph), FILCH_OK);
        assert_ok(filch_graph_destroy(graph));
        check_strips(data, 2);
        stop();
    }
}

/* --- A matrix in squares --- */

static void blur_model(uint32_t step)
{
    const filch_view views[] = {
        {.ptr = grid_model[step % 2], .rows = SIDE, .cols = SIDE, .ld = SIDE},
        {.ptr = grid_model[1 - step % 2], .rows = SIDE, .cols = SIDE, .ld = SIDE}};
    (void)blur(&(const filch_call){.views = views});
}

static void squares_have_corners(void **state)
{
    static const filch_halo halo = {1, 1, 1, 1};
    static const char *const devices[] = {"cuda:0", "cuda:0,cuda:1", "cuda:0/88+24"};
    static const char *const limits[] = {NULL, "3K"};
    enum { ACROSS = SIDE / SQUARE };
    (void)state;
    for (size_t c = 0; c < 6; c++) {
        filch_data *data[2];
        filch_data_desc desc = FILCH_DATA_DESC_INIT;
        start(devices[c % 3], "{\"devices\": [{\"count\": 2}]}", limits[c / 3]);
        desc.element = sizeof **grid;
        desc.rows = desc.cols = SIDE;
        desc.tile_rows = desc.tile_cols = SQUARE;
        for (uint32_t i = 0; i < 2; i++) {
            for (uint64_t k = 0; k < SIDE * SIDE; k++)
                grid[i][k] = grid_model[i][k] = 5 * k * k + i;
            desc.ptr = grid[i];
            assert_ok(filch_data_create(runtime, &desc, &data[i]));
        }
        filch_codelet *codelet = codelet_of(runtime, IMAGE, "blur", NULL, 0);
        filch_graph *graph = graph_of(runtime);
        for (uint32_t step = 0; step < STEPS; step++) {
            for (uint32_t k = 0; k < ACROSS * ACROSS; k++)
                add(graph, codelet,
                    (filch_access)FILCH_R_HALO(data[step % 2], k / ACROSS, k % ACROSS, &halo),
                    (filch_access)FILCH_W(data[1 - step % 2], k / ACROSS, k % ACROSS),
                    FILCH_ANY_DEVICE);
            blur_model(step);
        }
        finish(submit(graph), FILCH_OK);
        assert_ok(filch_graph_destroy(graph));
        assert_memory_equal(grid, grid_model, sizeof grid);
        stop();
    }
}

/* --- Many parts, many readers --- */

static filch_status add_reader(filch_graph *graph, filch_codelet *codelet,
                               const filch_access *accesses, uint32_t count)
{
    filch_task_desc desc = FILCH_TASK_DESC_INIT;
    desc.codelet = codelet;
    desc.accesses = accesses;
    desc.access_count = count;
    return filch_graph_add(graph, &desc, NULL);
}

/* Each further access of one task needs more of the same tile, by another copy. */
static void a_task_reads_many_parts_of_a_tile(void **state)
{
    static uint64_t values[2 * N];
    filch_halo halos[PARTS];
    filch_access accesses[PARTS];
    (void)state;
    start("cuda:0", "{\"copy_ns\": 3000000, \"devices\": [{}]}", NULL);
    for (uint64_t i = 0; i < 2 * N; i++)
        values[i] = i;
    written = wrong = 0;
    filch_data *data = vector_of(runtime, values, 2 * N, N, 0);
    for (uint32_t k = 0; k < PARTS; k++) {
        halos[k] = (filch_halo){.rows_after = 3 * (k + 1)};
        accesses[k] = (filch_access)FILCH_R_HALO(data, 0, 0, &halos[k]);
    }
    filch_graph *graph = graph_of(runtime);
    assert_ok(add_reader(graph, codelet_of(runtime, IMAGE, "parts", NULL, 0), accesses, PARTS));
    finish(submit(graph), FILCH_OK);
    assert_int_equal(wrong, 0);
    stop();
}

/* Tasks on slices of a GPU, which have one memory, read tiles with a halo, and the tile of the halo
 * as a whole. The host changes the tiles between jobs. */
static void slices_share_parts_and_tiles(void **state)
{
    static uint64_t values[VECTORS][2 * TILE];
    static const filch_halo after = {.rows_after = 2};
    filch_data *data[VECTORS];
    filch_access with_halo[VECTORS], whole[VECTORS];
    (void)state;
    start("cuda:0/60+60", "{\"copy_ns\": 20000, \"devices\": [{}]}", NULL);
    filch_codelet *codelet = codelet_of(runtime, IMAGE, "compare", NULL, 0);
    filch_graph *graph = graph_of(runtime);
    wrong = 0;
    for (uint32_t k = 0; k < VECTORS; k++) {
        data[k] = vector_of(runtime, values[k], 2 * TILE, TILE, 0);
        with_halo[k] = (filch_access)FILCH_R_HALO(data[k], 0, 0, &after);
        whole[k] = (filch_access)FILCH_R(data[k], 1, 0);
    }
    for (uint32_t t = 0; t < TASKS; t++) {
        assert_ok(add_reader(graph, codelet, with_halo, VECTORS));
        assert_ok(add_reader(graph, codelet, whole, VECTORS));
    }
    for (uint64_t round = 1; round <= ROUNDS; round++) {
        written = round << 32;
        for (uint32_t k = 0; k < VECTORS; k++)
            for (uint64_t i = 0; i < 2 * TILE; i++)
                values[k][i] = written + i;
        finish(submit(graph), FILCH_OK);
        assert_int_equal(wrong, 0);
    }
    assert_ok(filch_graph_destroy(graph));
    stop();
}

/* --- Failures --- */

/* An allocator, any thread's: once armed, its n-th call fails. */
static _Atomic int64_t calls_left;

static void *take(size_t size, size_t align, void *user)
{
    (void)user;
    return --calls_left == 0 ? NULL : aligned_alloc(align, (size + align - 1) / align * align);
}

static void give(void *pointer, size_t size, size_t align, void *user)
{
    (void)size, (void)align, (void)user;
    free(pointer);
}

/* Each allocation of a job in turn fails, those of halos too: the job ends, the error says what
 * there was no memory for, and the next run is right. */
static void a_halo_without_memory_fails_its_task(void **state)
{
    const filch_allocator allocator = {.alloc = take, .free = give};
    uint32_t halos_refused = 0;
    bool is_met = true;
    (void)state;
    for (int64_t nth = 1; is_met; nth++) {
        filch_error error = FILCH_ERROR_INIT;
        filch_data *data[2];
        calls_left = 0;
        start_with("cuda:0,cuda:1", "{\"devices\": [{\"count\": 2}]}", NULL, &allocator);
        begin_strips(data);
        filch_graph *graph = strips(data, 2);
        assert_ok(filch_graph_seal(graph));
        filch_job *job = submit(graph);
        finish(job, FILCH_OK); /* what is allocated once is there */
        calls_left = nth;
        filch_status status = filch_graph_run(graph, NULL, &error);
        is_met = calls_left <= 0;
        calls_left = 0;
        if (status != FILCH_OK) {
            assert_int_equal(error.status, FILCH_OUT_OF_MEMORY);
            halos_refused += strstr(error.text, "no memory for the halo of a tile") != NULL;
        }
        assert_ok(filch_data_acquire(data[0], FILCH_WRITE));
        memcpy(now, model[0], sizeof now);
        assert_ok(filch_data_release(data[0]));
        finish(submit(graph), FILCH_OK);
        assert_ok(filch_graph_destroy(graph));
        check_strips(data, 1);
        stop();
    }
    assert_true(halos_refused != 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(neighbours_get_parts_of_tiles),
        cmocka_unit_test(results_are_right_everywhere),
        cmocka_unit_test(squares_have_corners),
        cmocka_unit_test(a_task_reads_many_parts_of_a_tile),
        cmocka_unit_test(slices_share_parts_and_tiles),
        cmocka_unit_test(a_halo_without_memory_fails_its_task),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
