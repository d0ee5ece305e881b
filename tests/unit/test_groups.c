/* SPDX-License-Identifier: Apache-2.0 */
/* Tasks that commute and tasks that reduce: edges, turns, partial results, failures. */
#include "fixture.h"

#include <stdlib.h>
#include <string.h>

#include "graph/build/graph.h"
#include "patience.h"

enum { N = 8, FAIL_CODE = 77 };

static fixture_memory memory;
static filch_runtime *runtime;
static filch_codelet *nothing, *add, *zero, *sum;
static uint64_t x[N], y[N], z[N];
static filch_data *hx, *hy, *hz;
static _Atomic int zeroes, sums, inside, overlaps, ran, zero_fails, sum_fails, add_fails;
static _Atomic uint64_t left_at; /* what a reducer that waited found changed; 0: nothing */

/* add(to): adds one, unless told to fail. */
static int run_add(const filch_call *call)
{
    uint64_t *to = call->views[0].ptr;
    if (atomic_fetch_add(&inside, 1) != 0) {
        atomic_fetch_add(&overlaps, 1);
    }
    for (uint64_t i = 0; i < call->views[0].rows; ++i) {
        ++to[i];
    }
    atomic_fetch_sub(&inside, 1);
    atomic_fetch_add(&ran, 1);
    return atomic_load(&add_fails);
}

static int run_zero(const filch_call *call)
{
    memset(call->views[0].ptr, 0, call->views[0].rows * sizeof(uint64_t));
    atomic_fetch_add(&zeroes, 1);
    return atomic_load(&zero_fails);
}

static int run_sum(const filch_call *call)
{
    uint64_t *to = call->views[0].ptr;
    const uint64_t *from = call->views[1].ptr;
    for (uint64_t i = 0; i < call->views[0].rows; ++i) {
        to[i] += from[i];
    }
    atomic_fetch_add(&sums, 1);
    return atomic_load(&sum_fails);
}

static void start(const char *devices, filch_drive drive)
{
    fixture_memory_init(&memory);
    runtime = fixture_runtime(devices, drive, &memory);
    nothing = fixture_codelet(runtime, "nothing", fixture_nothing, 0);
    add = fixture_codelet(runtime, "add", run_add, 0);
    zero = fixture_codelet(runtime, "zero", run_zero, 0);
    sum = fixture_codelet(runtime, "sum", run_sum, 0);
    hx = fixture_vector(runtime, x, sizeof *x, N, N / 2);
    hy = fixture_vector(runtime, y, sizeof *y, N, N / 2);
    hz = fixture_vector(runtime, z, sizeof *z, N, N / 2);
    assert_ok(filch_data_reduction(hx, zero, sum));
    for (int i = 0; i < N; ++i) {
        x[i] = y[i] = z[i] = 100;
    }
    zeroes = sums = inside = overlaps = ran = zero_fails = sum_fails = add_fails = 0;
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

static void add_some(filch_graph *graph, filch_access_mode mode, int count)
{
    for (int i = 0; i < count; ++i) {
        add_to(graph, mode == FILCH_READ ? nothing : add, hx, 0, mode);
    }
}

static void expect(const uint64_t *at, uint64_t value)
{
    for (int i = 0; i < N / 2; ++i) {
        assert_int_equal(at[i], value);
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

/* As many edges as accesses, and one more side for each gate. */
static void groups_are_joined_by_gates(void **state)
{
    static const struct {
        filch_access_mode modes[3];
        uint32_t counts[3], own, edges;
    } cases[] = {
        /* readers -> gate -> members -> gate -> readers */
        {{FILCH_READ, FILCH_COMMUTE, FILCH_READ}, {30, 40, 50}, 2, 160},
        {{FILCH_READ, FILCH_COMMUTE, FILCH_WRITE}, {30, 40, 1}, 1, 110},
        {{FILCH_WRITE, FILCH_COMMUTE, FILCH_WRITE}, {1, 40, 1}, 0, 80},
        {{FILCH_WRITE, FILCH_COMMUTE, FILCH_READ}, {1, 1, 50}, 0, 51},
        {{FILCH_READ, FILCH_COMMUTE, FILCH_READ}, {1, 40, 1}, 1, 81},
        /* start -> members */
        {{FILCH_COMMUTE, FILCH_READWRITE, FILCH_COMMUTE}, {40, 1, 30}, 1, 110},
        /* members -> what combines; a root needs nothing before it */
        {{FILCH_REDUCE, FILCH_READ, FILCH_REDUCE}, {40, 30, 20}, 3, 40 + 30 + 30 + 20 + 20},
        {{FILCH_REDUCE, FILCH_WRITE, FILCH_REDUCE}, {40, 1, 1}, 2, 40 + 1 + 1 + 1},
        {{FILCH_REDUCE, FILCH_COMMUTE, FILCH_REDUCE}, {40, 30, 20}, 3, 40 + 30 + 30 + 20 + 20},
    };
    (void)state;
    start("host:2", FILCH_DRIVE_DEFAULT);
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; ++c) {
        filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
        uint32_t tasks = 0;
        uint64_t before = x[0], adds = 0;
        for (int i = 0; i < 3; ++i) {
            add_some(graph, cases[c].modes[i], (int)cases[c].counts[i]);
            tasks += cases[c].counts[i];
            adds += cases[c].modes[i] != FILCH_READ ? cases[c].counts[i] : 0;
        }
        assert_ok(filch_graph_seal(graph));
        assert_int_equal(graph->own_count, cases[c].own);
        assert_int_equal(graph->task_count, tasks + cases[c].own);
        assert_int_equal(count_edges(graph), cases[c].edges);
        assert_int_equal(fixture_run(graph), FILCH_OK);
        assert_int_equal(fixture_run(graph), FILCH_OK);
        expect(x, before + 2 * adds);
        assert_ok(filch_graph_destroy(graph));
    }
    stop();
}

static void nobody_can_name_a_task_of_filchs_own(void **state)
{
    (void)state;
    start("host:1", FILCH_DRIVE_POLL);
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    add_some(graph, FILCH_READ, 3);
    filch_task member = add_to(graph, add, hx, 0, FILCH_COMMUTE);
    assert_int_equal(graph->own_count, 1);
    assert_status(filch_graph_edge(graph, member - 1, member), FILCH_INVALID_ARGUMENT);
    assert_ok(filch_graph_destroy(graph));
    stop();
}

/* --- Turns --- */

/* Ends when another task has run, which needs a worker. */
static int run_until_other(const filch_call *call)
{
    (void)run_add(call);
    return fixture_await(&ran, 2) ? 0 : 1;
}

static void a_task_that_waits_for_its_turn_holds_no_worker(void **state)
{
    (void)state;
    start("host:2", FILCH_DRIVE_DEFAULT);
    filch_codelet *until = fixture_codelet(runtime, "until", run_until_other, 0);
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    for (int i = 0; i < 4; ++i) {
        add_to(graph, until, hx, 0, FILCH_COMMUTE);
    }
    add_to(graph, add, hy, 0, FILCH_READWRITE);
    assert_int_equal(fixture_run(graph), FILCH_OK);
    expect(x, 104);
    assert_ok(filch_graph_destroy(graph));
    stop();
}

/* Adds to both; overlaps where another one is at one of them. */
static int run_both(const filch_call *call)
{
    for (int v = 0; v < 2; ++v) {
        uint64_t *to = call->views[v].ptr;
        uint64_t seen = to[0];
        for (volatile int i = 0; i < 200; ++i) {
        }
        to[0] = seen + 1;
    }
    return 0;
}

/* Rings of tasks that name their two tiles in either order. */
static void turns_on_several_tiles_do_not_lock_up(void **state)
{
    (void)state;
    start("host:2", FILCH_DRIVE_DEFAULT);
    filch_codelet *both = fixture_codelet(runtime, "both", run_both, 0);
    filch_data *const ring[] = {hx, hy, hz};
    for (int kind = FILCH_GRAPH_CLOSED; kind <= FILCH_GRAPH_OPEN; ++kind) {
        filch_graph *graph = fixture_graph(runtime, (filch_graph_kind)kind);
        filch_job *job = NULL;
        x[0] = y[0] = z[0] = 0;
        if (kind == FILCH_GRAPH_OPEN) {
            assert_ok(filch_graph_submit(graph, NULL, &job));
        }
        for (int i = 0; i < 3000; ++i) {
            filch_data *a = ring[i % 3], *b = ring[(i + 1 + i % 2) % 3];
            const filch_access accesses[] = {{.data = a, .mode = FILCH_COMMUTE},
                                             {.data = b, .mode = FILCH_COMMUTE}};
            fixture_add(graph, both, NULL, accesses, 2);
        }
        if (kind == FILCH_GRAPH_OPEN) {
            assert_ok(filch_graph_close(graph));
            assert_ok(filch_job_wait(job, PATIENCE));
            assert_ok(filch_job_release(job));
        } else {
            assert_int_equal(fixture_run(graph), FILCH_OK);
        }
        assert_int_equal(x[0] + y[0] + z[0], 6000);
        assert_ok(filch_graph_destroy(graph));
    }
    stop();
}

static void one_that_fails_gives_its_turn_on(void **state)
{
    (void)state;
    start("host:2", FILCH_DRIVE_DEFAULT);
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    add_some(graph, FILCH_COMMUTE, 10);
    add_some(graph, FILCH_READ, 3);
    add_fails = FAIL_CODE;
    filch_job *job = NULL;
    filch_job_info info = {.size = sizeof info};
    assert_ok(filch_graph_submit(graph, NULL, &job));
    assert_status(filch_job_wait(job, PATIENCE), FILCH_TASK_FAILED);
    assert_ok(filch_job_stats(job, &info, NULL, 0));
    assert_int_equal(info.total, 13);
    assert_int_equal(info.failed, 10);
    assert_int_equal(info.skipped, 3); /* through the gate */
    assert_ok(filch_job_release(job));
    add_fails = 0;
    assert_int_equal(fixture_run(graph), FILCH_OK);
    assert_ok(filch_graph_destroy(graph));
    stop();
}

/* --- Partial results --- */

static void each_device_begins_once_and_is_combined_once(void **state)
{
    (void)state;
    start("host:2", FILCH_DRIVE_DEFAULT);
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    add_some(graph, FILCH_REDUCE, 200);
    add_to(graph, nothing, hx, 0, FILCH_READ);
    add_some(graph, FILCH_REDUCE, 100);
    for (int run = 1; run <= 20; ++run) {
        filch_job *job = NULL;
        filch_job_info info = {.size = sizeof info};
        assert_ok(filch_graph_submit(graph, NULL, &job));
        assert_ok(filch_job_wait(job, PATIENCE));
        assert_ok(filch_job_stats(job, &info, NULL, 0));
        assert_int_equal(info.total, 301);
        assert_int_equal(info.done, 301);
        assert_ok(filch_job_release(job));
        expect(x, 100 + 300 * (uint64_t)run);
        assert_int_equal(zeroes, sums);
        assert_in_range(zeroes, 2 * run, 4 * run);
    }
    assert_ok(filch_graph_destroy(graph));
    stop();
}

/* Waits for a job that is behind another one: others run meanwhile, but none on its partial result.
 */
static int run_waiting(const filch_call *call)
{
    const uint64_t *to = call->views[0].ptr;
    uint64_t before = to[0];
    filch_graph *inner = NULL;
    filch_job *job = NULL;
    filch_access access = {.data = hz, .mode = FILCH_READ};
    filch_task_desc desc = FILCH_TASK_DESC_INIT;
    desc.codelet = nothing;
    desc.accesses = &access;
    desc.access_count = 1;
    if (filch_graph_create(call->runtime, NULL, &inner) != FILCH_OK ||
        filch_graph_add(inner, &desc, NULL) != FILCH_OK ||
        filch_graph_submit(inner, NULL, &job) != FILCH_OK ||
        filch_job_wait(job, PATIENCE) != FILCH_OK) {
        return 1;
    }
    filch_job_release(job);
    filch_graph_destroy(inner);
    if (to[0] != before) {
        atomic_store(&left_at, to[0]);
    }
    return run_add(call);
}

static void a_partial_result_is_one_tasks_at_a_time(void **state)
{
    (void)state;
    start("host:1", FILCH_DRIVE_POLL);
    filch_codelet *waiting = fixture_codelet(runtime, "waiting", run_waiting, 0);
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    filch_graph *before = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    add_to(graph, waiting, hx, 0, FILCH_REDUCE);
    for (int i = 0; i < 20; ++i) {
        add_to(graph, add, hx, 0, FILCH_REDUCE);
    }
    add_to(before, add, hz, 0, FILCH_READWRITE);
    left_at = 0;
    for (int run = 1; run <= 5; ++run) {
        filch_job *job = NULL, *first = NULL;
        assert_ok(filch_graph_submit(graph, NULL, &job));
        assert_ok(filch_graph_submit(before, NULL, &first));
        assert_ok(filch_job_wait(job, PATIENCE));
        assert_ok(filch_job_wait(first, PATIENCE));
        assert_ok(filch_job_release(job));
        assert_ok(filch_job_release(first));
        expect(x, 100 + 21 * (uint64_t)run);
    }
    assert_int_equal(left_at, 0);
    assert_ok(filch_graph_destroy(graph));
    assert_ok(filch_graph_destroy(before));
    stop();
}

static void expect_failure(filch_graph *graph, const char *name)
{
    filch_job *job = NULL;
    filch_error error = FILCH_ERROR_INIT;
    assert_ok(filch_graph_submit(graph, NULL, &job));
    assert_status(filch_job_wait(job, PATIENCE), FILCH_TASK_FAILED);
    assert_ok(filch_job_error(job, &error));
    assert_int_equal(error.native_code, FAIL_CODE);
    assert_string_equal(error.label, name);
    assert_ok(filch_job_release(job));
}

static void what_fails_in_a_reduction_fails_the_job(void **state)
{
    (void)state;
    start("host:2", FILCH_DRIVE_DEFAULT);
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    add_some(graph, FILCH_REDUCE, 20);
    add_to(graph, add, hx, 0, FILCH_READWRITE);
    zero_fails = FAIL_CODE;
    expect_failure(graph, "zero");
    assert_int_equal(ran, 0);
    zero_fails = 0;
    add_fails = FAIL_CODE;
    expect_failure(graph, "add");
    assert_int_equal(ran, 20);
    assert_int_equal(sums, 0);
    expect(x, 100); /* nothing was combined */
    add_fails = 0;
    sum_fails = FAIL_CODE;
    expect_failure(graph, "sum");
    assert_int_equal(ran, 40);
    sum_fails = 0;
    expect(&x[N / 2], 100);
    for (int i = 0; i < N; ++i) {
        x[i] = 100;
    }
    assert_int_equal(fixture_run(graph), FILCH_OK); /* nothing is left of all that */
    expect(x, 121);
    assert_ok(filch_graph_destroy(graph));
    stop();
}

static void an_open_graph_is_combined_when_it_is_closed(void **state)
{
    (void)state;
    start("host:2", FILCH_DRIVE_DEFAULT);
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_OPEN);
    filch_job *job = NULL;
    filch_job_info info = {.size = sizeof info};
    assert_ok(filch_graph_submit(graph, NULL, &job));
    for (int round = 0; round < 50; ++round) {
        add_some(graph, FILCH_REDUCE, 20);
        add_some(graph, FILCH_COMMUTE, 20);
        add_some(graph, FILCH_READ, 2);
    }
    add_some(graph, FILCH_REDUCE, 20);
    assert_ok(filch_graph_close(graph));
    assert_ok(filch_job_wait(job, PATIENCE));
    assert_ok(filch_job_stats(job, &info, NULL, 0));
    assert_int_equal(info.total, 50 * 42 + 20);
    assert_int_equal(info.done, 50 * 42 + 20);
    assert_ok(filch_job_release(job));
    expect(x, 100 + 50 * 40 + 20);
    assert_ok(filch_graph_destroy(graph));
    stop();
}

/* --- Bad input --- */

static void expect_refusal(filch_graph *graph, filch_codelet *codelet, const filch_access *accesses,
                           uint32_t count, filch_status status, const char *word)
{
    filch_task_desc desc = FILCH_TASK_DESC_INIT;
    desc.codelet = codelet;
    desc.accesses = accesses;
    desc.access_count = count;
    desc.label = "wanted";
    assert_status(filch_graph_add(graph, &desc, NULL), status);
    filch_error error = fixture_error(runtime);
    assert_string_equal(error.label, "wanted");
    assert_non_null(strstr(error.text, word));
    assert_int_equal(graph->task_count, 0);
}

static void bad_accesses_are_refused(void **state)
{
    (void)state;
    start("host:1", FILCH_DRIVE_POLL);
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    static const filch_access_mode others[] = {FILCH_READ, FILCH_WRITE, FILCH_READWRITE,
                                               FILCH_COMMUTE, FILCH_REDUCE};
    for (size_t i = 0; i < 5; ++i) {
        const filch_access pair[] = {{.data = hx, .mode = others[i]},
                                     {.data = hx, .mode = FILCH_COMMUTE}};
        expect_refusal(graph, add, pair, 2, FILCH_INVALID_ARGUMENT, "tile (0, 0)");
        const filch_access turned[] = {{.data = hx, .mode = FILCH_REDUCE},
                                       {.data = hx, .mode = others[i]}};
        expect_refusal(graph, add, turned, 2, FILCH_INVALID_ARGUMENT, "tile (0, 0)");
    }
    for (int mode = 5; mode < 20; ++mode) {
        const filch_access odd = {.data = hx, .mode = (filch_access_mode)mode};
        if (mode != FILCH_COMMUTE && mode != FILCH_REDUCE) {
            expect_refusal(graph, add, &odd, 1, FILCH_INVALID_ARGUMENT, "unknown mode");
        }
    }
    const filch_access unsaid = {.data = hy, .mode = FILCH_REDUCE};
    expect_refusal(graph, add, &unsaid, 1, FILCH_WRONG_STATE, "filch_data_reduction");
    assert_ok(filch_graph_destroy(graph));

    filch_batch_access whole = {.data = hx, .mode = FILCH_COMMUTE, .scale = 1};
    filch_batch_desc batch = FILCH_BATCH_DESC_INIT;
    batch.codelet = add;
    batch.n = N;
    batch.accesses = &whole;
    batch.access_count = 1;
    assert_status(filch_batch_submit(runtime, &batch, NULL, NULL), FILCH_INVALID_ARGUMENT);
    assert_non_null(strstr(fixture_error(runtime).text, "only tasks of graphs"));
    whole.mode = FILCH_REDUCE;
    assert_status(filch_batch_submit(runtime, &batch, NULL, NULL), FILCH_INVALID_ARGUMENT);
    stop();
}

static void codelets_of_a_reduction_are_checked(void **state)
{
    (void)state;
    start("host:1", FILCH_DRIVE_POLL);
    filch_codelet *with_args = fixture_codelet(runtime, "with", fixture_nothing, 8);
    assert_status(filch_data_reduction(NULL, zero, sum), FILCH_INVALID_HANDLE);
    assert_status(filch_data_reduction(hy, zero, NULL), FILCH_INVALID_ARGUMENT);
    assert_status(filch_data_reduction(hy, NULL, sum), FILCH_INVALID_ARGUMENT);
    assert_status(filch_data_reduction(hy, with_args, sum), FILCH_INVALID_ARGUMENT);
    assert_non_null(strstr(fixture_error(runtime).text, "with"));
    assert_status(filch_data_reduction(hy, zero, with_args), FILCH_INVALID_ARGUMENT);
    filch_runtime *other = fixture_runtime("host:1", FILCH_DRIVE_POLL, NULL);
    filch_codelet *foreign = fixture_codelet(other, "foreign", fixture_nothing, 0);
    assert_status(filch_data_reduction(hy, foreign, sum), FILCH_WRONG_RUNTIME);
    assert_ok(filch_runtime_destroy(other));
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    add_some(graph, FILCH_REDUCE, 1);
    assert_status(filch_data_reduction(hx, zero, sum), FILCH_BUSY);
    assert_ok(filch_graph_destroy(graph));
    assert_ok(filch_data_reduction(hx, NULL, NULL));
    stop();
}

/* --- Memory --- */

/* Everything that can fail: nothing, the right answer or an error that says so; and no leak. */
static filch_status build_and_run(filch_graph_kind kind, int64_t fail_after)
{
    filch_graph *graph = fixture_graph(runtime, kind);
    filch_status status = FILCH_OK;
    filch_job *job = NULL;
    if (kind == FILCH_GRAPH_OPEN) {
        assert_ok(filch_graph_submit(graph, NULL, &job));
    }
    static const filch_access_mode modes[] = {FILCH_READ,    FILCH_READ,    FILCH_COMMUTE,
                                              FILCH_COMMUTE, FILCH_READ,    FILCH_REDUCE,
                                              FILCH_REDUCE,  FILCH_COMMUTE, FILCH_REDUCE};
    fixture_memory_fail_after(&memory, fail_after);
    for (int i = 0; i < 90 && status == FILCH_OK; ++i) {
        const filch_access access = {.data = hx, .mode = modes[i / 10]};
        filch_task_desc desc = FILCH_TASK_DESC_INIT;
        desc.codelet = modes[i / 10] == FILCH_READ ? nothing : add;
        desc.accesses = &access;
        desc.access_count = 1;
        status = filch_graph_add(graph, &desc, NULL);
    }
    if (kind == FILCH_GRAPH_OPEN) {
        filch_status closed = filch_graph_close(graph);
        if (closed != FILCH_OK) {
            assert_int_equal(closed, FILCH_OUT_OF_MEMORY);
            assert_ok(filch_graph_close(graph)); /* it failed once */
        }
    } else if (status == FILCH_OK) {
        status = filch_graph_submit(graph, NULL, &job);
    }
    if (job != NULL) {
        filch_status done = filch_job_wait(job, PATIENCE);
        status = status == FILCH_OK ? done : status;
        assert_ok(filch_job_release(job));
    }
    fixture_memory_fail_after(&memory, 0);
    assert_ok(filch_graph_destroy(graph));
    return status;
}

static void no_memory_at_any_allocation(void **state)
{
    (void)state;
    for (int kind = FILCH_GRAPH_CLOSED; kind <= FILCH_GRAPH_OPEN; ++kind) {
        int failures = 0;
        bool is_through = false;
        for (int64_t n = 1; n < 400 && !is_through; ++n) {
            start("host:1", FILCH_DRIVE_POLL);
            int64_t before = memory.calls;
            filch_status status = build_and_run((filch_graph_kind)kind, n);
            is_through = memory.calls - before < n;
            failures += status != FILCH_OK;
            if (status == FILCH_OK) {
                expect(x, 160);
            } else {
                assert_true(status == FILCH_OUT_OF_MEMORY || status == FILCH_TASK_FAILED);
            }
            stop();
        }
        assert_true(is_through);
        assert_true(failures > 3);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(groups_are_joined_by_gates),
        cmocka_unit_test(nobody_can_name_a_task_of_filchs_own),
        cmocka_unit_test(a_task_that_waits_for_its_turn_holds_no_worker),
        cmocka_unit_test(turns_on_several_tiles_do_not_lock_up),
        cmocka_unit_test(one_that_fails_gives_its_turn_on),
        cmocka_unit_test(each_device_begins_once_and_is_combined_once),
        cmocka_unit_test(a_partial_result_is_one_tasks_at_a_time),
        cmocka_unit_test(what_fails_in_a_reduction_fails_the_job),
        cmocka_unit_test(an_open_graph_is_combined_when_it_is_closed),
        cmocka_unit_test(bad_accesses_are_refused),
        cmocka_unit_test(codelets_of_a_reduction_are_checked),
        cmocka_unit_test(no_memory_at_any_allocation),
    };
    return cmocka_run_group_tests_name("groups", tests, NULL, NULL);
}
