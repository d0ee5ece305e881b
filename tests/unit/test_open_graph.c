/* SPDX-License-Identifier: Apache-2.0 */
/* Open graphs: tasks added while others run, by anybody; memory used again; failure; gates. */
#define _GNU_SOURCE
#include "fixture.h"
#include "patience.h"

#include <pthread.h>
#include <string.h>

static fixture_memory memory;
static filch_runtime *runtime;
static filch_codelet *nothing, *bump, *code, *gate;
static _Atomic int gate_open, gate_entered, ran;
static int64_t cells[64];

/* Adds its argument to every cell that it writes; the order of tasks is in the arithmetic. */
static int bump_cells(const filch_call *call)
{
    uint64_t x = (uint64_t) * (const int64_t *)call->args;
    for (uint32_t i = 0; i < call->view_count; ++i) {
        int64_t *cell = call->views[i].ptr;
        *cell = (int64_t)((uint64_t)*cell * 3 + x);
    }
    return 0;
}

static int return_code(const filch_call *call)
{
    ++ran;
    return *(const int *)call->args;
}

static int wait_at_gate(const filch_call *call)
{
    (void)call;
    ++gate_entered;
    return fixture_await(&gate_open, 1) ? 0 : 99;
}

static int set_up(void **state)
{
    (void)state;
    fixture_memory_init(&memory);
    runtime = fixture_runtime("host:3", FILCH_DRIVE_THREADS, &memory);
    nothing = fixture_codelet(runtime, "nothing", fixture_nothing, 0);
    bump = fixture_codelet(runtime, "bump", bump_cells, sizeof(int64_t));
    code = fixture_codelet(runtime, "code", return_code, sizeof(int));
    gate = fixture_codelet(runtime, "gate", wait_at_gate, 0);
    gate_open = gate_entered = ran = 0;
    memset(cells, 0, sizeof cells);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    gate_open = 1;
    assert_ok(filch_runtime_drain(runtime, -1));
    assert_ok(filch_runtime_destroy(runtime));
    assert_int_equal(memory.bytes, 0);
    return 0;
}

static filch_job *open_job(filch_graph *graph)
{
    filch_job *job = NULL;
    assert_ok(filch_graph_submit(graph, NULL, &job));
    return job;
}

static void finish(filch_graph *graph, filch_job *job, filch_status expected)
{
    assert_ok(filch_graph_close(graph));
    assert_status(filch_job_wait(job, -1), expected);
    assert_ok(filch_job_release(job));
    assert_ok(filch_graph_destroy(graph));
}

static void states_are_kept_to(void **state)
{
    (void)state;
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_OPEN);
    filch_task_desc task = FILCH_TASK_DESC_INIT;
    filch_task a, b;
    task.codelet = nothing;
    assert_status(filch_graph_add(graph, &task, NULL), FILCH_WRONG_STATE); /* not submitted */
    assert_status(filch_graph_close(graph), FILCH_WRONG_STATE);
    assert_status(filch_graph_seal(graph), FILCH_WRONG_STATE);
    filch_job *job = open_job(graph);
    assert_status(filch_graph_submit(graph, NULL, NULL), FILCH_WRONG_STATE);
    assert_status(filch_graph_destroy(graph), FILCH_BUSY);
    assert_status(filch_runtime_destroy(runtime), FILCH_BUSY);
    assert_ok(filch_graph_add(graph, &task, &a));
    assert_ok(filch_graph_add(graph, &task, &b));
    assert_status(filch_graph_edge(graph, a, b), FILCH_WRONG_STATE);
    assert_status(filch_graph_seal(graph), FILCH_WRONG_STATE);
    assert_status(filch_job_wait(job, 0.005), FILCH_TIMEOUT); /* until it is closed */
    assert_status(filch_runtime_drain(runtime, 0.005), FILCH_TIMEOUT);
    assert_ok(filch_graph_close(graph));
    assert_status(filch_graph_close(graph), FILCH_WRONG_STATE);
    assert_status(filch_graph_add(graph, &task, NULL), FILCH_WRONG_STATE);
    assert_ok(filch_job_wait(job, -1));
    assert_status(filch_graph_submit(graph, NULL, NULL), FILCH_WRONG_STATE); /* runs once */
    filch_job_info info = {.size = sizeof info};
    assert_ok(filch_job_stats(job, &info, NULL, 0));
    assert_int_equal(info.total, 2);
    assert_int_equal(info.done, 2);
    assert_ok(filch_job_release(job));
    assert_ok(filch_graph_destroy(graph));
    /* Never submitted, and submitted but empty. */
    assert_ok(filch_graph_destroy(fixture_graph(runtime, FILCH_GRAPH_OPEN)));
    graph = fixture_graph(runtime, FILCH_GRAPH_OPEN);
    finish(graph, open_job(graph), FILCH_OK);
}

static void program_order_holds_while_tasks_run(void **state)
{
    (void)state;
    filch_data *data = fixture_vector(runtime, cells, 8, 16, 1);
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_OPEN);
    filch_job *job = open_job(graph);
    int64_t expected[16] = {0};
    uint64_t seed = 3;
    for (int64_t i = 0; i < 20000; ++i) {
        filch_access accesses[3];
        uint32_t count = 0, tiles[3];
        for (int k = 0; k < 3; ++k) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            uint32_t tile = (uint32_t)(seed >> 40) % 16;
            bool is_new = true;
            for (uint32_t j = 0; j < count; ++j) {
                is_new = is_new && tiles[j] != tile;
            }
            if (is_new) {
                tiles[count] = tile;
                accesses[count++] = fixture_access(data, tile, FILCH_READWRITE);
            }
        }
        fixture_add(graph, bump, &i, accesses, count);
        for (uint32_t j = 0; j < count; ++j) {
            expected[tiles[j]] = (int64_t)((uint64_t)expected[tiles[j]] * 3 + (uint64_t)i);
        }
    }
    finish(graph, job, FILCH_OK);
    assert_memory_equal(cells, expected, sizeof expected);
}

/* --- From many threads and from running tasks --- */

typedef struct adder {
    filch_graph *graph;
    filch_data *data;
    uint32_t tile;
    int failures;
} adder;

static void *add_many(void *user)
{
    adder *a = user;
    for (int i = 0; i < 3000; ++i) {
        int64_t one = 1;
        filch_access access = fixture_access(a->data, a->tile, FILCH_READWRITE);
        filch_task_desc desc = FILCH_TASK_DESC_INIT;
        desc.codelet = bump;
        desc.args = &one;
        desc.accesses = &access;
        desc.access_count = 1;
        a->failures += filch_graph_add(a->graph, &desc, NULL) != FILCH_OK;
    }
    return NULL;
}

static void threads_add_side_by_side(void **state)
{
    (void)state;
    filch_data *data = fixture_vector(runtime, cells, 8, 64, 1);
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_OPEN);
    filch_job *job = open_job(graph);
    adder adders[4];
    pthread_t threads[4];
    for (uint32_t i = 0; i < 4; ++i) {
        adders[i] = (adder){graph, data, i, 0};
        assert_int_equal(pthread_create(&threads[i], NULL, add_many, &adders[i]), 0);
    }
    for (int i = 0; i < 4; ++i) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_int_equal(adders[i].failures, 0);
    }
    filch_job_info info = {.size = sizeof info};
    assert_ok(filch_graph_close(graph));
    assert_ok(filch_job_wait(job, -1));
    assert_ok(filch_job_stats(job, &info, NULL, 0));
    assert_int_equal(info.total, 12000);
    assert_int_equal(info.done, 12000);
    uint64_t expected = 0;
    for (int i = 0; i < 3000; ++i) {
        expected = expected * 3 + 1;
    }
    for (int i = 0; i < 4; ++i) {
        assert_int_equal((uint64_t)cells[i], expected);
    }
    assert_ok(filch_job_release(job));
}

typedef struct growth {
    filch_graph *graph;
    filch_codelet *self;
    uint32_t depth;
} growth;

/* Adds two of itself, until the depth is used up; the last of all to finish closes the graph. */
static _Atomic int64_t unfinished;

static int grow(const filch_call *call)
{
    growth g = *(const growth *)call->args;
    filch_task_desc desc = FILCH_TASK_DESC_INIT;
    int failed = 0;
    desc.codelet = g.self;
    desc.args = &g;
    if (g.depth != 0) {
        --g.depth;
        unfinished += 2;
        failed = filch_graph_add(g.graph, &desc, NULL) != FILCH_OK ||
                 filch_graph_add(g.graph, &desc, NULL) != FILCH_OK;
    }
    if (--unfinished == 0) {
        failed += filch_graph_close(g.graph) != FILCH_OK;
    }
    return failed;
}

static void tasks_add_tasks_and_close_their_own_graph(void **state)
{
    (void)state;
    for (int drive = FILCH_DRIVE_THREADS; drive <= FILCH_DRIVE_POLL; ++drive) {
        filch_runtime *rt = fixture_runtime("host:2", (filch_drive)drive, NULL);
        filch_graph *graph = fixture_graph(rt, FILCH_GRAPH_OPEN);
        filch_job *job = open_job(graph);
        growth g = {graph, fixture_codelet(rt, "grow", grow, sizeof g), 11};
        filch_job_info info = {.size = sizeof info};
        unfinished = 1;
        fixture_add(graph, g.self, &g, NULL, 0);
        assert_ok(filch_job_wait(job, -1));
        assert_ok(filch_job_stats(job, &info, NULL, 0));
        assert_int_equal(info.done, (1 << 12) - 1);
        assert_ok(filch_job_release(job));
        assert_ok(filch_runtime_destroy(rt));
    }
}

/* --- Memory --- */

static void memory_is_bounded_over_many_tasks(void **state)
{
    (void)state;
    static int64_t args = 1;
    filch_runtime *rt = fixture_runtime("host:1", FILCH_DRIVE_POLL, &memory);
    filch_codelet *its = fixture_codelet(rt, "bump", bump_cells, sizeof(int64_t));
    filch_data *data = fixture_vector(rt, cells, 8, 8, 1);
    filch_graph *graph = fixture_graph(rt, FILCH_GRAPH_OPEN);
    filch_job *job = open_job(graph);
    filch_usage usage = {.size = sizeof usage};
    int64_t bytes = 0, calls = 0;
#ifdef __SANITIZE_THREAD__
    const int total = 100000, window = 1000; /* a tenth, at a tenth of the speed */
#else
    const int total = 1000000, window = 1000;
#endif
    for (int i = 0; i < total; ++i) {
        /* Written by some and read by more, one tile by readers only. */
        filch_access accesses[2] = {
            fixture_access(data, (uint32_t)i % 7, i % 3 == 0 ? FILCH_READWRITE : FILCH_READ),
            fixture_access(data, 7, FILCH_READ)};
        fixture_add(graph, its, &args, accesses, 2);
        if (i % window == window - 1) {
            assert_ok(filch_runtime_poll(rt, -1, NULL));
            if (i == 20 * window - 1) {
                bytes = memory.bytes;
                calls = memory.calls;
                assert_ok(filch_runtime_usage(rt, &usage));
                assert_true(usage.tasks_live == 0);
            }
        }
    }
    assert_int_equal(memory.bytes, bytes);
    assert_int_equal(memory.calls, calls);
    finish(graph, job, FILCH_OK);
    assert_ok(filch_runtime_destroy(rt));
}

static void live_tasks_are_counted(void **state)
{
    (void)state;
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_OPEN);
    filch_data *data = fixture_vector(runtime, cells, 8, 8, 8);
    filch_job *job = open_job(graph);
    filch_usage usage = {.size = sizeof usage};
    filch_access access = fixture_access(data, 0, FILCH_READWRITE);
    for (int i = 0; i < 10; ++i) {
        fixture_add(graph, gate, NULL, &access, 1);
    }
    assert_true(fixture_await(&gate_entered, 1));
    assert_ok(filch_runtime_usage(runtime, &usage));
    assert_int_equal(usage.tasks_live, 10);
    assert_int_equal(usage.jobs_running, 1);
    assert_true(usage.task_bytes > 0 && usage.task_bytes < usage.host_bytes);
    gate_open = 1;
    finish(graph, job, FILCH_OK);
    assert_ok(filch_runtime_usage(runtime, &usage));
    assert_int_equal(usage.tasks_live, 0);
    assert_int_equal(usage.jobs_running, 0);
}

/* --- Failure --- */

static void dependants_added_later_are_skipped(void **state)
{
    (void)state;
    filch_data *data = fixture_vector(runtime, cells, 8, 64, 1);
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_OPEN);
    filch_job *job = open_job(graph);
    filch_job_info info = {.size = sizeof info};
    filch_access bad[2] = {fixture_access(data, 0, FILCH_WRITE),
                           fixture_access(data, 1, FILCH_READ)};
    int failing = 5, fine = 0;
    fixture_add(graph, code, &failing, bad, 2);
    do {
        assert_ok(filch_job_stats(job, &info, NULL, 0));
    } while (info.failed == 0);
    /* Retired for long: the memory of its task may be another's by now. */
    for (int i = 0; i < 2000; ++i) {
        fixture_add(graph, code, &fine, NULL, 0);
    }
    filch_access reads = fixture_access(data, 0, FILCH_READ);
    filch_access chain[2] = {reads, fixture_access(data, 2, FILCH_WRITE)};
    filch_access end = fixture_access(data, 2, FILCH_READ);
    filch_access over = fixture_access(data, 1, FILCH_WRITE); /* waits for the failed reader */
    filch_access apart = fixture_access(data, 3, FILCH_READWRITE);
    fixture_add(graph, code, &fine, chain, 2);
    fixture_add(graph, code, &fine, &end, 1);
    fixture_add(graph, code, &fine, &over, 1);
    fixture_add(graph, code, &fine, &apart, 1);
    assert_ok(filch_graph_close(graph));
    assert_status(filch_job_wait(job, -1), FILCH_TASK_FAILED);
    assert_ok(filch_job_stats(job, &info, NULL, 0));
    assert_int_equal(info.failed, 1);
    assert_int_equal(info.skipped, 3);
    assert_int_equal(info.done, 2001);
    assert_int_equal(ran, 2002);
    filch_error error = FILCH_ERROR_INIT;
    assert_ok(filch_job_error(job, &error));
    assert_int_equal(error.native_code, 5);
    assert_string_equal(error.label, "code");
    assert_ok(filch_job_release(job));
    assert_ok(filch_graph_destroy(graph));
}

static void a_failed_reader_among_many_is_remembered(void **state)
{
    (void)state;
    filch_data *data = fixture_vector(runtime, cells, 8, 64, 64);
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_OPEN);
    filch_job *job = open_job(graph);
    filch_job_info info = {.size = sizeof info};
    filch_access reads = fixture_access(data, 0, FILCH_READ);
    filch_access writes = fixture_access(data, 0, FILCH_WRITE);
    for (int i = 0; i < 5000; ++i) { /* enough that retired readers are dropped on the way */
        int value = i == 10 ? 3 : 0;
        fixture_add(graph, code, &value, &reads, 1);
    }
    int fine = 0;
    fixture_add(graph, code, &fine, &writes, 1);
    assert_ok(filch_graph_close(graph));
    assert_status(filch_job_wait(job, -1), FILCH_TASK_FAILED);
    assert_ok(filch_job_stats(job, &info, NULL, 0));
    assert_int_equal(info.done, 4999);
    assert_int_equal(info.skipped, 1);
    assert_ok(filch_job_release(job));
}

static void cancelling_refuses_more(void **state)
{
    (void)state;
    filch_data *data = fixture_vector(runtime, cells, 8, 64, 64);
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_OPEN);
    filch_job *job = open_job(graph);
    filch_access access = fixture_access(data, 0, FILCH_READWRITE);
    filch_task_desc desc = FILCH_TASK_DESC_INIT;
    int fine = 0;
    fixture_add(graph, gate, NULL, &access, 1);
    fixture_add(graph, code, &fine, &access, 1);
    assert_true(fixture_await(&gate_entered, 1));
    assert_ok(filch_job_cancel(job));
    desc.codelet = nothing;
    assert_status(filch_graph_add(graph, &desc, NULL), FILCH_WRONG_STATE);
    gate_open = 1;
    finish(graph, job, FILCH_CANCELLED);
    assert_int_equal(ran, 0);
}

/* --- Handles shared with other jobs --- */

static void an_earlier_job_is_waited_for(void **state)
{
    (void)state;
    filch_data *data = fixture_vector(runtime, cells, 8, 64, 1);
    filch_data *apart = fixture_vector(runtime, cells + 32, 8, 32, 1);
    filch_graph *earlier = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    filch_access first = fixture_access(data, 0, FILCH_READWRITE);
    fixture_add(earlier, gate, NULL, &first, 1);
    filch_job *before = open_job(earlier);
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_OPEN);
    filch_job *job = open_job(graph);
    int fine = 0;
    for (uint32_t i = 0; i < 50; ++i) { /* any tile of the handle, to read or to write */
        filch_access access = fixture_access(data, i, i % 2 ? FILCH_READ : FILCH_WRITE);
        fixture_add(graph, code, &fine, &access, 1);
    }
    for (uint32_t i = 0; i < 10; ++i) {
        filch_access access = fixture_access(apart, i, FILCH_WRITE);
        fixture_add(graph, code, &fine, &access, 1);
    }
    assert_true(fixture_await(&ran, 10)); /* those go ahead */
    assert_true(fixture_await(&gate_entered, 1));
    assert_status(filch_job_wait(job, 0.005), FILCH_TIMEOUT);
    assert_int_equal(ran, 10);
    gate_open = 1;
    assert_ok(filch_graph_close(graph));
    assert_ok(filch_job_wait(job, -1));
    filch_job_info info = {.size = sizeof info};
    assert_ok(filch_job_stats(job, &info, NULL, 0));
    assert_int_equal(info.total, 60); /* what stands for the earlier job is not a task */
    assert_int_equal(info.done, 60);
    assert_int_equal(info.skipped, 0);
    assert_int_equal(ran, 60);
    assert_ok(filch_job_wait(before, -1));
    assert_ok(filch_job_release(before));
    assert_ok(filch_job_release(job));
}

static void a_later_job_waits_until_it_is_over(void **state)
{
    (void)state;
    filch_data *data = fixture_vector(runtime, cells, 8, 64, 1);
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_OPEN);
    filch_graph *later = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    filch_access access = fixture_access(data, 5, FILCH_READ);
    filch_access change = fixture_access(data, 6, FILCH_READWRITE);
    int fine = 0;
    fixture_add(later, code, &fine, &access, 1);
    filch_job *job = open_job(graph);
    fixture_add(graph, nothing, NULL, &change, 1);
    filch_job *after = open_job(later);
    assert_status(filch_job_wait(after, 0.005), FILCH_TIMEOUT);
    assert_int_equal(ran, 0);
    assert_status(filch_data_destroy(data), FILCH_BUSY);
    finish(graph, job, FILCH_OK);
    assert_ok(filch_job_wait(after, -1));
    assert_int_equal(ran, 1);
    assert_ok(filch_job_release(after));
    assert_ok(filch_graph_destroy(later));
    assert_ok(filch_data_destroy(data));
}

static void cancelled_behind_a_gate_it_still_ends(void **state)
{
    (void)state;
    filch_data *data = fixture_vector(runtime, cells, 8, 64, 1);
    filch_graph *earlier = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    filch_access first = fixture_access(data, 0, FILCH_READWRITE);
    fixture_add(earlier, gate, NULL, &first, 1);
    filch_job *before = open_job(earlier);
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_OPEN);
    filch_job *job = open_job(graph);
    int fine = 0;
    fixture_add(graph, code, &fine, &first, 1);
    assert_ok(filch_job_cancel(job));
    assert_ok(filch_graph_close(graph));
    gate_open = 1;
    assert_status(filch_job_wait(job, -1), FILCH_CANCELLED);
    assert_int_equal(ran, 0);
    assert_ok(filch_job_release(job));
    assert_ok(filch_job_wait(before, -1));
    assert_ok(filch_job_release(before));
}

/* --- Priorities --- */

static int order[16], order_count;

static int note_order(const filch_call *call)
{
    order[order_count++] = *(const int *)call->args;
    return 0;
}

static void the_callers_priorities_order_one_worker(void **state)
{
    (void)state;
    filch_runtime *rt = fixture_runtime("host:1", FILCH_DRIVE_POLL, NULL);
    filch_codelet *its = fixture_codelet(rt, "note", note_order, sizeof(int));
    filch_graph_desc desc = FILCH_GRAPH_DESC_INIT;
    filch_graph *graph = NULL;
    desc.kind = FILCH_GRAPH_OPEN;
    desc.priorities = FILCH_PRIORITIES_CALLER;
    desc.priority_min = -100;
    desc.priority_max = 100;
    assert_ok(filch_graph_create(rt, &desc, &graph));
    filch_job *job = open_job(graph);
    static const int32_t priorities[] = {0, -100, 100, 50, -60, INT32_MIN, INT32_MAX};
    static const int classes[] = {2, 0, 4, 3, 1, 0, 4}; /* beyond the range: clamped */
    for (int i = 0; i < 7; ++i) {
        filch_task_desc task = FILCH_TASK_DESC_INIT;
        task.codelet = its;
        task.args = &classes[i];
        task.priority = priorities[i];
        assert_ok(filch_graph_add(graph, &task, NULL));
    }
    order_count = 0;
    finish(graph, job, FILCH_OK);
    assert_int_equal(order_count, 7);
    for (int i = 1; i < 7; ++i) {
        assert_true(order[i] <= order[i - 1]);
    }
    assert_ok(filch_runtime_destroy(rt));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

/* While tasks run that use those from before. */
static void handles_come_while_tasks_run(void **state)
{
    (void)state;
    enum { HANDLES = 500 };
    static int64_t many[HANDLES];
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_OPEN);
    filch_job *job = NULL;
    const int64_t one = 1;
    memset(many, 0, sizeof many);
    assert_ok(filch_graph_submit(graph, NULL, &job));
    for (int i = 0; i < HANDLES; ++i) {
        const filch_access access = {.data = fixture_vector(runtime, &many[i], sizeof one, 1, 1),
                                     .mode = FILCH_READWRITE};
        for (int k = 0; k < 4; ++k) {
            fixture_add(graph, bump, &one, &access, 1);
        }
    }
    assert_ok(filch_graph_close(graph));
    assert_ok(filch_job_wait(job, PATIENCE));
    assert_ok(filch_job_release(job));
    for (int i = 0; i < HANDLES; ++i) {
        assert_int_equal(many[i], 40); /* (((1) * 3 + 1) * 3 + 1) * 3 + 1 */
    }
    assert_ok(filch_graph_destroy(graph));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(states_are_kept_to),
        TEST(program_order_holds_while_tasks_run),
        TEST(threads_add_side_by_side),
        TEST(tasks_add_tasks_and_close_their_own_graph),
        TEST(memory_is_bounded_over_many_tasks),
        TEST(live_tasks_are_counted),
        TEST(dependants_added_later_are_skipped),
        TEST(a_failed_reader_among_many_is_remembered),
        TEST(cancelling_refuses_more),
        TEST(an_earlier_job_is_waited_for),
        TEST(a_later_job_waits_until_it_is_over),
        TEST(cancelled_behind_a_gate_it_still_ends),
        TEST(the_callers_priorities_order_one_worker),
        TEST(handles_come_while_tasks_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
