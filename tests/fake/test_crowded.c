/* SPDX-License-Identifier: Apache-2.0 */
/* What is on its way when others want its place: copies home that were overtaken, copies that
 * nobody waits for any more, and memory that idle workers sit on. On the fake driver. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/thread.h"
#include "count.h"
#include "fake.h"
#include "make.h"
#include "memory/tiles/replica.h"

#define IMAGE "FAKECUBIN arch=90 entry=set,scratch,halt"
#define KIB ((uint64_t)1024)

static filch_runtime *runtime;

static void nap(void)
{
    const struct timespec time = {0, 100000};
    (void)nanosleep(&time, NULL);
}

/* set(to): to what the argument says. */
static int set(const filch_call *call)
{
    uint64_t *to = call->views[0].ptr, value;
    memcpy(&value, call->args, sizeof value);
    for (uint64_t i = 0; i < call->views[0].rows; i++)
        to[i] = value;
    return 0;
}

/* halt(from, to): ends when it may. */
static _Atomic int is_halted, halts;

static int halt(const filch_call *call)
{
    atomic_fetch_add(&halts, 1);
    while (atomic_load(&is_halted) != 0)
        nap();
    *(uint64_t *)call->views[1].ptr = *(const uint64_t *)call->views[0].ptr;
    return 0;
}

/* --- Making things --- */

static void start_driven(const char *devices, uint64_t limit, const char *driver, filch_drive drive)
{
    filch_runtime_desc config = FILCH_RUNTIME_DESC_INIT;
    (void)setenv("FILCH_LANES", "1", 1);
    fakecuda_reset();
    assert_true(fakecuda_configure(driver));
    fakecuda_register_filch("set", set, 1, false, sizeof(uint64_t));
    fakecuda_register_filch("halt", halt, 2, false, sizeof(uint64_t));
    fakecuda_register_filch("scratch", set, 2, false, sizeof(uint64_t));
    config.devices = devices;
    config.memory_limit = limit;
    config.policy = FILCH_POLICY_STATIC;
    config.drive = drive;
    runtime = runtime_of(&config);
}

static void start(const char *devices, uint64_t limit, const char *driver)
{
    start_driven(devices, limit, driver, FILCH_DRIVE_DEFAULT);
}

static void stop(void)
{
    assert_ok(filch_runtime_destroy(runtime));
    assert_int_equal(fakecuda_live("memory"), 0);
    assert_int_equal(fakecuda_violations(), 0);
}

static filch_codelet *on_gpu(const char *entry)
{
    return codelet_of(runtime, IMAGE, entry, NULL, sizeof(uint64_t));
}

static filch_data *handle(uint64_t *at, uint64_t tiles, uint64_t tile, uint32_t flags)
{
    return vector_of(runtime, at, tiles * tile, tile, flags);
}

static filch_graph *graph(void)
{
    return graph_of(runtime);
}

static void add(filch_graph *to, filch_codelet *codelet, uint32_t device,
                const filch_access *accesses, uint32_t count, uint64_t value)
{
    filch_task_desc desc = FILCH_TASK_DESC_INIT;
    desc.codelet = codelet;
    desc.accesses = accesses;
    desc.access_count = count;
    desc.affinity = device + 1;
    desc.args = &value;
    assert_ok(filch_graph_add(to, &desc, NULL));
}

/* A job of one task that sets a handle of one tile. */
static filch_job *start_set(filch_codelet *sets, uint32_t device, filch_data *data, uint64_t value)
{
    const filch_access access = {.data = data, .mode = FILCH_WRITE};
    filch_graph *made = graph();
    add(made, sets, device, &access, 1, value);
    return submit(made);
}

static uint64_t issued(void)
{
    return fakecuda_count("cuMemcpyHtoDAsync") + fakecuda_count("cuMemcpyDtoHAsync") +
           fakecuda_count("cuMemcpyPeerAsync") + fakecuda_count("cuMemcpyDtoDAsync");
}

static void await_copies(void)
{
    while (fakecuda_count("copy") < issued())
        nap();
}

/* --- Overtaken --- */

/* A tile is on its way home, to make room on one GPU, when another writes all of it anew: what
 * that brings home stays there. */
static void what_makes_room_does_not_come_home_late(void **state)
{
    enum { LARGE = 128 * 1024, SMALL = 64, MORE = LARGE + 256 };
    (void)state;
    start("cuda:0,cuda:1", LARGE * sizeof(uint64_t) + 4 * KIB,
          "{\"copy_gbps\": 0.02, \"devices\": [{\"count\": 2}]}");
    uint64_t *large = calloc(LARGE, sizeof *large), *small = calloc(SMALL, sizeof *small);
    uint64_t *more = calloc(MORE, sizeof *more);
    uint32_t flags = FILCH_DATA_MANAGED | FILCH_DATA_PIN;
    filch_data *p = handle(large, 1, LARGE, flags), *x = handle(small, 1, SMALL, flags);
    filch_data *q = handle(more, 1, MORE, flags);
    filch_codelet *sets = on_gpu("set");
    finish(start_set(sets, 0, p, 1), FILCH_OK);
    finish(start_set(sets, 0, x, 2), FILCH_OK);
    filch_job *presses = start_set(sets, 0, q, 3); /* p and x have to leave, in this order */
    while (fakecuda_count("cuMemcpyDtoHAsync") < 2)
        nap();
    finish(start_set(sets, 1, x, 4), FILCH_OK);
    assert_ok(filch_data_acquire(x, FILCH_READ));
    assert_int_equal(small[SMALL - 1], 4);
    await_copies();
    assert_int_equal(small[SMALL - 1], 4);
    assert_ok(filch_data_release(x));
    finish(presses, FILCH_OK);
    stop();
    free(large);
    free(small);
    free(more);
}

/* --- Nobody's any more --- */

/* What was fetched for tasks that a cancelled job skips has come when the job is over: the host may
 * do with its memory what it likes. */
static void a_cancelled_job_leaves_no_copies(void **state)
{
    enum { MANY = 64, TILE = 8192 }; /* large enough to come one by one */
    (void)state;
    start("cuda:0", 0, "{\"kernel_ns\": 1000000, \"copy_ns\": 5000000}");
    uint64_t *at = calloc(MANY * TILE, sizeof *at);
    filch_data *data = handle(at, MANY, TILE, FILCH_DATA_MANAGED | FILCH_DATA_PIN);
    filch_codelet *sets = on_gpu("set");
    filch_graph *made = graph(), *first = graph();
    for (uint32_t i = 0; i < MANY; i++) {
        const filch_access access = {.data = data, .row = i, .mode = FILCH_READWRITE};
        add(i < 4 ? first : made, sets, 0, &access, 1, i);
    }
    finish(submit(first), FILCH_OK); /* tells how long they take */
    filch_job *job = submit(made);
    while (fakecuda_count("cuMemcpyHtoDAsync") < 16)
        nap();
    assert_ok(filch_job_cancel(job));
    assert_int_equal(filch_job_wait(job, SOON), FILCH_CANCELLED);
    assert_int_equal(fakecuda_count("copy"), issued());
    assert_ok(filch_job_release(job));
    stop();
    free(at);
}

/* --- On the way home --- */

/* Tiles that are computed and still being copied home keep no others from the device. */
static void what_goes_home_is_in_nobodys_way(void **state)
{
    enum { MANY = 16, TILE = 64 };
    (void)state;
    start("cuda:0", 0, "{\"kernel_ns\": 200000, \"copy_ns\": 100000000}");
    uint64_t *at = calloc(MANY * TILE, sizeof *at);
    filch_data *data = handle(at, MANY, TILE, FILCH_DATA_PIN);
    filch_codelet *sets = on_gpu("set");
    filch_graph *made = graph(), *first = graph();
    for (uint32_t i = 0; i < MANY; i++) {
        const filch_access access = {.data = data, .row = i, .mode = FILCH_WRITE};
        add(i == 0 ? first : made, sets, 0, &access, 1, i + 1);
    }
    finish(submit(first), FILCH_OK); /* tells how long they take */
    filch_job *job = submit(made);
    while (fakecuda_count("kernel") < MANY)
        nap();
    assert_true(fakecuda_count("copy") < MANY / 2);
    finish(job, FILCH_OK);
    for (uint32_t i = 0; i < MANY; i++)
        assert_int_equal(at[i * TILE], i + 1);
    stop();
    free(at);
}

/* --- Idle --- */

/* What lanes keep for scratch is nobody else's only while something runs on them. */
static void idle_scratch_is_in_nobodys_way(void **state)
{
    (void)state;
    start("cuda:0/88+24", 100 * KIB, NULL);
    uint64_t numbers[2][64] = {{0}};
    filch_data *data[2] = {handle(numbers[0], 1, 64, 0), handle(numbers[1], 1, 64, 0)};
    filch_codelet *runs = on_gpu("scratch");
    filch_graph *made[2] = {graph(), graph()};
    for (uint32_t d = 0; d < 2; d++) {
        const filch_access accesses[] = {{.data = data[d], .mode = FILCH_WRITE},
                                         {.bytes = 60 * KIB, .mode = FILCH_SCRATCH}};
        add(made[d], runs, d, accesses, 2, d + 1);
    }
    for (uint64_t round = 0; round < 4; round++) {
        finish(submit(made[round % 2]), FILCH_OK);
        assert_int_equal(numbers[round % 2][63], round % 2 + 1);
    }
    filch_job *both[2] = {submit(made[0]), submit(made[1])};
    finish(both[0], FILCH_OK);
    finish(both[1], FILCH_OK);
    stop();
}

/* --- Lost --- */

/* The program's buffer on a GPU is lost. What another GPU has of the handle cannot go there to make
 * room for others; it goes to the host. */
static void what_has_lost_its_home_makes_room(void **state)
{
    enum { LARGE = 8 * 1024 };
    CUcontext contexts[2];
    CUdeviceptr home = 0;
    (void)state;
    start("cuda:0,cuda:1", LARGE * sizeof(uint64_t) + 4 * KIB, NULL);
    for (int d = 0; d < 2; d++)
        assert_int_equal(cuDevicePrimaryCtxRetain(&contexts[d], d), FL_CUDA_SUCCESS);
    assert_int_equal(cuCtxPushCurrent_v2(contexts[0]), FL_CUDA_SUCCESS);
    assert_int_equal(cuMemAlloc_v2(&home, LARGE * sizeof(uint64_t)), FL_CUDA_SUCCESS);
    assert_int_equal(cuCtxPopCurrent_v2(NULL), FL_CUDA_SUCCESS);
    uint64_t *at = calloc(LARGE, sizeof *at), other = 0;
    filch_data *homeless =
        handle((uint64_t *)(uintptr_t)home, 1, LARGE, FILCH_DATA_ON_DEVICE | FILCH_DATA_MANAGED);
    filch_data *wants = handle(at, 1, LARGE, 0), *breaks = handle(&other, 1, 1, 0);
    filch_codelet *sets = on_gpu("set");
    finish(start_set(sets, 1, homeless, 1), FILCH_OK);
    fakecuda_fail("kernel", 1, 1, FL_CUDA_ERROR_ILLEGAL_ADDRESS, 0, true);
    finish(start_set(sets, 0, breaks, 2), FILCH_TASK_FAILED);
    finish(start_set(sets, 1, wants, 3), FILCH_OK);
    assert_int_equal(at[LARGE - 1], 3);
    assert_ok(filch_data_acquire(homeless, FILCH_READ));
    filch_view view;
    assert_ok(filch_data_view(homeless, 0, 0, &view));
    assert_int_equal(((uint64_t *)view.ptr)[LARGE - 1], 1);
    assert_ok(filch_data_release(homeless));
    assert_ok(filch_runtime_destroy(runtime));
    /* A context that is broken can still be emptied. */
    assert_int_equal(cuCtxPushCurrent_v2(contexts[0]), FL_CUDA_SUCCESS);
    (void)cuMemFree_v2(home);
    (void)cuCtxPopCurrent_v2(NULL);
    for (int d = 0; d < 2; d++)
        (void)cuDevicePrimaryCtxRelease_v2(d);
    assert_int_equal(fakecuda_live("memory"), 0);
    assert_int_equal(fakecuda_violations(), 0);
    free(at);
}

/* --- Moved --- */

enum { ROUNDS = TEST_ROUNDS(100), PIECES = 192, PIECE = 64 };

typedef struct sender {
    filch_data *data;
    _Atomic uint64_t wanted; /* broadcasts */
    _Atomic int is_over;
} sender;

static int send_on(void *user)
{
    sender *s = user;
    for (uint64_t sent = 0; atomic_load(&s->is_over) == 0;) {
        if (atomic_load(&s->wanted) > sent) {
            filch_job *job = NULL;
            for (uint64_t i = 0; i < sent * 7919 % 100 * 20; i++)
                atomic_load(&s->is_over);
            assert_ok(filch_data_broadcast(s->data, NULL, NULL, &job));
            finish(job, FILCH_OK);
            sent++;
        }
    }
    return 0;
}

/* A graph is replayed where its tiles are; a broadcast makes room for others there at any moment.
 */
static void replays_and_broadcasts_share_memory(void **state)
{
    fl_thread thread;
    (void)state;
    (void)setenv("FILCH_REPLAY", "1", 1);
    start("cuda:0", 128 * KIB, NULL);
    fakecuda_fail("cuEventElapsedTime", 1, 0, FL_CUDA_ERROR_UNKNOWN, -1, false);
    uint64_t *at = calloc((size_t)PIECES * PIECE, sizeof *at);
    uint64_t *more = calloc((size_t)PIECES * PIECE, sizeof *more);
    filch_data *data = handle(at, PIECES, PIECE, 0);
    sender s = {.data = handle(more, PIECES, PIECE, FILCH_DATA_MANAGED)};
    filch_codelet *sets = on_gpu("set");
    assert_ok(fl_thread_start(&thread, send_on, &s));
    for (int round = 0; round < ROUNDS; round++) {
        filch_graph *made = graph();
        for (uint32_t i = 0; i < PIECES; i++) {
            const filch_access access = {.data = data, .row = i, .mode = FILCH_WRITE};
            add(made, sets, 0, &access, 1, i + 1);
        }
        for (int run = 0; run < 2; run++) {
            memset(at, 0, (size_t)PIECES * PIECE * sizeof *at);
            atomic_fetch_add(&s.wanted, (uint64_t)run);
            finish(submit(made), FILCH_OK);
            for (uint64_t i = 0; i < PIECES; i++)
                assert_int_equal(at[i * PIECE + i % PIECE], i + 1);
        }
        assert_ok(filch_graph_destroy(made));
    }
    atomic_store(&s.is_over, 1);
    fl_thread_join(thread);
    assert_true(fakecuda_count("cuGraphLaunch") != 0);
    stop();
    (void)unsetenv("FILCH_REPLAY");
    free(at);
    free(more);
}

/* --- Many --- */

enum { WIDE = 66, ITEMS = 4096 };

/* On the lane: the last view, whose elements become the numbers of their items. */
static int number(void *data)
{
    filch_view view;
    memcpy(&view, data, sizeof view);
    uint64_t *to = fakecuda_peek(view.ptr, view.rows * sizeof *to);
    for (uint64_t i = 0; i < view.rows; i++)
        to[i] = view.row + i;
    return 0;
}

static int enqueue_number(const filch_call *call, const filch_lane *lane, void *state)
{
    (void)state;
    return fakecuda_enqueue_copy(lane->stream, number, &call->views[WIDE - 1], sizeof(filch_view));
}

/* Chunks of any number of handles are copied in and out by themselves. */
static void what_many_operands_write_comes_home(void **state)
{
    filch_cuda_desc cuda = FILCH_CUDA_DESC_INIT;
    filch_codelet_desc desc = FILCH_CODELET_DESC_INIT;
    filch_batch_desc batch = FILCH_BATCH_DESC_INIT;
    filch_batch_access accesses[WIDE];
    filch_job *job = NULL;
    (void)state;
    start("cuda:0", 0, NULL);
    uint64_t *from = calloc(ITEMS, sizeof *from), *to = calloc(ITEMS, sizeof *to);
    filch_data *reads = handle(from, 1, ITEMS, 0), *writes = handle(to, 1, ITEMS, 0);
    for (uint32_t i = 0; i < WIDE; i++)
        accesses[i] = (filch_batch_access){.data = i + 1 < WIDE ? reads : writes,
                                           .mode = i + 1 < WIDE ? FILCH_READ : FILCH_WRITE,
                                           .map = FILCH_MAP_AFFINE,
                                           .scale = 1};
    cuda.enqueue = enqueue_number;
    desc.name = "number";
    desc.cuda = &cuda;
    assert_ok(filch_codelet_create(runtime, &desc, &batch.codelet));
    batch.n = ITEMS;
    batch.accesses = accesses;
    batch.access_count = WIDE;
    assert_ok(filch_batch_submit(runtime, &batch, NULL, &job));
    finish(job, FILCH_OK);
    for (uint64_t i = 0; i < ITEMS; i++)
        assert_int_equal(to[i], i);
    stop();
    free(from);
    free(to);
}

/* --- Between two looks --- */

static fl_backend hooked;
static filch_data *renewed;
static filch_status (*looks)(fl_device *device, fl_marker marker, filch_error *error);

/* The GPU is lost, as seems; and a version of the handle begins, as at the end of a job. */
static bool lose_and_renew(const fl_device *device, filch_error *error)
{
    (void)device;
    (void)error;
    if (renewed != NULL)
        fl_data_begin_version(renewed);
    renewed = NULL;
    return true;
}

/* A tile is about to be saved from one GPU, since it is nowhere else, when a job of its handle
 * ends: it is at home then, and there is nothing to save. */
static void what_is_home_meanwhile_need_not_be_saved(void **state)
{
    uint64_t x = 0, y = 0;
    (void)state;
    start_driven("cuda:0,cuda:1,host:1", 0, NULL, FILCH_DRIVE_POLL);
    fl_device *devices = ((fl_core *)(void *)runtime)->places->devices;
    const fl_backend *backend = devices[1].backend;
    filch_data *data = handle(&x, 1, 1, FILCH_DATA_PIN);
    filch_data *other = handle(&y, 1, 1, FILCH_DATA_PIN);
    const filch_access uses[] = {{.data = data, .mode = FILCH_READ},
                                 {.data = other, .mode = FILCH_WRITE}};
    const filch_access writes = {.data = data, .mode = FILCH_WRITE};
    filch_codelet *sets = on_gpu("set"), *waits = on_gpu("halt"), *ends = NULL;
    filch_codelet_desc desc = FILCH_CODELET_DESC_INIT;
    desc.name = "end";
    desc.host = set;
    desc.arg_size = sizeof(uint64_t);
    assert_ok(filch_codelet_create(runtime, &desc, &ends));
    filch_graph *made = graph();
    add(made, sets, 0, &writes, 1, 1);
    add(made, waits, 1, uses, 2, 0);
    add(made, ends, 2, &writes, 1, 2); /* so that it goes home no sooner */
    atomic_store(&halts, 0);
    atomic_store(&is_halted, 1);
    filch_job *job = submit(made);
    while (atomic_load(&halts) == 0)
        (void)filch_runtime_poll(runtime, 0, NULL);
    hooked = *backend;
    fl_device_ops hook = *backend->device;
    hook.lost = lose_and_renew;
    hooked.device = &hook;
    renewed = data;
    devices[1].backend = &hooked;
    assert_true(fl_residents_clear(((fl_core *)(void *)runtime)->places, &devices[0]));
    devices[1].backend = backend;
    assert_null(renewed);
    assert_int_equal(fakecuda_count("cuMemcpyDtoHAsync"), 1); /* what halts sends home */
    atomic_store(&is_halted, 0);
    finish(job, FILCH_OK);
    assert_int_equal(x, 2);
    assert_int_equal(y, 1);
    stop();
}

static filch_status look_and_renew(fl_device *device, fl_marker marker, filch_error *error)
{
    filch_status status = looks(device, marker, error);
    if (renewed != NULL)
        fl_data_begin_version(renewed);
    renewed = NULL;
    return status;
}

/* The host gets tiles of a buffer on a GPU when a job that uses others of them ends: it has them
 * when they have come. */
static void what_the_host_holds_has_come(void **state)
{
    enum { LARGE = 32 * 1024 };
    CUcontext context;
    CUdeviceptr home = 0;
    filch_hold *hold = NULL;
    filch_view view;
    (void)state;
    start_driven("cuda:0", 0, "{\"copy_ns\": 20000000}", FILCH_DRIVE_POLL);
    assert_int_equal(cuDevicePrimaryCtxRetain(&context, 0), FL_CUDA_SUCCESS);
    assert_int_equal(cuCtxPushCurrent_v2(context), FL_CUDA_SUCCESS);
    assert_int_equal(cuMemAlloc_v2(&home, LARGE * sizeof(uint64_t)), FL_CUDA_SUCCESS);
    assert_int_equal(cuCtxPopCurrent_v2(NULL), FL_CUDA_SUCCESS);
    uint64_t *at = fakecuda_peek((void *)(uintptr_t)home, LARGE * sizeof *at);
    for (uint64_t i = 0; i < LARGE; i++)
        at[i] = i;
    fl_device *devices = ((fl_core *)(void *)runtime)->places->devices;
    const fl_backend *backend = devices[0].backend;
    filch_data *data = handle((uint64_t *)(uintptr_t)home, 1, LARGE, FILCH_DATA_ON_DEVICE);
    hooked = *backend;
    fl_lane_ops hook = *backend->lane;
    hook.reached = look_and_renew;
    hooked.lane = &hook;
    looks = backend->lane->reached;
    renewed = data;
    devices[0].backend = &hooked;
    assert_ok(filch_data_acquire_tiles(data, NULL, FILCH_READ, SOON, &hold));
    devices[0].backend = backend;
    assert_null(renewed);
    assert_ok(filch_data_view(data, 0, 0, &view));
    for (uint64_t i = 0; i < LARGE; i++)
        assert_int_equal(((uint64_t *)view.ptr)[i], i);
    assert_ok(filch_hold_release(hold));
    assert_ok(filch_runtime_destroy(runtime));
    assert_int_equal(cuCtxPushCurrent_v2(context), FL_CUDA_SUCCESS);
    assert_int_equal(cuMemFree_v2(home), FL_CUDA_SUCCESS);
    assert_int_equal(cuCtxPopCurrent_v2(NULL), FL_CUDA_SUCCESS);
    assert_int_equal(cuDevicePrimaryCtxRelease_v2(0), FL_CUDA_SUCCESS);
    assert_int_equal(fakecuda_violations(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_makes_room_does_not_come_home_late),
        cmocka_unit_test(a_cancelled_job_leaves_no_copies),
        cmocka_unit_test(what_goes_home_is_in_nobodys_way),
        cmocka_unit_test(idle_scratch_is_in_nobodys_way),
        cmocka_unit_test(what_has_lost_its_home_makes_room),
        cmocka_unit_test(replays_and_broadcasts_share_memory),
        cmocka_unit_test(what_many_operands_write_comes_home),
        cmocka_unit_test(what_is_home_meanwhile_need_not_be_saved),
        cmocka_unit_test(what_the_host_holds_has_come),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
