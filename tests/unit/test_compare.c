/* SPDX-License-Identifier: Apache-2.0 */
/* The result document and its comparison: what json_out writes, compare reads. */
#define _GNU_SOURCE
#include "report/compare.h"
#include "report/json_out.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

typedef struct files {
    char old_path[32];
    char new_path[32];
} files;

static int make_files(void **state)
{
    static files f;
    char *paths[] = {f.old_path, f.new_path};
    for (size_t k = 0; k < 2; k++) {
        strcpy(paths[k], "/tmp/filch_result_XXXXXX");
        int fd = mkstemp(paths[k]);
        if (fd < 0)
            return -1;
        close(fd);
    }
    *state = &f;
    return 0;
}

static int remove_files(void **state)
{
    files *f = *state;
    unlink(f->old_path);
    unlink(f->new_path);
    return 0;
}

static void write_text(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

static void fill(bench_result *r, const double *seconds, size_t repeat, bool checked)
{
    assert_true(bench_result_init(r, 2, repeat, false));
    strcpy(r->workload, "gemm");
    strcpy(r->policy, "steal");
    strcpy(r->precision, "double");
    strcpy(r->work_unit, "flop");
    r->n = 512;
    r->tile = 64;
    r->work = 200;
    r->checked = checked;
    for (size_t d = 0; d < 2; d++) {
        snprintf(r->devices[d].name, sizeof r->devices[d].name, "host:%zu", d);
        strcpy(r->devices[d].backend, "host");
        r->devices[d].speed = d ? 30 : 10;
        r->devices[d].busy_s = d ? 3 : 1;
        r->devices[d].tiles = 40 + d;
    }
    memcpy(r->seconds, seconds, repeat * sizeof *seconds);
    assert_true(bench_result_derive(r));
}

static void write_result(const char *path, const double *seconds, size_t repeat, bool checked)
{
    bench_result r;
    filch_error error = FILCH_ERROR_INIT;
    fill(&r, seconds, repeat, checked);
    assert_int_equal(bench_json_write(path, &r, &error), FILCH_OK);
    bench_result_free(&r);
}

static void test_document(void **state)
{
    files *f = *state;
    bench_result r;
    filch_error error = FILCH_ERROR_INIT;
    assert_true(bench_result_init(&r, 0, 0, true));
    bench_result_free(&r);
    fill(&r, (const double[]){9, 10, 12}, 3, true);
    assert_float_equal(r.median_s, 10, 0);
    assert_float_equal(r.rate, 20, 1e-12);
    assert_float_equal(r.efficiency, 0.5, 1e-12); /* 200 / (10 * (10 + 30)) */
    assert_float_equal(r.imbalance, 1.5, 1e-12);  /* 3 / mean of 1 and 3 */
    assert_int_equal(bench_json_write(f->old_path, &r, &error), FILCH_OK);
    bench_result_free(&r);

    json_t *root = json_load_file(f->old_path, 0, NULL);
    assert_non_null(root);
    const char *keys[] = {"workload", "devices",    "seconds",   "median_s", "work",
                          "rate",     "efficiency", "imbalance", "residual", "checked"};
    for (size_t k = 0; k < sizeof keys / sizeof *keys; k++)
        assert_non_null(json_object_get(root, keys[k]));
    const char *device_keys[] = {"name",     "backend",    "score",     "speed",     "busy_s",
                                 "idle_s",   "transfer_s", "tiles",     "stolen_in", "stolen_out",
                                 "bytes_in", "bytes_out",  "bytes_peer"};
    json_t *device = json_array_get(json_object_get(root, "devices"), 1);
    for (size_t k = 0; k < sizeof device_keys / sizeof *device_keys; k++)
        assert_non_null(json_object_get(device, device_keys[k]));
    assert_int_equal(json_integer_value(json_object_get(device, "tiles")), 41);
    assert_int_equal(json_array_size(json_object_get(root, "seconds")), 3);
    assert_true(json_is_null(json_object_get(root, "residual")));
    assert_float_equal(json_number_value(json_object_get(root, "cpu_s")), 0, 0);
    assert_null(json_object_get(root, "versus"));
    assert_null(json_object_get(root, "startup")); /* of runs on GPUs alone */
    json_decref(root);
}

/* Each of several has its own figures; the first is also where one alone would be. */
static void test_contenders(void **state)
{
    files *f = *state;
    static const char *const names[] = {"one", "static", "tbb"};
    bench_result r;
    filch_error error = FILCH_ERROR_INIT;
    assert_true(bench_result_init(&r, 1, 1, 3));
    r.seconds[0] = 2;
    for (size_t v = 0; v < 3; v++) {
        strcpy(r.versus[v].name, names[v]);
        r.versus[v].seconds[0] = 3 + (double)v;
    }
    assert_true(bench_result_derive(&r));
    assert_int_equal(bench_json_write(f->old_path, &r, &error), FILCH_OK);
    json_t *root = json_load_file(f->old_path, 0, NULL);
    json_t *array = json_object_get(root, "contenders");
    assert_int_equal(json_array_size(array), 3);
    assert_true(json_equal(json_object_get(root, "versus"), json_array_get(array, 0)));
    for (size_t v = 0; v < 3; v++) {
        const json_t *one = json_array_get(array, v);
        assert_string_equal(json_string_value(json_object_get(one, "name")), names[v]);
        assert_float_equal(json_number_value(json_object_get(one, "ratio")), (3 + (double)v) / 2,
                           0);
    }
    json_decref(root);
    r.versus[2].seconds[0] = NAN;
    assert_false(bench_result_derive(&r));
    bench_result_free(&r);
}

static void test_versus(void **state)
{
    files *f = *state;
    bench_result r;
    filch_error error = FILCH_ERROR_INIT;
    assert_true(bench_result_init(&r, 1, 3, true));
    strcpy(r.versus[0].name, "tbb");
    for (size_t k = 0; k < 3; k++) {
        r.seconds[k] = 2;
        r.versus[0].seconds[k] = 5;
    }
    assert_true(bench_result_derive(&r));
    assert_float_equal(r.versus[0].ratio, 2.5, 1e-12);
    r.cpu_s = 7;
    r.versus[0].cpu_s = 11;
    r.startup = (bench_startup_result){true, 0.5, 0.25, 0.125};
    assert_int_equal(bench_json_write(f->old_path, &r, &error), FILCH_OK);
    json_t *root = json_load_file(f->old_path, 0, NULL);
    json_t *versus = json_object_get(root, "versus");
    assert_string_equal(json_string_value(json_object_get(versus, "name")), "tbb");
    assert_int_equal(json_array_size(json_object_get(versus, "seconds")), 3);
    assert_float_equal(json_number_value(json_object_get(versus, "median_s")), 5, 0);
    assert_float_equal(json_number_value(json_object_get(versus, "ratio")), 2.5, 1e-12);
    assert_float_equal(json_number_value(json_object_get(versus, "cpu_s")), 11, 0);
    assert_float_equal(json_number_value(json_object_get(root, "cpu_s")), 7, 0);
    assert_null(json_object_get(root, "contenders")); /* versus is all of them */
    json_t *startup = json_object_get(root, "startup");
    assert_float_equal(json_number_value(json_object_get(startup, "driver_s")), 0.5, 0);
    assert_float_equal(json_number_value(json_object_get(startup, "vendor_s")), 0.25, 0);
    assert_float_equal(json_number_value(json_object_get(startup, "rest_s")), 0.125, 0);
    json_decref(root);
    r.seconds[0] = NAN;
    assert_false(bench_result_derive(&r));
    bench_result_free(&r);

    assert_int_equal(bench_json_write("/nonexistent/x.json", &r, &error), FILCH_IO);
    assert_string_equal(error.label, "/nonexistent/x.json");
    assert_int_equal(bench_json_write("/dev/full", &r, &error), FILCH_IO);
}

static size_t compare_times(files *f, const double *before, const double *after, size_t repeat)
{
    size_t fallen = 99;
    filch_error error = FILCH_ERROR_INIT;
    write_result(f->old_path, before, repeat, true);
    write_result(f->new_path, after, repeat, true);
    if (bench_compare_files(f->old_path, f->new_path, NULL, &fallen, &error) != FILCH_OK)
        fail_msg("%s: %s", error.label, error.text);
    return fallen;
}

static void test_compare(void **state)
{
    files *f = *state;
    const double base[] = {1.00, 1.02, 0.98, 1.01, 0.99};
    /* MAD 0.01 each: the noise of both together is 0.0297. */
    assert_int_equal(compare_times(f, base, base, 5), 0);
    assert_int_equal(compare_times(f, base, (const double[]){1.02, 1.04, 1.00, 1.03, 1.01}, 5), 0);
    assert_int_equal(compare_times(f, base, (const double[]){1.04, 1.06, 1.02, 1.05, 1.03}, 5), 1);
    assert_int_equal(compare_times(f, base, (const double[]){0.5, 0.51, 0.49, 0.5, 0.5}, 5), 0);
    /* A single wild repeat is no fall. */
    assert_int_equal(compare_times(f, base, (const double[]){1.00, 1.02, 9.0, 1.01, 0.99}, 5), 0);
    /* Exact repeats, as of a simulation: any difference counts. */
    assert_int_equal(
        compare_times(f, (const double[]){1, 1, 1}, (const double[]){1.001, 1.001, 1.001}, 3), 1);
}

static void test_lost_check_is_a_fall(void **state)
{
    files *f = *state;
    size_t fallen = 0;
    filch_error error = FILCH_ERROR_INIT;
    const double seconds[] = {1, 1, 1};
    write_result(f->old_path, seconds, 3, true);
    write_result(f->new_path, seconds, 3, false);
    assert_int_equal(bench_compare_files(f->old_path, f->new_path, NULL, &fallen, &error),
                     FILCH_OK);
    assert_int_equal(fallen, 1);
    assert_int_equal(bench_compare_files(f->new_path, f->old_path, NULL, &fallen, &error),
                     FILCH_OK);
    assert_int_equal(fallen, 0);
}

static void expect_failure(files *f, const char *text, filch_status status, int64_t line,
                           const char *fragment)
{
    size_t fallen = 99;
    filch_error error = FILCH_ERROR_INIT;
    write_text(f->new_path, text);
    assert_int_equal(bench_compare_files(f->old_path, f->new_path, NULL, &fallen, &error), status);
    assert_string_equal(error.label, f->new_path);
    assert_int_equal(error.line, line);
    assert_int_equal(fallen, 99);
    if (!strstr(error.text, fragment))
        fail_msg("\"%s\" does not say \"%s\"", error.text, fragment);
}

#define RESULT(name) "{\"workload\":\"" name "\",\"devices\":[],\"seconds\":[1,1,1]}"

static void test_failures(void **state)
{
    files *f = *state;
    write_text(f->old_path, "[" RESULT("a") "," RESULT("b") "]");
    expect_failure(f, "{\n\n,}", FILCH_PARSE, 3, "");
    expect_failure(f, "[]", FILCH_PARSE, 0, "neither a result");
    expect_failure(f, "[1]", FILCH_PARSE, 0, "lacks one of the keys");
    expect_failure(f, "{\"workload\":\"a\",\"devices\":[]}", FILCH_PARSE, 0, "lacks one");
    expect_failure(f, "{\"workload\":\"a\",\"devices\":[],\"seconds\":[1,2]}", FILCH_DATA, 0,
                   "has 2 repeats");
    expect_failure(f, "{\"workload\":\"a\",\"devices\":[],\"seconds\":[1,2,null]}", FILCH_PARSE, 0,
                   "seconds[2]");
    expect_failure(f, "{\"workload\":\"a\",\"devices\":[],\"seconds\":[1,2,-1]}", FILCH_PARSE, 0,
                   "is not a time");
    expect_failure(f, "[" RESULT("a") "," RESULT("a") "]", FILCH_DATA, 0, "1 and 2 are both");
    /* A result that vanished does not pass; one that is new does. */
    expect_failure(f, RESULT("a"), FILCH_DATA, 0, "has no result 'b");
    size_t fallen = 99;
    filch_error error = FILCH_ERROR_INIT;
    assert_int_equal(bench_compare_files(f->new_path, f->old_path, NULL, &fallen, &error),
                     FILCH_OK);
    assert_int_equal(fallen, 0);
    assert_int_equal(bench_compare_files("/nonexistent", f->old_path, NULL, &fallen, &error),
                     FILCH_IO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_document),
        cmocka_unit_test(test_versus),
        cmocka_unit_test(test_contenders),
        cmocka_unit_test(test_compare),
        cmocka_unit_test(test_lost_check_is_a_fall),
        cmocka_unit_test(test_failures),
    };
    return cmocka_run_group_tests(tests, make_files, remove_files);
}
