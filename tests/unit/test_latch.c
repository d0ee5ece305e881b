/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "sync/latch.h"

enum { THREADS = 4, ROUNDS = 20000 };

typedef struct shared {
    fl_latch latch;
    uint64_t count; /* guarded by latch */
    _Atomic uint32_t inside;
    _Atomic uint32_t wrong;
    _Atomic uint32_t arrived;
} shared;

static void a_free_latch_changes_its_state_alone(void **state)
{
    (void)state;
    fl_latch latch;
    assert_int_equal(fl_latch_init(&latch), FILCH_OK);
    for (int i = 0; i < 3; ++i) {
        assert_int_equal(fl_load_relaxed(&latch.state), FL_LATCH_FREE);
        fl_latch_lock(&latch);
        assert_int_equal(fl_load_relaxed(&latch.state), FL_LATCH_TAKEN);
        fl_latch_unlock(&latch);
    }
    fl_latch_fini(&latch);
}

/* Now and then holds the latch so long that the others sleep. */
static int count_under_latch(void *arg)
{
    shared *s = arg;
    for (int i = 0; i < ROUNDS; ++i) {
        fl_latch_lock(&s->latch);
        if (fl_add_relaxed(&s->inside, 1) != 0) {
            fl_add_relaxed(&s->wrong, 1);
        }
        ++s->count;
        if (i % 1000 == 0) {
            fl_thread_yield();
        }
        fl_sub_relaxed(&s->inside, 1);
        fl_latch_unlock(&s->latch);
    }
    return 0;
}

static void one_thread_is_inside_at_a_time(void **state)
{
    (void)state;
    static shared s;
    fl_thread threads[THREADS];
    assert_int_equal(fl_latch_init(&s.latch), FILCH_OK);
    for (int t = 0; t < THREADS; ++t) {
        assert_int_equal(fl_thread_start(&threads[t], count_under_latch, &s), FILCH_OK);
    }
    for (int t = 0; t < THREADS; ++t) {
        fl_thread_join(threads[t]);
    }
    assert_int_equal(s.count, THREADS * ROUNDS);
    assert_int_equal(s.wrong, 0);
    fl_latch_fini(&s.latch);
}

static int arrive_and_count(void *arg)
{
    shared *s = arg;
    fl_add_relaxed(&s->arrived, 1);
    fl_latch_lock(&s->latch);
    ++s->count;
    fl_latch_unlock(&s->latch);
    return 0;
}

/* Every sleeper is woken though each unlock wakes one. */
static void every_sleeper_is_woken(void **state)
{
    (void)state;
    static shared s;
    fl_thread threads[THREADS];
    assert_int_equal(fl_latch_init(&s.latch), FILCH_OK);
    for (int round = 0; round < 20; ++round) {
        s.count = 0;
        fl_store_relaxed(&s.arrived, 0);
        fl_latch_lock(&s.latch);
        for (int t = 0; t < THREADS; ++t) {
            assert_int_equal(fl_thread_start(&threads[t], arrive_and_count, &s), FILCH_OK);
        }
        /* A thread that sleeps marks the latch first. */
        while (fl_load_relaxed(&s.arrived) < THREADS ||
               fl_load_relaxed(&s.latch.state) != FL_LATCH_AWAITED) {
            fl_thread_yield();
        }
        fl_latch_unlock(&s.latch);
        for (int t = 0; t < THREADS; ++t) {
            fl_thread_join(threads[t]);
        }
        assert_int_equal(s.count, THREADS);
    }
    fl_latch_fini(&s.latch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_free_latch_changes_its_state_alone),
        cmocka_unit_test(one_thread_is_inside_at_a_time),
        cmocka_unit_test(every_sleeper_is_woken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
