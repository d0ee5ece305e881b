/* SPDX-License-Identifier: Apache-2.0 */
/* Closed graphs queued behind themselves: several threads submit and repeat the same few graphs,
 * cancel jobs in line and in progress, acquire the handles in between, while devices come and go.
 * Tasks count in plain memory, ordered by the jobs alone; what the jobs tell and what the cells
 * have must agree to the last run. A submission is an operation. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/thread.h"
#include "filch/filch.h"
#include "stress.h"

enum { THREADS = 4, GRAPHS = 3, CELLS = 4, TASKS = 6, KEPT = 8 };

typedef struct field {
    stress stress;
    filch_runtime *runtime;
    filch_codelet *codelet;
    filch_data *data[2];
    filch_graph *graphs[GRAPHS];
    uint64_t cells[2][CELLS]; /* ordered by the jobs alone */
    uint64_t runs[GRAPHS];    /* of a graph without handles: ordered by its line alone */
    uint64_t tasks[GRAPHS];   /* of each graph */
    _Atomic uint64_t counted; /* what cells and runs are to add up to */
    _Atomic uint64_t ran;     /* tasks */
    _Atomic uint64_t done;    /* the same, as the jobs tell */
    _Atomic uint64_t called, submitted, is_over;
    _Atomic uint64_t ended[3]; /* by result */
} field;

typedef struct work_args {
    field *of;
    uint64_t graph;
} work_args;

static int work(const filch_call *call)
{
    const work_args *args = call->args;
    for (uint32_t i = 0; i < call->view_count; ++i) {
        ++*(uint64_t *)call->views[i].ptr;
    }
    if (call->view_count == 0) {
        ++args->of->runs[args->graph];
    }
    fl_add_relaxed(&args->of->ran, 1);
    fl_add_relaxed(&args->of->counted, call->view_count == 0 ? 1 : call->view_count);
    return 0;
}

static void on_complete(filch_job *job, filch_status status, void *user)
{
    field *f = user;
    (void)job;
    uint32_t kind = status == FILCH_OK ? 0 : status == FILCH_CANCELLED ? 1 : 2;
    fl_add_relaxed(&f->ended[kind], 1);
    fl_add_relaxed(&f->called, 1);
    if (kind == 2) {
        stress_fail(&f->stress, "result", (uint64_t)status);
    }
}

/* Ends a job of the thread: counts agree, and the result fits. */
static void end(field *f, filch_job *job, uint64_t tasks)
{
    filch_job_info info = FILCH_JOB_INFO_INIT;
    filch_status result = filch_job_wait(job, -1);
    if (filch_job_stats(job, &info, NULL, 0) != FILCH_OK || info.status != result ||
        info.failed != 0 || info.done + info.skipped != info.total || info.total % tasks != 0 ||
        (result == FILCH_OK && info.skipped != 0) ||
        (result == FILCH_CANCELLED && info.skipped == 0 && info.runs == 0)) {
        stress_fail(&f->stress, "counts of a job", info.total);
    }
    fl_add_relaxed(&f->done, info.done);
    (void)filch_job_release(job);
}

static filch_job *start(field *f, fl_random *random, uint64_t g)
{
    filch_submit_desc submit = FILCH_SUBMIT_DESC_INIT;
    filch_repeat_desc repeat = FILCH_REPEAT_DESC_INIT;
    filch_job *job = NULL;
    submit.on_complete = on_complete;
    submit.user = f;
    repeat.max_runs = 1 + stress_below(random, 4);
    filch_status status = stress_below(random, 6) == 0
                              ? filch_graph_repeat(f->graphs[g], &repeat, &submit, &job)
                              : filch_graph_submit(f->graphs[g], &submit, &job);
    if (status != FILCH_OK) {
        stress_fail(&f->stress, "submit", (uint64_t)status);
    }
    fl_add_relaxed(&f->submitted, 1);
    return job;
}

/* No run has the tiles of the host. */
static void look_between(field *f, fl_random *random)
{
    uint64_t which = stress_below(random, 2);
    filch_hold *hold = NULL;
    if (filch_data_acquire_tiles(f->data[which], NULL, FILCH_READWRITE, -1, &hold) != FILCH_OK) {
        stress_fail(&f->stress, "acquire", which);
        return;
    }
    for (uint32_t i = 0; i < CELLS; ++i) {
        ++f->cells[which][i];
    }
    fl_add_relaxed(&f->counted, CELLS);
    (void)filch_hold_release(hold);
}

typedef struct starter {
    field *field;
    uint32_t self;
} starter;

static int starter_main(void *arg)
{
    const starter *me = arg;
    field *f = me->field;
    fl_random random;
    filch_job *jobs[KEPT] = {NULL};
    uint64_t graph_of[KEPT] = {0};
    fl_random_init(&random, f->stress.seed, me->self);
    while (fl_load_relaxed(&f->submitted) < f->stress.operations &&
           fl_load_relaxed(&f->stress.failures) == 0) {
        uint64_t at = stress_below(&random, KEPT), what = stress_below(&random, 8);
        if (what == 0) {
            look_between(f, &random);
        } else if (jobs[at] == NULL) {
            graph_of[at] = stress_below(&random, GRAPHS);
            jobs[at] = start(f, &random, graph_of[at]);
        } else if (what <= 2 && filch_job_cancel(jobs[at]) != FILCH_OK) {
            stress_fail(&f->stress, "cancel", at);
        } else if (what > 4) {
            end(f, jobs[at], f->tasks[graph_of[at]]);
            jobs[at] = NULL;
        }
    }
    for (uint32_t at = 0; at < KEPT; ++at) {
        if (jobs[at] != NULL) {
            end(f, jobs[at], f->tasks[graph_of[at]]);
        }
    }
    fl_add_relaxed(&f->is_over, 1);
    return 0;
}

static void expect(field *f, filch_status got, const char *call)
{
    if (got != FILCH_OK) {
        stress_fail(&f->stress, call, (uint64_t)got);
    }
}

static void disturb(field *f, fl_random *random)
{
    while (fl_load_relaxed(&f->is_over) != THREADS) {
        uint32_t device = (uint32_t)stress_below(random, 3);
        expect(f, filch_device_withdraw(f->runtime, device), "withdraw");
        fl_thread_yield();
        expect(f, filch_device_readmit(f->runtime, device), "readmit");
        fl_thread_yield();
    }
}

/* Graph 0 writes both handles, graph 1 the second, graph 2 has no handle, and its tasks stand
 * behind each other. */
static void make_graph(field *f, uint64_t g)
{
    filch_task before = 0;
    expect(f, filch_graph_create(f->runtime, NULL, &f->graphs[g]), "graph");
    f->tasks[g] = TASKS;
    for (uint32_t i = 0; i < TASKS; ++i) {
        work_args args = {f, g};
        filch_access accesses[2] = {
            {.data = f->data[1], .row = i % CELLS, .mode = FILCH_READWRITE},
            {.data = f->data[0], .row = i % CELLS, .mode = FILCH_READWRITE}};
        filch_task_desc desc = FILCH_TASK_DESC_INIT;
        filch_task task = 0;
        desc.codelet = f->codelet;
        desc.args = &args;
        desc.accesses = g != 2 ? accesses : NULL;
        desc.access_count = g == 0 ? 2 : g == 1 ? 1 : 0;
        expect(f, filch_graph_add(f->graphs[g], &desc, &task), "add");
        if (g == 2 && i != 0) {
            expect(f, filch_graph_edge(f->graphs[g], before, task), "edge");
        }
        before = task;
    }
}

static void open_field(field *f)
{
    filch_runtime_desc config = FILCH_RUNTIME_DESC_INIT;
    filch_codelet_desc desc = FILCH_CODELET_DESC_INIT;
    config.devices = "host:3";
    expect(f, filch_runtime_create(&config, NULL, &f->runtime), "runtime");
    desc.name = "work";
    desc.arg_size = sizeof(work_args);
    desc.host = work;
    expect(f, filch_codelet_create(f->runtime, &desc, &f->codelet), "codelet");
    for (uint32_t d = 0; d < 2; ++d) {
        filch_data_desc data = FILCH_DATA_DESC_INIT;
        data.ptr = f->cells[d];
        data.element = sizeof f->cells[d][0];
        data.rows = CELLS;
        data.tile_rows = 1;
        expect(f, filch_data_create(f->runtime, &data, &f->data[d]), "data");
    }
    for (uint64_t g = 0; g < GRAPHS; ++g) {
        make_graph(f, g);
    }
}

/* What the cells have, what the tasks counted, and what the jobs told. */
static void check(field *f)
{
    uint64_t cells = 0, runs = 0;
    for (uint32_t i = 0; i < CELLS; ++i) {
        cells += f->cells[0][i] + f->cells[1][i];
    }
    for (uint32_t g = 0; g < GRAPHS; ++g) {
        runs += f->runs[g];
    }
    if (cells + runs != fl_load_relaxed(&f->counted)) {
        stress_fail(&f->stress, "cells", cells + runs);
    }
    if (fl_load_relaxed(&f->done) != fl_load_relaxed(&f->ran)) {
        stress_fail(&f->stress, "tasks", fl_load_relaxed(&f->done));
    }
    if (fl_load_relaxed(&f->called) != fl_load_relaxed(&f->submitted)) {
        stress_fail(&f->stress, "callbacks", fl_load_relaxed(&f->called));
    }
}

int main(int argc, char **argv)
{
    static field f;
    starter starters[THREADS];
    fl_thread threads[THREADS];
    stress_begin(&f.stress, "queued", argc, argv, 4000, 400000);
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
    check(&f);
    for (uint32_t g = 0; g < GRAPHS; ++g) {
        expect(&f, filch_graph_destroy(f.graphs[g]), "destroy a graph");
    }
    expect(&f, filch_runtime_destroy(f.runtime), "destroy");
    printf("%" PRIu64 " jobs succeeded, %" PRIu64 " were cancelled; %" PRIu64 " tasks\n",
           fl_load_relaxed(&f.ended[0]), fl_load_relaxed(&f.ended[1]), fl_load_relaxed(&f.done));
    return stress_end(&f.stress);
}
