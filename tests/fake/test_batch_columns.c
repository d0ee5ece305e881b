/* SPDX-License-Identifier: Apache-2.0 */
/* Batches over handles that are cut along their rows, or both axes, on the fake driver: chunks are
 * whole columns, and bring all the tiles that these lie in, wherever tasks left them. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "make.h"

#define IMAGE "FAKECUBIN arch=90 entry=mix,bump"
#define DRIVER "{\"devices\": [{\"count\": 2}], \"links\": [{\"from\": 0, \"to\": 1}]}"
#define LONGEST 20 /* a handle's leading dimension, and columns */

static filch_runtime *runtime;

/* A handle, and what it must hold. */
typedef struct matrix {
    filch_data *data;
    uint64_t rows, cols;
    uint64_t cells[LONGEST * LONGEST], model[LONGEST * LONGEST];
} matrix;

static uint64_t *cell(const filch_view *view, uint64_t row, uint64_t col)
{
    return (uint64_t *)view->ptr + col * view->ld + row;
}

static uint64_t mixed(uint64_t old, uint64_t seen, uint64_t col)
{
    return 3 * old + seen + col;
}

/* mix(all, columns): each element with one of the first handle's next column, which is read
 * whole. */
static int mix(const filch_call *call)
{
    const filch_view *all = &call->views[0], *own = &call->views[1];
    for (uint64_t c = 0; c < own->cols; c++)
        for (uint64_t r = 0; r < own->rows; r++) {
            uint64_t seen = *cell(all, (r + 1) % all->rows, (call->lo + c + 1) % all->cols);
            uint64_t *at = cell(own, r, c);
            *at = mixed(*at, seen, call->lo + c);
        }
    return 0;
}

/* bump(tile) */
static int bump(const filch_call *call)
{
    const filch_view *own = &call->views[0];
    for (uint64_t c = 0; c < own->cols; c++)
        for (uint64_t r = 0; r < own->rows; r++)
            ++*cell(own, r, c);
    return 0;
}

static void start(const char *devices, const char *memory)
{
    filch_runtime_desc config = FILCH_RUNTIME_DESC_INIT;
    fakecuda_reset();
    assert_true(fakecuda_configure(DRIVER));
    fakecuda_register_filch("mix", mix, 2, true, 0);
    fakecuda_register_filch("bump", bump, 1, false, 0);
    config.devices = devices;
    if (memory != NULL)
        (void)setenv("FILCH_MEMORY_LIMIT", memory, 1);
    runtime = runtime_of(&config);
    (void)unsetenv("FILCH_MEMORY_LIMIT");
}

static void stop(void)
{
    assert_ok(filch_runtime_destroy(runtime));
    assert_int_equal(fakecuda_violations(), 0);
}

static void make(matrix *p, uint64_t rows, uint64_t cols, uint64_t tile_rows, uint64_t tile_cols,
                 uint32_t flags)
{
    filch_data_desc desc = FILCH_DATA_DESC_INIT;
    p->rows = rows;
    p->cols = cols;
    for (uint64_t i = 0; i < LONGEST * LONGEST; i++)
        p->cells[i] = p->model[i] = 7 * i + 1;
    desc.ptr = p->cells;
    desc.element = sizeof *p->cells;
    desc.rows = rows;
    desc.cols = cols;
    desc.ld = LONGEST;
    desc.tile_rows = tile_rows;
    desc.tile_cols = tile_cols;
    desc.flags = flags;
    assert_ok(filch_data_create(runtime, &desc, &p->data));
}

/* Every tile is changed by a task, on the devices in turn. */
static void bump_tiles(matrix *p, filch_codelet *bumps, uint32_t devices)
{
    filch_tiling tiling = {.size = sizeof tiling};
    filch_graph *graph = NULL;
    filch_job *job = NULL;
    assert_ok(filch_data_tiles(p->data, &tiling));
    assert_ok(filch_graph_create(runtime, NULL, &graph));
    for (uint32_t row = 0; row < tiling.rows; row++)
        for (uint32_t col = 0; col < tiling.cols; col++) {
            const filch_access access = FILCH_RW(p->data, row, col);
            filch_task_desc desc = FILCH_TASK_DESC_INIT;
            desc.codelet = bumps;
            desc.accesses = &access;
            desc.access_count = 1;
            desc.affinity = 1 + (row + col) % devices;
            assert_ok(filch_graph_add(graph, &desc, NULL));
        }
    assert_ok(filch_graph_submit(graph, NULL, &job));
    assert_int_equal(filch_job_wait(job, SOON), FILCH_OK);
    assert_ok(filch_job_release(job));
    assert_ok(filch_graph_destroy(graph));
    for (uint64_t c = 0; c < p->cols; c++)
        for (uint64_t r = 0; r < p->rows; r++)
            p->model[c * LONGEST + r]++;
}

static void mix_columns(const matrix *from, matrix *to, filch_codelet *mixes)
{
    const filch_batch_access accesses[] = {
        {.data = from->data, .mode = FILCH_READ, .map = FILCH_MAP_WHOLE},
        {.data = to->data, .mode = FILCH_READWRITE, .map = FILCH_MAP_AFFINE, .scale = 1}};
    filch_batch_desc desc = FILCH_BATCH_DESC_INIT;
    filch_error error = FILCH_ERROR_INIT;
    filch_job *job = NULL;
    desc.codelet = mixes;
    desc.n = to->cols;
    desc.accesses = accesses;
    desc.access_count = 2;
    if (filch_batch_submit(runtime, &desc, NULL, &job) != FILCH_OK) {
        (void)filch_runtime_error(runtime, &error);
        fail_msg("%s", error.text);
    }
    if (filch_job_wait(job, SOON) != FILCH_OK) {
        (void)filch_job_error(job, &error);
        fail_msg("%s", error.text);
    }
    assert_ok(filch_job_release(job));
    for (uint64_t c = 0; c < to->cols; c++)
        for (uint64_t r = 0; r < to->rows; r++) {
            uint64_t *at = &to->model[c * LONGEST + r];
            *at = mixed(*at, from->model[(c + 1) % from->cols * LONGEST + (r + 1) % from->rows], c);
        }
}

static void check(matrix *p)
{
    assert_ok(filch_data_acquire(p->data, FILCH_READ));
    assert_memory_equal(p->cells, p->model, sizeof p->cells);
    assert_ok(filch_data_release(p->data));
}

static const char *const devices[] = {"cuda:0", "cuda:0,cuda:1", "cuda:0,host:1",
                                      "cuda:0,cuda:1,host:1"};
#define DEVICES (sizeof devices / sizeof *devices)

static void any_tiling_will_do(void **state)
{
    static const struct {
        uint64_t rows, cols, tile_rows, tile_cols;
    } shapes[] = {{8, 4, 4, 4},   {8, 4, 3, 0}, {8, 4, 3, 1}, {9, 12, 2, 5},
                  {20, 20, 7, 3}, {5, 1, 2, 0}, {1, 9, 0, 2}, {8, 2, 0, 0}};
    static matrix from, to;
    (void)state;
    for (size_t d = 0; d < DEVICES; d++)
        for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
            for (uint32_t flags = 0; flags < 4; flags++) {
                uint32_t count;
                start(devices[d], NULL);
                count = filch_device_count(runtime);
                filch_codelet *mixes = codelet_of(runtime, IMAGE, "mix", mix, 0);
                filch_codelet *bumps = codelet_of(runtime, IMAGE, "bump", bump, 0);
                make(&from, shapes[s].rows, shapes[s].cols, shapes[s].tile_rows,
                     shapes[s].tile_cols, (flags & 1) != 0 ? FILCH_DATA_MANAGED : 0);
                /* One that a batch writes is tiled along its items if it is managed. */
                make(&to, 11, 13, 4, (flags & 2) != 0 ? 3 : 0,
                     (flags & 2) != 0 ? FILCH_DATA_MANAGED : 0);
                for (int round = 0; round < 3; round++) {
                    bump_tiles(&from, bumps, count);
                    mix_columns(&from, &to, mixes);
                    bump_tiles(&to, bumps, count);
                    mix_columns(&from, &to, mixes);
                }
                check(&from);
                check(&to);
                stop();
            }
}

/* A part of it is on a device at once. */
static void memory_may_be_short(void **state)
{
    static matrix from, to;
    filch_memory_stats stats = {.size = sizeof stats};
    (void)state;
    for (size_t d = 0; d < DEVICES; d++) {
        start(devices[d], "2K");
        uint32_t count = filch_device_count(runtime);
        filch_codelet *mixes = codelet_of(runtime, IMAGE, "mix", mix, 0);
        filch_codelet *bumps = codelet_of(runtime, IMAGE, "bump", bump, 0);
        make(&from, 8, 4, 4, 4, FILCH_DATA_MANAGED);
        make(&to, 20, 20, 6, 2, FILCH_DATA_MANAGED);
        for (int round = 0; round < 5; round++) {
            bump_tiles(&to, bumps, count);
            mix_columns(&from, &to, mixes);
        }
        assert_ok(filch_device_memory(runtime, 0, &stats));
        assert_true(stats.budget < LONGEST * LONGEST * sizeof *to.cells);
        check(&to);
        stop();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(any_tiling_will_do),
                                       cmocka_unit_test(memory_may_be_short)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
