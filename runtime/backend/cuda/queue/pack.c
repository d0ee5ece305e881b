/* SPDX-License-Identifier: Apache-2.0 */
#include "backend/cuda/queue/pack.h"

#include <string.h>

#include "backend/cuda/queue/graph.h"
#include "base/thread.h"

/* Sizes of graphs: the small graphs save single launches where fewer kernels are held than the
 * large graph takes. A graph of two kernels costs the host about as much as one single launch. */
#define SIZES 6
static const uint32_t sizes[SIZES] = {FL_CUDA_PACK, 32, 16, 8, 4, 2};

/* Single launches costing about as much as making the graphs. */
#define WORTH_LAUNCHES 256u
/* Room for parameters. Kernels with more parameters are not short. */
#define MOST_PARAMS 512u
#define MOST_BYTES 16384u
#define PARAM_ALIGN 16u
/* Bytes of parameters remembered for a node. A comparison is some ten times cheaper than setting
 * the parameters again. */
#define NODE_BYTES 256u

typedef struct fl_held {
    CUfunction function;
    filch_shape shape;
    uint32_t first;     /* index of the first parameter */
    uint32_t at, bytes; /* all parameters, in values; the gaps between parameters are zero */
    bool waits;
} fl_held;

/* What a node launches. */
typedef struct fl_node {
    CUfunction function; /* null: not known */
    filch_shape shape;
    uint32_t bytes;
    _Alignas(PARAM_ALIGN) char values[NODE_BYTES];
} fl_node;

typedef struct fl_chain {
    CUgraph graph; /* null: not made */
    CUgraphExec executable;
    CUgraphNode nodes[FL_CUDA_PACK];
    fl_node launches[FL_CUDA_PACK]; /* by node */
} fl_chain;

struct fl_cuda_pack {
    const fl_memory *memory;
    /* The owner's members: */
    uint32_t count, param_count, bytes;
    fl_held held[FL_CUDA_PACK];
    void *params[MOST_PARAMS];
    _Alignas(PARAM_ALIGN) char values[MOST_BYTES];
    fl_mutex lock; /* guards all following members */
    /* Graphs whose kernels wait for the kernel before in the driver's way, and in their own. */
    fl_chain chains[SIZES][2];
    uint32_t launches; /* launches of single kernels, since the graphs were destroyed */
    bool cannot;       /* the driver refuses graphs */
};

fl_cuda_pack *fl_cuda_pack_new(const fl_memory *memory)
{
    fl_cuda_pack *pack = fl_alloc_aligned(memory, sizeof *pack, 64);
    if (pack == NULL) {
        return NULL;
    }
    memset(pack, 0, sizeof *pack);
    pack->memory = memory;
    if (fl_mutex_init(&pack->lock) != FILCH_OK) {
        fl_free_aligned(memory, pack, sizeof *pack, 64);
        return NULL;
    }
    return pack;
}

/* Destroys the graphs. Under the lock. */
static void drop_chains(const fl_cuda_api *api, fl_cuda_pack *pack)
{
    for (int i = 0; i < 2 * SIZES; ++i) {
        fl_chain *chain = &pack->chains[i / 2][i % 2];
        if (chain->executable != NULL) {
            /* the driver defers the destruction of a graph in flight */
            api->cuGraphExecDestroy(chain->executable);
        }
        if (chain->graph != NULL) {
            api->cuGraphDestroy(chain->graph);
        }
        memset(chain, 0, sizeof *chain);
    }
    pack->launches = 0;
}

void fl_cuda_pack_free(const fl_cuda_api *api, fl_cuda_pack *pack)
{
    if (pack == NULL) {
        return;
    }
    const fl_memory *memory = pack->memory;
    if (api != NULL) {
        drop_chains(api, pack);
    }
    fl_mutex_fini(&pack->lock);
    fl_free_aligned(memory, pack, sizeof *pack, 64);
}

void fl_cuda_pack_forget(const fl_cuda_api *api, fl_cuda_pack *pack)
{
    fl_mutex_lock(&pack->lock);
    drop_chains(api, pack);
    pack->cannot = false;
    fl_mutex_unlock(&pack->lock);
}

void fl_cuda_pack_drop(fl_cuda_pack *pack)
{
    pack->count = pack->param_count = pack->bytes = 0;
}

uint32_t fl_cuda_pack_count(const fl_cuda_pack *pack)
{
    return pack->count;
}

static uint32_t align_up(uint32_t at)
{
    return (at + PARAM_ALIGN - 1) / PARAM_ALIGN * PARAM_ALIGN;
}

bool fl_cuda_pack_hold(fl_cuda_pack *pack, const fl_launch *launch)
{
    uint32_t first = pack->bytes, at = first;
    if (pack->count == FL_CUDA_PACK || pack->param_count + launch->param_count > MOST_PARAMS) {
        return false;
    }
    for (uint32_t i = 0; i < launch->param_count; ++i) {
        if (launch->param_bytes[i] > MOST_BYTES - at) {
            return false;
        }
        memcpy(pack->values + at, launch->params[i], launch->param_bytes[i]);
        pack->params[pack->param_count + i] = pack->values + at;
        at += launch->param_bytes[i];
        memset(pack->values + at, 0, align_up(at) - at);
        at = align_up(at);
    }
    pack->held[pack->count++] =
        (fl_held){launch->function->handle, launch->shape, pack->param_count, first, at - first,
                  launch->function->waits};
    pack->param_count += launch->param_count;
    pack->bytes = at;
    return true;
}

static CUDA_KERNEL_NODE_PARAMS params_of(fl_cuda_pack *pack, const fl_held *held)
{
    return (CUDA_KERNEL_NODE_PARAMS){
        .func = held->function,
        .gridDimX = held->shape.grid[0],
        .gridDimY = held->shape.grid[1],
        .gridDimZ = held->shape.grid[2],
        .blockDimX = held->shape.block[0],
        .blockDimY = held->shape.block[1],
        .blockDimZ = held->shape.block[2],
        .sharedMemBytes = held->shape.shared_bytes,
        .kernelParams = pack->params + held->first,
    };
}

/* Makes a chain of `size` kernels, all equal to `like` until given new parameters. Under the
 * lock. */
static CUresult make_chain(const fl_cuda_api *api, fl_cuda_pack *pack, fl_chain *chain,
                           uint32_t size, bool waits, const fl_held *like)
{
    const CUDA_KERNEL_NODE_PARAMS params = params_of(pack, like);
    CUresult result = api->cuGraphCreate(&chain->graph, 0);
    if (result != FL_CUDA_SUCCESS) {
        chain->graph = NULL;
        return result;
    }
    for (uint32_t i = 0; i < size && result == FL_CUDA_SUCCESS; ++i) {
        result = fl_cuda_node_add(api, chain->graph, &params, i != 0 ? &chain->nodes[i - 1] : NULL,
                                  i != 0, waits, &chain->nodes[i]);
    }
    if (result == FL_CUDA_SUCCESS) {
        result = api->cuGraphInstantiateWithFlags(&chain->executable, chain->graph, 0);
        chain->executable = result == FL_CUDA_SUCCESS ? chain->executable : NULL;
    }
    return result;
}

/* Tells whether the node launches just that. A function's handle stands for one kernel: graphs are
 * dropped before a module is unloaded. */
static bool is_set(const fl_cuda_pack *pack, const fl_node *node, const fl_held *held)
{
    return node->function == held->function && node->bytes == held->bytes &&
           memcmp(&node->shape, &held->shape, sizeof node->shape) == 0 &&
           memcmp(node->values, pack->values + held->at, held->bytes) == 0;
}

static CUresult set_node(const fl_cuda_api *api, fl_cuda_pack *pack, fl_chain *chain, uint32_t at,
                         const fl_held *held)
{
    fl_node *node = &chain->launches[at];
    if (is_set(pack, node, held)) {
        return FL_CUDA_SUCCESS;
    }
    const CUDA_KERNEL_NODE_PARAMS params = params_of(pack, held);
    node->function = held->bytes <= NODE_BYTES ? held->function : NULL;
    node->shape = held->shape;
    node->bytes = held->bytes;
    memcpy(node->values, pack->values + held->at, node->function != NULL ? held->bytes : 0);
    return api->cuGraphExecKernelNodeSetParams(chain->executable, chain->nodes[at], &params);
}

static bool all_wait(const fl_held *held, uint32_t count)
{
    bool all = true;
    for (uint32_t i = 0; i < count; ++i) {
        all = all && held[i].waits;
    }
    return all;
}

/* Puts the next kernels on the stream, as many as the chain has. Under the lock. */
static CUresult put_chain(const fl_cuda_api *api, fl_cuda_pack *pack, int which, uint32_t from,
                          CUstream stream)
{
    bool waits = all_wait(&pack->held[from + 1], sizes[which] - 1);
    fl_chain *chain = &pack->chains[which][waits];
    CUresult result = FL_CUDA_SUCCESS;
    if (chain->executable == NULL) {
        result = make_chain(api, pack, chain, sizes[which], waits, &pack->held[from + 1]);
    }
    for (uint32_t i = 0; i < sizes[which] && result == FL_CUDA_SUCCESS; ++i) {
        result = set_node(api, pack, chain, i, &pack->held[from + i]);
    }
    return result == FL_CUDA_SUCCESS ? api->cuGraphLaunch(chain->executable, stream) : result;
}

static CUresult put_one(const fl_cuda_api *api, fl_cuda_pack *pack, const fl_held *held,
                        CUstream stream)
{
    const filch_shape *shape = &held->shape;
    return api->cuLaunchKernel(held->function, shape->grid[0], shape->grid[1], shape->grid[2],
                               shape->block[0], shape->block[1], shape->block[2],
                               shape->shared_bytes, stream, pack->params + held->first, NULL);
}

/* Returns the largest chain worth making, and no longer than the kernels left; SIZES: none. Under
 * the lock. */
static int choose_chain(const fl_cuda_pack *pack, uint32_t left)
{
    int which = 0;
    if (pack->cannot || pack->launches < WORTH_LAUNCHES) {
        return SIZES;
    }
    while (which < SIZES && sizes[which] > left) {
        ++which;
    }
    return which;
}

void fl_cuda_pack_put(const fl_cuda_api *api, fl_cuda_pack *pack, CUstream stream,
                      CUresult results[FL_CUDA_PACK])
{
    uint32_t at = 0;
    fl_mutex_lock(&pack->lock);
    while (at < pack->count) {
        int which = choose_chain(pack, pack->count - at);
        if (which < SIZES && put_chain(api, pack, which, at, stream) == FL_CUDA_SUCCESS) {
            for (uint32_t i = 0; i < sizes[which]; ++i) {
                results[at++] = FL_CUDA_SUCCESS;
            }
            continue;
        }
        if (which < SIZES) {
            /* A failed launch has started nothing, unless the context is lost; with a lost context
             * all later launches fail, too. */
            drop_chains(api, pack);
            pack->cannot = true;
        }
        results[at] = put_one(api, pack, &pack->held[at], stream);
        if (results[at] != FL_CUDA_SUCCESS && api->cuStreamSynchronize(stream) == FL_CUDA_SUCCESS) {
            results[at] = put_one(api, pack, &pack->held[at], stream);
        }
        ++at;
        pack->launches += pack->launches < WORTH_LAUNCHES;
    }
    fl_mutex_unlock(&pack->lock);
    fl_cuda_pack_drop(pack);
}
