/* SPDX-License-Identifier: Apache-2.0 */
/* Random graphs of divisible and other tasks on threads, or polled by several: each item runs once,
 * the results are those of the tasks one after the other, and what fails, is cancelled, waits for
 * other work or loses its device for a while leaves nothing undone or done twice. Elements are
 * plain memory, so that a thread sanitizer sees a missing edge. A graph is an operation. */
#define _GNU_SOURCE
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/thread.h"
#include "filch/filch.h"
#include "stress.h"

enum { VECTORS = 4, ITEMS = 600, TASKS = 24, MOST_SPIN = 400, FAIL_CODE = 5, POLLERS = 2 };

static stress s;
static uint64_t real[VECTORS][ITEMS], shadow[VECTORS][ITEMS];
static _Atomic uint8_t runs[TASKS][ITEMS];
static _Atomic uint32_t stop;
static uint64_t divided, pieces, failed, cancelled, opened, withdrawn;

/* A task: to = f(to, from), element by element. */
typedef struct order {
    uint32_t number, to, from; /* from == to: reads nothing else */
    uint32_t grain, spin;
    uint32_t bad, nest, sleep; /* items, or ITEMS */
    uint32_t is_divisible;
} order;

static order orders[TASKS];
static filch_codelet *inner;

static void nap(uint64_t us)
{
    const struct timespec t = {.tv_nsec = (long)(us * 1000)};
    (void)nanosleep(&t, NULL);
}

static uint64_t value(const order *o, uint64_t to, uint64_t from, uint64_t i)
{
    return to * 6364136223846793005u + from + o->number * ITEMS + i;
}

static uint64_t source(const order *o, uint64_t i)
{
    return (i * 7 + o->number) % ITEMS;
}

static void run_nested(const filch_call *call, const order *o)
{
    filch_graph *graph = NULL;
    filch_job *job = NULL;
    filch_task_desc desc = FILCH_TASK_DESC_INIT;
    order plain = {.number = TASKS, .spin = 10, .bad = ITEMS, .nest = ITEMS, .sleep = ITEMS};
    desc.codelet = inner;
    desc.args = &plain;
    desc.items = 1000 + o->number;
    desc.grain = 3;
    bool is_good = filch_graph_create(call->runtime, NULL, &graph) == FILCH_OK &&
                   filch_graph_add(graph, &desc, NULL) == FILCH_OK &&
                   filch_graph_add(graph, &desc, NULL) == FILCH_OK &&
                   filch_graph_submit(graph, NULL, &job) == FILCH_OK &&
                   filch_job_wait(job, -1) == FILCH_OK && filch_job_release(job) == FILCH_OK &&
                   filch_graph_destroy(graph) == FILCH_OK;
    if (!is_good) {
        stress_fail(&s, "nested", o->number);
    }
}

static int run_inner(const filch_call *call)
{
    for (uint64_t i = call->lo; i < call->hi; ++i) {
        fl_relax();
    }
    return 0;
}

static int run_task(const filch_call *call)
{
    const order *o = call->args;
    uint64_t lo = o->is_divisible ? call->lo : 0, hi = o->is_divisible ? call->hi : ITEMS;
    uint64_t *to = call->views[0].ptr;
    const uint64_t *from = call->view_count > 1 ? call->views[1].ptr : NULL;
    int code = 0;
    if (o->is_divisible ? lo % o->grain != 0 || (hi % o->grain != 0 && hi != ITEMS) || lo >= hi
                        : call->lo != 0 || call->hi != 0) {
        stress_fail(&s, "a wrong cut", o->number);
    }
    for (uint64_t i = lo; i < hi && i < ITEMS; ++i) {
        if (fl_add_relaxed(&runs[o->number][i], 1) != 0) {
            stress_fail(&s, "an item ran twice", i);
        }
        for (uint32_t k = 0; k < o->spin; ++k) {
            fl_relax();
        }
        to[i] = value(o, to[i], from != NULL ? from[source(o, i)] : 0, i);
        code = i == o->bad ? FAIL_CODE : code;
        if (i == o->nest) {
            run_nested(call, o);
        }
        if (i == o->sleep) {
            nap(500);
        }
    }
    return code;
}

typedef struct field {
    filch_runtime *runtime;
    filch_codelet *codelet;
    filch_data *data[VECTORS];
    fl_random random;
    bool polls;
    fl_thread pollers[POLLERS];
} field;

static uint32_t below(field *f, uint32_t n)
{
    return fl_random_below(&f->random, n);
}

static int poll_runtime(void *arg)
{
    const field *f = arg;
    while (fl_load_relaxed(&stop) == 0) {
        (void)filch_runtime_poll(f->runtime, 0.0001, NULL);
    }
    return 0;
}

static void open_field(field *f)
{
    filch_runtime_desc config = FILCH_RUNTIME_DESC_INIT;
    filch_codelet_desc desc = FILCH_CODELET_DESC_INIT;
    f->polls = below(f, 3) == 0;
    config.devices = f->polls ? "host:3" : "host:4";
    config.drive = f->polls ? FILCH_DRIVE_POLL : FILCH_DRIVE_THREADS;
    desc.name = "items";
    desc.host = run_task;
    desc.arg_size = sizeof(order);
    bool is_good = filch_runtime_create(&config, NULL, &f->runtime) == FILCH_OK &&
                   filch_codelet_create(f->runtime, &desc, &f->codelet) == FILCH_OK;
    desc.name = "inner";
    desc.host = run_inner;
    is_good = is_good && filch_codelet_create(f->runtime, &desc, &inner) == FILCH_OK;
    for (uint32_t v = 0; v < VECTORS; ++v) {
        filch_data_desc data = FILCH_DATA_DESC_INIT;
        data.ptr = real[v];
        data.element = sizeof real[v][0];
        data.rows = ITEMS;
        is_good = is_good && filch_data_create(f->runtime, &data, &f->data[v]) == FILCH_OK;
    }
    fl_store_relaxed(&stop, 0);
    for (uint32_t i = 0; f->polls && i < POLLERS; ++i) {
        is_good = is_good && fl_thread_start(&f->pollers[i], poll_runtime, f) == FILCH_OK;
    }
    if (!is_good) {
        stress_fail(&s, "runtime", 0);
    }
}

static void close_field(field *f)
{
    bool is_good = filch_runtime_drain(f->runtime, -1) == FILCH_OK;
    fl_store_relaxed(&stop, 1);
    for (uint32_t i = 0; f->polls && i < POLLERS; ++i) {
        fl_thread_join(f->pollers[i]);
    }
    for (uint32_t v = 0; v < VECTORS; ++v) {
        is_good = filch_data_destroy(f->data[v]) == FILCH_OK && is_good;
    }
    if (filch_runtime_destroy(f->runtime) != FILCH_OK || !is_good) {
        stress_fail(&s, "the end", 0);
    }
}

static void plan(field *f, bool fails)
{
    for (uint32_t t = 0; t < TASKS; ++t) {
        bool is_long = below(f, 3) == 0;
        orders[t] = (order){.number = t,
                            .to = below(f, VECTORS),
                            .from = below(f, VECTORS),
                            .grain = 1 + below(f, below(f, 2) ? 8 : 200),
                            .spin = is_long ? below(f, MOST_SPIN) : below(f, 8),
                            .bad = ITEMS,
                            .nest = below(f, 12) == 0 ? below(f, ITEMS) : ITEMS,
                            .sleep = below(f, 12) == 0 ? below(f, ITEMS) : ITEMS,
                            .is_divisible = below(f, 3) != 0};
    }
    if (fails) {
        orders[below(f, TASKS)].bad = below(f, ITEMS);
    }
}

static void add_tasks(const field *f, filch_graph *graph)
{
    for (uint32_t t = 0; t < TASKS; ++t) {
        const order *o = &orders[t];
        filch_access accesses[2] = {{.data = f->data[o->to], .mode = FILCH_READWRITE},
                                    {.data = f->data[o->from], .mode = FILCH_READ}};
        filch_task_desc desc = FILCH_TASK_DESC_INIT;
        desc.codelet = f->codelet;
        desc.args = o;
        desc.accesses = accesses;
        desc.access_count = o->from != o->to ? 2 : 1;
        desc.items = o->is_divisible ? ITEMS : 0;
        desc.grain = o->is_divisible ? o->grain : 0;
        filch_status status = filch_graph_add(graph, &desc, NULL);
        if (status != FILCH_OK && status != FILCH_WRONG_STATE) { /* it was cancelled */
            stress_fail(&s, "add", t);
        }
    }
}

static void run_shadow(void)
{
    for (uint32_t t = 0; t < TASKS; ++t) {
        const order *o = &orders[t];
        for (uint64_t i = 0; i < ITEMS; ++i) {
            uint64_t from = o->from != o->to ? shadow[o->from][source(o, i)] : 0;
            shadow[o->to][i] = value(o, shadow[o->to][i], from, i);
        }
    }
}

/* Of a job that is over. */
static void check(filch_job *job, filch_status status, bool fails, bool cancels)
{
    filch_job_info info = {.size = sizeof info};
    filch_report report = FILCH_REPORT_INIT;
    (void)filch_job_stats(job, &info, NULL, 0);
    (void)filch_job_report(job, NULL, &report, NULL, 0);
    divided += report.total.divided;
    pieces += report.total.pieces;
    bool is_expected = status == FILCH_OK || (status == FILCH_TASK_FAILED && fails) ||
                       (status == FILCH_CANCELLED && cancels);
    if (!is_expected || info.done + info.failed + info.skipped != info.total ||
        info.failed != (status == FILCH_TASK_FAILED) ||
        (status == FILCH_OK && info.done != TASKS)) {
        stress_fail(&s, "tasks do not add up", info.done);
    }
    if (status != FILCH_OK) {
        memcpy(shadow, real, sizeof shadow);
        return;
    }
    run_shadow();
    if (memcmp(shadow, real, sizeof shadow) != 0) {
        stress_fail(&s, "a wrong result", info.done);
    }
    for (uint32_t t = 0; t < TASKS; ++t) {
        for (uint32_t i = 0; i < ITEMS; ++i) {
            if (fl_load_relaxed(&runs[t][i]) != 1) {
                stress_fail(&s, "an item did not run", t * ITEMS + i);
                return;
            }
        }
    }
}

static void disturb(field *f, filch_job *job, bool cancels)
{
    if (cancels) {
        nap(below(f, 1500));
        (void)filch_job_cancel(job);
    }
    if (below(f, 3) == 0) {
        uint32_t device = below(f, 3);
        nap(below(f, 800));
        if (filch_device_withdraw(f->runtime, device) == FILCH_OK) {
            ++withdrawn;
            nap(below(f, 1500));
            if (filch_device_readmit(f->runtime, device) != FILCH_OK) {
                stress_fail(&s, "readmit", device);
            }
        }
    }
}

static void run_one(field *f)
{
    bool fails = below(f, 6) == 0, cancels = below(f, 6) == 0, is_open = below(f, 3) == 0;
    uint32_t times = is_open ? 1 : 1 + below(f, 3);
    filch_graph_desc desc = FILCH_GRAPH_DESC_INIT;
    filch_graph *graph = NULL;
    desc.kind = is_open ? FILCH_GRAPH_OPEN : FILCH_GRAPH_CLOSED;
    plan(f, fails);
    if (filch_graph_create(f->runtime, &desc, &graph) != FILCH_OK) {
        stress_fail(&s, "graph", 0);
        return;
    }
    if (!is_open) {
        add_tasks(f, graph);
    }
    opened += is_open;
    for (uint32_t i = 0; i < times; ++i) {
        filch_job *job = NULL;
        memset(runs, 0, sizeof runs);
        if (filch_graph_submit(graph, NULL, &job) != FILCH_OK) {
            stress_fail(&s, "submit", i);
            return;
        }
        if (is_open) {
            add_tasks(f, graph);
            (void)filch_graph_close(graph);
        }
        disturb(f, job, cancels);
        filch_status status = filch_job_wait(job, -1);
        check(job, status, fails, cancels);
        failed += status == FILCH_TASK_FAILED;
        cancelled += status == FILCH_CANCELLED;
        (void)filch_job_release(job);
    }
    if (filch_graph_destroy(graph) != FILCH_OK) {
        stress_fail(&s, "destroy", 0);
    }
}

int main(int argc, char **argv)
{
    field f;
    stress_begin(&s, "divide", argc, argv, 400, 40000);
    fl_random_init(&f.random, s.seed, 0);
    open_field(&f);
    for (uint64_t i = 1; i <= s.operations; ++i) {
        run_one(&f);
        if (i % 32 == 0) {
            close_field(&f);
            open_field(&f);
        }
    }
    close_field(&f);
    printf("divide: %" PRIu64 " tasks divided into %" PRIu64 " pieces; %" PRIu64
           " jobs failed, %" PRIu64 " cancelled; %" PRIu64 " graphs open, %" PRIu64
           " withdrawals\n",
           divided, pieces, failed, cancelled, opened, withdrawn);
    if (s.operations >= 400 && (divided == 0 || pieces <= divided || failed == 0 ||
                                cancelled == 0 || opened == 0 || withdrawn == 0)) {
        stress_fail(&s, "something never happened", divided);
    }
    return stress_end(&s);
}
