/* SPDX-License-Identifier: Apache-2.0 */
/* Sealing: cycles and their names, priorities, placement, and what a resubmission costs. */
#include "fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/build/graph.h"

static fixture_memory memory;
static filch_runtime *runtime;
static filch_codelet *nothing, *note;

static int ran[1024];
static _Atomic int ran_count;

static int note_number(const filch_call *call)
{
    ran[ran_count++] = *(const int *)call->args;
    return 0;
}

static int set_up(void **state)
{
    (void)state;
    fixture_memory_init(&memory);
    runtime = fixture_runtime("host:1", FILCH_DRIVE_POLL, &memory);
    nothing = fixture_codelet(runtime, "nothing", fixture_nothing, 0);
    note = fixture_codelet(runtime, "note", note_number, sizeof(int));
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    assert_ok(filch_runtime_destroy(runtime));
    assert_int_equal(memory.bytes, 0);
    return 0;
}

static filch_task add_named(filch_graph *graph, const char *label)
{
    filch_task_desc desc = FILCH_TASK_DESC_INIT;
    filch_task task = 0;
    desc.codelet = nothing;
    desc.label = label;
    assert_ok(filch_graph_add(graph, &desc, &task));
    return task;
}

static void a_short_cycle_is_named_whole(void **state)
{
    (void)state;
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    filch_task before = add_named(graph, "before"), a = add_named(graph, "alpha");
    filch_task b = add_named(graph, "beta"), c = add_named(graph, NULL);
    filch_task behind = add_named(graph, "behind");
    add_named(graph, "apart");
    assert_ok(filch_graph_edge(graph, before, a));
    assert_ok(filch_graph_edge(graph, a, b));
    assert_ok(filch_graph_edge(graph, b, c));
    assert_ok(filch_graph_edge(graph, c, a));
    assert_ok(filch_graph_edge(graph, c, behind));
    assert_status(filch_graph_seal(graph), FILCH_CYCLE);
    filch_error error = fixture_error(runtime);
    assert_int_equal(error.status, FILCH_CYCLE);
    assert_non_null(strstr(error.text, "3 tasks"));
    assert_non_null(strstr(error.text, "alpha #1"));
    assert_non_null(strstr(error.text, "beta #2"));
    assert_non_null(strstr(error.text, "nothing #3"));
    assert_null(strstr(error.text, "before"));
    assert_null(strstr(error.text, "behind"));
    assert_null(strstr(error.text, "apart"));
    /* It stays refused, by every way in, until it is destroyed. */
    filch_job *job = NULL;
    filch_task_desc desc = FILCH_TASK_DESC_INIT;
    desc.codelet = nothing;
    assert_status(filch_graph_seal(graph), FILCH_CYCLE);
    assert_status(filch_graph_submit(graph, NULL, &job), FILCH_CYCLE);
    assert_null(job);
    assert_status(filch_graph_add(graph, &desc, NULL), FILCH_WRONG_STATE);
    assert_status(filch_graph_edge(graph, a, behind), FILCH_WRONG_STATE);
    assert_ok(filch_graph_destroy(graph));
}

static void the_first_submission_finds_it_too(void **state)
{
    (void)state;
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    filch_task a = add_named(graph, "a"), b = add_named(graph, "b");
    filch_job *job = NULL;
    assert_ok(filch_graph_edge(graph, b, a));
    assert_ok(filch_graph_edge(graph, a, b));
    assert_status(filch_graph_submit(graph, NULL, &job), FILCH_CYCLE);
    assert_null(job);
    assert_ok(filch_runtime_drain(runtime, 0)); /* nothing runs */
    assert_ok(filch_graph_destroy(graph));
}

static void a_long_cycle_is_cut_and_counted(void **state)
{
    (void)state;
    enum { LONG = 200000 };
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    filch_task *tasks = malloc(LONG * sizeof *tasks);
    for (int i = 0; i < LONG; ++i) {
        tasks[i] = add_named(graph, "a label that is rather long");
    }
    /* Edges by hand look their tasks up, newest first: the ring is of the last ones. */
    for (int i = LONG - 300; i + 1 < LONG; ++i) {
        assert_ok(filch_graph_edge(graph, tasks[i], tasks[i + 1]));
    }
    assert_ok(filch_graph_edge(graph, tasks[LONG - 1], tasks[LONG - 300]));
    assert_status(filch_graph_seal(graph), FILCH_CYCLE);
    filch_error error = fixture_error(runtime);
    assert_non_null(strstr(error.text, "300 tasks wait for one another: a label"));
    assert_non_null(strstr(error.text, " <- ... <- (first)"));
    free(tasks);
    assert_ok(filch_graph_destroy(graph));
}

static void a_cycle_through_inference_is_linear_to_name(void **state)
{
    (void)state;
    enum { LONG = 100000 };
    static double tile;
    filch_data *data = fixture_vector(runtime, &tile, 8, 1, 1);
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    filch_access access = fixture_access(data, 0, FILCH_READWRITE);
    filch_task first = 0, last = 0;
    for (int i = 0; i < LONG; ++i) {
        last = fixture_add(graph, nothing, NULL, &access, 1);
        first = i == 0 ? last : first;
    }
    assert_ok(filch_graph_edge(graph, last, first));
    assert_status(filch_graph_seal(graph), FILCH_CYCLE);
    assert_non_null(strstr(fixture_error(runtime).text, "100000 tasks wait"));
    assert_ok(filch_graph_destroy(graph));
    assert_ok(filch_data_destroy(data));
}

static void odd_labels_stay_within_the_text(void **state)
{
    (void)state;
    char labels[40][80];
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    filch_task tasks[40];
    for (int i = 0; i < 40; ++i) {
        memset(labels[i], '.', sizeof labels[i]);
        labels[i][i * 2 % 79] = '\0';
        tasks[i] = add_named(graph, labels[i]);
    }
    for (int i = 0; i < 40; ++i) {
        assert_ok(filch_graph_edge(graph, tasks[i], tasks[(i + 1) % 40]));
    }
    assert_status(filch_graph_seal(graph), FILCH_CYCLE);
    filch_error error = fixture_error(runtime);
    assert_true(strlen(error.text) < sizeof error.text);
    assert_non_null(strstr(error.text, "40 tasks"));
    assert_non_null(strstr(error.text, "(first)"));
    assert_ok(filch_graph_destroy(graph));
}

static void edges_to_earlier_tasks_are_followed(void **state)
{
    (void)state;
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    filch_task tasks[100];
    for (int i = 0; i < 100; ++i) {
        tasks[i] = fixture_add(graph, note, &i, NULL, 0);
    }
    for (int i = 99; i > 0; --i) {
        assert_ok(filch_graph_edge(graph, tasks[i], tasks[i - 1]));
    }
    for (int round = 0; round < 3; ++round) {
        ran_count = 0;
        assert_ok(fixture_run(graph));
        assert_int_equal(ran_count, 100);
        for (int i = 0; i < 100; ++i) {
            assert_int_equal(ran[i], 99 - i);
        }
    }
    assert_ok(filch_graph_destroy(graph));
}

static filch_graph *graph_of(filch_priorities priorities)
{
    filch_graph_desc desc = FILCH_GRAPH_DESC_INIT;
    filch_graph *graph = NULL;
    desc.priorities = priorities;
    assert_ok(filch_graph_create(runtime, &desc, &graph));
    return graph;
}

static filch_task add_prior(filch_graph *graph, int number, int32_t priority)
{
    filch_task_desc desc = FILCH_TASK_DESC_INIT;
    filch_task task = 0;
    desc.codelet = note;
    desc.args = &number;
    desc.priority = priority;
    assert_ok(filch_graph_add(graph, &desc, &task));
    return task;
}

static void the_callers_priorities_order_one_worker(void **state)
{
    (void)state;
    static const int32_t sets[][8] = {
        {0, 1, 2, 3, 4, 5, 6, 7},
        {INT32_MIN, -1500000000, -900000000, -300000000, 300000000, 900000000, 1500000000,
         INT32_MAX},
    };
    for (size_t set = 0; set < 2; ++set) {
        for (int with_source = 0; with_source < 2; ++with_source) {
            filch_graph *graph = graph_of(FILCH_PRIORITIES_CALLER);
            filch_task source = with_source ? add_prior(graph, -1, sets[set][7]) : 0;
            for (int i = 0; i < 80; ++i) {
                int class = i * 3 % 8;
                filch_task task = add_prior(graph, class, sets[set][class]);
                if (with_source) {
                    assert_ok(filch_graph_edge(graph, source, task));
                }
            }
            for (int round = 0; round < 2; ++round) {
                ran_count = 0;
                assert_ok(fixture_run(graph));
                assert_int_equal(ran_count, 80 + with_source);
                for (int i = 0; i < 80; ++i) {
                    assert_int_equal(ran[i + with_source], 7 - i / 10);
                }
            }
            assert_ok(filch_graph_destroy(graph));
        }
    }
}

static void the_longest_path_goes_first(void **state)
{
    (void)state;
    filch_graph *graph = graph_of(FILCH_PRIORITIES_RANK);
    /* Chains of 1, 2, … 8 tasks, added shortest first: of their heads the longest runs first. */
    for (int length = 1; length <= 8; ++length) {
        filch_task before = 0;
        for (int i = 0; i < length; ++i) {
            filch_task task = add_prior(graph, length * 100 + i, 0);
            if (before != 0) {
                assert_ok(filch_graph_edge(graph, before, task));
            }
            before = task;
        }
    }
    ran_count = 0;
    assert_ok(fixture_run(graph));
    assert_int_equal(ran_count, 36);
    assert_int_equal(ran[0], 800);
    int heads[8], count = 0;
    for (int i = 0; i < ran_count; ++i) {
        if (ran[i] % 100 == 0) {
            heads[count++] = ran[i] / 100;
        }
    }
    for (int i = 0; i < 8; ++i) {
        assert_int_equal(heads[i], 8 - i);
    }
    assert_ok(filch_graph_destroy(graph));
}

static _Atomic int device_of[8];

static int note_device(const filch_call *call)
{
    device_of[*(const int *)call->args] = (int)call->device;
    return 0;
}

static void a_static_policy_keeps_affinity_and_owners(void **state)
{
    (void)state;
    filch_runtime_desc config = FILCH_RUNTIME_DESC_INIT;
    filch_runtime *rt = NULL;
    static double tiles[8];
    config.devices = "host:4";
    config.policy = FILCH_POLICY_STATIC;
    assert_ok(filch_runtime_create(&config, NULL, &rt));
    filch_codelet *where = fixture_codelet(rt, "where", note_device, sizeof(int));
    filch_data *data = fixture_vector(rt, tiles, 8, 8, 1);
    filch_graph *graph = fixture_graph(rt, FILCH_GRAPH_CLOSED);
    for (int i = 0; i < 8; ++i) {
        filch_access access = fixture_access(data, (uint32_t)i, FILCH_WRITE);
        filch_task_desc desc = FILCH_TASK_DESC_INIT;
        desc.codelet = where;
        desc.args = &i;
        desc.accesses = &access;
        desc.access_count = 1;
        desc.affinity = i == 0 ? 4 : FILCH_ANY_DEVICE; /* the caller's wish beats the owner */
        assert_ok(filch_graph_add(graph, &desc, NULL));
    }
    double scores[4];
    double total = 0, sum = 0;
    for (uint32_t d = 0; d < 4; ++d) {
        filch_device_info info = {.size = sizeof info};
        assert_ok(filch_device_at(rt, d, &info));
        total += scores[d] = info.score;
    }
    for (int round = 0; round < 5; ++round) {
        assert_ok(fixture_run(graph));
        assert_int_equal(device_of[0], 3);
        int device = 0;
        sum = scores[0];
        for (int i = 1; i < 8; ++i) {
            while ((i + 0.5) / 8 * total >= sum && device < 3) {
                sum += scores[++device];
            }
            assert_int_equal(device_of[i], device);
        }
    }
    assert_ok(filch_runtime_destroy(rt));
}

/* A graph with inferred and explicit edges and arguments; is_wide: also scratch, and more tasks
 * ready at a time than a deque holds at first. */
static filch_graph *mixed_graph(filch_runtime *rt, filch_data *data, bool is_wide)
{
    filch_codelet *plain = fixture_codelet(rt, "plain", fixture_nothing, 0);
    filch_codelet *with_args = fixture_codelet(rt, "args", fixture_nothing, 40);
    static const char args[40];
    filch_graph *graph = fixture_graph(rt, FILCH_GRAPH_CLOSED);
    filch_task first = fixture_add(graph, plain, NULL, NULL, 0);
    for (uint32_t i = 0; is_wide && i < 300; ++i) {
        filch_task task = fixture_add(graph, plain, NULL, NULL, 0);
        assert_ok(filch_graph_edge(graph, first, task));
    }
    for (uint32_t i = 0; i < 600; ++i) {
        filch_access accesses[3] = {fixture_access(data, i % 16, FILCH_READWRITE),
                                    fixture_access(data, (i + 5) % 16, FILCH_READ),
                                    {.mode = FILCH_SCRATCH, .bytes = 1000}};
        filch_codelet *codelet = i % 2 ? plain : with_args;
        filch_task task =
            fixture_add(graph, codelet, i % 2 ? NULL : args, accesses, is_wide ? 3 : 2);
        if (i % 7 == 0 && (is_wide || i < 50)) {
            assert_ok(filch_graph_edge(graph, first, task));
        }
    }
    return graph;
}

static void resubmitting_allocates_nothing(void **state)
{
    (void)state;
    static const struct {
        const char *devices;
        filch_drive drive;
        bool is_wide;
    } cases[] = {{"host:1", FILCH_DRIVE_POLL, false},    {"host:1", FILCH_DRIVE_POLL, true},
                 {"host:1", FILCH_DRIVE_THREADS, true},  {"host:4", FILCH_DRIVE_POLL, false},
                 {"host:4", FILCH_DRIVE_THREADS, false}, {"host:2", FILCH_DRIVE_THREADS, false}};
    static double tiles[16];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
        fixture_memory counted;
        fixture_memory_init(&counted);
        filch_runtime *rt = fixture_runtime(cases[i].devices, cases[i].drive, &counted);
        filch_data *data = fixture_vector(rt, tiles, 8, 16, 1);
        filch_graph *graph = mixed_graph(rt, data, cases[i].is_wide);
        assert_ok(filch_graph_seal(graph));
        if (cases[i].is_wide) {
            assert_ok(fixture_run(graph)); /* the worker's deques and scratch grow to fit */
        }
        int64_t calls = counted.calls;
        for (int round = 0; round < 100; ++round) {
            assert_ok(fixture_run(graph));
        }
        assert_int_equal(counted.calls, calls);
        assert_ok(filch_runtime_destroy(rt));
        assert_int_equal(counted.bytes, 0);
        assert_int_equal(counted.pieces, 0);
    }
}

static void the_very_first_run_of_a_sealed_graph_allocates_nothing(void **state)
{
    (void)state;
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    for (int i = 0; i < 50; ++i) {
        fixture_add(graph, nothing, NULL, NULL, 0);
    }
    assert_ok(filch_graph_seal(graph));
    int64_t calls = memory.calls;
    assert_ok(fixture_run(graph));
    assert_int_equal(memory.calls, calls);
    assert_ok(filch_graph_destroy(graph));
}

/* A refused call seals nothing: the graph takes tasks, and runs with them. */
static void a_refused_graph_takes_tasks(void **state)
{
    (void)state;
    double x = 0;
    filch_data *data = fixture_vector(runtime, &x, sizeof x, 1, 1);
    filch_data_desc bare = {.size = sizeof bare, .element = 8, .rows = 1};
    bare.flags = FILCH_DATA_NO_BUFFER;
    filch_data *unwritten = NULL;
    assert_ok(filch_data_create(runtime, &bare, &unwritten));
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    filch_job *job = NULL;
    assert_status(filch_graph_repeat(graph, NULL, NULL, &job), FILCH_INVALID_ARGUMENT);
    int number = 0;
    fixture_add(graph, note, &number, &fixture_access(data, 0, FILCH_READWRITE), 1);
    assert_ok(filch_data_acquire(data, FILCH_READ));
    assert_status(filch_graph_submit(graph, NULL, &job), FILCH_BUSY);
    filch_error error = FILCH_ERROR_INIT;
    assert_ok(filch_runtime_error(runtime, &error));
    assert_string_equal(error.text, "the host has acquired the handle and not released it");
    assert_status(filch_graph_repeat(graph, NULL, NULL, &job), FILCH_BUSY);
    assert_ok(filch_data_release(data));
    ++number;
    fixture_add(graph, note, &number, &fixture_access(unwritten, 0, FILCH_READ), 1);
    assert_status(filch_graph_submit(graph, NULL, &job), FILCH_WRONG_STATE);
    assert_ok(filch_data_acquire(unwritten, FILCH_WRITE));
    assert_ok(filch_data_release(unwritten));
    ++number;
    fixture_add(graph, note, &number, NULL, 0);
    assert_null(job);
    ran_count = 0;
    assert_ok(fixture_run(graph));
    assert_int_equal(ran_count, 3);
    filch_task_desc late = FILCH_TASK_DESC_INIT;
    late.codelet = nothing;
    assert_status(filch_graph_add(graph, &late, NULL), FILCH_WRONG_STATE);
    assert_ok(filch_graph_destroy(graph));
    assert_ok(filch_data_destroy(data));
    assert_ok(filch_data_destroy(unwritten));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_short_cycle_is_named_whole),
        cmocka_unit_test(the_first_submission_finds_it_too),
        cmocka_unit_test(a_long_cycle_is_cut_and_counted),
        cmocka_unit_test(a_cycle_through_inference_is_linear_to_name),
        cmocka_unit_test(odd_labels_stay_within_the_text),
        cmocka_unit_test(edges_to_earlier_tasks_are_followed),
        cmocka_unit_test(the_callers_priorities_order_one_worker),
        cmocka_unit_test(the_longest_path_goes_first),
        cmocka_unit_test(a_static_policy_keeps_affinity_and_owners),
        cmocka_unit_test(resubmitting_allocates_nothing),
        cmocka_unit_test(the_very_first_run_of_a_sealed_graph_allocates_nothing),
        cmocka_unit_test(a_refused_graph_takes_tasks),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
