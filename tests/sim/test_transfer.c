/* SPDX-License-Identifier: Apache-2.0 */
/* Theft between memories on the virtual clock: what is stolen has to be brought, which takes time
 * over links, and counts once these were measured.
 *
 *     test_sim_transfer [CASES [SEED]] */
#define _GNU_SOURCE
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "../random.h"
#include "sim.h"

/* Of the bound with transfers. */
#define MOST_EXCESS 1.03

enum { TILE = 1000000, MOST_TASKS = 24 * 800, MOST_DEVICES = 24 };

static sim_outcome outcome;
static filch_losses losses[SIM_MOST_DEVICES];
static sim_world world;
static filch_data *data;
static filch_graph *graph;
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

static void open_graph(const char *text, uint32_t tiles, bool is_measured)
{
    filch_data_desc data_desc = FILCH_DATA_DESC_INIT;
    filch_graph_desc desc = FILCH_GRAPH_DESC_INIT;
    sim_open_machine(&world, text, BENCH_POLICY_STEAL);
    if (is_measured) {
        sim_ok(filch_device_measure_links(world.runtime));
    }
    data_desc.flags = FILCH_DATA_NO_BUFFER;
    data_desc.rows = (uint64_t)tiles * TILE;
    data_desc.tile_rows = TILE;
    data_desc.element = 1;
    sim_ok(filch_data_create(world.runtime, &data_desc, &data));
    sim_ok(filch_graph_create(world.runtime, &desc, &graph));
    codelet = sim_codelet(&world, must_not_run, two_ms, NULL);
}

static filch_task add(uint32_t tile, uint32_t affinity, filch_access_mode mode)
{
    filch_access access = {.data = data, .row = tile, .mode = mode};
    filch_task_desc task = FILCH_TASK_DESC_INIT;
    filch_task made;
    task.codelet = codelet;
    task.accesses = &access;
    task.access_count = 1;
    task.affinity = affinity;
    sim_ok(filch_graph_add(graph, &task, &made));
    return made;
}

static void run_graph(void)
{
    filch_job *job = NULL;
    filch_report report = FILCH_REPORT_INIT;
    sim_ok(filch_graph_submit(graph, NULL, &job));
    assert_int_equal(filch_job_wait(job, -1), FILCH_OK);
    sim_ok(filch_job_report(job, graph, &report, losses, SIM_MOST_DEVICES));
    sim_finish(job, &outcome);
    assert_int_equal(outcome.status, FILCH_OK);
}

static void close_graph(void)
{
    sim_ok(filch_graph_destroy(graph));
    sim_ok(filch_data_destroy(data));
    sim_close(&world);
}

#define PAIR(bandwidth)                                                                    \
    "{\"devices\": [{\"speed\": 1e9, \"count\": 2}], \"link\": {\"bandwidth\": " bandwidth \
    ", \"latency_us\": 0}}"

/* The first device makes four tiles, and then has six tasks of 2 ms that read them, all ready at
 * once. The other one has as much time as they take, and lacks every tile. */
static uint64_t run_readers(const char *text, bool is_measured)
{
    filch_task made[4], last;
    open_graph(text, 4, is_measured);
    for (uint32_t i = 0; i < 4; ++i) {
        made[i] = add(i, 1, FILCH_WRITE);
        if (i != 0) {
            sim_ok(filch_graph_edge(graph, made[i - 1], made[i]));
        }
    }
    for (uint32_t i = 0; i < 6; ++i) {
        last = add(i % 4, 1, FILCH_READ);
        if (i % 4 != 3) {
            sim_ok(filch_graph_edge(graph, made[3], last));
        }
    }
    run_graph();
    uint64_t us = (uint64_t)llround(outcome.info.seconds * 1e6);
    uint64_t stolen = outcome.devices[1].tiles;
    print_message("%llu us, %llu tasks stolen, %llu too dear\n", (unsigned long long)us,
                  (unsigned long long)stolen, (unsigned long long)losses[1].refused_dear);
    return us;
}

static void test_dear(void **state)
{
    (void)state;
    /* A tile takes 10 ms over each of two links, and what is left never more than 12. */
    assert_int_equal(run_readers(PAIR("1e8"), true), 20000);
    assert_int_equal(outcome.devices[1].tiles, 0);
    assert_true(losses[1].refused_dear > 0);
    assert_int_equal(losses[0].refused_dear, 0);
    close_graph();
    /* Nobody knows. */
    assert_true(run_readers(PAIR("1e8"), false) > 20000);
    assert_true(outcome.devices[1].tiles > 0);
    assert_int_equal(losses[1].refused_dear, 0);
    close_graph();
    /* 10 us: three for each. */
    assert_int_equal(run_readers(PAIR("1e11"), true), 16000);
    assert_int_equal(outcome.devices[1].tiles, 2);
    close_graph();
}

/* Of the tasks that are ready on the first device, one that is neither the oldest nor among those
 * that it takes at once reads what the other one has. */
static void test_least_missing(void **state)
{
    (void)state;
    static const uint32_t places[] = {1, 2, 4};
    for (size_t p = 0; p < sizeof places / sizeof *places; ++p) {
        uint32_t at = places[p];
        filch_task made[2], before = 0;
        open_graph(PAIR("1e8"), 8, true);
        for (uint32_t i = 0; i < 6; ++i) {
            made[0] = add(i, 1, FILCH_WRITE);
            if (i != 0) {
                sim_ok(filch_graph_edge(graph, before, made[0]));
            }
            before = made[0];
        }
        made[1] = add(6, 2, FILCH_WRITE);
        for (uint32_t i = 0; i < 6; ++i) {
            filch_task task = add(i == at ? 6 : i, 1, FILCH_READ);
            sim_ok(filch_graph_edge(graph, made[0], task));
        }
        run_graph();
        /* It is done with its own by 2 ms, and then has what is ready by 12 ms. */
        /* It is done with its own by 2 ms, and then has what is ready by 12 ms. */
        assert_int_equal(outcome.devices[1].tiles, 2);
        assert_int_equal(outcome.devices[1].bytes_in + outcome.devices[1].bytes_peer, 0);
        assert_int_equal(outcome.devices[0].bytes_in + outcome.devices[0].bytes_peer, 0);
        close_graph();
    }
}

/* --- Random machines --- */

static fl_random random_state;
static uint64_t cases, first_seed = 1, seed;

#define check(condition)                                                     \
    do {                                                                     \
        if (!(condition)) {                                                  \
            fail_msg("seed %llu: %s", (unsigned long long)seed, #condition); \
        }                                                                    \
    } while (0)

static double between(double least, double most)
{
    return least * exp(fl_random_unit(&random_state) * log(most / least));
}

typedef struct linked {
    double speed, score, bandwidth;
} linked;

static linked devices[MOST_DEVICES];
static uint32_t device_count;

static void draw_devices(void)
{
    char text[MOST_DEVICES * 200], *at = text;
    device_count = 2 + fl_random_below(&random_state, MOST_DEVICES - 1);
    at += sprintf(at, "{\"devices\": [");
    for (uint32_t d = 0; d < device_count; ++d) {
        linked *l = &devices[d];
        l->speed = between(1e9, 8e9);
        l->score = l->speed * between(0.25, 4);
        l->bandwidth = between(1e8, 4e9);
        at += sprintf(at,
                      "%s{\"speed\": %.17g, \"score\": %.17g, \"overhead_us\": 1, \"link\": "
                      "{\"bandwidth\": %.17g, \"latency_us\": 1}}",
                      d != 0 ? ", " : "", l->speed, l->score, l->bandwidth);
    }
    (void)sprintf(at, "]}");
    sim_open_machine(&world, text, BENCH_POLICY_STEAL);
    sim_ok(filch_device_measure_links(world.runtime));
}

/* When n pieces of so much work and so many bytes can be done at best: a device has the first piece
 * after it was brought and worked on, and each further one as long after as the slower of both
 * takes. */
static double bound_of(double n, double work, double bytes, double fixed)
{
    double low = 0, high = 1e3;
    for (int i = 0; i < 200; ++i) {
        double t = (low + high) / 2, done = 0;
        for (uint32_t d = 0; d < device_count; ++d) {
            double copy = bytes / devices[d].bandwidth + fixed;
            double run = work / devices[d].speed + fixed;
            done += t > copy + run ? 1 + (t - copy - run) / fmax(copy, run) : 0;
        }
        *(done < n ? &low : &high) = t;
    }
    return low;
}

static double task_work;

static double drawn_work(const filch_call *call)
{
    (void)call;
    return task_work;
}

static double drawn_chunk(const filch_call *call)
{
    return task_work * (double)(call->hi - call->lo);
}

static void open_data(uint64_t bytes, uint64_t tile, void *buffer)
{
    filch_data_desc desc = FILCH_DATA_DESC_INIT;
    desc.ptr = buffer;
    desc.rows = bytes;
    desc.tile_rows = tile;
    desc.element = 1;
    sim_ok(filch_data_create(world.runtime, &desc, &data));
}

static double worst;

static void compare(const char *what, double bound)
{
    double excess = outcome.info.seconds / bound;
    check(outcome.status == FILCH_OK);
    check(excess >= 1 - 1e-6);
    worst = fmax(worst, excess);
    if (excess > MOST_EXCESS) {
        print_message("%s, seed %llu: %u devices, %.4f of the bound\n", what,
                      (unsigned long long)seed, device_count, excess);
    }
    check(excess <= MOST_EXCESS);
}

/* Tasks that each read a tile of their own of the host's, all ready at once on one device. */
static void check_graph(void)
{
    filch_graph_desc desc = FILCH_GRAPH_DESC_INIT;
    filch_job *job = NULL;
    enum { TASK_TILE = 2000 };
    static char buffer[(MOST_TASKS + 1) * TASK_TILE];
    draw_devices();
    uint32_t n = device_count * (400 + fl_random_below(&random_state, 400));
    task_work = floor(between(2e5, 2e6));
    open_data(((uint64_t)n + 1) * TASK_TILE, TASK_TILE, buffer);
    sim_ok(filch_graph_create(world.runtime, &desc, &graph));
    codelet = sim_codelet(&world, must_not_run, drawn_work, NULL);
    filch_task gate = add(n, 0, FILCH_READ);
    for (uint32_t i = 0; i < n; ++i) {
        filch_task task = add(i, 0, FILCH_READ);
        sim_ok(filch_graph_edge(graph, gate, task));
    }
    sim_ok(filch_graph_submit(graph, NULL, &job));
    sim_finish(job, &outcome);
    compare("graph", bound_of(n, task_work, TASK_TILE, 1e-6));
    close_graph();
}

static void check_batch(void)
{
    enum { MOST_BYTES = 64000000 };
    static char *buffer;
    filch_batch_desc desc = FILCH_BATCH_DESC_INIT;
    filch_job *job = NULL;
    buffer = buffer != NULL ? buffer : calloc(1, MOST_BYTES);
    assert_non_null(buffer);
    draw_devices();
    open_data(MOST_BYTES, MOST_BYTES, buffer);
    filch_batch_access access = {
        .data = data, .mode = FILCH_READ, .map = FILCH_MAP_AFFINE, .scale = 1000};
    task_work = floor(between(2e4, 2e5));
    desc.codelet = sim_codelet(&world, must_not_run, drawn_chunk, NULL);
    desc.accesses = &access;
    desc.access_count = 1;
    desc.n = MOST_BYTES / 1000;
    sim_ok(filch_batch_submit(world.runtime, &desc, NULL, &job));
    sim_finish(job, &outcome);
    compare("batch", bound_of((double)desc.n, task_work, 1000, 0));
    sim_ok(filch_data_destroy(data));
    sim_close(&world);
}

static void test_graphs(void **state)
{
    (void)state;
    worst = 0;
    for (seed = first_seed; seed < first_seed + cases; ++seed) {
        fl_random_init(&random_state, seed, 0);
        check_graph();
    }
    print_message("%llu graphs from seed %llu: the worst %.4f of the bound\n",
                  (unsigned long long)cases, (unsigned long long)first_seed, worst);
}

static void test_batches(void **state)
{
    (void)state;
    worst = 0;
    for (seed = first_seed; seed < first_seed + cases; ++seed) {
        fl_random_init(&random_state, seed, 1);
        check_batch();
    }
    print_message("%llu batches from seed %llu: the worst %.4f of the bound\n",
                  (unsigned long long)cases, (unsigned long long)first_seed, worst);
}

/* --- Urgent tasks that lack a tile --- */

enum { KEPT = 12, ROUNDS = 100, RESULTS = 400, URGENT = 3 };

static void add_pair(filch_codelet *what, int32_t priority, filch_access first, filch_access second,
                     filch_task *made)
{
    const filch_access accesses[] = {first, second};
    filch_task_desc task = FILCH_TASK_DESC_INIT;
    task.codelet = what;
    task.accesses = accesses;
    task.access_count = 2;
    task.priority = priority;
    sim_ok(filch_graph_add(graph, &task, made));
}

/* Number of tasks of the graph that began before its last urgent one. */
static size_t begun_before(const char *path)
{
    json_t *document = json_load_file(path, 0, NULL), *event;
    const json_t *events = json_object_get(document, "traceEvents");
    double last = 0;
    size_t at, count = 0;
    assert_non_null(document);
    for (int round = 0; round < 2; ++round) {
        json_array_foreach(events, at, event)
        {
            const char *name = json_string_value(json_object_get(event, "name"));
            double begin = json_number_value(json_object_get(event, "ts"));
            bool is_urgent = name != NULL && strcmp(name, "urgent") == 0;
            bool is_other = name != NULL && strcmp(name, "tile") == 0;
            last = round == 0 && is_urgent && begin > last ? begin : last;
            count += round == 1 && is_other && begin < last;
        }
    }
    json_decref(document);
    return count;
}

/* Memory is short, so no tile is fetched ahead: tasks that lack nothing pass the urgent ones, but a
 * few times only. */
static void test_passed(void **state)
{
    char path[] = "/tmp/filch-passed-XXXXXX";
    filch_codelet_desc urgent_desc = FILCH_CODELET_DESC_INIT;
    filch_codelet *urgent = NULL;
    filch_data *fresh = NULL, *results = NULL;
    filch_data_desc desc = FILCH_DATA_DESC_INIT;
    filch_graph_desc graph_desc = FILCH_GRAPH_DESC_INIT;
    filch_task made, opener = 0;
    int file = mkstemp(path);
    (void)state;
    assert_true(file >= 0 && close(file) == 0);
    sim_open_machine(
        &world,
        "{\"link\": {\"bandwidth\": 1e9, \"latency_us\": 1}, \"devices\": [{\"name\": "
        "\"gpu\", \"speed\": 1e9, \"overhead_us\": 1, \"lanes\": 2, \"memory\": 40e6}]}",
        BENCH_POLICY_STEAL);
    codelet = sim_codelet(&world, must_not_run, two_ms, NULL);
    urgent_desc.name = "urgent";
    urgent_desc.host = must_not_run;
    urgent_desc.work = two_ms;
    sim_ok(filch_codelet_create(world.runtime, &urgent_desc, &urgent));
    desc.element = 1;
    desc.tile_rows = TILE;
    desc.rows = (uint64_t)(KEPT + URGENT) * TILE;
    desc.ld = 0;
    desc.ptr = calloc(1, desc.rows);
    sim_ok(filch_data_create(world.runtime, &desc, &data));
    void *first = desc.ptr;
    desc.rows = (uint64_t)URGENT * TILE;
    desc.ptr = calloc(1, desc.rows);
    sim_ok(filch_data_create(world.runtime, &desc, &fresh));
    void *second = desc.ptr;
    desc.rows = (uint64_t)RESULTS * TILE;
    desc.ptr = calloc(1, desc.rows);
    sim_ok(filch_data_create(world.runtime, &desc, &results));
    graph_desc.priorities = FILCH_PRIORITIES_CALLER;
    sim_ok(filch_graph_create(world.runtime, &graph_desc, &graph));
    for (uint32_t i = 0; i < ROUNDS * KEPT; ++i) {
        add_pair(codelet, 0, (filch_access)FILCH_RW(data, i % KEPT, 0),
                 (filch_access)FILCH_W(results, i % RESULTS, 0), &made);
        opener = i == 4 * KEPT ? made : opener;
    }
    for (uint32_t i = 0; i < URGENT; ++i) {
        add_pair(urgent, 100, (filch_access)FILCH_RW(data, KEPT + i, 0),
                 (filch_access)FILCH_R(fresh, i, 0), &made);
        sim_ok(filch_graph_edge(graph, opener, made));
    }
    sim_ok(filch_trace_start(world.runtime));
    sim_ok(filch_graph_run(graph, NULL, NULL));
    sim_ok(filch_trace_write(world.runtime, path));
    assert_in_range(begun_before(path), 4 * KEPT, 20 * KEPT);
    unlink(path);
    sim_ok(filch_graph_destroy(graph));
    sim_ok(filch_data_destroy(results));
    sim_ok(filch_data_destroy(fresh));
    sim_ok(filch_data_destroy(data));
    free(desc.ptr);
    free(second);
    free(first);
    sim_close(&world);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dear),   cmocka_unit_test(test_least_missing),
        cmocka_unit_test(test_graphs), cmocka_unit_test(test_batches),
        cmocka_unit_test(test_passed),
    };
    const char *is_long = getenv("FL_TEST_LONG");
    cases = is_long != NULL && is_long[0] == '1' ? 1000 : 40;
    if (argc > 1) {
        cases = strtoull(argv[1], NULL, 0);
    }
    if (argc > 2) {
        first_seed = strtoull(argv[2], NULL, 0);
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
