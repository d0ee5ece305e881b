/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/build/commute_lock.h"

#include "graph/build/graph.h"

/* Returns the task's commute lock with the least address above a given lock, or null. */
static fl_commute_lock *next_turn(const fl_task *task, const fl_commute_lock *above)
{
    const fl_extra *extras = fl_task_extras(task);
    fl_commute_lock *found = NULL;
    for (uint32_t i = 0; i < task->access_count; ++i) {
        fl_commute_lock *turn = task->accesses[i].mode == FILCH_COMMUTE ? extras[i].turn : NULL;
        if (turn != NULL && (uintptr_t)turn > (uintptr_t)above &&
            (found == NULL || (uintptr_t)turn < (uintptr_t)found)) {
            found = turn;
        }
    }
    return found;
}

static void note_given(fl_commute_lock *turn)
{
    /* 1: the task is the first holder of the next run. */
    turn->given = turn->given < turn->members ? turn->given + 1 : 1;
}

static void park(fl_commute_lock *turn, fl_task *task)
{
    if (turn->last == NULL) {
        task->link.next = &task->link;
    } else {
        task->link.next = turn->last->next;
        turn->last->next = &task->link;
    }
    turn->last = &task->link;
}

static fl_task *unpark(fl_commute_lock *turn)
{
    fl_link *first = turn->last->next;
    if (first == turn->last) {
        turn->last = NULL;
    } else {
        turn->last->next = first->next;
    }
    return fl_task_of_link(first);
}

/* Takes the task's locks above a given lock, up to the first lock held by a second task. The caller
 * holds turn_lock. */
static bool take_above(fl_task *task, const fl_commute_lock *above)
{
    for (fl_commute_lock *turn = next_turn(task, above); turn != NULL;
         turn = next_turn(task, turn)) {
        if (turn->is_taken) {
            park(turn, task);
            return false;
        }
        turn->is_taken = true;
        note_given(turn);
    }
    /* Relaxed: no predecessor counts down any more, and the thread offering the task publishes
     * it. */
    fl_store_relaxed(&task->pending, 0);
    return true;
}

bool fl_commute_locks_take(fl_task *task)
{
    fl_mutex *lock = &task->graph->turn_lock;
    fl_mutex_lock(lock);
    bool is_ready = take_above(task, NULL);
    fl_mutex_unlock(lock);
    return is_ready;
}

fl_link *fl_commute_locks_give(fl_task *task)
{
    fl_mutex *lock = &task->graph->turn_lock;
    fl_link *ready = NULL, **end = &ready;
    fl_mutex_lock(lock);
    for (fl_commute_lock *turn = next_turn(task, NULL); turn != NULL;
         turn = next_turn(task, turn)) {
        if (turn->last == NULL) {
            turn->is_taken = false;
            continue;
        }
        fl_task *next = unpark(turn);
        note_given(turn);
        if (take_above(next, turn)) {
            *end = &next->link;
            end = &next->link.next;
        }
    }
    *end = NULL;
    fl_mutex_unlock(lock);
    return ready;
}
