/* SPDX-License-Identifier: Apache-2.0 */
/* The way of one GPU task, from ready to home: prints the addresses of the library's functions that
 * the device's worker calls for a closed graph of one task, each at its first call, in that order;
 * a run a paragraph. Recorded are the worker's steps from the one that launches the kernel to the
 * one that retires the task, up to the end of the job. The first runs are left out: their tasks are
 * all timed. The task's operand comes from the host's memory and goes back there. Needs a library
 * built with -finstrument-functions (tests/check/path.sh); runs on the fake driver. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "fake/jobs.h"

#define PLAIN __attribute__((no_instrument_function))
enum { WARM = 64, RUNS = 51, MOST = 1 << 12, LONG_US = 400 };

/* Functions of the library, declared as data: only their addresses matter here. */
extern const char fl_worker_step[], fl_cuda_launch[], fl_job_retired[];

/* One worker: no two threads record at once. */
static struct {
    void *at[MOST];
    uint32_t count;
} seen;
static _Atomic int is_on;
static int is_launched, is_over;
static _Thread_local int is_in_step, is_other; /* is_other: the host's thread */

PLAIN void __cyg_profile_func_enter(void *function, void *caller);
PLAIN void __cyg_profile_func_exit(void *function, void *caller);

void __cyg_profile_func_enter(void *function, void *caller)
{
    (void)caller;
    if (atomic_load(&is_on) == 0 || is_other || is_over)
        return;
    if (function == fl_worker_step) {
        is_in_step = 1;
        seen.count = is_launched ? seen.count : 0;
    }
    if (!is_in_step)
        return;
    is_launched |= function == fl_cuda_launch;
    is_over = function == fl_job_retired;
    for (uint32_t i = 0; i < seen.count; i++)
        if (seen.at[i] == function)
            return;
    if (seen.count < MOST)
        seen.at[seen.count++] = function;
}

void __cyg_profile_func_exit(void *function, void *caller)
{
    (void)caller;
    if (!is_other && function == fl_worker_step)
        is_in_step = 0;
}

static void one_task(void **state)
{
    (void)state;
    is_other = 1;
    start("cuda:0", "1", "{\"devices\": [{}]}");
    fakecuda_register_filch("bump", late, 1, false, 0);
    atomic_store(&naps_us, LONG_US);
    filch_data *data = handle_with(x, FILCH_DATA_PIN);
    filch_graph *alone = graph();
    add(alone, on_gpu("bump"), FILCH_READWRITE, data, NULL, NULL);
    for (int i = 0; i < WARM + RUNS; i++) {
        is_launched = is_over = 0;
        atomic_store(&is_on, i >= WARM);
        finish(submit(alone), FILCH_OK);
        atomic_store(&is_on, 0);
        for (uint32_t j = 0; i >= WARM && j < seen.count; j++)
            printf("%p%s", seen.at[j], j + 1 < seen.count ? "\n" : "\n\n");
    }
    stop();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(one_task)};
    (void)setenv("FILCH_REPLAY", "0", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
