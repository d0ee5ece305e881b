/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that is free but for the copy that saves what was there: who needs it has it at once, and
 * is put behind that copy. Seen on a device that does nothing until it is let go: what waited for
 * the copy to be over would never come. On the fake driver. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define N 8192
#include "jobs.h"

/* Room for one tile; what is copied takes long enough to be overtaken. */
static void start_small(const char *devices, const char *limit)
{
    (void)setenv("FILCH_MEMORY_LIMIT", limit, 1);
    (void)setenv("FILCH_ARENA", "plain", 1);
    start(devices, "1", "{\"copy_ns\": 20000000, \"devices\": [{}]}");
    (void)unsetenv("FILCH_MEMORY_LIMIT");
    (void)unsetenv("FILCH_ARENA");
    set(x, 100);
    set(y, 200);
}

/* Whether so many kernels are put on the device before long. */
static bool comes_to(uint64_t launches)
{
    for (int i = 0; i < 20000 && fakecuda_count("cuLaunchKernel") < launches; i++) {
        const struct timespec nap = {0, 500000};
        (void)nanosleep(&nap, NULL);
    }
    return fakecuda_count("cuLaunchKernel") >= launches;
}

/* A tile that was changed on the device has to leave for another, which is brought or written. */
static void tiles_follow_those_that_leave(void **state)
{
    static const char *const devices[] = {"cuda:0", "cuda:0/88+24"};
    (void)state;
    for (int d = 0; d < 2; d++)
        for (int reads = 0; reads < 2; reads++) {
            start_small(devices[d], "66560");
            uint32_t flags = FILCH_DATA_MANAGED | FILCH_DATA_PIN;
            filch_data *first = handle_with(x, flags), *other = handle_with(y, flags);
            filch_codelet *bumps = on_gpu("bump");
            filch_graph *before = graph(), *after = graph();
            add(before, bumps, FILCH_READWRITE, first, NULL, NULL);
            add(after, bumps, reads != 0 ? FILCH_READWRITE : FILCH_WRITE, other, NULL, NULL);
            finish(submit(before), FILCH_OK);
            fakecuda_hold();
            filch_job *job = submit(after);
            bool comes = comes_to(2);
            bool is_saved = fakecuda_count("cuMemcpyDtoHAsync") != 0;
            fakecuda_release();
            finish(job, FILCH_OK);
            assert_true(comes && is_saved);
            assert_ok(filch_data_acquire(first, FILCH_READ));
            expect(x, 101);
            assert_ok(filch_data_release(first));
            assert_ok(filch_data_acquire(other, FILCH_READ));
            if (reads != 0)
                expect(y, 201);
            assert_ok(filch_data_release(other));
            stop();
        }
}

/* number(to): each element is its number. */
static int number(const filch_call *call)
{
    uint64_t *to = call->views[0].ptr;
    for (uint64_t i = 0; i < call->views[0].rows; i++)
        to[i] = call->views[0].row + i;
    return 0;
}

static int count_up(const filch_call *call)
{
    uint64_t *to = call->views[0].ptr;
    for (uint64_t i = 0; i < call->views[0].rows; i++)
        to[i] += call->views[0].row + i;
    return 0;
}

/* Chunks have memory of their own, which their results leave. */
static void chunks_follow_those_that_leave(void **state)
{
    (void)state;
    for (int reads = 0; reads < 2; reads++) {
        filch_batch_desc desc = FILCH_BATCH_DESC_INIT;
        filch_job *job = NULL;
        start_small("cuda:0", "48K");
        fakecuda_register_filch("bump", reads != 0 ? count_up : number, 1, true, 0);
        filch_data *data = handle_with(x, FILCH_DATA_PIN);
        const filch_batch_access access = {.data = data,
                                           .mode = reads != 0 ? FILCH_READWRITE : FILCH_WRITE,
                                           .map = FILCH_MAP_AFFINE,
                                           .scale = 1};
        desc.codelet = on_gpu("bump");
        desc.n = N;
        desc.grain = N / 2;
        desc.accesses = &access;
        desc.access_count = 1;
        fakecuda_hold();
        assert_ok(filch_batch_submit(runtime, &desc, NULL, &job));
        bool comes = comes_to(2);
        fakecuda_release();
        finish(job, FILCH_OK);
        assert_true(comes);
        for (uint64_t i = 0; i < N; i++)
            assert_int_equal(x[i], reads != 0 ? 100 + 2 * i : i);
        stop();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tiles_follow_those_that_leave),
        cmocka_unit_test(chunks_follow_those_that_leave),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
