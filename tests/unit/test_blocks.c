/* SPDX-License-Identifier: Apache-2.0 */
/* Accesses to blocks of tiles: views, edges, refusals. */
#include "fixture.h"

#include <string.h>

#include "graph/build/graph.h"

enum { SIDE = 12, TILES = 40 };

static fixture_memory memory;
static filch_runtime *runtime;
static filch_codelet *nothing, *sums, *fills, *fails;
static uint64_t cells[SIDE * SIDE], line[TILES], total;
static filch_data *matrix, *vector, *other;

/* sum(block, total) */
static int run_sum(const filch_call *call)
{
    const filch_view *v = &call->views[0];
    uint64_t sum = 0;
    for (uint64_t c = 0; c < v->cols; ++c) {
        for (uint64_t r = 0; r < v->rows; ++r) {
            sum += ((const uint64_t *)v->ptr)[c * v->ld + r];
        }
    }
    *(uint64_t *)call->views[1].ptr += sum;
    return 0;
}

/* fill(block): each element becomes 100 * its column and its row, in the handle. */
static int run_fill(const filch_call *call)
{
    const filch_view *v = &call->views[0];
    for (uint64_t c = 0; c < v->cols; ++c) {
        for (uint64_t r = 0; r < v->rows; ++r) {
            ((uint64_t *)v->ptr)[c * v->ld + r] = 100 * (v->col + c) + v->row + r;
        }
    }
    return 0;
}

static int run_fail(const filch_call *call)
{
    (void)call;
    return 7;
}

static void start(const char *devices)
{
    fixture_memory_init(&memory);
    runtime = fixture_runtime(devices, FILCH_DRIVE_POLL, &memory);
    nothing = fixture_codelet(runtime, "nothing", fixture_nothing, 0);
    sums = fixture_codelet(runtime, "sum", run_sum, 0);
    fills = fixture_codelet(runtime, "fill", run_fill, 0);
    fails = fixture_codelet(runtime, "fail", run_fail, 0);
    filch_data_desc desc = FILCH_DATA_DESC_INIT;
    desc.ptr = cells;
    desc.element = sizeof *cells;
    desc.rows = 11; /* tiles of 2 rows and 3 columns, the last of 1 row and 2 columns */
    desc.cols = 11;
    desc.ld = SIDE;
    desc.tile_rows = 2;
    desc.tile_cols = 3;
    desc.label = "matrix";
    assert_ok(filch_data_create(runtime, &desc, &matrix));
    vector = fixture_vector(runtime, line, sizeof *line, TILES, 1);
    other = fixture_vector(runtime, &total, sizeof total, 1, 1);
    memset(cells, 0, sizeof cells);
    memset(line, 0, sizeof line);
    total = 0;
}

static void stop(void)
{
    assert_ok(filch_runtime_destroy(runtime));
    assert_int_equal(memory.bytes, 0);
}

static void add_one(filch_graph *graph, filch_codelet *codelet, filch_access access)
{
    fixture_add(graph, codelet, NULL, &access, 1);
}

static void add_sum(filch_graph *graph, filch_access access)
{
    const filch_access both[] = {access, FILCH_RW(other, 0, 0)};
    fixture_add(graph, sums, NULL, both, 2);
}

/* --- Views --- */

static void views_are_rectangles_of_the_handle(void **state)
{
    static const struct {
        uint32_t row, col, rows, cols;                   /* tiles */
        uint64_t first_row, rows_in, first_col, cols_in; /* elements */
    } cases[] = {
        {0, 0, FILCH_TO_END, FILCH_TO_END, 0, 11, 0, 11},
        {1, 1, 3, 2, 2, 6, 3, 6},
        {5, 3, FILCH_TO_END, FILCH_TO_END, 10, 1, 9, 2},
        {2, 0, 0, FILCH_TO_END, 4, 2, 0, 11},
        {4, 2, 2, 1, 8, 3, 6, 3},
        {3, 1, 1, 1, 6, 2, 3, 3},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        start("host:2");
        filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
        add_one(graph, fills,
                (filch_access)FILCH_BLOCK(matrix, cases[i].row, cases[i].col, cases[i].rows,
                                          cases[i].cols, FILCH_WRITE));
        add_sum(graph, (filch_access)FILCH_WHOLE(matrix, FILCH_READ));
        assert_ok(fixture_run(graph));
        uint64_t sum = 0;
        for (uint64_t c = 0; c < SIDE; ++c) {
            for (uint64_t r = 0; r < SIDE; ++r) {
                bool is_in = r - cases[i].first_row < cases[i].rows_in &&
                             c - cases[i].first_col < cases[i].cols_in;
                assert_int_equal(cells[c * SIDE + r], is_in ? 100 * c + r : 0);
                sum += cells[c * SIDE + r];
            }
        }
        assert_int_equal(total, sum);
        assert_ok(filch_graph_destroy(graph));
        stop();
    }
}

/* --- Edges --- */

static uint32_t count_edges(const filch_graph *graph)
{
    uint32_t edges = 0;
    for (uint32_t i = 0; i < graph->task_count; ++i) {
        edges += fl_graph_task_at(graph, i)->successor_count;
    }
    return edges;
}

/* Readers of all tiles between two writers of every tile: as many edges as tiles and readers, not
 * as their product. */
static void readers_share_edges(void **state)
{
    static const struct {
        uint32_t readers, own, edges;
    } cases[] = {
        {1, 0, TILES + TILES},     /* no gate for one reader */
        {2, 2, 3 * TILES + 1 + 2}, /* the first reader waits for the writers by itself */
        {50, 2, 3 * TILES + 49 + 50},
    };
    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; ++k) {
        start("host:2");
        filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
        for (uint32_t round = 0; round < 2; ++round) {
            for (uint32_t i = 0; i < TILES; ++i) {
                add_one(graph, nothing, (filch_access)FILCH_RW(vector, i, 0));
            }
            for (uint32_t i = 0; round == 0 && i < cases[k].readers; ++i) {
                add_one(graph, nothing, (filch_access)FILCH_WHOLE(vector, FILCH_READ));
            }
        }
        assert_int_equal(graph->own_count, cases[k].own);
        assert_int_equal(count_edges(graph), cases[k].edges);
        assert_ok(fixture_run(graph));
        assert_ok(filch_graph_destroy(graph));
        stop();
    }
}

/* A writer of some tile waits for the readers of blocks that have the tile, and for no others. */
static void other_tiles_do_not_wait(void **state)
{
    (void)state;
    start("host:2");
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    for (int i = 0; i < 3; ++i) {
        add_one(graph, nothing, (filch_access)FILCH_BLOCK(vector, 0, 0, 20, 1, FILCH_READ));
    }
    add_one(graph, nothing, (filch_access)FILCH_W(vector, 30, 0));
    assert_int_equal(count_edges(graph), 0);
    add_one(graph, nothing, (filch_access)FILCH_W(vector, 19, 0));
    assert_int_equal(count_edges(graph), 3 + 1);
    assert_int_equal(graph->own_count, 1);
    add_one(graph, nothing, (filch_access)FILCH_W(vector, 0, 0)); /* behind the same gate */
    assert_int_equal(count_edges(graph), 3 + 2);
    assert_ok(filch_graph_destroy(graph));
    stop();
}

/* More blocks than filch lists at a time, and small ones: edges by tile. */
static void many_blocks_and_small_ones(void **state)
{
    (void)state;
    start("host:1");
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    for (uint32_t first = 0; first < 8; ++first) {
        add_one(graph, nothing, (filch_access)FILCH_BLOCK(vector, first, 0, 20, 1, FILCH_READ));
        add_one(graph, nothing, (filch_access)FILCH_BLOCK(vector, first, 0, 3, 1, FILCH_READ));
    }
    add_one(graph, nothing, (filch_access)FILCH_WHOLE(vector, FILCH_WRITE));
    const fl_task *writer = fl_graph_task_at(graph, graph->task_count - 1);
    assert_int_equal(writer->predecessors, 16);
    assert_ok(fixture_run(graph));
    assert_ok(filch_graph_destroy(graph));
    stop();
}

/* What precedes a group of tasks that commute precedes the reader of a block, too. */
static void blocks_end_groups(void **state)
{
    (void)state;
    start("host:2");
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    for (int i = 0; i < 5; ++i) {
        add_one(graph, nothing, fixture_access(vector, 3, FILCH_COMMUTE));
    }
    for (int i = 0; i < 4; ++i) {
        add_one(graph, nothing, (filch_access)FILCH_WHOLE(vector, FILCH_READ));
    }
    for (int i = 0; i < 5; ++i) {
        add_one(graph, nothing, fixture_access(vector, 3, FILCH_COMMUTE));
    }
    /* start -> 5 -> gate -> 4 readers -> gate -> 5 */
    assert_int_equal(graph->own_count, 3);
    assert_int_equal(count_edges(graph), 5 + 5 + 4 + 4 + 5);
    assert_ok(fixture_run(graph));
    assert_ok(filch_graph_destroy(graph));
    stop();
}

/* --- Runs --- */

static void open_graphs_forget_readers(void **state)
{
    (void)state;
    start("host:2");
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_OPEN);
    filch_job *job = NULL;
    assert_ok(filch_graph_submit(graph, NULL, &job));
    for (uint64_t round = 0; round < 5; ++round) {
        add_one(graph, fills, (filch_access)FILCH_WHOLE(matrix, FILCH_WRITE));
        for (int i = 0; i < 300; ++i) {
            add_sum(graph, (filch_access)FILCH_WHOLE(matrix, FILCH_READ));
            if (i % 50 == 0) {
                bool worked = true;
                while (worked) {
                    assert_ok(filch_runtime_poll(runtime, 0, &worked));
                }
            }
        }
    }
    assert_ok(filch_graph_close(graph));
    assert_ok(filch_job_wait(job, -1));
    assert_ok(filch_job_release(job));
    assert_int_equal(total, 1500 * (100 * 55 * 11 + 55 * 11));
    assert_ok(filch_graph_destroy(graph));
    stop();
}

static void failures_pass_through_blocks(void **state)
{
    (void)state;
    for (int is_open = 0; is_open < 2; ++is_open) {
        start("host:2");
        filch_graph *graph =
            fixture_graph(runtime, is_open != 0 ? FILCH_GRAPH_OPEN : FILCH_GRAPH_CLOSED);
        filch_job *job = NULL;
        filch_job_info info = {.size = sizeof info};
        if (is_open != 0) {
            assert_ok(filch_graph_submit(graph, NULL, &job));
        }
        add_one(graph, fails, (filch_access)FILCH_W(vector, 17, 0));
        add_one(graph, nothing, (filch_access)FILCH_W(vector, 18, 0));
        for (int i = 0; i < 3; ++i) {
            add_one(graph, nothing, (filch_access)FILCH_WHOLE(vector, FILCH_READ));
        }
        add_one(graph, nothing, (filch_access)FILCH_W(vector, 5, 0));
        assert_ok(is_open != 0 ? filch_graph_close(graph) : filch_graph_submit(graph, NULL, &job));
        assert_status(filch_job_wait(job, -1), FILCH_TASK_FAILED);
        assert_ok(filch_job_stats(job, &info, NULL, 0));
        assert_int_equal(info.total, 6);
        assert_int_equal(info.done, 1);
        assert_int_equal(info.skipped, 4);
        assert_ok(filch_job_release(job));
        assert_ok(filch_graph_destroy(graph));
        stop();
    }
}

/* Blocks of the parent before, and of the partition after, filch_graph_partition(). */
static void blocks_of_two_tilings(void **state)
{
    (void)state;
    start("host:2");
    filch_data_desc tiling = FILCH_DATA_DESC_INIT;
    filch_data *child = NULL;
    tiling.tile_rows = 3;
    tiling.tile_cols = 2;
    assert_ok(filch_data_partition(matrix, &tiling, &child));
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    add_one(graph, fills, (filch_access)FILCH_WHOLE(matrix, FILCH_WRITE));
    add_sum(graph, (filch_access)FILCH_WHOLE(matrix, FILCH_READ));
    add_sum(graph, (filch_access)FILCH_WHOLE(matrix, FILCH_READ));
    assert_ok(filch_graph_partition(graph, matrix, child));
    add_sum(graph, (filch_access)FILCH_WHOLE(child, FILCH_READ));
    add_one(graph, fills, (filch_access)FILCH_BLOCK(child, 0, 0, 2, 2, FILCH_READWRITE));
    assert_ok(filch_graph_unpartition(graph, matrix, child));
    add_sum(graph, (filch_access)FILCH_WHOLE(matrix, FILCH_READ));
    assert_ok(fixture_run(graph));
    assert_int_equal(total, 4 * (100 * 55 * 11 + 55 * 11));
    assert_ok(filch_graph_destroy(graph));
    assert_ok(filch_data_destroy(child));
    stop();
}

/* Tiles that nobody wrote, of a handle without a buffer. */
static void unwritten_tiles_are_named(void **state)
{
    (void)state;
    start("host:1");
    filch_data_desc desc = FILCH_DATA_DESC_INIT;
    filch_data *data = NULL;
    desc.element = sizeof(uint64_t);
    desc.rows = TILES;
    desc.tile_rows = 1;
    desc.flags = FILCH_DATA_NO_BUFFER;
    desc.label = "bare";
    assert_ok(filch_data_create(runtime, &desc, &data));
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    add_one(graph, fills, (filch_access)FILCH_BLOCK(data, 0, 0, 30, 1, FILCH_WRITE));
    add_sum(graph, (filch_access)FILCH_WHOLE(data, FILCH_READ));
    filch_job *job = NULL;
    assert_status(filch_graph_submit(graph, NULL, &job), FILCH_WRONG_STATE);
    assert_non_null(strstr(fixture_error(runtime).text, "tile (30, 0)"));
    assert_ok(filch_graph_destroy(graph));
    graph = fixture_graph(runtime, FILCH_GRAPH_OPEN);
    assert_ok(filch_graph_submit(graph, NULL, &job));
    add_one(graph, fills, (filch_access)FILCH_BLOCK(data, 1, 0, FILCH_TO_END, 1, FILCH_WRITE));
    filch_access access = FILCH_WHOLE(data, FILCH_READ);
    filch_task_desc task = FILCH_TASK_DESC_INIT;
    task.codelet = nothing;
    task.accesses = &access;
    task.access_count = 1;
    assert_status(filch_graph_add(graph, &task, NULL), FILCH_WRONG_STATE);
    assert_non_null(strstr(fixture_error(runtime).text, "tile (0, 0)"));
    add_one(graph, fills, (filch_access)FILCH_W(data, 0, 0));
    add_sum(graph, access);
    assert_ok(filch_graph_close(graph));
    assert_ok(filch_job_wait(job, -1));
    assert_ok(filch_job_release(job));
    assert_int_equal(total, TILES * (TILES - 1) / 2);
    assert_ok(filch_graph_destroy(graph));
    stop();
}

/* --- Mistakes --- */

static void mistakes_are_named(void **state)
{
    static const struct {
        uint32_t row, col, rows, cols;
        filch_access_mode mode;
        const char *text;
    } cases[] = {
        {0, 0, 7, 1, FILCH_READ, "access 0: the block of 7 x 1 tiles from tile (0, 0) on is not"},
        {5, 3, 1, 2, FILCH_READ, "from tile (5, 3) on is not within the 6 x 4 tiles of 'matrix'"},
        {6, 0, FILCH_TO_END, 1, FILCH_READ, "access 0: tile (6, 0) is outside the 6 x 4 tiles"},
        {0, 0, UINT32_MAX - 1, 1, FILCH_WRITE, "is not within"},
        {6, 0, 0, 0, FILCH_READ, "tile (6, 0) is outside the 6 x 4 tiles of 'matrix'"},
        {0, 0, 2, 1, FILCH_COMMUTE, "access 0: a block of 2 x 1 tiles of 'matrix' cannot commute"},
        {0, 0, 1, FILCH_TO_END, FILCH_REDUCE, "a block of 1 x 4 tiles of 'matrix' cannot reduce"},
    };
    (void)state;
    start("host:1");
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    filch_access accesses[2];
    filch_task_desc task = FILCH_TASK_DESC_INIT;
    task.codelet = nothing;
    task.accesses = accesses;
    task.access_count = 1;
    assert_ok(filch_data_reduction(matrix, nothing, nothing));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        accesses[0] = (filch_access)FILCH_BLOCK(matrix, cases[i].row, cases[i].col, cases[i].rows,
                                                cases[i].cols, cases[i].mode);
        assert_status(filch_graph_add(graph, &task, NULL), FILCH_INVALID_ARGUMENT);
        filch_error error = fixture_error(runtime);
        if (strstr(error.text, cases[i].text) == NULL) {
            fail_msg("'%s' is not in '%s'", cases[i].text, error.text);
        }
        assert_string_equal(error.label, "nothing");
    }
    accesses[0] = (filch_access){.mode = FILCH_SCRATCH, .bytes = 8, .rows = 1};
    assert_status(filch_graph_add(graph, &task, NULL), FILCH_INVALID_ARGUMENT);
    accesses[0] = (filch_access)FILCH_BLOCK(matrix, 1, 1, 3, 2, FILCH_READ);
    accesses[1] = (filch_access)FILCH_BLOCK(matrix, 3, 2, 2, 2, FILCH_READWRITE);
    task.access_count = 2;
    assert_status(filch_graph_add(graph, &task, NULL), FILCH_INVALID_ARGUMENT);
    assert_non_null(strstr(fixture_error(runtime).text,
                           "accesses 0 and 1 name tile (3, 2) of 'matrix', one to write it"));
    accesses[1].mode = FILCH_READ;
    assert_ok(filch_graph_add(graph, &task, NULL));
    accesses[1] = (filch_access)FILCH_BLOCK(matrix, 4, 1, 2, 2, FILCH_WRITE);
    assert_ok(filch_graph_add(graph, &task, NULL));
    assert_ok(filch_graph_destroy(graph));
    stop();
}

/* A refused task leaves no trace, wherever memory ends. */
static void memory_may_end_anywhere(void **state)
{
    (void)state;
    for (int64_t n = 1;; ++n) {
        start("host:1");
        filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
        const filch_access access = FILCH_WHOLE(vector, FILCH_READ);
        const filch_access both[] = {access, FILCH_RW(other, 0, 0)};
        filch_task_desc task = FILCH_TASK_DESC_INIT;
        filch_status status = FILCH_OK;
        task.codelet = sums;
        task.accesses = both;
        task.access_count = 2;
        for (uint32_t i = 0; i < TILES; ++i) {
            add_one(graph, fills, (filch_access)FILCH_W(vector, i, 0));
        }
        fixture_memory_fail_after(&memory, n);
        for (uint32_t i = 0; i < 400 && status == FILCH_OK; ++i) {
            status = filch_graph_add(graph, &task, NULL);
        }
        bool is_over = status == FILCH_OK;
        fixture_memory_fail_after(&memory, 0);
        assert_int_equal(status, is_over ? FILCH_OK : FILCH_OUT_OF_MEMORY);
        assert_ok(filch_graph_add(graph, &task, NULL));
        add_one(graph, fills, (filch_access)FILCH_W(vector, 0, 0));
        assert_ok(fixture_run(graph));
        assert_int_equal(total % (TILES * (TILES - 1) / 2), 0);
        assert_ok(filch_graph_destroy(graph));
        stop();
        if (is_over) {
            break;
        }
    }
}

/* Sealing notes the last writer of each tile where blocks are written. It may run out of memory at
 * each allocation, and is tried again. */
static void last_writers_are_noted_wherever_memory_ends(void **state)
{
    (void)state;
    bool is_over = false;
    for (int64_t n = 1; !is_over; ++n) {
        start("host:1");
        filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
        add_one(graph, fills, (filch_access)FILCH_BLOCK(vector, 1, 0, 4, 1, FILCH_WRITE));
        add_one(graph, fills, (filch_access)FILCH_W(vector, 2, 0));
        fixture_memory_fail_after(&memory, n);
        filch_status status = filch_graph_seal(graph);
        is_over = status == FILCH_OK;
        assert_status(status, is_over ? FILCH_OK : FILCH_OUT_OF_MEMORY);
        fixture_memory_fail_after(&memory, 0);
        assert_ok(filch_graph_seal(graph));
        const uint32_t *last = fl_graph_last_writers(graph, 0);
        assert_non_null(last);
        for (uint32_t tile = 0; tile < TILES; ++tile) {
            bool is_written = tile >= 1 && tile < 5;
            assert_int_equal(last[tile], tile == 2 ? 1 : is_written ? 0 : UINT32_MAX);
        }
        assert_ok(fixture_run(graph));
        assert_ok(filch_graph_destroy(graph));
        stop();
        assert_true(n > 1 || !is_over);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(views_are_rectangles_of_the_handle),
        cmocka_unit_test(readers_share_edges),
        cmocka_unit_test(other_tiles_do_not_wait),
        cmocka_unit_test(many_blocks_and_small_ones),
        cmocka_unit_test(blocks_end_groups),
        cmocka_unit_test(open_graphs_forget_readers),
        cmocka_unit_test(failures_pass_through_blocks),
        cmocka_unit_test(blocks_of_two_tilings),
        cmocka_unit_test(unwritten_tiles_are_named),
        cmocka_unit_test(mistakes_are_named),
        cmocka_unit_test(memory_may_end_anywhere),
        cmocka_unit_test(last_writers_are_noted_wherever_memory_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
