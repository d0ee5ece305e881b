/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file job.h
 * Jobs: running submissions of graphs, batches and broadcasts.
 *
 * Jobs using a common handle, written by at least one of the jobs, run one after another in the
 * order of submission. (Open graphs: graph.h.) A task must not wait for a job positioned after its
 * own job in the order; filch_job_wait() refuses the wait where it can tell.
 */
#ifndef FILCH_JOB_H
#define FILCH_JOB_H

#include "filch/runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * A job made by filch_graph_submit(), filch_graph_repeat(), filch_batch_submit(),
 * filch_job_resume() or filch_data_broadcast().
 */
typedef struct filch_job filch_job;

/** Treatment of the rest of a job after a task failed. */
typedef enum filch_on_failure {
    FILCH_FAILURE_SKIP = 0,  /**< Dependants are skipped, independent work finishes. */
    FILCH_FAILURE_CANCEL = 1 /**< Starts nothing more of the job. */
} filch_on_failure;

/**
 * Called once when a job is complete, before any wait on the job returns.
 *
 * Runs on the thread finishing the job: a worker's thread, or a host thread inside
 * filch_runtime_poll() or inside a wait driving the workers. The callback of a job without tasks or
 * items runs inside the submission; the callback of a run cancelled behind another run of its graph
 * inside filch_job_cancel(), filch_runtime_abort() or the submission, or after the callback that
 * called filch_job_cancel(); the callback of an open graph
 * whose tasks have all run runs inside filch_graph_close(). No filch lock is held. The callback may
 * submit work, also the same graph again. It must not wait for the job or destroy the job's graph,
 * and must not block, since blocking holds up a device.
 *
 * @param job    the job. Valid for any call but a wait during the callback, also where the
 *               submission kept no handle; only a kept handle may be released.
 * @param status result of the job: FILCH_OK, FILCH_TASK_FAILED or FILCH_CANCELLED.
 * @param user   value of filch_submit_desc.user.
 */
typedef void (*filch_complete_fn)(filch_job *job, filch_status status, void *user);

/**
 * Submission parameters; see ::FILCH_SUBMIT_DESC_INIT.
 *
 * CUDA events of the host are CUevent or cudaEvent_t, in a runtime with a GPU: the job starts when
 * every event of cuda_waits is complete, and filch records cuda_signal when the job has ended.
 * Events must exist until the job has started, or its callback has returned. Whole contract:
 * docs/concepts.md, "Events of CUDA".
 */
typedef struct filch_submit_desc {
    size_t size;                   /**< sizeof(filch_submit_desc). */
    filch_complete_fn on_complete; /**< Completion callback; may be null. */
    void *user;                    /**< Handed to on_complete. */
    const char *label;             /**< Appears in errors; copied, cut at 63 bytes. */
    filch_on_failure on_failure;   /**< Treatment of the rest of the job after a failure. */
    uint32_t cuda_wait_count;      /**< Elements of cuda_waits; at most 1,024. */
    void *const *cuda_waits;       /**< Events awaited by the job; copied. */
    void *cuda_signal;             /**< Event to record when the job has ended; may be null. */
    uint32_t cuda_signal_device;   /**< Index + 1 of the device of cuda_signal; 0: the first GPU. */
    uint32_t reserved;             /**< 0. */
} filch_submit_desc;

/** Initializer of a ::filch_submit_desc. */
#define FILCH_SUBMIT_DESC_INIT                                                               \
    {                                                                                        \
        sizeof(filch_submit_desc), NULL, NULL, NULL, FILCH_FAILURE_SKIP, 0, NULL, NULL, 0, 0 \
    }

/**
 * Work of a device for a job.
 *
 * Byte counts cover copies on the device's own copy lanes for tiles of the job, including copies
 * for other devices reading the device's memory. Copies of a slice of a GPU may be counted at
 * another slice. Byte counts are 0 for devices using the host's memory. Copies to the host by
 * filch_data_acquire() belong to no job.
 */
typedef struct filch_device_stats {
    uint64_t tiles;         /**< Work items run: tasks, pieces of divisible tasks, chunks of
                                 batches. */
    uint64_t stolen_in;     /**< Work items (tasks; grains of a batch) stolen from other devices. */
    uint64_t stolen_out;    /**< Work items stolen by other devices. */
    uint64_t items;         /**< Batch items run. */
    double work;            /**< Declared work done. Divisible tasks of a codelet without declared
                                 work count their items. Without declared work or such items: the
                                 number of work items. */
    double busy_s;          /**< Seconds spent on the job's work items, dispatch included; a task
                                 waiting for other work counts its time outside the wait, and a
                                 pending task (pending.h) the time of its function. */
    double idle_s;          /**< Remaining seconds of the job's time; report.h breaks the time
                                 down. */
    double speed;           /**< work / busy_s; 0 before anything ran. */
    uint64_t bytes_in;      /**< Bytes copied from the host's memory to the device's. */
    uint64_t bytes_out;     /**< Bytes copied from the device's memory to the host's. */
    uint64_t bytes_peer;    /**< Bytes copied to the device's memory from another device's, without
                                 a stop in the host's; includes bytes relayed through the device to
                                 a third. */
    uint64_t evicted;       /**< Blocks of tiles, of any job's handles, evicted from the device's
                                 memory to make room. */
    uint64_t bytes_evicted; /**< Bytes written back before evictions, where no other memory had the
                                 contents; also counted in bytes_out. */
    /**
     * Tasks run on the core although another core had last written the largest tile written by the
     * task. Counted where every device is a core with a thread of its own, under
     * ::FILCH_POLICY_STEAL; else 0.
     */
    uint64_t moved;
    uint64_t pending; /**< Tasks whose function, called on the device, returned FILCH_PENDING. */
} filch_device_stats;

/** State and totals of a job; see filch_job_stats(). */
typedef struct filch_job_info {
    size_t size;           /**< sizeof(filch_job_info). */
    filch_status status;   /**< FILCH_NOT_READY while the job runs; then the result of the job. */
    uint32_t device_count; /**< Devices of the runtime. */
    uint64_t total;        /**< Tasks, or items of a batch to be run; open graphs: tasks added so
                                far. */
    uint64_t done;         /**< Tasks or items run to success. */
    uint64_t failed;       /**< Tasks or items that failed. */
    uint64_t skipped;      /**< Tasks or items not run, and divisible tasks not run to their end,
                                because of a failure or a cancellation, or because a task finished
                                the job (filch_call_finish()). */
    double seconds;        /**< Time from the job's start (released by earlier jobs) to completion,
                                or to now; virtual seconds on a virtual clock; 0 before the
                                start. */
    uint64_t bytes;        /**< Bytes copied between memories: sum of the devices' counts. */
    uint64_t evicted;      /**< Evictions: sum of the devices' counts. */
    uint64_t moved;        /**< Tasks run away from their data: sum of filch_device_stats.moved. */
    uint64_t pending; /**< Tasks pending now (pending.h): the function has returned FILCH_PENDING,
                           and the task has not retired. */
    uint64_t runs;    /**< Repetitions (repeat.h): runs that have ended; the other totals but total
                           are of those runs. 0 for other jobs. */
} filch_job_info;

/** Initializer of a ::filch_job_info. */
#define FILCH_JOB_INFO_INIT                                                        \
    {                                                                              \
        sizeof(filch_job_info), FILCH_NOT_READY, 0, 0, 0, 0, 0, 0.0, 0, 0, 0, 0, 0 \
    }

/**
 * Waits for a job to complete.
 *
 * Inside a task the call runs other ready work meanwhile, of any job, on the task's own stack. In
 * poll mode the caller runs the workers. On a virtual clock the caller runs the simulation.
 *
 * @param job     the job.
 * @param seconds time limit, on a virtual clock in virtual seconds; negative: no limit.
 * @return the job's result: FILCH_OK; FILCH_TASK_FAILED (details: filch_job_error());
 *         FILCH_CANCELLED (filch_job_cancel() left work out, and nothing failed). Or: FILCH_TIMEOUT
 * (the job goes on; also without a limit, on a virtual clock, when nothing can happen before
 * another call of the host); FILCH_WRONG_STATE (the job contains the calling task, or cannot start
 *         before the caller's job has ended, or is not complete and the caller is a callback or a
 *         simulated device's task); FILCH_OUT_OF_MEMORY (inside a task); FILCH_INVALID_ARGUMENT (@p
 *         seconds is not a number); FILCH_INVALID_HANDLE; FILCH_FORKED.
 *
 * Thread safety: any thread. Blocking. Since 0.1.
 */
FILCH_API filch_status filch_job_wait(filch_job *job, double seconds);

/**
 * Returns the result of a job without waiting. Drives no worker: see filch_runtime_poll().
 *
 * @param job the job.
 * @return FILCH_NOT_READY until the job is complete and its callback has returned; then the result
 *         as from filch_job_wait(); FILCH_INVALID_HANDLE; FILCH_FORKED.
 *
 * Thread safety: any thread; wait-free. Since 0.1.
 */
FILCH_API filch_status filch_job_status(filch_job *job);

/**
 * Asks a job to start nothing more. Work items in flight finish, pending tasks (pending.h) wait for
 * their ends, and a work item just being started
 * by a worker may still run. The job completes with FILCH_CANCELLED if work was left out. The job
 * no longer waits for handles used by other jobs, and later jobs no longer wait for the job at
 * handles not yet in use; a job not yet started completes as soon as devices handle the
 * cancellation, and a run behind another run of its graph in the call, or after the callback that
 * makes the call, unless it waits for an event or its submission goes on. Handles named by the job
 * can be destroyed once the job is complete. A complete job is left as it is. An open graph must
 * still be closed.
 *
 * @param job the job.
 * @return FILCH_OK; FILCH_INVALID_HANDLE; FILCH_FORKED.
 *
 * Thread safety: any thread, also from tasks and callbacks. Blocking: short locks. The callback of
 * a job without tasks, or of a run behind another run of its graph, may run in the call. Since
 * 0.1.
 */
FILCH_API filch_status filch_job_cancel(filch_job *job);

/**
 * Tells totals of a job, and the work of every device for the job.
 *
 * May be called while the job runs; counts are then recent, but not a consistent snapshot.
 *
 * @param job     the job.
 * @param info    receives the totals; its size must be set.
 * @param devices receives an element a device, up to @p count; may be null when count is 0. An
 *                info->size from an older header implies elements of the older header, too.
 * @param count   elements of @p devices.
 * @return FILCH_OK; FILCH_INVALID_ARGUMENT (nulls, or a size too small); FILCH_INVALID_HANDLE;
 *         FILCH_FORKED.
 *
 * Thread safety: any thread; wait-free. Since 0.1.
 */
FILCH_API filch_status filch_job_stats(filch_job *job, filch_job_info *info,
                                       filch_device_stats *devices, uint32_t count);

/**
 * Tells the first failure of a job: label of the task (else name of its codelet), own code of the
 * task in native_code, and device. The status is FILCH_TASK_FAILED where a function of the task
 * returned the code. Otherwise the status gives the device's reason (FILCH_DEVICE_LOST and others),
 * and call names the failed call of the driver. Of a complete job with the result FILCH_CANCELLED
 * (not in its callback, which comes before): this status and the job's label.
 *
 * @param job   the job; it need not be complete.
 * @param error receives the record; its size must be set (::FILCH_ERROR_INIT).
 * @return FILCH_OK; FILCH_NOT_FOUND (no failure and no such result so far); FILCH_INVALID_ARGUMENT
 *         (null @p error, or its size is 0); FILCH_INVALID_HANDLE; FILCH_FORKED.
 *
 * Thread safety: any thread; wait-free. Since 0.1.
 */
FILCH_API filch_status filch_job_error(filch_job *job, filch_error *error);

/**
 * A range of batch items with a common fate: a chunk that failed or was left out, or the finished
 * items between two such chunks.
 */
typedef struct filch_item_range {
    uint64_t lo;         /**< First item. */
    uint64_t hi;         /**< One past the last item. */
    filch_status status; /**< FILCH_OK, FILCH_TASK_FAILED, FILCH_SKIPPED, or the device's reason
                              (FILCH_DEVICE_LOST and others). */
    int32_t code;        /**< The body's own code, for FILCH_TASK_FAILED; 0 for FILCH_OK and
                              FILCH_SKIPPED; else the driver's. */
} filch_item_range;

/**
 * Tells the status of every item of a complete batch job, as ranges in ascending order covering
 * 0..n. If the job ran the rest of another job (filch_job_resume()), items outside the rest are
 * FILCH_OK.
 *
 * @param job      the job.
 * @param ranges   receives up to @p capacity ranges; may be null when capacity is 0.
 * @param capacity elements of @p ranges.
 * @param count    receives the total number of ranges.
 * @return FILCH_OK; FILCH_NOT_READY (also for a running job other than a batch); FILCH_WRONG_STATE
 *         (complete, and not a batch); FILCH_OUT_OF_MEMORY (memory for noting a range was missing
 *         while the job ran); FILCH_INVALID_ARGUMENT (nulls); FILCH_INVALID_HANDLE; FILCH_FORKED.
 *
 * Thread safety: any thread. Blocking: a short lock. Since 0.1.
 */
FILCH_API filch_status filch_job_items(filch_job *job, filch_item_range *ranges, size_t capacity,
                                       size_t *count);

/**
 * Gives a job handle back. A running job goes on to its end without the handle.
 *
 * A handle is what a submission wrote to its @p job; it is released once. The job given to a
 * callback is no handle of its own: where the submission kept none (a null @p job, and the calls
 * filch_graph_run() and filch_batch_run()), nobody may release the job, and filch refuses it.
 *
 * @param job the job.
 * @return FILCH_OK; FILCH_WRONG_STATE (the submission kept no handle, or the handle was released
 *         before and the job has not ended: nothing changes; behind the end of the job a second
 *         release is FILCH_WRONG_STATE or FILCH_INVALID_HANDLE until a later job has the memory,
 *         and undefined from then on); FILCH_INVALID_HANDLE; FILCH_FORKED.
 *
 * Thread safety: any thread, once, with no concurrent call on the job. Blocking: short locks. Since
 * 0.1.
 */
FILCH_API filch_status filch_job_release(filch_job *job);

#ifdef __cplusplus
}
#endif

#endif
