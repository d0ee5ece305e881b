/* SPDX-License-Identifier: Apache-2.0 */
/* Simulated slices of one GPU, which share its memory and whose workers take time to launch and to
 * look: a chain is run by the large slice once the speeds are known, and slices that wait for
 * memory help with the divisible task that holds it. */
#define _GNU_SOURCE
#include <math.h>
#include <string.h>

#include "sim.h"

#define HOST "\"host\": {\"launch_us\": 6, \"see_us\": 3}"
#define SLICE(name, speed, more) "{\"name\": \"" name "\", \"speed\": " speed ", " HOST more "}"
#define MACHINE(devices) "{\"link\": {\"bandwidth\": 1e10}, \"devices\": [" devices "]}"
/* Work of 1e6 takes all of them together a millisecond. */
/* As slices of 88, 24 and 8 multiprocessors; the scores have them turned round. */
#define UNLIKE                                                                      \
    MACHINE(SLICE("a", "7.33e8", ", \"score\": 8, \"memory\": 8000000") ", " SLICE( \
        "b", "2e8",                                                                 \
        ", \"score\": 24, \"shares\": \"a\"") ", " SLICE("c", "6.7e7",              \
                                                         ", \"score\": 88, \"shares\": \"a\""))
#define ALIKE                                                                                \
    MACHINE(SLICE("a", "2.5e8", ", \"memory\": 1500000") ", " SLICE(                         \
        "b", "2.5e8",                                                                        \
        ", \"shares\": \"a\"") ", " SLICE("c", "2.5e8",                                      \
                                          ", \"shares\": \"a\"") ", " SLICE("d", "2.5e8",    \
                                                                            ", \"shares\": " \
                                                                            "\"a\""))

enum { SIDE = 12, CELLS = SIDE * SIDE, LINKS = 40, ITEMS = 4096, BYTES = 1000000, SLICES = 4 };

static sim_world world;
static sim_outcome outcome; /* too large for a stack */
static filch_report report;

static double tenth_of_ms(const filch_call *call)
{
    (void)call;
    return 1e5;
}

/* Of 40 ms in all. */
static double work_of_items(const filch_call *call)
{
    return 4e7 * (double)(call->hi - call->lo) / ITEMS;
}

/* Null: without a buffer. */
static filch_data *make_data(void *at, uint64_t bytes)
{
    filch_data_desc desc = FILCH_DATA_DESC_INIT;
    filch_data *data = NULL;
    desc.ptr = at;
    desc.flags = at == NULL ? FILCH_DATA_NO_BUFFER : 0;
    desc.rows = desc.tile_rows = bytes;
    desc.element = 1;
    sim_ok(filch_data_create(world.runtime, &desc, &data));
    return data;
}

static filch_graph *make_graph(void)
{
    filch_graph *graph = NULL;
    sim_ok(filch_graph_create(world.runtime, NULL, &graph));
    return graph;
}

static void run(filch_graph *graph)
{
    filch_job *job = NULL;
    sim_ok(filch_graph_submit(graph, NULL, &job));
    (void)filch_job_wait(job, -1);
    report = (filch_report)FILCH_REPORT_INIT;
    sim_ok(filch_job_report(job, NULL, &report, NULL, 0));
    sim_finish(job, &outcome);
    assert_int_equal(outcome.status, FILCH_OK);
    assert_int_equal(outcome.info.done, outcome.info.total);
}

/* Each cell after the one above and the one to the left. */
static filch_graph *triangle(filch_codelet *codelet, filch_data **cells)
{
    filch_graph *graph = make_graph();
    for (int k = 0; k < CELLS; k++) {
        filch_access accesses[3] = {{.data = cells[k], .mode = FILCH_WRITE}};
        filch_task_desc desc = FILCH_TASK_DESC_INIT;
        desc.codelet = codelet;
        desc.accesses = accesses;
        desc.access_count = 1;
        if (k >= SIDE)
            accesses[desc.access_count++] =
                (filch_access){.data = cells[k - SIDE], .mode = FILCH_READ};
        if (k % SIDE != 0)
            accesses[desc.access_count++] =
                (filch_access){.data = cells[k - 1], .mode = FILCH_READ};
        sim_ok(filch_graph_add(graph, &desc, NULL));
    }
    return graph;
}

/* A chain is as long as its slowest links: once the smaller slices are known to be slow they run
 * none of them. */
static void test_chain(void **state)
{
    filch_data *cells[CELLS];
    (void)state;
    sim_open_machine(&world, UNLIKE, BENCH_POLICY_STEAL);
    filch_codelet *codelet = sim_codelet(&world, sim_nothing, tenth_of_ms, NULL);
    for (int k = 0; k < CELLS; k++)
        cells[k] = make_data(NULL, 64);
    filch_graph *made = triangle(codelet, cells), *chain = make_graph();
    const filch_access access = {.data = cells[0], .mode = FILCH_READWRITE};
    filch_task_desc desc = FILCH_TASK_DESC_INIT;
    desc.codelet = codelet;
    desc.accesses = &access;
    desc.access_count = 1;
    for (int k = 0; k < LINKS; k++)
        sim_ok(filch_graph_add(chain, &desc, NULL));
    for (int r = 0; r < 2; r++)
        run(made);
    for (int r = 0; r < 6; r++) {
        run(chain);
        print_message("links: %u, %u, %u\n", (unsigned)outcome.devices[0].tiles,
                      (unsigned)outcome.devices[1].tiles, (unsigned)outcome.devices[2].tiles);
        assert_int_equal(outcome.devices[0].tiles, LINKS);
    }
    sim_ok(filch_graph_destroy(chain));
    sim_ok(filch_graph_destroy(made));
    for (int k = 0; k < CELLS; k++)
        sim_ok(filch_data_destroy(cells[k]));
    sim_close(&world);
}

/* There is room for one task of four, each of which another slice has taken: those that wait for
 * room help with the one that has it. Alone each would take four times as long. */
static void test_room(void **state)
{
    static char room[SLICES][BYTES];
    filch_data *data[SLICES];
    (void)state;
    sim_open_machine(&world, ALIKE, BENCH_POLICY_STEAL);
    filch_codelet *codelet = sim_codelet(&world, sim_nothing, work_of_items, NULL);
    filch_graph *graph = make_graph();
    for (uint32_t i = 0; i < SLICES; i++) {
        data[i] = make_data(room[i], BYTES);
        const filch_access access = {.data = data[i], .mode = FILCH_READWRITE};
        filch_task_desc desc = FILCH_TASK_DESC_INIT;
        desc.codelet = codelet;
        desc.accesses = &access;
        desc.access_count = 1;
        desc.items = ITEMS;
        desc.affinity = i + 1;
        sim_ok(filch_graph_add(graph, &desc, NULL));
    }
    for (int r = 0; r < 6; r++) {
        run(graph);
        print_message("%.1f ms of 160, %u divided, %u pieces\n", outcome.info.seconds * 1e3,
                      (unsigned)report.total.divided, (unsigned)report.total.pieces);
        assert_int_equal(report.total.divided, SLICES);
        assert_true(outcome.info.seconds <= 1.05 * 0.16);
    }
    sim_ok(filch_graph_destroy(graph));
    for (uint32_t i = 0; i < SLICES; i++)
        sim_ok(filch_data_destroy(data[i]));
    sim_close(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_chain),
        cmocka_unit_test(test_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
