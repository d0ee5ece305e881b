/* SPDX-License-Identifier: Apache-2.0 */
/* Reports of a program's jobs: the JSON in the page against the calls that report a job, the text,
 * and the setting that asks for a page. */
#define _GNU_SOURCE
#include "fixture.h"

#include <jansson.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "observe/advice.h"
#include "observe/losses.h"

#define TASKS 40
#define DEVICES 2

static char folder[32], path[64], machine[64];

static int set_up(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/filch-report-XXXXXX");
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/report.html", folder);
    snprintf(machine, sizeof machine, "%s/machine.json", folder);
    FILE *file = fopen(machine, "w");
    assert_non_null(file);
    fputs("{\"link\": {\"bandwidth\": 1e9}, \"devices\": ["
          "{\"name\": \"fast\", \"speed\": 4e6, \"overhead_us\": 1, \"memory\": 1048576},"
          "{\"name\": \"slow\", \"speed\": 1e6, \"overhead_us\": 1, \"memory\": 1048576}]}",
          file);
    assert_int_equal(fclose(file), 0);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    unlink(path);
    unlink(machine);
    assert_int_equal(rmdir(folder), 0); /* nothing else was left there */
    return 0;
}

static char *read_file(void)
{
    struct stat about;
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_int_equal(fstat(fileno(file), &about), 0);
    char *text = calloc(1, (size_t)about.st_size + 1);
    assert_non_null(text);
    assert_int_equal(fread(text, 1, (size_t)about.st_size, file), about.st_size);
    fclose(file);
    return text;
}

/* The data of the page, which must be one well-formed script element. */
static json_t *read_page(void)
{
    static const char begin[] = "<script type=\"application/json\" id=\"data\">";
    char *text = read_file(), *at = strstr(text, begin);
    assert_non_null(at);
    at += sizeof begin - 1;
    char *end = strstr(at, "</script>");
    assert_non_null(end);
    assert_ptr_equal(memchr(at, '<', (size_t)(end - at)), NULL);
    assert_null(strstr(text, "http:")); /* the page asks for nothing */
    assert_null(strstr(text, "https:"));
    *end = '\0';
    json_error_t error;
    json_t *root = json_loads(at, 0, &error);
    if (root == NULL) {
        fail_msg("the page's data, line %d: %s", error.line, error.text);
    }
    free(text);
    return root;
}

static uint64_t number(const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);
    assert_true(json_is_integer(value));
    return (uint64_t)json_integer_value(value);
}

static const char *text_of(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));
    assert_non_null(text);
    return text;
}

static int spin(const filch_call *call)
{
    volatile double *x = call->views[0].ptr;
    for (int i = 0; i < 2000; ++i) {
        x[0] += 1e-3;
    }
    return 0;
}

static double one(const filch_call *call)
{
    (void)call;
    return 1;
}

/* What the calls say of a job that ran. */
typedef struct job_told {
    filch_report report;
    filch_job_info info;
    filch_losses losses[DEVICES];
    filch_device_stats stats[DEVICES];
} job_told;

/* Runs a graph, destroyed before the page is written: two chains over the tiles of a handle, with
 * labels. */
static void run_graph(filch_runtime *runtime, filch_codelet *codelet, filch_data *data,
                      job_told *told)
{
    filch_graph_desc desc = FILCH_GRAPH_DESC_INIT;
    filch_submit_desc submit = FILCH_SUBMIT_DESC_INIT;
    filch_graph *graph = NULL;
    filch_job *job = NULL;
    desc.label = "two chains";
    submit.label = "first </script> run";
    assert_ok(filch_graph_create(runtime, &desc, &graph));
    for (uint32_t i = 0; i < TASKS; ++i) {
        filch_access access = fixture_access(data, i % 2, FILCH_READWRITE);
        filch_task_desc task = FILCH_TASK_DESC_INIT;
        task.codelet = codelet;
        task.accesses = &access;
        task.access_count = 1;
        task.label = i == 7 ? "the <seventh>" : NULL;
        assert_ok(filch_graph_add(graph, &task, NULL));
    }
    assert_ok(filch_graph_submit(graph, &submit, &job));
    assert_ok(filch_job_wait(job, -1));
    told->report = (filch_report)FILCH_REPORT_INIT;
    told->info = (filch_job_info)FILCH_JOB_INFO_INIT;
    assert_ok(filch_job_report(job, graph, &told->report, told->losses, DEVICES));
    assert_ok(filch_job_stats(job, &told->info, told->stats, DEVICES));
    assert_ok(filch_job_release(job));
    assert_ok(filch_graph_destroy(graph));
}

static void check_losses(const json_t *root, const json_t *rows, const filch_losses *losses)
{
    size_t count;
    const fl_loss_field *fields = fl_loss_fields(&count);
    const json_t *names = json_object_get(root, "loss_fields");
    assert_int_equal(json_array_size(rows), DEVICES);
    assert_int_equal(json_array_size(names), count);
    for (size_t d = 0; d < DEVICES; ++d) {
        const json_t *row = json_array_get(rows, d);
        uint64_t sum = 0, wall = 0;
        assert_int_equal(json_array_size(row), count);
        for (size_t k = 0; k < count; ++k) {
            uint64_t value = (uint64_t)json_integer_value(json_array_get(row, k));
            assert_int_equal(value, fl_loss_value(&losses[d], &fields[k]));
            assert_string_equal(json_string_value(json_array_get(names, k)), fields[k].name);
            wall = strcmp(fields[k].name, "wall") == 0 ? value : wall;
            for (size_t part = 0; part < FL_LOSS_PARTS; ++part) {
                sum += strcmp(fields[k].name, fl_loss_parts()[part].name) == 0 ? value : 0;
            }
        }
        assert_int_equal(sum, wall);
    }
}

static void check_job(const json_t *root, const job_told *told)
{
    const json_t *job = json_array_get(json_object_get(root, "jobs"), 0);
    const json_t *total = json_object_get(root, "total");
    assert_int_equal(json_array_size(json_object_get(root, "jobs")), 1);
    assert_string_equal(text_of(job, "label"), "first </script> run");
    assert_string_equal(text_of(job, "status"), "OK");
    assert_int_equal(number(job, "wall"), told->report.wall_ns);
    assert_int_equal(number(job, "ns"), told->report.wall_ns);
    assert_int_equal(number(job, "area"), told->report.area_ns);
    assert_int_equal(number(job, "path"), told->report.path_ns);
    assert_int_equal(number(job, "bound"), told->report.bound_ns);
    assert_int_equal(number(job, "done"), told->info.done);
    assert_int_equal(number(job, "total"), TASKS);
    check_losses(root, json_object_get(job, "losses"), told->losses);
    check_losses(root, json_object_get(total, "losses"), told->losses);
    assert_int_equal(number(total, "jobs"), 1);
    assert_int_equal(number(total, "bound"), told->report.bound_ns);
    assert_true(json_array_size(json_object_get(job, "advice")) >= 1);
    for (size_t d = 0; d < DEVICES;
         ++d) { /* columns: tiles, stolen_in, stolen_out, items, bytes_in */
        const json_t *row = json_array_get(json_object_get(job, "stats"), d);
        assert_int_equal(json_integer_value(json_array_get(row, 0)), told->stats[d].tiles);
        assert_int_equal(json_integer_value(json_array_get(row, 1)), told->stats[d].stolen_in);
        assert_int_equal(json_integer_value(json_array_get(row, 4)), told->stats[d].bytes_in);
    }
}

/* The events: as many items and copied bytes as the job's figures say; labels; the structure. */
static void check_events(const json_t *root, const job_told *told)
{
    const json_t *names = json_object_get(root, "names"), *row;
    uint64_t tiles[DEVICES] = {0}, bytes = 0, labels = 0;
    size_t at;
    json_array_foreach(json_object_get(root, "tiles"), at, row)
    {
        json_int_t name = json_integer_value(json_array_get(row, 3));
        json_int_t tasks = json_integer_value(json_array_get(row, 7));
        assert_true(tasks >= 1);
        tiles[json_integer_value(json_array_get(row, 0))] += (uint64_t)tasks;
        assert_string_equal(json_string_value(json_array_get(names, (size_t)name)), "spin");
        assert_int_equal(json_array_size(json_array_get(row, 9)), tasks - 1);
        if (json_is_integer(json_array_get(row, 8))) {
            json_int_t label = json_integer_value(json_array_get(row, 8));
            assert_string_equal(json_string_value(json_array_get(names, (size_t)label)),
                                "the <seventh>");
            assert_int_equal(json_integer_value(json_array_get(row, 5)), 7);
            ++labels;
        }
    }
    assert_int_equal(labels, 1);
    json_array_foreach(json_object_get(root, "copies"), at, row)
    {
        bytes += (uint64_t)json_integer_value(json_array_get(row, 4));
    }
    assert_int_equal(bytes, told->info.bytes);
    for (size_t d = 0; d < DEVICES; ++d) {
        assert_int_equal(tiles[d], told->stats[d].tiles);
    }
    const json_t *graph = json_array_get(json_object_get(root, "graphs"), 0);
    assert_string_equal(text_of(graph, "label"), "two chains");
    assert_int_equal(number(graph, "tasks"), TASKS);
    assert_int_equal(json_array_size(json_object_get(graph, "successors")), TASKS - 2);
    assert_string_equal(text_of(json_array_get(json_object_get(root, "handles"), 0), "label"),
                        "matrix");
    assert_int_equal(number(root, "events_overwritten"), 0);
}

/* devices: two. */
static void check_report(const char *devices)
{
    static double values[2 * 64];
    fixture_memory memory;
    job_told told;
    fixture_memory_init(&memory);
    setenv("FILCH_REPORT", path, 1);
    filch_runtime *runtime = fixture_runtime(devices, FILCH_DRIVE_DEFAULT, &memory);
    unsetenv("FILCH_REPORT");
    filch_codelet_desc desc = FILCH_CODELET_DESC_INIT;
    filch_codelet *codelet = NULL;
    filch_data_desc matrix = FILCH_DATA_DESC_INIT;
    filch_data *data = NULL;
    desc.name = "spin";
    desc.host = spin;
    desc.work = one;
    desc.cost = one;
    matrix.ptr = values;
    matrix.element = sizeof *values;
    matrix.rows = 128;
    matrix.cols = 1;
    matrix.tile_rows = 64;
    matrix.label = "matrix";
    assert_ok(filch_codelet_create(runtime, &desc, &codelet));
    assert_ok(filch_data_create(runtime, &matrix, &data));
    run_graph(runtime, codelet, data, &told);
    assert_int_equal(access(path, F_OK), -1); /* at the end, not before */
    assert_ok(filch_data_destroy(data));
    assert_ok(filch_runtime_destroy(runtime));
    assert_int_equal(memory.bytes, 0);
    json_t *root = read_page();
    check_job(root, &told);
    check_events(root, &told);
    assert_int_equal(json_is_true(json_object_get(root, "virtual")), devices[0] == 's');
    json_decref(root);
}

static void a_page_agrees_with_the_job_on_host_devices(void **state)
{
    (void)state;
    check_report("host:2@any");
}

static void a_page_agrees_with_the_job_on_simulated_devices(void **state)
{
    (void)state;
    char devices[80];
    snprintf(devices, sizeof devices, "sim:%s", machine);
    check_report(devices);
}

static void a_page_of_nothing_is_a_page(void **state)
{
    (void)state;
    setenv("FILCH_REPORT", path, 1);
    filch_runtime *runtime = fixture_runtime("host:1", FILCH_DRIVE_POLL, NULL);
    unsetenv("FILCH_REPORT");
    assert_ok(filch_runtime_destroy(runtime));
    json_t *root = read_page();
    assert_int_equal(json_array_size(json_object_get(root, "jobs")), 0);
    assert_int_equal(json_array_size(json_object_get(root, "tiles")), 0);
    json_decref(root);
}

static void a_relative_path_means_the_folder_of_the_creation(void **state)
{
    (void)state;
    char before[4096];
    assert_non_null(getcwd(before, sizeof before));
    assert_int_equal(chdir(folder), 0);
    setenv("FILCH_REPORT", "report.html", 1);
    filch_runtime *runtime = fixture_runtime("host:1", FILCH_DRIVE_POLL, NULL);
    unsetenv("FILCH_REPORT");
    assert_int_equal(chdir(before), 0);
    assert_ok(filch_runtime_destroy(runtime));
    json_decref(read_page());
}

static void refuse(const char *value, filch_status status, const char *reason)
{
    filch_runtime_desc config = FILCH_RUNTIME_DESC_INIT;
    filch_error error = FILCH_ERROR_INIT;
    filch_runtime *runtime = NULL;
    config.devices = "host:1";
    config.drive = FILCH_DRIVE_POLL;
    setenv("FILCH_REPORT", value, 1);
    assert_status(filch_runtime_create(&config, &error, &runtime), status);
    unsetenv("FILCH_REPORT");
    assert_null(runtime);
    assert_string_equal(error.label, "FILCH_REPORT");
    assert_non_null(strstr(error.text, value));
    assert_non_null(strstr(error.text, reason));
}

static void a_bad_setting_fails_the_creation(void **state)
{
    (void)state;
    char name[64];
    refuse("1", FILCH_PARSE, ".html");
    refuse(".html", FILCH_PARSE, ".html");
    refuse("report.htm", FILCH_PARSE, ".html");
    refuse("/nonexistent/report.html", FILCH_IO, "No such file");
    assert_int_equal(mkdir(path, 0700), 0);
    refuse(path, FILCH_IO, "directory");
    assert_int_equal(rmdir(path), 0);
    snprintf(name, sizeof name, "%s/other", folder);
    assert_int_equal(symlink(name, path), 0);
    refuse(path, FILCH_IO, "symbolic link");
}

typedef struct messages {
    int count;
    char text[512];
} messages;

static void note_message(filch_log_level level, const char *text, void *user)
{
    messages *of = user;
    if (level <= FILCH_LOG_WARNING) {
        ++of->count;
        snprintf(of->text, sizeof of->text, "%s", text);
    }
}

/* The folder disappears while the jobs run. */
static void a_page_that_fails_at_the_end_is_a_warning(void **state)
{
    (void)state;
    char inner[64], page[80];
    messages seen = {0};
    filch_runtime_desc config = FILCH_RUNTIME_DESC_INIT;
    filch_runtime *runtime = NULL;
    snprintf(inner, sizeof inner, "%s/inner", folder);
    snprintf(page, sizeof page, "%s/report.html", inner);
    assert_int_equal(mkdir(inner, 0700), 0);
    config.devices = "host:1";
    config.drive = FILCH_DRIVE_POLL;
    config.log = note_message;
    config.log_user = &seen;
    setenv("FILCH_REPORT", page, 1);
    assert_ok(filch_runtime_create(&config, NULL, &runtime));
    unsetenv("FILCH_REPORT");
    assert_int_equal(rmdir(inner), 0);
    assert_ok(filch_runtime_destroy(runtime));
    assert_int_equal(seen.count, 1);
    assert_non_null(strstr(seen.text, page));
}

static void the_call_writes_a_page_and_names_its_failures(void **state)
{
    (void)state;
    filch_runtime *runtime = fixture_runtime("host:1", FILCH_DRIVE_POLL, NULL);
    filch_codelet *codelet = fixture_codelet(runtime, "nothing", fixture_nothing, 0);
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    filch_job *job = NULL;
    fixture_add(graph, codelet, NULL, NULL, 0);
    assert_status(filch_report_write(NULL, path), FILCH_INVALID_HANDLE);
    assert_status(filch_report_write(runtime, path), FILCH_WRONG_STATE);
    assert_ok(filch_trace_start(runtime));
    assert_status(filch_report_write(runtime, NULL), FILCH_INVALID_ARGUMENT);
    assert_status(filch_report_write(runtime, "/nonexistent/x.html"), FILCH_IO);
    assert_non_null(strstr(fixture_error(runtime).text, "/nonexistent/x.html"));
    assert_string_equal(fixture_error(runtime).call, "filch_report_write");
    assert_ok(filch_graph_submit(graph, NULL, &job));
    assert_status(filch_report_write(runtime, path), FILCH_BUSY);
    assert_ok(filch_job_wait(job, -1));
    for (uint64_t runs = 1; runs < 4; ++runs) { /* each page has the graph once */
        assert_ok(filch_report_write(runtime, path));
        json_t *root = read_page();
        assert_int_equal(number(json_object_get(root, "total"), "jobs"), runs);
        assert_int_equal(json_array_size(json_object_get(root, "graphs")), 1);
        json_decref(root);
        assert_ok(fixture_run(graph));
    }
    assert_ok(filch_runtime_destroy(runtime));
}

/* Takes a locale whose numbers have a comma: an installed one, or one made in a folder. Null: there
 * is none. */
static const char *take_comma(const char *made)
{
    static const char *const names[] = {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "it_IT.UTF-8"};
    char command[256];
    for (size_t i = 0; i < sizeof names / sizeof *names; ++i) {
        if (setlocale(LC_ALL, names[i]) != NULL && localeconv()->decimal_point[0] == ',') {
            return names[i];
        }
    }
    snprintf(command, sizeof command, "localedef -i de_DE -f UTF-8 %s/%s >%s/log 2>&1", made,
             names[0], made);
    setenv("LOCPATH", made, 1);
    bool is_made = system(command) == 0 && setlocale(LC_ALL, names[0]) != NULL;
    unsetenv("LOCPATH");
    return is_made && localeconv()->decimal_point[0] == ',' ? names[0] : NULL;
}

/* A page and a trace, in a locale whose numbers have a comma. */
static void numbers_have_a_point_in_every_locale(void **state)
{
    (void)state;
    char made[64], command[96];
    snprintf(made, sizeof made, "%s/locale", folder);
    snprintf(command, sizeof command, "rm -r %s", made);
    assert_int_equal(mkdir(made, 0700), 0);
    bool has_comma = take_comma(made) != NULL;
    assert_int_equal(system(command), 0);
    if (!has_comma) {
        setlocale(LC_ALL, "C");
        skip(); /* no locale with a comma is installed, nor can one be made */
    }
    setenv("FILCH_REPORT", path, 1);
    filch_runtime *runtime = fixture_runtime("host:1", FILCH_DRIVE_POLL, NULL);
    unsetenv("FILCH_REPORT");
    filch_codelet *codelet = fixture_codelet(runtime, "nothing", fixture_nothing, 0);
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    fixture_add(graph, codelet, NULL, NULL, 0);
    assert_ok(fixture_run(graph));
    assert_ok(filch_trace_write(runtime, path));
    locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0), before = uselocale(plain);
    json_t *trace = json_load_file(path, 0, NULL); /* the reader's locale has a point */
    assert_ptr_equal(uselocale(before), plain);
    freelocale(plain);
    assert_non_null(trace);
    json_decref(trace);
    assert_ok(filch_runtime_destroy(runtime));
    assert_string_equal(localeconv()->decimal_point, ","); /* the program's locale is back */
    setlocale(LC_ALL, "C");
    json_t *root = read_page();
    const json_t *job = json_array_get(json_object_get(root, "jobs"), 0);
    assert_true(json_is_real(json_object_get(job, "efficiency")));
    json_decref(root);
}

/* More jobs than have figures of their own, in graphs that are gone. */
static void the_newest_jobs_are_shown_and_all_are_counted(void **state)
{
    (void)state;
    setenv("FILCH_REPORT", path, 1);
    filch_runtime *runtime = fixture_runtime("host:1", FILCH_DRIVE_POLL, NULL);
    unsetenv("FILCH_REPORT");
    filch_codelet *codelet = fixture_codelet(runtime, "nothing", fixture_nothing, 0);
    for (int i = 0; i < 1100; ++i) {
        filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
        fixture_add(graph, codelet, NULL, NULL, 0);
        assert_ok(fixture_run(graph));
        assert_ok(filch_graph_destroy(graph));
    }
    assert_ok(filch_runtime_destroy(runtime));
    json_t *root = read_page();
    const json_t *jobs = json_object_get(root, "jobs");
    assert_int_equal(number(json_object_get(root, "total"), "jobs"), 1100);
    assert_int_equal(number(json_object_get(root, "total"), "done"), 1100);
    assert_int_equal(json_array_size(jobs), 1024);
    assert_int_equal(number(json_array_get(jobs, 0), "job"), 77);
    assert_int_equal(number(json_array_get(jobs, 1023), "job"), 1100);
    json_decref(root);
}

/* Destroyed graphs without tasks: the log of structures forgets the oldest, and replaces a graph
 * that it has. */
static void the_oldest_graphs_are_forgotten(void **state)
{
    (void)state;
    enum { GRAPHS = 2000, MOST = 1024 * 32 / 140 };
    fixture_memory memory;
    fixture_memory_init(&memory);
    setenv("FILCH_REPORT", path, 1);
    setenv("FILCH_TRACE_EVENTS", "1024", 1);
    filch_runtime *runtime = fixture_runtime("host:1", FILCH_DRIVE_POLL, &memory);
    unsetenv("FILCH_TRACE_EVENTS");
    unsetenv("FILCH_REPORT");
    for (int i = 0; i < GRAPHS; ++i) {
        filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
        assert_ok(fixture_run(graph));
        if (i % 500 == 499) { /* the page and the graph's end both have it: once, in its place */
            assert_ok(filch_report_write(runtime, path));
        }
        assert_ok(filch_graph_destroy(graph));
    }
    assert_ok(filch_runtime_destroy(runtime));
    assert_int_equal(memory.bytes, 0);
    json_t *root = read_page();
    const json_t *graphs = json_object_get(root, "graphs");
    assert_int_equal(json_array_size(graphs), MOST);
    for (uint64_t i = 0; i < MOST; ++i) {
        assert_int_equal(number(json_array_get(graphs, i), "graph"), GRAPHS - MOST + 1 + i);
    }
    json_decref(root);
}

static void the_text_says_what_the_report_says(void **state)
{
    (void)state;
    filch_runtime *runtime = fixture_runtime("host:1", FILCH_DRIVE_POLL, NULL);
    filch_codelet *codelet = fixture_codelet(runtime, "nothing", fixture_nothing, 0);
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    filch_submit_desc submit = FILCH_SUBMIT_DESC_INIT;
    filch_report report = FILCH_REPORT_INIT;
    filch_losses losses;
    filch_job *job = NULL;
    char *text = NULL, expected[128];
    size_t size = 0;
    submit.label = "short";
    for (int i = 0; i < 1000; ++i) {
        fixture_add(graph, codelet, NULL, NULL, 0);
    }
    assert_ok(filch_graph_submit(graph, &submit, &job));
    assert_ok(filch_job_wait(job, -1));
    FILE *file = open_memstream(&text, &size);
    assert_non_null(file);
    assert_status(filch_report_print(job, graph, NULL), FILCH_INVALID_ARGUMENT);
    assert_status(filch_report_print(NULL, graph, file), FILCH_INVALID_HANDLE);
    assert_int_equal(ftell(file), 0);
    assert_ok(filch_report_print(job, graph, file));
    assert_int_equal(fclose(file), 0);
    assert_ok(filch_job_report(job, graph, &report, &losses, 1));
    snprintf(expected, sizeof expected, "job 1 short: OK, %.6g ms on 1 devices",
             (double)report.wall_ns / 1e6);
    assert_non_null(strstr(text, expected));
    const char *row = strstr(text, "\nhost:0 ");
    assert_non_null(row);
    snprintf(expected, sizeof expected, "%.2f ",
             100 * (double)losses.busy_ns / (double)losses.wall_ns);
    row += strlen("\nhost:0 ");
    row += strspn(row, " ");
    assert_int_equal(strncmp(row, expected, strlen(expected)), 0);
    assert_non_null(strstr(text, "What to change first:\n1. "));
    free(text);
    assert_ok(filch_job_release(job));
    assert_ok(filch_runtime_destroy(runtime));
}

static void advice_needs_work_items(void **state)
{
    (void)state;
    filch_report report = FILCH_REPORT_INIT;
    report.device_count = 3;
    report.status = FILCH_NOT_READY;
    assert_false(fl_advice_is_grounded(&report, 0));
    assert_false(fl_advice_is_grounded(&report, 3 * FL_ADVICE_ITEMS - 1));
    assert_true(fl_advice_is_grounded(&report, 3 * FL_ADVICE_ITEMS));
    report.status = FILCH_OK;
    assert_true(fl_advice_is_grounded(&report, 1));
    assert_false(fl_advice_is_grounded(&report, 0));
}

static void a_job_that_has_not_begun_gets_no_advice(void **state)
{
    (void)state;
    filch_runtime *runtime = fixture_runtime("host:1", FILCH_DRIVE_POLL, NULL);
    filch_codelet *codelet = fixture_codelet(runtime, "nothing", fixture_nothing, 0);
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    filch_job *job = NULL;
    char *text = NULL;
    size_t size = 0;
    fixture_add(graph, codelet, NULL, NULL, 0);
    assert_ok(filch_graph_submit(graph, NULL, &job));
    FILE *file = open_memstream(&text, &size);
    assert_non_null(file);
    assert_ok(filch_report_print(job, graph, file));
    assert_int_equal(fclose(file), 0);
    assert_null(strstr(text, "What to change first"));
    assert_non_null(strstr(text, "\nNo advice yet: work items run: 0\n"));
    free(text);
    assert_ok(filch_job_wait(job, -1));
    text = NULL;
    file = open_memstream(&text, &size);
    assert_non_null(file);
    assert_ok(filch_report_print(job, graph, file));
    assert_int_equal(fclose(file), 0);
    assert_non_null(strstr(text, "What to change first:\n1. "));
    free(text);
    assert_ok(filch_job_release(job));
    assert_ok(filch_runtime_destroy(runtime));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        TEST(a_page_agrees_with_the_job_on_host_devices),
        TEST(a_page_agrees_with_the_job_on_simulated_devices),
        TEST(a_page_of_nothing_is_a_page),
        TEST(a_relative_path_means_the_folder_of_the_creation),
        TEST(a_bad_setting_fails_the_creation),
        TEST(a_page_that_fails_at_the_end_is_a_warning),
        TEST(the_call_writes_a_page_and_names_its_failures),
        TEST(numbers_have_a_point_in_every_locale),
        TEST(the_newest_jobs_are_shown_and_all_are_counted),
        TEST(the_oldest_graphs_are_forgotten),
        TEST(the_text_says_what_the_report_says),
        TEST(advice_needs_work_items),
        TEST(a_job_that_has_not_begun_gets_no_advice),
#undef TEST
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
