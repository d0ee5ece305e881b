/* SPDX-License-Identifier: Apache-2.0 */
/* Threads end pending tasks of an open graph: before the function returns, long after, several
 * threads at once, from inside other tasks, and with handles of tasks that are over. Counters in
 * plain memory, written by the function, before the end and by the successor, show a task that
 * ended twice, too early or not at all. A pending task is an operation. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/thread.h"
#include "filch/filch.h"
#include "patience.h"
#include "stress.h"

enum { ENDERS = 3, TILES = 64, SLOTS = 64 };

/* A handle that nobody has begun to use, and what its task writes. */
typedef struct offer {
    filch_pending pending;
    uint64_t *cell;
} offer;

typedef struct field {
    stress stress;
    filch_runtime *runtime;
    filch_codelet *late, *plain;
    filch_graph *graph;
    filch_data *data;
    uint64_t cells[TILES];  /* plain: one a tile, in order by the graph alone */
    uint64_t raised[TILES]; /* the tasks of each tile, by the thread that adds */
    fl_mutex lock;
    /* Under the lock: the handles on offer, and those that were. */
    offer offers[SLOTS];
    filch_pending past[SLOTS];
    uint32_t offer_count, past_next;
    _Atomic uint64_t live, ended, refused, is_over;
} field;

typedef struct task_args {
    field *field;
    uint64_t dice;
} task_args;

static void expect(field *f, filch_status got, const char *call)
{
    if (got != FILCH_OK) {
        stress_fail(&f->stress, call, (uint64_t)got);
    }
}

/* Tries to end the task of a handle that others may try to end, too. */
static void try_end(field *f, filch_pending pending)
{
    filch_status status = filch_pending_end(pending, 0, NULL);
    if (status != FILCH_OK && status != FILCH_INVALID_HANDLE) {
        stress_fail(&f->stress, "end", (uint64_t)status);
    }
    fl_add_relaxed(status == FILCH_OK ? &f->ended : &f->refused, 1);
}

/* Ends the task of a random offer, or tries the handle of a task that is over, or that another
 * thread is about to end. False: there is no handle. */
static bool end_any(field *f, fl_random *random)
{
    filch_pending chosen = {0};
    fl_mutex_lock(&f->lock);
    if (stress_below(random, 4) == 0) {
        chosen = f->past[stress_below(random, SLOTS)];
    } else if (f->offer_count != 0) {
        uint32_t at = (uint32_t)stress_below(random, f->offer_count);
        /* What is written before the end is the successor's to read. From here on every thread may
         * end the task. */
        *f->offers[at].cell += 1;
        chosen = f->past[f->past_next++ % SLOTS] = f->offers[at].pending;
        f->offers[at] = f->offers[--f->offer_count];
    }
    fl_mutex_unlock(&f->lock);
    if (chosen.opaque != NULL) {
        try_end(f, chosen);
    }
    return chosen.opaque != NULL;
}

static int run_late(const filch_call *call)
{
    const task_args *args = call->args;
    field *f = args->field;
    offer mine = {{0}, call->views[0].ptr};
    *mine.cell += 1;
    if (args->dice % 8 == 0) {
        *mine.cell += 1;
        fl_add_relaxed(&f->ended, 1);
        return 0; /* over at once */
    }
    expect(f, filch_call_pend(call, &mine.pending), "pend");
    if (args->dice % 8 == 1) {
        *mine.cell += 1;
        try_end(f, mine.pending);
        return FILCH_PENDING;
    }
    for (bool is_on_offer = false; !is_on_offer;) {
        fl_mutex_lock(&f->lock);
        is_on_offer = f->offer_count < SLOTS;
        if (is_on_offer) {
            f->offers[f->offer_count++] = mine;
        }
        fl_mutex_unlock(&f->lock);
        if (!is_on_offer) {
            fl_thread_yield();
        }
    }
    for (uint64_t i = args->dice >> 8 & 63; i != 0; --i) {
        fl_relax(); /* an ender may be quicker */
    }
    return FILCH_PENDING;
}

/* The successor on the same tile; now and then an ender, too. */
static int run_plain(const filch_call *call)
{
    const task_args *args = call->args;
    *(uint64_t *)call->views[0].ptr += 1;
    if (args->dice % 16 == 0) {
        fl_random random;
        fl_random_init(&random, args->dice, 99);
        (void)end_any(args->field, &random);
    }
    fl_sub_relaxed(&args->field->live, 1);
    return 0;
}

typedef struct ender {
    field *field;
    uint32_t self;
} ender;

static int ender_main(void *arg)
{
    const ender *e = arg;
    fl_random random;
    fl_random_init(&random, e->field->stress.seed, e->self);
    while (fl_load_relaxed(&e->field->is_over) == 0) {
        if (!end_any(e->field, &random)) {
            fl_thread_yield();
        }
    }
    return 0;
}

static void add(field *f, filch_codelet *codelet, uint32_t tile, uint64_t dice)
{
    task_args args;
    memset(&args, 0, sizeof args);
    args.field = f;
    args.dice = dice;
    filch_access access = {.data = f->data, .row = tile, .mode = FILCH_READWRITE};
    filch_task_desc desc = FILCH_TASK_DESC_INIT;
    desc.codelet = codelet;
    desc.args = &args;
    desc.accesses = &access;
    desc.access_count = 1;
    expect(f, filch_graph_add(f->graph, &desc, NULL), "add");
}

static void open_field(field *f)
{
    filch_runtime_desc config = FILCH_RUNTIME_DESC_INIT;
    filch_codelet_desc desc = FILCH_CODELET_DESC_INIT;
    filch_data_desc data = FILCH_DATA_DESC_INIT;
    filch_graph_desc graph = FILCH_GRAPH_DESC_INIT;
    config.devices = "host:2";
    expect(f, filch_runtime_create(&config, NULL, &f->runtime), "runtime");
    desc.name = "plain";
    desc.arg_size = sizeof(task_args);
    desc.host = run_plain;
    expect(f, filch_codelet_create(f->runtime, &desc, &f->plain), "codelet");
    desc.name = "late";
    desc.host = run_late;
    desc.flags = FILCH_CODELET_MAY_PEND;
    expect(f, filch_codelet_create(f->runtime, &desc, &f->late), "codelet");
    data.ptr = f->cells;
    data.element = sizeof f->cells[0];
    data.rows = TILES;
    data.tile_rows = 1;
    expect(f, filch_data_create(f->runtime, &data, &f->data), "data");
    graph.kind = FILCH_GRAPH_OPEN;
    expect(f, filch_graph_create(f->runtime, &graph, &f->graph), "graph");
    expect(f, fl_mutex_init(&f->lock), "mutex");
}

static void add_all(field *f)
{
    fl_random random;
    fl_random_init(&random, f->stress.seed, ENDERS);
    for (uint64_t i = 0; i < f->stress.operations && fl_load_relaxed(&f->stress.failures) == 0;) {
        /* As many pending tasks as there are offers: a function waits for room with its worker. */
        if (fl_load_relaxed(&f->live) >= SLOTS / 2) {
            fl_thread_yield();
            continue;
        }
        uint32_t tile = (uint32_t)stress_below(&random, TILES);
        fl_add_relaxed(&f->live, 1);
        add(f, f->late, tile, stress_below(&random, UINT32_MAX));
        add(f, f->plain, tile, stress_below(&random, UINT32_MAX));
        ++f->raised[tile];
        ++i;
    }
}

int main(int argc, char **argv)
{
    static field f;
    ender enders[ENDERS];
    fl_thread threads[ENDERS];
    filch_job *job = NULL;
    stress_begin(&f.stress, "pending", argc, argv, 60000, 3000000);
    open_field(&f);
    expect(&f, filch_graph_submit(f.graph, NULL, &job), "submit");
    for (uint32_t i = 0; i < ENDERS; ++i) {
        enders[i] = (ender){&f, i};
        expect(&f, fl_thread_start(&threads[i], ender_main, &enders[i]), "thread");
    }
    add_all(&f);
    expect(&f, filch_graph_close(f.graph), "close");
    expect(&f, filch_job_wait(job, PATIENCE_S), "wait");
    fl_store_relaxed(&f.is_over, 1);
    for (uint32_t i = 0; i < ENDERS; ++i) {
        fl_thread_join(threads[i]);
    }
    uint64_t raised = 0;
    for (uint32_t i = 0; i < TILES; ++i) {
        /* The function, the ender, the successor. */
        if (f.cells[i] != 3 * f.raised[i]) {
            stress_fail(&f.stress, "cell", i);
        }
        raised += f.raised[i];
    }
    if (fl_load_relaxed(&f.ended) != raised) {
        stress_fail(&f.stress, "ended", fl_load_relaxed(&f.ended));
    }
    expect(&f, filch_job_release(job), "release");
    expect(&f, filch_runtime_destroy(f.runtime), "destroy");
    fl_mutex_fini(&f.lock);
    printf("%" PRIu64 " ended, %" PRIu64 " refused\n", fl_load_relaxed(&f.ended),
           fl_load_relaxed(&f.refused));
    return stress_end(&f.stress);
}
