/* SPDX-License-Identifier: Apache-2.0 */
/* A chain of urgent tasks beside many others, on two simulated GPUs: a task that writes what its
 * predecessor writes goes right behind it on the lane, before tasks that are less urgent. */
#define _POSIX_C_SOURCE 200809L /* mkstemp */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "sim.h"

/* ENDS: tasks behind the links, so that every link is of a higher level than the others. */
enum { LINKS = 24, ENDS = 8, OTHERS = 400, TILE = 4096 };

#define MACHINE                                                                              \
    "{\"link\": {\"bandwidth\": 5e10, \"latency_us\": 8}, \"devices\": ["                    \
    "{\"name\": \"a\", \"speed\": 1e9, \"overhead_us\": 1, \"lanes\": 2, \"memory\": 1e9},"  \
    "{\"name\": \"b\", \"speed\": 1e9, \"overhead_us\": 1, \"lanes\": 2, \"memory\": 1e9}]," \
    "\"peers\": [{\"from\": \"a\", \"to\": \"b\", \"bandwidth\": 3e11, \"latency_us\": 8},"  \
    "{\"from\": \"b\", \"to\": \"a\", \"bandwidth\": 3e11, \"latency_us\": 8}]}"

static sim_world world;

static int must_not_run(const filch_call *call)
{
    (void)call;
    fail_msg("a device with a memory of its own computes nothing");
    return 1;
}

static double work(const filch_call *call)
{
    (void)call;
    return 3e5; /* 300 us */
}

static filch_codelet *make_codelet(const char *name)
{
    filch_codelet_desc desc = FILCH_CODELET_DESC_INIT;
    filch_codelet *codelet = NULL;
    desc.name = name;
    desc.host = must_not_run;
    desc.work = work;
    sim_ok(filch_codelet_create(world.runtime, &desc, &codelet));
    return codelet;
}

static filch_data *make_data(uint64_t tiles, void **memory)
{
    filch_data_desc desc = FILCH_DATA_DESC_INIT;
    filch_data *data = NULL;
    desc.element = 1;
    desc.tile_rows = TILE;
    desc.rows = tiles * TILE;
    desc.ptr = *memory = calloc(tiles, TILE);
    sim_ok(filch_data_create(world.runtime, &desc, &data));
    return data;
}

static void add(filch_graph *graph, filch_codelet *codelet, filch_access access)
{
    filch_task_desc task = FILCH_TASK_DESC_INIT;
    task.codelet = codelet;
    task.accesses = &access;
    task.access_count = 1;
    sim_ok(filch_graph_add(graph, &task, NULL));
}

/* Number of other tasks on the chain's device that began within the chain. */
static size_t begun_within(const char *path)
{
    json_t *document = json_load_file(path, 0, NULL), *event;
    const json_t *events = json_object_get(document, "traceEvents");
    double first = 0, last = 0, place = -1;
    size_t at, count = 0, links = 0;
    assert_non_null(document);
    json_array_foreach(events, at, event)
    {
        const char *name = json_string_value(json_object_get(event, "name"));
        double begin = json_number_value(json_object_get(event, "ts"));
        if (name == NULL || strcmp(name, "link") != 0)
            continue;
        first = links == 0 || begin < first ? begin : first;
        last = begin > last ? begin : last;
        assert_true(links == 0 || place == json_number_value(json_object_get(event, "tid")));
        place = json_number_value(json_object_get(event, "tid"));
        links++;
    }
    assert_int_equal(links, LINKS);
    json_array_foreach(events, at, event)
    {
        const char *name = json_string_value(json_object_get(event, "name"));
        double begin = json_number_value(json_object_get(event, "ts"));
        count += name != NULL && strcmp(name, "other") == 0 && begin > first && begin < last &&
                 place == json_number_value(json_object_get(event, "tid"));
    }
    json_decref(document);
    return count;
}

static void test_chain(void **state)
{
    char path[] = "/tmp/filch-continuation-XXXXXX";
    filch_graph *graph = NULL;
    void *chain_memory = NULL, *others_memory = NULL;
    int file = mkstemp(path);
    (void)state;
    assert_true(file >= 0 && close(file) == 0);
    sim_open_machine(&world, MACHINE, BENCH_POLICY_STEAL);
    filch_codelet *link = make_codelet("link"), *end = make_codelet("end"),
                  *other = make_codelet("other");
    filch_data *chain = make_data(1, &chain_memory), *others = make_data(OTHERS, &others_memory);
    sim_ok(filch_graph_create(world.runtime, NULL, &graph));
    for (uint32_t i = 0; i < LINKS; ++i)
        add(graph, link, (filch_access)FILCH_RW(chain, 0, 0));
    for (uint32_t i = 0; i < ENDS; ++i)
        add(graph, end, (filch_access)FILCH_RW(chain, 0, 0));
    for (uint32_t i = 0; i < OTHERS; ++i)
        add(graph, other, (filch_access)FILCH_W(others, i, 0));
    /* The first run measures, and brings the tile. */
    sim_ok(filch_graph_run(graph, NULL, NULL));
    sim_ok(filch_trace_start(world.runtime));
    sim_ok(filch_graph_run(graph, NULL, NULL));
    sim_ok(filch_trace_write(world.runtime, path));
    size_t count = begun_within(path);
    print_message("%zu tasks within a chain of %d\n", count, LINKS);
    /* The second lane has about one beside each link. Where links wait for ready tasks, there
     * are 69.
     */
    assert_in_range(count, LINKS / 3, LINKS + LINKS / 4);
    unlink(path);
    sim_ok(filch_graph_destroy(graph));
    sim_ok(filch_data_destroy(chain));
    sim_ok(filch_data_destroy(others));
    free(chain_memory);
    free(others_memory);
    sim_close(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_chain)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
