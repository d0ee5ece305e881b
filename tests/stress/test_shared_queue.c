/* SPDX-License-Identifier: Apache-2.0 */
/* Cores of unlike speed at narrow graphs, with a shared ready queue: clients submit them again and
 * again, cancel some, have some tasks fail, and some wait for a graph of their own, while cores are
 * withdrawn and taken back. A tile is a plain counter that every task which writes it raises, so a
 * task that is lost or runs twice shows in the sum, and two at once as a race under the thread
 * sanitizer. A task that ran is an operation. */
#define _GNU_SOURCE
#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include "base/thread.h"
#include "filch/filch.h"
#include "patience.h"
#include "stress.h"

enum { CORES = 3, CLIENTS = 2, TILES = 6, TASKS = 48 };
/* What a task lasts on each, in ns: long beside a lock. */
static const long slowness[CORES] = {80000, 200000, 600000};

typedef struct client {
    uint64_t self;
    fl_random random;
    filch_data *data[2];       /* of the graph's, and of the ones inside */
    uint64_t cells[2][TILES];  /* plain */
    uint64_t raised[2][TILES]; /* by tasks that ran; each written as its cell is */
} client;

typedef struct task_args {
    client *client;
    uint64_t which, tile;
    uint64_t kind; /* 0: fails; 1: waits for a graph of its own; else neither */
} task_args;

static struct {
    stress stress;
    filch_runtime *runtime;
    filch_codelet *raise;
    _Atomic uint64_t done, nested, cancelled;
    _Atomic uint32_t is_over;
} f;

static void expect(filch_status got, filch_status wanted, const char *call)
{
    if (got != wanted) {
        stress_fail(&f.stress, call, (uint64_t)got);
    }
}

static void nap(long ns)
{
    const struct timespec time = {.tv_nsec = ns};
    (void)nanosleep(&time, NULL);
}

static filch_graph *make_graph(client *c, uint64_t which, fl_random *random, uint64_t tasks);

/* Nobody else uses the client's second handle: tasks that wait write the first one's tile 0. */
static void wait_inside(client *c)
{
    fl_random random;
    filch_job *job = NULL;
    fl_random_init(&random, f.stress.seed, fl_add_relaxed(&f.nested, 1));
    filch_graph *graph = make_graph(c, 1, &random, 6);
    expect(filch_graph_submit(graph, NULL, &job), FILCH_OK, "submit inside");
    expect(filch_job_wait(job, PATIENCE_S), FILCH_OK, "wait inside");
    expect(filch_job_release(job), FILCH_OK, "release inside");
    expect(filch_graph_destroy(graph), FILCH_OK, "destroy inside");
}

static int raise_tile(const filch_call *call)
{
    const task_args *args = call->args;
    uint64_t *cell = call->views[0].ptr;
    uint64_t value = *cell;
    nap(slowness[call->device]);
    if (args->kind == 1) {
        wait_inside(args->client);
    }
    *cell = value + 1;
    ++args->client->raised[args->which][args->tile];
    fl_add_relaxed(&f.done, 1);
    return args->kind == 0;
}

static filch_graph *make_graph(client *c, uint64_t which, fl_random *random, uint64_t tasks)
{
    filch_graph_desc desc = FILCH_GRAPH_DESC_INIT;
    filch_graph *graph = NULL;
    desc.priorities = stress_below(random, 4) ? FILCH_PRIORITIES_RANK : FILCH_PRIORITIES_CALLER;
    expect(filch_graph_create(f.runtime, &desc, &graph), FILCH_OK, "create");
    for (uint64_t i = 0; i < tasks; ++i) {
        task_args args = {c, which, stress_below(random, TILES), 2 + stress_below(random, 60)};
        if (which == 0) {
            args.kind = stress_below(random, 100);
            args.tile = args.kind == 1 ? 0 : args.tile;
        }
        uint64_t other = (args.tile + 1 + stress_below(random, TILES - 1)) % TILES;
        const filch_access accesses[2] = {
            {.data = c->data[which], .row = (uint32_t)args.tile, .mode = FILCH_READWRITE},
            {.data = c->data[which], .row = (uint32_t)other, .mode = FILCH_READ}};
        filch_task_desc task = FILCH_TASK_DESC_INIT;
        task.codelet = f.raise;
        task.args = &args;
        task.accesses = accesses;
        task.access_count = 1 + (uint32_t)stress_below(random, 2);
        task.affinity = (uint32_t)stress_below(random, CORES + 1);
        task.priority = (int32_t)stress_below(random, 11) - 5;
        expect(filch_graph_add(graph, &task, NULL), FILCH_OK, "add");
    }
    return graph;
}

static void run_graph(client *c, filch_graph *graph)
{
    filch_submit_desc how = FILCH_SUBMIT_DESC_INIT;
    filch_job *job = NULL;
    how.on_failure = stress_below(&c->random, 2) ? FILCH_FAILURE_SKIP : FILCH_FAILURE_CANCEL;
    expect(filch_graph_submit(graph, &how, &job), FILCH_OK, "submit");
    if (stress_below(&c->random, 4) == 0) {
        nap((long)stress_below(&c->random, 2000000));
        expect(filch_job_cancel(job), FILCH_OK, "cancel");
        fl_add_relaxed(&f.cancelled, 1);
    }
    filch_status status = filch_job_wait(job, PATIENCE_S);
    if (status != FILCH_OK && status != FILCH_TASK_FAILED && status != FILCH_CANCELLED) {
        stress_fail(&f.stress, "a job hangs or is lost", (uint64_t)status);
    }
    expect(filch_job_release(job), FILCH_OK, "release");
}

static int client_main(void *arg)
{
    client *c = arg;
    fl_random_init(&c->random, f.stress.seed, c->self);
    while (fl_load_relaxed(&f.done) < f.stress.operations &&
           fl_load_relaxed(&f.stress.failures) == 0) {
        filch_graph *graph = make_graph(c, 0, &c->random, TASKS);
        for (uint64_t runs = 1 + stress_below(&c->random, 4); runs != 0; --runs) {
            run_graph(c, graph);
        }
        expect(filch_graph_destroy(graph), FILCH_OK, "destroy");
    }
    return 0;
}

/* One core or two are offline at times, never all. */
static int change_main(void *arg)
{
    fl_random random;
    (void)arg;
    fl_random_init(&random, f.stress.seed, 99);
    while (fl_load_relaxed(&f.is_over) == 0) {
        uint32_t kept = (uint32_t)stress_below(&random, CORES);
        uint32_t one = (kept + 1) % CORES, two = (kept + 2) % CORES;
        bool both = stress_below(&random, 2) != 0;
        expect(filch_device_withdraw(f.runtime, one), FILCH_OK, "withdraw");
        if (both) {
            expect(filch_device_withdraw(f.runtime, two), FILCH_OK, "withdraw");
        }
        nap((long)stress_below(&random, 5000000));
        expect(filch_device_readmit(f.runtime, one), FILCH_OK, "readmit");
        if (both) {
            expect(filch_device_readmit(f.runtime, two), FILCH_OK, "readmit");
        }
        nap((long)stress_below(&random, 20000000));
    }
    return 0;
}

static void open_client(client *c, uint64_t self)
{
    *c = (client){.self = self};
    for (int h = 0; h < 2; ++h) {
        filch_data_desc desc = FILCH_DATA_DESC_INIT;
        desc.ptr = c->cells[h];
        desc.element = sizeof c->cells[h][0];
        desc.rows = TILES;
        desc.tile_rows = 1;
        expect(filch_data_create(f.runtime, &desc, &c->data[h]), FILCH_OK, "data");
    }
}

static void close_client(client *c)
{
    for (int h = 0; h < 2; ++h) {
        expect(filch_data_destroy(c->data[h]), FILCH_OK, "destroy data");
        for (int t = 0; t < TILES; ++t) {
            if (c->cells[h][t] != c->raised[h][t]) {
                stress_fail(&f.stress, "raises lost in a tile", c->cells[h][t]);
            }
        }
    }
}

static void run(filch_drive drive)
{
    static const double scores[CORES] = {600, 240, 80};
    static client clients[CLIENTS];
    filch_runtime_desc config = FILCH_RUNTIME_DESC_INIT;
    filch_codelet_desc desc = FILCH_CODELET_DESC_INIT;
    fl_thread threads[CLIENTS], changer;
    config.devices = "host:3";
    config.drive = drive;
    config.scores = scores;
    config.score_count = CORES;
    fl_store_relaxed(&f.done, 0);
    fl_store_relaxed(&f.is_over, 0);
    expect(filch_runtime_create(&config, NULL, &f.runtime), FILCH_OK, "runtime");
    desc.name = "raise";
    desc.arg_size = sizeof(task_args);
    desc.host = raise_tile;
    expect(filch_codelet_create(f.runtime, &desc, &f.raise), FILCH_OK, "codelet");
    for (uint64_t i = 0; i < CLIENTS; ++i) {
        open_client(&clients[i], i);
        expect(fl_thread_start(&threads[i], client_main, &clients[i]), FILCH_OK, "thread");
    }
    expect(fl_thread_start(&changer, change_main, NULL), FILCH_OK, "thread");
    for (int i = 0; i < CLIENTS; ++i) {
        fl_thread_join(threads[i]);
    }
    fl_store_relaxed(&f.is_over, 1);
    fl_thread_join(changer);
    expect(filch_runtime_drain(f.runtime, PATIENCE_S), FILCH_OK, "drain");
    for (int i = 0; i < CLIENTS; ++i) {
        close_client(&clients[i]);
    }
    printf("%s: %" PRIu64 " tasks, %" PRIu64 " waits inside, %" PRIu64 " cancellations\n",
           drive == FILCH_DRIVE_POLL ? "poll" : "threads", fl_load_relaxed(&f.done),
           fl_load_relaxed(&f.nested), fl_load_relaxed(&f.cancelled));
    expect(filch_runtime_destroy(f.runtime), FILCH_OK, "destroy runtime");
}

int main(int argc, char **argv)
{
    stress_begin(&f.stress, "shared_queue", argc, argv, 20000, 500000);
    run(FILCH_DRIVE_THREADS);
    run(FILCH_DRIVE_POLL);
    return stress_end(&f.stress);
}
