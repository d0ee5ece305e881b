/* SPDX-License-Identifier: Apache-2.0 */
/* Marks of a closed graph's tasks: the point on a lane behind which a task's effects are visible
 * (fl_graph_part.markers). */
#ifndef FL_SCHED_WORKER_MARK_H
#define FL_SCHED_WORKER_MARK_H

#include "sched/worker/graph_part.h"
#include "sched/worker/sched.h"

#define FL_MARK_SEQUENCE (((uint64_t)1 << FL_MARK_RUN_SHIFT) - 1)
/* Value in place of a sequence number: no task may follow. */
#define FL_MARK_UNFOLLOWABLE FL_MARK_SEQUENCE

static inline uint64_t fl_mark_make(fl_marker marker, uint32_t epoch)
{
    uint64_t sequence = fl_marker_sequence(marker);
    /* A lane would have to run for months to reach the limit. */
    sequence = sequence < FL_MARK_UNFOLLOWABLE ? sequence : FL_MARK_UNFOLLOWABLE;
    return (marker >> 50 << 50) | fl_mark_run(epoch) | sequence;
}

/* Returns the marker to wait for; 0: no wait, since the task is over. */
static inline fl_marker fl_mark_lane(uint64_t marker)
{
    uint64_t sequence = marker & FL_MARK_SEQUENCE;
    return sequence != 0 && sequence != FL_MARK_UNFOLLOWABLE ? (marker >> 50 << 50) | sequence : 0;
}

static inline _Atomic uint64_t *fl_mark_of(const fl_task *task)
{
    return &fl_part_of_graph(task->graph)->markers[task->order];
}

static inline uint32_t fl_task_epoch(const fl_task *task)
{
    /* Relaxed: the caller knows the task's state. */
    return fl_word_epoch(fl_load_relaxed(&task->word));
}

#endif
