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
                "task #1: access 0: tile (10, 0) is outside the 10 x 1 tiles");
    desc.label = "mine";
    assert_status(filch_graph_add(graph, &desc, NULL), FILCH_INVALID_ARGUMENT);
    assert_says(FILCH_INVALID_ARGUMENT, "mine", "task #1: access 0");
    desc.label = NULL;
    assert_ok(filch_graph_seal(graph));
    access.row = 0;
    assert_status(filch_graph_add(graph, &desc, NULL), FILCH_WRONG_STATE);
    assert_says(FILCH_WRONG_STATE, "nothing", "task #1: the graph is sealed");
    filch_submit submit = FILCH_SUBMIT_INIT;
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
    assert_says(FILCH_BUSY, "", "tiles of the handle are held");
    assert_ok(filch_hold_release(hold));
    assert_ok(filch_data_destroy(data));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scratch_that_cannot_be_had_is_no_code_of_the_callers),
        cmocka_unit_test(a_mapping_found_wrong_late_is_no_code_of_the_callers),
        cmocka_unit_test(a_mapping_is_refused_with_its_numbers),
        cmocka_unit_test(an_error_says_which_task_it_was),
        cmocka_unit_test(a_held_handle_says_that_it_is_held),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
