/* SPDX-License-Identifier: Apache-2.0 */
/* Which kernel factors the diagonal tiles of the bench's Cholesky on a GPU: filch's own, where a
 * thread block may have the shared memory for it, else the vendor's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "fakecuda.h"
#include "gpu/twins.h"
#include "measure/session.h"
#include "workloads/workload.h"

#define N 1100
#define TILE 512
#define TILES 3
/* The driver's name of a block's shared memory by opt-in (CU_DEVICE_ATTRIBUTE_…_OPTIN). */
#define GPU_WITH_SHARED(bytes) "{\"devices\": [{\"attributes\": {\"97\": " bytes "}}]}"

static _Atomic uint64_t launched;

static int counted(const filch_call *call)
{
    launched++;
    return gpu_twin_potrf(call);
}

/* Factors once, checks the factor, and tells by which kernel. */
static void factor(const char *gpu, bench_precision precision, size_t tile, uint64_t own,
                   uint64_t vendors)
{
    const bench_workload *workload = bench_workload_find("cholesky");
    bench_options options = {.n = N, .tile = tile, .devices = "cuda:0", .precision = precision};
    const bench_session_config config = {.devices = "cuda:0"};
    bool is_single = precision == BENCH_SINGLE;
    const filch_kernel *kernel =
        filch_kernel_find(is_single ? "potrf_trtri_f32" : "potrf_trtri_f64");
    filch_error error = FILCH_ERROR_INIT;
    bench_session session;
    void *problem;
    double seconds, residual;
    fakecuda_reset();
    gpu_twins_register();
    fakecuda_register_filch(kernel->cuda->entry, counted, kernel->view_count, false,
                            kernel->arg_size);
    launched = 0;
    assert_true(fakecuda_configure(gpu));
    assert_int_equal(workload->setup(&options, &error, &problem), FILCH_OK);
    assert_int_equal(bench_session_open(&session, workload, problem, &config, &error), FILCH_OK);
    if (bench_session_run(&session, &seconds, &error) != FILCH_OK)
        fail_msg("%s", error.text);
    assert_int_equal(launched, own);
    assert_int_equal(fakecuda_count(is_single ? "cusolverDnSpotrf" : "cusolverDnDpotrf"), vendors);
    if (workload->check(problem, &residual, &error) != FILCH_OK)
        fail_msg("%s", error.text);
    bench_session_close(&session);
    workload->teardown(problem);
    assert_int_equal(fakecuda_live("memory"), 0);
    assert_int_equal(fakecuda_violations(), 0);
}

static void diagonal_tiles_are_factored_and_inverted_at_once(void **state)
{
    (void)state;
    factor(GPU_WITH_SHARED("232448"), BENCH_DOUBLE, TILE, TILES, 0);
    factor(GPU_WITH_SHARED("232448"), BENCH_SINGLE, TILE, TILES, 0);
}

static void a_whole_matrix_is_one_tile(void **state)
{
    (void)state;
    factor(GPU_WITH_SHARED("232448"), BENCH_DOUBLE, N, 1, 0);
}

/* 163 KiB: enough in single precision only. */
static void a_block_with_too_little_shared_memory_leaves_it_to_the_vendor(void **state)
{
    (void)state;
    factor(GPU_WITH_SHARED("166912"), BENCH_DOUBLE, TILE, 0, TILES);
    factor(GPU_WITH_SHARED("166912"), BENCH_SINGLE, TILE, TILES, 0);
    factor(GPU_WITH_SHARED("101376"), BENCH_SINGLE, TILE, 0, TILES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(diagonal_tiles_are_factored_and_inverted_at_once),
        cmocka_unit_test(a_whole_matrix_is_one_tile),
        cmocka_unit_test(a_block_with_too_little_shared_memory_leaves_it_to_the_vendor),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
