/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "fixture.h"

#include <dirent.h>
#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "observe/trace.h"
#include "runtime.h"

static char path[64];

static int set_up(void **state)
{
    (void)state;
    strcpy(path, "/tmp/filch-trace-XXXXXX");
    int descriptor = mkstemp(path);
    assert_true(descriptor >= 0);
    close(descriptor);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    unlink(path);
    return 0;
}

/* How many work items an event stands for. */
static size_t items_of(const json_t *event)
{
    const json_t *tasks = json_object_get(json_object_get(event, "args"), "tasks");
    return tasks != NULL ? json_array_size(tasks) : 1;
}

/* Events of a category in the file, which must be well-formed. Short tasks that share an event
 * count each. */
static size_t events(const char *category, const char *name)
{
    json_error_t error;
    json_t *root = json_load_file(path, 0, &error);
    if (root == NULL) {
        fail_msg("%s:%d: %s", path, error.line, error.text);
    }
    json_t *list = json_object_get(root, "traceEvents");
    assert_true(json_is_array(list));
    size_t count = 0, at;
    json_t *event;
    json_array_foreach(list, at, event)
    {
        const char *cat = json_string_value(json_object_get(event, "cat"));
        const char *its = json_string_value(json_object_get(event, "name"));
        if (json_object_get(event, "ts") != NULL) {
            assert_true(json_number_value(json_object_get(event, "ts")) >= 0);
            assert_true(json_number_value(json_object_get(event, "dur")) >= 0);
        }
        if (cat != NULL && strcmp(cat, category) == 0 &&
            (name == NULL || (its != NULL && strcmp(its, name) == 0))) {
            count += items_of(event);
        }
    }
    json_decref(root);
    return count;
}

static void run_labelled(filch_runtime *runtime, filch_codelet *codelet, int n, const char *label)
{
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    for (int i = 0; i < n; ++i) {
        filch_task_desc task = FILCH_TASK_DESC_INIT;
        task.codelet = codelet;
        task.label = label;
        assert_ok(filch_graph_add(graph, &task, NULL));
    }
    assert_ok(fixture_run(graph));
    assert_ok(filch_graph_destroy(graph));
}

static void run_tasks(filch_runtime *runtime, filch_codelet *codelet, int n)
{
    run_labelled(runtime, codelet, n, NULL);
}

static void every_tile_is_recorded_while_it_records(void **state)
{
    (void)state;
    filch_runtime *runtime = fixture_runtime("host:2", FILCH_DRIVE_THREADS, NULL);
    filch_codelet *odd = fixture_codelet(runtime, "a \"quoted\"\\\n name", fixture_nothing, 0);
    filch_codelet *plain = fixture_codelet(runtime, "plain", fixture_nothing, 0);
    assert_status(filch_trace_write(runtime, path), FILCH_WRONG_STATE);
    run_tasks(runtime, plain, 10);
    assert_ok(filch_trace_start(runtime));
    assert_ok(filch_trace_start(runtime));
    run_tasks(runtime, odd, 40);
    assert_ok(filch_trace_stop(runtime));
    assert_ok(filch_trace_stop(runtime));
    run_tasks(runtime, plain, 10);
    assert_ok(filch_trace_write(runtime, path));
    assert_int_equal(events("tile", NULL), 40);
    assert_int_equal(events("tile", "a \"quoted\"\\\n name"), 40);
    assert_ok(filch_trace_start(runtime)); /* goes on where it stopped */
    run_tasks(runtime, plain, 3);
    assert_ok(filch_trace_write(runtime, path)); /* also while it records */
    assert_int_equal(events("tile", NULL), 43);
    assert_ok(filch_runtime_destroy(runtime));
}

static void the_newest_events_are_kept(void **state)
{
    (void)state;
    setenv("FILCH_TRACE_EVENTS", "64", 1);
    setenv("FILCH_TRACE", "1", 1);
    filch_runtime *runtime = fixture_runtime("host:1", FILCH_DRIVE_POLL, NULL);
    unsetenv("FILCH_TRACE_EVENTS");
    unsetenv("FILCH_TRACE");
    filch_codelet *old = fixture_codelet(runtime, "old", fixture_nothing, 0);
    filch_codelet *new = fixture_codelet(runtime, "new", fixture_nothing, 0);
    run_labelled(runtime, old, 500, "an event for each");
    run_labelled(runtime, new, 70, "an event for each");
    assert_ok(filch_trace_write(runtime, path));
    assert_int_equal(events("tile", "old"), 0);
    assert_in_range(events("tile", "new"), 60, 64); /* waits take places too */
    assert_ok(filch_runtime_destroy(runtime));
}

static void what_cannot_be_written_is_an_error(void **state)
{
    (void)state;
    filch_runtime_desc config = FILCH_RUNTIME_DESC_INIT;
    filch_runtime *runtime = NULL;
    config.devices = "host:1";
    config.drive = FILCH_DRIVE_POLL;
    config.trace = 1;
    assert_ok(filch_runtime_create(&config, NULL, &runtime));
    filch_codelet *nothing = fixture_codelet(runtime, "nothing", fixture_nothing, 0);
    assert_status(filch_trace_write(runtime, NULL), FILCH_INVALID_ARGUMENT);
    assert_status(filch_trace_write(runtime, "/nonexistent/trace.json"), FILCH_IO);
    assert_non_null(strstr(fixture_error(runtime).text, "/nonexistent/trace.json"));
    /* Busy while a job runs. */
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    filch_job *job = NULL;
    fixture_add(graph, nothing, NULL, NULL, 0);
    assert_ok(filch_graph_submit(graph, NULL, &job));
    assert_status(filch_trace_write(runtime, path), FILCH_BUSY);
    assert_ok(filch_job_wait(job, -1));
    assert_ok(filch_trace_write(runtime, path));
    assert_ok(filch_runtime_destroy(runtime));
}

static ino_t inode_of(const char *name)
{
    struct stat found;
    return lstat(name, &found) == 0 ? found.st_ino : 0;
}

static uint32_t files_in(const char *folder)
{
    DIR *all = opendir(folder);
    uint32_t count = 0;
    assert_non_null(all);
    while (readdir(all) != NULL) {
        ++count;
    }
    closedir(all);
    return count - 2;
}

/* The target is refused by name, for a reason, and stays; nothing else appears. */
static void check_refused(filch_runtime *runtime, const char *folder, const char *target,
                          const char *reason)
{
    ino_t before = inode_of(target);
    uint32_t files = files_in(folder);
    assert_int_not_equal(before, 0);
    assert_status(filch_trace_write(runtime, target), FILCH_IO);
    assert_non_null(strstr(fixture_error(runtime).text, target));
    assert_non_null(strstr(fixture_error(runtime).text, reason));
    assert_int_not_equal(fixture_error(runtime).native_code, 0);
    assert_int_equal(inode_of(target), before);
    assert_int_equal(files_in(folder), files);
}

static void a_target_that_is_no_file_stays(void **state)
{
    (void)state;
    char folder[] = "/tmp/filch-trace-XXXXXX", target[64], other[64];
    setenv("FILCH_TRACE", "1", 1);
    filch_runtime *runtime = fixture_runtime("host:1", FILCH_DRIVE_POLL, NULL);
    unsetenv("FILCH_TRACE");
    assert_non_null(mkdtemp(folder));
    snprintf(target, sizeof target, "%s/trace", folder);
    snprintf(other, sizeof other, "%s/other", folder);
    /* A symbolic link to a file of somebody's, and one to nothing. */
    FILE *file = fopen(other, "w");
    assert_non_null(file);
    fputs("precious", file);
    fclose(file);
    assert_int_equal(symlink(other, target), 0);
    check_refused(runtime, folder, target, "symbolic link");
    char text[16] = "";
    file = fopen(other, "r");
    assert_non_null(file);
    assert_int_equal(fread(text, 1, sizeof text, file), 8);
    fclose(file);
    assert_string_equal(text, "precious");
    unlink(other);
    check_refused(runtime, folder, target, "symbolic link");
    assert_int_equal(inode_of(other), 0);
    unlink(target);
    assert_int_equal(mkfifo(target, 0600), 0);
    check_refused(runtime, folder, target, "FIFO");
    unlink(target);
    assert_int_equal(mkdir(target, 0700), 0);
    check_refused(runtime, folder, target, "directory");
    rmdir(target);
    /* A device, where this user may make one. */
    if (mknod(target, S_IFCHR | 0600, makedev(1, 7)) == 0) {
        check_refused(runtime, folder, target, "device");
        unlink(target);
    }
    rmdir(folder);
    assert_ok(filch_runtime_destroy(runtime));
}

static void what_was_there_outlasts_a_full_disk(void **state)
{
    (void)state;
    const struct rlimit small = {.rlim_cur = 4096, .rlim_max = RLIM_INFINITY};
    char folder[] = "/tmp/filch-trace-XXXXXX";
    setenv("FILCH_TRACE", "1", 1);
    filch_runtime *runtime = fixture_runtime("host:1", FILCH_DRIVE_POLL, NULL);
    unsetenv("FILCH_TRACE");
    filch_codelet *nothing = fixture_codelet(runtime, "nothing", fixture_nothing, 0);
    char before[sizeof path];
    memcpy(before, path, sizeof path);
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/trace", folder);
    run_tasks(runtime, nothing, 3);
    assert_ok(filch_trace_write(runtime, path));
    ino_t old = inode_of(path);
    run_labelled(runtime, nothing, 200, "an event for each");
    struct rlimit usual;
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &usual), 0);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    filch_status status = filch_trace_write(runtime, path);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &usual), 0);
    signal(SIGXFSZ, handler);
    assert_int_equal(status, FILCH_IO);
    assert_int_equal(fixture_error(runtime).native_code, EFBIG);
    assert_non_null(strstr(fixture_error(runtime).text, strerror(EFBIG)));
    assert_int_equal(inode_of(path), old);
    assert_int_equal(events("tile", NULL), 3);
    assert_int_equal(files_in(folder), 1);
    assert_ok(filch_trace_write(runtime, path));
    assert_int_equal(events("tile", NULL), 203);
    unlink(path);
    rmdir(folder);
    memcpy(path, before, sizeof path);
    assert_ok(filch_runtime_destroy(runtime));
}

static void batches_show_their_chunks(void **state)
{
    (void)state;
    filch_runtime *runtime = fixture_runtime("host:2", FILCH_DRIVE_THREADS, NULL);
    filch_codelet *nothing = fixture_codelet(runtime, "nothing", fixture_nothing, 0);
    filch_batch_desc desc = FILCH_BATCH_DESC_INIT;
    filch_job *job = NULL;
    filch_job_info info = {.size = sizeof info};
    filch_device_stats stats[2];
    desc.codelet = nothing;
    desc.n = 100000;
    assert_ok(filch_trace_start(runtime));
    assert_ok(filch_batch_submit(runtime, &desc, NULL, &job));
    assert_ok(filch_job_wait(job, -1));
    assert_ok(filch_job_stats(job, &info, stats, 2));
    assert_ok(filch_trace_write(runtime, path));
    assert_int_equal(events("tile", "nothing"), stats[0].tiles + stats[1].tiles);
    assert_ok(filch_job_release(job));
    assert_ok(filch_runtime_destroy(runtime));
}

static void it_may_stop_and_start_while_jobs_run(void **state)
{
    (void)state;
    filch_runtime *runtime = fixture_runtime("host:2", FILCH_DRIVE_THREADS, NULL);
    filch_codelet *nothing = fixture_codelet(runtime, "nothing", fixture_nothing, 0);
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    for (int i = 0; i < 2000; ++i) {
        fixture_add(graph, nothing, NULL, NULL, 0);
    }
    for (int round = 0; round < 20; ++round) {
        filch_job *job = NULL;
        assert_ok(filch_graph_submit(graph, NULL, &job));
        while (filch_job_status(job) == FILCH_NOT_READY) {
            assert_ok(filch_trace_start(runtime));
            assert_ok(filch_trace_stop(runtime));
        }
        assert_ok(filch_job_wait(job, -1));
        assert_ok(filch_job_release(job));
    }
    assert_ok(filch_trace_start(runtime));
    assert_ok(filch_trace_write(runtime, path));
    events("tile", NULL);
    assert_ok(filch_runtime_destroy(runtime));
}

/* The argument of an event, by the category and the position among those of it; -1: none. */
static double argument(const json_t *list, const char *category, size_t k, const char *key)
{
    for (size_t i = 0; i < json_array_size(list); ++i) {
        const json_t *event = json_array_get(list, i);
        const char *cat = json_string_value(json_object_get(event, "cat"));
        if (cat != NULL && strcmp(cat, category) == 0 && k-- == 0) {
            const json_t *at = json_object_get(json_object_get(event, "args"), key);
            at = at != NULL ? at : json_object_get(event, key);
            return at != NULL ? json_number_value(at) : -1;
        }
    }
    return -1;
}

/* From the submission, which is where times begin, to the end; by whichever thread that was. */
static void jobs_have_a_row_of_their_own(void **state)
{
    enum { JOBS = 6, TASKS = 5 };
    (void)state;
    filch_runtime *runtime = fixture_runtime("host:2", FILCH_DRIVE_THREADS, NULL);
    filch_codelet *body = fixture_codelet(runtime, "body", fixture_nothing, 0);
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    filch_graph *open = fixture_graph(runtime, FILCH_GRAPH_OPEN);
    filch_job *job = NULL;
    for (int i = 0; i < TASKS; ++i) {
        fixture_add(graph, body, NULL, NULL, 0);
    }
    assert_ok(fixture_run(graph)); /* not recorded */
    assert_ok(filch_trace_start(runtime));
    usleep(2000); /* idle workers' waits have begun */
    for (int run = 0; run < JOBS - 2; ++run) {
        assert_ok(fixture_run(graph));
    }
    assert_ok(filch_graph_submit(open, NULL, &job)); /* ended by the thread that closes it */
    assert_ok(filch_graph_close(open));
    assert_ok(filch_job_wait(job, -1));
    assert_ok(filch_job_release(job));
    filch_batch_desc desc = FILCH_BATCH_DESC_INIT;
    desc.codelet = body;
    desc.n = 77;
    assert_ok(filch_batch_submit(runtime, &desc, NULL, &job));
    assert_ok(filch_job_wait(job, -1));
    assert_ok(filch_job_release(job));
    assert_ok(filch_trace_stop(runtime));
    assert_ok(fixture_run(graph)); /* nor this */
    assert_ok(filch_trace_write(runtime, path));
    assert_int_equal(events("job", NULL), JOBS);
    assert_int_equal(events("job", "graph"), JOBS - 1);
    assert_int_equal(events("job", "body"), 1);
    json_t *root = json_load_file(path, 0, NULL);
    const json_t *list = json_object_get(root, "traceEvents");
    assert_true(argument(list, "job", 0, "ts") == 0);
    assert_true(argument(list, "job", 0, "graph") == 1);
    assert_true(argument(list, "job", JOBS - 2, "graph") == 2);
    assert_true(argument(list, "job", JOBS - 1, "items") == 77);
    for (size_t k = 1; k < JOBS; ++k) {
        assert_true(argument(list, "job", k, "job") == argument(list, "job", k - 1, "job") + 1);
        assert_true(argument(list, "job", k, "ts") >=
                    argument(list, "job", k - 1, "ts") + argument(list, "job", k - 1, "dur"));
    }
    for (size_t k = 0; argument(list, "tile", k, "ts") >= 0; ++k) {
        double number = argument(list, "tile", k, "job") - argument(list, "job", 0, "job");
        assert_in_range((long)number, 0, JOBS - 1);
        double start = argument(list, "job", (size_t)number, "ts");
        double end = start + argument(list, "job", (size_t)number, "dur");
        double at = argument(list, "tile", k, "ts");
        assert_true(at >= start && at + argument(list, "tile", k, "dur") <= end + 0.01);
    }
    json_decref(root);
    assert_ok(filch_runtime_destroy(runtime));
}

/* A member of "otherData" as compact text. */
static void expect_other(const char *key, const char *expected)
{
    json_t *root = json_load_file(path, 0, NULL);
    const json_t *member = json_object_get(json_object_get(root, "otherData"), key);
    char *found = member != NULL ? json_dumps(member, JSON_COMPACT) : NULL;
    if (expected == NULL) {
        assert_null(found);
    } else {
        assert_non_null(found);
        assert_string_equal(found, expected);
    }
    free(found);
    json_decref(root);
}

static void run_batch(filch_runtime *runtime, const filch_batch_desc *desc)
{
    filch_job *job = NULL;
    assert_ok(filch_batch_submit(runtime, desc, NULL, &job));
    assert_ok(filch_job_wait(job, -1));
    assert_ok(filch_job_release(job));
}

#define GRAPH_OF_THREE                                                       \
    "[{\"graph\":1,\"successors\":[[],[],[]],"                               \
    "\"accesses\":[[0,2,1,1,1,3,0,3,4],[0,1,17,2,1],[0,1,49,1,1,3,20,0,0]]," \
    "\"priorities\":[-3,4,-3],\"homes\":[1,1,1]}]"

static void expect_two(const char *what)
{
    json_t *root = json_load_file(path, 0, NULL);
    const json_t *data = json_object_get(root, "otherData");
    assert_int_equal(json_array_size(json_object_get(data, what)), 2);
    json_decref(root);
}

static void add_halo(filch_graph *graph, filch_task_desc task, filch_data *data)
{
    const filch_halo halo = {.rows_before = 3, .rows_after = UINT64_MAX};
    task.accesses = (filch_access[]){FILCH_R_HALO(data, 1, 0, &halo)};
    task.priority = -3;
    assert_ok(filch_graph_add(graph, &task, NULL));
}

static void it_tells_what_tasks_and_batches_use(void **state)
{
    static const uint64_t heights[] = {5, 25, 30};
    static double values[60], other[60];
    (void)state;
    filch_runtime *runtime = fixture_runtime("host:1", FILCH_DRIVE_POLL, NULL);
    filch_codelet *body = fixture_codelet(runtime, "body", fixture_nothing, 0);
    filch_data_desc cut = FILCH_DATA_DESC_INIT;
    filch_data *x = fixture_vector(runtime, values, sizeof *values, 60, 20), *y = NULL;
    cut.ptr = other;
    cut.element = sizeof *other;
    cut.rows = 60;
    cut.row_cuts = heights;
    cut.row_cut_count = 3;
    cut.flags = FILCH_DATA_MANAGED;
    assert_ok(filch_data_create(runtime, &cut, &y));
    filch_graph_desc by_caller = FILCH_GRAPH_DESC_INIT;
    filch_graph *graph = NULL;
    by_caller.priorities = FILCH_PRIORITIES_CALLER;
    assert_ok(filch_graph_create(runtime, &by_caller, &graph));
    filch_task_desc task = FILCH_TASK_DESC_INIT;
    const filch_access accesses[] = {fixture_access(x, 2, FILCH_READ),
                                     fixture_access(y, 1, FILCH_READWRITE),
                                     {.mode = FILCH_SCRATCH, .bytes = 130}};
    task.codelet = body;
    task.accesses = accesses;
    task.access_count = 3;
    task.priority = -3;
    assert_ok(filch_graph_add(graph, &task, NULL));
    task.accesses = (filch_access[]){FILCH_BLOCK(x, 1, 0, FILCH_TO_END, 1, FILCH_READ)};
    task.access_count = 1;
    task.priority = 4;
    assert_ok(filch_graph_add(graph, &task, NULL));
    add_halo(graph, task, x);
    assert_ok(filch_trace_start(runtime));
    assert_ok(fixture_run(graph));
    const filch_batch_access uses[] = {
        {.data = y, .mode = FILCH_READ, .map = FILCH_MAP_WHOLE},
        {.data = x,
         .mode = FILCH_READ,
         .map = FILCH_MAP_AFFINE,
         .offset = 10,
         .scale = 5,
         .before = 2,
         .after = UINT64_MAX},
    };
    filch_batch_desc batch = FILCH_BATCH_DESC_INIT;
    batch.codelet = body;
    batch.n = 10;
    batch.grain = 2;
    batch.accesses = uses;
    batch.access_count = 2;
    run_batch(runtime, &batch);
    batch.access_count = 0;
    batch.n = 3;
    run_batch(runtime, &batch);
    assert_ok(filch_trace_write(runtime, path));
    expect_other("handles",
                 "[{\"element\":8,\"rows\":60,\"cols\":1,\"tile_rows\":20,\"tile_cols\":1,"
                 "\"managed\":false,\"on_device\":false,\"resident\":0},"
                 "{\"element\":8,\"rows\":60,\"cols\":1,\"row_cuts\":[5,25,30],\"tile_cols\":1,"
                 "\"managed\":true,\"on_device\":false,\"resident\":0}]");
    expect_other("graphs", GRAPH_OF_THREE);
    expect_other("batches", "[{\"job\":2,\"items\":10,\"grain\":2,\"accesses\":["
                            "{\"handle\":1,\"mode\":1,\"map\":\"whole\"},"
                            "{\"handle\":0,\"mode\":1,\"map\":\"affine\",\"offset\":10,\"scale\":5,"
                            "\"before\":2,\"after\":9223372036854775807}]},"
                            "{\"job\":3,\"items\":3,\"grain\":2,\"accesses\":[]}]");
    expect_other("devices", "[{\"name\":\"host:0\",\"score\":1,\"memory\":0}]");
    /* What is gone is told of all the same, but for graphs. */
    assert_ok(filch_graph_destroy(graph));
    assert_ok(filch_data_destroy(x));
    assert_ok(filch_data_destroy(y));
    assert_ok(filch_trace_write(runtime, path));
    expect_other("graphs", NULL);
    expect_two("handles");
    expect_two("batches");
    assert_ok(filch_runtime_destroy(runtime));
}

/* Tasks of which the rings cannot show the tiles are of no use to who reads it. */
static void it_tells_nothing_of_what_is_too_much(void **state)
{
    static double values[4];
    (void)state;
    setenv("FILCH_TRACE_EVENTS", "64", 1);
    filch_runtime *runtime = fixture_runtime("host:1", FILCH_DRIVE_POLL, NULL);
    unsetenv("FILCH_TRACE_EVENTS");
    filch_codelet *body = fixture_codelet(runtime, "body", fixture_nothing, 0);
    filch_data *x = fixture_vector(runtime, values, sizeof *values, 4, 4);
    filch_graph *small = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    filch_graph *large = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    const filch_access access = fixture_access(x, 0, FILCH_READ);
    for (int i = 0; i < 65; ++i) {
        fixture_add(large, body, NULL, &access, 1);
        if (i != 0) {
            fixture_add(small, body, NULL, &access, 1);
        }
    }
    assert_ok(filch_trace_start(runtime));
    assert_ok(fixture_run(large));
    assert_ok(fixture_run(small));
    for (int i = 0; i < 100; ++i) {
        filch_batch_desc batch = FILCH_BATCH_DESC_INIT;
        batch.codelet = body;
        batch.n = 1;
        run_batch(runtime, &batch);
    }
    assert_ok(filch_trace_write(runtime, path));
    json_t *root = json_load_file(path, 0, NULL);
    const json_t *data = json_object_get(root, "otherData"), *at;
    for (size_t i = 0; i < 2; ++i) {
        at = json_array_get(json_object_get(data, "graphs"), i);
        bool is_small = json_array_size(json_object_get(at, "successors")) == 64;
        assert_int_equal(json_object_get(at, "accesses") != NULL, is_small);
    }
    assert_int_equal(json_array_size(json_object_get(data, "batches")), 64);
    json_decref(root);
    assert_ok(filch_runtime_destroy(runtime));
}

/* --- Events of several tasks --- */

/* Marks the tasks of the file's events of a graph, none of which may be marked; returns the number
 * of events. Events of one row must follow each other, within their job's time. */
static size_t mark_tasks(json_int_t graph, bool *seen, size_t tasks)
{
    json_t *root = json_load_file(path, 0, NULL), *event, *args;
    const json_t *list = json_object_get(root, "traceEvents"), *task;
    size_t at, k, count = 0;
    double end = 0;
    assert_non_null(root);
    json_array_foreach(list, at, event)
    {
        args = json_object_get(event, "args");
        const char *category = json_string_value(json_object_get(event, "cat"));
        if (category == NULL || strcmp(category, "tile") != 0 ||
            json_integer_value(json_object_get(args, "graph")) != graph) {
            continue;
        }
        double start = json_number_value(json_object_get(event, "ts"));
        assert_true(start >= end - 0.0011); /* the file has whole nanoseconds */
        end = start + json_number_value(json_object_get(event, "dur"));
        json_t *alone = json_pack("[O]", json_object_get(args, "task"));
        const json_t *all = json_object_get(args, "tasks");
        json_array_foreach(all != NULL ? all : alone, k, task)
        {
            json_int_t position = json_integer_value(task);
            assert_in_range(position, 0, tasks - 1);
            assert_false(seen[position]);
            seen[position] = true;
        }
        json_decref(alone);
        ++count;
    }
    json_decref(root);
    return count;
}

static bool all_of(const bool *seen, size_t count)
{
    for (size_t i = 0; i < count; ++i) {
        if (!seen[i]) {
            return false;
        }
    }
    return true;
}

static double two(const filch_call *call)
{
    (void)call;
    return 2;
}

/* Every task stands in one event; with a label it has an event of its own. */
static void short_tasks_share_events(void **state)
{
    enum { TASKS = 2000 };
    static bool seen[TASKS];
    (void)state;
    filch_runtime *runtime = fixture_runtime("host:1", FILCH_DRIVE_POLL, NULL);
    filch_codelet_desc desc = FILCH_CODELET_DESC_INIT;
    filch_codelet *codelets[2];
    codelets[0] = fixture_codelet(runtime, "without work", fixture_nothing, 0);
    desc.name = "with work";
    desc.host = fixture_nothing;
    desc.work = two;
    assert_ok(filch_codelet_create(runtime, &desc, &codelets[1]));
    assert_ok(filch_trace_start(runtime));
    for (json_int_t i = 0; i < 2; ++i) {
        run_tasks(runtime, codelets[i], TASKS);
        assert_ok(filch_trace_write(runtime, path));
        memset(seen, 0, sizeof seen);
        size_t count = mark_tasks(i + 1, seen, TASKS);
        assert_true(all_of(seen, TASKS));
        assert_true(count < TASKS / 2);
    }
    run_labelled(runtime, codelets[0], TASKS, "label");
    assert_ok(filch_trace_write(runtime, path));
    memset(seen, 0, sizeof seen);
    assert_int_equal(mark_tasks(3, seen, TASKS), TASKS);
    assert_true(all_of(seen, TASKS));
    /* The model has learned from some of them only. */
    filch_speed speeds[2];
    for (int i = 0; i < 2; ++i) {
        speeds[i] = (filch_speed)FILCH_SPEED_INIT;
        assert_ok(filch_codelet_speed(codelets[i], 0, &speeds[i]));
        assert_in_range(speeds[i].timed, 16, TASKS / 2);
    }
    assert_ok(filch_runtime_destroy(runtime));
}

/* Two codelets in turn, and tasks of an open graph. */
static void an_event_has_tasks_of_one_codelet(void **state)
{
    enum { TASKS = 600 };
    static bool seen[TASKS];
    static double value;
    (void)state;
    filch_runtime *runtime = fixture_runtime("host:1", FILCH_DRIVE_POLL, NULL);
    filch_codelet *even = fixture_codelet(runtime, "even", fixture_nothing, 0);
    filch_codelet *odd = fixture_codelet(runtime, "odd", fixture_nothing, 0);
    filch_data *x = fixture_vector(runtime, &value, sizeof value, 1, 1);
    const filch_access access = fixture_access(x, 0, FILCH_READWRITE);
    assert_ok(filch_trace_start(runtime));
    for (int kind = 0; kind < 2; ++kind) {
        filch_graph *graph =
            fixture_graph(runtime, kind == 0 ? FILCH_GRAPH_CLOSED : FILCH_GRAPH_OPEN);
        filch_job *job = NULL;
        if (kind == 1) {
            assert_ok(filch_graph_submit(graph, NULL, &job));
        }
        for (int i = 0; i < TASKS; ++i) {
            fixture_add(graph, i / 3 % 2 == 0 ? even : odd, NULL, &access, 1);
        }
        if (kind == 0) {
            assert_ok(filch_graph_submit(graph, NULL, &job));
        } else {
            assert_ok(filch_graph_close(graph));
        }
        assert_ok(filch_job_wait(job, -1));
        assert_ok(filch_job_release(job));
        assert_ok(filch_trace_write(runtime, path));
        assert_int_equal(events("tile", "even"), (kind + 1) * TASKS / 2);
        assert_int_equal(events("tile", "odd"), (kind + 1) * TASKS / 2);
        memset(seen, 0, sizeof seen);
        (void)mark_tasks(kind + 1, seen, TASKS);
        assert_true(all_of(seen, TASKS));
        assert_ok(filch_graph_destroy(graph));
    }
    assert_ok(filch_runtime_destroy(runtime));
}

static int run_inner(const filch_call *call)
{
    filch_graph *graph = *(filch_graph *const *)call->args;
    return filch_graph_run(graph, NULL, NULL) != FILCH_OK;
}

/* The events of tasks that wait for a graph, and of that graph's tasks. */
static void tasks_within_tasks_count_once(void **state)
{
    enum { OUTER = 200, INNER = 30 };
    (void)state;
    filch_runtime *runtime = fixture_runtime("host:2", FILCH_DRIVE_THREADS, NULL);
    filch_codelet *outer = fixture_codelet(runtime, "outer", run_inner, sizeof(filch_graph *));
    filch_codelet *inner = fixture_codelet(runtime, "inner", fixture_nothing, 0);
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED), *inside[OUTER];
    for (int i = 0; i < OUTER; ++i) {
        inside[i] = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
        for (int k = 0; k < INNER; ++k) {
            fixture_add(inside[i], inner, NULL, NULL, 0);
        }
        fixture_add(graph, outer, &inside[i], NULL, 0);
    }
    assert_ok(filch_trace_start(runtime));
    assert_ok(fixture_run(graph));
    assert_ok(filch_trace_write(runtime, path));
    assert_int_equal(events("tile", "outer"), OUTER);
    assert_int_equal(events("tile", "inner"), OUTER * INNER);
    assert_int_equal(events("job", NULL), OUTER + 1);
    assert_ok(filch_runtime_destroy(runtime));
}

/* An event of tasks: those from `first` on by equal steps, or with the last two exchanged. */
typedef struct made_event {
    uint32_t count;
    int32_t step; /* 0: exchanged */
} made_event;

static uint32_t slots_of(made_event made)
{
    return made.step != 0 ? 1 : 1 + (made.count + 9) / 11;
}

static void add_made(fl_trace_ring *ring, made_event made, uint64_t number, uint32_t first)
{
    fl_trace_tasks tasks = {.count = made.count};
    for (uint32_t k = 0; k < made.count; ++k) {
        tasks.orders[k] = made.step < 0 ? first + made.count - 1 - k : first + k;
    }
    if (made.step == 0) {
        uint32_t last = tasks.orders[made.count - 1];
        tasks.orders[made.count - 1] = tasks.orders[made.count - 2];
        tasks.orders[made.count - 2] = last;
    }
    fl_trace_add_tasks(ring,
                       (fl_trace_event){.start = 1000 * number,
                                        .end = 1000 * number + 900,
                                        .name = "short",
                                        .last = 5,
                                        .kind = FL_TRACE_TILE},
                       &tasks);
}

/* Numbers of tasks about the size of a slot, tasks in a row, which need one slot, and an event
 * whose first slot is overwritten. */
static void a_ring_keeps_tasks_with_their_event(void **state)
{
    static const made_event made[] = {{1, 1},  {2, 1},  {3, 0},  {12, 0},  {12, -1},
                                      {13, 0}, {23, 0}, {24, 0}, {100, 1}, {FL_TRACE_TASKS, 0}};
    enum { EVENTS = sizeof made / sizeof *made, SLOTS = 1 + 1 + 2 + 2 + 1 + 3 + 3 + 4 + 1 + 48 };
    static bool seen[1000];
    (void)state;
    filch_runtime *runtime = fixture_runtime("host:1", FILCH_DRIVE_POLL, NULL);
    const fl_memory *memory = &runtime->core.memory;
    for (uint64_t lost = 0; lost <= EVENTS; ++lost) {
        uint64_t before = 0, first = 0;
        uint32_t order = 0;
        for (uint64_t i = 0; i < lost; ++i) {
            before += slots_of(made[i]);
            first += made[i].count;
        }
        /* Room for all slots but the first of the last event lost. */
        uint64_t room = SLOTS - before + (lost != 0 ? slots_of(made[lost - 1]) - 1 : 0);
        fl_trace_ring *ring = fl_trace_ring_new(memory, room);
        const fl_trace_lane lane = {.device = "a", .ring = ring};
        assert_non_null(ring);
        for (uint64_t i = 0; i < EVENTS; ++i) {
            add_made(ring, made[i], i, order);
            order += made[i].count;
        }
        assert_int_equal(ring->next, SLOTS);
        assert_ok(fl_trace_write(path, &lane, 1, NULL, &runtime->core, NULL));
        memset(seen, 0, sizeof seen);
        assert_int_equal(mark_tasks(5, seen, order), EVENTS - lost);
        for (uint64_t i = 0; i < order; ++i) {
            assert_int_equal(seen[i], i >= first);
        }
        json_t *root = json_load_file(path, 0, NULL);
        const json_t *missing =
            json_object_get(json_object_get(root, "otherData"), "events_overwritten");
        assert_int_equal(json_integer_value(missing), lost);
        json_decref(root);
        fl_trace_ring_free(memory, ring);
    }
    assert_ok(filch_runtime_destroy(runtime));
}

/* Tasks are written in the order in which they ran, also those that only a step names. */
static void a_ring_keeps_the_order_of_tasks(void **state)
{
    static const uint32_t orders[][4] = {{7, 6, 5, 4}, {4, 5, 6, 7}, {2, 5, 8, 11}, {1, 2, 4, 5}};
    (void)state;
    filch_runtime *runtime = fixture_runtime("host:1", FILCH_DRIVE_POLL, NULL);
    fl_trace_ring *ring = fl_trace_ring_new(&runtime->core.memory, 10);
    assert_non_null(ring);
    for (size_t i = 0; i < 4; ++i) {
        fl_trace_tasks tasks = {.count = 4};
        memcpy(tasks.orders, orders[i], sizeof orders[i]);
        fl_trace_add_tasks(ring, (fl_trace_event){.name = "a", .kind = FL_TRACE_TILE}, &tasks);
    }
    assert_int_equal(ring->next, 4 + 1);
    fl_trace_walk walk = fl_trace_walk_begin(ring);
    for (size_t i = 0; i < 4; ++i) {
        const fl_trace_event *event = fl_trace_walk_next(&walk);
        assert_non_null(event);
        assert_int_equal(fl_trace_first_of(event), orders[i][0]);
        for (uint32_t k = 0; k < 4; ++k) {
            assert_int_equal(fl_trace_walk_task(&walk, k), orders[i][k]);
        }
    }
    fl_trace_ring_free(&runtime->core.memory, ring);
    assert_ok(filch_runtime_destroy(runtime));
}

static void no_memory_leaves_it_off(void **state)
{
    (void)state;
    fixture_memory memory;
    fixture_memory_init(&memory);
    filch_runtime *runtime = fixture_runtime("host:3", FILCH_DRIVE_POLL, &memory);
    for (int n = 1; n <= 5; ++n) { /* three rings, and the record of jobs with its own */
        int64_t bytes = memory.bytes;
        fixture_memory_fail_after(&memory, n);
        assert_status(filch_trace_start(runtime), FILCH_OUT_OF_MEMORY);
        assert_int_equal(memory.bytes, bytes);
        assert_status(filch_trace_write(runtime, path), FILCH_WRONG_STATE);
    }
    assert_ok(filch_trace_start(runtime));
    fixture_memory_fail_after(&memory, 1);
    assert_status(filch_trace_write(runtime, path), FILCH_OUT_OF_MEMORY);
    assert_ok(filch_trace_write(runtime, path));
    assert_ok(filch_runtime_destroy(runtime));
    assert_int_equal(memory.bytes, 0);
}

/* Name and place of the row of an event of that name, and its arguments. */
static void expect_copy(const json_t *list, const char *name, const char *row, const char *other,
                        double rate)
{
    const json_t *event = NULL, *at;
    const char *found = NULL;
    for (size_t i = 0; i < json_array_size(list); ++i) {
        at = json_array_get(list, i);
        const char *its = json_string_value(json_object_get(at, "name"));
        event = json_object_get(at, "cat") != NULL && strcmp(its, name) == 0 ? at : event;
    }
    assert_non_null(event);
    assert_string_equal(json_string_value(json_object_get(event, "cat")), "copy");
    for (size_t i = 0; i < json_array_size(list); ++i) {
        at = json_array_get(list, i);
        if (strcmp(json_string_value(json_object_get(at, "name")), "thread_name") == 0 &&
            json_equal(json_object_get(at, "tid"), json_object_get(event, "tid"))) {
            assert_null(found);
            found = json_string_value(json_object_get(json_object_get(at, "args"), "name"));
        }
    }
    assert_non_null(found);
    assert_string_equal(found, row);
    const json_t *args = json_object_get(event, "args");
    assert_int_equal(json_integer_value(json_object_get(args, "bytes")), 3000);
    assert_string_equal(json_string_value(json_object_get(args, "other")), other);
    assert_true(fabs(json_number_value(json_object_get(args, "GB/s")) - rate) < 1e-9);
}

static void copies_stand_in_rows_of_their_own(void **state)
{
    (void)state;
    filch_runtime *runtime = fixture_runtime("host:1", FILCH_DRIVE_POLL, NULL);
    const fl_memory *memory = &runtime->core.memory;
    fl_trace_ring *in = fl_trace_ring_new(memory, 3), *out = fl_trace_ring_new(memory, 8);
    const fl_trace_lane lanes[] = {{.device = "a"}, {.device = "b", .copies = {in, out}}};
    assert_true(in != NULL && out != NULL);
    for (uint64_t i = 0; i < 5; ++i) { /* the first two are driven out */
        const fl_trace_event event = {.start = 1000 * i,
                                      .end = 1000 * i + 750,
                                      .first = 3000,
                                      .other = i == 3   ? 0
                                               : i == 4 ? 1
                                                        : FL_TRACE_HOST,
                                      .kind = i == 3   ? FL_TRACE_PEER
                                              : i == 4 ? FL_TRACE_INNER
                                                       : FL_TRACE_IN};
        fl_trace_add(in, event);
    }
    fl_trace_add(out, (fl_trace_event){.start = 2000,
                                       .end = 2000, /* too short to be told */
                                       .first = 3000,
                                       .other = FL_TRACE_HOST,
                                       .kind = FL_TRACE_OUT});
    in->missed = 4;
    out->missed = 3;
    assert_ok(fl_trace_write(path, lanes, 2, NULL, &runtime->core, NULL));
    assert_int_equal(events("copy", NULL), 4);
    json_t *root = json_load_file(path, 0, NULL);
    const json_t *list = json_object_get(root, "traceEvents");
    expect_copy(list, "in", "b in", "host", 4);
    expect_copy(list, "out", "b out", "host", 0);
    expect_copy(list, "peer", "b peer", "a", 4);
    expect_copy(list, "inner", "b inner", "b", 4);
    const json_t *missing = json_object_get(root, "otherData");
    assert_int_equal(json_integer_value(json_object_get(missing, "events_overwritten")), 2);
    assert_int_equal(json_integer_value(json_object_get(missing, "copies_missed")), 7);
    json_decref(root);
    fl_trace_ring_free(memory, in);
    fl_trace_ring_free(memory, out);
    assert_ok(filch_runtime_destroy(runtime));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_tile_is_recorded_while_it_records, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_newest_events_are_kept, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_cannot_be_written_is_an_error, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_target_that_is_no_file_stays, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_was_there_outlasts_a_full_disk, set_up, tear_down),
        cmocka_unit_test_setup_teardown(batches_show_their_chunks, set_up, tear_down),
        cmocka_unit_test_setup_teardown(it_may_stop_and_start_while_jobs_run, set_up, tear_down),
        cmocka_unit_test_setup_teardown(jobs_have_a_row_of_their_own, set_up, tear_down),
        cmocka_unit_test_setup_teardown(it_tells_what_tasks_and_batches_use, set_up, tear_down),
        cmocka_unit_test_setup_teardown(it_tells_nothing_of_what_is_too_much, set_up, tear_down),
        cmocka_unit_test_setup_teardown(short_tasks_share_events, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_event_has_tasks_of_one_codelet, set_up, tear_down),
        cmocka_unit_test_setup_teardown(tasks_within_tasks_count_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_ring_keeps_tasks_with_their_event, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_ring_keeps_the_order_of_tasks, set_up, tear_down),
        cmocka_unit_test_setup_teardown(no_memory_leaves_it_off, set_up, tear_down),
        cmocka_unit_test_setup_teardown(copies_stand_in_rows_of_their_own, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
