/* SPDX-License-Identifier: Apache-2.0 */
/* Runs of a closed graph queued behind each other on GPUs and beside host cores: contents between
 * runs, managed and not; graph launches; a kernel that fails in one run. On the fake driver. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "jobs.h"

#define FAKE "{\"devices\": [{\"count\": 2}]}"

enum { RUNS = 30 };

static const char *const devices[] = {"cuda:0", "cuda:0,host:1", "cuda:0,cuda:1"};

/* bump(x) twice, on a GPU and where there is one on a core. */
static filch_graph *bumps(filch_data *data, bool has_host)
{
    filch_graph *made = graph();
    add(made, on_gpu("bump"), FILCH_READWRITE, data, NULL, NULL);
    add(made, has_host ? on_host("bump", bump) : on_gpu("bump"), FILCH_READWRITE, data, NULL, NULL);
    return made;
}

static void runs_follow_each_other(void **state)
{
    (void)state;
    for (int i = 0; i < 12; i++) {
        uint32_t flags = i % 2 == 0 ? 0 : FILCH_DATA_MANAGED;
        start_driven(devices[i / 2 % 3], "2", FAKE, i < 6 ? FILCH_DRIVE_DEFAULT : FILCH_DRIVE_POLL);
        set(x, 1);
        set(y, 0);
        filch_data *data = handle_with(x, flags), *to = handle_with(y, flags);
        filch_graph *made = bumps(data, i / 2 % 3 == 1), *copying = graph();
        add(copying, on_gpu("copy"), FILCH_WRITE, data, to, NULL);
        filch_job *jobs[RUNS], *between = NULL;
        for (int run = 0; run < RUNS; run++) {
            jobs[run] = submit(made);
            between = run == RUNS / 2 ? submit(copying) : between;
        }
        finish(jobs[RUNS - 1], FILCH_OK);
        for (int run = 0; run < RUNS - 1; run++) {
            assert_int_equal(filch_job_status(jobs[run]), FILCH_OK);
            finish(jobs[run], FILCH_OK);
        }
        finish(between, FILCH_OK);
        assert_ok(filch_data_acquire(data, FILCH_READ));
        assert_ok(filch_data_acquire(to, FILCH_READ));
        expect(x, 1 + 2 * RUNS);
        expect(y, 1 + 2 * (RUNS / 2 + 1));
        assert_ok(filch_data_release(data));
        assert_ok(filch_data_release(to));
        stop();
    }
}

/* The GPU is lost in the second run: the runs behind it fail as their own submissions would, and
 * the cancelled one ends as cancelled. */
static void a_lost_gpu_ends_each_run(void **state)
{
    (void)state;
    start("cuda:0", "1",
          "{\"devices\": [{\"count\": 1}], \"failures\": [{\"call\": \"kernel\", \"nth\": 4, "
          "\"result\": 719, \"sticky\": true}]}");
    set(x, 0);
    filch_graph *made = graph();
    filch_data *data = handle(x);
    add(made, on_gpu("hold"), FILCH_READWRITE, data, NULL, NULL);
    add(made, on_gpu("bump"), FILCH_READWRITE, data, NULL, NULL);
    atomic_store(&is_held, 1);
    filch_job *jobs[5];
    for (int run = 0; run < 5; run++)
        jobs[run] = submit(made);
    assert_ok(filch_job_cancel(jobs[3]));
    assert_int_equal(filch_job_status(jobs[3]), FILCH_CANCELLED);
    assert_int_equal(filch_job_status(jobs[4]), FILCH_NOT_READY);
    atomic_store(&is_held, 0);
    finish(jobs[4], FILCH_TASK_FAILED);
    finish(jobs[3], FILCH_CANCELLED);
    finish(jobs[2], FILCH_TASK_FAILED);
    finish(jobs[1], FILCH_TASK_FAILED);
    finish(jobs[0], FILCH_OK);
    stop();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(runs_follow_each_other),
        cmocka_unit_test(a_lost_gpu_ends_each_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
