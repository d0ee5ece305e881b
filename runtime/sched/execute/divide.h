/* SPDX-License-Identifier: Apache-2.0 */
/* Divisible tasks: several devices run pieces of one task. */
#ifndef FL_SCHED_EXECUTE_DIVIDE_H
#define FL_SCHED_EXECUTE_DIVIDE_H

#include "sched/worker/worker.h"

/* A picked task with items. True: the item, all of them or a piece, can be run; false: it is dealt
 * with. */
bool fl_divide_admit(fl_worker *worker, fl_item *item);
/* Nothing to steal: joins a task that is being divided, if that pays; sets worker->idle.ready_at.
 * True: look again, the worker has work. */
bool fl_divide_join(fl_worker *worker);
/* A piece is over, or the next piece will not begin. True: the whole task is over, noted, and *item
 * says how. */
bool fl_divide_retire(fl_worker *worker, fl_item *item);
/* On a device that computes by itself, a task with items whose operands were fetched. True: a piece
 * is to be launched; fl_divide_launched or fl_divide_refused follows. */
bool fl_divide_begin(fl_worker *worker, fl_in_flight *flight);
void fl_divide_launched(fl_worker *worker, fl_in_flight *flight);
void fl_divide_refused(const fl_item *item);
/* Takes a part of the worker's that is not in flight. Null: none. */
fl_task *fl_divide_part(fl_worker *worker);
/* Whether the device may have a piece of a task that is being divided. */
bool fl_divide_is_here(const fl_worker *worker, const fl_task *task);
/* Gives up the worker's part in the task, which is not worker->ready.part any more. False: it is
 * the only part, and items are left; the task's link is then in no list. */
bool fl_divide_drop(fl_worker *worker, fl_task *task);
/* Work of an item that has a part in a task with items. */
double fl_divide_work(const fl_item *item);
/* Duration of the whole task, ns, when the item's part took `ns`. */
double fl_divide_whole(const fl_item *item, double ns);

/* Whether several devices may have parts of a task that the caller has, or has a part of. */
static inline bool fl_task_is_divided(const fl_task *task)
{
    return task->has_items && fl_task_items(task)->division != NULL;
}

#endif
