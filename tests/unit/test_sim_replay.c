/* SPDX-License-Identifier: Apache-2.0 */
/* A job that was recorded on simulated devices, whose times are exact, is predicted from its trace
 * alone: on the same devices, on faster ones, on more of them. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../random.h"
#include "filch/filch.h"
#include "sim/sim_replay.h"

#define ok(call) assert_int_equal((call), FILCH_OK)

enum { TASKS = 400 };

static char trace_path[] = "/tmp/filch-replay-XXXXXX";
static char device_path[] = "/tmp/filch-replay-XXXXXX";

static void make_file(char *path, const char *text)
{
    unlink(path);
    strcpy(path + strlen(path) - 6, "XXXXXX");
    int file = mkstemp(path);
    assert_true(file >= 0);
    assert_int_equal(write(file, text, strlen(text)), strlen(text));
    assert_int_equal(close(file), 0);
}

static filch_runtime *open_devices(const char *text)
{
    char spec[64];
    filch_runtime_desc config = FILCH_RUNTIME_DESC_INIT;
    filch_error error = FILCH_ERROR_INIT;
    filch_runtime *runtime = NULL;
    make_file(device_path, text);
    snprintf(spec, sizeof spec, "sim:%s", device_path);
    config.devices = spec;
    if (filch_runtime_create(&config, &error, &runtime) != FILCH_OK) {
        fail_msg("%s", error.text);
    }
    return runtime;
}

static int nothing(const filch_call *call)
{
    (void)call;
    return 0;
}

static double task_work(const filch_call *call)
{
    double work;
    memcpy(&work, call->args, sizeof work);
    return work;
}

/* Later items take longer. */
static double ramp(const filch_call *call)
{
    double lo = (double)call->lo, hi = (double)call->hi;
    return (hi * hi - lo * lo) / 1e3;
}

static filch_codelet *make_codelet(filch_runtime *runtime, const char *name, bool is_batch)
{
    filch_codelet_desc desc = FILCH_CODELET_DESC_INIT;
    filch_codelet *codelet = NULL;
    desc.name = name;
    desc.host = nothing;
    desc.work = is_batch ? NULL : task_work;
    desc.cost = is_batch ? ramp : NULL;
    desc.arg_size = is_batch ? 0 : sizeof(double);
    ok(filch_codelet_create(runtime, &desc, &codelet));
    return codelet;
}

static filch_graph *make_graph(filch_runtime *runtime)
{
    filch_graph_desc desc = FILCH_GRAPH_DESC_INIT;
    filch_graph *graph = NULL;
    filch_task tasks[TASKS];
    filch_codelet *codelets[2] = {make_codelet(runtime, "light", false),
                                  make_codelet(runtime, "heavy", false)};
    fl_random random;
    fl_random_init(&random, 11, 0);
    ok(filch_graph_create(runtime, &desc, &graph));
    for (uint32_t i = 0; i < TASKS; i++) {
        double work = 1e4 + fl_random_below(&random, 100000);
        filch_task_desc task = FILCH_TASK_DESC_INIT;
        work = i % 3 == 0 ? 5 * work : work;
        task.codelet = codelets[i % 3 == 0];
        task.args = &work;
        ok(filch_graph_add(graph, &task, &tasks[i]));
        for (uint32_t e = fl_random_below(&random, 3); i != 0 && e > 0; e--) {
            uint32_t back = 1 + fl_random_below(&random, i < 12 ? i : 12);
            ok(filch_graph_edge(graph, tasks[i - back], tasks[i]));
        }
    }
    return graph;
}

/* Runs the graph twice, the second time recorded; its seconds. */
static double record_graph(const char *devices)
{
    filch_runtime *runtime = open_devices(devices);
    filch_graph *graph = make_graph(runtime);
    filch_job_info info = {.size = sizeof info};
    for (int run = 0; run < 2; run++) {
        filch_job *job = NULL;
        if (run == 1) {
            ok(filch_trace_start(runtime));
        }
        ok(filch_graph_submit(graph, NULL, &job));
        ok(filch_job_wait(job, -1));
        ok(filch_job_stats(job, &info, NULL, 0));
        ok(filch_job_release(job));
    }
    make_file(trace_path, "");
    ok(filch_trace_write(runtime, trace_path));
    ok(filch_runtime_destroy(runtime));
    return info.seconds;
}

static double record_batches(const char *devices, uint64_t n, uint32_t count)
{
    filch_runtime *runtime = open_devices(devices);
    filch_batch_desc desc = FILCH_BATCH_DESC_INIT;
    filch_job_info info = {.size = sizeof info};
    double seconds = 0;
    desc.codelet = make_codelet(runtime, "ramp", true);
    desc.n = n;
    desc.grain = 100;
    ok(filch_trace_start(runtime));
    for (uint32_t k = 0; k < count; k++) {
        filch_job *job = NULL;
        ok(filch_batch_submit(runtime, &desc, NULL, &job));
        ok(filch_job_wait(job, -1));
        ok(filch_job_stats(job, &info, NULL, 0));
        ok(filch_job_release(job));
        seconds += info.seconds;
    }
    make_file(trace_path, "");
    ok(filch_trace_write(runtime, trace_path));
    ok(filch_runtime_destroy(runtime));
    return seconds;
}

/* devices: null for the record's. */
static double predict(const char *devices)
{
    bench_sim_record record;
    bench_sim_prediction prediction;
    bench_sim_setup setup = {0};
    filch_error error = FILCH_ERROR_INIT;
    char spec[64];
    if (devices != NULL) {
        make_file(device_path, devices);
        snprintf(spec, sizeof spec, "sim:%s", device_path);
        setup.devices = spec;
    }
    if (bench_sim_record_read(&record, trace_path, &error) != FILCH_OK ||
        bench_sim_predict(&record, &setup, &prediction, &error) != FILCH_OK) {
        fail_msg("%s", error.text);
    }
    assert_int_equal(record.loose, 0);
    double seconds = prediction.seconds;
    bench_sim_prediction_free(&prediction);
    bench_sim_record_free(&record);
    return seconds;
}

static int clean(void **state)
{
    (void)state;
    unlink(trace_path);
    unlink(device_path);
    return 0;
}

#define TWO                                                                                     \
    "{\"devices\": [{\"name\": \"host:0\", \"speed\": 1e9, \"overhead_us\": 2, \"window\": 1}," \
    "{\"name\": \"host:1\", \"speed\": 5e8, \"overhead_us\": 2, \"window\": 1}]}"

static void test_graph(void **state)
{
    (void)state;
    double seconds = record_graph(TWO), again = predict(NULL);
    print_message("graph: %.6f s, predicted %.6f s\n", seconds, again);
    assert_true(fabs(again / seconds - 1) <= 0.03);
    assert_true(predict(NULL) == again);
    /* Described as it was: the unit is a nanosecond of the first device. What was recorded knew how
     * long tasks take, and this one has to try the slow device. */
    assert_true(fabs(predict(TWO) / seconds - 1) <= 0.08);
    /* One that does all of it in turn, and one ten times as fast. */
    double one = predict("{\"devices\": [{\"speed\": 1e9, \"window\": 1}]}");
    double fast = predict("{\"devices\": [{\"speed\": 1e10, \"window\": 1}]}");
    assert_true(one > seconds && fabs(one / fast / 10 - 1) <= 0.01);
}

/* Who waits for whom matters: on any number of devices the longest path has to be gone. */
static void test_critical_path(void **state)
{
    (void)state;
    (void)record_graph(TWO);
    double many = predict("{\"devices\": [{\"speed\": 1e9, \"count\": 64, \"window\": 1}]}");
    double more = predict("{\"devices\": [{\"speed\": 1e9, \"count\": 512, \"window\": 1}]}");
    double one = predict("{\"devices\": [{\"speed\": 1e9, \"window\": 1}]}");
    assert_true(many < one / 2 && many > one / 60);
    assert_true(fabs(more / many - 1) <= 0.05);
}

static void test_batches(void **state)
{
    (void)state;
    double seconds = record_batches(TWO, 200000, 3), again = predict(NULL);
    print_message("batches: %.6f s, predicted %.6f s\n", seconds, again);
    assert_true(fabs(again / seconds - 1) <= 0.03);
    /* All items, in turn. */
    double one = predict("{\"devices\": [{\"speed\": 1e9, \"window\": 1}]}");
    print_message("one: %.6f of %.6f s\n", one, 3 * 2e5 * 2e5 / 1e3 / 1e9);
    assert_true(fabs(one / (3 * 2e5 * 2e5 / 1e3 / 1e9) - 1) <= 0.03);
}

/* --- Devices with memories of their own --- */

#define THREE                                                                                   \
    "{\"link\": {\"bandwidth\": 48e9, \"bandwidth_out\": 44e9, \"latency_us\": 8},"             \
    " \"devices\": [{\"name\": \"gpu\", \"speed\": 20e12, \"overhead_us\": 3, \"memory\": 8e9," \
    " \"count\": 3}],"                                                                          \
    " \"peers\": [{\"from\": \"gpu\", \"to\": \"gpu\", \"bandwidth\": 370e9, \"latency_us\": 5}]}"

enum { MATRICES = 3, MATRIX_ORDER = 16384, MATRIX_TILE = 1024, SIDE = MATRIX_ORDER / MATRIX_TILE };

typedef struct problem {
    filch_runtime *runtime;
    filch_data *data[MATRICES];
    void *buffers[MATRICES];
    size_t bytes;
    filch_graph *graph; /* or: */
    filch_batch_desc batch;
    filch_batch_access accesses[2];
} problem;

/* Nothing of the buffers is touched. */
static void make_handles(problem *p, int count, const filch_data_desc *shape)
{
    p->bytes = (size_t)(shape->element * shape->rows * shape->cols);
    for (int i = 0; i < count; ++i) {
        filch_data_desc desc = *shape;
        p->buffers[i] =
            mmap(NULL, p->bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        assert_ptr_not_equal(p->buffers[i], MAP_FAILED);
        desc.ptr = p->buffers[i];
        ok(filch_data_create(p->runtime, &desc, &p->data[i]));
    }
}

static filch_data_desc square(uint32_t flags)
{
    filch_data_desc shape = FILCH_DATA_DESC_INIT;
    shape.element = sizeof(double);
    shape.rows = shape.cols = MATRIX_ORDER;
    shape.tile_rows = shape.tile_cols = MATRIX_TILE;
    shape.flags = flags;
    return shape;
}

/* Flops of c += a b, whichever of the tiles those are. */
static double product_work(const filch_call *call)
{
    const filch_view *view = &call->views[0];
    return 2.0 * (double)view->rows * (double)view->rows * (double)view->cols;
}

static void add_task(filch_graph *graph, filch_codelet *codelet, int32_t priority,
                     const filch_access *accesses, uint32_t count)
{
    filch_task_desc desc = FILCH_TASK_DESC_INIT;
    desc.codelet = codelet;
    desc.accesses = accesses;
    desc.access_count = count;
    desc.priority = priority;
    ok(filch_graph_add(graph, &desc, NULL));
}

static filch_access at(filch_data *data, uint32_t row, uint32_t col, filch_access_mode mode)
{
    return (filch_access){.data = data, .row = row, .col = col, .mode = mode};
}

static filch_codelet *make_product_codelet(filch_runtime *runtime, const char *name)
{
    filch_codelet_desc desc = FILCH_CODELET_DESC_INIT;
    filch_codelet *codelet = NULL;
    desc.name = name;
    desc.host = nothing;
    desc.work = product_work;
    ok(filch_codelet_create(runtime, &desc, &codelet));
    return codelet;
}

/* C = A B, in blocks of columns by the caller's priorities. */
static void make_product(problem *p)
{
    filch_graph_desc desc = FILCH_GRAPH_DESC_INIT;
    filch_data_desc shape = square(0);
    filch_codelet *codelet = make_product_codelet(p->runtime, "product");
    desc.priorities = FILCH_PRIORITIES_CALLER;
    make_handles(p, 3, &shape);
    ok(filch_graph_create(p->runtime, &desc, &p->graph));
    for (uint32_t first = 0; first < SIDE; first += SIDE / 2)
        for (uint32_t k = 0; k < SIDE; ++k)
            for (uint32_t j = first; j < first + SIDE / 2; ++j)
                for (uint32_t i = 0; i < SIDE; ++i)
                    add_task(p->graph, codelet, -(int32_t)first,
                             (filch_access[]){
                                 at(p->data[0], i, k, FILCH_READ), at(p->data[1], k, j, FILCH_READ),
                                 at(p->data[2], i, j, k == 0 ? FILCH_WRITE : FILCH_READWRITE)},
                             3);
}

static void make_factorization(problem *p, uint32_t flags)
{
    filch_graph_desc desc = FILCH_GRAPH_DESC_INIT;
    filch_data_desc shape = square(flags);
    filch_codelet *diagonal = make_product_codelet(p->runtime, "diagonal");
    filch_codelet *update = make_product_codelet(p->runtime, "update");
    make_handles(p, 1, &shape);
    filch_data *data = p->data[0];
    ok(filch_graph_create(p->runtime, &desc, &p->graph));
    for (uint32_t k = 0; k < SIDE; ++k) {
        add_task(p->graph, diagonal, 0, (filch_access[]){at(data, k, k, FILCH_READWRITE)}, 1);
        for (uint32_t i = k + 1; i < SIDE; ++i)
            add_task(p->graph, update, 0,
                     (filch_access[]){at(data, k, k, FILCH_READ), at(data, i, k, FILCH_READWRITE)},
                     2);
        for (uint32_t j = k + 1; j < SIDE; ++j)
            for (uint32_t i = j; i < SIDE; ++i)
                add_task(p->graph, update, 0,
                         (filch_access[]){at(data, i, k, FILCH_READ), at(data, j, k, FILCH_READ),
                                          at(data, i, j, FILCH_READWRITE)},
                         3);
    }
}

/* Of 64 KiB; 0.6 us of a link each way, 1 us of a device. */
static double item_cost(const filch_call *call)
{
    return 55e6 * (double)(call->hi - call->lo);
}

static void make_stream(problem *p)
{
    enum { ITEMS = 16384, ITEM = 8192 };
    filch_data_desc shape = FILCH_DATA_DESC_INIT;
    filch_codelet_desc codelet = FILCH_CODELET_DESC_INIT;
    shape.element = sizeof(double);
    shape.rows = ITEM;
    shape.cols = ITEMS;
    shape.tile_cols = 1;
    make_handles(p, 2, &shape);
    codelet.name = "stream";
    codelet.host = nothing;
    codelet.cost = item_cost;
    p->batch = (filch_batch_desc)FILCH_BATCH_DESC_INIT;
    ok(filch_codelet_create(p->runtime, &codelet, &p->batch.codelet));
    for (int i = 0; i < 2; ++i)
        p->accesses[i] = (filch_batch_access){.data = p->data[i],
                                              .mode = i == 0 ? FILCH_READ : FILCH_WRITE,
                                              .map = FILCH_MAP_AFFINE,
                                              .scale = 1};
    p->batch.n = ITEMS;
    p->batch.accesses = p->accesses;
    p->batch.access_count = 2;
}

/* Runs it four times, the last time recorded: its seconds. */
static double record_problem(problem *p)
{
    filch_job_info info = {.size = sizeof info};
    for (int run = 0; run < 4; ++run) {
        filch_job *job = NULL;
        if (run == 3)
            ok(filch_trace_start(p->runtime));
        ok(p->graph != NULL ? filch_graph_submit(p->graph, NULL, &job)
                            : filch_batch_submit(p->runtime, &p->batch, NULL, &job));
        ok(filch_job_wait(job, -1));
        ok(filch_job_stats(job, &info, NULL, 0));
        ok(filch_job_release(job));
    }
    make_file(trace_path, "");
    ok(filch_trace_write(p->runtime, trace_path));
    ok(filch_runtime_destroy(p->runtime));
    for (int i = 0; i < MATRICES && p->buffers[i] != NULL; ++i)
        (void)munmap(p->buffers[i], p->bytes);
    return info.seconds;
}

/* From the trace alone: how long it takes, and what is copied. */
static void check_prediction(const char *name, double seconds, double within)
{
    bench_sim_record record;
    bench_sim_prediction prediction;
    filch_error error = FILCH_ERROR_INIT;
    double bytes[BENCH_SIM_WAYS] = {0};
    if (bench_sim_record_read(&record, trace_path, &error) != FILCH_OK ||
        bench_sim_predict(&record, &(bench_sim_setup){0}, &prediction, &error) != FILCH_OK)
        fail_msg("%s", error.text);
    for (size_t k = 0; k < record.copy_count; ++k)
        bytes[record.copies[k].way] += record.copies[k].bytes;
    print_message("%s: %.6f s, predicted %.6f s (%+.2f %%); GB in %.3f, %.3f, out %.3f, %.3f, from "
                  "peers %.3f, %.3f\n",
                  name, seconds, prediction.seconds, (prediction.seconds / seconds - 1) * 100,
                  bytes[0] / 1e9, prediction.bytes[0] / 1e9, bytes[1] / 1e9,
                  prediction.bytes[1] / 1e9, bytes[2] / 1e9, prediction.bytes[2] / 1e9);
    assert_true(fabs(record.seconds / seconds - 1) < 1e-5);
    assert_int_equal(record.loose + record.blind + record.twice, 0);
    assert_true(fabs(prediction.seconds / seconds - 1) <= within);
    assert_int_equal(record.job_count, 1);
    assert_true(fabs(prediction.job_s[0] / prediction.seconds - 1) < 1e-9);
    for (int way = 0; way < BENCH_SIM_WAYS; ++way)
        assert_true(fabs(prediction.bytes[way] - bytes[way]) <= 0.1 * bytes[way]);
    bench_sim_prediction_free(&prediction);
    bench_sim_record_free(&record);
}

/* Where there is a lot to choose from, one run differs from the next by some per cent, in the
 * record and here. */
static void test_copies_of_tasks(void **state)
{
    (void)state;
    problem p = {.runtime = open_devices(THREE)};
    make_product(&p);
    check_prediction("product", record_problem(&p), 0.05);
    p = (problem){.runtime = open_devices(THREE)};
    make_factorization(&p, 0);
    check_prediction("factorization", record_problem(&p), 0.05);
    p = (problem){.runtime = open_devices(THREE)};
    make_factorization(&p, FILCH_DATA_MANAGED);
    check_prediction("factorization of what is there", record_problem(&p), 0.05);
}

static void test_copies_of_chunks(void **state)
{
    (void)state;
    problem p = {.runtime = open_devices(THREE)};
    make_stream(&p);
    check_prediction("stream", record_problem(&p), 0.02);
}

/* --- Policies, and traces of the replay --- */

static char replayed_path[] = "/tmp/filch-replay-XXXXXX";

static int clean_replayed(void **state)
{
    unlink(replayed_path);
    return clean(state);
}

/* Replays the record under a policy, and reads the trace of that back. */
static void replay(bench_sim_record *record, bench_policy policy, bench_sim_prediction *prediction,
                   bench_sim_record *replayed)
{
    filch_error error = FILCH_ERROR_INIT;
    bench_sim_setup setup = {.policy = policy};
    bench_sim_prediction untraced;
    ok(bench_sim_record_read(record, trace_path, &error));
    ok(bench_sim_predict(record, &setup, &untraced, &error));
    make_file(replayed_path, "");
    setup.trace = replayed_path;
    if (bench_sim_predict(record, &setup, prediction, &error) != FILCH_OK ||
        bench_sim_record_read(replayed, replayed_path, &error) != FILCH_OK)
        fail_msg("%s", error.text);
    assert_true(prediction->seconds == untraced.seconds);
    bench_sim_prediction_free(&untraced);
}

static void free_all(bench_sim_record *record, bench_sim_prediction *prediction,
                     bench_sim_record *replayed)
{
    bench_sim_prediction_free(prediction);
    bench_sim_record_free(record);
    bench_sim_record_free(replayed);
}

/* By devices of the record: how many tiles, and how many items. */
static void count_tiles(const bench_sim_record *record, uint64_t *tiles, uint64_t *items)
{
    for (size_t d = 0; d < record->device_count; ++d)
        tiles[d] = items[d] = 0;
    for (size_t k = 0; k < record->tile_count; ++k) {
        const bench_sim_tile *tile = &record->tiles[k];
        ++tiles[tile->device];
        items[tile->device] += tile->is_chunk ? tile->end - tile->first : 1;
    }
}

/* The trace is of the run that is told: the same tasks by the same names, where the prediction has
 * them, and for as long. */
static void test_trace_of_tasks(void **state)
{
    (void)state;
    bench_sim_record record, replayed;
    bench_sim_prediction prediction;
    uint64_t tiles[2], items[2];
    const char *names[TASKS] = {0};
    (void)record_graph(TWO);
    replay(&record, BENCH_POLICY_DEFAULT, &prediction, &replayed);
    assert_int_equal(replayed.job_count, 1);
    assert_int_equal(replayed.tile_count, TASKS);
    assert_int_equal(replayed.device_count, 2);
    for (size_t k = 0; k < TASKS; ++k)
        names[record.tiles[k].first] = record.codelets[record.tiles[k].codelet];
    for (size_t k = 0; k < TASKS; ++k) {
        const bench_sim_tile *tile = &replayed.tiles[k];
        assert_string_equal(replayed.codelets[tile->codelet], names[tile->first]);
        assert_true(tile->start_us >= 0 && tile->end_us <= prediction.seconds * 1e6 + 1e-3);
        names[tile->first] = "ran already";
    }
    count_tiles(&replayed, tiles, items);
    for (uint32_t d = 0; d < 2; ++d) {
        assert_string_equal(replayed.devices[d], prediction.names[d]);
        assert_int_equal(tiles[d], prediction.tiles[d]);
    }
    assert_true(fabs(replayed.seconds / prediction.seconds - 1) < 1e-5);
    free_all(&record, &prediction, &replayed);
}

/* Each run is in a runtime of its own here. */
static void test_trace_of_chunks(void **state)
{
    (void)state;
    enum { ITEMS = 200000, BATCHES = 3 };
    bench_sim_record record, replayed;
    bench_sim_prediction prediction;
    uint64_t tiles[2], items[2];
    (void)record_batches(TWO, ITEMS, BATCHES);
    replay(&record, BENCH_POLICY_DEFAULT, &prediction, &replayed);
    assert_true(record.is_first);
    assert_int_equal(replayed.job_count, BATCHES);
    count_tiles(&replayed, tiles, items);
    assert_int_equal(items[0] + items[1], BATCHES * ITEMS);
    for (uint32_t d = 0; d < 2; ++d)
        assert_int_equal(tiles[d], prediction.tiles[d]);
    assert_true(fabs(replayed.seconds / prediction.seconds - 1) < 1e-5);
    free_all(&record, &prediction, &replayed);
}

/* Tiles stolen. Those taken from a queue that devices share show as no theft in the trace. */
static uint64_t count_stolen(bench_policy policy, uint64_t *tiles)
{
    bench_sim_record record, replayed;
    bench_sim_prediction prediction;
    replay(&record, policy, &prediction, &replayed);
    uint64_t stolen = prediction.stolen[0] + prediction.stolen[1];
    assert_true(replayed.theft_count == 0 || stolen != 0);
    assert_int_equal(prediction.tiles[0] + prediction.tiles[1], TASKS);
    memcpy(tiles, prediction.tiles, 2 * sizeof *tiles);
    free_all(&record, &prediction, &replayed);
    return stolen;
}

static void test_policies(void **state)
{
    (void)state;
    uint64_t tiles[2];
    (void)record_graph(TWO);
    assert_true(count_stolen(BENCH_POLICY_STEAL, tiles) > 0);
    assert_int_equal(count_stolen(BENCH_POLICY_STATIC, tiles), 0);
    assert_int_equal(count_stolen(BENCH_POLICY_ROUND_ROBIN, tiles), 0);
    assert_int_equal(tiles[0], TASKS / 2);
    assert_int_equal(tiles[1], TASKS / 2);
}

/* Scores say that the devices are alike, and the record that the second is three times as fast: so
 * it has three quarters of the items, while static goes by the scores. */
static void test_perfect(void **state)
{
    (void)state;
    bench_sim_record record, replayed;
    bench_sim_prediction prediction;
    uint64_t tiles[2], items[2];
    (void)record_batches("{\"devices\": ["
                         "{\"name\": \"host:0\", \"speed\": 1e9, \"score\": 1, \"window\": 1},"
                         "{\"name\": \"host:1\", \"speed\": 3e9, \"score\": 1, \"window\": 1}]}",
                         200000, 1);
    replay(&record, BENCH_POLICY_STATIC, &prediction, &replayed);
    count_tiles(&replayed, tiles, items);
    assert_int_equal(items[0], items[1]);
    free_all(&record, &prediction, &replayed);
    replay(&record, BENCH_POLICY_PERFECT, &prediction, &replayed);
    count_tiles(&replayed, tiles, items);
    assert_true(fabs((double)items[1] / (double)items[0] / 3 - 1) < 0.05);
    assert_int_equal(prediction.stolen[0] + prediction.stolen[1], 0);
    free_all(&record, &prediction, &replayed);
}

static void test_unwritable_trace(void **state)
{
    (void)state;
    bench_sim_record record;
    bench_sim_prediction prediction;
    filch_error error = FILCH_ERROR_INIT;
    const bench_sim_setup setup = {.trace = "/no/such/folder/trace.json"};
    (void)record_graph(TWO);
    ok(bench_sim_record_read(&record, trace_path, &error));
    assert_int_equal(bench_sim_predict(&record, &setup, &prediction, &error), FILCH_IO);
    assert_string_equal(error.label, "--trace");
    assert_null(prediction.names);
    bench_sim_record_free(&record);
}

static void test_wrong_devices(void **state)
{
    (void)state;
    bench_sim_record record;
    bench_sim_prediction prediction;
    filch_error error = FILCH_ERROR_INIT;
    (void)record_batches(TWO, 200, 1);
    ok(bench_sim_record_read(&record, trace_path, &error));
    const bench_sim_setup setup = {.devices = "sim:/no/such/file"};
    assert_int_equal(bench_sim_predict(&record, &setup, &prediction, &error), FILCH_IO);
    bench_sim_record_free(&record);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_graph, clean),
        cmocka_unit_test_teardown(test_critical_path, clean),
        cmocka_unit_test_teardown(test_batches, clean),
        cmocka_unit_test_teardown(test_copies_of_tasks, clean),
        cmocka_unit_test_teardown(test_copies_of_chunks, clean),
        cmocka_unit_test_teardown(test_trace_of_tasks, clean_replayed),
        cmocka_unit_test_teardown(test_trace_of_chunks, clean_replayed),
        cmocka_unit_test_teardown(test_policies, clean_replayed),
        cmocka_unit_test_teardown(test_perfect, clean_replayed),
        cmocka_unit_test_teardown(test_unwritable_trace, clean),
        cmocka_unit_test_teardown(test_wrong_devices, clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
