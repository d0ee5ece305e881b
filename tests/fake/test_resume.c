/* SPDX-License-Identifier: Apache-2.0 */
/* A GPU is lost in the middle of a batch: what it has left is run by those that remain. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "jobs.h"

#define TWO "{\"devices\":[{\"count\":2}]}"
/* CUDA_ERROR_ILLEGAL_ADDRESS */
#define GONE 700
#define MOST_RANGES (2 * N + 1)

static filch_item_range ranges[MOST_RANGES];
static size_t range_count;

static filch_data *data[3]; /* of y, x and z */
static filch_on_failure on_failure;
static _Atomic bool host_fails;

/* Of items: x is one more, and z what y is. */
static int add_items(const filch_call *call)
{
    const uint64_t *from = call->views[0].ptr;
    uint64_t *sums = call->views[1].ptr, *to = call->views[2].ptr;

    for (uint64_t i = 0; i < call->views[1].rows; i++) {
        sums[i]++;
        to[i] = from[i];
    }
    return 0;
}

static int host_items(const filch_call *call)
{
    return atomic_load(&host_fails) ? 1 : add_items(call);
}

static void begin(const char *devices, const char *policy)
{
    (void)setenv("FILCH_POLICY", policy, 1);
    start(devices, "1", TWO);
    fakecuda_register_filch("items", add_items, 3, true, 0);
    data[0] = handle(y);
    data[1] = handle(x);
    data[2] = handle(z);
    set(y, 300);
    on_failure = FILCH_FAILURE_SKIP;
    atomic_store(&host_fails, false);
}

static void end(void)
{
    for (int i = 0; i < 3; i++)
        assert_ok(filch_data_destroy(data[i]));
    stop();
}

static filch_codelet *items_codelet(filch_host_fn host)
{
    filch_cuda_desc cuda = FILCH_CUDA_DESC_INIT;
    filch_codelet_desc desc = FILCH_CODELET_DESC_INIT;
    filch_codelet *codelet = NULL;

    cuda.image = "FAKECUBIN arch=90 entry=items(56,56,56,16)";
    cuda.image_bytes = strlen(cuda.image) + 1;
    cuda.entry = "items";
    desc.name = "items";
    desc.cuda = &cuda;
    desc.host = host;
    assert_ok(filch_codelet_create(runtime, &desc, &codelet));
    return codelet;
}

static filch_status run(filch_codelet *codelet, filch_job **job)
{
    static const filch_access_mode modes[3] = {FILCH_READ, FILCH_READWRITE, FILCH_WRITE};
    filch_batch_access accesses[3];
    filch_batch_desc desc = FILCH_BATCH_DESC_INIT;
    filch_submit_desc how = FILCH_SUBMIT_DESC_INIT;

    how.on_failure = on_failure;
    for (int i = 0; i < 3; i++)
        accesses[i] = (filch_batch_access){
            .data = data[i], .mode = modes[i], .map = FILCH_MAP_AFFINE, .scale = 1};
    desc.codelet = codelet;
    desc.n = N;
    desc.accesses = accesses;
    desc.access_count = 3;
    assert_ok(filch_batch_submit(runtime, &desc, &how, job));
    return filch_job_wait(*job, SOON);
}

/* Runs until the GPU is lost, in its nth kernel from now; returns the job that lost it. */
static filch_job *run_into_loss(filch_codelet *codelet, int device, uint64_t nth)
{
    filch_job *job = NULL;

    fakecuda_fail("kernel", nth, 1, GONE, device, false);
    for (int i = 0; i < 1000; i++) {
        set(x, 1);
        set(z, 0);
        if (run(codelet, &job) != FILCH_OK)
            return job;
        expect(x, 2);
        expect(z, 300);
        assert_ok(filch_job_release(job));
    }
    fail_msg("device %d was never lost", device);
    return NULL;
}

/* Items that are left for that reason; FILCH_OK: for any. */
static uint64_t look(filch_job *job, filch_status status)
{
    uint64_t left = 0;

    assert_ok(filch_job_items(job, ranges, MOST_RANGES, &range_count));
    for (size_t r = 0; r < range_count; r++) {
        bool is_left = ranges[r].status != FILCH_OK;
        if (is_left && (status == FILCH_OK || ranges[r].status == status))
            left += ranges[r].hi - ranges[r].lo;
    }
    return left;
}

/* Puts back what the items that are left may have written, as their body reads it; the others are
 * right. */
static uint64_t restore(filch_job *job)
{
    uint64_t left = look(job, FILCH_OK);

    for (size_t r = 0; r < range_count; r++) {
        for (uint64_t i = ranges[r].lo; i < ranges[r].hi; i++) {
            if (ranges[r].status == FILCH_OK)
                assert_int_equal(x[i], 2 + i);
            else
                x[i] = 1 + i;
        }
    }
    return left;
}

/* Resumes on one device, or on all where it is -1; returns its job, which succeeded. */
static void finish_on(filch_job *job, int device, uint64_t left)
{
    const uint32_t index = (uint32_t)device;
    filch_resume_desc desc = FILCH_RESUME_DESC_INIT;
    filch_job_info info = {.size = sizeof info};
    filch_device_stats stats[2];
    filch_job *rest = NULL;

    desc.devices = &index;
    desc.device_count = 1;
    assert_ok(filch_job_resume(job, device >= 0 ? &desc : NULL, NULL, &rest));
    assert_ok(filch_job_release(job));
    assert_int_equal(filch_job_wait(rest, SOON), FILCH_OK);
    assert_ok(filch_job_stats(rest, &info, stats, 2));
    assert_int_equal(info.total, left);
    assert_int_equal(info.done, left);
    assert_int_equal(stats[0].items, 0); /* the lost one */
    assert_int_equal(stats[1].items, left);
    assert_int_equal(look(rest, FILCH_OK), 0);
    assert_ok(filch_job_release(rest));
    expect(x, 2);
    expect(z, 300);
}

static void no_device(filch_job *job, const uint32_t *device)
{
    filch_resume_desc desc = FILCH_RESUME_DESC_INIT;
    filch_job *rest = NULL;

    desc.devices = device;
    desc.device_count = 1;
    assert_int_equal(filch_job_resume(job, device != NULL ? &desc : NULL, NULL, &rest),
                     FILCH_NO_DEVICE);
    assert_null(rest);
}

/* --- On whom remains --- */

/* Under the static policy all that the lost one had is left, else what was in flight there. */
static void another_gpu_does_the_rest(void **state)
{
    static const char *const policies[] = {"static", "steal"};
    static const uint32_t lost = 0;

    (void)state;
    for (int p = 0; p < 2; p++) {
        for (uint64_t nth = 1; nth <= 3; nth++) {
            begin("cuda", policies[p]);
            filch_codelet *adds = items_codelet(NULL);
            filch_job *job = run_into_loss(adds, 0, nth);
            uint64_t left = restore(job);
            assert_true(left != 0 && left < N);
            assert_int_equal(look(job, FILCH_DEVICE_LOST), left);
            no_device(job, &lost);
            finish_on(job, -1, left);
            end();
        }
    }
}

static void the_host_does_the_rest(void **state)
{
    static const char *const policies[] = {"static", "steal"};

    (void)state;
    for (int p = 0; p < 2; p++) {
        for (int device = -1; device <= 1; device += 2) {
            begin("cuda:0,host:1", policies[p]);
            filch_codelet *adds = items_codelet(host_items);
            filch_job *job = run_into_loss(adds, 0, 1);
            uint64_t left = restore(job);
            finish_on(job, device, left);
            end();
        }
    }
}

/* --- On nobody --- */

static void nobody_is_left(void **state)
{
    static const char *const devices[] = {"cuda:0", "cuda:0/88+24", "cuda:0,host:1"};

    (void)state;
    for (int d = 0; d < 3; d++) {
        begin(devices[d], "static");
        filch_codelet *adds = items_codelet(NULL); /* not for the host */
        filch_job *job = run_into_loss(adds, 0, 1);
        no_device(job, NULL);
        assert_ok(filch_job_release(job));
        end();
    }
}

/* The device that is to run the rest is lost in turn, and nobody else does it unasked. What it had
 * is in two stretches, and both are told of. */
static void the_next_is_lost_too(void **state)
{
    static const uint32_t next = 1;
    filch_resume_desc desc = FILCH_RESUME_DESC_INIT;

    (void)state;
    desc.devices = &next;
    desc.device_count = 1;
    for (int round = 0; round < 12; round++) {
        bool steals = round % 2 != 0;
        begin("cuda,host:1", steals ? "steal" : "static");
        /* Of static shares, the first and the last are left; else nearly everything is. */
        on_failure = steals ? FILCH_FAILURE_CANCEL : FILCH_FAILURE_SKIP;
        atomic_store(&host_fails, !steals);
        filch_codelet *adds = items_codelet(host_items);
        filch_job *job = run_into_loss(adds, 0, 1), *rest = NULL;
        atomic_store(&host_fails, false);
        uint64_t left = restore(job);
        fakecuda_fail("kernel", 1, 1, GONE, 1, false);
        assert_ok(filch_job_resume(job, &desc, NULL, &rest));
        assert_ok(filch_job_release(job));
        assert_int_equal(filch_job_wait(rest, SOON), FILCH_TASK_FAILED);
        assert_int_equal(restore(rest), left);
        assert_int_equal(look(rest, FILCH_DEVICE_LOST), left);
        no_device(rest, &next);
        assert_ok(filch_job_resume(rest, NULL, NULL, &job));
        assert_ok(filch_job_release(rest));
        assert_int_equal(filch_job_wait(job, SOON), FILCH_OK);
        assert_ok(filch_job_release(job));
        expect(x, 2);
        expect(z, 300);
        end();
    }
}

/* --- Managed handles --- */

/* What was written on the lost GPU alone is lost, and is not taken for what the host has. */
static void lost_contents_are_not_made_up(void **state)
{
    filch_data_desc shape = FILCH_DATA_DESC_INIT;
    filch_error error = FILCH_ERROR_INIT;
    filch_job *job = NULL, *rest = NULL;

    (void)state;
    begin("cuda", "static");
    shape.ptr = x;
    shape.element = sizeof *x;
    shape.rows = N;
    shape.tile_rows = 1;
    shape.flags = FILCH_DATA_MANAGED;
    assert_ok(filch_data_destroy(data[1]));
    assert_ok(filch_data_create(runtime, &shape, &data[1]));
    filch_codelet *adds = items_codelet(NULL);
    set(x, 1);
    fakecuda_fail("kernel", 2, 1, GONE, 0, false);
    assert_int_equal(run(adds, &job), FILCH_TASK_FAILED);
    assert_true(look(job, FILCH_DEVICE_LOST) != 0);
    assert_ok(filch_job_resume(job, NULL, NULL, &rest));
    assert_int_equal(filch_job_wait(rest, SOON), FILCH_TASK_FAILED);
    assert_ok(filch_job_error(rest, &error));
    assert_int_equal(error.status, FILCH_DEVICE_LOST);
    assert_true(look(rest, FILCH_DEVICE_LOST) != 0);
    assert_ok(filch_job_release(job));
    assert_ok(filch_job_release(rest));
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(another_gpu_does_the_rest),
        cmocka_unit_test(the_host_does_the_rest),
        cmocka_unit_test(nobody_is_left),
        cmocka_unit_test(the_next_is_lost_too),
        cmocka_unit_test(lost_contents_are_not_made_up),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
