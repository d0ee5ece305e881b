/* SPDX-License-Identifier: Apache-2.0 */
/* Repetitions on GPUs and beside host cores: contents between runs, managed and not; graph launches
 * of runs; tasks that finish early; a GPU lost in a run. On the fake driver. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "jobs.h"

#define FAKE "{\"devices\": [{\"count\": 1}]}"

enum { RUNS = 30 };

static _Atomic uint64_t finish_at;

/* until(x): ends the job once the cells have the value. */
static int until(const filch_call *call)
{
    const uint64_t *cells = call->views[0].ptr;
    return cells[0] == atomic_load(&finish_at) && filch_call_finish(call) != FILCH_OK ? 90 : 0;
}

/* With lag 0 the buffer has the run's results where the handle is not managed. */
static int look(uint64_t run, const void *value, void *user)
{
    uint64_t told;
    memcpy(&told, value, sizeof told);
    uint64_t wrong = told != *(const uint64_t *)user * run;
    for (int i = 0; i < N; i++)
        wrong += x[i] != told;
    return wrong != 0 ? 91 : run == RUNS ? FILCH_REPEAT_STOP : FILCH_REPEAT_AGAIN;
}

static filch_job *repeat(filch_graph *made, const filch_repeat_desc *desc)
{
    filch_job *job = NULL;
    assert_ok(filch_graph_repeat(made, desc, NULL, &job));
    return job;
}

static uint64_t runs_of(filch_job *job)
{
    filch_job_info info = FILCH_JOB_INFO_INIT;
    assert_ok(filch_job_stats(job, &info, NULL, 0));
    return info.runs;
}

static void the_predicate_sees_each_run(void **state)
{
    (void)state;
    const char *const devices[] = {"cuda:0", "cuda:0,host:1"};
    for (int i = 0; i < 4; i++) {
        start_driven(devices[i % 2], "1", FAKE, i < 2 ? FILCH_DRIVE_DEFAULT : FILCH_DRIVE_POLL);
        memset(x, 0, sizeof x);
        filch_graph *made = graph();
        filch_data *data = handle(x);
        uint64_t each = 2;
        add(made, on_gpu("bump"), FILCH_READWRITE, data, NULL, NULL);
        add(made, i % 2 == 0 ? on_gpu("bump") : on_host("bump", bump), FILCH_READWRITE, data, NULL,
            NULL);
        filch_repeat_desc desc = FILCH_REPEAT_DESC_INIT;
        desc.predicate = look;
        desc.user = &each;
        desc.value = x;
        desc.value_bytes = sizeof *x;
        filch_job *job = repeat(made, &desc);
        assert_ok(filch_job_wait(job, -1));
        assert_int_equal(runs_of(job), RUNS);
        assert_int_equal(x[N - 1], 2 * RUNS);
        assert_ok(filch_job_release(job));
        stop();
    }
}

static void managed_contents_stay_on_the_gpu(void **state)
{
    (void)state;
    start("cuda:0", "1", FAKE);
    memset(x, 0, sizeof x);
    filch_graph *made = graph();
    filch_data *data = handle_with(x, FILCH_DATA_MANAGED);
    add(made, on_gpu("bump"), FILCH_READWRITE, data, NULL, NULL);
    add(made, on_gpu("bump"), FILCH_READWRITE, data, NULL, NULL);
    filch_repeat_desc desc = FILCH_REPEAT_DESC_INIT;
    desc.max_runs = RUNS;
    filch_job *job = repeat(made, &desc);
    assert_ok(filch_job_wait(job, -1));
    filch_device_stats stats;
    filch_job_info info = FILCH_JOB_INFO_INIT;
    assert_ok(filch_job_stats(job, &info, &stats, 1));
    assert_int_equal(info.done, 2 * RUNS);
    assert_int_equal(stats.tiles, 2 * RUNS);
    assert_int_equal(stats.bytes_in, sizeof x); /* once, not once a run */
    assert_int_equal(stats.bytes_out, 0);
    assert_ok(filch_data_acquire(data, FILCH_READ));
    assert_int_equal(x[0], 2 * RUNS);
    assert_ok(filch_data_release(data));
    assert_ok(filch_job_release(job));
    stop();
}

/* The finishing task stands in the middle of the run: the bump behind it is skipped. */
static void a_task_of_the_host_finishes(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        start("cuda:0,host:1", "1", FAKE);
        memset(x, 0, sizeof x);
        atomic_store(&finish_at, 2 * RUNS + 1);
        filch_graph *made = graph();
        filch_data *data = handle_with(x, FILCH_DATA_MANAGED);
        filch_codelet *adds = on_gpu("bump");
        add(made, adds, FILCH_READWRITE, data, NULL, NULL);
        add(made, on_host("until", until), i == 0 ? FILCH_READWRITE : FILCH_READ, data, NULL, NULL);
        add(made, adds, FILCH_READWRITE, data, NULL, NULL);
        filch_repeat_desc desc = FILCH_REPEAT_DESC_INIT;
        filch_job *job = repeat(made, &desc);
        assert_ok(filch_job_wait(job, -1));
        assert_int_equal(runs_of(job), RUNS + 1);
        assert_ok(filch_data_acquire(data, FILCH_READ));
        /* A task that only reads may run beside nothing: the graph orders the last bump behind. */
        for (int cell = 0; cell < N; cell++)
            assert_int_equal(x[cell], 2 * RUNS + 1);
        assert_ok(filch_data_release(data));
        assert_ok(filch_job_release(job));
        stop();
    }
}

static void a_failing_kernel_ends_the_repetition(void **state)
{
    (void)state;
    start("cuda:0", "1",
          "{\"devices\": [{\"count\": 1}], \"failures\": [{\"call\": \"kernel\", \"nth\": 3, "
          "\"result\": 719, \"sticky\": true}]}");
    memset(x, 0, sizeof x);
    filch_graph *made = graph();
    add(made, on_gpu("bump"), FILCH_READWRITE, handle(x), NULL, NULL);
    filch_repeat_desc desc = FILCH_REPEAT_DESC_INIT;
    filch_job *job = repeat(made, &desc);
    assert_int_equal(filch_job_wait(job, -1), FILCH_TASK_FAILED);
    filch_error error = FILCH_ERROR_INIT;
    assert_ok(filch_job_error(job, &error));
    assert_ok(filch_job_release(job));
    assert_ok(filch_runtime_destroy(runtime));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_predicate_sees_each_run),
        cmocka_unit_test(managed_contents_stay_on_the_gpu),
        cmocka_unit_test(a_task_of_the_host_finishes),
        cmocka_unit_test(a_failing_kernel_ends_the_repetition),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
