/* SPDX-License-Identifier: Apache-2.0 */
/* Handles of every kind under random graphs: buffers on the host and on GPUs, managed or not, and
 * none at all, cut into tiles of unlike sizes, on GPUs and host cores. The bytes are those of the
 * tasks run one by one, whether the host looks at a device's buffer, at its own, or acquires some
 * of the tiles, also while jobs run; what lies between columns is left alone. In some rounds tasks
 * fail: then the host writes everything anew, and all goes on. */
#define _GNU_SOURCE
#include "steps.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/cuda/driver/api.h"

enum { MOST_HANDLES = 4, MOST_TASKS = 40, MOST_GRAPHS = 3, MOST_ROUNDS = 5 };
enum { MOST_CUTS = 6 };

/* How one axis is cut. */
typedef struct axis {
    uint64_t extent, tile;
    uint64_t cuts[MOST_CUTS];
    uint64_t starts[MOST_CUTS + 1];
    uint32_t count;
    bool is_uneven;
} axis;

typedef struct buffer {
    filch_data *data;
    uint32_t flags, device;
    axis rows, cols;
    uint64_t ld;
    uint64_t *real; /* of a buffer on the host */
    CUdeviceptr block;
    uint64_t *shadow;
} buffer;

typedef struct task {
    uint32_t reads;
    filch_access accesses[STEP_MOST_READS + 1]; /* the last one is written */
    uint32_t handles[STEP_MOST_READS + 1];
    step_args args;
} task;

typedef struct plan {
    filch_graph *graph;
    bool has_failing;
    uint32_t count;
    task tasks[MOST_TASKS];
} plan;

/* --- Memory of GPUs, as the program's own --- */

typedef struct driver {
    CUresult (*alloc)(CUdeviceptr *block, size_t bytes);
    CUresult (*free)(CUdeviceptr block);
    CUresult (*in)(CUdeviceptr to, const void *from, size_t bytes, CUstream stream);
    CUresult (*out)(void *to, CUdeviceptr from, size_t bytes, CUstream stream);
    CUresult (*wait)(CUstream stream);
} driver;

static const driver *get_driver(void)
{
    static driver d;
    void *library = d.alloc == NULL ? dlopen("libcuda.so.1", RTLD_NOW) : NULL;
    if (library != NULL) {
        *(void **)&d.alloc = dlsym(library, "cuMemAlloc_v2");
        *(void **)&d.free = dlsym(library, "cuMemFree_v2");
        *(void **)&d.in = dlsym(library, "cuMemcpyHtoDAsync_v2");
        *(void **)&d.out = dlsym(library, "cuMemcpyDtoHAsync_v2");
        *(void **)&d.wait = dlsym(library, "cuStreamSynchronize");
    }
    return &d;
}

typedef struct work {
    buffer *b;
    enum { TAKE, GIVE, PUT, GET } what;
    uint64_t *with;
} work;

static int do_work(const filch_lane *lane, void *user)
{
    const driver *d = get_driver();
    work *w = user;
    size_t bytes = w->b->ld * w->b->cols.extent * sizeof(uint64_t);
    switch (w->what) {
    case TAKE:
        return d->alloc(&w->b->block, bytes);
    case GIVE:
        return d->free(w->b->block);
    case PUT:
        return d->in(w->b->block, w->with, bytes, lane->stream) != 0 || d->wait(lane->stream) != 0;
    case GET:
        return d->out(w->with, w->b->block, bytes, lane->stream) != 0 || d->wait(lane->stream) != 0;
    }
    return 1;
}

static void in_scope(gpu_world *world, buffer *b, work w)
{
    w.b = b;
    gpu_ok(filch_device_scope(world->runtime, b->device, do_work, &w));
}

/* --- Making a case --- */

static axis make_axis(gpu_world *world, uint64_t extent)
{
    axis a = {.extent = extent, .is_uneven = gpu_chance(world, 50)};
    uint64_t left = extent, least = 1 + extent / MOST_CUTS;
    a.tile = gpu_between(world, least, extent);
    while (left != 0) {
        uint64_t most = a.count == MOST_CUTS - 1 ? left : gpu_between(world, 1, left);
        uint64_t cut = a.is_uneven ? most : a.tile < left ? a.tile : left;
        a.cuts[a.count++] = cut;
        a.starts[a.count] = a.starts[a.count - 1] + cut;
        left -= cut;
    }
    return a;
}

/* Index of a random GPU's device; UINT32_MAX: none was found. */
static uint32_t choose_gpu(gpu_world *world)
{
    for (int tries = 0; tries < 20; tries++) {
        uint32_t device = fl_random_below(&world->random, world->devices);
        filch_device_info info = {.size = sizeof info};
        gpu_ok(filch_device_at(world->runtime, device, &info));
        if (info.backend == FILCH_BACKEND_CUDA)
            return device;
    }
    return UINT32_MAX;
}

static uint64_t size_of(const buffer *b)
{
    return b->ld * b->cols.extent;
}

static void fill(gpu_world *world, buffer *b);

static void make_buffer(gpu_world *world, buffer *b)
{
    filch_data_desc desc = FILCH_DATA_DESC_INIT;
    b->rows = make_axis(world, gpu_between(world, 1, 60));
    b->cols = make_axis(world, gpu_chance(world, 25) ? 1 : gpu_between(world, 1, 40));
    b->ld = b->rows.extent + gpu_between(world, 0, 3);
    b->flags = gpu_chance(world, 50) ? FILCH_DATA_MANAGED : 0;
    b->device = 0;
    if (gpu_chance(world, 30)) {
        b->flags = FILCH_DATA_NO_BUFFER;
    } else if (gpu_chance(world, 50)) {
        uint32_t device = choose_gpu(world);
        b->flags |= device != UINT32_MAX ? FILCH_DATA_ON_DEVICE : 0;
        b->device = device != UINT32_MAX ? device : 0;
    }
    b->shadow = gpu_alloc(size_of(b), sizeof *b->shadow);
    b->real = NULL;
    if ((b->flags & FILCH_DATA_ON_DEVICE) != 0) {
        in_scope(world, b, (work){.what = TAKE});
        desc.ptr = (void *)(uintptr_t)b->block;
        desc.device = b->device;
    } else if ((b->flags & FILCH_DATA_NO_BUFFER) == 0) {
        desc.ptr = b->real = gpu_alloc(size_of(b), sizeof *b->real);
    }
    desc.element = sizeof *b->shadow;
    desc.rows = b->rows.extent;
    desc.cols = b->cols.extent;
    desc.ld = b->ld;
    if (b->rows.is_uneven) {
        desc.row_cuts = b->rows.cuts;
        desc.row_cut_count = b->rows.count;
    } else {
        desc.tile_rows = b->rows.tile;
    }
    if (b->cols.is_uneven) {
        desc.col_cuts = b->cols.cuts;
        desc.col_cut_count = b->cols.count;
    } else {
        desc.tile_cols = b->cols.tile;
    }
    desc.flags = b->flags;
    desc.label = "buffer";
    gpu_ok(filch_data_create(world->runtime, &desc, &b->data));
    if (!gpu_has_failed())
        fill(world, b);
}

static void choose_tile(gpu_world *world, const buffer *buffers, uint32_t count, task *t,
                        uint32_t at, filch_access_mode mode)
{
    uint32_t handle = fl_random_below(&world->random, count);
    const buffer *b = &buffers[handle];
    t->handles[at] = handle;
    t->accesses[at] = (filch_access){.data = b->data,
                                     .row = fl_random_below(&world->random, b->rows.count),
                                     .col = fl_random_below(&world->random, b->cols.count),
                                     .mode = mode};
}

static bool is_same_tile(const task *t, uint32_t a, uint32_t b)
{
    return t->handles[a] == t->handles[b] && t->accesses[a].row == t->accesses[b].row &&
           t->accesses[a].col == t->accesses[b].col;
}

/* A task writes a tile that it does not read otherwise. */
static void make_task(gpu_world *world, const buffer *buffers, uint32_t count, task *t)
{
    uint32_t wanted = fl_random_below(&world->random, STEP_MOST_READS + 1);
    task draft = {0};
    t->args.seed = fl_random_next(&world->random);
    t->args.keeps = gpu_chance(world, 60);
    t->args.fails = gpu_chance(world, 4);
    t->reads = 0;
    choose_tile(world, buffers, count, &draft, STEP_MOST_READS,
                t->args.keeps ? FILCH_READWRITE : FILCH_WRITE);
    for (uint32_t r = 0; r < wanted; r++) {
        choose_tile(world, buffers, count, &draft, r, FILCH_READ);
        if (is_same_tile(&draft, r, STEP_MOST_READS))
            continue;
        t->handles[t->reads] = draft.handles[r];
        t->accesses[t->reads++] = draft.accesses[r];
    }
    t->handles[t->reads] = draft.handles[STEP_MOST_READS];
    t->accesses[t->reads] = draft.accesses[STEP_MOST_READS];
}

static void make_plan(gpu_world *world, const buffer *buffers, uint32_t count, plan *p)
{
    p->count = (uint32_t)gpu_between(world, 1, MOST_TASKS);
    p->has_failing = false;
    gpu_ok(filch_graph_create(world->runtime, NULL, &p->graph));
    for (uint32_t k = 0; k < p->count; k++) {
        task *t = &p->tasks[k];
        filch_task_desc desc = FILCH_TASK_DESC_INIT;
        make_task(world, buffers, count, t);
        p->has_failing = p->has_failing || t->args.fails != 0;
        desc.codelet = step_codelets[t->reads];
        desc.args = &t->args;
        desc.accesses = t->accesses;
        desc.access_count = t->reads + 1;
        gpu_ok(filch_graph_add(p->graph, &desc, NULL));
    }
}

/* --- Running it --- */

static void run_on_shadow(const buffer *buffers, const plan *p)
{
    for (uint32_t k = 0; k < p->count; k++) {
        const task *t = &p->tasks[k];
        filch_view views[STEP_MOST_READS + 1];
        for (uint32_t a = 0; a <= t->reads; a++) {
            const buffer *b = &buffers[t->handles[a]];
            uint64_t row = b->rows.starts[t->accesses[a].row];
            uint64_t col = b->cols.starts[t->accesses[a].col];
            views[a] = (filch_view){.ptr = b->shadow + row + col * b->ld,
                                    .rows = b->rows.cuts[t->accesses[a].row],
                                    .cols = b->cols.cuts[t->accesses[a].col],
                                    .ld = b->ld,
                                    .row = row,
                                    .col = col};
        }
        step_do(views, t->reads, &t->args);
    }
}

/* --- What the host does --- */

static bool is_programs(const buffer *b)
{
    return (b->flags & (FILCH_DATA_MANAGED | FILCH_DATA_NO_BUFFER)) == 0;
}

static void differs(const buffer *b, uint64_t row, uint64_t col, const char *where)
{
    gpu_fail("a handle with flags %u (device %u) differs at row %llu, column %llu %s", b->flags,
             b->device, (unsigned long long)row, (unsigned long long)col, where);
}

/* The buffer itself, with what is between its columns. */
static void look_at_buffer(gpu_world *world, buffer *b)
{
    uint64_t *seen = b->real;
    if ((b->flags & FILCH_DATA_ON_DEVICE) != 0) {
        seen = gpu_alloc(size_of(b), sizeof *seen);
        in_scope(world, b, (work){.what = GET, .with = seen});
    }
    for (uint64_t k = 0; k < size_of(b); k++)
        if (seen[k] != b->shadow[k]) {
            differs(b, k % b->ld, k / b->ld, "of its buffer");
            break;
        }
    if (seen != b->real)
        free(seen);
}

static void change_buffer(gpu_world *world, buffer *b)
{
    for (uint64_t k = 0; k < size_of(b); k++)
        b->shadow[k] = fl_random_next(&world->random);
    if ((b->flags & FILCH_DATA_ON_DEVICE) != 0)
        in_scope(world, b, (work){.what = PUT, .with = b->shadow});
    else
        memcpy(b->real, b->shadow, size_of(b) * sizeof *b->real);
}

/* Of a tile that is acquired: compares where it is read, and changes some where it is written. */
static void use_tile(gpu_world *world, buffer *b, uint32_t row, uint32_t col,
                     filch_access_mode mode)
{
    filch_view view = {.ptr = NULL};
    gpu_ok(filch_data_view(b->data, row, col, &view));
    if (gpu_has_failed())
        return;
    if (view.row != b->rows.starts[row] || view.col != b->cols.starts[col] ||
        view.rows != b->rows.cuts[row] || view.cols != b->cols.cuts[col])
        gpu_fail("tile (%u, %u) is elsewhere", row, col);
    for (uint64_t e = 0; e < view.rows * view.cols; e++) {
        uint64_t i = e % view.rows, j = e / view.rows;
        uint64_t *real = (uint64_t *)view.ptr + i + j * view.ld;
        uint64_t *shadow = b->shadow + view.row + i + (view.col + j) * b->ld;
        if ((mode & FILCH_READ) != 0 && *real != *shadow) {
            differs(b, view.row + i, view.col + j, "as the host acquired it");
            return;
        }
        if (mode == FILCH_WRITE || (mode == FILCH_READWRITE && gpu_chance(world, 20)))
            *real = *shadow = fl_random_next(&world->random);
    }
}

static void acquire_all(gpu_world *world, buffer *b, filch_access_mode mode)
{
    gpu_ok(filch_data_acquire(b->data, mode));
    for (uint32_t row = 0; row < b->rows.count; row++)
        for (uint32_t col = 0; col < b->cols.count && !gpu_has_failed(); col++)
            use_tile(world, b, row, col, mode);
    gpu_ok(filch_data_release(b->data));
}

/* Some of the tiles, when the jobs that were submitted before are done with them. */
static filch_hold *acquire_some(gpu_world *world, buffer *b)
{
    static const filch_access_mode modes[] = {FILCH_READ, FILCH_WRITE, FILCH_READWRITE};
    filch_access_mode mode = modes[fl_random_below(&world->random, 3)];
    filch_tiles tiles = FILCH_TILES_INIT;
    filch_hold *hold = NULL;
    tiles.row0 = fl_random_below(&world->random, b->rows.count);
    tiles.row1 = (uint32_t)gpu_between(world, tiles.row0 + 1, b->rows.count);
    tiles.col0 = fl_random_below(&world->random, b->cols.count);
    tiles.col1 = (uint32_t)gpu_between(world, tiles.col0 + 1, b->cols.count);
    if (gpu_chance(world, 10))
        tiles = (filch_tiles){sizeof tiles, 0, b->rows.count, 0, b->cols.count};
    gpu_ok(filch_data_acquire_tiles(b->data, &tiles, mode, -1, &hold));
    for (uint32_t row = tiles.row0; row < tiles.row1; row++)
        for (uint32_t col = tiles.col0; col < tiles.col1 && !gpu_has_failed(); col++)
            use_tile(world, b, row, col, mode);
    return hold;
}

/* Writes all of it anew. */
static void fill(gpu_world *world, buffer *b)
{
    if (is_programs(b) || ((b->flags & FILCH_DATA_NO_BUFFER) == 0 && b->shadow[0] == 0))
        change_buffer(world, b); /* what was there before the handle was is as good */
    else
        acquire_all(world, b, FILCH_WRITE);
}

static void visit(gpu_world *world, buffer *b)
{
    static const filch_access_mode modes[] = {FILCH_READ, FILCH_WRITE, FILCH_READWRITE};
    if (is_programs(b))
        look_at_buffer(world, b);
    if (gpu_chance(world, 60))
        acquire_all(world, b, modes[fl_random_below(&world->random, 3)]);
    if (is_programs(b) && gpu_chance(world, 50)) {
        look_at_buffer(world, b);
        change_buffer(world, b);
    }
}

static void run_round(gpu_world *world, buffer *buffers, uint32_t handles, plan *plans,
                      uint32_t count)
{
    filch_job *jobs[MOST_GRAPHS] = {NULL};
    bool is_whole = true;
    filch_hold *hold = NULL;
    step_fails_now = gpu_chance(world, 20);
    for (uint32_t g = 0; g < count && !gpu_has_failed(); g++) {
        gpu_ok(filch_graph_submit(plans[g].graph, NULL, &jobs[g]));
        run_on_shadow(buffers, &plans[g]);
        if (hold != NULL) /* the job waits for it, where they conflict */
            gpu_ok(filch_hold_release(hold));
        hold = NULL;
        if (!step_fails_now && gpu_chance(world, 50) && !gpu_has_failed())
            hold = acquire_some(world, &buffers[fl_random_below(&world->random, handles)]);
    }
    if (hold != NULL)
        gpu_ok(filch_hold_release(hold));
    for (uint32_t g = 0; g < count && !gpu_has_failed(); g++) {
        filch_status status = filch_job_wait(jobs[g], -1);
        if (status == FILCH_TASK_FAILED && step_fails_now && plans[g].has_failing) {
            is_whole = false;
            gpu_ok(filch_job_release(jobs[g]));
        } else {
            gpu_wait(world->runtime, jobs[g], FILCH_OK);
        }
    }
    step_fails_now = false;
    for (uint32_t h = 0; h < handles && !gpu_has_failed(); h++) {
        if (is_whole)
            visit(world, &buffers[h]);
        else
            fill(world, &buffers[h]);
    }
}

static void check(gpu_world *world)
{
    buffer buffers[MOST_HANDLES];
    plan *plans = gpu_alloc(MOST_GRAPHS, sizeof *plans);
    uint32_t handles = (uint32_t)gpu_between(world, 1, MOST_HANDLES);
    uint32_t graphs = (uint32_t)gpu_between(world, 1, MOST_GRAPHS);
    uint64_t rounds = gpu_between(world, 1, MOST_ROUNDS);
    memset(buffers, 0, sizeof buffers);
    for (uint32_t h = 0; h < handles && !gpu_has_failed(); h++)
        make_buffer(world, &buffers[h]);
    for (uint32_t g = 0; g < graphs && !gpu_has_failed(); g++)
        make_plan(world, buffers, handles, &plans[g]);
    for (uint64_t r = 0; r < rounds && !gpu_has_failed(); r++)
        run_round(world, buffers, handles, plans, graphs);
    if (gpu_has_failed())
        return;
    for (uint32_t g = 0; g < graphs; g++)
        gpu_ok(filch_graph_destroy(plans[g].graph));
    for (uint32_t h = 0; h < handles; h++) {
        gpu_ok(filch_data_destroy(buffers[h].data));
        if ((buffers[h].flags & FILCH_DATA_ON_DEVICE) != 0)
            in_scope(world, &buffers[h], (work){.what = GIVE});
        free(buffers[h].real);
        free(buffers[h].shadow);
    }
    free(plans);
}

int main(int argc, char **argv)
{
    static const gpu_test test = {"handles", step_open, check, 240};
    return gpu_main(&test, argc, argv);
}
