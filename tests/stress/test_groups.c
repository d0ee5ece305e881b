/* SPDX-License-Identifier: Apache-2.0 */
/* Producers add tasks that commute on some of a few tiles, reduce to others or write them, to one
 * open graph; then a closed graph of such tasks runs again and again. Counters in plain memory show
 * turns that two had at once and partial results that were lost; the open graph's memory must not
 * grow with the number of tasks that went through it. A task is an operation. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/thread.h"
#include "filch/filch.h"
#include "patience.h"
#include "stress.h"

enum { PRODUCERS = 3, TILES = 5, MOST = 3, MOST_WAITING = 400, CLOSED = 600 };

typedef struct field {
    stress stress;
    filch_runtime *runtime;
    filch_codelet *raise, *zero, *sum;
    filch_data *data;
    filch_graph *graph;
    uint64_t counters[TILES]; /* plain */
    _Atomic uint64_t raised[TILES];
    _Atomic uint64_t added, done;
} field;

typedef struct producer {
    field *field;
    uint32_t self;
} producer;

typedef struct task_args {
    field *field;
    uint32_t raises; /* bit set of the views to add to */
} task_args;

static void expect(field *f, filch_status got, const char *call)
{
    if (got != FILCH_OK) {
        stress_fail(&f->stress, call, (uint64_t)got);
    }
}

static int run_raise(const filch_call *call)
{
    const task_args *args = call->args;
    for (uint32_t i = 0; i < call->view_count; ++i) {
        uint64_t *counter = call->views[i].ptr;
        if ((args->raises >> i & 1) != 0) {
            ++*counter;
        }
    }
    fl_add_relaxed(&args->field->done, 1);
    return 0;
}

static int run_zero(const filch_call *call)
{
    *(uint64_t *)call->views[0].ptr = 0;
    return 0;
}

static int run_sum(const filch_call *call)
{
    *(uint64_t *)call->views[0].ptr += *(const uint64_t *)call->views[1].ptr;
    return 0;
}

/* One tile each, from different ones; one in three tasks reads or writes in the usual way. */
static void add(field *f, filch_graph *graph, fl_random *random, uint64_t times)
{
    static const filch_access_mode modes[] = {FILCH_COMMUTE, FILCH_COMMUTE, FILCH_COMMUTE,
                                              FILCH_REDUCE,  FILCH_REDUCE,  FILCH_COMMUTE,
                                              FILCH_REDUCE,  FILCH_COMMUTE};
    filch_access accesses[MOST];
    task_args args;
    memset(&args, 0, sizeof args);
    args.field = f;
    uint32_t count = 1 + (uint32_t)stress_below(random, MOST);
    uint32_t tile = (uint32_t)stress_below(random, TILES);
    uint32_t step = 1 + (uint32_t)stress_below(random, TILES - 1);
    for (uint32_t i = 0; i < count; ++i, tile = (tile + step) % TILES) {
        filch_access_mode mode = modes[stress_below(random, 8)];
        if (stress_below(random, 30) == 0) {
            mode = stress_below(random, 2) == 0 ? FILCH_READ : FILCH_READWRITE;
        }
        accesses[i] = (filch_access){.data = f->data, .row = tile, .mode = mode};
        if (mode != FILCH_READ) {
            args.raises |= 1u << i;
            fl_add_relaxed(&f->raised[tile], times);
        }
    }
    filch_task_desc desc = FILCH_TASK_DESC_INIT;
    desc.codelet = f->raise;
    desc.args = &args;
    desc.accesses = accesses;
    desc.access_count = count;
    fl_add_relaxed(&f->added, times);
    expect(f, filch_graph_add(graph, &desc, NULL), "add");
}

static int producer_main(void *arg)
{
    producer *p = arg;
    field *f = p->field;
    fl_random random;
    fl_random_init(&random, f->stress.seed, p->self);
    while (fl_load_relaxed(&f->added) < f->stress.operations &&
           fl_load_relaxed(&f->stress.failures) == 0) {
        if (fl_load_relaxed(&f->added) - fl_load_relaxed(&f->done) > MOST_WAITING) {
            fl_thread_yield();
            continue;
        }
        add(f, f->graph, &random, 1);
    }
    return 0;
}

static void open_field(field *f, uint32_t flags)
{
    filch_runtime_desc config = FILCH_RUNTIME_DESC_INIT;
    filch_codelet_desc desc = FILCH_CODELET_DESC_INIT;
    filch_data_desc data = FILCH_DATA_DESC_INIT;
    config.devices = "host:3";
    expect(f, filch_runtime_create(&config, NULL, &f->runtime), "runtime");
    desc.name = "zero";
    desc.host = run_zero;
    expect(f, filch_codelet_create(f->runtime, &desc, &f->zero), "codelet");
    desc.name = "sum";
    desc.host = run_sum;
    expect(f, filch_codelet_create(f->runtime, &desc, &f->sum), "codelet");
    desc.name = "raise";
    desc.host = run_raise;
    desc.arg_size = sizeof(task_args);
    expect(f, filch_codelet_create(f->runtime, &desc, &f->raise), "codelet");
    data.ptr = f->counters;
    data.element = sizeof f->counters[0];
    data.rows = TILES;
    data.tile_rows = 1;
    data.flags = flags;
    expect(f, filch_data_create(f->runtime, &data, &f->data), "data");
    expect(f, filch_data_reduction(f->data, f->zero, f->sum), "reduction");
}

static void check(field *f)
{
    for (int i = 0; i < TILES; ++i) {
        if (f->counters[i] != fl_load_relaxed(&f->raised[i])) {
            stress_fail(&f->stress, "raises lost in a tile", f->counters[i]);
        }
    }
    if (fl_load_relaxed(&f->done) != fl_load_relaxed(&f->added)) {
        stress_fail(&f->stress, "tasks lost", fl_load_relaxed(&f->done));
    }
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

static void run_open(field *f)
{
    filch_graph_desc graph = FILCH_GRAPH_DESC_INIT;
    producer producers[PRODUCERS];
    fl_thread threads[PRODUCERS];
    filch_job *job = NULL;
    filch_usage usage = {.size = sizeof usage};
    graph.kind = FILCH_GRAPH_OPEN;
    expect(f, filch_graph_create(f->runtime, &graph, &f->graph), "graph");
    expect(f, filch_graph_submit(f->graph, NULL, &job), "submit");
    for (uint32_t i = 0; i < PRODUCERS; ++i) {
        producers[i] = (producer){f, i};
        expect(f, fl_thread_start(&threads[i], producer_main, &producers[i]), "thread");
    }
    uint64_t early = early_bytes(f);
    for (uint32_t i = 0; i < PRODUCERS; ++i) {
        fl_thread_join(threads[i]);
    }
    expect(f, filch_runtime_usage(f->runtime, &usage), "usage");
#ifdef NDEBUG /* else destroyed objects are kept, so that their use is found */
    if (usage.host_bytes > 2 * early + 1000000) {
        stress_fail(&f->stress, "memory grew with the tasks, in bytes", usage.host_bytes - early);
    }
#endif
    printf("%" PRIu64 " bytes at a fifth, %" PRIu64 " at the end\n", early, usage.host_bytes);
    expect(f, filch_graph_close(f->graph), "close");
    expect(f, filch_job_wait(job, PATIENCE_S), "wait");
    check(f);
    expect(f, filch_job_release(job), "release");
    expect(f, filch_graph_destroy(f->graph), "destroy");
}

static void run_closed(field *f)
{
    fl_random random;
    filch_graph *graph = NULL;
    uint64_t runs = f->stress.operations / CLOSED;
    fl_random_init(&random, f->stress.seed, PRODUCERS);
    expect(f, filch_graph_create(f->runtime, NULL, &graph), "graph");
    for (int i = 0; i < CLOSED; ++i) {
        add(f, graph, &random, runs);
    }
    for (uint64_t run = 0; run < runs && fl_load_relaxed(&f->stress.failures) == 0; ++run) {
        filch_job *job = NULL;
        expect(f, filch_graph_submit(graph, NULL, &job), "submit");
        expect(f, filch_job_wait(job, PATIENCE_S), "wait");
        expect(f, filch_job_release(job), "release");
    }
    check(f);
    expect(f, filch_graph_destroy(graph), "destroy");
}

int main(int argc, char **argv)
{
    static const uint32_t flags[] = {0, FILCH_DATA_ORDERED};
    static field fields[2];
    stress *first = &fields[0].stress;
    stress_begin(first, "groups", argc, argv, 200000, 5000000);
    first->operations /= 2; /* for each of the two */
    fields[1].stress =
        (stress){.name = "ordered groups", .operations = first->operations, .seed = first->seed};
    for (int k = 0; k < 2; ++k) {
        field *f = &fields[k];
        open_field(f, flags[k]);
        run_open(f);
        run_closed(f);
        printf("%" PRIu64 " tasks\n", fl_load_relaxed(&f->done));
        expect(f, filch_runtime_destroy(f->runtime), "destroy");
    }
    int unordered = stress_end(first), ordered = stress_end(&fields[1].stress);
    return unordered != 0 ? unordered : ordered;
}
