/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs on devices of unlike speeds, on the virtual clock: wavefronts, Cholesky's and random
 * layered graphs on random machines, with scores that are right, equal, ten times wrong for the
 * slowest device, or reversed. What they take is compared with what no schedule can be shorter
 * than, all work at all speeds or the longest path at the greatest, and with the other policies.
 *
 *     test_sim_unlike [CASES [SEED]] */
#define _GNU_SOURCE
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../random.h"
#include "sim.h"

enum { MOST_TASKS = 5000, MOST_EDGES = 3 * MOST_TASKS, MOST_DEVICES = 5, RUNS = 3 };

/* What is asked of a graph whose work would take all devices so many times what its longest path
 * takes the fastest one: times the bound; of the last, times the earliest finish by policy, which
 * knows all speeds. Where that is beyond the bound by more, it is asked. */
#define WIDE 6.0
#define WIDE_EXCESS 1.03
#define MIDDLE 2.0
#define MIDDLE_EXCESS 1.10
#define NARROW_EXCESS 1.05
/* Of the best of the policies that do not know them. */
#define BEHIND_OTHERS 1.02
/* Before anything is known a device may begin what others wait for. */
#define FIRST_TASKS 4.0

typedef struct shape {
    double work[MOST_TASKS]; /* in ms of a device of speed 1 */
    uint32_t from[MOST_EDGES], to[MOST_EDGES];
    uint32_t tasks, edges;
} shape;

typedef struct machine {
    const char *name;
    double speeds[MOST_DEVICES];
} machine;

static const machine machines[] = {
    {"1:1", {1, 1}},
    {"3:1", {3, 1}},
    {"1:3", {1, 3}},
    {"11:3:1", {11, 3, 1}},
    {"1:3:11", {1, 3, 11}},
    {"3:11:1", {3, 11, 1}},
    {"4:2:1", {4, 2, 1}},
    {"2:2:1:1", {2, 2, 1, 1}},
    {"1:1:1:1:1", {1, 1, 1, 1, 1}},
    {"8:1:1:1:1", {8, 1, 1, 1, 1}},
    {"1:2:3:4:5", {1, 2, 3, 4, 5}},
};

typedef enum told { RIGHT, EQUAL, WRONG, REVERSED, TOLDS } told;
static const char *const told_names[] = {"right", "equal", "wrong", "reversed"};

static fl_random random_state;
static shape graph_shape;
static sim_outcome outcome;

static uint32_t below(uint32_t n)
{
    return fl_random_below(&random_state, n);
}

static double between(double least, double most)
{
    return least + (most - least) * fl_random_unit(&random_state);
}

/* --- Graphs --- */

/* By value in each task. */
typedef struct task_args {
    double work;
} task_args;

static double work_of(const filch_call *call)
{
    return ((const task_args *)call->args)->work;
}

static uint32_t add_task(double work)
{
    assert_true(graph_shape.tasks < MOST_TASKS);
    graph_shape.work[graph_shape.tasks] = work;
    return graph_shape.tasks++;
}

static void add_edge(uint32_t from, uint32_t to)
{
    assert_true(graph_shape.edges < MOST_EDGES);
    graph_shape.from[graph_shape.edges] = from;
    graph_shape.to[graph_shape.edges++] = to;
}

static void draw_wavefront(uint32_t side)
{
    double spread = below(2) != 0 ? between(1, 3) : 1;
    for (uint32_t i = 0; i < side; ++i) {
        for (uint32_t k = 0; k < side; ++k) {
            uint32_t task = add_task(pow(spread, between(-1, 1)));
            if (i != 0) {
                add_edge(task - side, task);
            }
            if (k != 0) {
                add_edge(task - 1, task);
            }
        }
    }
}

/* Of so many tiles a side; works as flops of dense tiles. */
static void draw_cholesky(uint32_t side)
{
    static int64_t last[MOST_DEVICES * 10][MOST_DEVICES * 10];
    memset(last, -1, sizeof last);
    for (uint32_t k = 0; k < side; ++k) {
        for (uint32_t i = k; i < side; ++i) {
            uint32_t task = add_task(i == k ? 1 / 3.0 : 1);
            if (last[i][k] >= 0) {
                add_edge((uint32_t)last[i][k], task);
            }
            if (i != k) {
                add_edge((uint32_t)last[k][k], task);
            }
            last[i][k] = task;
        }
        for (uint32_t i = k + 1; i < side; ++i) {
            for (uint32_t j = k + 1; j <= i; ++j) {
                uint32_t task = add_task(i == j ? 1 : 2);
                add_edge((uint32_t)last[i][k], task);
                if (i != j) {
                    add_edge((uint32_t)last[j][k], task);
                }
                if (last[i][j] >= 0) {
                    add_edge((uint32_t)last[i][j], task);
                }
                last[i][j] = task;
            }
        }
    }
}

/* A task follows up to three of the layer before; works from a quarter to four times the usual. */
static void draw_layers(uint32_t tasks, uint32_t width)
{
    uint32_t before = 0, count_before = 0;
    while (graph_shape.tasks < tasks) {
        uint32_t first = graph_shape.tasks, count = 1 + below(2 * width);
        count = count < tasks - first ? count : tasks - first;
        for (uint32_t i = 0; i < count; ++i) {
            uint32_t task = add_task(pow(4, between(-1, 1)));
            uint32_t reads = count_before != 0 ? 1 + below(3) : 0;
            reads = reads < count_before ? reads : count_before;
            uint32_t start = reads != 0 ? below(count_before) : 0;
            for (uint32_t r = 0; r < reads; ++r) {
                add_edge(before + (start + r * (count_before / reads)) % count_before, task);
            }
        }
        before = first;
        count_before = count;
    }
}

static const char *draw_shape(void)
{
    static char name[64];
    graph_shape.tasks = graph_shape.edges = 0;
    switch (below(3)) {
    case 0: {
        uint32_t side = 12 + below(50);
        draw_wavefront(side);
        (void)snprintf(name, sizeof name, "wavefront %u", side);
        break;
    }
    case 1: {
        uint32_t side = 6 + below(17);
        draw_cholesky(side);
        (void)snprintf(name, sizeof name, "cholesky %u", side);
        break;
    }
    default: {
        uint32_t tasks = 300 + below(1500), width = 3 + below(40);
        draw_layers(tasks, width);
        (void)snprintf(name, sizeof name, "layered %u of %u", tasks, width);
        break;
    }
    }
    return name;
}

/* --- Bounds --- */

typedef struct bounds {
    double area, path; /* seconds */
} bounds;

/* Edges end in tasks in ascending order. */
static double longest_path(void)
{
    static double end[MOST_TASKS];
    double longest = 0;
    uint32_t edge = 0;
    for (uint32_t i = 0; i < graph_shape.tasks; ++i) {
        end[i] = 0;
        for (; edge < graph_shape.edges && graph_shape.to[edge] == i; ++edge) {
            end[i] = fmax(end[i], end[graph_shape.from[edge]]);
        }
        end[i] += graph_shape.work[i];
        longest = fmax(longest, end[i]);
    }
    assert_int_equal(edge, graph_shape.edges);
    return longest;
}

static bounds bound_of(const machine *m)
{
    double all = 0, fastest = 0, work = 0;
    for (uint32_t d = 0; d < MOST_DEVICES; ++d) {
        all += m->speeds[d];
        fastest = fmax(fastest, m->speeds[d]);
    }
    for (uint32_t i = 0; i < graph_shape.tasks; ++i) {
        work += graph_shape.work[i];
    }
    return (bounds){work / all * 1e-3, longest_path() / fastest * 1e-3};
}

/* --- Runs --- */

static double score_of(const machine *m, uint32_t device, told kind)
{
    double speed = m->speeds[device], slowest = INFINITY;
    for (uint32_t d = 0; d < MOST_DEVICES && m->speeds[d] > 0; ++d) {
        slowest = fmin(slowest, m->speeds[d]);
    }
    return kind == RIGHT   ? speed
           : kind == EQUAL ? 1
           : kind == WRONG ? (speed > slowest ? speed : 10 * speed)
                           : 1 / speed;
}

static void open_machine(sim_world *world, const machine *m, told kind, bench_policy policy)
{
    sim_kind kinds[MOST_DEVICES];
    size_t count = 0;
    for (; count < MOST_DEVICES && m->speeds[count] > 0; ++count) {
        kinds[count] = (sim_kind){.speed = 1e9 * m->speeds[count],
                                  .score = score_of(m, (uint32_t)count, kind)};
    }
    sim_open(world, kinds, count, policy);
}

/* So many runs of the graph, each built anew, by one runtime. */
static void run(const machine *m, told kind, bench_policy policy, uint32_t runs, double *seconds)
{
    static filch_task tasks[MOST_TASKS];
    filch_codelet_desc desc = FILCH_CODELET_DESC_INIT;
    filch_codelet *codelet = NULL;
    sim_world world;
    open_machine(&world, m, kind, policy);
    desc.name = "task";
    desc.host = sim_nothing;
    desc.work = work_of;
    desc.arg_size = sizeof(task_args);
    sim_ok(filch_codelet_create(world.runtime, &desc, &codelet));
    for (uint32_t r = 0; r < runs; ++r) {
        filch_graph *graph = NULL;
        filch_job *job = NULL;
        sim_ok(filch_graph_create(world.runtime, NULL, &graph));
        for (uint32_t i = 0; i < graph_shape.tasks; ++i) {
            const task_args args = {1e6 * graph_shape.work[i]};
            filch_task_desc task = FILCH_TASK_DESC_INIT;
            task.codelet = codelet;
            task.args = &args;
            sim_ok(filch_graph_add(graph, &task, &tasks[i]));
        }
        for (uint32_t e = 0; e < graph_shape.edges; ++e) {
            sim_ok(filch_graph_edge(graph, tasks[graph_shape.from[e]], tasks[graph_shape.to[e]]));
        }
        sim_ok(filch_graph_submit(graph, NULL, &job));
        sim_finish(job, &outcome);
        assert_int_equal(outcome.status, FILCH_OK);
        assert_int_equal(outcome.info.done, graph_shape.tasks);
        seconds[r] = outcome.info.seconds;
        sim_ok(filch_graph_destroy(graph));
    }
    sim_close(&world);
}

/* --- What is asked --- */

static uint64_t cases, first_seed = 1, seed;

/* The best of the policies that know no speeds. */
static double best_of_others(const machine *m, told kind)
{
    static const bench_policy others[] = {BENCH_POLICY_CENTRAL, BENCH_POLICY_GUIDED,
                                          BENCH_POLICY_ROUND_ROBIN, BENCH_POLICY_STATIC};
    double best = INFINITY, seconds = 0;
    for (size_t i = 0; i < sizeof others / sizeof *others; ++i) {
        run(m, kind, others[i], 1, &seconds);
        best = fmin(best, seconds);
    }
    return best;
}

/* The time that the slowest device needs for some of the longest tasks. */
static double time_to_learn(const machine *m)
{
    double slowest = INFINITY, longest = 0;
    for (uint32_t d = 0; d < MOST_DEVICES && m->speeds[d] > 0; ++d) {
        slowest = fmin(slowest, m->speeds[d]);
    }
    for (uint32_t i = 0; i < graph_shape.tasks; ++i) {
        longest = fmax(longest, graph_shape.work[i]);
    }
    return FIRST_TASKS * longest / slowest * 1e-3;
}

/* Returns the worst ratio of a later run to what is asked. */
static double check_case(const machine *m, told kind, const char *name)
{
    bounds b = bound_of(m);
    double bound = fmax(b.area, b.path), earliest = 0, seconds[RUNS], worst = 0;
    run(m, RIGHT, BENCH_POLICY_EARLIEST, 1, &earliest);
    run(m, kind, BENCH_POLICY_STEAL, RUNS, seconds);
    double most = b.area >= WIDE * b.path     ? fmax(WIDE_EXCESS * bound, earliest)
                  : b.area >= MIDDLE * b.path ? fmax(MIDDLE_EXCESS * bound, earliest)
                                              : NARROW_EXCESS * earliest;
    double others = BEHIND_OTHERS * best_of_others(m, kind);
    most = fmin(most, others);
    for (uint32_t r = 0; r < RUNS; ++r) {
        double allowed = r == 0 ? most + time_to_learn(m) : most;
        assert_true(seconds[r] >= bound * (1 - 1e-6));
        worst = fmax(worst, r != 0 ? seconds[r] / most : 0);
        if (seconds[r] > allowed) {
            fail_msg("seed %llu: %s on %s, scores %s, run %u: %.4f of the bound, %.4f of the "
                     "earliest finish, %.4f of the best other; area %.2f paths, allowed %.4f",
                     (unsigned long long)seed, name, m->name, told_names[kind], r + 1,
                     seconds[r] / bound, seconds[r] / earliest, seconds[r] / others * BEHIND_OTHERS,
                     b.area / b.path, allowed / bound);
        }
    }
    return worst;
}

static void test_unlike_devices(void **state)
{
    (void)state;
    double worst = 0;
    for (seed = first_seed; seed < first_seed + cases; ++seed) {
        fl_random_init(&random_state, seed, 0);
        const char *name = draw_shape();
        const machine *m = &machines[below(sizeof machines / sizeof *machines)];
        worst = fmax(worst, check_case(m, (told)below(TOLDS), name));
    }
    print_message("%llu graphs from seed %llu: at worst %.4f of what is allowed\n",
                  (unsigned long long)cases, (unsigned long long)first_seed, worst);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_unlike_devices),
    };
    const char *is_long = getenv("FL_TEST_LONG");
    cases = is_long != NULL && is_long[0] == '1' ? 5000 : 200;
    if (argc > 1) {
        cases = strtoull(argv[1], NULL, 0);
    }
    if (argc > 2) {
        first_seed = strtoull(argv[2], NULL, 0);
    }
    printf("%llu cases from seed %llu\n", (unsigned long long)cases,
           (unsigned long long)first_seed);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
