/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file report.h
 * Time breakdown of a job: how the devices spent their time, against the shortest time in which the
 * devices could have done equal work. Time accounting is always on; a caller requests nothing in
 * advance.
 */
#ifndef FILCH_REPORT_H
#define FILCH_REPORT_H

#include <stdio.h>

#include "filch/graph.h"
#include "filch/job.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Breakdown of a device's time during a job, from the job's start (once earlier jobs let the job
 * start) to the job's completion; or the sum over the devices. Unit: nanoseconds, of virtual time
 * on a virtual clock.
 *
 * The eleven parts add up to wall_ns exactly. A device does a single thing at a time, as recorded
 * by the device's worker at every change of activity:
 *
 * - Working on the job: busy_ns, slow_ns, dispatch_ns, data_ns, spoiled_ns and preempted_ns. The
 *   sum is measured. The division of the sum is measured, too, where every work item was timed
 *   (chunks of batches; all items of simulated devices; all items of GPUs and tasks of more than 12
 *   us on the host while a trace records). Otherwise the division is an estimate. On host devices,
 * dispatch_ns is then the typical cost of a dispatch (measured between items from time to time)
 * times the number of items, and busy_ns and slow_ns take the rest. On GPUs, busy_ns and slow_ns
 * then include the predicted time of untimed items. estimated_ns bounds the error: busy_ns and
 * slow_ns together are too large by at most estimated_ns, and too small by at most dispatch_ns and
 * data_ns together. The best speed of the codelet on the device, as defined in filch_report,
 * separates busy_ns from slow_ns.
 * - Working on other jobs: other_ns. Work at an instant is charged to a single job: the job of the
 *   item that the device began or ended last. Items of several jobs in flight on a device at a time
 *   are not told apart further. Work by a task that waits for nested jobs belongs to the task's
 *   job; work of the device for the nested jobs meanwhile belongs to the nested jobs, and the
 *   device may also be idle.
 * - Idle: starved_ns, unshared_ns, held_ns and tail_ns. Idle time of a device counts for every job
 *   present at the time. Idle time includes the search for work, and a job's callback on the
 *   device's thread.
 *
 * Snapshots at a job's beginning and end read the workers while the workers go on. A snapshot takes
 * microseconds, and changes of activity meanwhile are placed with an error of as many microseconds.
 * On a virtual clock no time passes meanwhile. Under filch_runtime_poll(), time with no thread in
 * filch_runtime_poll() counts as the worker's last activity.
 */
typedef struct filch_losses {
    uint64_t wall_ns;      /**< The job's time; in the sum over the devices, the sum of the devices'
                                values. */
    uint64_t busy_ns;      /**< Time of items that ran without failure, up to the time needed at the
                                best speed ever seen on the device. */
    uint64_t dispatch_ns;  /**< Time between items: finding items, launching items, releasing
                                successors. */
    uint64_t data_ns;      /**< Time waiting for copies of items' inputs or outputs, or for
                                memory. On a device that runs items asynchronously, also the
                                rest of the time beside items and their predicted dispatch, if
                                data were copied there. */
    uint64_t spoiled_ns;   /**< Time of items that failed, or that were lost with the device; by
                                prediction where not timed. Also runs of a chunk that a second
                                device finished first (::FILCH_CODELET_RESTARTABLE), up to the
                                job's end. */
    uint64_t starved_ns;   /**< Idle: no ready work existed on any device that the idle device
                                could run. */
    uint64_t held_ns;      /**< Idle by steal throttling: work existed elsewhere, but by
                                prediction the work's owner would finish the work first. */
    uint64_t tail_ns;      /**< Idle from the taking of the job's last item to the job's end,
                                whatever the reason; 0 while the job runs. An untimed task on
                                the host counts as long as the last timed tasks on the device. */
    uint64_t other_ns;     /**< Working on other jobs. */
    uint64_t estimated_ns; /**< Part of busy_ns and slow_ns attributed to untimed items. */
    uint64_t refused_held; /**< Thefts refused during the job, of any job's items, because the
                                victim would finish first. Counted once per victim and poll. */
    uint64_t refused_empty;    /**< Polls of every victim that found nothing. */
    uint64_t refused_unable;   /**< Work existed, but the device cannot run the work, or has no
                                    room. Counted once per task or share of a job, and poll. */
    uint64_t refused_raced;    /**< Thefts lost to a faster competitor. */
    uint64_t refused_dear;     /**< Thefts refused only for the transfer cost of missing data, by
                                    the measured speed of the links (filch_device_measure_links()):
                                    otherwise the thief would finish first. Counted once per victim
                                    and poll. */
    uint64_t restarts;         /**< Backup runs begun on the device, of chunks in flight on a
                                    second device (::FILCH_CODELET_RESTARTABLE). */
    uint64_t restarts_won;     /**< Backup runs that finished first, and count. */
    uint64_t restarts_lost;    /**< Backup runs that finished second. The rest of restarts are
                                    undecided, or were too late to begin, as known at once. */
    uint64_t restarts_refused; /**< Chunks of restartable codelets, run on the device, without a
                                    possible backup run. Reasons: the batch reads tiles that the
                                    batch writes, has a callback mapping, or writes to a buffer
                                    in a GPU's memory; the runtime has a policy other than
                                    ::FILCH_POLICY_STEAL, or a single device; no memory for the
                                    outputs; too many backup runs in flight. For a graph: the
                                    tasks of restartable codelets, in filch_report.total only. */
    uint64_t divided; /**< Divisible tasks (filch_task_desc.items) begun on the device in pieces. */
    uint64_t pieces;  /**< Pieces of divisible tasks run on the device, whichever device began the
                           task. */
    uint64_t slow_ns; /**< Time of items that ran without failure beyond the time needed at
                           the best speed ever seen on the device: slower memory or caches
                           than usual, other threads on the core, a lower clock. "Work time
                           inflation" in the literature. A part of wall_ns like busy_ns; 0
                           where the best speed is unknown. */
    uint64_t unrated_ns;   /**< Part of busy_ns in items of unknown best speed, a fraction of which
                                may be lost time, too. Not a separate part of wall_ns. */
    uint64_t preempted_ns; /**< Time of work on the job without the core, while the system ran
                                other threads on the core: the worker's thread was awake, but the
                                thread's CPU clock stood still. Voluntary waits inside items are
                                excluded, by the ratio of voluntary and involuntary switches.
                                Only for host devices on filch's own threads; counted when the
                                worker has nothing more of the job for the moment, over stretches
                                of 0.1 ms and more. The delay of a late wake-up counts as idle. */
    uint64_t unshared_ns;  /**< Idle: no work reached the device, though other devices had ready
                                tasks queued that the device could run. An estimate: busy devices
                                check their queues at timed items, on the host every 64th item
                                after the first 16, or every 20 us if these are more items.
                                Excludes batches, whose items every idle device finds. */
} filch_losses;

/**
 * Comparison of a job with lower bounds; see filch_job_report().
 *
 * The best speed of a codelet on a device is the fastest speed ever seen there, in the runtime's
 * life or in the last run of at least 16 timed items recorded in the file of speeds
 * (filch_runtime_desc.speeds). The estimate is the least median of 16 timed items, a little more
 * where the items differ; neither a few wrong samples nor luck sets the speed. With fewer than 16
 * timed items, the first items decide, five at least. The model of an item of w units of work is a
 * fixed time plus w times a rate. A best speed exists for codelets that declare work
 * (filch_codelet_desc.work), eight codelets a job, and only for items of about as much work as the
 * measured items. Tasks without declared work may be of any length, and their best possible speed
 * is unknown: such tasks count as run at best speed, and unrated_ns reports their time. A codelet
 * with equal tasks should have a work function that returns 1. In a job that mixes codelets with
 * and without work functions, the timed items decide how a device's time is split between the two
 * kinds.
 *
 * Devices that did nothing for the job count in area_ns where their speed is known: their own best
 * speed, or the speed of a participating device of equal kind (model, cores, score). Devices
 * withdrawn or failed at the job's end do not count, nor devices excluded from the job's batch.
 * While the job runs, only participating devices and devices of equal kind count. A device that was
 * faster in the job than ever before counts with the job's speed.
 */
typedef struct filch_report {
    size_t size;             /**< sizeof(filch_report). */
    filch_status status;     /**< FILCH_NOT_READY while the job runs; then the job's result. */
    uint32_t device_count;   /**< Devices of the runtime. */
    uint32_t measured_count; /**< Devices that did work for the job. */
    uint32_t known_count;    /**< Devices that count in area_ns. */
    uint64_t wall_ns;        /**< Time from the job's start to completion, or to now. */
    uint64_t area_ns;        /**< Shortest time in which the devices could have done the job's
                                  work at their best speeds, if the work were divisible at will:
                                  never more than wall_ns. */
    uint64_t path_ns;        /**< Graph: longest path, with every task at the time last measured
                                  for similar work on the task's best device, or at the device's
                                  best speed, whichever is less; 0 where the caller passed no
                                  graph. A divisible task counts as run wholly by the best
                                  device. Batch: time of a grain of mean work on the fastest
                                  participating device. An estimate. */
    uint64_t bound_ns;       /**< Larger of area_ns and path_ns: the job cannot end sooner,
                                  unless divisible tasks of the longest path are divided. */
    double efficiency;       /**< bound_ns / wall_ns; 0 where nothing is known. Above 1 only as
                                  far as path_ns is wrong. */
    filch_losses total;      /**< Sum over the devices. */
} filch_report;

/** Initializer of a ::filch_report. */
#define FILCH_REPORT_INIT                                                             \
    {                                                                                 \
        sizeof(filch_report), FILCH_OK, 0, 0, 0, 0, 0, 0, 0, 0,                       \
        {                                                                             \
            0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 \
        }                                                                             \
    }

/**
 * Reports how the devices spent their time in a job, and how far the job was from the bounds.
 *
 * Figures of a complete job are final and equal in every call. Exception: path_ns uses the speeds
 * known at the time of the call. While the job runs the figures are recent; the parts still add up.
 *
 * @param job     the job of a graph or a batch.
 * @param graph   the closed graph that the job ran or runs, for path_ns; null: no path. The caller
 *                must not destroy the graph meanwhile, but may run the graph again.
 * @param report  receives the report; the caller sets report->size (::FILCH_REPORT_INIT).
 * @param devices receives one element a device, up to @p count; may be null when count is 0. A
 *                report->size from an older header also selects that header's element size.
 * @param count   elements of @p devices.
 * @return FILCH_OK; FILCH_INVALID_ARGUMENT (nulls, too small a size, or a graph that is not the
 *         job's); FILCH_WRONG_STATE (the job is a broadcast, and runs on no device; the job is a
 *         repetition; or the graph is
 *         open, and forgets tasks as tasks end); FILCH_OUT_OF_MEMORY (for the path: 8 bytes a task,
 *         20 where dependencies lead to earlier tasks); FILCH_INVALID_HANDLE; FILCH_FORKED. On
 *         failure @p report is unchanged.
 *
 * Thread safety: any thread. Without a graph the call does not block, and takes time in proportion
 * to the devices. With a graph the call takes the graph's lock, and time in proportion to the
 * graph's tasks and dependencies. Since 0.1.
 */
FILCH_API filch_status filch_job_report(filch_job *job, filch_graph *graph, filch_report *report,
                                        filch_losses *devices, uint32_t count);

/**
 * Writes a job's report as text: status and time, the lower bounds, a table of the parts of every
 * device's time in per cent, refused thefts, and in words what to change first. There is no advice
 * on a job without a work item run, nor on a running job before it has run four for each device of
 * the runtime.
 *
 * @param job   the job of a graph or a batch.
 * @param graph as for filch_job_report(); may be null.
 * @param file  an open stream of the caller's, e.g. stdout; the caller checks the stream's errors.
 * @return FILCH_OK; FILCH_INVALID_ARGUMENT (null @p file); otherwise as filch_job_report(). On
 *         failure nothing is written.
 *
 * Thread safety: any thread; the stream is locked call by call. Blocking: writes to the stream;
 * with a graph, as filch_job_report(). Since 0.1.
 */
FILCH_API filch_status filch_report_print(filch_job *job, filch_graph *graph, FILE *file);

/**
 * Writes a report of the recorded jobs as one HTML file for a browser: timeline of the devices,
 * breakdown of the time by device, thefts, copies between memories, critical path, codelets, and in
 * words what to change first. The page holds the data as JSON, and loads nothing else. The setting
 * FILCH_REPORT writes an equal file at the end of a runtime, and records from the start.
 *
 * The page has the events that a trace has (trace.h): start one with filch_trace_start(). Figures
 * of the newest jobs (at most 1,024) appear one by one; sums cover every job that ended while the
 * trace recorded. filch keeps the dependencies of graphs, also of destroyed ones, and forgets the
 * oldest: all of them take at most 32 bytes an event and device (FILCH_TRACE_EVENTS), a graph some
 * 140 bytes, and 4 for each task and dependency.
 *
 * filch treats the file as filch_trace_write() does.
 *
 * @param runtime the runtime.
 * @param path    the file, in a folder where the caller may make files.
 * @return FILCH_OK; FILCH_BUSY (a job runs); FILCH_IO (@p path is refused, or could not be written:
 *         the error names the path, and has errno in native_code); FILCH_WRONG_STATE (nothing was
 *         ever recorded); FILCH_INVALID_ARGUMENT (null @p path); FILCH_OUT_OF_MEMORY;
 *         FILCH_INVALID_HANDLE; FILCH_FORKED.
 *
 * Thread safety: any thread, with no submission in progress, and no graph being created, added to
 * or destroyed. Blocking: writes a file. Since 0.1.
 */
FILCH_API filch_status filch_report_write(filch_runtime *runtime, const char *path);

#ifdef __cplusplus
}
#endif

#endif
