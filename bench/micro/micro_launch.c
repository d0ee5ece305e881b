/* SPDX-License-Identifier: Apache-2.0 */
/* What an empty kernel costs with the driver alone: launched by itself, as a node of a graph, and
 * in a batch, a graph whose parameters are set before each launch of it; with no parameters, with
 * some, and with filch's views; where kernels wait for the whole kernel before them, and where they
 * begin before it ends and wait inside (programmatic dependent launch). All by turns. */
#include "micro/bed.h"
#include "micro/micro.h"
#include "support/fail.h"
#include "support/timing.h"

#include <stdlib.h>

/* Programmatic launches: architecture, driver for graphs with them. */
#define EARLY_MAJOR 9
#define EARLY_DRIVER 12030
/* Kernels that are timed together, at least. */
#define KERNELS 4000
#define LARGEST 100000
#define OTHERS 8
#define VIEW_BYTES 56
#define VIEWS 3

enum params { NONE, POINTER, PACKED, VIEW, THREE_VIEWS, PARAMS };

/* How a kernel follows another. */
enum way {
    FULL,   /* when it has ended */
    SHARED, /* the same, where it may ask for all shared memory of a block, and asks for none */
    NEW,    /* the same, compiled for newer GPUs alone */
    INSIDE, /* it waits inside for its end */
    EARLY,  /* and the other lets it begin at once */
    WAYS
};

enum form { STREAM, GRAPH, BATCH };

#define WAVEFRONT 0

/* Streams beside the one that is timed: none, idle ones, ones in which a kernel ran before. */
enum beside { ALONE, MADE, USED, STAGES };

typedef struct launch_case {
    const char *name;
    enum form form;
    enum params params;
    enum way way;
    size_t count;  /* kernels of a graph */
    size_t chains; /* that these make; WAVEFRONT: of a square … */
    size_t rows;   /* … of which so many are under way at once; 0: all */
    enum beside beside;
} launch_case;

static const launch_case cases[] = {
    {"stream", STREAM, NONE, FULL, 1, 1, 0, ALONE},
    {"stream, a pointer", STREAM, POINTER, FULL, 1, 1, 0, ALONE},
    {"stream, 168 bytes", STREAM, PACKED, FULL, 1, 1, 0, ALONE},
    {"stream, a view", STREAM, VIEW, FULL, 1, 1, 0, ALONE},
    {"stream, three views", STREAM, THREE_VIEWS, FULL, 1, 1, 0, ALONE},
    {"stream, newer code", STREAM, NONE, NEW, 1, 1, 0, ALONE},
    {"stream, waiting inside", STREAM, NONE, INSIDE, 1, 1, 0, ALONE},
    {"stream, early", STREAM, NONE, EARLY, 1, 1, 0, ALONE},
    {"stream, a view, early", STREAM, VIEW, EARLY, 1, 1, 0, ALONE},
    {"stream, three views, early", STREAM, THREE_VIEWS, EARLY, 1, 1, 0, ALONE},
    {"chain of 32", GRAPH, NONE, FULL, 32, 1, 0, ALONE},
    {"chain of 128", GRAPH, NONE, FULL, 128, 1, 0, ALONE},
    {"chain of 1000", GRAPH, NONE, FULL, 1000, 1, 0, ALONE},
    {"chain of 10000", GRAPH, NONE, FULL, 10000, 1, 0, ALONE},
    {"chain of 100000", GRAPH, NONE, FULL, 100000, 1, 0, ALONE},
    {"chain of 1000, a pointer", GRAPH, POINTER, FULL, 1000, 1, 0, ALONE},
    {"chain of 1000, 168 bytes", GRAPH, PACKED, FULL, 1000, 1, 0, ALONE},
    {"chain of 1000, a view", GRAPH, VIEW, FULL, 1000, 1, 0, ALONE},
    {"chain of 1000, three views", GRAPH, THREE_VIEWS, FULL, 1000, 1, 0, ALONE},
    {"stream, shared memory permitted", STREAM, NONE, SHARED, 1, 1, 0, ALONE},
    {"chain of 1000, shared memory permitted", GRAPH, NONE, SHARED, 1000, 1, 0, ALONE},
    {"8 chains of 512, shared memory permitted", GRAPH, NONE, SHARED, 4096, 8, 0, ALONE},
    {"batch of 32, shared memory permitted", BATCH, NONE, SHARED, 32, 1, 0, ALONE},
    {"chain of 1000, newer code", GRAPH, NONE, NEW, 1000, 1, 0, ALONE},
    {"chain of 1000, waiting inside", GRAPH, NONE, INSIDE, 1000, 1, 0, ALONE},
    {"chain of 1000, early", GRAPH, NONE, EARLY, 1000, 1, 0, ALONE},
    {"chain of 1000, a pointer, early", GRAPH, POINTER, EARLY, 1000, 1, 0, ALONE},
    {"chain of 1000, a view, early", GRAPH, VIEW, EARLY, 1000, 1, 0, ALONE},
    {"chain of 1000, three views, early", GRAPH, THREE_VIEWS, EARLY, 1000, 1, 0, ALONE},
    {"chain of 100000, early", GRAPH, NONE, EARLY, 100000, 1, 0, ALONE},
    {"4 chains of 1024", GRAPH, NONE, FULL, 4096, 4, 0, ALONE},
    {"8 chains of 512", GRAPH, NONE, FULL, 4096, 8, 0, ALONE},
    {"8 chains of 512, early", GRAPH, NONE, EARLY, 4096, 8, 0, ALONE},
    {"16 chains of 256", GRAPH, NONE, FULL, 4096, 16, 0, ALONE},
    {"32 chains of 128", GRAPH, NONE, FULL, 4096, 32, 0, ALONE},
    {"64 chains of 64", GRAPH, NONE, FULL, 4096, 64, 0, ALONE},
    {"128 chains of 32", GRAPH, NONE, FULL, 4096, 128, 0, ALONE},
    {"wavefront of 32 x 32", GRAPH, NONE, FULL, 1024, WAVEFRONT, 0, ALONE},
    {"wavefront of 32 x 32, early", GRAPH, NONE, EARLY, 1024, WAVEFRONT, 0, ALONE},
    {"wavefront of 256 x 256", GRAPH, NONE, FULL, 65536, WAVEFRONT, 0, ALONE},
    {"wavefront of 256 x 256, 4 rows", GRAPH, NONE, FULL, 65536, WAVEFRONT, 4, ALONE},
    {"wavefront of 256 x 256, 8 rows", GRAPH, NONE, FULL, 65536, WAVEFRONT, 8, ALONE},
    {"wavefront of 256 x 256, 16 rows", GRAPH, NONE, FULL, 65536, WAVEFRONT, 16, ALONE},
    {"wavefront of 256 x 256, 32 rows", GRAPH, NONE, FULL, 65536, WAVEFRONT, 32, ALONE},
    {"wavefront of 256 x 256, 64 rows", GRAPH, NONE, FULL, 65536, WAVEFRONT, 64, ALONE},
    {"wavefront of 256 x 256, 4 rows, early", GRAPH, NONE, EARLY, 65536, WAVEFRONT, 4, ALONE},
    {"1000 alone", GRAPH, NONE, FULL, 1000, 1000, 0, ALONE},
    {"batch of 1", BATCH, NONE, FULL, 1, 1, 0, ALONE},
    {"batch of 2", BATCH, NONE, FULL, 2, 1, 0, ALONE},
    {"batch of 3", BATCH, NONE, FULL, 3, 1, 0, ALONE},
    {"batch of 4", BATCH, NONE, FULL, 4, 1, 0, ALONE},
    {"batch of 8", BATCH, NONE, FULL, 8, 1, 0, ALONE},
    {"batch of 11", BATCH, NONE, FULL, 11, 1, 0, ALONE},
    {"batch of 16", BATCH, NONE, FULL, 16, 1, 0, ALONE},
    {"batch of 32", BATCH, NONE, FULL, 32, 1, 0, ALONE},
    {"batch of 32, a view", BATCH, VIEW, FULL, 32, 1, 0, ALONE},
    {"batch of 32, three views", BATCH, THREE_VIEWS, FULL, 32, 1, 0, ALONE},
    {"batch of 32, early", BATCH, NONE, EARLY, 32, 1, 0, ALONE},
    {"batch of 64", BATCH, NONE, FULL, 64, 1, 0, ALONE},
    {"batch of 128", BATCH, NONE, FULL, 128, 1, 0, ALONE},
    {"batch of 128, early", BATCH, NONE, EARLY, 128, 1, 0, ALONE},
    {"batch of 256", BATCH, NONE, FULL, 256, 1, 0, ALONE},
    {"chain of 1000, again", GRAPH, NONE, FULL, 1000, 1, 0, ALONE},
    {"chain of 1000, beside streams", GRAPH, NONE, FULL, 1000, 1, 0, MADE},
    {"chain of 1000, early, beside streams", GRAPH, NONE, EARLY, 1000, 1, 0, MADE},
    {"batch of 32, early, beside streams", BATCH, NONE, EARLY, 32, 1, 0, MADE},
    {"chain of 1000, beside used streams", GRAPH, NONE, FULL, 1000, 1, 0, USED},
    {"chain of 1000, early, beside used streams", GRAPH, NONE, EARLY, 1000, 1, 0, USED},
    {"batch of 32, early, beside used streams", BATCH, NONE, EARLY, 32, 1, 0, USED},
    {"32 chains of 128, beside used streams", GRAPH, NONE, FULL, 4096, 32, 0, USED},
};

#define CASES (sizeof cases / sizeof *cases)

/* --- Kernels --- */

#define U64(name) ".param .u64 " name
#define BYTES(name, bytes) ".param .align 8 .b8 " name "[" bytes "]"
#define ENTRY(name, parameters, body) \
    ".visible .entry " name "(" parameters ")\n{\n" body "    ret;\n}\n"
#define ENTRIES(prefix, body)                       \
    ENTRY(prefix "none", "", body)                  \
    ENTRY(prefix "pointer", U64("a"), body)         \
    ENTRY(prefix "packed", BYTES("a", "168"), body) \
    ENTRY(prefix "view", BYTES("a", "56"), body)    \
    ENTRY(prefix "three_views", BYTES("a", "56") ", " BYTES("b", "56") ", " BYTES("c", "56"), body)

static const char full_kernels[] =
    ".version 6.3\n.target sm_75\n.address_size 64\n" ENTRIES("", "") ENTRIES("shared_", "");
static const char early_kernels[] =
    ".version 7.8\n.target sm_90\n.address_size 64\n" ENTRIES("new_", "")
        ENTRIES("inside_", "    griddepcontrol.wait;\n")
            ENTRIES("early_", "    griddepcontrol.launch_dependents;\n    griddepcontrol.wait;\n");

static const char *const prefixes[WAYS] = {
    [FULL] = "", [SHARED] = "shared_", [NEW] = "new_", [INSIDE] = "inside_", [EARLY] = "early_"};
static const char *const suffixes[PARAMS] = {[NONE] = "none",
                                             [POINTER] = "pointer",
                                             [PACKED] = "packed",
                                             [VIEW] = "view",
                                             [THREE_VIEWS] = "three_views"};

/* What kernels are given: nothing is read. */
static char nothing[VIEWS][VIEWS * VIEW_BYTES];
static void *const arguments[VIEWS] = {nothing[0], nothing[1], nothing[2]};

/* --- The driver --- */

typedef struct launches {
    micro_bed *bed;
    FILE *out;
    micro_list *list;
    size_t largest;          /* kernels of a graph */
    CUstream others[OTHERS]; /* of the cases beside some */
    CUmodule modules[2];
    CUfunction functions[WAYS][PARAMS]; /* null: this GPU or driver has no such launches */
} launches;

typedef struct made {
    CUgraph graph;
    CUgraphExec executable;
    CUgraphNode *nodes;
} made;

static void **params_of(enum params params)
{
    return params == NONE ? NULL : (void **)(uintptr_t)arguments;
}

static CUDA_KERNEL_NODE_PARAMS node_params(const launches *l, const launch_case *c)
{
    return (CUDA_KERNEL_NODE_PARAMS){.func = l->functions[c->way][c->params],
                                     .gridDimX = 1,
                                     .gridDimY = 1,
                                     .gridDimZ = 1,
                                     .blockDimX = 1,
                                     .blockDimY = 1,
                                     .blockDimZ = 1,
                                     .kernelParams = params_of(c->params)};
}

static filch_status launch(const launches *l, const launch_case *c, filch_error *error)
{
    const fl_cuda_api *api = bench_gpu_api(&l->bed->gpu);
    CUfunction function = l->functions[c->way][c->params];
    if (c->way <= NEW)
        return micro_bed_check(l->bed,
                               api->cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, l->bed->stream,
                                                   params_of(c->params), NULL),
                               "cuLaunchKernel", error);
    CUlaunchAttribute attribute = {.id = FL_CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION};
    attribute.value.programmaticStreamSerializationAllowed = 1;
    CUlaunchConfig config = {.gridDimX = 1,
                             .gridDimY = 1,
                             .gridDimZ = 1,
                             .blockDimX = 1,
                             .blockDimY = 1,
                             .blockDimZ = 1,
                             .hStream = l->bed->stream,
                             .attrs = &attribute,
                             .numAttrs = 1};
    return micro_bed_check(l->bed,
                           api->cuLaunchKernelEx(&config, function, params_of(c->params), NULL),
                           "cuLaunchKernelEx", error);
}

/* --- Graphs --- */

/* The kernels before one, of a graph's. */
static size_t before(const launch_case *c, size_t at, size_t list[2])
{
    size_t side = 1, count = 0;
    if (c->chains != WAVEFRONT) {
        list[0] = at - c->chains;
        return at >= c->chains;
    }
    while (side * side < c->count)
        side++;
    if (at >= side)
        list[count++] = at - side;
    if (at % side != 0)
        list[count++] = at - 1;
    else if (c->rows != 0 && at / side >= c->rows)
        list[count++] =
            at - c->rows * side + side - 1; /* the end of the row in whose place it is */
    return count;
}

static CUresult add_node(const launches *l, const launch_case *c, made *m, size_t at)
{
    static const CUgraphEdgeData early = {.from_port = FL_CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC,
                                          .type = FL_CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC};
    const fl_cuda_api *api = bench_gpu_api(&l->bed->gpu);
    const CUDA_KERNEL_NODE_PARAMS params = node_params(l, c);
    size_t list[2], count = before(c, at, list);
    CUgraphNode behind[2];
    for (size_t k = 0; k < count; k++)
        behind[k] = m->nodes[list[k]];
    if (c->way <= NEW)
        return api->cuGraphAddKernelNode(&m->nodes[at], m->graph, behind, count, &params);
    CUresult result = api->cuGraphAddKernelNode(&m->nodes[at], m->graph, NULL, 0, &params);
    for (size_t k = 0; k < count && result == FL_CUDA_SUCCESS; k++)
        result = api->cuGraphAddDependencies(m->graph, &behind[k], &m->nodes[at], &early, 1);
    return result;
}

static void drop(const launches *l, made *m)
{
    const fl_cuda_api *api = bench_gpu_api(&l->bed->gpu);
    if (m->executable)
        (void)api->cuGraphExecDestroy(m->executable);
    if (m->graph)
        (void)api->cuGraphDestroy(m->graph);
    free(m->nodes);
    *m = (made){0};
}

static filch_status make(const launches *l, const launch_case *c, made *m, filch_error *error)
{
    const fl_cuda_api *api = bench_gpu_api(&l->bed->gpu);
    *m = (made){.nodes = calloc(c->count, sizeof *m->nodes)};
    if (!m->nodes)
        return bench_fail(error, FILCH_OUT_OF_MEMORY, "launch", 0, "no memory for a graph");
    CUresult result = api->cuGraphCreate(&m->graph, 0);
    for (size_t k = 0; k < c->count && result == FL_CUDA_SUCCESS; k++)
        result = add_node(l, c, m, k);
    if (result == FL_CUDA_SUCCESS)
        result = api->cuGraphInstantiateWithFlags(&m->executable, m->graph, 0);
    return micro_bed_check(l->bed, result, "a graph", error);
}

static filch_status put(const launches *l, const launch_case *c, const made *m, filch_error *error)
{
    const fl_cuda_api *api = bench_gpu_api(&l->bed->gpu);
    const CUDA_KERNEL_NODE_PARAMS params = node_params(l, c);
    CUresult result = FL_CUDA_SUCCESS;
    if (c->form == STREAM)
        return launch(l, c, error);
    for (size_t k = 0; k < c->count && c->form == BATCH && result == FL_CUDA_SUCCESS; k++)
        result = api->cuGraphExecKernelNodeSetParams(m->executable, m->nodes[k], &params);
    if (result == FL_CUDA_SUCCESS)
        result = api->cuGraphLaunch(m->executable, l->bed->stream);
    return micro_bed_check(l->bed, result, "cuGraphLaunch", error);
}

/* --- Measuring --- */

typedef struct figures {
    double all[MICRO_ROUNDS]; /* seconds a kernel */
    double host[MICRO_ROUNDS];
} figures;

static filch_status time_case(const launches *l, const launch_case *c, const made *m, size_t round,
                              figures *f, filch_error *error)
{
    size_t repeat = (KERNELS + c->count - 1) / c->count;
    double kernels = (double)(repeat * c->count);
    filch_status status = FILCH_OK;
    double begin = bench_now_s();
    for (size_t k = 0; k < repeat && status == FILCH_OK; k++)
        status = put(l, c, m, error);
    double issued = bench_now_s();
    if (status == FILCH_OK)
        status = micro_bed_wait(l->bed, error);
    f->all[round] = (bench_now_s() - begin) / kernels;
    f->host[round] = (issued - begin) / kernels;
    return status;
}

static bool is_possible(const launches *l, const launch_case *c)
{
    return l->functions[c->way][c->params] && c->count <= l->largest;
}

static void report(const launches *l, const launch_case *c, figures *f)
{
    char name[MICRO_NAME];
    micro_report(l->out, l->list, c->name, micro_median(f->all) * 1e6, "us/kernel");
    if (c->form == GRAPH)
        return;
    snprintf(name, sizeof name, "%s: the host", c->name);
    micro_report(l->out, l->list, name, micro_median(f->host) * 1e6, "us/kernel");
}

/* What the cases of a stage are beside, in addition to what those before were. */
static filch_status begin_stage(launches *l, enum beside stage, filch_error *error)
{
    const fl_cuda_api *api = bench_gpu_api(&l->bed->gpu);
    filch_status status = FILCH_OK;
    for (size_t k = 0; stage != ALONE && k < OTHERS && status == FILCH_OK; k++)
        status = stage == MADE
                     ? bench_gpu_stream(&l->bed->gpu, &l->others[k], error)
                     : micro_bed_check(l->bed,
                                       api->cuLaunchKernel(l->functions[FULL][NONE], 1, 1, 1, 1, 1,
                                                           1, 0, l->others[k], NULL, NULL),
                                       "cuLaunchKernel", error);
    return status;
}

/* A graph that this driver refuses is left out. */
static filch_status measure(launches *l, filch_error *error)
{
    static made graphs[CASES];
    static figures all[CASES];
    bool is_there[CASES];
    filch_status status = FILCH_OK;
    for (size_t k = 0; k < CASES; k++) {
        is_there[k] = is_possible(l, &cases[k]);
        if (is_there[k] && cases[k].form != STREAM)
            is_there[k] = make(l, &cases[k], &graphs[k], error) == FILCH_OK;
    }
    for (int stage = ALONE; stage < STAGES && status == FILCH_OK; stage++) {
        status = begin_stage(l, (enum beside)stage, error);
        for (int r = -1; r < MICRO_ROUNDS; r++) /* the first warms up */
            for (size_t k = 0; k < CASES && status == FILCH_OK; k++)
                if (is_there[k] && cases[k].beside == (enum beside)stage)
                    status =
                        time_case(l, &cases[k], &graphs[k], r < 0 ? 0 : (size_t)r, &all[k], error);
    }
    for (size_t k = 0; k < CASES; k++) {
        drop(l, &graphs[k]);
        if (is_there[k] && status == FILCH_OK)
            report(l, &cases[k], &all[k]);
    }
    return status;
}

/* --- Beginning and end --- */

static filch_status load(launches *l, int module, const char *image, enum way first, enum way last,
                         filch_error *error)
{
    const fl_cuda_api *api = bench_gpu_api(&l->bed->gpu);
    filch_status status =
        micro_bed_check(l->bed, api->cuModuleLoadDataEx(&l->modules[module], image, 0, NULL, NULL),
                        "kernels", error);
    for (int w = (int)first; w <= (int)last; w++)
        for (int p = 0; p < PARAMS && status == FILCH_OK; p++) {
            char name[MICRO_NAME];
            snprintf(name, sizeof name, "%s%s", prefixes[w], suffixes[p]);
            status = micro_bed_check(
                l->bed, api->cuModuleGetFunction(&l->functions[w][p], l->modules[module], name),
                name, error);
        }
    return status;
}

static filch_status permit(const launches *l, filch_error *error)
{
    const fl_cuda_api *api = bench_gpu_api(&l->bed->gpu);
    int most = 0;
    CUresult result = api->cuDeviceGetAttribute(
        &most, FL_CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, l->bed->gpu.device);
    for (int p = 0; p < PARAMS && result == FL_CUDA_SUCCESS; p++)
        result = api->cuFuncSetAttribute(l->functions[SHARED][p],
                                         FL_CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, most);
    return micro_bed_check(l->bed, result, "cuFuncSetAttribute", error);
}

static filch_status load_all(launches *l, filch_error *error)
{
    const bench_gpu *gpu = &l->bed->gpu;
    int major = 0;
    filch_status status =
        micro_bed_check(l->bed,
                        bench_gpu_api(gpu)->cuDeviceGetAttribute(
                            &major, FL_CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, gpu->device),
                        "cuDeviceGetAttribute", error);
    if (status == FILCH_OK)
        status = load(l, 0, full_kernels, FULL, SHARED, error);
    if (status == FILCH_OK)
        status = permit(l, error);
    if (status == FILCH_OK && major >= EARLY_MAJOR && bench_gpu_driver(gpu) >= EARLY_DRIVER)
        status = load(l, 1, early_kernels, NEW, EARLY, error);
    return status;
}

static void unload(launches *l)
{
    const fl_cuda_api *api = bench_gpu_api(&l->bed->gpu);
    for (int k = 0; k < 2; k++)
        if (l->modules[k])
            (void)api->cuModuleUnload(l->modules[k]);
    for (size_t k = 0; k < OTHERS; k++)
        bench_gpu_stream_free(&l->bed->gpu, &l->others[k]);
}

static filch_status measure_all(micro_bed *bed, void *argument, filch_error *error)
{
    launches *l = argument;
    l->bed = bed;
    filch_status status = load_all(l, error);
    if (status == FILCH_OK)
        status = measure(l, error);
    unload(l);
    return status;
}

int micro_launch_upto(FILE *out, micro_list *list, size_t largest)
{
    launches l = {.out = out, .list = list, .largest = largest};
    return micro_bed_use("launch", false, measure_all, &l);
}

int micro_launch(FILE *out, micro_list *list)
{
    return micro_launch_upto(out, list, LARGEST);
}
