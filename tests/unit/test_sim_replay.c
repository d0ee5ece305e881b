/* SPDX-License-Identifier: Apache-2.0 */
/* A job that was recorded on simulated devices, whose times are exact, is predicted from its trace
 * alone: on the same devices, on faster ones, on more of them. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../random.h"
#include "filch/filch.h"
#include "sim_replay.h"

#define ok(call) assert_int_equal((call), FILCH_OK)

enum { TASKS = 400 };

static char trace_path[] = "/tmp/filch-replay-XXXXXX";
static char device_path[] = "/tmp/filch-replay-XXXXXX";

static void make_file(char *path, const char *text)
{
    strcpy(path + strlen(path) - 6, "XXXXXX");
    int file = mkstemp(path);
    assert_true(file >= 0);
    assert_int_equal(write(file, text, strlen(text)), strlen(text));
    assert_int_equal(close(file), 0);
}

static filch_runtime *open_devices(const char *text)
{
    char spec[64];
    filch_config config = FILCH_CONFIG_INIT;
    filch_error error = FILCH_ERROR_INIT;
    filch_runtime *runtime = NULL;
    make_file(device_path, text);
    snprintf(spec, sizeof spec, "sim:%s", device_path);
    config.devices = spec;
    if (filch_runtime_create(&config, &error, &runtime) != FILCH_OK) {
        fail_msg("%s", error.text);
    }
    return runtime;
}

static int nothing(const filch_call *call)
{
    (void)call;
    return 0;
}

static double task_work(const filch_call *call)
{
    double work;
    memcpy(&work, call->args, sizeof work);
    return work;
}

/* Later items take longer. */
static double ramp(const filch_call *call)
{
    double lo = (double)call->lo, hi = (double)call->hi;
    return (hi * hi - lo * lo) / 1e3;
}

static filch_codelet *make_codelet(filch_runtime *runtime, const char *name, bool is_batch)
{
    filch_codelet_desc desc = FILCH_CODELET_DESC_INIT;
    filch_codelet *codelet = NULL;
    desc.name = name;
    desc.host = nothing;
    desc.work = is_batch ? NULL : task_work;
    desc.cost = is_batch ? ramp : NULL;
    desc.arg_size = is_batch ? 0 : sizeof(double);
    ok(filch_codelet_create(runtime, &desc, &codelet));
    return codelet;
}

static filch_graph *make_graph(filch_runtime *runtime)
{
    filch_graph_desc desc = FILCH_GRAPH_DESC_INIT;
    filch_graph *graph = NULL;
    filch_task tasks[TASKS];
    filch_codelet *codelets[2] = {make_codelet(runtime, "light", false),
                                  make_codelet(runtime, "heavy", false)};
    fl_random random;
    fl_random_init(&random, 11, 0);
    ok(filch_graph_create(runtime, &desc, &graph));
    for (uint32_t i = 0; i < TASKS; i++) {
        double work = 1e4 + fl_random_below(&random, 100000);
        filch_task_desc task = FILCH_TASK_DESC_INIT;
        work = i % 3 == 0 ? 5 * work : work;
        task.codelet = codelets[i % 3 == 0];
        task.args = &work;
        ok(filch_graph_add(graph, &task, &tasks[i]));
        for (uint32_t e = fl_random_below(&random, 3); i != 0 && e > 0; e--) {
            uint32_t back = 1 + fl_random_below(&random, i < 12 ? i : 12);
            ok(filch_graph_edge(graph, tasks[i - back], tasks[i]));
        }
    }
    return graph;
}

/* Runs the graph twice, the second time recorded; its seconds. */
static double record_graph(const char *devices)
{
    filch_runtime *runtime = open_devices(devices);
    filch_graph *graph = make_graph(runtime);
    filch_job_info info = {.size = sizeof info};
    for (int run = 0; run < 2; run++) {
        filch_job *job = NULL;
        if (run == 1) {
            ok(filch_trace_start(runtime));
        }
        ok(filch_graph_submit(graph, NULL, &job));
        ok(filch_job_wait(job, -1));
        ok(filch_job_stats(job, &info, NULL, 0));
        ok(filch_job_release(job));
    }
    make_file(trace_path, "");
    ok(filch_trace_write(runtime, trace_path));
    ok(filch_runtime_destroy(runtime));
    return info.seconds;
}

static double record_batches(const char *devices, uint64_t n, uint32_t count)
{
    filch_runtime *runtime = open_devices(devices);
    filch_batch_desc desc = FILCH_BATCH_DESC_INIT;
    filch_job_info info = {.size = sizeof info};
    double seconds = 0;
    desc.codelet = make_codelet(runtime, "ramp", true);
    desc.n = n;
    desc.grain = 100;
    ok(filch_trace_start(runtime));
    for (uint32_t k = 0; k < count; k++) {
        filch_job *job = NULL;
        ok(filch_batch_submit(runtime, &desc, NULL, &job));
        ok(filch_job_wait(job, -1));
        ok(filch_job_stats(job, &info, NULL, 0));
        ok(filch_job_release(job));
        seconds += info.seconds;
    }
    make_file(trace_path, "");
    ok(filch_trace_write(runtime, trace_path));
    ok(filch_runtime_destroy(runtime));
    return seconds;
}

/* devices: null for the record's. */
static double predict(const char *devices)
{
    bench_sim_record record;
    bench_sim_prediction prediction;
    filch_error error = FILCH_ERROR_INIT;
    char spec[64];
    if (devices != NULL) {
        make_file(device_path, devices);
        snprintf(spec, sizeof spec, "sim:%s", device_path);
    }
    if (bench_sim_record_read(&record, trace_path, &error) != FILCH_OK ||
        bench_sim_predict(&record, devices != NULL ? spec : NULL, &prediction, &error) !=
            FILCH_OK) {
        fail_msg("%s", error.text);
    }
    assert_int_equal(record.loose, 0);
    double seconds = prediction.seconds;
    bench_sim_prediction_free(&prediction);
    bench_sim_record_free(&record);
    return seconds;
}

static int clean(void **state)
{
    (void)state;
    unlink(trace_path);
    unlink(device_path);
    return 0;
}

#define TWO                                                                                     \
    "{\"devices\": [{\"name\": \"host:0\", \"speed\": 1e9, \"overhead_us\": 2, \"window\": 1}," \
    "{\"name\": \"host:1\", \"speed\": 5e8, \"overhead_us\": 2, \"window\": 1}]}"

static void test_graph(void **state)
{
    (void)state;
    double seconds = record_graph(TWO), again = predict(NULL);
    print_message("graph: %.6f s, predicted %.6f s\n", seconds, again);
    assert_true(fabs(again / seconds - 1) <= 0.03);
    assert_true(predict(NULL) == again);
    /* Described as it was: the unit is a nanosecond of the first device. What was recorded knew how
     * long tasks take, and this one has to try the slow device. */
    assert_true(fabs(predict(TWO) / seconds - 1) <= 0.08);
    /* One that does all of it in turn, and one ten times as fast. */
    double one = predict("{\"devices\": [{\"speed\": 1e9, \"window\": 1}]}");
    double fast = predict("{\"devices\": [{\"speed\": 1e10, \"window\": 1}]}");
    assert_true(one > seconds && fabs(one / fast / 10 - 1) <= 0.01);
}

/* Who waits for whom matters: on any number of devices the longest path has to be gone. */
static void test_critical_path(void **state)
{
    (void)state;
    (void)record_graph(TWO);
    double many = predict("{\"devices\": [{\"speed\": 1e9, \"count\": 64, \"window\": 1}]}");
    double more = predict("{\"devices\": [{\"speed\": 1e9, \"count\": 512, \"window\": 1}]}");
    double one = predict("{\"devices\": [{\"speed\": 1e9, \"window\": 1}]}");
    assert_true(many < one / 2 && many > one / 60);
    assert_true(fabs(more / many - 1) <= 0.05);
}

static void test_batches(void **state)
{
    (void)state;
    double seconds = record_batches(TWO, 200000, 3), again = predict(NULL);
    print_message("batches: %.6f s, predicted %.6f s\n", seconds, again);
    assert_true(fabs(again / seconds - 1) <= 0.03);
    /* All items, in turn. */
    double one = predict("{\"devices\": [{\"speed\": 1e9, \"window\": 1}]}");
    print_message("one: %.6f of %.6f s\n", one, 3 * 2e5 * 2e5 / 1e3 / 1e9);
    assert_true(fabs(one / (3 * 2e5 * 2e5 / 1e3 / 1e9) - 1) <= 0.03);
}

static void refused(const char *text, filch_status expected, const char *fragment)
{
    bench_sim_record record;
    filch_error error = FILCH_ERROR_INIT;
    make_file(trace_path, text);
    assert_int_equal(bench_sim_record_read(&record, trace_path, &error), expected);
    if (strstr(error.text, fragment) == NULL) {
        fail_msg("'%s' has no '%s'", error.text, fragment);
    }
    unlink(trace_path);
}

#define ROW "{\"ph\":\"M\",\"tid\":0,\"name\":\"thread_name\",\"args\":{\"name\":\"host:0\"}}"
#define CHUNK(first, end)                                                         \
    "{\"ph\":\"X\",\"tid\":0,\"cat\":\"tile\",\"name\":\"c\",\"ts\":1,\"dur\":1," \
    "\"args\":{\"first\":" #first ",\"end\":" #end "}}"
#define TRACE(lost, events) \
    "{\"otherData\":{\"events_overwritten\":" #lost "},\"traceEvents\":[" events "]}"

static void test_wrong_files(void **state)
{
    (void)state;
    bench_sim_record record;
    filch_error error = FILCH_ERROR_INIT;
    assert_int_equal(bench_sim_record_read(&record, "/no/such/file", &error), FILCH_IO);
    refused("{", FILCH_PARSE, "");
    refused("{}", FILCH_DATA, "no trace of filch's");
    refused(TRACE(0, ROW), FILCH_DATA, "no tile");
    refused(TRACE(3, ROW "," CHUNK(0, 10)), FILCH_DATA, "newer events drove out 3");
    refused(TRACE(0, ROW "," CHUNK(5, 10)), FILCH_DATA, "lacks chunks of 'c'");
    refused(TRACE(0, ROW "," CHUNK(0, 10) "," CHUNK(0, 4) "," CHUNK(2, 9)), FILCH_DATA,
            "not those of batches of one size");
    make_file(trace_path, TRACE(0, ROW "," CHUNK(0, 10)));
    ok(bench_sim_record_read(&record, trace_path, &error));
    assert_int_equal(record.job_count, 1);
    assert_int_equal(record.jobs[0].n, 10);
    assert_int_equal(record.jobs[0].grain, 10);
    bench_sim_prediction prediction;
    assert_int_equal(bench_sim_predict(&record, "sim:/no/such/file", &prediction, &error),
                     FILCH_IO);
    bench_sim_record_free(&record);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_graph, clean),
        cmocka_unit_test_teardown(test_critical_path, clean),
        cmocka_unit_test_teardown(test_batches, clean),
        cmocka_unit_test_teardown(test_wrong_files, clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
