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
 *
 * An open graph takes its place in the order of jobs (job.h) handle by handle, when the first task
 * that names the handle is added, and keeps it until its job is complete. It reads the handle,
 * beside others that read it, until a task that does more is added: from there on it writes it,
 * once the others that read it are complete. It goes before jobs that were submitted after it and
 * have not begun to use the handle, behind those that have. A job of an open graph begins to use a
 * handle when a task is added that names it, and the job need not wait at any handle that the task
 * names; any other job when it starts.
 *
 * Jobs never wait for each other: what would make them is refused with FILCH_DEADLOCK when it is
 * added, and the error names the two jobs, by label and number of submission, and the handle. This
 * happens where each of two has begun to use what the other asks for, or both read a handle that
 * both want to write, and in longer circles. Two graphs whose first tasks name all handles that
 * they share, with the modes that they will need, are never refused. A host that is refused adds
 * something else, or ends the graph and does the rest in another one.
 */
#ifndef FILCH_GRAPH_H
#define FILCH_GRAPH_H

#include "filch/codelet.h"
#include "filch/data.h"
#include "filch/job.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A graph; made by filch_graph_create(). */
typedef struct filch_graph filch_graph;

/**
 * Names a task within its graph. 0 names none. In an open graph the name may be given to a later
 * task when the task has finished.
 */
typedef uint64_t filch_task;

/** Kind of a graph. */
typedef enum filch_graph_kind {
    FILCH_GRAPH_CLOSED = 0, /**< Built, then run many times. */
    FILCH_GRAPH_OPEN = 1    /**< Runs while it is built, once. */
} filch_graph_kind;

/** Where priorities come from. */
typedef enum filch_priorities {
    FILCH_PRIORITIES_RANK = 0,  /**< Closed graphs: the longest path to an exit, in predicted time
                                     where speeds are known when the graph is sealed, else in units
                                     of work. Computed anew when the graph is submitted again and
                                     its codelets' speeds have changed against each other, unless
                                     there is one device only, or filch_graph_edge() led from a task
                                     to an earlier one. Open graphs: all tasks alike. */
    FILCH_PRIORITIES_CALLER = 1 /**< filch_task_desc.priority. */
} filch_priorities;

/**
 * How a graph is made; see ::FILCH_GRAPH_DESC_INIT.
 *
 * Priorities are kept in eight levels, over which the range (open graphs: priority_min to
 * priority_max; closed: the least used to the greatest) is spread evenly. They order the ready
 * tasks of one device; nothing that runs is interrupted.
 */
typedef struct filch_graph_desc {
    size_t size;                 /**< sizeof(filch_graph_desc). */
    filch_graph_kind kind;       /**< Closed or open. */
    filch_priorities priorities; /**< Rank or the caller's. */
    int32_t priority_min;        /**< Caller's priorities in open graphs: the least one … */
    int32_t priority_max;        /**< … and the greatest; both 0: -5 to 5. Others are clamped. */
    const char *label;           /**< Appears in errors; copied, cut at 63 bytes; may be null. */
} filch_graph_desc;

/** Initializer of a ::filch_graph_desc. */
#define FILCH_GRAPH_DESC_INIT                                                           \
    {                                                                                   \
        sizeof(filch_graph_desc), FILCH_GRAPH_CLOSED, FILCH_PRIORITIES_RANK, 0, 0, NULL \
    }

/** Any device will do. */
#define FILCH_ANY_DEVICE 0

/**
 * A task to add; see ::FILCH_TASK_DESC_INIT.
 *
 * **Divisible tasks.** Where filch_task_desc.items is not 0 the task's codelet is called for ranges
 * of items, filch_call.lo to filch_call.hi: once for all of them, or several times for disjoint
 * ranges that cover them, in any order and possibly at once on several devices. Each call sees the
 * whole views of all the task's accesses, and must write only what belongs to its items, and read
 * nothing that belongs to others' and is written; scratch memory is each call's own. Calls must not
 * wait for one another. Dependencies know of the task alone: it begins once, and is over when all
 * its items are, whoever ran them; what comes after waits for that.
 *
 * A device that begins such a task runs it piece by piece, if it is long enough, as measured; the
 * others that find nothing else to run, nor to steal, run pieces of what has not begun, where they
 * would not be done later than those who are at it. So one long task that everything waits for, or
 * that is the last of its graph, takes the time of all these devices together.
 *
 * All pieces of a task run in one memory: on cores of the host, also beside GPUs; on the slices of
 * one GPU (`cuda:0/88+24+8`); on simulated devices without links, or that share a memory. A device
 * with a memory of its own runs the task in one call for all items. So does any where no other
 * could take part, under another policy than ::FILCH_POLICY_STEAL, and where an access is
 * ::FILCH_COMMUTE or ::FILCH_REDUCE; and slices do where one is ::FILCH_SCRATCH. A CUDA kernel gets
 * lo and hi as for a batch, and a geometry by filch_cuda_desc.shape_of is asked for each piece.
 *
 * What slices divide stays in the GPU's memory, with all that the task uses, until it is over. It
 * begins when what was before it has been seen to end, and its results go home, and what comes
 * after it begins, when all pieces have: a task in one call may be put behind others on the device,
 * and others behind it, before that.
 *
 * A call that fails fails the task, with its code; pieces that have not begun then are left out, as
 * they are once the job is cancelled (the task counts as skipped if that left some out). What was
 * begun ends. A device that is withdrawn ends the piece that it is at; where no other of that
 * memory is there the rest waits until one is taken back. One that is lost fails the task. A task
 * counts once in filch_job_info, but each piece is one of filch_device_stats.tiles;
 * filch_losses.divided and .pieces count both.
 *
 * Its work is what filch_codelet_desc.work says of lo = 0 and hi = items, and is taken to be spread
 * evenly over the items; without such a function it is the number of items.
 */
typedef struct filch_task_desc {
    size_t size;                  /**< sizeof(filch_task_desc). */
    filch_codelet *codelet;       /**< What it runs. */
    const void *args;             /**< codelet's arg_size bytes; copied. Null when that is 0. */
    const filch_access *accesses; /**< access_count of them; copied. */
    uint32_t access_count;        /**< At most 255. */
    int32_t priority;             /**< Greater runs sooner (FILCH_PRIORITIES_CALLER). */
    const char *label;            /**< Appears in errors in place of the codelet's name. Not copied:
                                       must live as long as the graph. May be null. */
    uint32_t affinity;            /**< FILCH_ANY_DEVICE, or device index + 1: preferred device.
                                       FILCH_POLICY_STATIC obeys it; else it says where a task of a
                                       closed graph without predecessors starts out, and for devices
                                       of different places who is told when the task is ready. A
                                       device that cannot run the codelet counts as none. */
    uint32_t reserved;            /**< 0. */
    uint64_t items;               /**< 0, or how many items the task is made of, below 2^63: it may
                                       be run in pieces, see below. */
    uint64_t grain;               /**< Of a task with items: pieces are cut at multiples of it; 0
                                       means 1. Raised so that there are fewer than 2^32 grains. 0
                                       where items is 0. */
} filch_task_desc;

/** Initializer of a ::filch_task_desc. */
#define FILCH_TASK_DESC_INIT                                                             \
    {                                                                                    \
        sizeof(filch_task_desc), NULL, NULL, NULL, 0, 0, NULL, FILCH_ANY_DEVICE, 0, 0, 0 \
    }

/**
 * Makes an empty graph.
 *
 * @param runtime the runtime.
 * @param desc    how, or null for a closed graph with all defaults; copied.
 * @param graph   receives the graph, to be given to filch_graph_destroy() or left to the runtime.
 * @return FILCH_OK; FILCH_INVALID_ARGUMENT (null @p graph, a size too small, an unknown kind or
 *         priorities, priority_min over priority_max); FILCH_OUT_OF_MEMORY; FILCH_INVALID_HANDLE;
 *         FILCH_FORKED.
 *
 * Thread safety: any thread. Blocking: a short lock. Since 0.1.
 */
FILCH_API filch_status filch_graph_create(filch_runtime *runtime, const filch_graph_desc *desc,
                                          filch_graph **graph);

/**
 * Adds a task.
 *
 * It waits for the earlier tasks whose accesses conflict with its own: a reader of a tile for the
 * last writer, a writer for the last writer and the readers since. Tasks that commute on a tile, or
 * reduce to it, wait for what was before the first of them as writers do, but not for each other;
 * what comes after waits for all of them. In a running open graph the task may start, and end,
 * before the call returns.
 *
 * @param graph a closed graph that is not sealed, or an open one that runs.
 * @param desc  the task; copied, but for its label.
 * @param task  receives the task's name, for edges; may be null.
 * @return FILCH_OK; FILCH_INVALID_ARGUMENT (nulls, a tile outside its handle, one tile accessed
 *         twice unless both read, a bad mode or affinity, a grain without items);
 *         FILCH_WRONG_RUNTIME (codelet or handle);
 *         FILCH_NO_DEVICE (no device can run the codelet; or it reduces, and one can that has no
 *         implementation of the handle's neutral element); FILCH_NO_DEVICE_MEMORY (no device that
 *         can run the codelet, or combine what the task reduces to, has room for what is used at
 *         once); FILCH_WRONG_STATE (the task reduces to a
 *         handle without filch_data_reduction(), or names a partition
 *         or its parent where the graph uses the other; a closed graph that was sealed or
 * submitted; an open one that was not yet submitted, or is closed or cancelled); FILCH_BUSY (an
 * open graph, and the host has acquired a handle that the graph did not use before); FILCH_DEADLOCK
 * (an open graph, whose job would wait for another one that waits for it, see above);
 * FILCH_OVERFLOW (more than 2^32 - 2 tasks, in an open graph over its whole life; items or grain of
 * 2^63 or more); FILCH_OUT_OF_MEMORY; FILCH_INVALID_HANDLE (graph, codelet or data); FILCH_FORKED.
 * On failure no task is added; a handle may count as used by the graph from then on if the failure
 * is FILCH_OUT_OF_MEMORY.
 *
 * Thread safety: any thread. Blocking: one caller a graph at a time gets in (a short lock);
 * dependencies follow the order in which callers do. Since 0.1.
 */
FILCH_API filch_status filch_graph_add(filch_graph *graph, const filch_task_desc *desc,
                                       filch_task *task);

/**
 * Makes one task wait for another. Closed graphs only, before they are sealed.
 *
 * A cycle is found by filch_graph_seal(), not here.
 *
 * @param graph  the graph of both.
 * @param before the task to wait for.
 * @param after  the task that waits.
 * @return FILCH_OK; FILCH_INVALID_ARGUMENT (not tasks of this graph, or the same task twice);
 *         FILCH_WRONG_STATE (the graph is open or sealed); FILCH_OUT_OF_MEMORY;
 *         FILCH_INVALID_HANDLE; FILCH_FORKED.
 *
 * Thread safety: any thread. Blocking: a short lock. Takes time in proportion to the graph's size
 * divided by 255. Since 0.1.
 */
FILCH_API filch_status filch_graph_edge(filch_graph *graph, filch_task before, filch_task after);

/**
 * Lets the tasks that are added from here on use a handle as it is cut by one of its partitions.
 *
 * It is no barrier: nothing waits for more than it needs. A task that uses a tile of the partition
 * waits for those that use the tiles of the parent that it overlaps, in whatever mode, and for no
 * others; so does, after filch_graph_unpartition(), a task that uses a tile of the parent. Between
 * the two, tasks that name the parent are refused, at other times those that name the partition.
 * What is still partitioned when the graph is sealed or closed is given back then.
 *
 * The tilings share the buffer on the host, and contents go from one to the other there. Where all
 * devices are the host's, nothing is copied. Else filch adds tasks, which fail as others do, and
 * are skipped in a cancelled job, but which no count of the job's includes. They bring a tile home
 * before tiles of another tiling are used that it overlaps, if it was written since it last was
 * home. A device then gets a tile from there when it first uses it in the job, and again when
 * something that it overlaps was written since: also where the same elements are in the device's
 * memory as part of another tile.
 *
 * To other jobs, a graph that partitions a handle is one that writes all of the parent. Of a job of
 * it that fails or is cancelled, tiles of the parent hold old, new or intermediate values where
 * some task of the graph writes, managed or not.
 *
 * @param graph  a closed graph that is not sealed, or an open one that runs.
 * @param parent the handle.
 * @param child  a partition of it, made by filch_data_partition().
 * @return FILCH_OK; FILCH_INVALID_ARGUMENT (@p child is no partition of @p parent);
 *         FILCH_WRONG_RUNTIME; FILCH_WRONG_STATE (the parent is partitioned at this point, in this
 * or another way; a closed graph that was sealed or submitted; an open one that was not yet
 *         submitted, or is closed or cancelled); FILCH_BUSY (an open graph, and the host has
 * acquired the parent, which the graph did not use before); FILCH_DEADLOCK (as of
 *         filch_graph_add(), to which this writes the parent); FILCH_OUT_OF_MEMORY;
 *         FILCH_INVALID_HANDLE; FILCH_FORKED. On failure the handles may count as used by the graph
 *         from then on if it is FILCH_OUT_OF_MEMORY; else nothing changes.
 *
 * Thread safety: any thread; it counts for the tasks that are added when it has returned. Blocking:
 * short locks. Since 0.1.
 */
FILCH_API filch_status filch_graph_partition(filch_graph *graph, filch_data *parent,
                                             filch_data *child);

/**
 * Lets the tasks that are added from here on use a handle in its own tiles again; see
 * filch_graph_partition().
 *
 * @param graph  the graph.
 * @param parent the handle.
 * @param child  the partition of it that tasks use at this point.
 * @return FILCH_OK; FILCH_INVALID_ARGUMENT, FILCH_WRONG_RUNTIME, FILCH_INVALID_HANDLE, FILCH_FORKED
 *         as there; FILCH_WRONG_STATE (the graph does not use the parent so at this point; or as
 *         there). On failure nothing changes.
 *
 * Thread safety: any thread. Blocking: a short lock. Since 0.1.
 */
FILCH_API filch_status filch_graph_unpartition(filch_graph *graph, filch_data *parent,
                                               filch_data *child);

/**
 * Ends the building of a closed graph: checks it, and computes priorities and placement. The first
 * submission does it if the caller did not. Sealing a sealed graph does nothing.
 *
 * @param graph a closed graph.
 * @return FILCH_OK; FILCH_CYCLE (the error's text names the tasks; the graph can only be
 * destroyed); FILCH_WRONG_STATE (open); FILCH_OUT_OF_MEMORY (may be tried again);
 * FILCH_INVALID_HANDLE; FILCH_FORKED.
 *
 * Thread safety: any thread. Blocking: in proportion to tasks and edges. Since 0.1.
 */
FILCH_API filch_status filch_graph_seal(filch_graph *graph);

/**
 * Starts a graph: a closed one as often as one likes, one job at a time; an open one once.
 *
 * The completion callback may run before the call returns, also on the calling thread; @p job is
 * written before.
 *
 * @param graph  the graph.
 * @param submit how, or null for defaults; copied.
 * @param job    receives the job, to be given back with filch_job_release(); null: nobody waits.
 * @return FILCH_OK; FILCH_BUSY (a closed graph still runs, or the host has acquired a handle of the
 *         graph's); FILCH_WRONG_STATE (an open graph was already submitted, or a task reads what
 *         nobody has written of a handle without a buffer); FILCH_CYCLE;
 *         FILCH_INVALID_ARGUMENT (@p submit); FILCH_OUT_OF_MEMORY; FILCH_INVALID_HANDLE;
 *         FILCH_FORKED. On failure nothing runs and no callback is called.
 *
 * Thread safety: any thread. Blocking: short locks; the first submission seals the graph. Later
 * ones allocate nothing once earlier jobs were released. Since 0.1.
 */
FILCH_API filch_status filch_graph_submit(filch_graph *graph, const filch_submit *submit,
                                          filch_job **job);

/**
 * Says that no more tasks will be added to an open graph; its job completes when all have run,
 * which may be at once, on the calling thread. A task of the graph may close it. A cancelled open
 * graph must be closed too.
 *
 * @param graph an open graph that was submitted.
 * @return FILCH_OK; FILCH_WRONG_STATE (a closed graph, not submitted, or closed already);
 *         FILCH_OUT_OF_MEMORY (for the tasks that combine what was reduced, or give back what is
 *         partitioned: nothing changed, and it may be tried again); FILCH_INVALID_HANDLE;
 *         FILCH_FORKED.
 *
 * Thread safety: any thread. Blocking: short locks; it does not wait for the job. Since 0.1.
 */
FILCH_API filch_status filch_graph_close(filch_graph *graph);

/**
 * Destroys a graph and its tasks. Handles of its jobs stay valid until released.
 *
 * @param graph the graph.
 * @return FILCH_OK; FILCH_BUSY while it runs (nothing changes); FILCH_INVALID_HANDLE; FILCH_FORKED.
 *
 * Thread safety: any thread, with no other call on the graph in progress. Blocking: short locks.
 * Since 0.1.
 */
FILCH_API filch_status filch_graph_destroy(filch_graph *graph);

#ifdef __cplusplus
}
#endif

#endif
