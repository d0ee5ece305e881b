/* SPDX-License-Identifier: Apache-2.0 */
/* The way of one GPU task: prints the addresses of the library's functions that the device's worker
 * calls from the submission of a closed graph of one task until the job is over, each at its first
 * call, in that order. The task's operand comes from the host's memory and goes back there. Needs a
 * library built with -finstrument-functions (tests/check/path.sh); runs on the fake driver. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "fake/jobs.h"

#define PLAIN __attribute__((no_instrument_function))
enum { RUNS = 8, MOST = 1 << 14 };

static _Atomic int is_on;
static _Thread_local int is_other; /* the host's thread */
static void *seen[MOST];
static _Atomic uint32_t seen_count;

PLAIN void __cyg_profile_func_enter(void *function, void *caller);
PLAIN void __cyg_profile_func_exit(void *function, void *caller);

/* One worker: no two threads record at once. */
void __cyg_profile_func_enter(void *function, void *caller)
{
    (void)caller;
    if (atomic_load(&is_on) == 0 || is_other)
        return;
    uint32_t count = atomic_load(&seen_count);
    for (uint32_t i = 0; i < count; i++)
        if (seen[i] == function)
            return;
    if (count < MOST) {
        seen[count] = function;
        atomic_store(&seen_count, count + 1);
    }
}

void __cyg_profile_func_exit(void *function, void *caller)
{
    (void)function;
    (void)caller;
}

static void one_task(void **state)
{
    (void)state;
    is_other = 1;
    start("cuda:0", "1", "{\"devices\": [{}]}");
    filch_data *data = handle_with(x, FILCH_DATA_PIN);
    filch_graph *alone = graph();
    add(alone, on_gpu("bump"), FILCH_READWRITE, data, NULL, NULL);
    for (int run = 0; run < RUNS; run++) {
        if (run == RUNS - 1)
            atomic_store(&is_on, 1);
        finish(submit(alone), FILCH_OK);
    }
    atomic_store(&is_on, 0);
    for (uint32_t i = 0; i < atomic_load(&seen_count); i++)
        printf("%p\n", seen[i]);
    stop();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(one_task)};
    (void)setenv("FILCH_REPLAY", "0", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
