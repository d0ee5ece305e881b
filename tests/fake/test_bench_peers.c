/* SPDX-License-Identifier: Apache-2.0 */
/* Peers of the bench that run on several GPUs, over the fake libraries. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "fakecuda.h"
#include "gpu/twins.h"
#include "measure/versus.h"
#include "offload/gpu.h"

#define THREE "{\"devices\": [{\"count\": 3}]}"

typedef struct trial {
    const bench_workload *workload;
    bench_options options;
    bench_session_config config;
    void *problem;
    bench_session session;
    bench_versus versus;
    filch_error error;
} trial;

/* What opening the peer gives, filch having run. */
static filch_status begin(trial *t, const char *workload, const char *peer, const char *devices,
                          size_t n, bench_precision precision, bool is_resident)
{
    double seconds;
    *t = (trial){.workload = bench_workload_find(workload),
                 .options = {.n = n,
                             .devices = devices,
                             .precision = precision,
                             .versus_count = 1,
                             .resident = is_resident},
                 .config = {.devices = devices},
                 .error = FILCH_ERROR_INIT};
    snprintf(t->options.versus[0], sizeof t->options.versus[0], "%s", peer);
    fakecuda_reset();
    gpu_twins_register();
    assert_true(fakecuda_configure(THREE));
    assert_int_equal(t->workload->setup(&t->options, &t->error, &t->problem), FILCH_OK);
    if (bench_session_open(&t->session, t->workload, t->problem, &t->config, &t->error) != FILCH_OK)
        fail_msg("%s", t->error.text);
    if (bench_session_run(&t->session, &seconds, &t->error) != FILCH_OK)
        fail_msg("%s", t->error.text);
    return bench_versus_open(&t->versus, peer, &t->session, &t->config, false, &t->error);
}

static void end(trial *t)
{
    bench_versus_close(&t->versus);
    bench_session_close(&t->session);
    t->workload->teardown(t->problem);
    assert_int_equal(fakecuda_live("memory"), 0);
    assert_int_equal(fakecuda_live("stream"), 0);
    assert_int_equal(fakecuda_live("pinned"), 0);
    assert_int_equal(fakecuda_live("context"), 0);
    assert_int_equal(fakecuda_violations(), 0);
}

static void agrees(const char *workload, const char *peer, const char *devices, size_t n,
                   bench_precision precision, bool is_resident, const char *setting)
{
    double seconds = -1;
    trial t;
    if (begin(&t, workload, peer, devices, n, precision, is_resident) != FILCH_OK)
        fail_msg("%s: %s", peer, t.error.text);
    assert_string_equal(bench_versus_setting(&t.versus), setting);
    for (int round = 0; round < 2; round++)
        assert_int_equal(bench_versus_run(&t.versus, &seconds, &t.error), FILCH_OK);
    assert_true(seconds >= 0);
    if (bench_versus_agrees(&t.versus, &t.error) != FILCH_OK)
        fail_msg("%s: %s", peer, t.error.text);
    end(&t);
}

static void products_agree_on_one_gpu_and_on_all(void **state)
{
    (void)state;
    agrees("gemm", "cublasxt", "cuda:0", 100, BENCH_DOUBLE, false, "block 100");
    agrees("gemm", "cublasxt", "cuda", 130, BENCH_DOUBLE, false, "block 130");
    assert_int_equal(fakecuda_count("cublasXtDeviceSelect"), 1);
    assert_true(fakecuda_count("cublasXtDgemm") >= 3);
    agrees("gemm", "cublasxt", "cuda:1,cuda:2", 130, BENCH_SINGLE, false, "block 130");
    assert_true(fakecuda_count("cublasXtSgemm") >= 3);
}

/* Twice each; one that a GPU has no memory for is passed over. */
static void blocks_are_tried(void **state)
{
    trial t;
    (void)state;
    assert_int_equal(begin(&t, "gemm", "cublasxt", "cuda", 1030, BENCH_SINGLE, false), FILCH_OK);
    assert_string_equal(bench_versus_setting(&t.versus), "block 1024");
    assert_int_equal(fakecuda_count("cublasXtSgemm"), 2);
    end(&t);
    assert_int_equal(begin(&t, "gemm", "static", "cuda", 2050, BENCH_SINGLE, false), FILCH_OK);
    bench_versus_close(&t.versus);
    fakecuda_fail("cublasXtSgemm", 1, 1, 2, -1, false);
    assert_int_equal(
        bench_versus_open(&t.versus, "cublasxt", &t.session, &t.config, false, &t.error), FILCH_OK);
    assert_string_equal(bench_versus_setting(&t.versus), "block 2048");
    assert_int_equal(fakecuda_count("cublasXtSgemm"), 3);
    end(&t);
}

static void factors_agree_on_one_gpu_and_on_all(void **state)
{
    (void)state;
    agrees("cholesky", "cusolvermg", "cuda:0", 100, BENCH_DOUBLE, true, "block 100");
    agrees("cholesky", "cusolvermg", "cuda:2,cuda:0", 260, BENCH_SINGLE, true, "block 256");
    assert_int_equal(fakecuda_count("cusolverMgDeviceSelect"), 1);
    agrees("lu", "cusolvermg", "cuda:1", 100, BENCH_DOUBLE, true, "block 100");
    agrees("lu", "cusolvermg", "cuda:2,cuda:0", 260, BENCH_SINGLE, true, "block 256");
    assert_int_equal(fakecuda_count("cusolverMgGetrf"), 4); /* two of them tried the block */
}

/* The best of four precisions and refinements; one that fails is passed over. */
static void solutions_agree(void **state)
{
    trial t;
    double seconds = -1;
    (void)state;
    for (int is_resident = 0; is_resident < 2; is_resident++) {
        assert_int_equal(
            begin(&t, "solve", "cusolverirs", "cuda:0", 100, BENCH_DOUBLE, is_resident != 0),
            FILCH_OK);
        assert_non_null(strstr(bench_versus_setting(&t.versus), ", 1 iterations"));
        assert_in_range(fakecuda_count("cusolverDnIRSXgesv"), 17, 32);
        assert_int_equal(bench_versus_run(&t.versus, &seconds, &t.error), FILCH_OK);
        if (bench_versus_agrees(&t.versus, &t.error) != FILCH_OK)
            fail_msg("%s", t.error.text);
        bench_versus_close(&t.versus);
        fakecuda_fail("cusolverDnIRSXgesv", 1, 1, 2, -1, false);
        assert_int_equal(
            bench_versus_open(&t.versus, "cusolverirs", &t.session, &t.config, false, &t.error),
            FILCH_OK);
        end(&t);
    }
}

/* By cuSOLVER on one GPU; what one of its calls says is told. */
static void solves_agree(void **state)
{
    static const char *const names[] = {"potrs", "getrs"};
    static const char *const calls[] = {"cusolverDnDpotrs", "cusolverDnDgetrs"};
    (void)state;
    for (size_t k = 0; k < 2; k++) {
        trial t;
        double seconds;
        agrees(names[k], "cusolver", "cuda:0", 100, BENCH_DOUBLE, false, "");
        assert_int_equal(fakecuda_count(calls[k]), 2);
        agrees(names[k], "cusolver", "cuda", 130, BENCH_SINGLE, true, "");
        assert_int_equal(begin(&t, names[k], "cusolver", "cuda", 64, BENCH_DOUBLE, true), FILCH_OK);
        fakecuda_fail(calls[k], 1, 1, 2, -1, false);
        assert_int_equal(bench_versus_run(&t.versus, &seconds, &t.error), FILCH_BACKEND);
        assert_non_null(strstr(t.error.text, "rs returned status 6"));
        end(&t);
    }
    agrees("syrk", "cublas", "cuda", 130, BENCH_DOUBLE, true, "");
    agrees("trsm", "cublas", "cuda:1", 130, BENCH_DOUBLE, false, "");
}

/* Five blocks on three GPUs, the last one cut. */
static void blocks_are_dealt_out(void **state)
{
    static const char *const names[] = {"cholesky", "lu"};
    static const char *const calls[] = {"cusolverMgPotrf", "cusolverMgGetrf"};
    (void)state;
    for (size_t k = 0; k < 2; k++) {
        trial t;
        double seconds;
        assert_int_equal(begin(&t, names[k], "cusolvermg", "cuda", 1100, BENCH_DOUBLE, true),
                         FILCH_OK);
        assert_non_null(strstr(bench_versus_setting(&t.versus), "block "));
        /* 256, 512 and 1024, twice each unless one is hopeless beside another. */
        assert_in_range(fakecuda_count(calls[k]), 4, 6);
        assert_int_equal(bench_versus_run(&t.versus, &seconds, &t.error), FILCH_OK);
        if (bench_versus_agrees(&t.versus, &t.error) != FILCH_OK)
            fail_msg("%s: %s", names[k], t.error.text);
        end(&t);
    }
}

/* A width for which the call fails is passed over. */
static void a_width_that_fails_is_passed_over(void **state)
{
    trial t;
    double seconds;
    (void)state;
    assert_int_equal(begin(&t, "lu", "static", "cuda", 520, BENCH_DOUBLE, true), FILCH_OK);
    bench_versus_close(&t.versus);
    fakecuda_fail("cusolverMgGetrf", 1, 1, 2, -1, false);
    assert_int_equal(
        bench_versus_open(&t.versus, "cusolvermg", &t.session, &t.config, false, &t.error),
        FILCH_OK);
    assert_string_equal(bench_versus_setting(&t.versus), "block 512");
    assert_int_equal(bench_versus_run(&t.versus, &seconds, &t.error), FILCH_OK);
    assert_int_equal(bench_versus_agrees(&t.versus, &t.error), FILCH_OK);
    end(&t);
}

static void what_they_do_not_do_is_said(void **state)
{
    trial t;
    (void)state;
    assert_int_equal(begin(&t, "gemm", "cublasxt", "cuda", 64, BENCH_DOUBLE, true),
                     FILCH_UNSUPPORTED);
    assert_non_null(strstr(t.error.text, "not with --resident"));
    end(&t);
    assert_int_equal(begin(&t, "cholesky", "cusolvermg", "cuda", 64, BENCH_DOUBLE, false),
                     FILCH_UNSUPPORTED);
    assert_non_null(strstr(t.error.text, "with --resident only"));
    end(&t);
    assert_int_equal(begin(&t, "cholesky", "cublasxt", "cuda", 64, BENCH_DOUBLE, false),
                     FILCH_UNSUPPORTED);
    assert_string_equal(t.error.text, "cublasxt does not do cholesky");
    end(&t);
    assert_int_equal(begin(&t, "qr", "cusolvermg", "cuda", 64, BENCH_DOUBLE, true),
                     FILCH_UNSUPPORTED);
    assert_non_null(
        strstr(t.error.text, "cusolvermg does not do qr: of factorizations cuSOLVERMg"));
    assert_non_null(strstr(t.error.text, "none by QR"));
    end(&t);
}

static void failures_are_told_and_leave_nothing(void **state)
{
    static const struct {
        const char *workload, *peer, *call, *text;
    } cases[] = {
        {"gemm", "cublasxt", "cublasXtCreate", "cublasXtCreate returned status 1"},
        {"gemm", "cublasxt", "cublasXtDeviceSelect", "cublasXtDeviceSelect returned status 1"},
        {"gemm", "cublasxt", "cublasXtDgemm", "a product returned status 13"},
        {"cholesky", "cusolvermg", "cusolverMgCreate", "cusolverMgCreate returned status 1"},
        {"cholesky", "cusolvermg", "cusolverMgDeviceSelect", "returned status 1"},
        {"cholesky", "cusolvermg", "cusolverMgPotrf", "cusolverMgPotrf returned status 6"},
        {"lu", "cusolvermg", "cusolverMgGetrf", "cusolverMgGetrf returned status 6"},
        {"solve", "cusolverirs", "cusolverDnCreate", "cusolverDnCreate returned status 1"},
        {"solve", "cusolverirs", "cusolverDnIRSParamsCreate", "Create returned status 6"},
        {"solve", "cusolverirs", "cusolverDnIRSInfosCreate", "Create returned status 6"},
    };
    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        bool is_product = strcmp(cases[k].workload, "gemm") == 0;
        trial t;
        double seconds;
        assert_int_equal(
            begin(&t, cases[k].workload, "static", "cuda", 300, BENCH_DOUBLE, !is_product),
            FILCH_OK);
        bench_versus_close(&t.versus);
        fakecuda_fail(cases[k].call, 1, 1, 2, -1, false);
        assert_int_equal(
            bench_versus_open(&t.versus, cases[k].peer, &t.session, &t.config, false, &t.error),
            FILCH_BACKEND);
        assert_non_null(strstr(t.error.text, cases[k].text));
        bench_versus_close(&t.versus);
        assert_int_equal(bench_session_run(&t.session, &seconds, &t.error), FILCH_OK);
        end(&t);
    }
}

/* A driver for which no library is installed: the fake's need 13.0. */
static void a_missing_library_is_named(void **state)
{
    static const char *const names[][3] = {{"gemm", "cublasxt", "cuBLAS"},
                                           {"cholesky", "cusolvermg", "cuSOLVERMg"}};
    (void)state;
    for (size_t k = 0; k < 2; k++) {
        const bench_peer *peer = bench_peer_find(names[k][1]);
        const bench_peer_work work = {
            .n = 8, .kernels = &bench_kernels_double, .gpu_count = 1, .is_resident = k == 1};
        filch_error error = FILCH_ERROR_INIT;
        void *made = NULL;
        fakecuda_reset();
        assert_true(fakecuda_configure("{\"driver\": 12040, \"devices\": [{}]}"));
        assert_int_equal(peer->setup(&work, &error, &made), FILCH_NOT_FOUND);
        assert_string_equal(error.label, names[k][2]);
        assert_string_equal(error.text, "is not installed for driver 12.4");
        assert_int_equal(fakecuda_live("context"), 0);
    }
}

/* --- The fakes themselves --- */

static void find(const char *library, const char *name, void *function)
{
    void *found = dlsym(dlopen(library, RTLD_NOW), name);
    assert_non_null(found);
    memcpy(function, &found, sizeof found);
}

static void the_fakes_are_strict(void **state)
{
    int (*create)(void **), (*destroy)(void *), (*choose)(void *, int, int *);
    int (*multiply)(void *, int, int, size_t, size_t, size_t, const double *, const double *,
                    size_t, const double *, size_t, const double *, double *, size_t);
    double one = 1, zero = 0, a[4] = {0}, c[4];
    int devices[2] = {0, 9};
    bench_gpu gpu;
    void *handle;
    (void)state;
    assert_true(fakecuda_configure(THREE));
    assert_int_equal(bench_gpu_open(&gpu, 0, NULL), FILCH_OK);
    assert_int_equal(bench_gpu_enter(&gpu, NULL), FILCH_OK);
    find("libcublas.so.13", "cublasXtCreate", &create);
    find("libcublas.so.13", "cublasXtDestroy", &destroy);
    find("libcublas.so.13", "cublasXtDeviceSelect", &choose);
    find("libcublas.so.13", "cublasXtDgemm", &multiply);
    fakecuda_quiet(true);
    assert_int_equal(create(&handle), 0);
    assert_int_equal(multiply(handle, 0, 0, 2, 2, 2, &one, a, 2, a, 2, &zero, c, 2), 1);
    assert_int_equal(fakecuda_forgive(), 1); /* before devices */
    assert_int_equal(choose(handle, 2, devices), 7);
    assert_int_equal(choose(handle, 1, devices), 0);
    assert_int_equal(choose(handle, 1, devices), 7);
    assert_int_equal(fakecuda_forgive(), 1); /* twice */
    assert_int_equal(destroy(handle), 0);
    find("libcusolverMg.so.12", "cusolverMgCreate", &create);
    find("libcusolverMg.so.12", "cusolverMgDestroy", &destroy);
    find("libcusolverMg.so.12", "cusolverMgDeviceSelect", &choose);
    assert_int_equal(create(&handle), 0);
    assert_int_equal(choose(handle, 2, devices), 3);
    assert_int_equal(choose(handle, 1, devices), 0);
    assert_int_equal(choose(handle, 1, devices), 3);
    assert_int_equal(fakecuda_forgive(), 1);
    assert_int_equal(destroy(handle), 0);
    fakecuda_quiet(false);
    bench_gpu_leave(&gpu);
    bench_gpu_close(&gpu);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_missing_library_is_named), /* before any is loaded */
        cmocka_unit_test(products_agree_on_one_gpu_and_on_all),
        cmocka_unit_test(blocks_are_tried),
        cmocka_unit_test(factors_agree_on_one_gpu_and_on_all),
        cmocka_unit_test(solutions_agree),
        cmocka_unit_test(solves_agree),
        cmocka_unit_test(blocks_are_dealt_out),
        cmocka_unit_test(a_width_that_fails_is_passed_over),
        cmocka_unit_test(what_they_do_not_do_is_said),
        cmocka_unit_test(failures_are_told_and_leave_nothing),
        cmocka_unit_test(the_fakes_are_strict),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
