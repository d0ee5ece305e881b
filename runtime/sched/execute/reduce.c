/* SPDX-License-Identifier: Apache-2.0 */
/* Tasks that reduce, on the picking device. A separate item makes the partial result neutral before
 * the first reducing task, launched as usual. Likewise the combining task runs an item for every
 * partial result, in sequence, on the single device picking the task.
 *
 * A claimed task unable to run yet waits in the list of the partial result in use. The worker then
 * moves the task to the claimed queue, and picks the task again before further work. On a device
 * computing asynchronously, markers order the accesses to a partial result, as for tiles, and also
 * the items on parallel lanes. On a synchronous device, a task waiting for nested work lets further
 * tasks run on the worker. A nested task must not use a partial result held by a task in the middle
 * of adding. */
#include "sched/execute/reduce.h"

#include "sched/execute/step.h"
#include "sched/ready/queue.h"
#include "sched/worker/sched.h"

static void park(fl_partial *partial, fl_task *task)
{
    task->link.next = partial->waiting;
    partial->waiting = &task->link;
}

static void unpark_all(fl_worker *w, fl_partial *partial)
{
    for (fl_link *link = partial->waiting; link != NULL;) {
        fl_link *next = link->next;
        fl_claimed_put(w, fl_task_of_link(link), false);
        link = next;
    }
    partial->waiting = NULL;
}

/* Returns the partial result of an access, made by fl_reduce_admit, or null. */
static fl_partial *partial_of(const fl_worker *w, const fl_task *task, uint32_t access)
{
    return task->accesses[access].mode == FILCH_REDUCE
               ? fl_task_extras(task)[access]
                     .reduction->at[fl_reduction_part(task, access, w->index)]
               : NULL;
}

/* Fails a task lacking memory for a partial result. */
static void refuse(fl_worker *w, fl_item *item, const fl_reduction *reduction)
{
    fl_error_fill(&w->stall.error,
                  (fl_fault){.status = FILCH_OUT_OF_MEMORY,
                             .device = w->device->info.name,
                             .label = fl_task_name(item->task)},
                  "no memory for a partial result of '%s'", reduction->data->label);
    item->code = -1;
    item->is_refused = true;
    fl_worker_retire(w, item);
}

/* Turns the item into the item making the partial result neutral. */
static void begin(fl_partial *partial, fl_item *item)
{
    partial->state = FL_PARTIAL_BEGUN;
    /* Names the item in errors and traces. */
    partial->begin.order = item->task->order;
    item->task = &partial->begin;
}

static bool admit_reducer(fl_worker *w, fl_item *item)
{
    fl_task *task = item->task;
    for (uint32_t i = 0; i < task->access_count; ++i) {
        if (task->accesses[i].mode != FILCH_REDUCE) {
            continue;
        }
        fl_reduction *reduction = fl_task_extras(task)[i].reduction;
        fl_partial *partial =
            fl_reduction_at(reduction, task->graph, fl_reduction_part(task, i, w->index));
        if (partial == NULL) {
            refuse(w, item, reduction);
            return false;
        }
        if (partial->state == FL_PARTIAL_FAILED) {
            /* The job has noted the failure. */
            item->skip = true;
            return true;
        }
        if (partial->state == FL_PARTIAL_FRESH) {
            park(partial, task);
            begin(partial, item);
            return true;
        }
        if (partial->state == FL_PARTIAL_BEGUN || partial->holder != NULL) {
            park(partial, task);
            return false;
        }
    }
    for (uint32_t i = 0; w->device->is_synchronous && i < task->access_count; ++i) {
        fl_partial *partial = partial_of(w, task, i);
        if (partial != NULL) {
            partial->holder = task;
        }
    }
    return true;
}

bool fl_reduce_admit(fl_worker *w, fl_item *item)
{
    const fl_task *task = item->task;
    if (item->skip) {
        return true;
    }
    if (task->combines) {
        /* The predecessors are the reducing tasks, and no predecessor failed: a partial result
         * exists. */
        fl_reduction *reduction = fl_task_extras(task)[0].reduction;
        reduction->current = fl_reduction_next(reduction, reduction->current);
        return true;
    }
    return admit_reducer(w, item);
}

static void retire_begin(fl_worker *w, const fl_item *item)
{
    fl_partial *partial = partial_of(w, item->task, 0);
    bool is_good = item->code == 0 && !item->skip;
    fl_worker_note(w, item);
    partial->state = is_good ? FL_PARTIAL_READY : FL_PARTIAL_FAILED;
    unpark_all(w, partial);
}

/* Retires one combining run. True: a further partial result is to be combined. */
static bool retire_combined(fl_worker *w, const fl_item *item)
{
    fl_reduction *reduction = fl_task_extras(item->task)[0].reduction;
    bool is_good = item->code == 0 && !item->skip;
    uint32_t next =
        is_good ? fl_reduction_next(reduction, reduction->current + 1) : reduction->parts;
    if (next == reduction->parts) {
        fl_reduction_reset(reduction);
        return false;
    }
    fl_worker_note(w, item);
    reduction->current = next;
    fl_claimed_put(w, item->task, false);
    return true;
}

bool fl_reduce_retire(fl_worker *w, const fl_item *item)
{
    const fl_task *task = item->task;
    if (task->begins) {
        retire_begin(w, item);
        return true;
    }
    if (task->combines) {
        return retire_combined(w, item);
    }
    for (uint32_t i = 0; i < task->access_count; ++i) {
        fl_partial *partial = partial_of(w, task, i);
        if (partial != NULL && partial->holder == task) {
            partial->holder = NULL;
            unpark_all(w, partial);
        }
    }
    return false;
}
