/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs whose kernels are held back on their lanes while something fails. Whether kernels are held
 * depends on how long the last ones took; what is asserted holds either way. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "jobs.h"

#define ONE "{\"devices\":[{\"count\":1}]}"
#define HANDLES 100
#define WARM_RUNS 20

static uint64_t buffers[HANDLES][N];
static filch_data *handles[HANDLES];
static _Atomic int sleeps_us, runs;

/* note(to): sets it to 7. */
static int note(const filch_call *call)
{
    const struct timespec nap = {0, atomic_load(&sleeps_us) * 1000L};
    uint64_t *to = call->views[0].ptr;
    atomic_fetch_add(&runs, 1);
    if (nap.tv_nsec != 0)
        (void)nanosleep(&nap, NULL);
    for (uint64_t i = 0; i < call->views[0].rows; i++)
        to[i] = 7;
    return 0;
}

static filch_graph *many(filch_codelet *codelet, int first, int last)
{
    filch_graph *made = graph();
    for (int i = first; i < last; i++)
        add(made, codelet, FILCH_WRITE, handles[i], NULL, NULL);
    return made;
}

/* Kernels that are known to be short. */
static filch_codelet *begin(uint32_t flags)
{
    filch_cuda_desc cuda = FILCH_CUDA_DESC_INIT;
    filch_codelet_desc desc = FILCH_CODELET_DESC_INIT;
    filch_codelet *codelet = NULL;
    static const char image[] = "FAKECUBIN arch=90 entry=note";
    (void)setenv("FILCH_REPLAY", "0", 1);
    atomic_store(&sleeps_us, 0);
    start_driven("cuda:0", "2", ONE, FILCH_DRIVE_POLL);
    fakecuda_register_filch("note", note, 1, false, 0);
    cuda.image = image;
    cuda.image_bytes = sizeof image;
    cuda.entry = desc.name = "note";
    desc.cuda = &cuda;
    assert_ok(filch_codelet_create(runtime, &desc, &codelet));
    for (int i = 0; i < HANDLES; i++)
        handles[i] = handle_with(buffers[i], flags);
    for (int r = 0; r < WARM_RUNS; r++) {
        filch_graph *warm = many(codelet, 0, HANDLES);
        finish(submit(warm), FILCH_OK);
        assert_ok(filch_graph_destroy(warm));
    }
    return codelet;
}

static void end(void)
{
    for (int i = 0; i < HANDLES; i++)
        assert_ok(filch_data_destroy(handles[i]));
    stop();
}

/* Jobs that are over are over: nothing of theirs runs any more, on whatever lane. */
static void a_lost_device_runs_nothing_later(void **state)
{
    const struct timespec while_after = {0, 300000000};
    (void)state;
    filch_codelet *codelet = begin(FILCH_DATA_MANAGED);
    filch_graph *few = many(codelet, 0, 10), *rest = many(codelet, 10, HANDLES);
    atomic_store(&sleeps_us, 2000);
    filch_job *first = submit(few), *second = submit(rest);
    fakecuda_fail("cuEventQuery", 1, 1, 719 /* launch failed */, -1, false);
    assert_int_not_equal(filch_job_wait(first, SOON), FILCH_OK);
    assert_int_not_equal(filch_job_wait(second, SOON), FILCH_OK);
    int begun = atomic_load(&runs);
    (void)nanosleep(&while_after, NULL);
    assert_int_equal(atomic_load(&runs), begun);
    assert_ok(filch_job_release(first));
    assert_ok(filch_job_release(second));
    assert_ok(filch_graph_destroy(few));
    assert_ok(filch_graph_destroy(rest));
    end();
}

/* Once there is not enough memory for a launch: the next time there is. */
static void want_of_memory_is_got_over(void **state)
{
    (void)state;
    filch_codelet *codelet = begin(FILCH_DATA_MANAGED);
    for (uint64_t nth = 1; nth < 40; nth += 3) {
        filch_graph *all = many(codelet, 0, HANDLES);
        uint64_t before = fakecuda_count("cuLaunchKernel");
        /* Without graphs every held kernel is a launch. */
        fakecuda_fail("cuGraphLaunch", 1, 0, 2 /* out of memory */, -1, false);
        fakecuda_fail("cuLaunchKernel", nth, 1, 2 /* out of memory */, -1, false);
        filch_job *job = submit(all);
        filch_status status = filch_job_wait(job, SOON);
        assert_true(fakecuda_count("cuLaunchKernel") - before >= nth);
        filch_error error = FILCH_ERROR_INIT;
        /* A launch that was not held back fails where nothing is in flight that may give memory. */
        if (status != FILCH_OK) {
            assert_int_equal(status, FILCH_TASK_FAILED);
            assert_ok(filch_job_error(job, &error));
            assert_int_equal(error.status, FILCH_NO_DEVICE_MEMORY);
        }
        assert_ok(filch_job_release(job));
        assert_ok(filch_graph_destroy(all));
        fakecuda_reset();
    }
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_lost_device_runs_nothing_later),
        cmocka_unit_test(want_of_memory_is_got_over),
    };
    (void)x, (void)y, (void)z;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
