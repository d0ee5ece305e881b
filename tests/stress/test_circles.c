/* SPDX-License-Identifier: Apache-2.0 */
/* Hostile programs: several open graphs at once, whose tasks name common handles in any order and
 * mode, with closed graphs, the host's holds and cancellations between. None may stop for ever, and
 * what the jobs did must be what they do one after the other. Where there are several threads, one
 * of them waits for holds of some or all tiles; a hold of all tiles counts as a job.
 *
 * A task notes its job at each handle that it uses. When the jobs of a round are over, the notes
 * say who was before whom: a job is before another if it used a handle first, and one of the two
 * wrote it. That order must have no circle. An add may be refused with FILCH_DEADLOCK; its text
 * must name two jobs, or the host, and the graph must go on. A graph's first task is never refused.
 *
 * With one thread and FILCH_DRIVE_POLL a stop is certain as soon as a poll finds nothing to do;
 * elsewhere a wait that takes too long counts as one. Then the queues of all handles are printed:
 * who uses them, and who waits. A program is an operation. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/thread.h"
#include "filch/filch.h"
#include "graph/job/job.h"
#include "stress.h"

enum {
    HANDLES = 5,
    TILES = 2,
    GRAPHS = 3,
    HOLDS = 4,
    JOBS = 2 * GRAPHS + HOLDS,
    MOST_NOTES = 4096,
    PATIENCE_S = 200
};

typedef struct note {
    uint16_t job;
    bool writes;
} note;

typedef struct record {
    fl_mutex lock;
    note notes[MOST_NOTES];
    uint32_t count;
} record;

typedef struct field {
    stress stress;
    filch_runtime *runtime;
    filch_codelet *codelet;
    filch_data *data[HANDLES], *whole; /* the first one, in one tile */
    uint64_t cells[HANDLES][TILES];
    record records[HANDLES];
    _Atomic uint32_t jobs; /* numbers given in this round */
    _Atomic uint64_t refused, added, cancelled, held;
} field;

typedef struct task_args {
    field *field;
    uint32_t job, count;
    struct {
        uint16_t handle;
        bool writes;
    } used[3];
} task_args;

/* One of the open graphs of a round. */
typedef struct actor {
    field *field;
    fl_random random;
    filch_graph *graph, *closed;
    filch_job *job, *closed_job;
    filch_hold *hold;
    uint32_t number, steps;
    bool has_added, is_refused, is_cancelled;
} actor;

static void expect(field *f, filch_status got, const char *call)
{
    if (got != FILCH_OK) {
        stress_fail(&f->stress, call, (uint64_t)got);
    }
}

/* --- What a stopped program looks like --- */

static void print_queues(field *f)
{
    fl_core *core = fl_core_of(f->runtime);
    fl_mutex_lock(&core->lock);
    for (int h = 0; h < HANDLES; ++h) {
        fprintf(stderr, "handle %d:", h);
        for (const fl_queued_access *use = f->data[h]->first; use != NULL; use = use->next) {
            const filch_job *job = use->job;
            fprintf(stderr, " %s(%s, %s)", use->is_hold ? "the host" : job->label,
                    use->writes ? "writes" : "reads", use->granted ? "has it" : "waits");
        }
        fprintf(stderr, "\n");
    }
    fl_mutex_unlock(&core->lock);
}

static void give_up(field *f)
{
    fprintf(stderr, "a job never ends\n");
    print_queues(f);
    stress_fail(&f->stress, "a job never ends", 1);
    _Exit(1);
}

/* --- Tasks --- */

static void note_use(record *r, uint32_t job, bool writes)
{
    fl_mutex_lock(&r->lock);
    if (r->count < MOST_NOTES) {
        r->notes[r->count++] = (note){(uint16_t)job, writes};
    }
    fl_mutex_unlock(&r->lock);
}

static int run_task(const filch_call *call)
{
    const task_args *args = call->args;
    for (uint32_t i = 0; i < args->count; ++i) {
        note_use(&args->field->records[args->used[i].handle], args->job, args->used[i].writes);
    }
    return 0;
}

/* A task that uses the first handle in another tiling. */
static filch_status add_partitioned(actor *a)
{
    field *f = a->field;
    task_args args;
    memset(&args, 0, sizeof args);
    args.field = f;
    args.job = a->number;
    args.count = 1;
    args.used[0].writes = stress_below(&a->random, 2) == 0;
    filch_access access = {.data = f->whole, .mode = FILCH_READ};
    access.mode = args.used[0].writes ? FILCH_READWRITE : FILCH_READ;
    filch_task_desc desc = FILCH_TASK_DESC_INIT;
    desc.codelet = f->codelet;
    desc.args = &args;
    desc.accesses = &access;
    desc.access_count = 1;
    filch_status status = filch_graph_partition(a->graph, f->data[0], f->whole);
    if (status == FILCH_OK) {
        status = filch_graph_add(a->graph, &desc, NULL);
        filch_status given_back = filch_graph_unpartition(a->graph, f->data[0], f->whole);
        status = status == FILCH_OK ? given_back : status;
    }
    return status;
}

static filch_status add(actor *a, filch_graph *graph, uint32_t job)
{
    static const filch_access_mode modes[] = {FILCH_READ, FILCH_READ, FILCH_WRITE, FILCH_READWRITE,
                                              FILCH_COMMUTE};
    field *f = a->field;
    filch_access accesses[3];
    task_args args;
    memset(&args, 0, sizeof args);
    args.field = f;
    args.job = job;
    args.count = 1 + (uint32_t)stress_below(&a->random, 3);
    uint32_t first = (uint32_t)stress_below(&a->random, HANDLES);
    for (uint32_t i = 0; i < args.count; ++i) {
        uint32_t handle = (first + i) % HANDLES;
        filch_access_mode mode = modes[stress_below(&a->random, 5)];
        accesses[i] = (filch_access){.data = f->data[handle], .mode = mode};
        accesses[i].row = (uint32_t)stress_below(&a->random, TILES);
        args.used[i].handle = (uint16_t)handle;
        args.used[i].writes = mode != FILCH_READ;
    }
    filch_task_desc desc = FILCH_TASK_DESC_INIT;
    desc.codelet = f->codelet;
    desc.args = &args;
    desc.accesses = accesses;
    desc.access_count = args.count;
    return filch_graph_add(graph, &desc, NULL);
}

/* --- Actors --- */

static void begin(actor *a)
{
    field *f = a->field;
    char label[32];
    filch_graph_desc desc = FILCH_GRAPH_DESC_INIT;
    filch_submit_desc submit = FILCH_SUBMIT_DESC_INIT;
    a->number = fl_add_relaxed(&f->jobs, 1);
    a->graph = a->closed = NULL;
    a->job = a->closed_job = NULL;
    a->hold = NULL;
    a->is_refused = a->is_cancelled = false;
    a->steps = 1 + (uint32_t)stress_below(&a->random, 12);
    snprintf(label, sizeof label, "open-%u", a->number);
    desc.kind = FILCH_GRAPH_OPEN;
    submit.label = label;
    expect(f, filch_graph_create(f->runtime, &desc, &a->graph), "create");
    expect(f, filch_graph_submit(a->graph, &submit, &a->job), "submit");
}

/* A closed graph beside the open one, waited for when that is closed. */
static void submit_closed(actor *a)
{
    field *f = a->field;
    char label[32];
    filch_submit_desc submit = FILCH_SUBMIT_DESC_INIT;
    uint32_t number = fl_add_relaxed(&f->jobs, 1);
    uint32_t count = 1 + (uint32_t)stress_below(&a->random, 4);
    snprintf(label, sizeof label, "closed-%u", number);
    submit.label = label;
    expect(f, filch_graph_create(f->runtime, NULL, &a->closed), "create");
    for (uint32_t i = 0; i < count; ++i) {
        expect(f, add(a, a->closed, number), "add to a closed graph");
    }
    expect(f, filch_graph_submit(a->closed, &submit, &a->closed_job), "submit");
}

static void release_hold(actor *a)
{
    if (a->hold != NULL) {
        expect(a->field, filch_hold_release(a->hold), "release of a hold");
        a->hold = NULL;
    }
}

/* The host looks whether it can have a handle now, and keeps it for some steps. */
static void try_hold(actor *a)
{
    field *f = a->field;
    release_hold(a);
    filch_data *data = f->data[stress_below(&a->random, HANDLES)];
    filch_status status = filch_data_acquire_tiles(
        data, NULL, stress_below(&a->random, 2) == 0 ? FILCH_READ : FILCH_READWRITE, 0, &a->hold);
    if (status != FILCH_TIMEOUT) {
        expect(f, status, "hold");
    }
}

static void add_open(actor *a)
{
    field *f = a->field;
    filch_status status =
        stress_below(&a->random, 16) == 0 ? add_partitioned(a) : add(a, a->graph, a->number);
    if (status == FILCH_DEADLOCK) {
        filch_error error = FILCH_ERROR_INIT;
        (void)filch_runtime_error(f->runtime, &error);
        const char *name = strstr(error.text, "'open-");
        bool names_both = name != NULL && (strstr(name + 1, "'open-") != NULL ||
                                           strstr(error.text, "'closed-") != NULL ||
                                           strstr(error.text, "for the host") != NULL);
        if (!names_both) {
            stress_fail(&f->stress, error.text, 0);
        }
        if (!a->has_added) {
            stress_fail(&f->stress, "refused, though nobody can wait for the job", a->number);
        }
        a->is_refused = true;
        fl_add_relaxed(&f->refused, 1);
    } else if (!a->is_cancelled) {
        expect(f, status, "add");
        fl_add_relaxed(&f->added, 1);
    }
    a->has_added = true;
}

static void step(actor *a)
{
    uint64_t dice = stress_below(&a->random, 32);
    if (dice == 0 && a->closed == NULL) {
        submit_closed(a);
    } else if (dice == 1 || dice == 3) {
        try_hold(a);
    } else if (dice == 2 && stress_below(&a->random, 4) == 0) {
        expect(a->field, filch_job_cancel(a->job), "cancel");
        a->is_cancelled = true;
        fl_add_relaxed(&a->field->cancelled, 1);
    } else {
        add_open(a);
    }
}

static void check_end(const actor *a, filch_job *job, double seconds)
{
    filch_status status = filch_job_wait(job, seconds);
    if (status == FILCH_TIMEOUT) {
        give_up(a->field);
    }
    if (status != FILCH_OK && !(status == FILCH_CANCELLED && a->is_cancelled)) {
        expect(a->field, status, "wait");
    }
}

static void end(actor *a)
{
    field *f = a->field;
    check_end(a, a->job, PATIENCE_S);
    expect(f, filch_job_release(a->job), "release");
    expect(f, filch_graph_destroy(a->graph), "destroy");
    if (a->closed != NULL) {
        check_end(a, a->closed_job, PATIENCE_S);
        expect(f, filch_job_release(a->closed_job), "release");
        expect(f, filch_graph_destroy(a->closed), "destroy");
    }
}

/* --- Rounds --- */

/* Whether job a was before job b at some handle, and by way of others. */
static void check_order(field *f)
{
    bool before[JOBS][JOBS] = {{false}};
    for (int h = 0; h < HANDLES; ++h) {
        record *r = &f->records[h];
        for (uint32_t j = 0; j < r->count; ++j) {
            for (uint32_t i = 0; i < j; ++i) {
                bool conflict = r->notes[i].writes || r->notes[j].writes;
                if (conflict && r->notes[i].job != r->notes[j].job) {
                    before[r->notes[i].job][r->notes[j].job] = true;
                }
            }
        }
        r->count = 0;
    }
    for (int k = 0; k < JOBS; ++k) {
        for (int i = 0; i < JOBS; ++i) {
            for (int j = 0; j < JOBS; ++j) {
                before[i][j] = before[i][j] || (before[i][k] && before[k][j]);
            }
        }
    }
    for (int i = 0; i < JOBS; ++i) {
        if (before[i][i]) {
            stress_fail(&f->stress, "a job was before itself", (uint64_t)i);
        }
    }
}

static void open_field(field *f, const char *devices, filch_drive drive)
{
    filch_runtime_desc config = FILCH_RUNTIME_DESC_INIT;
    filch_codelet_desc desc = FILCH_CODELET_DESC_INIT;
    config.devices = devices;
    config.drive = drive;
    expect(f, filch_runtime_create(&config, NULL, &f->runtime), "runtime");
    desc.name = "note";
    desc.arg_size = sizeof(task_args);
    desc.host = run_task;
    expect(f, filch_codelet_create(f->runtime, &desc, &f->codelet), "codelet");
    for (int h = 0; h < HANDLES; ++h) {
        filch_data_desc data = FILCH_DATA_DESC_INIT;
        data.ptr = f->cells[h];
        data.element = sizeof f->cells[h][0];
        data.rows = TILES;
        data.tile_rows = 1;
        expect(f, filch_data_create(f->runtime, &data, &f->data[h]), "data");
    }
    filch_data_desc whole = FILCH_DATA_DESC_INIT;
    whole.tile_rows = TILES;
    expect(f, filch_data_partition(f->data[0], &whole, &f->whole), "partition");
}

static bool is_well(field *f)
{
    return fl_load_relaxed(&f->stress.failures) == 0;
}

/* One thread takes the steps of all actors in a random order. */
static void run_alone(field *f, uint64_t seed, uint64_t programs)
{
    actor actors[GRAPHS];
    open_field(f, "host:1", FILCH_DRIVE_POLL);
    for (uint64_t p = 0; p < programs && is_well(f); ++p) {
        uint32_t left = GRAPHS;
        bool worked = true;
        fl_store_relaxed(&f->jobs, 0);
        for (uint32_t i = 0; i < GRAPHS; ++i) {
            actors[i] = (actor){.field = f};
            fl_random_init(&actors[i].random, seed, p * GRAPHS + i);
            begin(&actors[i]);
        }
        while (left != 0) {
            actor *a = &actors[stress_below(&actors[0].random, GRAPHS)];
            if (a->steps != 0) {
                step(a);
                a->steps = a->is_refused ? 1 : a->steps;
                if (--a->steps == 0) {
                    release_hold(a);
                    expect(f, filch_graph_close(a->graph), "close");
                    --left;
                }
            } else {
                expect(f, filch_runtime_poll(f->runtime, 0, NULL), "poll");
            }
        }
        while (worked) {
            expect(f, filch_runtime_poll(f->runtime, -1, &worked), "poll");
        }
        for (uint32_t i = 0; i < GRAPHS; ++i) {
            if (filch_job_status(actors[i].job) == FILCH_NOT_READY) {
                fprintf(stderr, "program %" PRIu64 ": %s\n", p, actors[i].job->label);
                give_up(f);
            }
            end(&actors[i]);
        }
        check_order(f);
    }
    expect(f, filch_runtime_destroy(f->runtime), "destroy");
}

static int actor_main(void *arg)
{
    actor *a = arg;
    begin(a);
    while (a->steps != 0) {
        step(a);
        a->steps = a->is_refused ? 0 : a->steps - 1;
    }
    release_hold(a);
    expect(a->field, filch_graph_close(a->graph), "close");
    end(a);
    return 0;
}

/* A host that waits for tiles. */
static void wait_for_hold(actor *a)
{
    field *f = a->field;
    filch_tiles part = FILCH_TILES_INIT;
    filch_hold *hold = NULL;
    uint32_t handle = (uint32_t)stress_below(&a->random, HANDLES);
    uint32_t tile = (uint32_t)stress_below(&a->random, TILES + 1); /* TILES: the whole handle */
    bool writes = stress_below(&a->random, 2) == 0;
    part.row0 = tile;
    part.row1 = tile + 1;
    filch_status status =
        filch_data_acquire_tiles(f->data[handle], tile == TILES ? NULL : &part,
                                 writes ? FILCH_READWRITE : FILCH_READ, PATIENCE_S, &hold);
    if (status == FILCH_TIMEOUT) {
        give_up(f);
    }
    expect(f, status, "hold");
    if (tile == TILES) {
        note_use(&f->records[handle], fl_add_relaxed(&f->jobs, 1), writes);
    }
    fl_add_relaxed(&f->held, 1);
    expect(f, filch_hold_release(hold), "release of a hold");
}

static int host_main(void *arg)
{
    actor *a = arg;
    for (int i = 0; i < HOLDS; ++i) {
        wait_for_hold(a);
    }
    return 0;
}

/* A thread each, and one for the host. */
static void run_crowd(field *f, const char *devices, filch_drive drive, uint64_t seed,
                      uint64_t programs)
{
    actor actors[GRAPHS + 1];
    fl_thread threads[GRAPHS + 1];
    open_field(f, devices, drive);
    for (uint64_t p = 0; p < programs && is_well(f); ++p) {
        fl_store_relaxed(&f->jobs, 0);
        for (uint32_t i = 0; i <= GRAPHS; ++i) {
            actors[i] = (actor){.field = f};
            fl_random_init(&actors[i].random, seed, p * (GRAPHS + 1) + i);
            expect(f, fl_thread_start(&threads[i], i < GRAPHS ? actor_main : host_main, &actors[i]),
                   "thread");
        }
        for (uint32_t i = 0; i <= GRAPHS; ++i) {
            fl_thread_join(threads[i]);
        }
        check_order(f);
    }
    expect(f, filch_runtime_destroy(f->runtime), "destroy");
}

int main(int argc, char **argv)
{
    static field f;
    stress_begin(&f.stress, "circles", argc, argv, 8000, 400000);
    for (int h = 0; h < HANDLES; ++h) {
        expect(&f, fl_mutex_init(&f.records[h].lock), "mutex");
    }
    uint64_t seed = f.stress.seed, programs = f.stress.operations / 8;
    run_alone(&f, seed, 5 * programs);
    run_crowd(&f, "host:2", FILCH_DRIVE_POLL, seed + 1, programs);
    run_crowd(&f, "host:1", FILCH_DRIVE_THREADS, seed + 2, programs);
    run_crowd(&f, "host:2", FILCH_DRIVE_THREADS, seed + 3, programs);
    printf("%" PRIu64 " tasks added, %" PRIu64 " refused, %" PRIu64 " jobs cancelled, %" PRIu64
           " holds waited for\n",
           fl_load_relaxed(&f.added), fl_load_relaxed(&f.refused), fl_load_relaxed(&f.cancelled),
           fl_load_relaxed(&f.held));
    for (int h = 0; h < HANDLES; ++h) {
        fl_mutex_fini(&f.records[h].lock);
    }
    return stress_end(&f.stress);
}
