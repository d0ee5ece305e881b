/* SPDX-License-Identifier: Apache-2.0 */
/* Tasks that reduce, on the device that was to run them: before the first of them its partial
 * result is made neutral, by a tile of its own, which goes on the device like any other. So is each
 * partial result that the combining task adds up, one after the other, by the one device that
 * picked it.
 *
 * A task that cannot run yet, though it is claimed, waits with the partial result that it cannot
 * have; its worker then has it in `kept`, and picks it again before anything else. On a device that
 * computes by itself, a partial result is ordered by markers, as any tile is; so is what runs on it
 * at the same time on other lanes. On the others, a task that waits for nested work may have others
 * run on its worker: not with a partial result that it has, in the middle of adding to it. */
#include "sched/execute/reduce.h"

#include "sched/execute/step.h"
#include "sched/worker/sched.h"

static void keep(fl_worker *w, fl_task *task)
{
    task->link.next = w->kept;
    w->kept = &task->link;
}

static void park(fl_partial *partial, fl_task *task)
{
    task->link.next = partial->waiting;
    partial->waiting = &task->link;
}

static void unpark_all(fl_worker *w, fl_partial *partial)
{
    for (fl_link *link = partial->waiting; link != NULL;) {
        fl_link *next = link->next;
        keep(w, fl_task_of_link(link));
        link = next;
    }
    partial->waiting = NULL;
}

/* The partial result of an access, made by fl_reduce_admit, or null. */
static fl_partial *partial_of(const fl_worker *w, const fl_task *task, uint32_t access)
{
    return task->accesses[access].mode == FILCH_REDUCE
               ? fl_task_extras(task)[access].reduction->at[w->index]
               : NULL;
}

/* The task cannot be run here, or anywhere: it has failed. */
static void refuse(fl_worker *w, fl_item *item, const fl_reduction *reduction)
{
    fl_error_fill(&w->error,
                  (fl_fault){.status = FILCH_OUT_OF_MEMORY,
                             .device = w->device->info.name,
                             .label = fl_task_name(item->task)},
                  "no memory for a partial result of '%s'", reduction->data->label);
    item->code = -1;
    item->is_refused = true;
    fl_worker_retire(w, item);
}

/* Makes the tile that which makes the partial result neutral, for the task that it was. */
static void begin(fl_partial *partial, fl_item *item)
{
    partial->state = FL_PARTIAL_BEGUN;
    partial->begin.order = item->task->order; /* names it in errors and traces */
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
        fl_partial *partial = fl_reduction_at(reduction, task->graph, w->index);
        if (partial == NULL) {
            refuse(w, item, reduction);
            return false;
        }
        if (partial->state == FL_PARTIAL_FAILED) {
            item->skip = true; /* the job has the failure */
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
        /* It has the tasks that reduced as its predecessors, none of which failed: there is one. */
        fl_reduction *reduction = fl_task_extras(task)[0].reduction;
        reduction->current = fl_reduction_next(reduction, reduction->current);
        return true;
    }
    return admit_reducer(w, item);
}

static void retire_begin(fl_worker *w, const fl_item *item)
{
    fl_partial *partial = fl_task_extras(item->task)[0].reduction->at[w->index];
    bool is_good = item->code == 0 && !item->skip;
    fl_worker_note(w, item);
    partial->state = is_good ? FL_PARTIAL_READY : FL_PARTIAL_FAILED;
    unpark_all(w, partial);
}

/* True: another partial result is to be combined. */
static bool retire_combined(fl_worker *w, const fl_item *item)
{
    fl_reduction *reduction = fl_task_extras(item->task)[0].reduction;
    bool is_good = item->code == 0 && !item->skip;
    uint32_t next =
        is_good ? fl_reduction_next(reduction, reduction->current + 1) : reduction->devices;
    if (next == reduction->devices) {
        fl_reduction_reset(reduction);
        return false;
    }
    fl_worker_note(w, item);
    reduction->current = next;
    keep(w, item->task);
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

bool fl_combines_last(const fl_task *task)
{
    const fl_reduction *reduction = fl_task_extras(task)[0].reduction;
    return fl_reduction_next(reduction, reduction->current + 1) == reduction->devices;
}
