/* SPDX-License-Identifier: Apache-2.0 */
#include "fixture.h"

#include <string.h>

#include "graph/task/codelet.h"

static fixture_memory memory;
static filch_runtime *runtime;

static int set_up(void **state)
{
    (void)state;
    fixture_memory_init(&memory);
    runtime = fixture_runtime("host:1", FILCH_DRIVE_POLL, &memory);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    assert_ok(filch_runtime_destroy(runtime));
    assert_int_equal(memory.bytes, 0);
    return 0;
}

static filch_codelet_desc good(void)
{
    filch_codelet_desc desc = FILCH_CODELET_DESC_INIT;
    desc.name = "axpy";
    desc.host = fixture_nothing;
    return desc;
}

static void refused(const filch_codelet_desc *desc)
{
    filch_codelet *codelet = (filch_codelet *)(void *)&memory;
    assert_status(filch_codelet_create(runtime, desc, &codelet), FILCH_INVALID_ARGUMENT);
    assert_ptr_equal(codelet, &memory);
    filch_error error = fixture_error(runtime);
    assert_int_equal(error.status, FILCH_INVALID_ARGUMENT);
    assert_string_equal(error.call, "filch_codelet_create");
}

static void bad_arguments_are_refused(void **state)
{
    (void)state;
    filch_codelet_desc desc = good();
    filch_codelet *codelet;
    assert_status(filch_codelet_create(NULL, &desc, &codelet), FILCH_INVALID_HANDLE);
    assert_status(filch_codelet_create(runtime, &desc, NULL), FILCH_INVALID_ARGUMENT);
    refused(NULL);
#define REFUSE(member, value)  \
    do {                       \
        desc = good();         \
        desc.member = (value); \
        refused(&desc);        \
    } while (0)
    REFUSE(size, 0);
    REFUSE(size, sizeof desc - 1);
    REFUSE(name, NULL);
    REFUSE(name, "");
    REFUSE(host, NULL);
    REFUSE(arg_size, 65536);
    REFUSE(arg_size, UINT32_MAX);
    REFUSE(flags, 4);
    REFUSE(flags, 0x80000001u);
}

static void what_is_given_is_kept(void **state)
{
    (void)state;
    char name[80];
    memset(name, 'n', sizeof name);
    name[79] = '\0';
    filch_codelet_desc desc = good();
    desc.name = name;
    desc.flags = FILCH_CODELET_RESTARTABLE;
    desc.arg_size = 65535;
    filch_codelet *codelet = NULL;
    assert_ok(filch_codelet_create(runtime, &desc, &codelet));
    memset(name, 'm', sizeof name - 1);
    assert_int_equal(strlen(codelet->name), 63);
    assert_int_equal(codelet->name[62], 'n');
    assert_int_equal(codelet->arg_size, 65535);
    assert_ptr_equal(codelet->host, fixture_nothing);
}

static unsigned char seen[65535];

static int keep_args(const filch_call *call)
{
    if ((uintptr_t)call->args % 16 != 0) {
        return 1;
    }
    memcpy(seen, call->args, sizeof seen);
    return 0;
}

static void the_largest_arguments_arrive(void **state)
{
    (void)state;
    static unsigned char args[65535];
    filch_codelet *codelet = fixture_codelet(runtime, "keep", keep_args, sizeof args);
    for (size_t i = 0; i < sizeof args; ++i) {
        args[i] = (unsigned char)(i * 7 + i / 256);
    }
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    fixture_add(graph, codelet, args, NULL, 0);
    memset(args, 0, sizeof args); /* copied when it was added */
    assert_ok(fixture_run(graph));
    for (size_t i = 0; i < sizeof args; ++i) {
        assert_int_equal(seen[i], (unsigned char)(i * 7 + i / 256));
    }
    assert_ok(filch_graph_destroy(graph));
}

static double work_calls;

static double count_work(const filch_call *call)
{
    ++work_calls;
    return call->args != NULL ? *(const double *)call->args : -1;
}

static void declared_work_is_counted(void **state)
{
    (void)state;
    filch_codelet_desc desc = good();
    filch_codelet *codelet = NULL;
    desc.work = count_work;
    desc.arg_size = sizeof(double);
    assert_ok(filch_codelet_create(runtime, &desc, &codelet));
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    static const double works[] = {1, 2.5, 0, -7, 0.0 / 1.0}; /* negative counts as 0 */
    for (size_t i = 0; i < 5; ++i) {
        fixture_add(graph, codelet, &works[i], NULL, 0);
    }
    assert_true(work_calls >= 5);
    filch_job *job = NULL;
    filch_job_info info = {.size = sizeof info};
    filch_device_stats stats;
    assert_ok(filch_graph_submit(graph, NULL, &job));
    assert_ok(filch_job_wait(job, -1));
    assert_ok(filch_job_stats(job, &info, &stats, 1));
    assert_true(stats.work == 3.5);
    assert_int_equal(stats.tiles, 5);
    assert_ok(filch_job_release(job));
    assert_ok(filch_graph_destroy(graph));
}

static void no_memory_leaves_nothing(void **state)
{
    (void)state;
    filch_codelet_desc desc = good();
    filch_codelet *codelet = NULL;
    int64_t bytes = memory.bytes;
    memory.fail_all = 1;
    assert_status(filch_codelet_create(runtime, &desc, &codelet), FILCH_OUT_OF_MEMORY);
    memory.fail_all = 0;
    assert_null(codelet);
    assert_int_equal(memory.bytes, bytes);
    assert_ok(filch_codelet_create(runtime, &desc, &codelet));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_arguments_are_refused),    cmocka_unit_test(what_is_given_is_kept),
        cmocka_unit_test(the_largest_arguments_arrive), cmocka_unit_test(declared_work_is_counted),
        cmocka_unit_test(no_memory_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
