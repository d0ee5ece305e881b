/* SPDX-License-Identifier: Apache-2.0 */
/* How long a worker's thread was kept off its core: by clocks that the test sets; and in a runtime
 * on a core that a busy process has, too. */
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "fixture.h"
#include "sched/account/preempt.h"

enum { US = 1000, MS = 1000000 };

static bool read_given(void *user, fl_thread_times *times)
{
    *times = *(const fl_thread_times *)user;
    return true;
}

static bool read_nothing(void *user, fl_thread_times *times)
{
    (void)user;
    (void)times;
    return false;
}

static void pass(fl_thread_times *times, uint64_t wall, uint64_t cpu)
{
    times->wall_ns += wall;
    times->cpu_ns += cpu;
}

static void what_was_taken_is_told(void **state)
{
    fl_thread_times at = {.wall_ns = 7 * MS, .cpu_ns = 3 * MS, .blocked = 5, .taken = 9};
    fl_preempt preempt;
    (void)state;
    fl_preempt_begin(&preempt, read_given, &at);
    /* It ran all the time. */
    pass(&at, 10 * MS, 10 * MS);
    assert_int_equal(fl_preempt_take(&preempt, at.wall_ns - 10 * MS, at.wall_ns), 0);
    /* It had its core for 6 of 10 ms. */
    pass(&at, 10 * MS, 6 * MS);
    at.taken += 2;
    assert_int_equal(fl_preempt_take(&preempt, at.wall_ns - 10 * MS, at.wall_ns), 4 * MS);
    /* That is told once. */
    pass(&at, 10 * MS, 10 * MS);
    assert_int_equal(fl_preempt_take(&preempt, at.wall_ns - 10 * MS, at.wall_ns), 0);
}

/* Never more than the stretch that is asked about; nothing of one that is too short, which the next
 * look has. */
static void stretches_bound_it(void **state)
{
    fl_thread_times at = {.taken = 0};
    fl_preempt preempt;
    (void)state;
    fl_preempt_begin(&preempt, read_given, &at);
    pass(&at, 50 * US, 20 * US);
    at.taken += 1;
    assert_int_equal(fl_preempt_take(&preempt, 0, 50 * US), 0);
    pass(&at, 200 * US, 0);
    assert_int_equal(fl_preempt_take(&preempt, 50 * US, at.wall_ns), 200 * US);
    assert_int_equal(fl_preempt_take(&preempt, at.wall_ns, at.wall_ns - 1), 0);
}

static void sleep_is_not_taken(void **state)
{
    fl_thread_times at = {.taken = 0};
    fl_preempt preempt;
    (void)state;
    fl_preempt_begin(&preempt, read_given, &at);
    /* Many short sleeps of the worker's own, and a long one. */
    for (int i = 0; i < 100; ++i) {
        uint64_t from = at.wall_ns;
        pass(&at, 40 * US, 0);
        at.blocked += 1;
        fl_preempt_slept(&preempt, from, at.wall_ns);
    }
    pass(&at, MS, MS / 2);
    at.taken += 1;
    assert_int_equal(fl_preempt_take(&preempt, at.wall_ns - MS, at.wall_ns), MS / 2);
    uint64_t from = at.wall_ns;
    pass(&at, 500 * MS, 3 * US);
    at.blocked += 1;
    at.taken += 1;
    fl_preempt_slept(&preempt, from, at.wall_ns);
    pass(&at, MS, MS);
    assert_int_equal(fl_preempt_take(&preempt, at.wall_ns - MS, at.wall_ns), 0);
    /* A task that waits for something itself, and is never stopped; and one of which both is true:
     * as often as each. */
    pass(&at, 8 * MS, 2 * MS);
    at.blocked += 3;
    assert_int_equal(fl_preempt_take(&preempt, at.wall_ns - 8 * MS, at.wall_ns), 0);
    pass(&at, 8 * MS, 2 * MS);
    at.blocked += 3;
    at.taken += 1;
    assert_int_equal(fl_preempt_take(&preempt, at.wall_ns - 8 * MS, at.wall_ns), 6 * MS / 4);
}

static void a_silent_system_tells_nothing(void **state)
{
    fl_preempt preempt;
    (void)state;
    fl_preempt_begin(&preempt, read_nothing, NULL);
    fl_preempt_slept(&preempt, 0, MS);
    assert_int_equal(fl_preempt_take(&preempt, 0, 10 * MS), 0);
}

/* --- A core that is shared --- */

static uint64_t thread_cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000 * MS + (uint64_t)t.tv_nsec;
}

/* So much time of the core, however long that takes. */
static int compute(const filch_call *call)
{
    uint64_t until = thread_cpu_ns() + *(const uint64_t *)call->args;
    while (thread_cpu_ns() < until) {
    }
    return 0;
}

/* The first core that this process may use becomes its only one. */
static bool take_one_core(void)
{
    cpu_set_t all, one;
    CPU_ZERO(&one);
    if (sched_getaffinity(0, sizeof all, &all) != 0) {
        return false;
    }
    for (size_t cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
        if (CPU_ISSET(cpu, &all)) {
            CPU_SET(cpu, &one);
            break;
        }
    }
    return sched_setaffinity(0, sizeof one, &one) == 0;
}

static void a_shared_core_is_told(void **state)
{
    (void)state;
    if (!take_one_core()) {
        skip();
    }
    pid_t busy = fork();
    assert_true(busy >= 0);
    if (busy == 0) {
        alarm(60);
        for (volatile unsigned i = 0;; ++i) {
        }
    }
    filch_runtime *runtime = fixture_runtime("host:1", FILCH_DRIVE_THREADS, NULL);
    filch_codelet *codelet = fixture_codelet(runtime, "computes", compute, sizeof(uint64_t));
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    uint64_t ns = 10 * MS;
    for (int i = 0; i < 20; ++i) {
        fixture_add(graph, codelet, &ns, NULL, 0);
    }
    filch_job *job = NULL;
    assert_int_equal(filch_graph_submit(graph, NULL, &job), FILCH_OK);
    assert_int_equal(filch_job_wait(job, -1), FILCH_OK);
    filch_report report = FILCH_REPORT_INIT;
    filch_losses l;
    assert_int_equal(filch_job_report(job, NULL, &report, &l, 1), FILCH_OK);
    assert_true(l.preempted_ns > 0);
    assert_int_equal(l.busy_ns + l.slow_ns + l.dispatch_ns + l.data_ns + l.spoiled_ns +
                         l.preempted_ns + l.starved_ns + l.unshared_ns + l.held_ns + l.tail_ns +
                         l.other_ns,
                     l.wall_ns);
    assert_int_equal(filch_job_release(job), FILCH_OK);
    assert_int_equal(filch_graph_destroy(graph), FILCH_OK);
    assert_int_equal(filch_runtime_destroy(runtime), FILCH_OK);
    assert_int_equal(kill(busy, SIGKILL), 0);
    assert_int_equal(waitpid(busy, NULL, 0), busy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_taken_is_told), cmocka_unit_test(stretches_bound_it),
        cmocka_unit_test(sleep_is_not_taken),     cmocka_unit_test(a_silent_system_tells_nothing),
        cmocka_unit_test(a_shared_core_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
