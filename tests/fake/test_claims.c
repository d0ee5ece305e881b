/* SPDX-License-Identifier: Apache-2.0 */
/* Whose a tile is while it is evicted: of who is about to write it, of the owner of the memory it
 * goes to, of the host when the device is lost that had it. On the fake driver. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define N 2048
#include "backend/cuda/driver/api.h"
#include "fake.h"
#include "jobs.h"

enum { TILE = N * sizeof(uint64_t), MANAGED = FILCH_DATA_MANAGED };

/* A copy home is never over by chance when somebody looks. */
#define ALONE "{\"copy_ns\": 2000000, \"devices\": [{}]}"
/* What goes to the second takes 0.2 s. */
#define SLOW_THERE                                                  \
    "{\"devices\": [{\"count\": 2}], \"links\": ["                  \
    "{\"from\": 0, \"to\": 1, \"gbps\": 0.00008, \"both\": false}," \
    "{\"from\": 1, \"to\": 0, \"both\": false}]}"

/* So much memory of a GPU; tasks go where they are told. */
static void start_with(const char *memory, const char *devices, const char *driver)
{
    (void)setenv("FILCH_MEMORY_LIMIT", memory, 1);
    (void)setenv("FILCH_POLICY", "static", 1);
    start(devices, "1", driver);
    (void)unsetenv("FILCH_MEMORY_LIMIT");
    (void)unsetenv("FILCH_POLICY");
    atomic_store(&is_held, 0);
    set(x, 100);
    set(y, 200);
    set(z, 300);
}

/* Room for two tiles on a GPU. */
static void start_small(const char *devices, const char *driver)
{
    start_with("40K", devices, driver);
}

static void nap(void)
{
    const struct timespec time = {0, 100000};
    (void)nanosleep(&time, NULL);
}

/* Whether it is held before long. */
static bool comes_to_hold(void)
{
    for (int i = 0; i < 100000 && atomic_load(&holds) == 0; i++)
        nap();
    return atomic_load(&holds) != 0;
}

/* Whether a copy from the first GPU begins before long, to anywhere. */
static bool begins_to_leave(void)
{
    for (int i = 0; i < 100000 && fakecuda_bytes(0, -1) + fakecuda_bytes(0, 1) == 0; i++)
        nap();
    return fakecuda_bytes(0, -1) + fakecuda_bytes(0, 1) != 0;
}

/* All that was put on the device is over. */
static void settle(int device)
{
    CUcontext context = NULL;
    assert_int_equal(cuDevicePrimaryCtxRetain(&context, device), FL_CUDA_SUCCESS);
    assert_int_equal(cuCtxPushCurrent_v2(context), FL_CUDA_SUCCESS);
    assert_int_equal(cuCtxSynchronize(), FL_CUDA_SUCCESS);
    assert_int_equal(cuCtxPopCurrent_v2(NULL), FL_CUDA_SUCCESS);
    assert_int_equal(cuDevicePrimaryCtxRelease_v2(device), FL_CUDA_SUCCESS);
}

static filch_graph *graph_with(filch_codelet *codelet, filch_data *data, filch_access_mode mode,
                               uint32_t device)
{
    const filch_access access = {.data = data, .mode = mode};
    filch_graph *made = graph();
    filch_task_desc desc = FILCH_TASK_DESC_INIT;
    desc.codelet = codelet;
    desc.accesses = &access;
    desc.access_count = 1;
    desc.affinity = device + 1;
    assert_ok(filch_graph_add(made, &desc, NULL));
    return made;
}

/* One task; its graph is left to the runtime. */
static filch_job *start_one(filch_codelet *codelet, filch_data *data, filch_access_mode mode,
                            uint32_t device)
{
    return submit(graph_with(codelet, data, mode, device));
}

/* One task, of which nothing is left. */
static void run_one(filch_codelet *codelet, filch_data *data, filch_access_mode mode,
                    uint32_t device, filch_status result)
{
    filch_graph *made = graph_with(codelet, data, mode, device);
    finish(submit(made), result);
    assert_ok(filch_graph_destroy(made));
}

/* What the host finds in a handle's buffer when it has acquired it. */
static void expect_data(filch_data *data, const uint64_t *at, uint64_t value)
{
    assert_ok(filch_data_acquire(data, FILCH_READ));
    expect(at, value);
    assert_ok(filch_data_release(data));
}

/* --- The host's memory --- */

/* put_and_hold(to): writes, and ends when it may. */
static int put_and_hold(const filch_call *call)
{
    set(call->views[0].ptr, 700);
    return hold(call);
}

/* The host overwrites a tile that a GPU has: what the GPU has does not come home meanwhile. */
static void what_the_host_overwrites_does_not_come_home(void **state)
{
    (void)state;
    start_small("cuda:0,host:1", ALONE);
    filch_codelet *bumps = on_gpu("bump"), *puts = on_host("put", put_and_hold);
    filch_data *first = handle_with(x, MANAGED), *second = handle_with(y, MANAGED),
               *third = handle_with(z, MANAGED);
    run_one(bumps, first, FILCH_READWRITE, 0, FILCH_OK);
    atomic_store(&is_held, 1);
    filch_job *job = start_one(puts, first, FILCH_WRITE, 1);
    bool is_written = comes_to_hold();
    run_one(bumps, second, FILCH_READWRITE, 0, FILCH_OK);
    run_one(bumps, third, FILCH_READWRITE, 0, FILCH_OK);
    settle(0);
    atomic_store(&is_held, 0);
    finish(job, FILCH_OK);
    assert_true(is_written);
    expect_data(first, x, 700);
    expect_data(second, y, 201);
    expect_data(third, z, 301);
    stop();
}

/* A tile that has come home to make room is not lost with the device. */
static void what_came_home_is_not_lost(void **state)
{
    (void)state;
    start_small("cuda:0,host:1", ALONE);
    uint32_t flags = MANAGED | FILCH_DATA_PIN; /* where nobody waits for the copy */
    filch_codelet *bumps = on_gpu("bump");
    filch_data *first = handle_with(x, flags), *second = handle_with(y, flags),
               *third = handle_with(z, flags);
    run_one(bumps, first, FILCH_READWRITE, 0, FILCH_OK);
    run_one(bumps, second, FILCH_READWRITE, 0, FILCH_OK);
    run_one(bumps, third, FILCH_READWRITE, 0, FILCH_OK);
    settle(0);
    assert_int_equal(fakecuda_bytes(0, -1), TILE);
    fakecuda_fail("kernel", 1, 1, FL_CUDA_ERROR_ILLEGAL_ADDRESS, 0, true);
    run_one(bumps, third, FILCH_READWRITE, 0, FILCH_TASK_FAILED);
    expect_data(first, x, 101);
    stop();
}

/* A device that is lost had the host's tile to read: the host changes it all the same. */
static void what_a_lost_device_read_is_the_hosts(void **state)
{
    (void)state;
    start_small("cuda:0,host:1", ALONE);
    filch_codelet *copies = on_gpu("copy"), *ours = on_host("ours", bump);
    filch_data *first = handle_with(x, MANAGED), *second = handle_with(y, MANAGED);
    filch_graph *made = graph();
    add(made, copies, FILCH_WRITE, first, second, NULL);
    fakecuda_fail("kernel", 1, 1, FL_CUDA_ERROR_ILLEGAL_ADDRESS, 0, true);
    finish(submit(made), FILCH_TASK_FAILED);
    run_one(ours, first, FILCH_READWRITE, 1, FILCH_OK);
    assert_ok(filch_data_acquire(first, FILCH_READWRITE));
    expect(x, 101);
    assert_ok(filch_data_release(first));
    filch_graph_destroy(made);
    stop();
}

/* --- The program's memory on a GPU --- */

static CUdeviceptr home;

static filch_data *handle_at_home(void)
{
    CUcontext context = NULL;
    filch_data_desc desc = FILCH_DATA_DESC_INIT;
    filch_data *data = NULL;
    assert_int_equal(cuDevicePrimaryCtxRetain(&context, 1), FL_CUDA_SUCCESS);
    assert_int_equal(cuCtxPushCurrent_v2(context), FL_CUDA_SUCCESS);
    assert_int_equal(cuMemAlloc_v2(&home, TILE), FL_CUDA_SUCCESS);
    assert_int_equal(cuCtxPopCurrent_v2(NULL), FL_CUDA_SUCCESS);
    desc.ptr = (void *)(uintptr_t)home;
    desc.element = sizeof(uint64_t);
    desc.rows = N;
    desc.flags = MANAGED | FILCH_DATA_ON_DEVICE;
    desc.device = 1;
    assert_ok(filch_data_create(runtime, &desc, &data));
    set(fakecuda_peek(desc.ptr, TILE), 100);
    return data;
}

static void stop_with_home(void)
{
    CUcontext context = NULL;
    assert_ok(filch_runtime_destroy(runtime));
    assert_int_equal(cuDevicePrimaryCtxRetain(&context, 1), FL_CUDA_SUCCESS);
    assert_int_equal(cuCtxPushCurrent_v2(context), FL_CUDA_SUCCESS);
    assert_int_equal(cuMemFree_v2(home), FL_CUDA_SUCCESS);
    assert_int_equal(cuCtxPopCurrent_v2(NULL), FL_CUDA_SUCCESS);
    for (int i = 0; i < 2; i++)
        assert_int_equal(cuDevicePrimaryCtxRelease_v2(1), FL_CUDA_SUCCESS);
    assert_int_equal(fakecuda_violations(), 0);
}

/* What the lane's turn to write does. */
static int put(void *view)
{
    const filch_view *to = view;
    set(fakecuda_map(to->ptr, TILE), 700);
    return 0;
}

/* Has its tile, and puts its work on the lane when it may. */
static int hold_and_put(const filch_call *call, const filch_lane *lane, void *state)
{
    (void)state;
    (void)hold(call);
    return fakecuda_enqueue_copy(lane->stream, put, &call->views[0], sizeof(filch_view));
}

/* A task has its tile's home to write, and has not begun: what another GPU has of the tile goes
 * elsewhere, as it would come after what the task writes. */
static void what_is_evicted_leaves_a_home_to_its_writer(void **state)
{
    filch_cuda_desc cuda = FILCH_CUDA_DESC_INIT;
    filch_codelet_desc desc = FILCH_CODELET_DESC_INIT;
    filch_codelet *puts = NULL;
    (void)state;
    start_small("cuda:0,cuda:1", SLOW_THERE);
    cuda.enqueue = hold_and_put;
    desc.name = "put";
    desc.cuda = &cuda;
    assert_ok(filch_codelet_create(runtime, &desc, &puts));
    filch_codelet *bumps = on_gpu("bump");
    filch_data *first = handle_at_home(), *second = handle_with(y, MANAGED),
               *third = handle_with(z, MANAGED);
    run_one(bumps, first, FILCH_READWRITE, 0, FILCH_OK);
    run_one(bumps, second, FILCH_READWRITE, 0, FILCH_OK);
    atomic_store(&is_held, 1);
    filch_job *writes = start_one(puts, first, FILCH_WRITE, 1);
    bool is_there = comes_to_hold();
    filch_job *evicts = start_one(bumps, third, FILCH_READWRITE, 0);
    bool leaves = begins_to_leave();
    atomic_store(&is_held, 0);
    finish(writes, FILCH_OK);
    finish(evicts, FILCH_OK);
    settle(0);
    settle(1);
    assert_true(is_there && leaves);
    expect(fakecuda_peek((void *)(uintptr_t)home, TILE), 700);
    assert_int_equal(fakecuda_bytes(0, 1), 0);
    assert_int_equal(fakecuda_bytes(0, -1), TILE);
    stop_with_home();
}

/* A handle goes while its tile is on the way home: what comes has come by then, as the memory is
 * its owner's again. */
static void what_is_going_home_is_there_when_the_handle_goes(void **state)
{
    (void)state;
    start_small("cuda:0,cuda:1", SLOW_THERE);
    filch_codelet *bumps = on_gpu("bump");
    filch_data *first = handle_at_home(), *second = handle_with(y, MANAGED),
               *third = handle_with(z, MANAGED);
    run_one(bumps, first, FILCH_READWRITE, 0, FILCH_OK);
    run_one(bumps, second, FILCH_READWRITE, 0, FILCH_OK);
    filch_job *evicts = start_one(bumps, third, FILCH_READWRITE, 0);
    bool leaves = begins_to_leave();
    assert_ok(filch_data_destroy(first));
    uint64_t *mine = fakecuda_peek((void *)(uintptr_t)home, TILE);
    uint64_t came = mine[0];
    set(mine, 42);
    finish(evicts, FILCH_OK);
    settle(1);
    assert_true(leaves);
    assert_int_equal(fakecuda_bytes(0, 1), TILE);
    assert_int_equal(came, 101);
    expect(mine, 42);
    stop_with_home();
}

/* Of two tiles the one that is in the host's memory, too, leaves, although the other was unused for
 * half as long again: nothing has to be copied. */
static void what_is_elsewhere_leaves_first(void **state)
{
    static uint64_t recent[N];
    (void)state;
    start_with("56K", "cuda:0", ALONE);
    filch_codelet *bumps = on_gpu("bump"), *reads = on_gpu("hold");
    filch_data *changed = handle_with(x, MANAGED), *copied = handle_with(y, MANAGED);
    filch_data *used = handle_with(recent, MANAGED), *fresh = handle_with(z, MANAGED);
    run_one(bumps, changed, FILCH_READWRITE, 0, FILCH_OK);
    run_one(reads, copied, FILCH_READ, 0, FILCH_OK);
    run_one(reads, used, FILCH_READ, 0, FILCH_OK);
    run_one(bumps, fresh, FILCH_READWRITE, 0, FILCH_OK);
    settle(0);
    assert_int_equal(fakecuda_bytes(-1, 0), 4 * TILE);
    assert_int_equal(fakecuda_bytes(0, -1), 0);
    /* It is the one unused for longest of those that are elsewhere. */
    run_one(reads, used, FILCH_READ, 0, FILCH_OK);
    settle(0);
    assert_int_equal(fakecuda_bytes(-1, 0), 4 * TILE);
    run_one(reads, copied, FILCH_READ, 0, FILCH_OK);
    settle(0);
    assert_int_equal(fakecuda_bytes(-1, 0), 5 * TILE);
    expect_data(changed, x, 101);
    stop();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_the_host_overwrites_does_not_come_home),
        cmocka_unit_test(what_came_home_is_not_lost),
        cmocka_unit_test(what_a_lost_device_read_is_the_hosts),
        cmocka_unit_test(what_is_evicted_leaves_a_home_to_its_writer),
        cmocka_unit_test(what_is_going_home_is_there_when_the_handle_goes),
        cmocka_unit_test(what_is_elsewhere_leaves_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
