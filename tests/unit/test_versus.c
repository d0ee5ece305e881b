/* SPDX-License-Identifier: Apache-2.0 */
/* Peers and the static policy beside a session. */
#include "measure/versus.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void check_with(bench_options options, const char *workload, const char *name, bool is_cold)
{
    const bench_workload *w = bench_workload_find(workload);
    const bench_session_config config = {.devices = "host:2"};
    filch_error error = FILCH_ERROR_INIT;
    bench_session session;
    bench_versus versus;
    void *problem;
    double seconds = -1;
    assert_int_equal(w->setup(&options, &error, &problem), FILCH_OK);
    assert_int_equal(bench_session_open(&session, w, problem, &config, &error), FILCH_OK);
    assert_int_equal(bench_session_run(&session, &seconds, &error), FILCH_OK);
    if (bench_versus_open(&versus, name, &session, &config, is_cold, &error) != FILCH_OK)
        fail_msg("%s of %s: %s", workload, name, error.text);
    seconds = -1;
    assert_int_equal(bench_versus_run(&versus, &seconds, &error), FILCH_OK);
    assert_true(seconds >= 0);
    if (bench_versus_agrees(&versus, &error) != FILCH_OK)
        fail_msg("%s of %s: %s", workload, name, error.text);
    bench_versus_close(&versus);
    bench_session_close(&session);
    w->teardown(problem);
}

static void check_in(bench_precision precision, const char *workload, const char *name, size_t n,
                     bool is_cold)
{
    check_with((bench_options){.n = n, .devices = "host:2", .precision = precision}, workload, name,
               is_cold);
}

static void check_narrow(bench_peer_kind kind)
{
    for (int pattern = BENCH_PATTERN_STENCIL; pattern <= BENCH_PATTERN_ALL_TO_ALL; pattern++) {
        const bench_options options = {.pattern = (bench_pattern)pattern,
                                       .width = 7,
                                       .steps = 20,
                                       .task_us = 0.1,
                                       .open = kind == BENCH_PEER_NARROW_OPEN,
                                       .devices = "host:2"};
        check_with(options, "narrow", "one", false);
        for (size_t p = 0; bench_peer_at(p); p++)
            if (bench_peer_at(p)->supports(kind))
                check_with(options, "narrow", bench_peer_at(p)->name, false);
    }
}

static void check_versus(const char *workload, const char *name, size_t n, bool is_cold)
{
    check_in(BENCH_DOUBLE, workload, name, n, is_cold);
}

static void test_all_agree(void **state)
{
    (void)state;
    static const struct {
        const char *workload;
        bench_peer_kind kind;
        size_t n;
    } works[] = {
        {"cholesky", BENCH_PEER_CHOLESKY, 100},
        {"gemm", BENCH_PEER_GEMM, 100},
        {"lu", BENCH_PEER_LU, 90},
        {"qr", BENCH_PEER_QR, 90},
        {"solve", BENCH_PEER_SOLVE, 90},
        {"syrk", BENCH_PEER_SYRK, 90},
        {"trsm", BENCH_PEER_TRSM, 90},
        {"potrs", BENCH_PEER_POTRS, 90},
        {"getrs", BENCH_PEER_GETRS, 90},
        {"wavefront", BENCH_PEER_WAVEFRONT, 12},
        {"chain", BENCH_PEER_CHAIN, 100},
        {"heat", BENCH_PEER_HEAT, 40},
        {"cg", BENCH_PEER_CG, 10},
        {"empty", BENCH_PEER_RERUN, 100},
        {"create", BENCH_PEER_EMPTY, 100},
    };
    for (size_t k = 0; k < sizeof works / sizeof *works; k++) {
        check_versus(works[k].workload, "static", works[k].n, k % 2 == 0);
        for (size_t p = 0; bench_peer_at(p); p++)
            if (bench_peer_at(p)->supports(works[k].kind) && !bench_peer_at(p)->needs_gpu)
                check_versus(works[k].workload, bench_peer_at(p)->name, works[k].n, false);
    }
    check_narrow(BENCH_PEER_NARROW);
    check_narrow(BENCH_PEER_NARROW_OPEN);
    check_versus("mandelbrot", "static", 16, true);
    check_versus("mandelbrot", "central", 16, true);
    check_versus("mandelbrot", "spin", 16, false);
    check_versus("mandelbrot", "one", 16, false);
}

/* Who has no single precision, or no GPU, refuses, by name, before it has started. */
static void test_single_precision(void **state)
{
    (void)state;
    static const char *const names[] = {"cholesky", "gemm"};
    const bench_options options = {.n = 100, .devices = "host:2", .precision = BENCH_SINGLE};
    const bench_session_config config = {.devices = "host:2"};
    for (size_t k = 0; k < 2; k++) {
        const bench_workload *w = bench_workload_find(names[k]);
        filch_error error = FILCH_ERROR_INIT;
        bench_session session;
        bench_versus versus;
        void *problem;
        check_in(BENCH_SINGLE, names[k], "static", 100, false);
        check_in(BENCH_SINGLE, names[k], "openblas", 100, false);
        check_in(BENCH_SINGLE, k == 0 ? "lu" : "qr", "openblas", 100, false);
        check_in(BENCH_SINGLE, k == 0 ? "syrk" : "trsm", "openblas", 100, false);
        check_in(BENCH_SINGLE, k == 0 ? "potrs" : "getrs", "openblas", 100, false);
        assert_int_equal(w->setup(&options, &error, &problem), FILCH_OK);
        assert_int_equal(bench_session_open(&session, w, problem, &config, &error), FILCH_OK);
        for (size_t p = 0; bench_peer_at(p); p++) {
            const char *name = bench_peer_at(p)->name;
            if (strcmp(name, "openblas") == 0)
                continue;
            assert_int_equal(bench_versus_open(&versus, name, &session, &config, false, &error),
                             FILCH_UNSUPPORTED);
            assert_non_null(strstr(error.text, name));
            assert_non_null(strstr(error.text, bench_peer_at(p)->needs_gpu
                                                   ? "none among the devices"
                                                   : "double precision only"));
            bench_versus_close(&versus);
        }
        bench_session_close(&session);
        w->teardown(problem);
    }
}

/* Opens name beside that configuration, and expects to be refused. */
static void expect_refusal(const char *workload, const char *name, bench_session_config config,
                           const char *fragment)
{
    const bench_workload *w = bench_workload_find(workload);
    const bench_options options = {.n = 20, .devices = config.devices};
    filch_error error = FILCH_ERROR_INIT;
    bench_session session;
    bench_versus versus;
    void *problem;
    assert_int_equal(w->setup(&options, &error, &problem), FILCH_OK);
    assert_int_equal(bench_session_open(&session, w, problem, &config, &error), FILCH_OK);
    assert_int_equal(bench_versus_open(&versus, name, &session, &config, false, &error),
                     FILCH_UNSUPPORTED);
    assert_non_null(strstr(error.text, fragment));
    bench_versus_close(&versus);
    bench_session_close(&session);
    w->teardown(problem);
}

/* One worker is a device of the host, whatever was told of the others. */
static void test_one_worker(void **state)
{
    (void)state;
    static const double scores[] = {1, 3};
    const bench_session_config config = {.devices = "host:2",
                                         .policy = BENCH_POLICY_CENTRAL,
                                         .scores = scores,
                                         .score_count = 2,
                                         .slow = {.device = 1, .factor = 2}};
    const bench_options options = {.n = 20, .devices = "host:2"};
    filch_policy_counts counts = {.size = sizeof counts};
    filch_error error = FILCH_ERROR_INIT;
    bench_session session;
    bench_versus versus;
    void *problem;
    assert_int_equal(bench_chain.setup(&options, &error, &problem), FILCH_OK);
    assert_int_equal(bench_session_open(&session, &bench_chain, problem, &config, &error),
                     FILCH_OK);
    assert_int_equal(bench_versus_open(&versus, "one", &session, &config, false, &error), FILCH_OK);
    assert_int_equal(versus.session.devices, 1);
    assert_int_equal(versus.session.device_info[0].team, 1);
    assert_int_equal(versus.session.slow.factor, 0);
    assert_int_equal(filch_runtime_policy(versus.session.built.runtime, &counts), FILCH_OK);
    assert_string_equal(counts.name, "central");
    bench_versus_close(&versus);
    bench_session_close(&session);
    bench_chain.teardown(problem);
    expect_refusal("chain", "one", (bench_session_config){.devices = "sim:bench/data/sim/two.json"},
                   "is a core of the host");
}

/* No thread of a peer's becomes slower, so its time would say nothing. */
static void test_no_slow_peer(void **state)
{
    (void)state;
    for (size_t p = 0; bench_peer_at(p); p++)
        if (!bench_peer_at(p)->needs_gpu && bench_peer_at(p)->supports(BENCH_PEER_CHAIN))
            expect_refusal(
                "chain", bench_peer_at(p)->name,
                (bench_session_config){.devices = "host:2", .slow = {.device = 0, .factor = 4}},
                "--slow");
}

static void test_a_wrong_result_is_seen(void **state)
{
    (void)state;
    static const char *const names[] = {"cholesky", "gemm", "syrk",  "trsm",     "potrs",
                                        "getrs",    "heat", "cg",    "cholesky", "gemm",
                                        "syrk",     "trsm", "potrs", "getrs"};
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        const bench_workload *w = bench_workload_find(names[k]);
        const bench_options options = {.n = 32, .precision = k < 8 ? BENCH_DOUBLE : BENCH_SINGLE};
        const bench_session_config config = {.devices = "host:1"};
        filch_error error = FILCH_ERROR_INIT;
        bench_session session;
        bench_peer_work *work;
        void *problem;
        double seconds;
        assert_int_equal(w->setup(&options, &error, &problem), FILCH_OK);
        assert_int_equal(bench_session_open(&session, w, problem, &config, &error), FILCH_OK);
        assert_int_equal(bench_session_run(&session, &seconds, &error), FILCH_OK);
        assert_int_equal(w->peer(problem, 1, &error, &work), FILCH_OK);
        assert_int_equal(w->agree(problem, &error), FILCH_DATA); /* the peer has not run */
        bench_session_close(&session);
        w->teardown(problem);
    }
}

static void test_names(void **state)
{
    (void)state;
    filch_error error = FILCH_ERROR_INIT;
    char names[128];
    assert_int_equal(bench_versus_exists("one", &bench_mandelbrot, &error), FILCH_OK);
    assert_int_equal(bench_versus_exists("static", &bench_mandelbrot, &error), FILCH_OK);
    assert_int_equal(bench_versus_exists("spin", &bench_mandelbrot, &error), FILCH_OK);
    assert_int_equal(bench_versus_exists("openblas", &bench_gemm, &error), FILCH_OK);
    assert_int_equal(bench_versus_exists("openblas", &bench_mandelbrot, &error), FILCH_NOT_FOUND);
    assert_int_equal(bench_versus_exists("nobody", &bench_gemm, &error), FILCH_NOT_FOUND);
    assert_non_null(strstr(error.text, "openblas"));
    bench_versus_names(&bench_mandelbrot, names, sizeof names);
    assert_string_equal(names, "static central guided round-robin spin one");
    bench_versus_names(&bench_gemm, names, 46);
    assert_string_equal(names, "static central guided round-robin spin one op");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_agree),
        cmocka_unit_test(test_single_precision),
        cmocka_unit_test(test_a_wrong_result_is_seen),
        cmocka_unit_test(test_one_worker),
        cmocka_unit_test(test_no_slow_peer),
        cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
