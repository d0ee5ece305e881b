/* SPDX-License-Identifier: Apache-2.0 */
/* Drivers call the workers' steps: a pinned thread for each worker, the host's threads in
 * filch_runtime_poll, or a task waiting for nested work. The virtual clock is in virtual.c. */
#include "sched/drive/driver.h"

#include "sched/account/ledger.h"
#include "sched/account/preempt.h"
#include "sched/execute/host_call.h"
#include "sched/execute/nested_wait.h"
#include "sched/execute/next.h"
#include "sched/execute/step.h"
#include "sched/execute/unavailable.h"
#include "sched/worker/device.h"
#include "sched/worker/pressure.h"
#include "sched/worker/sched.h"
#include "sched/worker/tuning.h"
#include "sched/worker/wake.h"

/* A deep wait takes any work after no worker has worked for STUCK_NS, or after it has found nothing
 * itself for FRUITLESS_NS: others may work without end. Rules of thumb: work that somebody comes to
 * is taken within a few naps (FL_NAP_LEAST_NS); a frame a second fills no stack soon. */
#define STUCK_NS 10000000u
#define FRUITLESS_NS 1000000000u

static bool is_stopping(const fl_sched *sched)
{
    /* Relaxed: set before our event is notified. */
    return fl_load_relaxed(&sched->stopping) != 0;
}

/* Announces first: a waker clearing the bit must find an announced sleeper. In the reverse order, a
 * waker between the two steps would leave us asleep without a bit, unseen by every later waker. */
static void set_idle(fl_worker *w)
{
    fl_eventcount_announce(&w->signals.event);
    /* Release: orders the announcement before the bit. The fence orders both steps before the
     * second look for work. */
    fl_or_release(&w->sched->idle[w->index / 64], (uint64_t)1 << (w->index % 64));
    if (w->sched->keeps_holders) {
        /* Seq_cst: precedes the last look at the inbox, against threads that put a task into the
         * inbox and then load our state (place.c). Our bit is set earlier, so a waker finds the
         * bit. */
        fl_store_seq_cst(&w->queues.state, FL_WORKER_ASLEEP);
    }
    fl_fence_seq_cst();
}

/* Clears the idle bit. True when a waker had chosen the worker. */
static bool clear_idle(fl_worker *w)
{
    if (w->sched->keeps_holders) {
        /* Relaxed: the worker looks before sleeping again. */
        fl_store_relaxed(&w->queues.state, FL_WORKER_RUNNING);
    }
    uint64_t bit = (uint64_t)1 << (w->index % 64);
    /* Acquire: the waker's writes before clearing the bit. No access needs the release. */
    return (fl_and_acq_rel(&w->sched->idle[w->index / 64], ~bit) & bit) == 0;
}

/* Steps, and runs the picked item. False: nothing to do before w->idle.wake_at. */
static bool advance(fl_worker *w)
{
    fl_act act = fl_worker_step(w);
    if (act == FL_ACT_RUN) {
        fl_worker_run(w);
    }
    return act != FL_ACT_WAIT;
}

static bool must_stay_awake(const fl_worker *w, const fl_goal *goal)
{
    return is_stopping(w->sched) || (goal != NULL && fl_goal_is_met(goal));
}

static uint64_t spin_ns(const fl_worker *w)
{
    uint64_t ns = (uint64_t)(w->sched->core->settings.spin_us * 1000);
    return w->device->is_synchronous ? ns : ns / FL_SPIN_GPU;
}

/* Spins briefly, then sleeps, until notified, wake_at or the deadline. The caller has announced
 * idleness. */
static void sleep_announced(fl_worker *w, const fl_goal *goal, uint64_t deadline)
{
    uint64_t start = fl_time_now(), spin = start;
    uint64_t until = w->idle.wake_at < deadline ? w->idle.wake_at : deadline;
    uint64_t t = start;
    /* The worker has searched already if keeps_holders is set. */
    if (!w->sched->keeps_holders) {
        spin += spin_ns(w);
    }
    if (w->pipeline.in_flight != 0 && until != FL_TIME_NEVER &&
        until - start > (spin - start) / FL_SPIN_NAPS) {
        /* The device has enough work until `until`. */
        spin = start;
    }
    while (t < spin && t < until && !fl_eventcount_is_notified(&w->signals.event) &&
           !must_stay_awake(w, goal)) {
        for (int i = 0; i < 64; ++i) {
            fl_relax();
        }
        t = fl_time_now();
    }
    if (t >= until || must_stay_awake(w, goal)) {
        fl_eventcount_cancel(&w->signals.event);
    } else {
        fl_eventcount_sleep(&w->signals.event, until == FL_TIME_NEVER ? UINT64_MAX : until - t);
        fl_preempt_slept(&w->ledger.preempt, t, fl_time_now());
    }
}

static uint64_t first_look_ns(const fl_worker *w)
{
    /* Relaxed: written by the worker. */
    double mean = fl_worker_mean_ns(w);
    return (uint64_t)(mean < FL_SEARCH_LEAST_NS  ? FL_SEARCH_LEAST_NS
                      : mean < FL_SEARCH_MOST_NS ? mean
                                                 : FL_SEARCH_MOST_NS);
}

/* Relaxed: a hint. */
static bool has_jobs(const fl_sched *sched)
{
    const fl_jobs *jobs = sched->core->jobs;
    return fl_load_relaxed(&jobs->running) != fl_load_relaxed(&jobs->kept);
}

/* Searches, for a core's worker without work: waits for tasks put into the inbox, and looks around
 * at intervals, before sleeping. While no job runs, the worker yields the core to any thread, most
 * likely the thread that waited for the last job and is about to submit the next. True: the worker
 * has done something. */
static bool search(fl_worker *w, const fl_goal *goal, uint64_t deadline)
{
    fl_sched *sched = w->sched;
    uint64_t t = fl_time_now(), least = first_look_ns(w), gap = least, nap = w->idle.nap_ns;
    uint64_t look_at = t + gap;
    uint64_t end = t + spin_ns(w);
    fl_act act = FL_ACT_WAIT;
    end = deadline < end ? deadline : end;
    /* Relaxed, both accesses: a hint for threads about to wake a worker. */
    fl_store_relaxed(&w->queues.state, FL_WORKER_SEARCHING);
    fl_add_relaxed(&sched->searching, 1);
    while (act == FL_ACT_WAIT && t < end && !must_stay_awake(w, goal)) {
        if (has_jobs(sched)) {
            for (int i = 0; i < 8; ++i) {
                fl_relax();
            }
        } else {
            fl_thread_yield();
            if (has_jobs(sched)) {
                /* Look at once. */
                look_at = t;
                gap = least;
            }
        }
        t = fl_time_now();
        if (t >= look_at || !fl_inbox_is_empty(&w->queues.inbox) ||
            !fl_inbox_is_empty(&w->queues.claimed)) {
            act = fl_worker_step(w);
            /* Only sleeps change the nap time. */
            w->idle.nap_ns = nap;
            gap = gap < FL_SEARCH_GROWTH * least ? 2 * gap : gap;
            look_at = t + gap;
        }
    }
    fl_sub_relaxed(&sched->searching, 1);
    fl_store_relaxed(&w->queues.state, FL_WORKER_RUNNING);
    if (act == FL_ACT_RUN) {
        w->idle.nap_ns = 0;
        fl_worker_run(w);
    }
    return act != FL_ACT_WAIT || must_stay_awake(w, goal);
}

/* Looks for work once more after announcing idleness; sleeps without work. `goal`: the goal of a
 * nested wait, or null. */
static void rest(fl_worker *w, const fl_goal *goal, uint64_t deadline)
{
    if (w->sched->keeps_holders && search(w, goal, deadline)) {
        return;
    }
    set_idle(w);
    if (FL_UNLIKELY(fl_load_relaxed(&w->sched->pressure.eased) != 0)) {
        fl_pressure_ease(w->sched);
    }
    fl_act act = fl_worker_step(w);
    if (act == FL_ACT_WAIT) {
        sleep_announced(w, goal, deadline);
        if (clear_idle(w) && goal != NULL && (fl_goal_is_met(goal) || fl_time_now() >= deadline)) {
            /* The waker may have chosen us for work no longer looked for here. */
            fl_sched_wake(w->sched, 1);
        }
        return;
    }
    fl_eventcount_cancel(&w->signals.event);
    if (clear_idle(w)) {
        /* A waker chose us for work that we may not have found: pass the wake-up on before getting
         * busy. */
        fl_sched_wake(w->sched, 1);
    }
    if (act == FL_ACT_RUN) {
        fl_worker_run(w);
    }
}

int fl_drive_thread(void *arg)
{
    fl_worker *w = arg;
    fl_sched *sched = w->sched;
    fl_thread_name(w->device->info.name);
    if (!w->device->is_synchronous) {
        fl_thread_slack(FL_TIMER_SLACK_NS);
    }
    if (w->device->backend->device->bind != NULL) {
        filch_status status = w->device->backend->device->bind(w->device);
        if (status != FILCH_OK) {
            fl_log_write(&sched->core->log, FILCH_LOG_WARNING,
                         "device %s: its thread could not be bound (%s)", w->device->info.name,
                         filch_status_name(status));
        }
    }
    if (fl_tss_set(sched->core->worker, w) != FILCH_OK) {
        fl_log_write(&sched->core->log, FILCH_LOG_WARNING,
                     "device %s: tasks cannot wait for other work here", w->device->info.name);
    }
    fl_preempt_begin(&w->ledger.preempt, NULL, NULL);
    while (!is_stopping(sched)) {
        if (!advance(w)) {
            rest(w, NULL, FL_TIME_NEVER);
        }
    }
    return 0;
}

/* Whether a worker sleeps, and nobody has woken it, or finds nothing. Relaxed: a guess. */
static bool is_idle(const fl_worker *w)
{
    return (fl_load_relaxed(&w->sched->idle[w->index / 64]) >> w->index % 64 & 1) != 0 ||
           fl_load_relaxed(&w->queues.state) == FL_WORKER_SEARCHING;
}

static bool has_idled(const fl_worker *w, uint64_t t, uint64_t ns)
{
    fl_reading reading;
    fl_ledger_read(&w->ledger, t, &reading);
    return reading.kind != FL_SPELL_ON && t >= reading.idle_since + ns;
}

/* Whether to take any work in a deep wait. The end of the wait may hang on a task that the goal
 * does not name: one that ends a pending task, or closes a graph. */
static bool is_stuck(const fl_worker *w)
{
    const fl_sched *sched = w->sched;
    bool are_threads = sched->drive == FILCH_DRIVE_THREADS;
    uint64_t t = fl_worker_clock(w), ns = w->now.frames->goes_on ? 0 : STUCK_NS;
    if (has_idled(w, t, FRUITLESS_NS)) {
        return true;
    }
    for (uint32_t i = 0; i < sched->count; ++i) {
        const fl_worker *other = &sched->workers[i];
        if (!has_idled(other, t, ns) || (are_threads && other != w && !is_idle(other))) {
            return false;
        }
    }
    return true;
}

/* Whether the stack has room for items that wait in turn. The first refusal in a runtime is logged.
 */
static bool has_stack(fl_worker *w)
{
    fl_frame *wait = w->now.frames;
    if (!wait->has_asked) {
        wait->has_asked = true;
        wait->has_stack = fl_thread_has_stack();
    }
    /* Relaxed, both accesses: a count. */
    if (!wait->has_stack && fl_load_relaxed(&w->sched->stacks_full) == 0 &&
        fl_add_relaxed(&w->sched->stacks_full, 1) == 0) {
        fl_log_write(&w->sched->core->log, FILCH_LOG_WARNING,
                     "device %s: tasks wait %u deep, and half of the stack is used: the last wait "
                     "takes only work of its job",
                     w->device->info.name, wait->depth);
    }
    return wait->has_stack;
}

/* Looks for any work in a deep wait; in poll mode on every worker not held by a second thread.
 * False: there is none, or the look would be too early. */
static bool advance_stuck(fl_worker *w)
{
    fl_frame *wait = w->now.frames;
    if (!is_stuck(w) || !has_stack(w)) {
        wait->goes_on = false;
        return false;
    }
    wait->has_nested = false;
    wait->takes_any = true;
    fl_act act = fl_worker_step(w);
    wait->takes_any = false;
    bool worked = act != FL_ACT_WAIT;
    if (act == FL_ACT_RUN) {
        fl_worker_run(w);
    } else if (!worked && w->sched->drive == FILCH_DRIVE_POLL) {
        fl_polled polled = {0};
        wait->takes_any = true;
        fl_drive_round(w->sched, &polled);
        wait->takes_any = false;
        worked = polled.worked;
    }
    /* Items that do not wait add nothing to the stack. */
    wait->goes_on = worked && !wait->has_nested;
    return worked;
}

/* Advances a nested wait once. In poll mode, drives every worker not held by a second thread. */
static void advance_nested(fl_worker *w, const fl_goal *goal, uint64_t deadline)
{
    fl_sched *sched = w->sched;
    fl_act act = fl_worker_step(w);
    bool worked = act != FL_ACT_WAIT;
    if (act == FL_ACT_RUN) {
        w->now.frames->goes_on = false;
        fl_worker_run(w);
    }
    if (!worked && sched->drive == FILCH_DRIVE_POLL) {
        fl_polled polled = {0};
        fl_drive_round(sched, &polled);
        w->now.frames->goes_on = w->now.frames->goes_on && !polled.worked;
        /* The workers further down the stack do not come to their tasks meanwhile. */
        worked = polled.worked || fl_full_relieve(w) || fl_nested_set_aside(w);
        uint64_t nap = fl_time_now() + FL_NAP_LEAST_NS;
        deadline = nap < deadline ? nap : deadline;
    }
    if (!worked && fl_worker_waits_deep(w)) {
        worked = advance_stuck(w);
        uint64_t look_at = fl_time_now() + STUCK_NS;
        deadline = look_at < deadline ? look_at : deadline;
    }
    if (!worked) {
        rest(w, goal, deadline);
    }
}

filch_status fl_drive_nested(fl_worker *w, fl_goal goal, uint64_t deadline, const char *call)
{
    fl_nested nested;
    filch_status status = fl_nested_open(w, &nested, goal.job, call);
    if (status != FILCH_OK) {
        return status;
    }
    do {
        while (fl_nested_must_go_on(w) || (status == FILCH_OK && !fl_goal_is_met(&goal))) {
            if (!fl_nested_must_go_on(w) && deadline != FL_TIME_NEVER &&
                fl_time_now() >= deadline) {
                status = FILCH_TIMEOUT;
            } else {
                advance_nested(w, &goal, deadline);
            }
        }
        /* The item picked last has been run, but not retired. */
        fl_worker_settle(w);
        /* The worker may then hold the next piece of a task being divided. The piece is not left
         * behind: a thread waiting for the task would wait for the next work of the task here. */
    } while (fl_nested_must_go_on(w));
    fl_nested_close(w, &nested);
    return status;
}

/* Advances a worker once on a foreign thread. */
static bool advance_as_guest(fl_worker *w)
{
    const fl_backend *backend = w->device->backend;
    fl_stay stay;
    /* A device refusing entry has failed, as the step will find. */
    bool enters = backend->device->enter != NULL &&
                  backend->device->enter(w->device, &stay, NULL) == FILCH_OK;
    bool any = advance(w);
    if (enters) {
        backend->device->leave(&stay);
    }
    return any;
}

/* --- Poll mode --- */

/* Advances a worker once, unless a second thread holds it. */
static void advance_if_free(fl_worker *w, fl_worker *self, fl_polled *polled)
{
    uint32_t is_free = 0;
    /* Acquire: the effects of the thread that drove the worker before. */
    if (fl_load_relaxed(&w->signals.held) != 0 || !fl_cas_acquire(&w->signals.held, &is_free, 1)) {
        polled->has_missed = true;
        return;
    }
    if (fl_tss_set(w->sched->core->worker, w) == FILCH_OK) {
        /* Frames of a nested wait continue through the workers driven here: the jobs not to be
         * waited for, and the depth. */
        w->now.frames = self != NULL ? self->now.frames : NULL;
        /* An item that ran in the step before ends in this one. */
        w->now.has_worked =
            w->now.item.state == FL_ITEM_LAUNCHED || w->now.item.state == FL_ITEM_PENDING;
        bool goes_on = advance_as_guest(w);
        polled->goes_on = polled->goes_on || goes_on;
        polled->worked = polled->worked || goes_on || w->now.has_worked;
        if (!goes_on && w->idle.wake_at < polled->wake_at) {
            polled->wake_at = w->idle.wake_at;
        }
        w->now.frames = NULL;
        fl_tss_set(w->sched->core->worker, self);
    } else {
        polled->has_missed = true;
    }
    /* Release: pairs with the acquire above. */
    fl_store_release(&w->signals.held, 0);
}

void fl_drive_enter(fl_sched *sched)
{
    /* Seq_cst: precedes the looks for work. A thread that counts no other driver later sleeps by
     * what was told alone. */
    fl_add_seq_cst(&sched->drivers, 1);
}

void fl_drive_round(fl_sched *sched, fl_polled *polled)
{
    fl_worker *self = fl_sched_self(sched);
    polled->goes_on = polled->has_missed = false;
    polled->wake_at = FL_TIME_NEVER;
    for (uint32_t i = 0; i < sched->count; ++i) {
        advance_if_free(&sched->workers[i], self, polled);
    }
}

bool fl_drive_leave(fl_sched *sched, const fl_polled *polled)
{
    if (polled->worked) {
        /* Workers do not tell of every task that they queue. */
        fl_sched_turn(sched);
    }
    /* Acquire-release: who counts no other driver sees what those have done that have left. */
    return fl_sub_acq_rel(&sched->drivers, 1) != 1;
}

bool fl_drive_poll(fl_sched *sched, uint64_t deadline)
{
    fl_polled polled = {0};
    fl_drive_enter(sched);
    do {
        fl_drive_round(sched, &polled);
    } while (polled.goes_on && fl_time_now() < deadline);
    (void)fl_drive_leave(sched, &polled);
    return polled.worked;
}
