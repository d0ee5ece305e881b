/* SPDX-License-Identifier: Apache-2.0 */
/* Ranges that a profiler is told of, through a fake one; that nothing is loaded where none is
 * named; and the declarations beside NVIDIA's. */
#define _GNU_SOURCE
#include "fixture.h"

#include <pthread.h>
#include <stdio.h>

#include "fakenvtx/heard.h"
#include "observe/nvtx_abi.h"

#ifdef FL_HAVE_NVTX_H
#include <nvtx3/nvToolsExt.h>
#endif

static char warning[512];
static int warnings;

static void keep_warning(filch_log_level level, const char *text, void *user)
{
    (void)user;
    /* Others tell of cores that other processes pin, too. */
    if (level == FILCH_LOG_WARNING && strstr(text, VARIABLE) != NULL) {
        ++warnings;
        snprintf(warning, sizeof warning, "%s", text);
    }
}

static filch_runtime *start(const char *profiler)
{
    filch_runtime_desc config = FILCH_RUNTIME_DESC_INIT;
    filch_runtime *runtime = NULL;
    config.devices = "host:2";
    config.log = keep_warning;
    warnings = 0;
    if (profiler != NULL) {
        setenv(VARIABLE, profiler, 1);
    } else {
        unsetenv(VARIABLE);
    }
    assert_ok(filch_runtime_create(&config, NULL, &runtime));
    return runtime;
}

static void add(filch_graph *graph, filch_codelet *codelet, const char *label)
{
    filch_task_desc desc = FILCH_TASK_DESC_INIT;
    desc.codelet = codelet;
    desc.label = label;
    assert_ok(filch_graph_add(graph, &desc, NULL));
}

static filch_status run_labelled(filch_graph *graph, const char *label)
{
    filch_submit_desc submit = FILCH_SUBMIT_DESC_INIT;
    filch_job *job = NULL;
    submit.label = label;
    assert_ok(filch_graph_submit(graph, &submit, &job));
    filch_status status = filch_job_wait(job, -1);
    assert_ok(filch_job_release(job));
    return status;
}

/* Runs a job of one task, and ends the runtime. */
static void run_one(filch_runtime *runtime)
{
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    add(graph, fixture_codelet(runtime, "nothing", fixture_nothing, 0), NULL);
    assert_ok(fixture_run(graph));
    assert_ok(filch_runtime_destroy(runtime));
}

/* --- Before a profiler is attached: it stays for the process --- */

static void test_no_variable(void **state)
{
    (void)state;
    run_one(start(NULL));
    assert_int_equal(warnings, 0);
    run_one(start(""));
    assert_int_equal(warnings, 0);
    assert_false(is_loaded(FL_NVTX_WHOLE));
}

static void test_unusable(void **state)
{
    (void)state;
    static const struct {
        const char *path, *why;
    } libraries[] = {{"/nowhere/libprofiler.so", "cannot open shared object file"},
                     {FL_NVTX_MUTE, "it has no InitializeInjectionNvtx2"},
                     {FL_NVTX_REFUSES, "its InitializeInjectionNvtx2 returned 0"}};
    for (size_t i = 0; i < sizeof libraries / sizeof *libraries; ++i) {
        run_one(start(libraries[i].path));
        assert_int_equal(warnings, 1);
        assert_non_null(strstr(warning, "NVTX_INJECTION64_PATH is "));
        assert_non_null(strstr(warning, libraries[i].path));
        assert_non_null(strstr(warning, libraries[i].why));
        assert_false(is_loaded(libraries[i].path));
    }
}

/* --- With a profiler --- */

static void test_tasks_and_jobs(void **state)
{
    (void)state;
    filch_runtime *runtime = start(FL_NVTX_WHOLE);
    assert_int_equal(warnings, 0);
    forget();
    filch_codelet *codelet = fixture_codelet(runtime, "step", fixture_nothing, 0);
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    static const char *const labels[] = {"corner 0", "corner 1", "corner 2", ""};
    for (int i = 0; i < 100; ++i) {
        add(graph, codelet, i < 4 ? labels[i] : NULL);
    }
    assert_ok(run_labelled(graph, "assemble"));
    hear();
    assert_balanced();
    assert_int_equal(count_of(FAKE_PUSH, NULL), 100);
    assert_int_equal(count_of(FAKE_PUSH, "step"), 97);
    assert_int_equal(count_of(FAKE_PUSH, "corner 1"), 1);
    assert_int_equal(count_of(FAKE_START, NULL), 1);
    /* The job's range is around all of its tasks'. */
    assert_string_equal(events[0].name, "job 1: assemble");
    assert_int_equal(events[0].kind, FAKE_START);
    assert_int_equal(end_of(0), event_count - 1);
    forget();
    assert_ok(fixture_run(graph));
    hear();
    assert_balanced();
    assert_int_equal(count_of(FAKE_PUSH, NULL), 100);
    assert_string_equal(events[0].name, "job 2: graph");
    assert_ok(filch_runtime_destroy(runtime));
}

static void test_attached_once(void **state)
{
    (void)state;
    int entries = 0, domains = 0;
    run_one(start(FL_NVTX_WHOLE));
    run_one(start(FL_NVTX_REFUSES)); /* attached is who was attached */
    assert_int_equal(warnings, 0);
    FAKE_CALL(fake_nvtx_counts_fn, "fake_nvtx_counts")(&entries, &domains);
    assert_int_equal(entries, 1);
    assert_int_equal(domains, 1);
    forget();
    run_one(start(NULL));
    hear();
    assert_int_equal(event_count, 0);
}

/* A task that waits for a job of its own has that job's tasks within its range, if its worker runs
 * them. */
static int wait_inside(const filch_call *call)
{
    filch_graph *inner = fixture_graph(call->runtime, FILCH_GRAPH_CLOSED);
    filch_codelet *codelet = call->user;
    add(inner, codelet, "inner");
    filch_status status = run_labelled(inner, "nested");
    return status != FILCH_OK || filch_graph_destroy(inner) != FILCH_OK;
}

static void test_nested(void **state)
{
    (void)state;
    setenv(VARIABLE, FL_NVTX_WHOLE, 1);
    filch_runtime *runtime = fixture_runtime("host:1", FILCH_DRIVE_DEFAULT, NULL);
    filch_codelet_desc desc = FILCH_CODELET_DESC_INIT;
    filch_codelet *outer = NULL;
    desc.name = "outer";
    desc.host = wait_inside;
    desc.user = fixture_codelet(runtime, "leaf", fixture_nothing, 0);
    assert_ok(filch_codelet_create(runtime, &desc, &outer));
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    add(graph, outer, NULL);
    forget();
    assert_ok(fixture_run(graph));
    assert_ok(filch_runtime_destroy(runtime));
    hear();
    assert_balanced();
    size_t at = first_of(FAKE_PUSH, "outer"), inner = first_of(FAKE_PUSH, "inner");
    assert_int_equal(events[at].depth, 0);
    assert_int_equal(events[inner].depth, 1);
    assert_true(at < inner && end_of(inner) < end_of(at));
    assert_int_equal(events[at].thread, events[inner].thread);
    assert_string_equal(events[first_of(FAKE_START, "job 2: nested")].domain, "filch");
}

static filch_pending late;
static _Atomic int is_late;

static int pend(const filch_call *call)
{
    if (filch_call_pend(call, &late) != FILCH_OK) {
        return 1;
    }
    is_late = 1;
    return FILCH_PENDING;
}

/* A pending task's range ends with its function, its job's with the task. */
static void test_pending(void **state)
{
    (void)state;
    filch_runtime *runtime = start(FL_NVTX_WHOLE);
    filch_codelet_desc desc = FILCH_CODELET_DESC_INIT;
    filch_codelet *codelet = NULL;
    filch_job *job = NULL;
    desc.name = "await";
    desc.host = pend;
    desc.flags = FILCH_CODELET_MAY_PEND;
    assert_ok(filch_codelet_create(runtime, &desc, &codelet));
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    add(graph, codelet, NULL);
    is_late = 0;
    forget();
    assert_ok(filch_graph_submit(graph, NULL, &job));
    assert_true(fixture_await(&is_late, 1));
    hear();
    assert_int_equal(count_of(FAKE_END, NULL), 0);
    assert_ok(filch_pending_end(late, 0, NULL));
    assert_ok(filch_job_wait(job, -1));
    assert_ok(filch_job_release(job));
    assert_ok(filch_runtime_destroy(runtime));
    hear();
    assert_balanced();
    assert_int_equal(count_of(FAKE_PUSH, "await"), 1);
    assert_int_equal(count_of(FAKE_END, "job 1: graph"), 1);
}

static int refuse(const filch_call *call)
{
    (void)call;
    return 7;
}

/* Jobs that fail, leave tasks out or have none end their ranges, too. */
static void test_ends(void **state)
{
    (void)state;
    filch_runtime *runtime = start(FL_NVTX_WHOLE);
    filch_codelet *failing = fixture_codelet(runtime, "fail", refuse, 0);
    double cell = 0;
    filch_data_desc desc = FILCH_DATA_DESC_INIT;
    filch_data *data = NULL;
    desc.ptr = &cell;
    desc.element = sizeof cell;
    desc.rows = 1;
    desc.flags = FILCH_DATA_MANAGED;
    assert_ok(filch_data_create(runtime, &desc, &data));
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    filch_graph *empty = fixture_graph(runtime, FILCH_GRAPH_OPEN);
    filch_job *job = NULL;
    forget();
    for (int i = 0; i < 3; ++i) {
        fixture_add(graph, failing, NULL,
                    (filch_access[]){fixture_access(data, 0, FILCH_READWRITE)}, 1);
    }
    assert_status(fixture_run(graph), FILCH_TASK_FAILED);
    assert_ok(filch_graph_submit(empty, NULL, &job));
    assert_ok(filch_graph_close(empty));
    assert_ok(filch_job_wait(job, -1));
    assert_ok(filch_job_release(job));
    assert_ok(filch_data_broadcast(data, NULL, NULL, &job));
    assert_ok(filch_job_wait(job, -1));
    assert_ok(filch_job_release(job));
    assert_ok(filch_runtime_destroy(runtime));
    hear();
    assert_balanced();
    assert_int_equal(count_of(FAKE_PUSH, NULL), 1);
    assert_int_equal(count_of(FAKE_START, NULL), 3);
    assert_int_equal(count_of(FAKE_END, "job 3: broadcast"), 1);
}

/* A batch: a range a chunk, named after the codelet. A repetition: a range a run. */
static void test_batch_and_runs(void **state)
{
    (void)state;
    filch_runtime *runtime = start(FL_NVTX_WHOLE);
    filch_batch_desc batch = FILCH_BATCH_DESC_INIT;
    filch_repeat_desc repeat = FILCH_REPEAT_DESC_INIT;
    filch_job *job = NULL;
    batch.codelet = fixture_codelet(runtime, "sweep", fixture_nothing, 0);
    batch.n = 1000;
    forget();
    assert_ok(filch_batch_submit(runtime, &batch, NULL, &job));
    assert_ok(filch_job_wait(job, -1));
    assert_ok(filch_job_release(job));
    hear();
    assert_balanced();
    assert_true(count_of(FAKE_PUSH, "sweep") >= 1);
    assert_int_equal(count_of(FAKE_PUSH, "sweep"), count_of(FAKE_PUSH, NULL));
    assert_int_equal(count_of(FAKE_START, "job 1: sweep"), 1);
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    add(graph, batch.codelet, "again");
    repeat.max_runs = 5;
    forget();
    assert_ok(filch_graph_repeat(graph, &repeat, NULL, &job));
    assert_ok(filch_job_wait(job, -1));
    assert_ok(filch_job_release(job));
    assert_ok(filch_runtime_destroy(runtime));
    hear();
    assert_balanced();
    assert_int_equal(count_of(FAKE_PUSH, "again"), 5);
    assert_int_equal(count_of(FAKE_START, NULL), 5);
}

/* A profiler may take its functions away at any time. */
static void test_functions_gone(void **state)
{
    (void)state;
    forget();
    FAKE_CALL(fake_nvtx_listen_fn, "fake_nvtx_listen")(0);
    run_one(start(FL_NVTX_WHOLE));
    FAKE_CALL(fake_nvtx_listen_fn, "fake_nvtx_listen")(1);
    hear();
    assert_int_equal(event_count, 0);
}

/* --- NVIDIA's headers --- */

#ifdef FL_HAVE_NVTX_H

#define SAME(own, member, theirs, other)                                                 \
    _Static_assert(offsetof(own, member) == offsetof(theirs, other) &&                   \
                       sizeof(((own *)NULL)->member) == sizeof(((theirs *)NULL)->other), \
                   #other)

SAME(fl_nvtx_attributes, version, nvtxEventAttributes_t, version);
SAME(fl_nvtx_attributes, size, nvtxEventAttributes_t, size);
SAME(fl_nvtx_attributes, category, nvtxEventAttributes_t, category);
SAME(fl_nvtx_attributes, color_type, nvtxEventAttributes_t, colorType);
SAME(fl_nvtx_attributes, color, nvtxEventAttributes_t, color);
SAME(fl_nvtx_attributes, payload_type, nvtxEventAttributes_t, payloadType);
SAME(fl_nvtx_attributes, payload, nvtxEventAttributes_t, payload);
SAME(fl_nvtx_attributes, message_type, nvtxEventAttributes_t, messageType);
SAME(fl_nvtx_attributes, message, nvtxEventAttributes_t, message);
_Static_assert(sizeof(fl_nvtx_attributes) == sizeof(nvtxEventAttributes_t), "attributes");
_Static_assert(FL_NVTX_VERSION == NVTX_VERSION, "version");
_Static_assert(FL_NVTX_MESSAGE_TEXT == NVTX_MESSAGE_TYPE_ASCII, "message");
SAME(fl_nvtx_callbacks, size, NvtxExportTableCallbacks, struct_size);
SAME(fl_nvtx_callbacks, get_table, NvtxExportTableCallbacks, GetModuleFunctionTable);
SAME(fl_nvtx_version, version, NvtxExportTableVersionInfo, version);
SAME(fl_nvtx_version, set_tool_version, NvtxExportTableVersionInfo, SetInjectionNvtxVersion);
_Static_assert((int)FL_NVTX_RECORD_CALLBACKS == (int)NVTX_ETID_CALLBACKS &&
                   (int)FL_NVTX_RECORD_VERSION == (int)NVTX_ETID_VERSIONINFO,
               "records");
_Static_assert((int)FL_NVTX_TABLE_CORE2 == (int)NVTX_CB_MODULE_CORE2 &&
                   (int)FL_NVTX_TABLES == (int)NVTX_CB_MODULE_SIZE,
               "tables");
_Static_assert((int)FL_NVTX_RANGE_START == (int)NVTX_CBID_CORE2_DomainRangeStartEx &&
                   (int)FL_NVTX_RANGE_END == (int)NVTX_CBID_CORE2_DomainRangeEnd &&
                   (int)FL_NVTX_RANGE_PUSH == (int)NVTX_CBID_CORE2_DomainRangePushEx &&
                   (int)FL_NVTX_RANGE_POP == (int)NVTX_CBID_CORE2_DomainRangePop &&
                   (int)FL_NVTX_DOMAIN_CREATE == (int)NVTX_CBID_CORE2_DomainCreateA,
               "functions");

static void test_headers(void **state)
{
    (void)state;
    static const unsigned own[] = FL_NVTX_LENGTHS;
    static const unsigned theirs[] = {0,
                                      NVTX_CBID_CORE_SIZE,
                                      NVTX_CBID_CUDA_SIZE,
                                      NVTX_CBID_OPENCL_SIZE,
                                      NVTX_CBID_CUDART_SIZE,
                                      NVTX_CBID_CORE2_SIZE,
                                      NVTX_CBID_SYNC_SIZE};
    assert_memory_equal(own, theirs, sizeof theirs);
    assert_int_equal(sizeof own, sizeof theirs);
    /* The fake is a profiler for a program that uses the headers. */
    setenv(VARIABLE, FL_NVTX_WHOLE, 1);
    forget();
    nvtxDomainHandle_t domain = nvtxDomainCreateA("another");
    nvtxEventAttributes_t attributes = {.version = NVTX_VERSION,
                                        .size = NVTX_EVENT_ATTRIB_STRUCT_SIZE,
                                        .messageType = NVTX_MESSAGE_TYPE_ASCII,
                                        .message.ascii = "by hand"};
    assert_int_equal(nvtxDomainRangePushEx(domain, &attributes), 0);
    assert_int_equal(nvtxDomainRangePop(domain), 0);
    nvtxDomainRangeEnd(domain, nvtxDomainRangeStartEx(domain, &attributes));
    hear();
    assert_int_equal(event_count, 4);
    for (size_t i = 0; i < event_count; ++i) {
        assert_string_equal(events[i].domain, "another");
        assert_string_equal(events[i].name, "by hand");
    }
}

#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_variable),    cmocka_unit_test(test_unusable),
        cmocka_unit_test(test_tasks_and_jobs), cmocka_unit_test(test_attached_once),
        cmocka_unit_test(test_nested),         cmocka_unit_test(test_pending),
        cmocka_unit_test(test_ends),           cmocka_unit_test(test_batch_and_runs),
        cmocka_unit_test(test_functions_gone),
#ifdef FL_HAVE_NVTX_H
        cmocka_unit_test(test_headers),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
