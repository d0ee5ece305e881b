/* SPDX-License-Identifier: Apache-2.0 */
/* Slices of one GPU, of unlike sizes, at graphs that are short of parallelism: every task runs once
 * and in order, whoever is withdrawn or cancels meanwhile. On the fake driver, where a slice's
 * kernels take the longer the smaller it is; that urgent tasks run on the large slice is shown on
 * the virtual clock (tests/sim/test_slices.c). */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>

#include "random.h"
#include "runtime.h"

#include "jobs.h"

#define UNLIKE "cuda:0/88+24+8"
#define DRIVER "{\"kernel_ns\": 100000}"
/* Tasks that are too short to be weighed: who has room takes the most urgent one. */
#define ALIKE "cuda:0/40+40+40"
#define SHORT "{\"kernel_ns\": 2000}"

static const char *slices = UNLIKE, *driver = DRIVER;

enum { SIDE = 12, CELLS = SIDE * SIDE, SLICES = 3, LINKS = 40 };

static uint64_t cells[CELLS][N], border[N];
static filch_data *cell_data[CELLS], *border_data;

/* Each cell is the sum of the one above and the one to the left: Pascal's triangle, on its side. */
static filch_graph *triangle(filch_codelet *codelet, uint32_t home)
{
    filch_graph *made = graph();
    for (int i = 0; i < N; i++)
        border[i] = 1;
    border_data = handle(border);
    for (int k = 0; k < CELLS; k++) {
        cell_data[k] = handle(cells[k]);
        const filch_access accesses[3] = {
            {.data = k >= SIDE ? cell_data[k - SIDE] : border_data, .mode = FILCH_READ},
            {.data = k % SIDE != 0 ? cell_data[k - 1] : border_data, .mode = FILCH_READ},
            {.data = cell_data[k], .mode = FILCH_WRITE}};
        filch_task_desc desc = FILCH_TASK_DESC_INIT;
        desc.codelet = codelet;
        desc.accesses = accesses;
        desc.access_count = 3;
        desc.affinity = home;
        assert_ok(filch_graph_add(made, &desc, NULL));
    }
    return made;
}

/* Cells that a run was to fill hold binomials: c(i, k) = c(i - 1, k) + c(i, k - 1), 1 outside. */
static void check_and_clear(void)
{
    uint64_t row[SIDE];
    for (int k = 0; k < SIDE; k++)
        row[k] = 1;
    for (int i = 0; i < SIDE; i++) {
        uint64_t left = 1;
        for (int k = 0; k < SIDE; k++) {
            row[k] = left = row[k] + left;
            for (int e = 0; e < N; e++)
                assert_int_equal(cells[i * SIDE + k][e], left);
        }
    }
    memset(cells, 0, sizeof cells);
}

static void drop(filch_graph *made)
{
    assert_ok(filch_graph_destroy(made));
    for (int k = 0; k < CELLS; k++)
        assert_ok(filch_data_destroy(cell_data[k]));
    assert_ok(filch_data_destroy(border_data));
}

/* Runs it to its end: each task once. */
static double run(filch_graph *made, uint64_t tasks, filch_device_stats *stats)
{
    filch_job_info info = {.size = sizeof info};
    filch_job *job = submit(made);
    uint64_t ran = 0;
    assert_int_equal(filch_job_wait(job, SOON), FILCH_OK);
    assert_ok(filch_job_stats(job, &info, stats, SLICES));
    assert_ok(filch_job_release(job));
    for (int d = 0; d < SLICES; d++)
        ran += stats[d].tiles;
    assert_int_equal(info.done, tasks);
    assert_int_equal(ran, tasks);
    return info.seconds;
}

static const char *const lanes[] = {"1", "2"};

/* Scores that are right, and such as turn the slices round. */
static void each_task_runs_once_and_in_order(void **state)
{
    static const double wrong[SLICES] = {8, 24, 88};
    (void)state;
    for (int k = 0; k < 4; k++) {
        filch_device_stats stats[SLICES];
        scores = k >= 2 ? wrong : NULL;
        score_count = SLICES;
        start(slices, lanes[k % 2], driver);
        filch_graph *made = triangle(on_gpu("sum"), k % 2 != 0 ? 3 : 0);
        for (int r = 0; r < 4; r++) {
            double seconds = run(made, CELLS, stats);
            print_message("lanes %s, scores %s, run %d: %.4f s; %u, %u, %u tasks\n", lanes[k % 2],
                          k >= 2 ? "wrong" : "right", r + 1, seconds, (unsigned)stats[0].tiles,
                          (unsigned)stats[1].tiles, (unsigned)stats[2].tiles);
            check_and_clear();
        }
        drop(made);
        stop();
    }
    scores = NULL;
}

static void nap(long ns)
{
    const struct timespec time = {0, ns};
    (void)nanosleep(&time, NULL);
}

/* At random times while it runs: any of the slices, never all, is withdrawn and taken back. */
static void slices_come_and_go(void **state)
{
    fl_random random;
    (void)state;
    fl_random_init(&random, 3, 0);
    start(slices, "1", driver);
    filch_graph *made = triangle(on_gpu("sum"), 0);
    for (int r = 0; r < 12; r++) {
        filch_job *job = submit(made);
        bool is_away[SLICES] = {false};
        uint32_t kept = fl_random_below(&random, SLICES);
        for (int k = 0; k < 8; k++) {
            uint32_t d = fl_random_below(&random, SLICES);
            nap(100000 * (1 + (long)fl_random_below(&random, 20)));
            if (d != kept) {
                assert_ok(is_away[d] ? filch_device_readmit(runtime, d)
                                     : filch_device_withdraw(runtime, d));
                is_away[d] = !is_away[d];
            }
        }
        finish(job, FILCH_OK);
        for (uint32_t d = 0; d < SLICES; d++)
            if (is_away[d])
                assert_ok(filch_device_readmit(runtime, d));
        check_and_clear();
    }
    drop(made);
    stop();
}

/* All are withdrawn: what is left waits, and is gone when it is cancelled. */
static void what_nobody_runs_is_cancelled(void **state)
{
    filch_device_stats stats[SLICES];
    (void)state;
    start(slices, "1", driver);
    filch_graph *made = triangle(on_gpu("sum"), 0);
    (void)run(made, CELLS, stats);
    for (int r = 0; r < 6; r++) {
        filch_job *job = submit(made);
        nap(500000 * (1 + r));
        for (uint32_t d = 0; d < SLICES; d++)
            assert_ok(filch_device_withdraw(runtime, d));
        if (r % 2 != 0) {
            assert_int_equal(filch_job_wait(job, 0.05), FILCH_TIMEOUT);
            assert_ok(filch_job_cancel(job));
            finish(job, FILCH_CANCELLED);
        }
        for (uint32_t d = 0; d < SLICES; d++)
            assert_ok(filch_device_readmit(runtime, d));
        if (r % 2 == 0)
            finish(job, FILCH_OK);
    }
    memset(cells, 0, sizeof cells);
    (void)run(made, CELLS, stats);
    check_and_clear();
    drop(made);
    stop();
}

/* Two at once, of which one is a chain. */
static void graphs_share_slices(void **state)
{
    (void)state;
    start(slices, "2", driver);
    filch_codelet *bumps = on_gpu("bump");
    filch_graph *made = triangle(on_gpu("sum"), 0), *chain = graph();
    filch_data *data = handle(x);
    for (int k = 0; k < LINKS; k++)
        add(chain, bumps, FILCH_READWRITE, data, NULL, NULL);
    for (int r = 0; r < 6; r++) {
        set(x, 5);
        filch_job *first = submit(made), *second = submit(chain);
        finish(second, FILCH_OK);
        finish(first, FILCH_OK);
        expect(x, 5 + LINKS);
        check_and_clear();
    }
    assert_ok(filch_graph_destroy(chain));
    drop(made);
    stop();
}

/* Once no job has tasks in the shared queue, ready tasks are not asked about it. */
static void nothing_stays_of_it(void **state)
{
    filch_device_stats stats[SLICES];
    (void)state;
    start(UNLIKE, "1", DRIVER);
    filch_graph *made = triangle(on_gpu("sum"), 0);
    filch_job *job = submit(made);
    /* Relaxed: set before the call returned, and taken back before the job is over. */
    assert_true(fl_sched_attends(&runtime->sched, FL_ATTEND_CAREFUL));
    finish(job, FILCH_OK);
    (void)run(made, CELLS, stats);
    assert_false(fl_sched_attends(&runtime->sched, FL_ATTEND_CAREFUL | FL_ATTEND_OFFERS));
    memset(cells, 0, sizeof cells);
    drop(made);
    stop();
}

static int be_short(void **state)
{
    (void)state;
    slices = ALIKE;
    driver = SHORT;
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_task_runs_once_and_in_order),
        cmocka_unit_test(slices_come_and_go),
        cmocka_unit_test(what_nobody_runs_is_cancelled),
        cmocka_unit_test(graphs_share_slices),
        cmocka_unit_test(nothing_stays_of_it),
        cmocka_unit_test_setup(each_task_runs_once_and_in_order, be_short),
        cmocka_unit_test_setup(slices_come_and_go, be_short),
        cmocka_unit_test_setup(what_nobody_runs_is_cancelled, be_short),
        cmocka_unit_test_setup(graphs_share_slices, be_short),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
