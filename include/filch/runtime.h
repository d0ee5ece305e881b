/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file runtime.h
 * Runtime: the devices, the devices' workers, and every object made from the runtime.
 *
 * filch has no global state. Several runtimes may live in a process. Every object belongs to the
 * runtime that made the object; passing the object to a second runtime is FILCH_WRONG_RUNTIME.
 */
#ifndef FILCH_RUNTIME_H
#define FILCH_RUNTIME_H

#include "filch/config.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Runtime; made by filch_runtime_create(). */
typedef struct filch_runtime filch_runtime;

struct filch_job; /* filch/job.h */

/**
 * Returns the library's version.
 *
 * @return major * 10000 + minor * 100 + patch.
 *
 * Thread safety: any thread; wait-free. Since 0.1.
 */
FILCH_API uint32_t filch_version(void);

/**
 * Makes a runtime: finds the devices, starts the devices' workers.
 *
 * Reads the settings of the environment (config.h) once; the host must not change the environment
 * meanwhile. Logs a warning for a FILCH_ variable unknown to filch; without filch_runtime_desc.log
 * the warning appears only where FILCH_LOG asks for warnings.
 *
 * @param config  configuration, or null for defaults throughout; copied.
 * @param error   receives the details of a failure, or null; the caller sets error->size.
 * @param runtime receives the runtime, to be given to filch_runtime_destroy() or
 *                filch_runtime_abort(); untouched on failure.
 * @return FILCH_OK; FILCH_INVALID_ARGUMENT (null @p runtime, an @p error with size 0, a size below
 *         sizeof(filch_runtime_desc) of the first version, an unknown enumeration value, reserved
 * not 0, a score count other than the device count); FILCH_PARSE (device specification, with the
 *         offending character in error->line; a setting, with the setting's name in error->label; a
 *         simulator file that is not JSON, with the line); FILCH_UNKNOWN_ORDINAL,
 *         FILCH_DUPLICATE_DEVICE, FILCH_NO_DEVICE (the devices named); FILCH_IO, FILCH_DATA (an
 *         unreadable simulator file, or a file with wrong contents); FILCH_UNSUPPORTED (a backend
 *         missing in the build, more than 1,024 devices, simulated devices beside real devices or
 *         with threads, jemalloc missing in the build); FILCH_OUT_OF_MEMORY; FILCH_SYSTEM (a
 *         thread, a lock or the topology). On failure nothing is left behind.
 *
 * Thread safety: any thread. Blocking: some tens of milliseconds, most of them for the topology.
 * Since 0.1.
 */
FILCH_API filch_status filch_runtime_create(const filch_runtime_desc *config, filch_error *error,
                                            filch_runtime **runtime);

/**
 * Waits until no job runs and every completion callback has returned.
 *
 * In poll mode the caller runs the workers meanwhile; on a virtual clock the caller runs the
 * simulation.
 *
 * @param runtime the runtime.
 * @param seconds time limit, on a virtual clock in virtual seconds; negative: no limit. The caller
 *                must close open graphs first; otherwise the call waits for the graphs.
 * @return FILCH_OK; FILCH_TIMEOUT (also without a limit, on a virtual clock, when nothing can
 *         happen before a further call of the host's); FILCH_WRONG_STATE (called from a task or a
 *         callback); FILCH_INVALID_ARGUMENT (@p seconds is not a number); FILCH_INVALID_HANDLE;
 *         FILCH_FORKED.
 *
 * Thread safety: any thread but a worker's. Blocking. Since 0.1.
 */
FILCH_API filch_status filch_runtime_drain(filch_runtime *runtime, double seconds);

/**
 * Destroys an idle runtime and every object made from the runtime; the handles of the objects are
 * invalid afterwards. Waits for runs of chunks that outlast their jobs
 * (::FILCH_CODELET_RESTARTABLE).
 *
 * @param runtime the runtime.
 * @return FILCH_OK; FILCH_BUSY while a job runs (nothing changes: drain or abort first; the error's
 *         text has the number of running jobs, up to three different labels of theirs, of 31
 *         characters each, and where room is left a pending task, see pending.h);
 *         FILCH_WRONG_STATE (called from a task or a callback); FILCH_INVALID_HANDLE;
 *         FILCH_FORKED.
 *
 * Thread safety: no second call on the runtime may be in progress. Blocking: joins the workers.
 * Since 0.1.
 */
FILCH_API filch_status filch_runtime_destroy(filch_runtime *runtime);

/**
 * Cancels every job, closes open graphs, waits for the work items in flight, and destroys the
 * runtime.
 *
 * Calls completion callbacks as ever; jobs submitted by the callbacks are cancelled, too. Waits for
 * the ends of pending tasks (pending.h), which filch_pending_status() now tells to be cancelled.
 *
 * @param runtime the runtime.
 * @return as filch_runtime_destroy(), but never FILCH_BUSY.
 *
 * Thread safety: no second call on the runtime may be in progress, except from the runtime's own
 * tasks and callbacks, and except filch_pending_end() and filch_pending_status(). Blocking: until
 * the running host functions have returned, and the pending tasks have ended. Since 0.1.
 */
FILCH_API filch_status filch_runtime_abort(filch_runtime *runtime);

/**
 * Runs the workers of a FILCH_DRIVE_POLL runtime on the calling thread: host functions of tasks and
 * completion callbacks run inside the call, on the thread's own stack and affinity.
 *
 * Concurrent callers share the workers; a caller passes over a worker held by a second caller. The
 * end of the time does not interrupt a host function.
 *
 * @param runtime the runtime.
 * @param seconds how long to go on while work exists. 0: a single round over the workers; negative:
 *                until nothing can be done now.
 * @param worked  receives true if the call did work and a further call may find more, else false;
 *                may be null.
 * @return FILCH_OK; FILCH_WRONG_STATE (the runtime has threads or a virtual clock, or the call
 *         comes from a task or a callback); FILCH_INVALID_HANDLE; FILCH_FORKED.
 *
 * Thread safety: any thread. Does not wait for work. Since 0.1.
 */
FILCH_API filch_status filch_runtime_poll(filch_runtime *runtime, double seconds, bool *worked);

/**
 * Waits in a FILCH_DRIVE_POLL runtime: the calling thread sleeps until some work can be done, does
 * a round of it as filch_runtime_poll() does, and returns. A job's end and the time end the wait,
 * too; a job complete already ends it before a round. Work is whatever is run, put on a device,
 * seen to end there, or given to another device.
 *
 * Of several threads that wait, one or more wake for work. While another thread runs tasks, a
 * thread that waits also looks for work unasked, mostly every millisecond, at least every ten. A
 * caller with work of its own calls this in a loop with the time until that work is due.
 *
 * Nothing else ends the wait. With neither a job nor a time limit it goes on while there is no
 * work; a caller who wants to end it names the job of an open graph, and closes the graph. As no
 * call may be in progress, filch_runtime_destroy() and filch_runtime_abort() do not end it.
 *
 * @param runtime the runtime.
 * @param job     the wait ends when this job is complete; null: no job.
 * @param seconds time limit; negative: no limit; 0: as filch_runtime_poll() with 0.
 * @param worked  receives true if the call did work and a further call may find more, else false;
 *                may be null.
 * @return FILCH_OK (work was done, or the job is complete); FILCH_TIMEOUT (no work was done);
 *         FILCH_WRONG_STATE (as filch_runtime_poll(); or called from the callback of @p job);
 *         FILCH_INVALID_ARGUMENT (@p seconds is not a number); FILCH_WRONG_RUNTIME (the job);
 *         FILCH_INVALID_HANDLE; FILCH_FORKED.
 *
 * Thread safety: any thread. Blocking. Since 0.1.
 */
FILCH_API filch_status filch_runtime_poll_wait(filch_runtime *runtime, struct filch_job *job,
                                               double seconds, bool *worked);

/**
 * Copies the newest failure recorded by a call of the calling thread on the runtime, or, since the
 * runtime exists, with a null or wrong handle as first argument. Neither a success nor a failure
 * without details (status.h) erases the record: ask after a failed call, and compare error->status.
 * filch keeps the records of the 64 threads that failed last on a runtime.
 *
 * @param runtime the runtime.
 * @param error   receives the record; the caller sets error->size (::FILCH_ERROR_INIT).
 * @return FILCH_OK; FILCH_NOT_FOUND (no record kept); FILCH_INVALID_ARGUMENT (null @p error, or a
 *         size of 0); FILCH_INVALID_HANDLE; FILCH_FORKED.
 *
 * Thread safety: any thread. Blocking: a short lock. Since 0.1.
 */
FILCH_API filch_status filch_runtime_error(filch_runtime *runtime, filch_error *error);

/** Counts of a runtime's holdings; see filch_runtime_usage(). */
typedef struct filch_usage {
    size_t size;         /**< sizeof(filch_usage). */
    uint64_t host_bytes; /**< Bytes of filch's own structures, live now. */
    uint64_t
        task_bytes; /**< Part of host_bytes reserved for tasks (edges and arguments not counted). */
    uint64_t tasks_live;   /**< Tasks of existing graphs that are not retired for good. */
    uint64_t jobs_running; /**< Jobs submitted and not complete. */
} filch_usage;

/** Initializer of a ::filch_usage. */
#define FILCH_USAGE_INIT                \
    {                                   \
        sizeof(filch_usage), 0, 0, 0, 0 \
    }

/**
 * Counts the runtime's holdings. While work goes on the counts are recent, but not of a single
 * moment.
 *
 * @param runtime the runtime.
 * @param usage   receives the counts; the caller sets usage->size.
 * @return FILCH_OK; FILCH_INVALID_ARGUMENT (null @p usage, or too small a size);
 *         FILCH_INVALID_HANDLE; FILCH_FORKED.
 *
 * Thread safety: any thread. Blocking: a short lock. Since 0.1.
 */
FILCH_API filch_status filch_runtime_usage(filch_runtime *runtime, filch_usage *usage);

#ifdef __cplusplus
}
#endif

#endif
