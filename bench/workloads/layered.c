/* SPDX-License-Identifier: Apache-2.0 */
/* A random graph in layers: layers are of random width, and a task reads the results of up to three
 * tasks of the layer before and writes its own, after as much work as a random number says. Graphs
 * like this are what list schedulers are compared with (H. Topcuoglu, S. Hariri, M.-Y. Wu,
 * "Performance-effective and low-complexity task scheduling for heterogeneous computing", IEEE
 * Trans. Parallel Distrib. Syst. 13(3), 2002, section 5). An element of a result depends on the
 * same element of what was read alone, so that a few elements of all tasks are checked in little
 * time. */
#include "offload/offload.h"
#include "support/fail.h"
#include "workloads/workload.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define TASKS 1000
#define TASKS_MAX 1000000
#define WIDTH 24
#define WIDTH_MAX 10000
/* Steps of an element's threads, in the mean: about 0.1 ms on one device of either kind. */
#define COST_HOST 1
#define COST_GPU 500
#define COST_MAX 100000000
/* From a quarter of the mean to four times of it, as likely at any scale. */
#define COST_SPREAD 4.0
/* Elements of a result, threads of an element, and threads of a block: as many threads as one of
 * the largest GPUs holds. */
#define ELEMENTS 16384
#define SHARES 16
#define BLOCK 256
#define MOST_READ 3
#define CHECKED 8

typedef struct node {
    uint32_t read[MOST_READ];
    uint32_t reads;
    uint32_t rounds;
} node;

typedef struct layered {
    size_t n, width, layers;
    size_t cost; /* 0: not given */
    uint64_t seed;
    bool is_idle;
    node *nodes;
    uint64_t *values; /* of all tasks */
    bench_offload offload;
} layered;

/* By value in each task. */
typedef struct arguments {
    uint64_t seed;
    uint64_t rounds;
} arguments;

static const char source[] =
    "#include \"filch/kernel.h\"\n"
    "typedef unsigned long long u64;\n"
    "struct arguments { u64 seed, rounds; };\n"
    "static __device__ u64 mix(u64 x)\n"
    "{\n"
    "    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;\n"
    "    x = (x ^ x >> 27) * 0x94d049bb133111ebull;\n"
    "    return x ^ x >> 31;\n"
    "}\n"
    "static __device__ void work(const filch_view **from, int reads, const filch_view &out,\n"
    "                            const arguments &args)\n"
    "{\n"
    "    u64 t = blockIdx.x * (u64)blockDim.x + threadIdx.x, e = t / 16, x = args.seed + e;\n"
    "    for (int r = 0; r < reads; r++)\n"
    "        x = mix(x ^ ((const u64 *)from[r]->ptr)[e]);\n"
    "    x += t % 16 * 0x9e3779b97f4a7c15ull;\n"
    "    for (u64 r = 0; r < args.rounds; r++)\n"
    "        x = mix(x);\n"
    "    for (int step = 8; step > 0; step /= 2)\n"
    "        x ^= __shfl_xor_sync(0xffffffffu, x, step, 16);\n"
    "    if (t % 16 == 0)\n"
    "        ((u64 *)out.ptr)[e] = x;\n"
    "}\n"
    "extern \"C\" __global__ void layered0(filch_view out, arguments args)\n"
    "{ work(0, 0, out, args); }\n"
    "extern \"C\" __global__ void layered1(filch_view a, filch_view out, arguments args)\n"
    "{ const filch_view *from[] = {&a}; work(from, 1, out, args); }\n"
    "extern \"C\" __global__ void layered2(filch_view a, filch_view b, filch_view out,\n"
    "                                    arguments args)\n"
    "{ const filch_view *from[] = {&a, &b}; work(from, 2, out, args); }\n"
    "extern \"C\" __global__ void layered3(filch_view a, filch_view b, filch_view c,\n"
    "                                    filch_view out, arguments args)\n"
    "{ const filch_view *from[] = {&a, &b, &c}; work(from, 3, out, args); }\n";

/* SplitMix64's, as in dense.c. */
static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

/* One element of a task's result, from those that it reads. */
static uint64_t element(const arguments *args, uint64_t e, const uint64_t *from, uint32_t reads)
{
    uint64_t x = args->seed + e, sum = 0;
    for (uint32_t r = 0; r < reads; r++)
        x = mix(x ^ from[r]);
    for (uint64_t s = 0; s < SHARES; s++) {
        uint64_t y = x + s * 0x9e3779b97f4a7c15u;
        for (uint64_t r = 0; r < args->rounds; r++)
            y = mix(y);
        sum ^= y;
    }
    return sum;
}

static int run_layered(const filch_call *call)
{
    uint32_t reads = call->view_count - 1;
    uint64_t from[MOST_READ], all = (uint64_t)bench_slow_times(call->device) * ELEMENTS;
    for (uint64_t k = 0; k < all; k++) {
        uint64_t e = k % ELEMENTS;
        for (uint32_t r = 0; r < reads; r++)
            from[r] = ((const uint64_t *)call->views[r].ptr)[e];
        ((uint64_t *)call->views[reads].ptr)[e] = element(call->args, e, from, reads);
    }
    return 0;
}

static int shape_layered(const filch_call *call, filch_shape *shape)
{
    shape->grid[0] = ELEMENTS * SHARES / BLOCK;
    shape->grid[2] = bench_slow_times(call->device);
    shape->block[0] = BLOCK;
    return 0;
}

static double work_of(const filch_call *call)
{
    const arguments *args = call->args;
    return (double)args->rounds * ELEMENTS * SHARES;
}

/* --- The graph --- */

static uint64_t draw(uint64_t *state, uint64_t below)
{
    *state += 0x9e3779b97f4a7c15u;
    return mix(*state) % below;
}

/* Each task of a layer reads one of the layer before at least, so that the layers follow. */
static void draw_reads(node *task, size_t first, size_t count, uint64_t *state)
{
    uint64_t wanted = 1 + draw(state, MOST_READ);
    for (uint64_t w = 0; w < wanted && count > 0; w++) {
        uint32_t other = (uint32_t)(first + draw(state, count));
        bool is_new = true;
        for (uint32_t r = 0; r < task->reads; r++)
            is_new = is_new && task->read[r] != other;
        if (is_new)
            task->read[task->reads++] = other;
    }
}

/* Rounds are set when it is known who runs them. */
static void draw_graph(layered *l)
{
    uint64_t state = l->seed;
    size_t before = 0, first = 0;
    while (first < l->n) {
        size_t count = 1 + draw(&state, 2 * l->width - 1);
        count = count < l->n - first ? count : l->n - first;
        for (size_t k = first; k < first + count; k++)
            draw_reads(&l->nodes[k], before, first - before, &state);
        before = first;
        first += count;
        l->layers++;
    }
}

static void draw_rounds(layered *l)
{
    uint64_t state = mix(l->seed);
    double cost = l->cost ? (double)l->cost : l->offload.has_gpus ? COST_GPU : COST_HOST;
    for (size_t k = 0; k < l->n; k++) {
        double power = 2.0 * (double)draw(&state, 1u << 20) / (1u << 20) - 1;
        l->nodes[k].rounds = (uint32_t)ceil(cost * pow(COST_SPREAD, power));
    }
}

/* --- The workload --- */

static void teardown(void *state)
{
    layered *l = state;
    bench_offload_close(&l->offload);
    free(l->nodes);
    free(l);
}

static filch_status check_options(const bench_options *o, filch_error *error)
{
    if (o->matrix || o->precision != BENCH_DOUBLE)
        return bench_fail(error, FILCH_UNSUPPORTED, o->matrix ? "--matrix" : "--precision", 0,
                          "a layered graph has no matrix and no precision");
    if (o->n > TASKS_MAX)
        return bench_fail(error, FILCH_TOO_LARGE, "--n", 0, "%zu tasks are above %d", o->n,
                          TASKS_MAX);
    if (o->tile > WIDTH_MAX)
        return bench_fail(error, FILCH_TOO_LARGE, "--tile", 0, "%zu tasks in a layer are above %d",
                          o->tile, WIDTH_MAX);
    if (o->cost > COST_MAX)
        return bench_fail(error, FILCH_TOO_LARGE, "--cost", 0, "%zu is above %d", o->cost,
                          COST_MAX);
    return FILCH_OK;
}

static filch_status setup(const bench_options *options, filch_error *error, void **state)
{
    filch_status status = check_options(options, error);
    if (status != FILCH_OK)
        return status;
    layered *l = calloc(1, sizeof *l);
    if (!l)
        return bench_fail(error, FILCH_OUT_OF_MEMORY, "layered", 0, "no memory");
    l->n = options->n ? options->n : TASKS;
    l->width = options->tile ? options->tile : WIDTH;
    l->cost = options->cost;
    l->seed = options->seed ? options->seed : 1;
    l->is_idle = bench_is_simulated(options) && !options->check;
    l->offload.has_no_vendor = true;
    l->nodes = calloc(l->n, sizeof *l->nodes);
    void *values = NULL;
    if (!l->nodes)
        status = bench_fail(error, FILCH_OUT_OF_MEMORY, "--n", 0, "no memory for %zu tasks", l->n);
    if (status == FILCH_OK)
        status = bench_offload_choose(&l->offload, options, error);
    if (status == FILCH_OK)
        status = bench_offload_alloc(&l->offload, l->n * ELEMENTS * sizeof *l->values, "--n", error,
                                     &values);
    if (status != FILCH_OK) {
        teardown(l);
        return status;
    }
    l->values = values;
    draw_graph(l);
    *state = l;
    return FILCH_OK;
}

static void describe(const void *state, bench_problem *problem)
{
    const layered *l = state;
    double rounds = 0;
    for (size_t k = 0; k < l->n; k++)
        rounds += l->nodes[k].rounds;
    problem->n = l->n;
    problem->tile = l->width;
    problem->work = rounds * ELEMENTS * SHARES;
    snprintf(problem->text, sizeof problem->text,
             "%zu tasks of unlike work in %zu layers, each after up to %d of the layer before",
             l->n, l->layers, MOST_READ);
}

static filch_status make_codelets(layered *l, bench_built *built)
{
    static const char *const entries[] = {"layered0", "layered1", "layered2", "layered3"};
    filch_status status = FILCH_OK;
    for (uint32_t r = 0; r <= MOST_READ && status == FILCH_OK; r++) {
        filch_codelet_desc desc = FILCH_CODELET_DESC_INIT;
        filch_cuda_desc cuda = FILCH_CUDA_DESC_INIT;
        desc.name = entries[r];
        desc.host = l->is_idle ? bench_run_nothing : run_layered;
        desc.work = work_of;
        desc.arg_size = sizeof(arguments);
        cuda.source = source;
        cuda.entry = entries[r];
        cuda.shape_of = shape_layered;
        desc.cuda = l->offload.has_gpus ? &cuda : NULL;
        status = filch_codelet_create(built->runtime, &desc, &built->codelets[r]);
    }
    return status;
}

static filch_status add_task(const layered *l, const bench_built *built, size_t k)
{
    const node *task = &l->nodes[k];
    const arguments args = {mix(l->seed + k), task->rounds};
    filch_access accesses[MOST_READ + 1];
    filch_task_desc desc = FILCH_TASK_DESC_INIT;
    for (uint32_t r = 0; r < task->reads; r++)
        accesses[r] =
            (filch_access){.data = built->data[0], .row = task->read[r], .mode = FILCH_READ};
    accesses[task->reads] =
        (filch_access){.data = built->data[0], .row = (uint32_t)k, .mode = FILCH_WRITE};
    desc.codelet = built->codelets[task->reads];
    desc.args = &args;
    desc.accesses = accesses;
    desc.access_count = task->reads + 1;
    return filch_graph_add(built->graph, &desc, NULL);
}

static filch_status build(void *state, bench_built *built)
{
    layered *l = state;
    filch_data_desc desc = FILCH_DATA_DESC_INIT;
    size_t elements = l->n * ELEMENTS;
    bench_offload_meet(&l->offload, built->runtime);
    bench_offload_pin(&l->offload, l->values, elements * sizeof *l->values);
    draw_rounds(l);
    desc.ptr = l->values;
    desc.element = sizeof *l->values;
    desc.rows = elements;
    desc.tile_rows = ELEMENTS;
    desc.label = "results";
    desc.flags = FILCH_DATA_MANAGED; /* results stay where they are made */
    filch_status status = make_codelets(l, built);
    if (status == FILCH_OK)
        status = filch_data_create(built->runtime, &desc, &built->data[0]);
    built->result = built->data[0];
    if (status == FILCH_OK)
        status = filch_graph_create(built->runtime, NULL, &built->graph);
    for (size_t k = 0; k < l->n && status == FILCH_OK; k++)
        status = add_task(l, built, k);
    return status;
}

/* Some elements of all tasks' results, each reckoned from the checked ones before. */
static filch_status check(void *state, double *residual, filch_error *error)
{
    const layered *l = state;
    (void)residual;
    for (size_t k = 0; k < l->n; k++) {
        const arguments args = {mix(l->seed + k), l->nodes[k].rounds};
        for (size_t c = 0; c < CHECKED; c++) {
            size_t e = c * (ELEMENTS - 1) / (CHECKED - 1);
            uint64_t from[MOST_READ];
            for (uint32_t r = 0; r < l->nodes[k].reads; r++)
                from[r] = l->values[(size_t)l->nodes[k].read[r] * ELEMENTS + e];
            if (l->values[k * ELEMENTS + e] != element(&args, e, from, l->nodes[k].reads))
                return bench_fail(error, FILCH_DATA, "check", 0,
                                  "element %zu of task %zu's result is wrong", e, k);
        }
    }
    return FILCH_OK;
}

const bench_workload bench_layered = {
    .name = "layered",
    .help = "a random graph of --n tasks, --tile a layer in the mean, of about --cost steps each",
    .unit = "step",
    .takes_memory = true,
    .takes_cost = true,
    .takes_slow = true,
    .setup = setup,
    .teardown = teardown,
    .describe = describe,
    .build = build,
    .check = check,
};
