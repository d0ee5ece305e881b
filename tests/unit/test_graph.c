/* SPDX-License-Identifier: Apache-2.0 */
/* Building closed graphs: what is refused, what depends on what, and what a task is given. */
#include "fixture.h"

#include "graph/scheduler.h"
#include "graph/task/codelet.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static fixture_memory memory;
static filch_runtime *runtime, *other;
static filch_codelet *nothing, *note;
static double buffer[64];

/* The order in which tasks ran, by number; one worker. */
static int ran[4096];
static _Atomic int ran_count;

static int note_number(const filch_call *call)
{
    ran[ran_count++] = *(const int *)call->args;
    return 0;
}

static int set_up(void **state)
{
    (void)state;
    fixture_memory_init(&memory);
    runtime = fixture_runtime("host:1", FILCH_DRIVE_POLL, &memory);
    other = fixture_runtime("host:1", FILCH_DRIVE_POLL, NULL);
    nothing = fixture_codelet(runtime, "nothing", fixture_nothing, 0);
    note = fixture_codelet(runtime, "note", note_number, sizeof(int));
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    assert_ok(filch_runtime_destroy(other));
    assert_ok(filch_runtime_destroy(runtime));
    assert_int_equal(memory.bytes, 0);
    return 0;
}

static void bad_graphs_are_refused(void **state)
{
    (void)state;
    filch_graph_desc desc = FILCH_GRAPH_DESC_INIT;
    filch_graph *graph = (filch_graph *)(void *)buffer;
    assert_status(filch_graph_create(runtime, &desc, NULL), FILCH_INVALID_ARGUMENT);
#define REFUSE(member, value)                                                              \
    do {                                                                                   \
        desc = (filch_graph_desc)FILCH_GRAPH_DESC_INIT;                                    \
        desc.member = (value);                                                             \
        assert_status(filch_graph_create(runtime, &desc, &graph), FILCH_INVALID_ARGUMENT); \
        assert_string_equal(fixture_error(runtime).call, "filch_graph_create");            \
    } while (0)
    REFUSE(size, 0);
    REFUSE(size, offsetof(filch_graph_desc, max_live) - 1);
    REFUSE(max_live, 1);
    REFUSE(kind, (filch_graph_kind)2);
    REFUSE(priorities, (filch_priorities)2);
    REFUSE(priority_min, 1);
    assert_ptr_equal(graph, buffer);
    assert_ok(filch_graph_create(runtime, NULL, &graph)); /* null: defaults */
    assert_ok(filch_graph_destroy(graph));
}

static void bad_tasks_are_refused_and_change_nothing(void **state)
{
    (void)state;
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    filch_data *data = fixture_vector(runtime, buffer, 8, 64, 16);
    filch_data *foreign = fixture_vector(other, buffer, 8, 64, 16);
    filch_codelet *elsewhere = fixture_codelet(other, "elsewhere", fixture_nothing, 0);
    filch_task_desc good = FILCH_TASK_DESC_INIT, desc;
    filch_access accesses[256];
    for (uint32_t i = 0; i < 256; ++i) {
        accesses[i] = fixture_access(data, i % 4, FILCH_READ);
    }
    good.codelet = nothing;
    good.accesses = accesses;
    good.access_count = 2;
    good.label = "the task";
    filch_task task = 12345;
    assert_status(filch_graph_add(graph, NULL, &task), FILCH_INVALID_ARGUMENT);
#undef REFUSE
#define REFUSE(member, value, expected)                                \
    do {                                                               \
        desc = good;                                                   \
        desc.member = (value);                                         \
        assert_status(filch_graph_add(graph, &desc, &task), expected); \
        filch_error error_ = fixture_error(runtime);                   \
        assert_int_equal(error_.status, expected);                     \
        assert_string_equal(error_.call, "filch_graph_add");           \
    } while (0)
    REFUSE(size, 0, FILCH_INVALID_ARGUMENT);
    REFUSE(size, offsetof(filch_task_desc, items) - 1, FILCH_INVALID_ARGUMENT);
    REFUSE(codelet, NULL, FILCH_INVALID_HANDLE);
    REFUSE(codelet, (filch_codelet *)(void *)graph, FILCH_INVALID_HANDLE);
    REFUSE(codelet, elsewhere, FILCH_WRONG_RUNTIME);
    REFUSE(codelet, note, FILCH_INVALID_ARGUMENT); /* arguments are missing */
    REFUSE(args, buffer, FILCH_INVALID_ARGUMENT);  /* the codelet takes none */
    accesses[1].reserved = 1;
    REFUSE(accesses, accesses, FILCH_INVALID_ARGUMENT);
    accesses[1].reserved = 0;
    REFUSE(access_count, 256, FILCH_INVALID_ARGUMENT);
    REFUSE(accesses, NULL, FILCH_INVALID_ARGUMENT);
    REFUSE(affinity, 2, FILCH_INVALID_ARGUMENT);
    assert_non_null(strstr(fixture_error(runtime).text, "affinity 2 is above the device count, 1"));
    REFUSE(reserved, 1, FILCH_INVALID_ARGUMENT);
#define REFUSE_ACCESS(status, ...)                                     \
    do {                                                               \
        accesses[1] = (filch_access)__VA_ARGS__;                       \
        assert_status(filch_graph_add(graph, &good, &task), status);   \
        assert_string_equal(fixture_error(runtime).label, "the task"); \
    } while (0)
    REFUSE_ACCESS(FILCH_INVALID_HANDLE, {.mode = FILCH_READ});
    REFUSE_ACCESS(FILCH_WRONG_RUNTIME, {.data = foreign, .mode = FILCH_READ});
    REFUSE_ACCESS(FILCH_INVALID_ARGUMENT, {.data = data, .mode = (filch_access_mode)0});
    REFUSE_ACCESS(FILCH_INVALID_ARGUMENT, {.data = data, .mode = (filch_access_mode)5});
    REFUSE_ACCESS(FILCH_INVALID_ARGUMENT, {.data = data, .row = 4, .mode = FILCH_READ});
    REFUSE_ACCESS(FILCH_INVALID_ARGUMENT, {.data = data, .col = 1, .mode = FILCH_READ});
    REFUSE_ACCESS(FILCH_INVALID_ARGUMENT, {.data = data, .row = UINT32_MAX, .mode = FILCH_READ});
    REFUSE_ACCESS(FILCH_INVALID_ARGUMENT, {.data = data, .mode = FILCH_WRITE}); /* twice */
    REFUSE_ACCESS(FILCH_INVALID_ARGUMENT, {.data = data, .mode = FILCH_READWRITE});
    REFUSE_ACCESS(FILCH_INVALID_ARGUMENT, {.data = data, .mode = FILCH_READ, .bytes = 1});
    REFUSE_ACCESS(FILCH_INVALID_ARGUMENT, {.mode = FILCH_SCRATCH});
    REFUSE_ACCESS(FILCH_INVALID_ARGUMENT, {.data = data, .mode = FILCH_SCRATCH, .bytes = 8});
    REFUSE_ACCESS(FILCH_INVALID_ARGUMENT, {.mode = FILCH_SCRATCH, .bytes = (uint64_t)1 << 38});
    REFUSE_ACCESS(FILCH_INVALID_ARGUMENT, {.mode = FILCH_SCRATCH, .bytes = UINT64_MAX});
    assert_int_equal(task, 12345);
    /* The same tile twice to read, and 255 accesses, are fine. */
    accesses[1] = accesses[0];
    good.access_count = 255;
    assert_ok(filch_graph_add(graph, &good, &task));
    filch_usage usage = {.size = sizeof usage};
    assert_ok(filch_runtime_usage(runtime, &usage));
    assert_int_equal(usage.tasks_live, 1);
    assert_ok(fixture_run(graph));
    assert_ok(filch_graph_destroy(graph));
    assert_ok(filch_runtime_usage(runtime, &usage));
    assert_int_equal(usage.tasks_live, 0);
    assert_ok(filch_data_destroy(data));
    assert_ok(filch_data_destroy(foreign));
}

/* Every device of this runtime runs host functions only. */
static void a_task_that_no_device_can_run_is_refused(void **state)
{
    (void)state;
    filch_codelet *codelet = fixture_codelet(runtime, "elsewhere", fixture_nothing, 0);
    fl_scheduler *scheduler = fl_core_of(runtime)->scheduler;
    assert_int_equal(codelet->device_count, scheduler->device_count);
    codelet->implementations = FL_IMPL_CUDA;
    scheduler->codelet_init(scheduler, codelet);
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    filch_task_desc task = FILCH_TASK_DESC_INIT;
    task.codelet = codelet;
    assert_status(filch_graph_add(graph, &task, NULL), FILCH_NO_DEVICE);
    assert_non_null(strstr(fixture_error(runtime).text, "elsewhere"));
    filch_batch_desc batch = FILCH_BATCH_DESC_INIT;
    batch.codelet = codelet;
    batch.n = 1;
    assert_status(filch_batch_submit(runtime, &batch, NULL, NULL), FILCH_NO_DEVICE);
    assert_ok(fixture_run(graph));
    assert_ok(filch_graph_destroy(graph));
}

static void states_are_kept_to(void **state)
{
    (void)state;
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    filch_task_desc task = FILCH_TASK_DESC_INIT;
    task.codelet = nothing;
    filch_task a = fixture_add(graph, nothing, NULL, NULL, 0);
    filch_task b = fixture_add(graph, nothing, NULL, NULL, 0);
    assert_status(filch_graph_close(graph), FILCH_WRONG_STATE);
    assert_ok(filch_graph_seal(graph));
    assert_ok(filch_graph_seal(graph)); /* nothing to do */
    assert_status(filch_graph_add(graph, &task, NULL), FILCH_WRONG_STATE);
    assert_status(filch_graph_edge(graph, a, b), FILCH_WRONG_STATE);
    filch_job *job = NULL, *second = NULL;
    assert_ok(filch_graph_submit(graph, NULL, &job));
    assert_status(filch_graph_destroy(graph), FILCH_BUSY);
    assert_string_equal(fixture_error(runtime).call, "filch_graph_destroy");
    assert_status(filch_runtime_destroy(runtime), FILCH_BUSY);
    assert_ok(filch_graph_submit(graph, NULL, &second)); /* behind the first job */
    assert_status(filch_graph_destroy(graph), FILCH_BUSY);
    assert_status(filch_runtime_destroy(runtime), FILCH_BUSY);
    assert_ok(filch_job_wait(second, -1));
    assert_status(filch_job_status(job), FILCH_OK);
    assert_ok(filch_job_release(second));
    assert_ok(filch_graph_submit(graph, NULL, &second)); /* while the first handle is held */
    assert_ok(filch_job_wait(second, -1));
    assert_ok(filch_graph_destroy(graph));
    filch_job_info info = {.size = sizeof info};
    assert_ok(filch_job_stats(job, &info, NULL, 0)); /* outlives its graph */
    assert_int_equal(info.done, 2);
    assert_ok(filch_job_release(job));
    assert_ok(filch_job_release(second));
#ifndef NDEBUG
    assert_status(filch_graph_submit(graph, NULL, NULL), FILCH_INVALID_HANDLE);
    assert_status(filch_graph_add(graph, &task, NULL), FILCH_INVALID_HANDLE);
    assert_status(filch_graph_destroy(graph), FILCH_INVALID_HANDLE);
    assert_status(filch_job_status(job), FILCH_INVALID_HANDLE);
#endif
}

static void submissions_are_checked(void **state)
{
    (void)state;
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    filch_job *job = NULL;
    filch_submit_desc submit = FILCH_SUBMIT_DESC_INIT;
    submit.size = 0;
    assert_status(filch_graph_submit(graph, &submit, &job), FILCH_INVALID_ARGUMENT);
    submit = (filch_submit_desc)FILCH_SUBMIT_DESC_INIT;
    submit.on_failure = (filch_on_failure)2;
    assert_status(filch_graph_submit(graph, &submit, &job), FILCH_INVALID_ARGUMENT);
    submit = (filch_submit_desc)FILCH_SUBMIT_DESC_INIT;
    submit.reserved = 1;
    assert_status(filch_graph_submit(graph, &submit, &job), FILCH_INVALID_ARGUMENT);
    assert_null(job);
    assert_ok(filch_graph_submit(graph, NULL, NULL)); /* empty, and nobody waits */
    assert_ok(fixture_run(graph));
    assert_ok(filch_graph_destroy(graph));
}

/* A random program of reads and writes, against one that keeps, for each tile, who wrote it last.
 */
#define TILES 12
#define TASKS 400

typedef struct step {
    uint32_t tiles[5];
    bool writes[5];
    uint32_t count;
} step;

static uint64_t values[TILES], expected[TILES];

static uint64_t mix(uint64_t x, uint64_t y)
{
    return (x ^ (y + 0x9e3779b97f4a7c15u + (x << 6))) * 0xff51afd7ed558ccdu;
}

static void do_step(const step *s, uint64_t *tiles)
{
    uint64_t sum = 1;
    for (uint32_t i = 0; i < s->count; ++i) {
        sum = mix(sum, tiles[s->tiles[i]]);
    }
    for (uint32_t i = 0; i < s->count; ++i) {
        if (s->writes[i]) {
            tiles[s->tiles[i]] = mix(sum, i);
        }
    }
}

static int run_step(const filch_call *call)
{
    step s = *(const step *)call->args;
    uint64_t sum = 1;
    for (uint32_t i = 0; i < s.count; ++i) {
        if (call->views[i].row != s.tiles[i]) {
            return 1;
        }
        sum = mix(sum, *(const uint64_t *)call->views[i].ptr);
    }
    for (uint32_t i = 0; i < s.count; ++i) {
        if (s.writes[i]) {
            *(uint64_t *)call->views[i].ptr = mix(sum, i);
        }
    }
    return 0;
}

static void inference_keeps_program_order(void **state)
{
    (void)state;
    uint64_t seed = 7;
    for (int drive = FILCH_DRIVE_THREADS; drive <= FILCH_DRIVE_POLL; ++drive) {
        filch_runtime *rt = fixture_runtime("host:4", (filch_drive)drive, NULL);
        filch_codelet *codelet = fixture_codelet(rt, "step", run_step, sizeof(step));
        filch_data *data = fixture_vector(rt, values, 8, TILES, 1);
        filch_graph *graph = fixture_graph(rt, FILCH_GRAPH_CLOSED);
        memset(values, 0, sizeof values);
        memset(expected, 0, sizeof expected);
        static step steps[TASKS];
        for (uint32_t t = 0; t < TASKS; ++t) {
            step *s = &steps[t];
            filch_access accesses[5];
            memset(s, 0, sizeof *s);
            uint32_t want = (uint32_t)((seed = mix(seed, t)) % 6);
            for (uint32_t i = 0; i < want; ++i) {
                uint32_t tile = (uint32_t)((seed = mix(seed, i)) % TILES);
                bool is_new = true;
                for (uint32_t j = 0; j < s->count; ++j) {
                    is_new = is_new && s->tiles[j] != tile;
                }
                if (is_new) {
                    s->tiles[s->count] = tile;
                    s->writes[s->count] = (seed >> 40) % 3 == 0;
                    accesses[s->count] = fixture_access(
                        data, tile, s->writes[s->count] ? FILCH_READWRITE : FILCH_READ);
                    ++s->count;
                }
            }
            fixture_add(graph, codelet, s, accesses, s->count);
        }
        for (int round = 0; round < 20; ++round) {
            for (uint32_t t = 0; t < TASKS; ++t) {
                do_step(&steps[t], expected);
            }
            assert_ok(fixture_run(graph));
            assert_memory_equal(values, expected, sizeof values);
        }
        assert_ok(filch_runtime_destroy(rt));
    }
}

static filch_view views[3];

static int keep_views(const filch_call *call)
{
    memcpy(views, call->views, call->view_count * sizeof *views);
    memset(call->views[1].ptr, 0xa5, call->views[1].rows);
    memset(call->views[2].ptr, 0x5a, call->views[2].rows);
    return call->view_count == 3 && call->team == 1 && call->device == 0 && call->lo == 0 &&
                   call->hi == 0 && call->runtime == runtime && call->reserved == 0
               ? 0
               : 1;
}

static void views_and_scratch_are_what_was_asked_for(void **state)
{
    (void)state;
    filch_data_desc desc = FILCH_DATA_DESC_INIT;
    filch_data *data = NULL;
    desc.ptr = buffer;
    desc.element = 8;
    desc.rows = 7;
    desc.cols = 5;
    desc.ld = 9;
    desc.tile_rows = 3;
    desc.tile_cols = 2;
    assert_ok(filch_data_create(runtime, &desc, &data));
    filch_codelet *keep = fixture_codelet(runtime, "keep", keep_views, 0);
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    filch_access accesses[3] = {{.data = data, .row = 2, .col = 2, .mode = FILCH_READ},
                                {.mode = FILCH_SCRATCH, .bytes = 100},
                                {.mode = FILCH_SCRATCH, .bytes = 1u << 20}};
    fixture_add(graph, keep, NULL, accesses, 3);
    assert_ok(fixture_run(graph));
    assert_ptr_equal(views[0].ptr, buffer + 4 * 9 + 6);
    assert_int_equal(views[0].rows, 1);
    assert_int_equal(views[0].cols, 1);
    assert_int_equal(views[0].ld, 9);
    assert_int_equal(views[0].row, 6);
    assert_int_equal(views[0].col, 4);
    assert_int_equal(views[0].element, 8);
    for (int i = 1; i < 3; ++i) {
        assert_int_equal((uintptr_t)views[i].ptr % 64, 0);
        assert_int_equal(views[i].rows, i == 1 ? 128 : 1u << 20); /* whole lines of 64 bytes */
        assert_int_equal(views[i].cols, 1);
        assert_int_equal(views[i].element, 1);
    }
    assert_true((char *)views[2].ptr >= (char *)views[1].ptr + 100);
    assert_ok(filch_graph_destroy(graph));
    assert_ok(filch_data_destroy(data));
}

static void scratch_that_cannot_be_had_fails_the_task(void **state)
{
    (void)state;
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    filch_access access = {.mode = FILCH_SCRATCH, .bytes = 1u << 22};
    fixture_add(graph, nothing, NULL, &access, 1);
    assert_ok(filch_graph_seal(graph));
    filch_job *job = NULL;
    filch_error error = FILCH_ERROR_INIT;
    assert_ok(filch_graph_submit(graph, NULL, &job));
    memory.fail_all = 1;
    assert_status(filch_job_wait(job, -1), FILCH_TASK_FAILED);
    memory.fail_all = 0;
    assert_ok(filch_job_error(job, &error));
    assert_int_equal(error.status, FILCH_OUT_OF_MEMORY);
    assert_ok(filch_job_release(job));
    assert_ok(fixture_run(graph));
    assert_ok(filch_graph_destroy(graph));
}

static void edges_are_checked(void **state)
{
    (void)state;
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    filch_graph *open = fixture_graph(runtime, FILCH_GRAPH_OPEN);
    filch_graph *foreign = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    filch_task a = fixture_add(graph, nothing, NULL, NULL, 0);
    filch_task b = fixture_add(graph, nothing, NULL, NULL, 0);
    filch_task c = fixture_add(foreign, nothing, NULL, NULL, 0);
    assert_status(filch_graph_edge(graph, a, a), FILCH_INVALID_ARGUMENT);
    assert_status(filch_graph_edge(graph, 0, b), FILCH_INVALID_ARGUMENT);
    assert_status(filch_graph_edge(graph, a, 0), FILCH_INVALID_ARGUMENT);
    assert_status(filch_graph_edge(graph, a, c), FILCH_INVALID_ARGUMENT);
    assert_status(filch_graph_edge(graph, c, a), FILCH_INVALID_ARGUMENT);
    assert_status(filch_graph_edge(graph, a + 8, b), FILCH_INVALID_ARGUMENT);
    assert_status(filch_graph_edge(graph, a, b + 128 * 1000), FILCH_INVALID_ARGUMENT);
    assert_status(filch_graph_edge(open, a, b), FILCH_WRONG_STATE);
    assert_ok(filch_graph_edge(graph, a, b));
    assert_ok(filch_graph_destroy(open));
    assert_ok(filch_graph_destroy(foreign));
    assert_ok(fixture_run(graph));
    assert_ok(filch_graph_destroy(graph));
}

static void fan_out_and_fan_in_of_every_width(void **state)
{
    (void)state;
    static const int widths[] = {1, 2, 3, 4, 5, 16, 17, 18, 31, 32, 200, 1000};
    for (size_t w = 0; w < sizeof widths / sizeof widths[0]; ++w) {
        filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
        int n = widths[w], number = n + 1;
        filch_task last = fixture_add(graph, note, &number, NULL, 0);
        number = 0;
        filch_task first = fixture_add(graph, note, &number, NULL, 0);
        filch_task *middle = malloc((size_t)n * sizeof *middle);
        for (int i = 0; i < n; ++i) {
            number = i + 1;
            middle[i] = fixture_add(graph, note, &number, NULL, 0);
        }
        /* Each edge twice, in another order: duplicates are harmless. */
        for (int i = 0; i < n; ++i) {
            assert_ok(filch_graph_edge(graph, first, middle[i]));
            assert_ok(filch_graph_edge(graph, middle[i], last));
        }
        for (int i = n; i-- > 0;) {
            assert_ok(filch_graph_edge(graph, first, middle[i]));
            assert_ok(filch_graph_edge(graph, middle[i], last));
        }
        assert_ok(filch_graph_edge(graph, first, last));
        for (int round = 0; round < 3; ++round) {
            bool seen[1002] = {false};
            ran_count = 0;
            assert_ok(fixture_run(graph));
            assert_int_equal(ran_count, n + 2);
            assert_int_equal(ran[0], 0);
            assert_int_equal(ran[n + 1], n + 1);
            for (int i = 0; i < n + 2; ++i) {
                assert_false(seen[ran[i]]);
                seen[ran[i]] = true;
            }
        }
        free(middle);
        assert_ok(filch_graph_destroy(graph));
    }
}

static void many_readers_hold_a_writer_back(void **state)
{
    (void)state;
    static const int widths[] = {1, 3, 15, 16, 17, 33, 300};
    filch_data *data = fixture_vector(runtime, buffer, 8, 64, 64);
    for (size_t w = 0; w < sizeof widths / sizeof widths[0]; ++w) {
        filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
        int n = widths[w];
        filch_access read = fixture_access(data, 0, FILCH_READ);
        filch_access write = fixture_access(data, 0, FILCH_WRITE);
        int first = -1, last = -2;
        fixture_add(graph, note, &first, &write, 1);
        for (int i = 0; i < n; ++i) {
            fixture_add(graph, note, &i, &read, 1);
        }
        fixture_add(graph, note, &last, &write, 1);
        ran_count = 0;
        assert_ok(fixture_run(graph));
        assert_int_equal(ran_count, n + 2);
        assert_int_equal(ran[0], -1);
        assert_int_equal(ran[n + 1], -2);
        assert_ok(filch_graph_destroy(graph));
    }
    assert_ok(filch_data_destroy(data));
}

/* A tile named a second time is found wherever it stands among 255 accesses. */
static void a_tile_named_twice_is_found(void **state)
{
    (void)state;
    enum { MOST = 255, SIDE = 16, HANDLES = 4 };
    static char cells[HANDLES][SIDE * SIDE];
    filch_data *data[HANDLES];
    filch_data_desc desc = FILCH_DATA_DESC_INIT;
    desc.element = desc.tile_rows = desc.tile_cols = 1;
    desc.rows = desc.cols = SIDE;
    for (int h = 0; h < HANDLES; ++h) {
        desc.ptr = cells[h];
        assert_ok(filch_data_create(runtime, &desc, &data[h]));
    }
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    filch_access accesses[MOST];
    for (uint32_t i = 0; i < MOST; ++i) {
        uint32_t at = i / HANDLES;
        accesses[i] = (filch_access)FILCH_R(data[i % HANDLES], at / SIDE, at % SIDE);
    }
    filch_task_desc task = FILCH_TASK_DESC_INIT;
    task.codelet = nothing;
    task.accesses = accesses;
    task.access_count = MOST;
    assert_ok(filch_graph_add(graph, &task, NULL));
    for (uint32_t i = 1; i < MOST; ++i) {
        uint32_t twin = (i * 7 + 3) % i;
        filch_access before = accesses[i];
        accesses[i] = accesses[twin];
        assert_ok(filch_graph_add(graph, &task, NULL)); /* both read */
        accesses[i].mode = FILCH_WRITE;
        assert_status(filch_graph_add(graph, &task, NULL), FILCH_INVALID_ARGUMENT);
        char wanted[64];
        snprintf(wanted, sizeof wanted, "accesses %u and %u name tile (%u, %u)", twin, i,
                 accesses[i].row, accesses[i].col);
        assert_non_null(strstr(fixture_error(runtime).text, wanted));
        accesses[i] = before;
    }
    assert_ok(fixture_run(graph));
    assert_ok(filch_graph_destroy(graph));
    for (int h = 0; h < HANDLES; ++h) {
        assert_ok(filch_data_destroy(data[h]));
    }
}

static void many_handles_in_one_graph(void **state)
{
    (void)state;
    enum { HANDLES = 500 };
    static filch_data *handles[HANDLES];
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    for (int i = 0; i < HANDLES; ++i) {
        handles[i] = fixture_vector(runtime, buffer, 8, 64, 64);
    }
    ran_count = 0;
    for (int round = 0; round < 3; ++round) {
        for (int i = 0; i < HANDLES; ++i) {
            filch_access access = fixture_access(handles[i], 0, FILCH_READWRITE);
            int number = round * HANDLES + i;
            fixture_add(graph, note, &number, &access, 1);
        }
    }
    assert_ok(fixture_run(graph));
    assert_int_equal(ran_count, 3 * HANDLES);
    int last[HANDLES];
    memset(last, -1, sizeof last);
    for (int i = 0; i < ran_count; ++i) {
        assert_int_equal(ran[i] / HANDLES, last[ran[i] % HANDLES] + 1);
        last[ran[i] % HANDLES] = ran[i] / HANDLES;
    }
    assert_ok(filch_graph_destroy(graph));
    for (int i = 0; i < HANDLES; ++i) {
        assert_ok(filch_data_destroy(handles[i]));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_graphs_are_refused),
        cmocka_unit_test(bad_tasks_are_refused_and_change_nothing),
        cmocka_unit_test(a_task_that_no_device_can_run_is_refused),
        cmocka_unit_test(states_are_kept_to),
        cmocka_unit_test(submissions_are_checked),
        cmocka_unit_test(inference_keeps_program_order),
        cmocka_unit_test(views_and_scratch_are_what_was_asked_for),
        cmocka_unit_test(scratch_that_cannot_be_had_fails_the_task),
        cmocka_unit_test(edges_are_checked),
        cmocka_unit_test(fan_out_and_fan_in_of_every_width),
        cmocka_unit_test(many_readers_hold_a_writer_back),
        cmocka_unit_test(a_tile_named_twice_is_found),
        cmocka_unit_test(many_handles_in_one_graph),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
