/* SPDX-License-Identifier: Apache-2.0 */
/* Cores that are deep in nested waits beside a GPU: tasks that stand aside meanwhile when the GPU
 * is lost, and waits that the GPU's task lets end. */
#define _GNU_SOURCE
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "sched/worker/parts.h" /* before `runtime` of jobs.h, a name of parameters */

#include "jobs.h"
#include "patience.h"

enum { WAITS = FL_DEEP_WAIT + 4, BUMPS = 8 };

/* Devices, as affinities. */
enum { CORE = 1, HELPER, GPU };

static filch_pending unended;
static filch_job *awaited;
static _Atomic int begun, waiting, on_core;

static int begin(const filch_call *call)
{
    if (filch_call_pend(call, &unended) != FILCH_OK)
        return 1;
    begun = 1;
    return FILCH_PENDING;
}

static int wait_deep(const filch_call *call)
{
    (void)call;
    waiting++;
    return filch_job_wait(awaited, PATIENCE) != FILCH_OK;
}

static int bump_on_core(const filch_call *call)
{
    on_core++;
    return bump(call);
}

static int nothing(const filch_call *call)
{
    (void)call;
    return 0;
}

static filch_task add_on(filch_graph *to, filch_codelet *codelet, uint32_t device, filch_data *data)
{
    filch_access access = {.data = data, .mode = FILCH_READWRITE};
    filch_task_desc desc = FILCH_TASK_DESC_INIT;
    filch_task task;
    desc.codelet = codelet;
    desc.affinity = device;
    desc.accesses = &access;
    desc.access_count = data != NULL;
    assert_ok(filch_graph_add(to, &desc, &task));
    return task;
}

static filch_job *submit_on(filch_codelet *codelet, uint32_t device, filch_data *data)
{
    filch_graph *one = graph();
    (void)add_on(one, codelet, device, data);
    return submit(one);
}

static filch_codelet *pending_codelet(void)
{
    filch_codelet_desc desc = FILCH_CODELET_DESC_INIT;
    filch_codelet *codelet;
    desc.name = "begin";
    desc.host = begin;
    desc.flags = FILCH_CODELET_MAY_PEND;
    assert_ok(filch_codelet_create(runtime, &desc, &codelet));
    return codelet;
}

/* Tasks that wait, and behind them those that the GPU could run, too. */
static filch_job *submit_crowd(uint64_t cells[BUMPS][N])
{
    filch_codelet *both = codelet_of(runtime, IMAGE, "bump", bump_on_core, 0);
    filch_codelet *waits = on_host("wait", wait_deep);
    filch_graph *crowd = graph();
    filch_task first = add_on(crowd, on_host("nothing", nothing), CORE, NULL);
    for (int i = 0; i < WAITS; i++)
        assert_ok(filch_graph_edge(crowd, first, add_on(crowd, waits, CORE, NULL)));
    for (int i = 0; i < BUMPS; i++)
        assert_ok(filch_graph_edge(crowd, first, add_on(crowd, both, CORE, handle(cells[i]))));
    return submit(crowd);
}

/* Under the static policy tasks of a core that the GPU could run are the core's, which runs them.
 */
static void tasks_of_a_core_outlive_a_gpu(void **state)
{
    static uint64_t cells[BUMPS][N];
    filch_job *holding, *lost, *crowd;
    (void)state;
    (void)setenv("FILCH_POLICY", "static", 1);
    start("host:2,cuda:0", "1", "{\"devices\": [{}]}");
    awaited = submit_on(pending_codelet(), HELPER, NULL);
    while (begun == 0)
        sched_yield();
    /* While one core works, the other one's waits take nothing else for a second. */
    is_held = 1;
    holding = submit_on(on_host("hold", hold), HELPER, NULL);
    await_holds(1);
    crowd = submit_crowd(cells);
    while (waiting <= FL_DEEP_WAIT)
        sched_yield();
    fakecuda_fail("kernel", 1, 0, 700, -1, true);
    lost = submit_on(on_gpu("bump"), GPU, handle(x));
    finish(lost, FILCH_TASK_FAILED);
    is_held = 0;
    assert_ok(filch_pending_end(unended, 0, NULL));
    finish(crowd, FILCH_OK);
    finish(holding, FILCH_OK);
    finish(awaited, FILCH_OK);
    assert_int_equal(on_core, BUMPS);
    stop();
    (void)unsetenv("FILCH_POLICY");
}

static int end(const filch_call *call)
{
    (void)call;
    return filch_pending_end(unended, 0, NULL) != FILCH_OK;
}

static void await_begun(filch_drive drive)
{
    while (begun == 0) {
        if (drive == FILCH_DRIVE_POLL)
            (void)filch_runtime_poll(runtime, 0.001, NULL);
        else
            sched_yield();
    }
}

/* Tasks wait on a core. One behind them lets the GPU's task run, which lets one run that ends the
 * waits. */
static void a_gpus_task_lets_waits_end(filch_drive drive, const char *policy)
{
    static uint64_t cell[N];
    enum { HOST = 1, CUDA };
    filch_job *job;
    (void)setenv("FILCH_POLICY", policy, 1);
    begun = waiting = 0;
    start_driven("host:1,cuda:0", "1", "{\"devices\": [{}]}", drive);
    filch_codelet *waits = on_host("wait", wait_deep), *passes = on_host("nothing", nothing);
    awaited = submit_on(pending_codelet(), HOST, NULL);
    await_begun(drive);
    filch_graph *all = graph();
    filch_task first = add_on(all, passes, HOST, NULL), behind = add_on(all, passes, HOST, NULL);
    filch_task on_cuda = add_on(all, on_gpu("bump"), CUDA, handle(cell));
    assert_ok(filch_graph_edge(all, first, behind));
    for (int i = 0; i < WAITS; i++)
        assert_ok(filch_graph_edge(all, first, add_on(all, waits, HOST, NULL)));
    assert_ok(filch_graph_edge(all, behind, on_cuda));
    assert_ok(filch_graph_edge(all, on_cuda, add_on(all, on_host("end", end), HOST, NULL)));
    job = submit(all);
    finish(job, FILCH_OK);
    finish(awaited, FILCH_OK);
    assert_int_equal(waiting, WAITS);
    stop();
    (void)unsetenv("FILCH_POLICY");
}

static void a_gpus_task_lets_waits_end_in_every_drive(void **state)
{
    (void)state;
    a_gpus_task_lets_waits_end(FILCH_DRIVE_THREADS, "steal");
    a_gpus_task_lets_waits_end(FILCH_DRIVE_THREADS, "static");
    a_gpus_task_lets_waits_end(FILCH_DRIVE_POLL, "steal");
    a_gpus_task_lets_waits_end(FILCH_DRIVE_POLL, "static");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tasks_of_a_core_outlive_a_gpu),
        cmocka_unit_test(a_gpus_task_lets_waits_end_in_every_drive),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
