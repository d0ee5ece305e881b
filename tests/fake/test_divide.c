/* SPDX-License-Identifier: Apache-2.0 */
/* Divisible tasks where there are GPUs: cores beside these run pieces of one, in the host's memory,
 * with what GPUs wrote before it, and GPUs read what they all wrote; a GPU runs one in one call,
 * its items as the kernel's range. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define N 4096
#include "jobs.h"

enum { GRAIN = 16, ROUNDS = 12, STEPS = 4, MANY = 100 };

#define RANGES "FAKECUBIN arch=90 entry=range"

static _Atomic int calls, bad_calls;
static _Atomic bool is_shut; /* the gate of add_at_gate() */

/* items(to): adds one to each of its items; slow enough for others to come. */
static int add_items(const filch_call *call)
{
    uint64_t *to = call->views[0].ptr;
    atomic_fetch_add(&calls, 1);
    if (call->lo % GRAIN != 0 || call->hi > N || call->lo >= call->hi)
        atomic_fetch_add(&bad_calls, 1);
    for (uint64_t i = call->lo; i < call->hi; i++) {
        for (volatile int k = 0; k < 100; k++) {
        }
        to[i]++;
    }
    return atomic_load(&fails) != 0 && call->lo <= N / 2 && call->hi > N / 2 ? 9 : 0;
}

static void nap(long ns)
{
    const struct timespec time = {0, ns};
    (void)nanosleep(&time, NULL);
}

/* The same, and the piece ends only after the gate is open: the first pieces are a part of the
 * task, so a shut gate keeps a rest, however fast or slow the machine is. */
static int add_at_gate(const filch_call *call)
{
    int code = add_items(call);
    while (atomic_load(&is_shut))
        nap(10000);
    return code;
}

/* The same at once. */
static int add_quickly(const filch_call *call)
{
    uint64_t *to = call->views[0].ptr;
    atomic_fetch_add(&calls, 1);
    if (call->lo != 0 || call->hi != N)
        atomic_fetch_add(&bad_calls, 1);
    for (uint64_t i = call->lo; i < call->hi; i++)
        to[i]++;
    return 0;
}

/* The same with another input, as items of `to` alone: to = from + 1. */
static int move_items(const filch_call *call)
{
    const uint64_t *from = call->views[0].ptr;
    uint64_t *to = call->views[1].ptr;
    atomic_fetch_add(&calls, 1);
    for (uint64_t i = call->lo; i < call->hi; i++) {
        for (volatile int k = 0; k < 100; k++) {
        }
        to[i] = from[i] + 1;
    }
    return 0;
}

static filch_status add_divisible(filch_graph *to, filch_codelet *codelet, filch_data *from,
                                  filch_data *data, filch_access_mode mode)
{
    filch_access accesses[2] = {{.data = from, .mode = FILCH_READ}, {.data = data, .mode = mode}};
    filch_task_desc desc = FILCH_TASK_DESC_INIT;
    desc.codelet = codelet;
    desc.accesses = from != NULL ? accesses : accesses + 1;
    desc.access_count = from != NULL ? 2 : 1;
    desc.items = N;
    desc.grain = GRAIN;
    return filch_graph_add(to, &desc, NULL);
}

static uint64_t run(filch_graph *from, filch_status result)
{
    filch_report report = FILCH_REPORT_INIT;
    filch_job *job = submit(from);
    assert_int_equal(filch_job_wait(job, SOON), result);
    assert_ok(filch_job_report(job, from, &report, NULL, 0));
    assert_ok(filch_job_release(job));
    return report.total.pieces;
}

/* In turn on the GPU and on the cores, of handles of all kinds. */
static void check_turns(filch_drive drive, uint32_t flags)
{
    start_driven("cuda,host:3", "2", "{\"kernel_ns\": 20000, \"devices\": [{\"count\": 1}]}",
                 drive);
    filch_codelet *bumps = on_gpu("bump");
    filch_codelet *cores = on_host("items", add_items), *moves = on_host("moves", move_items);
    filch_data *a = handle_with(x, flags), *b = handle_with(y, flags);
    filch_graph *g = graph();
    uint64_t pieces = 0;
    atomic_store(&fails, 0);
    set(x, 100);
    set(y, 7);
    for (int i = 0; i < STEPS; i++) {
        add(g, bumps, FILCH_READWRITE, a, NULL, NULL);
        assert_ok(add_divisible(g, cores, NULL, a, FILCH_READWRITE));
        assert_ok(add_divisible(g, moves, a, b, FILCH_WRITE));
        add(g, bumps, FILCH_READWRITE, b, NULL, NULL);
    }
    for (uint64_t round = 1; round <= ROUNDS; round++) {
        pieces += run(g, FILCH_OK);
        if ((flags & FILCH_DATA_MANAGED) != 0) {
            assert_ok(filch_data_acquire(a, FILCH_READ));
            assert_ok(filch_data_acquire(b, FILCH_READ));
        }
        expect(x, 100 + 2 * STEPS * round);
        expect(y, 100 + 2 * STEPS * round + 2);
        if ((flags & FILCH_DATA_MANAGED) != 0) {
            assert_ok(filch_data_release(a));
            assert_ok(filch_data_release(b));
        }
    }
    assert_true(pieces > 0);
    assert_int_equal(atomic_load(&bad_calls), 0);
    assert_ok(filch_graph_destroy(g));
    assert_ok(filch_data_destroy(a));
    assert_ok(filch_data_destroy(b));
    stop();
}

static void cores_share_what_gpus_wrote(void **state)
{
    (void)state;
    check_turns(FILCH_DRIVE_THREADS, 0);
    check_turns(FILCH_DRIVE_THREADS, FILCH_DATA_MANAGED);
    check_turns(FILCH_DRIVE_POLL, 0);
    check_turns(FILCH_DRIVE_POLL, FILCH_DATA_MANAGED);
}

/* A piece fails: so does the task, and what comes after is left out. */
static void failures(void **state)
{
    (void)state;
    start("cuda,host:3", "2", "{\"kernel_ns\": 20000, \"devices\": [{\"count\": 1}]}");
    filch_codelet *bumps = on_gpu("bump"), *cores = on_host("items", add_items);
    filch_data *a = handle(x);
    filch_graph *g = graph();
    set(x, 1);
    add(g, bumps, FILCH_READWRITE, a, NULL, NULL);
    assert_ok(add_divisible(g, cores, NULL, a, FILCH_READWRITE));
    add(g, bumps, FILCH_READWRITE, a, NULL, NULL);
    for (int round = 0; round < ROUNDS; round++) {
        atomic_store(&fails, 1);
        (void)run(g, FILCH_TASK_FAILED);
        atomic_store(&fails, 0);
        set(x, 1);
        (void)run(g, FILCH_OK);
        expect(x, 4);
        set(x, 1);
    }
    assert_ok(filch_graph_destroy(g));
    assert_ok(filch_data_destroy(a));
    stop();
}

/* On GPUs, each with a memory of its own: a call for all items, whose range the kernel gets. */
static void check_whole(const char *devices, const char *driver)
{
    start(devices, "2", driver);
    fakecuda_register_filch("range", add_quickly, 1, true, 0);
    filch_codelet *codelet = codelet_of(runtime, RANGES, "range", NULL, 0);
    filch_data *a = handle(x);
    filch_graph *g = graph();
    atomic_store(&fails, 0);
    atomic_store(&calls, 0);
    set(x, 0);
    for (int i = 0; i < MANY; i++)
        assert_ok(add_divisible(g, codelet, NULL, a, FILCH_READWRITE));
    for (uint64_t round = 1; round <= ROUNDS; round++) {
        assert_int_equal(run(g, FILCH_OK), 0);
        expect(x, MANY * round);
    }
    assert_int_equal(atomic_load(&calls), MANY * ROUNDS);
    assert_int_equal(atomic_load(&bad_calls), 0);
    assert_ok(filch_graph_destroy(g));
    assert_ok(filch_data_destroy(a));
    stop();
}

static void gpus_take_all_at_once(void **state)
{
    (void)state;
    /* Also so short that launches are put together, and with graphs that are replayed. */
    static const char *const drivers[] = {"{\"kernel_ns\": 20000, \"devices\": [{\"count\": 2}]}",
                                          "{\"kernel_ns\": 500, \"devices\": [{\"count\": 2}]}"};
    for (int i = 0; i < 2; i++) {
        check_whole("cuda:0", drivers[i]);
        check_whole("cuda", drivers[i]);
    }
}

static void withdraw_cores(bool are_away)
{
    for (uint32_t d = 1; d < filch_device_count(runtime); d++) /* the GPU is first */
        assert_ok(are_away ? filch_device_withdraw(runtime, d) : filch_device_readmit(runtime, d));
}

/* All cores are withdrawn in the middle of a task that is divided on them: what is left waits for
 * them, and does not go to the GPU, whose copy is another one. */
static void no_gpu_takes_the_rest(void **state)
{
    (void)state;
    for (int round = 0; round < 10; round++) {
        start("cuda,host:2", "2", "{\"kernel_ns\": 20000, \"devices\": [{\"count\": 1}]}");
        fakecuda_register_filch("range", add_quickly, 1, true, 0);
        filch_codelet *both = codelet_of(runtime, RANGES, "range", add_at_gate, 0);
        filch_codelet *bumps = on_host("bump", bump);
        filch_data *data = handle(x);
        filch_graph *made = graph();
        const filch_access access = {.data = data, .mode = FILCH_READWRITE};
        filch_task_desc desc = FILCH_TASK_DESC_INIT;
        desc.codelet = both;
        desc.accesses = &access;
        desc.access_count = 1;
        desc.items = N;
        desc.grain = GRAIN;
        assert_ok(filch_graph_add(made, &desc, NULL));
        add(made, bumps, FILCH_READWRITE, data, NULL, NULL);
        set(x, 100);
        atomic_store(&calls, 0);
        atomic_store(&is_shut, true);
        assert_ok(filch_device_withdraw(runtime, 0));
        filch_job *job = submit(made);
        while (atomic_load(&calls) == 0)
            nap(10000);
        assert_ok(filch_device_readmit(runtime, 0));
        withdraw_cores(true);
        atomic_store(&is_shut, false);
        nap(20000000);
        assert_int_equal(filch_job_status(job), FILCH_NOT_READY);
        withdraw_cores(false);
        finish(job, FILCH_OK);
        for (int i = 0; i < N; i++)
            assert_int_equal(x[i], 102 + i);
        assert_ok(filch_graph_destroy(made));
        assert_ok(filch_data_destroy(data));
        stop();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cores_share_what_gpus_wrote),
        cmocka_unit_test(failures),
        cmocka_unit_test(gpus_take_all_at_once),
        cmocka_unit_test(no_gpu_takes_the_rest),
    };
    (void)setenv("FILCH_REPLAY", "3", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
