/* SPDX-License-Identifier: Apache-2.0 */
/* Graph launches by CUDA graphs; see fl_graph_ops. */
#ifndef FL_BACKEND_CUDA_QUEUE_GRAPH_H
#define FL_BACKEND_CUDA_QUEUE_GRAPH_H

#include "backend/backend.h"
#include "backend/cuda/driver/api.h"

filch_status fl_cuda_graph_new(fl_device *device, const fl_memory *memory, void **replay,
                               filch_error *error);
filch_status fl_cuda_graph_add(fl_device *device, void *handle, const fl_launch *launch,
                               const uint32_t *behind, uint32_t behind_count, filch_error *error);
filch_status fl_cuda_graph_seal(fl_device *device, void *handle, filch_error *error);
void fl_cuda_graph_free(fl_device *device, void *handle);

/* Adds a kernel's node behind others. A kernel that waits by itself may start before they end: full
 * edges are for kernels that do not, and for whatever is no kernel. */
CUresult fl_cuda_node_add(const fl_cuda_api *api, CUgraph graph,
                          const CUDA_KERNEL_NODE_PARAMS *params, const CUgraphNode *behind,
                          size_t behind_count, bool waits, CUgraphNode *node);

/* Returns the argument of cuGraphLaunch. */
CUgraphExec fl_cuda_graph_executable(const void *replay);

#endif
