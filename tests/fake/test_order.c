/* SPDX-License-Identifier: Apache-2.0 */
/* Streams are asynchronous and keep exactly the orders that a driver keeps. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "fake.h"
#include "random.h"

#define DEVICES 2
#define STREAMS 6
#define CELLS 12
#define EVENTS 2 /* a stream, used in turn: an event is recorded anew while others wait for it */

#define IMAGE "FAKECUBIN arch=90 entry=mix(8,8,8),meet(8,8),fail"

typedef struct world {
    CUcontext contexts[DEVICES];
    CUfunction mix[DEVICES], meet[DEVICES], fail[DEVICES];
    CUmodule modules[DEVICES];
    CUstream streams[STREAMS]; /* stream s is of device s % DEVICES */
    CUevent events[STREAMS][EVENTS];
    CUdeviceptr cells[CELLS];
} world;

static void must(CUresult result)
{
    assert_int_equal(result, FL_CUDA_SUCCESS);
}

static uint64_t mixed(uint64_t to, uint64_t from, uint64_t by)
{
    return (to ^ (from + by)) * 0x9e3779b97f4a7c15u + (from >> 7);
}

/* mix(to, from, by) */
static int mix_twin(void **params, const fakecuda_geometry *geometry)
{
    uint64_t *to = fakecuda_map(*(void **)params[0], sizeof *to);
    const uint64_t *from = fakecuda_map(*(void **)params[1], sizeof *from);

    (void)geometry;
    if (to == NULL || from == NULL)
        return 1;
    *to = mixed(*to, *from, *(uint64_t *)params[2]);
    return 0;
}

/* meet(mine, yours): ends only if two of it run at the same time. */
static int meet_twin(void **params, const fakecuda_geometry *geometry)
{
    _Atomic int *mine = *(void **)params[0];
    _Atomic int *yours = *(void **)params[1];

    (void)geometry;
    atomic_store(mine, 1);
    while (atomic_load(yours) == 0)
        ;
    return 0;
}

static int fail_twin(void **params, const fakecuda_geometry *geometry)
{
    (void)params;
    (void)geometry;
    return 1;
}

static void bind(world *w, uint32_t device)
{
    must(cuCtxSetCurrent(w->contexts[device]));
}

static int make(void **state)
{
    world *w = calloc(1, sizeof *w);

    assert_non_null(w);
    *state = w;
    fakecuda_register("mix", mix_twin, 0, NULL);
    fakecuda_register("meet", meet_twin, 0, NULL);
    fakecuda_register("fail", fail_twin, 0, NULL);
    assert_true(fakecuda_configure(NULL));
    must(cuInit(0));
    for (uint32_t d = 0; d < DEVICES; d++) {
        must(cuDevicePrimaryCtxRetain(&w->contexts[d], (CUdevice)d));
        bind(w, d);
        must(cuModuleLoadDataEx(&w->modules[d], IMAGE, 0, NULL, NULL));
        must(cuModuleGetFunction(&w->mix[d], w->modules[d], "mix"));
        must(cuModuleGetFunction(&w->meet[d], w->modules[d], "meet"));
        must(cuModuleGetFunction(&w->fail[d], w->modules[d], "fail"));
    }
    for (uint32_t d = 0; d < DEVICES; d++) {
        bind(w, d);
        must(cuCtxEnablePeerAccess(w->contexts[1 - d], 0));
    }
    for (uint32_t s = 0; s < STREAMS; s++) {
        bind(w, s % DEVICES);
        must(cuStreamCreate(&w->streams[s], FL_CU_STREAM_NON_BLOCKING));
        for (uint32_t e = 0; e < EVENTS; e++)
            must(cuEventCreate(&w->events[s][e], e == 0 ? 0 : FL_CU_EVENT_DISABLE_TIMING));
    }
    for (uint32_t c = 0; c < CELLS; c++) {
        bind(w, c % DEVICES);
        must(cuMemAlloc_v2(&w->cells[c], sizeof(uint64_t)));
        memset(fakecuda_peek((void *)(uintptr_t)w->cells[c], 8), 0, 8);
    }
    return 0;
}

static int unmake(void **state)
{
    world *w = *state;

    for (uint32_t c = 0; c < CELLS; c++) {
        bind(w, c % DEVICES);
        (void)cuMemFree_v2(w->cells[c]);
    }
    for (uint32_t s = 0; s < STREAMS; s++) {
        bind(w, s % DEVICES);
        (void)cuStreamDestroy_v2(w->streams[s]);
        for (uint32_t e = 0; e < EVENTS; e++)
            (void)cuEventDestroy_v2(w->events[s][e]);
    }
    for (uint32_t d = 0; d < DEVICES; d++) {
        bind(w, d);
        (void)cuModuleUnload(w->modules[d]);
    }
    (void)cuCtxSetCurrent(NULL);
    for (int d = 0; d < DEVICES; d++)
        (void)cuDevicePrimaryCtxRelease_v2(d);
    free(w);
    assert_int_equal(fakecuda_violations(), 0);
    fakecuda_reset();
    return 0;
}

static void mix(world *w, uint32_t s, uint32_t to, uint32_t from, uint64_t by)
{
    void *params[] = {&w->cells[to], &w->cells[from], &by};

    must(cuLaunchKernel(w->mix[s % DEVICES], 1, 1, 1, 1, 1, 1, 0, w->streams[s], params, NULL));
}

static uint64_t *cell(world *w, uint32_t c)
{
    return fakecuda_peek((void *)(uintptr_t)w->cells[c], sizeof(uint64_t));
}

/* --- A random program against a sequential model --- */

typedef struct access {
    uint32_t stream, position; /* position: operations of that stream so far, from 1 */
} access;

typedef struct program {
    world *w;
    fl_random random;
    uint64_t model[CELLS];
    uint32_t issued[STREAMS];
    uint32_t seen[STREAMS][STREAMS]; /* [s][t]: how much of t is ordered before s's next */
    access written[CELLS];
    access read[CELLS][STREAMS];
    uint32_t turn[STREAMS];
} program;

/* Makes stream s wait for what stream t was given so far, if that is not ordered yet. */
static void order(program *p, uint32_t s, access behind)
{
    world *w = p->w;
    uint32_t t = behind.stream;

    if (behind.position == 0 || t == s || p->seen[s][t] >= behind.position)
        return;
    CUevent event = w->events[t][p->turn[t]++ % EVENTS];
    bind(w, t % DEVICES);
    must(cuEventRecord(event, w->streams[t]));
    bind(w, s % DEVICES);
    must(cuStreamWaitEvent(w->streams[s], event, 0));
    for (uint32_t u = 0; u < STREAMS; u++) {
        uint32_t known = u == t ? p->issued[t] : p->seen[t][u];
        if (known > p->seen[s][u])
            p->seen[s][u] = known;
    }
}

static void step(program *p)
{
    world *w = p->w;
    uint32_t s = fl_random_below(&p->random, STREAMS);
    uint32_t to = fl_random_below(&p->random, CELLS);
    uint32_t from = fl_random_below(&p->random, CELLS);

    order(p, s, p->written[to]);
    order(p, s, p->written[from]);
    for (uint32_t t = 0; t < STREAMS; t++)
        order(p, s, p->read[to][t]);
    bind(w, s % DEVICES);
    p->issued[s]++;
    if (fl_random_below(&p->random, 4) == 0) {
        must(cuMemcpyDtoDAsync_v2(w->cells[to], w->cells[from], 8, w->streams[s]));
        p->model[to] = p->model[from];
    } else {
        uint64_t by = fl_random_next(&p->random);
        mix(w, s, to, from, by);
        p->model[to] = mixed(p->model[to], p->model[from], by);
    }
    p->written[to] = (access){s, p->issued[s]};
    p->read[from][s] = (access){s, p->issued[s]};
}

static void programs_end_as_in_order(void **state)
{
    for (uint64_t seed = 1; seed <= 20; seed++) {
        program p = {.w = *state};
        fl_random_init(&p.random, seed, 0);
        for (uint32_t c = 0; c < CELLS; c++)
            p.model[c] = *cell(p.w, c);
        for (uint32_t i = 0; i < 400; i++)
            step(&p);
        for (uint32_t d = 0; d < DEVICES; d++) {
            bind(p.w, d);
            must(cuCtxSynchronize());
        }
        for (uint32_t c = 0; c < CELLS; c++) {
            if (*cell(p.w, c) != p.model[c])
                fail_msg("seed %llu: cell %u differs", (unsigned long long)seed, c);
        }
    }
}

/* --- Single orders --- */

static void streams_run_at_the_same_time(void **state)
{
    static _Atomic int flags[2];
    world *w = *state;
    void *a = &flags[0], *b = &flags[1];
    void *first[] = {&a, &b}, *second[] = {&b, &a};

    atomic_store(&flags[0], 0);
    atomic_store(&flags[1], 0);
    bind(w, 0);
    must(cuLaunchKernel(w->meet[0], 1, 1, 1, 1, 1, 1, 0, w->streams[0], first, NULL));
    must(cuLaunchKernel(w->meet[0], 1, 1, 1, 1, 1, 1, 0, w->streams[2], second, NULL));
    must(cuCtxSynchronize());
}

static void calls_return_before_work_is_done(void **state)
{
    world *w = *state;

    bind(w, 0);
    fakecuda_hold();
    must(cuMemsetD8Async(w->cells[0], 7, 8, w->streams[0]));
    must(cuEventRecord(w->events[0][0], w->streams[0]));
    assert_int_equal(cuStreamQuery(w->streams[0]), FL_CUDA_ERROR_NOT_READY);
    assert_int_equal(cuEventQuery(w->events[0][0]), FL_CUDA_ERROR_NOT_READY);
    assert_int_not_equal(*cell(w, 0), 0x0707070707070707u);
    fakecuda_release();
    must(cuEventSynchronize(w->events[0][0]));
    assert_int_equal(*cell(w, 0), 0x0707070707070707u);
    must(cuStreamQuery(w->streams[0]));
}

/* A wait is for the record before it, whatever is recorded after. */
static void waits_take_the_record_of_their_time(void **state)
{
    world *w = *state;
    CUevent event = w->events[0][0];

    bind(w, 0);
    fakecuda_hold();
    must(cuEventRecord(event, w->streams[0]));
    must(cuStreamWaitEvent(w->streams[2], event, 0));
    must(cuMemsetD8Async(w->cells[2], 1, 8, w->streams[2]));
    /* Would be a circle if the wait were for this one. */
    must(cuEventRecord(w->events[2][0], w->streams[2]));
    must(cuStreamWaitEvent(w->streams[0], w->events[2][0], 0));
    must(cuEventRecord(event, w->streams[0]));
    fakecuda_release();
    must(cuEventSynchronize(event));
    assert_int_equal(*cell(w, 2), 0x0101010101010101u);
}

static void an_event_never_recorded_is_past(void **state)
{
    world *w = *state;

    bind(w, 0);
    must(cuEventQuery(w->events[0][0]));
    must(cuStreamWaitEvent(w->streams[0], w->events[0][0], 0));
    must(cuStreamSynchronize(w->streams[0]));
}

static void a_destroyed_event_is_still_waited_for(void **state)
{
    world *w = *state;
    CUevent event;

    bind(w, 0);
    must(cuEventCreate(&event, FL_CU_EVENT_DISABLE_TIMING));
    fakecuda_hold();
    must(cuMemsetD8Async(w->cells[0], 1, 8, w->streams[0]));
    must(cuEventRecord(event, w->streams[0]));
    must(cuStreamWaitEvent(w->streams[2], event, 0));
    mix(w, 2, 2, 0, 0);
    must(cuEventDestroy_v2(event));
    uint64_t before = *cell(w, 2);
    fakecuda_release();
    must(cuStreamSynchronize(w->streams[2]));
    assert_int_equal(*cell(w, 2), mixed(before, 0x0101010101010101u, 0));
}

static void a_destroyed_stream_finishes_its_work(void **state)
{
    world *w = *state;
    CUstream stream;

    bind(w, 0);
    must(cuStreamCreate(&stream, FL_CU_STREAM_NON_BLOCKING));
    fakecuda_hold();
    must(cuMemsetD8Async(w->cells[0], 9, 8, stream));
    must(cuStreamDestroy_v2(stream));
    fakecuda_release();
    must(cuCtxSynchronize());
    assert_int_equal(*cell(w, 0), 0x0909090909090909u);
}

static void events_tell_durations(void **state)
{
    world *w = *state;
    CUevent first, last;
    float ms = -1;

    bind(w, 0);
    must(cuEventCreate(&first, FL_CU_EVENT_DEFAULT));
    must(cuEventCreate(&last, FL_CU_EVENT_DEFAULT));
    assert_int_equal(cuEventElapsedTime(&ms, first, last), FL_CUDA_ERROR_INVALID_HANDLE);
    must(cuEventRecord(first, w->streams[0]));
    fakecuda_hold();
    must(cuEventRecord(last, w->streams[0]));
    assert_int_equal(cuEventElapsedTime(&ms, first, last), FL_CUDA_ERROR_NOT_READY);
    fakecuda_release();
    must(cuEventSynchronize(last));
    must(cuEventElapsedTime(&ms, first, last));
    assert_true(ms >= 0);
    must(cuEventDestroy_v2(first));
    must(cuEventDestroy_v2(last));
}

/* --- Copies of host memory --- */

static void pageable_memory_is_taken_at_once(void **state)
{
    world *w = *state;
    uint64_t host = 5, back = 0;

    bind(w, 0);
    fakecuda_hold();
    must(cuMemcpyHtoDAsync_v2(w->cells[0], &host, 8, w->streams[0]));
    host = 6;
    fakecuda_release();
    must(cuMemcpyDtoHAsync_v2(&back, w->cells[0], 8, w->streams[0]));
    assert_int_equal(back, 5);
    assert_int_equal(fakecuda_count("pageable"), 2);
}

static void pinned_memory_is_read_in_order(void **state)
{
    world *w = *state;
    uint64_t *host;

    bind(w, 0);
    must(cuMemHostAlloc((void **)&host, 16, 0));
    host[0] = 5;
    fakecuda_hold();
    must(cuMemcpyHtoDAsync_v2(w->cells[0], host, 8, w->streams[0]));
    must(cuMemcpyDtoHAsync_v2(host + 1, w->cells[0], 8, w->streams[0]));
    host[0] = 6;
    fakecuda_release();
    must(cuStreamSynchronize(w->streams[0]));
    assert_int_equal(host[1], 6);
    assert_int_equal(fakecuda_count("pageable"), 0);
    must(cuMemFreeHost(host));
}

static void blocks_are_copied_row_by_row(void **state)
{
    world *w = *state;
    char host[6][8], back[64];
    CUdeviceptr memory;
    CUDA_MEMCPY2D copy = {.srcMemoryType = FL_CU_MEMORYTYPE_HOST,
                          .srcHost = host,
                          .srcPitch = 8,
                          .srcXInBytes = 2,
                          .srcY = 1,
                          .dstMemoryType = FL_CU_MEMORYTYPE_UNIFIED,
                          .dstPitch = 16,
                          .dstXInBytes = 1,
                          .dstY = 1,
                          .WidthInBytes = 5,
                          .Height = 3};

    for (int i = 0; i < 48; i++)
        host[i / 8][i % 8] = (char)i;
    bind(w, 0);
    must(cuMemAlloc_v2(&memory, 64));
    must(cuMemsetD8Async(memory, 0xee, 64, w->streams[0]));
    copy.dstDevice = memory;
    must(cuMemcpy2DAsync_v2(&copy, w->streams[0]));
    must(cuMemcpyDtoHAsync_v2(back, memory, 64, w->streams[0]));
    for (int row = 0; row < 4; row++) {
        for (int column = 0; column < 16; column++) {
            bool is_inside = row >= 1 && column >= 1 && column < 6;
            assert_int_equal(back[row * 16 + column],
                             is_inside ? host[row][column + 1] : (char)0xee);
        }
    }
    must(cuMemFree_v2(memory));
}

static void peers_are_copied_between(void **state)
{
    world *w = *state;

    *cell(w, 0) = 77;
    bind(w, 0);
    must(cuMemcpyPeerAsync(w->cells[1], w->contexts[1], w->cells[0], w->contexts[0], 8,
                           w->streams[0]));
    must(cuStreamSynchronize(w->streams[0]));
    assert_int_equal(*cell(w, 1), 77);
}

/* --- Graphs --- */

static CUDA_KERNEL_NODE_PARAMS node_params(CUfunction function, void **params)
{
    return (CUDA_KERNEL_NODE_PARAMS){.func = function,
                                     .gridDimX = 1,
                                     .gridDimY = 1,
                                     .gridDimZ = 1,
                                     .blockDimX = 1,
                                     .blockDimY = 1,
                                     .blockDimZ = 1,
                                     .kernelParams = params};
}

static void graphs_keep_their_dependencies(void **state)
{
    world *w = *state;
    CUgraph graph;
    CUgraphExec exec;
    CUgraphNode nodes[8];
    uint64_t by[8], model = *cell(w, 0);

    bind(w, 0);
    must(cuGraphCreate(&graph, 0));
    for (uint64_t i = 0; i < 8; i++) {
        by[i] = i;
        void *params[] = {&w->cells[0], &w->cells[0], &by[i]};
        CUDA_KERNEL_NODE_PARAMS p = node_params(w->mix[0], params);
        must(cuGraphAddKernelNode_v2(&nodes[i], graph, i > 0 ? &nodes[i - 1] : NULL, i > 0, &p));
    }
    must(cuGraphInstantiateWithFlags(&exec, graph, 0));
    for (uint32_t launch = 0; launch < 10; launch++) {
        must(cuGraphLaunch(exec, w->streams[0]));
        for (uint64_t i = 0; i < 8; i++)
            model = mixed(model, model, by[i]);
    }
    must(cuGraphExecDestroy(exec));
    must(cuGraphDestroy(graph));
    must(cuStreamSynchronize(w->streams[0]));
    assert_int_equal(*cell(w, 0), model);
    assert_int_equal(fakecuda_count("kernel"), 80);
}

/* Nodes without an order between them come in any: a forgotten dependency shows. */
static void independent_nodes_run_in_any_order(void **state)
{
    world *w = *state;
    CUgraph graph;
    CUgraphExec exec;
    CUgraphNode node;
    uint64_t first = 1, second = 2;
    bool was_seen[2] = {false, false};

    bind(w, 0);
    must(cuGraphCreate(&graph, 0));
    for (int i = 0; i < 2; i++) {
        void *params[] = {&w->cells[0], &w->cells[0], i == 0 ? &first : &second};
        CUDA_KERNEL_NODE_PARAMS p = node_params(w->mix[0], params);
        must(cuGraphAddKernelNode_v2(&node, graph, NULL, 0, &p));
    }
    must(cuGraphInstantiateWithFlags(&exec, graph, 0));
    for (int i = 0; i < 64; i++) {
        *cell(w, 0) = 0;
        must(cuGraphLaunch(exec, w->streams[0]));
        must(cuStreamSynchronize(w->streams[0]));
        uint64_t in_order = mixed(mixed(0, 0, 1), mixed(0, 0, 1), 2);
        was_seen[*cell(w, 0) == in_order] = true;
    }
    assert_true(was_seen[0] && was_seen[1]);
    must(cuGraphExecDestroy(exec));
    must(cuGraphDestroy(graph));
}

/* --- Failures --- */

static void a_failed_kernel_poisons_its_context(void **state)
{
    world *w = *state;
    void *none[] = {NULL};
    int free_bytes;

    bind(w, 0);
    must(cuLaunchKernel(w->fail[0], 1, 1, 1, 1, 1, 1, 0, w->streams[0], none, NULL));
    assert_int_equal(cuStreamSynchronize(w->streams[0]), FL_CUDA_ERROR_LAUNCH_FAILED);
    assert_int_equal(cuStreamQuery(w->streams[2]), FL_CUDA_ERROR_LAUNCH_FAILED);
    assert_int_equal(cuMemsetD8Async(w->cells[0], 0, 8, w->streams[0]),
                     FL_CUDA_ERROR_LAUNCH_FAILED);
    must(cuDeviceGetCount(&free_bytes));
    /* The other device goes on. */
    bind(w, 1);
    mix(w, 1, 1, 1, 1);
    must(cuStreamSynchronize(w->streams[1]));
}

static void failures_come_when_asked_for(void **state)
{
    world *w = *state;
    CUdeviceptr memory;

    fakecuda_fail("cuMemAlloc", 2, 1, FL_CUDA_ERROR_OUT_OF_MEMORY, 1, false);
    for (uint32_t d = 0; d < DEVICES; d++) {
        bind(w, d);
        for (int i = 1; i <= 3; i++) {
            CUresult result = cuMemAlloc_v2(&memory, 8);
            assert_int_equal(result, d == 1 && i == 2 ? FL_CUDA_ERROR_OUT_OF_MEMORY : 0);
            if (result == FL_CUDA_SUCCESS)
                must(cuMemFree_v2(memory));
        }
    }
    bind(w, 0);
    fakecuda_fail("kernel", 2, 1, FL_CUDA_ERROR_ILLEGAL_ADDRESS, -1, false);
    mix(w, 0, 0, 0, 1);
    must(cuStreamSynchronize(w->streams[0]));
    uint64_t before = *cell(w, 0);
    mix(w, 0, 0, 0, 1);
    assert_int_equal(cuStreamSynchronize(w->streams[0]), FL_CUDA_ERROR_ILLEGAL_ADDRESS);
    assert_int_equal(*cell(w, 0), before);
    bind(w, 1);
    fakecuda_fail("cuEventRecord", 1, 1, FL_CUDA_ERROR_UNKNOWN, -1, true);
    assert_int_equal(cuEventRecord(w->events[1][0], w->streams[1]), FL_CUDA_ERROR_UNKNOWN);
    assert_int_equal(cuStreamQuery(w->streams[1]), FL_CUDA_ERROR_UNKNOWN);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make, unmake)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(programs_end_as_in_order),
        TEST(streams_run_at_the_same_time),
        TEST(calls_return_before_work_is_done),
        TEST(waits_take_the_record_of_their_time),
        TEST(an_event_never_recorded_is_past),
        TEST(a_destroyed_event_is_still_waited_for),
        TEST(a_destroyed_stream_finishes_its_work),
        TEST(events_tell_durations),
        TEST(pageable_memory_is_taken_at_once),
        TEST(pinned_memory_is_read_in_order),
        TEST(blocks_are_copied_row_by_row),
        TEST(peers_are_copied_between),
        TEST(graphs_keep_their_dependencies),
        TEST(independent_nodes_run_in_any_order),
        TEST(a_failed_kernel_poisons_its_context),
        TEST(failures_come_when_asked_for),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
