/* SPDX-License-Identifier: Apache-2.0 */
/* filch_graph_run and filch_batch_run: the end, what failed, and what is refused, on threads, with
 * polling, on a virtual clock, and from inside a task. */
#include "fixture.h"

#include <string.h>

static int fails_with;
static _Atomic int ran;

static int work(const filch_call *call)
{
    (void)call;
    ++ran;
    return fails_with;
}

static filch_runtime *begin(const char *devices, filch_drive drive)
{
    filch_runtime_desc config = FILCH_RUNTIME_DESC_INIT;
    filch_runtime *rt = NULL;
    config.devices = devices;
    config.drive = drive;
    fails_with = 0;
    ran = 0;
    assert_ok(filch_runtime_create(&config, NULL, &rt));
    return rt;
}

/* Tasks one after another on one tile: the second reads and writes what the first wrote. */
static filch_graph *chain(filch_runtime *rt, filch_codelet *codelet, int tasks)
{
    static double a[4];
    filch_data_desc desc = FILCH_DATA_DESC_INIT;
    filch_data *A = NULL;
    filch_graph *graph = NULL;
    desc.ptr = a;
    desc.element = sizeof *a;
    desc.rows = 4;
    desc.tile_rows = 2;
    assert_ok(filch_data_create(rt, &desc, &A));
    assert_ok(filch_graph_create(rt, NULL, &graph));
    for (int i = 0; i < tasks; ++i) {
        filch_task_desc task = FILCH_TASK_DESC_INIT;
        task.codelet = codelet;
        task.accesses = (filch_access[]){FILCH_RW(A, 1, 0), FILCH_R(A, 0, 0)};
        task.access_count = 2;
        task.label = i == 0 ? "first" : "later";
        assert_ok(filch_graph_add(graph, &task, NULL));
    }
    return graph;
}

static void accesses_have_initializers(void **state)
{
    (void)state;
    filch_data *A = (filch_data *)(void *)&ran;
    int row = 3;
    const filch_access accesses[] = {FILCH_R(A, row, 1), FILCH_W(A, row + 1, 2), FILCH_RW(A, 5, 6),
                                     FILCH_ACCESS(A, 7, 8, FILCH_COMMUTE)};
    static const filch_access_mode modes[] = {FILCH_READ, FILCH_WRITE, FILCH_READWRITE,
                                              FILCH_COMMUTE};
    static const uint32_t rows[] = {3, 4, 5, 7}, cols[] = {1, 2, 6, 8};
    for (int i = 0; i < 4; ++i) {
        assert_ptr_equal(accesses[i].data, A);
        assert_int_equal(accesses[i].mode, modes[i]);
        assert_int_equal(accesses[i].row, rows[i]);
        assert_int_equal(accesses[i].col, cols[i]);
        assert_int_equal(accesses[i].bytes, 0);
    }
}

static void run_everywhere(const char *devices, filch_drive drive)
{
    filch_runtime *rt = begin(devices, drive);
    filch_codelet *codelet = fixture_codelet(rt, "work", work, 0);
    filch_graph *graph = chain(rt, codelet, 5);
    filch_error error = FILCH_ERROR_INIT;
    for (int k = 1; k <= 3; ++k) {
        assert_ok(filch_graph_run(graph, NULL, &error));
        assert_int_equal(ran, 5 * k);
    }
    assert_ok(filch_graph_run(graph, NULL, NULL));
    assert_int_equal(error.status, FILCH_OK);
    filch_usage usage = {.size = sizeof usage};
    assert_ok(filch_runtime_usage(rt, &usage));
    assert_int_equal(usage.jobs_running, 0);

    fails_with = 7;
    ran = 0;
    assert_int_equal(filch_graph_run(graph, NULL, &error), FILCH_TASK_FAILED);
    assert_int_equal(ran, 1);
    assert_int_equal(error.status, FILCH_TASK_FAILED);
    assert_int_equal(error.native_code, 7);
    assert_string_equal(error.label, "first");
    assert_int_equal(filch_graph_run(graph, NULL, NULL), FILCH_TASK_FAILED);
    fails_with = 0;
    assert_ok(filch_graph_run(graph, NULL, &error));

    filch_batch_desc batch = FILCH_BATCH_DESC_INIT;
    batch.codelet = codelet;
    batch.n = 10;
    assert_ok(filch_batch_run(rt, &batch, NULL, &error));
    fails_with = 9;
    assert_int_equal(filch_batch_run(rt, &batch, NULL, &error), FILCH_TASK_FAILED);
    assert_int_equal(error.native_code, 9);
    assert_string_equal(error.label, "work");
    assert_ok(filch_runtime_destroy(rt));
}

static void a_run_goes_to_the_end_in_every_drive(void **state)
{
    (void)state;
    run_everywhere("host:2", FILCH_DRIVE_THREADS);
    run_everywhere("host:2", FILCH_DRIVE_POLL);
    run_everywhere("sim:bench/data/sim/two.json", FILCH_DRIVE_DEFAULT);
}

static void refusals_are_told(void **state)
{
    (void)state;
    filch_runtime *rt = begin("host:1", FILCH_DRIVE_THREADS);
    filch_graph *graph = chain(rt, fixture_codelet(rt, "work", work, 0), 1);
    filch_graph *open = fixture_graph(rt, FILCH_GRAPH_OPEN);
    filch_error error = FILCH_ERROR_INIT, unset = {.size = 0};
    filch_submit_desc submit = FILCH_SUBMIT_DESC_INIT;
    assert_int_equal(filch_graph_run(graph, NULL, &unset), FILCH_INVALID_ARGUMENT);
    submit.size = 0;
    assert_int_equal(filch_graph_run(graph, &submit, &error), FILCH_INVALID_ARGUMENT);
    assert_int_equal(error.status, FILCH_INVALID_ARGUMENT);
    assert_string_equal(error.call, "filch_graph_run");
    assert_string_equal(fixture_error(rt).call, "filch_graph_run");
    assert_int_equal(filch_graph_run(open, NULL, &error), FILCH_WRONG_STATE);
    assert_int_equal(error.status, FILCH_WRONG_STATE);
    assert_string_equal(error.text, "the graph is open");
    assert_int_equal(filch_graph_run(NULL, NULL, &error), FILCH_INVALID_HANDLE);
    assert_int_equal(error.status, FILCH_INVALID_HANDLE);
    assert_string_equal(error.call, "filch_graph_run");
    assert_int_equal(filch_graph_run(NULL, NULL, NULL), FILCH_INVALID_HANDLE);
    assert_int_equal(filch_batch_run(NULL, NULL, NULL, &error), FILCH_INVALID_HANDLE);
    assert_int_equal(filch_batch_run(rt, NULL, NULL, &error), FILCH_INVALID_ARGUMENT);
    assert_string_equal(error.call, "filch_batch_run");
    assert_string_equal(fixture_error(rt).call, "filch_batch_run");
    filch_batch_desc batch = FILCH_BATCH_DESC_INIT;
    assert_int_equal(filch_batch_run(rt, &batch, NULL, NULL), FILCH_INVALID_HANDLE);
    assert_int_equal(filch_batch_run(rt, &batch, NULL, &error), FILCH_INVALID_HANDLE);
    assert_int_equal(error.status, FILCH_INVALID_HANDLE);
    assert_int_equal(ran, 0);
    assert_ok(filch_runtime_destroy(rt));
}

/* --- Inside tasks and callbacks --- */

static filch_graph *inner;
static filch_status inside, called_back, ended_with;
static filch_error inside_error;

static int run_inner(const filch_call *call)
{
    (void)call;
    inside_error = (filch_error)FILCH_ERROR_INIT;
    inside = filch_graph_run(inner, NULL, &inside_error);
    return 0;
}

static void a_task_runs_a_graph(void **state)
{
    (void)state;
    static const filch_drive drives[] = {FILCH_DRIVE_THREADS, FILCH_DRIVE_POLL};
    for (int k = 0; k < 2; ++k) {
        filch_runtime *rt = begin("host:1", drives[k]);
        inner = chain(rt, fixture_codelet(rt, "work", work, 0), 3);
        filch_graph *outer = fixture_graph(rt, FILCH_GRAPH_CLOSED);
        fixture_add(outer, fixture_codelet(rt, "outer", run_inner, 0), NULL, NULL, 0);
        assert_ok(filch_graph_run(outer, NULL, NULL));
        assert_ok(inside);
        assert_int_equal(ran, 3);
        assert_ok(filch_runtime_destroy(rt));
    }
}

static void a_simulated_task_cannot(void **state)
{
    (void)state;
    filch_runtime *rt = begin("sim:bench/data/sim/two.json", FILCH_DRIVE_DEFAULT);
    inner = chain(rt, fixture_codelet(rt, "work", work, 0), 3);
    filch_graph *outer = fixture_graph(rt, FILCH_GRAPH_CLOSED);
    fixture_add(outer, fixture_codelet(rt, "outer", run_inner, 0), NULL, NULL, 0);
    assert_ok(filch_graph_run(outer, NULL, NULL));
    assert_int_equal(inside, FILCH_WRONG_STATE);
    assert_int_equal(inside_error.status, FILCH_WRONG_STATE);
    assert_ok(filch_runtime_drain(rt, -1));
    assert_int_equal(ran, 0);
    assert_ok(filch_runtime_destroy(rt));
}

static void call_back(filch_job *job, filch_status status, void *user)
{
    (void)job;
    (void)status;
    (void)user;
    called_back = filch_graph_run(inner, NULL, NULL);
}

static void a_callback_cannot(void **state)
{
    (void)state;
    filch_runtime *rt = begin("host:1", FILCH_DRIVE_THREADS);
    filch_codelet *codelet = fixture_codelet(rt, "work", work, 0);
    filch_submit_desc submit = FILCH_SUBMIT_DESC_INIT;
    submit.on_complete = call_back;
    inner = chain(rt, codelet, 1);
    assert_ok(filch_graph_run(chain(rt, codelet, 2), &submit, NULL));
    assert_int_equal(called_back, FILCH_WRONG_STATE);
    assert_int_equal(ran, 2);
    assert_ok(filch_runtime_destroy(rt));
}

static void note_end(filch_job *job, filch_status status, void *user)
{
    (void)job;
    (void)user;
    ended_with = status;
}

static filch_submit_desc noted = FILCH_SUBMIT_DESC_INIT;

static int run_behind_itself(const filch_call *call)
{
    (void)call;
    inside_error = (filch_error)FILCH_ERROR_INIT;
    inside = filch_graph_run(inner, &noted, &inside_error);
    return 0;
}

/* Both graphs write one handle: the inner one waits for the outer one, and never begins. */
static void a_run_behind_the_callers_job_is_given_up(void **state)
{
    (void)state;
    filch_runtime *rt = begin("host:2", FILCH_DRIVE_THREADS);
    static double a[2];
    filch_data_desc desc = FILCH_DATA_DESC_INIT;
    filch_data *A = NULL;
    desc.ptr = a;
    desc.element = sizeof *a;
    desc.rows = 2;
    assert_ok(filch_data_create(rt, &desc, &A));
    const filch_access access = FILCH_RW(A, 0, 0);
    filch_graph *outer = fixture_graph(rt, FILCH_GRAPH_CLOSED);
    inner = fixture_graph(rt, FILCH_GRAPH_CLOSED);
    fixture_add(inner, fixture_codelet(rt, "work", work, 0), NULL, &access, 1);
    fixture_add(outer, fixture_codelet(rt, "outer", run_behind_itself, 0), NULL, &access, 1);
    noted.on_complete = note_end;
    ended_with = FILCH_OK;
    assert_ok(filch_graph_run(outer, NULL, NULL));
    assert_int_equal(inside, FILCH_WRONG_STATE);
    assert_int_equal(inside_error.status, FILCH_WRONG_STATE);
    assert_ok(filch_runtime_drain(rt, -1));
    assert_int_equal(ended_with, FILCH_CANCELLED);
    assert_int_equal(ran, 0);
    assert_ok(filch_runtime_destroy(rt));
}

/* --- What never ends --- */

static void a_run_without_devices_is_given_up(void **state)
{
    (void)state;
    filch_runtime *rt = begin("sim:bench/data/sim/two.json", FILCH_DRIVE_DEFAULT);
    filch_graph *graph = chain(rt, fixture_codelet(rt, "work", work, 0), 2);
    filch_error error = FILCH_ERROR_INIT;
    for (uint32_t d = 0; d < filch_device_count(rt); ++d) {
        assert_ok(filch_device_withdraw(rt, d));
    }
    assert_int_equal(filch_graph_run(graph, NULL, &error), FILCH_TIMEOUT);
    assert_int_equal(error.status, FILCH_TIMEOUT);
    assert_ok(filch_runtime_drain(rt, -1));
    assert_int_equal(ran, 0);
    assert_ok(filch_runtime_destroy(rt));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(accesses_have_initializers),
        cmocka_unit_test(a_run_goes_to_the_end_in_every_drive),
        cmocka_unit_test(refusals_are_told),
        cmocka_unit_test(a_task_runs_a_graph),
        cmocka_unit_test(a_simulated_task_cannot),
        cmocka_unit_test(a_callback_cannot),
        cmocka_unit_test(a_run_behind_the_callers_job_is_given_up),
        cmocka_unit_test(a_run_without_devices_is_given_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
