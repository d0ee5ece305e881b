/* SPDX-License-Identifier: Apache-2.0 */
/* Every workload in a session: runs, checks, fails with the right words. */
#define _GNU_SOURCE
#include "measure/session.h"

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
                     bench_policy policy)
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
                     bench_policy policy)
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

static void check_workload(const char *name, size_t n, size_t tile, bench_policy policy)
{
    check_in(BENCH_DOUBLE, name, n, tile, policy);
}

static void test_all_are_right(void **state)
{
    (void)state;
    for (int p = BENCH_POLICY_STEAL; p <= BENCH_POLICY_STATIC; p++) {
        bench_policy policy = (bench_policy)p;
        check_workload("cholesky", 130, 32, policy);
        check_workload("cholesky", 1, 1, policy);
        check_workload("gemm", 70, 32, policy);
        check_workload("gemm", 1, 1, policy);
        check_in(BENCH_SINGLE, "cholesky", 130, 32, policy);
        check_in(BENCH_SINGLE, "cholesky", 1, 1, policy);
        check_in(BENCH_SINGLE, "gemm", 70, 32, policy);
        check_in(BENCH_SINGLE, "gemm", 1, 1, policy);
        check_workload("lu", 130, 32, policy);
        check_workload("lu", 1, 1, policy);
        check_workload("qr", 130, 32, policy);
        check_workload("qr", 1, 1, policy);
        check_workload("solve", 130, 32, policy);
        check_workload("solve", 1, 1, policy);
        check_workload("syrk", 130, 32, policy);
        check_workload("syrk", 1, 1, policy);
        check_workload("trsm", 130, 32, policy);
        check_workload("trsm", 1, 1, policy);
        check_workload("potrs", 130, 32, policy);
        check_workload("potrs", 1, 1, policy);
        check_workload("getrs", 130, 32, policy);
        check_workload("getrs", 1, 1, policy);
        check_in(BENCH_SINGLE, "lu", 130, 48, policy);
        check_in(BENCH_SINGLE, "qr", 130, 48, policy);
        check_in(BENCH_SINGLE, "syrk", 130, 48, policy);
        check_in(BENCH_SINGLE, "trsm", 130, 48, policy);
        check_in(BENCH_SINGLE, "potrs", 130, 48, policy);
        check_in(BENCH_SINGLE, "getrs", 130, 48, policy);
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

/* Graphs of short tasks: each pattern, built before or while it runs, under policies and beside
 * nothing else; no more moves than visits, and none on one device. */
static void test_narrow(void **state)
{
    (void)state;
    for (int k = 0; k < 2 * 3 * 3; k++) {
        static const bench_policy policies[] = {BENCH_POLICY_STEAL, BENCH_POLICY_STATIC,
                                                BENCH_POLICY_CENTRAL};
        bed b;
        filch_error error = FILCH_ERROR_INIT;
        double residual = NAN;
        const bench_options options = {.pattern = (bench_pattern)(1 + k % 3),
                                       .width = 5,
                                       .steps = 30,
                                       .task_us = 0.1,
                                       .open = k % 2 == 1};
        open_bed(&b, "narrow", options, k == 0 ? "host:1" : "host:2", policies[k / 6]);
        for (int run = 0; run < 2; run++)
            if (run_checked(&b, &residual, &error) != FILCH_OK)
                fail_msg("%d: %s", k, error.text);
        assert_int_equal(b.session.info.done, 5 * 30);
        assert_true(b.session.moves.visits == 5 * 29);
        assert_true(b.session.moves.moves <= b.session.moves.visits);
        assert_true(k != 0 || b.session.moves.moves == 0);
        close_bed(&b);
    }
}

static void check_heat(size_t n, size_t strips, size_t steps, size_t steps_a_graph,
                       const char *devices, bench_policy policy)
{
    bed b;
    filch_error error = FILCH_ERROR_INIT;
    double residual = NAN;
    open_bed(
        &b, "heat",
        (bench_options){.n = n, .strips = strips, .steps = steps, .steps_a_graph = steps_a_graph},
        devices, policy);
    for (int run = 0; run < 2; run++)
        if (run_checked(&b, &residual, &error) != FILCH_OK)
            fail_msg("heat: %s", error.text);
    assert_int_equal(b.session.info.done, strips * steps);
    assert_true(b.session.moves.visits == (double)(strips * (steps - 1)));
    assert_true(b.session.moves.moves <= b.session.moves.visits);
    assert_true(b.session.devices > 1 || b.session.moves.moves == 0);
    close_bed(&b);
}

/* Graphs of an odd and of an even number of steps, strips of unlike widths, of one column, and all.
 */
static void test_heat(void **state)
{
    (void)state;
    for (int p = BENCH_POLICY_STEAL; p <= BENCH_POLICY_STATIC; p++) {
        check_heat(30, 7, 12, 1, "host:2", (bench_policy)p);
        check_heat(30, 4, 12, 3, "host:2", (bench_policy)p);
        check_heat(30, 4, 12, 4, "host:2", (bench_policy)p);
        check_heat(9, 9, 5, 5, "host:2", (bench_policy)p);
    }
    check_heat(30, 1, 7, 7, "host:2", BENCH_POLICY_STEAL);
    check_heat(3, 2, 6, 2, "host:1", BENCH_POLICY_STEAL);
}

/* As many blocks as asked for, or some a device; graphs of one iteration and of several. */
static void test_cg(void **state)
{
    (void)state;
    static const size_t cases[][3] = {{4, 10, 1}, {4, 12, 4}, {1, 6, 2}, {0, 6, 3}, {12, 6, 6}};
    for (size_t k = 0; k < 2 * sizeof cases / sizeof *cases; k++) {
        const size_t *c = cases[k / 2];
        size_t blocks = c[0] ? c[0] : 6;
        bed b;
        filch_error error = FILCH_ERROR_INIT;
        double residual = NAN;
        open_bed(&b, "cg",
                 (bench_options){.n = 12, .strips = c[0], .steps = c[1], .steps_a_graph = c[2]},
                 "host:2", k % 2 ? BENCH_POLICY_STATIC : BENCH_POLICY_STEAL);
        for (int run = 0; run < 2; run++)
            if (run_checked(&b, &residual, &error) != FILCH_OK)
                fail_msg("cg: %s", error.text);
        assert_true(residual > 0 && residual < 0.1);
        assert_int_equal(b.session.info.done, c[1] * (3 * blocks + 2));
        assert_true(b.session.moves.visits == (double)(blocks * (3 * c[1] - 1)));
        assert_true(b.session.moves.moves <= b.session.moves.visits);
        close_bed(&b);
    }
}

/* A device that does each of its parts several times makes the same of them. */
static void test_slowed(void **state)
{
    (void)state;
    static const char *const names[] = {"heat", "cg", "narrow"};
    for (size_t k = 0; k < 3; k++) {
        const bench_workload *w = bench_workload_find(names[k]);
        const bench_options options = {.n = k < 2 ? 20 : 0, .steps = 20, .devices = "host:1"};
        const bench_session_config config = {.devices = "host:1",
                                             .slow = {.device = 0, .factor = 3}};
        filch_error error = FILCH_ERROR_INIT;
        bench_session session;
        void *problem;
        double seconds, residual;
        assert_int_equal(w->setup(&options, &error, &problem), FILCH_OK);
        assert_int_equal(bench_session_open(&session, w, problem, &config, &error), FILCH_OK);
        assert_int_equal(bench_session_run(&session, &seconds, &error), FILCH_OK);
        assert_int_equal(bench_slow_times(0), 3);
        if (w->check(problem, &residual, &error) != FILCH_OK)
            fail_msg("%s: %s", names[k], error.text);
        bench_session_close(&session);
        w->teardown(problem);
    }
    bench_slow_begin((bench_slow){0});
}

/* The checks see what they are for. */
static void test_wrong_results_are_seen(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        size_t n;
        bench_precision precision;
    } cases[] = {{"cholesky", 96, BENCH_DOUBLE}, {"gemm", 64, BENCH_DOUBLE},
                 {"cholesky", 96, BENCH_SINGLE}, {"gemm", 64, BENCH_SINGLE},
                 {"lu", 64, BENCH_DOUBLE},       {"qr", 64, BENCH_DOUBLE},
                 {"lu", 64, BENCH_SINGLE},       {"qr", 64, BENCH_SINGLE},
                 {"syrk", 64, BENCH_DOUBLE},     {"trsm", 64, BENCH_DOUBLE},
                 {"syrk", 64, BENCH_SINGLE},     {"trsm", 64, BENCH_SINGLE},
                 {"potrs", 64, BENCH_DOUBLE},    {"getrs", 64, BENCH_DOUBLE},
                 {"potrs", 64, BENCH_SINGLE},    {"getrs", 64, BENCH_SINGLE},
                 {"solve", 64, BENCH_DOUBLE},    {"mandelbrot", 16, BENCH_DOUBLE},
                 {"nbody", 40, BENCH_DOUBLE},    {"nbody", 40, BENCH_SINGLE},
                 {"jacobi", 40, BENCH_DOUBLE},   {"jacobi", 40, BENCH_SINGLE},
                 {"heat", 40, BENCH_DOUBLE}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        bed b;
        filch_error error = FILCH_ERROR_INIT;
        double residual = 0;
        double seconds;
        open_bed(&b, cases[k].name,
                 (bench_options){.n = cases[k].n, .precision = cases[k].precision}, "host:1",
                 BENCH_POLICY_STEAL);
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
    open_bed(&b, "wavefront", (bench_options){.n = 8}, "host:1", BENCH_POLICY_STEAL);
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
                 "host:2", BENCH_POLICY_STEAL);
        for (int k = 0; k < 2; k++) {
            assert_int_equal(bench_session_run(&b.session, &seconds, &error), FILCH_DATA);
            assert_non_null(strstr(error.text, "row 27"));
        }
        close_bed(&b);
        /* Whose factor is made beforehand. */
        void *made = NULL;
        const bench_options options = {.matrix = path, .precision = (bench_precision)p};
        assert_int_equal(bench_potrs.setup(&options, &error, &made), FILCH_DATA);
        assert_non_null(strstr(error.text, "row 27"));
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
        "host:2", BENCH_POLICY_STEAL);
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
    expect_refusal("lu", (bench_options){.n = 10, .tile = 11}, FILCH_INVALID_ARGUMENT,
                   "larger than the matrix");
    expect_refusal("solve", (bench_options){.n = 10, .tile = 11}, FILCH_INVALID_ARGUMENT,
                   "larger than the matrix");
    expect_refusal("solve", (bench_options){.n = 10, .precision = BENCH_SINGLE}, FILCH_UNSUPPORTED,
                   "double precision");
    expect_refusal("qr", (bench_options){.n = 900000, .tile = 1}, FILCH_TOO_LARGE, "too small");
    expect_refusal("syrk", (bench_options){.n = 10, .tile = 11}, FILCH_INVALID_ARGUMENT,
                   "larger than the matrix");
    expect_refusal("trsm", (bench_options){.n = 1000, .tile = 2}, FILCH_TOO_LARGE, "6.26e+07");
    expect_refusal("getrs", (bench_options){.n = 10, .matrix = "tests/data/lund_a.mtx"},
                   FILCH_UNSUPPORTED, "generates");
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
    expect_refusal("heat", (bench_options){.n = 2}, FILCH_INVALID_ARGUMENT, "no inside");
    expect_refusal("heat", (bench_options){.n = SIZE_MAX >> 1}, FILCH_TOO_LARGE, "above");
    expect_refusal("heat", (bench_options){.n = 9, .strips = 10}, FILCH_TOO_LARGE, "columns");
    expect_refusal("heat", (bench_options){.n = 9, .steps = 5, .steps_a_graph = 2},
                   FILCH_INVALID_ARGUMENT, "5 steps are no whole number of graphs of 2");
    expect_refusal("heat", (bench_options){.n = 9, .steps = 5000, .steps_a_graph = 1},
                   FILCH_TOO_LARGE, "more than 1024 graphs");
    expect_refusal("heat", (bench_options){.n = 9, .precision = BENCH_SINGLE}, FILCH_UNSUPPORTED,
                   "double precision");
    expect_refusal("cg", (bench_options){.n = 501}, FILCH_TOO_LARGE, "above");
    expect_refusal("cg", (bench_options){.n = 9, .strips = 10}, FILCH_TOO_LARGE, "9 planes");
    expect_refusal("cg", (bench_options){.n = 400, .strips = 241}, FILCH_TOO_LARGE, "or than 240");
    expect_refusal("cg", (bench_options){.steps_a_graph = 7}, FILCH_INVALID_ARGUMENT, "whole");
    expect_refusal("cg", (bench_options){.tile = 7}, FILCH_UNSUPPORTED, "--strips");
    expect_refusal("narrow", (bench_options){.n = 5}, FILCH_UNSUPPORTED, "--width, --steps");
    expect_refusal("narrow", (bench_options){.width = 10001}, FILCH_TOO_LARGE, "above");
    expect_refusal("narrow", (bench_options){.steps = SIZE_MAX >> 1}, FILCH_TOO_LARGE, "more than");
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
    open_bed(&b, "cholesky", (bench_options){.n = 400}, "host:2", BENCH_POLICY_STEAL);
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
    open_bed(&b, "jacobi", (bench_options){.n = 30}, "host:2", BENCH_POLICY_STEAL);
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
    open_bed(&b, "mandelbrot", (bench_options){.n = 512}, devices, BENCH_POLICY_STEAL);
    const bench_session_config config = {.devices = devices};
    filch_error error = FILCH_ERROR_INIT;
    for (uint32_t d = 0; d < 2; d++) {
        double speed = 0;
        assert_int_equal(bench_session_speed_alone(&b.session, &config, d, 0, &speed, &error),
                         FILCH_OK);
        double expected = d == 0 ? 1e6 : 3e6;
        assert_true(fabs(speed - expected) < 1e-6 * expected);
    }
    assert_int_equal(remove(path), 0);
    close_bed(&b);
}

/* A slow device is measured on about as much as it does in a run of all: its rate is that of the
 * whole problem, in a part of the time. */
static void test_part_alone(void **state)
{
    (void)state;
    char path[] = "/tmp/filch-devices-XXXXXX";
    char devices[64];
    int descriptor = mkstemp(path);
    assert_true(descriptor >= 0);
    FILE *file = fdopen(descriptor, "w");
    assert_non_null(file);
    fputs("{\"devices\": [{\"speed\": 9e9}, {\"speed\": 1e9}]}", file);
    assert_int_equal(fclose(file), 0);
    snprintf(devices, sizeof devices, "sim:%s", path);
    bed b;
    bench_session alone;
    bench_problem problem;
    filch_error error = FILCH_ERROR_INIT;
    const bench_session_config config = {.devices = devices};
    double all_s, part_s, whole_s, speed, few;
    open_bed(&b, "gemm", (bench_options){.n = 2048, .tile = 64}, devices, BENCH_POLICY_STEAL);
    b.workload->describe(b.state, &problem);
    assert_int_equal(bench_session_run(&b.session, &all_s, &error), FILCH_OK);
    assert_int_equal(bench_session_open_alone(&b.session, &config, 1, &alone, &error), FILCH_OK);
    assert_int_equal(bench_session_run_part(&alone, all_s, &part_s, &error), FILCH_OK);
    assert_true(part_s >= all_s && part_s < 1.1 * all_s);
    assert_true(alone.stats[1].tiles >= BENCH_PART_TILES && alone.stats[1].tiles < 1024 / 8);
    assert_int_equal(alone.stats[0].tiles, 0);
    /* It may be run again, whole. */
    assert_int_equal(bench_session_run_part(&alone, 0, &whole_s, &error), FILCH_OK);
    assert_int_equal(alone.stats[1].tiles, 1024);
    assert_true(whole_s > 9 * part_s);
    /* Too few tiles: it goes on, but not for ever. */
    few = all_s / 50;
    assert_int_equal(bench_session_run_part(&alone, few, &part_s, &error), FILCH_OK);
    assert_true(alone.stats[1].tiles < BENCH_PART_TILES);
    assert_true(part_s >= BENCH_PART_LIMITS * few && part_s < all_s / 5);
    bench_session_close(&alone);
    assert_int_equal(bench_session_speed_alone(&b.session, &config, 1, all_s, &speed, &error),
                     FILCH_OK);
    assert_true(fabs(speed - problem.work / whole_s) < 0.01 * speed);
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
    open_bed(&b, "mandelbrot", (bench_options){.n = 32}, "host:2", BENCH_POLICY_STEAL);
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
        cmocka_unit_test(test_narrow),
        cmocka_unit_test(test_heat),
        cmocka_unit_test(test_cg),
        cmocka_unit_test(test_slowed),
        cmocka_unit_test(test_wrong_results_are_seen),
        cmocka_unit_test(test_tasks_that_did_not_run_are_seen),
        cmocka_unit_test(test_not_positive_definite),
        cmocka_unit_test(test_real_matrix_in_single),
        cmocka_unit_test(test_bad_sizes),
        cmocka_unit_test(test_bad_devices),
        cmocka_unit_test(test_another_tile),
        cmocka_unit_test(test_jobs_are_summed),
        cmocka_unit_test(test_speed_alone),
        cmocka_unit_test(test_part_alone),
        cmocka_unit_test(test_picture),
        cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
