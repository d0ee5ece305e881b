/* SPDX-License-Identifier: Apache-2.0 */
/* Two devices that each leave tasks to the other, and the one that had them is withdrawn. */
#include "sim.h"

enum { TILE = 1000000, TILES = 16, MADE = 4, READERS = 12 };

static sim_world world;
static filch_data *data;
static filch_codelet *codelet;

static int must_not_run(const filch_call *call)
{
    (void)call;
    return 1;
}

static double two_ms(const filch_call *call)
{
    (void)call;
    return 2e6;
}

static filch_task add(filch_graph *graph, uint32_t tile, uint32_t affinity, filch_access_mode mode)
{
    const filch_access access = {.data = data, .row = tile, .mode = mode};
    filch_task_desc desc = FILCH_TASK_DESC_INIT;
    filch_task made = 0;
    desc.codelet = codelet;
    desc.accesses = &access;
    desc.access_count = 1;
    desc.affinity = affinity;
    sim_ok(filch_graph_add(graph, &desc, &made));
    return made;
}

/* Each device has some. */
static filch_graph *spread_out(void)
{
    filch_graph *graph = NULL;
    sim_ok(filch_graph_create(world.runtime, NULL, &graph));
    for (uint32_t i = 0; i < TILES; i++)
        add(graph, i, 1 + i % 3, FILCH_WRITE);
    return graph;
}

/* A chain on the first device, and many that read there what it made. */
static filch_graph *chain_and_readers(void)
{
    filch_graph *graph = NULL;
    filch_task before = 0;
    sim_ok(filch_graph_create(world.runtime, NULL, &graph));
    for (uint32_t i = 0; i < MADE; i++) {
        filch_task made = add(graph, i, 1, FILCH_WRITE);
        if (i != 0)
            sim_ok(filch_graph_edge(graph, before, made));
        before = made;
    }
    for (uint32_t i = 0; i < READERS; i++) {
        filch_task reader = add(graph, i % MADE, 1, FILCH_READ);
        if (i % MADE != MADE - 1)
            sim_ok(filch_graph_edge(graph, before, reader));
    }
    return graph;
}

static void run(filch_graph *graph, double withdraw_after)
{
    filch_job *job = NULL;
    sim_ok(filch_graph_submit(graph, NULL, &job));
    if (withdraw_after > 0) {
        assert_int_equal(filch_job_wait(job, withdraw_after), FILCH_TIMEOUT);
        sim_ok(filch_device_withdraw(world.runtime, 0));
    }
    sim_ok(filch_job_wait(job, 1000));
    sim_ok(filch_job_release(job));
    sim_ok(filch_graph_destroy(graph));
}

/* "gone" is fast and linked to "slow"; "far" is fast and linked to the host alone, slowly. For far
 * it is the way to the tiles that takes long, for slow the work: each would end before the other,
 * were it not for that. */
static void ends_without_the_device(double withdraw_after)
{
    static const char text[] =
        "{\"link\": {\"bandwidth\": 1e8, \"latency_us\": 0},"
        "\"devices\": [{\"name\": \"gone\", \"speed\": 1e9, \"memory\": 1e9},"
        "{\"name\": \"slow\", \"speed\": 5e8, \"memory\": 1e9},"
        "{\"name\": \"far\", \"speed\": 1e9, \"memory\": 1e9}],"
        "\"peers\": [{\"from\": \"gone\", \"to\": \"slow\", \"bandwidth\": 1e9},"
        "{\"from\": \"slow\", \"to\": \"gone\", \"bandwidth\": 1e9}]}";
    filch_data_desc desc = FILCH_DATA_DESC_INIT;
    sim_open_machine(&world, text, BENCH_POLICY_STEAL);
    sim_ok(filch_device_measure_links(world.runtime));
    desc.flags = FILCH_DATA_NO_BUFFER;
    desc.rows = (uint64_t)TILES * TILE;
    desc.tile_rows = TILE;
    desc.element = 1;
    sim_ok(filch_data_create(world.runtime, &desc, &data));
    codelet = sim_codelet(&world, must_not_run, two_ms, NULL);
    for (int i = 0; i < 4; i++)
        run(spread_out(), 0);
    run(chain_and_readers(), 0);
    run(chain_and_readers(), withdraw_after);
    sim_ok(filch_data_destroy(data));
    sim_close(&world);
}

static void neither_leaves_what_nobody_has(void **state)
{
    (void)state;
    for (int ms = 9; ms <= 20; ms++)
        ends_without_the_device(ms * 1e-3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(neither_leaves_what_nobody_has),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
