/* SPDX-License-Identifier: Apache-2.0 */
/* Tiles that come by two copies, over the memory of a third GPU or the host's, on the fake driver:
 * which way they take, that they arrive, what is counted, and what becomes of them, and of the
 * memory, when somebody on the way fails.
 *
 * GPUs 0 and 2 reach GPU 1 and not each other, unless a test says otherwise. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "fake.h"
#include "make.h"
#include "random.h"
#include "runtime.h"

#define GPUS                                             \
    "{\"devices\": [{\"count\": 3}], \"links\": ["       \
    "{\"from\": 0, \"to\": 1}, {\"from\": 1, \"to\": 2}" \
    ", {\"from\": 0, \"to\": 2, \"peer\": "
#define ISLANDS GPUS "false}]}"
#define JOINED GPUS "true}]}"
#define IMAGE "FAKECUBIN arch=90 entry=bump,copy,spread"

enum { ROWS = 512, COLS = 256, GAP = 7, DEVICES = 3, GONE = 700 };
#define BYTES ((uint64_t)ROWS * COLS * sizeof(uint64_t))
/* Of links between GPUs, so that a tile has a dozen pieces and more. */
#define FAST 2e9
#define SLOW 1e8

static filch_runtime *runtime;
static filch_codelet *bumps, *copies;
static filch_graph *graphs[8]; /* of the test's jobs */
static size_t graph_count;
static uint64_t x[ROWS * COLS], y[ROWS * COLS];

/* bump(to): adds one. */
static int bump(const filch_call *call)
{
    const filch_view *to = &call->views[0];
    for (uint64_t col = 0; col < to->cols; col++) {
        for (uint64_t row = 0; row < to->rows; row++)
            ((uint64_t *)to->ptr)[col * to->ld + row]++;
    }
    return 0;
}

/* copy(from, to) */
static int copy(const filch_call *call)
{
    const filch_view *from = &call->views[0], *to = &call->views[1];
    for (uint64_t col = 0; col < to->cols; col++)
        memcpy((uint64_t *)to->ptr + col * to->ld, (const uint64_t *)from->ptr + col * from->ld,
               to->rows * sizeof(uint64_t));
    return 0;
}

static filch_codelet *codelet(const char *entry)
{
    return codelet_of(runtime, IMAGE, entry, NULL, 0);
}

static void start_with(const char *driver, uint64_t limit)
{
    filch_runtime_desc config = FILCH_RUNTIME_DESC_INIT;
    /* The driver's pool waits for the device, which some tests hold, when it has to grow. */
    (void)setenv("FILCH_ARENA", "pages", 1);
    fakecuda_reset();
    assert_true(fakecuda_configure(driver));
    fakecuda_register_filch("bump", bump, 1, false, 0);
    fakecuda_register_filch("copy", copy, 2, false, 0);
    fakecuda_register_filch("spread", copy, 2, true, 0);
    config.devices = "cuda";
    config.policy = FILCH_POLICY_STATIC;
    config.memory_limit = limit;
    runtime = runtime_of(&config);
    bumps = codelet("bump");
    copies = codelet("copy");
    for (uint64_t i = 0; i < ROWS * COLS; i++)
        x[i] = i;
    memset(y, 0, sizeof y);
}

static void start(const char *driver)
{
    start_with(driver, 0);
}

static void destroy_graphs(void)
{
    while (graph_count != 0)
        assert_ok(filch_graph_destroy(graphs[--graph_count]));
}

static void stop(void)
{
    destroy_graphs();
    assert_ok(filch_runtime_destroy(runtime));
    assert_int_equal(fakecuda_violations(), 0);
}

/* As filch_device_measure_links would: places are devices and one. */
static void tell(uint32_t from, uint32_t to, double rate)
{
    fl_bandwidths *bandwidths = &runtime->pool.bandwidths;
    assert_ok(fl_bandwidths_open(bandwidths, &runtime->core.memory, runtime->pool.place_count));
    fl_bandwidths_set(bandwidths, runtime->pool.place_count, from, to, rate);
}

static void tell_all(void)
{
    for (uint32_t from = 0; from <= DEVICES; from++) {
        for (uint32_t to = 0; to <= DEVICES; to++)
            tell(from, to, from == 0 || to == 0 ? SLOW : FAST);
    }
}

static filch_data_desc describe(void *at, uint32_t flags)
{
    filch_data_desc desc = FILCH_DATA_DESC_INIT;
    desc.ptr = at;
    desc.element = sizeof(uint64_t);
    desc.rows = ROWS;
    desc.cols = COLS;
    desc.ld = ROWS;
    desc.flags = flags;
    desc.label = "the tile";
    return desc;
}

static filch_data *make(filch_data_desc desc)
{
    filch_data *data = NULL;
    assert_ok(filch_data_create(runtime, &desc, &data));
    return data;
}

/* Starts a job of one task: from is read where it is not null. */
static filch_job *begin(uint32_t device, filch_data *from, filch_data *to, filch_access_mode mode)
{
    const filch_access accesses[] = {{.data = from, .mode = FILCH_READ},
                                     {.data = to, .mode = mode}};
    filch_task_desc desc = FILCH_TASK_DESC_INIT;
    filch_graph *graph = NULL;
    filch_job *job = NULL;
    assert_true(graph_count < sizeof graphs / sizeof graphs[0]);
    desc.codelet = from != NULL ? copies : bumps;
    desc.accesses = from != NULL ? accesses : &accesses[1];
    desc.access_count = from != NULL ? 2 : 1;
    desc.affinity = 1 + device;
    assert_ok(filch_graph_create(runtime, NULL, &graph));
    graphs[graph_count++] = graph;
    assert_ok(filch_graph_add(graph, &desc, NULL));
    assert_ok(filch_graph_submit(graph, NULL, &job));
    return job;
}

static void run(uint32_t device, filch_data *from, filch_data *to, filch_access_mode mode)
{
    finish(begin(device, from, to, mode), FILCH_OK);
}

static void fails_with(filch_job *job, const char *device)
{
    filch_error error = FILCH_ERROR_INIT;
    assert_int_equal(filch_job_wait(job, SOON), FILCH_TASK_FAILED);
    assert_ok(filch_job_error(job, &error));
    assert_int_equal(error.status, FILCH_DEVICE_LOST);
    assert_int_equal(error.native_code, GONE);
    assert_string_equal(error.device, device);
    assert_ok(filch_job_release(job));
}

/* What was x and was bumped once. */
static void is_bumped(const uint64_t *at, uint64_t ld)
{
    for (uint64_t col = 0; col < COLS; col++) {
        for (uint64_t row = 0; row < ROWS; row++)
            assert_int_equal(at[col * ld + row], col * ROWS + row + 1);
    }
}

static void ended_in(filch_data *data, const uint64_t *at)
{
    assert_ok(filch_data_acquire(data, FILCH_READ));
    is_bumped(at, ROWS);
    assert_ok(filch_data_release(data));
}

static filch_memory_stats memory_of(uint32_t device)
{
    filch_memory_stats stats = {.size = sizeof stats};
    assert_ok(filch_device_memory(runtime, device, &stats));
    return stats;
}

/* A tile that GPU 0 has alone, and one for what GPU 2 makes of it. */
typedef struct pair {
    filch_data *from, *to;
} pair;

static pair begin_with_one_on_gpu_0(void)
{
    pair made = {make(describe(x, FILCH_DATA_MANAGED | FILCH_DATA_PIN)),
                 make(describe(y, FILCH_DATA_MANAGED))};
    run(0, NULL, made.from, FILCH_READWRITE);
    assert_int_equal(fakecuda_bytes(-1, 0), BYTES);
    return made;
}

/* Which way the tile took from GPU 0 to GPU 2. */
typedef enum way { OVER_HOST, OVER_GPU_1, STRAIGHT } way;

static void went(way which)
{
    assert_int_equal(fakecuda_bytes(0, 1), which == OVER_GPU_1 ? BYTES : 0);
    assert_int_equal(fakecuda_bytes(1, 2), which == OVER_GPU_1 ? BYTES : 0);
    assert_int_equal(fakecuda_bytes(0, -1), which == OVER_HOST ? BYTES : 0);
    assert_int_equal(fakecuda_bytes(-1, 2), which == OVER_HOST ? BYTES : 0);
    assert_int_equal(fakecuda_bytes(0, 2), which == STRAIGHT ? BYTES : 0);
}

/* --- Ways --- */

static void what_was_not_measured_goes_over_the_host(void **state)
{
    (void)state;
    start(ISLANDS);
    pair tiles = begin_with_one_on_gpu_0();
    assert_int_equal(fakecuda_count("cuMemcpyHtoDAsync"), 1);
    run(2, tiles.from, tiles.to, FILCH_WRITE);
    went(OVER_HOST);
    /* By pieces, as many there as back. */
    assert_true(fakecuda_count("cuMemcpyDtoHAsync") > 2);
    assert_int_equal(fakecuda_count("cuMemcpyHtoDAsync"), 1 + fakecuda_count("cuMemcpyDtoHAsync"));
    ended_in(tiles.to, y);
    assert_int_equal(memory_of(1).requested_peak, 0);
    stop();
}

/* Through a ring that is much smaller than the tile, and gone when the tile has come. */
static void what_was_measured_goes_over_the_gpu_between(void **state)
{
    filch_device_stats stats[DEVICES];
    filch_job_info info = {.size = sizeof info};
    (void)state;
    start(ISLANDS);
    tell_all();
    pair tiles = begin_with_one_on_gpu_0();
    filch_job *job = begin(2, tiles.from, tiles.to, FILCH_WRITE);
    assert_ok(filch_job_wait(job, SOON));
    assert_ok(filch_job_stats(job, &info, stats, DEVICES));
    assert_int_equal(info.bytes, 2 * BYTES);
    for (uint32_t d = 0; d < DEVICES; d++) {
        assert_int_equal(stats[d].bytes_peer, d == 0 ? 0 : BYTES);
        assert_int_equal(stats[d].bytes_in + stats[d].bytes_out, 0);
    }
    finish(job, FILCH_OK);
    went(OVER_GPU_1);
    ended_in(tiles.to, y);
    assert_true(memory_of(1).requested_peak > 0);
    assert_true(memory_of(1).requested_peak < BYTES / 3);
    /* GPU 2 has it now, and the way back is another's: nothing is left between them. */
    run(2, NULL, tiles.from, FILCH_READWRITE);
    run(0, tiles.from, tiles.to, FILCH_WRITE);
    assert_int_equal(fakecuda_bytes(2, 1), BYTES);
    assert_int_equal(fakecuda_bytes(1, 0), BYTES);
    stop();
}

static void a_slow_way_is_left_for_a_fast_one(void **state)
{
    (void)state;
    for (int is_slow = 0; is_slow < 2; is_slow++) {
        start(JOINED);
        tell_all();
        tell(1, 3, is_slow ? FAST / 10 : FAST);
        pair tiles = begin_with_one_on_gpu_0();
        run(2, tiles.from, tiles.to, FILCH_WRITE);
        went(is_slow ? OVER_GPU_1 : STRAIGHT);
        ended_in(tiles.to, y);
        stop();
    }
}

/* The first of the two links is no faster than the host. */
static void a_slow_gpu_between_is_left_aside(void **state)
{
    (void)state;
    start(ISLANDS);
    tell_all();
    tell(1, 2, SLOW / 10);
    pair tiles = begin_with_one_on_gpu_0();
    run(2, tiles.from, tiles.to, FILCH_WRITE);
    went(OVER_HOST);
    ended_in(tiles.to, y);
    stop();
}

/* Whether a tile goes over the GPU between, as measured by the call that measures: more than
 * nothing, so that there is a choice at all. */
static bool is_measured_well(void)
{
    start("{\"devices\": [{\"count\": 3}], \"copy_gbps\": 1, \"links\": ["
          "{\"from\": 0, \"to\": 1, \"gbps\": 50}, {\"from\": 1, \"to\": 2, \"gbps\": 50},"
          "{\"from\": 0, \"to\": 2, \"peer\": false, \"gbps\": 1}]}");
    assert_ok(filch_device_measure_links(runtime));
    fakecuda_reset();
    pair tiles = begin_with_one_on_gpu_0();
    run(2, tiles.from, tiles.to, FILCH_WRITE);
    bool is_well = fakecuda_bytes(0, 1) == BYTES;
    went(is_well ? OVER_GPU_1 : OVER_HOST);
    ended_in(tiles.to, y);
    stop();
    return is_well;
}

/* Once in several times: where other processes are in the way, fast links measure as slow. */
static void measuring_is_enough(void **state)
{
    bool is_well = false;
    (void)state;
    for (int round = 0; round < 8 && !is_well; round++)
        is_well = is_measured_well();
    assert_true(is_well);
}

/* --- Many at once --- */

enum { TILES = 24, TILE = 8192, TASKS = 400 };

static void add_random(filch_graph *graph, filch_data *data, fl_random *random, uint64_t *wanted)
{
    const uint32_t from = fl_random_below(random, TILES), to = fl_random_below(random, TILES);
    const filch_access accesses[] = {{.data = data, .row = from, .mode = FILCH_READ},
                                     {.data = data, .row = to, .mode = FILCH_WRITE}};
    const filch_access bumped = {.data = data, .row = to, .mode = FILCH_READWRITE};
    const bool is_copy = from != to && fl_random_below(random, 2) == 0;
    filch_task_desc desc = FILCH_TASK_DESC_INIT;
    desc.codelet = is_copy ? copies : bumps;
    desc.accesses = is_copy ? accesses : &bumped;
    desc.access_count = is_copy ? 2 : 1;
    desc.affinity = 1 + fl_random_below(random, DEVICES);
    assert_ok(filch_graph_add(graph, &desc, NULL));
    wanted[to] = is_copy ? wanted[from] : wanted[to] + 1;
}

/* Tiles go to and fro between GPUs of which each has room for a few: all that stops between them
 * must leave again, and who finds no room for that while takes another way or waits. */
static void those_who_are_short_of_memory_wait_for_rings(void **state)
{
    static uint64_t cells[TILES * TILE];
    uint64_t wanted[TILES];
    fl_random random;
    (void)state;
    fl_random_init(&random, 8, 1);
    for (int round = 0; round < 4; round++) {
        filch_data_desc desc = FILCH_DATA_DESC_INIT;
        start_with(ISLANDS, (38 + 5 * (uint64_t)round) * (TILE * sizeof *cells / 10));
        tell_all();
        desc.ptr = cells;
        desc.element = sizeof *cells;
        desc.rows = TILES * TILE;
        desc.tile_rows = TILE;
        desc.flags = FILCH_DATA_MANAGED;
        filch_data *data = make(desc);
        assert_ok(filch_graph_create(runtime, NULL, &graphs[graph_count++]));
        for (uint32_t tile = 0; tile < TILES; tile++) {
            wanted[tile] = (uint64_t)tile << 32;
            for (uint64_t k = 0; k < TILE; k++)
                cells[tile * TILE + k] = wanted[tile] + k;
        }
        for (int k = 0; k < TASKS; k++)
            add_random(graphs[0], data, &random, wanted);
        filch_job *job = NULL;
        assert_ok(filch_graph_submit(graphs[0], NULL, &job));
        finish(job, FILCH_OK);
        uint64_t peer = fakecuda_bytes(0, 1) + fakecuda_bytes(1, 0) + fakecuda_bytes(1, 2) +
                        fakecuda_bytes(2, 1);
        /* By parts where what three or four tiles leave is enough for a ring. */
        assert_true(round % 2 != 0 ||
                    fakecuda_count("cuMemcpyPeerAsync") * TILE * sizeof *cells > peer);
        assert_int_equal(fakecuda_bytes(0, 2) + fakecuda_bytes(2, 0), 0);
        assert_ok(filch_data_acquire(data, FILCH_READ));
        for (uint64_t i = 0; i < TILES * TILE; i++)
            assert_int_equal(cells[i], wanted[i / TILE] + i % TILE);
        assert_ok(filch_data_release(data));
        stop();
    }
}

/* --- Parts of tiles --- */

/* Chunks of a batch that bring what they read into memory of their own: GPU 2 has no room for all
 * of the handle. */
static void chunks_come_over_the_gpu_between(void **state)
{
    enum { PARTS = 8 };
    filch_batch_desc batch = FILCH_BATCH_DESC_INIT;
    filch_graph *graph = NULL;
    filch_job *job = NULL;
    (void)state;
    start_with(ISLANDS, 2 * BYTES - BYTES / 16);
    tell_all();
    filch_data_desc desc = describe(x, FILCH_DATA_MANAGED | FILCH_DATA_PIN);
    desc.tile_cols = COLS / PARTS;
    filch_data *from = make(desc), *to = make(describe(y, FILCH_DATA_PIN));
    uint64_t *filler = calloc(ROWS * COLS, sizeof *filler);
    filch_data *other = make(describe(filler, FILCH_DATA_MANAGED));
    assert_ok(filch_graph_create(runtime, NULL, &graph));
    for (uint32_t tile = 0; tile < PARTS; tile++) {
        const filch_access access = {.data = from, .col = tile, .mode = FILCH_READWRITE};
        filch_task_desc task = FILCH_TASK_DESC_INIT;
        task.codelet = bumps;
        task.accesses = &access;
        task.access_count = 1;
        task.affinity = 1;
        assert_ok(filch_graph_add(graph, &task, NULL));
    }
    assert_ok(filch_graph_submit(graph, NULL, &job));
    finish(job, FILCH_OK);
    run(2, NULL, other, FILCH_WRITE);
    const filch_batch_access accesses[] = {
        {.data = from, .mode = FILCH_READ, .map = FILCH_MAP_AFFINE, .scale = 1},
        {.data = to, .mode = FILCH_WRITE, .map = FILCH_MAP_AFFINE, .scale = 1}};
    batch.codelet = codelet("spread");
    batch.n = COLS;
    batch.accesses = accesses;
    batch.access_count = 2;
    assert_ok(filch_batch_submit(runtime, &batch, NULL, &job));
    finish(job, FILCH_OK);
    is_bumped(y, ROWS);
    assert_int_equal(fakecuda_bytes(-1, 2), 0);
    assert_in_range(fakecuda_bytes(1, 2), BYTES / 4, BYTES / 2);
    assert_ok(filch_graph_destroy(graph));
    stop();
    free(filler);
}

/* --- Gaps between columns --- */

static CUcontext own(CUdevice device)
{
    CUcontext context = NULL;
    assert_int_equal(cuDevicePrimaryCtxRetain(&context, device), FL_CUDA_SUCCESS);
    assert_int_equal(cuCtxPushCurrent_v2(context), FL_CUDA_SUCCESS);
    return context;
}

/* From a buffer with gaps on GPU 0 to a buffer with gaps on GPU 2, by columns and parts of them. */
static void columns_arrive_where_they_belong(void **state)
{
    const double rates[] = {FAST, FAST / 1000, 0};
    (void)state;
    for (size_t k = 0; k < sizeof rates / sizeof rates[0]; k++) {
        const size_t bytes = (size_t)(ROWS + GAP) * COLS * sizeof(uint64_t);
        CUdeviceptr blocks[2] = {0, 0};
        filch_data *tiles[2];
        start(ISLANDS);
        tell_all();
        for (uint32_t at = 1; at <= DEVICES; at++) {
            for (uint32_t to = 1; to <= DEVICES; to++)
                tell(at, to, rates[k]);
        }
        for (int side = 0; side < 2; side++) {
            CUcontext context = own(2 * side);
            assert_int_equal(cuMemAlloc_v2(&blocks[side], bytes), FL_CUDA_SUCCESS);
            assert_int_equal(cuCtxPopCurrent_v2(&context), FL_CUDA_SUCCESS);
            filch_data_desc desc = describe((void *)(uintptr_t)blocks[side], FILCH_DATA_ON_DEVICE);
            desc.device = 2 * (uint32_t)side;
            desc.ld = ROWS + GAP;
            tiles[side] = make(desc);
            uint64_t *real = fakecuda_peek((const void *)(uintptr_t)blocks[side], bytes);
            for (size_t i = 0; i < bytes / sizeof(uint64_t); i++)
                real[i] = side == 0 ? i / (ROWS + GAP) * ROWS + i % (ROWS + GAP) + 1 : 12345;
        }
        run(0, tiles[0], tiles[1], FILCH_WRITE); /* GPU 0 makes it, GPU 2's buffer is to have it */
        const uint64_t *there = fakecuda_peek((const void *)(uintptr_t)blocks[1], bytes);
        went(k == 0 ? OVER_GPU_1 : OVER_HOST);
        is_bumped(there, ROWS + GAP);
        for (uint64_t col = 0; col < COLS; col++)
            assert_int_equal(there[col * (ROWS + GAP) + ROWS], 12345);
        fakecuda_reset();
        run(2, tiles[0], tiles[1], FILCH_WRITE); /* straight out of the one into the other */
        went(k == 0 ? OVER_GPU_1 : OVER_HOST);
        is_bumped(there, ROWS + GAP);
        destroy_graphs();
        for (int side = 0; side < 2; side++) {
            assert_ok(filch_data_destroy(tiles[side]));
            CUcontext context = own(2 * side);
            assert_int_equal(cuMemFree_v2(blocks[side]), FL_CUDA_SUCCESS);
            assert_int_equal(cuCtxPopCurrent_v2(&context), FL_CUDA_SUCCESS);
            assert_int_equal(cuDevicePrimaryCtxRelease_v2(2 * side), FL_CUDA_SUCCESS);
            assert_int_equal(cuDevicePrimaryCtxRelease_v2(2 * side), FL_CUDA_SUCCESS);
        }
        stop();
    }
}

/* --- Failures --- */

static void without_room_it_goes_over_the_host(void **state)
{
    (void)state;
    start(ISLANDS);
    tell_all();
    pair tiles = begin_with_one_on_gpu_0();
    fakecuda_fail_memory(1);
    run(2, tiles.from, tiles.to, FILCH_WRITE);
    went(OVER_HOST);
    ended_in(tiles.to, y);
    stop();
}

/* A tile of GPU 1's own fills what it may have; it stays. */
static void nothing_leaves_for_it(void **state)
{
    static uint64_t z[ROWS * COLS];
    (void)state;
    start(ISLANDS);
    tell_all();
    fl_place_cap(&runtime->places, 2, BYTES);
    filch_data *resident = make(describe(z, FILCH_DATA_MANAGED));
    run(1, NULL, resident, FILCH_READWRITE);
    uint64_t before = fakecuda_bytes(1, -1);
    pair tiles = begin_with_one_on_gpu_0();
    run(2, tiles.from, tiles.to, FILCH_WRITE);
    went(OVER_HOST);
    ended_in(tiles.to, y);
    assert_int_equal(fakecuda_bytes(1, -1), before);
    stop();
}

static void a_lost_gpu_is_no_relay(void **state)
{
    (void)state;
    start(ISLANDS);
    tell_all();
    pair tiles = begin_with_one_on_gpu_0();
    fakecuda_fail("kernel", 1, 1, GONE, 1, false);
    fails_with(begin(1, NULL, tiles.to, FILCH_READWRITE), "cuda:1");
    run(2, tiles.from, tiles.to, FILCH_WRITE);
    assert_int_equal(fakecuda_bytes(0, 1), 0);
    assert_int_equal(fakecuda_bytes(0, -1), BYTES);
    ended_in(tiles.to, y);
    stop();
}

/* It is lost when the copies are queued: none of them is its own, and its memory is still there. */
static void a_relay_that_is_lost_later_is_not_missed(void **state)
{
    static uint64_t z[ROWS * COLS];
    (void)state;
    start(ISLANDS);
    tell_all();
    pair tiles = begin_with_one_on_gpu_0();
    filch_data *other = make(describe(z, FILCH_DATA_MANAGED));
    run(1, NULL, other, FILCH_READWRITE);
    fakecuda_fail("kernel", 1, 1, GONE, 1, false);
    fakecuda_hold();
    uint64_t launches = fakecuda_count("cuLaunchKernel");
    filch_job *through = begin(2, tiles.from, tiles.to, FILCH_WRITE);
    while (fakecuda_count("cuLaunchKernel") == launches) {
    }
    filch_job *loses = begin(1, NULL, other, FILCH_READWRITE);
    while (fakecuda_count("cuLaunchKernel") == launches + 1) {
    }
    fakecuda_release();
    fails_with(loses, "cuda:1");
    finish(through, FILCH_OK);
    went(OVER_GPU_1);
    ended_in(tiles.to, y);
    stop();
}

/* One of the two ends is lost in the middle of a tile: the job says which, and what the other end
 * has of it is not taken for the tile. */
static void an_end_that_is_lost_is_named(void **state)
{
    static const char *const names[] = {"cuda:0", "", "cuda:2"};
    static uint64_t z[ROWS * COLS];
    (void)state;
    for (int side = 0; side <= 2; side += 2) {
        start(ISLANDS);
        tell_all();
        pair tiles = begin_with_one_on_gpu_0();
        fakecuda_fail("copy", 5, 1, GONE, side, false);
        fails_with(begin(2, tiles.from, tiles.to, FILCH_WRITE), names[side]);
        assert_int_equal(filch_data_acquire(tiles.from, FILCH_READ),
                         side == 0 ? FILCH_DEVICE_LOST : FILCH_OK);
        if (side == 2) {
            is_bumped(x, ROWS);
            assert_ok(filch_data_release(tiles.from));
        }
        /* All the memory between them is free as soon as somebody wants some. */
        run(1, NULL, make(describe(z, FILCH_DATA_MANAGED)), FILCH_READWRITE);
        assert_int_equal(memory_of(1).requested, BYTES);
        stop();
    }
}

/* A call that fails, and no more than that: what was begun is waited for, and another way taken. */
static void a_call_that_fails_is_made_up_for(void **state)
{
    (void)state;
    for (uint64_t nth = 1; nth < 12; nth++) {
        start(ISLANDS);
        tell_all();
        pair tiles = begin_with_one_on_gpu_0();
        fakecuda_fail("cuMemcpyPeerAsync", nth, 1, FL_CUDA_ERROR_OUT_OF_MEMORY, -1, false);
        run(2, tiles.from, tiles.to, FILCH_WRITE);
        assert_true(fakecuda_bytes(0, 1) < BYTES);
        assert_int_equal(fakecuda_bytes(0, -1), BYTES);
        ended_in(tiles.to, y);
        assert_int_equal(memory_of(1).requested, 0);
        stop();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_not_measured_goes_over_the_host),
        cmocka_unit_test(what_was_measured_goes_over_the_gpu_between),
        cmocka_unit_test(a_slow_way_is_left_for_a_fast_one),
        cmocka_unit_test(a_slow_gpu_between_is_left_aside),
        cmocka_unit_test(measuring_is_enough),
        cmocka_unit_test(those_who_are_short_of_memory_wait_for_rings),
        cmocka_unit_test(chunks_come_over_the_gpu_between),
        cmocka_unit_test(columns_arrive_where_they_belong),
        cmocka_unit_test(without_room_it_goes_over_the_host),
        cmocka_unit_test(nothing_leaves_for_it),
        cmocka_unit_test(a_lost_gpu_is_no_relay),
        cmocka_unit_test(a_relay_that_is_lost_later_is_not_missed),
        cmocka_unit_test(an_end_that_is_lost_is_named),
        cmocka_unit_test(a_call_that_fails_is_made_up_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
