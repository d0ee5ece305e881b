/* SPDX-License-Identifier: Apache-2.0 */
#include "backend/cuda/queue/pack.h"

#include <string.h>

#include "backend/cuda/queue/graph.h"
#include "base/thread.h"

/* Launches of a graph that cost as much as making one of its nodes. */
#define NODE_LAUNCHES 7u
/* Single launches before the first graphs: few kernels are not worth a graph. */
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
    uint32_t waiting;   /* kernels that wait by themselves, of all held up to this one */
} fl_held;

/* A node, and what it launches. */
typedef struct fl_node {
    CUgraphNode node;
    CUfunction function; /* null: nothing was set */
    filch_shape shape;
    uint32_t bytes;
    bool is_known; /* values are all parameters */
    _Alignas(PARAM_ALIGN) char values[NODE_BYTES];
} fl_node;

typedef struct fl_chain {
    CUgraph graph;
    CUgraphExec executable;
    uint32_t size;
    fl_node nodes[];
} fl_chain;

struct fl_cuda_pack {
    const fl_memory *memory;
    /* The owner's members: */
    uint32_t count, param_count, bytes;
    fl_held held[FL_CUDA_PACK];
    void *params[MOST_PARAMS];
    _Alignas(PARAM_ALIGN) char values[MOST_BYTES];
    fl_mutex lock; /* guards all following members */
    /* By size, and whether all kernels but the first wait for the kernel before in their own way.
     * Null: not made. */
    fl_chain *chains[FL_CUDA_PACK + 1][2];
    /* Since the graphs were destroyed: */
    /* as chains: batches without a graph of their own since the last try to make one; unused for
     * powers of two */
    uint32_t batches[FL_CUDA_PACK][2];
    uint32_t launches; /* launches of single kernels */
    bool cannot;       /* a graph failed, or memory for one was lacking */
};

static size_t chain_bytes(uint32_t size)
{
    return sizeof(fl_chain) + size * sizeof(fl_node);
}

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

static void free_chain(const fl_cuda_api *api, const fl_cuda_pack *pack, fl_chain *chain)
{
    if (chain == NULL) {
        return;
    }
    if (api != NULL && chain->executable != NULL) {
        /* the driver defers the destruction of a graph in flight */
        api->cuGraphExecDestroy(chain->executable);
    }
    if (api != NULL && chain->graph != NULL) {
        api->cuGraphDestroy(chain->graph);
    }
    fl_free_aligned(pack->memory, chain, chain_bytes(chain->size), 64);
}

/* Destroys the graphs; an api of null: frees their memory only. Under the lock, or where no other
 * thread uses the batch. */
static void drop_chains(const fl_cuda_api *api, fl_cuda_pack *pack)
{
    for (uint32_t i = 0; i <= FL_CUDA_PACK; ++i) {
        free_chain(api, pack, pack->chains[i][0]);
        free_chain(api, pack, pack->chains[i][1]);
    }
    memset(pack->chains, 0, sizeof pack->chains);
    memset(pack->batches, 0, sizeof pack->batches);
    pack->launches = 0;
}

void fl_cuda_pack_free(const fl_cuda_api *api, fl_cuda_pack *pack)
{
    if (pack == NULL) {
        return;
    }
    const fl_memory *memory = pack->memory;
    drop_chains(api, pack);
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

/* Copies a kernel's parameters behind those held. Returns their end; UINT32_MAX: no room. */
static __attribute__((noinline)) uint32_t copy_params(fl_cuda_pack *pack, const fl_launch *launch)
{
    uint32_t at = pack->bytes;
    for (uint32_t i = 0; i < launch->param_count; ++i) {
        if (launch->param_bytes[i] > MOST_BYTES - at) {
            return UINT32_MAX;
        }
        memcpy(pack->values + at, launch->params[i], launch->param_bytes[i]);
        pack->params[pack->param_count + i] = pack->values + at;
        at += launch->param_bytes[i];
        memset(pack->values + at, 0, align_up(at) - at);
        at = align_up(at);
    }
    return at;
}

bool fl_cuda_pack_hold(fl_cuda_pack *pack, const fl_launch *launch)
{
    uint32_t count = pack->count, end = pack->bytes;
    if (count == FL_CUDA_PACK || pack->param_count + launch->param_count > MOST_PARAMS ||
        (launch->param_count != 0 && (end = copy_params(pack, launch)) == UINT32_MAX)) {
        return false;
    }
    fl_held *held = &pack->held[count];
    held->function = launch->function->handle;
    held->shape = launch->shape;
    held->first = pack->param_count;
    held->at = pack->bytes;
    held->bytes = end - pack->bytes;
    held->waiting = launch->function->waits + (count != 0 ? held[-1].waiting : 0);
    pack->count = count + 1;
    pack->param_count += launch->param_count;
    pack->bytes = end;
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

/* Fills a new chain with kernels equal to `like` until given new parameters. Under the lock. */
static CUresult fill_chain(const fl_cuda_api *api, fl_cuda_pack *pack, fl_chain *chain, bool waits,
                           const fl_held *like)
{
    const CUDA_KERNEL_NODE_PARAMS params = params_of(pack, like);
    CUresult result = api->cuGraphCreate(&chain->graph, 0);
    if (result != FL_CUDA_SUCCESS) {
        chain->graph = NULL;
        return result;
    }
    fl_node *nodes = chain->nodes;
    for (uint32_t i = 0; i < chain->size && result == FL_CUDA_SUCCESS; ++i) {
        result = fl_cuda_node_add(api, chain->graph, &params, i != 0 ? &nodes[i - 1].node : NULL,
                                  i != 0, waits, &nodes[i].node);
    }
    if (result == FL_CUDA_SUCCESS) {
        result = api->cuGraphInstantiateWithFlags(&chain->executable, chain->graph, 0);
        chain->executable = result == FL_CUDA_SUCCESS ? chain->executable : NULL;
    }
    return result;
}

/* Returns the chain of `size` kernels; null: no memory, or the driver refuses. Under the lock. */
static fl_chain *find_chain(const fl_cuda_api *api, fl_cuda_pack *pack, uint32_t size, bool waits,
                            const fl_held *like)
{
    fl_chain *chain = pack->chains[size][waits];
    if (chain != NULL) {
        return chain;
    }
    chain = fl_alloc_aligned(pack->memory, chain_bytes(size), 64);
    if (chain == NULL) {
        return NULL;
    }
    memset(chain, 0, chain_bytes(size));
    chain->size = size;
    if (fill_chain(api, pack, chain, waits, like) != FL_CUDA_SUCCESS) {
        free_chain(api, pack, chain);
        return NULL;
    }
    return pack->chains[size][waits] = chain;
}

/* Tells whether the node launches just that. A function's handle stands for one kernel: graphs are
 * dropped before a module is unloaded. */
static bool is_set(const fl_cuda_pack *pack, const fl_node *node, const fl_held *held)
{
    return node->function == held->function && node->is_known && node->bytes == held->bytes &&
           memcmp(&node->shape, &held->shape, sizeof node->shape) == 0 &&
           (held->bytes == 0 || memcmp(node->values, pack->values + held->at, held->bytes) == 0);
}

static CUresult set_node(const fl_cuda_api *api, fl_cuda_pack *pack, const fl_chain *chain,
                         fl_node *node, const fl_held *held)
{
    if (is_set(pack, node, held)) {
        return FL_CUDA_SUCCESS;
    }
    const CUDA_KERNEL_NODE_PARAMS params = params_of(pack, held);
    node->function = held->function;
    node->shape = held->shape;
    node->bytes = held->bytes;
    node->is_known = held->bytes <= NODE_BYTES;
    memcpy(node->values, pack->values + held->at, node->is_known ? held->bytes : 0);
    return api->cuGraphExecKernelNodeSetParams(chain->executable, node->node, &params);
}

/* Tells whether all kernels after the first one, up to the last one, wait by themselves. */
static bool all_wait(const fl_held *first, const fl_held *last)
{
    return last->waiting - first->waiting == (uint32_t)(last - first);
}

/* Puts the next `size` kernels on the stream as one graph. False: not possible. Under the lock. */
static bool put_chain(const fl_cuda_api *api, fl_cuda_pack *pack, uint32_t size, uint32_t from,
                      CUstream stream)
{
    const fl_held *held = &pack->held[from];
    /* the kernel before the first one is in no graph or in another */
    bool waits = size > 1 && all_wait(held, &held[size - 1]);
    fl_chain *chain = find_chain(api, pack, size, waits, &held[size - 1]);
    CUresult result = FL_CUDA_SUCCESS;
    for (uint32_t i = 0; chain != NULL && i < size && result == FL_CUDA_SUCCESS; ++i) {
        result = set_node(api, pack, chain, &chain->nodes[i], &held[i]);
    }
    return chain != NULL && result == FL_CUDA_SUCCESS &&
           api->cuGraphLaunch(chain->executable, stream) == FL_CUDA_SUCCESS;
}

static CUresult put_one(const fl_cuda_api *api, fl_cuda_pack *pack, const fl_held *held,
                        CUstream stream)
{
    const filch_shape *shape = &held->shape;
    return api->cuLaunchKernel(held->function, shape->grid[0], shape->grid[1], shape->grid[2],
                               shape->block[0], shape->block[1], shape->block[2],
                               shape->shared_bytes, stream, pack->params + held->first, NULL);
}

static uint32_t power_at_most(uint32_t count)
{
    uint32_t power = 1;
    while (2 * power <= count) {
        power *= 2;
    }
    return power;
}

/* Tells whether a graph of a size, no power of two, would have been worth its cost for as many
 * batches. Assumes that each batch took a graph for each power of two in the size; the rest of a
 * batch may have had a graph of its own. */
static bool is_worth(uint32_t size, uint32_t batches)
{
    uint32_t saved = 0;
    for (uint32_t rest = size & (size - 1); rest != 0; rest &= rest - 1) {
        ++saved;
    }
    return batches * saved >= NODE_LAUNCHES * size;
}

/* Tells whether the kernels from `at` on go out as one graph, although their number is no power of
 * two. Counts whole batches only, and makes the graph once worth the cost. Under the lock. */
static bool has_own_graph(const fl_cuda_api *api, fl_cuda_pack *pack, uint32_t at)
{
    uint32_t size = pack->count - at;
    bool waits = all_wait(&pack->held[at], &pack->held[pack->count - 1]);
    if (pack->chains[size][waits] != NULL) {
        return true;
    }
    if (at != 0 || !is_worth(size, ++pack->batches[size][waits])) {
        return false;
    }
    /* Where the graph cannot be made, the next try is after as many batches. */
    pack->batches[size][waits] = 0;
    return find_chain(api, pack, size, waits, &pack->held[pack->count - 1]) != NULL;
}

/* Returns how many kernels, from `at` on, the next graph takes; 0: one launch without a graph.
 * Under the lock. */
static uint32_t choose_size(const fl_cuda_api *api, fl_cuda_pack *pack, uint32_t at)
{
    if (pack->cannot || pack->launches < WORTH_LAUNCHES) {
        return 0;
    }
    uint32_t left = pack->count - at, power = power_at_most(left);
    if (left == 1) {
        /* A new function for a node, and the graph, cost more than a launch. */
        const fl_chain *chain = pack->chains[1][0];
        bool is_new = chain != NULL && chain->nodes[0].function != pack->held[at].function;
        return is_new ? 0 : 1;
    }
    return power == left || has_own_graph(api, pack, at) ? left : power;
}

bool fl_cuda_pack_put(const fl_cuda_api *api, fl_cuda_pack *pack, CUstream stream,
                      CUresult results[FL_CUDA_PACK])
{
    uint32_t at = 0;
    bool all = true;
    memset(results, 0, pack->count * sizeof *results); /* FL_CUDA_SUCCESS */
    fl_mutex_lock(&pack->lock);
    while (at < pack->count) {
        uint32_t size = choose_size(api, pack, at);
        if (size != 0 && put_chain(api, pack, size, at, stream)) {
            at += size;
            continue;
        }
        if (size != 0) {
            /* A failed launch has started nothing, unless the context is lost; with a lost context
             * all later launches fail, too. */
            drop_chains(api, pack);
            pack->cannot = true;
        }
        results[at] = put_one(api, pack, &pack->held[at], stream);
        if (results[at] != FL_CUDA_SUCCESS && api->cuStreamSynchronize(stream) == FL_CUDA_SUCCESS) {
            results[at] = put_one(api, pack, &pack->held[at], stream);
        }
        all = all && results[at] == FL_CUDA_SUCCESS;
        ++at;
        pack->launches += pack->launches < WORTH_LAUNCHES;
    }
    fl_mutex_unlock(&pack->lock);
    fl_cuda_pack_drop(pack);
    return all;
}
