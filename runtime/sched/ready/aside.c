/* SPDX-License-Identifier: Apache-2.0 */
#include "sched/ready/aside.h"

#include "sched/worker/job_part.h"
#include "sched/worker/sched.h"

/* --- Jobs with tasks set aside. Under the lock. --- */

static void enter(fl_aside *aside, fl_job_part *part)
{
    part->aside_next = aside->jobs;
    part->aside_at = &aside->jobs;
    if (aside->jobs != NULL) {
        aside->jobs->aside_at = &part->aside_next;
    }
    aside->jobs = part;
}

static void leave(fl_job_part *part)
{
    *part->aside_at = part->aside_next;
    if (part->aside_next != NULL) {
        part->aside_next->aside_at = part->aside_at;
    }
}

/* Takes the newest task of the job that the worker may have. Null: none. */
static fl_task *take_of(fl_job_part *part, const fl_worker *w, fl_may_fn may, const void *user)
{
    for (fl_link **at = &part->aside; *at != NULL; at = &(*at)->next) {
        fl_task *task = fl_task_of_link(*at);
        if (may(w, task, user)) {
            *at = task->link.next;
            if (part->aside == NULL) {
                leave(part);
            }
            return task;
        }
    }
    return NULL;
}

/* --- Put, take --- */

static bool is_empty(const fl_aside *aside)
{
    return fl_load_acquire(&aside->filled) == 0; /* acquire: pairs with the release in put */
}

void fl_aside_put(fl_sched *sched, fl_task *task, bool poisoned)
{
    fl_aside *aside = &sched->aside;
    fl_job_part *part = fl_part_of_job(task->graph->job);
    task->is_poisoned = poisoned;
    fl_mutex_lock(&aside->lock);
    if (part->aside == NULL) {
        enter(aside, part);
    }
    task->link.next = part->aside;
    part->aside = &task->link;
    /* Release, before the waker's fence: a worker that announces idleness and then looks sees the
     * task. */
    fl_store_release(&aside->filled, 1);
    fl_mutex_unlock(&aside->lock);
}

fl_task *fl_aside_take(const fl_worker *w, fl_may_fn may, const void *user)
{
    fl_aside *aside = &w->sched->aside;
    fl_task *task = NULL;
    if (is_empty(aside)) {
        return NULL;
    }
    fl_mutex_lock(&aside->lock);
    for (fl_job_part *part = aside->jobs; part != NULL && task == NULL;) {
        fl_job_part *next = part->aside_next;
        task = take_of(part, w, may, user);
        part = next;
    }
    fl_store_release(&aside->filled, aside->jobs != NULL);
    fl_mutex_unlock(&aside->lock);
    return task;
}

fl_task *fl_aside_take_of(const fl_worker *w, const fl_sought *sought)
{
    fl_aside *aside = &w->sched->aside;
    fl_task *task = NULL;
    if (is_empty(aside)) {
        return NULL;
    }
    fl_mutex_lock(&aside->lock);
    fl_job_part *part = aside->jobs;
    while (part != NULL && !fl_is_sought(sought, part->job)) {
        part = part->aside_next;
    }
    if (part != NULL) {
        task = take_of(part, w, fl_may_run, NULL);
    }
    fl_store_release(&aside->filled, aside->jobs != NULL);
    fl_mutex_unlock(&aside->lock);
    return task;
}
