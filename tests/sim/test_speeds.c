/* SPDX-License-Identifier: Apache-2.0 */
/* What schedules make of measured speeds on the virtual clock: wrong times, devices that slow down
 * and recover, trials of devices judged slow, and speeds of earlier runs. */
#define _GNU_SOURCE
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "random.h"
#include "sim.h"

#define OVERHEAD_US 5.0
#define MS 1e6 /* units of work that take a device of speed 1e9 a millisecond */

static sim_outcome outcome; /* too large for a stack */

/* --- One wrong time --- */

enum { MOST_DEVICES = 6 };

/* Of one tile of one device, `by` times what it took is told. */
typedef struct misreading {
    uint32_t device, tile; /* tile 0: none */
    double by;
} misreading;

typedef struct sim_machine {
    uint32_t count;
    double speeds[MOST_DEVICES], scores[MOST_DEVICES];
} sim_machine;

static const misreading none = {0, 0, 1};

static void open_misread(sim_world *world, const sim_machine *machine, const misreading *wrong)
{
    filch_runtime_desc config = FILCH_RUNTIME_DESC_INIT;
    char text[2048] = "{\"devices\": [";
    for (uint32_t d = 0; d < machine->count; ++d) {
        size_t used = strlen(text);
        snprintf(text + used, sizeof text - used,
                 "%s{\"speed\": %.17g, \"score\": %.17g, \"overhead_us\": %g, "
                 "\"misread_tile\": %u, \"misread_by\": %.17g}%s",
                 d != 0 ? ", " : "", machine->speeds[d], machine->scores[d], OVERHEAD_US,
                 d == wrong->device ? wrong->tile : 0, wrong->by,
                 d + 1 == machine->count ? "]}" : "");
    }
    config.policy = FILCH_POLICY_STEAL;
    sim_open_text(world, text, &config);
}

static double run_batch(const sim_machine *machine, const misreading *wrong, uint64_t grain,
                        uint64_t n)
{
    sim_world world;
    open_misread(&world, machine, wrong);
    sim_batch(&world, sim_codelet(&world, NULL, NULL, NULL), n, grain, &outcome);
    assert_int_equal(outcome.status, FILCH_OK);
    assert_int_equal(outcome.info.done, n);
    sim_close(&world);
    return outcome.info.seconds;
}

/* By factors that make a device look 500 times slower, or faster, in its k-th tile. */
static void check_batch(const sim_machine *machine, uint64_t grain, uint64_t n, uint32_t tiles)
{
    const double bys[] = {500, 1.0 / 500};
    double right = run_batch(machine, &none, grain, n), worst = 0;
    /* Of many small grains a chunk is made: 20 to 200 dispatches long. */
    double tile = fmax((double)grain / machine->speeds[0], 40e-6 * OVERHEAD_US);
    for (uint32_t k = 0; k < machine->count * tiles * 2; ++k) {
        const misreading wrong = {k / 2 % machine->count, k / 2 / machine->count + 1, bys[k % 2]};
        worst = fmax(worst, run_batch(machine, &wrong, grain, n) - right);
    }
    print_message("%llu items by %llu: %.6f s, with a wrong time at worst %.3f tiles more\n",
                  (unsigned long long)n, (unsigned long long)grain, right, worst / tile);
    assert_true(worst <= tile);
}

static const sim_machine three = {3, {1e9, 2e9, 4e9}, {1, 1, 1}};

static void test_misread_batches(void **state)
{
    (void)state;
    check_batch(&three, 1000000, 700000000, 70);
    check_batch(&three, 1000000, 70000000, 20);
    check_batch(&three, 10000, 700000000, 70);
    check_batch(&three, 1, 70000000, 70);
}

static double work_of(const filch_call *call)
{
    return *(const double *)call->args;
}

/* A graph of independent tasks, of which every other has 1/part of the work. */
static double run_graph(const sim_machine *machine, const misreading *wrong, uint32_t tasks,
                        double part)
{
    sim_world world;
    filch_codelet_desc desc = FILCH_CODELET_DESC_INIT;
    filch_graph_desc graph_desc = FILCH_GRAPH_DESC_INIT;
    filch_codelet *codelet = NULL;
    filch_graph *graph = NULL;
    filch_job *job = NULL;
    open_misread(&world, machine, wrong);
    desc.name = "task";
    desc.host = sim_nothing;
    desc.work = work_of;
    desc.arg_size = sizeof(double);
    sim_ok(filch_codelet_create(world.runtime, &desc, &codelet));
    sim_ok(filch_graph_create(world.runtime, &graph_desc, &graph));
    for (uint32_t i = 0; i < tasks; ++i) {
        double work = i % 2 == 0 ? MS : MS / part;
        filch_task_desc task = FILCH_TASK_DESC_INIT;
        filch_task made;
        task.codelet = codelet;
        task.args = &work;
        sim_ok(filch_graph_add(graph, &task, &made));
    }
    sim_ok(filch_graph_submit(graph, NULL, &job));
    sim_finish(job, &outcome);
    assert_int_equal(outcome.status, FILCH_OK);
    assert_int_equal(outcome.info.done, tasks);
    sim_ok(filch_graph_destroy(graph));
    sim_close(&world);
    return outcome.info.seconds;
}

static void test_misread_graphs(void **state)
{
    (void)state;
    const double bys[] = {500, 1.0 / 500}, parts[] = {1, 20};
    const uint32_t counts[] = {40, 200};
    double tile = 1e-3 + OVERHEAD_US * 1e-6;
    for (int p = 0; p < 4; ++p) {
        uint32_t tasks = counts[p % 2];
        double right = run_graph(&three, &none, tasks, parts[p / 2]), worst = 0;
        for (uint32_t k = 0; k < 3 * 60 * 2; ++k) {
            const misreading wrong = {k / 2 % 3, k / 6 + 1, bys[k % 2]};
            worst = fmax(worst, run_graph(&three, &wrong, tasks, parts[p / 2]) - right);
        }
        print_message("%u tasks, works 1 and 1/%g: %.6f s, at worst %.3f tiles more\n", tasks,
                      parts[p / 2], right, worst / tile);
        assert_true(worst <= tile);
    }
}

static void test_misread_anywhere(void **state)
{
    (void)state;
    double worst = 0;
    for (uint64_t seed = 1; seed <= 400; ++seed) {
        fl_random random;
        sim_machine machine = {0};
        double slowest = INFINITY;
        fl_random_init(&random, seed, 0);
        machine.count = 2 + (uint32_t)fl_random_below(&random, MOST_DEVICES - 1);
        for (uint32_t d = 0; d < machine.count; ++d) {
            machine.speeds[d] = 1e9 * exp2(3 * fl_random_unit(&random));
            machine.scores[d] = exp2(3 * fl_random_unit(&random));
            slowest = fmin(slowest, machine.speeds[d]);
        }
        uint32_t tasks = 50 + (uint32_t)fl_random_below(&random, 300);
        double part = exp2(5 * fl_random_unit(&random));
        const misreading wrong = {(uint32_t)fl_random_below(&random, machine.count),
                                  1 + (uint32_t)fl_random_below(&random, 50),
                                  fl_random_below(&random, 2) == 0 ? 500 : 1.0 / 500};
        bool is_batch = fl_random_below(&random, 2) == 0;
        uint64_t grain = (uint64_t)MS, n = tasks * grain;
        double right = is_batch ? run_batch(&machine, &none, grain, n)
                                : run_graph(&machine, &none, tasks, part);
        double now = is_batch ? run_batch(&machine, &wrong, grain, n)
                              : run_graph(&machine, &wrong, tasks, part);
        double tiles = (now - right) / (MS / slowest + OVERHEAD_US * 1e-6);
        worst = fmax(worst, tiles);
        if (tiles > 1) {
            fail_msg("seed %llu: %.3f tiles more", (unsigned long long)seed, tiles);
        }
    }
    print_message("400 machines: a wrong time costs at worst %.3f of the slowest device's tile\n",
                  worst);
}

/* --- Devices that change --- */

static double slow_from, slow_to; /* seconds of device 0's own time; between, work costs fourfold */
static double spent;              /* by device 0 */

static double cost_changing(const filch_call *call)
{
    double work = (double)(call->hi - call->lo);
    if (call->device != 0) {
        return work;
    }
    double cost = spent >= slow_from && spent < slow_to ? 4 * work : work;
    spent += cost / 1e9;
    return cost;
}

static filch_speed speed_of(filch_codelet *codelet, uint32_t device)
{
    filch_speed speed = {.size = sizeof speed};
    sim_ok(filch_codelet_speed(codelet, device, &speed));
    return speed;
}

/* Slower by four, and as fast as before later: both are found, and the batch ends as early as the
 * speeds as they change allow. */
static void test_slowdown_and_recovery(void **state)
{
    (void)state;
    static const sim_kind kinds[] = {{1e9, 0, OVERHEAD_US, 1, 0}, {3e9, 0, OVERHEAD_US, 1, 0}};
    const double seconds = 0.2;
    for (int part = 1; part <= 4; ++part) {
        sim_world world;
        sim_open(&world, kinds, 2, BENCH_POLICY_STEAL);
        uint64_t n = (uint64_t)(world.speed * seconds);
        filch_codelet *codelet = sim_codelet(&world, NULL, NULL, cost_changing);
        slow_from = 0.1 * part * seconds;
        slow_to = slow_from + 0.3 * seconds;
        spent = 0;
        sim_batch(&world, codelet, n, 0, &outcome);
        assert_int_equal(outcome.info.done, n);
        double lost = 0.75e9 * (slow_to - slow_from);
        double bound = ((double)n + lost) / world.speed;
        filch_speed speed = speed_of(codelet, 0), other = speed_of(codelet, 1);
        print_message("slow from %.2f to %.2f s: %.4f of the bound\n", slow_from, slow_to,
                      outcome.info.seconds / bound);
        assert_true(outcome.info.seconds <= bound * 1.02);
        assert_int_equal(speed.changes, 2);
        assert_int_equal(speed.source, FILCH_SPEED_MEASURED);
        assert_true(fabs(speed.ns_per_unit - 1) < 0.06);
        assert_int_equal(other.changes, 0);
        assert_true(fabs(other.ns_per_unit - 1.0 / 3) < 0.02);
        sim_close(&world);
    }
}

/* The fixed part of a tile is the device's overhead; what is the device's alone is its own. */
static void test_fixed_parts(void **state)
{
    (void)state;
    static const sim_kind kinds[] = {{1e9, 0, 50, 1, 0}, {4e9, 0, 50, 1, 0}};
    sim_world world;
    sim_open(&world, kinds, 2, BENCH_POLICY_STEAL);
    filch_codelet *codelet = sim_codelet(&world, NULL, NULL, NULL);
    assert_int_equal(speed_of(codelet, 0).source, FILCH_SPEED_UNKNOWN);
    /* In turns small grains, of which there are few, and large ones. */
    for (int run = 0; run < 6; ++run) {
        sim_batch(&world, codelet, 40 * 20000, 20000, &outcome);
        sim_batch(&world, codelet, 40 * 400000, 400000, &outcome);
    }
    for (uint32_t d = 0; d < 2; ++d) {
        filch_speed speed = speed_of(codelet, d);
        print_message("device %u: %.4f ns a unit, %.0f ns a tile, %u samples\n", d,
                      speed.ns_per_unit, speed.fixed_ns, speed.samples);
        assert_true(fabs(speed.fixed_ns / (kinds[d].overhead_us * 1e3) - 1) < 0.05);
        assert_true(fabs(speed.ns_per_unit * kinds[d].speed / 1e9 - 1) < 0.01);
        assert_int_equal(speed.changes, 0);
    }
    sim_close(&world);
}

/* --- Trials --- */

static double dearer = 1; /* what work costs on device 1 */

static double cost_dearer(const filch_call *call)
{
    return (double)(call->hi - call->lo) * (call->device == 1 ? dearer : 1);
}

/* Runs jobs of 20 grains of a millisecond each; returns the tiles of device 1, and the time. */
static uint64_t run_jobs(const sim_world *world, filch_codelet *codelet, uint32_t jobs,
                         double *time)
{
    uint64_t tiles = 0;
    *time = 0;
    for (uint32_t job = 0; job < jobs; ++job) {
        sim_batch(world, codelet, 20 * (uint64_t)MS, (uint64_t)MS, &outcome);
        assert_int_equal(outcome.info.done, 20 * (uint64_t)MS);
        tiles += outcome.devices[1].tiles;
        *time += outcome.info.seconds;
    }
    return tiles;
}

/* Two devices alike, but one has only what it steals, and costs a hundredfold for a while. Then it
 * is held off from everything, since one tile lasts longer there than whole jobs. It is tried
 * again, rarely; and has its half of the work again soon after it recovered. */
static void test_trials(void **state)
{
    (void)state;
    static const sim_kind kinds[] = {{1e9, 1, OVERHEAD_US, 1, 0}, {1e9, 1e-12, OVERHEAD_US, 1, 0}};
    const double alone = 20e-3, both = 10e-3, tile = 0.1;
    sim_world world;
    double time;
    sim_open(&world, kinds, 2, BENCH_POLICY_STEAL);
    filch_codelet *codelet = sim_codelet(&world, NULL, NULL, cost_dearer);
    dearer = 1;
    run_jobs(&world, codelet, 20, &time);
    assert_true(time <= 20 * both * 1.15);
    dearer = 100;
    run_jobs(&world, codelet, 20, &time); /* while that is found out */
    assert_true(speed_of(codelet, 1).ns_per_unit > 90);
    uint64_t trials = run_jobs(&world, codelet, 5000, &time);
    print_message("%llu trials in %.1f s, %.4f of the time without\n", (unsigned long long)trials,
                  time, time / (5000 * alone));
    /* After 6.4 s each, then ever twice as much: at most five in 100 s. */
    assert_true(trials >= 3 && trials <= 5);
    assert_true(time <= 5000 * alone * 1.01 + (double)trials * tile);
    dearer = 1;
    uint32_t jobs = 0;
    while (speed_of(codelet, 1).ns_per_unit > 2 && jobs < 40000) {
        run_jobs(&world, codelet, 1, &time);
        ++jobs;
    }
    print_message("found to have recovered after %u jobs\n", jobs);
    assert_true(jobs * alone <= 64 * 64 * tile); /* the longest wait */
    assert_true(run_jobs(&world, codelet, 20, &time) >= 20 * 5);
    assert_true(time <= 20 * both * 1.15);
    sim_close(&world);
}

/* One that neither was fast ever nor has a score that says so is never tried. */
static void test_no_trial_without_hope(void **state)
{
    (void)state;
    static const sim_kind kinds[] = {{1e9, 1, OVERHEAD_US, 1, 0}, {1e7, 1e-12, OVERHEAD_US, 1, 0}};
    sim_world world;
    double time;
    sim_open(&world, kinds, 2, BENCH_POLICY_STEAL);
    filch_codelet *codelet = sim_codelet(&world, NULL, NULL, cost_dearer);
    dearer = 1;
    sim_batch(&world, codelet, 2000 * (uint64_t)MS, (uint64_t)MS, &outcome);
    assert_true(speed_of(codelet, 1).ns_per_unit > 90);
    assert_int_equal(run_jobs(&world, codelet, 2000, &time), 0);
    sim_close(&world);
}

/* --- Earlier runs --- */

static char history[64];

static int begin_history(void **state)
{
    (void)state;
    snprintf(history, sizeof history, "/tmp/filch-simspeeds-XXXXXX");
    int file = mkstemp(history);
    return file < 0 || close(file) != 0;
}

static int end_history(void **state)
{
    (void)state;
    return unlink(history);
}

static void open_recalling(sim_world *world, const char *path)
{
    filch_runtime_desc config = FILCH_RUNTIME_DESC_INIT;
    config.policy = FILCH_POLICY_STEAL;
    config.speeds = path;
    sim_open_text(world,
                  "{\"devices\": [{\"speed\": 1e9, \"score\": 1, \"overhead_us\": 5},"
                  " {\"speed\": 4e9, \"score\": 1, \"overhead_us\": 5}]}",
                  &config);
}

static filch_speeds info_of(const sim_world *world)
{
    filch_speeds info = {.size = sizeof info};
    sim_ok(filch_runtime_speeds(world->runtime, &info));
    return info;
}

/* One job on a fresh runtime; its time, and what the runtime thought of device d before. */
static double run_long(const char *path, double cost, uint64_t grains, filch_speed before[2])
{
    sim_world world;
    open_recalling(&world, path);
    filch_codelet *codelet = sim_codelet(&world, NULL, NULL, cost_dearer);
    dearer = cost;
    for (uint32_t d = 0; before != NULL && d < 2; ++d) {
        before[d] = speed_of(codelet, d);
    }
    sim_batch(&world, codelet, grains * (uint64_t)MS, (uint64_t)MS, &outcome);
    assert_int_equal(outcome.status, FILCH_OK);
    assert_int_equal(outcome.info.done, grains * (uint64_t)MS);
    double seconds = outcome.info.seconds;
    if (before != NULL && before[1].source == FILCH_SPEED_PRIOR) {
        filch_speed after = speed_of(codelet, 1);
        bool is_wrong =
            before[1].ns_per_unit > 2 * cost / 4 || before[1].ns_per_unit < cost / 4 / 2;
        assert_int_equal(after.source, FILCH_SPEED_MEASURED);
        assert_int_equal(after.prior_refuted, is_wrong);
        assert_true(fabs(after.ns_per_unit / (cost / 4) - 1) < 0.05);
    }
    sim_close(&world);
    return seconds;
}

static double run_recalling(const char *path, double cost, filch_speed before[2])
{
    return run_long(path, cost, 200, before);
}

static void test_history_round_trip(void **state)
{
    (void)state;
    filch_speed before[2];
    double fresh = run_recalling(history, 1, before);
    assert_int_equal(before[0].source, FILCH_SPEED_UNKNOWN);
    double again = run_recalling(history, 1, before);
    print_message("%.6f s, with speeds of an earlier run %.6f s\n", fresh, again);
    for (uint32_t d = 0; d < 2; ++d) {
        assert_int_equal(before[d].source, FILCH_SPEED_PRIOR);
        assert_int_equal(before[d].samples, 0);
        assert_true(fabs(before[d].ns_per_unit * (d == 0 ? 1 : 4) - 1) < 0.05);
    }
    assert_true(again <= fresh);
    /* What another run has of the file is of no consequence to one that asks for none. */
    assert_true(run_recalling("off", 1, before) == fresh);
    assert_int_equal(before[0].source, FILCH_SPEED_UNKNOWN);
}

/* An earlier run that was 500 times slower or faster costs no more than one of the slower device's
 * tiles. */
static void test_history_that_is_wrong(void **state)
{
    (void)state;
    const double costs[] = {500, 1.0 / 500};
    double right = run_recalling("off", 1, NULL);
    for (int k = 0; k < 2; ++k) {
        filch_speed before[2];
        assert_int_equal(truncate(history, 0), 0);
        run_long(history, costs[k], 4000, NULL); /* long enough for the slow one, too */
        double seconds = run_recalling(history, 1, before);
        print_message("speed of an earlier run wrong by %g: %+.6f s\n", costs[k], seconds - right);
        assert_int_equal(before[1].source, FILCH_SPEED_PRIOR);
        assert_true(fabs(before[1].ns_per_unit / (costs[k] / 4) - 1) < 0.2);
        assert_true(seconds - right <= 1e-3 + OVERHEAD_US * 1e-6);
        /* And the next run knows better. */
        run_recalling(history, 1, before);
        assert_true(fabs(before[1].ns_per_unit * 4 - 1) < 0.05);
    }
}

static void test_history_calls(void **state)
{
    (void)state;
    sim_world world;
    filch_error error = FILCH_ERROR_INIT;
    filch_speeds info = {.size = 8};
    filch_speed speed = {.size = sizeof speed};
    open_recalling(&world, "off");
    assert_int_equal(info_of(&world).loaded, FILCH_NOT_FOUND);
    assert_int_equal(filch_runtime_save_speeds(world.runtime), FILCH_WRONG_STATE);
    sim_ok(filch_runtime_error(world.runtime, &error));
    assert_string_equal(error.call, "filch_runtime_save_speeds");
    assert_int_equal(filch_runtime_speeds(world.runtime, NULL), FILCH_INVALID_ARGUMENT);
    assert_int_equal(filch_runtime_speeds(world.runtime, &info), FILCH_INVALID_ARGUMENT);
    filch_codelet *codelet = sim_codelet(&world, NULL, NULL, NULL);
    assert_int_equal(filch_codelet_speed(codelet, 2, &speed), FILCH_BAD_INDEX);
    assert_int_equal(filch_codelet_speed(codelet, 0, NULL), FILCH_INVALID_ARGUMENT);
    assert_int_equal(filch_codelet_speed(NULL, 0, &speed), FILCH_INVALID_HANDLE);
    speed.size = 16;
    assert_int_equal(filch_codelet_speed(codelet, 0, &speed), FILCH_INVALID_ARGUMENT);
    sim_close(&world);

    open_recalling(&world, history);
    codelet = sim_codelet(&world, NULL, NULL, NULL);
    sim_batch(&world, codelet, 200 * (uint64_t)MS, (uint64_t)MS, &outcome);
    assert_int_equal(info_of(&world).saved, FILCH_NOT_READY);
    sim_ok(filch_runtime_save_speeds(world.runtime));
    assert_int_equal(info_of(&world).saved, FILCH_OK);
    assert_int_equal(info_of(&world).saves, 1);
    sim_world other; /* beside the first one, which has not ended */
    open_recalling(&other, history);
    sim_codelet(&other, NULL, NULL, NULL);
    assert_int_equal(info_of(&other).loaded, FILCH_OK);
    assert_int_equal(info_of(&other).records, 2);
    assert_int_equal(info_of(&other).used, 2);
    sim_close(&other);
    sim_close(&world);
}

/* Nothing that is wrong with the file is the job's concern; but it is told. */
static void test_history_that_cannot_be_used(void **state)
{
    (void)state;
    sim_world world;
    run_recalling(history, 1, NULL);
    assert_int_equal(truncate(history, 100), 0);
    open_recalling(&world, history);
    assert_int_equal(info_of(&world).loaded, FILCH_DATA);
    assert_int_equal(info_of(&world).records, 0);
    sim_close(&world);
    open_recalling(&world, "/nowhere/at/all");
    assert_int_equal(info_of(&world).loaded, FILCH_NOT_FOUND);
    sim_batch(&world, sim_codelet(&world, NULL, NULL, NULL), 1000, 0, &outcome);
    assert_int_equal(outcome.status, FILCH_OK);
    assert_int_equal(filch_runtime_save_speeds(world.runtime), FILCH_IO);
    assert_int_equal(info_of(&world).saved, FILCH_IO);
    assert_int_equal(info_of(&world).saves, 0);
    sim_close(&world);
}

/* The environment names the file where the configuration does not. */
static void test_history_by_environment(void **state)
{
    (void)state;
    sim_world world;
    assert_int_equal(setenv("FILCH_SPEEDS", history, 1), 0);
    run_recalling(NULL, 1, NULL);
    open_recalling(&world, NULL);
    assert_int_equal(info_of(&world).records, 2);
    sim_close(&world);
    open_recalling(&world, "off");
    assert_int_equal(info_of(&world).records, 0);
    sim_close(&world);
    assert_int_equal(unsetenv("FILCH_SPEEDS"), 0);
}

#define WITH_HISTORY(name) cmocka_unit_test_setup_teardown(name, begin_history, end_history)

/* --- Trials with tasks --- */

enum { WIDTH = 4 };

/* Levels of tasks of a millisecond, between tasks that all of the next level wait for, and of which
 * the first is at home on the first device: never enough at once for a slow device to be of use. Or
 * independent ones. */
static void run_tasks(const sim_world *world, filch_codelet *codelet, int levels, int width)
{
    static uint64_t cell;
    filch_graph_desc desc = FILCH_GRAPH_DESC_INIT;
    filch_data_desc data = FILCH_DATA_DESC_INIT;
    filch_task_desc task = FILCH_TASK_DESC_INIT;
    filch_access access = {0};
    filch_graph *graph = NULL;
    filch_job *job = NULL;
    data.ptr = &cell;
    data.element = sizeof cell;
    data.rows = 1;
    sim_ok(filch_data_create(world->runtime, &data, &access.data));
    sim_ok(filch_graph_create(world->runtime, &desc, &graph));
    task.codelet = codelet;
    task.accesses = &access;
    for (int level = 0; level < levels; ++level) {
        task.access_count = levels > 1;
        task.affinity = level == 0 ? 1 : 0;
        access.mode = FILCH_READWRITE;
        sim_ok(filch_graph_add(graph, &task, NULL));
        task.affinity = 0;
        access.mode = FILCH_READ;
        for (int i = 0; i < width; ++i) {
            sim_ok(filch_graph_add(graph, &task, NULL));
        }
    }
    sim_ok(filch_graph_submit(graph, NULL, &job));
    sim_finish(job, &outcome);
    assert_int_equal(outcome.status, FILCH_OK);
    sim_ok(filch_graph_destroy(graph));
    sim_ok(filch_data_destroy(access.data));
}

/* A device with a wrong, low score that was fast, and then slow for a while: held off from tasks
 * from then on, it is tried again, found fast, and does its part. */
static void test_tasks_are_tried(void **state)
{
    (void)state;
    sim_world world;
    sim_open_machine(&world,
                     "{\"devices\": [{\"speed\": 1000}, {\"speed\": 1000, \"score\": 10,"
                     " \"speeds\": [[0.15, 20], [4, 1000]]}]}",
                     BENCH_POLICY_STEAL);
    filch_codelet *codelet = sim_codelet(&world, NULL, NULL, NULL);
    run_tasks(&world, codelet, 1, 300);
    assert_true(outcome.devices[1].tiles > 100);
    run_tasks(&world, codelet, 1, 2000);
    assert_true(outcome.devices[1].tiles < 100);
    run_tasks(&world, codelet, 4000, WIDTH);
    print_message("%.3f s, %d tasks by the one that recovered\n", outcome.info.seconds,
                  (int)outcome.devices[1].tiles);
    assert_true(outcome.devices[1].tiles > 3000);
    sim_close(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_misread_batches),
        cmocka_unit_test(test_misread_graphs),
        cmocka_unit_test(test_misread_anywhere),
        cmocka_unit_test(test_slowdown_and_recovery),
        cmocka_unit_test(test_fixed_parts),
        cmocka_unit_test(test_trials),
        cmocka_unit_test(test_no_trial_without_hope),
        WITH_HISTORY(test_history_round_trip),
        WITH_HISTORY(test_history_that_is_wrong),
        WITH_HISTORY(test_history_calls),
        WITH_HISTORY(test_history_that_cannot_be_used),
        WITH_HISTORY(test_history_by_environment),
        cmocka_unit_test(test_tasks_are_tried),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
