/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file job.h
 * Jobs: running submissions of graphs and batches.
 *
 * Jobs that use a common handle, at least one of them writing it, run one after the other in the
 * order of their submission. (Open graphs: graph.h.) A task must not wait for a job that comes
 * after its own in this order; filch_job_wait() refuses where it can tell.
 */
#ifndef FILCH_JOB_H
#define FILCH_JOB_H

#include "filch/runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A job; made by filch_graph_submit(), filch_batch_submit(), filch_batch_resume() and
 * filch_data_broadcast(). */
typedef struct filch_job filch_job;

/** What happens to the rest of a job when a task fails. */
typedef enum filch_on_failure {
    FILCH_FAILURE_SKIP = 0,  /**< Dependants are skipped, independent work finishes. */
    FILCH_FAILURE_CANCEL = 1 /**< Nothing more is started. */
} filch_on_failure;

/**
 * Called once when a job is complete, before any wait on the job returns.
 *
 * Runs on the thread that finishes the job: a worker's, or a host's inside filch_poll() or a wait
 * that runs the workers; for a job without tasks or items inside its submission, and for an open
 * graph whose tasks have all run inside filch_graph_close(). No filch lock is held. May submit,
 * also the same graph again; must not wait for this job or destroy its graph, and must not block,
 * since it holds up a device.
 *
 * @param job    the job. Good for any call but a wait during the callback, also where the
 *               submission kept no handle; only a handle that was kept may be released.
 * @param status the job's result: FILCH_OK, FILCH_TASK_FAILED or FILCH_CANCELLED.
 * @param user   filch_submit.user.
 */
typedef void (*filch_complete_fn)(filch_job *job, filch_status status, void *user);

/**
 * How work is submitted; see ::FILCH_SUBMIT_INIT.
 *
 * The host's CUDA events (CUevent or cudaEvent_t, in a runtime that has a GPU):
 *
 * cuda_waits. The job starts when all of them are complete. As with a stream that waits for an
 * event, what counts is the record that was the event's last at the submission or, if the host
 * records it anew meanwhile, that one; an event that was never recorded counts as complete, so
 * record it first. Events may be of any GPU and context of the process, and must exist until the
 * job has started. No thread blocks and no stream waits: a worker asks the driver, at once and then
 * after an eighth of the time waited, at least every 2 ms. Later jobs that use a common handle wait
 * behind this one. A job that is cancelled waits no more. If the driver says that an event failed,
 * the job fails with what it says, and runs nothing. Not for open graphs.
 *
 * cuda_signal. filch records the event when the job has ended, before the callback is called. A
 * stream that is made to wait for an event waits for what was recorded before, so it is of use from
 * the callback on, or after filch_job_poll() or filch_job_wait() said that the job is complete:
 * then to streams, to other libraries, and for the times between events. (A record cannot be made
 * in advance: what the job puts on the device is known only as it runs.) It is recorded once at the
 * submission, too, to see that it can be. The event must be of the primary context of
 * cuda_signal_device, or of filch's private one there, and must exist until the callback returns.
 */
typedef struct filch_submit {
    size_t size;                   /**< sizeof(filch_submit). */
    filch_complete_fn on_complete; /**< May be null. */
    void *user;                    /**< Handed to on_complete. */
    const char *label;             /**< Appears in errors; copied, cut at 63 bytes. */
    filch_on_failure on_failure;   /**< What a failure does to the rest. */
    uint32_t cuda_wait_count;      /**< Elements of cuda_waits; at most 1,024. */
    void *const *cuda_waits;       /**< Events that the job waits for; copied. */
    void *cuda_signal;             /**< Event to record when the job has ended; may be null. */
    uint32_t cuda_signal_device;   /**< Index + 1 of the device that cuda_signal is of; 0: the first
                                        GPU. */
    uint32_t reserved;             /**< 0. */
} filch_submit;

/** Initializer of a ::filch_submit. */
#define FILCH_SUBMIT_INIT                                                               \
    {                                                                                   \
        sizeof(filch_submit), NULL, NULL, NULL, FILCH_FAILURE_SKIP, 0, NULL, NULL, 0, 0 \
    }

/**
 * What one device did for a job.
 *
 * Bytes are those of copies put on the device's own copy lanes on behalf of the job's tiles, also
 * by other devices that wanted what it had; of slices of one GPU, some may be counted at another
 * slice. They are 0 for devices of the host's memory, and what filch_data_acquire() brings home is
 * no job's.
 */
typedef struct filch_device_stats {
    uint64_t tiles;      /**< Tiles run: tasks, pieces of divisible ones, chunks of batches. */
    uint64_t stolen_in;  /**< Tiles (tasks; grains of a batch) it took from others. */
    uint64_t stolen_out; /**< Tiles others took from it. */
    uint64_t items;      /**< Batch items run. */
    double work;         /**< Declared work done, where items of divisible tasks whose codelet
                              declares none count; the number of tiles where there is neither. */
    double busy_s;       /**< Seconds spent on the job's tiles, dispatch included; of a task that
                              waits for other work, those beside the wait. */
    double idle_s;       /**< The rest of the job's time; see report.h for what it was. */
    double speed;        /**< work / busy_s; 0 before anything ran. */
    uint64_t bytes_in;   /**< Copied from the host's memory to the device's. */
    uint64_t bytes_out;  /**< Copied from the device's memory to the host's. */
    uint64_t bytes_peer; /**< Copied from another device's memory to the device's, without a stop in
                              the host's; also what only stops here on its way to a third's. */
    uint64_t evicted;    /**< Blocks of tiles, of any job's handles, that had to leave the device's
                              memory to make room. */
    uint64_t bytes_evicted; /**< Copied home for that, where no other memory had what was in them;
                                 counted above, too. */
    /** Where all devices are cores with threads of their own, under ::FILCH_POLICY_STEAL: tasks
     * that ran on it although another core had last written the largest tile that they write. Else
     * 0. */
    uint64_t moved;
} filch_device_stats;

/** State and totals of a job; see filch_job_stats(). */
typedef struct filch_job_info {
    size_t size;           /**< sizeof(filch_job_info). */
    filch_status status;   /**< FILCH_NOT_READY while it runs; then its result. */
    uint32_t device_count; /**< Devices of the runtime. */
    uint64_t total;        /**< Tasks, or items of a batch that are to run; of an open graph: so
                                far. */
    uint64_t done;         /**< Of these, run to success. */
    uint64_t failed;       /**< Of these, failed. */
    uint64_t skipped;      /**< Of these, not run because of a failure or a cancellation. */
    double seconds;        /**< From its start (when earlier jobs had let it) to completion, or to
                                now; virtual seconds on a virtual clock; 0 before the start. */
    uint64_t bytes;        /**< Copied between memories, as its devices count them together. */
    uint64_t evicted;      /**< Evictions that its devices count together. */
    uint64_t moved;        /**< Tasks away from their data: filch_device_stats.moved together. */
} filch_job_info;

/**
 * Waits for a job to complete.
 *
 * From inside a task it runs other ready work meanwhile, of any job, on the task's own stack. In
 * poll mode the caller runs the workers. On a virtual clock the caller runs the simulation.
 *
 * @param job     the job.
 * @param seconds time limit, on a virtual clock in virtual seconds; negative: none.
 * @return the job's result: FILCH_OK; FILCH_TASK_FAILED (details: filch_job_error());
 *         FILCH_CANCELLED (something was left out, and nothing failed). Or: FILCH_TIMEOUT (the job
 *         goes on; also without a limit, on a virtual clock, when nothing will happen any more
 *         before another call of the host's); FILCH_WRONG_STATE (the job contains the calling task,
 *         or cannot start before the caller's job has ended, or is not complete and the caller is
 *         a callback or a simulated device's task);
 *         FILCH_OUT_OF_MEMORY (inside a task); FILCH_INVALID_ARGUMENT (@p seconds is not a number);
 *         FILCH_INVALID_HANDLE; FILCH_FORKED.
 *
 * Thread safety: any thread. Blocking. Since 0.1.
 */
FILCH_API filch_status filch_job_wait(filch_job *job, double seconds);

/**
 * Result of a job without waiting. Drives nothing: see filch_poll().
 *
 * @param job the job.
 * @return FILCH_NOT_READY until the job is complete and its callback has returned; then its result
 *         as filch_job_wait() gives it; FILCH_INVALID_HANDLE; FILCH_FORKED.
 *
 * Thread safety: any thread; wait-free. Since 0.1.
 */
FILCH_API filch_status filch_job_poll(filch_job *job);

/**
 * Asks a job to start nothing more. Tiles in flight finish, and a tile that a worker is just
 * starting may still run; the job completes with FILCH_CANCELLED if anything was left out. It no
 * longer waits for handles that others use, nor do later jobs wait for it there; so a job that has
 * not started completes as soon as the devices come to it. Handles that it names can be destroyed
 * once it is complete. A job that is already complete is left as it is. An open graph must still be
 * closed.
 *
 * @param job the job.
 * @return FILCH_OK; FILCH_INVALID_HANDLE; FILCH_FORKED.
 *
 * Thread safety: any thread, also from tasks and callbacks. Blocking: short locks. The callback of
 * a job without tasks may run in this call. Since 0.1.
 */
FILCH_API filch_status filch_job_cancel(filch_job *job);

/**
 * Totals of a job, and what each device did for it.
 *
 * May be called while the job runs; counts are then recent, but not of one moment.
 *
 * @param job     the job.
 * @param info    receives the totals; its size must be set.
 * @param devices receives one element a device, up to @p count; may be null when count is 0. An
 *                info->size from an older header says that the elements are that header's, too.
 * @param count   elements of @p devices.
 * @return FILCH_OK; FILCH_INVALID_ARGUMENT (nulls, or a size that is too small);
 *         FILCH_INVALID_HANDLE; FILCH_FORKED.
 *
 * Thread safety: any thread; wait-free. Since 0.1.
 */
FILCH_API filch_status filch_job_stats(filch_job *job, filch_job_info *info,
                                       filch_device_stats *devices, uint32_t count);

/**
 * The first failure of a job: the task's label (else its codelet's name), its own code in
 * native_code, its device. The status is FILCH_TASK_FAILED where a function of the task's returned
 * that code; else it says why the device could not do it (FILCH_DEVICE_LOST and others), and call
 * which call of the driver's failed.
 *
 * @param job   the job; it need not be complete.
 * @param error receives the record; its size must be set (::FILCH_ERROR_INIT).
 * @return FILCH_OK; FILCH_NOT_FOUND (no failure so far); FILCH_INVALID_ARGUMENT (null @p error, or
 *         its size is 0); FILCH_INVALID_HANDLE; FILCH_FORKED.
 *
 * Thread safety: any thread; wait-free. Since 0.1.
 */
FILCH_API filch_status filch_job_error(filch_job *job, filch_error *error);

/** A range of batch items with the same fate: a chunk that failed or was left out, or what lies
 * between such. */
typedef struct filch_item_range {
    uint64_t lo;         /**< First item. */
    uint64_t hi;         /**< One past the last. */
    filch_status status; /**< FILCH_OK, FILCH_TASK_FAILED, FILCH_SKIPPED, or why the device could
                              not run it (FILCH_DEVICE_LOST and others). */
    int32_t code;        /**< The body's own code, for FILCH_TASK_FAILED; 0 for FILCH_OK and
                              FILCH_SKIPPED; else the driver's. */
} filch_item_range;

/**
 * Status of every item of a complete batch job, as ranges in ascending order that cover 0..n. Where
 * the job ran what another had left (filch_batch_resume()), the items that it was not to run are
 * FILCH_OK.
 *
 * @param job      the job.
 * @param ranges   receives up to @p capacity ranges; may be null when capacity is 0.
 * @param capacity elements of @p ranges.
 * @param count    receives how many there are in all.
 * @return FILCH_OK; FILCH_NOT_READY (also of a job that is no batch); FILCH_WRONG_STATE (complete,
 *         and not a batch); FILCH_OUT_OF_MEMORY (there was none to note a range while the job
 *         ran); FILCH_INVALID_ARGUMENT (nulls); FILCH_INVALID_HANDLE; FILCH_FORKED.
 *
 * Thread safety: any thread. Blocking: a short lock. Since 0.1.
 */
FILCH_API filch_status filch_job_items(filch_job *job, filch_item_range *ranges, size_t capacity,
                                       size_t *count);

/**
 * Gives a job handle back. A running job goes on to its end without it.
 *
 * @param job the job.
 * @return FILCH_OK; FILCH_INVALID_HANDLE; FILCH_FORKED.
 *
 * Thread safety: any thread, once, with no other call on the job in progress. Blocking: short
 * locks. Since 0.1.
 */
FILCH_API filch_status filch_job_release(filch_job *job);

#ifdef __cplusplus
}
#endif

#endif
