/* SPDX-License-Identifier: Apache-2.0 */
/* Work that finds no room on its device. Who places a task knows the budgets, but not what others
 * leave of them, which is found out by taking it. A task that cannot have what it needs, although
 * nothing else is in the memory, goes on to another device that has more, by what was found out
 * there: in turn, from the next one on, each as often as there are devices at most, so that two do
 * not send it back and forth. It is claimed, and stays so.
 *
 * A batch's chunk goes back into its device's range, which the device leaves to the others from
 * then on: they rob it as they do one that is lost. Where a policy cut the batch a range may be of
 * pieces, or for all: the chunk is put beside it, where anyone takes it. The last device has no
 * such way out, and tries all that is left before it fails. */
#include "sched/execute/full.h"

#include "sched/execute/divide.h"
#include "sched/execute/step.h"
#include "sched/worker/device.h"
#include "sched/worker/sched.h"

/* Whether the device has room by what is known; in the same memory it has not. */
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
    /* What filch adds by itself, and partial results, are bound to devices. */
    bool may_move = !task->is_gate && !task->reduces && !task->combines && !task->begins;
    if (may_move && task->moves < sched->count && sched->policy != FILCH_POLICY_STATIC) {
        /* Where nobody who is there has room, it waits with one that is withdrawn. */
        other = find_room(w, task, false);
        other = other != NULL ? other : find_room(w, task, true);
    }
    if (other == NULL) {
        task->moves = 0;
        return false;
    }
    fl_worker_flush(w); /* the job may be over as soon as others have the task */
    ++task->moves;
    fl_inbox_push(&other->moved, &task->link);
    fl_sched_wake_worker(sched, other->index);
    return true;
}

void fl_full_gather(fl_worker *w)
{
    for (fl_link *link = fl_inbox_drain(&w->moved); link != NULL;) {
        fl_link *next = link->next; /* before the task is in another list */
        fl_task *task = fl_task_of_link(link);
        if (w->device->is_synchronous) {
            task->moves = 0; /* the host's memory has room */
        }
        link->next = w->kept;
        w->kept = link;
        link = next;
    }
}

bool fl_full_relieve(fl_worker *w)
{
    fl_sched *sched = w->sched;
    bool any = false;
    for (uint32_t i = 1; i < sched->count; ++i) {
        fl_worker *other = &sched->workers[(w->index + i) % sched->count];
        /* Relaxed: of one that is being driven by another thread what is taken runs here as well.
         */
        if (fl_inbox_is_empty(&other->moved) || fl_load_relaxed(&other->held) == 0) {
            continue;
        }
        for (fl_link *link = fl_inbox_drain(&other->moved); link != NULL;) {
            fl_link *next = link->next; /* before the task is in another list */
            const fl_task *task = fl_task_of_link(link);
            bool is_ours = fl_worker_can_run(w, task) &&
                           (!fl_task_is_divided(task) || fl_divide_is_here(w, task));
            fl_inbox_push(is_ours ? &w->moved : &other->moved, link);
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
    fl_worker_flush(w); /* as above */
    fl_store_relaxed(&share->is_out, 1);
    fl_store_relaxed(&w->sched->has_left, 1); /* before the fence of the wake-up, as is all of it */
    if (!fl_pieces_return(w, item)) {
        return false;
    }
    fl_sched_wake(w->sched, w->sched->count);
    return true;
}
