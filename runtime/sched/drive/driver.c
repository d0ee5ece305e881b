/* SPDX-License-Identifier: Apache-2.0 */
/* Who calls the workers' steps: a pinned thread each, the host's threads in filch_poll, or a tile
 * that waits for other work; the virtual clock is virtual.c's. */
#include "sched/drive/driver.h"

#include "sched/execute/full.h"
#include "sched/execute/host_call.h"
#include "sched/execute/step.h"
#include "sched/worker/sched.h"

/* Beside a busy device, sleeps longer than this part of the time that an idle worker spins are not
 * spun: they end by themselves. */
#define NAPS_SPUN 4
/* A GPU's worker spins this part of the time that a core's worker does: its driver tells it of more
 * than it could see by spinning. */
#define GPU_SPIN 5u
/* Of a GPU's worker, which wakes up just before a tile is predicted to end. */
#define SLACK_NS 1000u

static bool is_stopping(const fl_sched *sched)
{
    return fl_load_relaxed(&sched->stopping) != 0; /* set before our event is notified */
}

/* Announced first: whoever clears the bit must find somebody to notify. Were it the other way
 * round, a waker between the two would leave us asleep without a bit, unseen by all later ones. */
static void set_idle(fl_worker *w)
{
    fl_eventcount_announce(&w->event);
    /* Release: the announcement before the bit. The fence: both before the second look for work. */
    fl_or_release(&w->sched->idle[w->index / 64], (uint64_t)1 << (w->index % 64));
    if (w->sched->keeps_holders) {
        /* Seq_cst: before the last look at the inbox, against those who put a task there and then
         * look whether we sleep (place.c). Our bit is set before, so that they find it. */
        fl_store_seq_cst(&w->state, FL_WORKER_ASLEEP);
    }
    fl_fence_seq_cst();
}

/* True when a waker had chosen this worker. */
static bool clear_idle(fl_worker *w)
{
    if (w->sched->keeps_holders) {
        fl_store_relaxed(&w->state, FL_WORKER_RUNNING); /* it looks before it sleeps again */
    }
    uint64_t bit = (uint64_t)1 << (w->index % 64);
    /* Acquire: what the waker that cleared it had published. Nothing needs the release. */
    return (fl_and_acq_rel(&w->sched->idle[w->index / 64], ~bit) & bit) == 0;
}

/* Steps, and runs what the step picked. False: nothing to do before w->wake_at. */
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
    return w->device->is_synchronous ? ns : ns / GPU_SPIN;
}

/* Spins a little, then sleeps, until notified, wake_at or the deadline. Announced before. */
static void sleep_announced(fl_worker *w, const fl_goal *goal, uint64_t deadline)
{
    uint64_t start = fl_time_now(), spin = start;
    uint64_t until = w->wake_at < deadline ? w->wake_at : deadline;
    uint64_t t = start;
    if (!w->sched->keeps_holders) { /* else it has searched */
        spin += spin_ns(w);
    }
    if (w->in_flight != 0 && until != FL_TIME_NEVER && until - start > (spin - start) / NAPS_SPUN) {
        spin = start; /* the device has enough to do until then */
    }
    while (t < spin && t < until && !fl_eventcount_is_notified(&w->event) &&
           !must_stay_awake(w, goal)) {
        for (int i = 0; i < 64; ++i) {
            fl_relax();
        }
        t = fl_time_now();
    }
    if (t >= until || must_stay_awake(w, goal)) {
        fl_eventcount_cancel(&w->event);
    } else {
        fl_eventcount_sleep(&w->event, until == FL_TIME_NEVER ? UINT64_MAX : until - t);
        fl_preempt_slept(&w->ledger.preempt, t, fl_time_now());
    }
}

/* A worker that searches looks around after the time of a task, within these bounds, and after
 * twice the time each time that it finds nothing, up to some tasks' time: each look takes lines
 * from those that work, and most often the next task is put into its inbox meanwhile. */
#define LEAST_LOOK_NS 500.0
#define MOST_LOOK_NS 4000.0
#define LOOK_GROWTH 4u

static uint64_t first_look_ns(const fl_worker *w)
{
    double mean = fl_bits_double(fl_load_relaxed(&w->item_ns)); /* our own */
    return (uint64_t)(mean < LEAST_LOOK_NS  ? LEAST_LOOK_NS
                      : mean < MOST_LOOK_NS ? mean
                                            : MOST_LOOK_NS);
}

/* Relaxed: a hint. */
static bool has_jobs(const fl_sched *sched)
{
    const fl_jobs *jobs = sched->core->jobs;
    return fl_load_relaxed(&jobs->running) != fl_load_relaxed(&jobs->kept);
}

/* Of a core's worker that has found nothing: waits for what others put into its inbox, and looks
 * around now and then, before it sleeps. While no job runs it leaves the core to whoever wants it:
 * most likely the thread that has waited for the last job, and is about to submit the next one.
 * True: it has done something. */
static bool search(fl_worker *w, const fl_goal *goal, uint64_t deadline)
{
    fl_sched *sched = w->sched;
    uint64_t t = fl_time_now(), least = first_look_ns(w), gap = least, nap = w->nap_ns;
    uint64_t look_at = t + gap;
    uint64_t end = t + spin_ns(w);
    fl_act act = FL_ACT_WAIT;
    end = deadline < end ? deadline : end;
    /* Relaxed, both: a hint for those who would wake somebody. */
    fl_store_relaxed(&w->state, FL_WORKER_SEARCHING);
    fl_add_relaxed(&sched->searching, 1);
    while (act == FL_ACT_WAIT && t < end && !must_stay_awake(w, goal)) {
        if (has_jobs(sched)) {
            for (int i = 0; i < 8; ++i) {
                fl_relax();
            }
        } else {
            fl_thread_yield();
            if (has_jobs(sched)) {
                look_at = t; /* at once */
                gap = least;
            }
        }
        t = fl_time_now();
        if (t >= look_at || !fl_inbox_is_empty(&w->inbox) || !fl_inbox_is_empty(&w->moved)) {
            act = fl_worker_step(w);
            w->nap_ns = nap; /* that is for sleeps */
            gap = gap < LOOK_GROWTH * least ? 2 * gap : gap;
            look_at = t + gap;
        }
    }
    fl_sub_relaxed(&sched->searching, 1);
    fl_store_relaxed(&w->state, FL_WORKER_RUNNING);
    if (act == FL_ACT_RUN) {
        w->nap_ns = 0;
        fl_worker_run(w);
    }
    return act != FL_ACT_WAIT || must_stay_awake(w, goal);
}

/* Looks for work once more after announcing that this worker is idle; sleeps if there is none.
 * `goal`: what a nested wait is for, or null. */
static void rest(fl_worker *w, const fl_goal *goal, uint64_t deadline)
{
    if (w->sched->keeps_holders && search(w, goal, deadline)) {
        return;
    }
    set_idle(w);
    fl_act act = fl_worker_step(w);
    if (act == FL_ACT_WAIT) {
        sleep_announced(w, goal, deadline);
        if (clear_idle(w) && goal != NULL && fl_goal_is_met(goal)) {
            fl_sched_wake(w->sched, 1); /* chosen perhaps for work that we now do not look for */
        }
        return;
    }
    fl_eventcount_cancel(&w->event);
    if (clear_idle(w)) {
        /* A waker chose us for work that we may not have found: pass it on before we are busy. */
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
        fl_thread_slack(SLACK_NS);
    }
    if (w->device->backend->bind != NULL) {
        filch_status status = w->device->backend->bind(w->device);
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

/* One turn of a nested wait. The host's threads drive every worker that they can get. */
static void advance_nested(fl_worker *w, const fl_goal *goal, uint64_t deadline)
{
    fl_sched *sched = w->sched;
    bool worked = advance(w);
    if (!worked && sched->drive == FILCH_DRIVE_POLL) {
        fl_drive_poll(sched, 0, &worked);
        worked = worked || fl_full_relieve(w);
        uint64_t nap = fl_time_now() + FL_POLL_NAP_NS;
        deadline = nap < deadline ? nap : deadline;
    }
    if (!worked) {
        rest(w, goal, deadline);
    }
}

filch_status fl_drive_nested(fl_worker *w, fl_goal goal, uint64_t deadline)
{
    fl_sched *sched = w->sched;
    const fl_memory *memory = &sched->core->memory;
    fl_frame frame = {.item = w->item, .goal = goal.job, .outer = w->frames};
    frame.depth = w->frames != NULL ? w->frames->depth + 1 : 1;
    for (uint32_t level = 0; level < FL_LEVELS; ++level) {
        frame.floors[level] = fl_load_relaxed(&w->levels[level].bottom); /* only we move it */
    }
    filch_view *outer_views = w->views;
    char *outer_scratch = w->scratch;
    size_t outer_bytes = w->scratch_bytes;
    filch_view *views = fl_alloc(memory, FL_MOST_VIEWS * sizeof *views);
    if (views == NULL) {
        return fl_core_fail(sched->core, FILCH_OUT_OF_MEMORY, "filch_job_wait", NULL,
                            "no memory to run other tasks meanwhile");
    }
    uint64_t begin = fl_clock_now(&sched->core->clock), nested = w->ledger.nested_ns;
    w->frames = &frame;
    /* Release: before the bits of idle workers, for who wakes those of withdrawn devices. */
    fl_store_release(&w->nested, frame.depth);
    w->has_item = false;
    w->views = views;
    w->scratch = NULL;
    w->scratch_bytes = 0;
    filch_status status = FILCH_OK;
    /* A tile that was picked, and waits for its operands, has to be run before we go. */
    do {
        while (w->is_fetching || w->adopted != NULL ||
               (status == FILCH_OK && !fl_goal_is_met(&goal))) {
            bool must_go_on = w->is_fetching || w->adopted != NULL;
            if (!must_go_on && deadline != FL_TIME_NEVER && fl_time_now() >= deadline) {
                status = FILCH_TIMEOUT;
            } else {
                advance_nested(w, &goal, deadline);
            }
        }
        fl_worker_settle(w); /* what was picked last has been run, but not retired */
        /* Of a task that is being divided the worker may have the next piece then. It is not left
         * behind: who waits for the task would wait for what the tile here does next. */
    } while (w->adopted != NULL);
    fl_free_aligned(memory, w->scratch, w->scratch_bytes, 64);
    fl_free(memory, views, FL_MOST_VIEWS * sizeof *views);
    w->views = outer_views;
    w->scratch = outer_scratch;
    w->scratch_bytes = outer_bytes;
    w->item = frame.item;
    w->has_item = true;
    w->frames = frame.outer;
    fl_store_release(&w->nested, frame.depth - 1);
    w->ledger.nested_ns = nested; /* those inside this wait are part of it */
    fl_worker_resume(w, begin);
    return status;
}

/* One turn of a worker on a thread that is not its own. */
static bool advance_as_guest(fl_worker *w)
{
    const fl_backend *backend = w->device->backend;
    fl_stay stay;
    /* Where the device cannot be entered it is lost, as the step will find. */
    bool enters = backend->enter != NULL && backend->enter(w->device, &stay, NULL) == FILCH_OK;
    bool any = advance(w);
    if (enters) {
        backend->leave(&stay);
    }
    return any;
}

void fl_drive_poll(fl_sched *sched, uint64_t deadline, bool *worked)
{
    /* Of a nested wait, which goes on through the workers that it drives: what they must not wait
     * for, and how deep it is. */
    fl_worker *self = fl_sched_self(sched);
    *worked = false;
    bool any;
    do {
        any = false;
        for (uint32_t i = 0; i < sched->count; ++i) {
            fl_worker *w = &sched->workers[i];
            uint32_t is_free = 0;
            /* Acquire: what the thread that drove the worker before did with it. */
            if (fl_load_relaxed(&w->held) != 0 || !fl_cas_acquire(&w->held, &is_free, 1)) {
                continue;
            }
            if (fl_tss_set(sched->core->worker, w) == FILCH_OK) {
                w->frames = self != NULL ? self->frames : NULL;
                any = advance_as_guest(w) || any;
                w->frames = NULL;
                fl_tss_set(sched->core->worker, self);
            }
            fl_store_release(&w->held, 0); /* pairs with the acquire above */
        }
        *worked = *worked || any;
    } while (any && fl_time_now() < deadline);
}
