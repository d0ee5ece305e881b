/* SPDX-License-Identifier: Apache-2.0 */
#include "sched/worker/presence.h"

#include "sched/worker/device.h"
#include "sched/worker/pressure.h"
#include "sched/worker/wake.h"

/* Counts a change. Under slots_lock. */
static void count_change(fl_sched *sched, bool was_away, bool is_away)
{
    if (was_away != is_away) {
        /* Adds -1 modulo 2^32. */
        fl_add_relaxed(&sched->offline_count, is_away ? 1 : UINT32_MAX);
    }
    /* Release: orders the duties, or the cancellation, before the count announcing the change. */
    fl_add_release(&sched->roster, 1);
}

/* Wakes every worker to look again, offline workers too. */
static void tell(fl_sched *sched)
{
    fl_sched_wake(sched, sched->count);
    for (uint32_t d = 0; d < sched->count; ++d) {
        if (fl_worker_is_offline(&sched->workers[d])) {
            fl_sched_wake_worker(sched, d);
        }
    }
}

bool fl_presence_set(fl_sched *sched, uint32_t index, uint32_t duty, bool is_set)
{
    fl_worker *w = &sched->workers[index];
    fl_mutex_lock(&sched->slots_lock);
    /* Relaxed: the presence bits change under the lock only. */
    uint32_t before = fl_load_relaxed(&w->signals.duties);
    bool changes = ((before & duty) != 0) != is_set;
    if (changes) {
        uint32_t after = is_set ? before | duty : before & ~duty;
        bool was_away = (before & FL_DUTY_OFFLINE) != 0;
        if (!was_away) {
            /* Precedes the duty; afterwards the worker may set is_quiet. */
            fl_store_relaxed(&w->signals.is_quiet, 0);
        }
        /* Release: as in count_change. */
        fl_store_release(&w->signals.duties, after);
        count_change(sched, was_away, (after & FL_DUTY_OFFLINE) != 0);
    }
    fl_mutex_unlock(&sched->slots_lock);
    if (changes) {
        fl_sched_wake_worker(sched, index);
        tell(sched);
    }
    return changes;
}

void fl_presence_cancelled(fl_scheduler *self)
{
    fl_sched *sched = (fl_sched *)(void *)self;
    /* Fence: orders the cancellation against a device going offline. */
    fl_fence_seq_cst();
    if (fl_load_relaxed(&sched->offline_count) != 0) {
        fl_add_release(&sched->roster, 1);
        tell(sched);
    } else if (fl_sched_attends(sched, FL_ATTEND_SHARED)) {
        /* A cancelled task is no longer better left to a second device. */
        fl_sched_wake(sched, sched->count);
    }
    fl_pressure_turn(sched);
}

filch_presence fl_presence_of(const fl_sched *sched, uint32_t index)
{
    const fl_worker *w = &sched->workers[index];
    if (sched->scheduler.device_is_lost((fl_scheduler *)(uintptr_t)&sched->scheduler, index)) {
        return FILCH_PRESENCE_LOST;
    }
    if (!fl_worker_is_offline(w)) {
        return FILCH_PRESENCE_THERE;
    }
    /* Acquire: items on the device are over. */
    return fl_load_acquire(&w->signals.is_quiet) != 0 ? FILCH_PRESENCE_WITHDRAWN
                                                      : FILCH_PRESENCE_LEAVING;
}

uint64_t fl_presence_turn(fl_worker *w)
{
    const fl_device *device = w->device;
    if (FL_LIKELY(device->leaves_at >= device->returns_at)) {
        /* The device does not leave. */
        return FL_TIME_NEVER;
    }
    uint64_t t = fl_worker_clock(w);
    bool has_left = t >= device->leaves_at && t < device->returns_at;
    if (has_left != ((fl_load_relaxed(&w->signals.duties) & FL_DUTY_LEFT) != 0)) {
        fl_presence_set(w->sched, w->index, FL_DUTY_LEFT, has_left);
    }
    return t < device->leaves_at    ? device->leaves_at
           : t < device->returns_at ? device->returns_at
                                    : FL_TIME_NEVER;
}
