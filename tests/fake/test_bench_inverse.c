/* SPDX-License-Identifier: Apache-2.0 */
/* Inverses of triangular tiles by the fake cuBLAS: orders that make no whole number of blocks or of
 * pairs, and tiles that lie in larger matrices. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dlfcn.h>
#include <math.h>
#include <stdlib.h>

#include "count.h"
#include "fakecuda.h"
#include "kernels/vendor/vendor.h"
#include "offload/gpu.h"
#include "problems/tiles.h"

#define SMALL 512 /* of which every element is looked at */
#define MORE 5    /* rows of the matrix around a tile */

typedef struct bed {
    bench_gpu gpu;
    fl_vendor *vendor;
    fl_vendor_lane *lane;
    CUstream stream;
    const bench_kernels *kernels;
} bed;

static void must(int result)
{
    assert_int_equal(result, 0);
}

static void begin(bed *b, const bench_kernels *kernels)
{
    *b = (bed){.kernels = kernels};
    fakecuda_reset();
    assert_true(fakecuda_configure("{\"devices\": [{}]}"));
    must(bench_gpu_open(&b->gpu, 0, NULL));
    must(fl_vendor_open(&b->gpu.library, NULL, &b->vendor));
    must(bench_gpu_enter(&b->gpu, NULL));
    must(bench_gpu_api(&b->gpu)->cuStreamCreate(&b->stream, FL_CU_STREAM_NON_BLOCKING));
    b->lane = fl_vendor_lane_make(b->vendor, b->gpu.context, b->stream, 0);
    assert_non_null(b->lane);
}

static void end(bed *b)
{
    fl_vendor_lane_drop(b->lane);
    must(bench_gpu_api(&b->gpu)->cuStreamDestroy(b->stream));
    bench_gpu_leave(&b->gpu);
    fl_vendor_close(b->vendor);
    bench_gpu_close(&b->gpu);
    assert_int_equal(fakecuda_live("memory"), 0);
    assert_int_equal(fakecuda_live("stream"), 0);
    assert_int_equal(fakecuda_live("context"), 0);
    assert_int_equal(fakecuda_violations(), 0);
}

static size_t bytes_of(const filch_view *view)
{
    return view->ld * view->cols * view->element;
}

static filch_view take(const bed *b, size_t rows, size_t cols)
{
    filch_view view = {
        .rows = rows, .cols = cols, .ld = rows + MORE, .element = b->kernels->element};
    CUdeviceptr block;
    must(bench_gpu_api(&b->gpu)->cuMemAlloc(&block, bytes_of(&view)));
    view.ptr = bench_gpu_pointer(block);
    return view;
}

static void give(const bed *b, const filch_view *view)
{
    must(bench_gpu_api(&b->gpu)->cuMemFree((CUdeviceptr)(uintptr_t)view->ptr));
}

/* The same as the host finds it. */
static filch_view seen(const filch_view *view)
{
    filch_view host = *view;
    host.ptr = fakecuda_peek(view->ptr, bytes_of(view));
    return host;
}

static void set(const bed *b, const filch_view *host, size_t i, size_t j, double value)
{
    b->kernels->set(host->ptr, i + j * host->ld, value);
}

static double get(const bed *b, const filch_view *host, size_t i, size_t j)
{
    return b->kernels->get(host->ptr, i + j * host->ld);
}

/* All of it, with what is around the tile. */
static void fill(const bed *b, const filch_view *view, double value)
{
    const filch_view host = seen(view);
    for (size_t j = 0; j < view->cols; j++)
        for (size_t i = 0; i < view->ld; i++)
            set(b, &host, i, j, value);
}

/* Of a tile that was factored: with the input above the diagonal. */
static void fill_factor(const bed *b, const filch_view *l)
{
    const filch_view host = seen(l);
    fill(b, l, NAN);
    for (size_t j = 0; j < l->cols; j++)
        for (size_t i = 0; i < l->rows; i++)
            set(b, &host, i, j,
                i == j ? 2 + 1.0 / (double)(i + 1) : cos((double)(7 * i + 3 * j)) / 8);
}

/* In its own precision: rows of |L^-1 L - 1| against those of |L^-1| |L|. */
static void is_inverse(const bed *b, const filch_view *l, const filch_view *inverse)
{
    const filch_view from = seen(l), to = seen(inverse);
    double most = 0;
    for (size_t j = 0; j < l->cols; j++) {
        for (size_t i = 0; i < j; i++)
            assert_true(get(b, &to, i, j) == 0);
        for (size_t i = j; i < l->rows; i++) {
            double sum = i == j ? -1 : 0, sizes = 1;
            for (size_t k = j; k <= i; k++) {
                double term = get(b, &to, i, k) * get(b, &from, k, j);
                sum += term;
                sizes += fabs(term);
            }
            assert_true(!isnan(sum));
            most = fmax(most, fabs(sum) / sizes);
        }
    }
    assert_true(most <= 8 * b->kernels->unit * sqrt((double)l->rows));
}

/* The same by one vector: L^-1 (L x) against an x of ones. */
static void is_inverse_of_ones(const bed *b, const filch_view *l, const filch_view *inverse)
{
    const filch_view from = seen(l), to = seen(inverse);
    double *y = calloc(2 * l->rows, sizeof *y), *sizes = y + l->rows;
    assert_non_null(y);
    for (size_t j = 0; j < l->cols; j++)
        for (size_t i = j; i < l->rows; i++) {
            y[i] += get(b, &from, i, j);
            sizes[i] += fabs(get(b, &from, i, j));
        }
    for (size_t i = 0; i < l->rows; i++) {
        double sum = -1, size = 1;
        for (size_t j = 0; j <= i; j++) {
            sum += get(b, &to, i, j) * y[j];
            size += fabs(get(b, &to, i, j)) * sizes[j];
        }
        assert_true(fabs(sum) <= 8 * b->kernels->unit * sqrt((double)l->rows) * size);
    }
    free(y);
}

/* No element of the matrix around the tile was written. */
static void nothing_around(const bed *b, const filch_view *view)
{
    const filch_view host = seen(view);
    for (size_t j = 0; j < view->cols; j++)
        for (size_t i = view->rows; i < view->ld; i++)
            assert_true(isnan(get(b, &host, i, j)));
}

static void invert(const bed *b, size_t n)
{
    filch_view l = take(b, n, n), inverse = take(b, n, n);
    fill_factor(b, &l);
    fill(b, &inverse, NAN);
    must(fl_vendor_invert(b->lane, &l, &inverse));
    must(bench_gpu_api(&b->gpu)->cuStreamSynchronize(b->stream));
    if (n <= SMALL)
        is_inverse(b, &l, &inverse);
    else
        is_inverse_of_ones(b, &l, &inverse);
    nothing_around(b, &inverse);
    give(b, &inverse);
    give(b, &l);
}

static const bench_kernels *const precisions[] = {&bench_kernels_double, &bench_kernels_single};
static const size_t orders[] = {1,   63,  64,  65,  100, 127, 128, 129, 191,
                                192, 193, 256, 257, 300, 320, 383, 385, 449};

static void inverses_are_right(void **state)
{
    (void)state;
    for (size_t p = 0; p < 2; p++) {
        bed b;
        begin(&b, precisions[p]);
        for (size_t k = 0; k < sizeof orders / sizeof *orders; k++)
            invert(&b, orders[k]);
        for (size_t k = sizeof orders / sizeof *orders; k-- > 0;)
            invert(&b, orders[k]); /* in a room for more */
        end(&b);
    }
}

/* The last two blocks are so large that they are multiplied as triangles. */
static void large_inverses_are_right(void **state)
{
    (void)state;
    if (TEST_SEEKS_RACES)
        skip(); /* as the smaller ones, at length */
    for (size_t p = 0; p < 2; p++) {
        bed b;
        begin(&b, precisions[p]);
        invert(&b, 1100);
        invert(&b, 2048);
        end(&b);
    }
}

/* One lane for both, one after the other. */
static void precisions_change(void **state)
{
    bed b;
    (void)state;
    begin(&b, &bench_kernels_double);
    for (size_t k = 0; k < 4; k++) {
        b.kernels = precisions[k % 2];
        invert(&b, 200);
    }
    end(&b);
}

/* Two inversions in a row wait for nothing, take no memory and copy nothing from the host. */
static void nothing_waits(void **state)
{
    bed b;
    (void)state;
    begin(&b, &bench_kernels_double);
    invert(&b, 330);
    filch_view l = take(&b, 330, 330), inverse = take(&b, 330, 330);
    fill_factor(&b, &l);
    fill(&b, &inverse, NAN);
    uint64_t taken = fakecuda_count("cuMemAlloc"), sent = fakecuda_count("cuMemcpyHtoDAsync");
    fakecuda_hold();
    for (int k = 0; k < 2; k++)
        must(fl_vendor_invert(b.lane, &l, &inverse));
    assert_int_equal(fakecuda_count("cuMemAlloc"), taken);
    assert_int_equal(fakecuda_count("cuMemcpyHtoDAsync"), sent);
    fakecuda_release();
    must(bench_gpu_api(&b.gpu)->cuStreamSynchronize(b.stream));
    is_inverse(&b, &l, &inverse);
    give(&b, &inverse);
    give(&b, &l);
    end(&b);
}

/* A := A L', with something above the diagonal of L that must not count. */
static void multiply(const bed *b, size_t m, size_t n)
{
    filch_view l = take(b, n, n), a = take(b, m, n), room = take(b, m, n);
    const filch_view factor = seen(&l), host = seen(&a);
    fill_factor(b, &l);
    fill(b, &a, NAN);
    for (size_t j = 0; j < n; j++) {
        for (size_t i = 0; i < j; i++)
            set(b, &factor, i, j, NAN);
        for (size_t i = 0; i < m; i++)
            set(b, &host, i, j, (double)(i + 1) / (double)(j + 1));
    }
    must(fl_vendor_multiply(b->lane, &l, &a, room.ptr));
    must(bench_gpu_api(&b->gpu)->cuStreamSynchronize(b->stream));
    for (size_t j = 0; j < n; j++)
        for (size_t i = 0; i < m; i++) {
            double sum = 0, sizes = 0;
            for (size_t k = 0; k <= j; k++) {
                double term = (double)(i + 1) / (double)(k + 1) * get(b, &factor, j, k);
                sum += term;
                sizes += fabs(term);
            }
            assert_true(fabs(get(b, &host, i, j) - sum) <= 8 * b->kernels->unit * sizes);
        }
    nothing_around(b, &a);
    give(b, &room);
    give(b, &a);
    give(b, &l);
}

static void tiles_are_multiplied(void **state)
{
    (void)state;
    for (size_t p = 0; p < 2; p++) {
        bed b;
        begin(&b, precisions[p]);
        multiply(&b, 33, 70);
        multiply(&b, 64, 64);
        end(&b);
    }
}

static void failures_are_told(void **state)
{
    static const struct {
        const char *call;
        int result;
        const char *label;
    } cases[] = {
        {"cuMemAlloc", FL_CUDA_ERROR_OUT_OF_MEMORY, "cuSOLVER"},
        {"cublasDgeam", FL_CUDA_ERROR_UNKNOWN, "cuBLAS"},
        {"cublasDtrsm", FL_CUDA_ERROR_UNKNOWN, "cuBLAS"},
        {"cublasDtrsmBatched", FL_CUDA_ERROR_UNKNOWN, "cuBLAS"},
        {"cublasDgemm", FL_CUDA_ERROR_UNKNOWN, "cuBLAS"},
        {"cublasDgemmStridedBatched", FL_CUDA_ERROR_UNKNOWN, "cuBLAS"},
    };
    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        filch_error error = FILCH_ERROR_INIT;
        bed b;
        begin(&b, &bench_kernels_double);
        filch_view l = take(&b, 300, 300), inverse = take(&b, 300, 300);
        fill_factor(&b, &l);
        fakecuda_fail(cases[k].call, 1, 1, cases[k].result, -1, false);
        int code = fl_vendor_invert(b.lane, &l, &inverse);
        assert_true(code < 0);
        assert_true(fl_vendor_explain(code, &error));
        assert_string_equal(error.label, cases[k].label);
        must(fl_vendor_invert(b.lane, &l, &inverse));
        must(bench_gpu_api(&b.gpu)->cuStreamSynchronize(b.stream));
        give(&b, &inverse);
        give(&b, &l);
        end(&b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(inverses_are_right),   cmocka_unit_test(large_inverses_are_right),
        cmocka_unit_test(precisions_change),    cmocka_unit_test(nothing_waits),
        cmocka_unit_test(tiles_are_multiplied), cmocka_unit_test(failures_are_told),
    };
    if (dlopen("libcublas.so.13", RTLD_NOW) == NULL)
        return 77;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
