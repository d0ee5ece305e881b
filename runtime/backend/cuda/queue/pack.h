/* SPDX-License-Identifier: Apache-2.0 */
/* Packs: short kernels of one lane that are put there together. A launch costs the host 2.4 to 4
 * us; giving a node of an instantiated graph new parameters costs it 0.15 to 0.4 us, and launching
 * the graph 2 to 4 us for all its nodes. So a lane holds short kernels back, up to FL_CUDA_PACK of
 * them, and puts them on its stream as one graph: a chain, as they would have run in any case.
 *
 * The driver copies a graph's parameters when it is launched, so that one graph a size serves all
 * packs of a lane, one in flight or not. Where graphs fail, kernels are launched one by one.
 *
 * Kernels that were compiled for clusters of blocks go by themselves: a node keeps the clusters of
 * the first kernel that it had, and runs too few blocks of others (tried, driver 580).
 *
 * Held kernels are on no stream: whoever marks a lane, waits on it, or puts anything else there has
 * them put first. Only the lane's owner does any of that. */
#ifndef FL_BACKEND_CUDA_QUEUE_PACK_H
#define FL_BACKEND_CUDA_QUEUE_PACK_H

#include "backend/backend.h"
#include "backend/cuda/driver/api.h"

#define FL_CUDA_PACK 32u

typedef struct fl_cuda_pack fl_cuda_pack;

/* An empty one; null: no memory. */
fl_cuda_pack *fl_cuda_pack_new(const fl_memory *memory);
/* Drops what it holds. The device's context is current and works, or api is null: the graphs, which
 * the driver may not be able to destroy any more, are left to it. */
void fl_cuda_pack_free(const fl_cuda_api *api, fl_cuda_pack *pack);
/* Forgets what it holds. The owner. */
void fl_cuda_pack_drop(fl_cuda_pack *pack);
/* Copies a kernel's launch; false: it cannot be held, or there is no room. The owner. */
bool fl_cuda_pack_hold(fl_cuda_pack *pack, const fl_launch *launch);
/* Kernels held. The owner. */
uint32_t fl_cuda_pack_count(const fl_cuda_pack *pack);
/* Puts the kernels on the stream, oldest first, and holds none; results gets what the driver said
 * of each. One that is refused is tried once more when those before it are over: what they used,
 * or the driver, may have been given back. The owner, the device's context current. */
void fl_cuda_pack_put(const fl_cuda_api *api, fl_cuda_pack *pack, CUstream stream,
                      CUresult results[FL_CUDA_PACK]);
/* A module is about to be unloaded: the graphs, which may name its kernels, are destroyed, and made
 * again when they are worth it. Any thread, the device's context current. */
void fl_cuda_pack_forget(const fl_cuda_api *api, fl_cuda_pack *pack);

#endif
