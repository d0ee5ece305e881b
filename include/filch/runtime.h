/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file runtime.h
 * The runtime: devices, their workers, and everything made from it.
 *
 * filch has no global state. Several runtimes may live in one process. Every object belongs to the
 * runtime it was made from; handing it to another is FILCH_WRONG_RUNTIME.
 */
#ifndef FILCH_RUNTIME_H
#define FILCH_RUNTIME_H

#include "filch/config.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A runtime. */
typedef struct filch_runtime filch_runtime;

/** The library's version, major * 10000 + minor * 100 + patch. Any thread; wait-free. */
FILCH_API uint32_t filch_version(void);

/**
 * Makes a runtime: finds the devices, starts their workers.
 *
 * @param config  how, or null for all defaults; copied.
 * @param error   receives the details of a failure, or null.
 * @param runtime receives the runtime; untouched on failure.
 *
 * Returns FILCH_OK; FILCH_INVALID_ARGUMENT (null @p runtime, a size too small to be a filch_config,
 * reserved not 0, a score count that is not the device count); FILCH_PARSE (device specification or
 * setting, with the offending character in error->line); FILCH_UNKNOWN_ORDINAL,
 * FILCH_DUPLICATE_DEVICE, FILCH_NO_DEVICE (devices); FILCH_IO, FILCH_DATA (a simulator file);
 * FILCH_UNSUPPORTED; FILCH_OUT_OF_MEMORY; FILCH_SYSTEM (a thread or the topology). Nothing is left
 * behind on failure. Thread safety: any thread. Blocking: some milliseconds. Since 0.1.
 */
FILCH_API filch_status filch_runtime_create(const filch_config *config, filch_error *error,
                                            filch_runtime **runtime);

/**
 * Waits until no job runs and every submitted callback has returned.
 *
 * @param seconds time limit; negative: none. Open graphs must be closed first, or this waits.
 * Returns FILCH_OK, FILCH_TIMEOUT, FILCH_WRONG_STATE (called from a task or a callback),
 * FILCH_INVALID_HANDLE, FILCH_FORKED. In poll mode the caller runs the workers meanwhile.
 * Thread safety: any thread. Blocking. Since 0.1.
 */
FILCH_API filch_status filch_runtime_drain(filch_runtime *runtime, double seconds);

/**
 * Destroys an idle runtime and every object made from it.
 *
 * Returns FILCH_BUSY, and changes nothing, while a job runs: drain or abort first.
 * FILCH_INVALID_HANDLE, FILCH_FORKED (the child may only forget the handle), FILCH_WRONG_STATE
 * (called from a task or a callback). All handles of the runtime are invalid afterwards. Thread
 * safety: no other call on the runtime may be in progress. Blocking: joins the workers. Since 0.1.
 */
FILCH_API filch_status filch_runtime_destroy(filch_runtime *runtime);

/**
 * Cancels every job, closes open graphs, waits for the tiles in flight, and destroys.
 *
 * Returns as filch_runtime_destroy, but never FILCH_BUSY. Blocking: until running host functions
 * return. Since 0.1.
 */
FILCH_API filch_status filch_runtime_abort(filch_runtime *runtime);

/**
 * Runs the workers of a FILCH_DRIVE_POLL runtime on the calling thread.
 *
 * Performs steps until nothing can be done now or until @p seconds have passed (0: one round over
 * the workers; negative: until nothing can be done). Concurrent callers share the workers; a worker
 * that another caller holds is passed over.
 * @param worked receives 1 if anything was done, so that another call may find more, else 0; may be
 *               null.
 * Returns FILCH_OK, FILCH_WRONG_STATE (the runtime has threads), FILCH_INVALID_HANDLE,
 * FILCH_FORKED. Thread safety: any thread. Runs host functions of tasks. Since 0.1.
 */
FILCH_API filch_status filch_poll(filch_runtime *runtime, double seconds, uint32_t *worked);

/**
 * Copies the newest failure that a call of this thread on this runtime recorded.
 *
 * @param error its size must be set; see ::FILCH_ERROR_INIT.
 * Returns FILCH_OK, FILCH_NOT_FOUND (none kept), FILCH_INVALID_ARGUMENT, FILCH_INVALID_HANDLE.
 * Thread safety: any thread. Blocking: a short lock. Since 0.1.
 */
FILCH_API filch_status filch_runtime_error(filch_runtime *runtime, filch_error *error);

/** Counts of what a runtime holds; see filch_runtime_usage(). */
typedef struct filch_usage {
    size_t size;         /**< sizeof(filch_usage). */
    uint64_t host_bytes; /**< Bytes of filch's own structures, live now. */
    uint64_t
        task_bytes; /**< Of these, bytes reserved for tasks (edges and arguments not counted). */
    uint64_t tasks_live;   /**< Tasks of existing graphs that are not retired for good. */
    uint64_t jobs_running; /**< Jobs submitted and not complete. */
} filch_usage;

/**
 * Counts what the runtime holds. Returns FILCH_OK, FILCH_INVALID_ARGUMENT, FILCH_INVALID_HANDLE,
 * FILCH_FORKED. Thread safety: any thread. Since 0.1.
 */
FILCH_API filch_status filch_runtime_usage(filch_runtime *runtime, filch_usage *usage);

#ifdef __cplusplus
}
#endif

#endif
