/* SPDX-License-Identifier: Apache-2.0 */
/* The virtual clock's event queue against a plain table. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../random.h"
#include "sched/worker/event_queue.h"

enum { WORKERS = 200 };

static uint64_t least(const uint64_t *at)
{
    uint64_t next = FL_TIME_NEVER;
    for (uint32_t i = 0; i < WORKERS; ++i) {
        next = at[i] < next ? at[i] : next;
    }
    return next;
}

/* Exactly those whose time has come are to be stepped, once. */
static void check_reach(fl_event_queue *events, uint64_t *at, uint64_t now)
{
    fl_event_queue_reach(events, now);
    for (uint32_t word = 0; word * 64 < WORKERS; ++word) {
        uint64_t bits = fl_event_queue_take(events, word);
        for (uint32_t i = word * 64; i < word * 64 + 64 && i < WORKERS; ++i) {
            assert_int_equal(bits >> i % 64 & 1, at[i] <= now);
            at[i] = at[i] <= now ? FL_TIME_NEVER : at[i];
        }
        assert_int_equal(fl_event_queue_take(events, word), 0);
    }
}

static void test_times(void **state)
{
    (void)state;
    const fl_memory memory = fl_memory_system();
    fl_event_queue events;
    fl_random random;
    uint64_t at[WORKERS], now = 0;
    fl_random_init(&random, 7, 0);
    assert_int_equal(fl_event_queue_init(&events, &memory, WORKERS), FILCH_OK);
    for (uint32_t i = 0; i < WORKERS; ++i) {
        at[i] = FL_TIME_NEVER;
    }
    assert_true(fl_event_queue_next(&events) == FL_TIME_NEVER);
    for (uint32_t turn = 0; turn < 20000; ++turn) {
        uint32_t worker = fl_random_below(&random, WORKERS);
        at[worker] =
            fl_random_below(&random, 4) == 0 ? FL_TIME_NEVER : now + fl_random_below(&random, 1000);
        fl_event_queue_set(&events, worker, at[worker]);
        assert_true(fl_event_queue_next(&events) == least(at));
        if (turn % 16 == 0) {
            now += fl_random_below(&random, 100);
            check_reach(&events, at, now);
        }
    }
    fl_event_queue_fini(&events, &memory);
}

static void test_due_and_engaged(void **state)
{
    (void)state;
    const fl_memory memory = fl_memory_system();
    fl_event_queue events;
    assert_int_equal(fl_event_queue_init(&events, &memory, 66), FILCH_OK);
    fl_event_queue_add(&events, 65);
    fl_event_queue_add(&events, 65);
    assert_int_equal(fl_event_queue_take(&events, 0), 0);
    assert_int_equal(fl_event_queue_take(&events, 1), 2);
    fl_event_queue_add_all(&events);
    assert_true(fl_event_queue_take(&events, 0) == UINT64_MAX);
    assert_int_equal(fl_event_queue_take(&events, 1), 3);
    fl_event_queue_engage(&events, 65, true);
    fl_event_queue_engage(&events, 65, true);
    fl_event_queue_engage(&events, 0, true);
    assert_int_equal(events.engaged_count, 2);
    fl_event_queue_engage(&events, 65, false);
    fl_event_queue_engage(&events, 64, false);
    assert_int_equal(events.engaged_count, 1);
    fl_event_queue_fini(&events, &memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_times),
        cmocka_unit_test(test_due_and_engaged),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
