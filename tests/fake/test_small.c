/* SPDX-License-Identifier: Apache-2.0 */
/* Small results to the host: on a lane of their own they wait for no large copy queued before, and
 * keep their order with what uses the same bytes. On the fake driver, whose streams can be held up
 * one by one. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>

#include "backend/cuda/device.h"
#include "backend/cuda/queue/lane.h"
#include "bench.h"
#include "memory/tiles/tiles.h"
#include "runtime.h"

#include "fake.h"
#include "jobs.h"

#define MIB ((size_t)1 << 20)
#define FAKE "{\"devices\": [{\"count\": 2}]}"
/* Elements of a large vector, and of one whose last tile is small. */
#define LARGE (4 * MIB / sizeof(uint64_t))
#define TILE (FL_SMALL_BYTES / sizeof(uint64_t) + 1)

typedef struct way {
    filch_drive drive;
    const char *helpers;
} way;

static const way ways[] = {
    {FILCH_DRIVE_THREADS, "3"}, {FILCH_DRIVE_THREADS, "0"}, {FILCH_DRIVE_POLL, ""}};
enum { WAYS = sizeof ways / sizeof ways[0] };

static void start_way(const char *devices, way how)
{
    (void)setenv("FILCH_STAGE_THREADS", how.helpers, 1);
    start_driven(devices, "1", FAKE, how.drive);
}

/* --- Streams held up --- */

static _Atomic int gates[FL_LANES]; /* 1: closed */

static int pass_gate(void *gate)
{
    const struct timespec nap = {0, 100000};
    while (atomic_load((_Atomic int *)gate) != 0)
        (void)nanosleep(&nap, NULL);
    return 0;
}

static fl_device *device(void)
{
    return &runtime->pool.devices[0];
}

static fl_cuda_lane *lane(uint32_t index)
{
    return &fl_cuda_of(device())->lanes->lane[index];
}

/* What is put on the lane from now on waits until the gate is opened. */
static void close_gate(uint32_t index)
{
    fl_stay stay;
    assert_ok(device()->backend->device->enter(device(), &stay, NULL));
    atomic_store(&gates[index], 1);
    assert_int_equal(fakecuda_enqueue(lane(index)->stream, pass_gate, &gates[index]), 0);
    device()->backend->device->leave(&stay);
}

static void open_gate(uint32_t index)
{
    atomic_store(&gates[index], 0);
}

/* Where the host drives, the test does. */
static void poll_where(way how)
{
    if (how.drive == FILCH_DRIVE_POLL)
        (void)filch_runtime_poll(runtime, 0, NULL);
    sched_yield();
}

static void await_issued(way how, uint32_t index, uint64_t count)
{
    while (fl_load_relaxed(&lane(index)->issued) < count)
        poll_where(how);
}

/* --- Copies of the test's own --- */

/* To the host, as a whole of its own. */
static fl_marker put_out(const bench *b, void *host, size_t offset, size_t bytes)
{
    return bench_put_part(b, host, offset, bytes, bytes, false, 0);
}

static bench filled(size_t bytes)
{
    bench b = bench_lay(device(), bytes);
    uint8_t *from = malloc(bytes);
    assert_non_null(from);
    for (size_t i = 0; i < bytes; i++)
        from[i] = (uint8_t)(i / 4096 + 1);
    bench_await(&b, bench_put(&b, from, 0, bytes, true));
    free(from);
    return b;
}

static void *host_memory(size_t bytes, bool is_pinned)
{
    void *host = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(host != MAP_FAILED);
    if (is_pinned)
        assert_ok(device()->backend->interop->pin(device(), host, bytes, "a test", NULL));
    return host;
}

static void free_memory(void *host, size_t bytes, bool is_pinned)
{
    if (is_pinned)
        device()->backend->interop->unpin(device(), host);
    assert_int_equal(munmap(host, bytes), 0);
}

/* --- Overtaking --- */

/* A job is over once its small result is home, though a large result of a job before is still on
 * its way. */
static void a_small_result_waits_for_no_large_one(void **state)
{
    (void)state;
    for (int k = 0; k < 2 * WAYS; k++) {
        const way how = ways[k / 2];
        const uint32_t flags = k % 2 == 0 ? 0 : FILCH_DATA_PIN;
        start_way("cuda:0", how);
        uint64_t *cells = calloc(LARGE, sizeof *cells);
        filch_codelet *bumps = on_gpu("bump");
        filch_graph *first = graph(), *second = graph();
        set(x, 5);
        filch_data *large = vector_of(runtime, cells, LARGE, 0, flags);
        add(first, bumps, FILCH_READWRITE, large, NULL, NULL);
        add(second, bumps, FILCH_READWRITE, handle_with(x, flags), NULL, NULL);
        close_gate(FL_LANE_OUT);
        filch_job *before = submit(first);
        await_issued(how, FL_LANE_OUT, 1);
        finish(submit(second), FILCH_OK);
        expect(x, 6);
        assert_int_equal(filch_job_wait(before, 0), FILCH_TIMEOUT);
        assert_int_equal(fl_load_relaxed(&lane(FL_LANE_SMALL)->issued), 1);
        open_gate(FL_LANE_OUT);
        finish(before, FILCH_OK);
        for (size_t i = 0; i < LARGE; i += 1000)
            assert_int_equal(cells[i], 1);
        assert_ok(filch_graph_destroy(first));
        assert_ok(filch_graph_destroy(second));
        assert_ok(filch_data_destroy(large));
        stop();
        free(cells);
    }
}

typedef struct parcel {
    const bench *bench;
    void *host;
    size_t bytes;
    fl_marker marker;
} parcel;

static void *send_parcel(void *argument)
{
    parcel *p = argument;
    p->marker = put_out(p->bench, p->host, 0, p->bytes);
    return NULL;
}

/* All slots for large pieces are taken, and a thread waits for one. */
static void a_small_result_needs_no_slot_of_large_ones(void **state)
{
    enum { PIECES = 5 }; /* of 3 MiB each, in a ring of 16 MiB */
    const size_t bytes = 24 * MIB;
    uint8_t small[4096];
    (void)state;
    for (int w = 0; w < WAYS; w++) {
        start_way("cuda:0", ways[w]);
        bench b = filled(bytes);
        parcel p = {.bench = &b, .host = host_memory(bytes, false), .bytes = bytes};
        pthread_t thread;
        close_gate(FL_LANE_OUT);
        assert_int_equal(pthread_create(&thread, NULL, send_parcel, &p), 0);
        while (fl_load_acquire(&lane(FL_LANE_OUT)->aboard) != PIECES)
            sched_yield();
        bench_await(&b, put_out(&b, small, 4096, sizeof small));
        for (size_t i = 0; i < sizeof small; i++)
            assert_int_equal(small[i], 2);
        assert_int_equal(fl_load_acquire(&lane(FL_LANE_OUT)->aboard), PIECES);
        open_gate(FL_LANE_OUT);
        assert_int_equal(pthread_join(thread, NULL), 0);
        bench_await(&b, p.marker);
        for (size_t i = 0; i < bytes; i += 4096)
            assert_int_equal(((uint8_t *)p.host)[i], (uint8_t)(i / 4096 + 1));
        free_memory(p.host, bytes, false);
        bench_clear(&b);
        stop();
    }
}

/* The largest that counts as small, and the smallest that does not. */
static void only_small_results_have_the_lane(void **state)
{
    (void)state;
    start_way("cuda:0", ways[0]);
    bench b = filled(MIB);
    void *host = host_memory(MIB, false);
    assert_int_equal(fl_marker_lane(put_out(&b, host, 0, FL_SMALL_BYTES)), FL_LANE_SMALL);
    assert_int_equal(fl_marker_lane(put_out(&b, host, 0, FL_SMALL_BYTES + 1)), FL_LANE_OUT);
    /* Who says nothing of a whole relies on the order of one lane. */
    assert_int_equal(fl_marker_lane(bench_put(&b, host, 0, 100, false)), FL_LANE_OUT);
    assert_int_equal(fl_marker_lane(bench_put(&b, host, 0, 100, true)), FL_LANE_IN);
    assert_ok(device()->backend->lane->drain(device(), NULL));
    free_memory(host, MIB, false);
    bench_clear(&b);
    stop();
}

/* --- Order --- */

/* Two copies to the same bytes: the second is home last, and not before the first. */
static void small_results_stay_in_order(void **state)
{
    enum { BYTES = 4096 };
    (void)state;
    for (int k = 0; k < 2 * WAYS; k++) {
        start_way("cuda:0", ways[k / 2]);
        bench b = filled((size_t)2 * BYTES);
        uint8_t *host = host_memory(BYTES, k % 2 != 0);
        close_gate(FL_LANE_SMALL);
        fl_marker first = put_out(&b, host, 0, BYTES), second = put_out(&b, host, BYTES, BYTES);
        assert_int_equal(fl_marker_lane(first), FL_LANE_SMALL);
        assert_true(second > first);
        assert_int_equal(bench_look(&b, second), FILCH_NOT_READY);
        open_gate(FL_LANE_SMALL);
        bench_await(&b, second);
        assert_true(device()->backend->lane->is_past(device(), first));
        for (size_t i = 0; i < BYTES; i++)
            assert_int_equal(host[i], 2);
        free_memory(host, BYTES, k % 2 != 0);
        bench_clear(&b);
        stop();
    }
}

/* Pieces of both lanes that lead to the same bytes land in the order of the calls, whichever lane
 * the device is past first. */
static void small_pieces_land_behind_large_ones_to_their_bytes(void **state)
{
    enum { BYTES = 1024, AT = 100 };
    (void)state;
    for (int w = 0; w < WAYS; w++) {
        start_way("cuda:0", ways[w]);
        bench b = filled(MIB);
        uint8_t *host = host_memory(MIB, false);
        close_gate(FL_LANE_OUT);
        fl_marker large = put_out(&b, host, 0, MIB);
        fl_marker small = put_out(&b, host + AT, 8192, BYTES);
        const uint64_t sequence = fl_marker_sequence(small);
        while (fl_load_acquire(&lane(FL_LANE_SMALL)->passed) < sequence)
            (void)bench_look(&b, small);
        for (int i = 0; i < 1000; i++)
            assert_int_equal(bench_look(&b, small), FILCH_NOT_READY);
        open_gate(FL_LANE_OUT);
        bench_await(&b, small); /* nobody asks for the large one */
        for (size_t i = 0; i < 4096; i++)
            assert_int_equal(host[i], i >= AT && i < AT + BYTES ? 3 : 1);
        bench_await(&b, large);
        free_memory(host, MIB, false);
        bench_clear(&b);
        stop();
    }
}

/* A copy in behind a small copy out of the same memory reads what has come. */
static void copies_in_wait_for_small_results(void **state)
{
    enum { BYTES = 1000 };
    (void)state;
    for (int w = 0; w < WAYS; w++) {
        start_way("cuda:0,cuda:1", ways[w]);
        bench from = filled(4096), to = bench_lay(&runtime->pool.devices[1], BYTES);
        uint8_t *relay = host_memory(BYTES, true), back[BYTES];
        close_gate(FL_LANE_SMALL);
        fl_marker out = put_out(&from, relay, 0, BYTES);
        assert_int_equal(fl_marker_lane(out), FL_LANE_SMALL);
        fl_marker in = bench_put_behind(&to, relay, 0, BYTES, true, out);
        for (int i = 0; i < 1000; i++)
            assert_int_equal(bench_look(&to, in), FILCH_NOT_READY);
        open_gate(FL_LANE_SMALL);
        bench_await(&to, bench_put_behind(&to, back, 0, BYTES, false, in));
        for (size_t i = 0; i < BYTES; i++)
            assert_int_equal(back[i], 1);
        bench_await(&from, out);
        free_memory(relay, BYTES, true);
        bench_clear(&from);
        bench_clear(&to);
        stop();
    }
}

/* The tiles of a block that is written back are on one lane: the last one's marker stands for all.
 */
static void tiles_of_a_block_go_home_together(void **state)
{
    enum { ROWS = TILE + 10 };
    (void)state;
    start_way("cuda:0", ways[0]);
    uint64_t *cells = calloc(ROWS, sizeof *cells);
    filch_data *data = vector_of(runtime, cells, ROWS, TILE, 0);
    const filch_access whole = FILCH_WHOLE(data, FILCH_READWRITE);
    filch_task_desc desc = FILCH_TASK_DESC_INIT;
    filch_graph *one = graph();
    desc.codelet = on_gpu("bump");
    desc.accesses = &whole;
    desc.access_count = 1;
    assert_ok(filch_graph_add(one, &desc, NULL));
    close_gate(FL_LANE_OUT);
    filch_job *job = submit(one);
    await_issued(ways[0], FL_LANE_OUT, 2);
    assert_int_equal(filch_job_wait(job, 0), FILCH_TIMEOUT);
    assert_int_equal(fl_load_relaxed(&lane(FL_LANE_SMALL)->issued), 0);
    open_gate(FL_LANE_OUT);
    finish(job, FILCH_OK);
    for (size_t i = 0; i < ROWS; i++)
        assert_int_equal(cells[i], 1);
    assert_ok(filch_graph_destroy(one));
    assert_ok(filch_data_destroy(data));
    stop();
    free(cells);
}

static void *open_later(void *argument)
{
    const struct timespec nap = {0, 2000000};
    (void)argument;
    (void)nanosleep(&nap, NULL);
    open_gate(FL_LANE_OUT);
    (void)nanosleep(&nap, NULL);
    open_gate(FL_LANE_SMALL);
    return NULL;
}

/* Before a copy of a tile on one lane, a copy of the tile on the other one is waited for. */
static void a_tile_changes_lanes_behind_its_copies(void **state)
{
    enum { BYTES = 4096 };
    static const uint32_t lanes[] = {FL_LANE_OUT, FL_LANE_SMALL};
    (void)state;
    start_way("cuda:0", ways[0]);
    bench b = filled(MIB);
    uint8_t *host = host_memory(MIB, true);
    for (uint32_t i = 0; i < 2; i++) {
        pthread_t thread;
        close_gate(FL_LANE_OUT);
        close_gate(FL_LANE_SMALL);
        fl_replica replica = {.ready = put_out(&b, host, 0, i == 0 ? MIB : BYTES)};
        assert_int_equal(fl_marker_lane(replica.ready), lanes[i]);
        fl_replica_clear(runtime->core.places, &replica, device(), lanes[i]); /* in order anyhow */
        assert_int_equal(bench_look(&b, replica.ready), FILCH_NOT_READY);
        assert_int_equal(pthread_create(&thread, NULL, open_later, NULL), 0);
        fl_replica_clear(runtime->core.places, &replica, device(), lanes[1 - i]);
        assert_ok(bench_look(&b, replica.ready));
        assert_int_equal(pthread_join(thread, NULL), 0);
    }
    free_memory(host, MIB, true);
    bench_clear(&b);
    stop();
}

/* number(to): each element is its number. */
static int number(const filch_call *call)
{
    uint64_t *to = call->views[0].ptr;
    for (uint64_t i = 0; i < call->views[0].rows; i++)
        to[i] = call->views[0].row + i;
    return 0;
}

/* Adds a task with one access. */
static void add_on(filch_graph *to, filch_codelet *codelet, filch_access access)
{
    filch_task_desc desc = FILCH_TASK_DESC_INIT;
    desc.codelet = codelet;
    desc.accesses = &access;
    desc.access_count = 1;
    assert_ok(filch_graph_add(to, &desc, NULL));
}

/* Opens the small lane behind the large results, or once the runtime does nothing but ask whether
 * the small one is home. */
static void *open_small(void *argument)
{
    enum { LAUNCHES = 3, TILES = 2, LOOKS = 200 };
    fl_cuda_lane *out = lane(FL_LANE_OUT);
    (void)argument;
    while (fakecuda_count("cuLaunchKernel") < LAUNCHES)
        sched_yield();
    const uint64_t looks = fakecuda_count("cuEventQuery") + LOOKS;
    while (fl_load_relaxed(&out->issued) == 0 && fakecuda_count("cuEventQuery") < looks)
        sched_yield();
    while (fl_load_relaxed(&out->issued) != 0 && fl_load_acquire(&out->passed) < TILES)
        sched_yield();
    open_gate(FL_LANE_SMALL);
    return NULL;
}

/* Room for a block of two tiles and a tile, not for two blocks. */
static void start_full(way how)
{
    (void)setenv("FILCH_STAGE_THREADS", how.helpers, 1);
    (void)setenv("FILCH_MEMORY_LIMIT", "128K", 1);
    (void)setenv("FILCH_ARENA", "plain", 1);
    start_driven("cuda:0", "2", FAKE, how.drive);
    (void)unsetenv("FILCH_MEMORY_LIMIT");
    (void)unsetenv("FILCH_ARENA");
    fakecuda_register_filch("number", number, 1, false, 0);
}

/* A tile leaves a full memory as a small result, and is written anew there in a block that goes
 * home as a large one: the block is home last. */
static void a_block_goes_home_behind_a_tile_that_left(void **state)
{
    enum { ROWS = 5120 }; /* of a tile: 40 KiB, and 80 KiB of two */
    const size_t bytes = (size_t)2 * ROWS * sizeof(uint64_t);
    (void)state;
    for (int w = 0; w < WAYS; w++) {
        start_full(ways[w]);
        uint64_t *cells = host_memory(bytes, false), *others = host_memory(bytes, false);
        filch_data *data = vector_of(runtime, cells, (uint64_t)2 * ROWS, ROWS, FILCH_DATA_PIN);
        filch_data *other = vector_of(runtime, others, (uint64_t)2 * ROWS, 0, FILCH_DATA_PIN);
        filch_codelet *numbers =
            codelet_of(runtime, "FAKECUBIN arch=90 entry=number", "number", NULL, 0);
        filch_graph *holder = graph(), *writer = graph();
        pthread_t thread;
        add_on(holder, on_gpu("hold"), (filch_access)FILCH_WHOLE(other, FILCH_READ));
        add_on(writer, on_gpu("bump"), (filch_access){.data = data, .mode = FILCH_READWRITE});
        add_on(writer, numbers, (filch_access)FILCH_WHOLE(data, FILCH_WRITE));
        close_gate(FL_LANE_SMALL);
        atomic_store(&is_held, 1);
        filch_job *first = submit(holder);
        while (atomic_load(&holds) == 0)
            poll_where(ways[w]);
        filch_job *second = submit(writer);
        await_issued(ways[w], FL_LANE_SMALL, 1); /* the tile leaves */
        assert_int_equal(fakecuda_count("cuLaunchKernel"), 2);
        assert_int_equal(pthread_create(&thread, NULL, open_small, NULL), 0);
        atomic_store(&is_held, 0); /* now what was held may leave, too */
        finish(first, FILCH_OK);
        finish(second, FILCH_OK);
        assert_int_equal(pthread_join(thread, NULL), 0);
        assert_ok(device()->backend->lane->drain(device(), NULL));
        assert_int_equal(fl_load_relaxed(&lane(FL_LANE_SMALL)->issued), 1);
        assert_int_equal(fl_load_relaxed(&lane(FL_LANE_OUT)->issued), 2);
        for (size_t i = 0; i < (size_t)2 * ROWS; i++)
            assert_int_equal(cells[i], i);
        assert_ok(filch_graph_destroy(holder));
        assert_ok(filch_graph_destroy(writer));
        assert_ok(filch_data_destroy(data));
        assert_ok(filch_data_destroy(other));
        stop();
        free_memory(cells, bytes, false);
        free_memory(others, bytes, false);
    }
}

/* --- Ends --- */

/* A drain waits for both lanes, and for what has to land from either. */
static void a_drain_waits_for_both_lanes(void **state)
{
    enum { BYTES = 4096 };
    (void)state;
    for (int k = 0; k < 2 * WAYS; k++) {
        start_way("cuda:0", ways[k / 2]);
        bench b = filled(MIB);
        uint8_t *large = host_memory(MIB, k % 2 != 0), *small = host_memory(BYTES, k % 2 != 0);
        pthread_t thread;
        close_gate(FL_LANE_OUT);
        close_gate(FL_LANE_SMALL);
        (void)put_out(&b, large, 0, MIB);
        (void)put_out(&b, small, BYTES, BYTES);
        assert_int_equal(pthread_create(&thread, NULL, open_later, NULL), 0);
        assert_ok(device()->backend->lane->drain(device(), NULL));
        assert_int_equal(large[MIB - 1], (uint8_t)(MIB / 4096));
        assert_int_equal(small[BYTES - 1], 2);
        assert_int_equal(pthread_join(thread, NULL), 0);
        free_memory(large, MIB, k % 2 != 0);
        free_memory(small, BYTES, k % 2 != 0);
        bench_clear(&b);
        stop();
    }
}

/* Tasks that change a large vector and a small one. */
typedef struct pair {
    uint64_t *large, *small;
    filch_data *data[2];
    filch_graph *graph;
} pair;

static size_t bytes_of(int which)
{
    return which == 0 ? LARGE * sizeof(uint64_t) : 4096;
}

static pair make_pair(uint32_t flags)
{
    pair p = {host_memory(bytes_of(0), false), host_memory(bytes_of(1), false), {NULL}, graph()};
    filch_codelet *bumps = on_gpu("bump");
    p.data[0] = vector_of(runtime, p.large, LARGE, LARGE / 4, flags);
    p.data[1] = vector_of(runtime, p.small, bytes_of(1) / sizeof(uint64_t), 64, flags);
    for (int which = 0; which < 2; which++)
        for (uint32_t row = 0; row < (which == 0 ? 4u : 8u); row++) {
            filch_access access = {.data = p.data[which], .row = row, .mode = FILCH_READWRITE};
            filch_task_desc desc = FILCH_TASK_DESC_INIT;
            desc.codelet = bumps;
            desc.accesses = &access;
            desc.access_count = 1;
            assert_ok(filch_graph_add(p.graph, &desc, NULL));
        }
    return p;
}

/* The buffers are their owner's again: nobody writes there. */
static void check_quiet(const pair *p)
{
    const struct timespec nap = {0, 2000000};
    assert_int_equal(mprotect(p->large, bytes_of(0), PROT_NONE), 0);
    assert_int_equal(mprotect(p->small, bytes_of(1), PROT_NONE), 0);
    (void)nanosleep(&nap, NULL);
}

static void drop_pair(const pair *p)
{
    assert_ok(filch_graph_destroy(p->graph));
    assert_ok(filch_data_destroy(p->data[0]));
    assert_ok(filch_data_destroy(p->data[1]));
}

static void unmap_pair(const pair *p)
{
    assert_int_equal(munmap(p->large, bytes_of(0)), 0);
    assert_int_equal(munmap(p->small, bytes_of(1)), 0);
}

/* A cancelled job is over when both lanes are done with its results. */
static void a_cancelled_job_has_nothing_on_either_lane(void **state)
{
    (void)state;
    for (int w = 0; w < WAYS; w++) {
        start_way("cuda:0", ways[w]);
        pair p = make_pair(0);
        pthread_t thread;
        close_gate(FL_LANE_OUT);
        close_gate(FL_LANE_SMALL);
        filch_job *job = submit(p.graph);
        await_issued(ways[w], FL_LANE_OUT, 1);
        await_issued(ways[w], FL_LANE_SMALL, 1);
        assert_ok(filch_job_cancel(job));
        assert_int_equal(filch_job_wait(job, 0), FILCH_TIMEOUT);
        assert_int_equal(pthread_create(&thread, NULL, open_later, NULL), 0);
        filch_status status = filch_job_wait(job, SOON);
        check_quiet(&p);
        assert_true(status == FILCH_OK || status == FILCH_CANCELLED);
        assert_int_equal(pthread_join(thread, NULL), 0);
        assert_ok(filch_job_release(job));
        drop_pair(&p);
        stop();
        unmap_pair(&p);
    }
}

/* Once a job is told of the loss, nothing lands from either lane. */
static void nothing_lands_from_either_lane_after_a_loss(void **state)
{
    (void)state;
    for (int k = 0; k < 2 * WAYS; k++) {
        for (uint64_t nth = 1; nth <= 36; nth += 5) {
            start_way("cuda:0", ways[k / 2]);
            pair p = make_pair(0);
            fakecuda_fail("copy", nth, 1, FL_CUDA_ERROR_ILLEGAL_ADDRESS, -1, true);
            filch_job *job = submit(p.graph);
            filch_status status = filch_job_wait(job, SOON);
            check_quiet(&p);
            assert_true(status == FILCH_OK || status == FILCH_TASK_FAILED);
            assert_true(status != FILCH_OK || nth > 12); /* there are as many tiles at least */
            assert_ok(filch_job_release(job));
            drop_pair(&p);
            stop();
            unmap_pair(&p);
        }
    }
}

/* Who is told of the loss by the small lane may take the buffer away. */
static void landings_of_small_results_are_over_when_the_loss_is_told(void **state)
{
    enum { BYTES = 65536 };
    (void)state;
    for (int round = 0; round < 30; round++) {
        start_way("cuda:0", ways[0]);
        bench b = filled(BYTES);
        uint8_t *host = host_memory(BYTES, false);
        filch_status status;
        fl_marker marker = put_out(&b, host, 0, BYTES);
        const uint64_t until = fl_time_now() + (uint64_t)round * 2000;
        while (fl_time_now() < until)
            fl_relax();
        (void)fl_cuda_lose(fl_cuda_of(b.device)->gpu, FL_CUDA_ERROR_ILLEGAL_ADDRESS, "a test", NULL,
                           NULL);
        while ((status = bench_look(&b, marker)) == FILCH_NOT_READY)
            fl_relax();
        assert_int_equal(mprotect(host, BYTES, PROT_NONE), 0);
        assert_true(status == FILCH_OK || status == FILCH_DEVICE_LOST);
        (void)b.device->backend->lane->drain(b.device, NULL); /* it was not lost in truth */
        bench_clear(&b);
        stop();
        assert_int_equal(munmap(host, BYTES), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_small_result_waits_for_no_large_one),
        cmocka_unit_test(a_small_result_needs_no_slot_of_large_ones),
        cmocka_unit_test(only_small_results_have_the_lane),
        cmocka_unit_test(small_results_stay_in_order),
        cmocka_unit_test(small_pieces_land_behind_large_ones_to_their_bytes),
        cmocka_unit_test(copies_in_wait_for_small_results),
        cmocka_unit_test(tiles_of_a_block_go_home_together),
        cmocka_unit_test(a_tile_changes_lanes_behind_its_copies),
        cmocka_unit_test(a_block_goes_home_behind_a_tile_that_left),
        cmocka_unit_test(a_drain_waits_for_both_lanes),
        cmocka_unit_test(a_cancelled_job_has_nothing_on_either_lane),
        cmocka_unit_test(nothing_lands_from_either_lane_after_a_loss),
        cmocka_unit_test(landings_of_small_results_are_over_when_the_loss_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
