/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdalign.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "sync/eventcount.h"

enum { SHORT_NS = 2000000 };

static int setup(void **state)
{
    static fl_eventcount event;
    *state = &event;
    return fl_eventcount_init(&event) != FILCH_OK;
}

static int teardown(void **state)
{
    fl_eventcount_fini(*state);
    return 0;
}

static void test_layout(void **state)
{
    (void)state;
    assert_int_equal(alignof(fl_eventcount), 64);
    assert_int_equal(offsetof(fl_eventcount, state), 0);
    /* State, mutex and condition variable of glibc: two lines. */
    assert_true(sizeof(fl_eventcount) <= 128);
}

static void test_nobody_sleeps(void **state)
{
    fl_eventcount *event = *state;
    assert_false(fl_eventcount_notify(event));
    assert_false(fl_eventcount_notify_fenced(event));
    /* Such a notification is not kept: whoever announces later looks for the work itself. */
    fl_eventcount_announce(event);
    assert_false(fl_eventcount_sleep(event, 0));
}

static void test_notified_before_sleep(void **state)
{
    fl_eventcount *event = *state;
    for (int lap = 0; lap < 2; lap++) {
        fl_eventcount_announce(event);
        assert_true(lap ? fl_eventcount_notify_fenced(event) : fl_eventcount_notify(event));
        /* One waker wakes. */
        assert_false(fl_eventcount_notify(event));
        /* Returns at once; with the notification lost it would never return. */
        assert_true(fl_eventcount_sleep(event, UINT64_MAX));
        assert_false(fl_eventcount_notify(event));
    }
    /* Also when there is no time to sleep. */
    fl_eventcount_announce(event);
    assert_true(fl_eventcount_notify(event));
    assert_true(fl_eventcount_sleep(event, 0));
}

static void test_time_limit(void **state)
{
    fl_eventcount *event = *state;
    fl_eventcount_announce(event);
    uint64_t start = fl_time_now();
    assert_false(fl_eventcount_sleep(event, SHORT_NS));
    assert_true(fl_time_now() - start >= SHORT_NS);
    /* Awake again. */
    assert_false(fl_eventcount_notify(event));
}

static void test_cancel(void **state)
{
    fl_eventcount *event = *state;
    fl_eventcount_announce(event);
    fl_eventcount_cancel(event);
    assert_false(fl_eventcount_notify(event));
    /* A notification that came before the cancel does not leak into the next sleep. */
    fl_eventcount_announce(event);
    assert_true(fl_eventcount_notify(event));
    fl_eventcount_cancel(event);
    fl_eventcount_announce(event);
    assert_false(fl_eventcount_sleep(event, 0));
}

typedef struct pair {
    fl_eventcount *event;
    _Atomic int work;
} pair;

static int waker_main(void *arg)
{
    pair *p = arg;
    /* Until the other has announced, so that it is the sleep that gets woken. */
    while (atomic_load(&p->event->state) != 1)
        fl_thread_yield();
    uint64_t start = fl_time_now();
    while (fl_time_now() - start < SHORT_NS)
        fl_thread_yield();
    fl_store_relaxed(&p->work, 1);
    return fl_eventcount_notify(p->event) ? 0 : 1;
}

static void sleep_until_woken(fl_eventcount *event, uint64_t ns)
{
    pair p = {.event = event};
    fl_thread thread;
    atomic_init(&p.work, 0);
    assert_int_equal(fl_thread_start(&thread, waker_main, &p), FILCH_OK);
    fl_eventcount_announce(event);
    assert_true(fl_eventcount_sleep(event, ns));
    assert_int_equal(fl_load_relaxed(&p.work), 1);
    fl_thread_join(thread);
}

static void test_wakes_sleeper(void **state)
{
    sleep_until_woken(*state, UINT64_MAX);
    sleep_until_woken(*state, 600 * FL_NS_PER_S);
    /* A limit beyond what the clock can add. */
    sleep_until_woken(*state, UINT64_MAX - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layout),
        cmocka_unit_test_setup_teardown(test_nobody_sleeps, setup, teardown),
        cmocka_unit_test_setup_teardown(test_notified_before_sleep, setup, teardown),
        cmocka_unit_test_setup_teardown(test_time_limit, setup, teardown),
        cmocka_unit_test_setup_teardown(test_cancel, setup, teardown),
        cmocka_unit_test_setup_teardown(test_wakes_sleeper, setup, teardown),
    };
    return cmocka_run_group_tests_name("event", tests, NULL, NULL);
}
