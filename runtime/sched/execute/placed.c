/* SPDX-License-Identifier: Apache-2.0 */
#include "sched/execute/placed.h"

#include "sched/decide/policy.h"
#include "sched/ready/queue.h"
#include "sched/worker/device.h"
#include "sched/worker/sched.h"
#include "sched/worker/wake.h"

/* --- Common list --- */

bool fl_placed_pick(fl_worker *w, fl_item *item)
{
    return fl_item_set_task(item, fl_common_take(w, fl_may_run, NULL));
}

/* Takes a task of the job sent to a second worker. The second worker may wait for the same job
 * further down the stack. */
static fl_task *take_sent(fl_worker *w, fl_worker *other, const fl_sought *sought)
{
    fl_task *found = NULL;
    bool some_left = false;
    for (fl_link *link = fl_inbox_drain(&other->queues.inbox); link != NULL;) {
        fl_link *next = link->next;
        fl_task *task = fl_task_of_link(link);
        if (!fl_may_run_of(w, task, sought)) {
            fl_inbox_push(&other->queues.inbox, link);
            some_left = true;
        } else if (found == NULL) {
            found = task;
        } else {
            fl_ready_push(w, task);
        }
        link = next;
    }
    if (some_left) {
        /* The second worker may have looked in the meantime. */
        fl_sched_wake_worker(w->sched, other->index);
    }
    return found;
}

bool fl_placed_pick_of(fl_worker *w, const fl_sought *sought, bool is_strict, fl_item *item)
{
    fl_sched *sched = w->sched;
    /* Under the static policy with a single driving thread, no other function takes a task sent to
     * a worker waiting further down the stack. */
    bool is_stacked = sched->policy == FILCH_POLICY_STATIC && sched->drive == FILCH_DRIVE_POLL;
    if (!fl_rules_place(&sched->rules) && !is_stacked && !is_strict) {
        return false;
    }
    if (fl_item_set_task(item, fl_common_take(w, fl_may_run_of, sought))) {
        return true;
    }
    for (uint32_t i = 1; i < sched->count; ++i) {
        fl_worker *other = &sched->workers[(w->index + i) % sched->count];
        if (!fl_inbox_is_empty(&other->queues.inbox) &&
            fl_item_set_task(item, take_sent(w, other, sought))) {
            return true;
        }
    }
    return !is_strict && fl_item_set_task(item, fl_common_take(w, fl_may_run_waiting, NULL));
}

fl_task *fl_placed_drop(fl_worker *w, fl_may_fn may)
{
    return fl_rules_place(&w->sched->rules) ? fl_common_take(w, may, NULL) : NULL;
}

/* --- Placing --- */

/* Offers a task to every device. Wakes a single worker; where not every device can run the task,
 * wakes every worker, as able devices may be anywhere. */
static void give_to_anyone(fl_sched *sched, fl_task *task)
{
    bool is_for_all = fl_load_relaxed(&task->able) == FL_ABLE_ALL && !task->is_large;
    fl_common_put(&sched->rules.common, task);
    fl_sched_wake(sched, is_for_all ? 1 : sched->count);
}

fl_placed fl_placed_give(fl_sched *sched, fl_worker *w, fl_task *task)
{
    fl_placed placed = FL_PLACED_AWAY;
    fl_add_relaxed(&sched->rules.placing, 1);
    uint32_t device = fl_policy_ask_place(sched, w, task);
    if (device == FILCH_POLICY_AUTO) {
        placed = FL_PLACED_AUTO;
    } else if (w != NULL && device == w->index) {
        placed = FL_PLACED_HERE;
    } else if (device == FILCH_POLICY_ANYONE) {
        give_to_anyone(sched, task);
    } else {
        fl_inbox_push(&sched->workers[device].queues.inbox, &task->link);
        fl_sched_wake_worker(sched, device);
    }
    fl_sub_relaxed(&sched->rules.placing, 1);
    return placed;
}

/* --- Roots --- */

/* Sorts the roots by level, highest first, otherwise in the graph's order. */
static fl_link *sort_roots(const filch_graph *graph)
{
    fl_link *first[FL_LEVELS] = {NULL}, *last[FL_LEVELS] = {NULL}, *all = NULL;
    for (uint32_t i = 0; i < graph->root_count; ++i) {
        fl_link *link = &graph->roots[i]->link;
        uint32_t level = graph->roots[i]->level;
        link->next = NULL;
        if (first[level] == NULL) {
            first[level] = link;
        } else {
            last[level]->next = link;
        }
        last[level] = link;
    }
    for (uint32_t level = 0; level < FL_LEVELS; ++level) {
        if (first[level] != NULL) {
            last[level]->next = all;
            all = first[level];
        }
    }
    return all;
}

/* Prepends a root to a device's chain. The first root becomes the newest in the deque, and runs
 * first. */
static void chain_root(fl_share *share, fl_link *link)
{
    link->next = share->roots_first;
    share->roots_first = link;
    if (link->next == NULL) {
        share->roots_last = link;
    }
}

void fl_placed_give_roots(fl_sched *sched, const filch_job *job)
{
    const filch_graph *graph = job->graph;
    fl_worker *w = fl_sched_self(sched);
    uint32_t left = graph->root_count;
    fl_add_relaxed(&sched->rules.placing, 1);
    for (fl_link *link = sort_roots(graph); link != NULL;) {
        /* Read before the task belongs to a second worker. */
        fl_link *next = link->next;
        fl_task *task = fl_task_of_link(link);
        uint32_t device = fl_policy_ask_place(sched, w, task);
        /* Every root has a home. */
        device = device == FILCH_POLICY_AUTO ? task->home - 1u : device;
        if (device == FILCH_POLICY_ANYONE) {
            --left;
            fl_common_put(&sched->rules.common, task);
        } else {
            chain_root(fl_job_share(job, device), link);
        }
        link = next;
    }
    /* The last root may end the job, and the job object may be reused. */
    for (uint32_t device = 0; left != 0; ++device) {
        fl_share *share = fl_job_share(job, device);
        if (share->roots_first == NULL) {
            continue;
        }
        for (const fl_link *link = share->roots_first; link != NULL; link = link->next) {
            --left;
        }
        fl_inbox_push_chain(&sched->workers[device].queues.inbox, share->roots_first,
                            share->roots_last);
        if (FL_UNLIKELY(fl_worker_is_offline(&sched->workers[device]))) {
            fl_sched_wake_worker(sched, device); /* the worker gives the tasks away */
        }
    }
    fl_sub_relaxed(&sched->rules.placing, 1);
    fl_sched_wake(sched, sched->count);
}

/* Resets the prediction for an idle worker. Tasks on the way to the worker are no sign of too much
 * work given, and keep the prediction. */
void fl_placed_note_idle(fl_worker *w)
{
    fl_rules *rules = &w->sched->rules;
    if (fl_load_relaxed(&rules->placing) == 0 && fl_inbox_is_empty(&w->queues.inbox)) {
        fl_store_relaxed(&rules->free_at[w->index], 0); /* relaxed: a prediction */
    }
}
