/* SPDX-License-Identifier: Apache-2.0 */
/* Policies on the virtual clock: each does what its definition says, in cases small enough to work
 * out by hand; and the caller's own are asked, followed, and put up with. */
#define _GNU_SOURCE
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim.h"

#define MS 1e6 /* units of work that take a device of speed 1e9 a millisecond */

static sim_outcome outcome; /* too large for a stack */

/* What ran, in the order of starting: tasks by their numbers, chunks by their first items. */
enum { MOST_STARTS = 4096 };
typedef struct start {
    uint64_t first, count;
    uint32_t device;
} start;
static start starts[MOST_STARTS];
static uint32_t started;
static uint32_t runs_of[MOST_STARTS]; /* of each task or item */

static void forget(void)
{
    started = 0;
    memset(runs_of, 0, sizeof runs_of);
}

typedef struct task_args {
    double work;
    uint32_t number;
} task_args;

static int run_task(const filch_call *call)
{
    const task_args *args = call->args;
    starts[started++ % MOST_STARTS] = (start){args->number, 1, call->device};
    ++runs_of[args->number];
    return 0;
}

static int run_chunk(const filch_call *call)
{
    starts[started++ % MOST_STARTS] = (start){call->lo, call->hi - call->lo, call->device};
    for (uint64_t i = call->lo; i < call->hi && i < MOST_STARTS; ++i) {
        ++runs_of[i];
    }
    return 0;
}

static double work_of(const filch_call *call)
{
    return ((const task_args *)call->args)->work;
}

static void open_custom(sim_world *world, const char *text, const filch_policy_desc *policy)
{
    char path[] = "/tmp/filch-policy-XXXXXX", devices[64];
    filch_runtime_desc config = FILCH_RUNTIME_DESC_INIT;
    filch_error error = FILCH_ERROR_INIT;
    int file = mkstemp(path);
    *world = (sim_world){0};
    assert_true(file >= 0 && write(file, text, strlen(text)) == (ssize_t)strlen(text));
    assert_int_equal(close(file), 0);
    (void)snprintf(devices, sizeof devices, "sim:%s", path);
    config.devices = devices;
    config.custom_policy = policy;
    filch_status status = filch_runtime_create(&config, &error, &world->runtime);
    (void)unlink(path);
    if (status != FILCH_OK) {
        fail_msg("%s", error.text);
    }
    world->count = filch_device_count(world->runtime);
}

static const char *const two_alike =
    "{\"devices\": [{\"speed\": 1e9, \"window\": 1, \"count\": 2}]}";

/* work declares the tasks' work, or else each is taken to have 1; the true cost is that in any
 * case. */
static filch_codelet *task_codelet(const sim_world *world, filch_work_fn work)
{
    filch_codelet_desc desc = FILCH_CODELET_DESC_INIT;
    filch_codelet *codelet = NULL;
    desc.name = "task";
    desc.host = run_task;
    desc.work = work;
    desc.cost = work_of;
    desc.arg_size = sizeof(task_args);
    sim_ok(filch_codelet_create(world->runtime, &desc, &codelet));
    return codelet;
}

static filch_task add(filch_graph *graph, filch_codelet *codelet, double work, uint32_t number)
{
    task_args args;
    memset(&args, 0, sizeof args);
    args.work = work;
    args.number = number;
    filch_task_desc desc = FILCH_TASK_DESC_INIT;
    filch_task task = 0;
    desc.codelet = codelet;
    desc.args = &args;
    sim_ok(filch_graph_add(graph, &desc, &task));
    return task;
}

static void run_graph(filch_graph *graph)
{
    filch_job *job = NULL;
    forget();
    sim_ok(filch_graph_submit(graph, NULL, &job));
    sim_finish(job, &outcome);
    assert_int_equal(outcome.status, FILCH_OK);
    assert_int_equal(outcome.info.done, outcome.info.total);
    for (uint32_t i = 0; i < outcome.info.total; ++i) {
        assert_int_equal(runs_of[i], 1);
    }
}

/* Independent tasks, in this order of starting, on these devices. */
static void check_starts(const uint32_t *numbers, const uint32_t *devices, uint32_t count)
{
    assert_int_equal(started, count);
    for (uint32_t i = 0; i < count; ++i) {
        if (numbers != NULL) {
            assert_int_equal(starts[i].first, numbers[i]);
        }
        assert_int_equal(starts[i].device, devices[numbers != NULL ? i : starts[i].first]);
    }
}

static void check_seconds(double seconds)
{
    if (fabs(outcome.info.seconds - seconds) > 1e-8) {
        fail_msg("%.9f s, not %.9f", outcome.info.seconds, seconds);
    }
}

/* The batch's codelet keeps a list of its chunks. */
static void run_batch(const sim_world *world, uint64_t n)
{
    forget();
    sim_batch(world, sim_codelet(world, run_chunk, NULL, NULL), n, 1, &outcome);
    assert_int_equal(outcome.status, FILCH_OK);
    assert_int_equal(outcome.info.done, n);
    for (uint64_t i = 0; i < n && i < MOST_STARTS; ++i) {
        assert_int_equal(runs_of[i], 1);
    }
}

/* --- The policies to compare with --- */

/* The partition is by the true speeds, 1 to 3, though the description's scores are 3 to 1; the
 * caller's scores, and a rate's, are the caller's business. */
static void perfect_scores_are_the_devices_speeds(void **state)
{
    (void)state;
    static const sim_kind kinds[] = {{1e9, 3, 5, 1, 0}, {3e9, 1, 5, 1, 0}};
    sim_world world;
    sim_open(&world, kinds, 2, BENCH_POLICY_PERFECT);
    filch_device_info info = {.size = sizeof info};
    sim_ok(filch_device_at(world.runtime, 1, &info));
    assert_true(fabs(info.true_speed / 3e9 - 1) < 1e-6);
    assert_true(info.score == info.true_speed);
    run_batch(&world, 4000);
    assert_int_equal(outcome.devices[0].items, 1000);
    assert_int_equal(outcome.devices[1].items, 3000);
    assert_int_equal(outcome.devices[0].stolen_in + outcome.devices[1].stolen_in, 0);
    sim_close(&world);
    sim_open(&world, kinds, 2, BENCH_POLICY_STATIC);
    run_batch(&world, 4000);
    assert_int_equal(outcome.devices[0].items, 3000);
    sim_close(&world);
}

static double rate_three_to_one(const filch_device_info *info, void *user)
{
    (void)user;
    return info->index == 0 ? 3 : 1;
}

static void perfect_scores_of_others_are_the_callers(void **state)
{
    (void)state;
    static const double scores[] = {1, 3};
    filch_runtime_desc config = FILCH_RUNTIME_DESC_INIT;
    filch_runtime *runtime = NULL;
    filch_device_info info = {.size = sizeof info};
    bench_policy_room room;
    config.devices = "host:2";
    config.rate = rate_three_to_one;
    bench_policy_choose(BENCH_POLICY_PERFECT, &room, &config);
    assert_int_equal(config.policy, FILCH_POLICY_STATIC);
    sim_ok(filch_runtime_create(&config, NULL, &runtime));
    sim_ok(filch_device_at(runtime, 0, &info));
    assert_true(info.score == 3);
    assert_true(info.true_speed == 0);
    sim_ok(filch_runtime_destroy(runtime));
    config.rate = NULL;
    config.scores = scores;
    config.score_count = 2;
    sim_ok(filch_runtime_create(&config, NULL, &runtime));
    sim_ok(filch_device_at(runtime, 0, &info));
    assert_true(info.score == 1);
    sim_ok(filch_runtime_destroy(runtime));
}

/* Device 0 takes 1 ms a task, device 1 twice as long:
 *     0: 0 2 3 5
 *     1: 1   4     */
static void central_tasks_start_in_order(void **state)
{
    (void)state;
    static const sim_kind kinds[] = {{2e9, 0, 0, 1, 1}, {1e9, 0, 0, 1, 1}};
    static const uint32_t numbers[] = {0, 1, 2, 3, 4, 5}, devices[] = {0, 1, 0, 0, 1, 0};
    for (bench_policy policy = BENCH_POLICY_CENTRAL; policy <= BENCH_POLICY_GUIDED; ++policy) {
        sim_world world;
        sim_open(&world, kinds, 2, policy);
        filch_graph *graph = NULL;
        sim_ok(filch_graph_create(world.runtime, NULL, &graph));
        filch_codelet *codelet = task_codelet(&world, NULL);
        for (uint32_t i = 0; i < 6; ++i) {
            add(graph, codelet, 2 * MS, i);
        }
        for (int run = 0; run < 2; ++run) {
            run_graph(graph);
            check_starts(numbers, devices, 6);
            check_seconds(4e-3);
        }
        sim_ok(filch_graph_destroy(graph));
        sim_close(&world);
    }
}

/* What becomes ready goes to the end of the queue, where any device finds it: three tasks that one
 * releases are run by three devices. */
static void central_successors_are_anyones(void **state)
{
    (void)state;
    static const sim_kind kind = {1e9, 0, 0, 3, 1};
    sim_world world;
    sim_open(&world, &kind, 1, BENCH_POLICY_CENTRAL);
    filch_graph *graph = NULL;
    sim_ok(filch_graph_create(world.runtime, NULL, &graph));
    filch_codelet *codelet = task_codelet(&world, NULL);
    filch_task root = add(graph, codelet, MS, 0);
    for (uint32_t i = 1; i <= 3; ++i) {
        sim_ok(filch_graph_edge(graph, root, add(graph, codelet, MS, i)));
    }
    run_graph(graph);
    check_seconds(2e-3);
    assert_int_equal(1u << starts[1].device | 1u << starts[2].device | 1u << starts[3].device, 7);
    for (uint32_t i = 1; i <= 3; ++i) {
        assert_int_equal(starts[i].first, i);
    }
    sim_ok(filch_graph_destroy(graph));
    sim_close(&world);
}

/* 640 items on two devices: 64 chunks of 10, in order; with speeds 3 to 1 device 0 has 48 of them.
 */
static void central_chunks_are_of_one_size(void **state)
{
    (void)state;
    static const sim_kind kinds[] = {{3e9, 1, 0, 1, 1}, {1e9, 5, 0, 1, 1}};
    sim_world world;
    sim_open(&world, kinds, 2, BENCH_POLICY_CENTRAL);
    for (int run = 0; run < 2; ++run) {
        run_batch(&world, 640);
        assert_int_equal(started, 64);
        for (uint32_t i = 0; i < started; ++i) {
            assert_int_equal(starts[i].first, 10 * i);
            assert_int_equal(starts[i].count, 10);
        }
        assert_int_equal(outcome.devices[0].items, 480);
        check_seconds(160e-9);
    }
    sim_close(&world);
}

/* Each chunk is what is left over twice the two devices, rounded up. */
static void guided_chunks_shrink(void **state)
{
    (void)state;
    static const sim_kind kind = {1e9, 0, 0, 2, 1};
    static const uint32_t sizes[] = {25, 19, 14, 11, 8, 6, 5, 3, 3, 2, 1, 1, 1, 1};
    sim_world world;
    sim_open(&world, &kind, 1, BENCH_POLICY_GUIDED);
    run_batch(&world, 100);
    assert_int_equal(started, sizeof sizes / sizeof *sizes);
    uint64_t first = 0;
    for (uint32_t i = 0; i < started; ++i) {
        assert_int_equal(starts[i].first, first);
        assert_int_equal(starts[i].count, sizes[i]);
        first += sizes[i];
    }
    sim_close(&world);
}

/* Task i, and piece i, go to device i mod 3, whatever that takes. */
static void round_robin_goes_round(void **state)
{
    (void)state;
    static const sim_kind kinds[] = {{1e9, 1, 0, 1, 1}, {2e9, 7, 0, 1, 1}, {4e9, 2, 0, 1, 1}};
    static const uint32_t devices[] = {0, 1, 2, 0, 1, 2, 0};
    sim_world world;
    sim_open(&world, kinds, 3, BENCH_POLICY_ROUND_ROBIN);
    filch_graph *graph = NULL;
    sim_ok(filch_graph_create(world.runtime, NULL, &graph));
    filch_codelet *codelet = task_codelet(&world, NULL);
    for (uint32_t i = 0; i < 7; ++i) {
        add(graph, codelet, MS, i);
    }
    run_graph(graph);
    check_starts(NULL, devices, 7);
    check_seconds(3e-3);
    sim_ok(filch_graph_destroy(graph));
    sim_close(&world);

    sim_open(&world, kinds, 3, BENCH_POLICY_ROUND_ROBIN);
    run_batch(&world, 960);
    assert_int_equal(started, 96);
    for (uint32_t i = 0; i < started; ++i) {
        assert_int_equal(starts[i].count, 10);
        assert_int_equal(starts[i].device, starts[i].first / 10 % 3);
    }
    check_seconds(320e-9);
    sim_close(&world);
}

/* Costs of 6, 4, 4 and 1 ms where the speed is 1, in this order, though all declare the same work
 * and the scores are reversed. Device 0 is twice as fast:
 *     6: 3 there, 6 here          -> 0, until 3
 *     4: 5 there, 4 here          -> 1, until 4
 *     4: 5 there, 8 here          -> 0, until 5
 *     1: 5.5 there, 5 here        -> 1, until 5 */
static void earliest_finish_is_chosen(void **state)
{
    (void)state;
    static const sim_kind kinds[] = {{2e9, 1, 0, 1, 1}, {1e9, 2, 0, 1, 1}};
    static const double works[] = {6 * MS, 4 * MS, 4 * MS, MS};
    static const uint32_t devices[] = {0, 1, 0, 1};
    sim_world world;
    sim_open(&world, kinds, 2, BENCH_POLICY_EARLIEST);
    filch_graph *graph = NULL;
    sim_ok(filch_graph_create(world.runtime, NULL, &graph));
    filch_codelet *codelet = task_codelet(&world, NULL);
    for (uint32_t i = 0; i < 4; ++i) {
        add(graph, codelet, works[i], i);
    }
    for (int run = 0; run < 2; ++run) {
        run_graph(graph);
        check_starts(NULL, devices, 4);
        check_seconds(5e-3);
    }
    sim_ok(filch_graph_destroy(graph));

    /* The first three again, released by a task that takes 1 ms. */
    sim_ok(filch_graph_create(world.runtime, NULL, &graph));
    filch_task root = add(graph, codelet, 2 * MS, 3);
    for (uint32_t i = 0; i < 3; ++i) {
        sim_ok(filch_graph_edge(graph, root, add(graph, codelet, works[i], i)));
    }
    static const uint32_t later[] = {0, 1, 0, 0};
    run_graph(graph);
    check_starts(NULL, later, 4);
    check_seconds(6e-3);
    sim_ok(filch_graph_destroy(graph));
    sim_close(&world);
}

/* 64 pieces of 10 items, three times as fast on device 0, which therefore has 48 of them. The 5 us
 * of a dispatch are part of the cost: with them alike, both have 32 of tiny ones. */
static void earliest_finish_of_pieces(void **state)
{
    (void)state;
    sim_kind kinds[] = {{3e9, 1, 0, 1, 1}, {1e9, 5, 0, 1, 1}};
    sim_world world;
    sim_open(&world, kinds, 2, BENCH_POLICY_EARLIEST);
    run_batch(&world, 1920);
    assert_int_equal(started, 64);
    assert_int_equal(outcome.devices[0].items, 1440);
    check_seconds(480e-9);
    sim_close(&world);
    kinds[0].overhead_us = kinds[1].overhead_us = 5;
    sim_open(&world, kinds, 2, BENCH_POLICY_EARLIEST);
    run_batch(&world, 192);
    assert_int_equal(outcome.devices[0].items, 96);
    sim_close(&world);
}

/* --- The caller's own --- */

typedef struct script {
    uint32_t place, chunk, victim, amount; /* the answers */
    uint32_t asked;
} script;

static uint32_t place_as_told(const filch_policy_view *view, void *user)
{
    script *s = user;
    (void)view;
    ++s->asked;
    return s->place;
}

static uint32_t chunk_as_told(const filch_policy_view *view, void *user)
{
    (void)view;
    return ((script *)user)->chunk;
}

static uint32_t steal_as_told(const filch_policy_view *view, uint32_t *amount, void *user)
{
    const script *s = user;
    (void)view;
    assert_int_equal(*amount, 1);
    *amount = s->amount;
    return s->victim;
}

static void run_tasks(const sim_world *world, uint32_t count)
{
    filch_graph *graph = NULL;
    sim_ok(filch_graph_create(world->runtime, NULL, &graph));
    filch_codelet *codelet = task_codelet(world, work_of);
    for (uint32_t i = 0; i < count; ++i) {
        add(graph, codelet, MS, i);
    }
    run_graph(graph);
    sim_ok(filch_graph_destroy(graph));
}

static filch_policy_counts counts_of(const sim_world *world)
{
    filch_policy_counts counts = {.size = sizeof counts};
    sim_ok(filch_runtime_policy(world->runtime, &counts));
    return counts;
}

/* All goes to device 1, and stays there; then device 0 takes four at a time. */
static void a_policy_is_followed(void **state)
{
    (void)state;
    script s = {.place = 1, .victim = FILCH_POLICY_NOBODY, .amount = 1};
    filch_policy_desc policy = FILCH_POLICY_DESC_INIT;
    sim_world world;
    policy.name = "all to one";
    policy.user = &s;
    policy.place = place_as_told;
    policy.steal = steal_as_told;
    open_custom(&world, two_alike, &policy);
    run_tasks(&world, 20);
    assert_int_equal(outcome.devices[1].tiles, 20);
    check_seconds(20e-3);
    filch_policy_counts counts = counts_of(&world);
    assert_string_equal(counts.name, "all to one");
    assert_int_equal(counts.policy, FILCH_POLICY_CUSTOM);
    assert_int_equal(counts.places, 20);
    assert_int_equal(s.asked, 20);
    assert_true(counts.steals > 0);
    assert_int_equal(counts.places_refused + counts.steals_refused, 0);

    s.victim = 1;
    s.amount = 4;
    run_tasks(&world, 20);
    assert_int_equal(outcome.devices[0].tiles, 10);
    check_seconds(10e-3);
    assert_true(counts_of(&world).steals - counts.steals < 10); /* as it is for one at a time */
    assert_int_equal(counts_of(&world).places, 40);
    sim_close(&world);
}

/* Chunks of 7 of its own share, of pieces, and of what is for all; the last may be less. */
static void a_policy_cuts_batches(void **state)
{
    (void)state;
    script s = {.place = 1, .chunk = 7, .victim = FILCH_POLICY_NOBODY, .amount = 1};
    filch_policy_desc policy = FILCH_POLICY_DESC_INIT;
    sim_world world;
    policy.user = &s;
    policy.place = place_as_told;
    policy.chunk = chunk_as_told;
    policy.steal = steal_as_told;
    for (policy.batches = FILCH_POLICY_BATCHES_SHARED_OUT;
         policy.batches <= FILCH_POLICY_BATCHES_COMMON; ++policy.batches) {
        open_custom(&world, two_alike, &policy);
        run_batch(&world, 100);
        uint32_t small = 0;
        for (uint32_t i = 0; i < started; ++i) {
            small += starts[i].count != 7;
        }
        uint32_t parts = policy.batches == FILCH_POLICY_BATCHES_SHARED_OUT ? 2 : 1;
        assert_int_equal(started, parts == 2 ? 16 : 15);
        assert_int_equal(small, parts);
        assert_int_equal(outcome.devices[1].items,
                         policy.batches == FILCH_POLICY_BATCHES_PLACED   ? 100
                         : policy.batches == FILCH_POLICY_BATCHES_COMMON ? 49
                                                                         : 50);
        filch_policy_counts counts = counts_of(&world);
        assert_int_equal(counts.chunks,
                         policy.batches == FILCH_POLICY_BATCHES_PLACED ? 1 : started);
        assert_int_equal(counts.chunks_refused, 0);
        sim_close(&world);
    }
}

/* Answers without sense are counted, and the default does the work: the same schedule. */
static void nonsense_is_the_default(void **state)
{
    (void)state;
    static const uint32_t nonsense[] = {2, 1000, FILCH_POLICY_NOBODY, FILCH_POLICY_NOBODY - 1};
    script s = {.victim = 0, .amount = 0};
    filch_policy_desc policy = FILCH_POLICY_DESC_INIT;
    policy.user = &s;
    policy.place = place_as_told;
    policy.chunk = chunk_as_told;
    policy.steal = steal_as_told;
    for (size_t i = 0; i < sizeof nonsense / sizeof *nonsense; ++i) {
        sim_world world;
        s.place = nonsense[i];
        s.victim = nonsense[i] == FILCH_POLICY_NOBODY ? 0 : nonsense[i];
        s.amount = nonsense[i] == FILCH_POLICY_NOBODY ? 0 : 1;
        policy.batches = (filch_policy_batches)(i % 3);
        open_custom(&world, two_alike, &policy);
        run_tasks(&world, 21);
        check_seconds(11e-3);
        filch_policy_counts counts = counts_of(&world);
        assert_int_equal(counts.places, 21);
        assert_int_equal(counts.places_refused, 21);
        assert_true(counts.steals > 0);
        assert_int_equal(counts.steals_refused, counts.steals);
        run_batch(&world, 1000);
        counts = counts_of(&world);
        assert_true(counts.chunks > 0);
        assert_int_equal(counts.chunks_refused, counts.chunks);
        sim_close(&world);
    }
}

/* FILCH_POLICY_AUTO is an answer like others. */
static void leaving_it_to_filch_is_no_nonsense(void **state)
{
    (void)state;
    script s = {.place = FILCH_POLICY_AUTO, .victim = FILCH_POLICY_AUTO, .amount = 1};
    s.chunk = FILCH_POLICY_AUTO;
    filch_policy_desc policy = FILCH_POLICY_DESC_INIT;
    sim_world world;
    policy.user = &s;
    policy.place = place_as_told;
    policy.chunk = chunk_as_told;
    policy.steal = steal_as_told;
    open_custom(&world, two_alike, &policy);
    run_tasks(&world, 21);
    check_seconds(11e-3);
    run_batch(&world, 1000);
    filch_policy_counts counts = counts_of(&world);
    assert_int_equal(counts.places, 21);
    assert_int_equal(counts.places_refused + counts.chunks_refused + counts.steals_refused, 0);
    sim_close(&world);
}

/* --- What it sees --- */

static uint32_t place_and_look(const filch_policy_view *view, void *user)
{
    filch_policy_item item = {.size = sizeof item};
    uint32_t *asked = user;
    assert_int_equal(filch_policy_item_get(view, &item), FILCH_OK);
    assert_int_equal(item.kind, FILCH_POLICY_TASK);
    assert_string_equal(item.name, "task");
    assert_int_equal(item.first, *asked);
    assert_int_equal(item.last, item.first + 1);
    assert_true(item.work == MS);
    assert_int_equal(filch_policy_devices(view), 2);
    assert_int_equal(filch_policy_can_run(view, 1), 1);
    assert_int_equal(filch_policy_can_run(view, 2), 0);
    /* Nothing was measured: a unit takes what the score of 1e9 says. */
    assert_true(fabs(filch_policy_seconds(view, 0) - 1e-9) < 1e-15);
    assert_true(filch_policy_seconds(view, 2) == 0 && filch_policy_load(view, 2) == 0);
    assert_true(filch_policy_missing(view, 0) == 0 && filch_policy_transfer(view, 0) == 0);
    assert_int_equal(filch_policy_queued(view, 2), 0);
    /* What was placed before is charged, a nanosecond each. */
    assert_true(fabs(filch_policy_load(view, 0) - 1e-9 * *asked) < 1e-15);
    assert_true(filch_policy_load(view, 1) == 0);
    ++*asked;
    return 0;
}

static uint32_t steal_and_look(const filch_policy_view *view, uint32_t *amount, void *user)
{
    filch_policy_item item = {.size = sizeof item};
    (void)user;
    assert_int_equal(filch_policy_item_get(view, &item), FILCH_OK);
    assert_int_equal(item.kind, FILCH_POLICY_THEFT);
    assert_true(item.device < 2);
    assert_true(filch_policy_seconds(view, 0) == 0 && filch_policy_missing(view, 0) == 0);
    uint32_t other = 1 - item.device;
    uint64_t queued = filch_policy_queued(view, other);
    *amount = queued != 0 ? (uint32_t)(queued + 1) / 2 : 1;
    return queued != 0 ? other : FILCH_POLICY_NOBODY;
}

static void a_policy_sees_loads_and_speeds(void **state)
{
    (void)state;
    uint32_t asked = 0;
    filch_policy_desc policy = FILCH_POLICY_DESC_INIT;
    sim_world world;
    policy.user = &asked;
    policy.place = place_and_look;
    policy.steal = steal_and_look;
    open_custom(&world, two_alike, &policy);
    run_tasks(&world, 16);
    assert_int_equal(asked, 16);
    assert_int_equal(outcome.devices[0].tiles, 8);
    check_seconds(8e-3);
    assert_true(outcome.devices[1].stolen_in >= 7);
    filch_policy_item item = {.size = sizeof item};
    assert_int_equal(filch_policy_item_get(NULL, &item), FILCH_INVALID_ARGUMENT);
    assert_int_equal(filch_policy_devices(NULL), 0);
    assert_int_equal(filch_policy_can_run(NULL, 0), 0);
    assert_true(filch_policy_load(NULL, 0) == 0);
    filch_policy_counts counts = {.size = 8};
    assert_int_equal(filch_runtime_policy(world.runtime, &counts), FILCH_INVALID_ARGUMENT);
    assert_int_equal(filch_runtime_policy(NULL, &counts), FILCH_INVALID_HANDLE);
    sim_close(&world);
}

/* To devices 0 and 1 in turn; notes what device 0 is thought to have left to do. */
static uint32_t place_in_turn(const filch_policy_view *view, void *user)
{
    filch_policy_item item = {.size = sizeof item};
    sim_ok(filch_policy_item_get(view, &item));
    ((double *)user)[item.first] = filch_policy_load(view, 0);
    return (uint32_t)(item.first % 2);
}

static double tenfold_work(const filch_call *call)
{
    return 10 * work_of(call);
}

/* By its score device 0 would be at the first task for hours, as nothing was measured. But it was
 * seen idle while device 1 ran the second. */
static void an_idle_device_has_no_load(void **state)
{
    (void)state;
    static const char *const slow_by_score =
        "{\"devices\": [{\"speed\": 1e9, \"score\": 1, \"window\": 1, \"count\": 2}]}";
    double loads[4] = {-1, -1, -1, -1};
    filch_policy_desc policy = FILCH_POLICY_DESC_INIT;
    filch_graph *graph = NULL;
    sim_world world;
    policy.user = loads;
    policy.place = place_in_turn;
    policy.steal = steal_and_look;
    open_custom(&world, slow_by_score, &policy);
    sim_ok(filch_graph_create(world.runtime, NULL, &graph));
    filch_codelet *codelet = task_codelet(&world, tenfold_work);
    filch_task before = 0;
    for (uint32_t i = 0; i < 4; ++i) {
        filch_task task = add(graph, codelet, MS, i);
        if (i != 0) {
            sim_ok(filch_graph_edge(graph, before, task));
        }
        before = task;
    }
    run_graph(graph);
    check_seconds(4e-3);
    assert_true(loads[0] == 0);
    assert_true(fabs(loads[1] - 10 * MS * 1e-6) < 1e-2);
    assert_true(loads[2] == 0);
    sim_ok(filch_graph_destroy(graph));
    sim_close(&world);
}

static void wrong_policies_are_refused(void **state)
{
    (void)state;
    filch_policy_desc policy = FILCH_POLICY_DESC_INIT;
    filch_runtime_desc config = FILCH_RUNTIME_DESC_INIT;
    filch_runtime *runtime = NULL;
    config.devices = "host:1";
    config.policy = FILCH_POLICY_CUSTOM;
    assert_int_equal(filch_runtime_create(&config, NULL, &runtime), FILCH_INVALID_ARGUMENT);
    config.custom_policy = &policy;
    config.policy = FILCH_POLICY_STEAL;
    assert_int_equal(filch_runtime_create(&config, NULL, &runtime), FILCH_INVALID_ARGUMENT);
    config.policy = FILCH_POLICY_DEFAULT;
    policy.batches = FILCH_POLICY_BATCHES_PLACED; /* by whom? */
    assert_int_equal(filch_runtime_create(&config, NULL, &runtime), FILCH_INVALID_ARGUMENT);
    policy.batches = FILCH_POLICY_BATCHES_SHARED_OUT;
    policy.flags = 2;
    assert_int_equal(filch_runtime_create(&config, NULL, &runtime), FILCH_INVALID_ARGUMENT);
    policy.flags = 0;
    policy.size = 0;
    assert_int_equal(filch_runtime_create(&config, NULL, &runtime), FILCH_INVALID_ARGUMENT);
    policy.size = sizeof policy;
    sim_ok(filch_runtime_create(&config, NULL, &runtime));
    filch_policy_counts counts = {.size = sizeof counts};
    sim_ok(filch_runtime_policy(runtime, &counts));
    assert_string_equal(counts.name, "custom");
    sim_ok(filch_runtime_destroy(runtime));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(perfect_scores_are_the_devices_speeds),
        cmocka_unit_test(perfect_scores_of_others_are_the_callers),
        cmocka_unit_test(central_tasks_start_in_order),
        cmocka_unit_test(central_successors_are_anyones),
        cmocka_unit_test(central_chunks_are_of_one_size),
        cmocka_unit_test(guided_chunks_shrink),
        cmocka_unit_test(round_robin_goes_round),
        cmocka_unit_test(earliest_finish_is_chosen),
        cmocka_unit_test(earliest_finish_of_pieces),
        cmocka_unit_test(a_policy_is_followed),
        cmocka_unit_test(a_policy_cuts_batches),
        cmocka_unit_test(nonsense_is_the_default),
        cmocka_unit_test(leaving_it_to_filch_is_no_nonsense),
        cmocka_unit_test(a_policy_sees_loads_and_speeds),
        cmocka_unit_test(an_idle_device_has_no_load),
        cmocka_unit_test(wrong_policies_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
