/* SPDX-License-Identifier: Apache-2.0 */
/* Temporaries (FILCH_DATA_TEMPORARY) on host and simulated devices: memory from the first writer of
 * a tile to its last user, and what is refused. */
#define _GNU_SOURCE
#include "fixture.h"

#include <pthread.h>
#include <string.h>
#include <time.h>

#include "patience.h"

enum { N = 8192, STEPS = 40, TILE_BYTES = N * sizeof(uint64_t), LIVE = 3, FAIL_CODE = 9 };

static fixture_memory memory;
static filch_runtime *runtime;
static filch_codelet *put, *step, *take, *add, *zero, *sum;
static filch_data *result;
static uint64_t buffer[N];
static _Atomic int64_t base, peak;
static _Atomic int reached, may_go;

/* --- Tasks --- */

static void note_peak(void)
{
    int64_t now = atomic_load(&memory.bytes) - atomic_load(&base), most = atomic_load(&peak);
    while (now > most && !atomic_compare_exchange_weak(&peak, &most, now)) {
    }
}

/* put(W): overwrites with the argument. */
static int run_put(const filch_call *call)
{
    uint64_t *to = call->views[0].ptr;
    for (uint64_t i = 0; i < call->views[0].rows; ++i) {
        to[i] = *(const uint64_t *)call->args + i;
    }
    note_peak();
    return 0;
}

/* step(R, W): what an argument of 0 stops. */
static int run_step(const filch_call *call)
{
    const uint64_t *from = call->views[0].ptr;
    uint64_t *to = call->views[1].ptr;
    for (uint64_t i = 0; i < call->views[1].rows; ++i) {
        to[i] = 3 * from[i] + *(const uint64_t *)call->args;
    }
    note_peak();
    return *(const uint64_t *)call->args == 0 ? FAIL_CODE : 0;
}

/* take(R, RW). */
static int run_take(const filch_call *call)
{
    const uint64_t *from = call->views[0].ptr;
    uint64_t *to = call->views[1].ptr;
    for (uint64_t i = 0; i < call->views[0].rows; ++i) {
        to[i] += from[i];
    }
    note_peak();
    return 0;
}

/* add(COMMUTE or REDUCE). */
static int run_add(const filch_call *call)
{
    uint64_t *to = call->views[0].ptr;
    for (uint64_t i = 0; i < call->views[0].rows; ++i) {
        to[i] += *(const uint64_t *)call->args;
    }
    return 0;
}

static int run_zero(const filch_call *call)
{
    memset(call->views[0].ptr, 0, call->views[0].rows * sizeof(uint64_t));
    return 0;
}

static int run_sum(const filch_call *call)
{
    uint64_t *to = call->views[0].ptr;
    const uint64_t *from = call->views[1].ptr;
    for (uint64_t i = 0; i < call->views[0].rows; ++i) {
        to[i] += from[i];
    }
    return 0;
}

static int run_wait(const filch_call *call)
{
    (void)call;
    atomic_fetch_add(&reached, 1);
    return fixture_await(&may_go, 1) ? 0 : 1;
}

static int run_finish(const filch_call *call)
{
    return filch_call_finish(call) == FILCH_OK ? 0 : 1;
}

/* --- Making things --- */

static void start_drive(const char *devices, filch_drive drive)
{
    fixture_memory_init(&memory);
    runtime = fixture_runtime(devices, drive, &memory);
    put = fixture_codelet(runtime, "put", run_put, sizeof(uint64_t));
    step = fixture_codelet(runtime, "step", run_step, sizeof(uint64_t));
    take = fixture_codelet(runtime, "take", run_take, 0);
    add = fixture_codelet(runtime, "add", run_add, sizeof(uint64_t));
    zero = fixture_codelet(runtime, "zero", run_zero, 0);
    sum = fixture_codelet(runtime, "sum", run_sum, 0);
    memset(buffer, 0, sizeof buffer);
    result = fixture_vector(runtime, buffer, sizeof *buffer, N, N);
    base = peak = 0;
    reached = may_go = 0;
}

static void start(const char *devices)
{
    start_drive(devices, FILCH_DRIVE_DEFAULT);
}

static void stop(void)
{
    assert_ok(filch_runtime_destroy(runtime));
    assert_int_equal(memory.bytes, 0);
}

static filch_data_desc temporary_desc(uint64_t tiles, const char *label)
{
    filch_data_desc desc = FILCH_DATA_DESC_INIT;
    desc.element = sizeof(uint64_t);
    desc.rows = N * tiles;
    desc.tile_rows = N;
    desc.flags = FILCH_DATA_TEMPORARY;
    desc.label = label;
    return desc;
}

static filch_data *temporary(uint64_t tiles, const char *label)
{
    filch_data_desc desc = temporary_desc(tiles, label);
    filch_data *made = NULL;
    assert_ok(filch_data_create(runtime, &desc, &made));
    return made;
}

static void add_put(filch_graph *graph, filch_data *to, uint32_t tile, uint64_t value)
{
    const filch_access access = fixture_access(to, tile, FILCH_WRITE);
    fixture_add(graph, put, &value, &access, 1);
}

static void add_step(filch_graph *graph, filch_data *from, uint32_t source, filch_data *to,
                     uint32_t tile, uint64_t value)
{
    const filch_access accesses[] = {fixture_access(from, source, FILCH_READ),
                                     fixture_access(to, tile, FILCH_WRITE)};
    fixture_add(graph, step, &value, accesses, 2);
}

static void add_take(filch_graph *graph, filch_data *from, uint32_t tile)
{
    const filch_access accesses[] = {fixture_access(from, tile, FILCH_READ),
                                     fixture_access(result, 0, FILCH_READWRITE)};
    fixture_add(graph, take, NULL, accesses, 2);
}

/* A chain through the tiles of a temporary. failing: the step that fails; 0: none. */
static void add_chain(filch_graph *graph, filch_data *data, uint32_t failing)
{
    add_put(graph, data, 0, 1);
    for (uint32_t i = 1; i < STEPS; ++i) {
        add_step(graph, data, i - 1, data, i, i == failing ? 0 : i);
    }
    add_take(graph, data, STEPS - 1);
}

static void check_result(uint64_t runs)
{
    for (uint64_t i = 0; i < N; i += N / 7) {
        uint64_t value = 1 + i;
        for (uint64_t k = 1; k < STEPS; ++k) {
            value = 3 * value + k;
        }
        assert_int_equal(buffer[i], runs * value);
    }
}

static void await_bytes(int64_t most)
{
    for (int64_t i = 0; atomic_load(&memory.bytes) > most && i < 1000 * PATIENCE_S; ++i) {
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    assert_true(atomic_load(&memory.bytes) <= most);
}

/* --- Memory --- */

static void chain_on(const char *devices, filch_drive drive)
{
    start_drive(devices, drive);
    filch_data *data = temporary(STEPS, "t");
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    add_chain(graph, data, 0);
    assert_ok(fixture_run(graph)); /* makes what later runs need, too */
    for (uint64_t run = 2; run < 5; ++run) {
        atomic_store(&base, atomic_load(&memory.bytes));
        atomic_store(&peak, 0);
        assert_ok(fixture_run(graph));
        check_result(run);
        assert_true(peak >= TILE_BYTES);
        assert_true(peak < (LIVE + 1) * TILE_BYTES);
        assert_true(memory.bytes - base < TILE_BYTES);
    }
    assert_ok(filch_graph_destroy(graph));
    assert_ok(filch_data_destroy(data));
    stop();
}

static void a_chain_needs_the_memory_of_the_live_tiles(void **state)
{
    (void)state;
    chain_on("host:1", FILCH_DRIVE_DEFAULT);
    chain_on("host:3", FILCH_DRIVE_DEFAULT);
    chain_on("host:1", FILCH_DRIVE_POLL);
    chain_on("sim:bench/data/sim/two.json", FILCH_DRIVE_DEFAULT);
}

/* Simulated GPUs run no functions, but have memory. */
static void simulated_gpus_have_as_much_in_use(void **state)
{
    (void)state;
    start("sim:bench/data/sim/gpus.json");
    filch_data *data = temporary(STEPS, "t");
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    add_chain(graph, data, 0);
    for (int run = 0; run < 3; ++run) {
        assert_ok(fixture_run(graph));
    }
    uint64_t most = 0;
    for (uint32_t d = 0; d < filch_device_count(runtime); ++d) {
        filch_memory_stats stats = FILCH_MEMORY_STATS_INIT;
        assert_ok(filch_device_memory(runtime, d, &stats));
        most = stats.requested_peak > most ? stats.requested_peak : most;
    }
    assert_in_range(most, TILE_BYTES, (LIVE + 1) * TILE_BYTES);
    assert_ok(filch_graph_destroy(graph));
    stop();
}

static void many_runs_may_be_queued(void **state)
{
    (void)state;
    enum { GRAPHS = 3, RUNS = 6 };
    start("host:3");
    filch_data *data = temporary(STEPS, "t");
    filch_graph *graphs[GRAPHS];
    for (int g = 0; g < GRAPHS; ++g) {
        graphs[g] = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
        add_chain(graphs[g], data, 0);
        assert_ok(filch_graph_seal(graphs[g]));
    }
    for (int run = 0; run < RUNS; ++run) {
        filch_job *jobs[GRAPHS];
        for (int g = 0; g < GRAPHS; ++g) {
            assert_ok(filch_graph_submit(graphs[g], NULL, &jobs[g]));
        }
        for (int g = 0; g < GRAPHS; ++g) {
            assert_ok(filch_job_wait(jobs[g], PATIENCE));
            assert_ok(filch_job_release(jobs[g]));
        }
    }
    check_result(GRAPHS * RUNS);
    for (int g = 0; g < GRAPHS; ++g) {
        assert_ok(filch_graph_destroy(graphs[g]));
    }
    assert_ok(filch_data_destroy(data));
    stop();
}

static void repetitions_have_lifetimes_of_their_own(void **state)
{
    (void)state;
    start("host:2");
    filch_data *data = temporary(STEPS, "t");
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    add_chain(graph, data, 0);
    filch_repeat_desc repeat = FILCH_REPEAT_DESC_INIT;
    filch_job *job = NULL;
    repeat.max_runs = 4;
    assert_ok(fixture_run(graph));
    atomic_store(&base, atomic_load(&memory.bytes));
    atomic_store(&peak, 0);
    assert_ok(filch_graph_repeat(graph, &repeat, NULL, &job));
    assert_ok(filch_job_wait(job, PATIENCE));
    assert_ok(filch_job_release(job));
    check_result(5);
    assert_true(peak < (LIVE + 1) * TILE_BYTES);
    assert_ok(filch_graph_destroy(graph));
    assert_ok(filch_data_destroy(data));
    stop();
}

/* --- Failures --- */

static void failed_and_cancelled_jobs_free(void **state)
{
    (void)state;
    start("host:2");
    filch_data *data = temporary(STEPS, "t");
    filch_graph *fails = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    add_chain(fails, data, STEPS / 2);
    filch_graph *waits = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    filch_codelet *wait = fixture_codelet(runtime, "wait", run_wait, 0);
    filch_codelet *finish = fixture_codelet(runtime, "finish", run_finish, 0);
    for (uint32_t i = 0; i < STEPS; ++i) {
        add_put(waits, data, i, i);
    }
    const filch_access access = fixture_access(data, 3, FILCH_READWRITE);
    fixture_add(waits, wait, NULL, &access, 1);
    add_take(waits, data, 3);
    filch_graph *ends = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    add_put(ends, data, 3, 1);
    fixture_add(ends, finish, NULL, &access, 1);
    add_take(ends, data, 3);
    assert_status(fixture_run(fails), FILCH_TASK_FAILED);
    assert_ok(fixture_run(ends));
    int64_t before = memory.bytes;
    for (int run = 0; run < 3; ++run) {
        filch_job *job = NULL;
        assert_status(fixture_run(fails), FILCH_TASK_FAILED);
        assert_ok(filch_graph_submit(waits, NULL, &job));
        assert_true(fixture_await(&reached, run + 1));
        assert_status(filch_data_destroy(data), FILCH_BUSY);
        assert_status(filch_graph_destroy(waits), FILCH_BUSY);
        assert_ok(filch_job_cancel(job));
        atomic_store(&may_go, 1);
        assert_status(filch_job_wait(job, PATIENCE), FILCH_CANCELLED);
        assert_ok(filch_job_release(job));
        atomic_store(&may_go, 0);
        assert_ok(fixture_run(ends));
        assert_true(memory.bytes - before < TILE_BYTES);
    }
    assert_status(filch_data_destroy(data), FILCH_BUSY); /* graphs name the handle */
    assert_ok(filch_graph_destroy(fails));
    assert_ok(filch_graph_destroy(waits));
    assert_ok(filch_graph_destroy(ends));
    assert_ok(filch_data_destroy(data));
    stop();
}

/* Every allocation of a run fails once: the job fails, or runs to its end, and frees. */
static void a_job_without_memory_fails(void **state)
{
    (void)state;
    start("host:1");
    filch_data *data = temporary(STEPS, "t");
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    add_chain(graph, data, 0);
    assert_ok(fixture_run(graph));
    uint64_t runs = 1;
    int64_t before = memory.bytes;
    for (int64_t at = 1; at <= 3; ++at) {
        filch_job *job = NULL;
        filch_error error = FILCH_ERROR_INIT;
        fixture_memory_fail_after(&memory, at);
        assert_ok(filch_graph_submit(graph, NULL, &job));
        assert_status(filch_job_wait(job, PATIENCE), FILCH_TASK_FAILED);
        assert_ok(filch_job_error(job, &error));
        assert_int_equal(error.status, FILCH_OUT_OF_MEMORY);
        assert_non_null(strstr(error.text, "of 't' on the host"));
        assert_ok(filch_job_release(job));
        assert_true(memory.bytes - before < TILE_BYTES);
        fixture_memory_fail_after(&memory, 0);
        assert_ok(fixture_run(graph));
        check_result(++runs);
    }
    assert_ok(filch_graph_destroy(graph));
    stop();
}

/* Every allocation of a graph's building fails once. The call that failed may be repeated. */
static void a_graph_is_built_in_the_end(void **state)
{
    (void)state;
    uint64_t runs = 0;
    start("host:1");
    filch_data *data = temporary(STEPS, "t");
    for (int64_t at = 1, failed = 1; failed != 0 && at < 1000; ++at) {
        filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
        add_chain(graph, data, 0);
        fixture_memory_fail_after(&memory, at);
        failed = filch_graph_discard(graph, data) != FILCH_OK;
        failed += filch_graph_seal(graph) != FILCH_OK;
        fixture_memory_fail_after(&memory, 0);
        assert_in_range(failed, 0, 1);
        assert_ok(filch_graph_seal(graph));
        assert_ok(fixture_run(graph));
        check_result(++runs);
        assert_ok(filch_graph_destroy(graph));
    }
    assert_true(runs > 1);
    stop();
}

/* --- Open graphs --- */

static void an_open_graph_frees_what_it_discards(void **state)
{
    (void)state;
    start("host:2");
    filch_data *data = temporary(STEPS, "t");
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_OPEN);
    filch_job *job = NULL;
    assert_status(filch_graph_discard(graph, data), FILCH_WRONG_STATE); /* not submitted */
    assert_ok(filch_graph_submit(graph, NULL, &job));
    assert_ok(filch_graph_discard(graph, data)); /* the graph does not know it yet */
    for (uint64_t run = 1; run < 4; ++run) {
        int64_t before = memory.bytes;
        add_chain(graph, data, 0);
        assert_ok(filch_graph_discard(graph, data));
        assert_ok(filch_graph_discard(graph, data));
        const filch_access again = fixture_access(data, 0, FILCH_READ);
        filch_task_desc desc = FILCH_TASK_DESC_INIT;
        desc.codelet = add;
        desc.args = &run;
        desc.accesses = &again;
        desc.access_count = 1;
        assert_status(filch_graph_add(graph, &desc, NULL), FILCH_WRONG_STATE);
        assert_ok(filch_graph_wait_below(graph, 1, PATIENCE));
        await_bytes(before + TILE_BYTES * STEPS / 2);
        check_result(run);
    }
    add_chain(graph, data, 0); /* what nobody discards ends with the graph */
    assert_ok(filch_graph_close(graph));
    assert_status(filch_graph_discard(graph, data), FILCH_WRONG_STATE);
    assert_ok(filch_job_wait(job, PATIENCE));
    assert_ok(filch_job_release(job));
    check_result(4);
    assert_ok(filch_graph_destroy(graph));
    assert_ok(filch_data_destroy(data));
    stop();
}

static void a_cancelled_open_graph_frees(void **state)
{
    (void)state;
    start("host:2");
    filch_codelet *wait = fixture_codelet(runtime, "wait", run_wait, 0);
    filch_data *data = temporary(STEPS, "t");
    int64_t before = memory.bytes;
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_OPEN);
    filch_job *job = NULL;
    assert_ok(filch_graph_submit(graph, NULL, &job));
    for (uint32_t i = 0; i < STEPS; ++i) {
        add_put(graph, data, i, i);
    }
    const filch_access access = fixture_access(data, 3, FILCH_READWRITE);
    fixture_add(graph, wait, NULL, &access, 1);
    add_take(graph, data, 3);
    assert_true(fixture_await(&reached, 1));
    assert_ok(filch_job_cancel(job));
    atomic_store(&may_go, 1);
    (void)filch_graph_close(graph); /* cancelling may have closed it */
    assert_status(filch_job_wait(job, PATIENCE), FILCH_CANCELLED);
    assert_ok(filch_job_release(job));
    assert_ok(filch_graph_destroy(graph));
    assert_true(memory.bytes - before < STEPS * TILE_BYTES / 2);
    assert_ok(filch_data_destroy(data));
    stop();
}

enum { ADDERS = 3, ROUNDS = 30 };

typedef struct adder {
    filch_graph *graph;
    filch_data *data;
} adder;

/* Adds put, a step and take. */
static filch_status add_three(const adder *a)
{
    uint64_t value = 1;
    const filch_access accesses[] = {
        fixture_access(a->data, 0, FILCH_WRITE), fixture_access(a->data, 0, FILCH_READ),
        fixture_access(a->data, 1, FILCH_WRITE), fixture_access(a->data, 1, FILCH_READ),
        fixture_access(result, 0, FILCH_READWRITE)};
    filch_task_desc descs[3];
    for (int k = 0; k < 3; ++k) {
        descs[k] = (filch_task_desc)FILCH_TASK_DESC_INIT;
        descs[k].codelet = k == 0 ? put : k == 1 ? step : take;
        descs[k].args = k < 2 ? &value : NULL;
        descs[k].accesses = &accesses[k == 0 ? 0 : 2 * k - 1];
        descs[k].access_count = k == 0 ? 1 : 2;
    }
    return filch_graph_add_many(a->graph, descs, 3, NULL, NULL);
}

static void *add_rounds(void *argument)
{
    const adder *a = argument;
    filch_status status = FILCH_OK;
    for (int round = 0; round < ROUNDS && status == FILCH_OK; ++round) {
        status = add_three(a);
        status = status == FILCH_OK ? filch_graph_discard(a->graph, a->data) : status;
    }
    return status == FILCH_OK ? NULL : argument;
}

static void threads_discard_in_one_graph(void **state)
{
    (void)state;
    start("host:2");
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_OPEN);
    filch_job *job = NULL;
    adder adders[ADDERS];
    pthread_t threads[ADDERS];
    assert_ok(filch_graph_submit(graph, NULL, &job));
    for (int i = 0; i < ADDERS; ++i) {
        adders[i] = (adder){graph, temporary(2, "t")};
        assert_int_equal(pthread_create(&threads[i], NULL, add_rounds, &adders[i]), 0);
    }
    for (int i = 0; i < ADDERS; ++i) {
        void *failed;
        assert_int_equal(pthread_join(threads[i], &failed), 0);
        assert_null(failed);
    }
    assert_ok(filch_graph_close(graph));
    assert_ok(filch_job_wait(job, PATIENCE));
    assert_ok(filch_job_release(job));
    for (uint64_t i = 0; i < N; i += N / 7) {
        assert_int_equal(buffer[i], ADDERS * ROUNDS * (3 * (1 + i) + 1));
    }
    assert_ok(filch_graph_destroy(graph));
    for (int i = 0; i < ADDERS; ++i) {
        assert_ok(filch_data_destroy(adders[i].data));
    }
    stop();
}

/* The end of a runtime comes in the middle of lifetimes. */
static void an_aborted_runtime_frees(void **state)
{
    (void)state;
    for (int kind = 0; kind < 2; ++kind) {
        start("host:2");
        filch_codelet *wait = fixture_codelet(runtime, "wait", run_wait, 0);
        filch_data *data = temporary(STEPS, "t");
        filch_graph *graph =
            fixture_graph(runtime, kind == 0 ? FILCH_GRAPH_CLOSED : FILCH_GRAPH_OPEN);
        if (kind != 0) {
            assert_ok(filch_graph_submit(graph, NULL, NULL));
        }
        const filch_access access = fixture_access(data, 3, FILCH_READWRITE);
        add_put(graph, data, 3, 1);
        fixture_add(graph, wait, NULL, &access, 1);
        add_chain(graph, data, 0);
        if (kind == 0) {
            assert_ok(filch_graph_submit(graph, NULL, NULL));
        }
        assert_true(fixture_await(&reached, 1));
        assert_status(filch_runtime_destroy(runtime), FILCH_BUSY);
        atomic_store(&may_go, 1);
        assert_ok(filch_runtime_abort(runtime));
        assert_int_equal(memory.bytes, 0);
    }
}

/* --- Divisible tasks --- */

/* number(W): elements [lo, hi). */
static int run_number(const filch_call *call)
{
    uint64_t *to = call->views[0].ptr;
    for (uint64_t i = call->lo; i < call->hi; ++i) {
        to[i] = i;
    }
    return 0;
}

static void divisible_tasks_share_a_tile(void **state)
{
    (void)state;
    start("host:3");
    filch_codelet *number = fixture_codelet(runtime, "number", run_number, 0);
    filch_data *data = temporary(2, "t");
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    for (uint32_t tile = 0; tile < 2; ++tile) {
        const filch_access access = fixture_access(data, tile, FILCH_WRITE);
        filch_task_desc desc = FILCH_TASK_DESC_INIT;
        desc.codelet = number;
        desc.accesses = &access;
        desc.access_count = 1;
        desc.items = N;
        desc.grain = 64;
        assert_ok(filch_graph_add(graph, &desc, NULL));
        add_take(graph, data, tile);
    }
    for (uint64_t run = 1; run < 20; ++run) {
        assert_ok(fixture_run(graph));
        for (uint64_t i = 0; i < N; ++i) {
            assert_int_equal(buffer[i], run * 2 * i);
        }
    }
    assert_ok(filch_graph_destroy(graph));
    stop();
}

/* --- Groups --- */

static void groups_on(uint32_t flags)
{
    start("host:3");
    filch_data_desc desc = temporary_desc(2, "t");
    filch_data *data = NULL;
    desc.flags |= flags;
    assert_ok(filch_data_create(runtime, &desc, &data));
    assert_ok(filch_data_reduction(data, zero, sum));
    int64_t before = memory.bytes;
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    uint64_t values = 0;
    for (int round = 0; round < 2; ++round) {
        for (uint32_t tile = 0; tile < 2; ++tile) {
            add_put(graph, data, tile, 5);
            for (uint64_t k = 1; k <= 20; ++k) {
                const filch_access access =
                    fixture_access(data, tile, tile == 0 ? FILCH_COMMUTE : FILCH_REDUCE);
                fixture_add(graph, add, &k, &access, 1);
                values += k;
            }
        }
        if (round == 0) {
            add_take(graph, data, 0);
            add_take(graph, data, 1);
            assert_ok(filch_graph_discard(graph, data)); /* else the groups end the lifetimes */
        }
    }
    for (uint64_t run = 1; run < 4; ++run) {
        assert_ok(fixture_run(graph));
        for (uint64_t i = 0; i < N; i += N / 5) {
            assert_int_equal(buffer[i], run * (2 * (5 + i) + values / 2));
        }
    }
    assert_ok(filch_graph_destroy(graph)); /* with the partial results */
    assert_true(memory.bytes - before < TILE_BYTES);
    stop();
}

static void tasks_commute_on_and_reduce_to_temporaries(void **state)
{
    (void)state;
    groups_on(0);
    groups_on(FILCH_DATA_ORDERED);
}

/* --- What is refused --- */

static void refuse_in(filch_graph *graph, const filch_access *access, filch_status status,
                      const char *text)
{
    filch_task_desc desc = FILCH_TASK_DESC_INIT;
    uint64_t value = 1;
    desc.codelet = add;
    desc.label = "reader";
    desc.args = &value;
    desc.accesses = access;
    desc.access_count = 1;
    assert_status(filch_graph_add(graph, &desc, NULL), status);
    assert_string_equal(fixture_error(runtime).label, "reader");
    assert_non_null(strstr(fixture_error(runtime).text, text));
}

static void contents_before_a_writer_are_refused(void **state)
{
    (void)state;
    static const filch_access_mode modes[] = {FILCH_READ, FILCH_READWRITE, FILCH_COMMUTE,
                                              FILCH_REDUCE};
    static const char text[] = "tile (1, 0) of 't', a temporary, is read";
    start("host:2");
    filch_data *data = temporary(3, "t");
    assert_ok(filch_data_reduction(data, zero, sum));
    for (int kind = 0; kind < 2; ++kind) {
        filch_graph *graph =
            fixture_graph(runtime, kind == 0 ? FILCH_GRAPH_CLOSED : FILCH_GRAPH_OPEN);
        filch_job *job = NULL;
        if (kind != 0) {
            assert_ok(filch_graph_submit(graph, NULL, &job));
        }
        for (size_t m = 0; m < sizeof modes / sizeof modes[0]; ++m) {
            const filch_access access = fixture_access(data, 1, modes[m]);
            refuse_in(graph, &access, FILCH_WRONG_STATE, text);
            add_put(graph, data, 0, 1); /* another tile */
            refuse_in(graph, &access, FILCH_WRONG_STATE, text);
            add_put(graph, data, 1, 1);
            uint64_t value = 2;
            fixture_add(graph, add, &value, &access, 1);
            assert_ok(filch_graph_discard(graph, data));
            refuse_in(graph, &access, FILCH_WRONG_STATE, text);
        }
        const filch_access block = FILCH_WHOLE(data, FILCH_WRITE);
        refuse_in(graph, &block, FILCH_UNSUPPORTED, "a block of several tiles of 't', a temporary");
        if (kind != 0) {
            assert_ok(filch_graph_close(graph));
            assert_ok(filch_job_wait(job, PATIENCE));
            assert_ok(filch_job_release(job));
        } else {
            assert_ok(fixture_run(graph));
            assert_status(filch_graph_discard(graph, data), FILCH_WRONG_STATE); /* sealed */
        }
        assert_ok(filch_graph_destroy(graph));
    }
    stop();
}

static void only_tasks_of_graphs_use_temporaries(void **state)
{
    (void)state;
    start("host:2");
    filch_data *data = temporary(2, "t"), *child = NULL, *other = NULL;
    filch_hold *hold = NULL;
    filch_view view;
    assert_status(filch_data_acquire(data, FILCH_WRITE), FILCH_UNSUPPORTED);
    assert_non_null(strstr(fixture_error(runtime).text, "'t' is a temporary"));
    assert_status(filch_data_acquire_tiles(data, NULL, FILCH_WRITE, 0, &hold), FILCH_UNSUPPORTED);
    assert_status(filch_data_view(data, 0, 0, &view), FILCH_WRONG_STATE);
    assert_status(filch_data_broadcast(data, NULL, NULL, NULL), FILCH_UNSUPPORTED);
    filch_data_desc cuts = FILCH_DATA_DESC_INIT;
    cuts.tile_rows = 1;
    assert_status(filch_data_partition(data, &cuts, &child), FILCH_UNSUPPORTED);
    filch_batch_access access = {.data = data, .mode = FILCH_WRITE};
    filch_batch_desc batch = FILCH_BATCH_DESC_INIT;
    uint64_t value = 1;
    batch.codelet = put;
    batch.args = &value;
    batch.n = 2 * N;
    batch.accesses = &access;
    batch.access_count = 1;
    assert_status(filch_batch_submit(runtime, &batch, NULL, NULL), FILCH_UNSUPPORTED);
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    assert_status(filch_graph_read_only(graph, data), FILCH_UNSUPPORTED);
    assert_status(filch_graph_discard(graph, result), FILCH_INVALID_ARGUMENT);
    assert_status(filch_graph_discard(graph, NULL), FILCH_INVALID_HANDLE);
    assert_status(filch_graph_discard(NULL, data), FILCH_INVALID_HANDLE);
    filch_data_desc desc = temporary_desc(1, NULL);
    desc.ptr = buffer;
    assert_status(filch_data_create(runtime, &desc, &other), FILCH_INVALID_ARGUMENT);
    desc = temporary_desc(1, NULL);
    desc.ld = N + 1;
    assert_status(filch_data_create(runtime, &desc, &other), FILCH_INVALID_ARGUMENT);
    static const uint32_t wrong[] = {FILCH_DATA_ON_DEVICE, FILCH_DATA_PIN};
    for (size_t i = 0; i < 2; ++i) {
        desc = temporary_desc(1, NULL);
        desc.flags |= wrong[i];
        assert_status(filch_data_create(runtime, &desc, &other), FILCH_INVALID_ARGUMENT);
    }
    filch_runtime *second = fixture_runtime("host:1", FILCH_DRIVE_DEFAULT, NULL);
    filch_data_desc far = temporary_desc(1, NULL);
    assert_ok(filch_data_create(second, &far, &other));
    assert_status(filch_graph_discard(graph, other), FILCH_WRONG_RUNTIME);
    assert_ok(filch_runtime_destroy(second));
    assert_ok(filch_graph_destroy(graph));
    stop();
}

/* Tiles of unlike sizes, in both directions. */
static int run_shape(const filch_call *call)
{
    const filch_view *v = &call->views[0];
    uint64_t *at = v->ptr;
    if (v->ld != v->rows) {
        return 1;
    }
    for (uint64_t i = 0; i < v->rows * v->cols; ++i) {
        at[i] = call->view_count + i;
    }
    return 0;
}

static void tiles_have_no_gaps(void **state)
{
    (void)state;
    static const uint64_t heights[] = {5, 1, 7}, widths[] = {2, 3};
    start("host:2");
    filch_codelet *shape = fixture_codelet(runtime, "shape", run_shape, 0);
    filch_data_desc desc = FILCH_DATA_DESC_INIT;
    filch_data *data = NULL;
    desc.element = sizeof(uint64_t);
    desc.rows = 13;
    desc.cols = 5;
    desc.row_cuts = heights;
    desc.row_cut_count = 3;
    desc.col_cuts = widths;
    desc.col_cut_count = 2;
    desc.flags = FILCH_DATA_TEMPORARY | FILCH_DATA_MANAGED | FILCH_DATA_NO_BUFFER;
    assert_ok(filch_data_create(runtime, &desc, &data));
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    for (uint32_t row = 0; row < 3; ++row) {
        for (uint32_t col = 0; col < 2; ++col) {
            filch_access access = FILCH_W(data, row, col);
            fixture_add(graph, shape, NULL, &access, 1);
            access.mode = FILCH_READWRITE;
            fixture_add(graph, shape, NULL, &access, 1);
        }
    }
    assert_ok(fixture_run(graph));
    assert_ok(fixture_run(graph));
    assert_ok(filch_graph_destroy(graph));
    stop();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_chain_needs_the_memory_of_the_live_tiles),
        cmocka_unit_test(simulated_gpus_have_as_much_in_use),
        cmocka_unit_test(many_runs_may_be_queued),
        cmocka_unit_test(repetitions_have_lifetimes_of_their_own),
        cmocka_unit_test(failed_and_cancelled_jobs_free),
        cmocka_unit_test(a_job_without_memory_fails),
        cmocka_unit_test(a_graph_is_built_in_the_end),
        cmocka_unit_test(an_open_graph_frees_what_it_discards),
        cmocka_unit_test(a_cancelled_open_graph_frees),
        cmocka_unit_test(threads_discard_in_one_graph),
        cmocka_unit_test(an_aborted_runtime_frees),
        cmocka_unit_test(divisible_tasks_share_a_tile),
        cmocka_unit_test(tasks_commute_on_and_reduce_to_temporaries),
        cmocka_unit_test(contents_before_a_writer_are_refused),
        cmocka_unit_test(only_tasks_of_graphs_use_temporaries),
        cmocka_unit_test(tiles_have_no_gaps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
