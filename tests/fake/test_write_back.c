/* SPDX-License-Identifier: Apache-2.0 */
/* What a GPU does while its results are on the way home. On the fake driver. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sched.h>

#include "jobs.h"

/* A copy takes as long as no theft does. */
#define FAKE "{\"copy_ns\": 2000000000, \"devices\": [{\"count\": 2}]}"

static void add_for(filch_graph *to, filch_codelet *codelet, filch_access access, uint32_t device)
{
    filch_task_desc desc = FILCH_TASK_DESC_INIT;
    desc.codelet = codelet;
    desc.accesses = &access;
    desc.access_count = 1;
    desc.affinity = device + 1;
    assert_ok(filch_graph_add(to, &desc, NULL));
}

/* It has computed all it had, and takes from another what that one does not come to. */
static void a_device_steals_while_its_results_go_home(void **state)
{
    enum { TASKS = 6 };
    (void)state;
    start("cuda:0,cuda:1", "1", FAKE);
    filch_codelet *holder = on_gpu("hold"), *sets = on_gpu("bump");
    filch_graph *made = graph(), *held = graph();
    const filch_access scratch = {.bytes = 64, .mode = FILCH_SCRATCH};
    add_for(made, sets, (filch_access){.data = handle_with(x, FILCH_DATA_PIN), .mode = FILCH_WRITE},
            0);
    for (int i = 0; i < TASKS; i++)
        add_for(held, holder, scratch, 1);
    filch_job *job = submit(made);
    while (fakecuda_count("cuMemcpyDtoHAsync") == 0 || fakecuda_count("kernel") == 0)
        sched_yield();
    atomic_store(&is_held, 1);
    filch_job *other = submit(held);
    await_holds(2); /* one on each */
    filch_status before = filch_job_wait(job, 0);
    atomic_store(&is_held, 0);
    assert_int_equal(before, FILCH_TIMEOUT);
    finish(other, FILCH_OK);
    finish(job, FILCH_OK);
    stop();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_device_steals_while_its_results_go_home),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
