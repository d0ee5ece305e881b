/* SPDX-License-Identifier: Apache-2.0 */
/* Work taken by a wait inside a task. The goal job of the wait comes first. The goal job may stand
 * behind preceding jobs at a handle. A deeply nested wait takes only work of the goal job and work
 * of the preceding jobs.
 *
 * Depth. Let a task that waits be of level 1, and one that waits for tasks of level n of level
 * n + 1. Each deep wait runs tasks of a lower level than its own: a stack holds FL_DEEP_WAIT waits,
 * and one for each level.
 *
 * Deep waits end. A worker in a deep wait sleeps only after it has set aside all ready tasks that
 * nobody else finds (ready/aside.h), and has woken the others: no two deep waits keep tasks from
 * each other. A wait may hang on work that its goal does not name, or that only this device may run
 * (filch_job_resume): when nobody works, or after a second, a deep wait takes any work, while the
 * stack has room (drive/driver.c). */
#ifndef FL_SCHED_EXECUTE_NESTED_WAIT_H
#define FL_SCHED_EXECUTE_NESTED_WAIT_H

#include "sched/worker/worker.h"

/* Takes an item of a nested wait's goal job from any worker. Where every device shares one memory
 * node, a wait that is not deep may also take an item made ready meanwhile in a different job.
 * Called by the worker's driver. */
bool fl_nested_pick_goal(fl_worker *worker, fl_item *item);

/* Takes an item of a started job preceding the goal job, from any worker, as fl_nested_pick_goal
 * does.
 * Called by the worker's driver. Takes core->lock. */
bool fl_nested_pick_ahead(fl_worker *worker, fl_item *item);

/* Sets aside the ready tasks that no second worker can find (ready/aside.h), of the worker and of
 * the workers that the calling thread holds further down its stack, and wakes the other workers.
 * False: there is none.
 * Called by the worker's driver, in a nested wait. */
bool fl_nested_set_aside(fl_worker *worker);

/* Sets aside the claimed tasks that any worker may run, as fl_nested_set_aside does. A device that
 * was offline may have many. */
void fl_nested_set_claimed_aside(fl_worker *worker);

/* A wait for a job inside an item: what the item gets back at the end. */
typedef struct fl_nested {
    fl_frame frame;
    filch_view *views;
    char *scratch;
    size_t scratch_bytes;
    fl_call_text *text;
    uint64_t begin;     /* ns */
    uint64_t nested_ns; /* time in earlier waits of the item, ns */
} fl_nested;

/* The running item begins to wait for `goal`, or for all jobs (null): the worker may run further
 * items. fl_nested_close ends the wait. `call` is for errors. */
filch_status fl_nested_open(fl_worker *worker, fl_nested *nested, const filch_job *goal,
                            const char *call);
void fl_nested_close(fl_worker *worker, fl_nested *nested);

/* Whether the worker has an item that must be run before a wait returns: an item that waits for its
 * operands, or the next piece of a task. */
static inline bool fl_nested_must_go_on(const fl_worker *w)
{
    return w->now.item.state == FL_ITEM_FETCHING || w->ready.part != NULL;
}

#endif
