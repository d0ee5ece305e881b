/* SPDX-License-Identifier: Apache-2.0 */
/* Patterns of graphs of short tasks: who reads what, and whom a task comes after. */
#include "problems/narrow.h"

#include "workloads/workload.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { MOST_WIDTH = 11 };

static void expect(const bench_narrow_graph *n, size_t step, size_t point, const char *reads)
{
    size_t points[MOST_WIDTH];
    char text[64] = "";
    size_t count = bench_narrow_reads(n, step, point, points);
    for (size_t k = 0; k < count; k++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%zu", k ? " " : "", points[k]);
    assert_string_equal(text, reads);
}

static void what_a_task_reads(void **state)
{
    (void)state;
    bench_narrow_graph n = {.pattern = BENCH_PATTERN_STENCIL, .width = 8};
    expect(&n, 3, 0, "0 1");
    expect(&n, 3, 4, "3 4 5");
    expect(&n, 3, 7, "6 7");
    n.pattern = BENCH_PATTERN_NEAREST;
    expect(&n, 3, 0, "0 1 2");
    expect(&n, 3, 4, "2 3 4 5 6");
    expect(&n, 3, 6, "4 5 6 7");
    n.pattern = BENCH_PATTERN_FFT;
    expect(&n, 1, 3, "2 3 4");
    expect(&n, 2, 3, "1 3 5");
    expect(&n, 3, 3, "3 7");
    expect(&n, 4, 3, "2 3 4");
    n.pattern = BENCH_PATTERN_ALL_TO_ALL;
    expect(&n, 4, 3, "0 1 2 3 4 5 6 7");
    n.width = 1;
    for (int p = BENCH_PATTERN_STENCIL; p <= BENCH_PATTERN_ALL_TO_ALL; p++) {
        n.pattern = (bench_pattern)p;
        expect(&n, 2, 0, "0");
    }
}

static bool holds(const size_t *points, size_t count, size_t point)
{
    for (size_t k = 0; k < count; k++)
        if (points[k] == point)
            return true;
    return false;
}

/* A task comes after exactly those of the step before whose cells it reads, or who read the cell
 * that it overwrites. */
static void whom_a_task_comes_after(void **state)
{
    (void)state;
    for (int p = BENCH_PATTERN_STENCIL; p <= BENCH_PATTERN_ALL_TO_ALL; p++)
        for (size_t width = 1; width <= MOST_WIDTH; width++)
            for (size_t step = 0; step < 9; step++)
                for (size_t point = 0; point < width; point++) {
                    const bench_narrow_graph n = {.pattern = (bench_pattern)p, .width = width};
                    size_t reads[MOST_WIDTH], before[MOST_WIDTH];
                    size_t read_count = bench_narrow_reads(&n, step, point, reads);
                    size_t before_count = bench_narrow_before(&n, step, point, before);
                    assert_true(before_count <= bench_narrow_most(&n));
                    for (size_t other = 0; other < width; other++) {
                        size_t theirs[MOST_WIDTH];
                        bool must =
                            step > 0 &&
                            (holds(reads, read_count, other) ||
                             holds(theirs, bench_narrow_reads(&n, step - 1, other, theirs), point));
                        assert_int_equal(holds(before, before_count, other), must);
                    }
                }
}

static void rounds_follow_the_time(void **state)
{
    (void)state;
    assert_true(bench_narrow_rounds(1e-9) == 1);
    assert_true(bench_narrow_rounds(100) > bench_narrow_rounds(1));
    assert_true(bench_narrow_work(7, 3) == bench_narrow_work(bench_narrow_work(7, 1), 2));
    assert_true(bench_narrow_work(7, 3) != bench_narrow_work(7, 4));
}

/* A cell that is wrong, or was not written, is seen; moves are counted along each point. */
static void what_a_check_sees(void **state)
{
    (void)state;
    const bench_options options = {.width = 3, .steps = 4, .task_us = 0.01};
    filch_error error = FILCH_ERROR_INIT;
    bench_peer_work *work;
    bench_moves moves;
    bool rebuild = false;
    void *problem;
    assert_int_equal(bench_narrow.setup(&options, &error, &problem), FILCH_OK);
    assert_int_equal(bench_narrow.peer(problem, 1, &error, &work), FILCH_OK);
    const bench_narrow_graph *n = work->problem;
    for (size_t step = 0; step < 4; step++) {
        assert_int_equal(bench_narrow.agree(problem, &error), FILCH_DATA);
        for (size_t point = 0; point < 3; point++)
            bench_narrow_task(n, step, point);
    }
    assert_int_equal(bench_narrow.agree(problem, &error), FILCH_OK);
    n->cells[1][2].moves = 2;
    n->cells[0][2].moves = 1;
    n->cells[1][0].moves = 1;
    assert_true(bench_narrow.moves(problem, &moves));
    assert_true(moves.visits == 9 && moves.moves == 3);
    n->cells[0][1].value ^= 1;
    assert_int_equal(bench_narrow.agree(problem, &error), FILCH_DATA);
    assert_non_null(strstr(error.text, "point 1"));
    assert_int_equal(bench_narrow.check_begin(problem, &rebuild, &error), FILCH_OK);
    assert_false(rebuild);
    assert_int_equal(bench_narrow.agree(problem, &error), FILCH_DATA);
    bench_narrow.teardown(problem);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_a_task_reads),
        cmocka_unit_test(whom_a_task_comes_after),
        cmocka_unit_test(rounds_follow_the_time),
        cmocka_unit_test(what_a_check_sees),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
