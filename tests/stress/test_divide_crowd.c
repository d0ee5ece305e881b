/* SPDX-License-Identifier: Apache-2.0 */
/* Several graphs of divisible tasks at once, on cores that threads withdraw and take back all the
 * time: each item runs once, and each job ends. So parts of one task are given up, kept and handed
 * on by several workers at a time. A round of graphs is an operation. */
#define _GNU_SOURCE
#include <string.h>
#include <time.h>

#include "base/thread.h"
#include "filch/filch.h"
#include "stress.h"

enum { JOBS = 6, TASKS = 4, ITEMS = 64, CORES = 5, RESTLESS = 4 };

static stress s;
static filch_runtime *runtime;
static _Atomic uint32_t runs[JOBS][TASKS][ITEMS], stop;

typedef struct order {
    uint32_t job, task, us;
} order;

static void nap(uint64_t us)
{
    const struct timespec t = {.tv_nsec = (long)(us * 1000)};
    (void)nanosleep(&t, NULL);
}

static int run_items(const filch_call *call)
{
    const order *o = call->args;
    for (uint64_t i = call->lo; i < call->hi; ++i) {
        fl_add_relaxed(&runs[o->job][o->task][i], 1); /* read when the job is over */
        nap(o->us);
    }
    return 0;
}

static int come_and_go(void *arg)
{
    fl_random random;
    fl_random_init(&random, s.seed, (uint64_t)(uintptr_t)arg + 1);
    while (fl_load_relaxed(&stop) == 0) {
        uint32_t device = fl_random_below(&random, CORES);
        if (filch_device_withdraw(runtime, device) == FILCH_OK) {
            nap(fl_random_below(&random, 1500));
            (void)filch_device_readmit(runtime, device);
        }
        nap(fl_random_below(&random, 300));
    }
    return 0;
}

static filch_graph *make_graph(fl_random *random, filch_codelet *codelet, uint32_t job)
{
    filch_graph *graph = NULL;
    filch_task before = {0}, task = {0};
    if (filch_graph_create(runtime, NULL, &graph) != FILCH_OK) {
        return NULL;
    }
    for (uint32_t t = 0; t < TASKS; ++t) {
        const order o = {job, t, 20 + fl_random_below(random, 200)};
        filch_task_desc desc = FILCH_TASK_DESC_INIT;
        desc.codelet = codelet;
        desc.args = &o;
        desc.items = ITEMS;
        desc.grain = 1;
        if (filch_graph_add(graph, &desc, &task) != FILCH_OK ||
            (t % 2 != 0 && filch_graph_edge(graph, before, task) != FILCH_OK)) {
            stress_fail(&s, "add", t);
        }
        before = task;
    }
    return graph;
}

static void run_round(fl_random *random, filch_codelet *codelet)
{
    filch_graph *graphs[JOBS];
    filch_job *jobs[JOBS] = {NULL};
    memset(runs, 0, sizeof runs);
    for (uint32_t j = 0; j < JOBS; ++j) {
        graphs[j] = make_graph(random, codelet, j);
    }
    for (uint32_t j = 0; j < JOBS; ++j) {
        if (graphs[j] == NULL || filch_graph_submit(graphs[j], NULL, &jobs[j]) != FILCH_OK) {
            stress_fail(&s, "submit", j);
        }
    }
    for (uint32_t j = 0; j < JOBS; ++j) {
        if (filch_job_wait(jobs[j], -1) != FILCH_OK) {
            stress_fail(&s, "job", j);
        }
        (void)filch_job_release(jobs[j]);
        for (uint32_t k = 0; k < TASKS * ITEMS; ++k) {
            if (fl_load_relaxed(&runs[j][k / ITEMS][k % ITEMS]) != 1) { /* behind the wait */
                stress_fail(&s, "item not run once", k);
            }
        }
        (void)filch_graph_destroy(graphs[j]);
    }
}

int main(int argc, char **argv)
{
    filch_runtime_desc config = FILCH_RUNTIME_DESC_INIT;
    filch_codelet_desc desc = FILCH_CODELET_DESC_INIT;
    filch_codelet *codelet = NULL;
    fl_thread threads[RESTLESS];
    fl_random random;
    stress_begin(&s, "divide_crowd", argc, argv, 20, 2000);
    fl_random_init(&random, s.seed, 0);
    config.devices = "host:5";
    desc.name = "items";
    desc.host = run_items;
    desc.arg_size = sizeof(order);
    if (filch_runtime_create(&config, NULL, &runtime) != FILCH_OK ||
        filch_codelet_create(runtime, &desc, &codelet) != FILCH_OK) {
        return 2;
    }
    for (uintptr_t k = 0; k < RESTLESS; ++k) {
        if (fl_thread_start(&threads[k], come_and_go, (void *)k) != FILCH_OK) {
            return 2;
        }
    }
    for (uint64_t i = 0; i < s.operations; ++i) {
        run_round(&random, codelet);
    }
    fl_store_relaxed(&stop, 1); /* joined below */
    for (int k = 0; k < RESTLESS; ++k) {
        fl_thread_join(threads[k]);
    }
    if (filch_runtime_destroy(runtime) != FILCH_OK) {
        stress_fail(&s, "destroy", 0);
    }
    return stress_end(&s);
}
