/* SPDX-License-Identifier: Apache-2.0 */
/* Every workload in a session: runs, checks, fails with the right words. */
#define _GNU_SOURCE
#include "session.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

typedef struct bed {
    const bench_workload *workload;
    void *state;
    bench_session session;
} bed;

static void open_bed(bed *b, const char *name, bench_options options, const char *devices,
                     filch_policy policy)
{
    filch_error error = FILCH_ERROR_INIT;
    const bench_session_config config = {.devices = devices, .policy = policy};
    options.devices = devices;
    b->workload = bench_workload_find(name);
    assert_non_null(b->workload);
    if (b->workload->setup(&options, &error, &b->state) != FILCH_OK)
        fail_msg("%s: %s", name, error.text);
    if (bench_session_open(&b->session, b->workload, b->state, &config, &error) != FILCH_OK)
        fail_msg("%s: %s", name, error.text);
}

static void close_bed(bed *b)
{
    bench_session_close(&b->session);
    b->workload->teardown(b->state);
}

static filch_status run_checked(bed *b, double *residual, filch_error *error)
{
    const bench_workload *w = b->workload;
    double seconds = -1;
    bool rebuild = false;
    if (w->check_begin)
        assert_int_equal(w->check_begin(b->state, &rebuild, error), FILCH_OK);
    assert_false(rebuild); /* the very tasks that were measured are checked */
    filch_status status = bench_session_run(&b->session, &seconds, error);
    if (status == FILCH_OK) {
        assert_true(seconds >= 0);
        status = w->check(b->state, residual, error);
    }
    if (w->check_end)
        w->check_end(b->state);
    return status;
}

static void check_in(bench_precision precision, const char *name, size_t n, size_t tile,
                     filch_policy policy)
{
    bed b;
    filch_error error = FILCH_ERROR_INIT;
    bench_problem problem = {0};
    double residual = NAN;
    open_bed(&b, name, (bench_options){.n = n, .tile = tile, .precision = precision}, "host:2",
             policy);
    /* Twice: a problem is built once and run again and again. */
    for (int k = 0; k < 2; k++)
        if (run_checked(&b, &residual, &error) != FILCH_OK)
            fail_msg("%s: %s", name, error.text);
    b.workload->describe(b.state, &problem);
    assert_int_equal(problem.n, n);
    assert_true(problem.work > 0);
    /* A residual that says in what precision the bodies computed. */
    if (n > 1 && b.workload->peer && b.workload->tile_set)
        assert_true((residual > 1e-10) == (precision == BENCH_SINGLE));
    close_bed(&b);
}

static void check_workload(const char *name, size_t n, size_t tile, filch_policy policy)
{
    check_in(BENCH_DOUBLE, name, n, tile, policy);
}

static void test_all_are_right(void **state)
{
    (void)state;
    for (int p = FILCH_POLICY_STEAL; p <= FILCH_POLICY_STATIC; p++) {
        filch_policy policy = (filch_policy)p;
        check_workload("cholesky", 130, 32, policy);
        check_workload("cholesky", 1, 1, policy);
        check_workload("gemm", 70, 32, policy);
        check_workload("gemm", 1, 1, policy);
        check_in(BENCH_SINGLE, "cholesky", 130, 32, policy);
        check_in(BENCH_SINGLE, "cholesky", 1, 1, policy);
        check_in(BENCH_SINGLE, "gemm", 70, 32, policy);
        check_in(BENCH_SINGLE, "gemm", 1, 1, policy);
        check_workload("mandelbrot", 24, 0, policy);
        check_workload("nbody", 60, 0, policy);
        check_workload("nbody", 2, 0, policy);
        check_in(BENCH_SINGLE, "nbody", 60, 0, policy);
        check_workload("jacobi", 50, 7, policy);
        check_workload("jacobi", 3, 0, policy);
        check_in(BENCH_SINGLE, "jacobi", 50, 0, policy);
        check_workload("wavefront", 20, 0, policy);
        check_workload("wavefront", 1, 0, policy);
        check_workload("chain", 300, 0, policy);
        check_workload("empty", 300, 0, policy);
        check_workload("create", 300, 0, policy);
    }
}

/* The checks see what they are for. */
static void test_wrong_results_are_seen(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        size_t n;
        bench_precision precision;
    } cases[] = {{"cholesky", 96, BENCH_DOUBLE},   {"gemm", 64, BENCH_DOUBLE},
                 {"cholesky", 96, BENCH_SINGLE},   {"gemm", 64, BENCH_SINGLE},
                 {"mandelbrot", 16, BENCH_DOUBLE}, {"nbody", 40, BENCH_DOUBLE},
                 {"nbody", 40, BENCH_SINGLE},      {"jacobi", 40, BENCH_DOUBLE},
                 {"jacobi", 40, BENCH_SINGLE}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        bed b;
        filch_error error = FILCH_ERROR_INIT;
        double residual = 0;
        double seconds;
        open_bed(&b, cases[k].name,
                 (bench_options){.n = cases[k].n, .precision = cases[k].precision}, "host:1",
                 FILCH_POLICY_STEAL);
        assert_int_equal(b.workload->check(b.state, &residual, &error), FILCH_DATA);
        assert_int_equal(bench_session_run(&b.session, &seconds, &error), FILCH_OK);
        assert_int_equal(b.workload->check(b.state, &residual, &error), FILCH_OK);
        close_bed(&b);
    }
}

static void test_tasks_that_did_not_run_are_seen(void **state)
{
    (void)state;
    bed b;
    filch_error error = FILCH_ERROR_INIT;
    double residual = 0;
    open_bed(&b, "wavefront", (bench_options){.n = 8}, "host:1", FILCH_POLICY_STEAL);
    bool rebuild = true;
    assert_int_equal(b.workload->check_begin(b.state, &rebuild, &error), FILCH_OK);
    assert_false(rebuild);
    assert_int_equal(b.workload->check(b.state, &residual, &error), FILCH_DATA);
    b.workload->check_end(b.state);
    close_bed(&b);
}

/* The row is the one in the whole matrix, not in its tile. */
static void test_not_positive_definite(void **state)
{
    (void)state;
    char path[] = "/tmp/filch-matrix-XXXXXX";
    int descriptor = mkstemp(path);
    assert_true(descriptor >= 0);
    FILE *file = fdopen(descriptor, "w");
    assert_non_null(file);
    fprintf(file, "%%%%MatrixMarket matrix coordinate real symmetric\n40 40 40\n");
    for (int i = 1; i <= 40; i++)
        fprintf(file, "%d %d %s\n", i, i, i == 27 ? "-1" : "2");
    assert_int_equal(fclose(file), 0);
    for (int p = BENCH_DOUBLE; p <= BENCH_SINGLE; p++) {
        bed b;
        filch_error error = FILCH_ERROR_INIT;
        double seconds;
        open_bed(&b, "cholesky",
                 (bench_options){.matrix = path, .tile = 10, .precision = (bench_precision)p},
                 "host:2", FILCH_POLICY_STEAL);
        for (int k = 0; k < 2; k++) {
            assert_int_equal(bench_session_run(&b.session, &seconds, &error), FILCH_DATA);
            assert_non_null(strstr(error.text, "row 27"));
        }
        close_bed(&b);
    }
    assert_int_equal(remove(path), 0);
}

/* lund_a, whose elements spread over eight decades, is still positive definite in single. */
static void test_real_matrix_in_single(void **state)
{
    (void)state;
    bed b;
    filch_error error = FILCH_ERROR_INIT;
    double residual = NAN;
    open_bed(
        &b, "cholesky",
        (bench_options){.matrix = "tests/data/lund_a.mtx", .tile = 20, .precision = BENCH_SINGLE},
        "host:2", FILCH_POLICY_STEAL);
    if (run_checked(&b, &residual, &error) != FILCH_OK)
        fail_msg("%s", error.text);
    assert_true(residual > 1e-10 && residual < 6e-7);
    close_bed(&b);
}

static void expect_refusal(const char *name, bench_options options, filch_status status,
                           const char *fragment)
{
    filch_error error = FILCH_ERROR_INIT;
    void *untouched = &error;
    void *made = untouched;
    assert_int_equal(bench_workload_find(name)->setup(&options, &error, &made), status);
    assert_ptr_equal(made, untouched);
    if (!strstr(error.text, fragment))
        fail_msg("%s: %s", name, error.text);
}

static void test_bad_sizes(void **state)
{
    (void)state;
    expect_refusal("cholesky", (bench_options){.n = 10, .tile = 11}, FILCH_INVALID_ARGUMENT,
                   "larger than the matrix");
    expect_refusal("gemm", (bench_options){.n = 10, .tile = 11}, FILCH_INVALID_ARGUMENT,
                   "larger than the matrix");
    expect_refusal("cholesky", (bench_options){.n = 100000, .tile = 1}, FILCH_TOO_LARGE,
                   "too small");
    expect_refusal("cholesky", (bench_options){.n = 1000000}, FILCH_TOO_LARGE, "GB");
    expect_refusal("gemm", (bench_options){.n = SIZE_MAX >> 1}, FILCH_TOO_LARGE, "above");
    expect_refusal("wavefront", (bench_options){.n = SIZE_MAX >> 1}, FILCH_TOO_LARGE, "tasks");
    expect_refusal("mandelbrot", (bench_options){.n = SIZE_MAX >> 1}, FILCH_TOO_LARGE, "rows");
    expect_refusal("mandelbrot", (bench_options){.n = 10, .precision = BENCH_SINGLE},
                   FILCH_UNSUPPORTED, "double only");
    expect_refusal("nbody", (bench_options){.n = SIZE_MAX >> 1}, FILCH_TOO_LARGE, "bodies");
    expect_refusal("nbody", (bench_options){.n = 1}, FILCH_INVALID_ARGUMENT, "no other");
    expect_refusal("jacobi", (bench_options){.n = SIZE_MAX >> 1}, FILCH_TOO_LARGE, "above");
    expect_refusal("jacobi", (bench_options){.n = 2}, FILCH_INVALID_ARGUMENT, "no inside");
    expect_refusal("jacobi", (bench_options){.n = 9, .tile = 10}, FILCH_INVALID_ARGUMENT,
                   "columns");
    expect_refusal("cholesky", (bench_options){.matrix = "/nonexistent/matrix.mtx"}, FILCH_IO,
                   "cannot be opened");
}

static void test_bad_devices(void **state)
{
    (void)state;
    static const double scores[] = {1, 2, 3};
    static const struct {
        bench_session_config config;
        filch_status status;
    } cases[] = {
        {{.devices = "host:x"}, FILCH_PARSE},
        {{.devices = "sim:/nonexistent/devices.json"}, FILCH_IO},
        {{.devices = "host:2", .scores = scores, .score_count = 3}, FILCH_INVALID_ARGUMENT},
    };
    void *problem = NULL;
    filch_error error = FILCH_ERROR_INIT;
    assert_int_equal(bench_empty.setup(&(bench_options){.n = 10}, &error, &problem), FILCH_OK);
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        bench_session session;
        assert_int_equal(
            bench_session_open(&session, &bench_empty, problem, &cases[k].config, &error),
            cases[k].status);
        assert_true(error.text[0] != '\0');
    }
    bench_empty.teardown(problem);
}

static void test_another_tile(void **state)
{
    (void)state;
    bed b;
    filch_error error = FILCH_ERROR_INIT;
    bench_problem problem;
    double residual = NAN;
    size_t tiles[16];
    open_bed(&b, "cholesky", (bench_options){.n = 400}, "host:2", FILCH_POLICY_STEAL);
    size_t count = b.workload->tiles(b.state, tiles, 16);
    assert_true(count > 1);
    for (size_t k = 0; k < count; k++) {
        assert_true(tiles[k] <= 400);
        b.workload->tile_set(b.state, tiles[k]);
        assert_int_equal(bench_session_rebuild(&b.session, &error), FILCH_OK);
        assert_int_equal(run_checked(&b, &residual, &error), FILCH_OK);
        b.workload->describe(b.state, &problem);
        assert_int_equal(problem.tile, tiles[k]);
    }
    close_bed(&b);
}

/* The figures of a run are those of all its jobs. */
static void test_jobs_are_summed(void **state)
{
    (void)state;
    bed b;
    filch_error error = FILCH_ERROR_INIT;
    double seconds;
    open_bed(&b, "jacobi", (bench_options){.n = 30}, "host:2", FILCH_POLICY_STEAL);
    assert_int_equal(bench_session_run(&b.session, &seconds, &error), FILCH_OK);
    assert_int_equal(b.session.info.done, 30 * bench_jacobi.jobs(b.state));
    assert_int_equal(b.session.stats[0].items + b.session.stats[1].items, b.session.info.done);
    close_bed(&b);
}

/* A device alone does all the work, whichever it is. */
static void test_speed_alone(void **state)
{
    (void)state;
    char path[] = "/tmp/filch-devices-XXXXXX";
    char devices[64];
    int descriptor = mkstemp(path);
    assert_true(descriptor >= 0);
    FILE *file = fdopen(descriptor, "w");
    assert_non_null(file);
    fputs("{\"devices\": [{\"speed\": 1e6}, {\"speed\": 3e6, \"score\": 1}]}", file);
    assert_int_equal(fclose(file), 0);
    snprintf(devices, sizeof devices, "sim:%s", path);
    bed b;
    open_bed(&b, "mandelbrot", (bench_options){.n = 512}, devices, FILCH_POLICY_STEAL);
    const bench_session_config config = {.devices = devices};
    filch_error error = FILCH_ERROR_INIT;
    for (uint32_t d = 0; d < 2; d++) {
        double speed = 0;
        assert_int_equal(bench_session_speed_alone(&b.session, &config, d, &speed, &error),
                         FILCH_OK);
        double expected = d == 0 ? 1e6 : 3e6;
        assert_true(fabs(speed - expected) < 1e-6 * expected);
    }
    assert_int_equal(remove(path), 0);
    close_bed(&b);
}

static void test_picture(void **state)
{
    (void)state;
    char path[] = "/tmp/filch-picture-XXXXXX";
    int descriptor = mkstemp(path);
    assert_true(descriptor >= 0);
    bed b;
    filch_error error = FILCH_ERROR_INIT;
    double seconds;
    open_bed(&b, "mandelbrot", (bench_options){.n = 32}, "host:2", FILCH_POLICY_STEAL);
    assert_int_equal(bench_session_run(&b.session, &seconds, &error), FILCH_OK);
    assert_int_equal(b.workload->image(b.state, path, 2, &error), FILCH_OK);
    assert_int_equal(b.workload->image(b.state, "/nonexistent/picture.png", 2, &error), FILCH_IO);
    FILE *file = fopen(path, "rb");
    unsigned char start[4] = {0};
    assert_non_null(file);
    assert_int_equal(fread(start, 1, 4, file), 4);
    assert_memory_equal(start, "\x89PNG", 4);
    fclose(file);
    assert_int_equal(remove(path), 0);
    close_bed(&b);
}

static void test_names(void **state)
{
    (void)state;
    assert_null(bench_workload_find("nothing"));
    for (size_t k = 0; bench_workload_at(k); k++) {
        const bench_workload *w = bench_workload_at(k);
        assert_ptr_equal(bench_workload_find(w->name), w);
        assert_true((w->tiles == NULL) == (w->tile_set == NULL));
        assert_true((w->peer == NULL) == (w->agree == NULL));
        assert_true((w->check_begin == NULL) == (w->check_end == NULL));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_are_right),
        cmocka_unit_test(test_wrong_results_are_seen),
        cmocka_unit_test(test_tasks_that_did_not_run_are_seen),
        cmocka_unit_test(test_not_positive_definite),
        cmocka_unit_test(test_real_matrix_in_single),
        cmocka_unit_test(test_bad_sizes),
        cmocka_unit_test(test_bad_devices),
        cmocka_unit_test(test_another_tile),
        cmocka_unit_test(test_jobs_are_summed),
        cmocka_unit_test(test_speed_alone),
        cmocka_unit_test(test_picture),
        cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
