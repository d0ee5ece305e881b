/* SPDX-License-Identifier: Apache-2.0 */
/* Filch's kernels on a stream of another runtime's: a factorization by tiles, put on one stream in
 * its natural order, is the host's; a pivot that is not positive is told by its row. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "fakecuda.h"
#include "gpu/twins.h"
#include "offload/gpu.h"
#include "peers/tile_kernels.h"
#include "problems/dense.h"
#include "problems/tiles.h"

#define N 300
#define TILE 128
#define TILES 3
#define BYTES (sizeof(double) * N * N)

typedef struct bed {
    bench_gpu gpu;
    CUstream stream;
    bench_tile_kernels *kernels;
    bench_tile_lane *lane;
    CUdeviceptr input, matrix, inverse;
    double *host; /* three matrices: the input, the expected factor, the one found */
} bed;

static void must(filch_status status, const filch_error *error)
{
    if (status != FILCH_OK)
        fail_msg("%s: %s", error->label, error->text);
}

static void begin(bed *b)
{
    filch_error error = FILCH_ERROR_INIT;
    *b = (bed){0};
    fakecuda_reset();
    gpu_twins_register();
    assert_true(fakecuda_configure("{\"devices\": [{\"attributes\": {\"97\": 232448}}]}"));
    b->host = calloc(3, BYTES);
    assert_non_null(b->host);
    bench_dense_fill_spd(N, N, b->host, 7);
    must(bench_gpu_open(&b->gpu, 0, &error), &error);
    must(bench_gpu_enter(&b->gpu, &error), &error);
    must(bench_gpu_stream(&b->gpu, &b->stream, &error), &error);
    must(bench_gpu_alloc(&b->gpu, &b->input, BYTES, &error), &error);
    must(bench_gpu_alloc(&b->gpu, &b->matrix, BYTES, &error), &error);
    must(bench_gpu_alloc(&b->gpu, &b->inverse, sizeof(double) * TILE * TILE, &error), &error);
    must(bench_tile_kernels_open(TILE, &error, &b->kernels), &error);
    must(bench_tile_lane_open(b->kernels, 0, b->stream, &error, &b->lane), &error);
}

static void end(bed *b)
{
    bench_tile_lane_close(b->lane);
    bench_tile_kernels_close(b->kernels);
    bench_gpu_free(&b->gpu, &b->input);
    bench_gpu_free(&b->gpu, &b->matrix);
    bench_gpu_free(&b->gpu, &b->inverse);
    bench_gpu_stream_free(&b->gpu, &b->stream);
    bench_gpu_leave(&b->gpu);
    bench_gpu_close(&b->gpu);
    free(b->host);
    assert_int_equal(fakecuda_live("memory"), 0);
    assert_int_equal(fakecuda_live("stream"), 0);
    assert_int_equal(fakecuda_live("module"), 0);
    assert_int_equal(fakecuda_live("context"), 0);
    assert_int_equal(fakecuda_violations(), 0);
}

static uint64_t extent(size_t k)
{
    return N - k * TILE < TILE ? N - k * TILE : TILE;
}

static filch_view tile(CUdeviceptr matrix, size_t i, size_t j)
{
    return (filch_view){
        .ptr = bench_gpu_pointer(matrix + sizeof(double) * TILE * (i + j * N)),
        .rows = extent(i),
        .cols = extent(j),
        .ld = N,
        .row = i * TILE,
        .col = j * TILE,
        .element = sizeof(double),
    };
}

static void put_step(const bed *b, size_t k)
{
    const filch_view kk = tile(b->matrix, k, k);
    const filch_view inverse = {.ptr = bench_gpu_pointer(b->inverse),
                                .rows = TILE,
                                .cols = TILE,
                                .ld = TILE,
                                .element = sizeof(double)};
    assert_int_equal(bench_tile_factor(b->lane, &kk, &inverse, k + 1 < TILES), 0);
    for (size_t i = k + 1; i < TILES; i++) {
        const filch_view ik = tile(b->matrix, i, k);
        assert_int_equal(bench_tile_multiply(b->lane, &inverse, &ik), 0);
    }
    for (size_t j = k + 1; j < TILES; j++) {
        const filch_view jk = tile(b->matrix, j, k), jj = tile(b->matrix, j, j);
        assert_int_equal(bench_tile_syrk(b->lane, &jk, &jj), 0);
        for (size_t i = j + 1; i < TILES; i++) {
            const filch_view ik = tile(b->matrix, i, k), ij = tile(b->matrix, i, j);
            assert_int_equal(bench_tile_gemm(b->lane, &ik, &jk, &ij), 0);
        }
    }
}

/* Into the third matrix of the host; what is told of the pivots. */
static int32_t factor(const bed *b)
{
    filch_error error = FILCH_ERROR_INIT;
    int32_t row = -1;
    double *found = b->host + 2 * N * N;
    must(bench_gpu_send(&b->gpu, b->input, b->host, BYTES, b->stream, &error), &error);
    for (size_t j = 0; j < TILES; j++)
        for (size_t i = j; i < TILES; i++) {
            const filch_view from = tile(b->input, i, j), to = tile(b->matrix, i, j);
            assert_int_equal(bench_tile_copy(b->lane, &from, &to), 0);
        }
    for (size_t k = 0; k < TILES; k++)
        put_step(b, k);
    must(bench_gpu_fetch(&b->gpu, found, b->matrix, BYTES, b->stream, &error), &error);
    must(bench_gpu_wait(&b->gpu, b->stream, &error), &error);
    must(bench_tile_lane_info(b->lane, &row, &error), &error);
    return row;
}

static void a_stream_factors_what_the_host_does(void **state)
{
    (void)state;
    bed b;
    begin(&b);
    double *expected = b.host + N * N;
    memcpy(expected, b.host, BYTES);
    assert_int_equal(bench_kernels_double.potrf(N, expected, N), 0);
    for (int round = 0; round < 2; round++) {
        assert_int_equal(factor(&b), 0);
        assert_true(bench_dense_difference(N, N, N, b.host + 2 * N * N, N, expected, 1) < 1e-13);
    }
    end(&b);
}

static void a_pivot_is_told_by_its_row(void **state)
{
    (void)state;
    bed b;
    begin(&b);
    b.host[199 * (N + 1)] = -1;
    assert_int_equal(factor(&b), 200);
    end(&b);
}

static void codes_are_put_into_words(void **state)
{
    (void)state;
    filch_error error = FILCH_ERROR_INIT;
    bed b;
    begin(&b);
    filch_view wide = tile(b.matrix, 0, 0);
    wide.cols = TILE / 2;
    int code = bench_tile_factor(b.lane, &wide, &wide, true);
    assert_int_not_equal(code, 0);
    assert_int_equal(bench_tile_explain(code, &error), FILCH_BACKEND);
    assert_non_null(strstr(error.text, "do not fit"));
    end(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stream_factors_what_the_host_does),
        cmocka_unit_test(a_pivot_is_told_by_its_row),
        cmocka_unit_test(codes_are_put_into_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
