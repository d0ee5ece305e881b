/* SPDX-License-Identifier: Apache-2.0 */
/* The bench's Cholesky on a GPU: which kernel factors the diagonal tiles, filch's own where a
 * thread block may have the shared memory for it, else the vendor's; tiles of one size, and halved
 * at the end; memory left to contenders. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fakecuda.h"
#include "gpu/twins.h"
#include "measure/session.h"
#include "patience.h"
#include "support/timing.h"
#include "workloads/square.h"
#include "workloads/workload.h"

#define N 1100
#define TILE 512
#define TILES 3        /* 512, 512, 76 */
#define HALVED_TILES 4 /* 512, 256, 256, 76 */
/* Enough for filch's own kernel; in single precision only; not enough. */
#define MUCH_SHARED "232448"
#define SOME_SHARED "166912"
#define LITTLE_SHARED "101376"
/* The driver's name of a block's shared memory by opt-in (CU_DEVICE_ATTRIBUTE_…_OPTIN). */
#define GPU_WITH_SHARED(bytes) "{\"devices\": [{\"attributes\": {\"97\": " bytes "}}]}"

enum way { EQUAL, HALVED };

static _Atomic uint64_t launched;

static int counted(const filch_call *call)
{
    launched++;
    return gpu_twin_potrf(call);
}

/* A matrix in its tiles, on one GPU with so much shared memory. */
typedef struct run {
    const bench_workload *workload;
    void *problem;
    bench_session session;
} run;

static void start(run *r, const char *gpus, const bench_options *options, enum way way)
{
    const bench_session_config config = {.devices = options->devices};
    const filch_kernel *kernel = filch_kernel_find(
        options->precision == BENCH_SINGLE ? "potrf_trtri_f32" : "potrf_trtri_f64");
    filch_error error = FILCH_ERROR_INIT;
    fakecuda_reset();
    gpu_twins_register();
    fakecuda_register_filch(kernel->cuda->entry, counted, kernel->view_count, false,
                            kernel->arg_size);
    launched = 0;
    assert_true(fakecuda_configure(gpus));
    r->workload = bench_workload_find("cholesky");
    assert_int_equal(r->workload->setup(options, &error, &r->problem), FILCH_OK);
    r->workload->way_set(r->problem, way);
    assert_int_equal(bench_session_open(&r->session, r->workload, r->problem, &config, &error),
                     FILCH_OK);
}

static void open_run(run *r, const char *gpu, bench_precision precision, size_t tile, enum way way)
{
    const bench_options options = {
        .n = N, .tile = tile, .devices = "cuda:0", .precision = precision};
    start(r, gpu, &options, way);
}

static void close_run(run *r)
{
    bench_session_close(&r->session);
    r->workload->teardown(r->problem);
    assert_int_equal(fakecuda_live("memory"), 0);
    assert_int_equal(fakecuda_violations(), 0);
}

/* Factors once, checks the factor, and tells by which kernel. */
static void factor(const char *gpu, bench_precision precision, size_t tile, enum way way,
                   uint64_t own, uint64_t vendors)
{
    bool is_single = precision == BENCH_SINGLE;
    filch_error error = FILCH_ERROR_INIT;
    double seconds, residual;
    run r;
    open_run(&r, gpu, precision, tile, way);
    if (bench_session_run(&r.session, &seconds, &error) != FILCH_OK)
        fail_msg("%s", error.text);
    assert_int_equal(launched, own);
    assert_int_equal(fakecuda_count(is_single ? "cusolverDnSpotrf" : "cusolverDnDpotrf"), vendors);
    if (r.workload->check(r.problem, &residual, &error) != FILCH_OK)
        fail_msg("%s", error.text);
    close_run(&r);
}

static void diagonal_tiles_are_factored_and_inverted_at_once(void **state)
{
    (void)state;
    factor(GPU_WITH_SHARED(MUCH_SHARED), BENCH_DOUBLE, TILE, EQUAL, TILES, 0);
    factor(GPU_WITH_SHARED(MUCH_SHARED), BENCH_SINGLE, TILE, EQUAL, TILES, 0);
}

static void a_whole_matrix_is_one_tile(void **state)
{
    (void)state;
    factor(GPU_WITH_SHARED(MUCH_SHARED), BENCH_DOUBLE, N, EQUAL, 1, 0);
}

static void a_block_with_too_little_shared_memory_leaves_it_to_the_vendor(void **state)
{
    (void)state;
    factor(GPU_WITH_SHARED(SOME_SHARED), BENCH_DOUBLE, TILE, EQUAL, 0, TILES);
    factor(GPU_WITH_SHARED(SOME_SHARED), BENCH_SINGLE, TILE, EQUAL, TILES, 0);
    factor(GPU_WITH_SHARED(LITTLE_SHARED), BENCH_SINGLE, TILE, EQUAL, 0, TILES);
}

static void without_a_compiler_it_is_left_to_the_vendor(void **state)
{
    const char *nvrtc = getenv("FILCH_NVRTC");
    char *kept = nvrtc ? strdup(nvrtc) : NULL;
    (void)state;
    assert_int_equal(setenv("FILCH_NVRTC", "/nonexistent/libnvrtc.so", 1), 0);
    factor(GPU_WITH_SHARED(MUCH_SHARED), BENCH_DOUBLE, TILE, EQUAL, 0, TILES);
    factor(GPU_WITH_SHARED(MUCH_SHARED), BENCH_SINGLE, TILE, HALVED, 0, HALVED_TILES);
    assert_int_equal(kept ? setenv("FILCH_NVRTC", kept, 1) : unsetenv("FILCH_NVRTC"), 0);
    free(kept);
}

static void the_last_tiles_are_halved(void **state)
{
    (void)state;
    factor(GPU_WITH_SHARED(MUCH_SHARED), BENCH_DOUBLE, TILE, HALVED, HALVED_TILES, 0);
    factor(GPU_WITH_SHARED(MUCH_SHARED), BENCH_SINGLE, TILE, HALVED, HALVED_TILES, 0);
    factor(GPU_WITH_SHARED(LITTLE_SHARED), BENCH_SINGLE, TILE, HALVED, 0, HALVED_TILES);
}

/* One tile cannot be halved at its end. */
static void a_whole_matrix_is_not_halved(void **state)
{
    (void)state;
    run r;
    factor(GPU_WITH_SHARED(MUCH_SHARED), BENCH_DOUBLE, N, HALVED, 1, 0);
    open_run(&r, GPU_WITH_SHARED(MUCH_SHARED), BENCH_DOUBLE, TILE, HALVED);
    assert_true(r.workload->way_fits(r.problem, N, EQUAL));
    assert_false(r.workload->way_fits(r.problem, N, HALVED));
    assert_true(r.workload->way_fits(r.problem, N - 1, HALVED));
    assert_false(r.workload->way_fits(r.problem, 2, HALVED)); /* too many tiles */
    close_run(&r);
}

/* Odd tiles, a remainder, tiles that are solved for, GPUs that keep the matrix, a GPU and a core.
 */
static void any_tiles_are_halved(void **state)
{
    static const struct {
        size_t n, tile;
        const char *devices;
        bool is_resident;
    } cases[] = {{601, 301, "cuda:0", false},
                 {513, 256, "cuda:0,cuda:1", true},
                 {1025, 512, "cuda:0,cuda:1", true},
                 {100, 33, "cuda:0,host:1", false},
                 {40, 7, "cuda:0", true}};
    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        bench_options options = {.n = cases[k].n,
                                 .tile = cases[k].tile,
                                 .devices = cases[k].devices,
                                 .resident = cases[k].is_resident};
        filch_error error = FILCH_ERROR_INIT;
        bench_problem problem = {0};
        double seconds, residual;
        run r;
        start(&r, "{\"devices\": [{}, {}]}", &options, HALVED);
        r.workload->describe(r.problem, &problem);
        assert_string_equal(problem.variant, "the last tiles halved");
        assert_int_equal(bench_session_run(&r.session, &seconds, &error), FILCH_OK);
        assert_int_equal(bench_session_run(&r.session, &seconds, &error), FILCH_OK);
        if (r.workload->check(r.problem, &residual, &error) != FILCH_OK)
            fail_msg("n %zu, tile %zu: %s", cases[k].n, cases[k].tile, error.text);
        close_run(&r);
    }
}

/* A pivot of a tile after the first half is told by its row in the matrix. */
static void fail_to_factor(const char *gpu, enum way way, size_t row)
{
    filch_error error = FILCH_ERROR_INIT;
    double seconds;
    char told[64];
    run r;
    open_run(&r, gpu, BENCH_DOUBLE, TILE, way);
    ((bench_square *)r.problem)->a[(row - 1) * (N + 1)] = -1;
    assert_int_equal(bench_session_run(&r.session, &seconds, &error), FILCH_DATA);
    (void)snprintf(told, sizeof told, "the pivot in row %zu is not positive", row);
    assert_non_null(strstr(error.text, told));
    close_run(&r);
}

static void a_pivot_that_is_not_positive_is_told_by_its_row(void **state)
{
    static const size_t rows[] = {790, 1090}; /* in the second half, and in the last tile */
    (void)state;
    fail_to_factor(GPU_WITH_SHARED(LITTLE_SHARED), EQUAL, rows[1]);
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        fail_to_factor(GPU_WITH_SHARED(MUCH_SHARED), HALVED, rows[k]);
        fail_to_factor(GPU_WITH_SHARED(LITTLE_SHARED), HALVED, rows[k]);
    }
}

static filch_memory_stats memory_of(const run *r)
{
    filch_memory_stats memory = FILCH_MEMORY_STATS_INIT;
    assert_int_equal(filch_device_memory(r->session.built.runtime, 0, &memory), FILCH_OK);
    return memory;
}

/* What the last tile leaves unused is handed back, for contenders' operands. */
static void memory_of_earlier_tiles_is_handed_back(void **state)
{
    (void)state;
    filch_error error = FILCH_ERROR_INIT;
    double seconds;
    run r;
    open_run(&r, GPU_WITH_SHARED(MUCH_SHARED), BENCH_DOUBLE, TILE, EQUAL);
    assert_int_equal(bench_session_run(&r.session, &seconds, &error), FILCH_OK);
    assert_int_equal(bench_session_rebuild(&r.session, &error), FILCH_OK);
    assert_true(memory_of(&r).mapped_peak >= sizeof(double) * N * N / 2);
    /* A worker may still have the scratch of its last task. */
    for (double end = bench_now_s() + PATIENCE; memory_of(&r).mapped != 0 && bench_now_s() < end;)
        assert_int_equal(bench_session_trim(&r.session, &error), FILCH_OK);
    assert_int_equal(memory_of(&r).mapped, 0);
    close_run(&r);
}

static void a_block_without_room_is_told(void **state)
{
    (void)state;
    filch_error error = FILCH_ERROR_INIT;
    CUdeviceptr block = 0;
    bench_gpu gpu;
    fakecuda_reset();
    assert_true(fakecuda_configure(GPU_WITH_SHARED(MUCH_SHARED)));
    assert_int_equal(bench_gpu_open(&gpu, 0, &error), FILCH_OK);
    assert_int_equal(bench_gpu_enter(&gpu, &error), FILCH_OK);
    assert_int_equal(bench_gpu_alloc(&gpu, &block, (size_t)1 << 40, &error),
                     FILCH_NO_DEVICE_MEMORY);
    assert_string_equal(error.native_name, "CUDA_ERROR_OUT_OF_MEMORY");
    assert_non_null(strstr(error.text, "the GPU has no room for 1099511627776 bytes"));
    bench_gpu_leave(&gpu);
    bench_gpu_close(&gpu);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(diagonal_tiles_are_factored_and_inverted_at_once),
        cmocka_unit_test(a_whole_matrix_is_one_tile),
        cmocka_unit_test(a_block_with_too_little_shared_memory_leaves_it_to_the_vendor),
        cmocka_unit_test(without_a_compiler_it_is_left_to_the_vendor),
        cmocka_unit_test(the_last_tiles_are_halved),
        cmocka_unit_test(a_whole_matrix_is_not_halved),
        cmocka_unit_test(any_tiles_are_halved),
        cmocka_unit_test(a_pivot_that_is_not_positive_is_told_by_its_row),
        cmocka_unit_test(memory_of_earlier_tiles_is_handed_back),
        cmocka_unit_test(a_block_without_room_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
