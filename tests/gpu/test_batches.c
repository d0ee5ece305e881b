/* SPDX-License-Identifier: Apache-2.0 */
/* Random batches with halos on GPUs (and host cores where FILCH_DEVICES names some) against one
 * loop: the same bytes, and where a chunk fails, statuses that cover the range and name it. A
 * kernel cannot fail; its geometry function can. */
#include "gpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    MOST_ITEMS = 5000,
    MOST_SCALE = 4,
    MOST_HALO = 5,
    MOST_ROUNDS = 6,
    FAIL_CODE = 7,
    MOST_CUTS = 9
};

typedef struct arguments {
    uint64_t seed;
    uint64_t before, after, items, scale;
    uint64_t keeps;
    uint64_t bad; /* item whose chunk fails; items: none */
} arguments;

typedef struct plan {
    arguments args;
    uint64_t grain;
    bool is_managed;
    uint64_t round; /* with one element an item, handles swap roles */
    filch_data *data[2];
    uint64_t *real[2], *shadow[2];
} plan;

static const char source[] =
    "#include \"filch/kernel.h\"\n" GPU_MIX
    "struct arguments { u64 seed, before, after, items, scale, keeps, bad; };\n"
    "extern \"C\" __global__ void smooth(filch_view x, filch_view y, filch_range range,\n"
    "                                    arguments a)\n"
    "{\n"
    "    u64 lo = range.lo + blockIdx.x * blockDim.x + threadIdx.x;\n"
    "    for (u64 item = lo; item < range.hi; item += gridDim.x * blockDim.x) {\n"
    "        u64 value = mix(a.seed, item);\n"
    "        u64 first = item > a.before ? item - a.before : 0;\n"
    "        u64 last = item + 1 + a.after < a.items ? item + 1 + a.after : a.items;\n"
    "        for (u64 k = first; k < last; k++)\n"
    "            value = mix(value, ((const u64 *)x.ptr)[k - x.row]);\n"
    "        for (u64 k = 0; k < a.scale; k++) {\n"
    "            u64 *to = (u64 *)y.ptr + (item * a.scale + k - y.row);\n"
    "            *to = mix(a.keeps ? mix(value, *to) : value, k);\n"
    "        }\n"
    "    }\n"
    "}\n";

static filch_codelet *codelets[2]; /* of the runtime that is open; the second may be run twice */

/* Item by item; x and y are whole handles' elements from x_at and y_at on. */
static void smooth(uint64_t lo, uint64_t hi, const uint64_t *x, uint64_t x_at, uint64_t *y,
                   uint64_t y_at, const arguments *a)
{
    for (uint64_t item = lo; item < hi; item++) {
        uint64_t value = gpu_mix(a->seed, item);
        uint64_t first = item > a->before ? item - a->before : 0;
        uint64_t last = item + 1 + a->after < a->items ? item + 1 + a->after : a->items;
        for (uint64_t k = first; k < last; k++)
            value = gpu_mix(value, x[k - x_at]);
        for (uint64_t k = 0; k < a->scale; k++) {
            uint64_t *to = &y[item * a->scale + k - y_at];
            *to = gpu_mix(a->keeps ? gpu_mix(value, *to) : value, k);
        }
    }
}

static bool is_bad(const filch_call *call)
{
    const arguments *a = call->args;
    return a->bad >= call->lo && a->bad < call->hi;
}

static int run_smooth(const filch_call *call)
{
    const filch_view *x = &call->views[0];
    const filch_view *y = &call->views[1];
    if (is_bad(call))
        return FAIL_CODE;
    smooth(call->lo, call->hi, x->ptr, x->row, y->ptr, y->row, call->args);
    return 0;
}

static int shape_of(const filch_call *call, filch_shape *shape)
{
    shape->block[0] = 64;
    shape->grid[0] = (uint32_t)((call->hi - call->lo + 63) / 64);
    return is_bad(call) ? FAIL_CODE : 0;
}

static filch_status open_codelet(gpu_world *world)
{
    gpu_twin("smooth", run_smooth, 2, true, sizeof(arguments));
    filch_status status = gpu_codelet(world->runtime, source, "smooth", run_smooth,
                                      sizeof(arguments), shape_of, &codelets[0]);
    filch_cuda_desc cuda = FILCH_CUDA_DESC_INIT;
    filch_codelet_desc desc = FILCH_CODELET_DESC_INIT;
    if (status != FILCH_OK)
        return status;
    cuda.source = source;
    cuda.entry = "smooth";
    cuda.shape_of = shape_of;
    desc.name = "smooth twice";
    desc.host = run_smooth;
    desc.cuda = &cuda;
    desc.arg_size = sizeof(arguments);
    desc.flags = FILCH_CODELET_RESTARTABLE;
    return filch_codelet_create(world->runtime, &desc, &codelets[1]);
}

/* Tiles of unlike sizes, two at least. */
static uint32_t cut(gpu_world *world, uint64_t count, uint64_t *cuts)
{
    uint32_t made = 0;
    uint64_t left = count;
    while (left != 0) {
        uint64_t most = made == 0 ? count - 1 : left;
        cuts[made] = made == MOST_CUTS - 1 ? left : gpu_between(world, 1, most);
        left -= cuts[made++];
    }
    return made;
}

static filch_data *make_data(gpu_world *world, const plan *p, uint64_t *values, uint64_t count,
                             uint64_t tile)
{
    uint64_t cuts[MOST_CUTS];
    filch_data *data = NULL;
    filch_data_desc desc = FILCH_DATA_DESC_INIT;
    desc.ptr = values;
    desc.element = sizeof *values;
    desc.rows = count;
    if (tile != 0 && gpu_chance(world, 40)) {
        desc.row_cuts = cuts;
        desc.row_cut_count = cut(world, count, cuts);
    } else {
        desc.tile_rows = tile;
    }
    desc.flags = p->is_managed ? FILCH_DATA_MANAGED : 0;
    gpu_ok(filch_data_create(world->runtime, &desc, &data));
    return data;
}

static void make_plan(gpu_world *world, plan *p)
{
    arguments *a = &p->args;
    *a = (arguments){.before = gpu_between(world, 0, MOST_HALO),
                     .after = gpu_between(world, 0, MOST_HALO),
                     .items = gpu_between(world, 1, MOST_ITEMS),
                     .scale = gpu_between(world, 1, MOST_SCALE),
                     .keeps = gpu_chance(world, 50)};
    uint64_t count = a->items * a->scale;
    p->grain = gpu_chance(world, 50) ? gpu_between(world, 1, 300) : 0;
    p->is_managed = count > 1 && gpu_chance(world, 50);
    p->round = 0;
    for (int h = 0; h < 2; h++) {
        uint64_t elements = h == 0 ? a->items : count;
        /* What a batch writes of a managed handle must be tiled. */
        bool is_tiled =
            elements > 1 && (p->is_managed ? h == 1 || a->scale == 1 : gpu_chance(world, 30));
        p->real[h] = gpu_alloc(elements, sizeof *p->real[h]);
        p->shadow[h] = gpu_alloc(elements, sizeof *p->shadow[h]);
        for (uint64_t k = 0; k < elements; k++)
            p->real[h][k] = p->shadow[h][k] = fl_random_next(&world->random);
        p->data[h] = make_data(world, p, p->real[h], elements,
                               is_tiled ? gpu_between(world, 1 + elements / 9, elements - 1) : 0);
    }
}

/* The handle that this round reads. */
static int source_of(const plan *p)
{
    return p->args.scale == 1 ? (int)(p->round % 2) : 0;
}

/* The loop over the items that ran, by the job's own account of them; its ranges must cover all. */
static void run_on_shadow(const plan *p, filch_job *job)
{
    int from = source_of(p);
    size_t count = 0;
    gpu_ok(filch_job_items(job, NULL, 0, &count));
    filch_item_range *ranges = gpu_alloc(count, sizeof *ranges);
    uint64_t at = 0;
    gpu_ok(filch_job_items(job, ranges, count, &count));
    for (size_t k = 0; k < count; k++) {
        bool holds_bad = p->args.bad >= ranges[k].lo && p->args.bad < ranges[k].hi;
        bool failed = ranges[k].status == FILCH_TASK_FAILED;
        if (ranges[k].lo != at || (ranges[k].status != FILCH_OK && !failed) ||
            failed != holds_bad || (failed && ranges[k].code != FAIL_CODE))
            gpu_fail("items %llu to %llu are said to have %s with code %d",
                     (unsigned long long)ranges[k].lo, (unsigned long long)ranges[k].hi,
                     filch_status_name(ranges[k].status), ranges[k].code);
        if (!failed)
            smooth(ranges[k].lo, ranges[k].hi, p->shadow[from], 0, p->shadow[1 - from], 0,
                   &p->args);
        at = ranges[k].hi;
    }
    if (at != p->args.items)
        gpu_fail("the statuses end at item %llu of %llu", (unsigned long long)at,
                 (unsigned long long)p->args.items);
    free(ranges);
}

/* What a job that failed wrote is unspecified (data.h): the next round starts from it. */
static void compare(plan *p)
{
    int to = 1 - source_of(p);
    uint64_t count = p->args.items * p->args.scale;
    bool is_whole = p->args.bad == p->args.items;
    if (p->is_managed)
        gpu_ok(filch_data_acquire(p->data[to], is_whole ? FILCH_READ : FILCH_READWRITE));
    for (uint64_t k = 0; k < count && is_whole; k++)
        if (p->real[to][k] != p->shadow[to][k]) {
            gpu_fail("round %llu: element %llu of %llu differs%s", (unsigned long long)p->round,
                     (unsigned long long)k, (unsigned long long)count,
                     p->is_managed ? ", managed" : "");
            break;
        }
    memcpy(p->shadow[to], p->real[to], count * sizeof *p->real[to]);
    if (p->is_managed)
        gpu_ok(filch_data_release(p->data[to]));
}

static void run_round(gpu_world *world, plan *p)
{
    arguments *a = &p->args;
    a->seed = fl_random_next(&world->random);
    a->bad = gpu_chance(world, 20) ? gpu_between(world, 0, a->items - 1) : a->items;
    const filch_batch_access accesses[] = {
        {.data = p->data[source_of(p)],
         .mode = FILCH_READ,
         .map = FILCH_MAP_AFFINE,
         .scale = 1,
         .before = a->before,
         .after = a->after},
        {.data = p->data[1 - source_of(p)],
         .mode = a->keeps ? FILCH_READWRITE : FILCH_WRITE,
         .map = FILCH_MAP_AFFINE,
         .scale = a->scale},
    };
    filch_batch_desc desc = FILCH_BATCH_DESC_INIT;
    filch_job *job = NULL;
    bool is_twice = gpu_chance(world, 50);
    desc.codelet = codelets[is_twice];
    desc.args = a;
    desc.n = a->items;
    desc.grain = p->grain;
    desc.accesses = accesses;
    desc.access_count = 2;
    gpu_ok(filch_batch_submit(world->runtime, &desc, NULL, &job));
    if (gpu_has_failed()) {
        gpu_explain(world->runtime);
        return;
    }
    gpu_expect(filch_job_wait(job, -1), a->bad < a->items ? FILCH_TASK_FAILED : FILCH_OK,
               "filch_job_wait");
    run_on_shadow(p, job);
    gpu_ok(filch_job_release(job));
    if (is_twice)
        gpu_ok(filch_runtime_drain(world->runtime, -1)); /* a run that lost may read the input */
    /* Contents of managed handles may stay where they are for a round or two. */
    if (!p->is_managed || a->bad < a->items || gpu_chance(world, 60))
        compare(p);
    p->round++;
}

static void check(gpu_world *world)
{
    plan p;
    uint64_t rounds = gpu_between(world, 1, MOST_ROUNDS);
    make_plan(world, &p);
    for (uint64_t r = 0; r < rounds && !gpu_has_failed(); r++)
        run_round(world, &p);
    if (gpu_has_failed())
        return;
    for (int h = 0; h < 2; h++) {
        gpu_ok(filch_data_destroy(p.data[h]));
        free(p.real[h]);
        free(p.shadow[h]);
    }
}

int main(int argc, char **argv)
{
    static const gpu_test test = {"batches", open_codelet, check, 1500};
    return gpu_main(&test, argc, argv);
}
