/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file cuda.h
 * CUDA implementations of codelets, and what a program that uses CUDA itself needs of filch.
 *
 * The header includes nothing of CUDA's: streams, contexts and events of the driver are passed as
 * `void *` (CUstream, CUcontext, CUevent; the runtime library's cudaStream_t and cudaEvent_t are
 * the same objects).
 */
#ifndef FILCH_CUDA_H
#define FILCH_CUDA_H

#include "filch/codelet.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Geometry of a kernel launch; see ::filch_shape_fn. */
typedef struct filch_shape {
    uint32_t grid[3];      /**< Blocks; a 0 counts as 1. */
    uint32_t block[3];     /**< Threads a block; a 0 counts as 1. */
    uint32_t cluster[3];   /**< Blocks a cluster; all 0: no clusters. */
    uint32_t shared_bytes; /**< Dynamic shared memory a block. */
} filch_shape;

/**
 * Geometry of one call, for kernels whose geometry depends on the tile.
 *
 * Called on a worker's thread just before the launch, with the call as the kernel will get it. Must
 * be quick and must not call filch.
 *
 * @param call  the call; its views point to device memory, which must not be touched.
 * @param shape receives the geometry; all zero at first.
 * @return 0, or the caller's own code, which fails the task as a host function's does.
 */
typedef int (*filch_shape_fn)(const filch_call *call, filch_shape *shape);

/** An in-order queue of a device's, on which an enqueue function puts its work. */
typedef struct filch_lane {
    void *stream;             /**< The CUstream. */
    void *context;            /**< The CUcontext, which is current to the calling thread. */
    int32_t ordinal;          /**< The GPU's CUdevice. */
    uint32_t device;          /**< Index of the filch device. */
    uint32_t lane;            /**< Number of the lane within the device, from 0. */
    uint32_t lanes;           /**< Compute lanes of the device. */
    uint32_t multiprocessors; /**< Multiprocessors that the lane's kernels may use. */
    uint32_t reserved;        /**< 0. */
} filch_lane;

/**
 * Enqueues a call's work on a stream: cuBLAS, cuSOLVER, the caller's own launches.
 *
 * Runs on a worker's thread, with no filch lock held and the lane's context current. It must leave
 * that context current, must not wait for the device, must put all its work on the lane's stream or
 * join it there, and must not call filch. Two calls on one lane never overlap on the host.
 *
 * @param call  what to do; its views point to device memory.
 * @param lane  where.
 * @param state what filch_cuda_desc::open made for this lane.
 * @return 0, or the caller's own code, which fails the task.
 */
typedef int (*filch_enqueue_fn)(const filch_call *call, const filch_lane *lane, void *state);

/**
 * Makes an enqueue function's state for one lane, e.g. a cuBLAS handle; called once a lane, inside
 * filch_codelet_create(), with the lane's context current.
 *
 * @param lane  the lane.
 * @param user  filch_cuda_desc::user.
 * @param state receives the state.
 * @return 0, or the caller's own code: then the codelet cannot run on that device.
 */
typedef int (*filch_lane_open_fn)(const filch_lane *lane, void *user, void **state);

/** Releases what ::filch_lane_open_fn made; called when the runtime ends, context current. */
typedef void (*filch_lane_close_fn)(const filch_lane *lane, void *user, void *state);

/**
 * CUDA implementation of a codelet: exactly one of source, image and enqueue is given.
 *
 * A kernel's parameters are, in this order: each access's filch_view by value; for a batch the
 * chunk as a filch_range; the codelet's arguments by value as one structure, where it has any. CUDA
 * C sources get these types from `#include "filch/kernel.h"`, which filch gives the compiler:
 *
 *     #include "filch/kernel.h"
 *     extern "C" __global__ void scale(filch_view x, filch_range range, double factor) { … }
 *
 * For a batch the views' pointers are to the chunk's own elements, as on the host.
 */
typedef struct filch_cuda_desc {
    size_t size;               /**< sizeof(filch_cuda_desc). */
    const char *source;        /**< CUDA C text; copied. Compiled for each GPU of the runtime. */
    const void *image;         /**< A cubin, fatbin or PTX text; copied. */
    size_t image_bytes;        /**< Bytes of @p image. */
    const char *entry;         /**< Name of the kernel, declared `extern "C" __global__`. */
    const char *options;       /**< More options for the compiler, separated by blanks; or null. */
    filch_shape shape;         /**< Geometry, where it is constant. */
    filch_shape_fn shape_of;   /**< Geometry, where it is not; or null. */
    filch_enqueue_fn enqueue;  /**< In place of a kernel. */
    filch_lane_open_fn open;   /**< State of @p enqueue; may be null. */
    filch_lane_close_fn close; /**< Releases that; may be null. */
    void *user;                /**< Handed to open and close. */
} filch_cuda_desc;

/** Initializer of a ::filch_cuda_desc. */
#define FILCH_CUDA_DESC_INIT                                                                      \
    {                                                                                             \
        sizeof(filch_cuda_desc), NULL, NULL, 0, NULL, NULL, {{0}, {0}, {0}, 0}, NULL, NULL, NULL, \
            NULL, NULL                                                                            \
    }

#ifdef __cplusplus
}
#endif

#endif
