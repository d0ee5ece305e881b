/* SPDX-License-Identifier: Apache-2.0 */
/* Places of open graphs in the order of jobs: by submission where neither has begun, readers side
 * by side, and no circle of jobs that wait for each other. No thread runs but the test's, and
 * nothing before it says so. */
#include "fixture.h"

#include <stdio.h>
#include <string.h>

enum { HANDLES = 4, JOBS = 6 };

static filch_runtime *runtime;
static fixture_memory memory;
static filch_codelet *note;
static int64_t cells[HANDLES][JOBS];
static filch_data *data[HANDLES], *halves;
static filch_graph *graphs[JOBS];
static filch_job *jobs[JOBS];
static char ran[64]; /* a letter a task */

static int run_note(const filch_call *call)
{
    size_t length = strlen(ran);
    if (length + 1 < sizeof ran) {
        ran[length] = *(const char *)call->args;
    }
    return 0;
}

static int set_up(void **state)
{
    (void)state;
    static const char *const labels[HANDLES] = {"alpha", "beta", "gamma", "delta"};
    fixture_memory_init(&memory);
    runtime = fixture_runtime("host:1", FILCH_DRIVE_POLL, &memory);
    note = fixture_codelet(runtime, "note", run_note, 1);
    for (int i = 0; i < HANDLES; ++i) {
        filch_data_desc desc = FILCH_DATA_DESC_INIT;
        desc.ptr = cells[i];
        desc.element = sizeof cells[i][0];
        desc.rows = JOBS;
        desc.tile_rows = 1;
        desc.label = labels[i];
        assert_ok(filch_data_create(runtime, &desc, &data[i]));
    }
    filch_data_desc half = FILCH_DATA_DESC_INIT;
    half.tile_rows = 2;
    assert_ok(filch_data_partition(data[0], &half, &halves));
    memset(graphs, 0, sizeof graphs);
    memset(jobs, 0, sizeof jobs);
    memset(ran, 0, sizeof ran);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    assert_ok(filch_runtime_destroy(runtime));
    return 0;
}

/* Job j, called by its letter: 'A' + j. */
static void submit(int j)
{
    char label[] = {(char)('A' + j), '\0'};
    filch_submit_desc how = FILCH_SUBMIT_DESC_INIT;
    how.label = label;
    assert_ok(filch_graph_submit(graphs[j], &how, &jobs[j]));
}

static void begin(int count)
{
    for (int j = 0; j < count; ++j) {
        graphs[j] = fixture_graph(runtime, FILCH_GRAPH_OPEN);
        submit(j);
    }
}

/* What a task of job j uses: "0r1w" reads handle 0 and writes handle 1, each its tile j. */
static filch_status try_add(int j, const char *uses)
{
    filch_access accesses[HANDLES];
    char letter = (char)('A' + j);
    filch_task_desc desc = FILCH_TASK_DESC_INIT;
    desc.codelet = note;
    desc.args = &letter;
    desc.accesses = accesses;
    desc.access_count = (uint32_t)strlen(uses) / 2;
    for (uint32_t i = 0; i < desc.access_count; ++i) {
        char mode = uses[2 * i + 1];
        accesses[i] = fixture_access(data[uses[2 * i] - '0'], (uint32_t)j,
                                     mode == 'r'   ? FILCH_READ
                                     : mode == 'c' ? FILCH_COMMUTE
                                                   : FILCH_READWRITE);
    }
    return filch_graph_add(graphs[j], &desc, NULL);
}

/* Until nothing can be done now. */
static void settle(void)
{
    bool worked = true;
    while (worked) {
        assert_ok(filch_runtime_poll(runtime, -1, &worked));
    }
}

/* What can run has run then. */
static void add(int j, const char *uses)
{
    assert_ok(try_add(j, uses));
    settle();
}

/* A closed graph with one task. */
static void submit_closed(int j, const char *uses)
{
    graphs[j] = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    add(j, uses);
    submit(j);
}

/* Refused, for the sake of the other job at the handle. */
static void refused(int j, const char *uses, int other, const char *handle)
{
    char mine[8], theirs[8];
    assert_status(try_add(j, uses), FILCH_DEADLOCK);
    filch_error error = fixture_error(runtime);
    (void)snprintf(mine, sizeof mine, "'%c'", 'A' + j);
    (void)snprintf(theirs, sizeof theirs, "'%c'", 'A' + other);
    assert_int_equal(error.status, FILCH_DEADLOCK);
    assert_non_null(strstr(error.text, mine));
    assert_non_null(strstr(error.text, theirs));
    assert_non_null(strstr(error.text, handle));
}

static void close_all(int count)
{
    for (int j = count; j-- > 0;) { /* the last one first, which decides nothing */
        assert_ok(filch_graph_close(graphs[j]));
    }
}

/* Every job is over, and well. */
static void finish(int count)
{
    settle();
    for (int j = 0; j < count; ++j) {
        assert_status(filch_job_status(jobs[j]), FILCH_OK);
        assert_ok(filch_job_release(jobs[j]));
        assert_ok(filch_graph_destroy(graphs[j]));
    }
}

/* --- Readers --- */

static void readers_go_together(void **state)
{
    (void)state;
    begin(2);
    submit_closed(2, "0r");
    add(0, "0r");
    add(1, "0r");
    settle();
    assert_int_equal(strlen(ran), 3);
    close_all(2);
    finish(3);
}

static void a_reader_that_writes_waits_for_the_others(void **state)
{
    (void)state;
    begin(2);
    add(0, "0r");
    add(1, "0r");
    settle();
    add(0, "0w");
    add(0, "0c");
    add(0, "0r"); /* behind those, as it uses their tile */
    settle();
    assert_string_equal(ran, "AB");
    add(1, "0r"); /* the other one reads on */
    settle();
    assert_string_equal(ran, "ABB");
    close_all(2);
    finish(2);
    assert_string_equal(ran, "ABBAAA");
}

static void a_lone_reader_may_write(void **state)
{
    (void)state;
    begin(1);
    add(0, "0r");
    settle();
    add(0, "0w");
    settle();
    assert_string_equal(ran, "AA");
    submit_closed(1, "0r"); /* behind it now */
    settle();
    assert_string_equal(ran, "AA");
    close_all(1);
    finish(2);
}

static void of_two_readers_one_may_write(void **state)
{
    (void)state;
    begin(2);
    add(0, "0r");
    add(1, "0r");
    settle();
    add(1, "0w");
    refused(0, "0w", 1, "alpha");
    add(0, "0r");
    close_all(2);
    finish(2);
    assert_string_equal(ran, "ABAB");
}

/* A closed job that only reads, and has not started, makes room for an earlier one that writes. */
static void a_reader_that_has_not_started_is_passed(void **state)
{
    (void)state;
    begin(2);
    add(1, "1w");
    submit_closed(2, "0r1r");
    add(0, "0r");
    settle();
    add(0, "0w");
    settle();
    assert_string_equal(ran, "BAA");
    close_all(2);
    finish(3);
    assert_string_equal(ran, "BAAC");
}

/* --- Submission --- */

/* B names alpha first, but cannot begin before it has beta, for which it waits for A. */
static void places_go_by_submission_where_nobody_has_begun(void **state)
{
    (void)state;
    begin(2);
    add(0, "1w");
    add(1, "0w1w");
    add(0, "0w");
    settle();
    assert_string_equal(ran, "AA");
    close_all(2);
    finish(2);
    assert_string_equal(ran, "AAB");
}

/* Once a task has all its handles, what it names has begun. */
static void who_has_begun_is_not_passed(void **state)
{
    (void)state;
    begin(2);
    add(0, "1w");
    add(1, "0w1w");
    add(1, "0w"); /* needs alpha alone, though not its tile */
    refused(0, "0w", 1, "alpha");
    close_all(2);
    finish(2);
}

static void a_later_one_that_waits_is_passed(void **state)
{
    (void)state;
    begin(3);
    add(2, "0w");
    add(1, "0w");
    add(0, "0w");
    settle();
    assert_string_equal(ran, "C");
    close_all(3);
    finish(3);
    assert_string_equal(ran, "CAB");
}

/* A waits for B at beta, so that it does not go before B at alpha, though neither has begun there
 * and A was submitted first. */
static void who_waits_for_another_stays_behind_it(void **state)
{
    (void)state;
    begin(3);
    add(1, "1w");
    add(2, "0w");
    add(1, "0w");
    add(0, "1w");
    add(0, "0w");
    close_all(3);
    finish(3);
    assert_string_equal(ran + 2, "BAA");
}

/* At alpha, where neither has begun, A could go before B, but not at beta, which B has. At gamma it
 * goes before D all the same. */
static void what_one_task_names_is_placed_together(void **state)
{
    (void)state;
    begin(4);
    add(2, "0w");
    add(1, "0w");
    add(1, "1w");
    add(2, "2w");
    add(3, "2w");
    add(0, "0w1w2w");
    close_all(4);
    finish(4);
    assert_string_equal(ran, "CBCBAD");
}

/* --- Circles --- */

static void a_circle_of_two_is_refused(void **state)
{
    (void)state;
    begin(2);
    add(0, "0w");
    add(1, "1w");
    add(0, "1w");
    refused(1, "0w", 0, "alpha");
    refused(1, "0r", 0, "alpha");
    settle();
    assert_string_equal(ran, "AB");
    add(1, "1w"); /* it goes on */
    close_all(2);
    finish(2);
    assert_string_equal(ran, "ABBA");
}

static void a_circle_of_three_is_refused(void **state)
{
    (void)state;
    begin(3);
    add(0, "0w");
    add(1, "1w");
    add(2, "2w");
    add(0, "1r");
    add(1, "2r");
    refused(2, "0r", 0, "alpha");
    close_all(3);
    finish(3);
    assert_string_equal(ran, "ABCBA");
}

/* B, a closed job, waits for A at alpha, and C for B at beta. */
static void a_circle_through_a_closed_job_is_refused(void **state)
{
    (void)state;
    begin(1);
    add(0, "0w");
    submit_closed(1, "0w1w");
    graphs[2] = fixture_graph(runtime, FILCH_GRAPH_OPEN);
    submit(2);
    add(2, "2w");
    add(2, "1w");
    refused(0, "2w", 2, "gamma");
    assert_ok(filch_graph_close(graphs[0]));
    assert_ok(filch_graph_close(graphs[2]));
    finish(3);
    assert_string_equal(ran, "ACBC");
}

/* The same, but A waits for C before C names beta: then C goes before B, which was submitted first,
 * but waits for A. */
static void a_closed_job_is_passed_where_it_would_close_a_circle(void **state)
{
    (void)state;
    begin(1);
    add(0, "0w");
    submit_closed(1, "0w1w");
    graphs[2] = fixture_graph(runtime, FILCH_GRAPH_OPEN);
    submit(2);
    add(2, "2w");
    add(0, "2w");
    add(2, "1w");
    assert_string_equal(ran, "ACC");
    assert_ok(filch_graph_close(graphs[0]));
    assert_ok(filch_graph_close(graphs[2]));
    finish(3);
    assert_string_equal(ran, "ACCAB");
}

/* The task names handles at which there is nothing to be said against it, too. */
static void what_is_refused_changes_nothing(void **state)
{
    (void)state;
    begin(3);
    add(0, "0w");
    add(1, "1w");
    add(1, "2r");
    add(2, "2r");
    add(0, "1w");
    refused(1, "3w2w0w", 0, "alpha");
    assert_ok(filch_data_destroy(data[3])); /* nobody uses it */
    add(2, "2r");                           /* nobody has it to write */
    settle();
    assert_string_equal(ran, "ABBCC");
    close_all(3);
    finish(3);
}

static void a_partition_that_closes_a_circle_is_refused(void **state)
{
    (void)state;
    begin(2);
    add(0, "0r");
    add(1, "1w");
    add(0, "1w");
    assert_status(filch_graph_partition(graphs[1], data[0], halves), FILCH_DEADLOCK);
    filch_error error = fixture_error(runtime);
    assert_non_null(strstr(error.text, "'A'"));
    assert_non_null(strstr(error.text, "'B'"));
    add(1, "0r"); /* its own tiles, side by side */
    settle();
    assert_string_equal(ran, "ABB");
    close_all(2);
    finish(2);
}

/* What is behind a reader's partition waits for the other readers. */
static void a_reader_that_partitions_waits_for_the_others(void **state)
{
    (void)state;
    char letter = 'a';
    filch_access half = fixture_access(halves, 0, FILCH_READWRITE);
    begin(2);
    add(0, "0r");
    add(1, "0r");
    settle();
    assert_ok(filch_graph_partition(graphs[0], data[0], halves));
    (void)fixture_add(graphs[0], note, &letter, &half, 1);
    settle();
    assert_string_equal(ran, "AB");
    close_all(2);
    finish(2);
    assert_string_equal(ran, "ABa");
}

/* However many allocations succeed, A takes either all its places or none. */
static void without_memory_no_place_is_taken(void **state)
{
    (void)state;
    begin(3);
    add(0, "0r");
    add(1, "0r");
    filch_status status = FILCH_OUT_OF_MEMORY;
    for (int64_t n = 1; status != FILCH_OK; ++n) {
        fixture_memory_fail_after(&memory, n);
        status = try_add(0, "0w1w2w3w");
        fixture_memory_fail_after(&memory, 0);
        if (n == 1) {
            assert_status(status, FILCH_OUT_OF_MEMORY);
            add(2, "1w");
        }
        assert_true(status == FILCH_OK || status == FILCH_OUT_OF_MEMORY);
    }
    settle();
    assert_string_equal(ran, "ABC");
    close_all(3);
    finish(3);
    assert_string_equal(ran, "ABCA");
}

/* --- Cancelling --- */

/* A waits as a writer for B's reading, B behind nobody. */
static void a_reader_that_waits_to_write_is_cancelled(void **state)
{
    (void)state;
    begin(3);
    add(0, "0r");
    add(1, "0r");
    settle();
    add(0, "0w");
    add(2, "0r"); /* behind A */
    settle();
    assert_string_equal(ran, "AB");
    assert_ok(filch_job_cancel(jobs[0]));
    settle();
    assert_string_equal(ran, "ABC");
    assert_ok(filch_graph_close(graphs[0]));
    settle();
    assert_status(filch_job_status(jobs[0]), FILCH_CANCELLED);
    assert_ok(filch_job_release(jobs[0]));
    assert_ok(filch_graph_destroy(graphs[0]));
    assert_ok(filch_graph_close(graphs[1]));
    assert_ok(filch_graph_close(graphs[2]));
    settle();
    for (int j = 1; j < 3; ++j) {
        assert_status(filch_job_status(jobs[j]), FILCH_OK);
        assert_ok(filch_job_release(jobs[j]));
        assert_ok(filch_graph_destroy(graphs[j]));
    }
}

static void jobs_in_all_these_states_are_aborted(void **state)
{
    (void)set_up(state);
    begin(4);
    add(0, "0r");
    add(1, "0r");
    add(0, "0w");   /* to write, behind a reader */
    add(2, "0w1w"); /* has beta, but has not begun */
    add(3, "1w");   /* waits, and was submitted later */
    add(1, "1r");   /* passes both */
    refused(1, "0w", 0, "alpha");
    assert_ok(filch_runtime_abort(runtime));
}

/* Of run_attempt, in a round that the host's trial at the first tile drives. */
static filch_hold *held;
static filch_status attempted, added;

static int run_attempt(const filch_call *call)
{
    filch_tiles second = FILCH_TILES_INIT;
    second.row0 = 1;
    second.row1 = 2;
    (void)call;
    attempted = filch_data_acquire_tiles(data[0], &second, FILCH_READ, 0, &held);
    added = try_add(0, "0w");
    return 0;
}

/* The host asks for a tile that the graph uses, without waiting. Until its call returns, the graph
 * may have to be placed behind it, and behind a hold that was granted meanwhile. */
static void a_host_that_does_not_wait_closes_no_circle(void **state)
{
    filch_tiles first = FILCH_TILES_INIT;
    filch_hold *none = NULL;
    (void)state;
    begin(1);
    add(0, "0r");
    filch_codelet *attempt = fixture_codelet(runtime, "attempt", run_attempt, 0);
    filch_task_desc desc = FILCH_TASK_DESC_INIT;
    desc.codelet = attempt;
    graphs[1] = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    assert_ok(filch_graph_add(graphs[1], &desc, NULL));
    submit(1);
    held = NULL;
    attempted = added = FILCH_NOT_READY;
    first.row1 = 1;
    assert_status(filch_data_acquire_tiles(data[0], &first, FILCH_READWRITE, 0, &none),
                  FILCH_TIMEOUT);
    assert_ok(attempted);
    assert_ok(added);
    settle();
    assert_string_equal(ran, "A"); /* the second task waits for the hold */
    assert_ok(filch_hold_release(held));
    settle();
    assert_string_equal(ran, "AA");
    assert_ok(filch_graph_close(graphs[0]));
    settle();
    for (int j = 0; j < 2; ++j) {
        assert_ok(filch_job_wait(jobs[j], 0));
    }
}

static int run_wait(const filch_call *call)
{
    (void)call;
    graphs[1] = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    added = try_add(1, "0r");
    submit(1);
    attempted = filch_job_wait(jobs[1], -1);
    return 0;
}

/* A task of the graph runs in the round of the host's trial, and waits for a job behind the trial:
 * the trial ends after the task. */
static void a_task_within_a_trial_cannot_wait_behind_it(void **state)
{
    filch_hold *none = NULL;
    (void)state;
    begin(1);
    add(0, "0r");
    filch_task_desc desc = FILCH_TASK_DESC_INIT;
    desc.codelet = fixture_codelet(runtime, "wait", run_wait, 0);
    assert_ok(filch_graph_add(graphs[0], &desc, NULL));
    attempted = added = FILCH_NOT_READY;
    assert_status(filch_data_acquire_tiles(data[0], NULL, FILCH_READWRITE, 0, &none),
                  FILCH_TIMEOUT);
    assert_ok(added);
    assert_status(attempted, FILCH_WRONG_STATE);
    assert_ok(filch_graph_close(graphs[0]));
    settle();
    assert_string_equal(ran, "AB");
}

/* --- Readers that do not wait --- */

/* B reads alpha and waits for A at beta. A passes B, though a hold that was granted behind B makes
 * A wait. */
static void a_granted_hold_does_not_keep_a_job_from_passing(void **state)
{
    filch_hold *hold = NULL;
    (void)state;
    begin(1);
    add(0, "1w");
    submit_closed(1, "0r1r");
    assert_ok(filch_data_acquire_tiles(data[0], NULL, FILCH_READ, 0, &hold));
    add(0, "0w");
    add(0, "1w");
    assert_string_equal(ran, "AA"); /* the task at alpha waits for the hold */
    assert_ok(filch_hold_release(hold));
    settle();
    assert_string_equal(ran, "AAA");
    close_all(1);
    finish(2);
    assert_string_equal(ran, "AAAB");
}

/* The same, but the hold waits at first: for C. */
static void a_hold_granted_later_does_not_either(void **state)
{
    filch_hold *hold = NULL;
    (void)state;
    begin(1);
    add(0, "1w");
    submit_closed(2, "0w");
    submit_closed(1, "0r1r");
    assert_ok(filch_data_acquire_tiles(data[0], NULL, FILCH_READ, -1, &hold));
    add(0, "0w");
    assert_string_equal(ran, "AC");
    assert_ok(filch_hold_release(hold));
    settle();
    assert_string_equal(ran, "ACA");
    close_all(1);
    finish(3);
    assert_string_equal(ran, "ACAB");
}

/* The same with C, which reads and has started, in place of the hold. */
static void a_reader_that_has_started_does_not_either(void **state)
{
    (void)state;
    begin(1);
    add(0, "1w");
    submit_closed(1, "0r1r");
    submit_closed(2, "0r");
    assert_ok(try_add(0, "0w"));
    settle();
    assert_string_equal(ran, "ACA");
    close_all(1);
    finish(3);
    assert_string_equal(ran, "ACAB");
}

/* What has begun is not passed for all that: B waits for A at beta, and A for B at alpha. */
static void a_granted_hold_hides_no_circle(void **state)
{
    filch_hold *hold = NULL;
    (void)state;
    begin(2);
    add(0, "1w");
    add(1, "0r");
    add(1, "1r");
    submit_closed(2, "0r1r");
    assert_ok(filch_data_acquire_tiles(data[0], NULL, FILCH_READ, 0, &hold));
    refused(0, "0w", 1, "alpha");
    assert_ok(filch_hold_release(hold));
    close_all(2);
    finish(3);
}

/* Runs while the host waits for alpha: behind B, which has begun there, and C, which has not. F
 * reads behind the host, and waits for A at gamma. A waits at gamma for E, and E for D at delta. A
 * is about to read alpha, and to write beta, which C and D read. In front of C at alpha A would
 * wait for C at beta, and C for A. Behind all at alpha A waits for the host, but not for F. */
static int run_behind_host(const filch_call *call)
{
    (void)call;
    submit(5);
    added = try_add(0, "0r1w");
    attempted = filch_graph_close(graphs[4]);
    attempted = attempted == FILCH_OK ? filch_graph_close(graphs[1]) : attempted;
    return 0;
}

static void who_reads_behind_the_host_is_not_waited_for(void **state)
{
    filch_hold *hold = NULL;
    (void)state;
    begin(2);
    add(1, "0w");
    add(1, "3w");
    submit_closed(2, "0w1r");
    submit_closed(3, "1r3w");
    graphs[4] = fixture_graph(runtime, FILCH_GRAPH_OPEN);
    submit(4);
    add(4, "2w");
    add(4, "3w");
    add(0, "2w");
    graphs[5] = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    add(5, "0r2r");
    assert_string_equal(ran, "BBE");
    filch_task_desc desc = FILCH_TASK_DESC_INIT;
    desc.codelet = fixture_codelet(runtime, "behind host", run_behind_host, 0);
    filch_graph *script = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    assert_ok(filch_graph_add(script, &desc, NULL));
    assert_ok(filch_graph_submit(script, NULL, NULL));
    attempted = added = FILCH_NOT_READY;
    assert_ok(filch_data_acquire_tiles(data[0], NULL, FILCH_READWRITE, -1, &hold));
    assert_ok(attempted);
    assert_ok(added);
    settle();
    assert_int_equal(strlen(ran), 7); /* the host has alpha, not F and the second task of A */
    assert_null(strchr(ran, 'F'));
    assert_ok(filch_hold_release(hold));
    settle();
    assert_int_equal(strlen(ran), 8);
    assert_ok(filch_graph_close(graphs[0]));
    finish(6);
    assert_string_equal(ran + 7, "AF");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(readers_go_together),
        TEST(a_reader_that_writes_waits_for_the_others),
        TEST(a_lone_reader_may_write),
        TEST(of_two_readers_one_may_write),
        TEST(a_reader_that_has_not_started_is_passed),
        TEST(places_go_by_submission_where_nobody_has_begun),
        TEST(who_has_begun_is_not_passed),
        TEST(a_later_one_that_waits_is_passed),
        TEST(who_waits_for_another_stays_behind_it),
        TEST(what_one_task_names_is_placed_together),
        TEST(a_circle_of_two_is_refused),
        TEST(a_circle_of_three_is_refused),
        TEST(a_circle_through_a_closed_job_is_refused),
        TEST(a_closed_job_is_passed_where_it_would_close_a_circle),
        TEST(what_is_refused_changes_nothing),
        TEST(a_partition_that_closes_a_circle_is_refused),
        TEST(a_reader_that_partitions_waits_for_the_others),
        TEST(without_memory_no_place_is_taken),
        TEST(a_reader_that_waits_to_write_is_cancelled),
        TEST(a_host_that_does_not_wait_closes_no_circle),
        TEST(a_task_within_a_trial_cannot_wait_behind_it),
        TEST(a_granted_hold_does_not_keep_a_job_from_passing),
        TEST(a_hold_granted_later_does_not_either),
        TEST(a_reader_that_has_started_does_not_either),
        TEST(a_granted_hold_hides_no_circle),
        TEST(who_reads_behind_the_host_is_not_waited_for),
        cmocka_unit_test(jobs_in_all_these_states_are_aborted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
