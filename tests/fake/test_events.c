/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs that wait for the host's CUDA events and signal them, on the fake driver. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fake.h"
#include "jobs.h"

#define DEVICES 2

/* The host's own use of the GPUs. */
typedef struct side {
    CUcontext context;
    CUstream stream;
    CUevent event;
    _Atomic int is_let; /* what stands before the event may end, */
    int code;           /* with this */
} side;

static side sides[DEVICES];

static void must(CUresult result)
{
    assert_int_equal(result, FL_CUDA_SUCCESS);
}

static void nap(void)
{
    const struct timespec time = {0, 1000000};
    (void)nanosleep(&time, NULL);
}

static int wait_to_be_let(void *data)
{
    side *s = *(side **)data;
    while (atomic_load(&s->is_let) == 0)
        nap();
    return s->code;
}

static void enter(const side *s)
{
    must(cuCtxPushCurrent_v2(s->context));
}

static void leave(void)
{
    CUcontext top;
    must(cuCtxPopCurrent_v2(&top));
}

/* The host's own, beside a runtime that is there. */
static void sides_open(void)
{
    for (int d = 0; d < DEVICES; d++) {
        side *s = &sides[d];
        must(cuDevicePrimaryCtxRetain(&s->context, d));
        enter(s);
        must(cuStreamCreate(&s->stream, FL_CU_STREAM_NON_BLOCKING));
        must(cuEventCreate(&s->event, 0));
        leave();
        atomic_store(&s->is_let, 0);
        s->code = 0;
    }
}

static void sides_close(void)
{
    for (int d = 0; d < DEVICES; d++) {
        side *s = &sides[d];
        enter(s);
        (void)cuStreamSynchronize(s->stream);
        (void)cuEventDestroy_v2(s->event);
        (void)cuStreamDestroy_v2(s->stream);
        leave();
        must(cuDevicePrimaryCtxRelease_v2(d));
    }
}

/* Something that lasts, and the event behind it. */
static void busy(side *s)
{
    enter(s);
    assert_int_equal(fakecuda_enqueue_copy(s->stream, wait_to_be_let, &s, sizeof(side *)), 0);
    must(cuEventRecord(s->event, s->stream));
    leave();
}

static void let(side *s)
{
    atomic_store(&s->is_let, 1);
}

static filch_submit_desc waiting(void *const *events, uint32_t count)
{
    filch_submit_desc how = FILCH_SUBMIT_DESC_INIT;
    how.cuda_waits = events;
    how.cuda_wait_count = count;
    how.label = "waiter";
    return how;
}

static filch_error last_error(void)
{
    filch_error error = FILCH_ERROR_INIT;
    assert_ok(filch_runtime_error(runtime, &error));
    return error;
}

/* Looks for a while, as whoever drives the workers. */
static void expect_waiting(filch_job *job, filch_drive drive)
{
    for (int i = 0; i < 10; i++) {
        if (drive == FILCH_DRIVE_POLL)
            assert_ok(filch_runtime_poll(runtime, 0, NULL));
        assert_int_equal(filch_job_status(job), FILCH_NOT_READY);
        nap();
    }
}

/* --- Tests --- */

static void a_job_starts_when_all_its_events_are_past(void **state)
{
    static const filch_drive drives[] = {FILCH_DRIVE_THREADS, FILCH_DRIVE_POLL};
    (void)state;
    for (int k = 0; k < 4; k++) {
        filch_drive drive = drives[k % 2];
        /* The second GPU need not be the runtime's. */
        start_driven(k < 2 ? "cuda:0,host:1" : "cuda:0,cuda:1", "2", NULL, drive);
        sides_open();
        filch_codelet *copies = on_gpu("copy");
        filch_data *from = handle(x), *mid = handle(y), *to = handle(z);
        filch_graph *first = graph(), *second = graph();
        add(first, copies, FILCH_WRITE, from, mid, NULL);
        add(second, copies, FILCH_WRITE, mid, to, NULL);
        void *const events[] = {sides[1].event, sides[0].event};
        filch_submit_desc how = waiting(events, 2);
        filch_job *waits = NULL;
        for (int round = 0; round < 3; round++) {
            set(x, (uint64_t)round * 10);
            set(y, 1);
            set(z, 2);
            for (int d = 0; d < DEVICES; d++) {
                atomic_store(&sides[d].is_let, 0);
                busy(&sides[d]);
            }
            assert_ok(filch_graph_submit(first, &how, &waits));
            filch_job *behind = submit(second); /* for its handle */
            expect_waiting(waits, drive);
            let(&sides[round % 2]);
            expect_waiting(waits, drive);
            expect_waiting(behind, drive);
            expect(y, 1);
            let(&sides[1 - round % 2]);
            finish(behind, FILCH_OK);
            finish(waits, FILCH_OK);
            expect(z, (uint64_t)round * 10);
        }
        sides_close();
        stop();
    }
}

/* Batches too, and what has nothing to run. */
static void batches_and_empty_jobs_wait(void **state)
{
    filch_batch_desc desc = FILCH_BATCH_DESC_INIT;
    filch_job *jobs[3];
    (void)state;
    start("cuda:0", "2", NULL);
    sides_open();
    void *const events[] = {sides[0].event};
    const filch_submit_desc how = waiting(events, 1);
    const filch_batch_access access = {
        .data = handle(x), .mode = FILCH_READWRITE, .map = FILCH_MAP_AFFINE, .scale = 1};
    fakecuda_register_filch("bump", bump, 1, true, 0);
    desc.codelet = on_gpu("bump");
    desc.n = N;
    desc.accesses = &access;
    desc.access_count = 1;
    set(x, 5);
    busy(&sides[0]);
    assert_ok(filch_batch_submit(runtime, &desc, &how, &jobs[0]));
    desc.n = 0;
    assert_ok(filch_batch_submit(runtime, &desc, &how, &jobs[1]));
    assert_ok(filch_graph_submit(graph(), &how, &jobs[2]));
    for (int k = 0; k < 3; k++)
        expect_waiting(jobs[k], FILCH_DRIVE_THREADS);
    expect(x, 5);
    let(&sides[0]);
    for (int k = 0; k < 3; k++)
        finish(jobs[k], FILCH_OK);
    expect(x, 6);
    sides_close();
    stop();
}

static void what_is_past_is_not_waited_for(void **state)
{
    filch_job *job = NULL;
    (void)state;
    start("cuda:0", "2", NULL);
    sides_open();
    void *const events[] = {sides[0].event, sides[1].event}; /* the second never recorded */
    filch_submit_desc how = waiting(events, 2);
    let(&sides[0]);
    busy(&sides[0]);
    must(cuEventSynchronize(sides[0].event));
    assert_ok(filch_graph_submit(graph(), &how, &job));
    assert_int_equal(filch_job_status(job), FILCH_OK); /* empty: over in the call */
    assert_ok(filch_job_release(job));
    sides_close();
    stop();
}

typedef struct told {
    _Atomic int calls;
    _Atomic filch_status status;
} told;

static void tell(filch_job *job, filch_status status, void *user)
{
    told *t = user;
    (void)job;
    atomic_store(&t->status, status);
    atomic_fetch_add(&t->calls, 1);
}

/* The event is not past: who cancels, or ends the runtime, does not wait for it. It is of another
 * GPU: a driver that gives back a GPU's modules waits for all that runs there, the host's too. */
static void a_cancelled_job_waits_no_more(void **state)
{
    (void)state;
    for (int aborts = 0; aborts < 2; aborts++) {
        told t = {0, FILCH_OK}, empty = {0, FILCH_OK};
        filch_job *job = NULL;
        start("cuda:0", "2", NULL);
        sides_open();
        void *const events[] = {sides[1].event};
        filch_submit_desc how = waiting(events, 1);
        filch_graph *copying = graph();
        add(copying, on_gpu("copy"), FILCH_WRITE, handle(x), handle(y), NULL);
        set(x, 3);
        set(y, 1);
        busy(&sides[1]);
        how.on_complete = tell;
        how.user = &empty;
        assert_ok(filch_graph_submit(graph(), &how, NULL));
        how.user = &t;
        assert_ok(filch_graph_submit(copying, &how, &job));
        assert_int_equal(filch_runtime_destroy(runtime), FILCH_BUSY);
        if (aborts) {
            assert_ok(filch_runtime_abort(runtime));
            assert_int_equal(atomic_load(&empty.status), FILCH_CANCELLED);
            assert_int_equal(atomic_load(&empty.calls), 1);
        } else {
            assert_ok(filch_job_cancel(job));
            finish(job, FILCH_CANCELLED);
            let(&sides[1]);
            assert_ok(filch_runtime_drain(runtime, SOON));
            assert_int_equal(atomic_load(&empty.status), FILCH_OK);
            stop();
        }
        assert_int_equal(atomic_load(&t.calls), 1);
        assert_int_equal(atomic_load(&t.status), FILCH_CANCELLED);
        expect(y, 1);
        let(&sides[1]);
        sides_close();
        assert_int_equal(fakecuda_live("stream"), 0);
        assert_int_equal(fakecuda_violations(), 0);
    }
}

/* Runs of one graph, in line: each waits for its own events, and for the run before. */
static void runs_in_line_wait_for_events(void **state)
{
    told t = {0, FILCH_OK};
    filch_job *jobs[4];
    (void)state;
    start("cuda:0", "2", NULL);
    sides_open();
    void *const events[] = {sides[0].event, sides[1].event};
    filch_submit_desc first = waiting(events, 1), other = waiting(events + 1, 1);
    filch_graph *bumping = graph();
    add(bumping, on_gpu("bump"), FILCH_READWRITE, handle(x), NULL, NULL);
    set(x, 0);
    busy(&sides[0]);
    busy(&sides[1]);
    other.on_complete = tell;
    other.user = &t;
    assert_ok(filch_graph_submit(bumping, &first, &jobs[0]));
    jobs[1] = submit(bumping);
    assert_ok(filch_graph_submit(bumping, &other, &jobs[2]));
    jobs[3] = submit(bumping);
    assert_ok(filch_job_cancel(jobs[2])); /* neither its event nor the run before is past */
    finish(jobs[2], FILCH_CANCELLED);
    assert_int_equal(atomic_load(&t.calls), 1);
    expect_waiting(jobs[3], FILCH_DRIVE_THREADS);
    expect(x, 0);
    let(&sides[0]);
    finish(jobs[3], FILCH_OK);
    finish(jobs[1], FILCH_OK);
    finish(jobs[0], FILCH_OK);
    expect(x, 3);
    let(&sides[1]);
    sides_close();
    stop();
}

/* Many empty runs behind one that waits. None ends before it; the stack does not grow with them. */
static void empty_runs_in_line_wait_too(void **state)
{
    enum { MANY = 20000 };
    (void)state;
    told t = {0, FILCH_OK};
    filch_job *last = NULL;
    start("cuda:0", "2", NULL);
    sides_open();
    void *const events[] = {sides[0].event};
    filch_submit_desc how = waiting(events, 1);
    filch_graph *empty = graph();
    how.on_complete = tell;
    how.user = &t;
    busy(&sides[0]);
    assert_ok(filch_graph_submit(empty, &how, NULL));
    how.cuda_wait_count = 0;
    for (int k = 0; k < MANY; k++)
        assert_ok(filch_graph_submit(empty, &how, k == MANY - 1 ? &last : NULL));
    expect_waiting(last, FILCH_DRIVE_THREADS);
    assert_int_equal(atomic_load(&t.calls), 0);
    let(&sides[0]);
    finish(last, FILCH_OK);
    assert_ok(filch_runtime_drain(runtime, SOON));
    assert_int_equal(atomic_load(&t.calls), MANY + 1);
    assert_int_equal(atomic_load(&t.status), FILCH_OK);
    sides_close();
    stop();
}

/* The work before an event fails, on a GPU that is not the runtime's. */
static void an_event_that_fails_fails_the_job(void **state)
{
    filch_error error = FILCH_ERROR_INIT;
    filch_job *job = NULL;
    (void)state;
    start("cuda:0", "2", NULL);
    sides_open();
    void *const events[] = {sides[1].event};
    filch_submit_desc how = waiting(events, 1);
    filch_graph *copying = graph();
    add(copying, on_gpu("copy"), FILCH_WRITE, handle(x), handle(y), NULL);
    set(x, 3);
    set(y, 1);
    sides[1].code = 1;
    busy(&sides[1]);
    assert_ok(filch_graph_submit(copying, &how, &job));
    expect_waiting(job, FILCH_DRIVE_THREADS);
    let(&sides[1]);
    assert_int_equal(filch_job_wait(job, SOON), FILCH_TASK_FAILED);
    assert_ok(filch_job_error(job, &error));
    assert_int_equal(error.native_code, FL_CUDA_ERROR_LAUNCH_FAILED);
    assert_string_equal(error.label, "waiter");
    assert_string_equal(error.call, "cuEventQuery");
    expect(y, 1);
    assert_ok(filch_job_release(job));
    finish(submit(copying), FILCH_OK); /* the runtime's own GPU is well */
    expect(y, 3);
    sides_close();
    stop();
}

/* The GPU whose worker asks is lost meanwhile: what it asks for is found all the same. */
static void a_lost_gpu_is_no_obstacle(void **state)
{
    filch_job *job = NULL, *dies = NULL;
    (void)state;
    start("cuda:0,host:1", "2", NULL);
    sides_open();
    void *const events[] = {sides[1].event};
    filch_submit_desc how = waiting(events, 1);
    filch_graph *copying = graph(), *dying = graph();
    add(copying, on_host("copy", copy), FILCH_WRITE, handle(x), handle(y), NULL);
    add(dying, on_gpu("bump"), FILCH_READWRITE, handle(z), NULL, NULL);
    set(x, 3);
    set(y, 1);
    busy(&sides[1]);
    assert_ok(filch_graph_submit(copying, &how, &job));
    fakecuda_fail("kernel", 1, 1, FL_CUDA_ERROR_ILLEGAL_ADDRESS, 0, true);
    assert_ok(filch_graph_submit(dying, NULL, &dies));
    finish(dies, FILCH_TASK_FAILED);
    expect_waiting(job, FILCH_DRIVE_THREADS);
    let(&sides[1]);
    finish(job, FILCH_OK);
    expect(y, 3);
    sides_close();
    stop();
}

static void refused(const filch_submit_desc *how, filch_status status, const char *text)
{
    filch_batch_desc desc = FILCH_BATCH_DESC_INIT;
    static filch_graph *empty;
    filch_job *job = NULL;
    empty = graph();
    assert_int_equal(filch_graph_submit(empty, how, &job), status);
    assert_non_null(strstr(last_error().text, text));
    desc.codelet = on_host("late", late);
    assert_int_equal(filch_batch_submit(runtime, &desc, how, &job), status);
    assert_non_null(strstr(last_error().text, text));
    assert_null(job);
    assert_ok(filch_graph_submit(empty, NULL, &job)); /* as if nothing had been */
    finish(job, FILCH_OK);
    assert_ok(filch_graph_destroy(empty));
}

static void bad_events_are_refused(void **state)
{
    filch_graph_desc open = FILCH_GRAPH_DESC_INIT;
    filch_graph *graph_open = NULL;
    filch_job *job = NULL;
    CUevent dead;
    (void)state;
    start("cuda:0,host:1", "2", NULL);
    sides_open();
    enter(&sides[0]);
    must(cuEventCreate(&dead, 0));
    must(cuEventDestroy_v2(dead));
    leave();
    busy(&sides[0]);
    void *events[] = {sides[0].event, NULL};
    filch_submit_desc how = waiting(events, 2);
    refused(&how, FILCH_INVALID_ARGUMENT, "event 1 to wait for is null");
    events[1] = dead;
    fakecuda_quiet(true);
    refused(&how, FILCH_BACKEND, "CUDA_ERROR_INVALID_HANDLE");
    fakecuda_quiet(false);
    assert_string_equal(last_error().label, "waiter");
    assert_true(fakecuda_forgive() > 0);
    how.cuda_wait_count = 1025;
    refused(&how, FILCH_INVALID_ARGUMENT, "1025 events");
    how.cuda_waits = NULL;
    refused(&how, FILCH_INVALID_ARGUMENT, "cuda_waits is null");
    /* As the field was called before there were events. */
    how.size = offsetof(filch_submit_desc, cuda_waits);
    refused(&how, FILCH_INVALID_ARGUMENT, "cuda_waits is null");
    how.cuda_wait_count = 0;
    assert_ok(filch_graph_submit(graph(), &how, &job));
    finish(job, FILCH_OK);
    how = waiting(events, 1);
    open.kind = FILCH_GRAPH_OPEN;
    assert_ok(filch_graph_create(runtime, &open, &graph_open));
    assert_int_equal(filch_graph_submit(graph_open, &how, &job), FILCH_UNSUPPORTED);
    let(&sides[0]);
    sides_close();
    stop();
    start("host:1", "2", NULL);
    refused(&how, FILCH_UNSUPPORTED, "without a GPU");
    stop();
}

typedef struct heard {
    const side *side;
    CUevent begin;
    _Atomic CUresult result;
    float after_ms; /* the begin, at the record */
} heard;

static void hear(filch_job *job, filch_status status, void *user)
{
    heard *h = user;
    (void)job;
    (void)status;
    (void)cuCtxPushCurrent_v2(h->side->context);
    (void)cuEventSynchronize(h->side->event);
    atomic_store(&h->result, cuEventElapsedTime(&h->after_ms, h->begin, h->side->event));
    leave();
}

/* The event is recorded when the job has ended, whoever ends it, and before the callback. */
static void a_job_signals_its_end(void **state)
{
    (void)state;
    for (int k = 0; k < 3; k++) {
        start("host:1,cuda:0/88+24,cuda:1", "2", NULL);
        sides_open();
        side *s = &sides[k == 2];
        heard h = {.side = s, .after_ms = -1};
        filch_submit_desc how = FILCH_SUBMIT_DESC_INIT;
        filch_graph *holding = graph();
        filch_job *job = NULL;
        add(holding, k == 0 ? on_host("hold", hold) : on_gpu("hold"), FILCH_READ, handle(x), NULL,
            NULL);
        enter(s);
        must(cuEventCreate(&h.begin, 0));
        leave();
        how.cuda_signal = s->event;
        how.cuda_signal_device = k == 0 ? 0 : k == 1 ? 3 : 4;
        how.on_complete = hear;
        how.user = &h;
        atomic_store(&is_held, 1);
        assert_ok(filch_graph_submit(holding, &how, &job));
        await_holds(1);
        enter(s);
        must(cuEventRecord(h.begin, s->stream));
        must(cuStreamSynchronize(s->stream));
        leave();
        nap();
        atomic_store(&is_held, 0);
        finish(job, FILCH_OK);
        assert_int_equal(atomic_load(&h.result), FL_CUDA_SUCCESS);
        assert_true(h.after_ms > 0);
        enter(s);
        must(cuEventDestroy_v2(h.begin));
        leave();
        sides_close();
        stop();
    }
}

static void bad_signals_are_refused(void **state)
{
    (void)state;
    start("cuda:0,host:1", "2", NULL);
    sides_open();
    filch_submit_desc how = FILCH_SUBMIT_DESC_INIT;
    how.cuda_signal = sides[0].event;
    how.cuda_signal_device = 3;
    refused(&how, FILCH_BAD_INDEX, "there is no device 2");
    how.cuda_signal_device = 2;
    refused(&how, FILCH_UNSUPPORTED, "host:0 is no GPU");
    how.cuda_signal_device = 1;
    how.cuda_signal = sides[1].event;
    fakecuda_quiet(true);
    refused(&how, FILCH_BACKEND, "cuEventRecord");
    fakecuda_quiet(false);
    assert_true(fakecuda_forgive() > 0);
    sides_close();
    stop();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_job_starts_when_all_its_events_are_past),
        cmocka_unit_test(batches_and_empty_jobs_wait),
        cmocka_unit_test(what_is_past_is_not_waited_for),
        cmocka_unit_test(a_cancelled_job_waits_no_more),
        cmocka_unit_test(runs_in_line_wait_for_events),
        cmocka_unit_test(empty_runs_in_line_wait_too),
        cmocka_unit_test(an_event_that_fails_fails_the_job),
        cmocka_unit_test(a_lost_gpu_is_no_obstacle),
        cmocka_unit_test(bad_events_are_refused),
        cmocka_unit_test(a_job_signals_its_end),
        cmocka_unit_test(bad_signals_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
