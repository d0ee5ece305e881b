/* SPDX-License-Identifier: Apache-2.0 */
/* Halos of tiles that tasks read: what a task sees, what it waits for, and what is refused. */
#include "fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "patience.h"

enum { ROWS = 10, COLS = 8, LD = 11, DOWN = 4, ACROSS = 3, VECTOR = 40, TILE = 10 };

static const uint64_t heights[DOWN] = {1, 3, 2, 4}, widths[ACROSS] = {2, 5, 1};
static fixture_memory memory;
static filch_runtime *runtime;
static filch_codelet *look, *nothing;
static filch_data *matrix, *vector;
static double cells[LD * COLS], numbers[VECTOR];
static filch_view seen;

static int run_look(const filch_call *call)
{
    seen = call->views[0];
    return 0;
}

static void start(const char *devices)
{
    fixture_memory_init(&memory);
    runtime = fixture_runtime(devices, FILCH_DRIVE_DEFAULT, &memory);
    look = fixture_codelet(runtime, "look", run_look, 0);
    nothing = fixture_codelet(runtime, "nothing", fixture_nothing, 0);
    filch_data_desc desc = FILCH_DATA_DESC_INIT;
    desc.ptr = cells;
    desc.element = sizeof *cells;
    desc.rows = ROWS;
    desc.cols = COLS;
    desc.ld = LD;
    desc.row_cuts = heights;
    desc.row_cut_count = DOWN;
    desc.col_cuts = widths;
    desc.col_cut_count = ACROSS;
    desc.label = "matrix";
    assert_ok(filch_data_create(runtime, &desc, &matrix));
    vector = fixture_vector(runtime, numbers, sizeof *numbers, VECTOR, TILE);
}

static void stop(void)
{
    assert_ok(filch_runtime_destroy(runtime));
    assert_int_equal(memory.bytes, 0);
}

/* --- What a task sees --- */

/* First element, and the one past the last, of the tiles [tile, tile + count) and so many around.
 */
static void extent(const uint64_t *sizes, uint32_t tile, uint32_t count, uint64_t before,
                   uint64_t after, uint64_t all, uint64_t *first, uint64_t *end)
{
    *first = 0;
    for (uint32_t i = 0; i < tile; ++i) {
        *first += sizes[i];
    }
    *end = *first;
    for (uint32_t i = tile; i < tile + count; ++i) {
        *end += sizes[i];
    }
    *first = before < *first ? *first - before : 0;
    *end = after < all - *end ? *end + after : all;
}

static void see(const filch_access *access)
{
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    uint64_t row, row_end, col, col_end;
    const filch_halo *halo = access->halo;
    extent(heights, access->row, access->rows, halo->rows_before, halo->rows_after, ROWS, &row,
           &row_end);
    extent(widths, access->col, access->cols, halo->cols_before, halo->cols_after, COLS, &col,
           &col_end);
    fixture_add(graph, look, NULL, access, 1);
    assert_ok(fixture_run(graph));
    assert_ok(filch_graph_destroy(graph));
    assert_int_equal(seen.row, row);
    assert_int_equal(seen.col, col);
    assert_int_equal(seen.rows, row_end - row);
    assert_int_equal(seen.cols, col_end - col);
    assert_int_equal(seen.ld, LD);
    assert_ptr_equal(seen.ptr, cells + col * LD + row);
}

static void a_view_has_the_halo_within_the_handle(void **state)
{
    static const filch_halo halos[] = {
        {0, 0, 0, 0},          {1, 0, 0, 0}, {0, 1, 0, 0},
        {0, 0, 1, 0},          {0, 0, 0, 1}, {2, 2, 2, 2},
        {4, 1, 0, 6},          {3, 9, 5, 2}, {UINT64_MAX, 0, 1, 1},
        {1, UINT64_MAX, 0, 0}, {1, 1, 0, 8}, {UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX},
    };
    (void)state;
    start("host:1");
    for (uint32_t row = 0; row < DOWN; ++row) {
        for (uint32_t col = 0; col < ACROSS; ++col) {
            for (size_t h = 0; h < sizeof halos / sizeof *halos; ++h) {
                filch_access access = FILCH_R_HALO(matrix, row, col, &halos[h]);
                access.rows = access.cols = 1;
                see(&access);
                access.rows = DOWN - row;
                access.cols = h % 2 == 0 ? 1 : ACROSS - col;
                see(&access);
            }
        }
    }
    stop();
}

/* --- What a task waits for --- */

static _Atomic int has_read, has_written;

static int run_read(const filch_call *call)
{
    (void)call;
    int written = atomic_load(&has_written);
    atomic_store(&has_read, 1);
    return written == 2 ? 0 : 1;
}

static int run_write(const filch_call *call)
{
    (void)call;
    atomic_fetch_add(&has_written, 1);
    return 0;
}

static int run_write_last(const filch_call *call)
{
    (void)call;
    return fixture_await(&has_read, 1) ? 0 : 1;
}

/* The reader of tile 1 and one element on either side waits for the writers of tiles 0 and 2. The
 * writer of tile 3 ends behind it. */
static void only_tiles_of_the_halo_are_waited_for(void **state)
{
    static const filch_halo one = {.rows_before = 1, .rows_after = 1};
    (void)state;
    for (int kind = 0; kind < 2; ++kind) {
        start("host:2");
        has_read = has_written = 0;
        filch_codelet *writes = fixture_codelet(runtime, "write", run_write, 0);
        filch_codelet *last = fixture_codelet(runtime, "last", run_write_last, 0);
        filch_codelet *reads = fixture_codelet(runtime, "read", run_read, 0);
        filch_graph *graph =
            fixture_graph(runtime, kind == 0 ? FILCH_GRAPH_CLOSED : FILCH_GRAPH_OPEN);
        filch_job *job = NULL;
        if (kind == 1) {
            assert_ok(filch_graph_submit(graph, NULL, &job));
        }
        for (uint32_t tile = 0; tile < 4; ++tile) {
            const filch_access access = FILCH_W(vector, tile, 0);
            if (tile != 1) {
                fixture_add(graph, tile == 3 ? last : writes, NULL, &access, 1);
            }
        }
        const filch_access access = FILCH_R_HALO(vector, 1, 0, &one);
        fixture_add(graph, reads, NULL, &access, 1);
        if (kind == 0) {
            assert_ok(filch_graph_submit(graph, NULL, &job));
        } else {
            assert_ok(filch_graph_close(graph));
        }
        assert_ok(filch_job_wait(job, PATIENCE));
        assert_ok(filch_job_release(job));
        assert_ok(filch_graph_destroy(graph));
        stop();
    }
}

/* --- What is refused --- */

static void refuse(filch_graph *graph, const filch_access *accesses, uint32_t count,
                   filch_status status, const char *text)
{
    filch_task_desc task = FILCH_TASK_DESC_INIT;
    task.codelet = nothing;
    task.accesses = accesses;
    task.access_count = count;
    assert_status(filch_graph_add(graph, &task, NULL), status);
    filch_error error = fixture_error(runtime);
    if (strstr(error.text, text) == NULL) {
        fail_msg("'%s' is not in '%s'", text, error.text);
    }
}

static void halos_that_make_no_sense_are_refused(void **state)
{
    static const filch_access_mode modes[] = {FILCH_WRITE, FILCH_READWRITE, FILCH_COMMUTE,
                                              FILCH_REDUCE};
    static const filch_halo one = {1, 1, 1, 1}, none;
    (void)state;
    start("host:1");
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    assert_ok(filch_data_reduction(matrix, nothing, nothing));
    filch_access access = FILCH_R_HALO(matrix, 1, 1, &one);
    for (size_t i = 0; i < sizeof modes / sizeof *modes; ++i) {
        access.mode = modes[i];
        access.halo = i % 2 == 0 ? &one : &none;
        refuse(graph, &access, 1, FILCH_INVALID_ARGUMENT, "access 0: only what is read has a halo");
    }
    access = (filch_access){.mode = FILCH_SCRATCH, .bytes = 8, .halo = &one};
    refuse(graph, &access, 1, FILCH_INVALID_ARGUMENT, "access 0: scratch needs bytes");
    access = (filch_access)FILCH_R_HALO(matrix, DOWN, 0, &one);
    refuse(graph, &access, 1, FILCH_INVALID_ARGUMENT, "tile (4, 0) is outside the 4 x 3 tiles");
    access = (filch_access)FILCH_R_HALO(matrix, 1, 1, &one);
    access.rows = DOWN;
    refuse(graph, &access, 1, FILCH_INVALID_ARGUMENT,
           "the block of 4 x 1 tiles (cols is 0, which means 1) from tile (1, 1)");
    const filch_access both[] = {FILCH_RW(matrix, 2, 2), FILCH_R_HALO(matrix, 1, 1, &one)};
    refuse(graph, both, 2, FILCH_INVALID_ARGUMENT,
           "accesses 0 and 1 name tile (2, 2) of 'matrix', one to write it");
    assert_ok(filch_graph_destroy(graph));
    stop();
}

static void temporaries_and_sparse_matrices_have_no_halos(void **state)
{
    static const filch_halo one = {.rows_before = 1, .rows_after = 1};
    static const int32_t pointers[] = {0, 1, 2}, columns[] = {0, 1};
    static const double values[] = {1, 2};
    (void)state;
    start("host:1");
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    filch_data_desc desc = FILCH_DATA_DESC_INIT;
    filch_data *temporary = NULL, *sparse = NULL;
    desc.element = sizeof(double);
    desc.rows = VECTOR;
    desc.tile_rows = TILE;
    desc.flags = FILCH_DATA_TEMPORARY;
    desc.label = "t";
    assert_ok(filch_data_create(runtime, &desc, &temporary));
    for (uint32_t tile = 0; tile < 2; ++tile) {
        const filch_access access = FILCH_W(temporary, tile, 0);
        fixture_add(graph, nothing, NULL, &access, 1);
    }
    filch_access access = FILCH_R_HALO(temporary, 0, 0, &one);
    refuse(graph, &access, 1, FILCH_UNSUPPORTED, "access 0: a halo of several tiles of 't'");
    filch_csr_desc matrix_desc = FILCH_CSR_DESC_INIT;
    matrix_desc.rows = matrix_desc.cols = matrix_desc.nnz = 2;
    matrix_desc.pointers = pointers;
    matrix_desc.columns = columns;
    matrix_desc.values = values;
    matrix_desc.element = sizeof *values;
    matrix_desc.blocks = 2;
    assert_ok(filch_csr_create(runtime, &matrix_desc, &sparse));
    access = (filch_access)FILCH_R_HALO(sparse, 0, 0, &one);
    refuse(graph, &access, 1, FILCH_INVALID_ARGUMENT, "has a halo");
    assert_ok(filch_graph_destroy(graph));
    stop();
}

/* A refused task leaves no trace, wherever memory ends. */
static void memory_may_end_anywhere(void **state)
{
    static const filch_halo wide = {.rows_before = 12, .rows_after = 1};
    (void)state;
    for (int64_t n = 1;; ++n) {
        start("host:1");
        filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
        const filch_access write = FILCH_W(vector, 1, 0), read = FILCH_R_HALO(vector, 2, 0, &wide);
        filch_task_desc task = FILCH_TASK_DESC_INIT;
        task.codelet = nothing;
        task.access_count = 1;
        task.accesses = &write;
        assert_ok(filch_graph_add(graph, &task, NULL));
        task.accesses = &read;
        fixture_memory_fail_after(&memory, n);
        filch_status status = filch_graph_add(graph, &task, NULL);
        bool has_failed = memory.fail_at != 0 && memory.calls >= memory.fail_at;
        fixture_memory_fail_after(&memory, 0);
        assert_int_equal(status, has_failed ? FILCH_OUT_OF_MEMORY : FILCH_OK);
        assert_ok(fixture_run(graph));
        assert_ok(filch_graph_destroy(graph));
        stop();
        if (!has_failed) {
            break;
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_view_has_the_halo_within_the_handle),
        cmocka_unit_test(only_tiles_of_the_halo_are_waited_for),
        cmocka_unit_test(halos_that_make_no_sense_are_refused),
        cmocka_unit_test(temporaries_and_sparse_matrices_have_no_halos),
        cmocka_unit_test(memory_may_end_anywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
