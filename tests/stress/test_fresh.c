/* SPDX-License-Identifier: Apache-2.0 */
/* Fresh runtimes of cores with unlike scores. Every ready task has a worker that is awake or will
 * wake: a worker that has never looked for work is woken for the first task that the others leave
 * to it. A job that does not end within PATIENCE_S is a failure, and so is a cancelled job. */
#include <inttypes.h>
#include <stdio.h>

#include "filch/filch.h"
#include "stress.h"

enum { TILES = 2, PATIENCE_S = 60, GRAPHS = 6 };

/* Devices and scores; a score of 0 ends the list. */
typedef struct machine {
    const char *devices;
    double scores[5];
} machine;

static const machine machines[] = {{"host:4", {4, 3, 2, 1}},
                                   {"host:3,host:1x2", {2, 2, 2, 4}},
                                   {"host:2", {1, 9}},
                                   {"host:3", {1, 1, 30}}};

static struct {
    stress stress;
    uint64_t done;
} f;

static void expect(filch_status got, filch_status wanted, const char *call)
{
    if (got != wanted) {
        stress_fail(&f.stress, call, (uint64_t)got);
    }
}

static int count_up(const filch_call *call)
{
    uint64_t *cell = call->views[0].ptr;
    ++*cell;
    return 0;
}

/* A graph whose roots are of one kind: tasks that commute, plain tasks, or one of each. */
static uint64_t fill(filch_graph *graph, filch_codelet *codelet, filch_data *data,
                     fl_random *random)
{
    uint64_t kind = stress_below(random, 3), tasks = 1 + stress_below(random, 4);
    for (uint64_t i = 0; i < tasks; ++i) {
        bool commutes = kind == 0 || (kind == 2 && i % 2 == 0);
        const filch_access access = {.data = data,
                                     .row = (uint32_t)(kind == 2 ? i % TILES : 0),
                                     .mode = commutes ? FILCH_COMMUTE : FILCH_READWRITE};
        filch_task_desc desc = FILCH_TASK_DESC_INIT;
        desc.codelet = codelet;
        desc.accesses = &access;
        desc.access_count = 1;
        desc.affinity = (uint32_t)stress_below(random, 3);
        expect(filch_graph_add(graph, &desc, NULL), FILCH_OK, "add");
    }
    return tasks;
}

static void run_graph(filch_runtime *runtime, filch_codelet *codelet, filch_data *data,
                      fl_random *random)
{
    filch_graph *graph = NULL;
    filch_job *job = NULL;
    expect(filch_graph_create(runtime, NULL, &graph), FILCH_OK, "graph");
    f.done += fill(graph, codelet, data, random);
    expect(filch_graph_submit(graph, NULL, &job), FILCH_OK, "submit");
    bool is_cancelled = stress_below(random, 4) == 0;
    if (is_cancelled) {
        expect(filch_job_cancel(job), FILCH_OK, "cancel");
    }
    filch_status status = filch_job_wait(job, PATIENCE_S);
    if (status != FILCH_OK && !(is_cancelled && status == FILCH_CANCELLED)) {
        stress_fail(&f.stress, "a job hangs or is lost", (uint64_t)status);
    }
    expect(filch_job_release(job), FILCH_OK, "release");
    expect(filch_graph_destroy(graph), FILCH_OK, "destroy graph");
}

static void run_machine(const machine *m, fl_random *random)
{
    uint64_t cells[TILES] = {0};
    filch_runtime_desc config = FILCH_RUNTIME_DESC_INIT;
    filch_codelet_desc codelet_desc = FILCH_CODELET_DESC_INIT;
    filch_data_desc data_desc = FILCH_DATA_DESC_INIT;
    filch_runtime *runtime = NULL;
    filch_codelet *codelet = NULL;
    filch_data *data = NULL;
    config.devices = m->devices;
    config.scores = m->scores;
    while (m->scores[config.score_count] > 0) {
        ++config.score_count;
    }
    expect(filch_runtime_create(&config, NULL, &runtime), FILCH_OK, "runtime");
    codelet_desc.name = "count_up";
    codelet_desc.host = count_up;
    expect(filch_codelet_create(runtime, &codelet_desc, &codelet), FILCH_OK, "codelet");
    data_desc.ptr = cells;
    data_desc.element = sizeof cells[0];
    data_desc.rows = TILES;
    data_desc.tile_rows = 1;
    expect(filch_data_create(runtime, &data_desc, &data), FILCH_OK, "data");
    for (int i = 0; i < GRAPHS && fl_load_relaxed(&f.stress.failures) == 0; ++i) {
        run_graph(runtime, codelet, data, random);
    }
    if (fl_load_relaxed(&f.stress.failures) == 0) { /* else a job may run for ever */
        expect(filch_runtime_destroy(runtime), FILCH_OK, "destroy runtime");
    }
}

int main(int argc, char **argv)
{
    fl_random random;
    stress_begin(&f.stress, "fresh", argc, argv, 3000, 100000);
    fl_random_init(&random, f.stress.seed, 0);
    for (size_t i = 0; f.done < f.stress.operations && fl_load_relaxed(&f.stress.failures) == 0;
         ++i) {
        run_machine(&machines[i % (sizeof machines / sizeof machines[0])], &random);
    }
    return stress_end(&f.stress);
}
