/* SPDX-License-Identifier: Apache-2.0 */
/* Handles that graphs use in several tilings: who waits for whom, and what is refused. */
#include "fixture.h"

#include <string.h>

#include "graph/build/graph.h"
#include "patience.h"
#include "random.h"

enum { N = 8, HALF = N / 2, QUARTER = N / 4, ROWS = 12, COLS = 9, MOST = 12 };

static fixture_memory memory;
static filch_runtime *runtime;
static filch_codelet *nothing, *add, *zero, *sum;
static uint64_t x[N], y[N], field[ROWS * COLS];
static filch_data *halves, *quarters, *whole, *other;
static _Atomic int ran, may_end, add_fails;

static int run_add(const filch_call *call)
{
    uint64_t *to = call->views[0].ptr;
    for (uint64_t i = 0; i < call->views[0].rows; ++i) {
        ++to[i];
    }
    atomic_fetch_add(&ran, 1);
    return atomic_load(&add_fails);
}

static int run_zero(const filch_call *call)
{
    memset(call->views[0].ptr, 0, call->views[0].rows * sizeof(uint64_t));
    return 0;
}

static int run_sum(const filch_call *call)
{
    uint64_t *to = call->views[0].ptr;
    const uint64_t *from = call->views[1].ptr;
    for (uint64_t i = 0; i < call->views[0].rows; ++i) {
        to[i] += from[i];
    }
    return 0;
}

/* Ends when it may; fails after a while. */
static int run_held(const filch_call *call)
{
    (void)run_add(call);
    return fixture_await(&may_end, 1) ? 0 : 1;
}

static filch_data *cut(filch_data *parent, uint64_t tile, const char *label)
{
    filch_data_desc desc = FILCH_DATA_DESC_INIT;
    filch_data *made = NULL;
    desc.tile_rows = tile;
    desc.label = label;
    assert_ok(filch_data_partition(parent, &desc, &made));
    return made;
}

static void start(const char *devices)
{
    fixture_memory_init(&memory);
    runtime = fixture_runtime(devices, FILCH_DRIVE_DEFAULT, &memory);
    nothing = fixture_codelet(runtime, "nothing", fixture_nothing, 0);
    add = fixture_codelet(runtime, "add", run_add, 0);
    zero = fixture_codelet(runtime, "zero", run_zero, 0);
    sum = fixture_codelet(runtime, "sum", run_sum, 0);
    halves = fixture_vector(runtime, x, sizeof *x, N, HALF);
    other = fixture_vector(runtime, y, sizeof *y, N, HALF);
    quarters = cut(halves, QUARTER, "quarters");
    whole = cut(halves, 0, "whole");
    memset(x, 0, sizeof x);
    ran = may_end = add_fails = 0;
}

static void stop(void)
{
    assert_ok(filch_runtime_destroy(runtime));
    assert_int_equal(memory.bytes, 0);
}

static filch_task add_to(filch_graph *graph, filch_codelet *codelet, filch_data *data,
                         uint32_t tile, filch_access_mode mode)
{
    const filch_access access = {.data = data, .row = tile, .mode = mode};
    return fixture_add(graph, codelet, NULL, &access, 1);
}

static filch_status try_add(filch_graph *graph, filch_data *data)
{
    const filch_access access = {.data = data, .mode = FILCH_READ};
    filch_task_desc desc = FILCH_TASK_DESC_INIT;
    desc.codelet = nothing;
    desc.accesses = &access;
    desc.access_count = 1;
    return filch_graph_add(graph, &desc, NULL);
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

/* Tasks of one tiling, and then of the other: so many of filch's own, and edges. */
static void edges_lead_between_tiles_that_overlap(void **state)
{
    (void)state;
    start("host:1");
    static const struct {
        uint32_t readers; /* of each half, behind one that writes */
        uint32_t own, edges;
    } cases[] = {
        /* half -> its 2 quarters -> (gate) -> half */
        {0, 2, 2 * (2 + 2 + 1)},
        /* The one reader stands for the half. */
        {1, 2, 2 * (1 + 2 + 2 + 1)},
        /* half -> readers -> gate -> quarters -> gate -> half */
        {3, 4, 2 * (3 + 3 + 2 + 2 + 1)},
        {50, 4, 2 * (50 + 50 + 2 + 2 + 1)},
    };
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; ++c) {
        filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
        for (uint32_t half = 0; half < 2; ++half) {
            add_to(graph, add, halves, half, FILCH_WRITE);
            for (uint32_t i = 0; i < cases[c].readers; ++i) {
                add_to(graph, nothing, halves, half, FILCH_READ);
            }
        }
        assert_ok(filch_graph_partition(graph, halves, quarters));
        for (uint32_t quarter = 0; quarter < 4; ++quarter) {
            add_to(graph, add, quarters, quarter, FILCH_READWRITE);
        }
        assert_ok(filch_graph_unpartition(graph, halves, quarters));
        for (uint32_t half = 0; half < 2; ++half) {
            add_to(graph, add, halves, half, FILCH_READWRITE);
        }
        assert_ok(filch_graph_seal(graph));
        assert_int_equal(graph->own_count, cases[c].own);
        assert_int_equal(count_edges(graph), cases[c].edges);
        uint64_t before = x[0];
        assert_int_equal(fixture_run(graph), FILCH_OK);
        assert_int_equal(fixture_run(graph), FILCH_OK);
        for (int i = 0; i < N; ++i) {
            assert_int_equal(x[i], before + 6);
        }
        assert_ok(filch_graph_destroy(graph));
    }
    stop();
}

typedef struct tiling {
    filch_data *data;
    uint64_t row_at[MOST + 1], col_at[MOST + 1];
    uint32_t rows, cols;
} tiling;

static uint32_t random_starts(fl_random *random, uint64_t extent, uint64_t *starts, uint64_t *cuts)
{
    uint32_t count = 0;
    for (starts[0] = 0; starts[count] < extent; ++count) {
        cuts[count] = 1 + fl_random_below(random, (uint32_t)(extent - starts[count]));
        starts[count + 1] = starts[count] + cuts[count];
    }
    return count;
}

static void make_tiling(fl_random *random, filch_data *parent, tiling *made)
{
    filch_data_desc desc = FILCH_DATA_DESC_INIT;
    uint64_t heights[MOST], widths[MOST];
    made->rows = desc.row_cut_count = random_starts(random, ROWS, made->row_at, heights);
    made->cols = desc.col_cut_count = random_starts(random, COLS, made->col_at, widths);
    desc.row_cuts = heights;
    desc.col_cuts = widths;
    if (parent != NULL) {
        assert_ok(filch_data_partition(parent, &desc, &made->data));
        return;
    }
    desc.ptr = field;
    desc.element = sizeof *field;
    desc.rows = ROWS;
    desc.cols = COLS;
    assert_ok(filch_data_create(runtime, &desc, &made->data));
}

static bool share_elements(const tiling *a, uint32_t i, const tiling *b, uint32_t j)
{
    uint32_t ar = i % a->rows, ac = i / a->rows, br = j % b->rows, bc = j / b->rows;
    return a->row_at[ar] < b->row_at[br + 1] && b->row_at[br] < a->row_at[ar + 1] &&
           a->col_at[ac] < b->col_at[bc + 1] && b->col_at[bc] < a->col_at[ac + 1];
}

static bool is_own(const fl_task *task)
{
    return task->is_gate;
}

typedef struct walk {
    const fl_task *from, *to;
    bool found;
} walk;

/* Through filch's own tasks alone. */
static void look(fl_task *successor, void *user)
{
    walk *w = user;
    w->found = w->found || successor == w->to;
    if (is_own(successor) && !w->found) {
        fl_graph_each_successor(successor, look, user);
    }
}

static bool leads(const filch_graph *graph, filch_task from, filch_task to)
{
    walk w = {.to = fl_graph_task_at(graph, (uint32_t)to - 1)};
    fl_graph_each_successor(fl_graph_task_at(graph, (uint32_t)from - 1), look, &w);
    return w.found;
}

static void add_all(filch_graph *graph, const tiling *t, filch_access_mode mode, filch_task *names)
{
    for (uint32_t tile = 0; tile < t->rows * t->cols; ++tile) {
        const filch_access access = {
            .data = t->data, .row = tile % t->rows, .col = tile / t->rows, .mode = mode};
        names[tile] = fixture_add(graph, nothing, NULL, &access, 1);
    }
}

/* In whatever modes: tilings share the host's buffer. */
static void a_tile_waits_for_those_that_it_overlaps_and_no_others(void **state)
{
    static filch_task names[4][MOST * MOST];
    static const filch_access_mode modes[] = {FILCH_READ, FILCH_WRITE, FILCH_READWRITE,
                                              FILCH_COMMUTE};
    (void)state;
    for (uint64_t seed = 0; seed < 40; ++seed) {
        fl_random random;
        tiling parent, first, second;
        fl_random_init(&random, seed, 0);
        start("host:1");
        make_tiling(&random, NULL, &parent);
        make_tiling(&random, parent.data, &first);
        make_tiling(&random, parent.data, &second);
        const tiling *const phases[] = {&parent, &first, &second, &parent};
        filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
        for (int phase = 0; phase < 4; ++phase) {
            if (phase == 1 || phase == 2) {
                assert_ok(filch_graph_partition(graph, parent.data, phases[phase]->data));
            }
            add_all(graph, phases[phase], modes[fl_random_below(&random, 4)], names[phase]);
            if (phase == 1 || phase == 2) {
                assert_ok(filch_graph_unpartition(graph, parent.data, phases[phase]->data));
            }
        }
        for (int phase = 0; phase < 3; ++phase) {
            const tiling *a = phases[phase], *b = phases[phase + 1];
            for (uint32_t i = 0; i < a->rows * a->cols; ++i) {
                for (uint32_t j = 0; j < b->rows * b->cols; ++j) {
                    assert_int_equal(leads(graph, names[phase][i], names[phase + 1][j]),
                                     share_elements(a, i, b, j));
                }
            }
        }
        assert_int_equal(fixture_run(graph), FILCH_OK);
        assert_ok(filch_graph_destroy(graph));
        stop();
    }
}

/* One half is not over before a quarter of the other has run. */
static void partitioning_is_no_barrier(void **state)
{
    (void)state;
    for (int kind = FILCH_GRAPH_CLOSED; kind <= FILCH_GRAPH_OPEN; ++kind) {
        start("host:2");
        filch_codelet *held = fixture_codelet(runtime, "held", run_held, 0);
        filch_graph *graph = fixture_graph(runtime, (filch_graph_kind)kind);
        filch_job *job = NULL;
        if (kind == FILCH_GRAPH_OPEN) {
            assert_ok(filch_graph_submit(graph, NULL, &job));
        }
        add_to(graph, held, halves, 0, FILCH_READWRITE);
        add_to(graph, add, halves, 1, FILCH_READWRITE);
        assert_ok(filch_graph_partition(graph, halves, quarters));
        add_to(graph, add, quarters, 2, FILCH_READWRITE);
        add_to(graph, add, quarters, 3, FILCH_READWRITE);
        add_to(graph, add, quarters, 1, FILCH_READWRITE);
        assert_ok(filch_graph_unpartition(graph, halves, quarters));
        add_to(graph, add, halves, 1, FILCH_READWRITE);
        if (kind == FILCH_GRAPH_OPEN) {
            assert_ok(filch_graph_close(graph));
        } else {
            assert_ok(filch_graph_submit(graph, NULL, &job));
        }
        assert_true(fixture_await(&ran, 5)); /* all but what needs the one that is held */
        assert_int_equal(x[QUARTER], 1);
        atomic_store(&may_end, 1);
        assert_ok(filch_job_wait(job, PATIENCE));
        assert_ok(filch_job_release(job));
        static const uint64_t expected[] = {1, 1, 2, 2, 3, 3, 3, 3};
        assert_memory_equal(x, expected, sizeof x);
        assert_ok(filch_graph_destroy(graph));
        stop();
    }
}

static void groups_end_where_the_tiling_changes(void **state)
{
    (void)state;
    start("host:2");
    assert_ok(filch_data_reduction(halves, zero, sum));
    assert_ok(filch_data_reduction(quarters, zero, sum));
    for (int kind = FILCH_GRAPH_CLOSED; kind <= FILCH_GRAPH_OPEN; ++kind) {
        static const filch_access_mode modes[] = {FILCH_COMMUTE, FILCH_REDUCE};
        filch_graph *graph = fixture_graph(runtime, (filch_graph_kind)kind);
        filch_job *job = NULL;
        memset(x, 0, sizeof x);
        if (kind == FILCH_GRAPH_OPEN) {
            assert_ok(filch_graph_submit(graph, NULL, &job));
        }
        for (int round = 0; round < 8; ++round) {
            for (uint32_t i = 0; i < 20; ++i) {
                add_to(graph, add, halves, i % 2, modes[round % 2]);
            }
            assert_ok(filch_graph_partition(graph, halves, quarters));
            for (uint32_t i = 0; i < 20; ++i) {
                add_to(graph, add, quarters, i % 4, modes[round / 2 % 2]);
            }
            assert_ok(filch_graph_unpartition(graph, halves, quarters));
        }
        if (kind == FILCH_GRAPH_OPEN) {
            assert_ok(filch_graph_close(graph));
            assert_ok(filch_job_wait(job, PATIENCE));
            assert_ok(filch_job_release(job));
        } else {
            assert_int_equal(fixture_run(graph), FILCH_OK);
        }
        for (int i = 0; i < N; ++i) {
            assert_int_equal(x[i], 8 * (10 + 5));
        }
        assert_ok(filch_graph_destroy(graph));
    }
    stop();
}

static void what_fails_skips_what_overlaps_it(void **state)
{
    (void)state;
    for (int kind = FILCH_GRAPH_CLOSED; kind <= FILCH_GRAPH_OPEN; ++kind) {
        start("host:2");
        filch_graph *graph = fixture_graph(runtime, (filch_graph_kind)kind);
        filch_job *job = NULL;
        filch_job_info info = {.size = sizeof info};
        if (kind == FILCH_GRAPH_OPEN) {
            assert_ok(filch_graph_submit(graph, NULL, &job));
        }
        add_fails = 7;
        assert_ok(filch_graph_partition(graph, halves, quarters));
        add_to(graph, add, quarters, 1, FILCH_READWRITE);
        assert_ok(filch_graph_unpartition(graph, halves, quarters));
        add_to(graph, nothing, halves, 0, FILCH_READ);
        add_to(graph, nothing, halves, 1, FILCH_READ);
        assert_ok(filch_graph_partition(graph, halves, whole));
        add_to(graph, nothing, whole, 0, FILCH_READ);
        if (kind == FILCH_GRAPH_OPEN) {
            assert_ok(filch_graph_close(graph));
        } else {
            assert_ok(filch_graph_submit(graph, NULL, &job));
        }
        assert_status(filch_job_wait(job, PATIENCE), FILCH_TASK_FAILED);
        assert_ok(filch_job_stats(job, &info, NULL, 0));
        assert_int_equal(info.total, 4);
        assert_int_equal(info.failed, 1);
        assert_int_equal(info.skipped, 2);
        assert_int_equal(info.done, 1); /* which reads the other half */
        assert_ok(filch_job_release(job));
        assert_ok(filch_graph_destroy(graph));
        stop();
    }
}

/* --- Jobs --- */

/* Whatever both do. */
static void a_partition_is_used_as_its_parent_is(void **state)
{
    static const filch_access_mode modes[][2] = {
        {FILCH_READWRITE, FILCH_READ}, {FILCH_READ, FILCH_READWRITE}, {FILCH_READ, FILCH_READ}};
    (void)state;
    for (size_t m = 0; m < sizeof modes / sizeof modes[0]; ++m) {
        start("host:2");
        filch_codelet *held = fixture_codelet(runtime, "held", run_held, 0);
        filch_graph *parts = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
        filch_graph *parent = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
        filch_job *first = NULL, *second = NULL;
        filch_hold *hold = NULL;
        assert_ok(filch_graph_partition(parts, halves, quarters));
        add_to(parts, held, quarters, 0, modes[m][0]);
        add_to(parent, nothing, halves, 1, modes[m][1]);
        assert_ok(filch_graph_submit(parts, NULL, &first));
        assert_ok(filch_graph_submit(parent, NULL, &second));
        assert_true(fixture_await(&ran, 1));
        assert_status(filch_data_acquire(halves, FILCH_READ), FILCH_BUSY);
        assert_status(filch_data_acquire_tiles(halves, NULL, FILCH_READ, 0, &hold), FILCH_TIMEOUT);
        assert_status(filch_job_wait(second, 0.05), FILCH_TIMEOUT);
        atomic_store(&may_end, 1);
        assert_ok(filch_job_wait(first, PATIENCE));
        assert_ok(filch_job_wait(second, PATIENCE));
        assert_ok(filch_job_release(first));
        assert_ok(filch_job_release(second));
        assert_ok(filch_data_acquire(halves, FILCH_READ));
        assert_status(filch_graph_submit(parts, NULL, &first), FILCH_BUSY);
        assert_ok(filch_data_release(halves));
        assert_int_equal(fixture_run(parts), FILCH_OK);
        stop();
    }
}

/* --- What is refused --- */

static void expect_text(const char *text)
{
    filch_error error = fixture_error(runtime);
    if (strstr(error.text, text) == NULL) {
        fail_msg("'%s' lacks '%s'", error.text, text);
    }
}

static void bad_tilings_are_refused(void **state)
{
    (void)state;
    start("host:1");
    static const uint64_t cuts[] = {3, 4};
    filch_data_desc good = FILCH_DATA_DESC_INIT, desc;
    filch_data *made = NULL;
    good.tile_rows = 3;
    assert_status(filch_data_partition(NULL, &good, &made), FILCH_INVALID_HANDLE);
    assert_status(filch_data_partition(halves, NULL, &made), FILCH_INVALID_ARGUMENT);
    assert_status(filch_data_partition(halves, &good, NULL), FILCH_INVALID_ARGUMENT);
#define refused(member, value)                                                             \
    do {                                                                                   \
        desc = good;                                                                       \
        desc.member = (value);                                                             \
        assert_status(filch_data_partition(halves, &desc, &made), FILCH_INVALID_ARGUMENT); \
    } while (0)
    refused(size, 8);
    refused(ptr, x);
    refused(element, 8);
    refused(rows, N);
    refused(cols, 1);
    refused(ld, N);
    refused(flags, FILCH_DATA_MANAGED);
    refused(device, 1);
    refused(reserved, 1);
    refused(tile_rows, N + 1);
    refused(tile_cols, 2);
    refused(row_cut_count, 2);
    desc = (filch_data_desc)FILCH_DATA_DESC_INIT;
    desc.row_cuts = cuts;
    desc.row_cut_count = 2;
    assert_status(filch_data_partition(halves, &desc, &made), FILCH_INVALID_ARGUMENT);
    expect_text("add up to 7, not 8");
    assert_status(filch_data_partition(quarters, &good, &made), FILCH_UNSUPPORTED);
    desc = (filch_data_desc)FILCH_DATA_DESC_INIT;
    desc.element = desc.rows = 8;
    desc.flags = FILCH_DATA_NO_BUFFER;
    filch_data *unbacked = NULL;
    assert_ok(filch_data_create(runtime, &desc, &unbacked));
    assert_status(filch_data_partition(unbacked, &good, &made), FILCH_UNSUPPORTED);
    /* A parent of one tile, whose contents nobody touches: 2^32 tiles of one byte. */
    desc = (filch_data_desc)FILCH_DATA_DESC_INIT;
    filch_data *large = NULL;
    desc.ptr = x;
    desc.element = 1;
    desc.rows = desc.cols = 65536;
    assert_ok(filch_data_create(runtime, &desc, &large));
    desc = (filch_data_desc)FILCH_DATA_DESC_INIT;
    desc.tile_rows = desc.tile_cols = 1;
    assert_status(filch_data_partition(large, &desc, &made), FILCH_OVERFLOW);
    expect_text("65536 x 65536 tiles are 2^32 - 1 or more");
    assert_null(made);
    stop();
}

static void others_than_tasks_do_not_use_a_partition(void **state)
{
    (void)state;
    start("host:1");
    filch_hold *hold = NULL;
    filch_job *job = NULL;
    assert_status(filch_data_acquire(quarters, FILCH_READ), FILCH_UNSUPPORTED);
    expect_text("partition of");
    assert_status(filch_data_release(quarters), FILCH_WRONG_STATE);
    assert_status(filch_data_acquire_tiles(quarters, NULL, FILCH_READ, -1, &hold),
                  FILCH_UNSUPPORTED);
    filch_batch_access access = {
        .data = quarters, .mode = FILCH_READWRITE, .map = FILCH_MAP_AFFINE, .scale = 1};
    filch_batch_desc batch = FILCH_BATCH_DESC_INIT;
    batch.codelet = add;
    batch.n = N;
    batch.accesses = &access;
    batch.access_count = 1;
    assert_status(filch_batch_submit(runtime, &batch, NULL, &job), FILCH_UNSUPPORTED);
    access.data = halves;
    assert_ok(filch_batch_submit(runtime, &batch, NULL, &job));
    assert_ok(filch_job_wait(job, PATIENCE));
    assert_ok(filch_job_release(job));
    assert_status(filch_data_broadcast(quarters, NULL, NULL, &job), FILCH_UNSUPPORTED);
    stop();
}

static void a_handle_outlives_its_partitions(void **state)
{
    (void)state;
    start("host:1");
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    assert_ok(filch_graph_partition(graph, halves, quarters));
    assert_status(filch_data_destroy(halves), FILCH_BUSY);
    assert_status(filch_data_destroy(quarters), FILCH_BUSY);
    assert_ok(filch_graph_destroy(graph));
    assert_status(filch_data_destroy(halves), FILCH_BUSY);
    expect_text("has partitions");
    assert_ok(filch_data_destroy(quarters));
    assert_status(filch_data_destroy(halves), FILCH_BUSY);
    assert_ok(filch_data_destroy(whole));
    assert_ok(filch_data_destroy(halves));
    stop();
}

/* At each point one of the tilings, and nothing changes where another is asked for. */
static void one_tiling_at_a_time(void **state)
{
    (void)state;
    for (int kind = FILCH_GRAPH_CLOSED; kind <= FILCH_GRAPH_OPEN; ++kind) {
        start("host:1");
        filch_graph *graph = fixture_graph(runtime, (filch_graph_kind)kind);
        filch_job *job = NULL;
        if (kind == FILCH_GRAPH_OPEN) {
            assert_status(filch_graph_partition(graph, halves, quarters), FILCH_WRONG_STATE);
            assert_ok(filch_graph_submit(graph, NULL, &job));
            assert_ok(filch_data_acquire(halves, FILCH_READ));
            assert_status(filch_graph_partition(graph, halves, quarters), FILCH_BUSY);
            assert_ok(filch_data_release(halves));
        }
        assert_status(filch_graph_partition(NULL, halves, quarters), FILCH_INVALID_HANDLE);
        assert_status(filch_graph_partition(graph, NULL, quarters), FILCH_INVALID_HANDLE);
        assert_status(filch_graph_partition(graph, halves, NULL), FILCH_INVALID_HANDLE);
        assert_status(filch_graph_partition(graph, other, quarters), FILCH_INVALID_ARGUMENT);
        assert_status(filch_graph_partition(graph, quarters, halves), FILCH_INVALID_ARGUMENT);
        assert_status(filch_graph_unpartition(graph, halves, quarters), FILCH_WRONG_STATE);
        assert_status(try_add(graph, quarters), FILCH_WRONG_STATE);
        expect_text("as partitioned into 'quarters'");
        assert_ok(try_add(graph, halves));

        assert_ok(filch_graph_partition(graph, halves, quarters));
        assert_status(filch_graph_partition(graph, halves, quarters), FILCH_WRONG_STATE);
        assert_status(filch_graph_partition(graph, halves, whole), FILCH_WRONG_STATE);
        assert_status(filch_graph_unpartition(graph, halves, whole), FILCH_WRONG_STATE);
        assert_status(try_add(graph, halves), FILCH_WRONG_STATE);
        expect_text("as partitioned into 'quarters'");
        assert_status(try_add(graph, whole), FILCH_WRONG_STATE);
        assert_ok(try_add(graph, quarters));
        assert_ok(try_add(graph, other));

        assert_ok(filch_graph_unpartition(graph, halves, quarters));
        assert_status(filch_graph_unpartition(graph, halves, quarters), FILCH_WRONG_STATE);
        assert_status(try_add(graph, quarters), FILCH_WRONG_STATE);
        assert_ok(try_add(graph, halves));
        assert_ok(filch_graph_partition(graph, halves, whole));
        assert_ok(try_add(graph, whole));
        if (kind == FILCH_GRAPH_OPEN) {
            assert_ok(filch_graph_close(graph));
            assert_status(filch_graph_unpartition(graph, halves, whole), FILCH_WRONG_STATE);
            assert_ok(filch_job_wait(job, PATIENCE));
            assert_ok(filch_job_release(job));
        } else {
            assert_ok(filch_graph_seal(graph));
            assert_status(filch_graph_unpartition(graph, halves, whole), FILCH_WRONG_STATE);
            assert_status(filch_graph_partition(graph, other, whole), FILCH_INVALID_ARGUMENT);
            assert_int_equal(fixture_run(graph), FILCH_OK);
        }
        assert_ok(filch_graph_destroy(graph));
        stop();
    }
}

static void handles_of_other_runtimes_are_refused(void **state)
{
    (void)state;
    start("host:1");
    filch_runtime *second = fixture_runtime("host:1", FILCH_DRIVE_POLL, NULL);
    filch_graph *graph = fixture_graph(second, FILCH_GRAPH_CLOSED);
    assert_status(filch_graph_partition(graph, halves, quarters), FILCH_WRONG_RUNTIME);
    assert_status(filch_graph_unpartition(graph, halves, quarters), FILCH_WRONG_RUNTIME);
    assert_ok(filch_runtime_destroy(second));
    stop();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(edges_lead_between_tiles_that_overlap),
        cmocka_unit_test(a_tile_waits_for_those_that_it_overlaps_and_no_others),
        cmocka_unit_test(partitioning_is_no_barrier),
        cmocka_unit_test(groups_end_where_the_tiling_changes),
        cmocka_unit_test(what_fails_skips_what_overlaps_it),
        cmocka_unit_test(a_partition_is_used_as_its_parent_is),
        cmocka_unit_test(bad_tilings_are_refused),
        cmocka_unit_test(others_than_tasks_do_not_use_a_partition),
        cmocka_unit_test(a_handle_outlives_its_partitions),
        cmocka_unit_test(one_tiling_at_a_time),
        cmocka_unit_test(handles_of_other_runtimes_are_refused),
    };
    return cmocka_run_group_tests_name("split", tests, NULL, NULL);
}
