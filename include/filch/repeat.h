/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file repeat.h
 * Repetitions: a closed graph that runs again and again, until a predicate, a task or a limit says
 * stop. Whole contract: docs/concepts.md, "Until converged".
 */
#ifndef FILCH_REPEAT_H
#define FILCH_REPEAT_H

#include "filch/graph.h"
#include "filch/job.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Answers of a predicate. Every other value is the caller's own code, and fails the job. */
typedef enum filch_repeat_answer {
    FILCH_REPEAT_AGAIN = 0, /**< The graph runs again. */
    FILCH_REPEAT_STOP = 1   /**< The job ends as success. */
} filch_repeat_answer;

/** Bytes of filch_repeat_desc.value at most. */
#define FILCH_REPEAT_VALUE_BYTES 256

/**
 * Tells after a run whether the graph runs again.
 *
 * Called for run after run, in order, never twice at a time; not for runs after the answer to stop,
 * and not for a run that failed, was cancelled or finished early. Runs on a worker's thread, or on
 * a host thread driving the workers, and holds up the worker's device meanwhile. No filch lock is
 * held. The predicate may call what a completion callback may (::filch_complete_fn).
 *
 * @param run   number of the run, from 1.
 * @param value copy of filch_repeat_desc.value as at the end of the run; null without a value.
 * @param user  filch_repeat_desc.user.
 * @return ::filch_repeat_answer, or the caller's own code: the job fails as by a task, with the
 * code in filch_error.native_code.
 */
typedef int (*filch_repeat_fn)(uint64_t run, const void *value, void *user);

/** Description of a repetition; see ::FILCH_REPEAT_DESC_INIT. */
typedef struct filch_repeat_desc {
    size_t size;               /**< sizeof(filch_repeat_desc). */
    filch_repeat_fn predicate; /**< Asked after each run; null: a task (filch_call_finish()), a
                                    failure, a cancellation or max_runs ends the job. */
    void *user;                /**< Handed to the predicate. */
    const void *value;         /**< Memory of the host, copied at the end of each run, before a
                                    further run begins; may be null. Must live until the job is
                                    complete. */
    uint32_t value_bytes;      /**< Bytes of value, at most FILCH_REPEAT_VALUE_BYTES; 0 where value
                                    is null. */
    uint32_t lag;              /**< 0: a run begins after the answer about the last run; the devices
                                    wait for the predicate. 1: the next run begins before the
                                    predicate is asked, and an answer to stop about run k ends the
                                    job after run k + 1. */
    uint64_t max_runs;         /**< The job ends as success after so many runs; 0: no limit. */
} filch_repeat_desc;

/** Initializer of a ::filch_repeat_desc. */
#define FILCH_REPEAT_DESC_INIT                               \
    {                                                        \
        sizeof(filch_repeat_desc), NULL, NULL, NULL, 0, 0, 0 \
    }

/**
 * Starts a repetition: the closed graph runs again and again, as one job.
 *
 * A graph whose jobs wait or run may be repeated, and submitted while it is repeated: the
 * repetition takes its turn among the graph's jobs as a run of filch_graph_submit() does.
 *
 * Runs follow each other in order. The job keeps its place at the handles between runs: no other
 * job and no acquisition of the host comes between. After a run the graph starts anew on the thread
 * that ended the run, with no call of the host. The job ends
 *
 * - as success when the predicate answers ::FILCH_REPEAT_STOP, when a task calls
 *   filch_call_finish(), which ends its run, too, or after filch_repeat_desc.max_runs runs;
 * - as failed after a run with a failure, or when the predicate returns a code of the caller's;
 * - as cancelled after filch_job_cancel() of the job, which cancels the present run.
 *
 * filch_job_info.runs counts the runs that have ended; other totals sum up those runs. In a trace
 * each run is a job. filch_job_report() refuses the job.
 *
 * @param graph  the graph, with at least one task; sealed by the call where the caller did not.
 * @param repeat description, or null for defaults: no predicate, no limit; copied.
 * @param submit submission parameters, or null for defaults; copied. The completion callback is
 *               called once, after the last run. No CUDA events.
 * @param job    receives the job, to be given back with filch_job_release(); null: the caller keeps
 *               no handle and does not wait.
 * @return FILCH_OK; FILCH_INVALID_ARGUMENT (a graph without tasks; a size too small; lag over 1;
 *         value and value_bytes contradict each other, or value_bytes is over
 *         FILCH_REPEAT_VALUE_BYTES; @p submit); FILCH_UNSUPPORTED (CUDA events in @p submit);
 *         FILCH_WRONG_STATE (an open graph, or a task reads a never written tile of a handle
 *         without a buffer); FILCH_BUSY (the host has acquired a handle of the graph); FILCH_CYCLE;
 *         FILCH_OUT_OF_MEMORY; FILCH_INVALID_HANDLE; FILCH_FORKED. On failure nothing runs and no
 * callback is called. As for filch_graph_submit(), a graph not sealed before still takes tasks.
 *
 * Thread safety: any thread. Blocking: short locks; seals a graph not yet sealed. Since 0.1.
 */
FILCH_API filch_status filch_graph_repeat(filch_graph *graph, const filch_repeat_desc *repeat,
                                          const filch_submit_desc *submit, filch_job **job);

#ifdef __cplusplus
}
#endif

#endif
