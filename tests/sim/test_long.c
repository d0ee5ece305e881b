/* SPDX-License-Identifier: Apache-2.0 */
/* Tiles that take years on the virtual clock: an idle device looks for work from time to time, and
 * the number of its looks must not grow with that time. */
#include <math.h>
#include <string.h>

#include "sim.h"

static sim_outcome outcome; /* too large for a stack */
static uint64_t looks;

static uint32_t count_look(const filch_policy_view *view, uint32_t *amount, void *user)
{
    (void)view;
    (void)amount;
    (void)user;
    ++looks;
    return FILCH_POLICY_AUTO;
}

static double cost_of(const filch_call *call)
{
    double units;
    memcpy(&units, call->args, sizeof units);
    return units;
}

/* Looks of two devices, of a unit a nanosecond, while one is at a task of so many seconds. */
static uint64_t looks_during(double seconds)
{
    filch_policy_desc policy = FILCH_POLICY_DESC_INIT;
    filch_runtime_desc config = FILCH_RUNTIME_DESC_INIT;
    filch_codelet_desc desc = FILCH_CODELET_DESC_INIT;
    filch_task_desc task = FILCH_TASK_DESC_INIT;
    const double units[2] = {seconds * 1e9, 1};
    filch_codelet *codelet = NULL;
    filch_graph *graph = NULL;
    filch_job *job = NULL;
    sim_world world;
    policy.steal = count_look;
    config.custom_policy = &policy;
    sim_open_text(&world, "{\"devices\": [{\"speed\": 1e9, \"window\": 1, \"count\": 2}]}",
                  &config);
    desc.name = "long";
    desc.host = sim_nothing;
    desc.cost = cost_of;
    desc.arg_size = sizeof *units;
    sim_ok(filch_codelet_create(world.runtime, &desc, &codelet));
    sim_ok(filch_graph_create(world.runtime, NULL, &graph));
    for (int i = 0; i < 2; ++i) {
        task.codelet = codelet;
        task.args = &units[i];
        sim_ok(filch_graph_add(graph, &task, NULL));
    }
    looks = 0;
    sim_ok(filch_graph_submit(graph, NULL, &job));
    sim_finish(job, &outcome);
    assert_int_equal(outcome.status, FILCH_OK);
    assert_true(fabs(outcome.info.seconds / seconds - 1) < 1e-6);
    sim_ok(filch_graph_destroy(graph));
    sim_close(&world);
    return looks;
}

static void looks_do_not_grow_with_the_time(void **state)
{
    (void)state;
    uint64_t less = looks_during(1e3), more = looks_during(1e4);
    assert_true(less > 0); /* it does look */
    /* Ten times as long takes as many more looks as each factor of ten does. */
    assert_true(more < 10000);
    assert_true(more - less < 1000);
    assert_true(looks_during(1e9) < 20000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(looks_do_not_grow_with_the_time)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
