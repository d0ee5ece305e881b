/* SPDX-License-Identifier: Apache-2.0 */
/* Conjugate gradients on the fake driver's GPUs: alone, beside each other, beside the host's cores,
 * and beside the loop over cuSPARSE. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "fake/cg_twins.h"
#include "fake/workload_trial.h"
#include "measure/versus.h"

#define G 12
#define PLANE_BYTES (G * G * sizeof(double))

static filch_status begin(workload_trial *t, bench_options options)
{
    return trial_begin(t, &bench_cg, fake_cg_twins_register, options);
}

static void run(workload_trial *t)
{
    double residual = trial_run(t);
    assert_true(residual >= 0 && residual < 1e-3);
}

static void is_right(const char *devices, size_t strips, size_t steps, size_t steps_a_graph,
                     bool is_resident)
{
    workload_trial t;
    const bench_options options = {.n = G,
                                   .devices = devices,
                                   .strips = strips,
                                   .steps = steps,
                                   .steps_a_graph = steps_a_graph,
                                   .resident = is_resident};
    assert_int_equal(begin(&t, options), FILCH_OK);
    run(&t);
    run(&t);
    trial_end(&t);
}

static void one_gpu_solves(void **state)
{
    (void)state;
    is_right("cuda:0", 0, 30, 10, true);
    is_right("cuda:0", 3, 30, 1, true);
    is_right("cuda:0", 1, 30, 30, false);
}

static void two_gpus_solve(void **state)
{
    (void)state;
    is_right("cuda", 0, 30, 10, true);
    is_right("cuda", 5, 30, 15, true);
    is_right("cuda", G, 30, 30, false); /* a plane a block */
}

static void cores_help(void **state)
{
    (void)state;
    is_right("cuda,host:2", 0, 30, 10, true);
    is_right("cuda:0,host:1", 4, 30, 10, false);
}

/* What is there stays there: an iteration moves the planes at the cut, and sums. */
static void planes_alone_move(void **state)
{
    workload_trial t;
    const size_t iterations = 20, sums = 64 * 8;
    (void)state;
    const bench_options options = {.n = G,
                                   .devices = "cuda",
                                   .steps = iterations,
                                   .steps_a_graph = 10,
                                   .resident = true,
                                   .policy = BENCH_POLICY_STATIC};
    assert_int_equal(begin(&t, options), FILCH_OK);
    run(&t);
    uint64_t down = fakecuda_bytes(0, 1), up = fakecuda_bytes(1, 0), in = fakecuda_bytes(-1, 0);
    run(&t);
    down = fakecuda_bytes(0, 1) - down;
    up = fakecuda_bytes(1, 0) - up;
    assert_in_range(down, 1, iterations * (PLANE_BYTES + sums));
    assert_in_range(up, 1, iterations * (PLANE_BYTES + sums));
    assert_int_equal(fakecuda_bytes(-1, 0) - in, 0);
    trial_end(&t);
}

static void what_it_does_not_do_is_said(void **state)
{
    workload_trial t;
    (void)state;
    bench_options options = {.n = 40, .devices = "cuda", .strips = BENCH_CG_PARTS + 1};
    assert_int_equal(begin(&t, options), FILCH_TOO_LARGE);
    assert_string_equal(t.error.label, "--strips");
    trial_end(&t);
    options = (bench_options){.n = G, .devices = "cuda", .slow = {.factor = 2}};
    assert_int_equal(begin(&t, options), FILCH_UNSUPPORTED);
    assert_string_equal(t.error.label, "--slow");
    trial_end(&t);
}

static void the_loop_over_cusparse_agrees(void **state)
{
    static const char *const devices[] = {"cuda:1", "cuda"};
    (void)state;
    for (int k = 0; k < 4; k++) {
        const bench_options options = {
            .n = G, .devices = devices[k % 2], .steps = 30, .resident = k < 2};
        const bench_session_config config = {.devices = devices[k % 2]};
        bench_versus versus;
        double seconds = -1;
        workload_trial t;
        assert_int_equal(begin(&t, options), FILCH_OK);
        run(&t);
        if (bench_versus_open(&versus, "cusparse", &t.session, &config, false, &t.error) !=
            FILCH_OK)
            fail_msg("%s", t.error.text);
        /* Three algorithms, twice each. */
        assert_int_equal(fakecuda_count("cusparseSpMV"), 3 * 2 * 30);
        assert_int_equal(fakecuda_count("cusparseSpMV_preprocess"), 4);
        assert_true(strlen(bench_versus_setting(&versus)) > 0);
        assert_int_equal(bench_versus_run(&versus, &seconds, &t.error), FILCH_OK);
        assert_true(seconds >= 0);
        if (bench_versus_agrees(&versus, &t.error) != FILCH_OK)
            fail_msg("%s", t.error.text);
        bench_versus_close(&versus);
        run(&t);
        trial_end(&t);
    }
}

/* An algorithm that fails is passed over. */
static void failures_of_the_loop_are_told(void **state)
{
    static const struct {
        const char *call, *text;
    } cases[] = {
        {"cublasCreate", "cublasCreate returned status 1"},
        {"cusparseCreate", "cusparseCreate returned status 1"},
        {"cusparseCreateCsr", "cusparseCreateCsr returned status 1"},
        {"cusparseCreateDnVec", "cusparseCreateDnVec returned status 1"},
        {"cuModuleLoadDataEx", "CUDA_ERROR_OUT_OF_MEMORY"},
    };
    const bench_options options = {.n = G, .devices = "cuda:0", .steps = 10, .resident = true};
    const bench_session_config config = {.devices = "cuda:0"};
    bench_versus versus;
    workload_trial t;
    (void)state;
    assert_int_equal(begin(&t, options), FILCH_OK);
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        fakecuda_fail(cases[k].call, 1, 1, 2, -1, false);
        assert_int_equal(
            bench_versus_open(&versus, "cusparse", &t.session, &config, false, &t.error),
            FILCH_BACKEND);
        if (!strstr(t.error.text, cases[k].text))
            fail_msg("%s: %s", cases[k].call, t.error.text);
        bench_versus_close(&versus);
    }
    fakecuda_fail("cusparseSpMV", 1, 1, 2, -1, false);
    assert_int_equal(bench_versus_open(&versus, "cusparse", &t.session, &config, false, &t.error),
                     FILCH_OK);
    assert_non_null(strstr(bench_versus_setting(&versus), "csr_alg"));
    bench_versus_close(&versus);
    trial_end(&t);
}

/* The fake cuBLAS needs a newer driver. */
static void a_missing_library_is_named(void **state)
{
    bench_cg_system system = {.g = 4, .blocks = 1, .iterations = 1};
    const bench_peer_work work = {
        .kind = BENCH_PEER_CG, .n = 4, .problem = &system, .keeps_memory = true, .gpu_count = 1};
    filch_error error = FILCH_ERROR_INIT;
    void *made = NULL;
    (void)state;
    assert_true(fakecuda_configure("{\"driver\": 12040, \"devices\": [{}]}"));
    assert_int_equal(bench_peer_cusparse.setup(&work, &error, &made), FILCH_NOT_FOUND);
    assert_string_equal(error.label, "cuBLAS");
    assert_string_equal(error.text, "is not installed for driver 12.4");
    assert_int_equal(fakecuda_live("context"), 0);
}

int main(void)
{
    (void)setenv("FILCH_NVRTC", FL_NVRTC_KERNELS, 1);
    (void)setenv("FILCH_CACHE_DIR", "off", 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_missing_library_is_named), /* before any is loaded */
        cmocka_unit_test(one_gpu_solves),
        cmocka_unit_test(two_gpus_solve),
        cmocka_unit_test(cores_help),
        cmocka_unit_test(planes_alone_move),
        cmocka_unit_test(what_it_does_not_do_is_said),
        cmocka_unit_test(the_loop_over_cusparse_agrees),
        cmocka_unit_test(failures_of_the_loop_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
