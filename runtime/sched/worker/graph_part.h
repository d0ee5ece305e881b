/* SPDX-License-Identifier: Apache-2.0 */
/* The scheduler's part of a graph. The graph layer keeps the part as bytes behind the graph, zeroed
 * when the graph is made (fl_scheduler.graph_bytes). */
#ifndef FL_SCHED_WORKER_GRAPH_PART_H
#define FL_SCHED_WORKER_GRAPH_PART_H

#include "backend/backend.h"
#include "graph/build/graph.h"

/* Number of recent runs with recorded times, for the choice of graph launch. */
#define FL_PLAIN_RUNS 3u

/* Graph launches of a graph (sched/execute/graph_launch.c); owned by the single worker. */
typedef struct fl_launch_history {
    struct fl_graph_launch *launch; /* present graph launch, or null */
    uint32_t runs;     /* runs begun since the last failure to make or feed a graph launch */
    uint32_t launched; /* successful runs by the present graph launch */
    bool is_launched;  /* the last run was a graph launch */
    bool is_given_up;  /* no further graph launch is tried */
    /* Number of additional runs before the next try, because the last try found no memory. */
    uint32_t rest;
    /* Times of the last successful runs without graph launch, ns; 0: no run yet. */
    uint64_t plain_ns[FL_PLAIN_RUNS];
    /* Fastest successful graph launch, without the first of the present object; 0: no run yet. */
    uint64_t launched_ns;
} fl_launch_history;

typedef struct fl_graph_part {
    /* Part of the graph's rank_sum begun in this run; guarded by the lock of the shared ready
     * queue. */
    double rank_taken;
    _Atomic uint32_t is_shared; /* ready tasks go to the shared ready queue */
    bool was_shared; /* is_shared was set at some time in this run; guarded by the queue's lock */
    /* Roots went to the shared ready queue from the start of the run; constant while the graph
     * runs. */
    bool has_shared_roots;
    /* Mark of each task, where workers look ahead: the point on a lane behind which the task's
     * effects are visible, {device : 10, lane : 4, run : 8, sequence : 42}. Sequence 0: the task
     * has retired. Sequence all ones: no successor may be put behind the task. */
    _Atomic uint64_t *markers;
    fl_launch_history history;
    /* Memory for sorting roots by core anew (sched/decide/place.c), or null. */
    struct fl_root_room *root_room;
    /* Waits for few live tasks of an open graph (worker/pressure.h): tasks that have to end before
     * the waits look again, 0 without waits; and the number of waits. */
    _Atomic uint64_t pressed;
    _Atomic uint32_t waits;
    /* Next-use oracle: the users of each tile in order (sched/model/next_use.c). Made when memory
     * first runs short. */
    _Atomic(struct fl_forecast *) forecast;
} fl_graph_part;

static inline fl_graph_part *fl_part_of_graph(const filch_graph *graph)
{
    return (fl_graph_part *)(void *)graph->part;
}

/* --- Marks --- */

/* Bits of a mark that identify the run that made the mark. */
#define FL_MARK_RUN_SHIFT 42
#define FL_MARK_RUN ((uint64_t)0xff << FL_MARK_RUN_SHIFT)
#define FL_MARK_SEQUENCE (((uint64_t)1 << FL_MARK_RUN_SHIFT) - 1)
/* Value in place of a sequence number: no task may follow. */
#define FL_MARK_UNFOLLOWABLE FL_MARK_SEQUENCE

static inline uint64_t fl_mark_run(uint32_t epoch)
{
    return (uint64_t)epoch << FL_MARK_RUN_SHIFT & FL_MARK_RUN;
}

/* Returns the marker to wait for; 0: no wait, since the task is over. */
static inline fl_marker fl_mark_lane(uint64_t marker)
{
    uint64_t sequence = marker & FL_MARK_SEQUENCE;
    return sequence != 0 && sequence != FL_MARK_UNFOLLOWABLE ? (marker >> 50 << 50) | sequence : 0;
}

/* Returns the mark of the task at a position of a closed graph (fl_task.order). */
static inline _Atomic uint64_t *fl_mark_at(const filch_graph *graph, uint32_t order)
{
    return &fl_part_of_graph(graph)->markers[order];
}

static inline _Atomic uint64_t *fl_mark_of(const fl_task *task)
{
    return fl_mark_at(task->graph, task->order);
}

static inline uint32_t fl_task_epoch(const fl_task *task)
{
    /* Relaxed: the caller knows the task's state. */
    return fl_word_epoch(fl_load_relaxed(&task->word));
}

#endif
