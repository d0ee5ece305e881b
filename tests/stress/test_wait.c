/* SPDX-License-Identifier: Apache-2.0 */
/* Tasks that wait for jobs. Each round queues two jobs that share a handle, and starts tasks that
 * wait for the second, on every worker, while the end of the first hands it out: no task may be
 * lost, run twice, or run before the first job is over. Then a task's successors each run a graph
 * of their own and wait for it, more of them than would fit on one stack. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "filch/filch.h"
#include "patience.h"
#include "stress.h"

#define WORKERS 4
#define READERS 24
#define CROWD 20000

static stress run;

static void check(filch_status status, const char *what)
{
    if (status != FILCH_OK) {
        stress_fail(&run, what, (uint64_t)status);
    }
}

typedef struct world {
    filch_runtime *runtime;
    filch_codelet *write, *read, *wait, *nest;
    filch_job *awaited;
    _Atomic uint64_t written, reads;
} world;

typedef world *world_arg;

static int do_write(const filch_call *call)
{
    world *w = *(const world_arg *)call->args;
    fl_add_relaxed(&w->written, 1);
    return 0;
}

static int do_read(const filch_call *call)
{
    world *w = *(const world_arg *)call->args;
    if (fl_load_relaxed(&w->written) != 1) {
        stress_fail(&run, "a reader ran before the writer", 0);
    }
    fl_add_relaxed(&w->reads, 1);
    return 0;
}

static int do_wait(const filch_call *call)
{
    world *w = *(const world_arg *)call->args;
    check(filch_job_wait(w->awaited, PATIENCE), "a task waited in vain");
    return 0;
}

static filch_codelet *codelet(filch_runtime *runtime, const char *name, filch_host_fn host)
{
    filch_codelet_desc desc = FILCH_CODELET_DESC_INIT;
    filch_codelet *made = NULL;
    desc.name = name;
    desc.host = host;
    desc.arg_size = sizeof(void *);
    check(filch_codelet_create(runtime, &desc, &made), "filch_codelet_create");
    return made;
}

static filch_task add(filch_graph *graph, filch_codelet *codelet, world *w, filch_data *data,
                      filch_access_mode mode)
{
    filch_access access = {.data = data, .mode = mode};
    filch_task_desc desc = FILCH_TASK_DESC_INIT;
    filch_task task = 0;
    desc.codelet = codelet;
    desc.args = &w;
    desc.accesses = &access;
    desc.access_count = data != NULL;
    check(filch_graph_add(graph, &desc, &task), "filch_graph_add");
    return task;
}

static filch_graph *graph_of(world *w)
{
    filch_graph *graph = NULL;
    check(filch_graph_create(w->runtime, NULL, &graph), "filch_graph_create");
    return graph;
}

static filch_job *submit(filch_graph *graph)
{
    filch_job *job = NULL;
    check(filch_graph_submit(graph, NULL, &job), "filch_graph_submit");
    return job;
}

static void finish(filch_job *job)
{
    check(filch_job_wait(job, PATIENCE), "filch_job_wait");
    check(filch_job_release(job), "filch_job_release");
}

static void wait_behind(world *w, uint64_t victim_order)
{
    double cell = 0;
    filch_data_desc desc = FILCH_DATA_DESC_INIT;
    filch_data *data = NULL;
    desc.ptr = &cell;
    desc.element = sizeof cell;
    desc.rows = 1;
    check(filch_data_create(w->runtime, &desc, &data), "filch_data_create");
    filch_graph *writer = graph_of(w), *readers = graph_of(w), *waiters = graph_of(w);
    add(writer, w->write, w, data, FILCH_READWRITE);
    for (int i = 0; i < READERS; ++i) {
        add(readers, w->read, w, data, FILCH_READ);
    }
    for (int i = 0; i < WORKERS; ++i) {
        add(waiters, w->wait, w, NULL, FILCH_READ);
    }
    for (uint64_t round = 0; round < victim_order && fl_load_relaxed(&run.failures) == 0; ++round) {
        fl_store_relaxed(&w->written, 0);
        fl_store_relaxed(&w->reads, 0);
        filch_job *first = submit(writer);
        w->awaited = submit(readers);
        filch_job *third = submit(waiters);
        finish(third);
        finish(w->awaited);
        finish(first);
        if (fl_load_relaxed(&w->reads) != READERS) {
            stress_fail(&run, "readers ran", fl_load_relaxed(&w->reads));
        }
    }
}

/* A graph of its own for each call, two tasks one behind the other, and the wait for it. */
static int do_nest(const filch_call *call)
{
    world *w = *(const world_arg *)call->args;
    filch_graph *graph = graph_of(w);
    filch_task one = add(graph, w->write, w, NULL, FILCH_READ);
    filch_task two = add(graph, w->write, w, NULL, FILCH_READ);
    check(filch_graph_edge(graph, one, two), "filch_graph_edge");
    filch_job *job = submit(graph);
    finish(job);
    check(filch_graph_destroy(graph), "filch_graph_destroy");
    return 0;
}

static void wait_in_a_crowd(world *w)
{
    fl_store_relaxed(&w->written, 0);
    filch_graph *graph = graph_of(w);
    filch_task first = add(graph, w->write, w, NULL, FILCH_READ);
    for (int i = 0; i < CROWD; ++i) {
        filch_task task = add(graph, w->nest, w, NULL, FILCH_READ);
        check(filch_graph_edge(graph, first, task), "filch_graph_edge");
    }
    finish(submit(graph));
    if (fl_load_relaxed(&w->written) != 1 + 2 * CROWD) {
        stress_fail(&run, "nested tasks ran", fl_load_relaxed(&w->written));
    }
}

int main(int argc, char **argv)
{
    stress_begin(&run, "wait", argc, argv, 3000, 100000);
    const char *devices[] = {"host:1", "host:4"};
    for (int i = 0; i < 2; ++i) {
        world w;
        memset(&w, 0, sizeof w);
        filch_runtime_desc config = FILCH_RUNTIME_DESC_INIT;
        config.devices = devices[i];
        config.drive = FILCH_DRIVE_THREADS;
        check(filch_runtime_create(&config, NULL, &w.runtime), "filch_runtime_create");
        w.write = codelet(w.runtime, "write", do_write);
        w.read = codelet(w.runtime, "read", do_read);
        w.wait = codelet(w.runtime, "wait", do_wait);
        w.nest = codelet(w.runtime, "nest", do_nest);
        wait_behind(&w, run.operations);
        wait_in_a_crowd(&w);
        check(filch_runtime_destroy(w.runtime), "filch_runtime_destroy");
    }
    return stress_end(&run);
}
