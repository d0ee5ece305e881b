/* SPDX-License-Identifier: Apache-2.0 */
/* Ready tasks without a worker: which worker's inbox takes the task. */
#include "sched/execute/route.h"

#include "sched/decide/place.h"
#include "sched/execute/give.h"
#include "sched/execute/placed.h"
#include "sched/model/cost.h"
#include "sched/ready/queue.h"
#include "sched/worker/device.h"
#include "sched/worker/others.h"
#include "sched/worker/wake.h"

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
        fl_give_tell(sched, worker);
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
