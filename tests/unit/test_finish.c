/* SPDX-License-Identifier: Apache-2.0 */
/* Tasks that end the rest of their graph as success: what ends, what is skipped, who counts as
 * first, and who is refused. */
#define _GNU_SOURCE
#include "fixture.h"
#include "patience.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CHAIN = 20, AT = 7, ITEMS = 1000 };

static filch_runtime *runtime;
static filch_codelet *step;
static filch_job *job_now;
static filch_pending late;
static _Atomic int ran, open_gate, waiting;

typedef enum what {
    GO,
    FINISH,
    FINISH_TWICE,
    FINISH_AND_FAIL,
    FINISH_AND_CANCEL,
    CANCEL_AND_FINISH,
    WAIT, /* runs until the gate opens */
    PEND,
    FINISH_AND_PEND
} what;

static int work(const filch_call *call)
{
    what mode = *(const what *)call->args;
    ++ran;
    if (mode == CANCEL_AND_FINISH && filch_job_cancel(job_now) != FILCH_OK) {
        return 90;
    }
    if (mode == FINISH_AND_PEND && filch_call_pend(call, &late) != FILCH_OK) {
        return 91;
    }
    if (mode != GO && mode != WAIT && mode != PEND && filch_call_finish(call) != FILCH_OK) {
        return 92;
    }
    if ((mode == FINISH_TWICE && filch_call_finish(call) != FILCH_OK) ||
        (mode == FINISH_AND_CANCEL && filch_job_cancel(job_now) != FILCH_OK)) {
        return 93;
    }
    if (mode == WAIT) {
        ++waiting;
        return fixture_await(&open_gate, 1) ? 0 : 94;
    }
    if (call->view_count != 0) {
        ++*(double *)call->views[0].ptr;
    }
    return mode == FINISH_AND_FAIL ? 5 : mode == FINISH_AND_PEND ? FILCH_PENDING : 0;
}

static void begin(const char *devices, filch_drive drive)
{
    runtime = fixture_runtime(devices, drive, NULL);
    filch_codelet_desc desc = FILCH_CODELET_DESC_INIT;
    desc.name = "step";
    desc.host = work;
    desc.arg_size = sizeof(what);
    desc.flags = FILCH_CODELET_MAY_PEND;
    assert_ok(filch_codelet_create(runtime, &desc, &step));
    job_now = NULL;
    ran = open_gate = waiting = 0;
}

static void end(void)
{
    assert_ok(filch_runtime_drain(runtime, -1));
    assert_ok(filch_runtime_destroy(runtime));
}

static int set_up(void **state)
{
    (void)state;
    begin("host:2", FILCH_DRIVE_THREADS);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    end();
    return 0;
}

static void add(filch_graph *graph, what mode, filch_data *data)
{
    fixture_add(graph, step, &mode, &fixture_access(data, 0, FILCH_READWRITE), data != NULL);
}

/* A chain on one tile; its task number AT has the mode. */
static filch_graph *chain(filch_data *data, what mode)
{
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    for (int i = 0; i < CHAIN; ++i) {
        add(graph, i == AT ? mode : GO, data);
    }
    assert_ok(filch_graph_seal(graph));
    return graph;
}

static filch_job_info info_of(filch_job *job)
{
    filch_job_info info = FILCH_JOB_INFO_INIT;
    assert_ok(filch_job_stats(job, &info, NULL, 0));
    return info;
}

/* Runs the graph; checks the result, and that the tasks behind number AT are skipped. */
static void run(filch_graph *graph, filch_status expected, uint64_t failed)
{
    ran = 0;
    assert_ok(filch_graph_submit(graph, NULL, &job_now));
    assert_status(filch_job_wait(job_now, -1), expected);
    filch_job_info info = info_of(job_now);
    assert_status(info.status, expected);
    assert_int_equal(ran, AT + 1);
    assert_int_equal(info.done, AT + 1 - failed);
    assert_int_equal(info.failed, failed);
    assert_int_equal(info.skipped, CHAIN - AT - 1);
    assert_ok(filch_job_release(job_now));
}

static void the_rest_is_skipped_as_success(void **state)
{
    (void)state;
    double tile[4] = {0};
    filch_data *data = fixture_vector(runtime, tile, sizeof *tile, 4, 4);
    filch_graph *graph = chain(data, FINISH);
    for (int round = 1; round <= 3; ++round) { /* the graph runs again as ever */
        run(graph, FILCH_OK, 0);
        assert_true(tile[0] == round * (AT + 1));
    }
    assert_ok(filch_graph_destroy(graph));
    graph = chain(data, FINISH_TWICE);
    run(graph, FILCH_OK, 0);
    assert_ok(filch_graph_destroy(graph));
}

static void a_failure_stays_a_failure(void **state)
{
    (void)state;
    double tile[4] = {0};
    filch_data *data = fixture_vector(runtime, tile, sizeof *tile, 4, 4);
    filch_graph *graph = chain(data, FINISH_AND_FAIL);
    run(graph, FILCH_TASK_FAILED, 1);
    assert_ok(filch_graph_destroy(graph));
}

static void the_first_of_cancel_and_finish_counts(void **state)
{
    (void)state;
    const struct {
        what mode;
        filch_status expected;
    } cases[] = {{FINISH_AND_CANCEL, FILCH_OK}, {CANCEL_AND_FINISH, FILCH_CANCELLED}};
    for (int i = 0; i < 2; ++i) {
        double tile[4] = {0};
        filch_data *data = fixture_vector(runtime, tile, sizeof *tile, 4, 4);
        filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
        add(graph, WAIT, data);
        add(graph, cases[i].mode, data);
        add(graph, GO, data);
        open_gate = 0;
        assert_ok(filch_graph_submit(graph, NULL, &job_now));
        open_gate = 1;
        assert_status(filch_job_wait(job_now, -1), cases[i].expected);
        assert_int_equal(info_of(job_now).skipped, 1);
        assert_ok(filch_job_release(job_now));
        assert_ok(filch_graph_destroy(graph));
    }
}

static void what_has_begun_ends(void **state)
{
    (void)state;
    double tiles[2] = {0};
    filch_data *data = fixture_vector(runtime, tiles, sizeof *tiles, 2, 1);
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_OPEN);
    assert_ok(filch_graph_submit(graph, NULL, &job_now));
    what mode = WAIT;
    fixture_add(graph, step, &mode, &fixture_access(data, 0, FILCH_READWRITE), 1);
    assert_true(fixture_await(&waiting, 1));
    mode = FINISH;
    fixture_add(graph, step, &mode, &fixture_access(data, 1, FILCH_READWRITE), 1);
    assert_true(fixture_await(&ran, 2));
    /* The graph takes no more soon after; tasks added before are skipped. */
    filch_status status = FILCH_OK;
    filch_task_desc desc = FILCH_TASK_DESC_INIT;
    mode = GO;
    desc.codelet = step;
    desc.args = &mode;
    while (status == FILCH_OK) {
        status = filch_graph_add(graph, &desc, NULL);
    }
    assert_status(status, FILCH_WRONG_STATE);
    assert_non_null(strstr(fixture_error(runtime).text, "finished early"));
    assert_status(filch_job_status(job_now), FILCH_NOT_READY);
    open_gate = 1;
    assert_ok(filch_graph_close(graph));
    assert_ok(filch_job_wait(job_now, -1));
    filch_job_info info = info_of(job_now);
    assert_true(info.done >= 2 && info.done + info.skipped == info.total && info.failed == 0);
    assert_ok(filch_job_release(job_now));
    assert_ok(filch_graph_destroy(graph));
}

static void a_pending_task_ends_later(void **state)
{
    (void)state;
    double tile[4] = {0};
    filch_data *data = fixture_vector(runtime, tile, sizeof *tile, 4, 4);
    filch_graph *graph = chain(data, FINISH_AND_PEND);
    assert_ok(filch_graph_submit(graph, NULL, &job_now));
    assert_true(fixture_await(&ran, AT + 1));
    assert_status(filch_job_wait(job_now, 0.001), FILCH_TIMEOUT);
    assert_status(filch_pending_status(late), FILCH_CANCELLED);
    assert_ok(filch_pending_end(late, 0, NULL));
    assert_ok(filch_job_wait(job_now, -1));
    assert_int_equal(info_of(job_now).skipped, CHAIN - AT - 1);
    assert_ok(filch_job_release(job_now));
    assert_ok(filch_graph_destroy(graph));
}

/* --- Batches and divisible tasks --- */

static _Atomic uint64_t items_run;

static int search(const filch_call *call)
{
    items_run += call->hi - call->lo;
    return call->lo <= AT && AT < call->hi && filch_call_finish(call) != FILCH_OK ? 95 : 0;
}

static void a_search_ends_its_batch(void **state)
{
    (void)state;
    filch_codelet *codelet = fixture_codelet(runtime, "search", search, 0);
    filch_batch_desc batch = FILCH_BATCH_DESC_INIT;
    filch_job *rest = NULL;
    batch.codelet = codelet;
    batch.n = ITEMS;
    batch.grain = 1;
    items_run = 0;
    assert_ok(filch_batch_submit(runtime, &batch, NULL, &job_now));
    assert_ok(filch_job_wait(job_now, -1));
    filch_job_info info = info_of(job_now);
    assert_int_equal(info.done + info.skipped, ITEMS);
    assert_int_equal(items_run, info.done);
    if (info.skipped != 0) {
        assert_ok(filch_job_resume(job_now, NULL, NULL, &rest));
        assert_ok(filch_job_wait(rest, -1));
        assert_int_equal(items_run, ITEMS);
        assert_ok(filch_job_release(rest));
    }
    assert_ok(filch_job_release(job_now));
}

static void a_divided_task_may_be_cut(void **state)
{
    (void)state;
    filch_codelet *codelet = fixture_codelet(runtime, "search", search, 0);
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    filch_task_desc desc = FILCH_TASK_DESC_INIT;
    desc.codelet = codelet;
    desc.items = ITEMS;
    desc.grain = 1;
    assert_ok(filch_graph_add(graph, &desc, NULL));
    assert_ok(fixture_run(graph));
    assert_ok(filch_graph_destroy(graph));
}

/* --- Refusals --- */

static filch_status from_inside;

static int restartable(const filch_call *call)
{
    from_inside = filch_call_finish(call);
    return 0;
}

static void wrong_calls_are_refused(void **state)
{
    (void)state;
    const filch_call empty = {0};
    assert_status(filch_call_finish(NULL), FILCH_INVALID_ARGUMENT);
    assert_status(filch_call_finish(&empty), FILCH_WRONG_STATE);
    filch_codelet_desc desc = FILCH_CODELET_DESC_INIT;
    filch_codelet *codelet = NULL;
    desc.name = "again";
    desc.host = restartable;
    desc.flags = FILCH_CODELET_RESTARTABLE;
    assert_ok(filch_codelet_create(runtime, &desc, &codelet));
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    fixture_add(graph, codelet, NULL, NULL, 0);
    assert_ok(fixture_run(graph));
    assert_status(from_inside, FILCH_WRONG_STATE);
    assert_ok(filch_graph_destroy(graph));
}

static const filch_call *outer_call;

static int inner(const filch_call *call)
{
    /* The outer function waits: its call ends no job now. */
    from_inside = filch_call_finish(outer_call);
    return filch_call_finish(call) == FILCH_OK ? 0 : 96;
}

static int outer(const filch_call *call)
{
    filch_graph *nested = *(filch_graph *const *)call->args;
    outer_call = call;
    return filch_graph_run(nested, NULL, NULL) == FILCH_OK ? 0 : 97;
}

static void nested_work_ends_its_own_graph(void **state)
{
    (void)state;
    end();
    begin("host:1", FILCH_DRIVE_THREADS);
    filch_codelet *in = fixture_codelet(runtime, "inner", inner, 0);
    filch_codelet *out = fixture_codelet(runtime, "outer", outer, sizeof(filch_graph *));
    double tile[1] = {0};
    filch_data *data = fixture_vector(runtime, tile, sizeof *tile, 1, 1);
    filch_graph *nested = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    fixture_add(nested, in, NULL, &fixture_access(data, 0, FILCH_READWRITE), 1);
    add(nested, GO, data);
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    filch_task first = fixture_add(graph, out, &nested, NULL, 0);
    what mode = GO;
    filch_task second = fixture_add(graph, step, &mode, NULL, 0);
    assert_ok(filch_graph_edge(graph, first, second));
    assert_ok(fixture_run(graph));
    assert_status(from_inside, FILCH_WRONG_STATE);
    assert_int_equal(ran, 1); /* the outer graph's second task, not the nested one's */
    assert_ok(filch_graph_destroy(nested));
    assert_ok(filch_graph_destroy(graph));
}

/* --- Other drives and devices --- */

static void polling_and_simulated_devices_finish(void **state)
{
    (void)state;
    for (int i = 0; i < 2; ++i) {
        end();
        begin(i == 0 ? "host:2" : "sim:bench/data/sim/two.json",
              i == 0 ? FILCH_DRIVE_POLL : FILCH_DRIVE_DEFAULT);
        double tile[4] = {0};
        filch_data *data = fixture_vector(runtime, tile, sizeof *tile, 4, 4);
        filch_graph *graph = chain(data, FINISH);
        run(graph, FILCH_OK, 0);
        assert_ok(filch_graph_destroy(graph));
    }
}

static void work_of_offline_devices_is_skipped(void **state)
{
    (void)state;
    end();
    begin("host:2", FILCH_DRIVE_THREADS);
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    what mode = WAIT;
    filch_task first = fixture_add(graph, step, &mode, NULL, 0);
    mode = FINISH;
    filch_task second = fixture_add(graph, step, &mode, NULL, 0);
    assert_ok(filch_graph_edge(graph, first, second));
    mode = GO;
    for (int i = 0; i < CHAIN; ++i) {
        filch_task task = fixture_add(graph, step, &mode, NULL, 0);
        assert_ok(filch_graph_edge(graph, second, task));
    }
    assert_ok(filch_graph_submit(graph, NULL, &job_now));
    assert_true(fixture_await(&waiting, 1));
    assert_ok(filch_device_withdraw(runtime, 1));
    open_gate = 1;
    assert_ok(filch_job_wait(job_now, -1));
    assert_int_equal(info_of(job_now).done + info_of(job_now).skipped, CHAIN + 2);
    assert_ok(filch_job_release(job_now));
    assert_ok(filch_graph_destroy(graph));
}

static void a_trace_counts_what_was_skipped(void **state)
{
    (void)state;
    char path[] = "/tmp/filch-finish-XXXXXX", text[65536] = "";
    int descriptor = mkstemp(path);
    assert_true(descriptor >= 0);
    close(descriptor);
    double tile[4] = {0};
    filch_data *data = fixture_vector(runtime, tile, sizeof *tile, 4, 4);
    filch_graph *whole = chain(data, GO), *graph = chain(data, FINISH);
    assert_ok(filch_trace_start(runtime));
    assert_ok(fixture_run(whole));
    run(graph, FILCH_OK, 0);
    assert_ok(filch_runtime_drain(runtime, -1));
    assert_ok(filch_trace_write(runtime, path));
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_true(fread(text, 1, sizeof text - 1, file) > 0);
    fclose(file);
    const char *found = strstr(text, "\"skipped\":12}");
    assert_non_null(found);
    assert_null(strstr(found + 1, "\"skipped\""));
    assert_ok(filch_graph_destroy(whole));
    assert_ok(filch_graph_destroy(graph));
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(the_rest_is_skipped_as_success, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_failure_stays_a_failure, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_first_of_cancel_and_finish_counts, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_has_begun_ends, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_pending_task_ends_later, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_search_ends_its_batch, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_divided_task_may_be_cut, set_up, tear_down),
        cmocka_unit_test_setup_teardown(wrong_calls_are_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(nested_work_ends_its_own_graph, set_up, tear_down),
        cmocka_unit_test_setup_teardown(polling_and_simulated_devices_finish, set_up, tear_down),
        cmocka_unit_test_setup_teardown(work_of_offline_devices_is_skipped, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_trace_counts_what_was_skipped, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
