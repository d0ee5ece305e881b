/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file codelet.h
 * Codelets: code run by tasks and batches.
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
 * Part of a data handle accessible to a call: a column-major block. FILCH_SCRATCH: bytes with
 * undefined contents; the number of bytes is rounded up to a multiple of 64, and the address is a
 * multiple of 64.
 */
typedef struct filch_view {
    void *ptr;        /**< First element, in the memory of the device running the call. */
    uint64_t rows;    /**< Rows, or elements of a 1-D range. */
    uint64_t cols;    /**< Columns; 1 for a 1-D range. */
    uint64_t ld;      /**< Elements from a column to the next. */
    uint64_t row;     /**< First row of the view within the handle. */
    uint64_t col;     /**< First column of the view within the handle. */
    uint64_t element; /**< Bytes an element. */
} filch_view;

/**
 * Input of a host function. The structure and the data behind its pointers are valid during the
 * call only; for a pending task (pending.h) until the task has ended.
 *
 * Work and cost functions get a partly filled structure: see ::filch_work_fn.
 */
typedef struct filch_call {
    const filch_view *views; /**< A view per access, in the order of the declaration. */
    uint32_t view_count;     /**< Number of views. */
    uint32_t device;         /**< Index of the device running the call. */
    uint32_t team;           /**< Cores for the function to use; 1 except on host:NxT devices. GPUs:
                                  number of multiprocessors. */
    uint32_t reserved;       /**< 0. */
    const void *args;        /**< Copy of the task's arguments, aligned to 16 bytes; null if the
                                  task has no arguments. */
    uint64_t lo;             /**< First item of a batch chunk, or of a divisible task's piece; 0 for
                                  other tasks. */
    uint64_t hi;             /**< One past the last item of the chunk or piece; 0 for other
                                  tasks. */
    filch_runtime *runtime;  /**< The runtime, for submitting more work from inside. */
    void *opaque;            /**< Private to filch. */
    void *user;              /**< filch_codelet_desc::user. */
    void *state;             /**< The device's state, made by filch_codelet_desc::open; null for
                                  functions other than the host function. */
} filch_call;

/**
 * Host implementation of a codelet.
 *
 * Runs on a worker's thread, with no filch lock held. In poll mode and on a virtual clock the host
 * thread driving the workers runs the function. The function may create, submit and wait for other
 * work (a simulated device's function cannot wait). It must not drain, destroy, abort or poll the
 * runtime, and must not leave by longjmp or by a C++ exception.
 *
 * @param call the work to do.
 * @return 0, or the caller's own code, which fails the job and appears in the job's error, with the
 *         text of filch_call_set_text() if the function set one. Codelets with
 *         ::FILCH_CODELET_MAY_PEND: or FILCH_PENDING, and the task ends later. filch itself fails a
 *         task with FILCH_OUT_OF_MEMORY if memory for its scratch or its handle is missing, with
 *         FILCH_WRONG_STATE if it returns FILCH_PENDING without having taken its handle, and a
 * chunk with FILCH_ALIAS if a mapping of the caller's turns out wrong.
 */
typedef int (*filch_host_fn)(const filch_call *call);

/**
 * Work of a call in abstract units (flops, cells, …); used to predict durations, never results.
 *
 * Must be pure, quick and must not call filch. For a task filch calls the function once, inside
 * filch_graph_add() with the graph's lock held. The call has the task's views and arguments, but no
 * runtime, device 0 and null scratch. Memory behind the views' pointers must not be touched, and
 * need not exist yet. A task with items (filch_task_desc.items) has lo = 0 and hi = items. For a
 * batch filch calls the function for chunks, on worker threads, with lo, hi, the arguments and no
 * views.
 *
 * @param call the call to be measured.
 * @return units, finite and at least 0; negative and NaN count as 0.
 */
typedef double (*filch_work_fn)(const filch_call *call);

/**
 * Makes the host function's state for a device, e.g. a workspace or a handle of another library.
 * filch calls the function once for each device that runs host functions, inside
 * filch_codelet_create(), on the thread that creates the codelet. The function may call
 * filch_device_at(), and nothing else of filch.
 *
 * @param runtime the runtime.
 * @param device  index of the device.
 * @param user    filch_codelet_desc::user.
 * @param state   receives the state; null at first.
 * @return 0, or the caller's own code: the codelet is not made then.
 */
typedef int (*filch_host_open_fn)(filch_runtime *runtime, uint32_t device, void *user,
                                  void **state);

/**
 * Releases a state made by ::filch_host_open_fn: when the runtime ends, on the thread that ends it,
 * after the last host function has returned; or when a later device's state could not be made. Must
 * not call filch.
 */
typedef void (*filch_host_close_fn)(uint32_t device, void *user, void *state);

/** Properties of a codelet; combine with |. */
typedef enum filch_codelet_flags {
    /**
     * Allows speculative execution: two devices may run a call of the codelet concurrently, on
     * different memory, and the first run to finish counts. Functions of the codelet must have no
     * effect except writing through their views. A losing run may outlast its job, and reads its
     * call's arguments and handles until its end. Whole contract: docs/concepts.md, "Speculative
     * execution".
     */
    FILCH_CODELET_RESTARTABLE = 1,
    /**
     * Gives the host function's return value FILCH_PENDING its meaning: the task ends later
     * (pending.h). Tasks of the codelet never run twice or in pieces: filch refuses the flag
     * together with ::FILCH_CODELET_RESTARTABLE, and refuses the codelet for batches, for divisible
     * tasks, for reducing accesses and for filch_data_reduction(). A device's state
     * (filch_codelet_desc.open) may be used by other calls while a task pends.
     */
    FILCH_CODELET_MAY_PEND = 2
} filch_codelet_flags;

/** Description of a new codelet; see ::FILCH_CODELET_DESC_INIT. */
typedef struct filch_codelet_desc {
    size_t size;                        /**< sizeof(filch_codelet_desc). */
    const char *name;                   /**< Appears in errors and traces; copied, cut at 63
                                             bytes. */
    filch_host_fn host;                 /**< Host implementation; may be null if @p cuda is not. */
    const struct filch_cuda_desc *cuda; /**< CUDA implementation; may be null if @p host is not. */
    filch_work_fn work;                 /**< Work of a call; null: 1 for a task, the number of items
                                             for a chunk or a task with items. */
    filch_work_fn cost;                 /**< Simulated devices only: the true work of a call, where
                                             different from the declared work; null: work. */
    uint32_t arg_size;                  /**< Bytes of arguments carried by value in every task of
                                             the codelet (at most 65,535). */
    uint32_t flags;                     /**< Combination of filch_codelet_flags. */
    void *user;                         /**< In every filch_call of the codelet, and handed to open
                                             and close. Must outlive the runtime, if filch is to
                                             hand out a pointer to something. */
    filch_host_open_fn open;            /**< Makes a state of @p host for each device; may be null.
                                             Two calls on a device use a state at a time only if a
                                             host function waits for other work, which may run on
                                             the device meanwhile. */
    filch_host_close_fn close;          /**< Releases the states made by @p open; may be null. */
} filch_codelet_desc;

/** Initializer of a ::filch_codelet_desc. */
#define FILCH_CODELET_DESC_INIT                                                          \
    {                                                                                    \
        sizeof(filch_codelet_desc), NULL, NULL, NULL, NULL, NULL, 0, 0, NULL, NULL, NULL \
    }

/**
 * Makes a codelet. The codelet lives as long as its runtime: no call destroys a codelet.
 *
 * The call compiles and loads a CUDA implementation for every GPU of the runtime, which may take a
 * while the first time (a cache on disk keeps compiled kernels); no compilation is left for the
 * first task. A runtime without a GPU ignores the CUDA implementation.
 *
 * @param runtime the runtime.
 * @param desc    description; copied.
 * @param codelet receives the codelet.
 * @return FILCH_OK; FILCH_INVALID_ARGUMENT (nulls, no name, no implementation, unknown flags,
 *         arguments too large, a CUDA descriptor with contradictions); FILCH_COMPILE (the CUDA
 *         source is wrong: line and text of the error say where); FILCH_NO_COMPILER,
 *         FILCH_COMPILER_BROKEN, FILCH_DRIVER_TOO_OLD (for the compiler), FILCH_UNSUPPORTED (the
 *         compiler no longer knows so old a GPU), FILCH_IMAGE, FILCH_NOT_FOUND (the entry),
 *         FILCH_NO_DEVICE_MEMORY, FILCH_BACKEND, FILCH_DEVICE_LOST (no device of the runtime can
 *         have the implementation, and no other implementation exists); FILCH_TASK_FAILED (the open
 *         function of a host state returned a code); FILCH_OUT_OF_MEMORY;
 *         FILCH_INVALID_HANDLE; FILCH_FORKED.
 *
 * Thread safety: any thread. Blocking: while a CUDA implementation is compiled and loaded. Since
 * 0.1.
 */
FILCH_API filch_status filch_codelet_create(filch_runtime *runtime, const filch_codelet_desc *desc,
                                            filch_codelet **codelet);

/**
 * Gives the reason why the running host function is about to fail. The reason is appended to the
 * text of the job's error (filch_job_error()) if the function returns the caller's own code, and is
 * dropped otherwise. A second text replaces the first.
 *
 * @param call the running call.
 * @param text the reason; copied, cut at 191 bytes.
 * @return FILCH_OK; FILCH_WRONG_STATE (not a call of a host function, or not the innermost host
 *         function running on the calling thread); FILCH_OUT_OF_MEMORY; FILCH_INVALID_ARGUMENT
 *         (nulls); FILCH_FORKED.
 *
 * Thread safety: the thread running the host function. Since 0.1.
 */
FILCH_API filch_status filch_call_set_text(const filch_call *call, const char *text);

/**
 * Ends the rest of the running function's job as success: for a test of convergence that is a task,
 * or a search that has found. Work of the job that has begun goes on to its end, the calling task
 * and pending tasks (pending.h) included; work not yet begun is skipped, as after
 * filch_job_cancel(). Of a divisible task the pieces not yet begun are skipped, too, and the task
 * counts as skipped. What reducing tasks of the job have added so far is dropped. A few work items
 * just being started by other workers may still run. Unless work fails, the job completes with
 * FILCH_OK, and filch_job_info.skipped counts the work left out.
 *
 * The first of filch_job_cancel() and this call decides about the result; later calls change
 * nothing. An open graph must still be closed, and refuses further tasks meanwhile. A batch may be
 * resumed (filch_job_resume()). Contents of tiles whose writers were skipped: docs/concepts.md,
 * "Finishing early". On a simulated device the call takes effect when the task's time begins.
 *
 * @param call the running call, of a task or of a chunk of a batch.
 * @return FILCH_OK; FILCH_WRONG_STATE (not a call of a host function, not the innermost host
 *         function running on the calling thread, or a codelet with ::FILCH_CODELET_RESTARTABLE);
 *         FILCH_INVALID_ARGUMENT (null); FILCH_FORKED.
 *
 * Thread safety: the thread running the host function. Blocking: short locks; the first call on a
 * job looks at each object of the runtime. Since 0.1.
 */
FILCH_API filch_status filch_call_finish(const filch_call *call);

#ifdef __cplusplus
}
#endif

#endif
