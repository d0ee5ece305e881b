/* SPDX-License-Identifier: Apache-2.0 */
/* When a worker polls for the end of a tile that waited for copies: often while they are on their
 * way, and from then on as for any tile, however long they took. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"

#define N (1 << 19)
#include "jobs.h"

/* Until it is known how long the tile takes; and rounds, of which one must do: the processors may
 * be others' for a while, which makes polls fewer, never more. */
#define WARM_RUNS 8
#define ROUNDS 100
/* Once the copy is known to take long, a poll every 2 ms was enough; each is two steps. */
#define SLOW_MS 40
#define FAST_MS 3
#define LOOKS_ON_THE_WAY 60
#define LOOKS_SINCE 12

static void nap_ms(long ms)
{
    const struct timespec span = {0, ms * 1000000};
    (void)nanosleep(&span, NULL);
}

/* Polls in so many milliseconds; 0: they were far longer. */
static uint64_t looks_in(long ms)
{
    uint64_t begun = fl_time_now(), polls = fakecuda_count("cuEventQuery");
    nap_ms(ms);
    polls = fakecuda_count("cuEventQuery") - polls;
    return fl_time_now() - begun < 2 * (uint64_t)ms * 1000000 ? polls : 0;
}

/* What its worker did while a job's copy took SLOW_MS twice, and just after its tile began. */
static void run_round(filch_graph *made, uint64_t *on_the_way, uint64_t *since)
{
    atomic_store(&is_held, 1);
    atomic_store(&holds, 0);
    fakecuda_hold();
    filch_job *job = submit(made);
    nap_ms(SLOW_MS);
    *on_the_way = looks_in(SLOW_MS);
    fakecuda_release();
    await_holds(1);
    *since = looks_in(FAST_MS);
    atomic_store(&is_held, 0);
    finish(job, FILCH_OK);
}

/* replay: runs after which the graph goes there as a whole; 0: never. */
static void polls_are_many(bool is_pinned, const char *replay)
{
    uint64_t on_the_way = 0, since = 0;
    (void)setenv("FILCH_REPLAY", replay, 1);
    start("cuda:0", "1", "{\"copy_gbps\": 20}");
    filch_codelet *codelet = on_gpu("hold");
    filch_data *data = handle_with(x, is_pinned ? FILCH_DATA_PIN : 0);
    filch_graph *made = graph();
    add(made, codelet, FILCH_READ, data, NULL, NULL);
    for (int r = 0; r < WARM_RUNS; r++)
        finish(submit(made), FILCH_OK);
    for (int r = 0; r < ROUNDS && (on_the_way < LOOKS_ON_THE_WAY || since < LOOKS_SINCE); r++)
        run_round(made, &on_the_way, &since);
    print_message("%s: %llu polls on the way, %llu since\n", is_pinned ? "pinned" : "pageable",
                  (unsigned long long)on_the_way, (unsigned long long)since);
    assert_true(on_the_way >= LOOKS_ON_THE_WAY);
    assert_true(since >= LOOKS_SINCE);
    assert_ok(filch_graph_destroy(made));
    assert_ok(filch_data_destroy(data));
    stop();
}

static void copies_are_no_part_of_a_tiles_time(void **state)
{
    (void)state;
    for (int way = 0; way < 4; way++)
        polls_are_many(way % 2 != 0, way < 2 ? "0" : "4");
}

/* With one mark for all, the host would see all end with the last one, when the device has nothing
 * left to do. */
static void long_tasks_have_a_mark_each(void **state)
{
    enum { TASKS = 24 };
    uint64_t marks = 0;
    (void)state;
    (void)setenv("FILCH_REPLAY", "0", 1);
    start("cuda:0", "1", "{\"kernel_ns\": 200000}");
    atomic_store(&is_held, 0);
    filch_codelet *codelet = on_gpu("hold");
    filch_data *data = handle(x);
    filch_graph *made = graph();
    for (int k = 0; k < TASKS; k++)
        add(made, codelet, FILCH_READ, data, NULL, NULL);
    for (int r = 0; r < WARM_RUNS; r++) {
        marks = fakecuda_count("cuEventRecord");
        finish(submit(made), FILCH_OK);
        marks = fakecuda_count("cuEventRecord") - marks;
    }
    print_message("%llu marks of %d tasks\n", (unsigned long long)marks, TASKS);
    assert_true(marks >= TASKS);
    assert_ok(filch_graph_destroy(made));
    assert_ok(filch_data_destroy(data));
    stop();
}

/* A tile follows what it waits for on a lane, but not what is over: of three tasks that write what
 * tiles of one lane wrote before, one goes on the other lane. */
static void what_is_over_ties_no_tile_to_a_lane(void **state)
{
    filch_data *data[3];
    (void)state;
    (void)setenv("FILCH_REPLAY", "0", 1);
    start("cuda:0", "2", NULL);
    atomic_store(&is_held, 0);
    filch_codelet *codelet = on_gpu("hold");
    filch_graph *all = graph();
    for (int k = 0; k < 3; k++) {
        data[k] = handle_with(k == 0 ? x : k == 1 ? y : z, FILCH_DATA_MANAGED);
        filch_graph *one = graph();
        add(one, codelet, FILCH_READWRITE, data[k], NULL, NULL);
        add(all, codelet, FILCH_READWRITE, data[k], NULL, NULL);
        finish(submit(one), FILCH_OK); /* alone: on the first lane */
        assert_ok(filch_graph_destroy(one));
    }
    atomic_store(&holds, 0);
    atomic_store(&is_held, 1);
    filch_job *job = submit(all);
    for (int k = 0; k < 5000 && atomic_load(&holds) < 2; k++)
        nap_ms(1);
    int at_once = atomic_load(&holds);
    atomic_store(&is_held, 0);
    finish(job, FILCH_OK);
    assert_int_equal(at_once, 2);
    assert_ok(filch_graph_destroy(all));
    for (int k = 0; k < 3; k++)
        assert_ok(filch_data_destroy(data[k]));
    stop();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(copies_are_no_part_of_a_tiles_time),
        cmocka_unit_test(long_tasks_have_a_mark_each),
        cmocka_unit_test(what_is_over_ties_no_tile_to_a_lane),
    };
    (void)y, (void)z;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
