/* SPDX-License-Identifier: Apache-2.0 */
#include "backend/cuda/queue/graph.h"

#include "backend/cuda/device.h"
#include "backend/cuda/queue/lane.h"

/* Kernels of the first segment; each further one has twice as many, up to the most. A launch takes
 * the host a time for each kernel, and only then the GPU begins: so it begins soon, and works on
 * one segment while the host launches the next. */
#define SEGMENT_FIRST 1024u
#define SEGMENT_MOST 8192u

/* Kernels are cut into segments, CUDA graphs that are launched one after the other in one stream.
 */
typedef struct fl_cuda_replay {
    const fl_memory *memory;
    CUgraph graph; /* of the segment that kernels are added to; null once sealed */
    CUgraphExec *executables;
    size_t segments, segment_capacity;
    size_t first;        /* number of the present segment's first kernel */
    size_t limit;        /* kernels of the present segment */
    CUgraphNode *nodes;  /* of the present segment; null once sealed */
    CUgraphNode *behind; /* room for the predecessors of one kernel */
    size_t count, capacity, behind_capacity;
} fl_cuda_replay;

static filch_status no_memory(const fl_device *device, filch_error *error)
{
    return fl_error_fill(error,
                         (fl_fault){.status = FILCH_OUT_OF_MEMORY, .device = device->info.name},
                         "no memory for a CUDA graph");
}

filch_status fl_cuda_graph_new(fl_device *device, const fl_memory *memory, void **replay,
                               filch_error *error)
{
    if (fl_cuda_of(device)->slice != NULL) {
        return fl_error_fill(
            error, (fl_fault){.status = FILCH_UNSUPPORTED, .device = device->info.name},
            "a CUDA graph's kernels run on all of the GPU, not on the slice of its stream");
    }
    fl_cuda_replay *made = fl_alloc_zeroed(memory, sizeof *made);
    if (made == NULL) {
        return no_memory(device, error);
    }
    made->memory = memory;
    made->limit = SEGMENT_FIRST;
    CUresult result = fl_cuda_of(device)->gpu->api->cuGraphCreate(&made->graph, 0);
    if (result != FL_CUDA_SUCCESS) {
        fl_free(memory, made, sizeof *made);
        return fl_cuda_call_fail(device, result, "cuGraphCreate", error);
    }
    *replay = made;
    return FILCH_OK;
}

CUresult fl_cuda_node_add(const fl_cuda_api *api, CUgraph graph,
                          const CUDA_KERNEL_NODE_PARAMS *params, const CUgraphNode *behind,
                          size_t behind_count, bool waits, CUgraphNode *node)
{
    static const CUgraphEdgeData edge = {.from_port = FL_CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC,
                                         .type = FL_CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC};
    CUresult result =
        api->cuGraphAddKernelNode(node, graph, behind, waits ? 0 : behind_count, params);
    for (size_t i = 0; waits && i < behind_count && result == FL_CUDA_SUCCESS; ++i) {
        result = api->cuGraphAddDependencies(graph, &behind[i], node, &edge, 1);
    }
    return result;
}

/* Makes an executable of the present segment. */
static filch_status close_segment(const fl_device *device, fl_cuda_replay *replay,
                                  filch_error *error)
{
    const fl_cuda_api *api = fl_cuda_of(device)->gpu->api;
    if (fl_array_reserve(replay->memory, &replay->executables, &replay->segment_capacity,
                         replay->segments + 1, sizeof(CUgraphExec)) != FILCH_OK) {
        return no_memory(device, error);
    }
    CUresult result =
        api->cuGraphInstantiateWithFlags(&replay->executables[replay->segments], replay->graph, 0);
    if (result != FL_CUDA_SUCCESS) {
        return fl_cuda_call_fail(device, result, "cuGraphInstantiateWithFlags", error);
    }
    ++replay->segments;
    api->cuGraphDestroy(replay->graph);
    replay->graph = NULL;
    return FILCH_OK;
}

static filch_status begin_segment(const fl_device *device, fl_cuda_replay *replay,
                                  filch_error *error)
{
    CUresult result = fl_cuda_of(device)->gpu->api->cuGraphCreate(&replay->graph, 0);
    if (result != FL_CUDA_SUCCESS) {
        replay->graph = NULL;
        return fl_cuda_call_fail(device, result, "cuGraphCreate", error);
    }
    replay->first = replay->count;
    replay->limit = 2 * replay->limit < SEGMENT_MOST ? 2 * replay->limit : SEGMENT_MOST;
    return FILCH_OK;
}

/* Room for one more kernel in the present segment. */
static filch_status make_room(const fl_device *device, fl_cuda_replay *replay,
                              uint32_t behind_count, filch_error *error)
{
    if (replay->count - replay->first == replay->limit) {
        filch_status status = close_segment(device, replay, error);
        if (status == FILCH_OK) {
            status = begin_segment(device, replay, error);
        }
        if (status != FILCH_OK) {
            return status;
        }
    }
    if (fl_array_reserve(replay->memory, &replay->nodes, &replay->capacity,
                         replay->count - replay->first + 1, sizeof(CUgraphNode)) != FILCH_OK ||
        fl_array_reserve(replay->memory, &replay->behind, &replay->behind_capacity,
                         (size_t)behind_count + 1, sizeof(CUgraphNode)) != FILCH_OK) {
        return no_memory(device, error);
    }
    return FILCH_OK;
}

/* Segments before the present one are over when it begins. */
static uint32_t list_behind(const fl_cuda_replay *replay, const uint32_t *behind, uint32_t count)
{
    uint32_t within = 0;
    for (uint32_t i = 0; i < count; ++i) {
        if (behind[i] >= replay->first) {
            replay->behind[within++] = replay->nodes[behind[i] - replay->first];
        }
    }
    return within;
}

filch_status fl_cuda_graph_add(fl_device *device, void *handle, const fl_launch *launch,
                               const uint32_t *behind, uint32_t behind_count, filch_error *error)
{
    fl_cuda_replay *replay = handle;
    filch_status status = make_room(device, replay, behind_count, error);
    if (status != FILCH_OK) {
        return status;
    }
    const filch_shape *shape = &launch->shape;
    const CUDA_KERNEL_NODE_PARAMS params = {
        .func = launch->function->handle,
        .gridDimX = shape->grid[0],
        .gridDimY = shape->grid[1],
        .gridDimZ = shape->grid[2],
        .blockDimX = shape->block[0],
        .blockDimY = shape->block[1],
        .blockDimZ = shape->block[2],
        .sharedMemBytes = shape->shared_bytes,
        .kernelParams = launch->params,
    };
    CUresult result =
        fl_cuda_node_add(fl_cuda_of(device)->gpu->api, replay->graph, &params, replay->behind,
                         list_behind(replay, behind, behind_count), launch->function->waits,
                         &replay->nodes[replay->count - replay->first]);
    if (result != FL_CUDA_SUCCESS) {
        return fl_cuda_call_fail(device, result, "cuGraphAddKernelNode", error);
    }
    ++replay->count;
    return FILCH_OK;
}

/* Frees everything needed only for adding kernels. */
static void drop_graph(const fl_cuda_api *api, fl_cuda_replay *replay)
{
    if (replay->graph != NULL) {
        api->cuGraphDestroy(replay->graph);
        replay->graph = NULL;
    }
    fl_free(replay->memory, replay->nodes, replay->capacity * sizeof *replay->nodes);
    fl_free(replay->memory, replay->behind, replay->behind_capacity * sizeof *replay->behind);
    replay->nodes = replay->behind = NULL;
    replay->capacity = replay->behind_capacity = 0;
}

filch_status fl_cuda_graph_seal(fl_device *device, void *handle, filch_error *error)
{
    fl_cuda_replay *replay = handle;
    filch_status status = close_segment(device, replay, error);
    if (status == FILCH_OK) {
        drop_graph(fl_cuda_of(device)->gpu->api, replay);
    }
    return status;
}

void fl_cuda_graph_free(fl_device *device, void *handle)
{
    fl_cuda_replay *replay = handle;
    fl_cuda_gpu *gpu = fl_cuda_of(device)->gpu;
    fl_cuda_scope scope;
    bool entered = fl_cuda_enter(gpu, &scope, NULL) == FILCH_OK;
    /* A lost context has destroyed the graphs: only host memory is left to free. */
    for (size_t k = 0; entered && k < replay->segments; ++k) {
        gpu->api->cuGraphExecDestroy(replay->executables[k]);
    }
    fl_free(replay->memory, replay->executables,
            replay->segment_capacity * sizeof *replay->executables);
    if (!entered) {
        replay->graph = NULL;
    }
    drop_graph(gpu->api, replay);
    if (entered) {
        fl_cuda_leave(&scope);
    }
    fl_free(replay->memory, replay, sizeof *replay);
}

filch_status fl_cuda_graph_launch(const fl_device *device, const void *handle, CUstream stream,
                                  filch_error *error)
{
    const fl_cuda_replay *replay = handle;
    const fl_cuda_api *api = fl_cuda_of(device)->gpu->api;
    for (size_t k = 0; k < replay->segments; ++k) {
        CUresult result = api->cuGraphLaunch(replay->executables[k], stream);
        if (result != FL_CUDA_SUCCESS) {
            /* The caller takes nothing for launched: the segments before have to be over. */
            if (k != 0) {
                api->cuStreamSynchronize(stream);
            }
            return fl_cuda_call_fail(device, result, "cuGraphLaunch", error);
        }
    }
    return FILCH_OK;
}
