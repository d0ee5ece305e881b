/* SPDX-License-Identifier: Apache-2.0 */
/* Work without room on its device. A thread placing a task knows the capacities, but not the memory
 * taken by other users, which shows at fetch. A task lacking memory, although no other item uses
 * the memory, moves to a device with more room by present knowledge. Devices are tried in turn,
 * starting with the next device. The number of moves is at most the number of devices, so two
 * devices do not send a task back and forth. The task stays claimed.
 *
 * A chunk of a batch goes back into the device's range, and the device leaves the range to other
 * devices, which rob the range as for a failed device. If a policy cut the batch, the range may
 * consist of pieces or be shared: the chunk is put beside the range, open to every device. The last
 * device cannot leave the range, and tries every remaining grain before failing. */
#include "sched/execute/full.h"

#include "sched/execute/divide.h"
#include "sched/execute/pick.h"
#include "sched/execute/step.h"
#include "sched/worker/device.h"
#include "sched/worker/sched.h"
#include "sched/worker/wake.h"

/* Tells whether the device of `other` has room by present knowledge. A device sharing the worker's
 * memory node has no room. */
static bool has_room(const fl_worker *w, const fl_worker *other, const fl_task *task, bool is_away)
{
    const fl_places *places = w->sched->core->places;
    const fl_device *device = other->device;
    if (device->place == w->device->place || fl_worker_has_failed(other) ||
        fl_worker_is_offline(other) != is_away || !fl_worker_can_run(other, task)) {
        return false;
    }
    return device->place == 0 ||
           fl_capacity_need(task, device->place) <= fl_place_budget(places, device->place);
}

static fl_worker *find_room(const fl_worker *w, const fl_task *task, bool is_away)
{
    fl_sched *sched = w->sched;
    for (uint32_t i = 1; i < sched->count; ++i) {
        fl_worker *other = &sched->workers[(w->index + i) % sched->count];
        if (has_room(w, other, task, is_away)) {
            return other;
        }
    }
    return NULL;
}

bool fl_full_move(fl_worker *w, fl_task *task)
{
    fl_sched *sched = w->sched;
    fl_worker *other = NULL;
    /* Gates, filch's own tasks and partial results are bound to devices. */
    bool may_move = !task->is_gate && !task->reduces && !task->combines && !task->begins;
    if (may_move && task->moves < sched->count && sched->policy != FILCH_POLICY_STATIC) {
        /* Lacking an available device with room, the task waits with an offline device. */
        other = find_room(w, task, false);
        other = other != NULL ? other : find_room(w, task, true);
    }
    if (other == NULL) {
        task->moves = 0;
        return false;
    }
    /* The job may be over as soon as a second worker has the task. */
    fl_worker_flush(w);
    ++task->moves;
    fl_inbox_push(&other->queues.moved, &task->link);
    fl_sched_wake_worker(sched, other->index);
    return true;
}

void fl_full_gather(fl_worker *w)
{
    for (fl_link *link = fl_inbox_drain(&w->queues.moved); link != NULL;) {
        /* Read first: the task goes to a second list. */
        fl_link *next = link->next;
        fl_task *task = fl_task_of_link(link);
        if (w->device->is_synchronous) {
            /* The host's memory has room. */
            task->moves = 0;
        }
        link->next = w->ready.kept;
        w->ready.kept = link;
        link = next;
    }
}

bool fl_full_relieve(fl_worker *w)
{
    fl_sched *sched = w->sched;
    bool any = false;
    for (uint32_t i = 1; i < sched->count; ++i) {
        fl_worker *other = &sched->workers[(w->index + i) % sched->count];
        /* Relaxed: a task taken from a worker driven by a second thread runs here as well. */
        if (fl_inbox_is_empty(&other->queues.moved) || fl_load_relaxed(&other->signals.held) == 0) {
            continue;
        }
        for (fl_link *link = fl_inbox_drain(&other->queues.moved); link != NULL;) {
            /* Read first: the task goes to a second list. */
            fl_link *next = link->next;
            const fl_task *task = fl_task_of_link(link);
            bool is_ours = fl_worker_can_run(w, task) &&
                           (!fl_task_is_divided(task) || fl_divide_is_here(w, task));
            fl_inbox_push(is_ours ? &w->queues.moved : &other->queues.moved, link);
            any = any || is_ours;
            link = next;
        }
    }
    return any;
}

bool fl_full_others(const fl_worker *w, const filch_job *job)
{
    const fl_sched *sched = w->sched;
    for (uint32_t d = 0; d < sched->count && sched->rules.kind != FILCH_POLICY_STATIC; ++d) {
        if (d != w->index && !fl_worker_has_failed(&sched->workers[d]) &&
            fl_devices_have(fl_batch_devices(job->batch), d) &&
            fl_load_relaxed(&fl_job_share(job, d)->is_out) == 0) {
            return true;
        }
    }
    return false;
}

bool fl_full_leave(fl_worker *w, const fl_item *item)
{
    filch_job *job = item->job;
    fl_share *share = fl_job_share(job, w->index);
    if (!fl_full_others(w, job)) {
        return false;
    }
    /* The job may be over, as in fl_full_move. */
    fl_worker_flush(w);
    fl_store_relaxed(&share->is_out, 1);
    /* Relaxed: precedes the fence of the wake-up, as do the earlier stores. */
    fl_store_relaxed(&w->sched->has_left, 1);
    if (!fl_pieces_return(w, item)) {
        return false;
    }
    fl_sched_wake(w->sched, w->sched->count);
    return true;
}
