/* SPDX-License-Identifier: Apache-2.0 */
/* Repetitions of random graphs, several at a time on common handles, stopped by predicates, by
 * tasks, by failures, by limits and by other threads, while devices come and go. Each task adds one
 * to a cell in plain memory; the counts of the job and of the cells must agree. A run is an
 * operation. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/thread.h"
#include "filch/filch.h"
#include "stress.h"

enum { THREADS = 3, CELLS = 12, MOST_TASKS = 24 };

typedef struct field {
    stress stress;
    filch_runtime *runtime;
    filch_codelet *codelet;
    filch_data *data;
    uint64_t cells[CELLS];    /* ordered by the graphs alone */
    _Atomic uint64_t counted; /* what the cells are to add up to */
    _Atomic uint64_t runs, is_over;
    _Atomic uint64_t ended[4]; /* by result */
} field;

/* A repetition of one thread. */
typedef struct repetition {
    field *field;
    _Atomic uint64_t tasks; /* run */
    uint64_t last;          /* run asked about last */
    uint64_t stop_at;
    int answer;
    _Atomic uint32_t inside;
    uint64_t value;
} repetition;

typedef struct work_args {
    repetition *of;
    uint64_t what; /* 0: only counts; 1: finishes in run at; 2: fails in run at */
    uint64_t at;
} work_args;

static int work(const filch_call *call)
{
    const work_args *args = call->args;
    repetition *of = args->of;
    for (uint32_t i = 0; i < call->view_count; ++i) {
        ++*(uint64_t *)call->views[i].ptr;
    }
    fl_add_relaxed(&of->field->counted, call->view_count);
    fl_add_relaxed(&of->tasks, 1);
    if (args->what == 0 || fl_load_relaxed(&of->tasks) < args->at) {
        return 0;
    }
    if (args->what == 2) {
        return 9;
    }
    if (filch_call_finish(call) != FILCH_OK) {
        stress_fail(&of->field->stress, "finish", args->at);
    }
    return 0;
}

static int predicate(uint64_t run, const void *value, void *user)
{
    repetition *of = user;
    uint64_t told;
    memcpy(&told, value, sizeof told);
    if (fl_add_relaxed(&of->inside, 1) != 0 || run != of->last + 1 || told != of->value) {
        stress_fail(&of->field->stress, "asked about run", run);
    }
    of->last = run;
    fl_add_relaxed(&of->field->runs, 1);
    fl_sub_acq_rel(&of->inside, 1);
    return run == of->stop_at ? of->answer : FILCH_REPEAT_AGAIN;
}

static filch_graph *make_graph(field *f, repetition *of, fl_random *random, uint64_t *tasks)
{
    filch_graph *graph = NULL;
    *tasks = 1 + stress_below(random, MOST_TASKS);
    if (filch_graph_create(f->runtime, NULL, &graph) != FILCH_OK) {
        stress_fail(&f->stress, "graph", 0);
        return NULL;
    }
    uint64_t special = stress_below(random, 2 * *tasks);
    for (uint64_t i = 0; i < *tasks; ++i) {
        work_args args = {of, i == special ? 1 + stress_below(random, 2) : 0,
                          stress_below(random, 40 * *tasks)};
        uint32_t first = (uint32_t)stress_below(random, CELLS);
        filch_access accesses[2] = {
            {.data = f->data, .row = first, .mode = FILCH_READWRITE},
            {.data = f->data, .row = (first + 1) % CELLS, .mode = FILCH_READWRITE}};
        filch_task_desc desc = FILCH_TASK_DESC_INIT;
        desc.codelet = f->codelet;
        desc.args = &args;
        desc.accesses = accesses;
        desc.access_count = 1 + (uint32_t)stress_below(random, 2);
        if (filch_graph_add(graph, &desc, NULL) != FILCH_OK) {
            stress_fail(&f->stress, "add", i);
        }
    }
    return graph;
}

/* Counts agree, and the result fits what happened. */
static void check(field *f, const repetition *of, filch_job *job, filch_status result,
                  uint64_t tasks)
{
    filch_job_info info = FILCH_JOB_INFO_INIT;
    if (filch_job_stats(job, &info, NULL, 0) != FILCH_OK || info.status != result ||
        info.total != info.runs * tasks || info.done + info.failed + info.skipped != info.total ||
        info.done + info.failed != fl_load_relaxed(&of->tasks)) {
        stress_fail(&f->stress, "counts of a job", info.runs);
    }
    uint32_t kind = result == FILCH_OK            ? 0
                    : result == FILCH_TASK_FAILED ? 1
                    : result == FILCH_CANCELLED   ? 2
                                                  : 3;
    fl_add_relaxed(&f->ended[kind], 1);
    if (kind == 3) {
        stress_fail(&f->stress, "result", (uint64_t)result);
    }
}

static void repeat_once(field *f, fl_random *random)
{
    repetition of = {.field = f,
                     .stop_at = 1 + stress_below(random, 60),
                     .answer = stress_below(random, 8) == 0 ? 5 : FILCH_REPEAT_STOP,
                     .value = stress_below(random, 1000)};
    uint64_t tasks;
    filch_graph *graph = make_graph(f, &of, random, &tasks);
    filch_repeat_desc desc = FILCH_REPEAT_DESC_INIT;
    filch_job *job = NULL;
    desc.predicate = predicate;
    desc.user = &of;
    desc.value = &of.value;
    desc.value_bytes = sizeof of.value;
    desc.lag = (uint32_t)stress_below(random, 2);
    desc.max_runs = stress_below(random, 3) == 0 ? 1 + stress_below(random, 60) : 0;
    if (filch_graph_repeat(graph, &desc, NULL, &job) != FILCH_OK) {
        stress_fail(&f->stress, "repeat", 0);
        return;
    }
    if (stress_below(random, 6) == 0) {
        uint64_t until = stress_below(random, 20 * tasks);
        while (fl_load_relaxed(&of.tasks) < until && filch_job_status(job) == FILCH_NOT_READY) {
            fl_thread_yield();
        }
        (void)filch_job_cancel(job);
    }
    filch_status result = filch_job_wait(job, -1);
    check(f, &of, job, result, tasks);
    (void)filch_job_release(job);
    if (filch_graph_destroy(graph) != FILCH_OK) {
        stress_fail(&f->stress, "destroy", 0);
    }
}

typedef struct starter {
    field *field;
    uint32_t self;
} starter;

static int starter_main(void *arg)
{
    const starter *start = arg;
    field *f = start->field;
    fl_random random;
    fl_random_init(&random, f->stress.seed, start->self);
    while (fl_load_relaxed(&f->runs) < f->stress.operations &&
           fl_load_relaxed(&f->stress.failures) == 0) {
        repeat_once(f, &random);
    }
    fl_add_relaxed(&f->is_over, 1);
    return 0;
}

static void disturb(field *f, fl_random *random)
{
    while (fl_load_relaxed(&f->is_over) != THREADS) {
        uint32_t device = (uint32_t)stress_below(random, 3);
        if (filch_device_withdraw(f->runtime, device) != FILCH_OK) {
            stress_fail(&f->stress, "withdraw", device);
        }
        fl_thread_yield();
        if (filch_device_readmit(f->runtime, device) != FILCH_OK) {
            stress_fail(&f->stress, "readmit", device);
        }
        fl_thread_yield();
    }
}

static void expect(field *f, filch_status got, const char *call)
{
    if (got != FILCH_OK) {
        stress_fail(&f->stress, call, (uint64_t)got);
    }
}

static void open_field(field *f)
{
    filch_runtime_desc config = FILCH_RUNTIME_DESC_INIT;
    filch_codelet_desc desc = FILCH_CODELET_DESC_INIT;
    filch_data_desc data = FILCH_DATA_DESC_INIT;
    config.devices = "host:3";
    expect(f, filch_runtime_create(&config, NULL, &f->runtime), "runtime");
    desc.name = "work";
    desc.arg_size = sizeof(work_args);
    desc.host = work;
    expect(f, filch_codelet_create(f->runtime, &desc, &f->codelet), "codelet");
    data.ptr = f->cells;
    data.element = sizeof f->cells[0];
    data.rows = CELLS;
    data.tile_rows = 1;
    expect(f, filch_data_create(f->runtime, &data, &f->data), "data");
}

int main(int argc, char **argv)
{
    static field f;
    starter starters[THREADS];
    fl_thread threads[THREADS];
    stress_begin(&f.stress, "repeat", argc, argv, 6000, 600000);
    open_field(&f);
    for (uint32_t i = 0; i < THREADS; ++i) {
        starters[i] = (starter){&f, i};
        expect(&f, fl_thread_start(&threads[i], starter_main, &starters[i]), "thread");
    }
    fl_random random;
    fl_random_init(&random, f.stress.seed, THREADS);
    disturb(&f, &random);
    for (uint32_t i = 0; i < THREADS; ++i) {
        fl_thread_join(threads[i]);
    }
    uint64_t counted = 0;
    for (uint32_t i = 0; i < CELLS; ++i) {
        counted += f.cells[i];
    }
    if (counted != fl_load_relaxed(&f.counted)) {
        stress_fail(&f.stress, "cells", counted);
    }
    expect(&f, filch_runtime_destroy(f.runtime), "destroy");
    printf("%" PRIu64 " runs; %" PRIu64 " repetitions succeeded, %" PRIu64 " failed, %" PRIu64
           " were cancelled\n",
           fl_load_relaxed(&f.runs), fl_load_relaxed(&f.ended[0]), fl_load_relaxed(&f.ended[1]),
           fl_load_relaxed(&f.ended[2]));
    return stress_end(&f.stress);
}
