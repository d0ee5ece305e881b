/* SPDX-License-Identifier: Apache-2.0 */
/* Polling of jobs waiting for host events (graph/job/host_events.c has the reason for polling), and
 * of broadcasts in progress. One worker polls; its device never runs a task on the worker's
 * thread. */
#include "sched/execute/host_events.h"

#include "sched/worker/sched.h"
#include "sched/worker/tuning.h"
#include "sched/worker/wake.h"

void fl_host_events_init(fl_sched *sched)
{
    fl_event_polling *polling = &sched->polling;
    fl_inbox_init(&polling->arrived);
    polling->waiting = NULL;
    polling->worker = sched->count;
    for (uint32_t d = sched->count; d-- > 0;) {
        const fl_backend *backend = sched->pool->devices[d].backend;
        /* Simulated memories have no host events, but still have broadcasts. */
        if (backend->interop != NULL || (backend->is_virtual && backend->copy != NULL)) {
            polling->worker = d;
        }
    }
}

bool fl_host_events_is_on(const fl_worker *w)
{
    return w->sched->polling.worker == w->index && w->sched->polling.waiting != NULL;
}

void fl_host_events_add(fl_scheduler *self, filch_job *job)
{
    fl_sched *sched = (fl_sched *)(void *)self;
    fl_inbox_push(&sched->polling.arrived, &fl_part_of_job(job)->awaiting);
    fl_sched_wake_worker(sched, sched->polling.worker);
}

static bool take_arrived(fl_event_polling *polling)
{
    fl_link *link = fl_inbox_drain(&polling->arrived);
    bool any = link != NULL;
    while (link != NULL) {
        filch_job *job = fl_job_of_link(link);
        link = link->next;
        job->next = polling->waiting;
        polling->waiting = job;
    }
    return any;
}

/* Starts the jobs with every event past; true if at least one job started. *moved: a job made
 * progress. */
static bool look(fl_worker *w, fl_event_polling *polling, bool *moved)
{
    bool any = false;
    for (filch_job **at = &polling->waiting; *at != NULL;) {
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
            /* The job's callback runs at the end of the step. */
            job->next = w->now.completed;
            w->now.completed = job;
        }
    }
    return any;
}

fl_act fl_host_events_step(fl_worker *w, fl_act act)
{
    fl_event_polling *polling = &w->sched->polling;
    if (polling->waiting == NULL && fl_inbox_is_empty(&polling->arrived)) {
        return act;
    }
    uint64_t t = fl_worker_clock(w);
    bool is_new = take_arrived(polling), any = false, moved = false;
    polling->since = is_new ? t : polling->since;
    if (is_new || t >= polling->look_at) {
        any = look(w, polling, &moved);
        polling->since = moved ? t : polling->since;
        uint64_t nap = (t - polling->since) / FL_POLL_OF_WAIT;
        nap = nap < FL_EVENTS_LEAST_NS ? FL_EVENTS_LEAST_NS
              : nap < FL_POLL_MOST_NS  ? nap
                                       : FL_POLL_MOST_NS;
        polling->look_at = t + nap;
    }
    if (act != FL_ACT_WAIT) {
        return act;
    }
    if (any) {
        return FL_ACT_MORE;
    }
    w->idle.wake_at = polling->waiting != NULL && polling->look_at < w->idle.wake_at
                          ? polling->look_at
                          : w->idle.wake_at;
    return FL_ACT_WAIT;
}
