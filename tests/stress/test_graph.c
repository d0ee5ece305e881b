/* SPDX-License-Identifier: Apache-2.0 */
/* Clients on threads of their own build, submit, resubmit, cancel and destroy graphs and batches
 * over handles that all share. A tile is a plain counter which every task that writes it raises, so
 * two writers at once, a lost task or one that ran twice shows in the sum (and as a race under the
 * thread sanitizer). A task that ran is an operation. */
#include <inttypes.h>
#include <stdio.h>

#include "base/thread.h"
#include "filch/filch.h"
#include "patience.h"
#include "stress.h"

enum { CLIENTS = 4, HANDLES = 3, TILES = 8, MOST_TASKS = 60, GRAPHS = 3 };

typedef struct field {
    stress stress;
    filch_runtime *runtime;
    filch_codelet *codelet, *batch;
    filch_data *data[HANDLES];
    uint64_t counters[HANDLES][TILES];         /* plain: the tiles */
    _Atomic uint64_t expected[HANDLES][TILES]; /* raises by tasks that ran; relaxed */
    _Atomic uint64_t done;
} field;

typedef struct client {
    field *field;
    uint64_t self;
    fl_random random;
    filch_graph *graphs[GRAPHS];
    filch_job *jobs[GRAPHS];
} client;

typedef struct task_args {
    field *field;
    uint64_t handle, tile; /* what it writes */
    uint64_t spin;
} task_args;

static int raise_tile(const filch_call *call)
{
    const task_args *args = call->args;
    uint64_t *counter = call->views[0].ptr;
    uint64_t value = *counter;
    for (uint64_t i = 0; i < args->spin; ++i) {
        fl_relax();
    }
    *counter = value + 1;
    if (call->view_count == 2) {
        /* Read beside others: only its not changing meanwhile can be checked. */
        const volatile uint64_t *other = call->views[1].ptr;
        if (*other != *other) {
            stress_fail(&args->field->stress, "a tile changed while it was read", 0);
        }
    }
    fl_add_relaxed(&args->field->expected[args->handle][args->tile], 1);
    fl_add_relaxed(&args->field->done, 1);
    return args->spin == 63 ? 1 : 0; /* some fail */
}

static int raise_chunk(const filch_call *call)
{
    const task_args *args = call->args;
    uint64_t *counters = call->views[0].ptr;
    for (uint64_t i = call->lo; i < call->hi; ++i) {
        counters[i - call->lo] += 1;
        fl_add_relaxed(&args->field->expected[args->handle][i], 1);
        fl_add_relaxed(&args->field->done, 1);
    }
    return 0;
}

static void expect(field *f, filch_status got, filch_status wanted, const char *call)
{
    if (got != wanted) {
        stress_fail(&f->stress, call, (uint64_t)got);
    }
}

static void make_graph(client *c, uint32_t at)
{
    field *f = c->field;
    filch_graph_desc desc = FILCH_GRAPH_DESC_INIT;
    desc.priorities = stress_below(&c->random, 2) ? FILCH_PRIORITIES_CALLER : FILCH_PRIORITIES_RANK;
    expect(f, filch_graph_create(f->runtime, &desc, &c->graphs[at]), FILCH_OK, "create");
    uint64_t tasks = stress_below(&c->random, MOST_TASKS);
    for (uint64_t i = 0; i < tasks; ++i) {
        task_args args = {f, stress_below(&c->random, HANDLES), stress_below(&c->random, TILES),
                          stress_below(&c->random, 64)};
        filch_access accesses[2] = {
            {.data = f->data[args.handle], .row = (uint32_t)args.tile, .mode = FILCH_READWRITE},
            {.data = f->data[stress_below(&c->random, HANDLES)],
             .row = (uint32_t)stress_below(&c->random, TILES),
             .mode = FILCH_READ}};
        bool is_same = accesses[1].data == accesses[0].data && accesses[1].row == accesses[0].row;
        filch_task_desc task = FILCH_TASK_DESC_INIT;
        task.codelet = f->codelet;
        task.args = &args;
        task.accesses = accesses;
        task.access_count = is_same || stress_below(&c->random, 2) ? 1 : 2;
        task.priority = (int32_t)stress_below(&c->random, 11) - 5;
        expect(f, filch_graph_add(c->graphs[at], &task, NULL), FILCH_OK, "add");
    }
}

static void finish(client *c, uint32_t at)
{
    if (c->jobs[at] == NULL) {
        return;
    }
    filch_status status = filch_job_wait(c->jobs[at], PATIENCE_S);
    if (status != FILCH_OK && status != FILCH_TASK_FAILED && status != FILCH_CANCELLED) {
        stress_fail(&c->field->stress, "a job hangs or is lost", (uint64_t)status);
    }
    expect(c->field, filch_job_release(c->jobs[at]), FILCH_OK, "release");
    c->jobs[at] = NULL;
}

static void submit(client *c, uint32_t at)
{
    filch_submit_desc how = FILCH_SUBMIT_DESC_INIT;
    how.on_failure = stress_below(&c->random, 4) ? FILCH_FAILURE_SKIP : FILCH_FAILURE_CANCEL;
    filch_job *job = NULL;
    /* Perhaps behind earlier runs, of which the newest alone has a handle. */
    filch_status status = filch_graph_submit(c->graphs[at], &how, &job);
    expect(c->field, status, FILCH_OK, "submit");
    if (status == FILCH_OK && c->jobs[at] != NULL) {
        expect(c->field, filch_job_release(c->jobs[at]), FILCH_OK, "release");
    }
    c->jobs[at] = status == FILCH_OK ? job : c->jobs[at];
}

static void destroy(client *c, uint32_t at)
{
    filch_status status = filch_graph_destroy(c->graphs[at]);
    /* The newest run, cancelled, may have ended before earlier ones; a further run has not. */
    for (int tries = 0; status == FILCH_BUSY && tries < 2; ++tries) {
        if (c->jobs[at] == NULL) {
            submit(c, at);
        }
        finish(c, at);
        status = filch_graph_destroy(c->graphs[at]);
    }
    expect(c->field, status, FILCH_OK, "destroy");
    if (c->jobs[at] != NULL) { /* a job outlives its graph */
        finish(c, at);
    }
    c->graphs[at] = NULL;
}

static void run_batch(client *c)
{
    field *f = c->field;
    task_args args = {f, stress_below(&c->random, HANDLES), 0, 0};
    filch_batch_access access = {
        .data = f->data[args.handle], .mode = FILCH_READWRITE, .map = FILCH_MAP_AFFINE, .scale = 1};
    filch_batch_desc desc = FILCH_BATCH_DESC_INIT;
    desc.codelet = f->batch;
    desc.args = &args;
    desc.n = TILES;
    desc.accesses = &access;
    desc.access_count = 1;
    filch_job *job = NULL;
    filch_status status = filch_batch_submit(f->runtime, &desc, NULL, &job);
    expect(f, status, FILCH_OK, "batch");
    if (status == FILCH_OK) {
        if (stress_below(&c->random, 2)) {
            status = filch_job_wait(job, PATIENCE_S);
            expect(f, status, FILCH_OK, "wait for a batch");
        }
        expect(f, filch_job_release(job), FILCH_OK, "release");
    }
}

static int client_main(void *arg)
{
    client *c = arg;
    field *f = c->field;
    fl_random_init(&c->random, f->stress.seed, c->self);
    while (fl_load_relaxed(&f->done) < f->stress.operations &&
           fl_load_relaxed(&f->stress.failures) == 0) {
        uint32_t at = (uint32_t)stress_below(&c->random, GRAPHS);
        if (c->graphs[at] == NULL) {
            make_graph(c, at);
            continue;
        }
        switch (stress_below(&c->random, 10)) {
        case 0:
            destroy(c, at);
            break;
        case 1:
            if (c->jobs[at] != NULL) {
                expect(f, filch_job_cancel(c->jobs[at]), FILCH_OK, "cancel");
            }
            break;
        case 2:
        case 3:
            run_batch(c);
            break;
        case 4:
        case 5:
            finish(c, at);
            break;
        default:
            submit(c, at);
            break;
        }
    }
    for (uint32_t i = 0; i < GRAPHS; ++i) {
        finish(c, i);
        if (c->graphs[i] != NULL) {
            destroy(c, i);
        }
    }
    return 0;
}

static void open_field(field *f, filch_drive drive, const char *devices)
{
    filch_runtime_desc config = FILCH_RUNTIME_DESC_INIT;
    filch_codelet_desc desc = FILCH_CODELET_DESC_INIT;
    config.devices = devices;
    config.drive = drive;
    expect(f, filch_runtime_create(&config, NULL, &f->runtime), FILCH_OK, "runtime");
    desc.name = "raise";
    desc.arg_size = sizeof(task_args);
    desc.host = raise_tile;
    expect(f, filch_codelet_create(f->runtime, &desc, &f->codelet), FILCH_OK, "codelet");
    desc.host = raise_chunk;
    expect(f, filch_codelet_create(f->runtime, &desc, &f->batch), FILCH_OK, "codelet");
    for (int h = 0; h < HANDLES; ++h) {
        filch_data_desc data = FILCH_DATA_DESC_INIT;
        data.ptr = f->counters[h];
        data.element = sizeof f->counters[h][0];
        data.rows = TILES;
        data.tile_rows = 1;
        expect(f, filch_data_create(f->runtime, &data, &f->data[h]), FILCH_OK, "data");
    }
}

static void run(field *f, filch_drive drive, const char *devices)
{
    static client clients[CLIENTS];
    fl_thread threads[CLIENTS];
    fl_store_relaxed(&f->done, 0);
    open_field(f, drive, devices);
    for (uint64_t i = 0; i < CLIENTS; ++i) {
        clients[i] = (client){.field = f, .self = i};
        expect(f, fl_thread_start(&threads[i], client_main, &clients[i]), FILCH_OK, "thread");
    }
    for (int i = 0; i < CLIENTS; ++i) {
        fl_thread_join(threads[i]);
    }
    expect(f, filch_runtime_drain(f->runtime, PATIENCE_S), FILCH_OK, "drain");
    for (int h = 0; h < HANDLES; ++h) {
        for (int t = 0; t < TILES; ++t) {
            if (f->counters[h][t] != fl_load_relaxed(&f->expected[h][t])) {
                stress_fail(&f->stress, "raises lost in a tile", f->counters[h][t]);
            }
        }
        expect(f, filch_data_destroy(f->data[h]), FILCH_OK, "destroy data");
    }
    printf("%s, %s: %" PRIu64 " tasks\n", devices, drive == FILCH_DRIVE_POLL ? "poll" : "threads",
           fl_load_relaxed(&f->done));
    expect(f, filch_runtime_destroy(f->runtime), FILCH_OK, "destroy runtime");
}

int main(int argc, char **argv)
{
    static field f;
    stress_begin(&f.stress, "graph", argc, argv, 300000, 10000000);
    run(&f, FILCH_DRIVE_THREADS, "host:3");
    run(&f, FILCH_DRIVE_POLL, "host:2");
    return stress_end(&f.stress);
}
