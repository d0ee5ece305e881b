/* SPDX-License-Identifier: Apache-2.0 */
/* Reductions under random graphs, on GPUs and host cores. Tiles are written, read and reduced to in
 * turn. Whole numbers have the sum of all addends whatever the order. Of ordered handles
 * (FILCH_DATA_ORDERED) the sums of rounded numbers have the bits that the header promises. */
#include "gpu.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_TILES = 4, MOST_TASKS = 200, MOST_ROWS = 300, MOST_ROUNDS = 4, PARTS = 64 };

typedef struct addend {
    double value;
    uint64_t doubles; /* the tile is doubled in place of being added to */
} addend;

static const char source[] =
    "#include \"filch/kernel.h\"\n"
    "struct addend { double value; unsigned long long doubles; };\n"
    "#define EACH(n) for (unsigned long long i = blockIdx.x * blockDim.x + threadIdx.x; i < n; \\\n"
    "                     i += gridDim.x * blockDim.x)\n"
    "extern \"C\" __global__ void increase(filch_view to, addend a)\n"
    "{ EACH(to.rows) ((double *)to.ptr)[i] += a.doubles ? ((double *)to.ptr)[i] : a.value; }\n"
    "extern \"C\" __global__ void neutral(filch_view to)\n"
    "{ EACH(to.rows) ((double *)to.ptr)[i] = 0; }\n"
    "extern \"C\" __global__ void plus(filch_view to, filch_view from)\n"
    "{ EACH(to.rows) ((double *)to.ptr)[i] += ((const double *)from.ptr)[i]; }\n";

static filch_codelet *increase, *neutral, *plus;

static void add_to(double *to, uint64_t rows, const addend *a)
{
    for (uint64_t i = 0; i < rows; i++)
        to[i] += a->doubles ? to[i] : a->value;
}

static int run_increase(const filch_call *call)
{
    add_to(call->views[0].ptr, call->views[0].rows, call->args);
    return 0;
}

static int run_neutral(const filch_call *call)
{
    memset(call->views[0].ptr, 0, call->views[0].rows * sizeof(double));
    return 0;
}

static int run_plus(const filch_call *call)
{
    double *to = call->views[0].ptr;
    const double *from = call->views[1].ptr;
    for (uint64_t i = 0; i < call->views[0].rows; i++)
        to[i] += from[i];
    return 0;
}

static filch_status open_codelets(gpu_world *world)
{
    gpu_twin("increase", run_increase, 1, false, sizeof(addend));
    gpu_twin("neutral", run_neutral, 1, false, 0);
    gpu_twin("plus", run_plus, 2, false, 0);
    filch_status status = gpu_codelet(world->runtime, source, "increase", run_increase,
                                      sizeof(addend), NULL, &increase);
    if (status == FILCH_OK)
        status = gpu_codelet(world->runtime, source, "neutral", run_neutral, 0, NULL, &neutral);
    if (status == FILCH_OK)
        status = gpu_codelet(world->runtime, source, "plus", run_plus, 0, NULL, &plus);
    return status;
}

/* --- The model --- */

/* A tile, and the partial results of the group so far. All rows are alike. */
typedef struct tile {
    double value;
    double parts[PARTS];
    uint32_t members;
} tile;

static void end_group(tile *t)
{
    for (uint32_t p = 0; p < PARTS && p < t->members; p++)
        t->value += t->parts[p];
    memset(t->parts, 0, sizeof t->parts);
    t->members = 0;
}

typedef struct task {
    uint32_t tile;
    filch_access_mode mode;
    addend args;
} task;

static void play(tile *t, const task *each)
{
    if (each->mode == FILCH_REDUCE) {
        add_to(&t->parts[t->members++ % PARTS], 1, &each->args);
        return;
    }
    end_group(t);
    add_to(&t->value, 1, &each->args);
}

/* --- The test --- */

typedef struct plan {
    uint32_t tiles, count;
    uint64_t rows; /* of a tile */
    bool is_ordered;
    double *real;
    filch_data *data;
    tile model[MOST_TILES];
    task tasks[MOST_TASKS];
} plan;

static void make_data(gpu_world *world, plan *p)
{
    filch_data_desc desc = FILCH_DATA_DESC_INIT;
    p->tiles = (uint32_t)gpu_between(world, 1, MOST_TILES);
    p->rows = gpu_between(world, 1, MOST_ROWS);
    p->is_ordered = gpu_chance(world, 60);
    p->real = gpu_alloc(p->tiles * p->rows, sizeof *p->real);
    desc.ptr = p->real;
    desc.element = sizeof *p->real;
    desc.rows = p->tiles * p->rows;
    desc.tile_rows = p->rows;
    desc.flags = p->is_ordered ? FILCH_DATA_ORDERED : 0;
    desc.label = "sums";
    gpu_ok(filch_data_create(world->runtime, &desc, &p->data));
    gpu_ok(filch_data_reduction(p->data, neutral, plus));
    for (uint32_t t = 0; t < p->tiles; t++)
        p->model[t].value = 0;
}

/* Sums of whole numbers below 2^53 are exact. Doubled tiles would leave that range, so only ordered
 * handles have some, and numbers that round. */
static void make_task(gpu_world *world, const plan *p, task *made)
{
    bool reduces = gpu_chance(world, 97);
    double whole = (double)gpu_between(world, 0, 1000000);
    made->tile = fl_random_below(&world->random, p->tiles);
    made->mode = reduces ? FILCH_REDUCE : FILCH_READWRITE;
    made->args.value = p->is_ordered ? (whole - 5e5) / 7 : whole;
    made->args.doubles = p->is_ordered && !reduces;
}

static void run_plan(gpu_world *world, plan *p, filch_graph_kind kind)
{
    filch_graph_desc desc = FILCH_GRAPH_DESC_INIT;
    filch_graph *graph = NULL;
    filch_job *job = NULL;
    desc.kind = kind;
    gpu_ok(filch_graph_create(world->runtime, &desc, &graph));
    if (kind == FILCH_GRAPH_OPEN)
        gpu_ok(filch_graph_submit(graph, NULL, &job));
    for (uint32_t k = 0; k < p->count && !gpu_has_failed(); k++) {
        const task *each = &p->tasks[k];
        const filch_access access = {.data = p->data, .row = each->tile, .mode = each->mode};
        filch_task_desc added = FILCH_TASK_DESC_INIT;
        added.codelet = increase;
        added.args = &each->args;
        added.accesses = &access;
        added.access_count = 1;
        gpu_ok(filch_graph_add(graph, &added, NULL));
    }
    uint64_t rounds = kind == FILCH_GRAPH_OPEN ? 1 : gpu_between(world, 1, MOST_ROUNDS);
    for (uint64_t r = 0; r < rounds && !gpu_has_failed(); r++) {
        gpu_ok(kind == FILCH_GRAPH_OPEN ? filch_graph_close(graph)
                                        : filch_graph_submit(graph, NULL, &job));
        gpu_wait(world->runtime, job, FILCH_OK);
        for (uint32_t k = 0; k < p->count; k++)
            play(&p->model[p->tasks[k].tile], &p->tasks[k]);
        for (uint32_t t = 0; t < p->tiles; t++)
            end_group(&p->model[t]);
    }
    gpu_ok(filch_graph_destroy(graph));
}

static void compare(const plan *p)
{
    for (uint64_t k = 0; k < p->tiles * p->rows && !gpu_has_failed(); k++)
        if (memcmp(&p->real[k], &p->model[k / p->rows].value, sizeof *p->real) != 0)
            gpu_fail("row %llu of tile %llu%s is %a instead of %a",
                     (unsigned long long)(k % p->rows), (unsigned long long)(k / p->rows),
                     p->is_ordered ? ", ordered," : "", p->real[k], p->model[k / p->rows].value);
}

static void check(gpu_world *world)
{
    plan *p = gpu_alloc(1, sizeof *p);
    make_data(world, p);
    p->count = (uint32_t)gpu_between(world, 1, MOST_TASKS);
    for (uint32_t k = 0; k < p->count; k++)
        make_task(world, p, &p->tasks[k]);
    run_plan(world, p, FILCH_GRAPH_CLOSED);
    compare(p);
    if (!gpu_has_failed()) {
        run_plan(world, p, FILCH_GRAPH_OPEN);
        compare(p);
    }
    if (!gpu_has_failed()) {
        gpu_ok(filch_data_destroy(p->data));
        free(p->real);
        free(p);
    }
}

int main(int argc, char **argv)
{
    static const gpu_test test = {"reduce", open_codelets, check, 150};
    return gpu_main(&test, argc, argv);
}
