/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file graph.h
 * Task graphs.
 *
 * The caller adds tasks in program order. The tiles read and written by the tasks define the
 * dependencies: results equal a sequential execution. Explicit edges add further dependencies.
 *
 * A *closed* graph is built first, then submitted any number of times, also while jobs of it wait
 * or run: its runs follow each other (filch_graph_submit()). Submissions after the first allocate
 * nothing once earlier jobs are released. An *open* graph is submitted empty and runs
 * while tasks are added, from any thread and from running tasks, until the caller closes the graph.
 * filch reuses the memory of finished tasks. A limit (filch_graph_desc.max_live) or
 * filch_graph_wait_below() keeps few tasks live at a time.
 *
 * An open graph enters the order of jobs (job.h) handle by handle: its position at a handle begins
 * when the first task naming the handle is added, and ends when its job is complete. The graph
 * reads the handle, concurrently with other readers, until a task with a stronger access is added.
 * From then on the graph writes the handle, once the remaining readers are complete. The graph
 * precedes jobs submitted later that have not begun to use the handle, and follows jobs that have
 * begun. A job of an open graph begins to use a handle when a task naming the handle is added and
 * no handle of the task makes the job wait. A job of a closed graph or a batch begins at its start.
 *
 * Jobs never wait for each other. An addition closing a circle of waits is refused with
 * FILCH_DEADLOCK. The error names the handle and the two jobs, by label and submission number. A
 * circle arises where each of two jobs has begun to use a handle requested by the other job, where
 * two readers of a handle request write access, and through longer chains. Two graphs are never
 * refused if the first task of either graph names every shared handle, with the modes needed later.
 * After a refusal the host adds a different task, or ends the graph and runs the rest in a new
 * graph.
 */
#ifndef FILCH_GRAPH_H
#define FILCH_GRAPH_H

#include "filch/codelet.h"
#include "filch/data.h"
#include "filch/job.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A graph made by filch_graph_create(). */
typedef struct filch_graph filch_graph;

/**
 * Name of a task within its graph. 0 names no task. In an open graph filch may give the name of a
 * finished task to a later task.
 */
typedef uint64_t filch_task;

/** Kind of a graph. */
typedef enum filch_graph_kind {
    FILCH_GRAPH_CLOSED = 0, /**< Built first, then run many times. */
    FILCH_GRAPH_OPEN = 1    /**< Runs once, while being built. */
} filch_graph_kind;

/** Source of task priorities. */
typedef enum filch_priorities {
    FILCH_PRIORITIES_RANK = 0,  /**< Closed graphs: the longest path to an exit, in predicted time
                                     where speeds are known when the graph is sealed, else in units
                                     of work. A later submission computes ranks anew after the
                                     relative speeds of the codelets changed, unless the runtime has
                                     a single device, or filch_graph_edge() led from a task to an
                                     earlier task. Open graphs: every task has equal priority. */
    FILCH_PRIORITIES_CALLER = 1 /**< Value of filch_task_desc.priority. */
} filch_priorities;

/**
 * Description of a new graph; see ::FILCH_GRAPH_DESC_INIT.
 *
 * filch keeps eight levels of priority and spreads the range of priorities evenly over the levels.
 * The range of an open graph is priority_min to priority_max; the range of a closed graph is the
 * least to the greatest priority in use. Levels order the ready tasks of a single device; filch
 * never interrupts running work.
 */
typedef struct filch_graph_desc {
    size_t size;                 /**< sizeof(filch_graph_desc). */
    filch_graph_kind kind;       /**< Closed or open. */
    filch_priorities priorities; /**< Rank or the caller's. */
    int32_t priority_min;        /**< Least caller's priority of an open graph. Lower values are
                                      clamped. */
    int32_t priority_max;        /**< Greatest caller's priority of an open graph. Higher values are
                                      clamped. Minimum and maximum 0: -5 to 5. */
    const char *label;           /**< Appears in errors; copied, cut at 63 bytes; may be null. */
    uint64_t max_live;           /**< Open graphs: filch_graph_add() waits while so many tasks are
                                      live; 0: no limit. 0 for closed graphs. */
} filch_graph_desc;

/** Initializer of a ::filch_graph_desc. */
#define FILCH_GRAPH_DESC_INIT                                                              \
    {                                                                                      \
        sizeof(filch_graph_desc), FILCH_GRAPH_CLOSED, FILCH_PRIORITIES_RANK, 0, 0, NULL, 0 \
    }

/** No preferred device. */
#define FILCH_ANY_DEVICE 0

/**
 * Description of a task to add; see ::FILCH_TASK_DESC_INIT.
 *
 * A task with a non-zero filch_task_desc.items is divisible: filch calls the codelet for ranges of
 * items, filch_call.lo to filch_call.hi, covering all items, in any order and possibly concurrently
 * on several devices. A call writes only data belonging to its items, reads no data written for
 * items of a different call, and does not wait for other calls. Dependencies know the task as a
 * whole. Whole contract: docs/concepts.md, "Divisible tasks".
 */
typedef struct filch_task_desc {
    size_t size;                  /**< sizeof(filch_task_desc). */
    filch_codelet *codelet;       /**< Codelet of the task. */
    const void *args;             /**< Arguments: arg_size bytes of the codelet; copied. Null where
                                       arg_size is 0. */
    const filch_access *accesses; /**< Array of access_count accesses; copied. */
    uint32_t access_count;        /**< At most 255, each to a tile or a block of tiles. */
    int32_t priority;             /**< Greater values run sooner (FILCH_PRIORITIES_CALLER). */
    const char *label;            /**< Appears in errors in place of the codelet's name. Not copied:
                                       must live as long as the graph. May be null. */
    uint32_t affinity;            /**< FILCH_ANY_DEVICE, or device index + 1: preferred device.
                                       FILCH_POLICY_STATIC obeys the preference. Otherwise the
                                       preference decides where a task of a closed graph without
                                       predecessors starts and, for devices with separate memory
                                       nodes, which device is notified of the ready task. A device
                                       unable to run the codelet counts as no preference. */
    uint32_t reserved;            /**< 0. */
    uint64_t items;               /**< 0, or the number of items of a divisible task, below 2^63;
                                       see above. */
    uint64_t grain;               /**< Divisible tasks: pieces are cut at multiples of the grain; 0
                                       means 1. filch raises the grain to keep the number of grains
                                       below 2^32. 0 where items is 0. */
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
 * @param desc    description, or null for a closed graph with default settings; copied.
 * @param graph   receives the graph, to be given to filch_graph_destroy() or left to the runtime.
 * @return FILCH_OK; FILCH_INVALID_ARGUMENT (null @p graph, a size too small, an unknown kind or
 *         priorities, priority_min over priority_max, max_live of a closed graph);
 *         FILCH_OUT_OF_MEMORY; FILCH_INVALID_HANDLE; FILCH_FORKED.
 *
 * Thread safety: any thread. Blocking: a short lock. Since 0.1.
 */
FILCH_API filch_status filch_graph_create(filch_runtime *runtime, const filch_graph_desc *desc,
                                          filch_graph **graph);

/**
 * Adds a task.
 *
 * The task waits for earlier tasks with conflicting accesses. A reader of a tile waits for the last
 * writer; a writer waits for the last writer and for the readers since. Tasks commuting on a tile,
 * or reducing to a tile, form a group. The group waits for its predecessors as a writer does; tasks
 * of the group do not wait for members of the group. Successors wait for the whole group. In a
 * running open graph the task may start, and end, before the call returns.
 *
 * Where an open graph has filch_graph_desc.max_live live tasks, the call waits for room as
 * filch_graph_wait_below() does, and inside a task runs other ready work meanwhile. While every
 * device has work, a sleeping thread goes on when a quarter of the limit is free. A limit never
 * refuses a task. The task is added over the limit where the wait would end without success: inside
 * tasks as told there, in callbacks and tasks of simulated devices, and on a virtual clock when
 * nothing can happen before a further call of the host. A thread must not wait for tasks that only
 * itself can bring to an end, such as pending tasks (pending.h).
 *
 * @param graph a closed graph not yet sealed, or a running open graph.
 * @param desc  the task; copied, except for its label.
 * @param task  receives the task's name, for edges; may be null.
 * @return FILCH_OK; FILCH_INVALID_ARGUMENT (nulls, missing or superfluous arguments, too many
 *         accesses, a tile or block outside its handle, a tile accessed twice unless with reads
 *         only, a block that commutes or reduces, a bad mode or affinity, a grain without items,
 *         reserved is not 0); FILCH_WRONG_RUNTIME (codelet or handle); FILCH_NO_DEVICE (no device
 *         can run the codelet; or the task reduces, and a device able to run the codelet has no
 *         implementation of the handle's neutral element); FILCH_NO_DEVICE_MEMORY (no device able
 *         to run the codelet, or to combine the partial results, has capacity for the data used at
 *         once); FILCH_WRONG_STATE (the task reduces to a handle without filch_data_reduction(), or
 *         names either a partition or its parent while the graph uses the alternative, or writes a
 *         handle after filch_graph_read_only(), or needs contents that a tile of a temporary does
 *         not have, ::FILCH_DATA_TEMPORARY; a closed graph sealed or submitted already; an open
 *         graph not yet submitted, closed or cancelled); FILCH_UNSUPPORTED (a block of several
 *         tiles of a temporary); FILCH_BUSY (an open graph, and the host has acquired a handle new
 *         to the graph); FILCH_DEADLOCK (an open graph, whose job would wait in a circle, see
 *         above); FILCH_OVERFLOW (more than 2^32 - 2 tasks, in an open graph over its whole life;
 *         items or grain of 2^63 or more); FILCH_OUT_OF_MEMORY; FILCH_INVALID_HANDLE (graph,
 *         codelet or data); FILCH_FORKED. On failure no task is added. After FILCH_OUT_OF_MEMORY a
 *         handle may count as used by the graph.
 *
 * Thread safety: any thread. Blocking: a short lock admits one caller a graph at a time;
 * dependencies follow the order of admission. With max_live also until tasks have ended. Since 0.1.
 */
FILCH_API filch_status filch_graph_add(filch_graph *graph, const filch_task_desc *desc,
                                       filch_task *task);

/**
 * Adds an array of tasks, in its order.
 *
 * The tasks depend on each other, and on earlier tasks, as though filch_graph_add() had added one
 * after the other. No other thread's task comes between them, unless the call waits for room in an
 * open graph with filch_graph_desc.max_live.
 *
 * The call ends at the first task that is refused. The tasks before it are in the graph; in an open
 * graph they may have run. The refused task and those behind it are not. @p added tells the number
 * of tasks in the graph, which is the refused task's place in the array: a caller may go on from
 * there, with descs + *added.
 *
 * @param graph a closed graph not yet sealed, or a running open graph.
 * @param descs array of @p count tasks, each with filch_task_desc.size of the first; copied, except
 *              for labels. May be null where @p count is 0.
 * @param count number of tasks; 0 adds nothing.
 * @param tasks array of @p count names, or null. Receives the names of the added tasks; the rest is
 *              left alone.
 * @param added receives the number of added tasks, 0 to @p count, on failure, too; may be null.
 * @return FILCH_OK: every task was added; FILCH_INVALID_ARGUMENT (a null array, a size other than
 *         the first task's); a status of filch_graph_add() for the first refused task. The text of
 *         the error names the task's place in the array.
 *
 * Thread safety: any thread. Blocking: a lock admits one caller a graph at a time, here until the
 * last task is added. Since 0.1.
 */
FILCH_API filch_status filch_graph_add_many(filch_graph *graph, const filch_task_desc *descs,
                                            size_t count, filch_task *tasks, size_t *added);

/**
 * Waits until fewer than a number of an open graph's tasks are live: added, and not ended. Inside a
 * task, the task itself and tasks that wait in their functions (here, in filch_graph_add() or in
 * filch_job_wait()) do not count, so that a count of 1 means all other tasks.
 *
 * Inside a task the call runs other ready work meanwhile, of any job, on the task's own stack. In
 * poll mode the caller runs the workers. On a virtual clock the caller runs the simulation.
 *
 * A wait inside a task ends with FILCH_DEADLOCK as soon as no task of the graph can go on without
 * it: each live task waits in its function, or for a task that does, or for another job of which a
 * task waits. So tasks that wait for each other never hang.
 *
 * @param graph   an open graph, submitted.
 * @param count   at least 1.
 * @param seconds time limit, on a virtual clock in virtual seconds; negative: no limit.
 * @return FILCH_OK (fewer tasks are live, or the job is complete; effects of the ended tasks are
 *         visible); FILCH_TIMEOUT (also without a limit, on a virtual clock, when nothing can
 *         happen before another call of the host); FILCH_CANCELLED (the job was cancelled, also by
 *         a failure, or finished early; so many tasks are still live); FILCH_DEADLOCK (inside a
 *         task: see above, or waits are nested more than 16 deep); FILCH_INVALID_ARGUMENT (@p count
 *         is 0, @p seconds is not a number); FILCH_WRONG_STATE (a closed graph, or not submitted;
 *         so many tasks are live, and the caller is a callback or a simulated device's task);
 *         FILCH_OUT_OF_MEMORY (inside a task); FILCH_INVALID_HANDLE; FILCH_FORKED.
 *
 * Thread safety: any thread. Blocking. Since 0.1.
 */
FILCH_API filch_status filch_graph_wait_below(filch_graph *graph, uint64_t count, double seconds);

/**
 * Makes a task wait for a second task. Closed graphs only, before sealing.
 *
 * The call does not look for cycles: filch_graph_seal() does.
 *
 * @param graph  the graph of the two tasks.
 * @param before the task to wait for.
 * @param after  the waiting task.
 * @return FILCH_OK; FILCH_INVALID_ARGUMENT (not tasks of the graph, or a task given twice);
 *         FILCH_WRONG_STATE (the graph is open or sealed); FILCH_OUT_OF_MEMORY;
 *         FILCH_INVALID_HANDLE; FILCH_FORKED.
 *
 * Thread safety: any thread. Blocking: a short lock. Takes constant time. Since 0.1.
 */
FILCH_API filch_status filch_graph_edge(filch_graph *graph, filch_task before, filch_task after);

/**
 * Lets tasks added from now on use a handle in the tiles of a partition.
 *
 * The call is no barrier. A task using a tile of the partition waits for tasks using overlapping
 * tiles of the parent, in whatever mode, and for no further tasks. After filch_graph_unpartition()
 * the rule applies to a task using a tile of the parent. Between the two calls, tasks naming the
 * parent are refused; outside, tasks naming the partition are refused. Sealing or closing the graph
 * ends a remaining partition.
 *
 * The tilings share the buffer on the host, and contents pass between tilings there. Nothing is
 * copied where every device is the host's. Otherwise filch adds tasks of its own, not included in
 * any count of the job. Added tasks can fail like the caller's, and are skipped in a cancelled job.
 * An added task writes a tile back to the buffer before overlapping tiles of a different tiling are
 * used, if the tile was written since its last write-back. A device then copies a tile from the
 * buffer at the first use in the job, and again after a write to an overlapping tile, even where
 * the device's memory holds the elements as part of a tile of a different tiling.
 *
 * Other jobs see a partitioning graph as a writer of the whole parent. After a failed, cancelled
 * or early finished job of the graph, tiles of the parent written by a task hold old, new or
 * intermediate values, managed or not.
 *
 * @param graph  a closed graph not yet sealed, or a running open graph.
 * @param parent the handle.
 * @param child  a partition of the handle, made by filch_data_partition().
 * @return FILCH_OK; FILCH_INVALID_ARGUMENT (@p child is no partition of @p parent);
 *         FILCH_WRONG_RUNTIME; FILCH_WRONG_STATE (the parent is partitioned already at this point,
 *         by @p child or another partition, or filch_graph_read_only() named the parent; a closed
 *         graph sealed or submitted already; an open graph not yet submitted, closed or cancelled);
 *         FILCH_BUSY (an open graph, and the host
 *         has acquired the parent, which is new to the graph); FILCH_DEADLOCK (see
 *         filch_graph_add(): partitioning writes the parent); FILCH_OUT_OF_MEMORY;
 *         FILCH_INVALID_HANDLE; FILCH_FORKED. After FILCH_OUT_OF_MEMORY the handles may count as
 *         used by the graph; a different failure changes nothing.
 *
 * Thread safety: any thread; tasks added after the return see the partition. Blocking: short locks.
 * Since 0.1.
 */
FILCH_API filch_status filch_graph_partition(filch_graph *graph, filch_data *parent,
                                             filch_data *child);

/**
 * Lets tasks added from now on use a handle in its own tiles again; see filch_graph_partition().
 *
 * @param graph  the graph.
 * @param parent the handle.
 * @param child  the partition in use by tasks at this point.
 * @return FILCH_OK; FILCH_INVALID_ARGUMENT, FILCH_WRONG_RUNTIME, FILCH_INVALID_HANDLE, FILCH_FORKED
 *         as for filch_graph_partition(); FILCH_WRONG_STATE (the graph does not use the parent
 *         through @p child at this point; or as for filch_graph_partition()). On failure nothing
 *         changes.
 *
 * Thread safety: any thread. Blocking: a short lock. Since 0.1.
 */
FILCH_API filch_status filch_graph_unpartition(filch_graph *graph, filch_data *parent,
                                               filch_data *child);

/**
 * Promises that a graph only reads a handle: for solvers that share a matrix, each in a graph of
 * its own. Graphs that only read a handle run concurrently. Any access of a task of the graph that
 * writes the handle, and filch_graph_partition() of the handle, are refused from now on, at once
 * and by name, in place of waiting for the other readers or being refused with FILCH_DEADLOCK.
 *
 * A running open graph enters the handle's order of jobs with the call, as it would with its first
 * task that reads the handle: a job submitted later that writes the handle waits for the graph's
 * end. A promise lasts as long as the graph. A second promise changes nothing.
 *
 * @param graph a closed graph not yet sealed, or a running open graph.
 * @param data  the handle; not a partition.
 * @return FILCH_OK; FILCH_WRONG_STATE (a task of the graph writes the handle; a closed graph sealed
 *         or submitted already; an open graph not yet submitted, closed or cancelled); FILCH_BUSY
 *         (an open graph, and the host has acquired the handle, which is new to the graph);
 *         FILCH_DEADLOCK (see filch_graph_add()); FILCH_UNSUPPORTED (a partition, a temporary);
 *         FILCH_WRONG_RUNTIME; FILCH_OUT_OF_MEMORY; FILCH_INVALID_HANDLE; FILCH_FORKED. A failure
 *         changes nothing, but after FILCH_OUT_OF_MEMORY the handle may count as used by the graph.
 *
 * Thread safety: any thread; tasks added after the return keep the promise. Blocking: short locks.
 * Since 0.1.
 */
FILCH_API filch_status filch_graph_read_only(filch_graph *graph, filch_data *data);

/**
 * Discards the contents of a temporary (::FILCH_DATA_TEMPORARY): the lifetimes of the handle's
 * tiles end once the tasks added so far that use the tiles have ended. Tasks added from now on
 * overwrite a tile before they read it.
 *
 * The call does not wait. A task overwriting a tile from now on waits for the end of the tile's
 * lifetime. At the end of a graph's building, by filch_graph_seal(), the first submission or
 * filch_graph_close(), filch discards every temporary: a closed graph needs the call where a tile
 * lies idle between its last reader and the next writer, and an open graph once the contents are no
 * longer needed. A handle without contents in the graph may be discarded, too.
 *
 * @param graph a closed graph not yet sealed, or a running open graph.
 * @param data  the temporary.
 * @return FILCH_OK; FILCH_INVALID_ARGUMENT (@p data is no temporary); FILCH_WRONG_RUNTIME;
 *         FILCH_WRONG_STATE (a closed graph sealed or submitted already; an open graph not yet
 *         submitted, closed or cancelled); FILCH_OUT_OF_MEMORY (some tiles may be discarded; the
 *         caller may try again; also where the graph has all the tasks that it can have, as the end
 *         of a tile's contents counts as one); FILCH_INVALID_HANDLE; FILCH_FORKED.
 *
 * Thread safety: any thread; tasks added before the call, as seen by the graph, have the contents.
 * Blocking: a short lock, for a time that grows with the tiles. Since 0.1.
 */
FILCH_API filch_status filch_graph_discard(filch_graph *graph, filch_data *data);

/**
 * Ends the building of a closed graph: checks the graph, and computes priorities and placement. The
 * first submission seals the graph if the caller did not. Sealing a sealed graph does nothing.
 *
 * @param graph a closed graph.
 * @return FILCH_OK; FILCH_CYCLE (the error's text names the tasks; the graph can only be
 *         destroyed); FILCH_WRONG_STATE (an open graph); FILCH_OUT_OF_MEMORY (the caller may try
 *         again); FILCH_INVALID_HANDLE; FILCH_FORKED.
 *
 * Thread safety: any thread. Blocking: in proportion to tasks and edges. Since 0.1.
 */
FILCH_API filch_status filch_graph_seal(filch_graph *graph);

/**
 * Writes a closed graph as a text in DOT, the language of Graphviz: a node a task, coloured by its
 * codelet, with its accesses as the tip, and an arrow from each task to those that wait for it.
 * Tasks that filch added are ellipses: gates, and tasks of reductions. The call seals the graph if
 * the caller did not. The graph may be running.
 *
 * `dot -Tsvg graph.dot -o graph.svg` draws a graph of up to a few thousand tasks. Edges that follow
 * from other edges are written, too; `tred` of Graphviz leaves them out.
 *
 * The file comes and is replaced as that of filch_trace_write().
 *
 * @param graph a closed graph.
 * @param path  the file, in a folder where the caller may make files.
 * @return FILCH_OK; FILCH_IO (@p path is refused, as told for filch_trace_write(), or could not be
 *         written: the error names the path, and has errno in native_code); FILCH_WRONG_STATE (an
 *         open graph); FILCH_INVALID_ARGUMENT (null @p path); FILCH_CYCLE and FILCH_OUT_OF_MEMORY
 *         as for filch_graph_seal(); FILCH_INVALID_HANDLE; FILCH_FORKED.
 *
 * Thread safety: any thread. Blocking: writes a file. Since 0.1.
 */
FILCH_API filch_status filch_graph_write_dot(filch_graph *graph, const char *path);

/**
 * Starts a graph: a closed graph any number of times; an open graph once.
 *
 * A closed graph may be submitted while jobs of it wait or run, those of filch_graph_repeat()
 * included. Each submission is a job of its own. The runs follow each other in the order of the
 * submissions, with the results of runs after waits: a run begins when the run before has ended, on
 * the thread that ended it, with no call of the host. A run has its place at the handles from its
 * submission on: another job, or an acquisition of the host, between two submissions stands between
 * the two runs, and one behind the last submission sees the result of the last run. A run that
 * failed, was cancelled or finished early leaves the runs behind it alone.
 *
 * filch_job_cancel() of a job whose run waits behind another run of the graph takes the run out of
 * the order at once. The result of a run is published before the next run begins, unless the run
 * has a callback or an event: these may end beside the next run.
 *
 * The completion callback may run before the call returns, also on the calling thread; @p job is
 * written earlier.
 *
 * @param graph  the graph.
 * @param submit submission parameters, or null for defaults; copied.
 * @param job    receives the job, to be given back with filch_job_release(); null: the caller keeps
 *               no handle and does not wait.
 * @return FILCH_OK; FILCH_BUSY (the host has acquired a handle of the graph); FILCH_WRONG_STATE
 *         (an open graph was already submitted, or a task reads a never written tile of a handle
 *         without a buffer); FILCH_CYCLE; FILCH_INVALID_ARGUMENT (@p submit, a null event, more
 *         than 1,024 events); FILCH_UNSUPPORTED (CUDA events in a runtime without a GPU,
 *         cuda_signal_device is no GPU, or cuda_waits of an open graph);
 *         FILCH_BAD_INDEX (cuda_signal_device); FILCH_BACKEND, FILCH_DEVICE_LOST (the driver
 *         refuses an event); FILCH_OUT_OF_MEMORY; FILCH_INVALID_HANDLE; FILCH_FORKED. On failure
 *         nothing runs and no callback is called, and a graph not sealed before still takes tasks,
 *         but in four cases: FILCH_CYCLE, short memory, a refused CUDA event, and a handle that
 *         another thread acquires during the call.
 *
 * Thread safety: any thread. Blocking: short locks; the first submission seals the graph. Later
 * submissions allocate nothing once earlier jobs are released and the graph has had as many jobs at
 * a time. A waiting run takes the memory of a job and of its places at the handles. Since 0.1.
 */
FILCH_API filch_status filch_graph_submit(filch_graph *graph, const filch_submit_desc *submit,
                                          filch_job **job);

/**
 * Runs a closed graph to the end: submits, waits without a time limit, tells what failed, and
 * releases the job.
 *
 * @param graph   a closed graph.
 * @param submit  submission parameters, or null for defaults; copied.
 * @param error   receives the details of a failure, or null; the caller sets error->size
 *                (::FILCH_ERROR_INIT). A failed job: the first failure, as from filch_job_error().
 *                A refused call: the refusal, as from filch_runtime_error(). Unchanged on success.
 * @return the job's result: FILCH_OK; FILCH_TASK_FAILED; FILCH_CANCELLED. Or a refusal, and nothing
 *         runs: the statuses of filch_graph_submit(); FILCH_INVALID_ARGUMENT (an @p error with size
 *         0); FILCH_WRONG_STATE (the caller is a callback or a simulated device's task;
 *         an open graph). Or
 *         the wait fails, and the job is cancelled: FILCH_WRONG_STATE (the job waits, through a
 *         handle, for the job of the calling task: nothing ran); FILCH_TIMEOUT (on a virtual clock
 *         nothing can happen before a further call of the host); FILCH_OUT_OF_MEMORY (inside a
 *         task; work items in flight still end).
 *
 * The caller works meanwhile as in filch_job_wait(): inside a task the call runs other ready work,
 * in poll mode the workers, on a virtual clock the simulation.
 *
 * Thread safety: any thread. Blocking. Since 0.1.
 */
FILCH_API filch_status filch_graph_run(filch_graph *graph, const filch_submit_desc *submit,
                                       filch_error *error);

/**
 * Closes an open graph: no more tasks follow. The job completes when every task has run, possibly
 * at once, on the calling thread. A task of the graph may make the call. A cancelled open graph
 * must be closed, too.
 *
 * @param graph a submitted open graph.
 * @return FILCH_OK; FILCH_WRONG_STATE (a closed graph, not submitted, or closed already);
 *         FILCH_OUT_OF_MEMORY (no memory for tasks combining partial results, or ending a
 *         partition: the call changes nothing, and may be repeated); FILCH_INVALID_HANDLE;
 *         FILCH_FORKED.
 *
 * Thread safety: any thread. Blocking: short locks; the call does not wait for the job. Since 0.1.
 */
FILCH_API filch_status filch_graph_close(filch_graph *graph);

/**
 * Destroys a graph and its tasks. Handles of its jobs stay valid until released.
 *
 * @param graph the graph.
 * @return FILCH_OK; FILCH_BUSY while a job of the graph waits or runs (nothing changes);
 *         FILCH_INVALID_HANDLE; FILCH_FORKED.
 *
 * Thread safety: any thread, with no concurrent call on the graph. Blocking: short locks. Since
 * 0.1.
 */
FILCH_API filch_status filch_graph_destroy(filch_graph *graph);

#ifdef __cplusplus
}
#endif

#endif
