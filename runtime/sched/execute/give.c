/* SPDX-License-Identifier: Apache-2.0 */
#include "sched/execute/give.h"

#include "sched/account/account.h"
#include "sched/decide/place.h"
#include "sched/decide/placement.h"
#include "sched/decide/slow.h"
#include "sched/execute/fetch.h"
#include "sched/execute/placed.h"
#include "sched/execute/shared_queue.h"
#include "sched/model/cost.h"
#include "sched/model/explore.h"
#include "sched/ready/queue.h"
#include "sched/worker/device.h"
#include "sched/worker/others.h"
#include "sched/worker/sched.h"
#include "sched/worker/tuning.h"
#include "sched/worker/wake.h"

/* --- Tasks of a worker --- */

static void give(fl_worker *receiver, fl_task *task)
{
    fl_inbox_push(&receiver->queues.inbox, &task->link);
    fl_sched_wake_worker(receiver->sched, receiver->index);
}

static void give_hint(fl_worker *w, fl_worker *receiver, fl_task *task)
{
    /* Makes the hint before the push: a thief may own the task afterwards. Relaxed: the worker
     * still owns the task. */
    uint64_t hint = fl_hint_make(task, fl_load_relaxed(&task->word));
    fl_ready_push(w, task);
    if (fl_mailbox_put(&receiver->queues.mailbox, hint)) {
        fl_sched_wake_worker(w->sched, receiver->index);
    }
}

bool fl_give_ready(fl_worker *w, fl_task *task)
{
    fl_sched *sched = w->sched;
    if (sched->shared_queue != NULL && fl_shared_queue_put(sched, w, task)) {
        return true;
    }
    if (fl_rules_place(&sched->rules)) {
        fl_placed placed = fl_placed_give(sched, w, task);
        if (placed != FL_PLACED_AUTO) {
            return placed == FL_PLACED_AWAY;
        }
    }
    if (fl_give_slow(w, task)) {
        return true;
    }
    fl_placement placement = fl_placement_of(w, task);
    switch (placement.kind) {
    case FL_PLACEMENT_HERE:
        break;
    case FL_PLACEMENT_EXPLORE:
        fl_explore_keep(w, task);
        break;
    case FL_PLACEMENT_GIVE:
        give(placement.receiver, task);
        return true;
    case FL_PLACEMENT_HINT:
        give_hint(w, placement.receiver, task);
        return true;
    case FL_PLACEMENT_ROUTE:
        fl_sched_route(sched, task);
        return true;
    }
    return false;
}

/* Returns the better device to which a slow device leaves a task, or null. */
static fl_worker *receiver_of(const fl_worker *w, const fl_task *task)
{
    return fl_slow_holds_up(w, task)
               ? fl_slow_receiver(w, task, fl_add_relaxed(&w->sched->routed, 1))
               : NULL;
}

bool fl_give_slow(fl_worker *w, fl_task *task)
{
    fl_worker *receiver = NULL;
    if (FL_LIKELY(!fl_slow_is_on(w)) || (receiver = receiver_of(w, task)) == NULL) {
        return false;
    }
    give(receiver, task);
    return true;
}

bool fl_give_picked(fl_worker *w, const fl_item *item)
{
    fl_task *task = item->task;
    fl_worker *receiver = NULL;
    if (task == NULL || item->skip || item->is_ahead || task->moves != 0 || task->has_items ||
        fl_fetch_is_coming(w) || (receiver = receiver_of(w, task)) == NULL) {
        return false;
    }
    /* The job may be over as soon as a second worker has the task. */
    fl_worker_flush(w);
    fl_add_relaxed(&receiver->theft.slow.given, 1);
    fl_claimed_send(receiver, task);
    fl_sched_wake_worker(w->sched, receiver->index);
    return true;
}

/* Announces a task just put into a core's inbox. Wakes the core if asleep. If the core runs long
 * tasks, wakes a second worker instead, and the second worker takes the task if the theft pays. */
static void tell(fl_sched *sched, const fl_worker *owner)
{
    /* Seq_cst, after the push's: either the load sees the owner about to sleep, or the owner's last
     * look sees the task. */
    fl_worker_state state = (fl_worker_state)fl_load_seq_cst(&owner->queues.state);
    double mean = fl_worker_mean_ns(owner);
    if (state == FL_WORKER_ASLEEP) {
        (void)fl_sched_wake_worker(sched, owner->index);
    } else if (state == FL_WORKER_RUNNING && (mean == 0 || mean >= FL_WAKE_UP_NS) &&
               fl_load_relaxed(&sched->searching) == 0) { /* relaxed: a hint */
        fl_sched_wake(sched, 1);
    }
}

bool fl_give_to_owner(fl_worker *w, fl_task *task)
{
    fl_worker *owner = fl_place_receiver(w, task, &w->ready.owed_ns);
    if (owner == NULL) {
        return false;
    }
    fl_inbox_push(&owner->queues.inbox, &task->link);
    tell(w->sched, owner);
    return true;
}

/* --- Tasks without a worker: which inbox takes the task --- */

/* Predicted time of one task, ns; 0 when unknown. */
static double predicted_ns(const fl_sched *sched, const fl_task *task)
{
    double work = task->work > 0 ? (double)task->work : 1;
    return task->codelet != NULL ? fl_cost_rate(sched, task->codelet, 0) * work : 0;
}

/* Chooses a device able to run the task, starting at `first`. An available device comes first, then
 * an offline device, then a failed device. The static policy keeps a failed device's work on the
 * failed device. */
static uint32_t choose_target(fl_sched *sched, const fl_task *task, uint32_t first)
{
    const fl_worker *w = &sched->workers[first];
    bool is_bound = sched->policy == FILCH_POLICY_STATIC && fl_worker_has_failed(w);
    if (FL_LIKELY((is_bound || !fl_worker_is_unavailable(w)) && fl_worker_can_run(w, task))) {
        return first;
    }
    for (fl_others state = FL_OTHERS_ONLINE; state <= FL_OTHERS_FAILED; ++state) {
        const fl_worker *other = fl_other_for(sched, NULL, task, state, first, NULL);
        if (other != NULL) {
            return other->index;
        }
    }
    return first;
}

void fl_sched_route(fl_sched *sched, fl_task *task)
{
    /* Sends short tasks to one worker until the sum is worth waking a second worker. Long or
     * unknown tasks go to the workers in turn. */
    double ns = predicted_ns(sched, task);
    uint64_t run =
        ns > 0 && ns < FL_WAKE_UP_NS ? (uint64_t)(FL_WAKE_UP_NS / (ns < 1 ? 1 : ns)) + 1 : 1;
    /* Two threads may draw equal numbers: the number only spreads tasks, and an atomic addition
     * would wait for the task's cache lines. */
    uint64_t ticket = fl_load_relaxed(&sched->routed);
    fl_store_relaxed(&sched->routed, ticket + 1);
    uint64_t turn = ticket / run;
    uint32_t target = task->home != 0 ? task->home - 1u : (uint32_t)(turn % sched->count);
    if (sched->keeps_holders) {
        /* Relaxed, twice: an estimate. */
        double before = fl_bits_double(fl_load_relaxed(&sched->owed)), owed = before;
        target = fl_place_target(sched, task, target, &owed);
        if (owed != before) {
            fl_store_relaxed(&sched->owed, fl_double_bits(owed));
        }
    }
    target = choose_target(sched, task, target);
    fl_worker *worker = &sched->workers[target];
    fl_inbox_push(&worker->queues.inbox, &task->link);
    if (sched->keeps_holders) {
        tell(sched, worker);
        return;
    }
    if (!fl_sched_wake_worker(sched, target) && sched->policy != FILCH_POLICY_STATIC &&
        ticket == turn * run) {
        /* The target is busy: an idle worker empties the inbox. */
        fl_sched_wake(sched, 1);
    }
}

void fl_sched_task_ready(fl_scheduler *self, fl_task *task)
{
    fl_sched *sched = (fl_sched *)(void *)self;
    fl_worker *w = fl_sched_self(sched);
    fl_placed placed = FL_UNLIKELY(fl_rules_place(&sched->rules)) ? fl_placed_give(sched, w, task)
                                                                  : FL_PLACED_AUTO;
    if (placed == FL_PLACED_AWAY) {
        return;
    }
    bool stays =
        placed == FL_PLACED_HERE || (w != NULL && (task->home == 0 || task->home == w->index + 1 ||
                                                   sched->policy != FILCH_POLICY_STATIC));
    if (stays && fl_worker_can_run(w, task)) {
        fl_ready_push(w, task);
        if (!w->ready.in_step) {
            w->ready.pushed = false;
            /* The caller's task may run for long. */
            fl_sched_wake(sched, 1);
        }
        return;
    }
    fl_sched_route(sched, task);
}
