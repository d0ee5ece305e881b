/* SPDX-License-Identifier: Apache-2.0 */
/* The bench's workloads and its peers on GPUs, on the fake driver, cuBLAS and cuSOLVER: results
 * checked, every task run, in order. */
#define _GNU_SOURCE
#include "gpu/bench_twins.h"
#include "measure/versus.h"
#include "sim/sim_replay.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define LUND "tests/data/lund_a.mtx"

/* --- Runs --- */

typedef struct bed {
    const bench_workload *workload;
    void *problem;
    bench_session session;
    bench_session_config config;
} bed;

static bool lacks_compiler;
static char scratch[] = "/tmp/filch-bench-XXXXXX"; /* a file of the test's, while it runs */

/* Skips the test where kernels cannot be compiled. */
static void open_bed(bed *b, const char *name, const bench_options *options, const char *devices)
{
    filch_error error = FILCH_ERROR_INIT;
    b->workload = bench_workload_find(name);
    b->config = (bench_session_config){.devices = devices};
    assert_non_null(b->workload);
    assert_int_equal(b->workload->setup(options, &error, &b->problem), FILCH_OK);
    filch_status status =
        bench_session_open(&b->session, b->workload, b->problem, &b->config, &error);
    if (status == FILCH_NO_COMPILER) {
        b->workload->teardown(b->problem);
        lacks_compiler = true;
        skip();
    }
    if (status != FILCH_OK)
        fail_msg("%s on %s: %s", name, devices, error.text);
}

static void close_bed(bed *b)
{
    bench_session_close(&b->session);
    b->workload->teardown(b->problem);
}

static void run_and_check(bed *b)
{
    const bench_workload *w = b->workload;
    filch_error error = FILCH_ERROR_INIT;
    bool rebuild = false;
    double seconds;
    double residual;
    if (w->check_begin)
        assert_int_equal(w->check_begin(b->problem, &rebuild, &error), FILCH_OK);
    if (rebuild)
        assert_int_equal(bench_session_rebuild(&b->session, &error), FILCH_OK);
    for (int k = 0; k < (w->check_begin ? 1 : 2); k++)
        if (bench_session_run(&b->session, &seconds, &error) != FILCH_OK)
            fail_msg("%s: %s", w->name, error.text);
    if (w->check(b->problem, &residual, &error) != FILCH_OK)
        fail_msg("%s on %s: %s", w->name, b->config.devices, error.text);
    if (w->check_end)
        w->check_end(b->problem);
}

static const char *const devices[] = {"cuda:0", "cuda:0,host:2", "cuda", "cuda:0/64+32"};

static void test_empty_tasks(void **state)
{
    static const char *const names[] = {"empty", "chain", "wavefront", "create", "open"};
    (void)state;
    for (size_t d = 0; d < sizeof devices / sizeof *devices; d++)
        for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
            const bench_options options = {.n = strcmp(names[k], "wavefront") == 0 ? 9 : 80};
            bed b;
            double seconds;
            open_bed(&b, names[k], &options, devices[d]);
            assert_int_equal(bench_session_run(&b.session, &seconds, NULL), FILCH_OK);
            run_and_check(&b);
            close_bed(&b);
        }
}

static const struct {
    const char *name;
    bench_options options;
} computations[] = {
    {"cholesky", {.matrix = LUND, .tile = 40, .own_kernels = true}},
    {"cholesky", {.matrix = LUND, .tile = 40, .own_kernels = true, .resident = true}},
    {"cholesky", {.n = 90, .tile = 32, .own_kernels = true, .precision = BENCH_SINGLE}},
    {"gemm", {.n = 100, .tile = 33, .own_kernels = true}},
    {"gemm", {.n = 100, .tile = 33, .own_kernels = true, .resident = true}},
    {"cholesky", {.matrix = LUND, .tile = 40}},
    {"cholesky", {.n = 90, .tile = 32, .precision = BENCH_SINGLE, .resident = true}},
    {"cholesky", {.n = 1300, .tile = 520}},
    {"cholesky", {.n = 640, .tile = 520, .precision = BENCH_SINGLE, .resident = true}},
    {"lu", {.n = 200, .tile = 48}},
    {"lu", {.n = 150, .tile = 40, .precision = BENCH_SINGLE, .resident = true}},
    {"qr", {.n = 200, .tile = 48}},
    {"qr", {.n = 150, .tile = 40, .precision = BENCH_SINGLE, .resident = true}},
    {"syrk", {.n = 200, .tile = 48}},
    {"syrk", {.n = 150, .tile = 40, .precision = BENCH_SINGLE, .resident = true}},
    {"trsm", {.n = 200, .tile = 48}},
    {"trsm", {.n = 150, .tile = 40, .precision = BENCH_SINGLE, .resident = true}},
    {"potrs", {.n = 200, .tile = 48}},
    {"potrs", {.matrix = LUND, .tile = 48}},
    {"potrs", {.n = 150, .tile = 40, .precision = BENCH_SINGLE, .resident = true}},
    {"getrs", {.n = 200, .tile = 48}},
    {"getrs", {.n = 150, .tile = 40, .precision = BENCH_SINGLE, .resident = true}},
    {"gemm", {.n = 100, .tile = 33}},
    {"gemm", {.n = 100, .tile = 33, .precision = BENCH_SINGLE, .resident = true}},
    {"mandelbrot", {.n = 40}},
    {"nbody", {.n = 100}},
    {"jacobi", {.n = 60}},
    {"busy", {.n = 50, .tile = 20}},
    {"stream", {.n = 40, .tile = 4, .cost = 3}},
    {"stream", {.n = 40, .tile = 4, .cost = 3, .pinned = true}},
    {"stream", {.n = 40, .tile = 4, .cost = 3, .pageable = true}},
    {"layered", {.n = 60, .tile = 8, .cost = 1}},
    {"cg", {.n = 12, .steps = 20, .steps_a_graph = 10}},
    {"cg", {.n = 12, .steps = 20, .resident = true}},
    {"heat", {.n = 30, .steps = 20, .steps_a_graph = 5}},
    {"heat", {.n = 30, .steps = 20, .resident = true}},
};

static void test_computations(void **state)
{
    (void)state;
    for (size_t d = 0; d < sizeof devices / sizeof *devices; d++)
        for (size_t k = 0; k < sizeof computations / sizeof *computations; k++) {
            bed b;
            open_bed(&b, computations[k].name, &computations[k].options, devices[d]);
            run_and_check(&b);
            close_bed(&b);
        }
}

/* From the traces of all of them the jobs can be built again, with what they copied: the fake's
 * times mean nothing, but it copies what a GPU would. */
static void predict(const char *path, const char *name, const char *device)
{
    bench_sim_record record;
    bench_sim_prediction prediction;
    filch_error error = FILCH_ERROR_INIT;
    double recorded[BENCH_SIM_WAYS] = {0};
    if (bench_sim_record_read(&record, path, &error) != FILCH_OK ||
        bench_sim_predict(&record, &(bench_sim_setup){0}, &prediction, &error) != FILCH_OK)
        fail_msg("%s on %s: %s", name, device, error.text);
    bool is_gone = strcmp(name, "busy") == 0; /* its graph, when the trace is written */
    if (!is_gone && record.loose + record.blind != 0)
        fail_msg("%s on %s: nothing is known of %zu and %zu tiles", name, device, record.loose,
                 record.blind);
    for (size_t k = 0; k < record.copy_count; k++)
        recorded[record.copies[k].way] += record.copies[k].bytes;
    assert_true(prediction.seconds > 0);
    /* On one device there is no choice. In the record, results of the last job may have been
     * brought home when it was over. */
    if (record.device_count == 1) {
        assert_true(prediction.bytes[BENCH_SIM_IN] == recorded[BENCH_SIM_IN]);
        assert_true(prediction.bytes[BENCH_SIM_OUT] <= recorded[BENCH_SIM_OUT]);
    }
    bench_sim_prediction_free(&prediction);
    bench_sim_record_free(&record);
}

static void test_traces(void **state)
{
    (void)state;
    for (size_t d = 0; d < sizeof devices / sizeof *devices; d++)
        for (size_t k = 0; k < sizeof computations / sizeof *computations; k++) {
            double seconds;
            bed b;
            open_bed(&b, computations[k].name, &computations[k].options, devices[d]);
            for (int run = 0; run < 2; run++) {
                if (run == 1)
                    assert_int_equal(filch_trace_start(b.session.built.runtime), FILCH_OK);
                assert_int_equal(bench_session_run(&b.session, &seconds, NULL), FILCH_OK);
            }
            assert_int_equal(filch_trace_write(b.session.built.runtime, scratch), FILCH_OK);
            close_bed(&b);
            predict(scratch, computations[k].name, devices[d]);
        }
}

/* The row is the one in the whole matrix, although no kernel can fail its task. */
static void test_not_positive_definite(void **state)
{
    FILE *file = fopen(scratch, "w");
    (void)state;
    assert_non_null(file);
    fprintf(file, "%%%%MatrixMarket matrix coordinate real symmetric\n40 40 40\n");
    for (int i = 1; i <= 40; i++)
        fprintf(file, "%d %d %s\n", i, i, i == 27 ? "-1" : "2");
    assert_int_equal(fclose(file), 0);
    for (int own = 0; own < 2; own++) {
        const bench_options options = {.matrix = scratch, .tile = 8, .own_kernels = own != 0};
        filch_error error = FILCH_ERROR_INIT;
        double seconds;
        bed b;
        open_bed(&b, "cholesky", &options, "cuda:0");
        assert_int_equal(bench_session_run(&b.session, &seconds, &error), FILCH_DATA);
        assert_non_null(strstr(error.text, "row 27 "));
        close_bed(&b);
    }
}

static void test_peers_agree(void **state)
{
    static const struct {
        const char *workload;
        const char *peer;
        bench_options options;
    } runs[] = {
        {"empty", "bare", {.n = 80}},
        {"chain", "bare", {.n = 80}},
        {"wavefront", "bare", {.n = 9}},
        {"create", "bare", {.n = 80}},
        {"gemm", "cublas", {.n = 90, .tile = 40}},
        {"gemm", "cublas", {.n = 90, .tile = 40, .resident = true, .precision = BENCH_SINGLE}},
        {"gemm", "cublasxt", {.n = 90, .tile = 40}},
        {"cholesky", "cusolvermg", {.n = 300, .tile = 80, .resident = true}},
        {"lu", "cusolvermg", {.n = 300, .tile = 80, .resident = true}},
        {"cholesky", "cusolver", {.n = 90, .tile = 40}},
        {"cholesky", "cusolver", {.n = 90, .tile = 40, .resident = true, .own_kernels = true}},
        {"lu", "cusolver", {.n = 90, .tile = 40}},
        {"lu", "cusolver", {.n = 90, .tile = 40, .resident = true, .precision = BENCH_SINGLE}},
        {"qr", "cusolver", {.n = 90, .tile = 40}},
        {"qr", "cusolver", {.n = 90, .tile = 40, .resident = true, .precision = BENCH_SINGLE}},
        {"syrk", "cublas", {.n = 90, .tile = 40}},
        {"syrk", "cublas", {.n = 90, .tile = 40, .resident = true, .precision = BENCH_SINGLE}},
        {"trsm", "cublas", {.n = 90, .tile = 40}},
        {"trsm", "cublas", {.n = 90, .tile = 40, .resident = true, .precision = BENCH_SINGLE}},
        {"potrs", "cusolver", {.n = 90, .tile = 40}},
        {"potrs", "cusolver", {.n = 90, .tile = 40, .resident = true, .precision = BENCH_SINGLE}},
        {"getrs", "cusolver", {.n = 90, .tile = 40}},
        {"getrs", "cusolver", {.n = 90, .tile = 40, .resident = true, .precision = BENCH_SINGLE}},
        {"cg", "cusparse", {.n = 12, .steps = 20}},
    };
    (void)state;
    for (size_t k = 0; k < sizeof runs / sizeof *runs; k++) {
        filch_error error = FILCH_ERROR_INIT;
        bench_versus versus;
        double seconds = -1;
        bed b;
        open_bed(&b, runs[k].workload, &runs[k].options, "cuda");
        assert_int_equal(bench_session_run(&b.session, &seconds, &error), FILCH_OK);
        if (bench_versus_open(&versus, runs[k].peer, &b.session, &b.config, false, &error) !=
            FILCH_OK)
            fail_msg("%s: %s", runs[k].peer, error.text);
        assert_int_equal(bench_versus_run(&versus, &seconds, &error), FILCH_OK);
        assert_true(seconds >= 0);
        if (bench_versus_agrees(&versus, &error) != FILCH_OK)
            fail_msg("%s: %s", runs[k].peer, error.text);
        bench_versus_close(&versus);
        close_bed(&b);
    }
}

/* Who runs on the host is refused where there are GPUs only. */
static void test_host_peers_are_refused(void **state)
{
    filch_error error = FILCH_ERROR_INIT;
    bench_versus versus;
    bed b;
    (void)state;
    open_bed(&b, "gemm", &(bench_options){.n = 10, .own_kernels = true}, "cuda:0");
    assert_int_equal(bench_versus_open(&versus, "openblas", &b.session, &b.config, false, &error),
                     FILCH_UNSUPPORTED);
    bench_versus_close(&versus);
    close_bed(&b);
}

static int make_scratch(void **state)
{
    int file = mkstemp(scratch);
    (void)state;
    return file < 0 || close(file) != 0;
}

/* Also after a failure and a skip. */
static int remove_scratch(void **state)
{
    int result = unlink(scratch);
    (void)state;
    memset(strrchr(scratch, '-') + 1, 'X', 6); /* a template again */
    return result;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_empty_tasks),
        cmocka_unit_test(test_computations),
        cmocka_unit_test_setup_teardown(test_traces, make_scratch, remove_scratch),
        cmocka_unit_test_setup_teardown(test_not_positive_definite, make_scratch, remove_scratch),
        cmocka_unit_test(test_peers_agree),
        cmocka_unit_test(test_host_peers_are_refused),
    };
    int failed = cmocka_run_group_tests(tests, bench_twins_register, NULL);
    if (failed == 0 && lacks_compiler) {
        printf("skipped: there is no CUDA C compiler\n");
        return 77;
    }
    return failed;
}
