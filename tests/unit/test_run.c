/* SPDX-License-Identifier: Apache-2.0 */
/* The run and sim commands as a user types them. */
#define _GNU_SOURCE
#include "cli/cli.h"
#include "measure/run.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#define WORDS_MAX 32

/* Runs a command line with its output put away; returns its exit code. */
static int command(const char *line)
{
    char text[512];
    char *words[WORDS_MAX];
    int count = 0;
    assert_true(strlen(line) < sizeof text);
    strcpy(text, line);
    for (char *word = strtok(text, " "); word; word = strtok(NULL, " "))
        words[count++] = word;
    words[count] = NULL;
    fflush(stdout);
    int kept = dup(STDOUT_FILENO);
    assert_true(kept >= 0);
    assert_non_null(freopen("/dev/null", "w", stdout));
    int code =
        strcmp(words[0], "sim") == 0 ? bench_sim_main(count, words) : bench_run_main(count, words);
    fflush(stdout);
    assert_true(dup2(kept, STDOUT_FILENO) >= 0);
    close(kept);
    return code;
}

static char *temporary(char *path)
{
    int descriptor = mkstemp(path);
    assert_true(descriptor >= 0);
    close(descriptor);
    return path;
}

static void test_order(void **state)
{
    (void)state;
    size_t values[] = {1, 2, 3, 4, 5};
    double keys[] = {3, 1, 2, 1, 0};
    const size_t expected[] = {5, 2, 4, 3, 1};
    bench_order_by(values, keys, 5);
    assert_memory_equal(values, expected, sizeof expected);
    assert_true(keys[0] == 0 && keys[1] == 1 && keys[2] == 1 && keys[3] == 2 && keys[4] == 3);
    bench_order_by(values, keys, 0);
}

static void test_document(void **state)
{
    (void)state;
    char json[] = "/tmp/filch-json-XXXXXX";
    char trace[] = "/tmp/filch-trace-XXXXXX";
    char html[] = "/tmp/filch-html-XXXXXX";
    char line[512];
    snprintf(line, sizeof line,
             "run cholesky --n 200 --tile 50 --devices host:2 --repeat 3 --check --versus static "
             "--json %s --trace %s --report %s",
             temporary(json), temporary(trace), temporary(html));
    assert_int_equal(command(line), BENCH_EXIT_OK);
    json_error_t error;
    json_t *document = json_load_file(json, 0, &error);
    json_t *recorded = json_load_file(trace, 0, &error);
    assert_non_null(document);
    assert_non_null(recorded);
    const char *workload;
    const char *versus;
    int checked;
    json_int_t n, tile, tiles = 0;
    double work, residual, ratio, efficiency;
    assert_int_equal(json_unpack(document, "{s:s, s:b, s:I, s:I, s:F, s:F, s:F, s:{s:s, s:F}}",
                                 "workload", &workload, "checked", &checked, "n", &n, "tile", &tile,
                                 "work", &work, "residual", &residual, "efficiency", &efficiency,
                                 "versus", "name", &versus, "ratio", &ratio),
                     0);
    assert_string_equal(workload, "cholesky");
    assert_string_equal(versus, "static");
    assert_true(checked && n == 200 && tile == 50);
    assert_true(residual >= 0 && residual < 1e-14);
    assert_true(ratio > 0 && efficiency > 0);
    assert_int_equal(json_array_size(json_object_get(document, "seconds")), 3);
    json_t *devices = json_object_get(document, "devices");
    assert_int_equal(json_array_size(devices), 2);
    for (size_t d = 0; d < 2; d++) {
        json_t *device = json_array_get(devices, d);
        tiles += json_integer_value(json_object_get(device, "tiles"));
        assert_true(json_real_value(json_object_get(device, "speed")) > 0);
    }
    assert_int_equal(tiles, 3 * 20); /* three measured runs of 4 * 5 * 6 / 6 tasks */
    json_decref(document);
    json_decref(recorded);
    assert_int_equal(remove(json) | remove(trace) | remove(html), 0);
}

/* Devices that were not measured alone have no speed, and the run has no efficiency. */
static void test_no_speeds(void **state)
{
    (void)state;
    for (int k = 0; k < 2; k++) {
        char json[] = "/tmp/filch-json-XXXXXX";
        char line[512];
        snprintf(line, sizeof line, "run chain --n 20 --devices host:2 --repeat 2 --json %s%s",
                 temporary(json), k == 0 ? "" : " --no-speeds");
        assert_int_equal(command(line), BENCH_EXIT_OK);
        json_t *document = json_load_file(json, 0, NULL);
        const json_t *device = json_array_get(json_object_get(document, "devices"), 1);
        assert_int_equal(json_is_null(json_object_get(document, "efficiency")), k);
        assert_int_equal(json_is_null(json_object_get(device, "speed")), k);
        json_decref(document);
        assert_int_equal(remove(json), 0);
    }
}

/* Steps, moves and what tells one narrow graph from another are in the document. */
static void test_steps(void **state)
{
    (void)state;
    char json[] = "/tmp/filch-json-XXXXXX";
    char line[512];
    snprintf(line, sizeof line,
             "run narrow --pattern fft --width 4 --steps 20 --task-us 0.1 --devices host:2 "
             "--repeat 2 --check --versus one,central --slow 1:2@0 --json %s",
             temporary(json));
    assert_int_equal(command(line), BENCH_EXIT_OK);
    json_t *document = json_load_file(json, 0, NULL);
    const json_t *one = json_array_get(json_object_get(document, "contenders"), 0);
    const char *variant;
    json_int_t steps;
    double step_s, median_s, moves, of_one;
    assert_int_equal(json_unpack(document, "{s:s, s:I, s:F, s:F, s:F}", "variant", &variant,
                                 "steps", &steps, "step_s", &step_s, "median_s", &median_s, "moves",
                                 &moves),
                     0);
    assert_string_equal(variant, "fft, 20 steps, 0.1 us, closed");
    assert_int_equal(steps, 20);
    assert_true(step_s == median_s / 20);
    assert_true(moves >= 0 && moves <= 1);
    of_one = json_number_value(json_object_get(one, "moves"));
    assert_true(json_is_number(json_object_get(one, "moves")) && of_one == 0);
    json_decref(document);
    assert_int_equal(remove(json), 0);
}

static void test_single_precision(void **state)
{
    (void)state;
    static const char *const workloads[] = {"cholesky", "gemm"};
    for (size_t k = 0; k < 2; k++) {
        char json[] = "/tmp/filch-json-XXXXXX";
        char line[512];
        snprintf(line, sizeof line,
                 "run %s --n 200 --tile 50 --devices host:2 --repeat 2 --precision single --check "
                 "--versus openblas --json %s",
                 workloads[k], temporary(json));
        assert_int_equal(command(line), BENCH_EXIT_OK);
        json_error_t error;
        json_t *document = json_load_file(json, 0, &error);
        const char *precision;
        double residual, work;
        assert_non_null(document);
        assert_int_equal(json_unpack(document, "{s:s, s:F, s:F}", "precision", &precision,
                                     "residual", &residual, "work", &work),
                         0);
        assert_string_equal(precision, "single");
        assert_true(residual > 1e-10 && residual < 1e-5);
        assert_true(work > 2e6); /* as many operations as in double */
        json_decref(document);
        assert_int_equal(remove(json), 0);
    }
    assert_int_equal(command("sim gemm --devices sim:bench/data/sim/two.json --n 100 --tile 50 "
                             "--precision single --check --repeat 2"),
                     BENCH_EXIT_OK);
}

static void test_simulation_repeats(void **state)
{
    (void)state;
    assert_int_equal(
        command("sim mandelbrot --devices sim:bench/data/sim/two.json --n 2000 --repeat 3"),
        BENCH_EXIT_OK);
    assert_int_equal(command("sim cholesky --devices sim:bench/data/sim/two.json --n 200 --tile 50 "
                             "--check --repeat 2"),
                     BENCH_EXIT_OK);
    assert_int_equal(command("sim nbody --devices sim:bench/data/sim/two.json --n 200 --repeat 2"),
                     BENCH_EXIT_OK);
    assert_int_equal(command("sim jacobi --devices sim:bench/data/sim/two.json --n 60 --tile 4 "
                             "--check --repeat 2"),
                     BENCH_EXIT_OK);
    assert_int_equal(
        command("sim wavefront --devices sim:bench/data/sim/sixty-four.json --n 30 --check"),
        BENCH_EXIT_OK);
}

static void test_narrow_simulated(void **state)
{
    (void)state;
    assert_int_equal(
        command("sim narrow --devices sim:bench/data/sim/two.json --steps 20 --repeat 2"),
        BENCH_EXIT_OK);
    assert_int_equal(command("sim narrow --devices sim:bench/data/sim/two.json --steps 20 --check "
                             "--repeat 2 --open"),
                     BENCH_EXIT_OK);
}

static void test_usage(void **state)
{
    (void)state;
    assert_int_equal(command("run --help"), BENCH_EXIT_OK);
    assert_int_equal(command("run"), BENCH_EXIT_ERROR);
    assert_int_equal(command("run nothing"), BENCH_EXIT_ERROR);
    assert_int_equal(command("sim empty"), BENCH_EXIT_ERROR);
    assert_int_equal(command("sim empty --devices host:1"), BENCH_EXIT_ERROR);
    assert_int_equal(command("run gemm --n 32 --image /tmp/none.png"), BENCH_EXIT_ERROR);
    assert_int_equal(command("run gemm --n 32 --width 4"), BENCH_EXIT_ERROR);
    assert_int_equal(command("run gemm --n 32 --versus nobody"), BENCH_EXIT_ERROR);
    assert_int_equal(command("run gemm --n 32 --repeat 1 --json /nonexistent/file"),
                     BENCH_EXIT_ERROR);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_document),
        cmocka_unit_test(test_no_speeds),
        cmocka_unit_test(test_steps),
        cmocka_unit_test(test_single_precision),
        cmocka_unit_test(test_simulation_repeats),
        cmocka_unit_test(test_narrow_simulated),
        cmocka_unit_test(test_usage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
