/* SPDX-License-Identifier: Apache-2.0 */
/* `filch-bench micro launch` on the fake driver. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>
#include <string.h>

#include "fakecuda.h"
#include "micro/micro.h"
#include "offload/gpu.h"

#define SMALL 32

static int run_nothing(void **params, const fakecuda_geometry *geometry)
{
    (void)params;
    (void)geometry;
    return 0;
}

static void know_kernels(void)
{
    static const char *const ways[] = {"", "shared_", "new_", "inside_", "early_"};
    static const char *const params[] = {"none", "pointer", "packed", "view", "three_views"};
    char name[MICRO_NAME];
    for (size_t w = 0; w < sizeof ways / sizeof *ways; w++)
        for (size_t p = 0; p < sizeof params / sizeof *params; p++) {
            snprintf(name, sizeof name, "%s%s", ways[w], params[p]);
            fakecuda_register(name, run_nothing, 0, NULL);
        }
}

static void nothing_is_left(void)
{
    assert_int_equal(fakecuda_live("stream"), 0);
    assert_int_equal(fakecuda_live("graph"), 0);
    assert_int_equal(fakecuda_live("exec"), 0);
    assert_int_equal(fakecuda_live("module"), 0);
    assert_int_equal(fakecuda_live("context"), 0);
    assert_int_equal(fakecuda_violations(), 0);
}

static bool has(const micro_list *list, const char *name)
{
    for (size_t k = 0; k < list->count; k++)
        if (strcmp(list->figures[k].name, name) == 0)
            return true;
    return false;
}

static void every_way_is_timed(void **state)
{
    micro_list list = {0};
    (void)state;
    fakecuda_reset();
    assert_true(fakecuda_configure("{\"devices\": [{}]}"));
    assert_int_equal(micro_launch_upto(NULL, &list, SMALL), 0);
    for (size_t k = 0; k < list.count; k++)
        assert_true(list.figures[k].value > 0);
    assert_true(has(&list, "stream, three views, early"));
    assert_true(has(&list, "chain of 32"));
    assert_true(has(&list, "batch of 32, early: the host"));
    assert_false(has(&list, "chain of 128"));
    /* 31 edges of the batch, and the launches of the streams. */
    assert_true(fakecuda_count("programmatic") > 31);
    nothing_is_left();
}

static void early_kernels_are_left_out_where_there_are_none(void **state)
{
    static const char *const configs[] = {"{\"driver\": 12020, \"devices\": [{}]}",
                                          "{\"devices\": [{\"arch\": \"8.0\"}]}"};
    (void)state;
    for (size_t k = 0; k < sizeof configs / sizeof *configs; k++) {
        micro_list list = {0};
        fakecuda_reset();
        assert_true(fakecuda_configure(configs[k]));
        assert_int_equal(micro_launch_upto(NULL, &list, SMALL), 0);
        assert_true(has(&list, "stream, three views"));
        assert_false(has(&list, "stream, three views, early"));
        assert_int_equal(fakecuda_count("programmatic"), 0);
        nothing_is_left();
    }
}

static void what_cannot_be_measured_is_said(void **state)
{
    static const char *const calls[] = {"cuStreamCreate", "cuModuleLoadDataEx", "cuLaunchKernelEx",
                                        "cuGraphLaunch"};
    micro_list list = {0};
    (void)state;
    fakecuda_reset();
    assert_true(fakecuda_configure("{\"devices\": []}"));
    assert_int_equal(micro_launch_upto(NULL, &list, SMALL), MICRO_ABSENT);
    assert_true(fakecuda_configure("{\"devices\": [{}]}"));
    for (size_t k = 0; k < sizeof calls / sizeof *calls; k++) {
        fakecuda_fail(calls[k], 1, 1, FL_CUDA_ERROR_UNKNOWN, -1, false);
        assert_int_equal(micro_launch_upto(NULL, &list, SMALL), 1);
        nothing_is_left();
    }
    assert_int_equal(list.count, 0);
}

static void a_graph_that_is_refused_is_left_out(void **state)
{
    micro_list list = {0};
    (void)state;
    fakecuda_reset();
    assert_true(fakecuda_configure("{\"devices\": [{}]}"));
    fakecuda_fail("cuGraphInstantiateWithFlags", 1, 1, FL_CUDA_ERROR_NOT_SUPPORTED, -1, false);
    assert_int_equal(micro_launch_upto(NULL, &list, SMALL), 0);
    assert_false(has(&list, "chain of 32"));
    assert_true(has(&list, "batch of 32"));
    nothing_is_left();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_way_is_timed),
        cmocka_unit_test(early_kernels_are_left_out_where_there_are_none),
        cmocka_unit_test(what_cannot_be_measured_is_said),
        cmocka_unit_test(a_graph_that_is_refused_is_left_out),
    };
    know_kernels();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
