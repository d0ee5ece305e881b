/* SPDX-License-Identifier: Apache-2.0 */
/* A GPU that is lost: what fails, with which error, and what goes on. The sweep loses GPUs at every
 * call; here it is told what has to come of it. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fake.h"
#include "jobs.h"
#include "measure/policies.h"

#define APART                                                                \
    "{\"devices\":[{\"count\":2}],\"links\":[{\"from\":0,\"to\":1,\"peer\":" \
    "false}]}"
#define TWO "{\"devices\":[{\"count\":2}]}"
/* CUDA_ERROR_ILLEGAL_ADDRESS */
#define GONE 700

static void begin(const char *devices, const char *policy, const char *driver)
{
    static bench_policy_room room;
    filch_runtime_desc config = FILCH_RUNTIME_DESC_INIT;
    bench_policy_choose(bench_policy_find(policy), &room, &config);
    custom = config.custom_policy;
    (void)setenv("FILCH_POLICY", custom != NULL ? "steal" : policy, 1);
    /* The driver's pool waits for the device, which is held here, when it has to grow. */
    (void)setenv("FILCH_ARENA", "pages", 1);
    start(devices, "1", driver);
}

/* Copies to and from pageable memory are over when their calls return; those of x are not, from
 * here on. */
static CUcontext pin(void)
{
    CUcontext own = NULL;

    assert_int_equal(cuDevicePrimaryCtxRetain(&own, 0), FL_CUDA_SUCCESS);
    assert_int_equal(cuCtxPushCurrent_v2(own), FL_CUDA_SUCCESS);
    assert_int_equal(cuMemHostRegister_v2(x, sizeof x, FL_CU_MEMHOSTREGISTER_PORTABLE),
                     FL_CUDA_SUCCESS);
    return own;
}

static void unpin(CUcontext own)
{
    (void)cuMemHostUnregister(x);
    (void)cuCtxPopCurrent_v2(&own);
    (void)cuDevicePrimaryCtxRelease_v2(0);
}

static filch_data *label(uint64_t *at, const char *name, uint32_t flags)
{
    filch_data_desc desc = FILCH_DATA_DESC_INIT;
    filch_data *data = NULL;

    desc.ptr = at;
    desc.element = sizeof *at;
    desc.rows = N;
    desc.flags = flags;
    desc.label = name;
    assert_ok(filch_data_create(runtime, &desc, &data));
    return data;
}

/* A job of one task for a device: from is read where it is not null. */
static filch_job *begin_job(filch_graph *one, uint32_t device, filch_codelet *codelet,
                            filch_data *from, filch_data *to, filch_access_mode mode)
{
    filch_access accesses[2] = {{.data = from, .mode = FILCH_READ}, {.data = to, .mode = mode}};
    filch_task_desc desc = FILCH_TASK_DESC_INIT;

    desc.codelet = codelet;
    desc.accesses = from != NULL ? accesses : &accesses[1];
    desc.access_count = from != NULL ? 2 : 1;
    desc.affinity = 1 + device;
    desc.label = "the task";
    assert_ok(filch_graph_add(one, &desc, NULL));
    return submit(one);
}

static filch_job *run(uint32_t device, filch_codelet *codelet, filch_data *from, filch_data *to,
                      filch_access_mode mode)
{
    filch_graph *one = graph();
    filch_job *job = begin_job(one, device, codelet, from, to, mode);

    (void)filch_job_wait(job, SOON);
    assert_ok(filch_graph_destroy(one));
    return job;
}

static void expect_lost(const filch_error *error, const char *device, const char *label_is)
{
    assert_int_equal(error->status, FILCH_DEVICE_LOST);
    assert_int_equal(error->native_code, GONE);
    assert_string_equal(error->device, device);
    assert_string_equal(error->label, label_is);
    assert_memory_equal(error->call, "cu", 2);
}

static void fails_with(filch_job *job, const char *device)
{
    filch_error error = FILCH_ERROR_INIT;

    assert_int_equal(filch_job_status(job), FILCH_TASK_FAILED);
    assert_ok(filch_job_error(job, &error));
    expect_lost(&error, device, "the task");
    assert_ok(filch_job_release(job));
}

static void succeeds(filch_job *job)
{
    assert_int_equal(filch_job_status(job), FILCH_OK);
    assert_ok(filch_job_release(job));
}

/* Loses a GPU in a kernel of its own. */
static void lose(uint32_t device, const char *name, filch_codelet *codelet, filch_data *data)
{
    fakecuda_fail("kernel", 1, 1, GONE, (int)device, false);
    fails_with(run(device, codelet, NULL, data, FILCH_READWRITE), name);
}

/* The way between the GPUs leads through the host. The first hop fails when the other GPU's copy
 * and kernel are queued behind it already, and those do not fail. */
static void a_copy_that_fails_fails_who_waited(void **state)
{
    filch_error error = FILCH_ERROR_INIT;

    (void)state;
    begin("cuda", "static", APART);
    CUcontext own = pin();
    filch_codelet *copies = on_gpu("copy"), *bumps = on_gpu("bump");
    filch_data *from = label(x, "from", FILCH_DATA_MANAGED), *to = label(y, "to", 0);
    set(x, 1);
    set(y, 100);
    succeeds(run(0, bumps, NULL, from, FILCH_READWRITE));
    fakecuda_fail("copy", 1, 1, GONE, 0, false);
    fakecuda_hold();
    uint64_t launches = fakecuda_count("cuLaunchKernel");
    filch_graph *one = graph();
    filch_job *job = begin_job(one, 1, copies, from, to, FILCH_WRITE);
    while (fakecuda_count("cuLaunchKernel") == launches) {
    }
    fakecuda_release();
    (void)filch_job_wait(job, SOON);
    fails_with(job, "cuda:0");
    assert_ok(filch_graph_destroy(one));
    /* Nor does anybody take what came by that way for good, here or there. */
    fails_with(run(1, copies, from, to, FILCH_WRITE), "cuda:0");
    assert_int_equal(filch_data_acquire(from, FILCH_READ), FILCH_DEVICE_LOST);
    assert_ok(filch_runtime_error(runtime, &error));
    expect_lost(&error, "cuda:0", "from");
    /* Until it is written anew. */
    assert_ok(filch_data_acquire(from, FILCH_WRITE));
    set(x, 5);
    assert_ok(filch_data_release(from));
    succeeds(run(1, copies, from, to, FILCH_WRITE));
    expect(y, 5);
    assert_ok(filch_data_destroy(from));
    assert_ok(filch_data_destroy(to));
    unpin(own);
    stop();
}

static void what_was_valid_there_alone_is_lost(void **state)
{
    filch_error error = FILCH_ERROR_INIT;

    (void)state;
    begin("cuda", "static", TWO);
    filch_codelet *copies = on_gpu("copy"), *bumps = on_gpu("bump");
    filch_data *alone = label(x, "alone", FILCH_DATA_MANAGED);
    filch_data *shared = label(y, "shared", FILCH_DATA_MANAGED), *to = label(z, "to", 0);
    set(x, 1);
    set(y, 50);
    succeeds(run(0, bumps, NULL, alone, FILCH_READWRITE));
    succeeds(run(0, bumps, NULL, shared, FILCH_READWRITE));
    succeeds(run(1, copies, shared, to, FILCH_WRITE)); /* now it is valid on both */
    lose(0, "cuda:0", bumps, to);
    fails_with(run(1, copies, alone, to, FILCH_WRITE), "cuda:0");
    assert_int_equal(filch_data_acquire(alone, FILCH_READ), FILCH_DEVICE_LOST);
    assert_ok(filch_runtime_error(runtime, &error));
    expect_lost(&error, "cuda:0", "alone");
    succeeds(run(1, copies, shared, to, FILCH_WRITE));
    expect(z, 51);
    assert_ok(filch_data_acquire(shared, FILCH_READ));
    expect(y, 51);
    assert_ok(filch_data_release(shared));
    /* Whoever overwrites it all needs nothing of it. */
    succeeds(run(1, copies, shared, alone, FILCH_WRITE));
    assert_ok(filch_data_acquire(alone, FILCH_READ));
    expect(x, 51);
    assert_ok(filch_data_release(alone));
    assert_ok(filch_data_destroy(alone));
    assert_ok(filch_data_destroy(shared));
    assert_ok(filch_data_destroy(to));
    stop();
}

/* Under the static policy a device's work is its own, and fails; else others do it. */
static void others_do_the_work_where_they_may(void **state)
{
    static const char *const policies[] = {"static", "steal",       "central",
                                           "guided", "round-robin", "earliest"};
    filch_device_stats stats[2];
    filch_job_info info = {.size = sizeof info};

    (void)state;
    for (int p = 0; p < 6; p++) {
        begin("cuda", policies[p], TWO);
        filch_codelet *bumps = on_gpu("bump");
        filch_data *data = label(x, "data", 0);
        if (p == 0) {
            lose(0, "cuda:0", bumps, data);
        } else { /* either may take the task */
            fakecuda_fail("kernel", 1, 0, GONE, 0, false);
            for (int i = 0; i < 50; i++) {
                filch_job *job = run(0, bumps, NULL, data, FILCH_READWRITE);
                bool is_lost = filch_job_status(job) == FILCH_TASK_FAILED;
                assert_ok(filch_job_release(job));
                if (is_lost)
                    break;
            }
        }
        for (int i = 0; i < 20; i++) {
            set(x, 1);
            filch_job *job = run(0, bumps, NULL, data, FILCH_READWRITE);
            if (p == 0) {
                fails_with(job, "cuda:0");
                continue;
            }
            assert_ok(filch_job_stats(job, &info, stats, 2));
            assert_int_equal(stats[0].tiles, 0);
            succeeds(job);
            expect(x, 2);
        }
        set(x, 1);
        succeeds(run(1, bumps, NULL, data, FILCH_READWRITE));
        expect(x, 2);
        assert_ok(filch_data_destroy(data));
        stop();
    }
}

/* --- Batches --- */

/* Each element is bumped, in no time on the GPU, and on the host slowly: a grain takes longer than
 * any worker naps. */
static int bump_slowly(const filch_call *call)
{
    const struct timespec nap = {0, (long)(call->hi - call->lo) * 2000000L};

    (void)nanosleep(&nap, NULL);
    atomic_fetch_add(&holds, 1);
    return bump(call);
}

static filch_job *begin_batch(filch_codelet *codelet, filch_data *data)
{
    filch_batch_access access = {
        .data = data, .mode = FILCH_READWRITE, .map = FILCH_MAP_AFFINE, .scale = 1};
    filch_batch_desc desc = FILCH_BATCH_DESC_INIT;
    filch_job *job = NULL;

    desc.codelet = codelet;
    desc.n = N;
    desc.grain = N / 4;
    desc.accesses = &access;
    desc.access_count = 1;
    assert_ok(filch_batch_submit(runtime, &desc, NULL, &job));
    return job;
}

static filch_status end_batch(filch_job *job)
{
    filch_status status = filch_job_wait(job, SOON);

    assert_ok(filch_job_release(job));
    return status;
}

/* By every prediction the GPU would be done with its share long before the host with one item. */
static void a_slow_device_takes_over_from_a_fast_one(void **state)
{
    filch_cuda_desc cuda = FILCH_CUDA_DESC_INIT;
    filch_codelet_desc desc = FILCH_CODELET_DESC_INIT;
    filch_codelet *both = NULL;

    (void)state;
    begin("cuda:0,host:1", "steal", TWO);
    CUcontext own = pin();
    fakecuda_register_filch("items", bump, 1, true, 0);
    cuda.image = "FAKECUBIN arch=90 entry=items(56,16)";
    cuda.image_bytes = strlen(cuda.image) + 1;
    cuda.entry = "items";
    desc.name = "items";
    desc.cuda = &cuda;
    desc.host = bump_slowly;
    assert_ok(filch_codelet_create(runtime, &desc, &both));
    filch_data *data = label(x, "data", 0);
    set(x, 1);
    assert_int_equal(end_batch(begin_batch(both, data)), FILCH_OK);
    /* Now the GPU is measured. While it hangs the host takes from it, and is measured too, unless
     * everything was in flight already. */
    uint64_t runs = 1;
    for (; runs < 20 && atomic_load(&holds) == 0; runs++) {
        const struct timespec nap = {0, 100000000};
        fakecuda_hold();
        filch_job *job = begin_batch(both, data);
        (void)nanosleep(&nap, NULL);
        fakecuda_release();
        assert_int_equal(end_batch(job), FILCH_OK);
    }
    expect(x, 1 + runs);
    fakecuda_fail("kernel", 1, 1, GONE, 0, false);
    filch_status status = FILCH_OK;
    for (int i = 0; i < 10 && status == FILCH_OK; i++)
        status = end_batch(begin_batch(both, data));
    assert_int_equal(status, FILCH_TASK_FAILED);
    for (int i = 0; i < 3; i++) {
        set(x, 1);
        assert_int_equal(end_batch(begin_batch(both, data)), FILCH_OK);
        expect(x, 2);
    }
    assert_ok(filch_data_destroy(data));
    unpin(own);
    stop();
}

/* Tasks on a queue of all, pieces, and what waits in one place: what others can run they do, and
 * what nobody can run fails. */
static void every_policy_outlives_a_gpu(void **state)
{
    static const char *const policies[] = {"central", "guided", "round-robin", "earliest"};

    (void)state;
    for (int p = 0; p < 4; p++) {
        filch_cuda_desc cuda = FILCH_CUDA_DESC_INIT;
        filch_codelet_desc desc = FILCH_CODELET_DESC_INIT;
        filch_codelet *both = NULL, *single = NULL;
        filch_status status = FILCH_OK;
        begin("cuda:0,host:1", policies[p], TWO);
        filch_codelet *bumps = on_gpu("bump");
        fakecuda_register_filch("items", bump, 1, true, 0);
        cuda.image = "FAKECUBIN arch=90 entry=items(56,16)";
        cuda.image_bytes = strlen(cuda.image) + 1;
        cuda.entry = "items";
        desc.name = "items";
        desc.cuda = &cuda;
        assert_ok(filch_codelet_create(runtime, &desc, &single));
        desc.host = bump;
        assert_ok(filch_codelet_create(runtime, &desc, &both));
        filch_data *data = label(x, "data", 0);
        set(x, 1);
        assert_int_equal(end_batch(begin_batch(single, data)), FILCH_OK);
        assert_int_equal(end_batch(begin_batch(both, data)), FILCH_OK);
        expect(x, 3);
        fakecuda_fail("kernel", 1, 0, GONE, 0, false);
        for (int i = 0; i < 50 && status == FILCH_OK; i++)
            status = end_batch(begin_batch(single, data));
        assert_int_equal(status, FILCH_TASK_FAILED);
        for (int i = 0; i < 3; i++) {
            set(x, 1);
            assert_int_equal(end_batch(begin_batch(both, data)), FILCH_OK);
            expect(x, 2);
            assert_int_equal(end_batch(begin_batch(single, data)), FILCH_TASK_FAILED);
            fails_with(run(0, bumps, NULL, data, FILCH_READWRITE), "cuda:0");
        }
        assert_ok(filch_data_destroy(data));
        stop();
    }
}

/* Slices share a context: all are lost with one. Nothing hangs, and everything can be ended. */
static void slices_are_lost_together(void **state)
{
    (void)state;
    begin("cuda:0/88+24", "static", TWO);
    filch_codelet *bumps = on_gpu("bump");
    filch_data *data = label(x, "data", 0);
    lose(0, "cuda:0/0", bumps, data);
    fails_with(run(0, bumps, NULL, data, FILCH_READWRITE), "cuda:0/0");
    fails_with(run(1, bumps, NULL, data, FILCH_READWRITE), "cuda:0/1");
    assert_ok(filch_data_destroy(data));
    stop();
}

/* A question about two GPUs is asked of no context: whatever it is answered, both still work. */
static void a_question_about_links_loses_nobody(void **state)
{
    filch_link link = {.size = sizeof link};

    (void)state;
    begin("cuda", "static", TWO);
    filch_codelet *bumps = on_gpu("bump");
    filch_data *data = label(x, "data", 0);
    set(x, 1);
    fakecuda_fail("cuDeviceCanAccessPeer", 1, 1, GONE, -1, false);
    assert_int_equal(filch_device_link(runtime, 1, 0, &link), FILCH_DEVICE_LOST);
    fakecuda_fail("cuDeviceGetP2PAttribute", 1, 1, GONE, -1, false);
    assert_int_equal(filch_device_link(runtime, 0, 1, &link), FILCH_DEVICE_LOST);
    for (uint32_t device = 0; device < 2; device++)
        succeeds(run(device, bumps, NULL, data, FILCH_READWRITE));
    expect(x, 3);
    assert_ok(filch_data_destroy(data));
    stop();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_copy_that_fails_fails_who_waited),
        cmocka_unit_test(what_was_valid_there_alone_is_lost),
        cmocka_unit_test(others_do_the_work_where_they_may),
        cmocka_unit_test(a_slow_device_takes_over_from_a_fast_one),
        cmocka_unit_test(every_policy_outlives_a_gpu),
        cmocka_unit_test(slices_are_lost_together),
        cmocka_unit_test(a_question_about_links_loses_nobody),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
