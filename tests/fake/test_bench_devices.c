/* SPDX-License-Identifier: Apache-2.0 */
/* What `filch-bench devices` says of GPUs, of how they are joined, and of what is left out. */
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

/* The document of one run. */
static json_t *run(const char *config, const char *devices, bool measure)
{
    char path[] = "/tmp/filch-devices-XXXXXX", option[sizeof path + 8];
    int file = mkstemp(path);
    assert_true(file >= 0);
    assert_int_equal(close(file), 0);
    snprintf(option, sizeof option, "--json=%s", path);
    char *words[] = {
        "devices", option, "--devices", (char *)(uintptr_t)devices, measure ? "--measure" : NULL,
        NULL};
    assert_true(fakecuda_configure(config));
    assert_int_equal(bench_devices_main(measure ? 5 : 4, words), BENCH_EXIT_OK);
    json_error_t error;
    json_t *document = json_load_file(path, 0, &error);
    assert_non_null(document);
    unlink(path);
    return document;
}

static json_t *at(const json_t *document, const char *list, size_t index)
{
    json_t *item = json_array_get(json_object_get(document, list), index);
    assert_non_null(item);
    return item;
}

static const char *text(const json_t *item, const char *key)
{
    const char *value = json_string_value(json_object_get(item, key));
    assert_non_null(value);
    return value;
}

static double number(const json_t *item, const char *key)
{
    json_t *value = json_object_get(item, key);
    assert_true(json_is_number(value));
    return json_number_value(value);
}

static void a_gpu_is_described(void **state)
{
    (void)state;
    json_t *document = run("{\"devices\": [{}]}", "cuda:0/88+24,host:1", false);
    const json_t *slice = at(document, "devices", 0), *other = at(document, "devices", 1);
    assert_string_equal(text(slice, "name"), "cuda:0/0");
    assert_int_equal(number(slice, "team"), 88);
    assert_int_equal(number(slice, "multiprocessors"), 132);
    assert_int_equal(number(slice, "capability"), 90);
    assert_true(number(slice, "budget") > 0 && number(slice, "bandwidth") > 0);
    assert_true(json_is_true(json_object_get(slice, "slice")));
    assert_true(number(slice, "score") > number(other, "score"));
    assert_null(json_object_get(at(document, "devices", 2), "pci")); /* the host */
    assert_int_equal(json_array_size(json_object_get(document, "links")), 0);
    assert_int_equal(json_array_size(json_object_get(document, "refused")), 0);
    json_decref(document);
}

static bool is_between(const json_t *link, const char *a, const char *b)
{
    const char *from = text(link, "from"), *to = text(link, "to");
    return (strcmp(from, a) == 0 && strcmp(to, b) == 0) ||
           (strcmp(from, b) == 0 && strcmp(to, a) == 0);
}

static void links_go_both_ways(void **state)
{
    (void)state;
    json_t *document = run("{\"devices\": [{\"count\": 3}], \"links\": [{\"from\": 0, \"to\": 1, "
                           "\"peer\": false}, {\"from\": 1, \"to\": 2, \"rank\": 3}]}",
                           "cuda", true);
    const json_t *links = json_object_get(document, "links");
    assert_int_equal(json_array_size(links), 3 * 2 + 3 * 2); /* host and back, pairs */
    assert_string_equal(text(at(document, "links", 0), "from"), "host");
    assert_string_equal(text(at(document, "links", 1), "from"), "cuda:0");
    for (size_t i = 0; i < json_array_size(links); i++) {
        const json_t *link = json_array_get(links, i);
        assert_true(number(link, "bytes_per_s") > 0);
        assert_string_not_equal(text(link, "from"), text(link, "to"));
        bool is_far = is_between(link, "cuda:0", "cuda:1");
        assert_true(json_is_true(json_object_get(link, "access")) == !is_far);
        bool is_slow = is_between(link, "cuda:1", "cuda:2");
        assert_true(number(link, "rank") == (is_slow ? 3 : 0));
    }
    json_decref(document);
    document = run("{\"devices\": [{\"count\": 2}]}", "cuda", false);
    assert_int_equal(json_array_size(json_object_get(document, "links")), 2);
    assert_true(number(at(document, "links", 0), "bytes_per_s") == 0);
    json_decref(document);
}

/* One GPU that fails, and no compiler: both are said, and the other GPU is there. */
static void what_is_missing_is_said(void **state)
{
    (void)state;
    assert_int_equal(setenv("FILCH_NVRTC", "/nonexistent/libnvrtc.so", 1), 0);
    json_t *document = run("{\"devices\": [{\"count\": 2}], \"failures\": [{\"call\": "
                           "\"cuDevicePrimaryCtxRetain\", \"device\": 0, \"result\": 2, "
                           "\"count\": 1000}]}",
                           "cuda", false);
    assert_int_equal(unsetenv("FILCH_NVRTC"), 0);
    assert_int_equal(json_array_size(json_object_get(document, "devices")), 1);
    assert_string_equal(text(at(document, "devices", 0), "name"), "cuda:1");
    assert_string_equal(text(at(document, "refused", 0), "name"), "cuda:0");
    assert_true(strlen(text(at(document, "refused", 0), "reason")) > 10);
    const json_t *missing = json_object_get(document, "missing");
    const json_t *last = json_array_get(missing, json_array_size(missing) - 1);
    assert_string_equal(text(last, "backend"), "nvrtc");
    assert_non_null(strstr(text(last, "reason"), "/nonexistent/libnvrtc.so"));
    json_decref(document);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_gpu_is_described),
        cmocka_unit_test(links_go_both_ways),
        cmocka_unit_test(what_is_missing_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
