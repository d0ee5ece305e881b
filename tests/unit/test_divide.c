/* SPDX-License-Identifier: Apache-2.0 */
/* Divisible tasks on cores of the host, by the public calls: each item runs once whoever runs it,
 * what comes after waits for all, and what fails, is cancelled, waits or is polled does as a task
 * of one call would. */
#define _GNU_SOURCE
#include <string.h>
#include <time.h>

#include "fixture.h"

enum { ITEMS = 4000, GRAIN = 7, SPIN = 200, BAD_CODE = 31 };

static _Atomic uint32_t runs[ITEMS];
static _Atomic int calls, bad_calls, seen_by, nested_runs;
static _Atomic uint64_t devices; /* bit set of those that were called */
static uint64_t cells[ITEMS];

/* What a call is to do besides. */
typedef struct order {
    uint64_t items, grain; /* of the task */
    uint64_t bad;          /* this item fails */
    uint64_t stop;         /* this one cancels the job */
    uint64_t nest;         /* and this one runs and awaits other work */
    uint32_t naps;         /* calls sleep so many microseconds */
    int spin;              /* items take so long */
    filch_job **job;
} order;

#define ORDER                                                                                     \
    (order)                                                                                       \
    {                                                                                             \
        .items = ITEMS, .grain = GRAIN, .bad = ITEMS, .stop = ITEMS, .nest = ITEMS, .spin = SPIN, \
    }

static void nap(uint32_t us)
{
    struct timespec t = {.tv_nsec = (long)us * 1000};
    (void)nanosleep(&t, NULL);
}

static int count_nested(const filch_call *call)
{
    (void)call;
    atomic_fetch_add(&nested_runs, 1);
    return 0;
}

static filch_codelet *nested_codelet;

/* A batch, and a graph with a task that can be divided in its turn. */
static void run_nested(const filch_call *call)
{
    filch_batch_desc batch = FILCH_BATCH_DESC_INIT;
    filch_task_desc task = FILCH_TASK_DESC_INIT;
    filch_graph *graph = NULL;
    filch_job *job = NULL;
    batch.codelet = task.codelet = nested_codelet;
    batch.n = 50;
    task.items = 3000;
    if (filch_batch_submit(call->runtime, &batch, NULL, &job) != FILCH_OK ||
        filch_job_wait(job, -1) != FILCH_OK || filch_job_release(job) != FILCH_OK ||
        filch_graph_create(call->runtime, NULL, &graph) != FILCH_OK ||
        filch_graph_add(graph, &task, NULL) != FILCH_OK ||
        filch_graph_add(graph, &task, NULL) != FILCH_OK ||
        filch_graph_submit(graph, NULL, &job) != FILCH_OK || filch_job_wait(job, -1) != FILCH_OK ||
        filch_job_release(job) != FILCH_OK || filch_graph_destroy(graph) != FILCH_OK) {
        atomic_fetch_add(&bad_calls, 1);
    }
}

static int run_items(const filch_call *call)
{
    const order *o = call->args;
    int code = 0;
    atomic_fetch_add(&calls, 1);
    atomic_fetch_or(&devices, (uint64_t)1 << call->device);
    if (call->lo % o->grain != 0 || call->hi > o->items || call->lo >= call->hi ||
        (call->hi % o->grain != 0 && call->hi != o->items)) {
        atomic_fetch_add(&bad_calls, 1);
    }
    for (uint64_t i = call->lo; i < call->hi; ++i) {
        atomic_fetch_add(&runs[i], 1);
        if (call->view_count != 0 && call->views[0].rows == ITEMS) {
            uint64_t *to = call->views[0].ptr;
            to[i] += i; /* plain: an item is nobody else's */
        }
        for (volatile int k = 0; k < o->spin; ++k) {
        }
        code = i == o->bad ? BAD_CODE : code;
        if (i == o->stop) {
            (void)filch_job_cancel(*o->job);
        }
        if (i == o->nest) {
            run_nested(call);
        }
    }
    if (o->naps != 0) {
        nap(o->naps);
    }
    return code;
}

/* Reads all that the task before it wrote. */
static int look(const filch_call *call)
{
    const uint64_t *from = call->views[0].ptr;
    for (uint64_t i = 0; i < ITEMS; ++i) {
        if (atomic_load(&runs[i]) == 0 || from[i] % (i != 0 ? i : 1) != 0) {
            atomic_fetch_add(&bad_calls, 1);
        }
    }
    atomic_fetch_add(&seen_by, 1);
    return 0;
}

static void reset(void)
{
    for (int i = 0; i < ITEMS; ++i) {
        atomic_store(&runs[i], 0);
    }
    atomic_store(&calls, 0);
    atomic_store(&bad_calls, 0);
    atomic_store(&seen_by, 0);
    atomic_store(&nested_runs, 0);
    atomic_store(&devices, 0);
}

static void check_runs(uint32_t times)
{
    for (int i = 0; i < ITEMS; ++i) {
        assert_int_equal(atomic_load(&runs[i]), times);
    }
    assert_int_equal(atomic_load(&bad_calls), 0);
}

static filch_status add_items(filch_graph *graph, filch_codelet *codelet, const order *o,
                              const filch_access *accesses, uint32_t count, filch_task *task)
{
    filch_task_desc desc = FILCH_TASK_DESC_INIT;
    desc.codelet = codelet;
    desc.args = o;
    desc.accesses = accesses;
    desc.access_count = count;
    desc.items = o->items;
    desc.grain = o->grain;
    return filch_graph_add(graph, &desc, task);
}

static filch_runtime *open_runtime(const char *text, filch_drive drive)
{
    filch_runtime *runtime = fixture_runtime(text, drive, NULL);
    nested_codelet = fixture_codelet(runtime, "nested", count_nested, 0);
    memset(cells, 0, sizeof cells);
    reset();
    return runtime;
}

/* --- Each item once --- */

static void check_chain(const char *text, filch_drive drive, bool divides)
{
    filch_runtime *runtime = open_runtime(text, drive);
    filch_codelet *codelet = fixture_codelet(runtime, "items", run_items, sizeof(order));
    filch_codelet *looks = fixture_codelet(runtime, "look", look, 0);
    filch_data *data = fixture_vector(runtime, cells, sizeof *cells, ITEMS, ITEMS);
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    const order o = ORDER;
    filch_access write = fixture_access(data, 0, FILCH_READWRITE);
    filch_access read = fixture_access(data, 0, FILCH_READ);
    for (int i = 0; i < 3; ++i) {
        assert_ok(add_items(graph, codelet, &o, &write, 1, NULL));
        (void)fixture_add(graph, looks, NULL, &read, 1);
    }
    filch_report report = FILCH_REPORT_INIT;
    uint64_t pieces = 0;
    for (int run = 1; run <= 10; ++run) {
        filch_job *job = NULL;
        filch_job_info info = {.size = sizeof info};
        assert_ok(filch_graph_submit(graph, NULL, &job));
        assert_ok(filch_job_wait(job, -1));
        assert_ok(filch_job_stats(job, &info, NULL, 0));
        assert_ok(filch_job_report(job, graph, &report, NULL, 0));
        assert_ok(filch_job_release(job));
        assert_int_equal(info.total, 6);
        assert_int_equal(info.done, 6);
        pieces += report.total.pieces;
        assert_true(report.total.pieces >= report.total.divided);
    }
    check_runs(30);
    assert_int_equal(atomic_load(&seen_by), 30);
    for (uint64_t i = 0; i < ITEMS; ++i) {
        assert_int_equal(cells[i], 30 * i);
    }
    if (divides) {
        assert_true(pieces > 0);
    } else {
        assert_int_equal(pieces, 0);
        assert_int_equal(atomic_load(&calls), 30);
    }
    assert_ok(filch_graph_destroy(graph));
    assert_ok(filch_data_destroy(data));
    assert_ok(filch_runtime_destroy(runtime));
}

static void test_chain(void **state)
{
    (void)state;
    check_chain("host:4", FILCH_DRIVE_THREADS, true);
    check_chain("host:2", FILCH_DRIVE_THREADS, true);
    check_chain("host:3", FILCH_DRIVE_POLL, true);
    check_chain("host:1", FILCH_DRIVE_THREADS, false);
    check_chain("host:1", FILCH_DRIVE_POLL, false);
}

/* A task that takes milliseconds is taken part in by others. */
static void test_taken_over(void **state)
{
    (void)state;
    filch_runtime *runtime = open_runtime("host:3", FILCH_DRIVE_THREADS);
    filch_codelet *codelet = fixture_codelet(runtime, "items", run_items, sizeof(order));
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    order o = ORDER;
    o.spin = 20 * SPIN;
    assert_ok(add_items(graph, codelet, &o, NULL, 0, NULL));
    for (int run = 1; run <= 10; ++run) {
        assert_ok(fixture_run(graph));
        check_runs((uint32_t)run);
    }
    assert_true(__builtin_popcountll(atomic_load(&devices)) > 1);
    assert_ok(filch_graph_destroy(graph));
    assert_ok(filch_runtime_destroy(runtime));
}

/* --- Accesses --- */

static int use_scratch(const filch_call *call)
{
    const order *o = call->args;
    uint64_t *own = call->views[1].ptr;
    own[0] = call->lo;
    int code = run_items(call);
    nap(o->naps);
    if (own[0] != call->lo) {
        atomic_fetch_add(&bad_calls, 1);
    }
    return code;
}

static int zero(const filch_call *call)
{
    uint64_t *to = call->views[0].ptr;
    for (uint64_t i = 0; i < call->views[0].rows; ++i) {
        to[i] = 0;
    }
    return 0;
}

static int sum(const filch_call *call)
{
    uint64_t *to = call->views[0].ptr;
    const uint64_t *from = call->views[1].ptr;
    for (uint64_t i = 0; i < call->views[0].rows; ++i) {
        to[i] += from[i];
    }
    return 0;
}

static void test_accesses(void **state)
{
    (void)state;
    filch_runtime *runtime = open_runtime("host:4", FILCH_DRIVE_THREADS);
    filch_codelet *codelet = fixture_codelet(runtime, "items", run_items, sizeof(order));
    filch_codelet *scratch = fixture_codelet(runtime, "scratch", use_scratch, sizeof(order));
    filch_data *data = fixture_vector(runtime, cells, sizeof *cells, ITEMS, ITEMS);
    assert_ok(filch_data_reduction(data, fixture_codelet(runtime, "zero", zero, 0),
                                   fixture_codelet(runtime, "sum", sum, 0)));
    order o = ORDER;
    o.naps = 50;
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    filch_access own[2] = {fixture_access(data, 0, FILCH_READWRITE),
                           {.mode = FILCH_SCRATCH, .bytes = 64}};
    assert_ok(add_items(graph, scratch, &o, own, 2, NULL));
    for (int run = 1; run <= 5; ++run) {
        assert_ok(fixture_run(graph));
    }
    check_runs(5);
    assert_ok(filch_graph_destroy(graph));
    /* Those that commute or reduce are called once. */
    for (int mode = 0; mode < 2; ++mode) {
        reset();
        filch_access access = fixture_access(data, 0, mode == 0 ? FILCH_COMMUTE : FILCH_REDUCE);
        graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
        for (int i = 0; i < 4; ++i) {
            assert_ok(add_items(graph, codelet, &o, &access, 1, NULL));
        }
        for (int run = 1; run <= 3; ++run) {
            assert_ok(fixture_run(graph));
        }
        check_runs(12);
        assert_int_equal(atomic_load(&calls), 12);
        assert_ok(filch_graph_destroy(graph));
    }
    for (uint64_t i = 0; i < ITEMS; ++i) {
        assert_int_equal(cells[i], (5 + 2 * 12) * i);
    }
    assert_ok(filch_data_destroy(data));
    assert_ok(filch_runtime_destroy(runtime));
}

/* --- What is refused, and older descriptors --- */

static void test_refused(void **state)
{
    (void)state;
    filch_runtime *runtime = open_runtime("host:2", FILCH_DRIVE_THREADS);
    filch_codelet *codelet = fixture_codelet(runtime, "nothing", fixture_nothing, 0);
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    filch_task_desc desc = FILCH_TASK_DESC_INIT;
    desc.codelet = codelet;
    desc.grain = 4;
    assert_status(filch_graph_add(graph, &desc, NULL), FILCH_INVALID_ARGUMENT);
    assert_non_null(strstr(fixture_error(runtime).text, "a grain, but no items"));
    desc.items = UINT64_C(1) << 63;
    assert_status(filch_graph_add(graph, &desc, NULL), FILCH_OVERFLOW);
    desc.items = 1;
    desc.grain = UINT64_C(1) << 63;
    assert_status(filch_graph_add(graph, &desc, NULL), FILCH_OVERFLOW);
    desc.grain = 100;
    assert_ok(filch_graph_add(graph, &desc, NULL));
    /* More than are counted one by one. */
    desc.items = (UINT64_C(1) << 63) - 1;
    desc.grain = 3;
    assert_ok(filch_graph_add(graph, &desc, NULL));
    /* As an older header had it: what lies behind is not looked at. */
    desc.size = offsetof(filch_task_desc, items);
    desc.items = desc.grain = UINT64_MAX;
    assert_ok(filch_graph_add(graph, &desc, NULL));
    desc.size = offsetof(filch_task_desc, reserved);
    assert_status(filch_graph_add(graph, &desc, NULL), FILCH_INVALID_ARGUMENT);
    assert_ok(fixture_run(graph));
    assert_ok(filch_graph_destroy(graph));
    assert_ok(filch_runtime_destroy(runtime));
}

/* Whatever memory is missing, nothing is added, or all of it. */
static void test_out_of_memory(void **state)
{
    (void)state;
    fixture_memory memory;
    fixture_memory_init(&memory);
    filch_runtime *runtime = fixture_runtime("host:2", FILCH_DRIVE_THREADS, &memory);
    filch_codelet *codelet = fixture_codelet(runtime, "items", run_items, sizeof(order));
    filch_data *data = fixture_vector(runtime, cells, sizeof *cells, ITEMS, ITEMS);
    filch_access write = fixture_access(data, 0, FILCH_READWRITE);
    const order o = ORDER;
    uint32_t added = 0;
    reset();
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    for (int n = 1; n < 40; ++n) {
        fixture_memory_fail_after(&memory, n % 4 + 1);
        filch_status status = add_items(graph, codelet, &o, &write, (uint32_t)n % 2, NULL);
        fixture_memory_fail_after(&memory, 0);
        assert_true(status == FILCH_OK || status == FILCH_OUT_OF_MEMORY);
        added += status == FILCH_OK;
    }
    assert_ok(fixture_run(graph));
    check_runs(added);
    assert_ok(filch_graph_destroy(graph));
    assert_ok(filch_data_destroy(data));
    assert_ok(filch_runtime_destroy(runtime));
    assert_int_equal(atomic_load(&memory.bytes), 0);
}

/* --- Failure, cancellation --- */

static void check_cut(filch_drive drive, bool fails)
{
    filch_runtime *runtime = open_runtime("host:4", drive);
    filch_codelet *codelet = fixture_codelet(runtime, "items", run_items, sizeof(order));
    filch_codelet *nothing = fixture_codelet(runtime, "nothing", fixture_nothing, 0);
    filch_data *data = fixture_vector(runtime, cells, sizeof *cells, ITEMS, ITEMS);
    filch_access write = fixture_access(data, 0, FILCH_READWRITE);
    filch_job *job = NULL;
    order o = ORDER;
    o.job = &job;
    o.bad = fails ? ITEMS / 3 : ITEMS;
    o.stop = fails ? ITEMS : ITEMS / 3;
    for (int run = 0; run < 20; ++run) {
        filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_OPEN);
        filch_job_info info = {.size = sizeof info};
        filch_error error = FILCH_ERROR_INIT;
        reset();
        assert_ok(filch_graph_submit(graph, NULL, &job));
        assert_ok(add_items(graph, codelet, &o, &write, 1, NULL));
        filch_task_desc desc = FILCH_TASK_DESC_INIT;
        desc.codelet = nothing;
        desc.accesses = &write;
        desc.access_count = 1;
        /* A cancelled graph takes no more. */
        filch_status added = filch_graph_add(graph, &desc, NULL);
        assert_true(added == FILCH_OK || (!fails && added == FILCH_WRONG_STATE));
        assert_ok(filch_graph_close(graph));
        filch_status status = filch_job_wait(job, -1);
        assert_ok(filch_job_stats(job, &info, NULL, 0));
        assert_int_equal(info.done + info.failed + info.skipped, info.total);
        assert_int_equal(info.failed, fails);
        /* All the other items may have run before the one that cancels. */
        assert_true(info.done <= !fails);
        assert_true(status == (fails ? FILCH_TASK_FAILED : FILCH_CANCELLED) ||
                    (status == FILCH_OK && info.done == info.total));
        for (int i = 0; i < ITEMS && info.done != 0; ++i) {
            assert_int_equal(atomic_load(&runs[i]), 1);
        }
        if (fails) {
            assert_ok(filch_job_error(job, &error));
            assert_int_equal(error.native_code, BAD_CODE);
        }
        for (int i = 0; i < ITEMS; ++i) {
            assert_true(atomic_load(&runs[i]) <= 1);
        }
        assert_int_equal(atomic_load(&runs[ITEMS / 3]), 1);
        assert_int_equal(atomic_load(&bad_calls), 0);
        assert_ok(filch_job_release(job));
        assert_ok(filch_graph_destroy(graph));
    }
    assert_ok(filch_data_destroy(data));
    assert_ok(filch_runtime_destroy(runtime));
}

static void test_failure(void **state)
{
    (void)state;
    check_cut(FILCH_DRIVE_THREADS, true);
    check_cut(FILCH_DRIVE_POLL, true);
}

/* --- Waits --- */

static void check_nested(const char *text, filch_drive drive)
{
    filch_runtime *runtime = open_runtime(text, drive);
    filch_codelet *codelet = fixture_codelet(runtime, "items", run_items, sizeof(order));
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    order o = ORDER;
    for (int i = 0; i < 6; ++i) {
        o.nest = (uint64_t)(i + 1) * ITEMS / 8;
        assert_ok(add_items(graph, codelet, &o, NULL, 0, NULL));
    }
    for (uint32_t run = 1; run <= 10; ++run) {
        assert_ok(fixture_run(graph));
        check_runs(6 * run);
    }
    assert_ok(filch_graph_destroy(graph));
    assert_ok(filch_runtime_destroy(runtime));
}

static void test_nested(void **state)
{
    (void)state;
    check_nested("host:1", FILCH_DRIVE_THREADS);
    check_nested("host:2", FILCH_DRIVE_THREADS);
    check_nested("host:4", FILCH_DRIVE_THREADS);
    check_nested("host:3", FILCH_DRIVE_POLL);
}

/* --- Withdrawn --- */

static void test_withdrawn(void **state)
{
    (void)state;
    filch_runtime *runtime = open_runtime("host:3", FILCH_DRIVE_THREADS);
    filch_codelet *codelet = fixture_codelet(runtime, "items", run_items, sizeof(order));
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    const order o = ORDER;
    for (int i = 0; i < 2; ++i) {
        assert_ok(add_items(graph, codelet, &o, NULL, 0, NULL));
    }
    for (uint32_t run = 1; run <= 40; ++run) {
        filch_job *job = NULL;
        uint32_t device = run % 3;
        assert_ok(filch_graph_submit(graph, NULL, &job));
        nap(100 * (run % 7));
        assert_ok(filch_device_withdraw(runtime, device));
        if (run % 4 == 0) {
            assert_ok(filch_device_withdraw(runtime, (device + 1) % 3));
            nap(100);
            assert_ok(filch_device_readmit(runtime, (device + 1) % 3));
        }
        assert_ok(filch_job_wait(job, -1));
        assert_ok(filch_job_release(job));
        check_runs(2 * run);
        assert_ok(filch_device_readmit(runtime, device));
    }
    assert_ok(filch_graph_destroy(graph));
    assert_ok(filch_runtime_destroy(runtime));
}

static void test_cancelled(void **state)
{
    (void)state;
    check_cut(FILCH_DRIVE_THREADS, false);
    check_cut(FILCH_DRIVE_POLL, false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_chain),         cmocka_unit_test(test_taken_over),
        cmocka_unit_test(test_accesses),      cmocka_unit_test(test_refused),
        cmocka_unit_test(test_out_of_memory), cmocka_unit_test(test_failure),
        cmocka_unit_test(test_cancelled),     cmocka_unit_test(test_nested),
        cmocka_unit_test(test_withdrawn),
    };
    return cmocka_run_group_tests_name("divide", tests, NULL, NULL);
}
