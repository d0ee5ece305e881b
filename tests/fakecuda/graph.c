/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs and their executables. A launch runs the nodes one after another, in an order drawn anew
 * each time from those that the dependencies allow: what should have been a dependency shows. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "fake.h"

bool fake_nodes_add(fake_nodes *nodes, fake_node *node)
{
    for (size_t i = 0; i < nodes->count; i++) {
        if (nodes->items[i] == node)
            return false;
    }
    if (nodes->count == nodes->capacity) {
        nodes->capacity = nodes->capacity == 0 ? 4 : 2 * nodes->capacity;
        nodes->items = realloc(nodes->items, nodes->capacity * sizeof(fake_node *));
        if (nodes->items == NULL)
            abort();
    }
    nodes->items[nodes->count++] = node;
    return true;
}

fake_node *fake_graph_add(fake_graph *graph, fake_work *work, const fake_nodes *behind)
{
    fake_node *node = fake_object_make(FAKE_NODE, sizeof *node, NULL);

    node->graph = graph;
    node->work = work;
    for (size_t i = 0; behind != NULL && i < behind->count; i++)
        (void)fake_nodes_add(&node->behind, behind->items[i]);
    (void)fake_nodes_add(&graph->nodes, node);
    return node;
}

static fake_node *node_get(const fake_graph *graph, CUgraphNode handle)
{
    fake_node *node = fake_find(FAKE_NODE, handle);

    if (node != NULL && node->graph != graph) {
        (void)fake_violate(0, "a node of another graph");
        return NULL;
    }
    return node;
}

CUresult cuGraphCreate(CUgraph *graph, unsigned int flags)
{
    CUresult result = fake_begin("cuGraphCreate", FAKE_READY);

    if (result == FL_CUDA_SUCCESS && flags != 0)
        result = FL_CUDA_ERROR_INVALID_VALUE;
    if (result == FL_CUDA_SUCCESS)
        *graph = fake_handle(fake_object_make(FAKE_GRAPH, sizeof(fake_graph), NULL));
    return fake_end(result);
}

static CUresult kernel_of(const CUDA_KERNEL_NODE_PARAMS *p, fake_work **work)
{
    CUresult result;
    fake_kernel_call call = {p->func,
                             {p->gridDimX, p->gridDimY, p->gridDimZ},
                             {p->blockDimX, p->blockDimY, p->blockDimZ},
                             {0},
                             p->sharedMemBytes,
                             p->kernelParams,
                             p->extra};

    if (p->kern != NULL)
        return fake_violate(FL_CUDA_ERROR_NOT_SUPPORTED, "a node's kernel without its context");
    const fake_context *context = p->ctx != NULL ? fake_find(FAKE_CONTEXT, p->ctx) : fake_current();
    if (context == NULL)
        return FL_CUDA_ERROR_INVALID_CONTEXT;
    *work = fake_kernel_make(context, &call, &result);
    return result;
}

CUresult cuGraphAddKernelNode_v2(CUgraphNode *out, CUgraph handle, const CUgraphNode *behind,
                                 size_t behind_count, const CUDA_KERNEL_NODE_PARAMS *params)
{
    CUresult result = fake_begin("cuGraphAddKernelNode", FAKE_READY | FAKE_CURRENT);
    fake_nodes nodes = {0};
    fake_work *work = NULL;

    if (result != FL_CUDA_SUCCESS)
        return fake_end(result);
    fake_graph *graph = fake_find(FAKE_GRAPH, handle);
    if (graph == NULL)
        return fake_end(FL_CUDA_ERROR_INVALID_HANDLE);
    for (size_t i = 0; i < behind_count && result == FL_CUDA_SUCCESS; i++) {
        fake_node *node = node_get(graph, behind[i]);
        if (node == NULL)
            result = FL_CUDA_ERROR_INVALID_VALUE;
        else if (!fake_nodes_add(&nodes, node))
            result = fake_violate(FL_CUDA_ERROR_INVALID_VALUE, "a dependency is given twice");
    }
    if (result == FL_CUDA_SUCCESS)
        result = kernel_of(params, &work);
    if (result == FL_CUDA_SUCCESS)
        *out = fake_handle(fake_graph_add(graph, work, &nodes));
    free(nodes.items);
    return fake_end(result);
}

/* A programmatic edge keeps the order of a full one: a kernel that waits before it touches data
 * cannot tell them apart. */
static CUresult edge_add(const fake_graph *graph, CUgraphNode before, CUgraphNode after,
                         const CUgraphEdgeData *data)
{
    fake_node *from = node_get(graph, before), *to = node_get(graph, after);

    if (from == NULL || to == NULL)
        return FL_CUDA_ERROR_INVALID_VALUE;
    if (data != NULL && data->type == FL_CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC) {
        if (data->from_port != FL_CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC || data->to_port != 0)
            return fake_violate(FL_CUDA_ERROR_INVALID_VALUE, "the ports of a programmatic edge");
        CUresult result = fake_programmatic(to->work->context);
        if (result != FL_CUDA_SUCCESS)
            return result;
    } else if (data != NULL && (data->type != 0 || data->from_port != 0 || data->to_port != 0)) {
        return fake_violate(FL_CUDA_ERROR_INVALID_VALUE, "an edge of type %d", data->type);
    }
    return fake_nodes_add(&to->behind, from)
               ? FL_CUDA_SUCCESS
               : fake_violate(FL_CUDA_ERROR_INVALID_VALUE, "a dependency is given twice");
}

CUresult cuGraphAddDependencies_v2(CUgraph handle, const CUgraphNode *from, const CUgraphNode *to,
                                   const CUgraphEdgeData *data, size_t count)
{
    CUresult result = fake_begin("cuGraphAddDependencies", FAKE_READY);

    if (result != FL_CUDA_SUCCESS)
        return fake_end(result);
    const fake_graph *graph = fake_find(FAKE_GRAPH, handle);
    if (graph == NULL)
        return fake_end(FL_CUDA_ERROR_INVALID_HANDLE);
    for (size_t i = 0; i < count && result == FL_CUDA_SUCCESS; i++)
        result = edge_add(graph, from[i], to[i], data != NULL ? &data[i] : NULL);
    return fake_end(result);
}

CUresult cuGraphDestroy(CUgraph handle)
{
    CUresult result = fake_begin("cuGraphDestroy", FAKE_READY | FAKE_ENDING);

    if (result != FL_CUDA_SUCCESS)
        return fake_end(result);
    fake_graph *graph = fake_find(FAKE_GRAPH, handle);
    if (graph == NULL)
        return fake_end(FL_CUDA_ERROR_INVALID_HANDLE);
    for (size_t i = 0; i < graph->nodes.count; i++) {
        fake_node *node = graph->nodes.items[i];
        if (node->work != NULL)
            fake_work_drop(node->work);
        node->work = NULL;
        fake_object_end(&node->object);
        free(node->behind.items);
        node->behind = (fake_nodes){0};
    }
    free(graph->nodes.items);
    graph->nodes = (fake_nodes){0};
    fake_object_end(&graph->object);
    return fake_end(FL_CUDA_SUCCESS);
}

/* --- Executables --- */

static uint32_t node_position(const fake_graph *graph, const fake_node *node)
{
    uint32_t i = 0;

    while (graph->nodes.items[i] != node)
        i++;
    return i;
}

static void exec_free(fake_exec *exec)
{
    for (size_t i = 0; i < exec->count; i++) {
        if (exec->works[i] != NULL)
            fake_work_drop(exec->works[i]);
    }
    free(exec->works);
    free(exec->behind);
    free(exec->behind_first);
    exec->works = NULL;
    exec->behind = NULL;
    exec->behind_first = NULL;
    exec->count = 0;
    fake_object_end(&exec->object);
}

/* An order that the dependencies allow; there is one, since nodes depend on older ones. */
static void exec_order(const fake_exec *exec, uint32_t *order)
{
    bool *is_done = calloc(exec->count + 1, sizeof *is_done);

    if (is_done == NULL)
        abort();
    for (size_t made = 0; made < exec->count; made++) {
        uint32_t ready = 0, chosen = 0;
        for (uint32_t i = 0; i < exec->count; i++) {
            bool is_ready = !is_done[i];
            for (uint32_t k = exec->behind_first[i]; k < exec->behind_first[i + 1]; k++)
                is_ready = is_ready && is_done[exec->behind[k]];
            if (!is_ready)
                continue;
            /* Each of the ready ones with the same chance (xorshift64). */
            fake.config.seed ^= fake.config.seed << 13;
            fake.config.seed ^= fake.config.seed >> 7;
            fake.config.seed ^= fake.config.seed << 17;
            if (fake.config.seed % ++ready == 0)
                chosen = i;
        }
        is_done[chosen] = true;
        order[made] = chosen;
    }
    free(is_done);
}

/* Nodes on the longest path: the steps of the graph where all that is ready runs at once. */
static uint64_t exec_steps(const fake_exec *exec)
{
    uint64_t *steps = calloc(exec->count + 1, sizeof *steps), most = 0;

    if (steps == NULL)
        abort();
    for (size_t i = 0; i < exec->count; i++) {
        for (uint32_t k = exec->behind_first[i]; k < exec->behind_first[i + 1]; k++) {
            uint64_t before = steps[exec->behind[k]];
            steps[i] = before > steps[i] ? before : steps[i];
        }
        steps[i]++;
        most = steps[i] > most ? steps[i] : most;
    }
    free(steps);
    return most;
}

static fake_exec *exec_make(const fake_graph *graph)
{
    fake_exec *exec = fake_object_make(FAKE_EXEC, sizeof *exec, NULL);
    size_t edges = 0, count = graph->nodes.count;

    for (size_t i = 0; i < count; i++)
        edges += graph->nodes.items[i]->behind.count;
    exec->graph = graph;
    exec->count = count;
    exec->works = calloc(count + 1, sizeof(fake_work *));
    exec->behind_first = calloc(count + 1, sizeof(uint32_t));
    exec->behind = calloc(edges + 1, sizeof(uint32_t));
    if (exec->works == NULL || exec->behind_first == NULL || exec->behind == NULL)
        abort();
    edges = 0;
    for (size_t i = 0; i < count; i++) {
        fake_node *node = graph->nodes.items[i];
        exec->works[i] = node->work;
        fake_work_hold(node->work);
        for (size_t k = 0; k < node->behind.count; k++)
            exec->behind[edges++] = node_position(graph, node->behind.items[k]);
        exec->behind_first[i + 1] = (uint32_t)edges;
    }
    return exec;
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec *out, CUgraph handle, unsigned long long flags)
{
    CUresult result = fake_begin("cuGraphInstantiateWithFlags", FAKE_READY | FAKE_CURRENT);

    if (result != FL_CUDA_SUCCESS)
        return fake_end(result);
    const fake_graph *graph = fake_find(FAKE_GRAPH, handle);
    if (graph == NULL)
        return fake_end(FL_CUDA_ERROR_INVALID_HANDLE);
    if (flags != 0)
        return fake_end(FL_CUDA_ERROR_INVALID_VALUE);
    *out = fake_handle(exec_make(graph));
    return fake_end(FL_CUDA_SUCCESS);
}

static int clusters_of(const fake_work *work)
{
    return ((const fake_function *)(const void *)work->function)->info->cluster;
}

/* What is in flight keeps the parameters that it was launched with. */
CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec handle, CUgraphNode of,
                                           const CUDA_KERNEL_NODE_PARAMS *params)
{
    CUresult result = fake_begin("cuGraphExecKernelNodeSetParams", FAKE_READY | FAKE_CURRENT);
    fake_work *work = NULL;

    if (result != FL_CUDA_SUCCESS)
        return fake_end(result);
    fake_exec *exec = fake_find(FAKE_EXEC, handle);
    if (exec == NULL)
        return fake_end(FL_CUDA_ERROR_INVALID_HANDLE);
    const fake_node *node = node_get(exec->graph, of);
    if (node == NULL)
        return fake_end(FL_CUDA_ERROR_INVALID_VALUE);
    uint32_t at = node_position(exec->graph, node);
    if (at >= exec->count) {
        return fake_end(fake_violate(FL_CUDA_ERROR_INVALID_VALUE,
                                     "a node that came after the graph was instantiated"));
    }
    /* The driver compares the new function with the one before. */
    if (!exec->works[at]->function->is_alive) {
        return fake_end(fake_violate(FL_CUDA_ERROR_INVALID_HANDLE,
                                     "the node's kernel before is of an unloaded module"));
    }
    result = kernel_of(params, &work);
    /* The driver takes it, and the node keeps the clusters of its first kernel: blocks are lost. */
    if (result == FL_CUDA_SUCCESS && clusters_of(work) != clusters_of(exec->works[at])) {
        fake_work_drop(work);
        result = fake_violate(FL_CUDA_ERROR_INVALID_VALUE, "a node's kernel with other clusters");
    }
    if (result == FL_CUDA_SUCCESS && work->context != exec->works[at]->context) {
        fake_work_drop(work);
        result = fake_violate(FL_CUDA_ERROR_INVALID_VALUE, "a node's kernel of another context");
    }
    if (result == FL_CUDA_SUCCESS) {
        fake_work_drop(exec->works[at]);
        exec->works[at] = work;
    }
    return fake_end(result);
}

CUresult cuGraphLaunch(CUgraphExec handle, CUstream on)
{
    CUresult result = fake_begin("cuGraphLaunch", FAKE_READY | FAKE_CURRENT);

    if (result != FL_CUDA_SUCCESS)
        return fake_end(result);
    const fake_exec *exec = fake_find(FAKE_EXEC, handle);
    fake_stream *stream = fake_stream_get(on);
    if (exec == NULL || stream == NULL)
        return fake_end(FL_CUDA_ERROR_INVALID_HANDLE);
    for (size_t i = 0; i < exec->count && result == FL_CUDA_SUCCESS; i++) {
        if (!exec->works[i]->context->object.is_alive)
            result = fake_violate(FL_CUDA_ERROR_INVALID_HANDLE, "a node's context is destroyed");
        else if (!exec->works[i]->function->is_alive)
            result = fake_violate(FL_CUDA_ERROR_INVALID_HANDLE, "a node's module is unloaded");
    }
    if (result != FL_CUDA_SUCCESS)
        return fake_end(result);
    uint32_t *order = calloc(exec->count + 1, sizeof *order);
    fake_work **works = calloc(exec->count + 1, sizeof(fake_work *));
    if (order == NULL || works == NULL)
        abort();
    exec_order(exec, order);
    for (size_t i = 0; i < exec->count; i++) {
        works[i] = exec->works[order[i]];
        fake_work_hold(works[i]);
    }
    fake_count_graph(exec->count, exec_steps(exec));
    fake_submit_many(stream, works, exec->count);
    free(works);
    free(order);
    return fake_end(FL_CUDA_SUCCESS);
}

CUresult cuGraphExecDestroy(CUgraphExec handle)
{
    CUresult result = fake_begin("cuGraphExecDestroy", FAKE_READY | FAKE_ENDING);

    if (result != FL_CUDA_SUCCESS)
        return fake_end(result);
    fake_exec *exec = fake_find(FAKE_EXEC, handle);
    if (exec == NULL)
        return fake_end(FL_CUDA_ERROR_INVALID_HANDLE);
    exec_free(exec);
    return fake_end(FL_CUDA_SUCCESS);
}
