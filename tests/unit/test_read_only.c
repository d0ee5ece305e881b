/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs that promise to only read a handle: they run side by side, a write is refused by name, and
 * writers of other jobs keep their places. */
#include "fixture.h"

#include <string.h>

enum { CELLS = 4 };

static fixture_memory memory;
static filch_runtime *runtime;
static filch_codelet *adds, *meets, *sums;
static int64_t shared_cells[CELLS], own_cells[2][CELLS], other_cells[CELLS];
static filch_data *shared, *own[2], *other;
static _Atomic int arrived;

/* add(cell): 1 more. */
static int run_add(const filch_call *call)
{
    ++*(int64_t *)call->views[call->view_count - 1].ptr;
    return 0;
}

/* meet(shared, own): both graphs have such a task running before either ends. */
static int run_meet(const filch_call *call)
{
    atomic_fetch_add(&arrived, 1);
    *(int64_t *)call->views[1].ptr = *(const int64_t *)call->views[0].ptr;
    return fixture_await(&arrived, 2) ? 0 : 1;
}

/* sum(shared, own) */
static int run_sum(const filch_call *call)
{
    *(int64_t *)call->views[1].ptr += *(const int64_t *)call->views[0].ptr;
    return 0;
}

static filch_data *vector(int64_t *cells, const char *label)
{
    filch_data_desc desc = FILCH_DATA_DESC_INIT;
    filch_data *made = NULL;
    desc.ptr = cells;
    desc.element = sizeof *cells;
    desc.rows = CELLS;
    desc.tile_rows = 1;
    desc.label = label;
    assert_ok(filch_data_create(runtime, &desc, &made));
    return made;
}

static void start(const char *devices, filch_drive drive)
{
    fixture_memory_init(&memory);
    runtime = fixture_runtime(devices, drive, &memory);
    adds = fixture_codelet(runtime, "add", run_add, 0);
    meets = fixture_codelet(runtime, "meet", run_meet, 0);
    sums = fixture_codelet(runtime, "sum", run_sum, 0);
    memset(own_cells, 0, sizeof own_cells);
    for (int i = 0; i < CELLS; ++i) {
        shared_cells[i] = 10 + i;
    }
    shared = vector(shared_cells, "matrix");
    other = vector(other_cells, "other");
    own[0] = vector(own_cells[0], "x 0");
    own[1] = vector(own_cells[1], "x 1");
    atomic_store(&arrived, 0);
}

static void stop(void)
{
    assert_ok(filch_runtime_destroy(runtime));
    assert_int_equal(memory.bytes, 0);
}

static filch_graph *graph_of(filch_graph_kind kind, const char *label, filch_job **job)
{
    filch_graph_desc desc = FILCH_GRAPH_DESC_INIT;
    filch_graph *graph = NULL;
    desc.kind = kind;
    desc.label = label;
    assert_ok(filch_graph_create(runtime, &desc, &graph));
    if (kind == FILCH_GRAPH_OPEN) {
        assert_ok(filch_graph_submit(graph, NULL, job));
    }
    return graph;
}

static void end(filch_graph *graph, filch_job *job)
{
    assert_ok(filch_graph_close(graph));
    assert_ok(filch_job_wait(job, -1));
    assert_ok(filch_job_release(job));
    assert_ok(filch_graph_destroy(graph));
}

static void add_pair(filch_graph *graph, filch_codelet *codelet, filch_access first,
                     filch_access second)
{
    const filch_access accesses[] = {first, second};
    fixture_add(graph, codelet, NULL, accesses, 2);
}

static filch_status try_one(filch_graph *graph, filch_access access)
{
    filch_task_desc desc = FILCH_TASK_DESC_INIT;
    desc.codelet = adds;
    desc.accesses = &access;
    desc.access_count = 1;
    return filch_graph_add(graph, &desc, NULL);
}

static void expect_text(const char *text)
{
    filch_error error = fixture_error(runtime);
    if (strstr(error.text, text) == NULL) {
        fail_msg("'%s' in the place of '%s'", error.text, text);
    }
}

/* Two solvers with one matrix, at the same time. */
static void test_side_by_side(void **state)
{
    (void)state;
    filch_graph *graphs[2];
    filch_job *jobs[2];
    start("host:2@any", FILCH_DRIVE_THREADS);
    for (int k = 0; k < 2; ++k) {
        graphs[k] = graph_of(FILCH_GRAPH_OPEN, k == 0 ? "first" : "second", &jobs[k]);
        assert_ok(filch_graph_read_only(graphs[k], shared));
    }
    for (int k = 0; k < 2; ++k) {
        add_pair(graphs[k], meets, (filch_access)FILCH_R(shared, k, 0),
                 (filch_access)FILCH_RW(own[k], 0, 0));
    }
    for (int k = 0; k < 2; ++k) {
        end(graphs[k], jobs[k]);
        assert_int_equal(own_cells[k][0], 10 + k);
    }
    assert_int_equal(atomic_load(&arrived), 2);
    stop();
}

/* Every mode but reading is refused, and names graph and handle; the graph goes on. */
static void refuse_writes(filch_graph *graph, const char *text)
{
    const filch_access_mode modes[] = {FILCH_WRITE, FILCH_READWRITE, FILCH_COMMUTE};
    for (size_t m = 0; m < sizeof modes / sizeof *modes; ++m) {
        assert_status(try_one(graph, (filch_access)FILCH_ACCESS(shared, 1, 0, modes[m])),
                      FILCH_WRONG_STATE);
        expect_text(text);
    }
    assert_status(try_one(graph, (filch_access)FILCH_BLOCK(shared, 1, 0, 2, 1, FILCH_READWRITE)),
                  FILCH_WRONG_STATE);
    expect_text(text);
    const filch_access two[] = {FILCH_RW(other, 0, 0), FILCH_RW(shared, 0, 0)};
    filch_task_desc desc = FILCH_TASK_DESC_INIT;
    desc.codelet = adds;
    desc.accesses = two;
    desc.access_count = 2;
    assert_status(filch_graph_add(graph, &desc, NULL), FILCH_WRONG_STATE);
    expect_text("access 1: ");
    assert_ok(try_one(graph, (filch_access)FILCH_RW(own[0], 0, 0)));
    add_pair(graph, sums, (filch_access)FILCH_R(shared, 3, 0),
             (filch_access)FILCH_RW(own[0], 0, 0));
}

static void test_writes(void **state)
{
    (void)state;
    filch_job *job;
    filch_codelet *nothing;
    start("host:1@any", FILCH_DRIVE_POLL);
    nothing = fixture_codelet(runtime, "nothing", fixture_nothing, 0);
    assert_ok(filch_data_reduction(shared, nothing, nothing));
    filch_graph *graph = graph_of(FILCH_GRAPH_OPEN, "solver", &job);
    assert_ok(filch_graph_read_only(graph, shared));
    assert_ok(filch_graph_read_only(graph, shared)); /* no news */
    refuse_writes(graph, "graph 'solver' only reads 'matrix' (filch_graph_read_only)");
    assert_status(try_one(graph, (filch_access)FILCH_ACCESS(shared, 1, 0, FILCH_REDUCE)),
                  FILCH_WRONG_STATE);
    expect_text("only reads 'matrix'");
    end(graph, job);
    assert_int_equal(own_cells[0][0], 14);

    graph = graph_of(FILCH_GRAPH_CLOSED, NULL, NULL);
    assert_ok(filch_graph_read_only(graph, shared));
    refuse_writes(graph, "the graph only reads 'matrix' (filch_graph_read_only)");
    assert_ok(fixture_run(graph));
    assert_int_equal(own_cells[0][0], 28);
    assert_status(filch_graph_read_only(graph, other), FILCH_WRONG_STATE);
    expect_text("the graph is sealed");
    assert_ok(filch_graph_destroy(graph));
    assert_int_equal(shared_cells[1], 11);
    stop();
}

static void settle(void)
{
    bool worked = true;
    while (worked) {
        assert_ok(filch_runtime_poll(runtime, -1, &worked));
    }
}

/* A writer submitted earlier goes first, one submitted later waits for all readers. */
static void test_order(void **state)
{
    (void)state;
    filch_graph *graphs[2], *before, *after;
    filch_job *jobs[2], *first = NULL, *last = NULL;
    start("host:1@any", FILCH_DRIVE_POLL);
    before = graph_of(FILCH_GRAPH_CLOSED, "before", NULL);
    after = graph_of(FILCH_GRAPH_CLOSED, "after", NULL);
    assert_ok(try_one(before, (filch_access)FILCH_RW(shared, 0, 0)));
    assert_ok(try_one(after, (filch_access)FILCH_RW(shared, 0, 0)));
    assert_ok(filch_graph_submit(before, NULL, &first));
    for (int k = 0; k < 2; ++k) {
        graphs[k] = graph_of(FILCH_GRAPH_OPEN, k == 0 ? "first" : "second", &jobs[k]);
        assert_ok(filch_graph_read_only(graphs[k], shared));
        add_pair(graphs[k], sums, (filch_access)FILCH_R(shared, 0, 0),
                 (filch_access)FILCH_RW(own[k], 0, 0));
    }
    assert_ok(filch_graph_submit(after, NULL, &last));
    assert_int_equal(own_cells[0][0] + own_cells[1][0], 0);
    settle();
    assert_int_equal(filch_job_status(first), FILCH_OK);
    assert_int_equal(own_cells[0][0], 11); /* behind the writer */
    assert_int_equal(own_cells[1][0], 11);
    assert_int_equal(shared_cells[0], 11);
    end(graphs[0], jobs[0]);
    settle();
    assert_int_equal(filch_job_status(last), FILCH_NOT_READY);
    add_pair(graphs[1], sums, (filch_access)FILCH_R(shared, 0, 0),
             (filch_access)FILCH_RW(own[1], 0, 0));
    settle();
    assert_int_equal(own_cells[1][0], 22);
    end(graphs[1], jobs[1]);
    assert_ok(filch_job_wait(last, -1));
    assert_int_equal(shared_cells[0], 12);
    assert_ok(filch_job_release(first));
    assert_ok(filch_job_release(last));
    stop();
}

/* The promise alone takes the place: no task has named the handle. */
static void test_place(void **state)
{
    (void)state;
    filch_job *job, *last = NULL;
    start("host:1@any", FILCH_DRIVE_POLL);
    filch_graph *graph = graph_of(FILCH_GRAPH_OPEN, "reader", &job);
    filch_graph *writer = graph_of(FILCH_GRAPH_CLOSED, "writer", NULL);
    assert_ok(try_one(writer, (filch_access)FILCH_RW(shared, 0, 0)));
    assert_ok(filch_graph_read_only(graph, shared));
    assert_ok(filch_graph_submit(writer, NULL, &last));
    settle();
    assert_int_equal(filch_job_status(last), FILCH_NOT_READY);
    assert_int_equal(shared_cells[0], 10);
    assert_status(filch_data_destroy(shared), FILCH_BUSY);
    end(graph, job);
    assert_ok(filch_job_wait(last, -1));
    assert_int_equal(shared_cells[0], 11);
    assert_ok(filch_job_release(last));
    stop();
}

static void refuse_promise(filch_graph *graph, filch_data *data, filch_status status,
                           const char *text)
{
    assert_status(filch_graph_read_only(graph, data), status);
    expect_text(text);
}

static void test_refusals(void **state)
{
    (void)state;
    filch_job *job;
    filch_data *halves = NULL;
    filch_graph_desc open = FILCH_GRAPH_DESC_INIT;
    start("host:1@any", FILCH_DRIVE_POLL);
    filch_graph *graph = NULL;
    open.kind = FILCH_GRAPH_OPEN;
    open.label = "g";
    assert_ok(filch_graph_create(runtime, &open, &graph));
    assert_status(filch_graph_read_only(NULL, shared), FILCH_INVALID_HANDLE);
    refuse_promise(graph, NULL, FILCH_INVALID_HANDLE, "the data handle is null");
    refuse_promise(graph, shared, FILCH_WRONG_STATE,
                   "graph 'g' cannot promise to only read 'matrix': the open graph is not");
    assert_ok(filch_graph_submit(graph, NULL, &job));
    assert_ok(filch_data_acquire(shared, FILCH_READ));
    refuse_promise(graph, shared, FILCH_BUSY,
                   "the host has acquired the handle 'matrix' and not released it");
    assert_ok(filch_data_release(shared));
    assert_ok(try_one(graph, (filch_access)FILCH_RW(shared, 0, 0)));
    refuse_promise(graph, shared, FILCH_WRONG_STATE, "the graph writes it");
    end(graph, job);

    /* A graph that reads may promise later; a graph that has come to write may not. */
    graph = graph_of(FILCH_GRAPH_OPEN, "g", &job);
    add_pair(graph, sums, (filch_access)FILCH_R(shared, 0, 0),
             (filch_access)FILCH_RW(own[0], 0, 0));
    assert_ok(filch_graph_read_only(graph, shared));
    add_pair(graph, sums, (filch_access)FILCH_R(other, 0, 0), (filch_access)FILCH_RW(own[0], 0, 0));
    assert_ok(try_one(graph, (filch_access)FILCH_RW(other, 1, 0)));
    refuse_promise(graph, other, FILCH_WRONG_STATE, "the graph writes it");
    assert_ok(filch_graph_close(graph));
    refuse_promise(graph, own[1], FILCH_WRONG_STATE, "the open graph is closed");
    assert_ok(filch_job_wait(job, -1));
    assert_ok(filch_job_release(job));
    assert_ok(filch_graph_destroy(graph));

    filch_data_desc half = FILCH_DATA_DESC_INIT;
    half.tile_rows = 2;
    half.label = "halves";
    assert_ok(filch_data_partition(shared, &half, &halves));
    graph = graph_of(FILCH_GRAPH_CLOSED, "g", NULL);
    refuse_promise(graph, halves, FILCH_UNSUPPORTED, "partition");
    assert_ok(filch_graph_read_only(graph, shared));
    assert_status(filch_graph_partition(graph, shared, halves), FILCH_WRONG_STATE);
    expect_text("only reads 'matrix'");
    assert_ok(try_one(graph, (filch_access)FILCH_RW(own[0], 0, 0)));
    assert_ok(filch_graph_destroy(graph));
    graph = graph_of(FILCH_GRAPH_CLOSED, "g", NULL);
    assert_ok(filch_graph_partition(graph, shared, halves));
    refuse_promise(graph, shared, FILCH_WRONG_STATE, "partitioned");
    assert_ok(filch_graph_destroy(graph));
    stop();
}

/* Each allocation fails in turn; the end of the runtime finds what is left. */
static void test_memory(void **state)
{
    (void)state;
    const filch_graph_kind kinds[] = {FILCH_GRAPH_CLOSED, FILCH_GRAPH_OPEN};
    for (int k = 0; k < 2; ++k) {
        filch_job *job = NULL;
        int failures = 0;
        start("host:1@any", FILCH_DRIVE_POLL);
        filch_graph *graph = graph_of(kinds[k], "g", &job);
        filch_status status = FILCH_OUT_OF_MEMORY;
        for (int64_t n = 1; status != FILCH_OK; ++n) {
            fixture_memory_fail_after(&memory, n);
            status = filch_graph_read_only(graph, shared);
            failures += status != FILCH_OK;
            assert_true(status == FILCH_OK || status == FILCH_OUT_OF_MEMORY);
        }
        fixture_memory_fail_after(&memory, 0);
        assert_true(failures != 0);
        refuse_writes(graph, "graph 'g' only reads 'matrix'");
        if (kinds[k] == FILCH_GRAPH_OPEN) {
            end(graph, job);
        } else {
            assert_ok(fixture_run(graph));
        }
        assert_int_equal(own_cells[0][0], 14);
        stop();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_side_by_side), cmocka_unit_test(test_writes),
        cmocka_unit_test(test_order),        cmocka_unit_test(test_place),
        cmocka_unit_test(test_refusals),     cmocka_unit_test(test_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
