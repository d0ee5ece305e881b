/* SPDX-License-Identifier: Apache-2.0 */
/* A workload of the bench on two fake GPUs: made, run and checked, and taken down with nothing left
 * behind. The kernels are registered by the test. After cmocka.h. */
#ifndef TESTS_FAKE_WORKLOAD_TRIAL_H
#define TESTS_FAKE_WORKLOAD_TRIAL_H

#include "fakecuda.h"
#include "measure/session.h"
#include "support/fail.h"

typedef struct workload_trial {
    const bench_workload *workload;
    void *problem; /* null: refused */
    bench_session session;
    filch_error error;
} workload_trial;

/* Returns what the workload says of the options. `twins` registers its kernels. */
static inline filch_status trial_begin(workload_trial *t, const bench_workload *workload,
                                       void (*twins)(void), bench_options options)
{
    const bench_session_config config = {.devices = options.devices, .policy = options.policy};
    *t = (workload_trial){.workload = workload, .error = FILCH_ERROR_INIT};
    fakecuda_reset();
    assert_true(fakecuda_configure("{\"devices\": [{\"count\": 2}]}"));
    twins();
    filch_status status = workload->setup(&options, &t->error, &t->problem);
    if (status == FILCH_OK &&
        bench_session_open(&t->session, workload, t->problem, &config, &t->error) != FILCH_OK)
        fail_msg("%s", t->error.text);
    return status;
}

static inline void trial_end(workload_trial *t)
{
    bench_session_close(&t->session);
    if (t->problem)
        t->workload->teardown(t->problem);
    assert_int_equal(fakecuda_live("memory"), 0);
    assert_int_equal(fakecuda_live("pinned"), 0);
    assert_int_equal(fakecuda_live("context"), 0);
    assert_int_equal(fakecuda_violations(), 0);
}

/* Runs once, and checks what this run computed. Returns the residual. */
static inline double trial_run(workload_trial *t)
{
    double seconds = -1, residual = -1;
    bool rebuild = false;
    assert_int_equal(t->workload->check_begin(t->problem, &rebuild, &t->error), FILCH_OK);
    assert_false(rebuild);
    if (bench_session_run(&t->session, &seconds, &t->error) != FILCH_OK ||
        t->workload->check(t->problem, &residual, &t->error) != FILCH_OK)
        fail_msg("%s", t->error.text);
    t->workload->check_end(t->problem);
    return residual;
}

#endif
