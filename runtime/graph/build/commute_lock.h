/* SPDX-License-Identifier: Apache-2.0 */
/* Commute locks: tasks that commute on a tile run one at a time.
 *
 * The commute locks of a task count as one more predecessor. No hint allows claiming a task that
 * lacks a commute lock. When only the commute locks are missing (pending is 1), the graph takes
 * them for the task. If a second task holds a commute lock, the first task is parked at the lock,
 * and no worker knows of the parked task. When a task with commute locks retires, every lock goes
 * to the task parked longest at the lock. The receiving task goes on to take its missing locks and
 * becomes ready when it holds every one.
 *
 * No deadlock: locks are taken in the order of their addresses. A task waiting for a lock holds
 * only locks at lesser addresses. The task holding the lock with the greatest address holds every
 * lock it needs. It is ready or runs: locks are taken only after every other condition, and a ready
 * task needs only a device. No starvation: a lock passes to parked tasks in the order of parking,
 * and every earlier holder ends after a finite time by the argument above.
 *
 * A mutex guards every commute lock of a graph. It is held for a pass over one task's accesses. A
 * commuting task takes the mutex twice; no other task takes it. The mutex, together with the
 * publication of ready tasks to workers, makes the writes of a lock's last holder visible to the
 * next holder. */
#ifndef FL_GRAPH_BUILD_COMMUTE_LOCK_H
#define FL_GRAPH_BUILD_COMMUTE_LOCK_H

#include "graph/task/task.h"

/* Commute lock of the tasks that commute on a tile between two accesses of a different mode. In an
 * open graph, lock of every task that ever commutes on the tile, since tasks of different groups
 * never meet. */
typedef struct fl_commute_lock {
    fl_link *last; /* parked tasks, a ring: the last task leads to the first; null: empty */
    bool is_taken;
    /* Members used in closed graphs. */
    bool is_final;    /* no later task writes the tile */
    uint32_t members; /* number of tasks that take the lock */
    uint32_t given;   /* number of tasks that have held the lock in this run */
} fl_commute_lock;

struct filch_graph;

/* Takes the commute locks of a task waiting only for its commute locks. True: the task holds every
 * lock and is ready (pending is 0); the caller offers the task to a worker. False:
 * fl_commute_locks_give will return the task to a later caller. Thread-safe. */
bool fl_commute_locks_take(fl_task *task);
/* Releases the commute locks of a finished task. Returns the tasks that are now ready, linked by
 * link. */
fl_link *fl_commute_locks_give(fl_task *task);
/* Tells whether the task holding the lock is the last holder in this run of a closed graph. */
static inline bool fl_commute_lock_is_last(const fl_commute_lock *turn)
{
    return turn->given == turn->members; /* changes only when the lock goes to the next task */
}

#endif
