/* SPDX-License-Identifier: Apache-2.0 */
/* Launch batching: short kernels of a lane are put on its stream together. A launch costs the host
 * 2.4 to 4 us. New parameters for a node of an instantiated graph cost 0.15 to 0.4 us, a new
 * function 2 us. Launching the graph costs 1.5 us, plus 0.15 us for each node. A lane therefore
 * holds up to FL_CUDA_PACK short kernels back. A graph is a chain: the kernels of a lane run in
 * order anyway.
 *
 * A batch of FL_CUDA_PACK kernels is one graph. A smaller one is a graph for each power of two in
 * its size, until batches of the size were frequent enough for a graph of the size: making a graph
 * costs 4 to 20 us a node. A graph of one kernel is launched with the function that it has; other
 * single kernels are launched without a graph.
 *
 * A graph submitted again tends to put the kernels of before on the nodes of before: parameters are
 * set where they differ from those that the node has, and always where they are large.
 *
 * The driver copies a graph's parameters at launch. One graph of a size, and a second one for
 * batches in which all kernels but the first wait by themselves, therefore serve all batches of a
 * lane, even while in flight. A graph of a size that is no power of two may fail: it is tried again
 * after as many batches. Any other failure destroys all graphs of the lane, and kernels are
 * launched one by one until a module is unloaded.
 *
 * Kernels compiled for clusters of blocks are never batched: a node keeps the clusters of its first
 * kernel, and runs too few blocks of later kernels (tried, driver 580).
 *
 * Held kernels are on no stream. Held kernels are put on the stream before the lane is marked, made
 * to wait, or given another operation. Only the lane's owner does any of the three. */
#ifndef FL_BACKEND_CUDA_QUEUE_PACK_H
#define FL_BACKEND_CUDA_QUEUE_PACK_H

#include "backend/backend.h"
#include "backend/cuda/driver/api.h"

#define FL_CUDA_PACK 64u

typedef struct fl_cuda_pack fl_cuda_pack;

/* Returns an empty batch; null: no memory. */
fl_cuda_pack *fl_cuda_pack_new(const fl_memory *memory);
/* Drops all held kernels and frees the batch. Either the device's context is current and works, or
 * api is null. A null api leaves the graphs to the driver, which may no longer be able to destroy
 * graphs. */
void fl_cuda_pack_free(const fl_cuda_api *api, fl_cuda_pack *pack);
/* Forgets all held kernels. The owner. */
void fl_cuda_pack_drop(fl_cuda_pack *pack);
/* Copies a kernel's launch into the batch. False: the kernel cannot be held, or the batch is full.
 * The owner. */
bool fl_cuda_pack_hold(fl_cuda_pack *pack, const fl_launch *launch);
/* Returns the number of held kernels. The owner. */
uint32_t fl_cuda_pack_count(const fl_cuda_pack *pack);
/* Puts all held kernels on the stream, oldest first, and empties the batch. results gets the
 * driver's result for every kernel. A refused kernel is tried once more when the kernels before it
 * are over, unless waiting for them fails: resources used by the kernels, or by the driver, may
 * have become free. True: every result is FL_CUDA_SUCCESS. The owner, with the device's
 * context current. */
bool fl_cuda_pack_put(const fl_cuda_api *api, fl_cuda_pack *pack, CUstream stream,
                      CUresult results[FL_CUDA_PACK]);
/* Destroys the graphs before a module is unloaded, as the graphs may name kernels of the module.
 * The graphs are made again when worth the cost. Any thread, with the device's context current. */
void fl_cuda_pack_forget(const fl_cuda_api *api, fl_cuda_pack *pack);

#endif
