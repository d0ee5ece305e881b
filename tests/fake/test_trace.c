/* SPDX-License-Identifier: Apache-2.0 */
/* What a trace shows of GPUs: copies in rows of their own, and tiles when the device ran them. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <jansson.h>
#include <unistd.h>

#include "jobs.h"

#define BYTES ((double)sizeof x)
/* Times in the file are in microseconds, to a thousandth; a device's to a quarter of one. */
#define NEAR 1.0

static char path[64];
static json_t *file;

static int set_up(void **state)
{
    (void)state;
    strcpy(path, "/tmp/filch-trace-XXXXXX");
    int descriptor = mkstemp(path);
    assert_true(descriptor >= 0);
    close(descriptor);
    file = NULL;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    json_decref(file);
    unlink(path);
    return 0;
}

/* --- What is in the file --- */

static void write_and_read(void)
{
    json_error_t error;
    assert_ok(filch_trace_write(runtime, path));
    json_decref(file);
    file = json_load_file(path, 0, &error);
    if (file == NULL)
        fail_msg("%s:%d: %s", path, error.line, error.text);
}

static const char *text(const json_t *object, const char *key)
{
    const char *found = json_string_value(json_object_get(object, key));
    return found != NULL ? found : "";
}

static double number(const json_t *object, const char *key)
{
    return json_number_value(json_object_get(object, key));
}

static const char *row_of(const json_t *event)
{
    size_t at;
    json_t *other;
    json_array_foreach(json_object_get(file, "traceEvents"), at, other)
    {
        if (strcmp(text(other, "name"), "thread_name") == 0 &&
            number(other, "tid") == number(event, "tid"))
            return text(json_object_get(other, "args"), "name");
    }
    return "";
}

/* The kth event of that category and name; null: there are fewer. */
static const json_t *event(const char *category, const char *name, size_t k)
{
    size_t at;
    json_t *found;
    json_array_foreach(json_object_get(file, "traceEvents"), at, found)
    {
        if (strcmp(text(found, "cat"), category) == 0 && strcmp(text(found, "name"), name) == 0 &&
            k-- == 0)
            return found;
    }
    return NULL;
}

static size_t count(const char *category, const char *name)
{
    size_t found = 0;
    while (event(category, name, found) != NULL)
        found++;
    return found;
}

static double start_of(const json_t *event)
{
    return number(event, "ts");
}

static double end_of(const json_t *event)
{
    return number(event, "ts") + number(event, "dur");
}

static void expect_copy(const char *name, size_t k, const char *row, const char *other)
{
    const json_t *found = event("copy", name, k);
    const json_t *args = json_object_get(found, "args");
    assert_non_null(found);
    assert_string_equal(row_of(found), row);
    assert_string_equal(text(args, "other"), other);
    assert_true(number(args, "bytes") == BYTES);
    assert_true(number(args, "GB/s") > 0);
    assert_true(number(found, "dur") >= 0);
}

static double other_data(const char *key)
{
    const json_t *data = json_object_get(file, "otherData");
    assert_non_null(json_object_get(data, key));
    return number(data, key);
}

/* --- Tests --- */

static void copies_have_rows_by_device_and_direction(void **state)
{
    (void)state;
    (void)setenv("FILCH_POLICY", "static", 1); /* each task on the device that is named */
    start("cuda:0,cuda:1", "1", "{\"devices\": [{\"count\": 2}], \"copy_ns\": 1000}");
    (void)unsetenv("FILCH_POLICY");
    filch_codelet *copies = on_gpu("copy");
    filch_data *from = handle_with(x, FILCH_DATA_MANAGED);
    filch_data *mid = handle_with(y, FILCH_DATA_MANAGED);
    filch_data *to = handle_with(z, FILCH_DATA_MANAGED);
    filch_graph *graphs[] = {graph(), graph()};
    filch_data *const ways[2][2] = {{from, mid}, {mid, to}};
    for (uint32_t i = 0; i < 2; i++) {
        const filch_access accesses[] = {{.data = ways[i][0], .mode = FILCH_READ},
                                         {.data = ways[i][1], .mode = FILCH_WRITE}};
        filch_task_desc desc = FILCH_TASK_DESC_INIT;
        desc.codelet = copies;
        desc.accesses = accesses;
        desc.access_count = 2;
        desc.affinity = i + 1;
        assert_ok(filch_graph_add(graphs[i], &desc, NULL));
    }
    set(x, 5);
    assert_ok(filch_trace_start(runtime));
    finish(submit(graphs[0]), FILCH_OK);
    finish(submit(graphs[1]), FILCH_OK);
    assert_ok(filch_data_acquire(to, FILCH_READ));
    expect(z, 5);
    assert_ok(filch_data_release(to));
    write_and_read();
    assert_int_equal(count("tile", "copy"), 2);
    assert_string_equal(row_of(event("tile", "copy", 0)), "cuda:0");
    assert_string_equal(row_of(event("tile", "copy", 1)), "cuda:1");
    assert_int_equal(count("copy", "in"), 1);
    expect_copy("in", 0, "cuda:0 in", "host");
    assert_int_equal(count("copy", "peer"), 1);
    assert_int_equal(count("copy", "out"), 1);
    expect_copy("peer", 0, "cuda:1 peer", "cuda:0");
    expect_copy("out", 0, "cuda:1 out", "host");
    assert_true(other_data("copies_missed") == 0 && other_data("events_overwritten") == 0);
    stop();
}

/* The kernel of one task runs until the tile of the next has come in. */
static void a_copy_in_runs_beside_the_kernel_before_it(void **state)
{
    (void)state;
    start("cuda:0", "1", "{\"devices\": [{\"count\": 1}]}");
    filch_codelet *holding = on_gpu("hold"), *copies = on_gpu("copy");
    filch_graph *first = graph(), *second = graph();
    add(first, holding, FILCH_READ, handle(x), NULL, NULL);
    add(second, copies, FILCH_WRITE, handle(y), handle(z), NULL);
    assert_ok(filch_trace_start(runtime));
    atomic_store(&is_held, 1);
    filch_job *before = submit(first);
    await_holds(1);
    uint64_t copied = fakecuda_count("copy");
    filch_job *after = submit(second);
    while (fakecuda_count("copy") == copied) {
        const struct timespec nap = {0, 100000};
        (void)nanosleep(&nap, NULL);
    }
    atomic_store(&is_held, 0);
    finish(before, FILCH_OK);
    finish(after, FILCH_OK);
    write_and_read();
    const json_t *kernel = event("tile", "hold", 0), *next = event("tile", "copy", 0);
    const json_t *in = event("copy", "in", 1), *out = event("copy", "out", 0);
    assert_true(kernel != NULL && next != NULL && in != NULL && out != NULL);
    /* Its own came before it, the next one's while it ran, and what that one made goes out last. */
    assert_true(end_of(event("copy", "in", 0)) <= start_of(kernel) + NEAR);
    assert_true(start_of(in) >= start_of(kernel) && start_of(in) < end_of(kernel));
    assert_true(start_of(next) >= end_of(kernel) - NEAR);
    assert_true(start_of(out) >= end_of(next) - NEAR);
    stop();
}

/* More tiles in flight than are timed otherwise; on one lane one starts when another is over. */
static void every_tile_is_shown_when_the_device_ran_it(void **state)
{
    enum { TILES = 200 };
    (void)state;
    start("cuda:0", "1", "{\"devices\": [{\"count\": 1}]}");
    filch_codelet *holding = on_gpu("hold"); /* for nothing */
    filch_data *shared = handle(x);
    filch_graph *all = graph();
    for (int i = 0; i < TILES; i++)
        add(all, holding, FILCH_READ, shared, NULL, NULL);
    for (int round = 0; round < 2; round++) {
        if (round == 1)
            assert_ok(filch_trace_start(runtime));
        fakecuda_hold(); /* so that many are on the device before one is over */
        filch_job *job = submit(all);
        for (int k = 0; k < 20; k++) {
            const struct timespec nap = {0, 1000000};
            (void)nanosleep(&nap, NULL);
        }
        fakecuda_release();
        finish(job, FILCH_OK);
    }
    assert_int_equal(atomic_load(&holds), 2 * TILES);
    write_and_read();
    assert_int_equal(count("tile", "hold"), TILES);
    size_t at;
    const json_t *last = NULL;
    json_t *found;
    json_array_foreach(json_object_get(file, "traceEvents"), at, found)
    {
        if (strcmp(text(found, "cat"), "tile") != 0)
            continue;
        assert_true(last == NULL || start_of(found) >= end_of(last) - NEAR);
        assert_true(number(found, "dur") >= 0);
        last = found;
    }
    stop();
}

/* What a device was to copy when it was lost is not shown; all else is given back (the fake looks
 * for that). */
static void a_lost_device_leaves_nothing_behind(void **state)
{
    (void)state;
    for (uint64_t nth = 1; nth <= 4; nth++) {
        start("cuda:0", "2", "{\"devices\": [{\"count\": 1}]}");
        filch_codelet *copies = on_gpu("copy");
        filch_graph *both = graph();
        add(both, copies, FILCH_WRITE, handle(x), handle(y), NULL);
        add(both, copies, FILCH_WRITE, handle(x), handle(z), NULL);
        assert_ok(filch_trace_start(runtime));
        fakecuda_fail(nth % 2 == 0 ? "kernel" : "copy", (nth + 1) / 2, 1, 700, 0, true);
        filch_job *job = submit(both);
        assert_int_not_equal(filch_job_wait(job, SOON), FILCH_OK);
        assert_ok(filch_job_release(job));
        write_and_read();
        /* What the first kernel made may have gone home before the second one, or its copy, failed.
         */
        assert_in_range(count("copy", "out"), 0, nth > 2);
        assert_ok(filch_trace_stop(runtime));
        assert_ok(filch_trace_start(runtime));
        stop();
        assert_int_equal(fakecuda_live("event"), 0);
        assert_int_equal(fakecuda_live("stream"), 0);
    }
}

static void it_may_stop_and_start_while_tiles_are_copied(void **state)
{
    static uint64_t rows[100][N];
    (void)state;
    start("cuda:0,cuda:1", "2", "{\"devices\": [{\"count\": 2}]}");
    filch_codelet *copies = on_gpu("copy");
    filch_graph *all = graph();
    filch_data *from = handle(x);
    for (int i = 0; i < 100; i++)
        add(all, copies, FILCH_WRITE, from, handle(rows[i]), NULL);
    set(x, 9);
    for (int round = 0; round < 5; round++) {
        filch_job *job = submit(all);
        while (filch_job_status(job) == FILCH_NOT_READY) {
            assert_ok(filch_trace_start(runtime));
            assert_ok(filch_trace_stop(runtime));
        }
        finish(job, FILCH_OK);
        write_and_read();
    }
    for (int i = 0; i < 100; i++)
        expect(rows[i], 9);
    stop();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(copies_have_rows_by_device_and_direction, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_copy_in_runs_beside_the_kernel_before_it, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(every_tile_is_shown_when_the_device_ran_it, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_lost_device_leaves_nothing_behind, set_up, tear_down),
        cmocka_unit_test_setup_teardown(it_may_stop_and_start_while_tiles_are_copied, set_up,
                                        tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
