/* SPDX-License-Identifier: Apache-2.0 */
/* `filch-bench micro panels` and `micro blocks` on the fake driver and cuBLAS. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>
#include <dlfcn.h>
#include <string.h>

#include "fakecuda.h"
#include "micro/micro.h"
#include "offload/gpu.h"

#define SMALL 256

static void nothing_is_left(void)
{
    assert_int_equal(fakecuda_live("memory"), 0);
    assert_int_equal(fakecuda_live("stream"), 0);
    assert_int_equal(fakecuda_live("context"), 0);
    assert_int_equal(fakecuda_violations(), 0);
}

static void both_ways_are_timed(void **state)
{
    micro_list list = {0};
    (void)state;
    fakecuda_reset();
    assert_true(fakecuda_configure("{\"fill\": false, \"devices\": [{}]}"));
    assert_int_equal(micro_panels_upto(NULL, &list, SMALL), 0);
    assert_int_equal(list.count, 5);
    for (size_t k = 0; k < list.count; k++)
        assert_true(list.figures[k].value > 0);
    assert_string_equal(list.figures[2].name, "256: inverted by blocks");
    nothing_is_left();
}

static void what_cannot_be_measured_is_said(void **state)
{
    static const char *const calls[] = {"cublasCreate", "cusolverDnDpotrf", "cublasDtrmm",
                                        "cublasDtrsmBatched"};
    micro_list list = {0};
    (void)state;
    fakecuda_reset();
    assert_true(fakecuda_configure("{\"devices\": []}"));
    assert_int_equal(micro_panels_upto(NULL, &list, SMALL), MICRO_ABSENT);
    assert_true(fakecuda_configure("{\"devices\": [{\"memory\": 1048576}]}"));
    assert_int_equal(micro_panels_upto(NULL, &list, SMALL), 1);
    nothing_is_left();
    assert_true(fakecuda_configure("{\"devices\": [{}]}"));
    for (size_t k = 0; k < sizeof calls / sizeof *calls; k++) {
        fakecuda_fail(calls[k], 1, 1, FL_CUDA_ERROR_UNKNOWN, -1, false);
        assert_int_equal(micro_panels_upto(NULL, &list, SMALL), 1);
        nothing_is_left();
    }
    assert_int_equal(list.count, 0);
}

static void steps_are_timed(void **state)
{
    static const char *const calls[] = {"cusolverDnCreate", "cusolverDnDgetrf", "cusolverDnDlaswp",
                                        "cublasDtrmm", "cusolverDnDgeqrf"};
    micro_list list = {0};
    (void)state;
    fakecuda_reset();
    assert_true(fakecuda_configure("{\"fill\": false, \"devices\": [{}]}"));
    assert_int_equal(micro_blocks_upto(NULL, &list, 600, SMALL), 0);
    assert_int_equal(list.count, 9);
    for (size_t k = 0; k < list.count; k++)
        assert_true(list.figures[k].value > 0);
    assert_string_equal(list.figures[2].name, "600 x 256: rows exchanged");
    nothing_is_left();
    for (size_t k = 0; k < sizeof calls / sizeof *calls; k++) {
        fakecuda_fail(calls[k], 1, 1, FL_CUDA_ERROR_UNKNOWN, -1, false);
        assert_int_equal(micro_blocks_upto(NULL, &list, 600, SMALL), 1);
        nothing_is_left();
    }
    assert_int_equal(list.count, 9);
}

/* Filch's kernels have no function on the fake driver, and are left out. */
static void panels_are_timed(void **state)
{
    static const struct {
        int (*time)(FILE *out, micro_list *list, size_t rows, size_t cols);
        const char *call;
    } cases[] = {{micro_lu_upto, "cusolverDnDgetrf"}, {micro_qr_upto, "cusolverDnDgeqrf"}};
    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        micro_list list = {0};
        fakecuda_reset();
        assert_true(fakecuda_configure("{\"devices\": []}"));
        assert_int_equal(cases[k].time(NULL, &list, 600, 32), MICRO_ABSENT);
        assert_true(fakecuda_configure("{\"fill\": false, \"devices\": [{}]}"));
        assert_int_equal(cases[k].time(NULL, &list, 600, 32), 0);
        assert_int_equal(list.count, 1);
        assert_true(list.figures[0].value > 0);
        assert_string_equal(list.figures[0].name, "600 x 32: cuSOLVER");
        fakecuda_fail(cases[k].call, 1, 1, FL_CUDA_ERROR_UNKNOWN, -1, false);
        assert_int_equal(cases[k].time(NULL, &list, 600, 32), 1);
        assert_int_equal(list.count, 1);
        nothing_is_left();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_ways_are_timed),
        cmocka_unit_test(what_cannot_be_measured_is_said),
        cmocka_unit_test(steps_are_timed),
        cmocka_unit_test(panels_are_timed),
    };
    if (dlopen("libcublas.so.13", RTLD_NOW) == NULL)
        return 77;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
