/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file graph.h
 * Task graphs.
 *
 * Tasks are added in program order; who must wait for whom follows from the tiles they read and
 * write, as if they ran one after the other, plus any explicit edges.
 *
 * A *closed* graph is built, then submitted as often as one likes; a submission allocates nothing.
 * An *open* graph is submitted empty and runs while tasks are still added, from any thread and from
 * running tasks, until it is closed; finished tasks' memory is reused.
 */
#ifndef FILCH_GRAPH_H
#define FILCH_GRAPH_H

#include "filch/codelet.h"
#include "filch/data.h"
#include "filch/job.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A graph. */
typedef struct filch_graph filch_graph;

/** Names a task within its graph. 0 names none. */
typedef uint64_t filch_task;

/** Kind of a graph. */
typedef enum filch_graph_kind {
    FILCH_GRAPH_CLOSED = 0, /**< Built, then run many times. */
    FILCH_GRAPH_OPEN = 1    /**< Runs while it is built, once. */
} filch_graph_kind;

/** Where priorities come from. */
typedef enum filch_priorities {
    FILCH_PRIORITIES_RANK = 0,  /**< Closed graphs: the longest path to an exit. Open: none. */
    FILCH_PRIORITIES_CALLER = 1 /**< filch_task_desc.priority. */
} filch_priorities;

/** How a graph is made; see ::FILCH_GRAPH_DESC_INIT. */
typedef struct filch_graph_desc {
    size_t size;                 /**< sizeof(filch_graph_desc). */
    filch_graph_kind kind;       /**< Closed or open. */
    filch_priorities priorities; /**< Rank or the caller's. */
    int32_t priority_min;        /**< Caller's priorities in open graphs: the least one … */
    int32_t priority_max;        /**< … and the greatest; both 0: -5 to 5. Others are clamped. */
    const char *label;           /**< Appears in errors and traces; copied, cut at 63 bytes. */
} filch_graph_desc;

/** Initializer of a ::filch_graph_desc. */
#define FILCH_GRAPH_DESC_INIT                                                           \
    {                                                                                   \
        sizeof(filch_graph_desc), FILCH_GRAPH_CLOSED, FILCH_PRIORITIES_RANK, 0, 0, NULL \
    }

/** Any device will do. */
#define FILCH_ANY_DEVICE 0

/** A task to add; see ::FILCH_TASK_DESC_INIT. */
typedef struct filch_task_desc {
    size_t size;                  /**< sizeof(filch_task_desc). */
    filch_codelet *codelet;       /**< What it runs. */
    const void *args;             /**< codelet's arg_size bytes; copied. Null when that is 0. */
    const filch_access *accesses; /**< access_count of them; copied. */
    uint32_t access_count;        /**< At most 255. */
    int32_t priority;             /**< Greater runs sooner (FILCH_PRIORITIES_CALLER). */
    const char *label;            /**< Not copied: must live as long as the graph. May be null. */
    uint32_t affinity;            /**< FILCH_ANY_DEVICE, or device index + 1: preferred device. */
    uint32_t reserved;            /**< 0. */
} filch_task_desc;

/** Initializer of a ::filch_task_desc. */
#define FILCH_TASK_DESC_INIT                                                       \
    {                                                                              \
        sizeof(filch_task_desc), NULL, NULL, NULL, 0, 0, NULL, FILCH_ANY_DEVICE, 0 \
    }

/**
 * Makes an empty graph.
 *
 * @param desc how, or null for a closed graph with all defaults.
 *
 * Returns FILCH_OK, FILCH_INVALID_ARGUMENT, FILCH_OUT_OF_MEMORY, FILCH_INVALID_HANDLE,
 * FILCH_FORKED. Thread safety: any thread. Since 0.1.
 */
FILCH_API filch_status filch_graph_create(filch_runtime *runtime, const filch_graph_desc *desc,
                                          filch_graph **graph);

/**
 * Adds a task.
 *
 * In a running open graph the task may start before the call returns.
 *
 * @param task receives the task's name, for edges; may be null.
 *
 * Returns FILCH_OK; FILCH_INVALID_ARGUMENT (nulls, a tile outside its handle, one tile accessed
 * twice with a write, a bad mode or affinity); FILCH_WRONG_RUNTIME; FILCH_NO_DEVICE (no device can
 * run the codelet); FILCH_TOO_LARGE; FILCH_WRONG_STATE (the graph was submitted, or an open one is
 * closed or cancelled); FILCH_OVERFLOW (2^32 - 1 tasks); FILCH_OUT_OF_MEMORY; FILCH_INVALID_HANDLE;
 * FILCH_FORKED. On failure the graph is unchanged. Thread safety: any thread, one at a time gets in
 * (a short lock); dependencies follow the order in which callers do. Since 0.1.
 */
FILCH_API filch_status filch_graph_add(filch_graph *graph, const filch_task_desc *desc,
                                       filch_task *task);

/**
 * Makes @p after wait for @p before. Closed graphs only, before the first submission.
 *
 * Returns FILCH_OK, FILCH_INVALID_ARGUMENT (not tasks of this graph; the same task twice),
 * FILCH_WRONG_STATE, FILCH_OUT_OF_MEMORY, FILCH_INVALID_HANDLE, FILCH_FORKED. A cycle is found by
 * filch_graph_seal(). Any thread. Since 0.1.
 */
FILCH_API filch_status filch_graph_edge(filch_graph *graph, filch_task before, filch_task after);

/**
 * Ends the building of a closed graph: checks it and computes priorities and placement.
 *
 * The first submission does it if the caller did not. Returns FILCH_OK, FILCH_CYCLE (the error's
 * text names the tasks; the graph can only be destroyed or mended no further), FILCH_WRONG_STATE
 * (open), FILCH_OUT_OF_MEMORY (may be tried again), FILCH_INVALID_HANDLE, FILCH_FORKED. Any thread.
 */
FILCH_API filch_status filch_graph_seal(filch_graph *graph);

/**
 * Starts a graph.
 *
 * @param submit how, or null for defaults.
 * @param job    receives the job, to be given back with filch_job_release(); null: nobody waits.
 *
 * Returns FILCH_OK; FILCH_BUSY (a closed graph still runs); FILCH_WRONG_STATE (an open graph was
 * already submitted); FILCH_CYCLE; FILCH_INVALID_ARGUMENT; FILCH_OUT_OF_MEMORY;
 * FILCH_INVALID_HANDLE; FILCH_FORKED. On failure nothing runs and no callback is called.
 * Thread safety: any thread. Since 0.1.
 */
FILCH_API filch_status filch_graph_submit(filch_graph *graph, const filch_submit *submit,
                                          filch_job **job);

/**
 * Says that no more tasks will be added to an open graph; its job completes when all have run.
 *
 * Returns FILCH_OK, FILCH_WRONG_STATE (closed graph, or closed already), FILCH_INVALID_HANDLE,
 * FILCH_FORKED. Any thread. Since 0.1.
 */
FILCH_API filch_status filch_graph_close(filch_graph *graph);

/**
 * Destroys a graph. Job handles stay valid until released.
 *
 * Returns FILCH_OK, FILCH_BUSY while it runs (nothing changes), FILCH_INVALID_HANDLE, FILCH_FORKED.
 * Any thread. Since 0.1.
 */
FILCH_API filch_status filch_graph_destroy(filch_graph *graph);

#ifdef __cplusplus
}
#endif

#endif
