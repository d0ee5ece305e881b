/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs and runs that share handles, devices and task memory: what one leaves behind must not be
 * taken for another's. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "fakecuda.h"
#include "filch/filch.h"

#define IMAGE "FAKECUBIN arch=90 entry=copy,sum,hold"
#define N 64
/* Nothing here takes as long. */
#define SOON 20.0

static filch_runtime *runtime;
static uint64_t x[N], y[N], z[N];
/* Of the functions below; what they are told and tell. */
static _Atomic int is_held, holds, fails, naps_us;

#define assert_ok(call) assert_int_equal((call), FILCH_OK)

/* --- What tasks do, on GPUs and on the host --- */

/* copy(from, to) */
static int copy(const filch_call *call)
{
    memcpy(call->views[1].ptr, call->views[0].ptr, call->views[0].rows * sizeof(uint64_t));
    return 0;
}

/* sum(a, b, to) */
static int sum(const filch_call *call)
{
    const uint64_t *a = call->views[0].ptr, *b = call->views[1].ptr;
    uint64_t *to = call->views[2].ptr;
    for (uint64_t i = 0; i < call->views[2].rows; i++)
        to[i] = a[i] + b[i];
    return 0;
}

/* hold(x): ends when it may. */
static int hold(const filch_call *call)
{
    (void)call;
    atomic_fetch_add(&holds, 1);
    while (atomic_load(&is_held) != 0) {
        const struct timespec nap = {0, 100000};
        (void)nanosleep(&nap, NULL);
    }
    return 0;
}

/* late(to): adds one, after a while. */
static int late(const filch_call *call)
{
    uint64_t *to = call->views[0].ptr;
    const struct timespec nap = {0, atomic_load(&naps_us) * 1000L};
    (void)nanosleep(&nap, NULL);
    for (uint64_t i = 0; i < call->views[0].rows; i++)
        to[i]++;
    return atomic_load(&fails);
}

/* --- Making things --- */

static void start(const char *devices, const char *lanes, const char *fake)
{
    filch_config config = FILCH_CONFIG_INIT;
    (void)setenv("FILCH_LANES", lanes, 1);
    fakecuda_reset();
    assert_true(fakecuda_configure(fake));
    fakecuda_register_filch("copy", copy, 2, false, 0);
    fakecuda_register_filch("sum", sum, 3, false, 0);
    fakecuda_register_filch("hold", hold, 1, false, 0);
    config.devices = devices;
    filch_error error = FILCH_ERROR_INIT;
    if (filch_runtime_create(&config, &error, &runtime) != FILCH_OK)
        fail_msg("%s", error.text);
    atomic_store(&holds, 0);
}

static void stop(void)
{
    assert_ok(filch_runtime_destroy(runtime));
    assert_int_equal(fakecuda_violations(), 0);
}

static filch_codelet *on_gpu(const char *entry)
{
    filch_cuda_desc cuda = FILCH_CUDA_DESC_INIT;
    filch_codelet_desc desc = FILCH_CODELET_DESC_INIT;
    filch_codelet *codelet = NULL;
    cuda.image = IMAGE;
    cuda.image_bytes = sizeof IMAGE;
    cuda.entry = entry;
    desc.name = entry;
    desc.cuda = &cuda;
    assert_ok(filch_codelet_create(runtime, &desc, &codelet));
    return codelet;
}

static filch_codelet *on_host(const char *name, filch_host_fn fn)
{
    filch_codelet_desc desc = FILCH_CODELET_DESC_INIT;
    filch_codelet *codelet = NULL;
    desc.name = name;
    desc.host = fn;
    assert_ok(filch_codelet_create(runtime, &desc, &codelet));
    return codelet;
}

static filch_data *handle(uint64_t *at)
{
    filch_data_desc desc = FILCH_DATA_DESC_INIT;
    filch_data *data = NULL;
    desc.ptr = at;
    desc.element = sizeof *at;
    desc.rows = N;
    assert_ok(filch_data_create(runtime, &desc, &data));
    return data;
}

static filch_graph *graph(void)
{
    filch_graph *made = NULL;
    assert_ok(filch_graph_create(runtime, NULL, &made));
    return made;
}

/* Up to three accesses: those before the last are read, the last is used as `mode` says. */
static void add(filch_graph *to, filch_codelet *codelet, filch_access_mode mode, filch_data *a,
                filch_data *b, filch_data *c)
{
    filch_data *const data[] = {a, b, c};
    filch_access accesses[3];
    filch_task_desc desc = FILCH_TASK_DESC_INIT;
    desc.codelet = codelet;
    desc.accesses = accesses;
    while (desc.access_count < 3 && data[desc.access_count] != NULL) {
        accesses[desc.access_count] =
            (filch_access){.data = data[desc.access_count], .mode = FILCH_READ};
        desc.access_count++;
    }
    accesses[desc.access_count - 1].mode = mode;
    assert_ok(filch_graph_add(to, &desc, NULL));
}

static filch_job *submit(filch_graph *from)
{
    filch_job *job = NULL;
    assert_ok(filch_graph_submit(from, NULL, &job));
    return job;
}

static void finish(filch_job *job, filch_status result)
{
    assert_int_equal(filch_job_wait(job, SOON), result);
    assert_ok(filch_job_release(job));
}

static void set(uint64_t *at, uint64_t value)
{
    for (int i = 0; i < N; i++)
        at[i] = value + (uint64_t)i;
}

static void expect(const uint64_t *at, uint64_t value)
{
    for (int i = 0; i < N; i++)
        assert_int_equal(at[i], value + (uint64_t)i);
}

static void await_holds(int count)
{
    while (atomic_load(&holds) < count) {
        const struct timespec nap = {0, 100000};
        (void)nanosleep(&nap, NULL);
    }
}

/* --- Tests --- */

/* The host writes between jobs; then a reader waits for another handle, and a second reader, which
 * need not wait, must not think that the first has looked. */
static void a_reader_that_waits_brings_nothing(void **state)
{
    (void)state;
    start("cuda:0,host:1", "2", NULL);
    filch_codelet *copies = on_gpu("copy"), *sums = on_gpu("sum"), *holder = on_host("hold", hold);
    uint64_t held[N], other[N];
    filch_data *from = handle(x), *to = handle(y), *sink = handle(z);
    filch_data *gate = handle(held), *spare = handle(other);
    filch_graph *first = graph(), *holding = graph(), *waiting = graph();
    add(first, copies, FILCH_WRITE, from, to, NULL);
    add(holding, holder, FILCH_READWRITE, gate, NULL, NULL);
    add(waiting, sums, FILCH_WRITE, from, gate, spare);
    set(x, 100);
    finish(submit(first), FILCH_OK);
    expect(y, 100);
    set(x, 700);
    set(held, 1);
    atomic_store(&is_held, 1);
    filch_job *hold_job = submit(holding), *wait_job = submit(waiting);
    await_holds(1);
    finish(submit(first), FILCH_OK);
    expect(y, 700);
    /* And one more while both are there: what is on the GPU is good now. */
    uint64_t copied = fakecuda_count("cuMemcpyHtoDAsync");
    filch_graph *again = graph();
    add(again, copies, FILCH_WRITE, from, sink, NULL);
    finish(submit(again), FILCH_OK);
    expect(z, 700);
    assert_int_equal(fakecuda_count("cuMemcpyHtoDAsync"), copied);
    atomic_store(&is_held, 0);
    finish(hold_job, FILCH_OK);
    finish(wait_job, FILCH_OK);
    for (int i = 0; i < N; i++)
        assert_int_equal(other[i], 701 + 2 * i);
    stop();
}

/* A job is over when its last task is, whatever else is on the GPU. */
static void a_job_ends_beside_a_longer_one(void **state)
{
    static const char *const lanes[] = {"2", "1"};
    (void)state;
    for (int l = 0; l < 2; l++) {
        start("cuda:0", lanes[l], NULL);
        filch_codelet *copies = on_gpu("copy"), *holder = on_gpu("hold");
        filch_data *from = handle(x), *to = handle(y), *gate = handle(z);
        filch_graph *quick = graph(), *slow = graph();
        add(quick, copies, FILCH_WRITE, from, to, NULL);
        add(slow, holder, FILCH_READ, gate, NULL, NULL);
        set(x, 5);
        atomic_store(&is_held, 1);
        filch_job *slow_job, *quick_job;
        if (l == 0) { /* on a lane of its own */
            slow_job = submit(slow);
            await_holds(1);
            quick_job = submit(quick);
        } else { /* in front of it on the same lane */
            fakecuda_hold();
            quick_job = submit(quick);
            slow_job = submit(slow);
            fakecuda_release();
        }
        assert_int_equal(filch_job_wait(quick_job, SOON), FILCH_OK);
        assert_int_equal(filch_job_poll(slow_job), FILCH_NOT_READY);
        expect(y, 5);
        atomic_store(&is_held, 0);
        finish(quick_job, FILCH_OK);
        finish(slow_job, FILCH_OK);
        stop();
    }
}

/* A task on the GPU follows one that is there, and one on the host that takes a while: not before
 * that is over, whatever marks earlier graphs in the same memory, or earlier runs, have left. Marks
 * tell 256 runs apart. */
static void nobody_follows_what_has_not_begun(void **state)
{
    (void)state;
    start("cuda:0,host:1", "2", "{\"kernel_ns\": 100000}");
    filch_codelet *copies = on_gpu("copy"), *sums = on_gpu("sum"), *lates = on_host("late", late);
    uint64_t in[N];
    filch_data *from = handle(in), *a = handle(x), *b = handle(y), *to = handle(z);
    atomic_store(&naps_us, 300);
    for (uint64_t k = 0; k < 300; k++) {
        filch_graph *diamond = graph();
        add(diamond, copies, FILCH_WRITE, from, a, NULL);
        add(diamond, lates, FILCH_READWRITE, b, NULL, NULL);
        add(diamond, sums, FILCH_WRITE, a, b, to);
        set(in, 10 * k);
        memset(y, 0, sizeof y);
        finish(submit(diamond), FILCH_OK);
        expect(z, 10 * k + 1);
        assert_ok(filch_graph_destroy(diamond));
    }
    filch_graph *diamond = graph();
    add(diamond, copies, FILCH_WRITE, from, a, NULL);
    add(diamond, lates, FILCH_READWRITE, b, NULL, NULL);
    add(diamond, sums, FILCH_WRITE, a, b, to);
    atomic_store(&naps_us, 200);
    for (int run = 0; run < 2 * 256 + 1; run++) {
        bool is_good = run % 256 == 0;
        set(in, 3);
        memset(y, 0, sizeof y);
        atomic_store(&fails, is_good ? 0 : 1);
        finish(submit(diamond), is_good ? FILCH_OK : FILCH_TASK_FAILED);
        if (is_good)
            expect(z, 4);
    }
    atomic_store(&fails, 0);
    stop();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_reader_that_waits_brings_nothing),
        cmocka_unit_test(a_job_ends_beside_a_longer_one),
        cmocka_unit_test(nobody_follows_what_has_not_begun),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
