/* SPDX-License-Identifier: Apache-2.0 */
/* GPUs that go offline and come back while jobs run: what is in flight ends, the rest is the
 * others', and results are right, wherever tiles are by then. On the fake driver. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>

#include "base/thread.h"
#include "count.h"
#include "random.h"

#define N 8192
#include "jobs.h"

enum { HANDLES = 12, STEPS = 30, ROUNDS = TEST_ROUNDS(12), SUMMANDS = 30 };

#define ENTRIES "FAKECUBIN arch=90 entry=zero,plus,bump,raise"

static uint64_t cells[HANDLES][N];

static void nap(long ns)
{
    const struct timespec span = {0, ns};
    (void)nanosleep(&span, NULL);
}

static bool becomes(uint32_t device, filch_presence expected)
{
    filch_presence presence = FILCH_PRESENCE_LOST;
    for (int i = 0; i < 20000 && presence != expected; i++) {
        assert_ok(filch_device_presence(runtime, device, &presence));
        if (presence != expected)
            nap(500000);
    }
    return presence == expected;
}

/* --- Step by step --- */

/* The one that is held ends where it is; nothing else starts there. */
static void in_flight_ends_and_the_rest_is_others(void **state)
{
    (void)state;
    filch_job_info info = {.size = sizeof info};
    filch_device_stats stats[2];
    start("cuda", "1", "{\"devices\":[{\"count\":2}]}");
    filch_data *held = handle(x), *rest[HANDLES];
    filch_graph *one = graph(), *many = graph();
    filch_codelet *bumps = on_gpu("bump");
    add(one, on_gpu("hold"), FILCH_READWRITE, held, NULL, NULL);
    for (int i = 0; i < HANDLES; i++) {
        rest[i] = handle(cells[i]);
        set(cells[i], (uint64_t)i);
        for (int k = 0; k < STEPS; k++)
            add(many, bumps, FILCH_READWRITE, rest[i], NULL, NULL);
    }
    atomic_store(&is_held, 1);
    assert_ok(filch_device_withdraw(runtime, 1)); /* so that it is the other that is held */
    assert_true(becomes(1, FILCH_PRESENCE_WITHDRAWN));
    filch_job *job = submit(one);
    await_holds(1);
    filch_job *waiting = submit(many); /* some of it waits behind what is held */
    nap(5000000);
    assert_ok(filch_device_readmit(runtime, 1));
    assert_ok(filch_device_withdraw(runtime, 0));
    assert_int_equal(filch_device_withdraw(runtime, 0), FILCH_WRONG_STATE);
    assert_true(becomes(0, FILCH_PRESENCE_LEAVING));
    filch_graph *later = graph();
    filch_data *last = handle(y);
    set(y, 1);
    for (int i = 0; i < HANDLES; i++)
        add(later, bumps, FILCH_READWRITE, last, NULL, NULL);
    filch_job *after = submit(later);
    assert_int_equal(filch_job_wait(after, SOON), FILCH_OK);
    assert_ok(filch_job_stats(after, &info, stats, 2));
    assert_int_equal(stats[0].tiles, 0);
    assert_int_equal(stats[1].tiles, HANDLES);
    expect(y, 1 + HANDLES);
    assert_int_equal(filch_job_wait(job, 0), FILCH_TIMEOUT);
    atomic_store(&is_held, 0);
    finish(job, FILCH_OK);
    assert_int_equal(filch_job_wait(waiting, SOON), FILCH_OK);
    assert_ok(filch_job_stats(waiting, &info, stats, 2));
    assert_int_equal(info.done, HANDLES * STEPS);
    assert_true(stats[1].tiles > HANDLES * STEPS / 2);
    assert_ok(filch_job_release(waiting));
    assert_ok(filch_job_release(after));
    assert_true(becomes(0, FILCH_PRESENCE_WITHDRAWN));
    for (int i = 0; i < HANDLES; i++)
        expect(cells[i], (uint64_t)(i + STEPS));
    assert_ok(filch_graph_destroy(one));
    assert_ok(filch_graph_destroy(many));
    assert_ok(filch_graph_destroy(later));
    stop();
}

/* There is nobody else: it waits, until the device is back or the job is cancelled. What the
 * device has stays to be read there, and may be changed by the host. */
static void the_only_one_is_waited_for(void **state)
{
    (void)state;
    start("cuda", "1", "{\"devices\":[{\"count\":1}]}");
    filch_data *data = handle_with(x, FILCH_DATA_MANAGED);
    filch_graph *bump_once = graph();
    add(bump_once, on_gpu("bump"), FILCH_READWRITE, data, NULL, NULL);
    set(x, 1);
    finish(submit(bump_once), FILCH_OK);
    assert_ok(filch_device_withdraw(runtime, 0));
    assert_true(becomes(0, FILCH_PRESENCE_WITHDRAWN));
    uint64_t launches = fakecuda_count("cuLaunchKernel");
    assert_ok(filch_data_acquire(data, FILCH_READWRITE)); /* from its memory */
    expect(x, 2);
    set(x, 10);
    assert_ok(filch_data_release(data));
    filch_job *job = submit(bump_once);
    assert_int_equal(filch_job_wait(job, 0.02), FILCH_TIMEOUT);
    assert_int_equal(filch_runtime_destroy(runtime), FILCH_BUSY);
    assert_ok(filch_job_cancel(job));
    finish(job, FILCH_CANCELLED);
    job = submit(bump_once);
    assert_int_equal(filch_job_wait(job, 0.02), FILCH_TIMEOUT);
    assert_int_equal(fakecuda_count("cuLaunchKernel"), launches);
    assert_ok(filch_device_readmit(runtime, 0));
    finish(job, FILCH_OK);
    /* A graph that is put there at once, again and again, waits no less. */
    for (int i = 0; i < 20; i++)
        finish(submit(bump_once), FILCH_OK);
    assert_ok(filch_device_withdraw(runtime, 0));
    job = submit(bump_once);
    assert_int_equal(filch_job_wait(job, 0.02), FILCH_TIMEOUT);
    assert_ok(filch_device_readmit(runtime, 0));
    finish(job, FILCH_OK);
    assert_ok(filch_data_acquire(data, FILCH_READ));
    expect(x, 32);
    assert_ok(filch_data_release(data));
    assert_ok(filch_graph_destroy(bump_once));
    stop();
}

/* Its memory is still one that contents are broadcast to. */
static void what_is_broadcast_comes_there(void **state)
{
    (void)state;
    start("cuda", "1", "{\"devices\":[{\"count\":2}]}");
    filch_data *data = handle_with(x, FILCH_DATA_MANAGED);
    filch_job *job = NULL;
    set(x, 5);
    for (uint32_t d = 0; d < 2; d++)
        assert_ok(filch_device_withdraw(runtime, d));
    assert_ok(filch_data_broadcast(data, NULL, NULL, &job));
    finish(job, FILCH_OK);
    for (uint32_t d = 0; d < 2; d++)
        assert_ok(filch_device_readmit(runtime, d));
    filch_graph *read = graph();
    add(read, on_gpu("copy"), FILCH_WRITE, data, handle(y), NULL);
    uint64_t copies = fakecuda_count("cuMemcpyHtoDAsync");
    finish(submit(read), FILCH_OK);
    assert_int_equal(fakecuda_count("cuMemcpyHtoDAsync"), copies);
    expect(y, 5);
    assert_ok(filch_graph_destroy(read));
    stop();
}

static void end_well(filch_job *job)
{
    filch_error error = FILCH_ERROR_INIT;
    if (filch_job_wait(job, SOON) != FILCH_OK) {
        (void)filch_job_error(job, &error);
        fail_msg("%s", error.text);
    }
    assert_ok(filch_job_release(job));
}

/* --- At random --- */

static int zero(const filch_call *call)
{
    memset(call->views[0].ptr, 0, call->views[0].rows * sizeof(uint64_t));
    return 0;
}

static int plus(const filch_call *call)
{
    uint64_t *to = call->views[0].ptr;
    const uint64_t *what = call->views[1].ptr;
    for (uint64_t i = 0; i < call->views[0].rows; i++)
        to[i] += what[i];
    return 0;
}

static _Atomic int is_over, wrong;
static uint32_t devices;

/* Withdraws and takes back until told; then all are back. */
static int come_and_go(void *user)
{
    fl_random random;
    bool is_away[8] = {false};
    fl_random_init(&random, (uint64_t)(uintptr_t)user, 0);
    while (atomic_load(&is_over) == 0) {
        uint32_t d = (uint32_t)(fl_random_next(&random) % devices);
        if ((is_away[d] ? filch_device_readmit : filch_device_withdraw)(runtime, d) != FILCH_OK)
            atomic_fetch_add(&wrong, 1);
        is_away[d] = !is_away[d];
        nap((long)(fl_random_next(&random) % 1000000));
    }
    for (uint32_t d = 0; d < devices; d++)
        if (is_away[d] && filch_device_readmit(runtime, d) != FILCH_OK)
            atomic_fetch_add(&wrong, 1);
    return 0;
}

/* Chains that cross: each handle is bumped, and every few steps one is set to the sum of two. */
static filch_graph *cross(filch_data *const *data, uint64_t *told)
{
    filch_graph *made = graph();
    filch_codelet *bumps = codelet_of(runtime, ENTRIES, "bump", bump, 0);
    filch_codelet *sums = on_gpu("sum");
    for (int i = 0; i < HANDLES; i++)
        told[i] = (uint64_t)i;
    for (int k = 0; k < STEPS; k++)
        for (int i = 0; i < HANDLES; i++) {
            if ((i + k) % 7 == 0) {
                int a = (i + 1) % HANDLES, b = (i + 5) % HANDLES;
                add(made, sums, FILCH_WRITE, data[a], data[b], data[i]);
                told[i] = told[a] + told[b];
            } else {
                add(made, bumps, FILCH_READWRITE, data[i], NULL, NULL);
                told[i]++;
            }
        }
    return made;
}

static void fill(void)
{
    for (int i = 0; i < HANDLES; i++)
        for (int k = 0; k < N; k++)
            cells[i][k] = (uint64_t)i;
}

static void expect_all(const uint64_t *at, uint64_t value)
{
    for (int i = 0; i < N; i++)
        assert_int_equal(at[i], value);
}

static void run_crossing(uint32_t flags)
{
    filch_data *data[HANDLES];
    uint64_t told[HANDLES];
    for (int i = 0; i < HANDLES; i++)
        data[i] = handle_with(cells[i], flags);
    fill();
    filch_graph *made = cross(data, told);
    for (int round = 0; round < ROUNDS; round++) {
        filch_job_info info = {.size = sizeof info};
        filch_job *job = submit(made);
        assert_int_equal(filch_job_wait(job, SOON), FILCH_OK);
        assert_ok(filch_job_stats(job, &info, NULL, 0));
        assert_int_equal(info.done, HANDLES * STEPS);
        assert_ok(filch_job_release(job));
        for (int i = 0; i < HANDLES; i++) {
            assert_ok(filch_data_acquire(data[i], FILCH_READWRITE));
            expect_all(cells[i], told[i]);
            for (int k = 0; k < N; k++)
                cells[i][k] = (uint64_t)i;
            assert_ok(filch_data_release(data[i]));
        }
    }
    assert_ok(filch_graph_destroy(made));
    for (int i = 0; i < HANDLES; i++)
        assert_ok(filch_data_destroy(data[i]));
}

static void run_reduction(void)
{
    filch_data *data = handle_with(z, FILCH_DATA_MANAGED);
    filch_graph *made = graph();
    filch_codelet *bumps = codelet_of(runtime, ENTRIES, "bump", bump, 0);
    assert_ok(filch_data_reduction(data, codelet_of(runtime, ENTRIES, "zero", zero, 0),
                                   codelet_of(runtime, ENTRIES, "plus", plus, 0)));
    for (int i = 0; i < SUMMANDS; i++)
        add(made, bumps, FILCH_REDUCE, data, NULL, NULL);
    for (int round = 0; round < ROUNDS; round++) {
        assert_ok(filch_data_acquire(data, FILCH_WRITE));
        memset(z, 0, sizeof z);
        assert_ok(filch_data_release(data));
        end_well(submit(made));
        assert_ok(filch_data_acquire(data, FILCH_READ));
        expect_all(z, SUMMANDS);
        assert_ok(filch_data_release(data));
    }
    assert_ok(filch_graph_destroy(made));
    assert_ok(filch_data_destroy(data));
}

static void run_batches(void)
{
    static uint64_t many[64 * N];
    filch_data_desc desc = FILCH_DATA_DESC_INIT;
    filch_batch_access access = {.mode = FILCH_READWRITE, .map = FILCH_MAP_AFFINE, .scale = 64};
    filch_batch_desc batch = FILCH_BATCH_DESC_INIT;
    desc.ptr = many;
    desc.element = sizeof *many;
    desc.rows = 64 * N;
    assert_ok(filch_data_create(runtime, &desc, &access.data));
    batch.codelet = codelet_of(runtime, ENTRIES, "raise", bump, 0);
    batch.n = N;
    batch.accesses = &access;
    batch.access_count = 1;
    memset(many, 0, sizeof many);
    for (int round = 0; round < ROUNDS; round++) {
        filch_job *job = NULL;
        assert_ok(filch_batch_submit(runtime, &batch, NULL, &job));
        end_well(job);
        for (int i = 0; i < 64 * N; i++)
            assert_int_equal(many[i], round + 1);
    }
    assert_ok(filch_data_destroy(access.data));
}

/* limit: of each GPU's memory, or null. */
static void at_random(const char *specification, uint32_t count, const char *limit,
                      filch_drive drive)
{
    fl_thread thread;
    if (limit != NULL)
        (void)setenv("FILCH_MEMORY_LIMIT", limit, 1);
    start_driven(specification, "2", "{\"devices\":[{\"count\":2}]}", drive);
    (void)unsetenv("FILCH_MEMORY_LIMIT");
    fakecuda_register_filch("zero", zero, 1, false, 0);
    fakecuda_register_filch("plus", plus, 2, false, 0);
    fakecuda_register_filch("raise", bump, 1, true, 0);
    devices = count;
    atomic_store(&is_over, 0);
    assert_ok(fl_thread_start(&thread, come_and_go, (void *)(uintptr_t)count));
    run_crossing(FILCH_DATA_MANAGED);
    run_crossing(0);
    run_reduction();
    run_batches();
    atomic_store(&is_over, 1);
    fl_thread_join(thread);
    assert_int_equal(atomic_load(&wrong), 0);
    stop();
}

static void results_are_right(void **state)
{
    (void)state;
    at_random("cuda", 2, NULL, FILCH_DRIVE_DEFAULT);
    at_random("cuda,host:1", 3, NULL, FILCH_DRIVE_DEFAULT);
    at_random("cuda:0/88+24,cuda:1,host:2", 5, NULL, FILCH_DRIVE_DEFAULT);
}

static void results_are_right_when_polled(void **state)
{
    (void)state;
    at_random("cuda,host:1", 3, NULL, FILCH_DRIVE_POLL);
}

/* Room for five of the twelve handles: tiles wait for memory as their device goes offline. */
static void results_are_right_in_little_memory(void **state)
{
    (void)state;
    at_random("cuda", 2, "330000", FILCH_DRIVE_DEFAULT);
    at_random("cuda,host:1", 3, "330000", FILCH_DRIVE_DEFAULT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(in_flight_ends_and_the_rest_is_others),
        cmocka_unit_test(the_only_one_is_waited_for),
        cmocka_unit_test(what_is_broadcast_comes_there),
        cmocka_unit_test(results_are_right),
        cmocka_unit_test(results_are_right_when_polled),
        cmocka_unit_test(results_are_right_in_little_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
