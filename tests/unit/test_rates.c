/* SPDX-License-Identifier: Apache-2.0 */
/* `filch-bench devices --speeds`: on simulated devices, of which all is known, and on cores. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"

static char sim[] = "/tmp/filch-rates-XXXXXX", speeds[] = "/tmp/filch-rates-XXXXXX";

static void make_file(char *path, const char *text)
{
    int file = mkstemp(path);
    ssize_t size = (ssize_t)strlen(text);

    assert_true(file >= 0);
    assert_true(write(file, text, (size_t)size) == size);
    assert_int_equal(close(file), 0);
}

/* The document's "speeds". */
static json_t *run(const char *devices)
{
    char path[] = "/tmp/filch-rates-XXXXXX", option[sizeof path + 8], spec[64];
    json_error_t error;

    make_file(path, "");
    (void)snprintf(option, sizeof option, "--json=%s", path);
    (void)snprintf(spec, sizeof spec, "%s", devices);
    char name[] = "devices", wish[] = "--speeds", which[] = "--devices";
    char *words[] = {name, option, wish, which, spec, NULL};
    assert_int_equal(bench_devices_main(5, words), BENCH_EXIT_OK);
    json_t *document = json_load_file(path, 0, &error);
    assert_non_null(document);
    (void)unlink(path);
    json_t *list = json_incref(json_object_get(document, "speeds"));
    json_decref(document);
    assert_non_null(list);
    return list;
}

static json_t *find(const json_t *list, const char *device, const char *codelet)
{
    for (size_t i = 0; i < json_array_size(list); i++) {
        json_t *item = json_array_get(list, i);

        if (strcmp(json_string_value(json_object_get(item, "device")), device) == 0 &&
            strcmp(json_string_value(json_object_get(item, "codelet")), codelet) == 0)
            return item;
    }
    fail_msg("no %s on %s", codelet, device);
    return NULL;
}

static double number(const json_t *item, const char *key)
{
    return json_number_value(json_object_get(item, key));
}

static void simulated_devices(void **state)
{
    static const struct {
        const char *name;
        double speed, overhead;
    } devices[] = {{"fast", 4e9, 5e3}, {"slow", 1e9, 20e3}};
    static const char *const products[] = {"gemm_f64", "gemm_f32"};
    char spec[64];

    (void)state;
    make_file(sim, "{\"devices\": [{\"name\": \"fast\", \"speed\": 4e9, \"overhead_us\": 5},"
                   " {\"name\": \"slow\", \"speed\": 1e9, \"overhead_us\": 20}]}");
    make_file(speeds, "");
    assert_int_equal(setenv("FILCH_SPEEDS", speeds, 1), 0);
    (void)snprintf(spec, sizeof spec, "sim:%s", sim);
    for (int round = 0; round < 2; round++) {
        json_t *list = run(spec);

        assert_int_equal(json_array_size(list), 8);
        for (size_t k = 0; k < 4; k++) {
            json_t *item = find(list, devices[k / 2].name, products[k % 2]);

            assert_true(fabs(number(item, "units_per_s") / devices[k / 2].speed - 1) < 1e-3);
            assert_true(fabs(number(item, "fixed_ns") / devices[k / 2].overhead - 1) < 1e-2);
            assert_true(number(item, "spread") < 1e-2);
            assert_true(number(item, "samples") >= 9);
            assert_true(number(item, "timed") >= number(item, "samples"));
            assert_string_equal(json_string_value(json_object_get(item, "source")), "measured");
            /* The second time an earlier run is known, and what it said. */
            double earlier = number(item, "prior_units_per_s");
            assert_true(round == 0 ? earlier == 0
                                   : fabs(earlier / devices[k / 2].speed - 1) < 1e-3);
        }
        json_decref(list);
    }
    assert_int_equal(unsetenv("FILCH_SPEEDS"), 0);
    (void)unlink(sim);
    (void)unlink(speeds);
}

static void cores(void **state)
{
    static const char *const codelets[] = {"gemm_f64", "gemm_f32", "axpy_f64", "mandelbrot"};

    (void)state;
    json_t *list = run("host:2");

    for (size_t k = 0; k < 8; k++) {
        json_t *item = find(list, k < 4 ? "host:0" : "host:1", codelets[k % 4]);

        assert_true(number(item, "units_per_s") > 0);
        assert_true(number(item, "fixed_ns") >= 0);
        assert_true(number(item, "samples") >= 1);
        assert_string_equal(json_string_value(json_object_get(item, "source")), "measured");
    }
    json_decref(list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(simulated_devices),
        cmocka_unit_test(cores),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
