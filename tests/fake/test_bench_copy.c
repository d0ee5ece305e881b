/* SPDX-License-Identifier: Apache-2.0 */
/* `filch-bench micro copy` on fake GPUs: what it moves, and that it is said where there is none. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#include "cli/cli.h"
#include "fakecuda.h"
#include "micro/micro.h"

#define SMALL ((size_t)64 << 10)

static void nothing_is_left(void)
{
    assert_int_equal(fakecuda_live("memory"), 0);
    assert_int_equal(fakecuda_live("pinned"), 0);
    assert_int_equal(fakecuda_live("stream"), 0);
    assert_int_equal(fakecuda_live("context"), 0);
    assert_int_equal(fakecuda_violations(), 0);
}

static double value(const micro_list *list, const char *name)
{
    for (size_t k = 0; k < list->count; k++)
        if (strcmp(list->figures[k].name, name) == 0)
            return list->figures[k].value;
    fail_msg("no figure '%s'", name);
    return 0;
}

static void tiles_go_both_ways(void **state)
{
    micro_list list = {0};
    (void)state;
    fakecuda_reset();
    assert_true(fakecuda_configure("{\"fill\": false, \"devices\": [{}]}"));
    assert_int_equal(micro_copy_upto(NULL, &list, SMALL), 0);
    assert_int_equal(list.count, 12); /* two ways, two kinds of memory, three figures */
    for (size_t k = 0; k < list.count; k++)
        assert_true(list.figures[k].value > 0);
    double ratio = value(&list, "64 KiB to GPU, pageable, filch over pinned driver");
    double filch = value(&list, "64 KiB to GPU, pageable, filch");
    assert_true(ratio == filch / value(&list, "64 KiB to GPU, pinned, driver"));
    (void)value(&list, "64 KiB from GPU, pinned, filch");
    nothing_is_left();
}

static void tiles_go_from_gpu_to_gpu(void **state)
{
    micro_list list = {0};
    (void)state;
    fakecuda_reset();
    assert_true(fakecuda_configure("{\"fill\": false, \"devices\": [{\"count\": 2}]}"));
    assert_int_equal(micro_copy_upto(NULL, &list, SMALL), 0);
    assert_int_equal(list.count, 15);
    assert_true(value(&list, "64 KiB from GPU to GPU, filch") > 0);
    nothing_is_left();
}

static void what_cannot_be_measured_is_said(void **state)
{
    micro_list list = {0};
    char *words[] = {"micro", "copy", NULL};
    (void)state;
    fakecuda_reset();
    assert_true(fakecuda_configure("{\"devices\": []}"));
    assert_int_equal(micro_copy_upto(NULL, &list, SMALL), MICRO_ABSENT);
    assert_int_equal(list.count, 0);
    assert_int_equal(bench_micro_main(2, words), BENCH_EXIT_ERROR);
    assert_true(fakecuda_configure("{\"devices\": [{\"memory\": 1048576}]}"));
    assert_int_equal(micro_copy_upto(NULL, &list, SMALL), 1);
    nothing_is_left();
}

static void the_document_has_the_figures(void **state)
{
    char path[] = "/tmp/filch-micro-XXXXXX", option[sizeof path + 8];
    micro_list empty = {0};
    (void)state;
    int file = mkstemp(path);
    assert_true(file >= 0);
    assert_int_equal(close(file), 0);
    snprintf(option, sizeof option, "--json=%s", path);
    char *words[] = {"micro", "range", option, NULL};
    assert_int_equal(bench_micro_main(3, words), BENCH_EXIT_OK);
    json_t *document = json_load_file(path, 0, NULL);
    const json_t *micros = json_object_get(document, "micros");
    assert_int_equal(json_array_size(micros), 1);
    const json_t *range = json_array_get(micros, 0);
    assert_string_equal(json_string_value(json_object_get(range, "name")), "range");
    const json_t *figure = json_array_get(json_object_get(range, "figures"), 0);
    assert_string_equal(json_string_value(json_object_get(figure, "name")), "range take");
    assert_string_equal(json_string_value(json_object_get(figure, "unit")), "ns");
    assert_true(json_real_value(json_object_get(figure, "value")) > 0);
    json_decref(document);
    unlink(path);
    /* More figures than there is room for are printed only. */
    for (int k = 0; k < MICRO_FIGURES_MAX + 2; k++)
        micro_report(NULL, &empty, "x", k, "");
    assert_int_equal(empty.count, MICRO_FIGURES_MAX);
    assert_int_equal(bench_micro_main(2, (char *[]){"micro", "nothing", NULL}), BENCH_EXIT_ERROR);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tiles_go_both_ways),
        cmocka_unit_test(tiles_go_from_gpu_to_gpu),
        cmocka_unit_test(what_cannot_be_measured_is_said),
        cmocka_unit_test(the_document_has_the_figures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
