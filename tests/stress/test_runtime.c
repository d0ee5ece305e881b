/* SPDX-License-Identifier: Apache-2.0 */
/* Threads create runtimes, use two at a time, and destroy or abort them, beside each other. A
 * runtime is an operation. */
#include <inttypes.h>
#include <stdio.h>

#include "base/thread.h"
#include "filch/filch.h"
#include "patience.h"
#include "stress.h"

enum { OWNERS = 3, ITEMS = 5000 };

typedef struct field {
    stress stress;
    _Atomic uint64_t made, aborted;
} field;

typedef struct owner {
    field *field;
    uint64_t self;
    fl_random random;
    uint64_t cells[2][ITEMS]; /* plain */
} owner;

static void expect(field *f, filch_status got, filch_status wanted, const char *call)
{
    if (got != wanted) {
        stress_fail(&f->stress, call, (uint64_t)got);
    }
}

static int raise_cells(const filch_call *call)
{
    uint64_t *cells = call->views[0].ptr;
    for (uint64_t i = 0; i < call->hi - call->lo; ++i) {
        cells[i] += 1;
    }
    return 0;
}

static int spin_task(const filch_call *call)
{
    (void)call;
    for (int i = 0; i < 100; ++i) {
        fl_relax();
    }
    return 0;
}

static filch_runtime *make(owner *o)
{
    static const char *const devices[] = {"host:1", "host:2", "host:3"};
    filch_runtime_desc config = FILCH_RUNTIME_DESC_INIT;
    filch_runtime *runtime = NULL;
    config.devices = devices[stress_below(&o->random, 3)];
    config.drive = stress_below(&o->random, 3) ? FILCH_DRIVE_THREADS : FILCH_DRIVE_POLL;
    config.trace = (uint32_t)stress_below(&o->random, 2);
    expect(o->field, filch_runtime_create(&config, NULL, &runtime), FILCH_OK, "create");
    fl_add_relaxed(&o->field->made, 1);
    return runtime;
}

/* A batch over the cells; its handle for the runtime's other users. */
static filch_job *start(owner *o, filch_runtime *runtime, uint64_t *cells)
{
    filch_codelet_desc desc = FILCH_CODELET_DESC_INIT;
    filch_codelet *codelet = NULL;
    filch_data_desc data = FILCH_DATA_DESC_INIT;
    filch_batch_access access = {.mode = FILCH_READWRITE, .map = FILCH_MAP_AFFINE, .scale = 1};
    filch_batch_desc batch = FILCH_BATCH_DESC_INIT;
    filch_job *job = NULL;
    desc.name = "raise";
    desc.host = raise_cells;
    expect(o->field, filch_codelet_create(runtime, &desc, &codelet), FILCH_OK, "codelet");
    data.ptr = cells;
    data.element = sizeof *cells;
    data.rows = ITEMS;
    expect(o->field, filch_data_create(runtime, &data, &access.data), FILCH_OK, "data");
    batch.codelet = codelet;
    batch.n = ITEMS;
    batch.accesses = &access;
    batch.access_count = 1;
    expect(o->field, filch_batch_submit(runtime, &batch, NULL, &job), FILCH_OK, "submit");
    return job;
}

/* Aborted with a graph that is open and tasks that wait. */
static void abort_busy(owner *o, filch_runtime *runtime)
{
    filch_graph_desc desc = FILCH_GRAPH_DESC_INIT;
    filch_codelet_desc codelet_desc = FILCH_CODELET_DESC_INIT;
    filch_task_desc task = FILCH_TASK_DESC_INIT;
    filch_graph *graph = NULL;
    filch_job *job = NULL;
    desc.kind = FILCH_GRAPH_OPEN;
    codelet_desc.name = "spin";
    codelet_desc.host = spin_task;
    expect(o->field, filch_codelet_create(runtime, &codelet_desc, &task.codelet), FILCH_OK,
           "codelet");
    expect(o->field, filch_graph_create(runtime, &desc, &graph), FILCH_OK, "graph");
    expect(o->field, filch_graph_submit(graph, NULL, &job), FILCH_OK, "submit");
    for (uint64_t i = stress_below(&o->random, 200); i != 0; --i) {
        expect(o->field, filch_graph_add(graph, &task, NULL), FILCH_OK, "add");
    }
    expect(o->field, filch_runtime_destroy(runtime), FILCH_BUSY, "destroy while a job runs");
    expect(o->field, filch_runtime_abort(runtime), FILCH_OK, "abort");
    fl_add_relaxed(&o->field->aborted, 1);
}

static void end(owner *o, filch_runtime *runtime)
{
    if (stress_below(&o->random, 4) == 0) {
        abort_busy(o, runtime);
        return;
    }
    if (stress_below(&o->random, 2)) {
        expect(o->field, filch_runtime_drain(runtime, -1), FILCH_OK, "drain");
    }
    expect(o->field, filch_runtime_destroy(runtime), FILCH_OK, "destroy");
}

static int owner_main(void *arg)
{
    owner *o = arg;
    field *f = o->field;
    fl_random_init(&o->random, f->stress.seed, o->self);
    for (uint64_t round = 1; fl_load_relaxed(&f->made) < f->stress.operations &&
                             fl_load_relaxed(&f->stress.failures) == 0;
         ++round) {
        filch_runtime *runtimes[2];
        filch_job *jobs[2];
        for (int i = 0; i < 2; ++i) {
            runtimes[i] = make(o);
            jobs[i] = start(o, runtimes[i], o->cells[i]);
        }
        for (int i = 0; i < 2; ++i) {
            expect(f, filch_job_wait(jobs[i], PATIENCE), FILCH_OK, "wait");
            for (int k = 0; k < ITEMS; ++k) {
                if (o->cells[i][k] != round) {
                    stress_fail(&f->stress, "a cell was not raised once", o->cells[i][k]);
                    break;
                }
            }
            if (stress_below(&o->random, 2)) {
                expect(f, filch_job_release(jobs[i]), FILCH_OK, "release");
            }
        }
        for (int i = 0; i < 2; ++i) {
            end(o, runtimes[i]);
        }
    }
    return 0;
}

int main(int argc, char **argv)
{
    static field f;
    static owner owners[OWNERS];
    fl_thread threads[OWNERS];
    stress_begin(&f.stress, "runtime", argc, argv, 1000, 50000);
    for (uint64_t i = 0; i < OWNERS; ++i) {
        owners[i] = (owner){.field = &f, .self = i};
        expect(&f, fl_thread_start(&threads[i], owner_main, &owners[i]), FILCH_OK, "thread");
    }
    for (int i = 0; i < OWNERS; ++i) {
        fl_thread_join(threads[i]);
    }
    printf("%" PRIu64 " runtimes, %" PRIu64 " aborted\n", fl_load_relaxed(&f.made),
           fl_load_relaxed(&f.aborted));
    return stress_end(&f.stress);
}
