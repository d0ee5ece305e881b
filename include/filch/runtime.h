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

/** A runtime; made by filch_runtime_create(). */
typedef struct filch_runtime filch_runtime;

/**
 * The library's version.
 *
 * @return major * 10000 + minor * 100 + patch.
 *
 * Thread safety: any thread; wait-free. Since 0.1.
 */
FILCH_API uint32_t filch_version(void);

/**
 * Makes a runtime: finds the devices, starts their workers.
 *
 * Reads the settings of the environment (config.h) once; the host must not change its environment
 * meanwhile. A FILCH_ variable that filch does not know is logged as a warning, which without
 * filch_config.log is seen only where FILCH_LOG asks for it.
 *
 * @param config  how, or null for all defaults; copied.
 * @param error   receives the details of a failure, or null; its size must be set.
 * @param runtime receives the runtime, to be given to filch_runtime_destroy() or
 *                filch_runtime_abort(); untouched on failure.
 * @return FILCH_OK; FILCH_INVALID_ARGUMENT (null @p runtime, an @p error whose size is 0, a size
 *         below that of filch_config, an unknown enumeration value, reserved not 0, a score count
 *         that is not the device count); FILCH_PARSE (device specification, with the offending
 *         character in error->line; a setting, with its name in error->label; a simulator file that
 *         is not JSON, with the line); FILCH_UNKNOWN_ORDINAL, FILCH_DUPLICATE_DEVICE,
 *         FILCH_NO_DEVICE (the devices named); FILCH_IO, FILCH_DATA (a simulator file that cannot
 *         be read, or that says something else than it should); FILCH_UNSUPPORTED (a backend that
 *         the build lacks, more than 1,024 devices, simulated devices beside others or with
 *         threads, jemalloc where the build has none); FILCH_OUT_OF_MEMORY; FILCH_SYSTEM (a thread,
 *         a lock or the topology). Nothing is left behind on failure.
 *
 * Thread safety: any thread. Blocking: some tens of milliseconds, most of them for the topology.
 * Since 0.1.
 */
FILCH_API filch_status filch_runtime_create(const filch_config *config, filch_error *error,
                                            filch_runtime **runtime);

/**
 * Waits until no job runs and every completion callback has returned.
 *
 * In poll mode the caller runs the workers meanwhile; on a virtual clock it runs the simulation.
 *
 * @param runtime the runtime.
 * @param seconds time limit, on a virtual clock in virtual seconds; negative: none. Open graphs
 * must be closed first, or this waits for them.
 * @return FILCH_OK; FILCH_TIMEOUT (also without a limit, on a virtual clock, when nothing will
 *         happen any more before another call of the host's); FILCH_WRONG_STATE (called from a task
 *         or a callback); FILCH_INVALID_ARGUMENT (@p seconds is not a number);
 *         FILCH_INVALID_HANDLE; FILCH_FORKED.
 *
 * Thread safety: any thread but a worker's. Blocking. Since 0.1.
 */
FILCH_API filch_status filch_runtime_drain(filch_runtime *runtime, double seconds);

/**
 * Destroys an idle runtime and every object made from it; all their handles are invalid afterwards.
 * Runs of chunks that outlast their jobs (::FILCH_CODELET_RESTARTABLE) are waited for.
 *
 * @param runtime the runtime.
 * @return FILCH_OK; FILCH_BUSY while a job runs (nothing changes: drain or abort first);
 *         FILCH_WRONG_STATE (called from a task or a callback); FILCH_INVALID_HANDLE; FILCH_FORKED.
 *
 * Thread safety: no other call on the runtime may be in progress. Blocking: joins the workers.
 * Since 0.1.
 */
FILCH_API filch_status filch_runtime_destroy(filch_runtime *runtime);

/**
 * Cancels every job, closes open graphs, waits for the tiles in flight, and destroys.
 *
 * Completion callbacks are called as ever; if they submit more, that is cancelled too.
 *
 * @param runtime the runtime.
 * @return as filch_runtime_destroy(), but never FILCH_BUSY.
 *
 * Thread safety: no other call on the runtime may be in progress, but from its own tasks and
 * callbacks. Blocking: until the host functions that run have returned. Since 0.1.
 */
FILCH_API filch_status filch_runtime_abort(filch_runtime *runtime);

/**
 * Runs the workers of a FILCH_DRIVE_POLL runtime on the calling thread: host functions of tasks and
 * completion callbacks run inside this call, on the thread's own stack and affinity.
 *
 * Concurrent callers share the workers; a worker that another caller holds is passed over. A host
 * function is not interrupted when the time is over.
 *
 * @param runtime the runtime.
 * @param seconds how long to go on while there is something to do. 0: one round over the workers;
 *                negative: until nothing can be done now.
 * @param worked  receives 1 if anything was done, so that another call may find more, else 0; may
 * be null.
 * @return FILCH_OK; FILCH_WRONG_STATE (the runtime has threads or a virtual clock, or the call
 *         comes from a task or a callback); FILCH_INVALID_HANDLE; FILCH_FORKED.
 *
 * Thread safety: any thread. Does not wait for work. Since 0.1.
 */
FILCH_API filch_status filch_poll(filch_runtime *runtime, double seconds, uint32_t *worked);

/**
 * Copies the newest failure that a call of this thread on this runtime recorded. Neither a success
 * nor a failure without details (status.h) erases it: ask after a call that failed, and compare
 * error->status. Kept for the 64 threads that failed last.
 *
 * @param runtime the runtime.
 * @param error   receives the record; its size must be set (::FILCH_ERROR_INIT).
 * @return FILCH_OK; FILCH_NOT_FOUND (none kept); FILCH_INVALID_ARGUMENT (null @p error, or its size
 *         is 0); FILCH_INVALID_HANDLE; FILCH_FORKED.
 *
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
 * Counts what the runtime holds. While others work, the counts are recent, but not of one moment.
 *
 * @param runtime the runtime.
 * @param usage   receives the counts; its size must be set.
 * @return FILCH_OK; FILCH_INVALID_ARGUMENT (null @p usage, or its size is too small);
 *         FILCH_INVALID_HANDLE; FILCH_FORKED.
 *
 * Thread safety: any thread. Blocking: a short lock. Since 0.1.
 */
FILCH_API filch_status filch_runtime_usage(filch_runtime *runtime, filch_usage *usage);

#ifdef __cplusplus
}
#endif

#endif
