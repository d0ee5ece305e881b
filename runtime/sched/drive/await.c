/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs that wait for events of the host's (graph/await.c says why they are asked for), and
 * broadcasts on their way: one worker, of a device that never runs a task on its thread, keeps the
 * vigil. */
#include "sched/worker/sched.h"

/* Asked again after an eighth of the time waited, between these. */
#define LEAST_NS 10000u
#define MOST_NS 2000000u

void fl_await_init(fl_sched *sched)
{
    fl_vigil *vigil = &sched->vigil;
    fl_inbox_init(&vigil->arrived);
    vigil->waiting = NULL;
    vigil->worker = sched->count;
    for (uint32_t d = sched->count; d-- > 0;) {
        const fl_backend *backend = sched->pool->devices[d].backend;
        /* Where nobody knows of events, there are broadcasts still: between simulated memories. */
        if (backend->event_past != NULL || (backend->is_virtual && backend->copy != NULL)) {
            vigil->worker = d;
        }
    }
}

bool fl_await_is_on(const fl_worker *w)
{
    return w->sched->vigil.worker == w->index && w->sched->vigil.waiting != NULL;
}

void fl_await_add(fl_sched *sched, filch_job *job)
{
    fl_inbox_push(&sched->vigil.arrived, &job->awaiting);
    fl_sched_wake_worker(sched, sched->vigil.worker);
}

static bool take_arrived(fl_vigil *vigil)
{
    fl_link *link = fl_inbox_drain(&vigil->arrived);
    bool any = link != NULL;
    while (link != NULL) {
        filch_job *job = fl_job_of_link(link);
        link = link->next;
        job->next = vigil->waiting;
        vigil->waiting = job;
    }
    return any;
}

/* Starts the jobs whose events are past; true when there was one. *moved: something went on. */
static bool look(fl_worker *w, fl_vigil *vigil, bool *moved)
{
    bool any = false;
    for (filch_job **at = &vigil->waiting; *at != NULL;) {
        filch_job *job = *at;
        bool has_moved = false;
        bool is_past = fl_job_events_past(job, &has_moved);
        *moved = *moved || has_moved;
        if (!is_past) {
            at = &job->next;
            continue;
        }
        *at = job->next;
        job->next = NULL;
        any = true;
        if (fl_job_awaited(job)) {
            job->next = w->completed; /* its callback runs when the step is over */
            w->completed = job;
        }
    }
    return any;
}

fl_act fl_await_step(fl_worker *w, fl_act act)
{
    fl_vigil *vigil = &w->sched->vigil;
    if (vigil->waiting == NULL && fl_inbox_is_empty(&vigil->arrived)) {
        return act;
    }
    uint64_t t = fl_clock_now(&w->sched->core->clock);
    bool is_new = take_arrived(vigil), any = false, moved = false;
    vigil->since = is_new ? t : vigil->since;
    if (is_new || t >= vigil->look_at) {
        any = look(w, vigil, &moved);
        vigil->since = moved ? t : vigil->since;
        uint64_t nap = (t - vigil->since) / 8;
        nap = nap < LEAST_NS ? LEAST_NS : nap < MOST_NS ? nap : MOST_NS;
        vigil->look_at = t + nap;
    }
    if (act != FL_ACT_WAIT) {
        return act;
    }
    if (any) {
        return FL_ACT_MORE;
    }
    w->wake_at =
        vigil->waiting != NULL && vigil->look_at < w->wake_at ? vigil->look_at : w->wake_at;
    return FL_ACT_WAIT;
}
