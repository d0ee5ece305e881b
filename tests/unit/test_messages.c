/* SPDX-License-Identifier: Apache-2.0 */
/* What errors say of a caller's mistakes, and of what filch itself could not do. */
#define _GNU_SOURCE
#include "fixture.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static filch_runtime *runtime;
static filch_codelet *nothing;
static fixture_memory memory;
static double buffer[100];

static int set_up(void **state)
{
    (void)state;
    fixture_memory_init(&memory);
    runtime = fixture_runtime("host:1", FILCH_DRIVE_POLL, &memory);
    nothing = fixture_codelet(runtime, "nothing", fixture_nothing, 0);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    assert_ok(filch_runtime_destroy(runtime));
    return 0;
}

static void assert_text(const char *text, const char *part)
{
    if (strstr(text, part) == NULL) {
        fail_msg("'%s' is not in '%s'", part, text);
    }
}

/* The newest error of this thread has the status, the label, and the part in its text. */
static void assert_says(filch_status status, const char *label, const char *part)
{
    filch_error error = fixture_error(runtime);
    assert_int_equal(error.status, status);
    assert_string_equal(error.label, label);
    assert_text(error.text, part);
}

static void scratch_that_cannot_be_had_is_no_code_of_the_callers(void **state)
{
    (void)state;
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    filch_job *job = NULL;
    filch_error error = FILCH_ERROR_INIT;
    filch_access scratch = {.mode = FILCH_SCRATCH, .bytes = 4096};
    fixture_add(graph, nothing, NULL, &scratch, 1);
    assert_ok(filch_graph_seal(graph));
    memory.fail_all = 1;
    assert_ok(filch_graph_submit(graph, NULL, &job));
    assert_status(filch_job_wait(job, -1), FILCH_TASK_FAILED);
    memory.fail_all = 0;
    assert_ok(filch_job_error(job, &error));
    assert_int_equal(error.status, FILCH_OUT_OF_MEMORY);
    assert_int_equal(error.native_code, 0);
    assert_string_equal(error.label, "nothing");
    assert_string_equal(error.device, "host:0");
    assert_text(error.text, "no memory for 4096 bytes of scratch");
    assert_ok(filch_job_release(job));
    assert_ok(fixture_run(graph)); /* the next run gets it */
    assert_ok(filch_graph_destroy(graph));
}

/* Once is_late is set, chunks overlap: the submission sees good answers, the run bad ones. */
static bool is_late;

static void map_late(uint64_t lo, uint64_t hi, uint64_t *first, uint64_t *last, void *user)
{
    (void)user;
    *first = lo;
    *last = hi + is_late;
}

static void a_mapping_found_wrong_late_is_no_code_of_the_callers(void **state)
{
    (void)state;
    filch_data *data = fixture_vector(runtime, buffer, 8, 100, 10);
    filch_batch_access access = {
        .data = data, .mode = FILCH_WRITE, .map = FILCH_MAP_CALLBACK, .fn = map_late};
    filch_batch_desc desc = FILCH_BATCH_DESC_INIT;
    filch_error error = FILCH_ERROR_INIT;
    filch_item_range ranges[4];
    size_t count = 0;
    filch_job *job = NULL;
    is_late = false;
    desc.codelet = nothing;
    desc.n = 2;
    desc.grain = 1;
    desc.accesses = &access;
    desc.access_count = 1;
    assert_ok(filch_batch_submit(runtime, &desc, NULL, &job));
    is_late = true;
    assert_status(filch_job_wait(job, -1), FILCH_TASK_FAILED);
    assert_ok(filch_job_error(job, &error));
    assert_int_equal(error.status, FILCH_ALIAS);
    assert_int_equal(error.native_code, 0);
    assert_text(error.text, "would both write");
    assert_ok(filch_job_items(job, ranges, 4, &count));
    assert_int_equal(ranges[0].status, FILCH_ALIAS);
    assert_ok(filch_job_release(job));
    assert_ok(filch_data_destroy(data));
}

static uint64_t answer[2];

static void map_answer(uint64_t lo, uint64_t hi, uint64_t *first, uint64_t *last, void *user)
{
    (void)lo, (void)hi, (void)user;
    *first = answer[0];
    *last = answer[1];
}

static void a_mapping_is_refused_with_its_numbers(void **state)
{
    (void)state;
    filch_data *data = fixture_vector(runtime, buffer, 8, 100, 10);
    filch_batch_access access = {
        .data = data, .mode = FILCH_READ, .map = FILCH_MAP_CALLBACK, .fn = map_answer};
    filch_batch_desc desc = FILCH_BATCH_DESC_INIT;
    desc.codelet = nothing;
    desc.n = 2;
    desc.grain = 1;
    desc.accesses = &access;
    desc.access_count = 1;
    answer[0] = 7;
    answer[1] = 3;
    assert_status(filch_batch_submit(runtime, &desc, NULL, NULL), FILCH_INVALID_ARGUMENT);
    assert_says(FILCH_INVALID_ARGUMENT, "",
                "access 0: items [0, 1) map to elements [7, 3), a reversed range");
    answer[1] = 101;
    assert_status(filch_batch_submit(runtime, &desc, NULL, NULL), FILCH_INVALID_ARGUMENT);
    assert_says(FILCH_INVALID_ARGUMENT, "", "elements [7, 101), past the 100 of the handle");
    answer[1] = 9;
    access.mode = FILCH_WRITE;
    assert_status(filch_batch_submit(runtime, &desc, NULL, NULL), FILCH_ALIAS);
    assert_says(FILCH_ALIAS, "",
                "items [0, 1) and [1, 2) would both write: they map to elements [7, 9) and [7, 9)");
    assert_ok(filch_data_destroy(data));
}

static void an_error_says_which_task_it_was(void **state)
{
    (void)state;
    filch_data *data = fixture_vector(runtime, buffer, 8, 100, 10);
    filch_graph_desc named = FILCH_GRAPH_DESC_INIT;
    filch_graph *graph = NULL;
    filch_access access = fixture_access(data, 10, FILCH_READ);
    filch_task_desc desc = FILCH_TASK_DESC_INIT;
    named.label = "sweep";
    assert_ok(filch_graph_create(runtime, &named, &graph));
    fixture_add(graph, nothing, NULL, NULL, 0);
    desc.accesses = &access;
    desc.access_count = 1;
    assert_status(filch_graph_add(graph, &desc, NULL), FILCH_INVALID_HANDLE);
    assert_says(FILCH_INVALID_HANDLE, "sweep", "task #1: the codelet is null");
    desc.codelet = nothing;
    assert_status(filch_graph_add(graph, &desc, NULL), FILCH_INVALID_ARGUMENT);
    assert_says(FILCH_INVALID_ARGUMENT, "nothing",
                "task #1 'nothing': access 0: tile (10, 0) is outside the 10 x 1 tiles");
    desc.label = "mine";
    assert_status(filch_graph_add(graph, &desc, NULL), FILCH_INVALID_ARGUMENT);
    assert_says(FILCH_INVALID_ARGUMENT, "mine", "task #1 'mine': access 0");
    desc.label = NULL;
    assert_ok(filch_graph_seal(graph));
    access.row = 0;
    assert_status(filch_graph_add(graph, &desc, NULL), FILCH_WRONG_STATE);
    assert_says(FILCH_WRONG_STATE, "nothing", "task #1 'nothing': the graph is sealed");
    filch_submit_desc submit = FILCH_SUBMIT_DESC_INIT;
    submit.reserved = 1;
    assert_status(filch_graph_submit(graph, &submit, NULL), FILCH_INVALID_ARGUMENT);
    assert_says(FILCH_INVALID_ARGUMENT, "sweep", "reserved is not 0");
    assert_ok(filch_graph_destroy(graph));
    assert_ok(filch_data_destroy(data));
}

static void a_held_handle_says_that_it_is_held(void **state)
{
    (void)state;
    filch_data *data = fixture_vector(runtime, buffer, 8, 100, 10);
    filch_hold *hold = NULL;
    assert_ok(filch_data_acquire_tiles(data, NULL, FILCH_READ, -1, &hold));
    assert_status(filch_data_destroy(data), FILCH_BUSY);
    assert_says(FILCH_BUSY, "", "the handle has tiles that the host holds (filch_hold_release)");
    assert_ok(filch_hold_release(hold));
    assert_ok(filch_data_destroy(data));
}

static void an_acquired_handle_is_not_destroyed(void **state)
{
    (void)state;
    filch_data *data = fixture_vector(runtime, buffer, 8, 100, 10);
    buffer[0] = 5;
    assert_ok(filch_data_acquire(data, FILCH_READWRITE));
    assert_status(filch_data_destroy(data), FILCH_BUSY);
    assert_says(FILCH_BUSY, "", "the handle is acquired by the host (filch_data_release)");
    assert_status(filch_data_acquire(data, FILCH_READ), FILCH_WRONG_STATE);
    assert_says(FILCH_WRONG_STATE, "", "the handle is acquired already");
    assert_ok(filch_data_release(data));
    assert_status(filch_data_release(data), FILCH_WRONG_STATE);
    assert_says(FILCH_WRONG_STATE, "", "the handle is not acquired");
    assert_ok(filch_data_destroy(data));
}

static filch_data *labelled(const char *label)
{
    filch_data_desc desc = FILCH_DATA_DESC_INIT;
    filch_data *data = NULL;
    desc.ptr = buffer;
    desc.element = 8;
    desc.rows = 100;
    desc.tile_rows = 10;
    desc.label = label;
    assert_ok(filch_data_create(runtime, &desc, &data));
    return data;
}

static filch_graph *labelled_graph(const char *label, filch_graph_kind kind)
{
    filch_graph_desc desc = FILCH_GRAPH_DESC_INIT;
    filch_graph *graph = NULL;
    desc.label = label;
    desc.kind = kind;
    assert_ok(filch_graph_create(runtime, &desc, &graph));
    return graph;
}

static void running_jobs_are_told_by_their_labels(void **state)
{
    (void)state;
    static const char *const labels[] = {"first", "", "second", "first", "third", "fourth"};
    enum { COUNT = sizeof labels / sizeof *labels };
    filch_graph *graphs[COUNT];
    unsigned told = 0;
    for (int i = 0; i < COUNT; ++i) {
        filch_submit_desc submit = FILCH_SUBMIT_DESC_INIT;
        graphs[i] = fixture_graph(runtime, FILCH_GRAPH_OPEN); /* runs until it is closed */
        submit.label = labels[i];
        assert_ok(filch_graph_submit(graphs[i], &submit, NULL));
        assert_status(filch_runtime_destroy(runtime), FILCH_BUSY);
        if (i == 0) {
            assert_string_equal(fixture_error(runtime).text, "jobs still running: 1 ('first')");
        }
        if (i == 3) {
            assert_says(FILCH_BUSY, "", "jobs still running: 4 (");
            assert_text(fixture_error(runtime).text, "'second'");
            assert_null(strstr(fixture_error(runtime).text, "..."));
        }
    }
    assert_says(FILCH_BUSY, "", "jobs still running: 6 (");
    assert_text(fixture_error(runtime).text, ", ...)");
    for (int i = 0; i < COUNT; ++i) {
        char quoted[16];
        snprintf(quoted, sizeof quoted, "'%s'", labels[i]);
        told += i != 3 && strstr(fixture_error(runtime).text, quoted) != NULL;
    }
    assert_int_equal(told, 3);
    for (int i = 0; i < COUNT; ++i) {
        assert_ok(filch_graph_close(graphs[i]));
    }
    assert_ok(filch_runtime_drain(runtime, -1));
    for (int i = 0; i < COUNT; ++i) {
        assert_ok(filch_graph_destroy(graphs[i]));
    }
}

static void what_is_busy_is_told_by_its_label(void **state)
{
    (void)state;
    filch_data *data = labelled("matrix");
    filch_graph *graph = labelled_graph("sweep", FILCH_GRAPH_CLOSED);
    filch_graph *open = labelled_graph("stream", FILCH_GRAPH_OPEN);
    filch_submit_desc submit = FILCH_SUBMIT_DESC_INIT;
    filch_task_desc task = FILCH_TASK_DESC_INIT;
    filch_access access = fixture_access(data, 0, FILCH_READ);
    filch_hold *hold = NULL;
    fixture_add(graph, nothing, NULL, &access, 1);
    submit.label = "first";
    assert_ok(filch_graph_submit(graph, &submit, NULL));
    assert_status(filch_graph_destroy(graph), FILCH_BUSY);
    assert_says(FILCH_BUSY, "sweep", "graph 'sweep' is in use: job 'first' waits or runs");
    assert_status(filch_data_acquire(data, FILCH_READ), FILCH_BUSY);
    assert_says(FILCH_BUSY, "matrix", "handle 'matrix' is used by a job that is not complete");
    assert_status(filch_data_reduction(data, nothing, nothing), FILCH_BUSY);
    assert_says(FILCH_BUSY, "matrix", "handle 'matrix' is used by a graph or a running job");
    assert_status(filch_data_destroy(data), FILCH_BUSY);
    assert_says(FILCH_BUSY, "matrix", "handle 'matrix' is used by a graph or a running job");
    assert_ok(filch_runtime_drain(runtime, -1));
    assert_ok(filch_graph_destroy(graph));
    assert_ok(filch_data_acquire_tiles(data, NULL, FILCH_READ, -1, &hold));
    assert_status(filch_data_acquire(data, FILCH_READ), FILCH_BUSY);
    assert_says(FILCH_BUSY, "matrix", "handle 'matrix' has tiles that the host holds");
    assert_ok(filch_hold_release(hold));
    assert_ok(filch_data_acquire(data, FILCH_READ));
    assert_ok(filch_graph_submit(open, NULL, NULL));
    task.codelet = nothing;
    task.accesses = &access;
    task.access_count = 1;
    assert_status(filch_graph_add(open, &task, NULL), FILCH_BUSY);
    assert_says(FILCH_BUSY, "nothing", "the host has acquired the handle 'matrix' and not");
    assert_ok(filch_data_release(data));
    assert_ok(filch_graph_close(open));
    assert_ok(filch_runtime_drain(runtime, -1));
    assert_ok(filch_graph_destroy(open));
    assert_ok(filch_data_destroy(data));
}

/* Stands in the place of a handle, where the compiler would not let an object of another kind. */
static void *as_other(void *object)
{
    return object;
}

static void a_handle_of_another_kind_is_told_as_such(void **state)
{
    (void)state;
    filch_data *data = fixture_vector(runtime, buffer, 8, 100, 10);
    filch_graph *graph = labelled_graph("sweep", FILCH_GRAPH_CLOSED);
    filch_access access = fixture_access(as_other(graph), 0, FILCH_READ);
    filch_batch_access item = {.data = as_other(nothing), .mode = FILCH_READ};
    filch_task_desc task = FILCH_TASK_DESC_INIT;
    filch_batch_desc batch = FILCH_BATCH_DESC_INIT;
    task.accesses = &access;
    task.access_count = 1;
    task.codelet = as_other(data);
    assert_status(filch_graph_add(graph, &task, NULL), FILCH_INVALID_HANDLE);
    assert_says(FILCH_INVALID_HANDLE, "sweep", "the codelet is of another kind: a data handle");
    task.codelet = nothing;
    assert_status(filch_graph_add(graph, &task, NULL), FILCH_INVALID_HANDLE);
    assert_says(FILCH_INVALID_HANDLE, "nothing",
                "access 0: the data handle is of another kind: a graph");
    access.data = NULL;
    assert_status(filch_graph_add(graph, &task, NULL), FILCH_INVALID_HANDLE);
    assert_says(FILCH_INVALID_HANDLE, "nothing", "access 0: the data handle is null");
    batch.codelet = nothing;
    batch.accesses = &item;
    batch.access_count = 1;
    assert_status(filch_batch_submit(runtime, &batch, NULL, NULL), FILCH_INVALID_HANDLE);
    assert_says(FILCH_INVALID_HANDLE, "",
                "access 0: the data handle is of another kind: a codelet");
    batch.codelet = as_other(graph);
    assert_status(filch_batch_submit(runtime, &batch, NULL, NULL), FILCH_INVALID_HANDLE);
    assert_says(FILCH_INVALID_HANDLE, "", "the codelet is of another kind: a graph");
    assert_status(filch_graph_discard(graph, as_other(graph)), FILCH_INVALID_HANDLE);
    assert_says(FILCH_INVALID_HANDLE, "sweep", "the data handle is of another kind: a graph");
    assert_status(filch_graph_read_only(graph, as_other(runtime)), FILCH_INVALID_HANDLE);
    assert_says(FILCH_INVALID_HANDLE, "sweep", "the data handle is of another kind: a runtime");
    assert_status(filch_graph_partition(graph, data, as_other(graph)), FILCH_INVALID_HANDLE);
    assert_says(FILCH_INVALID_HANDLE, "sweep", "'child' is of another kind: a graph");
    assert_status(filch_graph_partition(graph, NULL, data), FILCH_INVALID_HANDLE);
    assert_says(FILCH_INVALID_HANDLE, "sweep", "'parent' is null");
    assert_status(filch_data_reduction(data, nothing, as_other(data)), FILCH_INVALID_HANDLE);
    assert_says(FILCH_INVALID_HANDLE, "",
                "the combining codelet is of another kind: a data handle");
    assert_ok(filch_graph_destroy(graph));
    assert_ok(filch_data_destroy(data));
}

static void what_is_another_runtimes_is_told_by_its_label(void **state)
{
    (void)state;
    filch_runtime *own = fixture_runtime("host:1", FILCH_DRIVE_POLL, NULL);
    filch_codelet *strange = fixture_codelet(own, "strange", fixture_nothing, 0);
    filch_data_desc desc = FILCH_DATA_DESC_INIT;
    filch_data *far = NULL, *unnamed = fixture_vector(own, buffer, 8, 100, 10);
    filch_data *near = fixture_vector(runtime, buffer, 8, 100, 10);
    filch_graph *graph = labelled_graph("sweep", FILCH_GRAPH_CLOSED);
    filch_access access = {.mode = FILCH_READ};
    filch_batch_access item = {.mode = FILCH_READ};
    filch_task_desc task = FILCH_TASK_DESC_INIT;
    filch_batch_desc batch = FILCH_BATCH_DESC_INIT;
    desc.ptr = buffer;
    desc.element = 8;
    desc.rows = 100;
    desc.label = "far";
    assert_ok(filch_data_create(own, &desc, &far));
    task.codelet = strange;
    assert_status(filch_graph_add(graph, &task, NULL), FILCH_WRONG_RUNTIME);
    assert_says(FILCH_WRONG_RUNTIME, "strange", "the codelet 'strange' belongs to another runtime");
    task.codelet = nothing;
    task.accesses = &access;
    task.access_count = 1;
    access.data = far;
    assert_status(filch_graph_add(graph, &task, NULL), FILCH_WRONG_RUNTIME);
    assert_says(FILCH_WRONG_RUNTIME, "nothing",
                "access 0: the data handle 'far' belongs to another runtime");
    access.data = unnamed;
    assert_status(filch_graph_add(graph, &task, NULL), FILCH_WRONG_RUNTIME);
    assert_says(FILCH_WRONG_RUNTIME, "nothing",
                "access 0: the data handle belongs to another runtime");
    batch.codelet = nothing;
    batch.accesses = &item;
    batch.access_count = 1;
    item.data = far;
    assert_status(filch_batch_submit(runtime, &batch, NULL, NULL), FILCH_WRONG_RUNTIME);
    assert_says(FILCH_WRONG_RUNTIME, "far",
                "access 0: the data handle 'far' belongs to another runtime");
    batch.codelet = strange;
    assert_status(filch_batch_submit(runtime, &batch, NULL, NULL), FILCH_WRONG_RUNTIME);
    assert_says(FILCH_WRONG_RUNTIME, "strange", "the codelet 'strange' belongs to another runtime");
    assert_status(filch_graph_discard(graph, far), FILCH_WRONG_RUNTIME);
    assert_says(FILCH_WRONG_RUNTIME, "far", "the data handle 'far' belongs to another runtime");
    assert_status(filch_graph_read_only(graph, far), FILCH_WRONG_RUNTIME);
    assert_says(FILCH_WRONG_RUNTIME, "far", "the data handle 'far' belongs to another runtime");
    assert_status(filch_graph_partition(graph, near, far), FILCH_WRONG_RUNTIME);
    assert_says(FILCH_WRONG_RUNTIME, "far", "'child' 'far' belongs to another runtime");
    assert_status(filch_data_reduction(near, nothing, strange), FILCH_WRONG_RUNTIME);
    assert_says(FILCH_WRONG_RUNTIME, "strange",
                "the combining codelet 'strange' belongs to another runtime");
    assert_ok(filch_graph_destroy(graph));
    assert_ok(filch_data_destroy(near));
    assert_ok(filch_data_destroy(far));
    assert_ok(filch_data_destroy(unnamed));
    assert_ok(filch_runtime_destroy(own));
}

static void an_edge_tells_the_number_of_the_task(void **state)
{
    (void)state;
    filch_graph *graph = labelled_graph("sweep", FILCH_GRAPH_CLOSED);
    filch_task first = fixture_add(graph, nothing, NULL, NULL, 0);
    assert_status(filch_graph_edge(graph, first, 7), FILCH_INVALID_ARGUMENT);
    assert_says(FILCH_INVALID_ARGUMENT, "sweep", "'after' is 7, which is no task of graph 'sweep'");
    assert_status(filch_graph_edge(graph, 0, first), FILCH_INVALID_ARGUMENT);
    assert_says(FILCH_INVALID_ARGUMENT, "sweep", "'before' is 0, which is no task of");
    assert_status(filch_graph_edge(graph, first, first), FILCH_INVALID_ARGUMENT);
    assert_says(FILCH_INVALID_ARGUMENT, "sweep", "task 1 cannot wait for itself");
    assert_ok(filch_graph_destroy(graph));
}

static void a_block_that_is_too_large_tells_what_its_counts_mean(void **state)
{
    (void)state;
    filch_data *data = fixture_vector(runtime, buffer, 8, 100, 10);
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    filch_access access = FILCH_BLOCK(data, 6, 0, 5, 0, FILCH_READ);
    filch_task_desc task = FILCH_TASK_DESC_INIT;
    task.codelet = nothing;
    task.accesses = &access;
    task.access_count = 1;
    assert_status(filch_graph_add(graph, &task, NULL), FILCH_INVALID_ARGUMENT);
    assert_says(FILCH_INVALID_ARGUMENT, "nothing",
                "task #0 'nothing': access 0: the block of 5 x 1 tiles (cols is 0, which means 1) "
                "from tile (6, 0) on is not within the 10 x 1 tiles of the handle");
    access.rows = 0;
    access.cols = 2;
    assert_status(filch_graph_add(graph, &task, NULL), FILCH_INVALID_ARGUMENT);
    assert_says(FILCH_INVALID_ARGUMENT, "nothing",
                "of 1 x 2 tiles (rows is 0, which means 1) from");
    access.rows = 1;
    assert_status(filch_graph_add(graph, &task, NULL), FILCH_INVALID_ARGUMENT);
    assert_says(FILCH_INVALID_ARGUMENT, "nothing", "of 1 x 2 tiles from");
    assert_ok(filch_graph_destroy(graph));
    assert_ok(filch_data_destroy(data));
}

static void a_run_is_named_by_the_function_that_was_called(void **state)
{
    (void)state;
    filch_data *data = labelled("matrix");
    filch_graph *graph = labelled_graph("sweep", FILCH_GRAPH_CLOSED);
    filch_graph *circle = labelled_graph("circle", FILCH_GRAPH_CLOSED);
    filch_access access = fixture_access(data, 0, FILCH_READ);
    filch_batch_access item = {.data = data, .mode = FILCH_READ, .map = FILCH_MAP_WHOLE};
    filch_batch_desc batch = FILCH_BATCH_DESC_INIT;
    filch_error error = FILCH_ERROR_INIT;
    filch_job *job = NULL;
    filch_task tasks[2];
    fixture_add(graph, nothing, NULL, &access, 1);
    assert_ok(filch_data_acquire(data, FILCH_READ));
    assert_status(filch_graph_run(graph, NULL, &error), FILCH_BUSY);
    assert_string_equal(error.call, "filch_graph_run");
    assert_text(error.text, "the host has acquired the handle 'matrix'");
    assert_says(FILCH_BUSY, error.label, "the host has acquired the handle 'matrix'");
    assert_string_equal(fixture_error(runtime).call, "filch_graph_run");
    batch.codelet = nothing;
    batch.n = 1;
    batch.accesses = &item;
    batch.access_count = 1;
    assert_status(filch_batch_run(runtime, &batch, NULL, &error), FILCH_BUSY);
    assert_string_equal(error.call, "filch_batch_run");
    assert_status(filch_batch_submit(runtime, &batch, NULL, &job), FILCH_BUSY);
    assert_string_equal(fixture_error(runtime).call, "filch_batch_submit");
    assert_ok(filch_data_release(data));
    for (int i = 0; i < 2; ++i) {
        tasks[i] = fixture_add(circle, nothing, NULL, NULL, 0);
    }
    assert_ok(filch_graph_edge(circle, tasks[0], tasks[1]));
    assert_ok(filch_graph_edge(circle, tasks[1], tasks[0]));
    assert_status(filch_graph_submit(circle, NULL, &job), FILCH_CYCLE);
    assert_string_equal(fixture_error(runtime).call, "filch_graph_submit");
    assert_status(filch_graph_run(circle, NULL, &error), FILCH_CYCLE);
    assert_string_equal(error.call, "filch_graph_run");
    assert_ok(filch_graph_destroy(circle));
    assert_ok(filch_graph_destroy(graph));
    assert_ok(filch_data_destroy(data));
}

static void a_cancelled_job_is_told_by_its_label(void **state)
{
    (void)state;
    filch_graph *graph = labelled_graph("sweep", FILCH_GRAPH_CLOSED);
    filch_submit_desc submit = FILCH_SUBMIT_DESC_INIT;
    filch_error error = FILCH_ERROR_INIT;
    filch_job *job = NULL;
    fixture_add(graph, nothing, NULL, NULL, 0);
    submit.label = "first";
    assert_ok(filch_graph_submit(graph, &submit, &job));
    assert_ok(filch_job_cancel(job));
    assert_status(filch_job_error(job, &error), FILCH_NOT_FOUND); /* it may be success */
    assert_status(filch_job_wait(job, -1), FILCH_CANCELLED);
    assert_ok(filch_job_error(job, &error));
    assert_int_equal(error.status, FILCH_CANCELLED);
    assert_string_equal(error.label, "first");
    assert_string_equal(error.text, "job 'first' was cancelled");
    assert_ok(filch_job_release(job));
    assert_ok(filch_graph_destroy(graph));
}

static void a_call_with_a_wrong_handle_is_the_newest_failure(void **state)
{
    (void)state;
    filch_graph *graph = labelled_graph("sweep", FILCH_GRAPH_CLOSED);
    filch_error error = FILCH_ERROR_INIT;
    filch_submit_desc submit = FILCH_SUBMIT_DESC_INIT;
    submit.reserved = 1;
    assert_status(filch_graph_submit(graph, &submit, NULL), FILCH_INVALID_ARGUMENT);
    assert_status(filch_graph_submit(NULL, NULL, NULL), FILCH_INVALID_HANDLE);
    assert_says(FILCH_INVALID_HANDLE, "", "the graph is null");
    assert_string_equal(fixture_error(runtime).call, "filch_graph_submit");
    assert_status(filch_job_wait(as_other(graph), 0), FILCH_INVALID_HANDLE);
    assert_says(FILCH_INVALID_HANDLE, "", "the job is of another kind: a graph");
    assert_string_equal(fixture_error(runtime).call, "filch_job_wait");
    assert_status(filch_runtime_poll(as_other(nothing), 0, NULL), FILCH_INVALID_HANDLE);
    assert_says(FILCH_INVALID_HANDLE, "", "the runtime is of another kind: a codelet");
    assert_string_equal(fixture_error(runtime).call, "filch_runtime_poll");
    assert_status(filch_data_destroy(NULL), FILCH_INVALID_HANDLE);
    assert_says(FILCH_INVALID_HANDLE, "", "the data handle is null");
    assert_status(filch_graph_run(NULL, NULL, &error), FILCH_INVALID_HANDLE);
    assert_string_equal(error.call, "filch_graph_run");
    assert_string_equal(error.text, "the graph is null");
    /* A later failure on the runtime is newer. */
    assert_status(filch_graph_submit(graph, &submit, NULL), FILCH_INVALID_ARGUMENT);
    assert_says(FILCH_INVALID_ARGUMENT, "sweep", "reserved is not 0");
    assert_ok(filch_graph_destroy(graph));
    /* A runtime made since knows nothing of it. */
    filch_runtime *later = fixture_runtime("host:1", FILCH_DRIVE_POLL, NULL);
    assert_status(filch_runtime_error(later, &error), FILCH_NOT_FOUND);
    assert_status(filch_graph_destroy(NULL), FILCH_INVALID_HANDLE);
    assert_ok(filch_runtime_error(later, &error));
    assert_string_equal(error.call, "filch_graph_destroy");
    assert_ok(filch_runtime_destroy(later));
}

/* A record of a newer version: as large as asked for. */
typedef struct newer_desc {
    filch_graph_desc desc;
    uint64_t more[2];
} newer_desc;

static void a_size_is_told_with_the_least_one(void **state)
{
    (void)state;
    filch_graph *graph = NULL;
    newer_desc newer = {.desc = FILCH_GRAPH_DESC_INIT};
    char wanted[96];
    newer.desc.size = 0;
    assert_status(filch_graph_create(runtime, &newer.desc, &graph), FILCH_INVALID_ARGUMENT);
    assert_says(FILCH_INVALID_ARGUMENT, "", "size is not set");
    newer.desc.size = 8;
    snprintf(wanted, sizeof wanted, "size is 8, the least accepted is %zu",
             offsetof(filch_graph_desc, max_live));
    assert_status(filch_graph_create(runtime, &newer.desc, &graph), FILCH_INVALID_ARGUMENT);
    assert_says(FILCH_INVALID_ARGUMENT, "", wanted);
    newer.desc.size = sizeof newer;
    newer.more[1] = 1;
    assert_status(filch_graph_create(runtime, &newer.desc, &graph), FILCH_INVALID_ARGUMENT);
    assert_says(FILCH_INVALID_ARGUMENT, "", "is not 0");
    newer.desc.size = 1000000; /* was never set; nothing there may be looked at */
    assert_status(filch_graph_create(runtime, &newer.desc, &graph), FILCH_INVALID_ARGUMENT);
    assert_says(FILCH_INVALID_ARGUMENT, "", "size is 1000000, this filch knows");
    newer.desc.size = sizeof newer;
    newer.more[1] = 0;
    assert_ok(filch_graph_create(runtime, &newer.desc, &graph));
    assert_ok(filch_graph_destroy(graph));
    filch_usage usage = {.size = 8};
    assert_status(filch_runtime_usage(runtime, &usage), FILCH_INVALID_ARGUMENT);
    usage.size = 0;
    assert_status(filch_runtime_usage(runtime, &usage), FILCH_INVALID_ARGUMENT);
    assert_says(FILCH_INVALID_ARGUMENT, "", "the result's size is not set");
}

/* A runtime on the devices is refused. */
static filch_error refused(const filch_runtime_desc *config, filch_status status)
{
    filch_runtime *none = NULL;
    filch_error error = FILCH_ERROR_INIT;
    assert_status(filch_runtime_create(config, &error, &none), status);
    assert_int_equal(error.status, status);
    return error;
}

static void configurations_say_what_is_wrong(void **state)
{
    (void)state;
    filch_runtime_desc config = FILCH_RUNTIME_DESC_INIT;
    config.size = 8;
    assert_text(refused(&config, FILCH_INVALID_ARGUMENT).text, "size is 8, the least accepted");
    config.size = 1000000;
    assert_text(refused(&config, FILCH_INVALID_ARGUMENT).text, "size is 1000000");
    config.size = sizeof config;
    config.devices = "host:1x1025";
    assert_text(refused(&config, FILCH_PARSE).text, "character 8: a device of more than 1024");
    config.devices = "sim:/nonexistent.json";
    assert_string_equal(refused(&config, FILCH_IO).text,
                        "cannot open /nonexistent.json: No such file or directory");
    char path[] = "/tmp/filch-messages-XXXXXX", devices[64];
    int file = mkstemp(path);
    FILE *stream = file >= 0 ? fdopen(file, "w") : NULL;
    assert_non_null(stream);
    fputs("{\"devices\":[{\"speed\":1,\"name\":\"a\"},{\"speed\":1,\"name\":\"a\"}]}", stream);
    fclose(stream);
    snprintf(devices, sizeof devices, "sim:%s", path);
    config.devices = devices;
    filch_error error = refused(&config, FILCH_DUPLICATE_DEVICE);
    remove(path);
    assert_text(error.text, "two devices are called 'a'; in /tmp/filch-messages-");
    assert_string_equal(error.label, path);
}

static void odd_arguments_are_told_as_such(void **state)
{
    (void)state;
    filch_data *data = fixture_vector(runtime, buffer, 8, 100, 10);
    filch_hold *hold = NULL;
    uint32_t index = 0;
    assert_status(filch_data_acquire(data, FILCH_REDUCE), FILCH_INVALID_ARGUMENT);
    assert_says(FILCH_INVALID_ARGUMENT, "", "cannot be acquired with this mode");
    assert_status(filch_data_acquire_tiles(data, NULL, FILCH_READ, (double)NAN, &hold),
                  FILCH_INVALID_ARGUMENT);
    assert_says(FILCH_INVALID_ARGUMENT, "", "seconds is not a number");
    assert_ok(filch_data_destroy(data));
    assert_status(filch_device_by_ordinal(runtime, (filch_backend)7, 0, &index),
                  FILCH_INVALID_ARGUMENT);
    assert_says(FILCH_INVALID_ARGUMENT, "", "no backend with the number 7");
    assert_status(filch_device_by_ordinal(runtime, FILCH_BACKEND_HOST, 99, &index),
                  FILCH_UNKNOWN_ORDINAL);
    assert_says(FILCH_UNKNOWN_ORDINAL, "", "backend host has no device with ordinal 99");
}

static int warnings;

static void count_warnings(filch_log_level level, const char *text, void *user)
{
    (void)user;
    warnings += level == FILCH_LOG_WARNING && strstr(text, "answered device 7") != NULL;
}

static uint32_t place_nowhere(const filch_policy_view *view, void *user)
{
    (void)view, (void)user;
    return 7;
}

static void a_policy_that_names_no_device_is_told_once(void **state)
{
    (void)state;
    filch_runtime_desc config = FILCH_RUNTIME_DESC_INIT;
    filch_policy_desc policy = FILCH_POLICY_DESC_INIT;
    filch_runtime *own = NULL;
    policy.place = place_nowhere;
    config.devices = "host:1";
    config.drive = FILCH_DRIVE_POLL;
    config.custom_policy = &policy;
    config.log = count_warnings;
    warnings = 0;
    assert_ok(filch_runtime_create(&config, NULL, &own));
    filch_codelet *codelet = fixture_codelet(own, "nothing", fixture_nothing, 0);
    filch_graph *graph = fixture_graph(own, FILCH_GRAPH_CLOSED);
    for (int i = 0; i < 3; ++i) {
        fixture_add(graph, codelet, NULL, NULL, 0);
    }
    assert_ok(fixture_run(graph));
    assert_int_equal(warnings, 1);
    assert_ok(filch_runtime_destroy(own));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scratch_that_cannot_be_had_is_no_code_of_the_callers),
        cmocka_unit_test(a_mapping_found_wrong_late_is_no_code_of_the_callers),
        cmocka_unit_test(a_mapping_is_refused_with_its_numbers),
        cmocka_unit_test(an_error_says_which_task_it_was),
        cmocka_unit_test(a_held_handle_says_that_it_is_held),
        cmocka_unit_test(an_acquired_handle_is_not_destroyed),
        cmocka_unit_test(running_jobs_are_told_by_their_labels),
        cmocka_unit_test(what_is_busy_is_told_by_its_label),
        cmocka_unit_test(a_handle_of_another_kind_is_told_as_such),
        cmocka_unit_test(what_is_another_runtimes_is_told_by_its_label),
        cmocka_unit_test(an_edge_tells_the_number_of_the_task),
        cmocka_unit_test(a_block_that_is_too_large_tells_what_its_counts_mean),
        cmocka_unit_test(a_run_is_named_by_the_function_that_was_called),
        cmocka_unit_test(a_cancelled_job_is_told_by_its_label),
        cmocka_unit_test(a_call_with_a_wrong_handle_is_the_newest_failure),
        cmocka_unit_test(a_size_is_told_with_the_least_one),
        cmocka_unit_test(configurations_say_what_is_wrong),
        cmocka_unit_test(odd_arguments_are_told_as_such),
        cmocka_unit_test(a_policy_that_names_no_device_is_told_once),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
