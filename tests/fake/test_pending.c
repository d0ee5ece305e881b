/* SPDX-License-Identifier: Apache-2.0 */
/* Pending tasks of the host beside GPUs: what their enders write reaches the GPU and the caller's
 * buffer, after the end. On the fake driver. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sched.h>

#include "jobs.h"

#define FAKE "{\"devices\": [{\"count\": 1}]}"

static filch_pending taken[2];
static uint64_t *cells[2];
static _Atomic int taken_count;

static int pend(const filch_call *call)
{
    int at = atomic_load(&taken_count);
    if (filch_call_pend(call, &taken[at]) != FILCH_OK) {
        return 90;
    }
    cells[at] = call->views[0].ptr;
    atomic_store(&taken_count, at + 1);
    return FILCH_PENDING;
}

static filch_codelet *pending_codelet(void)
{
    filch_codelet_desc desc = FILCH_CODELET_DESC_INIT;
    filch_codelet *made = NULL;
    desc.name = "pend";
    desc.host = pend;
    desc.flags = FILCH_CODELET_MAY_PEND;
    assert_ok(filch_codelet_create(runtime, &desc, &made));
    return made;
}

static void await_taken(int count)
{
    while (atomic_load(&taken_count) < count)
        sched_yield();
}

/* GPU, host, GPU, host, in a chain on one handle. */
static void run_chain(filch_drive drive)
{
    start_driven("cuda:0,host:1", "1", FAKE, drive);
    atomic_store(&taken_count, 0);
    memset(x, 0, sizeof x);
    filch_codelet *adds = on_gpu("bump"), *pends = pending_codelet();
    filch_graph *made = graph();
    filch_data *data = handle(x);
    add(made, adds, FILCH_READWRITE, data, NULL, NULL);
    add(made, pends, FILCH_READWRITE, data, NULL, NULL);
    add(made, adds, FILCH_READWRITE, data, NULL, NULL);
    add(made, pends, FILCH_READWRITE, data, NULL, NULL);
    filch_job *job = submit(made);
    for (int turn = 0; turn < 2; turn++) {
        bool worked;
        while (drive == FILCH_DRIVE_POLL && atomic_load(&taken_count) <= turn)
            assert_ok(filch_runtime_poll(runtime, 0, &worked));
        await_taken(turn + 1);
        assert_int_equal(filch_job_wait(job, 0.001), FILCH_TIMEOUT);
        for (int i = 0; i < N; i++) {
            assert_int_equal(cells[turn][i], 11 * turn + 1);
            cells[turn][i] += 10;
        }
        assert_int_equal(fakecuda_count("kernel"), turn + 1); /* the next one waits */
        assert_ok(filch_pending_end(taken[turn], 0, NULL));
    }
    finish(job, FILCH_OK);
    for (int i = 0; i < N; i++)
        assert_int_equal(x[i], 22);
    stop();
}

static void data_goes_between_gpus_and_pending_tasks(void **state)
{
    (void)state;
    run_chain(FILCH_DRIVE_DEFAULT);
}

static void also_where_the_host_polls(void **state)
{
    (void)state;
    run_chain(FILCH_DRIVE_POLL);
}

/* The worker that ran the function is at another task: the GPU's retires the pending one. */
static void any_worker_retires_a_pending_task(void **state)
{
    (void)state;
    start("cuda:0,host:1", "1", FAKE);
    atomic_store(&taken_count, 0);
    memset(x, 0, sizeof x);
    memset(y, 0, sizeof y);
    filch_codelet *adds = on_gpu("bump"), *pends = pending_codelet(),
                  *holds_on = on_host("hold", hold);
    filch_graph *made = graph(), *held = graph();
    filch_data *data = handle(x);
    add(made, pends, FILCH_READWRITE, data, NULL, NULL);
    add(made, adds, FILCH_READWRITE, data, NULL, NULL);
    add(held, holds_on, FILCH_READWRITE, handle(y), NULL, NULL);
    filch_job *job = submit(made);
    await_taken(1);
    atomic_store(&is_held, 1);
    filch_job *other = submit(held);
    await_holds(1);
    cells[0][0] = 40;
    assert_ok(filch_pending_end(taken[0], 0, NULL));
    finish(job, FILCH_OK);
    assert_int_equal(x[0], 41);
    assert_int_equal(filch_job_wait(other, 0), FILCH_TIMEOUT);
    atomic_store(&is_held, 0);
    finish(other, FILCH_OK);
    stop();
}

/* A withdrawn host device retires its pending task, and starts nothing. */
static void an_offline_device_retires_its_pending_task(void **state)
{
    (void)state;
    start("host:1", "1", FAKE);
    atomic_store(&taken_count, 0);
    filch_codelet *pends = pending_codelet();
    filch_graph *made = graph();
    add(made, pends, FILCH_READWRITE, handle(x), NULL, NULL);
    filch_job *job = submit(made);
    await_taken(1);
    assert_ok(filch_device_withdraw(runtime, 0));
    assert_ok(filch_pending_end(taken[0], 0, NULL));
    finish(job, FILCH_OK);
    assert_ok(filch_device_readmit(runtime, 0));
    stop();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(data_goes_between_gpus_and_pending_tasks),
        cmocka_unit_test(also_where_the_host_polls),
        cmocka_unit_test(any_worker_retires_a_pending_task),
        cmocka_unit_test(an_offline_device_retires_its_pending_task),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
