/* SPDX-License-Identifier: Apache-2.0 */
/* One handle on many devices, on the fake driver: who sends what to whom, what tasks find, and what
 * is left when something fails on the way. */
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

#include "make.h"

#define IMAGE "FAKECUBIN arch=90 entry=take,make,hold"
#define GPUS 4
#define ROWS 96
#define COLS 64
#define BYTES ((uint64_t)ROWS * COLS * sizeof(uint64_t))
#define JOINED "{\"devices\": [{\"count\": 4}]}"
#define APART                                      \
    "{\"devices\": [{\"count\": 4}], \"links\": [" \
    "{\"from\": 0, \"to\": 1, \"peer\": false},"   \
    "{\"from\": 0, \"to\": 2, \"peer\": false},"   \
    "{\"from\": 0, \"to\": 3, \"peer\": false},"   \
    "{\"from\": 1, \"to\": 2, \"peer\": false},"   \
    "{\"from\": 1, \"to\": 3, \"peer\": false},"   \
    "{\"from\": 2, \"to\": 3, \"peer\": false}]}"
#define PAIRS                                      \
    "{\"devices\": [{\"count\": 4}], \"links\": [" \
    "{\"from\": 0, \"to\": 2, \"peer\": false},"   \
    "{\"from\": 0, \"to\": 3, \"peer\": false},"   \
    "{\"from\": 1, \"to\": 2, \"peer\": false},"   \
    "{\"from\": 1, \"to\": 3, \"peer\": false}]}"
/* 0-3-1-2 is the way along the best links. */
#define RANKED                                     \
    "{\"devices\": [{\"count\": 4}], \"links\": [" \
    "{\"from\": 0, \"to\": 1, \"rank\": 2},"       \
    "{\"from\": 0, \"to\": 2, \"rank\": 2},"       \
    "{\"from\": 0, \"to\": 3, \"rank\": 0},"       \
    "{\"from\": 1, \"to\": 2, \"rank\": 0},"       \
    "{\"from\": 1, \"to\": 3, \"rank\": 0},"       \
    "{\"from\": 2, \"to\": 3, \"rank\": 2}]}"

static filch_runtime *runtime;
static filch_codelet *takes, *makes, *holds;
static filch_data *data, *results[GPUS];
static uint64_t x[ROWS * COLS], sums[GPUS];
static _Atomic int is_held;

/* --- What tasks do --- */

static uint64_t digest(const uint64_t *at, uint64_t rows, uint64_t cols, uint64_t ld, uint64_t sum)
{
    for (uint64_t c = 0; c < cols; c++) {
        for (uint64_t r = 0; r < rows; r++)
            sum = (sum + at[c * ld + r]) * UINT64_C(0x9e3779b97f4a7c15);
    }
    return sum;
}

/* take(from, sum): adds the tile to the digest. */
static int take(const filch_call *call)
{
    const filch_view *from = &call->views[0];
    uint64_t *sum = call->views[1].ptr;
    *sum = digest(from->ptr, from->rows, from->cols, from->ld, *sum);
    return 0;
}

/* make(to): values that the host's buffer does not have. */
static int make(const filch_call *call)
{
    const filch_view *to = &call->views[0];
    for (uint64_t c = 0; c < to->cols; c++) {
        for (uint64_t r = 0; r < to->rows; r++)
            ((uint64_t *)to->ptr)[c * to->ld + r] = ((to->col + c) * ROWS + to->row + r) * 7 + 5;
    }
    return 0;
}

static int hold(const filch_call *call)
{
    (void)call;
    while (atomic_load(&is_held) != 0) {
        const struct timespec nap = {0, 100000};
        (void)nanosleep(&nap, NULL);
    }
    return 0;
}

/* --- Making things --- */

static filch_codelet *codelet(const char *entry)
{
    return codelet_of(runtime, IMAGE, entry, NULL, 0);
}

/* Of x: managed; tiles of so many rows and columns. */
static filch_data *handle(uint64_t tile_rows, uint64_t tile_cols)
{
    filch_data_desc desc = FILCH_DATA_DESC_INIT;
    filch_data *made = NULL;
    desc.ptr = x;
    desc.element = sizeof *x;
    desc.rows = ROWS;
    desc.cols = COLS;
    desc.tile_rows = tile_rows;
    desc.tile_cols = tile_cols;
    desc.label = "x";
    desc.flags = FILCH_DATA_MANAGED;
    assert_ok(filch_data_create(runtime, &desc, &made));
    return made;
}

static uint64_t memory_limit;

static void start_driven(const char *devices, const char *fake, filch_drive drive)
{
    filch_runtime_desc config = FILCH_RUNTIME_DESC_INIT;
    config.memory_limit = memory_limit;
    fakecuda_reset();
    assert_true(fakecuda_configure(fake));
    fakecuda_register_filch("take", take, 2, false, 0);
    fakecuda_register_filch("make", make, 1, false, 0);
    fakecuda_register_filch("hold", hold, 1, false, 0);
    config.devices = devices;
    config.policy = FILCH_POLICY_STATIC;
    config.drive = drive;
    runtime = runtime_of(&config);
    takes = codelet("take");
    makes = codelet("make");
    holds = codelet("hold");
    for (uint64_t i = 0; i < ROWS * COLS; i++)
        x[i] = i * 3 + 1;
    memset(sums, 0, sizeof sums);
    for (int d = 0; d < GPUS; d++) {
        filch_data_desc desc = FILCH_DATA_DESC_INIT;
        desc.ptr = &sums[d];
        desc.element = sizeof sums[d];
        desc.rows = 1;
        assert_ok(filch_data_create(runtime, &desc, &results[d]));
    }
    data = NULL;
}

static void start(const char *fake)
{
    start_driven("cuda", fake, FILCH_DRIVE_DEFAULT);
}

static void stop(void)
{
    assert_ok(filch_runtime_destroy(runtime));
    assert_int_equal(fakecuda_live("memory"), 0);
    assert_int_equal(fakecuda_violations(), 0);
}

static filch_graph *graph(void)
{
    return graph_of(runtime);
}

static void add(filch_graph *to, filch_codelet *what, uint32_t device, uint32_t row, uint32_t col,
                filch_access_mode mode, filch_data *more)
{
    const filch_access accesses[] = {{.data = data, .row = row, .col = col, .mode = mode},
                                     {.data = more, .mode = FILCH_READWRITE}};
    filch_task_desc desc = FILCH_TASK_DESC_INIT;
    desc.codelet = what;
    desc.accesses = accesses;
    desc.access_count = more != NULL ? 2 : 1;
    desc.affinity = device + 1;
    assert_ok(filch_graph_add(to, &desc, NULL));
}

static filch_tiling tiling(void)
{
    filch_tiling tiles = {.size = sizeof tiles};
    assert_ok(filch_data_tiles(data, &tiles));
    return tiles;
}

/* Every tile of data is made by a device. */
static void make_on(uint32_t device)
{
    filch_graph *made = graph();
    filch_tiling tiles = tiling();
    for (uint32_t t = 0; t < tiles.rows * tiles.cols; t++)
        add(made, makes, device, t % (uint32_t)tiles.rows, t / (uint32_t)tiles.rows, FILCH_WRITE,
            NULL);
    finish(submit(made), FILCH_OK);
    assert_ok(filch_graph_destroy(made));
}

/* What tasks find on a device; was_made: by make_on, else by the host. *moved: bytes of data that
 * had to be brought there for them. */
static void look_on(uint32_t device, bool was_made, uint64_t *moved)
{
    static uint64_t wanted[ROWS * COLS];
    filch_graph *looks = graph();
    filch_tiling tiles = tiling();
    filch_job_info info = {.size = sizeof info};
    uint64_t sum = 0, down = ROWS / tiles.rows, across = COLS / tiles.cols;
    for (uint64_t i = 0; i < ROWS * COLS; i++)
        wanted[i] = was_made ? i * 7 + 5 : i * 3 + 1;
    sums[device] = 0;
    for (uint32_t t = 0; t < tiles.rows * tiles.cols; t++) {
        uint32_t r = t % (uint32_t)tiles.rows, c = t / (uint32_t)tiles.rows;
        add(looks, takes, device, r, c, FILCH_READ, results[device]);
        sum = digest(&wanted[c * across * ROWS + r * down], down, across, ROWS, sum);
    }
    filch_job *job = submit(looks);
    assert_int_equal(filch_job_wait(job, SOON), FILCH_OK);
    assert_ok(filch_job_stats(job, &info, NULL, 0));
    assert_ok(filch_job_release(job));
    assert_ok(filch_graph_destroy(looks));
    assert_int_equal(sums[device], sum);
    *moved = info.bytes - 2 * sizeof sums[0];
}

static void expect_on(uint32_t device, bool was_made, uint64_t bytes)
{
    uint64_t moved;
    look_on(device, was_made, &moved);
    assert_int_equal(moved, bytes);
}

static filch_job *begin(const filch_broadcast_desc *how)
{
    filch_job *job = NULL;
    assert_ok(filch_data_broadcast(data, how, NULL, &job));
    return job;
}

static void broadcast(const filch_broadcast_desc *how)
{
    finish(begin(how), FILCH_OK);
}

/* Bytes that a device got, from everywhere; and that it sent to others. */
static uint64_t got(int device)
{
    uint64_t bytes = 0;
    for (int from = -1; from < GPUS; from++)
        bytes += fakecuda_bytes(from, device);
    return bytes;
}

static uint64_t sent(int device)
{
    uint64_t bytes = 0;
    for (int to = -1; to < GPUS; to++)
        bytes += fakecuda_bytes(device, to);
    return bytes;
}

/* --- Who sends to whom --- */

/* From the host to one, and on from there: each byte once to each, and once from each. */
static void a_chain_begins_at_the_host(void **state)
{
    filch_broadcast_desc how = FILCH_BROADCAST_DESC_INIT;
    filch_device_stats stats[GPUS] = {{0}};
    filch_job_info info = {.size = sizeof info};
    (void)state;
    start(JOINED);
    data = handle(0, 0);
    how.way = FILCH_BROADCAST_CHAIN;
    filch_job *job = begin(&how);
    assert_ok(filch_job_wait(job, SOON));
    assert_ok(filch_job_stats(job, &info, stats, GPUS));
    assert_ok(filch_job_release(job));
    assert_int_equal(info.bytes, GPUS * BYTES);
    assert_int_equal(stats[0].bytes_in, BYTES);
    assert_int_equal(sent(-1), BYTES);
    for (int d = 0; d < GPUS; d++) {
        assert_int_equal(got(d), BYTES);
        assert_int_equal(sent(d), d + 1 < GPUS ? BYTES : 0);
        assert_int_equal(stats[d].bytes_peer, d > 0 ? BYTES : 0);
        assert_int_equal(stats[d].bytes_out, 0);
    }
    for (uint32_t d = 0; d < GPUS; d++)
        expect_on(d, false, 0);
    /* It is there: nothing is sent again. */
    uint64_t copies = fakecuda_count("copy");
    broadcast(NULL);
    assert_int_equal(fakecuda_count("copy"), copies);
    stop();
}

/* What only one device has, in pieces. */
static void pieces_are_handed_on(void **state)
{
    filch_broadcast_desc how = FILCH_BROADCAST_DESC_INIT;
    (void)state;
    for (int way = FILCH_BROADCAST_CHAIN; way <= FILCH_BROADCAST_DIRECT; way++) {
        start(JOINED);
        data = handle(0, 0);
        make_on(2);
        fakecuda_reset();
        how.way = (filch_broadcast_way)way;
        how.piece = 8192;
        broadcast(&how);
        assert_int_equal(fakecuda_count("copy"), 3 * BYTES / 8192);
        for (int d = 0; d < GPUS; d++)
            assert_int_equal(got(d), d != 2 ? BYTES : 0);
        assert_int_equal(sent(2), (uint64_t)way * BYTES); /* once, twice, to all three */
        assert_int_equal(sent(-1), 0);
        for (uint32_t d = 0; d < GPUS; d++)
            expect_on(d, true, 0);
        stop();
    }
}

static void better_links_come_first(void **state)
{
    filch_broadcast_desc how = FILCH_BROADCAST_DESC_INIT;
    (void)state;
    start(RANKED);
    data = handle(0, 0);
    make_on(0);
    fakecuda_reset();
    how.way = FILCH_BROADCAST_CHAIN;
    broadcast(&how);
    assert_int_equal(fakecuda_bytes(0, 3), BYTES);
    assert_int_equal(fakecuda_bytes(3, 1), BYTES);
    assert_int_equal(fakecuda_bytes(1, 2), BYTES);
    stop();
}

/* Through the host's memory where one cannot reach the other's, and only there. */
static void what_is_apart_goes_through_the_host(void **state)
{
    static const char *const machines[] = {APART, PAIRS};
    (void)state;
    for (int m = 0; m < 2; m++) {
        start(machines[m]);
        data = handle(0, 0);
        make_on(0);
        fakecuda_reset();
        broadcast(NULL);
        for (int d = 1; d < GPUS; d++)
            assert_int_equal(got(d), BYTES);
        assert_int_equal(got(-1), BYTES);
        assert_int_equal(sent(-1), m == 0 ? 3 * BYTES : BYTES);
        for (uint32_t d = 0; d < GPUS; d++)
            expect_on(d, true, 0);
        fakecuda_reset();
        assert_ok(filch_data_acquire(data, FILCH_READ)); /* it is there by now */
        assert_int_equal(fakecuda_count("copy"), 0);
        assert_int_equal(x[5], 5 * 7 + 5);
        assert_ok(filch_data_release(data));
        stop();
    }
}

/* Slices of one GPU share what it has; the host's memory may be asked for, too. */
static void places_count_once(void **state)
{
    static const uint32_t devices[] = {3, 1, 0, 1};
    filch_broadcast_desc how = FILCH_BROADCAST_DESC_INIT;
    (void)state;
    start_driven("cuda:0/88+24,cuda:1,host:1", JOINED, FILCH_DRIVE_DEFAULT);
    data = handle(0, 0);
    make_on(2);
    fakecuda_reset();
    how.devices = devices;
    how.device_count = 4;
    broadcast(&how);
    assert_int_equal(got(0), BYTES);
    assert_int_equal(got(-1), BYTES);
    assert_int_equal(sent(1), 2 * BYTES);
    assert_ok(filch_data_acquire(data, FILCH_READ));
    assert_int_equal(x[7], 7 * 7 + 5);
    assert_ok(filch_data_release(data));
    assert_int_equal(got(-1), BYTES);
    expect_on(0, true, 0);
    expect_on(1, true, 0);
    stop();
}

/* Tiles have other pitches on devices than on the host, some are somewhere already, and there are
 * more than are on their way at once. */
static void tiles_of_any_shape_arrive(void **state)
{
    static const uint32_t shapes[][2] = {{32, 16}, {96, 16}, {8, 4}, {96, 1}, {1, 8}};
    static const filch_broadcast_way ways[] = {FILCH_BROADCAST_DEFAULT, FILCH_BROADCAST_TREE};
    (void)state;
    for (size_t s = 0; s < 2 * sizeof shapes / sizeof shapes[0]; s++) {
        filch_broadcast_desc how = FILCH_BROADCAST_DESC_INIT;
        filch_graph *first = NULL;
        start(JOINED);
        data = handle(shapes[s / 2][0], shapes[s / 2][1]);
        filch_tiling tiles = tiling();
        how.way = ways[s % 2];
        how.piece = 4096;
        /* Where the host has all of it, device 1 one tile of it, and device 3 another. */
        first = graph();
        add(first, takes, 1, 0, 0, FILCH_READ, results[1]);
        add(first, takes, 3, (uint32_t)tiles.rows - 1, (uint32_t)tiles.cols - 1, FILCH_READ,
            results[3]);
        finish(submit(first), FILCH_OK);
        uint64_t tile = (uint64_t)shapes[s / 2][0] * shapes[s / 2][1] * sizeof *x;
        fakecuda_reset();
        broadcast(&how);
        for (int d = 0; d < GPUS; d++)
            assert_int_equal(got(d), BYTES - (d % 2 == 1 ? tile : 0));
        for (uint32_t d = 0; d < GPUS; d++)
            expect_on(d, false, 0);
        /* All of it by one device; then one tile alone. */
        make_on(2);
        fakecuda_reset();
        how.one_tile = 1;
        how.row = (uint32_t)tiles.rows - 1;
        how.col = (uint32_t)tiles.cols / 2;
        broadcast(&how);
        for (int d = 0; d < GPUS; d++)
            assert_int_equal(got(d), d != 2 ? tile : 0);
        expect_on(1, true, BYTES - tile);
        how = (filch_broadcast_desc)FILCH_BROADCAST_DESC_INIT;
        broadcast(&how);
        for (uint32_t d = 0; d < GPUS; d++)
            expect_on(d, true, 0);
        stop();
    }
}

/* What was never anywhere but on a device; the host's buffer comes about when it is a relay. */
static void a_handle_without_a_buffer_arrives(void **state)
{
    static const char *const machines[] = {JOINED, APART};
    (void)state;
    for (int m = 0; m < 2; m++) {
        filch_data_desc desc = FILCH_DATA_DESC_INIT;
        filch_error error = FILCH_ERROR_INIT;
        start(machines[m]);
        desc.element = sizeof *x;
        desc.rows = ROWS;
        desc.cols = COLS;
        desc.tile_rows = 32;
        desc.tile_cols = 16;
        desc.flags = FILCH_DATA_NO_BUFFER;
        desc.label = "bare";
        assert_ok(filch_data_create(runtime, &desc, &data));
        assert_int_equal(filch_data_broadcast(data, NULL, NULL, NULL), FILCH_WRONG_STATE);
        assert_ok(filch_runtime_error(runtime, &error));
        assert_string_equal(error.label, "bare");
        make_on(1);
        fakecuda_reset();
        broadcast(NULL);
        for (int d = 0; d < GPUS; d++)
            assert_int_equal(got(d), d != 1 ? BYTES : 0);
        assert_int_equal(got(-1), m == 1 ? BYTES : 0);
        for (uint32_t d = 0; d < GPUS; d++)
            expect_on(d, true, 0);
        stop();
    }
}

/* --- In order with others --- */

static int make_while_held(const filch_call *call)
{
    (void)hold(call);
    return make(call);
}

static void it_runs_in_its_turn(void **state)
{
    filch_drive drives[] = {FILCH_DRIVE_THREADS, FILCH_DRIVE_POLL};
    (void)state;
    for (int k = 0; k < 2; k++) {
        start_driven("cuda", JOINED, drives[k]);
        data = handle(32, 16);
        fakecuda_register_filch("make", make_while_held, 1, false, 0);
        filch_codelet *held = codelet("make");
        filch_graph *writes = graph(), *reads = graph();
        uint64_t sum = 0;
        atomic_store(&is_held, 1);
        for (uint32_t t = 0; t < 12; t++)
            add(writes, held, 1, t % 3, t / 3, FILCH_WRITE, NULL);
        add(reads, takes, 3, 1, 2, FILCH_READ, results[3]);
        filch_job *writing = submit(writes), *first = begin(NULL), *reading = submit(reads);
        filch_job *second = begin(NULL);
        assert_int_equal(filch_job_status(first), FILCH_NOT_READY);
        assert_int_equal(filch_data_acquire(data, FILCH_READ), FILCH_BUSY);
        assert_int_equal(filch_data_destroy(data), FILCH_BUSY);
        atomic_store(&is_held, 0);
        finish(second, FILCH_OK);
        finish(writing, FILCH_OK);
        finish(first, FILCH_OK);
        finish(reading, FILCH_OK);
        for (uint64_t c = 32; c < 48; c++) {
            for (uint64_t r = 32; r < 64; r++)
                sum = (sum + (c * ROWS + r) * 7 + 5) * UINT64_C(0x9e3779b97f4a7c15);
        }
        assert_int_equal(sums[3], sum);
        for (uint32_t d = 0; d < GPUS; d++)
            assert_true(got((int)d) <= BYTES + 2 * sizeof sums[0]);
        fakecuda_register_filch("make", make, 1, false, 0);
        stop();
    }
}

static void a_held_handle_is_refused(void **state)
{
    filch_job *job = NULL;
    (void)state;
    start(JOINED);
    data = handle(0, 0);
    assert_ok(filch_data_acquire(data, FILCH_WRITE));
    assert_int_equal(filch_data_broadcast(data, NULL, NULL, &job), FILCH_BUSY);
    assert_ok(filch_data_release(data));
    assert_ok(filch_data_broadcast(data, NULL, NULL, NULL)); /* nobody waits for it */
    assert_ok(filch_runtime_drain(runtime, SOON));
    expect_on(3, false, 0);
    stop();
}

static void count_call(filch_job *job, filch_status status, void *user)
{
    (void)job;
    *(filch_status *)user = status;
}

static void a_cancelled_one_is_as_if_it_never_was(void **state)
{
    filch_submit_desc how = FILCH_SUBMIT_DESC_INIT;
    filch_status status = FILCH_NOT_READY;
    (void)state;
    start(JOINED);
    data = handle(32, 16);
    filch_graph *before = graph();
    atomic_store(&is_held, 1);
    add(before, holds, 0, 0, 0, FILCH_READWRITE, NULL);
    filch_job *holding = submit(before), *job = NULL;
    how.on_complete = count_call;
    how.user = &status;
    assert_ok(filch_data_broadcast(data, NULL, &how, &job));
    assert_ok(filch_job_cancel(job));
    atomic_store(&is_held, 0);
    finish(holding, FILCH_OK);
    finish(job, FILCH_CANCELLED);
    assert_int_equal(status, FILCH_CANCELLED);
    assert_int_equal(got(2), 0);
    expect_on(2, false, BYTES);
    stop();
}

/* --- Failures --- */

/* Whichever copy fails: nothing that did not arrive is valid, and what was there still is. */
static void any_copy_may_fail(void **state)
{
    static const struct {
        const char *fake, *call;
        uint64_t copies;
    } cases[] = {
        {JOINED, "cuMemcpyPeerAsync", 18},
        {JOINED, "cuStreamWaitEvent", 12},
        {PAIRS, "cuMemcpyDtoHAsync", 6},
        {PAIRS, "cuMemcpyHtoDAsync", 6},
    };
    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        for (uint64_t nth = 1; nth <= cases[k].copies; nth++) {
            filch_broadcast_desc how = FILCH_BROADCAST_DESC_INIT;
            filch_error error = FILCH_ERROR_INIT;
            start(cases[k].fake);
            data = handle(0, 0);
            broadcast(NULL); /* so that there is memory: to take it may wait for the device */
            make_on(0);
            fakecuda_reset();
            fakecuda_fail(cases[k].call, nth, 1, 1, -1, false);
            how.way = FILCH_BROADCAST_CHAIN;
            how.piece = 8192;
            if (k < 2)
                fakecuda_hold(); /* what is past already is not waited for */
            filch_job *job = begin(&how);
            fakecuda_release();
            assert_int_equal(filch_job_wait(job, SOON), FILCH_TASK_FAILED);
            assert_ok(filch_job_error(job, &error));
            assert_string_equal(error.call, cases[k].call);
            assert_string_equal(error.label, "x");
            assert_memory_equal(error.device, "cuda:", 5);
            assert_int_equal(error.status, FILCH_BACKEND);
            assert_ok(filch_job_release(job));
            for (uint32_t d = 1; d < GPUS; d++) {
                uint64_t moved;
                look_on(d, true, &moved);
                assert_true(moved >= BYTES); /* it was not there */
            }
            broadcast(NULL);
            for (uint32_t d = 0; d < GPUS; d++)
                expect_on(d, true, 0);
            stop();
        }
    }
}

/* A device in the middle of the chain is lost with a copy on its way: those behind it may have got
 * anything. */
static void a_device_may_be_lost_on_the_way(void **state)
{
    (void)state;
    for (int victim = 0; victim < GPUS; victim++) {
        filch_broadcast_desc how = FILCH_BROADCAST_DESC_INIT;
        filch_error error = FILCH_ERROR_INIT;
        start(JOINED);
        data = handle(0, 0);
        broadcast(&(filch_broadcast_desc){
            .size = sizeof how, .devices = (const uint32_t[]){0}, .device_count = 1});
        fakecuda_fail("copy", 2, 1, 700, victim, true);
        how.way = FILCH_BROADCAST_CHAIN;
        how.piece = 8192;
        filch_job *job = begin(&how);
        /* The first device only sends. */
        assert_int_equal(filch_job_wait(job, SOON), victim == 0 ? FILCH_OK : FILCH_TASK_FAILED);
        if (victim != 0) {
            assert_ok(filch_job_error(job, &error));
            assert_int_equal(error.status, FILCH_DEVICE_LOST);
            assert_int_equal(error.device[5], '0' + victim);
        }
        assert_ok(filch_job_release(job));
        for (uint32_t d = 0; victim != 0 && d < GPUS; d++) {
            uint64_t moved;
            if ((int)d == victim)
                continue;
            look_on(d, false, &moved);
            assert_int_equal(moved, d == 0 ? 0 : BYTES);
        }
        fakecuda_reset();
        assert_ok(filch_runtime_destroy(runtime));
        (void)fakecuda_forgive();
    }
}

static void memory_may_be_out(void **state)
{
    filch_error error = FILCH_ERROR_INIT;
    (void)state;
    start(JOINED);
    data = handle(0, 0);
    fakecuda_fail_memory(2);
    filch_job *job = begin(NULL);
    assert_int_equal(filch_job_wait(job, SOON), FILCH_TASK_FAILED);
    assert_ok(filch_job_error(job, &error));
    assert_int_equal(error.status, FILCH_NO_DEVICE_MEMORY);
    assert_string_equal(error.device, "cuda:2");
    assert_ok(filch_job_release(job));
    fakecuda_reset();
    broadcast(NULL);
    expect_on(2, false, 0);
    stop();
}

/* What is in the way leaves: tiles of another handle, some of which are nowhere else. */
static void room_is_made(void **state)
{
    (void)state;
    memory_limit = BYTES + 8192;
    start(JOINED);
    data = handle(32, 16);
    make_on(1);
    filch_data *first = data;
    static uint64_t y[ROWS * COLS];
    filch_data_desc desc = FILCH_DATA_DESC_INIT;
    desc.ptr = y;
    desc.element = sizeof *y;
    desc.rows = ROWS;
    desc.cols = COLS;
    desc.tile_rows = 32;
    desc.tile_cols = 16;
    desc.flags = FILCH_DATA_MANAGED;
    memcpy(y, x, sizeof y);
    assert_ok(filch_data_create(runtime, &desc, &data));
    uint64_t moved; /* some, where the results of those who look take the last of the room */
    broadcast(NULL);
    for (int d = 0; d < GPUS; d++)
        assert_true(got(d) >= BYTES);
    for (uint32_t d = 0; d < GPUS; d++)
        look_on(d, false, &moved);
    data = first;
    broadcast(NULL);
    for (uint32_t d = 0; d < GPUS; d++)
        look_on(d, true, &moved);
    memory_limit = 0;
    stop();
}

/* A handle that no device can hold: the error tells, and all of it is still there. */
static void what_does_not_fit_is_told(void **state)
{
    filch_error error = FILCH_ERROR_INIT;
    (void)state;
    memory_limit = BYTES / 2;
    start(JOINED);
    data = handle(32, 16);
    filch_job *job = begin(NULL);
    assert_int_equal(filch_job_wait(job, SOON), FILCH_TASK_FAILED);
    assert_ok(filch_job_error(job, &error));
    assert_int_equal(error.status, FILCH_NO_DEVICE_MEMORY);
    assert_memory_equal(error.device, "cuda:", 5);
    assert_ok(filch_job_release(job));
    for (uint32_t d = 0; d < GPUS; d++) {
        uint64_t moved;
        look_on(d, false, &moved);
    }
    memory_limit = 0;
    stop();
}

/* --- Arguments --- */

static void refuse(const filch_broadcast_desc *how, filch_status status)
{
    filch_job *job = NULL;
    filch_error error = FILCH_ERROR_INIT;
    assert_int_equal(filch_data_broadcast(data, how, NULL, &job), status);
    assert_null(job);
    assert_ok(filch_runtime_error(runtime, &error));
    assert_int_equal(error.status, status);
    assert_string_equal(error.call, "filch_data_broadcast");
    assert_string_equal(error.label, "x");
}

static void bad_arguments_are_refused(void **state)
{
    static const uint32_t devices[] = {0, 4};
    static const filch_broadcast_desc bad[] = {
        {.size = sizeof bad[0] - 1},
        {.size = sizeof bad[0], .way = (filch_broadcast_way)4},
        {.size = sizeof bad[0], .reserved = 1},
        {.size = sizeof bad[0], .row = 1},
        {.size = sizeof bad[0], .device_count = 1},
        {.size = sizeof bad[0], .devices = devices},
        {.size = sizeof bad[0], .piece = 4095},
    };
    filch_broadcast_desc how = FILCH_BROADCAST_DESC_INIT;
    filch_data_desc desc = FILCH_DATA_DESC_INIT;
    filch_submit_desc submission = FILCH_SUBMIT_DESC_INIT;
    (void)state;
    start(JOINED);
    data = handle(48, 32);
    for (size_t k = 0; k < sizeof bad / sizeof bad[0]; k++)
        refuse(&bad[k], FILCH_INVALID_ARGUMENT);
    how.devices = devices;
    how.device_count = 2;
    refuse(&how, FILCH_BAD_INDEX);
    how.device_count = 1;
    how.one_tile = 1;
    how.row = 2;
    refuse(&how, FILCH_BAD_INDEX);
    how.row = 1;
    how.col = 2;
    refuse(&how, FILCH_BAD_INDEX);
    how.col = 1;
    broadcast(&how);
    assert_int_equal(got(0), BYTES / 4);
    submission.size = 1;
    assert_int_equal(filch_data_broadcast(data, &how, &submission, NULL), FILCH_INVALID_ARGUMENT);
    assert_int_equal(filch_data_broadcast(NULL, &how, NULL, NULL), FILCH_INVALID_HANDLE);
    desc.ptr = x;
    desc.element = 1;
    desc.rows = 1;
    desc.label = "x";
    assert_ok(filch_data_create(runtime, &desc, &data));
    refuse(NULL, FILCH_UNSUPPORTED);
    stop();
}

/* Where the host's memory is all there is, there is nothing to do. */
static void without_gpus_there_is_nothing_to_do(void **state)
{
    filch_runtime_desc config = FILCH_RUNTIME_DESC_INIT;
    filch_submit_desc how = FILCH_SUBMIT_DESC_INIT;
    filch_status status = FILCH_NOT_READY;
    (void)state;
    config.devices = "host:2";
    assert_ok(filch_runtime_create(&config, NULL, &runtime));
    data = handle(32, 16);
    how.on_complete = count_call;
    how.user = &status;
    assert_ok(filch_data_broadcast(data, NULL, &how, NULL));
    assert_int_equal(status, FILCH_OK);
    broadcast(&(filch_broadcast_desc){
        .size = sizeof(filch_broadcast_desc), .devices = (const uint32_t[]){1}, .device_count = 1});
    assert_ok(filch_runtime_destroy(runtime));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_chain_begins_at_the_host),
        cmocka_unit_test(pieces_are_handed_on),
        cmocka_unit_test(better_links_come_first),
        cmocka_unit_test(what_is_apart_goes_through_the_host),
        cmocka_unit_test(places_count_once),
        cmocka_unit_test(tiles_of_any_shape_arrive),
        cmocka_unit_test(a_handle_without_a_buffer_arrives),
        cmocka_unit_test(it_runs_in_its_turn),
        cmocka_unit_test(a_held_handle_is_refused),
        cmocka_unit_test(a_cancelled_one_is_as_if_it_never_was),
        cmocka_unit_test(any_copy_may_fail),
        cmocka_unit_test(a_device_may_be_lost_on_the_way),
        cmocka_unit_test(memory_may_be_out),
        cmocka_unit_test(room_is_made),
        cmocka_unit_test(what_does_not_fit_is_told),
        cmocka_unit_test(bad_arguments_are_refused),
        cmocka_unit_test(without_gpus_there_is_nothing_to_do),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
