/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file cuda.h
 * CUDA implementations of codelets, and services of filch for programs that use CUDA themselves.
 *
 * The header includes no CUDA header. Streams, contexts and events of the driver are passed as
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
 * Computes the geometry of a call, for kernels with a geometry that depends on the tile.
 *
 * Called on a worker's thread just before the launch, with the arguments that the kernel will get.
 * The function must be quick and must not call filch. With a batch's first chunk on a device, filch
 * also calls the function for chunks of other lengths, from a single grain to the whole batch, some
 * dozens of times. Such chunks are not launched: their geometry tells how many grains fill the
 * device, and how many grains a block takes. Therefore the function must give equal answers to
 * equal calls, and more grains must not get fewer threads.
 *
 * @param call  the call; the views point to device memory. The function must not touch the memory,
 *              and the memory need not exist where the call is not for a launch.
 * @param shape receives the geometry; zero throughout at first.
 * @return 0, or the caller's own code; a code fails the task like a code of a host function.
 */
typedef int (*filch_shape_fn)(const filch_call *call, filch_shape *shape);

/** In-order queue of a device: the target of an enqueue function's work. */
typedef struct filch_lane {
    void *stream;             /**< The CUstream. */
    void *context;            /**< The CUcontext, current to the calling thread. */
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
 * Runs on a worker's thread, with no filch lock held and the lane's context current. The function
 * must leave the lane's context current, must not wait for the device, and must not call filch. The
 * function must put its whole work on the lane's stream, or join the work to the stream. Two calls
 * on a lane never overlap on the host.
 *
 * @param call  the work; the views point to device memory.
 * @param lane  the lane for the work.
 * @param state the lane's state, made by filch_cuda_desc::open.
 * @return 0, or the caller's own code; a code fails the task.
 */
typedef int (*filch_enqueue_fn)(const filch_call *call, const filch_lane *lane, void *state);

/**
 * Makes an enqueue function's state for a lane, e.g. a cuBLAS handle; called once a lane, inside
 * filch_codelet_create(), with the lane's context current.
 *
 * @param lane  the lane.
 * @param user  filch_cuda_desc::user.
 * @param state receives the state.
 * @return 0, or the caller's own code: the codelet then cannot run on the lane's device.
 */
typedef int (*filch_lane_open_fn)(const filch_lane *lane, void *user, void **state);

/** Releases the state made by ::filch_lane_open_fn; called when the runtime ends, with the lane's
 * context current. */
typedef void (*filch_lane_close_fn)(const filch_lane *lane, void *user, void *state);

/**
 * CUDA implementation of a codelet: the caller gives exactly one of source, image and enqueue.
 *
 * A kernel's parameters are, in order: every access's filch_view by value; a filch_range with the
 * chunk of a batch, or with the items of a task with items (filch_task_desc.items); the codelet's
 * arguments by value as a structure, if the codelet has arguments. CUDA C sources get the types
 * from `#include "filch/kernel.h"`; filch gives the header to the compiler:
 *
 *     #include "filch/kernel.h"
 *     extern "C" __global__ void scale(filch_view x, filch_range range, double factor) { … }
 *
 * For a batch the views' pointers are to the chunk's own elements, as on the host.
 *
 * A short kernel can be started before the kernel in front of it has ended, which takes a third off
 * the time from one to the next. Such a kernel must wait by itself, and the descriptor says so
 * (@p waits): every thread of every block calls `filch_wait()` before it reads or writes any memory
 * other than its parameters and its block's shared memory, and before it returns. Blocks that have
 * nothing to do are no exception: the end of the kernel tells the next one that the kernels in
 * front of both have ended, too.
 */
typedef struct filch_cuda_desc {
    size_t size;               /**< sizeof(filch_cuda_desc). */
    const char *source;        /**< CUDA C text; copied. Compiled for every GPU of the runtime. */
    const void *image;         /**< A cubin, fatbin or PTX text; copied. */
    size_t image_bytes;        /**< Bytes of @p image. */
    const char *entry;         /**< Name of the kernel, declared `extern "C" __global__`. */
    const char *options;       /**< More options for the compiler, separated by blanks; or null. */
    filch_shape shape;         /**< Constant geometry; unused where shape_of is given. */
    filch_shape_fn shape_of;   /**< Function for a variable geometry; or null. */
    filch_enqueue_fn enqueue;  /**< Function in place of a kernel. */
    filch_lane_open_fn open;   /**< Makes the state of @p enqueue; may be null. */
    filch_lane_close_fn close; /**< Releases the state made by @p open; may be null. */
    void *user;                /**< Handed to open and close. */
    bool waits;                /**< The kernel calls filch_wait() first, as above. A hint: without
                                    effect on GPUs before 9.0, on drivers before 12.3, and for code
                                    compiled for an older architecture than 9.0. */
} filch_cuda_desc;

/** Initializer of a ::filch_cuda_desc. */
#define FILCH_CUDA_DESC_INIT                                                                      \
    {                                                                                             \
        sizeof(filch_cuda_desc), NULL, NULL, 0, NULL, NULL, {{0}, {0}, {0}, 0}, NULL, NULL, NULL, \
            NULL, NULL, false                                                                     \
    }

/** GPU of a runtime, resolved: handles for code of the host's own on the GPU. */
typedef struct filch_probe {
    size_t size;              /**< sizeof(filch_probe). */
    filch_runtime *runtime;   /**< The runtime. */
    void *context;            /**< The CUcontext. */
    void *stream;             /**< A CUstream of the GPU that no task uses; never destroy the
                                   stream. */
    int32_t cuda_device;      /**< The CUdevice. */
    uint32_t ordinal;         /**< Number of the GPU, as in cuda:N. */
    uint32_t device;          /**< Index of the filch device (with slices, the first); UINT32_MAX
                                   for a GPU that was left out and works now. */
    uint32_t capability;      /**< Compute capability: 90 is 9.0. */
    uint32_t multiprocessors; /**< Multiprocessors that the stream's kernels may use. */
    uint32_t reserved;        /**< 0. */
} filch_probe;

/** Initializer of a ::filch_probe. */
#define FILCH_PROBE_INIT                                        \
    {                                                           \
        sizeof(filch_probe), NULL, NULL, NULL, 0, 0, 0, 0, 0, 0 \
    }

/**
 * Builds the caller's objects on a GPU: compiles, fills caches. Runs on the probing thread with the
 * GPU's context current. The function may call filch, but must not probe.
 *
 * @param probe the GPU; valid during the call only.
 * @param user  filch_probe_desc::user.
 * @return 0, or the caller's own code: the probe then fails.
 */
typedef int (*filch_build_fn)(const filch_probe *probe, void *user);

/** Options of a probe; see ::FILCH_PROBE_DESC_INIT. */
typedef struct filch_probe_desc {
    size_t size;          /**< sizeof(filch_probe_desc). */
    filch_build_fn build; /**< Build step; or null. */
    void *user;           /**< Handed to build. */
    uint32_t ordinal;     /**< The GPU, as in cuda:N. */
    bool is_retry;        /**< Retry after a failure, and repeat a build that succeeded. */
} filch_probe_desc;

/** Initializer of a ::filch_probe_desc: GPU 0, no build step. */
#define FILCH_PROBE_DESC_INIT                          \
    {                                                  \
        sizeof(filch_probe_desc), NULL, NULL, 0, false \
    }

/**
 * Resolves a GPU for a caller's own code, or reports in a uniform format why the GPU cannot be
 * used.
 *
 * The build step runs once for every pair of label and GPU, until the step succeeds or after a
 * caller requests a retry; other probes of the runtime wait meanwhile. filch remembers a failure.
 * Later probes of the GPU (for a failed build: with an equal label) fail likewise without a new
 * attempt, unless is_retry is true. A later probe can thus obtain a GPU that was left out when the
 * runtime was made, though the runtime's tasks do not run on the GPU.
 *
 * The error's text begins "LABEL backend: ", e.g. "fft backend: no CUDA runtime available", "fft
 * backend: failed to create CUDA context for device 1"; native code, native name and call in the
 * error are the cause's.
 *
 * @param runtime the runtime.
 * @param label   name of the caller, e.g. "fft"; begins every message, cut at 63 bytes.
 * @param desc    options; null: ::FILCH_PROBE_DESC_INIT.
 * @param probe   receives the GPU; the caller sets probe->size. May be null.
 * @return FILCH_OK; FILCH_NO_DRIVER, FILCH_DRIVER_STUB, FILCH_DRIVER_TOO_OLD, FILCH_DRIVER_BROKEN
 *         (reason why the runtime has no GPU); FILCH_UNKNOWN_ORDINAL (the runtime has GPUs, but not
 *         the requested GPU); FILCH_TASK_FAILED (build did not return 0; native_code is build's
 *         code); FILCH_BACKEND, FILCH_DEVICE_LOST, FILCH_NO_DEVICE_MEMORY (context or stream);
 *         FILCH_OUT_OF_MEMORY; FILCH_INVALID_ARGUMENT (null label, a size not set);
 *         FILCH_INVALID_HANDLE; FILCH_FORKED.
 *
 * Thread safety: any thread; blocks while another probe of the runtime runs. Since 0.1.
 */
FILCH_API filch_status filch_device_probe(filch_runtime *runtime, const char *label,
                                          const filch_probe_desc *desc, filch_probe *probe);

/**
 * Works in a device's context; see filch_device_scope().
 *
 * @param lane the current context, and a stream that no task uses.
 * @param user the pointer given to filch_device_scope().
 * @return 0, or the caller's own code.
 */
typedef int (*filch_scope_fn)(const filch_lane *lane, void *user);

/**
 * Calls a function with a device's context current to the calling thread. Afterwards restores the
 * previous current context, whatever the function pushes, pops or sets.
 *
 * @param runtime the runtime.
 * @param device  index of the device.
 * @param fn      the function; may call filch.
 * @param user    handed to @p fn.
 * @return FILCH_OK; FILCH_TASK_FAILED (@p fn did not return 0; native_code is the value returned);
 *         FILCH_BAD_INDEX; FILCH_UNSUPPORTED (the device is no GPU and has no context);
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
