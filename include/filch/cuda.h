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
 * be quick and must not call filch. With a batch's first chunk on a device it is called for chunks
 * of other lengths, too, from one grain to all, some dozens of times, which are not launched: their
 * geometry tells how many grains fill the device, and how many a block takes. So it must answer
 * the same each time, and more grains must not be given fewer threads.
 *
 * @param call  the call; its views point to device memory, which must not be touched, nor need it
 *              be there where the call is not for a launch.
 * @param shape receives the geometry; all zero at first.
 * @return 0, or the caller's own code, which fails the task as a host function's does.
 */
typedef int (*filch_shape_fn)(const filch_call *call, filch_shape *shape);

/** An in-order queue of a device's, on which an enqueue function puts its work. */
typedef struct filch_lane {
    void *stream;             /**< The CUstream. */
    void *context;            /**< The CUcontext, which is current to the calling thread. */
    int32_t cuda_device;      /**< The GPU's CUdevice. */
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
 * chunk, and for a task with items (filch_task_desc.items) these, as a filch_range; the codelet's
 * arguments by value as one structure, where it has any. CUDA C sources get these types from
 * `#include "filch/kernel.h"`, which filch gives the compiler:
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

/** A GPU of a runtime, resolved: what code of the host's own needs to work there. */
typedef struct filch_probe {
    size_t size;            /**< sizeof(filch_probe). */
    filch_runtime *runtime; /**< The runtime. */
    void *context;          /**< The CUcontext. */
    void *stream;           /**< A CUstream of the GPU's, not used by any task; never destroy it. */
    int32_t cuda_device;    /**< The CUdevice. */
    uint32_t ordinal;       /**< Its number, as in cuda:N. */
    uint32_t device;        /**< Index of the filch device (of slices, the first); UINT32_MAX for a
                                 GPU that was left out and works now. */
    uint32_t capability;    /**< Compute capability: 90 is 9.0. */
    uint32_t multiprocessors; /**< That the stream's kernels may use. */
    uint32_t reserved;        /**< 0. */
} filch_probe;

/**
 * Builds what the caller needs on a GPU: compiles, fills caches. Runs on the probing thread with
 * the GPU's context current; may call filch, but must not probe.
 *
 * @param probe the GPU; valid during the call only.
 * @param user  filch_probe_desc::user.
 * @return 0, or the caller's own code: the probe then fails.
 */
typedef int (*filch_build_fn)(const filch_probe *probe, void *user);

/** How to probe; see ::FILCH_PROBE_DESC_INIT. */
typedef struct filch_probe_desc {
    size_t size;          /**< sizeof(filch_probe_desc). */
    filch_build_fn build; /**< Build step; or null. */
    void *user;           /**< Handed to build. */
    uint32_t ordinal;     /**< The GPU, as in cuda:N. */
    uint32_t is_retry;    /**< 1: try again what failed, and build again what was built. */
} filch_probe_desc;

/** Initializer of a ::filch_probe_desc: GPU 0, no build step. */
#define FILCH_PROBE_DESC_INIT                      \
    {                                              \
        sizeof(filch_probe_desc), NULL, NULL, 0, 0 \
    }

/**
 * Resolves a GPU for a caller's own code, or says in one form why that cannot be.
 *
 * The build step runs once for each label and GPU, until it succeeds or after a retry was asked
 * for; other probes of the runtime wait meanwhile. A failure is remembered, and later probes of the
 * same GPU (for a failed build: with the same label) fail likewise without trying again, unless
 * is_retry is 1. A GPU that was left out when the runtime was made can so be had later, though the
 * runtime's tasks do not run there.
 *
 * The error's text begins "LABEL backend: ", e.g. "fft backend: no CUDA runtime available",
 * "fft backend: failed to create CUDA context for device 1"; its native code, name and call are
 * those of the cause.
 *
 * @param runtime the runtime.
 * @param label   who asks, e.g. "fft"; begins every message, cut at 63 bytes.
 * @param desc    how; null: ::FILCH_PROBE_DESC_INIT.
 * @param probe   receives the GPU; its size must be set. May be null.
 * @return FILCH_OK; FILCH_NO_DRIVER, FILCH_DRIVER_STUB, FILCH_DRIVER_TOO_OLD,
 *         FILCH_DRIVER_BROKEN (the runtime has no GPU, because of that); FILCH_UNKNOWN_ORDINAL (it
 *         has others); FILCH_TASK_FAILED (build did not return 0; native_code is its code);
 *         FILCH_BACKEND, FILCH_DEVICE_LOST, FILCH_NO_DEVICE_MEMORY (context or stream);
 *         FILCH_OUT_OF_MEMORY; FILCH_INVALID_ARGUMENT (null label, a size not set);
 *         FILCH_INVALID_HANDLE; FILCH_FORKED.
 *
 * Thread safety: any thread; blocks while another probe of the runtime runs. Since 0.1.
 */
FILCH_API filch_status filch_backend_probe(filch_runtime *runtime, const char *label,
                                           const filch_probe_desc *desc, filch_probe *probe);

/**
 * Work in a device's context; see filch_device_scope().
 *
 * @param lane the context, which is current, and a stream that no task uses.
 * @param user what was given to filch_device_scope().
 * @return 0, or the caller's own code.
 */
typedef int (*filch_scope_fn)(const filch_lane *lane, void *user);

/**
 * Calls a function with a device's context current to the calling thread, and restores the context
 * that was current before, whatever the function pushes, pops or sets.
 *
 * @param runtime the runtime.
 * @param device  index of the device.
 * @param fn      the function; may call filch.
 * @param user    handed to @p fn.
 * @return FILCH_OK; FILCH_TASK_FAILED (@p fn did not return 0; native_code is what it returned);
 *         FILCH_BAD_INDEX; FILCH_UNSUPPORTED (the device has no context: it is no GPU);
 *         FILCH_INVALID_ARGUMENT (null @p fn); FILCH_DEVICE_LOST, FILCH_BACKEND,
 *         FILCH_NO_DEVICE_MEMORY (context or stream); FILCH_INVALID_HANDLE; FILCH_FORKED.
 *
 * Thread safety: any thread, also within another scope. Blocking: a short lock. Since 0.1.
 */
FILCH_API filch_status filch_device_scope(filch_runtime *runtime, uint32_t device,
                                          filch_scope_fn fn, void *user);

#ifdef __cplusplus
}
#endif

#endif
