/* SPDX-License-Identifier: Apache-2.0 */
/* Open graphs with limits from 1 up: threads add, tasks add and wait for few live tasks, in a
 * common tile or beside it, in nested jobs, and some jobs are cancelled. Nobody hangs, no task is
 * lost, and effects are there when a wait says that tasks have ended. A task is an operation. */
#include <stdio.h>
#include <string.h>

#include "base/thread.h"
#include "filch/filch.h"
#include "patience.h"
#include "stress.h"

enum { PRODUCERS = 2, TILES = 4, ROUND = 2000 };

typedef struct field {
    stress stress;
    filch_runtime *runtime;
    filch_codelet *codelet, *leaf;
    filch_graph *graph;
    filch_data *data;
    uint64_t counters[TILES]; /* plain; raised by the tasks that write */
    _Atomic bool is_cancelled;
    _Atomic uint64_t added, begun, written,
        running; /* running: producers and tasks that may still add */
} field;

typedef struct task_args {
    field *field;
    uint64_t random;
    uint32_t depth;
    bool writes;
} task_args;

static void expect(field *f, filch_status got, const char *call)
{
    if (got != FILCH_OK) {
        stress_fail(&f->stress, call, (uint64_t)got);
    }
}

/* Refusals come of a cancellation alone. */
static void add(field *f, fl_random *random, uint32_t depth)
{
    task_args args;
    memset(&args, 0, sizeof args);
    args.field = f;
    args.random = fl_random_next(random);
    args.depth = depth;
    filch_access access = {.data = f->data, .row = (uint32_t)stress_below(random, TILES)};
    uint64_t how = stress_below(random, 3);
    args.writes = how == 1;
    access.mode = how == 0 ? FILCH_READ : FILCH_READWRITE;
    filch_task_desc desc = FILCH_TASK_DESC_INIT;
    desc.codelet = f->codelet;
    desc.args = &args;
    desc.accesses = &access;
    desc.access_count = how != 2;
    fl_add_relaxed(&f->running, 1);
    filch_status status = filch_graph_add(f->graph, &desc, NULL);
    if (status == FILCH_OK) {
        fl_add_relaxed(&f->added, 1);
        return;
    }
    fl_sub_relaxed(&f->running, 1);
    if (status != FILCH_WRONG_STATE || !f->is_cancelled) {
        stress_fail(&f->stress, "add", (uint64_t)status);
    }
}

static int run_leaf(const filch_call *call)
{
    (void)call;
    return 0;
}

static void run_nested(field *f)
{
    filch_graph *graph = NULL;
    filch_task_desc desc = FILCH_TASK_DESC_INIT;
    desc.codelet = f->leaf;
    expect(f, filch_graph_create(f->runtime, NULL, &graph), "nested create");
    for (int i = 0; i < 3; ++i) {
        expect(f, filch_graph_add(graph, &desc, NULL), "nested add");
    }
    expect(f, filch_graph_run(graph, NULL, NULL), "nested run");
    expect(f, filch_graph_destroy(graph), "nested destroy");
}

static void wait_below(field *f, uint64_t count)
{
    filch_status status = filch_graph_wait_below(f->graph, count, PATIENCE);
    bool is_fine = status == FILCH_OK || status == FILCH_DEADLOCK ||
                   (status == FILCH_CANCELLED && f->is_cancelled);
    if (!is_fine) {
        stress_fail(&f->stress, "wait in a task", (uint64_t)status);
    }
}

static int run_task(const filch_call *call)
{
    const task_args *args = call->args;
    field *f = args->field;
    fl_random random;
    fl_random_init(&random, args->random, args->depth);
    fl_add_relaxed(&f->begun, 1);
    if (args->writes) {
        *(uint64_t *)call->views[0].ptr += 1;
        fl_add_relaxed(&f->written, 1);
    }
    uint64_t children = args->depth != 0 ? stress_below(&random, 4) : 0;
    for (uint64_t i = 0; i < children; ++i) {
        add(f, &random, args->depth - 1);
    }
    switch (stress_below(&random, 16)) {
    case 0:
        wait_below(f, 1 + stress_below(&random, 8));
        break;
    case 1:
        run_nested(f);
        break;
    case 2:
        if (args->depth == 3) {
            wait_below(f, 1);
        }
        break;
    default:
        break;
    }
    fl_sub_relaxed(&f->running, 1);
    return 0;
}

typedef struct producer {
    field *field;
    uint64_t seed;
} producer;

static int producer_main(void *arg)
{
    const producer *p = arg;
    field *f = p->field;
    fl_random random;
    fl_random_init(&random, p->seed, 0);
    while (fl_load_relaxed(&f->added) < ROUND && fl_load_relaxed(&f->stress.failures) == 0 &&
           !f->is_cancelled) {
        add(f, &random, (uint32_t)stress_below(&random, 4));
        if (stress_below(&random, 64) == 0) {
            filch_status status =
                filch_graph_wait_below(f->graph, 1 + stress_below(&random, 16), PATIENCE);
            if (status != FILCH_OK) {
                stress_fail(&f->stress, "wait of a thread", (uint64_t)status);
            }
        }
    }
    return 0;
}

static void run_round(field *f, fl_random *random)
{
    filch_graph_desc desc = FILCH_GRAPH_DESC_INIT;
    filch_job *job = NULL;
    filch_job_info info = FILCH_JOB_INFO_INIT;
    producer producers[PRODUCERS];
    fl_thread threads[PRODUCERS];
    desc.kind = FILCH_GRAPH_OPEN;
    desc.max_live =
        stress_below(random, 3) == 0 ? 1 + stress_below(random, 3) : stress_below(random, 200);
    fl_store_relaxed(&f->added, 0);
    fl_store_relaxed(&f->begun, 0);
    fl_store_relaxed(&f->written, 0);
    memset(f->counters, 0, sizeof f->counters);
    f->is_cancelled = false;
    expect(f, filch_graph_create(f->runtime, &desc, &f->graph), "create");
    expect(f, filch_graph_submit(f->graph, NULL, &job), "submit");
    for (uint32_t i = 0; i < PRODUCERS; ++i) {
        producers[i] = (producer){f, fl_random_next(random)};
        expect(f, fl_thread_start(&threads[i], producer_main, &producers[i]), "thread");
    }
    for (uint32_t i = 0; i < PRODUCERS; ++i) {
        fl_thread_join(threads[i]);
    }
    if (stress_below(random, 4) == 0) {
        /* The threads have ended; tasks still add and wait. */
        f->is_cancelled = true;
        expect(f, filch_job_cancel(job), "cancel");
    } else {
        expect(f, filch_graph_wait_below(f->graph, 1, PATIENCE), "the last wait");
        if (fl_load_relaxed(&f->begun) != fl_load_relaxed(&f->added) ||
            fl_load_relaxed(&f->running) != 0) {
            stress_fail(&f->stress, "tasks lost", fl_load_relaxed(&f->begun));
        }
    }
    expect(f, filch_graph_close(f->graph), "close");
    filch_status status = filch_job_wait(job, PATIENCE);
    if (status != FILCH_OK && !(status == FILCH_CANCELLED && f->is_cancelled)) {
        stress_fail(&f->stress, "wait", (uint64_t)status);
    }
    expect(f, filch_job_stats(job, &info, NULL, 0), "stats");
    if (info.total != fl_load_relaxed(&f->added) || info.done != fl_load_relaxed(&f->begun) ||
        info.done + info.skipped != info.total) {
        stress_fail(&f->stress, "tasks lost, of so many", info.total);
    }
    for (int i = 0; i < TILES; ++i) {
        fl_sub_relaxed(&f->written, f->counters[i]);
    }
    if (fl_load_relaxed(&f->written) != 0) {
        stress_fail(&f->stress, "writes lost", fl_load_relaxed(&f->written));
    }
    fl_store_relaxed(&f->running, 0);
    expect(f, filch_job_release(job), "release");
    expect(f, filch_graph_destroy(f->graph), "destroy");
}

int main(int argc, char **argv)
{
    static field f;
    filch_codelet_desc code = FILCH_CODELET_DESC_INIT;
    filch_data_desc data = FILCH_DATA_DESC_INIT;
    filch_runtime_desc config = FILCH_RUNTIME_DESC_INIT;
    stress_begin(&f.stress, "pressure", argc, argv, 200000, 10000000);
    config.devices = "host:3";
    expect(&f, filch_runtime_create(&config, NULL, &f.runtime), "runtime");
    code.name = "task";
    code.arg_size = sizeof(task_args);
    code.host = run_task;
    expect(&f, filch_codelet_create(f.runtime, &code, &f.codelet), "codelet");
    code.name = "leaf";
    code.arg_size = 0;
    code.host = run_leaf;
    expect(&f, filch_codelet_create(f.runtime, &code, &f.leaf), "codelet");
    data.ptr = f.counters;
    data.element = sizeof f.counters[0];
    data.rows = TILES;
    data.tile_rows = 1;
    expect(&f, filch_data_create(f.runtime, &data, &f.data), "data");
    fl_random random;
    fl_random_init(&random, f.stress.seed, 0);
    uint64_t total = 0;
    while (total < f.stress.operations && fl_load_relaxed(&f.stress.failures) == 0) {
        run_round(&f, &random);
        total += fl_load_relaxed(&f.added);
    }
    printf("%llu tasks\n", (unsigned long long)total);
    expect(&f, filch_runtime_destroy(f.runtime), "destroy");
    return stress_end(&f.stress);
}
