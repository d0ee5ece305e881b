/* SPDX-License-Identifier: Apache-2.0 */
/* A batch whose chunks are copied in, worked on and copied out again: y = f(x), where f takes
 * --cost multiply-adds an element. An item is a column of --tile KiB. What counts is how near this
 * comes to the slower of the links and the kernels.
 *
 * f repeats v := v / 2 + x from v = x. Halving is exact, so that the sum is rounded once however it
 * is compiled, and every device computes the same bits, to which the check holds it. */
#include "offload/offload.h"
#include "problems/dense.h"
#include "support/fail.h"
#include "workloads/workload.h"

#include <stdio.h>
#include <stdlib.h>

#define ITEMS 512
#define ITEMS_MAX 10000000
#define KIB 4096
#define KIB_MAX 4194304
#define COST 1000
#define COST_MAX 1000000000
/* Of a probe: enough for the kernels to take longer than what is around them. */
#define PROBE_BYTES ((double)(1 << 30))
#define CHECKED 10007
#define BLOCK 256
#define BLOCKS_OF_ONE 8

enum handle { FROM, TO, HANDLES };

/* By value in the batch. */
typedef struct arguments {
    uint64_t cost;
} arguments;

typedef struct stream {
    size_t n;
    size_t kib;
    size_t rows; /* elements of an item */
    arguments args;
    bool is_idle; /* simulated and not checked */
    bool is_probe;
    double *values[HANDLES];
    bench_offload offload;
} stream;

static const char source[] =
    "#include \"filch/kernel.h\"\n"
    "struct arguments { unsigned long long cost; };\n"
    "extern \"C\" __global__ void stream(filch_view from, filch_view to, filch_range range,\n"
    "                                  arguments a)\n"
    "{\n"
    "    unsigned long long all = from.rows * (range.hi - range.lo);\n"
    "    for (unsigned long long k = filch_thread(); k < all; k += filch_threads()) {\n"
    "        double x = filch_at<double>(from, k % from.rows, k / from.rows), v = x;\n"
    "        for (unsigned long long i = 0; i < a.cost; i++)\n"
    "            v = v * 0.5 + x;\n"
    "        filch_at<double>(to, k % from.rows, k / from.rows) = v;\n"
    "    }\n"
    "}\n";

static double apply(double x, uint64_t cost)
{
    double v = x;
    for (uint64_t i = 0; i < cost; i++)
        v = v * 0.5 + x;
    return v;
}

static int run_stream(const filch_call *call)
{
    const arguments *args = call->args;
    const filch_view *from = &call->views[FROM], *to = &call->views[TO];
    uint64_t items = call->hi - call->lo;
    for (uint64_t k = 0, j = 0; k < bench_slow_times(call->device) * items; k++, j = k % items)
        for (uint64_t i = 0; i < from->rows; i++)
            ((double *)to->ptr)[j * to->ld + i] =
                apply(((const double *)from->ptr)[j * from->ld + i], args->cost);
    return 0;
}

static int shape_stream(const filch_call *call, filch_shape *shape)
{
    uint64_t blocks = (call->views[FROM].rows * (call->hi - call->lo) + BLOCK - 1) / BLOCK;
    uint64_t most = (uint64_t)BLOCKS_OF_ONE * call->team;
    shape->grid[0] = (uint32_t)(blocks < most ? blocks : most);
    shape->grid[2] = bench_slow_times(call->device);
    shape->block[0] = BLOCK;
    return 0;
}

static size_t items(const stream *s)
{
    size_t most = (size_t)(PROBE_BYTES / 1024) / s->kib;
    most = most > 0 ? most : 1;
    return s->is_probe && most < s->n ? most : s->n;
}

static double bytes_of(const stream *s, size_t count)
{
    return (double)count * (double)s->rows * sizeof(double);
}

static void teardown(void *state)
{
    stream *s = state;
    bench_offload_close(&s->offload);
    free(s);
}

static filch_status check_options(const bench_options *options, filch_error *error)
{
    if (options->matrix || options->precision != BENCH_DOUBLE)
        return bench_fail(error, FILCH_UNSUPPORTED, options->matrix ? "--matrix" : "--precision", 0,
                          "a stream has no matrix, and is double only");
    if (options->n > ITEMS_MAX)
        return bench_fail(error, FILCH_TOO_LARGE, "--n", 0, "%zu items are above %d", options->n,
                          ITEMS_MAX);
    if (options->tile > KIB_MAX)
        return bench_fail(error, FILCH_TOO_LARGE, "--tile", 0, "%zu KiB are above %d",
                          options->tile, KIB_MAX);
    if (options->cost > COST_MAX)
        return bench_fail(error, FILCH_TOO_LARGE, "--cost", 0, "%zu is above %d", options->cost,
                          COST_MAX);
    return FILCH_OK;
}

static filch_status make_values(stream *s, const bench_options *options, filch_error *error)
{
    filch_status status = bench_offload_choose(&s->offload, options, error);
    for (size_t k = 0; k < HANDLES && status == FILCH_OK; k++) {
        void *memory = NULL;
        status = bench_offload_alloc(&s->offload, s->n * s->rows * sizeof(double), "--n", error,
                                     &memory);
        s->values[k] = memory;
    }
    if (status == FILCH_OK)
        bench_dense_fill(s->rows, s->n, s->rows, s->values[FROM],
                         options->seed ? options->seed : 1);
    return status;
}

static filch_status setup(const bench_options *options, filch_error *error, void **state)
{
    filch_status status = check_options(options, error);
    if (status != FILCH_OK)
        return status;
    stream *s = calloc(1, sizeof *s);
    if (!s)
        return bench_fail(error, FILCH_OUT_OF_MEMORY, "stream", 0, "no memory");
    s->n = options->n ? options->n : ITEMS;
    s->kib = options->tile ? options->tile : KIB;
    s->rows = s->kib * 1024 / sizeof(double);
    s->args.cost = options->cost ? options->cost : COST;
    s->is_idle = bench_is_simulated(options) && !options->check;
    s->offload.has_no_vendor = true;
    status = make_values(s, options, error);
    if (status != FILCH_OK) {
        teardown(s);
        return status;
    }
    *state = s;
    return FILCH_OK;
}

static void describe(const void *state, bench_problem *problem)
{
    const stream *s = state;
    problem->n = s->n;
    problem->tile = s->kib;
    problem->work = bytes_of(s, items(s));
    snprintf(problem->text, sizeof problem->text,
             "%zu items of %zu KiB in and out again, %llu multiply-adds an element", s->n, s->kib,
             (unsigned long long)s->args.cost);
}

static filch_status build(void *state, bench_built *built)
{
    static const char *const labels[HANDLES] = {"from", "to"};
    stream *s = state;
    filch_codelet_desc codelet = FILCH_CODELET_DESC_INIT;
    filch_cuda_desc cuda = FILCH_CUDA_DESC_INIT;
    bench_offload_meet(&s->offload, built->runtime);
    codelet.name = "stream";
    codelet.host = s->is_idle ? bench_run_nothing : run_stream;
    codelet.arg_size = sizeof(arguments);
    cuda.source = source;
    cuda.entry = "stream";
    cuda.shape_of = shape_stream;
    codelet.cuda = s->offload.has_gpus ? &cuda : NULL;
    filch_status status = filch_codelet_create(built->runtime, &codelet, &built->codelets[0]);
    for (size_t k = 0; k < HANDLES && status == FILCH_OK; k++) {
        filch_data_desc desc = FILCH_DATA_DESC_INIT;
        bench_offload_pin(&s->offload, s->values[k], (size_t)bytes_of(s, s->n));
        desc.ptr = s->values[k];
        desc.element = sizeof(double);
        desc.rows = s->rows;
        desc.cols = items(s);
        desc.tile_cols = 1;
        desc.label = labels[k];
        desc.flags = s->is_probe ? FILCH_DATA_MANAGED : 0;
        status = filch_data_create(built->runtime, &desc, &built->data[k]);
    }
    return status;
}

static filch_status start(void *state, bench_built *built, filch_job **job)
{
    const stream *s = state;
    const filch_batch_access accesses[HANDLES] = {
        [FROM] = {.data = built->data[FROM],
                  .mode = FILCH_READ,
                  .map = FILCH_MAP_AFFINE,
                  .scale = 1},
        [TO] = {.data = built->data[TO], .mode = FILCH_WRITE, .map = FILCH_MAP_AFFINE, .scale = 1},
    };
    filch_batch_desc desc = FILCH_BATCH_DESC_INIT;
    desc.codelet = built->codelets[0];
    desc.args = &s->args;
    desc.n = items(s);
    desc.accesses = accesses;
    desc.access_count = HANDLES;
    return filch_batch_submit(built->runtime, &desc, NULL, job);
}

/* Elements a prime apart, so that every item and every place in one comes up. */
static filch_status check(void *state, double *residual, filch_error *error)
{
    const stream *s = state;
    (void)residual;
    for (size_t k = 0; k < s->n * s->rows; k += CHECKED) {
        double expected = apply(s->values[FROM][k], s->args.cost);
        if (s->values[TO][k] != expected)
            return bench_fail(error, FILCH_DATA, "check", 0,
                              "element %zu of item %zu is %g, not %g", k % s->rows, k / s->rows,
                              s->values[TO][k], expected);
    }
    return FILCH_OK;
}

static void probe(void *state, bool on)
{
    ((stream *)state)->is_probe = on;
}

/* What GPUs did, in and out. */
static bool traffic(const void *state, const bench_memory_share *shares, size_t count, bool joined,
                    bench_traffic *t)
{
    const stream *s = state;
    double all = 0, on_gpus = 0;
    (void)joined;
    for (size_t k = 0; k < count; k++) {
        all += shares[k].items;
        on_gpus += shares[k].is_host ? 0 : shares[k].items;
    }
    t->in = t->out = bytes_of(s, s->n) * on_gpus / all;
    t->all = t->in + t->out;
    return on_gpus > 0;
}

const bench_workload bench_stream = {
    .name = "stream",
    .help = "copies items of --tile KiB in, works --cost multiply-adds an element, copies out",
    .unit = "B",
    .takes_memory = true,
    .takes_cost = true,
    .takes_slow = true,
    .is_duplex = true,
    .is_even = true,
    .setup = setup,
    .teardown = teardown,
    .describe = describe,
    .build = build,
    .start = start,
    .check = check,
    .traffic = traffic,
    .probe = probe,
};
