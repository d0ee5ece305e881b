/* SPDX-License-Identifier: Apache-2.0 */
/* Where the time of jobs on GPUs goes: copies that are waited for, failed work, and parts that
 * add up. How long things take is known only from below. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "random.h"

#include "jobs.h" /* whose x and z are too short for the file above */

#define MS 1000000u

enum { MOST_DEVICES = 8 };

static filch_losses losses[MOST_DEVICES];

static uint64_t parts_of(const filch_losses *l)
{
    return l->busy_ns + l->dispatch_ns + l->data_ns + l->spoiled_ns + l->starved_ns + l->held_ns +
           l->tail_ns + l->other_ns + l->slow_ns + l->preempted_ns + l->unshared_ns;
}

static filch_report read_report(filch_job *job, filch_graph *from)
{
    filch_report report = FILCH_REPORT_INIT;
    uint64_t walls = 0;
    assert_ok(filch_job_report(job, from, &report, losses, MOST_DEVICES));
    for (uint32_t d = 0; d < report.device_count; d++) {
        assert_int_equal(losses[d].wall_ns, report.wall_ns);
        assert_int_equal(parts_of(&losses[d]), report.wall_ns);
        assert_true(losses[d].estimated_ns <= losses[d].busy_ns);
        walls += losses[d].wall_ns;
    }
    assert_int_equal(report.total.wall_ns, walls);
    assert_int_equal(parts_of(&report.total), walls);
    assert_true(report.area_ns <= report.wall_ns);
    return report;
}

static void sleep_ms(int ms)
{
    const struct timespec nap = {0, ms * (long)MS};
    (void)nanosleep(&nap, NULL);
}

/* Each copy takes four milliseconds, and the kernel none: the device waits for one to its memory
 * and one home. */
static void copies_are_waited_for(void **state)
{
    (void)state;
    start("cuda", "1", "{\"copy_ns\": 4000000, \"devices\": [{\"count\": 1}]}");
    filch_codelet *bumps = on_gpu("bump");
    filch_data *data = handle(x);
    filch_graph *one = graph();
    set(x, 1);
    add(one, bumps, FILCH_READWRITE, data, NULL, NULL);
    filch_job *job = submit(one);
    assert_int_equal(filch_job_wait(job, SOON), FILCH_OK);
    filch_report report = read_report(job, one);
    expect(x, 2);
    assert_true(report.wall_ns >= 8u * MS);
    assert_true(losses[0].data_ns >= 4u * MS);
    assert_int_equal(losses[0].spoiled_ns, 0);
    assert_ok(filch_job_release(job));
    assert_ok(filch_graph_destroy(one));
    assert_ok(filch_data_destroy(data));
    stop();
}

static int fail_late(const filch_call *call)
{
    (void)call;
    sleep_ms(5);
    return 1;
}

/* The kernel runs for a while, and then fails with its device: nothing was gained. */
static void what_was_in_flight_is_spoiled(void **state)
{
    (void)state;
    start("cuda", "1", "{\"devices\": [{\"count\": 1}]}");
    fakecuda_register_filch("bump", fail_late, 1, false, 0);
    filch_codelet *bumps = on_gpu("bump");
    filch_data *data = handle(x);
    filch_graph *one = graph();
    add(one, bumps, FILCH_READWRITE, data, NULL, NULL);
    filch_job *job = submit(one);
    assert_int_equal(filch_job_wait(job, SOON), FILCH_TASK_FAILED);
    filch_report report = read_report(job, one);
    assert_int_equal(losses[0].busy_ns, 0);
    assert_true(losses[0].spoiled_ns >= 5u * MS);
    assert_int_equal(report.measured_count, 0);
    assert_int_equal(report.area_ns, 0);
    assert_true(report.efficiency == 0);
    assert_ok(filch_job_release(job));
    assert_ok(filch_graph_destroy(one));
    assert_ok(filch_data_destroy(data));
    stop();
}

/* A kernel that is held keeps the other GPU idle. */
static void idle_is_seen(void **state)
{
    (void)state;
    start("cuda", "1", "{\"devices\": [{\"count\": 2}]}");
    filch_codelet *waits = on_gpu("hold");
    filch_data *data = handle(x);
    filch_graph *one = graph();
    add(one, waits, FILCH_READWRITE, data, NULL, NULL);
    atomic_store(&is_held, 1);
    filch_job *job = submit(one);
    await_holds(1);
    sleep_ms(5);
    atomic_store(&is_held, 0);
    assert_int_equal(filch_job_wait(job, SOON), FILCH_OK);
    (void)read_report(job, one);
    uint32_t ran = losses[0].busy_ns != 0 ? 0 : 1;
    /* It is the only tile, so all of its time is timed, and all of the other's the tail. */
    assert_true(losses[ran].busy_ns >= 5u * MS);
    assert_int_equal(losses[ran].estimated_ns, 0);
    assert_true(losses[1 - ran].tail_ns >= 5u * MS);
    assert_int_equal(losses[1 - ran].busy_ns, 0);
    assert_ok(filch_job_release(job));
    assert_ok(filch_graph_destroy(one));
    assert_ok(filch_data_destroy(data));
    stop();
}

/* --- Whatever the schedule --- */

static filch_graph *random_graph(fl_random *random, filch_codelet *const *codelets,
                                 filch_data *const *data)
{
    filch_graph *made = graph();
    uint32_t count = 1 + fl_random_below(random, 200);
    for (uint32_t i = 0; i < count; i++) {
        filch_data *to = data[fl_random_below(random, 3)];
        add(made, codelets[fl_random_below(random, 2)], FILCH_READWRITE, to, NULL, NULL);
    }
    return made;
}

/* Runs each graph three times, so that it may be replayed, beside another job. */
static void check_random(const char *devices, const char *driver, filch_drive drive, uint64_t seed)
{
    fl_random random;
    fl_random_init(&random, seed, 0);
    start_driven(devices, "2", driver, drive);
    filch_codelet *const codelets[] = {on_gpu("bump"), on_gpu("hold")};
    filch_data *const data[] = {handle(x), handle(y), handle_with(z, FILCH_DATA_MANAGED)};
    for (int round = 0; round < 3; round++) {
        filch_graph *const graphs[] = {random_graph(&random, codelets, data),
                                       random_graph(&random, codelets, data)};
        for (int run = 0; run < 3; run++) {
            filch_job *const jobs[] = {submit(graphs[0]), submit(graphs[1])};
            for (int i = 0; i < 2; i++) {
                (void)filch_job_wait(jobs[i], 1e-4);
                (void)read_report(jobs[i], graphs[i]);
            }
            for (int i = 0; i < 2; i++) {
                assert_int_equal(filch_job_wait(jobs[i], SOON), FILCH_OK);
                filch_report report = read_report(jobs[i], graphs[i]);
                assert_int_equal(report.status, FILCH_OK);
                assert_true(report.measured_count > 0);
                assert_int_equal(report.total.spoiled_ns, 0);
                assert_ok(filch_job_release(jobs[i]));
            }
        }
        assert_ok(filch_graph_destroy(graphs[0]));
        assert_ok(filch_graph_destroy(graphs[1]));
    }
    for (int i = 0; i < 3; i++)
        assert_ok(filch_data_destroy(data[i]));
    stop();
}

static void parts_add_up(void **state)
{
    (void)state;
    static const char one[] = "{\"kernel_ns\": 5000, \"devices\": [{\"count\": 1}]}";
    static const char two[] = "{\"kernel_ns\": 20000, \"copy_ns\": 10000, "
                              "\"devices\": [{\"count\": 2}]}";
    for (uint64_t seed = 1; seed <= 3; seed++) {
        check_random("cuda", one, FILCH_DRIVE_THREADS, seed);
        check_random("cuda", two, FILCH_DRIVE_THREADS, seed);
        check_random("cuda,host:2", two, FILCH_DRIVE_THREADS, seed);
        check_random("cuda", two, FILCH_DRIVE_POLL, seed);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(copies_are_waited_for),
        cmocka_unit_test(what_was_in_flight_is_spoiled),
        cmocka_unit_test(idle_is_seen),
        cmocka_unit_test(parts_add_up),
    };
    (void)setenv("FILCH_REPLAY", "3", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
