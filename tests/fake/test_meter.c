/* SPDX-License-Identifier: Apache-2.0 */
/* Power and clocks of GPUs in reports and traces, by a fake NVML: what is measured, what is told
 * where it is not, and that the meter's thread ends with the trace. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dlfcn.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <unistd.h>

#include "fakenvml/fakenvml.h"
#include "jobs.h"

#define TWO_GPUS "{\"devices\": [{\"count\": 2}]}"
#define SAMPLES 9 /* of each GPU, at least */

static const char *library; /* the fake in use */

/* Successful calls so far; 0 while the library is not loaded. */
static int count_of(fake_nvml_call call)
{
    void *found = dlopen(library, RTLD_NOW | RTLD_NOLOAD);
    fake_nvml_count_fn function = NULL;
    if (found == NULL)
        return 0;
    *(void **)(void *)&function = dlsym(found, "fake_nvml_count");
    int count = function != NULL ? function(call) : 0;
    dlclose(found);
    return count;
}

static fake_nvml_call awaited;

/* Runs until the GPUs were sampled. */
static int await_samples(const filch_call *call)
{
    (void)call;
    while (count_of(awaited) < 2 * SAMPLES) {
        const struct timespec nap = {0, 100000};
        (void)nanosleep(&nap, NULL);
    }
    return 0;
}

static void start_with(const char *devices, const char *nvml, const char *failing)
{
    library = nvml;
    assert_int_equal(setenv("FILCH_NVML", nvml, 1), 0);
    assert_int_equal(setenv(FAKE_NVML_FAIL, failing, 1), 0);
    start(devices, "2", TWO_GPUS);
    assert_ok(filch_trace_start(runtime));
}

static void run(filch_host_fn function)
{
    filch_graph *one = graph();
    filch_task_desc desc = FILCH_TASK_DESC_INIT;
    desc.codelet = on_host("await", function);
    assert_ok(filch_graph_add(one, &desc, NULL));
    finish(submit(one), FILCH_OK);
    assert_ok(filch_graph_destroy(one));
}

static int do_nothing(const filch_call *call)
{
    (void)call;
    return 0;
}

static json_t *parse(const char *from, const char *to, char *text)
{
    char *begin = from != NULL ? strstr(text, from) : text;
    assert_non_null(begin);
    begin += from != NULL ? strlen(from) : 0;
    char *end = to != NULL ? strstr(begin, to) : NULL;
    if (end != NULL)
        *end = '\0';
    json_error_t error;
    json_t *json = json_loads(begin, 0, &error);
    if (json == NULL)
        fail_msg("%s at %d", error.text, error.position);
    return json;
}

/* Writes the report or the trace, and reads its JSON. */
static json_t *written(bool is_report)
{
    char folder[] = "/tmp/filch-meter-XXXXXX", path[64];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/it.html", folder);
    assert_ok(is_report ? filch_report_write(runtime, path) : filch_trace_write(runtime, path));
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    static char text[1 << 22];
    size_t bytes = fread(text, 1, sizeof text - 1, file);
    assert_true(bytes > 0 && bytes < sizeof text - 1);
    text[bytes] = '\0';
    assert_int_equal(fclose(file), 0);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(rmdir(folder), 0);
    return is_report ? parse("id=\"data\">\n", "</script>", text) : parse(NULL, NULL, text);
}

static double number(const json_t *of, const char *name)
{
    const json_t *value = json_object_get(of, name);
    assert_true(json_is_number(value));
    return json_number_value(value);
}

static void assert_why(const json_t *of, const char *part)
{
    const char *why = json_string_value(json_object_get(of, "why"));
    assert_non_null(why);
    if (strstr(why, part) == NULL)
        fail_msg("\"%s\" lacks \"%s\"", why, part);
}

/* Means lie between the extremes, which the fake's values are. */
static void assert_measured(const json_t *gpu)
{
    static const struct {
        const char *name;
        double least, most;
    } of[] = {{"watts", 100, 300}, {"megahertz", 1000, 2000}};
    for (size_t i = 0; i < 2; ++i) {
        const json_t *sum = json_object_get(gpu, of[i].name);
        double mean = number(sum, "mean"), least = number(sum, "least"), most = number(sum, "most");
        assert_true(least >= of[i].least && most <= of[i].most && least <= mean && mean <= most);
    }
    const json_t *held_down = json_object_get(gpu, "held_down");
    double by_power = number(held_down, "by_power");
    assert_true(by_power >= 0 && by_power <= 1 && number(held_down, "by_heat") == 0);
}

static void assert_rows(const json_t *gpu, double length)
{
    const json_t *rows = json_object_get(gpu, "rows");
    double last = -1;
    assert_true(json_array_size(rows) >= SAMPLES - 1);
    for (size_t i = 0; i < json_array_size(rows); ++i) {
        const json_t *row = json_array_get(rows, i);
        double at = json_number_value(json_array_get(row, 0));
        long long power = json_integer_value(json_array_get(row, 1));
        long long clock = json_integer_value(json_array_get(row, 2));
        assert_int_equal(json_array_size(row), 4);
        assert_true(at > last && at <= length);
        assert_true(power % 100000 == 0 && power >= 100000 && power <= 300000);
        assert_true(clock % 500 == 0 && clock >= 1000 && clock <= 2000);
        last = at;
    }
}

static void power_and_clocks_are_in_reports(void **state)
{
    (void)state;
    awaited = FAKE_REASONS;
    start_with("cuda:0,cuda:1,host:1", FL_NVML_WHOLE, "");
    run(await_samples);
    json_t *report = written(true), *trace = written(false);
    const json_t *job = json_array_get(json_object_get(report, "jobs"), 0);
    json_t *gpus = json_object_get(json_object_get(report, "power"), "gpus");
    json_t *of_trace =
        json_object_get(json_object_get(json_object_get(trace, "otherData"), "power"), "gpus");
    assert_int_equal(json_array_size(gpus), 2);
    assert_int_equal(json_array_size(of_trace), 2);
    double share = 0;
    for (size_t i = 0; i < 2; ++i) {
        const json_t *gpu = json_array_get(gpus, i), *devices = json_object_get(gpu, "devices");
        assert_int_equal(json_array_size(devices), 1);
        assert_int_equal(json_integer_value(json_array_get(devices, 0)), i);
        assert_measured(gpu);
        /* A sample is under way, at most, when the job ends. */
        assert_rows(gpu, number(job, "ns") + 1e9);
        share += number(json_object_get(gpu, "held_down"), "by_power") / 2;
        assert_measured(json_array_get(of_trace, i));
        assert_null(json_object_get(json_array_get(of_trace, i), "rows"));
    }
    assert_true(fabs(share - 1.0 / 3) < 0.1);
    json_decref(report);
    json_decref(trace);
    stop();
    assert_int_equal(count_of(FAKE_INIT), 0); /* unloaded */
}

static void slices_share_a_gpu(void **state)
{
    (void)state;
    awaited = FAKE_POWER;
    library = FL_NVML_OLDER;
    start_with("cuda:1/32+32,host:1", FL_NVML_OLDER, "");
    run(await_samples);
    json_t *report = written(true);
    json_t *gpus = json_object_get(json_object_get(report, "power"), "gpus");
    assert_int_equal(json_array_size(gpus), 1);
    assert_int_equal(json_array_size(json_object_get(json_array_get(gpus, 0), "devices")), 2);
    assert_measured(json_array_get(gpus, 0));
    json_decref(report);
    stop();
}

/* A call that fails is told, and the others count. */
static void failures_are_told(void **state)
{
    (void)state;
    static const struct {
        const char *fails, *member, *why;
        fake_nvml_call awaited;
    } cases[] = {
        {"power 3", "watts", "nvmlDeviceGetPowerUsage: Not Supported (3)", FAKE_REASONS},
        {"clock 15", "megahertz", "nvmlDeviceGetClockInfo: Unknown (15)", FAKE_REASONS},
        {"reasons 3", "held_down", "nvmlDeviceGetCurrentClocksEventReasons: Not Supported",
         FAKE_CLOCK},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        awaited = cases[i].awaited;
        start_with("cuda:0,cuda:1,host:1", FL_NVML_WHOLE, cases[i].fails);
        run(await_samples);
        json_t *report = written(true);
        json_t *gpus = json_object_get(json_object_get(report, "power"), "gpus");
        for (size_t k = 0; k < 2; ++k) {
            json_t *gpu = json_array_get(gpus, k);
            assert_why(json_object_get(gpu, cases[i].member), cases[i].why);
            assert_true(json_array_size(json_object_get(gpu, "rows")) >= SAMPLES - 1);
        }
        json_decref(report);
        stop();
    }
}

static void a_gpu_not_found_leaves_the_other(void **state)
{
    (void)state;
    awaited = FAKE_REASONS;
    start_with("cuda:0,cuda:1,host:1", FL_NVML_WHOLE, "handle 6");
    run(await_samples);
    json_t *report = written(true);
    json_t *gpus = json_object_get(json_object_get(report, "power"), "gpus");
    assert_measured(json_array_get(gpus, 0));
    assert_why(json_array_get(gpus, 1), "nvmlDeviceGetHandleByPciBusId_v2: Not Found (6)");
    json_decref(report);
    stop();
}

/* Waits until the meter has tried: why it cannot measure is then in every report. */
static void assert_not_measured(const char *devices, const char *nvml, const char *failing,
                                const char *why)
{
    start_with(devices, nvml, failing);
    run(do_nothing);
    for (bool is_told = false; !is_told;) {
        json_t *report = written(true);
        const json_t *power = json_object_get(report, "power");
        is_told = json_object_get(power, "gpus") == NULL;
        if (is_told)
            assert_why(power, why);
        json_decref(report);
    }
    json_t *trace = written(false);
    assert_why(json_object_get(json_object_get(trace, "otherData"), "power"), why);
    json_decref(trace);
    stop();
    assert_int_equal(count_of(FAKE_INIT), 0);
}

static void what_cannot_be_measured_is_told(void **state)
{
    (void)state;
    assert_not_measured("cuda:0,host:1", "/nowhere/libnvidia-ml.so", "",
                        "/nowhere/libnvidia-ml.so");
    assert_not_measured("cuda:0,host:1", "off", "", "FILCH_NVML is off");
    assert_not_measured("cuda:0,host:1", FL_NVML_LACKING, "", "has no nvmlDeviceGetPowerUsage");
    assert_not_measured("cuda:0,host:1", FL_NVML_WHOLE, "init 9", "nvmlInit_v2: Driver (9)");
}

/* A job that ends before a sample leaves none; a failed end of NVML harms nobody. */
static void short_jobs_have_no_samples(void **state)
{
    (void)state;
    start_with("cuda:0,host:1", FL_NVML_WHOLE, "shutdown 9");
    json_t *report = written(true);
    const json_t *gpu =
        json_array_get(json_object_get(json_object_get(report, "power"), "gpus"), 0);
    assert_why(json_object_get(gpu, "watts"), "no job was long enough");
    assert_why(json_object_get(gpu, "megahertz"), "no job was long enough");
    assert_why(json_object_get(gpu, "held_down"), "no job was long enough");
    json_decref(report);
    stop();
}

static void cores_alone_load_nothing(void **state)
{
    (void)state;
    start_with("host:1", FL_NVML_WHOLE, "");
    run(do_nothing);
    json_t *report = written(true);
    assert_null(json_object_get(report, "power"));
    assert_int_equal(count_of(FAKE_INIT), 0);
    json_decref(report);
    stop();
}

/* The thread ends with the trace, goes on with the next, and its samples add up. */
static void a_trace_that_stops_ends_the_thread(void **state)
{
    (void)state;
    awaited = FAKE_REASONS;
    start_with("cuda:0,cuda:1,host:1", FL_NVML_WHOLE, "");
    for (int i = 0; i < 3; ++i) {
        run(await_samples);
        assert_ok(filch_trace_stop(runtime));
        while (count_of(FAKE_INIT) != 0) { /* until it is unloaded */
            const struct timespec nap = {0, 100000};
            (void)nanosleep(&nap, NULL);
        }
        assert_ok(filch_trace_start(runtime));
        assert_ok(filch_trace_stop(runtime));
        assert_ok(filch_trace_start(runtime));
    }
    json_t *report = written(true);
    const json_t *gpu =
        json_array_get(json_object_get(json_object_get(report, "power"), "gpus"), 0);
    assert_measured(gpu);
    assert_true(json_array_size(json_object_get(gpu, "rows")) >= 3 * (SAMPLES - 1));
    json_decref(report);
    stop();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(power_and_clocks_are_in_reports),
        cmocka_unit_test(slices_share_a_gpu),
        cmocka_unit_test(failures_are_told),
        cmocka_unit_test(a_gpu_not_found_leaves_the_other),
        cmocka_unit_test(what_cannot_be_measured_is_told),
        cmocka_unit_test(short_jobs_have_no_samples),
        cmocka_unit_test(cores_alone_load_nothing),
        cmocka_unit_test(a_trace_that_stops_ends_the_thread),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
