/* SPDX-License-Identifier: Apache-2.0 */
/* Producers add to one open graph, its tasks add more to it, and some build, submit and wait for
 * closed graphs of their own. Counters in plain memory show lost and doubled tasks and missing
 * edges; the graph's memory must not grow with the number of tasks that went through it. A task is
 * an operation. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/thread.h"
#include "filch/filch.h"
#include "patience.h"
#include "stress.h"

enum { PRODUCERS = 3, MOST_WAITING = 256, DEPTH = 3, TILES = PRODUCERS + 1 };

typedef struct field {
    stress stress;
    filch_runtime *runtime;
    filch_codelet *codelet, *leaf;
    filch_graph *graph;
    filch_data *data;
    uint64_t counters[TILES]; /* plain; one a producer, and one that all write now and then */
    uint64_t raised[TILES];   /* by whom: the producer alone, the last by several under a lock */
    fl_mutex lock;
    _Atomic uint64_t added, done, leaves, leaves_added;
    _Atomic uint64_t waiting[PRODUCERS]; /* tasks of each producer's trees that have not run */
} field;

typedef struct task_args {
    field *field;
    uint32_t producer, depth;
    bool nests;
} task_args;

static void expect(field *f, filch_status got, const char *call)
{
    if (got != FILCH_OK) {
        stress_fail(&f->stress, call, (uint64_t)got);
    }
}

static void add(field *f, uint32_t producer, uint32_t depth, bool nests, const filch_access *access,
                uint32_t count)
{
    task_args args;
    memset(&args, 0, sizeof args);
    args.field = f;
    args.producer = producer;
    args.depth = depth;
    args.nests = nests;
    filch_task_desc desc = FILCH_TASK_DESC_INIT;
    desc.codelet = f->codelet;
    desc.args = &args;
    desc.accesses = access;
    desc.access_count = count;
    fl_add_relaxed(&f->waiting[producer], 1);
    fl_add_relaxed(&f->added, 1);
    expect(f, filch_graph_add(f->graph, &desc, NULL), "add");
}

static int run_leaf(const filch_call *call)
{
    const task_args *args = call->args;
    fl_add_relaxed(&args->field->leaves, 1);
    return 0;
}

/* A closed graph, from inside a task; the wait runs other tasks meanwhile. */
static void run_nested(field *f)
{
    filch_graph *graph = NULL;
    filch_job *job = NULL;
    task_args args;
    memset(&args, 0, sizeof args);
    args.field = f;
    expect(f, filch_graph_create(f->runtime, NULL, &graph), "nested create");
    filch_task_desc desc = FILCH_TASK_DESC_INIT;
    desc.codelet = f->leaf;
    desc.args = &args;
    for (int i = 0; i < 5; ++i) {
        expect(f, filch_graph_add(graph, &desc, NULL), "nested add");
        fl_add_relaxed(&f->leaves_added, 1);
    }
    expect(f, filch_graph_submit(graph, NULL, &job), "nested submit");
    expect(f, filch_job_wait(job, PATIENCE_S), "nested wait");
    expect(f, filch_job_release(job), "nested release");
    expect(f, filch_graph_destroy(graph), "nested destroy");
}

static int run_task(const filch_call *call)
{
    const task_args *args = call->args;
    field *f = args->field;
    for (uint32_t i = 0; i < call->view_count; ++i) {
        uint64_t *counter = call->views[i].ptr;
        *counter += 1;
    }
    if (args->nests) {
        run_nested(f);
    }
    for (uint32_t i = 0; i < 2 && args->depth != 0; ++i) {
        add(f, args->producer, args->depth - 1, false, NULL, 0);
    }
    fl_sub_relaxed(&f->waiting[args->producer], 1);
    fl_add_relaxed(&f->done, 1);
    return 0;
}

typedef struct producer {
    field *field;
    uint32_t self;
} producer;

static int producer_main(void *arg)
{
    const producer *p = arg;
    field *f = p->field;
    fl_random random;
    fl_random_init(&random, f->stress.seed, p->self);
    while (fl_load_relaxed(&f->added) < f->stress.operations &&
           fl_load_relaxed(&f->stress.failures) == 0) {
        if (fl_load_relaxed(&f->waiting[p->self]) > MOST_WAITING) {
            fl_thread_yield();
            continue;
        }
        filch_access accesses[2] = {
            {.data = f->data, .row = p->self, .mode = FILCH_READWRITE},
            {.data = f->data, .row = PRODUCERS, .mode = FILCH_READWRITE},
        };
        uint32_t count = (uint32_t)stress_below(&random, 3);
        f->raised[p->self] += count != 0;
        if (count == 2) {
            fl_mutex_lock(&f->lock);
            f->raised[PRODUCERS] += 1;
            fl_mutex_unlock(&f->lock);
        }
        add(f, p->self, stress_below(&random, 8) == 0 ? DEPTH : 0, stress_below(&random, 64) == 0,
            accesses, count);
    }
    return 0;
}

static void open_field(field *f)
{
    filch_runtime_desc config = FILCH_RUNTIME_DESC_INIT;
    filch_codelet_desc desc = FILCH_CODELET_DESC_INIT;
    filch_data_desc data = FILCH_DATA_DESC_INIT;
    filch_graph_desc graph = FILCH_GRAPH_DESC_INIT;
    config.devices = "host:3";
    expect(f, filch_runtime_create(&config, NULL, &f->runtime), "runtime");
    desc.name = "open";
    desc.arg_size = sizeof(task_args);
    desc.host = run_task;
    expect(f, filch_codelet_create(f->runtime, &desc, &f->codelet), "codelet");
    desc.host = run_leaf;
    expect(f, filch_codelet_create(f->runtime, &desc, &f->leaf), "codelet");
    data.ptr = f->counters;
    data.element = sizeof f->counters[0];
    data.rows = TILES;
    data.tile_rows = 1;
    expect(f, filch_data_create(f->runtime, &data, &f->data), "data");
    graph.kind = FILCH_GRAPH_OPEN;
    expect(f, filch_graph_create(f->runtime, &graph, &f->graph), "graph");
    expect(f, fl_mutex_init(&f->lock), "mutex");
}

/* Bytes once a fifth of the tasks went through; 0 when something failed before. */
static uint64_t early_bytes(field *f)
{
    filch_usage usage = {.size = sizeof usage};
    while (fl_load_relaxed(&f->done) < f->stress.operations / 5) {
        if (fl_load_relaxed(&f->stress.failures) != 0) {
            return 0;
        }
        fl_thread_yield();
    }
    expect(f, filch_runtime_usage(f->runtime, &usage), "usage");
    return usage.host_bytes;
}

int main(int argc, char **argv)
{
    static field f;
    producer producers[PRODUCERS];
    fl_thread threads[PRODUCERS];
    filch_job *job = NULL;
    stress_begin(&f.stress, "open", argc, argv, 300000, 10000000);
    open_field(&f);
    expect(&f, filch_graph_submit(f.graph, NULL, &job), "submit");
    for (uint32_t i = 0; i < PRODUCERS; ++i) {
        producers[i] = (producer){&f, i};
        expect(&f, fl_thread_start(&threads[i], producer_main, &producers[i]), "thread");
    }
    uint64_t early = early_bytes(&f);
    for (uint32_t i = 0; i < PRODUCERS; ++i) {
        fl_thread_join(threads[i]);
    }
    filch_usage usage = {.size = sizeof usage};
    expect(&f, filch_runtime_usage(f.runtime, &usage), "usage");
#ifdef NDEBUG /* else destroyed objects are kept, so that their use is found */
    /* The same number of tasks waits at any time, so the same memory serves, but for chance: how
     * many wait at the worst moment, and which sizes their parts have. */
    if (usage.host_bytes > 2 * early + 1000000) {
        stress_fail(&f.stress, "memory grew with the tasks, in bytes", usage.host_bytes - early);
    }
#endif
    printf("%" PRIu64 " bytes at a fifth, %" PRIu64 " at the end\n", early, usage.host_bytes);
    /* The tasks that still run may add more: only when none is left the graph can be closed. */
    while (fl_load_relaxed(&f.done) != fl_load_relaxed(&f.added)) {
        fl_thread_yield();
    }
    expect(&f, filch_graph_close(f.graph), "close");
    expect(&f, filch_job_wait(job, PATIENCE_S), "wait");
    for (int i = 0; i < TILES; ++i) {
        if (f.counters[i] != f.raised[i]) {
            stress_fail(&f.stress, "raises lost in a tile", f.counters[i]);
        }
    }
    if (fl_load_relaxed(&f.leaves) != fl_load_relaxed(&f.leaves_added)) {
        stress_fail(&f.stress, "nested tasks lost", fl_load_relaxed(&f.leaves));
    }
    printf("%" PRIu64 " tasks, %" PRIu64 " nested\n", fl_load_relaxed(&f.done),
           fl_load_relaxed(&f.leaves));
    expect(&f, filch_job_release(job), "release");
    expect(&f, filch_runtime_destroy(f.runtime), "destroy");
    fl_mutex_fini(&f.lock);
    return stress_end(&f.stress);
}
