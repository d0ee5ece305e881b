/* SPDX-License-Identifier: Apache-2.0 */
/* Many tasks in one call: the same graph as by single calls, and what a refusal leaves. */
#include "fixture.h"

#include "base/thread.h"

#include <stdio.h>
#include <string.h>

enum { SIDE = 12, TASKS = SIDE * SIDE, STENCIL = 3 };

static fixture_memory memory;
static filch_runtime *runtime, *other;
static filch_codelet *add, *foreign, *failing;
static double cells[SIDE * SIDE];
static filch_data *matrix;
static filch_access accesses[TASKS][STENCIL];
static filch_task_desc descs[TASKS];
static uint64_t numbers[TASKS];

/* Every task folds its number and its neighbours' values into its cell: the result tells the order
 * of tasks that depend on each other. */
static int fold(const filch_call *call)
{
    double *own = call->views[0].ptr;
    double sum = (double)*(const uint64_t *)call->args + 3 * *own;
    for (uint32_t i = 1; i < call->view_count; ++i) {
        sum += *(const double *)call->views[i].ptr * (1 + i);
    }
    *own = sum - 1e6 * (double)(uint64_t)(sum / 1e6);
    return 0;
}

static int give_seven(const filch_call *call)
{
    (void)call;
    return 7;
}

static void describe(uint32_t task)
{
    uint32_t row = task / SIDE, col = task % SIDE, count = 0;
    accesses[task][count++] = (filch_access)FILCH_RW(matrix, row, col);
    if (row > 0) {
        accesses[task][count++] = (filch_access)FILCH_R(matrix, row - 1, col);
    }
    if (col > 0) {
        accesses[task][count++] = (filch_access)FILCH_R(matrix, row, col - 1);
    }
    numbers[task] = task;
    descs[task] = (filch_task_desc)FILCH_TASK_DESC_INIT;
    descs[task].codelet = add;
    descs[task].args = &numbers[task];
    descs[task].accesses = accesses[task];
    descs[task].access_count = count;
}

static int set_up(void **state)
{
    (void)state;
    fixture_memory_init(&memory);
    runtime = fixture_runtime("host:2", FILCH_DRIVE_THREADS, &memory);
    other = fixture_runtime("host:1", FILCH_DRIVE_POLL, NULL);
    add = fixture_codelet(runtime, "fold", fold, sizeof(uint64_t));
    foreign = fixture_codelet(other, "foreign", fold, sizeof(uint64_t));
    failing = fixture_codelet(runtime, "failing", give_seven, sizeof(uint64_t));
    filch_data_desc desc = FILCH_DATA_DESC_INIT;
    desc.ptr = cells;
    desc.element = sizeof *cells;
    desc.rows = desc.cols = SIDE;
    desc.tile_rows = desc.tile_cols = 1;
    assert_ok(filch_data_create(runtime, &desc, &matrix));
    return 0;
}

static int describe_all(void **state)
{
    (void)state;
    for (uint32_t task = 0; task < TASKS; ++task) {
        describe(task);
    }
    memset(cells, 0, sizeof cells);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    assert_ok(filch_runtime_destroy(other));
    assert_ok(filch_runtime_destroy(runtime));
    assert_int_equal(memory.bytes, 0);
    return 0;
}

/* Runs the graph of single calls, and leaves its result. */
static void run_single(double *result)
{
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    for (uint32_t task = 0; task < TASKS; ++task) {
        assert_ok(filch_graph_add(graph, &descs[task], NULL));
    }
    memset(cells, 0, sizeof cells);
    assert_ok(fixture_run(graph));
    memcpy(result, cells, sizeof cells);
    memset(cells, 0, sizeof cells);
    assert_ok(filch_graph_destroy(graph));
}

static void one_call_makes_the_graph_of_many(void **state)
{
    (void)state;
    static double wanted[SIDE * SIDE];
    static const size_t chunks[] = {1, 7, 64, TASKS};
    run_single(wanted);
    for (size_t c = 0; c < sizeof chunks / sizeof *chunks; ++c) {
        filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
        filch_task names[TASKS] = {0};
        for (size_t at = 0; at < TASKS; at += chunks[c]) {
            size_t count = TASKS - at < chunks[c] ? TASKS - at : chunks[c], added = 0;
            assert_ok(filch_graph_add_many(graph, &descs[at], count, &names[at], &added));
            assert_int_equal(added, count);
        }
        /* Names serve edges. An edge from the last task to the first closes a circle. */
        assert_ok(filch_graph_edge(graph, names[0], names[TASKS - 1]));
        memset(cells, 0, sizeof cells);
        assert_ok(fixture_run(graph));
        assert_memory_equal(cells, wanted, sizeof cells);
        assert_ok(filch_graph_destroy(graph));
        graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
        assert_ok(filch_graph_add_many(graph, descs, TASKS, names, NULL));
        assert_ok(filch_graph_edge(graph, names[TASKS - 1], names[0]));
        assert_status(filch_graph_seal(graph), FILCH_CYCLE);
        assert_ok(filch_graph_destroy(graph));
    }
}

/* Spoils a description. */
static void spoil(uint32_t task, int how)
{
    switch (how) {
    case 0:
        descs[task].codelet = NULL;
        break;
    case 1:
        descs[task].codelet = foreign;
        break;
    case 2:
        accesses[task][0].row = SIDE;
        break;
    case 3:
        descs[task].args = NULL;
        break;
    case 4:
        descs[task].size = offsetof(filch_task_desc, items);
        break;
    default:
        descs[task].size = 0;
        break;
    }
}

static void a_refusal_leaves_the_tasks_before_it(void **state)
{
    (void)state;
    static const filch_status statuses[] = {FILCH_INVALID_HANDLE,   FILCH_WRONG_RUNTIME,
                                            FILCH_INVALID_ARGUMENT, FILCH_INVALID_ARGUMENT,
                                            FILCH_INVALID_ARGUMENT, FILCH_INVALID_ARGUMENT};
    static const uint32_t places[] = {0, 1, 70, TASKS - 1};
    static double wanted[SIDE * SIDE];
    run_single(wanted);
    for (int k = 0; k < 6 * 4; ++k) {
        int how = k % 6;
        uint32_t place = places[k / 6];
        if (place == 0 && how == 4) {
            continue; /* the first size is the size of all */
        }
        filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
        filch_task names[TASKS];
        size_t added = 12345;
        memset(names, 0xab, sizeof names);
        filch_task untouched = names[0];
        spoil(place, how);
        assert_status(filch_graph_add_many(graph, descs, TASKS, names, &added), statuses[how]);
        assert_int_equal(added, place);
        for (uint32_t task = 0; task < TASKS; ++task) {
            assert_true(task < place ? names[task] == task + 1 : names[task] == untouched);
        }
        filch_error error = fixture_error(runtime);
        char start[32];
        snprintf(start, sizeof start, "descs[%u]: ", place);
        bool is_first_size = place == 0 && how == 5; /* found before the array is looked at */
        assert_int_equal(error.status, statuses[how]);
        assert_string_equal(error.call, "filch_graph_add_many");
        assert_true(is_first_size || strncmp(error.text, start, strlen(start)) == 0);
        /* The caller mends the task and goes on. */
        describe(place);
        assert_ok(filch_graph_add_many(graph, descs + added, TASKS - added, names + added, &added));
        assert_int_equal(added, TASKS - place);
        memset(cells, 0, sizeof cells);
        assert_ok(fixture_run(graph));
        assert_memory_equal(cells, wanted, sizeof cells);
        assert_ok(filch_graph_destroy(graph));
    }
}

static void without_memory_the_rest_can_be_added_later(void **state)
{
    (void)state;
    static double wanted[SIDE * SIDE];
    run_single(wanted);
    uint32_t failures = 0;
    for (int64_t n = 1;; ++n) {
        filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
        size_t added = 0;
        fixture_memory_fail_after(&memory, n);
        filch_status status = filch_graph_add_many(graph, descs, TASKS, NULL, &added);
        fixture_memory_fail_after(&memory, 0);
        if (status != FILCH_OK) {
            assert_int_equal(status, FILCH_OUT_OF_MEMORY);
            assert_true(added < TASKS);
            assert_ok(filch_graph_add_many(graph, descs + added, TASKS - added, NULL, NULL));
            ++failures;
        }
        memset(cells, 0, sizeof cells);
        assert_ok(fixture_run(graph));
        assert_memory_equal(cells, wanted, sizeof cells);
        assert_ok(filch_graph_destroy(graph));
        if (status == FILCH_OK) {
            break;
        }
    }
    assert_true(failures > 2);
}

static void an_open_graph_runs_what_was_added(void **state)
{
    (void)state;
    static double wanted[SIDE * SIDE];
    run_single(wanted);
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_OPEN);
    filch_job *job = NULL;
    size_t added = 0;
    assert_status(filch_graph_add_many(graph, descs, TASKS, NULL, &added), FILCH_WRONG_STATE);
    assert_int_equal(added, 0);
    assert_ok(filch_graph_submit(graph, NULL, &job));
    spoil(50, 2);
    assert_status(filch_graph_add_many(graph, descs, TASKS, NULL, &added), FILCH_INVALID_ARGUMENT);
    assert_int_equal(added, 50);
    describe(50);
    assert_ok(filch_graph_add_many(graph, descs + 50, TASKS - 50, NULL, NULL));
    assert_ok(filch_graph_close(graph));
    assert_ok(filch_job_wait(job, -1));
    assert_ok(filch_job_release(job));
    assert_memory_equal(cells, wanted, sizeof cells);
    assert_status(filch_graph_add_many(graph, descs, 1, NULL, &added), FILCH_WRONG_STATE);
    assert_ok(filch_graph_destroy(graph));
}

static void a_task_that_fails_skips_those_behind_it(void **state)
{
    (void)state;
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_OPEN);
    filch_job *job = NULL;
    assert_ok(filch_graph_submit(graph, NULL, &job));
    descs[0].codelet = failing; /* every other task is behind the first */
    assert_ok(filch_graph_add_many(graph, descs, TASKS, NULL, NULL));
    assert_ok(filch_graph_close(graph));
    assert_status(filch_job_wait(job, -1), FILCH_TASK_FAILED);
    assert_ok(filch_job_release(job));
    for (uint32_t task = 0; task < TASKS; ++task) {
        assert_true(cells[task] == 0);
    }
    assert_ok(filch_graph_destroy(graph));
}

static void nulls_and_old_sizes(void **state)
{
    (void)state;
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    size_t added = 5;
    assert_ok(filch_graph_add_many(graph, NULL, 0, NULL, &added));
    assert_int_equal(added, 0);
    assert_status(filch_graph_add_many(graph, NULL, 1, NULL, &added), FILCH_INVALID_ARGUMENT);
    assert_string_equal(fixture_error(runtime).call, "filch_graph_add_many");
    added = 5;
    assert_status(filch_graph_add_many(NULL, descs, 1, NULL, &added), FILCH_INVALID_HANDLE);
    assert_int_equal(added, 0);
    /* Descriptions of the first version of the interface stand closer together. */
    enum { OLD = offsetof(filch_task_desc, items) };
    static union {
        char bytes[TASKS * OLD];
        max_align_t align;
    } old;
    static double wanted[SIDE * SIDE];
    for (uint32_t task = 0; task < TASKS; ++task) {
        descs[task].size = OLD;
        memcpy(old.bytes + task * OLD, &descs[task], OLD);
        describe(task);
    }
    run_single(wanted);
    assert_ok(filch_graph_add_many(graph, (const void *)old.bytes, TASKS, NULL, &added));
    assert_int_equal(added, TASKS);
    assert_ok(fixture_run(graph));
    assert_memory_equal(cells, wanted, sizeof cells);
    assert_ok(filch_graph_destroy(graph));
}

typedef struct adder {
    filch_graph *graph;
    filch_task names[TASKS];
    filch_status status;
} adder;

static int add_all(void *arg)
{
    adder *a = arg;
    a->status = filch_graph_add_many(a->graph, descs, TASKS, a->names, NULL);
    return 0;
}

static void no_other_thread_comes_between(void **state)
{
    (void)state;
    enum { ADDERS = 3 };
    static adder adders[ADDERS];
    fl_thread threads[ADDERS];
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    for (int t = 0; t < ADDERS; ++t) {
        adders[t].graph = graph;
        assert_int_equal(fl_thread_start(&threads[t], add_all, &adders[t]), FILCH_OK);
    }
    for (int t = 0; t < ADDERS; ++t) {
        fl_thread_join(threads[t]);
        assert_ok(adders[t].status);
        for (uint32_t task = 1; task < TASKS; ++task) {
            assert_true(adders[t].names[task] == adders[t].names[task - 1] + 1);
        }
    }
    assert_ok(fixture_run(graph));
    assert_ok(filch_graph_destroy(graph));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(one_call_makes_the_graph_of_many, describe_all),
        cmocka_unit_test_setup(a_refusal_leaves_the_tasks_before_it, describe_all),
        cmocka_unit_test_setup(without_memory_the_rest_can_be_added_later, describe_all),
        cmocka_unit_test_setup(an_open_graph_runs_what_was_added, describe_all),
        cmocka_unit_test_setup(a_task_that_fails_skips_those_behind_it, describe_all),
        cmocka_unit_test_setup(nulls_and_old_sizes, describe_all),
        cmocka_unit_test_setup(no_other_thread_comes_between, describe_all),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
