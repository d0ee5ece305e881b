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
 * The eleven parts add up to wall_ns exactly. A device is at one thing at a time, as its worker saw
 * it when it turned from one to the other:
 *
 * - at work on this job: busy_ns, slow_ns, dispatch_ns, data_ns, spoiled_ns and preempted_ns. Their
 *   sum is measured. How
 *   it is divided is measured, too, where all tiles were timed (chunks of batches; all tiles of
 *   simulated devices, and while a trace records). Else it is an estimate: on the host's devices
 *   dispatch_ns is the typical cost of a dispatch, measured between tiles now and then, for each
 *   tile, and busy_ns and slow_ns what is left; on others these add what tiles were predicted to
 * take that were not timed. estimated_ns bounds the error: busy_ns and slow_ns together are too
 * large by no more than that, and too small by no more than dispatch_ns and data_ns together.
 * Between busy_ns and slow_ns stands the best speed of the codelet on the device, as filch_report
 * has it.
 * - at work on other jobs: other_ns. Each instant of a device is charged as work to one job, that
 *   whose tile it began or ended last; where tiles of several jobs are in flight on it at a time,
 *   no more is known. What a task does that waits for nested jobs is its own job's, what the device
 *   does for these meanwhile is theirs, and it may be idle, too.
 * - idle: starved_ns, unshared_ns, held_ns and tail_ns. What a device is idle counts for every job
 * that is there at the time. Looking for work is part of it, as is what a job's callback does on
 * its thread.
 *
 * At its beginning and at its end a job is looked at while the workers go on: what they turn to in
 * the microseconds that this takes may be told from what they were at before by no better than
 * that. On a virtual clock no time passes meanwhile. Where filch_poll() drives, the time in which
 * no thread does counts for what the worker was last at.
 */
typedef struct filch_losses {
    uint64_t wall_ns; /**< The job's time; of all devices: that for each. */
    uint64_t busy_ns; /**< Tiles ran, and did not fail: as long as they would have at the best speed
                           that the device was ever seen at. */
    uint64_t dispatch_ns;   /**< Between tiles: finding them, launching them, releasing others. */
    uint64_t data_ns;       /**< Waiting until what tiles need, or made, had been copied, or until
                                 there was memory for it. On a device that runs tiles by itself also
                                 what is left of its time beside tiles and their predicted dispatch,
                                 where anything was copied there. */
    uint64_t spoiled_ns;    /**< Tiles that failed, or that were lost with the device; as long as
                                 these were predicted to take where they were not timed. And runs of
                                 a chunk that another device ran, too, and had done first
                                 (::FILCH_CODELET_RESTARTABLE), up to the job's end. */
    uint64_t starved_ns;    /**< Idle: nothing was ready anywhere that it could run. */
    uint64_t held_ns;       /**< Idle by hold-off: there was work elsewhere, but who had it would be
                                 done with it first, as predicted. */
    uint64_t tail_ns;       /**< Idle after the job's last tile had been taken, whatever the reason,
                                 to its end; 0 while it runs. A task of the host's that was not
                                 timed is taken to have lasted as long as the last ones there. */
    uint64_t other_ns;      /**< At work on other jobs. */
    uint64_t estimated_ns;  /**< Of busy_ns and slow_ns, that of tiles that were not timed. */
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
    uint64_t slow_ns;    /**< Tiles ran, and did not fail, beyond the time in which the device would
                              have run them at the best speed that it was ever seen at: slower
                              memory or caches than usual, other threads on the core, a lower
                              clock. "Work time inflation" in the literature. A part like the
                              others; 0 where that speed is not known. */
    uint64_t unrated_ns; /**< Of busy_ns, that of tiles whose best speed is not known, so that some
                              of it may have been lost, too. No part. */
    uint64_t preempted_ns; /**< In work on this job, but without the core, which the system had
                                given to other threads: time that the worker's thread was awake
                                and its processor clock stood still, but for what it waited for
                                itself in tiles (by how often it did either). Of the host's devices
                                on threads of filch's own alone; counted when the worker has
                                nothing more of the job for the moment, of stretches of 0.1 ms and
                                more. A worker that is woken late is idle until then. */
    uint64_t unshared_ns;  /**< Idle: nothing came to it, though other devices that can run the same
                                had tasks ready and queued. An estimate: these look at the tiles
                                that are timed, on the host one in 64 once 16 were. Nothing of
                                batches, whose items any idle device finds. */
} filch_losses;

/**
 * A job against its bounds; see filch_job_report().
 *
 * The best speed of a codelet on a device is the fastest that the device was ever seen at, in this
 * runtime's life or, by the file of speeds (filch_config.speeds), in the last run of at least 16
 * timed tiles: the least median of 16 timed tiles, a little more where these differ, so that
 * neither a few wrong samples nor luck sets it. Until 16 were timed it is that of the first ones,
 * five at least. A tile of w units of work is taken to need a fixed time and w times a rate. It is
 * known of codelets that declare their work (filch_codelet_desc.work), eight a job, and only for
 * tiles of about as much work as those that showed it. Tasks that declare no work may be of any
 * length, so nobody knows how fast they could have been: they are taken to have run as fast as they
 * could, and unrated_ns says so. A codelet whose tasks are all alike should have a work function
 * that returns
 * 1. Where codelets with and without one are mixed in a job, the time of either on a device is
 * estimated by the tiles that were timed.
 *
 * Devices that did nothing for the job count in area_ns where their speed is known: their best one,
 * or that of a device of the same kind (model, cores, score) that took part. Devices that were
 * withdrawn or lost when the job ended do not count, nor those that its batch was not to use; and
 * while the job runs only devices that took part and their like do. A device that was faster in
 * this job than ever before counts as it was.
 */
typedef struct filch_report {
    size_t size;             /**< sizeof(filch_report). */
    filch_status status;     /**< FILCH_NOT_READY while the job runs; then its result. */
    uint32_t device_count;   /**< Devices of the runtime. */
    uint32_t measured_count; /**< Of these, those that did work for the job. */
    uint32_t known_count;    /**< Devices that count in area_ns. */
    uint64_t wall_ns;        /**< From the job's start to its completion, or to now. */
    uint64_t area_ns;        /**< The shortest time in which the devices could have done the job's
                                  work at their best speeds, if it could be divided at will: never
                                  more than wall_ns. See below. */
    uint64_t path_ns;        /**< Of a graph, the longest path, each task as long as work like it
                                  was last measured to take on the device that is best at it, or
                                  as its best speed has it, whichever is less; 0
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
#define FILCH_REPORT_INIT                                                             \
    {                                                                                 \
        sizeof(filch_report), FILCH_OK, 0, 0, 0, 0, 0, 0, 0, 0,                       \
        {                                                                             \
            0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 \
        }                                                                             \
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
