/* SPDX-License-Identifier: Apache-2.0 */
#include "sched/execute/give.h"

#include "sched/account/account.h"
#include "sched/decide/place.h"
#include "sched/decide/placement.h"
#include "sched/decide/slow.h"
#include "sched/execute/placed.h"
#include "sched/execute/route.h"
#include "sched/execute/shared_queue.h"
#include "sched/model/explore.h"
#include "sched/ready/queue.h"
#include "sched/worker/device.h"
#include "sched/worker/sched.h"
#include "sched/worker/tuning.h"
#include "sched/worker/wake.h"

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

/* Tells whether no tile fetched ahead is on the way from memory of the host. The memory may return
 * to the caller at the job's end, so the fetching worker has to wait for the copy. */
static bool is_free(const fl_worker *w)
{
    return w->device->backend->lane->is_past(w->device, w->offload->fetched[0]);
}

bool fl_give_picked(fl_worker *w, const fl_item *item)
{
    fl_task *task = item->task;
    fl_worker *receiver = NULL;
    if (task == NULL || item->skip || item->is_ahead || task->moves != 0 || task->has_items ||
        !is_free(w) || (receiver = receiver_of(w, task)) == NULL) {
        return false;
    }
    /* The job may be over as soon as a second worker has the task. */
    fl_worker_flush(w);
    fl_add_relaxed(&receiver->theft.slow.given, 1);
    fl_claimed_send(receiver, task);
    fl_sched_wake_worker(w->sched, receiver->index);
    return true;
}

bool fl_give_to_owner(fl_worker *w, fl_task *task)
{
    fl_worker *owner = fl_place_receiver(w, task, &w->ready.owed_ns);
    if (owner == NULL) {
        return false;
    }
    fl_inbox_push(&owner->queues.inbox, &task->link);
    fl_give_tell(w->sched, owner);
    return true;
}

void fl_give_tell(fl_sched *sched, const fl_worker *owner)
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
