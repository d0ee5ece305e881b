/* SPDX-License-Identifier: Apache-2.0 */
/* Peers and the static policy beside a session. */
#include "versus.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void check_in(bench_precision precision, const char *workload, const char *name, size_t n,
                     bool is_cold)
{
    const bench_workload *w = bench_workload_find(workload);
    const bench_options options = {.n = n, .devices = "host:2", .precision = precision};
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
        {"cholesky", BENCH_PEER_CHOLESKY, 100},  {"gemm", BENCH_PEER_GEMM, 100},
        {"wavefront", BENCH_PEER_WAVEFRONT, 12}, {"chain", BENCH_PEER_CHAIN, 100},
        {"empty", BENCH_PEER_RERUN, 100},        {"create", BENCH_PEER_EMPTY, 100},
    };
    for (size_t k = 0; k < sizeof works / sizeof *works; k++) {
        check_versus(works[k].workload, "static", works[k].n, k % 2 == 0);
        for (size_t p = 0; bench_peer_at(p); p++)
            if (bench_peer_at(p)->supports(works[k].kind) && !bench_peer_at(p)->needs_gpu)
                check_versus(works[k].workload, bench_peer_at(p)->name, works[k].n, false);
    }
    check_versus("mandelbrot", "static", 16, true);
    check_versus("mandelbrot", "central", 16, true);
    check_versus("mandelbrot", "spin", 16, false);
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

static void test_a_wrong_result_is_seen(void **state)
{
    (void)state;
    static const char *const names[] = {"cholesky", "gemm", "cholesky", "gemm"};
    for (size_t k = 0; k < 4; k++) {
        const bench_workload *w = bench_workload_find(names[k]);
        const bench_options options = {.n = 64, .precision = k < 2 ? BENCH_DOUBLE : BENCH_SINGLE};
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
    assert_int_equal(bench_versus_exists("static", &bench_mandelbrot, &error), FILCH_OK);
    assert_int_equal(bench_versus_exists("spin", &bench_mandelbrot, &error), FILCH_OK);
    assert_int_equal(bench_versus_exists("openblas", &bench_gemm, &error), FILCH_OK);
    assert_int_equal(bench_versus_exists("openblas", &bench_mandelbrot, &error), FILCH_NOT_FOUND);
    assert_int_equal(bench_versus_exists("nobody", &bench_gemm, &error), FILCH_NOT_FOUND);
    assert_non_null(strstr(error.text, "openblas"));
    bench_versus_names(&bench_mandelbrot, names, sizeof names);
    assert_string_equal(names, "static central guided round-robin spin");
    bench_versus_names(&bench_gemm, names, 42);
    assert_string_equal(names, "static central guided round-robin spin op");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_agree),
        cmocka_unit_test(test_single_precision),
        cmocka_unit_test(test_a_wrong_result_is_seen),
        cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
