/* SPDX-License-Identifier: Apache-2.0 */
/* Devices go offline and come back at random while batches and graphs run, some of whose tasks
 * wait for jobs of their own, reduce, or are cancelled: each item is done exactly once, or skipped
 * by a cancellation, and every job ends, as at least now and then somebody is there. A job is an
 * operation. */
#define _GNU_SOURCE
#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include "base/thread.h"
#include "filch/filch.h"
#include "measure/policies.h"
#include "patience.h"
#include "stress.h"

enum { DEVICES = 4, ITEMS = 3000, WIDTH = 24, STEPS = 12, SUMMANDS = 40 };

typedef struct field {
    stress stress;
    filch_runtime *runtime;
    filch_codelet *raise, *nest, *zero, *sum;
    _Atomic uint32_t stopping;
    _Atomic uint64_t jobs, changes, cancelled;
} field;

static field f;

static void expect(filch_status got, filch_status wanted, const char *call)
{
    if (got != wanted) {
        stress_fail(&f.stress, call, (uint64_t)got);
    }
}

static void sleep_ns(uint64_t ns)
{
    struct timespec span = {.tv_nsec = (long)ns};
    (void)nanosleep(&span, NULL);
}

/* --- Work --- */

static int raise_cells(const filch_call *call)
{
    uint64_t *cells = call->views[0].ptr;
    uint64_t n = call->hi > call->lo ? call->hi - call->lo : 1;
    for (uint64_t i = 0; i < n; ++i) {
        cells[i] += 1;
    }
    for (int i = 0; i < 200; ++i) {
        fl_relax();
    }
    return 0;
}

static int set_zero(const filch_call *call)
{
    *(uint64_t *)call->views[0].ptr = 0;
    return 0;
}

static int add_up(const filch_call *call)
{
    *(uint64_t *)call->views[0].ptr += *(const uint64_t *)call->views[1].ptr;
    return 0;
}

static filch_data *vector(uint64_t *cells, uint64_t n, uint64_t tile)
{
    filch_data_desc desc = FILCH_DATA_DESC_INIT;
    filch_data *data = NULL;
    desc.ptr = cells;
    desc.element = sizeof *cells;
    desc.rows = n;
    desc.tile_rows = tile;
    expect(filch_data_create(f.runtime, &desc, &data), FILCH_OK, "data");
    return data;
}

/* A task that runs a batch and waits for it. */
static int nest(const filch_call *call)
{
    uint64_t cells[64] = {0};
    filch_batch_access access = {.mode = FILCH_READWRITE, .map = FILCH_MAP_AFFINE, .scale = 1};
    filch_batch_desc desc = FILCH_BATCH_DESC_INIT;
    filch_job *job = NULL;
    access.data = vector(cells, 64, 0);
    desc.codelet = f.raise;
    desc.n = 64;
    desc.accesses = &access;
    desc.access_count = 1;
    expect(filch_batch_submit(f.runtime, &desc, NULL, &job), FILCH_OK, "nested submit");
    expect(filch_job_wait(job, PATIENCE), FILCH_OK, "nested wait");
    expect(filch_job_release(job), FILCH_OK, "nested release");
    expect(filch_data_destroy(access.data), FILCH_OK, "nested destroy");
    for (int i = 0; i < 64; ++i) {
        if (cells[i] != 1) {
            stress_fail(&f.stress, "a nested cell was not raised once", cells[i]);
        }
    }
    return raise_cells(call);
}

typedef struct owner {
    uint64_t self;
    fl_random random;
    uint64_t cells[ITEMS]; /* plain */
    uint64_t total;
} owner;

/* Ends a job, cancelled at times; true: it was not. */
static bool end_job(owner *o, filch_job *job)
{
    bool cancels = stress_below(&o->random, 6) == 0;
    if (cancels) {
        expect(filch_job_cancel(job), FILCH_OK, "cancel");
    }
    filch_status status = filch_job_wait(job, PATIENCE);
    bool is_whole = status == FILCH_OK;
    if (!is_whole && !(cancels && status == FILCH_CANCELLED)) {
        stress_fail(&f.stress, "wait", (uint64_t)status);
    }
    filch_job_info info = {.size = sizeof info};
    expect(filch_job_stats(job, &info, NULL, 0), FILCH_OK, "stats");
    if (info.done + info.skipped != info.total || (is_whole && info.skipped != 0)) {
        stress_fail(&f.stress, "items done or skipped", info.done);
    }
    expect(filch_job_release(job), FILCH_OK, "release");
    fl_add_relaxed(&f.jobs, 1);
    fl_add_relaxed(&f.cancelled, !is_whole);
    return is_whole;
}

static void expect_cells(const owner *o, uint64_t n, uint64_t value, bool is_whole)
{
    for (uint64_t i = 0; i < n; ++i) {
        if (is_whole ? o->cells[i] != value : o->cells[i] > value) {
            stress_fail(&f.stress, "a cell was not raised as often as told", o->cells[i]);
            return;
        }
    }
}

static void run_batch(owner *o)
{
    filch_batch_access access = {.mode = FILCH_READWRITE, .map = FILCH_MAP_AFFINE, .scale = 1};
    filch_batch_desc desc = FILCH_BATCH_DESC_INIT;
    filch_job *job = NULL;
    access.data = vector(o->cells, ITEMS, 0);
    desc.codelet = f.raise;
    desc.n = ITEMS;
    desc.accesses = &access;
    desc.access_count = 1;
    expect(filch_batch_submit(f.runtime, &desc, NULL, &job), FILCH_OK, "batch");
    bool is_whole = end_job(o, job);
    expect_cells(o, ITEMS, 1, is_whole);
    expect(filch_data_destroy(access.data), FILCH_OK, "data destroy");
}

/* Chains side by side, each across all the devices that it meets; at times one of its tasks waits
 * for a job, at times the graph is open. Twice where it can be. */
static void run_graph(owner *o)
{
    filch_graph_desc desc = FILCH_GRAPH_DESC_INIT;
    filch_graph *graph = NULL;
    filch_job *job = NULL;
    filch_data *data = vector(o->cells, WIDTH, 1);
    bool is_open = stress_below(&o->random, 2) != 0;
    desc.kind = is_open ? FILCH_GRAPH_OPEN : FILCH_GRAPH_CLOSED;
    expect(filch_graph_create(f.runtime, &desc, &graph), FILCH_OK, "graph");
    if (is_open) {
        expect(filch_graph_submit(graph, NULL, &job), FILCH_OK, "open submit");
    }
    for (uint32_t i = 0; i < WIDTH * STEPS; ++i) {
        filch_task_desc task = FILCH_TASK_DESC_INIT;
        filch_access access = {.data = data, .row = i % WIDTH, .mode = FILCH_READWRITE};
        task.codelet = stress_below(&o->random, 20) == 0 ? f.nest : f.raise;
        task.accesses = &access;
        task.access_count = 1;
        task.affinity = (uint32_t)stress_below(&o->random, DEVICES + 1);
        expect(filch_graph_add(graph, &task, NULL), FILCH_OK, "add");
    }
    if (is_open) {
        expect(filch_graph_close(graph), FILCH_OK, "close");
    }
    for (uint64_t round = 1; round <= (is_open ? 1 : 2); ++round) {
        if (!is_open) {
            expect(filch_graph_submit(graph, NULL, &job), FILCH_OK, "submit");
        }
        bool is_whole = end_job(o, job);
        expect_cells(o, WIDTH, round * STEPS, is_whole);
        if (!is_whole) {
            break;
        }
    }
    expect(filch_graph_destroy(graph), FILCH_OK, "graph destroy");
    expect(filch_data_destroy(data), FILCH_OK, "data destroy");
}

static void run_reduction(owner *o)
{
    filch_graph_desc desc = FILCH_GRAPH_DESC_INIT;
    filch_graph *graph = NULL;
    filch_job *job = NULL;
    filch_data *data = vector(&o->total, 1, 0);
    o->total = 7;
    expect(filch_data_reduction(data, f.zero, f.sum), FILCH_OK, "reduction");
    expect(filch_graph_create(f.runtime, &desc, &graph), FILCH_OK, "graph");
    for (int i = 0; i < SUMMANDS; ++i) {
        filch_task_desc task = FILCH_TASK_DESC_INIT;
        filch_access access = {.data = data, .mode = FILCH_REDUCE};
        task.codelet = f.raise;
        task.accesses = &access;
        task.access_count = 1;
        expect(filch_graph_add(graph, &task, NULL), FILCH_OK, "add");
    }
    expect(filch_graph_submit(graph, NULL, &job), FILCH_OK, "submit");
    if (end_job(o, job) && o->total != 7 + SUMMANDS) {
        stress_fail(&f.stress, "a reduced sum", o->total);
    }
    expect(filch_graph_destroy(graph), FILCH_OK, "graph destroy");
    expect(filch_data_destroy(data), FILCH_OK, "data destroy");
}

static int owner_main(void *arg)
{
    owner *o = arg;
    fl_random_init(&o->random, f.stress.seed, o->self);
    while (fl_load_relaxed(&f.stopping) == 0 && fl_load_relaxed(&f.stress.failures) == 0) {
        for (int i = 0; i < ITEMS; ++i) {
            o->cells[i] = 0;
        }
        switch (stress_below(&o->random, 3)) {
        case 0:
            run_batch(o);
            break;
        case 1:
            run_graph(o);
            break;
        default:
            run_reduction(o);
        }
    }
    return 0;
}

/* --- Who is there --- */

/* Every device is offline at times, all of them too, but never for long. */
static void come_and_go(fl_random *random, uint64_t jobs)
{
    bool is_away[DEVICES] = {false};
    while (fl_load_relaxed(&f.jobs) < jobs && fl_load_relaxed(&f.stress.failures) == 0) {
        uint32_t d = (uint32_t)stress_below(random, DEVICES);
        expect((is_away[d] ? filch_device_readmit : filch_device_withdraw)(f.runtime, d), FILCH_OK,
               "change");
        expect((is_away[d] ? filch_device_readmit : filch_device_withdraw)(f.runtime, d),
               FILCH_WRONG_STATE, "change twice");
        is_away[d] = !is_away[d];
        fl_add_relaxed(&f.changes, 1);
        sleep_ns(stress_below(random, 4) == 0 ? 0 : stress_below(random, 300000));
    }
    fl_store_relaxed(&f.stopping, 1);
    for (uint32_t d = 0; d < DEVICES; ++d) {
        if (is_away[d]) {
            expect(filch_device_readmit(f.runtime, d), FILCH_OK, "readmit");
        }
    }
}

static filch_codelet *codelet(const char *name, filch_host_fn host)
{
    filch_codelet_desc desc = FILCH_CODELET_DESC_INIT;
    filch_codelet *made = NULL;
    desc.name = name;
    desc.host = host;
    expect(filch_codelet_create(f.runtime, &desc, &made), FILCH_OK, "codelet");
    return made;
}

/* Once nobody works, each offline device says so. */
static void expect_quiet(filch_drive drive)
{
    for (uint32_t d = 0; d < DEVICES; ++d) {
        filch_presence presence = FILCH_PRESENCE_LOST;
        expect(filch_device_withdraw(f.runtime, d), FILCH_OK, "withdraw");
        for (int i = 0; i < 10000 && presence != FILCH_PRESENCE_WITHDRAWN; ++i) {
            if (drive == FILCH_DRIVE_POLL) {
                expect(filch_runtime_poll(f.runtime, 0, NULL), FILCH_OK, "poll");
            } else {
                sleep_ns(1000000);
            }
            expect(filch_device_presence(f.runtime, d, &presence), FILCH_OK, "presence");
        }
        if (presence != FILCH_PRESENCE_WITHDRAWN) {
            stress_fail(&f.stress, "a device is not quiet", d);
        }
    }
}

static void run(bench_policy policy, fl_random *random, uint64_t jobs)
{
    static owner owners[2];
    fl_thread threads[2];
    filch_runtime_desc config = FILCH_RUNTIME_DESC_INIT;
    static bench_policy_room room; /* outlives the runtime */
    config.devices = "host:4";
    bench_policy_choose(policy, &room, &config);
    config.drive = stress_below(random, 3) ? FILCH_DRIVE_THREADS : FILCH_DRIVE_POLL;
    expect(filch_runtime_create(&config, NULL, &f.runtime), FILCH_OK, "create");
    f.raise = codelet("raise", raise_cells);
    f.nest = codelet("nest", nest);
    f.zero = codelet("zero", set_zero);
    f.sum = codelet("sum", add_up);
    fl_store_relaxed(&f.stopping, 0);
    for (uint64_t i = 0; i < 2; ++i) {
        owners[i].self = stress_below(random, UINT32_MAX);
        expect(fl_thread_start(&threads[i], owner_main, &owners[i]), FILCH_OK, "thread");
    }
    come_and_go(random, jobs);
    for (int i = 0; i < 2; ++i) {
        fl_thread_join(threads[i]);
    }
    expect_quiet(config.drive);
    expect(filch_runtime_destroy(f.runtime), FILCH_OK, "destroy");
}

int main(int argc, char **argv)
{
    fl_random random;
    stress_begin(&f.stress, "offline", argc, argv, 1400, 70000);
    fl_random_init(&random, f.stress.seed, 0);
    static const bench_policy policies[] = {BENCH_POLICY_STEAL,       BENCH_POLICY_STATIC,
                                            BENCH_POLICY_CENTRAL,     BENCH_POLICY_GUIDED,
                                            BENCH_POLICY_ROUND_ROBIN, BENCH_POLICY_EARLIEST};
    const uint64_t count = sizeof policies / sizeof *policies;
    for (uint64_t i = 0; i < count && fl_load_relaxed(&f.stress.failures) == 0; ++i) {
        run(policies[i], &random, f.stress.operations * (i + 1) / count);
    }
    printf("%" PRIu64 " jobs, %" PRIu64 " cancelled, %" PRIu64 " changes\n",
           fl_load_relaxed(&f.jobs), fl_load_relaxed(&f.cancelled), fl_load_relaxed(&f.changes));
    return stress_end(&f.stress);
}
