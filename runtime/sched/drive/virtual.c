/* SPDX-License-Identifier: Apache-2.0 */
/* Driver on the virtual clock: a waiting thread steps the workers woken or due, in the order of
 * indices. Then the thread moves the clock to the earliest time requested by a worker. Workers are
 * woken as threads are: a worker without work announces idleness. */
#include "sched/decide/depth.h"
#include "sched/drive/driver.h"
#include "sched/execute/host_events.h"
#include "sched/execute/step.h"
#include "sched/worker/device.h"
#include "sched/worker/event_queue.h"
#include "sched/worker/presence.h"
#include "sched/worker/sched.h"

/* Tells whether a new task could begin on the worker's device. */
static bool has_room(const fl_worker *w)
{
    uint32_t window = w->device->window;
    return (window == 0 || w->pipeline.in_flight < window) &&
           w->device->joins_at <= fl_worker_clock(w);
}

static void step(fl_sched *sched, uint32_t index)
{
    fl_event_queue *events = sched->events;
    fl_worker *w = &sched->workers[index];
    uint64_t bit = (uint64_t)1 << index % 64;
    /* Relaxed: a host thread may count a wake-up during the step. */
    uint64_t stirs = fl_load_relaxed(&events->stirs);
    /* Acquire: as in driver.c. */
    fl_and_acq_rel(&sched->idle[index / 64], ~bit);
    fl_tss_set(sched->core->worker, w);
    /* Precedes the step, because the step acts on the new state. */
    uint64_t turn = fl_presence_turn(w);
    fl_act act = fl_worker_step(w);
    if (act == FL_ACT_WAIT && w->device->is_looked_at && !fl_depth_is_launching(w)) {
        /* A thread looks a second time before sleeping, too. */
        act = fl_worker_step(w);
    }
    fl_tss_set(sched->core->worker, NULL);
    fl_event_queue_engage(events, index,
                          w->pipeline.in_flight != 0 || fl_worker_is_stalled(w) ||
                              fl_depth_is_launching(w) || fl_host_events_is_on(w));
    if (act == FL_ACT_MORE) {
        sched->has_moved = true;
        fl_event_queue_add(events, index);
        return;
    }
    fl_event_queue_set(events, index, w->idle.wake_at < turn ? w->idle.wake_at : turn);
    if (has_room(w)) {
        fl_or_release(&sched->idle[index / 64], bit);
        /* Fence: orders the bit before the load of wake-ups counted meanwhile. */
        fl_fence_seq_cst();
        if (fl_load_relaxed(&events->stirs) != stirs) {
            fl_event_queue_add(events, index);
        }
    }
}

/* Steps every due worker. False: no worker was due at the present time. */
static bool step_due(fl_sched *sched)
{
    bool any = false;
    fl_event_queue_reach(sched->events, fl_clock_now(&sched->core->clock));
    for (uint32_t word = 0; word * 64 < sched->count; ++word) {
        uint64_t bits = fl_event_queue_take(sched->events, word);
        any = any || bits != 0;
        while (bits != 0) {
            uint32_t index = word * 64 + (uint32_t)__builtin_ctzll(bits);
            bits &= bits - 1;
            step(sched, index);
        }
    }
    return any;
}

/* Earliest time of an event not caused by a device at work: a device joins or returns, or a refused
 * theft pays. Repeated looks by idle workers do not count. */
static uint64_t next_by_itself(const fl_sched *sched)
{
    uint64_t now = fl_clock_now(&sched->core->clock), next = FL_TIME_NEVER;
    for (uint32_t i = 0; i < sched->count; ++i) {
        const fl_worker *w = &sched->workers[i];
        bool has_left = now >= w->device->leaves_at && now < w->device->returns_at;
        uint64_t at = w->device->joins_at > now ? w->device->joins_at
                      : has_left                ? w->device->returns_at
                                                : w->idle.ready_at;
        next = at < next ? at : next;
    }
    return next;
}

/* Returns the time of the next step; no worker is due now. If no device works, every worker looks
 * once more first; the present time is returned for the sweep. *swept: the sweep is done. */
static uint64_t next_time(fl_sched *sched, bool *swept)
{
    if (sched->events->engaged_count != 0) {
        return fl_event_queue_next(sched->events);
    }
    if (*swept && !sched->has_moved) {
        return next_by_itself(sched);
    }
    *swept = true;
    sched->has_moved = false;
    fl_event_queue_add_all(sched->events);
    return fl_clock_now(&sched->core->clock);
}

filch_status fl_drive_virtual(fl_sched *sched, fl_goal goal, uint64_t deadline)
{
    filch_status status = FILCH_OK;
    bool swept = false;
    fl_mutex_lock(&sched->drive_lock);
    /* The host may have changed anything since the last call. */
    fl_event_queue_add_all(sched->events);
    while (!fl_goal_is_met(&goal)) {
        if (step_due(sched)) {
            continue;
        }
        uint64_t next = next_time(sched, &swept);
        if (next > deadline || next == FL_TIME_NEVER) {
            /* No event happens before the deadline, or ever without a further call by the host. */
            fl_clock_advance(&sched->core->clock, deadline == FL_TIME_NEVER ? 0 : deadline);
            status = FILCH_TIMEOUT;
            break;
        }
        swept = swept && next <= fl_clock_now(&sched->core->clock);
        fl_clock_advance(&sched->core->clock, next);
    }
    fl_mutex_unlock(&sched->drive_lock);
    return status;
}
