/* SPDX-License-Identifier: Apache-2.0 */
/* GPUs whose workers run on the host's own threads, or for whom tasks wait; jobs that follow one
 * another from callbacks; and what happens to all of it when the runtime goes. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <limits.h>
#include <pthread.h>

#include "fake.h"
#include "jobs.h"

static const filch_drive drives[] = {FILCH_DRIVE_THREADS, FILCH_DRIVE_POLL};

static void nap(long us)
{
    const struct timespec span = {0, us * 1000};
    (void)nanosleep(&span, NULL);
}

/* --- Poll mode --- */

static void *poll_until_done(void *job)
{
    while (filch_job_status(job) == FILCH_NOT_READY)
        (void)filch_runtime_poll(runtime, 0, NULL);
    return NULL;
}

/* Host threads drive the GPUs' workers, whatever context is current on them; it stays current. */
static void host_threads_drive_gpus(void **state)
{
    (void)state;
    for (int others = 0; others < 3; others += 2) {
        start_driven("cuda:0,cuda:1,host:1", "2", NULL, FILCH_DRIVE_POLL);
        filch_codelet *copies = on_gpu("copy"), *bumps = on_gpu("bump");
        filch_codelet *lates = on_host("late", late);
        filch_data *from = handle(x), *a = handle(y), *b = handle(z);
        filch_graph *chain = graph();
        CUcontext own = NULL, now = NULL;
        assert_int_equal(cuDevicePrimaryCtxRetain(&own, 1), FL_CUDA_SUCCESS);
        assert_int_equal(cuCtxPushCurrent_v2(own), FL_CUDA_SUCCESS);
        for (int i = 0; i < 10; i++) {
            add(chain, copies, FILCH_WRITE, from, a, NULL);
            add(chain, bumps, FILCH_READWRITE, a, NULL, NULL);
            add(chain, copies, FILCH_WRITE, a, b, NULL);
            add(chain, lates, FILCH_READWRITE, b, NULL, NULL);
            add(chain, copies, FILCH_WRITE, b, from, NULL);
        }
        atomic_store(&naps_us, 10);
        atomic_store(&fails, 0);
        for (int run = 0; run < 5; run++) {
            pthread_t threads[2];
            set(x, 7);
            filch_job *job = submit(chain);
            for (int t = 0; t < others; t++)
                assert_int_equal(pthread_create(&threads[t], NULL, poll_until_done, job), 0);
            assert_ok(filch_job_wait(job, SOON));
            for (int t = 0; t < others; t++)
                assert_int_equal(pthread_join(threads[t], NULL), 0);
            assert_ok(filch_job_release(job));
            expect(x, 27);
            assert_int_equal(cuCtxGetCurrent(&now), FL_CUDA_SUCCESS);
            assert_ptr_equal(now, own);
        }
        assert_int_equal(cuCtxPopCurrent_v2(&now), FL_CUDA_SUCCESS);
        assert_int_equal(cuDevicePrimaryCtxRelease_v2(1), FL_CUDA_SUCCESS);
        stop();
    }
}

/* A wait that puts an item on a GPU says so, and does not sleep until the item ends. */
static void launches_end_waits(void **state)
{
    (void)state;
    bool worked = false;
    start_driven("cuda:0", "2", NULL, FILCH_DRIVE_POLL);
    filch_graph *once = graph();
    add(once, on_gpu("hold"), FILCH_READ, handle(x), NULL, NULL);
    atomic_store(&is_held, 1);
    filch_job *job = submit(once);
    while (fakecuda_count("cuLaunchKernel") == 0) {
        assert_ok(filch_runtime_poll_wait(runtime, job, SOON, &worked));
        assert_true(worked);
    }
    assert_int_equal(filch_runtime_poll_wait(runtime, job, 0.01, &worked), FILCH_TIMEOUT);
    assert_false(worked);
    atomic_store(&is_held, 0);
    while (filch_job_status(job) == FILCH_NOT_READY)
        assert_ok(filch_runtime_poll_wait(runtime, job, SOON, &worked));
    finish(job, FILCH_OK);
    stop();
}

/* --- Tasks that wait --- */

static filch_graph *inner;

/* nest(to): waits for a job on the GPU, whose results it sees; which cannot be one that waits for
 * its own. */
static int nest(const filch_call *call)
{
    filch_job *job = NULL;
    uint64_t *to = call->views[0].ptr;
    if (filch_graph_submit(inner, NULL, &job) != FILCH_OK)
        return 1;
    filch_status status = filch_job_wait(job, SOON);
    (void)filch_job_release(job);
    for (int i = 0; i < N; i++)
        to[i] += y[i];
    return status == FILCH_OK ? 0 : 2;
}

static void tasks_wait_for_gpus(void **state)
{
    (void)state;
    for (int d = 0; d < 2; d++) {
        start_driven("cuda:0,host:1", "2", "{\"kernel_ns\": 50000}", drives[d]);
        filch_codelet *copies = on_gpu("copy"), *bumps = on_gpu("bump");
        filch_codelet *nests = on_host("nest", nest);
        filch_data *from = handle(x), *to = handle(y), *sum_of = handle(z);
        filch_graph *outer = graph();
        inner = graph();
        add(inner, copies, FILCH_WRITE, from, to, NULL);
        add(inner, bumps, FILCH_READWRITE, to, NULL, NULL);
        for (int i = 0; i < 4; i++) {
            add(outer, nests, FILCH_READWRITE, sum_of, NULL, NULL);
            add(outer, bumps, FILCH_READWRITE, sum_of, NULL, NULL);
        }
        set(x, 1);
        for (int run = 0; run < 5; run++) {
            memset(z, 0, sizeof z);
            finish(submit(outer), FILCH_OK);
            for (int i = 0; i < N; i++)
                assert_int_equal(z[i], 4 * (2 + i) + 4);
        }
        stop();
    }
}

/* --- One job after another --- */

#define REPLAYS 30u
#define MOST_RUNS 100
/* From this run on, however long it takes. */
#define REPLAY "3"

/* A graph is replayed where its tasks are not known to be long: nothing is known where no time can
 * be taken. */
static void take_no_times(void)
{
    fakecuda_fail("cuEventElapsedTime", 1, 0, FL_CUDA_ERROR_UNKNOWN, -1, false);
}

static bool has_replayed(void)
{
    return fakecuda_count("cuGraphLaunch") >= REPLAYS;
}

static _Atomic uint64_t runs;
static _Atomic int last_result;

/* Submits the job's graph again, or ends it. */
static void again(filch_job *job, filch_status status, void *user)
{
    filch_submit_desc how = FILCH_SUBMIT_DESC_INIT;
    (void)job;
    how.on_complete = again;
    how.user = user;
    if (status == FILCH_OK && !has_replayed() && atomic_load(&runs) < MOST_RUNS) {
        atomic_fetch_add(&runs, 1);
        status = filch_graph_submit(user, &how, NULL);
    } else if (status == FILCH_OK) {
        status = filch_graph_destroy(user);
    }
    if (status != FILCH_OK)
        atomic_store(&last_result, (int)status);
}

/* From the callback of one run the graph may run again, or be destroyed; as a replay too. */
static void callbacks_run_graphs_again(void **state)
{
    (void)state;
    for (int d = 0; d < 2; d++) {
        start_driven("cuda:0", "2", NULL, drives[d]);
        take_no_times();
        filch_codelet *bumps = on_gpu("bump"), *copies = on_gpu("copy");
        filch_data *a = handle(x), *b = handle(y);
        filch_graph *loop = graph();
        add(loop, bumps, FILCH_READWRITE, a, NULL, NULL);
        add(loop, copies, FILCH_WRITE, a, b, NULL);
        add(loop, bumps, FILCH_READWRITE, a, NULL, NULL);
        filch_submit_desc how = FILCH_SUBMIT_DESC_INIT;
        how.on_complete = again;
        how.user = loop;
        set(x, 0);
        atomic_store(&runs, 1);
        atomic_store(&last_result, FILCH_OK);
        assert_ok(filch_graph_submit(loop, &how, NULL));
        assert_ok(filch_runtime_drain(runtime, SOON));
        assert_int_equal(atomic_load(&last_result), FILCH_OK);
        assert_true(has_replayed());
        expect(x, 2 * atomic_load(&runs));
        expect(y, 2 * atomic_load(&runs) - 1);
        assert_int_equal(fakecuda_live("exec"), 0);
        stop();
    }
}

/* A graph that is replayed, is cancelled now and then, and the host writes in between. */
static void replays_are_cancelled_and_see_what_the_host_wrote(void **state)
{
    (void)state;
    start("cuda:0", "2", NULL);
    take_no_times();
    filch_codelet *bumps = on_gpu("bump"), *copies = on_gpu("copy");
    filch_data *a = handle(x), *b = handle(y);
    filch_graph *loop = graph();
    for (int i = 0; i < 20; i++)
        add(loop, bumps, FILCH_READWRITE, a, NULL, NULL);
    add(loop, copies, FILCH_WRITE, a, b, NULL);
    for (uint64_t run = 0; run < MOST_RUNS && !has_replayed(); run++) {
        set(x, run);
        fakecuda_hold(); /* so that it cannot be over yet */
        filch_job *job = submit(loop);
        assert_int_equal(filch_graph_destroy(loop), FILCH_BUSY);
        filch_job *behind = submit(loop);
        assert_ok(filch_job_cancel(behind));
        assert_int_equal(filch_job_wait(behind, SOON), FILCH_CANCELLED);
        assert_ok(filch_job_release(behind));
        fakecuda_release();
        if (run % 3 == 2) {
            nap((long)(run * 7 % 400));
            assert_ok(filch_job_cancel(job));
        }
        filch_status status = filch_job_wait(job, SOON);
        assert_ok(filch_job_release(job));
        assert_true(status == FILCH_OK || (run % 3 == 2 && status == FILCH_CANCELLED));
        if (status == FILCH_OK)
            expect(y, run + 20);
    }
    assert_true(has_replayed());
    assert_ok(filch_graph_destroy(loop));
    stop();
}

/* The copies to a replay that could not be launched, or not even made, are over when the job is:
 * the host may do with its memory what it likes. */
static void a_replay_that_fails_leaves_no_copies(void **state)
{
    static const char *const calls[] = {"cuGraphInstantiateWithFlags", "cuGraphLaunch"};
    (void)state;
    for (int c = 0; c < 2; c++) {
        start("cuda:0", "2", "{\"copy_ns\": 2000000}");
        take_no_times();
        filch_codelet *copies = on_gpu("copy"), *bumps = on_gpu("bump");
        filch_data *a = handle(x), *b = handle(y), *other = handle(z);
        filch_graph *loop = graph();
        add(loop, copies, FILCH_WRITE, a, b, NULL);
        add(loop, bumps, FILCH_READWRITE, other, NULL, NULL);
        fakecuda_fail(calls[c], 1, 0, FL_CUDA_ERROR_INVALID_VALUE, -1, false);
        filch_status status = FILCH_OK;
        for (int run = 0; run < MOST_RUNS && status == FILCH_OK; run++) {
            filch_job *job = submit(loop);
            status = filch_job_wait(job, SOON);
            assert_ok(filch_job_release(job));
            assert_int_equal(fakecuda_count("copy"), fakecuda_count("cuMemcpyHtoDAsync") +
                                                         fakecuda_count("cuMemcpyDtoHAsync"));
            if (fakecuda_count(calls[c]) != 0)
                break;
        }
        assert_int_equal(fakecuda_count(calls[c]), 1);
        assert_int_equal(status, c == 0 ? FILCH_OK : FILCH_TASK_FAILED);
        stop();
    }
}

/* Others have the memory when a replay is to be made: it is made later. */
static void a_replay_waits_for_its_memory(void **state)
{
    (void)state;
    (void)setenv("FILCH_REPLAY", "1", 1);
    (void)setenv("FILCH_MEMORY_LIMIT", "1K", 1); /* two tiles */
    (void)setenv("FILCH_ARENA", "plain", 1);
    start("cuda:0", "2", "{}");
    take_no_times();
    filch_codelet *holder = on_gpu("hold"), *bumps = on_gpu("bump");
    filch_data *mine = handle(x), *a = handle(y), *b = handle(z);
    filch_graph *held = graph(), *loop = graph();
    add(held, holder, FILCH_READ, mine, NULL, NULL);
    add(loop, bumps, FILCH_READWRITE, a, NULL, NULL);
    add(loop, bumps, FILCH_READWRITE, b, NULL, NULL);
    set(y, 0);
    set(z, 0);
    atomic_store(&is_held, 1);
    filch_job *job = submit(held), *first;
    await_holds(1); /* which is a replay, too */
    uint64_t waits = fakecuda_count("cuStreamSynchronize");
    first = submit(loop);
    const struct timespec nap = {0, 1000000};
    /* What has begun for a replay that is given up is over first. */
    for (int i = 0; i < 5000 && fakecuda_count("cuStreamSynchronize") == waits; i++)
        (void)nanosleep(&nap, NULL);
    bool was_tried = fakecuda_count("cuGraphCreate") == 2;
    atomic_store(&is_held, 0);
    finish(job, FILCH_OK);
    finish(first, FILCH_OK);
    assert_true(was_tried);
    assert_int_equal(fakecuda_count("cuGraphLaunch"), 1);
    uint64_t round = 1;
    for (; round < MOST_RUNS && fakecuda_count("cuGraphLaunch") == 1; round++)
        finish(submit(loop), FILCH_OK);
    assert_in_range(round, 2, 8);
    expect(y, round);
    expect(z, round);
    stop();
    (void)setenv("FILCH_REPLAY", REPLAY, 1);
    (void)unsetenv("FILCH_MEMORY_LIMIT");
    (void)unsetenv("FILCH_ARENA");
}

/* --- Handles --- */

/* Jobs that read a handle run beside one another; one that writes it waits for them, wherever they
 * are, and the host cannot have it meanwhile. */
static void a_writer_waits_for_readers_everywhere(void **state)
{
    (void)state;
    for (int on_the_host = 0; on_the_host < 2; on_the_host++) {
        start("cuda:0,cuda:1,host:1", "2", NULL);
        filch_codelet *holder = on_gpu("hold"), *copies = on_gpu("copy");
        filch_codelet *writer = on_the_host ? on_host("bump", bump) : on_gpu("bump");
        filch_data *shared = handle_with(x, FILCH_DATA_MANAGED);
        filch_data *sinks[2] = {handle(y), handle(z)};
        filch_graph *reading = graph(), *copying = graph(), *writing = graph();
        add(reading, holder, FILCH_READ, shared, NULL, NULL);
        for (int i = 0; i < 8; i++)
            add(copying, copies, FILCH_WRITE, shared, sinks[i % 2], NULL);
        add(writing, writer, FILCH_READWRITE, shared, NULL, NULL);
        set(x, 40);
        for (int round = 0; round < 3; round++) {
            atomic_store(&holds, 0);
            atomic_store(&is_held, 1);
            filch_job *held = submit(reading);
            await_holds(1);
            assert_int_equal(filch_data_acquire(shared, FILCH_READ), FILCH_BUSY);
            filch_job *wrote = submit(writing);
            nap(3000);
            assert_int_equal(filch_job_status(wrote), FILCH_NOT_READY);
            atomic_store(&is_held, 0);
            finish(held, FILCH_OK);
            finish(wrote, FILCH_OK);
            filch_job *both[2] = {submit(copying), submit(reading)};
            finish(both[0], FILCH_OK);
            finish(both[1], FILCH_OK);
            expect(y, 41 + 2 * (uint64_t)round);
            expect(z, 41 + 2 * (uint64_t)round);
            assert_ok(filch_data_acquire(shared, FILCH_READWRITE));
            assert_int_equal(filch_graph_submit(writing, NULL, NULL), FILCH_BUSY);
            expect(x, 41 + 2 * (uint64_t)round);
            bump(&(filch_call){.views = &(filch_view){.ptr = x, .rows = N}});
            assert_ok(filch_data_release(shared));
        }
        stop();
    }
}

/* --- Many --- */

/* More copies and tiles on one lane than it has events, none of which may begin yet: whoever puts
 * more there waits for the oldest, and each finds its own. */
static void lanes_outlast_their_events(void **state)
{
    enum { TASKS = 600 };
    static uint64_t in[TASKS], out[TASKS];
    (void)state;
    start("cuda:0", "1", NULL);
    filch_codelet *copies = on_gpu("copy"), *bumps = on_gpu("bump");
    filch_data *data[2] = {NULL, NULL};
    for (int d = 0; d < 2; d++) {
        filch_data_desc desc = FILCH_DATA_DESC_INIT;
        desc.ptr = d == 0 ? in : out;
        desc.element = sizeof *in;
        desc.rows = TASKS;
        desc.tile_rows = 1;
        desc.flags = d == 0 ? 0 : FILCH_DATA_MANAGED;
        assert_ok(filch_data_create(runtime, &desc, &data[d]));
    }
    filch_graph *many = graph();
    for (uint32_t i = 0; i < TASKS; i++) {
        filch_task_desc desc = FILCH_TASK_DESC_INIT;
        filch_access accesses[2] = {{.data = data[0], .row = i, .mode = FILCH_READ},
                                    {.data = data[1], .row = i, .mode = FILCH_WRITE}};
        desc.codelet = copies;
        desc.accesses = accesses;
        desc.access_count = 2;
        assert_ok(filch_graph_add(many, &desc, NULL));
        accesses[1].mode = FILCH_READWRITE;
        desc.codelet = bumps;
        desc.accesses = &accesses[1];
        desc.access_count = 1;
        assert_ok(filch_graph_add(many, &desc, NULL));
    }
    for (uint64_t run = 0; run < 4; run++) {
        for (uint64_t i = 0; i < TASKS; i++)
            in[i] = 1000 * run + i;
        fakecuda_hold();
        filch_job *job = submit(many);
        nap(10000);
        fakecuda_release();
        finish(job, FILCH_OK);
        assert_ok(filch_data_acquire(data[1], FILCH_READ));
        for (uint64_t i = 0; i < TASKS; i++)
            assert_int_equal(out[i], 1000 * run + i + 1);
        assert_ok(filch_data_release(data[1]));
    }
    stop();
}

static filch_codelet *thread_codelets[3];
static filch_data *shared_data;

/* Everything of its own, but for a handle that all read. */
static void *use_runtime(void *first)
{
    uint64_t a[N], b[N];
    for (uint64_t round = 0; round < 30; round++) {
        filch_data *own = handle(a), *result = handle_with(b, FILCH_DATA_MANAGED);
        filch_graph *small = graph();
        add(small, thread_codelets[0], FILCH_READWRITE, own, NULL, NULL);
        add(small, thread_codelets[1], FILCH_WRITE, shared_data, own, result);
        add(small, thread_codelets[0], FILCH_READWRITE, own, NULL, NULL);
        add(small, thread_codelets[2], FILCH_READWRITE, result, NULL, NULL);
        for (uint64_t run = 0; run < 2; run++) {
            set(a, 100 * *(uint64_t *)first + round);
            finish(submit(small), FILCH_OK);
            expect(a, 100 * *(uint64_t *)first + round + 2);
        }
        assert_ok(filch_data_acquire(result, FILCH_READ));
        for (uint64_t i = 0; i < N; i++)
            assert_int_equal(b[i], 100 * *(uint64_t *)first + round + 3 + 2 * i + 1);
        assert_ok(filch_data_release(result));
        assert_ok(filch_graph_destroy(small));
        assert_ok(filch_data_destroy(own));
        assert_ok(filch_data_destroy(result));
    }
    return NULL;
}

static void threads_share_a_runtime(void **state)
{
    enum { THREADS = 3 };
    (void)state;
    for (int d = 0; d < 2; d++) {
        pthread_t threads[THREADS];
        uint64_t firsts[THREADS] = {1, 2, 3};
        start_driven("cuda:0,cuda:1,host:1", "2", NULL, drives[d]);
        atomic_store(&naps_us, 0);
        atomic_store(&fails, 0);
        thread_codelets[0] = on_gpu("bump");
        thread_codelets[1] = on_gpu("sum");
        thread_codelets[2] = on_host("late", late);
        shared_data = handle(x);
        set(x, 2);
        for (int t = 0; t < THREADS; t++)
            assert_int_equal(pthread_create(&threads[t], NULL, use_runtime, &firsts[t]), 0);
        for (int t = 0; t < THREADS; t++)
            assert_int_equal(pthread_join(threads[t], NULL), 0);
        stop();
    }
}

/* --- The end --- */

static void *let_go(void *ignored)
{
    nap(20000);
    atomic_store(&is_held, 0);
    return ignored;
}

/* Tiles are in flight on every lane, copies under way, more tasks behind them: aborting waits for
 * the first, leaves out the last, and nothing stays. */
static void the_runtime_goes_while_tiles_fly(void **state)
{
    (void)state;
    for (int d = 0; d < 2; d++) {
        start_driven("cuda:0,cuda:1,host:1", "2", "{\"copy_ns\": 200000}", drives[d]);
        filch_codelet *holder = on_gpu("hold"), *copies = on_gpu("copy"), *bumps = on_gpu("bump");
        filch_data *a = handle(x), *b = handle(y), *c = handle(z);
        filch_graph *graphs[3] = {graph(), graph(), graph()};
        for (int i = 0; i < 20; i++) {
            add(graphs[0], holder, FILCH_READ, a, NULL, NULL);
            add(graphs[1], copies, FILCH_WRITE, a, b, NULL);
            add(graphs[1], bumps, FILCH_READWRITE, b, NULL, NULL);
            add(graphs[2], copies, FILCH_WRITE, b, c, NULL);
        }
        atomic_store(&is_held, 1);
        filch_job *jobs[3];
        for (int g = 0; g < 3; g++)
            jobs[g] = submit(graphs[g]);
        while (atomic_load(&holds) == 0) {
            if (drives[d] == FILCH_DRIVE_POLL)
                assert_ok(filch_runtime_poll(runtime, 0, NULL));
            nap(100);
        }
        for (int g = 0; g < 3; g++)
            assert_ok(filch_job_release(jobs[g]));
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, let_go, NULL), 0);
        assert_int_equal(filch_runtime_destroy(runtime), FILCH_BUSY);
        assert_ok(filch_runtime_abort(runtime));
        assert_int_equal(pthread_join(thread, NULL), 0);
        assert_int_equal(fakecuda_live("memory"), 0);
        assert_int_equal(fakecuda_live("stream"), 0);
        assert_int_equal(fakecuda_live("context"), 0);
        assert_int_equal(fakecuda_violations(), 0);
    }
}

/* --- Memory runs out --- */

typedef struct quota {
    _Atomic long left; /* allocations that succeed */
    _Atomic long live;
} quota;

static void *quota_alloc(size_t bytes, size_t alignment, void *user)
{
    quota *q = user;
    if (atomic_fetch_sub(&q->left, 1) <= 0)
        return NULL;
    void *ptr = aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
    if (ptr != NULL)
        atomic_fetch_add(&q->live, (long)bytes);
    return ptr;
}

static void quota_free(void *ptr, size_t bytes, size_t alignment, void *user)
{
    quota *q = user;
    (void)alignment;
    atomic_fetch_sub(&q->live, (long)bytes);
    free(ptr);
}

/* Sealing a graph for GPUs fails at every allocation in turn; then more is added, and it runs. */
static void sealing_survives_want_of_memory(void **state)
{
    (void)state;
    quota q = {0};
    filch_allocator allocator = {quota_alloc, quota_free, &q};
    filch_runtime_desc config = FILCH_RUNTIME_DESC_INIT;
    fakecuda_reset();
    assert_true(fakecuda_configure(NULL));
    fakecuda_register_filch("bump", bump, 1, false, 0);
    config.devices = "cuda:0,host:1";
    config.allocator = &allocator;
    atomic_store(&q.left, LONG_MAX);
    assert_ok(filch_runtime_create(&config, NULL, &runtime));
    filch_codelet *bumps = on_gpu("bump");
    filch_data *a = handle(x);
    filch_graph *chain = graph();
    uint64_t tasks = 0;
    filch_status status = FILCH_OUT_OF_MEMORY;
    set(x, 0);
    for (long left = 0; status == FILCH_OUT_OF_MEMORY; left++) {
        add(chain, bumps, FILCH_READWRITE, a, NULL, NULL);
        tasks++;
        atomic_store(&q.left, left);
        status = filch_graph_seal(chain);
        atomic_store(&q.left, LONG_MAX);
    }
    assert_ok(status);
    assert_true(tasks > 4);
    finish(submit(chain), FILCH_OK);
    expect(x, tasks);
    stop();
    assert_int_equal(atomic_load(&q.live), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(host_threads_drive_gpus),
        cmocka_unit_test(launches_end_waits),
        cmocka_unit_test(tasks_wait_for_gpus),
        cmocka_unit_test(callbacks_run_graphs_again),
        cmocka_unit_test(replays_are_cancelled_and_see_what_the_host_wrote),
        cmocka_unit_test(a_replay_that_fails_leaves_no_copies),
        cmocka_unit_test(a_replay_waits_for_its_memory),
        cmocka_unit_test(a_writer_waits_for_readers_everywhere),
        cmocka_unit_test(lanes_outlast_their_events),
        cmocka_unit_test(threads_share_a_runtime),
        cmocka_unit_test(the_runtime_goes_while_tiles_fly),
        cmocka_unit_test(sealing_survives_want_of_memory),
    };
    (void)setenv("FILCH_REPLAY", REPLAY, 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
