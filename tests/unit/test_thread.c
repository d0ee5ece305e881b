/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>

#include "base/clock.h"
#include "base/thread.h"

#define THREADS 4

/* No cmocka assertion runs outside the test's own thread: threads store what they see. */

typedef struct seen {
    sigset_t mask;
    char name[16];
    uint64_t id;
    uint64_t id_again;
    void *first_value;
    void *own_value;
    fl_tss *tss;
} seen;

static int look(void *arg)
{
    seen *out = arg;

    (void)pthread_sigmask(SIG_SETMASK, NULL, &out->mask);
    fl_thread_name("filch-test-with-a-long-name");
    (void)prctl(PR_GET_NAME, out->name);
    out->id = fl_thread_id();
    out->id_again = fl_thread_id();
    if (out->tss != NULL) {
        out->first_value = fl_tss_get(*out->tss);
        (void)fl_tss_set(*out->tss, out);
        out->own_value = fl_tss_get(*out->tss);
    }
    return 0;
}

static int masks_differ(const sigset_t *a, const sigset_t *b)
{
    for (int signal = 1; signal < SIGRTMIN; signal++) {
        if (sigismember(a, signal) != sigismember(b, signal))
            return signal;
    }
    return 0;
}

static void new_threads_take_no_asynchronous_signal(void **state)
{
    static const int blocked[] = {SIGINT,  SIGTERM, SIGHUP,  SIGALRM, SIGCHLD,
                                  SIGUSR1, SIGPIPE, SIGPROF, SIGIO};
    static const int open[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS};
    sigset_t before;
    sigset_t after;
    fl_thread thread;
    seen out = {0};

    (void)state;
    /* A mask of the caller's that is neither empty nor full must come back as it was. */
    (void)sigemptyset(&before);
    (void)sigaddset(&before, SIGUSR2);
    (void)sigaddset(&before, SIGFPE);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    assert_int_equal(fl_thread_start(&thread, look, &out), FILCH_OK);
    (void)pthread_sigmask(SIG_SETMASK, NULL, &after);
    fl_thread_join(thread);
    assert_int_equal(masks_differ(&before, &after), 0);
    for (size_t i = 0; i < sizeof blocked / sizeof blocked[0]; i++)
        assert_int_equal(sigismember(&out.mask, blocked[i]), 1);
    for (size_t i = 0; i < sizeof open / sizeof open[0]; i++)
        assert_int_equal(sigismember(&out.mask, open[i]), 0);
    (void)sigemptyset(&before);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void a_thread_that_cannot_be_made_is_an_error(void **state)
{
    pthread_attr_t usual;
    pthread_attr_t huge;
    sigset_t before;
    sigset_t after;
    fl_thread thread;
    filch_status status;
    seen out = {0};

    (void)state;
    (void)pthread_sigmask(SIG_SETMASK, NULL, &before);
    assert_int_equal(pthread_getattr_default_np(&usual), 0);
    assert_int_equal(pthread_attr_init(&huge), 0);
    /* No address space has room for this stack. */
    assert_int_equal(pthread_attr_setstacksize(&huge, (size_t)1 << 60), 0);
    assert_int_equal(pthread_setattr_default_np(&huge), 0);
    status = fl_thread_start(&thread, look, &out);
    assert_int_equal(pthread_setattr_default_np(&usual), 0);
    (void)pthread_attr_destroy(&huge);
    (void)pthread_attr_destroy(&usual);
    assert_int_equal(status, FILCH_SYSTEM);
    assert_int_equal(out.id, 0);
    (void)pthread_sigmask(SIG_SETMASK, NULL, &after);
    assert_int_equal(masks_differ(&before, &after), 0);
}

static void names_reach_the_system_cut_to_fit(void **state)
{
    char mine[16] = "";
    char after[16] = "";
    fl_thread thread;
    seen out = {0};

    (void)state;
    (void)prctl(PR_GET_NAME, mine);
    assert_int_equal(fl_thread_start(&thread, look, &out), FILCH_OK);
    fl_thread_join(thread);
    assert_string_equal(out.name, "filch-test-with");
    (void)prctl(PR_GET_NAME, after);
    assert_string_equal(after, mine);
}

typedef struct gate {
    fl_mutex mutex;
    fl_cond cond;
    int arrived;
    bool open;
    uint64_t ids[THREADS];
    long counter;
} gate;

static void gate_init(gate *g)
{
    memset(g, 0, sizeof *g);
    assert_int_equal(fl_mutex_init(&g->mutex), FILCH_OK);
    assert_int_equal(fl_cond_init(&g->cond), FILCH_OK);
}

static void gate_fini(gate *g)
{
    fl_cond_fini(&g->cond);
    fl_mutex_fini(&g->mutex);
}

static int arrive_and_wait(void *arg)
{
    gate *g = arg;

    fl_mutex_lock(&g->mutex);
    g->ids[g->arrived++] = fl_thread_id();
    fl_cond_broadcast(&g->cond);
    while (!g->open)
        fl_cond_wait(&g->cond, &g->mutex);
    fl_mutex_unlock(&g->mutex);
    return 0;
}

static void ids_of_living_threads_differ_and_stay(void **state)
{
    fl_thread threads[THREADS];
    fl_thread thread;
    gate g;
    seen out = {0};

    (void)state;
    gate_init(&g);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(fl_thread_start(&threads[i], arrive_and_wait, &g), FILCH_OK);
    fl_mutex_lock(&g.mutex);
    while (g.arrived < THREADS)
        fl_cond_wait(&g.cond, &g.mutex);
    for (int i = 0; i < THREADS; i++) {
        assert_true(g.ids[i] != 0);
        assert_true(g.ids[i] != fl_thread_id());
        for (int j = 0; j < i; j++)
            assert_true(g.ids[i] != g.ids[j]);
    }
    g.open = true;
    fl_cond_broadcast(&g.cond);
    fl_mutex_unlock(&g.mutex);
    for (int i = 0; i < THREADS; i++)
        fl_thread_join(threads[i]);
    gate_fini(&g);
    assert_int_equal(fl_thread_start(&thread, look, &out), FILCH_OK);
    fl_thread_join(thread);
    assert_true(out.id != 0 && out.id == out.id_again);
}

static int count(void *arg)
{
    gate *g = arg;

    for (int i = 0; i < 20000; i++) {
        if (i % 3 == 0) {
            fl_mutex_lock(&g->mutex);
        } else if (i % 3 == 1) {
            fl_mutex_lock_soon(&g->mutex);
        } else {
            while (!fl_mutex_try(&g->mutex))
                fl_thread_yield();
        }
        g->counter++;
        fl_mutex_unlock(&g->mutex);
    }
    return 0;
}

static void mutex_excludes(void **state)
{
    fl_thread threads[THREADS];
    gate g;

    (void)state;
    gate_init(&g);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(fl_thread_start(&threads[i], count, &g), FILCH_OK);
    for (int i = 0; i < THREADS; i++)
        fl_thread_join(threads[i]);
    assert_int_equal(g.counter, THREADS * 20000);
    gate_fini(&g);
}

typedef struct attempt {
    fl_mutex *mutex;
    bool taken;
} attempt;

static int try_once(void *arg)
{
    attempt *a = arg;

    a->taken = fl_mutex_try(a->mutex);
    if (a->taken)
        fl_mutex_unlock(a->mutex);
    return 0;
}

static bool other_thread_gets(fl_mutex *mutex)
{
    attempt a = {mutex, false};
    fl_thread thread;

    assert_int_equal(fl_thread_start(&thread, try_once, &a), FILCH_OK);
    fl_thread_join(thread);
    return a.taken;
}

static void try_fails_while_another_thread_holds_the_mutex(void **state)
{
    fl_mutex mutex;

    (void)state;
    assert_int_equal(fl_mutex_init(&mutex), FILCH_OK);
    fl_mutex_lock(&mutex);
    assert_false(other_thread_gets(&mutex));
    fl_mutex_unlock(&mutex);
    assert_true(other_thread_gets(&mutex));
    fl_mutex_fini(&mutex);
}

static void a_wait_ends_when_its_time_has_passed(void **state)
{
    gate g;

    (void)state;
    gate_init(&g);
    fl_mutex_lock(&g.mutex);
    /* A spurious wake-up returns true; the time runs out in the end. */
    while (fl_cond_wait_for(&g.cond, &g.mutex, 1000000))
        continue;
    while (fl_cond_wait_for(&g.cond, &g.mutex, 0))
        continue;
    /* The mutex is held again. */
    assert_false(other_thread_gets(&g.mutex));
    fl_mutex_unlock(&g.mutex);
    gate_fini(&g);
}

typedef struct sleeper {
    gate g;
    uint64_t ns;
    bool woken;
} sleeper;

static int sleep_once(void *arg)
{
    sleeper *s = arg;

    fl_mutex_lock(&s->g.mutex);
    s->g.arrived = 1;
    fl_cond_signal(&s->g.cond);
    s->woken = true;
    while (!s->g.open && s->woken)
        s->woken = fl_cond_wait_for(&s->g.cond, &s->g.mutex, s->ns);
    fl_mutex_unlock(&s->g.mutex);
    return 0;
}

static void signals_end_waits_of_any_length(void **state)
{
    /* The second carries from the nanoseconds of the deadline into its seconds. */
    static const uint64_t waits[] = {60 * FL_NS_PER_S,  61 * FL_NS_PER_S - 1, FL_TIME_NEVER,
                                     FL_TIME_NEVER - 1, (uint64_t)INT64_MAX,  3600 * FL_NS_PER_S};

    (void)state;
    for (size_t i = 0; i < sizeof waits / sizeof waits[0]; i++) {
        sleeper s = {.ns = waits[i]};
        fl_thread thread;

        gate_init(&s.g);
        assert_int_equal(fl_thread_start(&thread, sleep_once, &s), FILCH_OK);
        fl_mutex_lock(&s.g.mutex);
        while (s.g.arrived == 0)
            fl_cond_wait(&s.g.cond, &s.g.mutex);
        s.g.open = true;
        fl_cond_signal(&s.g.cond);
        fl_mutex_unlock(&s.g.mutex);
        fl_thread_join(thread);
        /* A deadline that is malformed or overflowed would have ended the wait at once. */
        assert_true(s.woken);
        gate_fini(&s.g);
    }
}

static void values_belong_to_their_thread(void **state)
{
    int mine = 0;
    fl_tss tss;
    fl_tss other;
    fl_thread thread;
    seen out = {.tss = &tss};

    (void)state;
    assert_int_equal(fl_tss_init(&tss), FILCH_OK);
    assert_int_equal(fl_tss_init(&other), FILCH_OK);
    assert_null(fl_tss_get(tss));
    assert_int_equal(fl_tss_set(tss, &mine), FILCH_OK);
    assert_int_equal(fl_thread_start(&thread, look, &out), FILCH_OK);
    fl_thread_join(thread);
    assert_null(out.first_value);
    assert_ptr_equal(out.own_value, &out);
    assert_ptr_equal(fl_tss_get(tss), &mine);
    assert_null(fl_tss_get(other));
    fl_tss_fini(other);
    fl_tss_fini(tss);
}

static void exhausted_per_thread_keys_are_an_error(void **state)
{
    static fl_tss keys[4096];
    filch_status status = FILCH_OK;
    int made = 0;

    (void)state;
    while (made < 4096 && status == FILCH_OK) {
        status = fl_tss_init(&keys[made]);
        made += status == FILCH_OK;
    }
    while (made > 0)
        fl_tss_fini(keys[--made]);
    assert_int_equal(status, FILCH_SYSTEM);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(new_threads_take_no_asynchronous_signal),
        cmocka_unit_test(a_thread_that_cannot_be_made_is_an_error),
        cmocka_unit_test(names_reach_the_system_cut_to_fit),
        cmocka_unit_test(ids_of_living_threads_differ_and_stay),
        cmocka_unit_test(mutex_excludes),
        cmocka_unit_test(try_fails_while_another_thread_holds_the_mutex),
        cmocka_unit_test(a_wait_ends_when_its_time_has_passed),
        cmocka_unit_test(signals_end_waits_of_any_length),
        cmocka_unit_test(values_belong_to_their_thread),
        cmocka_unit_test(exhausted_per_thread_keys_are_an_error),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
