/* SPDX-License-Identifier: Apache-2.0 */
/* The fake cuBLAS and cuSOLVER factorize on a stream of the fake driver, in its order. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fake.h"

#define N 6 /* two tiles of 3 */
#define TILE 3

enum { OP_N = 0, OP_T = 1, LOWER = 0, RIGHT = 1, NON_UNIT = 0 };

static struct {
    int (*create)(void **handle);
    int (*destroy)(void *handle);
    int (*set_stream)(void *handle, void *stream);
    int (*gemm)(void *handle, int op_a, int op_b, int m, int n, int k, const double *alpha,
                const double *a, int lda, const double *b, int ldb, const double *beta, double *c,
                int ldc);
    int (*trsm)(void *handle, int side, int fill, int op, int diagonal, int m, int n,
                const double *alpha, const double *a, int lda, double *b, int ldb);
    int (*syrk)(void *handle, int fill, int op, int n, int k, const double *alpha, const double *a,
                int lda, const double *beta, double *c, int ldc);
    int (*solver_create)(void **handle);
    int (*solver_destroy)(void *handle);
    int (*solver_set_stream)(void *handle, void *stream);
    int (*potrf_size)(void *handle, int fill, int n, double *a, int lda, int *elements);
    int (*potrf)(void *handle, int fill, int n, double *a, int lda, double *work, int elements,
                 int *info);
} call;

static CUcontext context;
static CUstream stream;
static void *blas, *solver;

static void must(int result)
{
    assert_int_equal(result, 0);
}

static void find(void *library, const char *symbol, void *into)
{
    void *found = dlsym(library, symbol);

    assert_non_null(found);
    memcpy(into, &found, sizeof found);
}

static int begin(void **state)
{
    void *first = dlopen("libcublas.so.13", RTLD_NOW);
    void *second = dlopen("libcusolver.so.12", RTLD_NOW);

    (void)state;
    if (first == NULL || second == NULL)
        return -1;
    find(first, "cublasCreate_v2", &call.create);
    find(first, "cublasDestroy_v2", &call.destroy);
    find(first, "cublasSetStream_v2", &call.set_stream);
    find(first, "cublasDgemm_v2", &call.gemm);
    find(first, "cublasDtrsm_v2", &call.trsm);
    find(first, "cublasDsyrk_v2", &call.syrk);
    find(second, "cusolverDnCreate", &call.solver_create);
    find(second, "cusolverDnDestroy", &call.solver_destroy);
    find(second, "cusolverDnSetStream", &call.solver_set_stream);
    find(second, "cusolverDnDpotrf_bufferSize", &call.potrf_size);
    find(second, "cusolverDnDpotrf", &call.potrf);
    assert_true(fakecuda_configure(NULL));
    must(cuInit(0));
    must(cuDevicePrimaryCtxRetain(&context, 0));
    must(cuCtxSetCurrent(context));
    must(cuStreamCreate(&stream, FL_CU_STREAM_NON_BLOCKING));
    must(call.create(&blas));
    must(call.set_stream(blas, stream));
    must(call.solver_create(&solver));
    must(call.solver_set_stream(solver, stream));
    return 0;
}

static int end(void **state)
{
    (void)state;
    (void)call.destroy(blas);
    (void)call.solver_destroy(solver);
    (void)cuStreamDestroy_v2(stream);
    must(cuCtxSetCurrent(NULL));
    must(cuDevicePrimaryCtxRelease_v2(0));
    assert_int_equal(fakecuda_violations(), 0);
    return 0;
}

static void *take(size_t bytes)
{
    CUdeviceptr block;

    must(cuMemAlloc_v2(&block, bytes));
    return (void *)(uintptr_t)block;
}

static void give(void *block)
{
    (void)cuMemFree_v2((CUdeviceptr)(uintptr_t)block);
}

static void tiles_are_factorized(void **state)
{
    const double one = 1, minus = -1, zero = 0;
    double *a = take(N * N * sizeof *a), *product = take(N * N * sizeof *a);
    int *info = take(sizeof *info);
    double *seen = fakecuda_peek(a, N * N * sizeof *a);
    int elements;

    (void)state;
    for (int column = 0; column < N; column++) {
        for (int row = 0; row < N; row++)
            seen[column * N + row] = row == column ? N : row < column ? 0 : 1.0 / (row + column);
    }
    must(call.potrf_size(solver, LOWER, TILE, NULL, N, &elements));
    double *work = take((size_t)elements * sizeof *work);
    fakecuda_hold(); /* the scalars are read when the call is made */
    must(call.potrf(solver, LOWER, TILE, a, N, work, elements, info));
    must(call.trsm(blas, RIGHT, LOWER, OP_T, NON_UNIT, TILE, TILE, &one, a, N, a + TILE, N));
    must(call.syrk(blas, LOWER, OP_N, TILE, TILE, &minus, a + TILE, N, &one, a + TILE * N + TILE,
                   N));
    must(call.potrf(solver, LOWER, TILE, a + TILE * N + TILE, N, work, elements, info));
    must(call.gemm(blas, OP_N, OP_T, N, N, N, &one, a, N, a, N, &zero, product, N));
    fakecuda_release();
    must(cuStreamSynchronize(stream));
    const double *result = fakecuda_peek(product, N * N * sizeof *a);
    for (int column = 0; column < N; column++) {
        for (int row = column; row < N; row++) {
            double wanted = row == column ? N : 1.0 / (row + column);
            assert_true(fabs(result[column * N + row] - wanted) < 1e-14);
        }
    }
    assert_int_equal(*(int *)fakecuda_peek(info, sizeof *info), 0);
    give(work);
    give(info);
    give(product);
    give(a);
}

static void bad_pivots_are_told(void **state)
{
    double *a = take(4 * sizeof *a);
    int *info = take(sizeof *info), elements;
    double *seen = fakecuda_peek(a, 4 * sizeof *a);

    (void)state;
    seen[0] = 1;
    seen[1] = 2;
    seen[3] = 1;
    must(call.potrf_size(solver, LOWER, 2, NULL, 2, &elements));
    double *work = take((size_t)elements * sizeof *work);
    assert_int_equal(call.potrf(solver, LOWER, 2, a, 2, work, elements - 1, info), 3);
    must(call.potrf(solver, LOWER, 2, a, 2, work, elements, info));
    must(cuStreamSynchronize(stream));
    assert_int_equal(*(int *)fakecuda_peek(info, sizeof *info), 2);
    give(work);
    give(info);
    give(a);
}

static void operands_stay_in_their_memory(void **state)
{
    const double one = 1;
    double *a = take(4 * sizeof *a);

    (void)state;
    fakecuda_quiet(true);
    must(call.gemm(blas, OP_N, OP_N, 2, 2, 2, &one, a, 2, a, 2, &one, a, 3));
    assert_int_equal(cuStreamSynchronize(stream), FL_CUDA_ERROR_LAUNCH_FAILED);
    assert_int_equal(fakecuda_forgive(), 1);
    give(a);
    (void)fakecuda_forgive();
    fakecuda_quiet(false);
}

static void failures_reach_the_libraries(void **state)
{
    const double one = 1;
    double *a = take(4 * sizeof *a);
    void *handle;

    (void)state;
    fakecuda_fail("cublasCreate", 1, 1, FL_CUDA_ERROR_OUT_OF_MEMORY, -1, false);
    assert_int_equal(call.create(&handle), 1);
    fakecuda_fail("cublasDgemm", 1, 1, FL_CUDA_ERROR_UNKNOWN, -1, false);
    assert_int_equal(call.gemm(blas, OP_N, OP_N, 2, 2, 2, &one, a, 2, a, 2, &one, a, 2), 13);
    fakecuda_reset();
    give(a);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(tiles_are_factorized),
        TEST(bad_pivots_are_told),
        TEST(operands_stay_in_their_memory),
        TEST(failures_reach_the_libraries),
    };

    if (dlopen("libcublas.so.13", RTLD_NOW) == NULL)
        return 77;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
