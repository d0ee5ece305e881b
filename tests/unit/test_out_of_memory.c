/* SPDX-License-Identifier: Apache-2.0 */
/* An allocator that fails at the n-th call, for every n: each scenario is repeated until a run
 * meets no failure. A refused call says OUT_OF_MEMORY and changes nothing, so it is made again and
 * the right result still comes out; in the end everything is freed. */
#define _GNU_SOURCE
#include "fixture.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MOST_CALLS 5000

static fixture_memory memory;
static int refusals; /* calls that said OUT_OF_MEMORY in this run */

/* Makes a call again, with memory, where there was none. */
#define retried(call)                                                                \
    do {                                                                             \
        filch_status first_ = (call);                                                \
        if (first_ == FILCH_OUT_OF_MEMORY) {                                         \
            ++refusals;                                                              \
            assert_true(atomic_load(&memory.calls) >= atomic_load(&memory.fail_at)); \
            first_ = (call);                                                         \
        }                                                                            \
        if (first_ != FILCH_OK) {                                                    \
            fail_msg("%s: %s", #call, filch_status_name(first_));                    \
        }                                                                            \
    } while (0)

static int64_t armed; /* the call after the runtime's creation that fails; 0: creation's own do */

static filch_runtime *create(const char *devices, filch_drive drive, uint32_t trace)
{
    filch_runtime_desc config = FILCH_RUNTIME_DESC_INIT;
    filch_error error = FILCH_ERROR_INIT;
    filch_runtime *runtime = NULL;
    config.devices = devices;
    config.drive = drive;
    config.trace = trace;
    config.allocator = &memory.allocator;
    filch_status status = filch_runtime_create(&config, &error, &runtime);
    if (status == FILCH_OUT_OF_MEMORY) {
        ++refusals;
        assert_int_equal(error.status, FILCH_OUT_OF_MEMORY);
        assert_true(error.text[0] != '\0');
        assert_null(runtime);
        assert_int_equal(memory.bytes, 0); /* nothing is left behind */
        status = filch_runtime_create(&config, &error, &runtime);
    }
    assert_ok(status);
    if (armed != 0) {
        fixture_memory_fail_after(&memory, armed);
    }
    return runtime;
}

static int64_t cells[32];

static int bump_cells(const filch_call *call)
{
    for (uint32_t i = 0; i < call->view_count; ++i) {
        if (call->views[i].element == 8) {
            int64_t *cell = call->views[i].ptr;
            *cell = (int64_t)((uint64_t)*cell * 3 + (uint64_t) * (const int64_t *)call->args);
        } else {
            memset(call->views[i].ptr, 1, call->views[i].rows);
        }
    }
    return 0;
}

static filch_codelet *make_codelet(filch_runtime *runtime)
{
    filch_codelet_desc desc = FILCH_CODELET_DESC_INIT;
    filch_codelet *codelet = NULL;
    desc.name = "bump";
    desc.host = bump_cells;
    desc.arg_size = sizeof(int64_t);
    retried(filch_codelet_create(runtime, &desc, &codelet));
    return codelet;
}

static filch_data *make_data(filch_runtime *runtime)
{
    filch_data_desc desc = FILCH_DATA_DESC_INIT;
    filch_data *data = NULL;
    memset(cells, 0, sizeof cells);
    desc.ptr = cells;
    desc.element = 8;
    desc.rows = 32;
    desc.tile_rows = 1;
    retried(filch_data_create(runtime, &desc, &data));
    return data;
}

static filch_graph *make_graph(filch_runtime *runtime, filch_graph_kind kind)
{
    filch_graph_desc desc = FILCH_GRAPH_DESC_INIT;
    filch_graph *graph = NULL;
    desc.kind = kind;
    retried(filch_graph_create(runtime, &desc, &graph));
    return graph;
}

/* The same program of tasks in every scenario; the cells tell the order. */
static void add_tasks(filch_graph *graph, filch_codelet *codelet, filch_data *data,
                      filch_task *names)
{
    for (int64_t i = 0; i < 300; ++i) {
        filch_access accesses[3] = {
            fixture_access(data, (uint32_t)(i * 7 % 20), FILCH_READWRITE),
            fixture_access(data, (uint32_t)(i * 3 % 10) + 20, FILCH_READWRITE)};
        filch_task_desc desc = FILCH_TASK_DESC_INIT;
        desc.codelet = codelet;
        desc.args = &i;
        desc.accesses = accesses;
        desc.access_count = 2;
        retried(filch_graph_add(graph, &desc, &names[i]));
    }
}

static void check_cells(int victim_order)
{
    int64_t expected[32] = {0};
    for (int round = 0; round < victim_order; ++round) {
        for (int64_t i = 0; i < 300; ++i) {
            int64_t a = i * 7 % 20, b = i * 3 % 10 + 20;
            expected[a] = (int64_t)((uint64_t)expected[a] * 3 + (uint64_t)i);
            expected[b] = (int64_t)((uint64_t)expected[b] * 3 + (uint64_t)i);
        }
    }
    assert_memory_equal(cells, expected, sizeof cells);
}

static void run_nothing(filch_drive drive)
{
    assert_ok(filch_runtime_destroy(create("host:2", drive, 1)));
}

static void run_closed(filch_drive drive)
{
    filch_runtime *runtime = create("host:2", drive, 0);
    filch_codelet *codelet = make_codelet(runtime);
    filch_data *data = make_data(runtime);
    filch_graph *graph = make_graph(runtime, FILCH_GRAPH_CLOSED);
    filch_task names[300];
    filch_job *job = NULL;
    add_tasks(graph, codelet, data, names);
    for (int i = 1; i < 300; i += 2) {
        retried(filch_graph_edge(graph, names[0], names[i]));
    }
    retried(filch_graph_seal(graph));
    for (int round = 0; round < 2; ++round) {
        retried(filch_graph_submit(graph, NULL, &job));
        assert_ok(filch_job_wait(job, -1));
        assert_ok(filch_job_release(job));
    }
    check_cells(2);
    assert_ok(filch_graph_destroy(graph));
    assert_ok(filch_data_destroy(data));
    assert_ok(filch_runtime_destroy(runtime));
}

static void run_open(filch_drive drive)
{
    filch_runtime *runtime = create("host:2", drive, 0);
    filch_codelet *codelet = make_codelet(runtime);
    filch_data *data = make_data(runtime);
    filch_graph *graph = make_graph(runtime, FILCH_GRAPH_OPEN);
    filch_task names[300];
    filch_job *job = NULL;
    retried(filch_graph_submit(graph, NULL, &job));
    add_tasks(graph, codelet, data, names);
    assert_ok(filch_graph_close(graph));
    assert_ok(filch_job_wait(job, -1));
    check_cells(1);
    assert_ok(filch_job_release(job));
    assert_ok(filch_runtime_destroy(runtime));
}

/* The cells, and every fifth by its partition. */
static void run_tilings_of(filch_drive drive, filch_graph_kind kind)
{
    filch_runtime *runtime = create("host:2", drive, 0);
    filch_codelet *codelet = make_codelet(runtime);
    filch_data *data = make_data(runtime), *fives = NULL;
    filch_graph *graph = make_graph(runtime, kind);
    filch_data_desc tiling = FILCH_DATA_DESC_INIT;
    int64_t expected[32] = {0};
    filch_job *job = NULL;
    tiling.tile_rows = 5;
    retried(filch_data_partition(data, &tiling, &fives));
    if (kind == FILCH_GRAPH_OPEN) {
        retried(filch_graph_submit(graph, NULL, &job));
    }
    for (int64_t i = 0; i < 100; ++i) {
        bool is_parent = i / 10 % 2 == 0;
        int64_t tile = is_parent ? i * 7 % 32 : i % 7,
                *cell = &expected[is_parent ? tile : 5 * tile];
        filch_access access =
            fixture_access(is_parent ? data : fives, (uint32_t)tile, FILCH_READWRITE);
        filch_task_desc desc = FILCH_TASK_DESC_INIT;
        desc.codelet = codelet;
        desc.args = &i;
        desc.accesses = &access;
        desc.access_count = 1;
        if (i % 10 == 0 && !is_parent) {
            retried(filch_graph_partition(graph, data, fives));
        } else if (i % 10 == 0 && i != 0) {
            assert_ok(filch_graph_unpartition(graph, data, fives));
        }
        retried(filch_graph_add(graph, &desc, NULL));
        *cell = (int64_t)((uint64_t)*cell * 3 + (uint64_t)i);
    }
    if (kind == FILCH_GRAPH_OPEN) {
        retried(filch_graph_close(graph));
    } else {
        retried(filch_graph_submit(graph, NULL, &job));
    }
    assert_ok(filch_job_wait(job, -1));
    assert_memory_equal(cells, expected, sizeof cells);
    assert_ok(filch_job_release(job));
    assert_ok(filch_graph_destroy(graph));
    assert_ok(filch_data_destroy(fives));
    assert_ok(filch_data_destroy(data));
    assert_ok(filch_runtime_destroy(runtime));
}

static void run_tilings(filch_drive drive)
{
    run_tilings_of(drive, FILCH_GRAPH_CLOSED);
}

static void run_open_tilings(filch_drive drive)
{
    run_tilings_of(drive, FILCH_GRAPH_OPEN);
}

static int bump_items(const filch_call *call)
{
    int64_t *to = call->views[0].ptr;
    for (uint64_t i = 0; i < call->views[0].rows; ++i) {
        to[i] += *(const int64_t *)call->args;
    }
    return call->lo <= 5 && 5 < call->hi ? 9 : 0;
}

static void run_batch(filch_drive drive)
{
    filch_runtime *runtime = create("host:2", drive, 0);
    filch_data *data = make_data(runtime);
    filch_codelet_desc body = FILCH_CODELET_DESC_INIT;
    filch_codelet *codelet = NULL;
    int64_t one = 1;
    filch_batch_access access = {
        .data = data, .mode = FILCH_READWRITE, .map = FILCH_MAP_AFFINE, .scale = 1};
    filch_batch_desc desc = FILCH_BATCH_DESC_INIT;
    filch_job *job = NULL;
    size_t count = 0;
    body.name = "items";
    body.host = bump_items;
    body.arg_size = sizeof one;
    retried(filch_codelet_create(runtime, &body, &codelet));
    desc.codelet = codelet;
    desc.args = &one;
    desc.n = 32;
    desc.accesses = &access;
    desc.access_count = 1;
    retried(filch_batch_submit(runtime, &desc, NULL, &job));
    assert_status(filch_job_wait(job, -1), FILCH_TASK_FAILED);
    for (int i = 0; i < 32; ++i) {
        assert_int_equal(cells[i], 1);
    }
    /* Which item failed may be forgotten for want of memory, and that is then said. */
    filch_status status = filch_job_items(job, NULL, 0, &count);
    refusals += status == FILCH_OUT_OF_MEMORY;
    assert_true(status == FILCH_OK || status == FILCH_OUT_OF_MEMORY);
    assert_ok(filch_job_release(job));
    assert_ok(filch_runtime_destroy(runtime));
}

/* No buffer but filch's own, tiles of unlike sizes, and tiles that the host holds meanwhile. */
static void run_unbacked(filch_drive drive)
{
    static const uint64_t cuts[] = {4, 20, 8};
    filch_runtime *runtime = create("host:2", drive, 0);
    filch_codelet *codelet = make_codelet(runtime);
    filch_data_desc desc = FILCH_DATA_DESC_INIT;
    filch_data *data = NULL;
    filch_job *job = NULL;
    filch_hold *hold = NULL;
    filch_view view;
    int64_t number = 6;
    desc.element = 8;
    desc.rows = 32;
    desc.row_cuts = cuts;
    desc.row_cut_count = 3;
    desc.flags = FILCH_DATA_NO_BUFFER;
    retried(filch_data_create(runtime, &desc, &data));
    retried(filch_data_acquire_tiles(data, NULL, FILCH_WRITE, -1, &hold));
    assert_ok(filch_data_view(data, 0, 0, &view));
    memset(view.ptr, 0, 32 * sizeof(int64_t));
    assert_ok(filch_hold_release(hold));
    filch_graph *graph = make_graph(runtime, FILCH_GRAPH_CLOSED);
    filch_access accesses[2] = {fixture_access(data, 1, FILCH_READWRITE),
                                fixture_access(data, 2, FILCH_READWRITE)};
    filch_task_desc task = FILCH_TASK_DESC_INIT;
    task.codelet = codelet;
    task.args = &number;
    task.accesses = accesses;
    task.access_count = 2;
    retried(filch_graph_add(graph, &task, NULL));
    retried(filch_graph_submit(graph, NULL, &job));
    retried(filch_data_acquire_tiles(data, NULL, FILCH_READ, -1, &hold));
    assert_ok(filch_data_view(data, 1, 0, &view));
    assert_int_equal(*(int64_t *)view.ptr, number);
    assert_ok(filch_hold_release(hold));
    assert_ok(filch_job_wait(job, -1));
    assert_ok(filch_job_release(job));
    assert_ok(filch_graph_destroy(graph));
    assert_ok(filch_data_destroy(data));
    assert_ok(filch_runtime_destroy(runtime));
}

static void run_trace(filch_drive drive)
{
    char path[] = "/tmp/filch-memory-XXXXXX";
    int descriptor = mkstemp(path);
    assert_true(descriptor >= 0);
    close(descriptor);
    filch_runtime *runtime = create("host:2", drive, 0);
    filch_codelet *codelet = make_codelet(runtime);
    filch_graph *graph = make_graph(runtime, FILCH_GRAPH_CLOSED);
    filch_task_desc desc = FILCH_TASK_DESC_INIT;
    filch_job *job = NULL;
    int64_t one = 1;
    desc.codelet = codelet;
    desc.args = &one;
    retried(filch_trace_start(runtime));
    retried(filch_graph_add(graph, &desc, NULL));
    retried(filch_graph_submit(graph, NULL, &job));
    assert_ok(filch_job_wait(job, -1));
    retried(filch_trace_write(runtime, path));
    assert_ok(filch_job_release(job));
    assert_ok(filch_runtime_destroy(runtime));
    unlink(path);
}

/* A task waits for a graph of its own; memory may run out inside too. */
static filch_codelet *inner;

static int wait_inside(const filch_call *call)
{
    filch_graph *graph;
    filch_job *job;
    filch_task_desc desc = FILCH_TASK_DESC_INIT;
    int64_t one = 1;
    filch_status status;
    desc.codelet = inner;
    desc.args = &one;
#define again(made)                                               \
    do {                                                          \
        status = (made);                                          \
        status = status == FILCH_OUT_OF_MEMORY ? (made) : status; \
        if (status != FILCH_OK) {                                 \
            return (int)status;                                   \
        }                                                         \
    } while (0)
    again(filch_graph_create(call->runtime, NULL, &graph));
    again(filch_graph_add(graph, &desc, NULL));
    again(filch_graph_submit(graph, NULL, &job));
    again(filch_job_wait(job, -1));
    again(filch_job_release(job));
    again(filch_graph_destroy(graph));
    return 0;
}

static void run_nested(filch_drive drive)
{
    filch_runtime *runtime = create("host:2", drive, 0);
    filch_codelet_desc body = FILCH_CODELET_DESC_INIT;
    filch_codelet *codelet = NULL;
    filch_task_desc desc = FILCH_TASK_DESC_INIT;
    filch_job *job = NULL;
    inner = make_codelet(runtime);
    body.name = "outer";
    body.host = wait_inside;
    retried(filch_codelet_create(runtime, &body, &codelet));
    filch_graph *graph = make_graph(runtime, FILCH_GRAPH_CLOSED);
    desc.codelet = codelet;
    for (int i = 0; i < 3; ++i) {
        retried(filch_graph_add(graph, &desc, NULL));
    }
    retried(filch_graph_submit(graph, NULL, &job));
    assert_ok(filch_job_wait(job, -1));
    assert_ok(filch_job_release(job));
    assert_ok(filch_runtime_destroy(runtime));
}

static void sweep(void (*scenario)(filch_drive drive), filch_drive drive)
{
    /* Polling makes the same calls in the same order each time, so every one of them fails once; by
     * threads, where they come in another order each time, every third serves. */
    int64_t n = 0, stride = drive == FILCH_DRIVE_POLL ? 1 : 3;
    int refused = 0;
    do {
        fixture_memory_init(&memory);
        n += stride;
        armed = scenario == run_nothing ? 0 : n;
        fixture_memory_fail_after(&memory, scenario == run_nothing ? n : 0);
        refusals = 0;
        scenario(drive);
        refused += refusals;
        assert_int_equal(memory.bytes, 0);
        assert_int_equal(memory.pieces, 0);
        assert_true(n < MOST_CALLS);
    } while (memory.calls >= memory.fail_at);
    armed = 0;
    assert_true(refused > 0); /* the sweep does reach the calls */
    assert_true(n > 5);
}

static void creation(void **state)
{
    (void)state;
    sweep(run_nothing, FILCH_DRIVE_POLL);
    sweep(run_nothing, FILCH_DRIVE_THREADS);
}

static void closed_graph(void **state)
{
    (void)state;
    sweep(run_closed, FILCH_DRIVE_POLL);
    sweep(run_closed, FILCH_DRIVE_THREADS);
}

static void open_graph(void **state)
{
    (void)state;
    sweep(run_open, FILCH_DRIVE_POLL);
    sweep(run_open, FILCH_DRIVE_THREADS);
}

static void batch(void **state)
{
    (void)state;
    sweep(run_batch, FILCH_DRIVE_POLL);
    sweep(run_batch, FILCH_DRIVE_THREADS);
}

static void unbacked(void **state)
{
    (void)state;
    sweep(run_unbacked, FILCH_DRIVE_POLL);
    sweep(run_unbacked, FILCH_DRIVE_THREADS);
}

static void tilings(void **state)
{
    (void)state;
    sweep(run_tilings, FILCH_DRIVE_POLL);
    sweep(run_tilings, FILCH_DRIVE_THREADS);
    sweep(run_open_tilings, FILCH_DRIVE_POLL);
    sweep(run_open_tilings, FILCH_DRIVE_THREADS);
}

static void trace(void **state)
{
    (void)state;
    sweep(run_trace, FILCH_DRIVE_POLL);
}

static void nested_wait(void **state)
{
    (void)state;
    sweep(run_nested, FILCH_DRIVE_POLL);
    sweep(run_nested, FILCH_DRIVE_THREADS);
}

/* All memory gone from some call on, until the caller has it back. */
static void memory_that_stays_away(void **state)
{
    (void)state;
    filch_task names[300];
    for (int drive = FILCH_DRIVE_THREADS; drive <= FILCH_DRIVE_POLL; ++drive) {
        fixture_memory_init(&memory);
        filch_runtime *runtime = create("host:2", (filch_drive)drive, 0);
        filch_codelet *codelet = make_codelet(runtime);
        filch_data *data = make_data(runtime);
        filch_graph *graph = make_graph(runtime, FILCH_GRAPH_CLOSED);
        filch_job *job = NULL;
        filch_graph *none = NULL;
        add_tasks(graph, codelet, data, names);
        memory.fail_all = 1;
        assert_status(filch_graph_seal(graph), FILCH_OUT_OF_MEMORY);
        assert_status(filch_graph_submit(graph, NULL, &job), FILCH_OUT_OF_MEMORY);
        assert_status(filch_graph_create(runtime, NULL, &none), FILCH_OUT_OF_MEMORY);
        assert_int_equal(fixture_error(runtime).status, FILCH_OUT_OF_MEMORY);
        memory.fail_all = 0;
        assert_ok(filch_graph_seal(graph));
        memory.fail_all = 1; /* a sealed graph needs none, though deques cannot grow */
        assert_ok(filch_graph_submit(graph, NULL, &job));
        assert_ok(filch_job_wait(job, -1));
        assert_ok(filch_job_release(job));
        assert_ok(filch_graph_destroy(graph));
        memory.fail_all = 0;
        check_cells(1);
        assert_ok(filch_runtime_destroy(runtime));
        assert_int_equal(memory.bytes, 0);
    }
}

static void deques_that_cannot_grow_lose_nothing(void **state)
{
    (void)state;
    static const int widths[] = {63, 64, 65, 1000};
    for (int drive = FILCH_DRIVE_THREADS; drive <= FILCH_DRIVE_POLL; ++drive) {
        for (size_t w = 0; w < 4; ++w) {
            fixture_memory_init(&memory);
            filch_runtime *runtime = create("host:2", (filch_drive)drive, 0);
            filch_codelet *nothing = fixture_codelet(runtime, "nothing", fixture_nothing, 0);
            filch_graph *graph = make_graph(runtime, FILCH_GRAPH_CLOSED);
            filch_task first = fixture_add(graph, nothing, NULL, NULL, 0);
            for (int i = 0; i < widths[w]; ++i) {
                filch_task task = fixture_add(graph, nothing, NULL, NULL, 0);
                assert_ok(filch_graph_edge(graph, first, task));
            }
            assert_ok(filch_graph_seal(graph));
            memory.fail_all = 1;
            for (int round = 0; round < 5; ++round) {
                filch_job *job = NULL;
                filch_job_info info = {.size = sizeof info};
                assert_ok(filch_graph_submit(graph, NULL, &job));
                assert_ok(filch_job_wait(job, -1));
                assert_ok(filch_job_stats(job, &info, NULL, 0));
                assert_int_equal(info.done, widths[w] + 1);
                assert_ok(filch_job_release(job));
            }
            memory.fail_all = 0;
            assert_ok(filch_runtime_destroy(runtime));
            assert_int_equal(memory.bytes, 0);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(creation),
        cmocka_unit_test(closed_graph),
        cmocka_unit_test(open_graph),
        cmocka_unit_test(batch),
        cmocka_unit_test(unbacked),
        cmocka_unit_test(tilings),
        cmocka_unit_test(trace),
        cmocka_unit_test(nested_wait),
        cmocka_unit_test(memory_that_stays_away),
        cmocka_unit_test(deques_that_cannot_grow_lose_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
