/* SPDX-License-Identifier: Apache-2.0 */
#include "backend/cuda/queue/graph.h"

#include "backend/cuda/device.h"
#include "backend/cuda/queue/lane.h"

typedef struct fl_cuda_replay {
    const fl_memory *memory;
    CUgraph graph; /* null once sealed */
    CUgraphExec executable;
    CUgraphNode *nodes;  /* indexed by number; null once sealed */
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

filch_status fl_cuda_graph_add(fl_device *device, void *handle, const fl_launch *launch,
                               const uint32_t *behind, uint32_t behind_count, filch_error *error)
{
    fl_cuda_replay *replay = handle;
    if (fl_array_reserve(replay->memory, &replay->nodes, &replay->capacity, replay->count + 1,
                         sizeof *replay->nodes) != FILCH_OK ||
        fl_array_reserve(replay->memory, &replay->behind, &replay->behind_capacity,
                         (size_t)behind_count + 1, sizeof *replay->behind) != FILCH_OK) {
        return no_memory(device, error);
    }
    for (uint32_t i = 0; i < behind_count; ++i) {
        replay->behind[i] = replay->nodes[behind[i]];
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
                         behind_count, launch->function->waits, &replay->nodes[replay->count]);
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
    const fl_cuda_api *api = fl_cuda_of(device)->gpu->api;
    CUresult result = api->cuGraphInstantiateWithFlags(&replay->executable, replay->graph, 0);
    if (result != FL_CUDA_SUCCESS) {
        replay->executable = NULL;
        return fl_cuda_call_fail(device, result, "cuGraphInstantiateWithFlags", error);
    }
    drop_graph(api, replay);
    return FILCH_OK;
}

void fl_cuda_graph_free(fl_device *device, void *handle)
{
    fl_cuda_replay *replay = handle;
    fl_cuda_gpu *gpu = fl_cuda_of(device)->gpu;
    fl_cuda_scope scope;
    bool entered = fl_cuda_enter(gpu, &scope, NULL) == FILCH_OK;
    /* A lost context has destroyed the graphs: only host memory is left to free. */
    if (entered && replay->executable != NULL) {
        gpu->api->cuGraphExecDestroy(replay->executable);
    }
    if (!entered) {
        replay->graph = NULL;
    }
    drop_graph(gpu->api, replay);
    if (entered) {
        fl_cuda_leave(&scope);
    }
    fl_free(replay->memory, replay, sizeof *replay);
}

CUgraphExec fl_cuda_graph_executable(const void *replay)
{
    return ((const fl_cuda_replay *)replay)->executable;
}
