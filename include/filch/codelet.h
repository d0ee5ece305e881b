/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file codelet.h
 * Codelets: what a task or a batch runs.
 */
#ifndef FILCH_CODELET_H
#define FILCH_CODELET_H

#include "filch/runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A codelet; see filch_codelet_create(). */
typedef struct filch_codelet filch_codelet;

struct filch_cuda_desc; /* filch/cuda.h */

/**
 * The part of a data handle that a call may touch: a column-major block. For FILCH_SCRATCH: bytes,
 * their number rounded up to a multiple of 64, at a multiple of 64, with undefined contents.
 */
typedef struct filch_view {
    void *ptr;        /**< First element; in the memory of the device that runs the call. */
    uint64_t rows;    /**< Rows, or elements of a 1-D range. */
    uint64_t cols;    /**< Columns; 1 for a 1-D range. */
    uint64_t ld;      /**< Elements from one column to the next. */
    uint64_t row;     /**< Row of the handle at which the view starts. */
    uint64_t col;     /**< Column of the handle at which the view starts. */
    uint64_t element; /**< Bytes an element. */
} filch_view;

/**
 * What a host function is given; it and all that it points to are valid during the call only.
 *
 * Work and cost functions get the same structure with less in it: see ::filch_work_fn.
 */
typedef struct filch_call {
    const filch_view *views; /**< One per access, in the order of the declaration. */
    uint32_t view_count;     /**< Number of views. */
    uint32_t device;         /**< Index of the device that runs the call. */
    uint32_t team;           /**< Cores the function must use; 1 except on host:NxT devices. On a
                                  GPU its multiprocessors. */
    uint32_t reserved;       /**< 0. */
    const void *args;       /**< Copy of the task's arguments, aligned to 16 bytes; null if none. */
    uint64_t lo;            /**< First item of a batch chunk, or of a divisible task's piece; 0 for
                                 other tasks. */
    uint64_t hi;            /**< One past the last of these; 0 for other tasks. */
    filch_runtime *runtime; /**< The runtime, for submitting more from inside. */
    void *opaque;           /**< filch's own. */
} filch_call;

/**
 * Host implementation of a codelet.
 *
 * Runs on a worker's thread, or in poll mode and on a virtual clock on the host's thread that
 * drives the workers, with no filch lock held. It may create, submit and wait for other work (a
 * simulated device's cannot wait). It must not drain, destroy, abort or poll the runtime, and must
 * not leave by longjmp or by a C++ exception.
 *
 * @param call what to do.
 * @return 0, or the caller's own code, which fails the job and is found in the job's error. filch
 *         itself fails a task with FILCH_OUT_OF_MEMORY when there is no memory for its scratch, and
 *         a chunk with FILCH_ALIAS when a mapping of the caller's turns out wrong.
 */
typedef int (*filch_host_fn)(const filch_call *call);

/**
 * Work of a call in abstract units (flops, cells, …); used to predict durations, never results.
 *
 * Must be pure, quick and must not call filch: for a task it is called once, inside
 * filch_graph_add() with the graph's lock held, with the task's views (what their pointers lead to
 * is not to be touched, and need not exist yet) and arguments, but no runtime, device 0 and null
 * scratch, and for one with items (filch_task_desc.items) lo = 0 and hi = items; for a batch it is
 * called for chunks, on worker threads, with lo, hi, the arguments and no views.
 *
 * @param call the call whose work is asked for.
 * @return units, finite and at least 0; negative and NaN count as 0.
 */
typedef double (*filch_work_fn)(const filch_call *call);

/** Properties of a codelet; combine with |. */
typedef enum filch_codelet_flags {
    /**
     * Two devices may run a call of it at once. Where the others have nothing left to do, and a
     * chunk of a batch that is in flight would be done elsewhere first, as measured, or is late for
     * as long as it takes elsewhere, it is begun there, too; the run that is done first counts, and
     * the other one does not, whatever it returns. Only a device that is lost says nothing: then
     * the other run counts. Each item is done, fails and is counted once, as without the flag. The
     * two may be any: cores, GPUs, slices of one GPU.
     *
     * Its functions must do nothing but to write through their views; and twice at once, in two
     * places. For each chunk these are memory of filch's, in the memory of the device that runs it.
     * From there the results of the run that counts are copied to the host's buffer, on GPUs only
     * when the host has seen the kernel end; where a handle is managed and a GPU wrote it, the
     * memory becomes the handle's own, and what the tiles had there before goes back. That, and
     * memory for the results of up to eight chunks a device beside the place they have, is what the
     * flag costs. A run that lost is not stopped, and may outlast the job. Until
     * it is over it reads what it reads: its call's arguments, and handles, where later jobs that
     * write them, and filch_data_acquire_tiles(), wait for it, while filch_data_acquire() of these
     * returns FILCH_BUSY, as does filch_data_destroy() of any handle of the batch. So the host
     * changes or frees what such a batch reads (and what arguments lead to) behind one of these, or
     * behind filch_runtime_drain(), which waits for such runs as filch_runtime_destroy() does. What
     * the batch has written is the host's as soon as the job is complete.
     *
     * Not run twice, but counted where they might have been (filch_losses.restarts_refused), are
     * chunks of a batch with a FILCH_READWRITE access, a callback mapping, or results for a buffer
     * of the caller's in a GPU's memory; those for whose results a GPU has no memory without that
     * something has to leave it, and those beyond eight in flight on a device; all under another
     * policy than ::FILCH_POLICY_STEAL; and tasks of graphs. No device begins a chunk anew while a
     * task waits on it, none whose like was not measured on both devices, and no GPU one for which
     * something would have to leave its memory.
     */
    FILCH_CODELET_RESTARTABLE = 1
} filch_codelet_flags;

/** How a codelet is made; see ::FILCH_CODELET_DESC_INIT. */
typedef struct filch_codelet_desc {
    size_t size;        /**< sizeof(filch_codelet_desc). */
    const char *name;   /**< Appears in errors and traces; copied, cut at 63 bytes. */
    filch_host_fn host; /**< Host implementation; may be null if @p cuda is not. */
    const struct filch_cuda_desc *cuda; /**< CUDA implementation; may be null if @p host is not. */
    filch_work_fn work;                 /**< Work of a call; null: 1 a task, the number of items a
                                             chunk, or a task with items. */
    filch_work_fn cost; /**< Simulated devices only: the true work of a call, where it differs from
                             what work declares; null: work. */
    uint32_t arg_size;  /**< Bytes of arguments that every task of this codelet carries by value
                             (at most 65,535). */
    uint32_t flags;     /**< filch_codelet_flags. */
} filch_codelet_desc;

/** Initializer of a ::filch_codelet_desc. */
#define FILCH_CODELET_DESC_INIT                                        \
    {                                                                  \
        sizeof(filch_codelet_desc), NULL, NULL, NULL, NULL, NULL, 0, 0 \
    }

/**
 * Makes a codelet. It lives as long as its runtime: there is nothing to destroy.
 *
 * A CUDA implementation is compiled and loaded here for every GPU of the runtime, which may take a
 * while the first time (compiled kernels are kept in a cache on disk); nothing of that is left for
 * the first task. Where the runtime has no GPU it is not looked at.
 *
 * @param runtime the runtime.
 * @param desc    how; copied.
 * @param codelet receives the codelet.
 * @return FILCH_OK; FILCH_INVALID_ARGUMENT (nulls, no name, no implementation, unknown flags,
 *         arguments too large, a CUDA descriptor that contradicts itself); FILCH_COMPILE (the CUDA
 *         source is wrong: line and text of the error say where); FILCH_NO_COMPILER,
 *         FILCH_COMPILER_BROKEN, FILCH_DRIVER_TOO_OLD (for the compiler), FILCH_UNSUPPORTED (the
 *         compiler does not know so old a GPU any more), FILCH_IMAGE, FILCH_NOT_FOUND (the entry),
 *         FILCH_NO_DEVICE_MEMORY, FILCH_BACKEND, FILCH_DEVICE_LOST (no device of the runtime can
 *         have the implementation, and there is no other); FILCH_OUT_OF_MEMORY;
 *         FILCH_INVALID_HANDLE; FILCH_FORKED.
 *
 * Thread safety: any thread. Blocking: while a CUDA implementation is compiled and loaded. Since
 * 0.1.
 */
FILCH_API filch_status filch_codelet_create(filch_runtime *runtime, const filch_codelet_desc *desc,
                                            filch_codelet **codelet);

#ifdef __cplusplus
}
#endif

#endif
