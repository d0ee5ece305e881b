/* SPDX-License-Identifier: Apache-2.0 */
/* Turns: tasks that commute on a tile run one at a time.
 *
 * A turn counts as one more predecessor of the task, so that nobody can claim a task that has not
 * got all of its own, whatever hint to it he holds. When only the turns are missing (pending is 1)
 * they are taken; where another task has one, the task is parked with it, and no worker knows of it
 * any more. When a task with turns retires, each of its turns goes to the task that has been parked
 * there the longest, which goes on with those it lacks and becomes ready when it has them all.
 *
 * No deadlock: turns are taken in the order of their addresses, so that a task which waits for one
 * has only lesser ones; the task with the greatest turn of all that are taken has all of its own.
 * That task is ready, or runs: readiness is the last thing before turns are taken, and a ready task
 * needs nothing but a device. No starvation: whoever is parked with a turn gets it after those that
 * were parked there before, each of which is over after a finite time by the above.
 *
 * All turns of a graph are under one mutex, which is held for as long as it takes to go through one
 * task's accesses, and taken twice by each task that commutes, by no other. That is also what makes
 * the writes of a turn's last holder seen by the next one, together with whatever publishes ready
 * tasks to workers. */
#ifndef FL_GRAPH_BUILD_COMMUTE_LOCK_H
#define FL_GRAPH_BUILD_COMMUTE_LOCK_H

#include "graph/task/task.h"

/* Of the tasks that commute on one tile between two other accesses; in an open graph, of all that
 * ever do on that tile, since those of different groups never meet. */
typedef struct fl_commute_lock {
    fl_link *last; /* parked tasks, a ring: the last one leads to the first; null: none */
    bool is_taken;
    /* Closed graphs: */
    bool is_final;    /* no later task writes the tile */
    uint32_t members; /* tasks that take it, and … */
    uint32_t given;   /* … how many have got it in this run */
} fl_commute_lock;

struct filch_graph;

/* A task has nothing to wait for but its turns. True: it has them, is ready (pending is 0), and the
 * caller's to offer; false: it will be given to somebody by fl_commute_locks_give. Any thread. */
bool fl_commute_locks_take(fl_task *task);
/* A task that had its turns is over. Tasks that are now ready, linked by link. */
fl_link *fl_commute_locks_give(fl_task *task);
/* Whether the task, which has the turn, is the last one to have it in this run of a closed graph.
 */
static inline bool fl_commute_lock_is_last(const fl_commute_lock *turn)
{
    return turn->given == turn->members; /* changes only when it is given to another */
}

#endif
