/* SPDX-License-Identifier: Apache-2.0 */
/* States of host functions: one a device, open before the first call and closed after the last. */
#include "fixture.h"

#include <stdio.h>
#include <string.h>

#include "filch/pending.h"

#define DEVICES 3
#define TASKS 300
#define PIECES 64

typedef struct place {
    uint32_t device;
    _Atomic int calls, within; /* of host functions; at the same time */
    int opened, closed;
} place;

typedef struct owner {
    place places[DEVICES + 1];
    uint32_t fails_at; /* device */
    int opened;
    _Atomic int works, wrong;
} owner;

static fixture_memory memory;
static owner own;

static filch_runtime *begin(const char *devices)
{
    memset(&own, 0, sizeof own);
    own.fails_at = UINT32_MAX;
    fixture_memory_init(&memory);
    return fixture_runtime(devices, FILCH_DRIVE_THREADS, &memory);
}

static int open_state(filch_runtime *runtime, uint32_t device, void *user, void **state)
{
    owner *o = user;
    filch_device_info info = FILCH_DEVICE_INFO_INIT;
    if (device == o->fails_at) {
        return 77;
    }
    if (*state != NULL || device >= DEVICES ||
        filch_device_at(runtime, device, &info) != FILCH_OK || info.index != device) {
        return 1;
    }
    o->places[device].device = device;
    o->places[device].opened++;
    o->opened++;
    *state = &o->places[device];
    return 0;
}

static void close_state(uint32_t device, void *user, void *state)
{
    owner *o = user;
    if (state == &o->places[device] && o->places[device].within == 0) {
        o->places[device].closed++;
    }
}

static int use_state(const filch_call *call)
{
    owner *o = call->user;
    place *here = call->state;
    if (o != &own || here != &o->places[call->device] || here->opened != 1 || here->closed != 0) {
        return 1;
    }
    if (here->within++ != 0) {
        return 2;
    }
    here->calls++;
    here->within--;
    return 0;
}

static double count_work(const filch_call *call)
{
    own.works++;
    own.wrong += call->user != &own || call->state != NULL;
    return 1;
}

static filch_codelet_desc good(void)
{
    filch_codelet_desc desc = FILCH_CODELET_DESC_INIT;
    desc.name = "stateful";
    desc.host = use_state;
    desc.user = &own;
    desc.open = open_state;
    desc.close = close_state;
    return desc;
}

static filch_codelet *make(filch_runtime *runtime, const filch_codelet_desc *desc)
{
    filch_codelet *codelet = NULL;
    assert_ok(filch_codelet_create(runtime, desc, &codelet));
    return codelet;
}

static void expect_calls(int count, uint32_t devices)
{
    int calls = 0;
    for (uint32_t d = 0; d < devices; ++d) {
        assert_int_equal(own.places[d].opened, 1);
        assert_int_equal(own.places[d].closed, 1);
        calls += own.places[d].calls;
    }
    assert_int_equal(own.opened, devices);
    assert_int_equal(calls, count);
    assert_int_equal(own.wrong, 0);
    assert_int_equal(memory.bytes, 0);
}

static void run_tasks(filch_runtime *runtime, filch_codelet *codelet)
{
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    for (int i = 0; i < TASKS; ++i) {
        fixture_add(graph, codelet, NULL, NULL, 0);
    }
    assert_ok(fixture_run(graph));
    assert_ok(filch_graph_destroy(graph));
}

static void each_device_has_its_own(void **state)
{
    static const char *const devices[] = {"host:1", "host:3", "host:1x2"};
    static const uint32_t counts[] = {1, 3, 1};
    (void)state;
    for (size_t k = 0; k < sizeof devices / sizeof *devices; ++k) {
        filch_runtime *runtime = begin(devices[k]);
        filch_codelet_desc desc = good();
        desc.work = count_work;
        filch_codelet *codelet = make(runtime, &desc);
        assert_int_equal(own.opened, counts[k]);
        run_tasks(runtime, codelet);
        assert_true(own.works >= TASKS);
        assert_int_equal(own.places[0].closed, 0);
        assert_ok(filch_runtime_destroy(runtime));
        expect_calls(TASKS, counts[k]);
    }
}

static void batches_have_it_too(void **state)
{
    (void)state;
    filch_runtime *runtime = begin("host:2");
    filch_codelet_desc desc = good();
    filch_batch_desc batch = FILCH_BATCH_DESC_INIT;
    filch_job *job = NULL;
    batch.codelet = make(runtime, &desc);
    batch.n = PIECES;
    assert_ok(filch_batch_submit(runtime, &batch, NULL, &job));
    assert_ok(filch_job_wait(job, -1));
    assert_ok(filch_job_release(job));
    int calls = own.places[0].calls + own.places[1].calls;
    assert_true(calls > 0);
    assert_ok(filch_runtime_destroy(runtime));
    expect_calls(calls, 2);
}

static int pend(const filch_call *call)
{
    filch_pending pending;
    int code = use_state(call);
    if (code != 0 || filch_call_pend(call, &pending) != FILCH_OK) {
        return code != 0 ? code : 3;
    }
    return filch_pending_end(pending, 0, NULL) == FILCH_OK ? FILCH_PENDING : 4;
}

static void tasks_that_pend_have_it_too(void **state)
{
    (void)state;
    filch_runtime *runtime = begin("host:2");
    filch_codelet_desc desc = good();
    desc.host = pend;
    desc.flags = FILCH_CODELET_MAY_PEND;
    run_tasks(runtime, make(runtime, &desc));
    assert_ok(filch_runtime_destroy(runtime));
    expect_calls(TASKS, 2);
}

/* What was opened is closed, and the runtime goes on. */
static void a_failing_open_is_told(void **state)
{
    (void)state;
    filch_runtime *runtime = begin("host:3");
    filch_codelet_desc desc = good();
    filch_codelet *codelet = NULL;
    own.fails_at = 2;
    assert_status(filch_codelet_create(runtime, &desc, &codelet), FILCH_TASK_FAILED);
    assert_null(codelet);
    filch_error error = fixture_error(runtime);
    assert_int_equal(error.native_code, 77);
    assert_string_equal(error.device, "host:2");
    assert_string_equal(error.label, "stateful");
    assert_string_equal(error.call, "filch_codelet_create");
    for (int d = 0; d < 2; ++d) {
        assert_int_equal(own.places[d].closed, 1);
    }
    memset(&own, 0, sizeof own);
    own.fails_at = UINT32_MAX;
    run_tasks(runtime, make(runtime, &desc));
    assert_ok(filch_runtime_destroy(runtime));
    expect_calls(TASKS, 3);
}

static void contradictions_are_refused(void **state)
{
    (void)state;
    filch_runtime *runtime = begin("host:1");
    filch_codelet *codelet = NULL;
    filch_codelet_desc desc = good();
    desc.open = NULL;
    assert_status(filch_codelet_create(runtime, &desc, &codelet), FILCH_INVALID_ARGUMENT);
    desc = good();
    desc.close = NULL;
    (void)make(runtime, &desc);
    own.opened = 0;
    memory.fail_all = 1;
    desc = good();
    assert_status(filch_codelet_create(runtime, &desc, &codelet), FILCH_OUT_OF_MEMORY);
    memory.fail_all = 0;
    assert_int_equal(own.opened, 0);
    assert_ok(filch_runtime_destroy(runtime));
    assert_int_equal(own.places[0].closed, 0);
    assert_int_equal(memory.bytes, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_device_has_its_own),     cmocka_unit_test(batches_have_it_too),
        cmocka_unit_test(tasks_that_pend_have_it_too), cmocka_unit_test(a_failing_open_is_told),
        cmocka_unit_test(contradictions_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
