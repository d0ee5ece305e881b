/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file report.h
 * The loss report of a job: where the time of the devices went, against the shortest time in which
 * they could have done the same work. It is always on; nothing has to be asked for in advance.
 */
#ifndef FILCH_REPORT_H
#define FILCH_REPORT_H

#include "filch/graph.h"
#include "filch/job.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Where one device's time went while a job was there, from its start (when earlier jobs had let it)
 * to its completion; or all devices' times together. Nanoseconds; of virtual time on a virtual
 * clock.
 *
 * The eight parts add up to wall_ns exactly. A device is at one thing at a time, as its worker saw
 * it when it turned from one to the other:
 *
 * - at work on this job: busy_ns, dispatch_ns, data_ns and spoiled_ns. Their sum is measured. How
 *   it is divided is measured, too, where all tiles were timed (chunks of batches; all tiles of
 *   simulated devices, and while a trace records). Else it is an estimate: on the host's devices
 *   dispatch_ns is the typical cost of a dispatch, measured between tiles now and then, for each
 *   tile, and busy_ns what is left; on others busy_ns adds what tiles were predicted to take that
 *   were not timed. estimated_ns bounds the error: busy_ns is too large by no more than that, and
 *   too small by no more than dispatch_ns and data_ns together.
 * - at work on other jobs: other_ns. Each instant of a device is charged as work to one job, that
 *   whose tile it began or ended last; where tiles of several jobs are in flight on it at a time,
 *   no more is known. What a task does that waits for nested jobs is its own job's, what the device
 *   does for these meanwhile is theirs, and it may be idle, too.
 * - idle: starved_ns, held_ns and tail_ns. What a device is idle counts for every job that is there
 *   at the time. Looking for work is part of it, as is what a job's callback does on its thread.
 *
 * At its beginning and at its end a job is looked at while the workers go on: what they turn to in
 * the microseconds that this takes may be told from what they were at before by no better than
 * that. On a virtual clock no time passes meanwhile. Where filch_poll() drives, the time in which
 * no thread does counts for what the worker was last at.
 */
typedef struct filch_losses {
    uint64_t wall_ns;       /**< The job's time; of all devices: that for each. */
    uint64_t busy_ns;       /**< Tiles ran, and did not fail. */
    uint64_t dispatch_ns;   /**< Between tiles: finding them, launching them, releasing others. */
    uint64_t data_ns;       /**< Waiting until what tiles need, or made, had been copied, or until
                                 there was memory for it. On a device that runs tiles by itself also
                                 what is left of its time beside tiles and their predicted dispatch,
                                 where anything was copied there. */
    uint64_t spoiled_ns;    /**< Tiles that failed, or that were lost with the device; as long as
                                 these were predicted to take where they were not timed. And runs of
                                 a chunk that another device ran, too, and had done first
                                 (::FILCH_CODELET_RESTARTABLE), up to the job's end. */
    uint64_t starved_ns;    /**< Idle: nothing was ready that it could run or take. */
    uint64_t held_ns;       /**< Idle by hold-off: there was work elsewhere, but who had it would be
                                 done with it first, as predicted. */
    uint64_t tail_ns;       /**< Idle after the job's last tile had been taken, whatever the reason,
                                 to its end; 0 while it runs. A task of the host's that was not
                                 timed is taken to have lasted as long as the last ones there. */
    uint64_t other_ns;      /**< At work on other jobs. */
    uint64_t estimated_ns;  /**< Of busy_ns, that of tiles that were not timed. */
    uint64_t refused_held;  /**< Thefts refused while the job was there, of any job's tiles: the
                                 victim would be done first. Once a victim and look. */
    uint64_t refused_empty; /**< Looks at all others that found nothing at all. */
    uint64_t refused_unable; /**< There was something, but the device cannot run it, or has no room
                                  for it. Once a share of a job, or a task, and look. */
    uint64_t refused_raced;  /**< Somebody else was quicker. */
    uint64_t refused_dear;   /**< The victim would be done first only because of the time that it
                                  takes to bring what the work needs, by the measured speed of the
                                  links (filch_links_measure()). Once a victim and look. */
    uint64_t restarts;       /**< Chunks that were in flight elsewhere and were begun here, too
                                  (::FILCH_CODELET_RESTARTABLE). */
    uint64_t restarts_won;   /**< Of these, those that were done here first, and count. */
    uint64_t restarts_lost;  /**< Those that were not. The rest are not decided yet, or
                                  were too late to begin, which is known at once. */
    uint64_t restarts_refused; /**< Chunks of such a codelet, run here, that no other device could
                                    have begun: their batch reads what it writes, has a callback
                                    mapping, or writes to a buffer in a GPU's memory; or the runtime
                                    has another policy than ::FILCH_POLICY_STEAL, or one device; or
                                    there was no memory for what they write, or too many were in
                                    flight. Of a graph its tasks of such codelets, in
                                    filch_report.total alone. */
    uint64_t
        divided;     /**< Divisible tasks (filch_task_desc.items) that were begun here in pieces. */
    uint64_t pieces; /**< Pieces of such that were run here, of whoever's. */
} filch_losses;

/** A job against its bounds; see filch_job_report(). */
typedef struct filch_report {
    size_t size;             /**< sizeof(filch_report). */
    filch_status status;     /**< FILCH_NOT_READY while the job runs; then its result. */
    uint32_t device_count;   /**< Devices of the runtime. */
    uint32_t measured_count; /**< Of these, those that did work for the job. */
    uint32_t reserved;       /**< 0. */
    uint64_t wall_ns;        /**< From the job's start to its completion, or to now. */
    uint64_t area_ns;        /**< The work done over the sum of the devices' speeds, each its work
                                  over its busy_ns: never more than wall_ns. Devices that did
                                  nothing for the job do not count, as their speed is not known.
                                  Where a codelet declares no work each tile is 1, and each item of
                                  a divisible task, so of unlike tiles declare it. */
    uint64_t path_ns;        /**< Of a graph, the longest path, each task as long as work like it
                                  was last measured to take on the device that is best at it; 0
                                  where that was not asked for. A divisible task counts as if that
                                  device ran all of it. Of a batch, a grain of mean work on the
                                  fastest device that took part. An estimate. */
    uint64_t bound_ns;       /**< The larger of the two: the job cannot end sooner, unless divisible
                                  tasks of its longest path are divided. */
    double efficiency;       /**< bound_ns / wall_ns; 0 where nothing is known. Above 1 only as far
                                  as path_ns is wrong. */
    filch_losses total;      /**< Of all devices together. */
} filch_report;

/** Initializer of a ::filch_report. */
#define FILCH_REPORT_INIT                                                 \
    {                                                                     \
        sizeof(filch_report), FILCH_OK, 0, 0, 0, 0, 0, 0, 0, 0,           \
        {                                                                 \
            0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 \
        }                                                                 \
    }

/**
 * Where the devices' time went in a job, and how far it was from what they could have done.
 *
 * Of a complete job the figures are final, and the same in every call, but for path_ns, for which
 * the speeds count that are known when it is asked for. While the job runs they are recent; the
 * parts add up then, too.
 *
 * @param job     the job of a graph or a batch.
 * @param graph   the closed graph that the job ran or runs, for path_ns; null: without. It must not
 *                be destroyed meanwhile, but may run again.
 * @param report  receives the report; its size must be set (::FILCH_REPORT_INIT).
 * @param devices receives one element a device, up to @p count; may be null when count is 0. A
 *                report->size from an older header says that the elements are that header's, too.
 * @param count   elements of @p devices.
 * @return FILCH_OK; FILCH_INVALID_ARGUMENT (nulls, a size that is too small, or another graph than
 *         the job's); FILCH_WRONG_STATE (the job is a broadcast, which runs on no device; or the
 *         graph is an open one, whose tasks are forgotten as they end); FILCH_OUT_OF_MEMORY (for
 *         the path: 8 bytes a task, 20 where dependencies lead to earlier tasks);
 *         FILCH_INVALID_HANDLE; FILCH_FORKED. On failure @p report is as it was.
 *
 * Thread safety: any thread. Without a graph it does not block, and takes a time that grows with
 * the devices; with one, it takes the graph's lock, and a time that grows with its tasks and
 * dependencies. Since 0.1.
 */
FILCH_API filch_status filch_job_report(filch_job *job, filch_graph *graph, filch_report *report,
                                        filch_losses *devices, uint32_t count);

#ifdef __cplusplus
}
#endif

#endif
