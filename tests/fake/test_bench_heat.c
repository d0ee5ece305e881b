/* SPDX-License-Identifier: Apache-2.0 */
/* The heat equation on the fake driver's GPUs: alone, beside each other, in slices, and beside the
 * host's cores; and what a step moves. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>
#include <stdlib.h>

#include "fake/heat_twins.h"
#include "fake/workload_trial.h"

#define N 30
#define COLUMN_BYTES (N * sizeof(double))
#define GRID_BYTES (N * COLUMN_BYTES)

static filch_status begin(workload_trial *t, bench_options options)
{
    return trial_begin(t, &bench_heat, fake_heat_twins_register, options);
}

/* Runs twice. strips: what there must be, whether asked for or not. */
static void is_right(bench_options options, size_t strips)
{
    bench_problem problem = {0};
    workload_trial t;
    char text[64];
    options.n = N;
    assert_int_equal(begin(&t, options), FILCH_OK);
    bench_heat.describe(t.problem, &problem);
    snprintf(text, sizeof text, "%zu strips, %zu steps, %zu a graph", strips, options.steps,
             options.steps_a_graph ? options.steps_a_graph : options.steps);
    assert_string_equal(problem.variant, text);
    (void)trial_run(&t);
    (void)trial_run(&t);
    assert_int_equal(t.session.info.done, strips * options.steps);
    trial_end(&t);
}

static void every_device_computes_the_same(void **state)
{
    static const struct {
        const char *devices;
        size_t strips; /* where none are asked for */
    } cases[] = {{"cuda:0", 1},
                 {"cuda:0,cuda:1", 6},
                 {"cuda:0/88+24", 6},
                 {"cuda,host:2", 12},
                 {"cuda:1,host:1", 6}};
    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
        for (int resident = 0; resident < 2; resident++) {
            bench_options options = {
                .devices = cases[k].devices, .steps = 12, .resident = resident != 0};
            is_right(options, cases[k].strips);
            options.strips = 7; /* of unlike widths */
            options.steps_a_graph = 3;
            is_right(options, 7);
            options.strips = N; /* of one column */
            options.steps_a_graph = options.steps = 5;
            is_right(options, N);
        }
}

typedef struct moved {
    uint64_t in, out, down, up;
} moved;

/* By the runs of two GPUs up to now. */
static moved moved_by_now(void)
{
    return (moved){.in = fakecuda_bytes(-1, 0) + fakecuda_bytes(-1, 1),
                   .out = fakecuda_bytes(0, -1) + fakecuda_bytes(1, -1),
                   .down = fakecuda_bytes(0, 1),
                   .up = fakecuda_bytes(1, 0)};
}

/* Only the columns beside the cut move in a step, one each way, by the driver and by what the
 * runtime says. The result alone leaves the GPUs. */
static void columns_alone_move(void **state)
{
    static const struct {
        size_t strips, steps, steps_a_graph;
    } cases[] = {{0, 20, 10}, {2, 20, 20}, {10, 9, 3}, {N, 20, 1}};
    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        const bench_options options = {.n = N,
                                       .devices = "cuda:0,cuda:1",
                                       .strips = cases[k].strips,
                                       .steps = cases[k].steps,
                                       .steps_a_graph = cases[k].steps_a_graph,
                                       .resident = true,
                                       .policy = BENCH_POLICY_STATIC};
        workload_trial t;
        assert_int_equal(begin(&t, options), FILCH_OK);
        (void)trial_run(&t);
        moved before = moved_by_now();
        (void)trial_run(&t);
        moved after = moved_by_now();
        assert_int_equal(after.down - before.down, cases[k].steps * COLUMN_BYTES);
        assert_int_equal(after.up - before.up, cases[k].steps * COLUMN_BYTES);
        assert_int_equal(after.in - before.in, 0);
        assert_int_equal(after.out - before.out, GRID_BYTES);
        for (int d = 0; d < 2; d++)
            assert_int_equal(t.session.stats[d].bytes_peer, cases[k].steps * COLUMN_BYTES);
        trial_end(&t);
    }
}

/* Without --resident a run brings the grid and takes it home, once a graph. */
static void a_grid_comes_and_goes(void **state)
{
    workload_trial t;
    (void)state;
    const bench_options options = {.n = N, .devices = "cuda:0", .steps = 20, .steps_a_graph = 10};
    assert_int_equal(begin(&t, options), FILCH_OK);
    (void)trial_run(&t);
    assert_int_equal(t.session.stats[0].bytes_in, 2 * GRID_BYTES);
    assert_int_equal(t.session.stats[0].bytes_out, 2 * GRID_BYTES);
    trial_end(&t);
}

static void what_it_does_not_do_is_said(void **state)
{
    workload_trial t;
    (void)state;
    assert_int_equal(begin(&t, (bench_options){.n = N, .devices = "cuda", .slow = {.factor = 2}}),
                     FILCH_UNSUPPORTED);
    assert_string_equal(t.error.label, "--slow");
    trial_end(&t);
}

int main(void)
{
    (void)setenv("FILCH_NVRTC", FL_NVRTC_KERNELS, 1);
    (void)setenv("FILCH_CACHE_DIR", "off", 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_device_computes_the_same),
        cmocka_unit_test(columns_alone_move),
        cmocka_unit_test(a_grid_comes_and_goes),
        cmocka_unit_test(what_it_does_not_do_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
