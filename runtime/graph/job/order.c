/* SPDX-License-Identifier: Apache-2.0 */
/* Order of jobs that share handles and include open graphs: the waiting relation between jobs, and
 * places in access queues that close no circle of waiting jobs.
 *
 * A job waits for jobs with conflicting uses in front of its own use in an access queue. Jobs of
 * batches, broadcasts and closed graphs enter their queues at the ends, at every queue in one step,
 * at submission. No job waits for a job being submitted, and no circle can close. A use of an open
 * graph enters in front of uses that have not begun and belong to jobs submitted later. The use
 * enters behind jobs that its own job already waits for, or is to wait for at a second handle of
 * the task. If a circle closes nevertheless, the graph tries the ends of the queues. If a circle
 * still closes, the add is refused. A job that no job waits for is therefore never refused.
 *
 * A use has begun once tasks of its job may have used the handle. Uses of a batch, a broadcast or a
 * closed graph begin when the job starts. An open graph's use begins when a task with every handle
 * granted is added: the handles of a task begin together.
 *
 * The places of an add are found and taken in one step under core->lock, like the places of a
 * submission: two threads cannot close a circle together. */
#include <stdio.h>

#include "graph/job/job.h"

/* --- Waiting relation --- */

typedef bool (*fl_is_one)(const filch_job *job, const void *user);

/* A search through jobs that wait for each other; guarded by core->lock. */
typedef struct fl_wait_walk {
    uint64_t number;
    filch_job *stack; /* jobs found, not visited yet */
    fl_is_one is_one;
    const void *user;
    bool is_found;    /* a job chosen by is_one was found */
    bool sees_trials; /* holds that do not wait count as waiting */
} fl_wait_walk;

static fl_wait_walk walk_begin(fl_core *core, fl_is_one is_one, const void *user)
{
    return (fl_wait_walk){.number = ++core->jobs->walks, .is_one = is_one, .user = user};
}

static void walk_to(fl_wait_walk *walk, filch_job *job)
{
    if (job->walk != walk->number) {
        job->walk = walk->number;
        walk->is_found = walk->is_found || walk->is_one(job, walk->user);
        job->walk_next = walk->stack;
        walk->stack = job;
    }
}

/* Tells whether a host waits at the hold. A granted hold ends when a thread releases it, and a
 * trial ends by itself: no circle of an add goes through either. A task about to wait sees trials:
 * in FILCH_DRIVE_POLL it may run within the trial, on the same stack. */
static bool is_waiting_hold(const fl_wait_walk *walk, const fl_queued_access *use)
{
    return use->is_hold && !use->granted && (walk->sees_trials || !use->is_trial);
}

/* Tells whether the use waits for an earlier use: directly, or through a waiting hold of the host
 * between the two uses. */
static bool waits_behind(const fl_wait_walk *walk, const fl_queued_access *use,
                         const fl_queued_access *before)
{
    bool waits = fl_access_queue_conflict(use, before);
    bool has_holds = use->data->holds != 0;
    for (const fl_queued_access *at = use->prev; has_holds && !waits && at != before;
         at = at->prev) {
        waits = at->is_hold && at->walk == walk->number && fl_access_queue_conflict(at, before);
    }
    return waits;
}

/* Adds the jobs that a use waits for at its place, notified or not. */
static void walk_use(fl_wait_walk *walk, const fl_queued_access *use)
{
    for (fl_queued_access *before = use->prev; before != NULL; before = before->prev) {
        if (!waits_behind(walk, use, before)) {
            continue;
        }
        if (before->is_hold) {
            before->walk = is_waiting_hold(walk, before) ? walk->number : 0;
            continue;
        }
        walk_to(walk, before->job);
        if (before->writes) {
            break; /* a writing use waits for every earlier use */
        }
    }
}

static void walk_on(fl_wait_walk *walk)
{
    while (walk->stack != NULL && !walk->is_found) {
        filch_job *job = walk->stack;
        walk->stack = job->walk_next;
        if (job->present != NULL) {
            walk_to(walk, job->present); /* a repetition ends after its newest run */
        }
        if (job->before != NULL) {
            walk_to(walk, job->before); /* a run of the same graph */
        }
        if (job->before != NULL && job->before->whole != NULL) {
            walk_to(walk, job->before->whole); /* further runs of a repetition come first */
        }
        /* The open graph's own lock guards its slots. A started job waits no more. */
        size_t count = job->is_open || job->blocked == 0 ? 0 : fl_job_use_count(job);
        for (size_t i = 0; i < count && !walk->is_found; ++i) {
            walk_use(walk, fl_job_use(job, i));
        }
        for (const fl_queued_access *use = job->late; use != NULL && !walk->is_found;
             use = use->late_next) {
            walk_use(walk, use);
        }
    }
}

bool fl_job_waits_for(filch_job *job, bool (*is_one)(const filch_job *job, const void *user),
                      const void *user)
{
    fl_core *core = job->object.core;
    fl_mutex_lock(&core->lock);
    fl_wait_walk walk = walk_begin(core, is_one, user);
    walk.sees_trials = true;
    job->walk = walk.number; /* marks the job itself: it does not wait for itself */
    job->walk_next = NULL;
    walk.stack = job;
    walk_on(&walk);
    fl_mutex_unlock(&core->lock);
    return walk.is_found;
}

/* --- Places --- */

static bool is_same(const filch_job *job, const void *user)
{
    return job == user;
}

static bool has_begun(const fl_queued_access *use)
{
    const filch_job *job = use->job;
    return use->is_hold ? use->granted : job->is_open ? use->begun : job->blocked == 0;
}

static bool is_marked(const fl_wait_walk *walk, const fl_queued_access *use)
{
    const filch_job *job = use->job;
    return (use->is_hold ? use->walk : job->walk) == walk->number;
}

/* Moves the uses that have begun to the front of the queue. A use that has begun conflicts with no
 * use in front of it: the move changes neither who waits for whom nor what is granted. A use placed
 * behind those that have begun then waits for no other. */
static void begun_to_front(const filch_data *data)
{
    fl_queued_access *front = data->first; /* every use before it has begun */
    for (fl_queued_access *at = front, *next; at != NULL; at = next) {
        next = at->next;
        if (!has_begun(at)) {
            continue;
        }
        if (at == front) {
            front = next;
        } else {
            fl_access_queue_move(at, front);
        }
    }
}

/* Returns the last hold, up to the given place, at which the use would wait for the host; or null.
 */
static const fl_queued_access *waiting_hold(const fl_wait_walk *walk, const fl_queued_access *use,
                                            const fl_queued_access *place)
{
    const fl_queued_access *at = use->data->holds != 0 ? place : NULL;
    while (at != NULL && !(is_waiting_hold(walk, at) && fl_access_queue_conflict(use, at))) {
        at = at->prev;
    }
    return at;
}

/* Searches the jobs waited for by a use placed behind last: uses in front of the place, from behind
 * first on (null: from the front). As a safe approximation, a waiting hold waits for every earlier
 * use. Returns a use that leads back to the job, or null. */
static const fl_queued_access *stand_behind(fl_wait_walk *walk, const fl_queued_access *use,
                                            fl_queued_access *first, fl_queued_access *last)
{
    const fl_queued_access *hold = waiting_hold(walk, use, last); /* null once passed */
    fl_queued_access *at = first != NULL && hold == NULL ? first->next : use->data->first;
    for (; last != NULL; at = at->next) {
        if (at->is_hold) {
            at->walk = is_waiting_hold(walk, at) ? walk->number : 0;
            hold = at == hold ? NULL : hold;
        } else if (hold != NULL || fl_access_queue_conflict(use, at)) {
            walk_to(walk, at->job);
            walk_on(walk);
            if (walk->is_found) {
                return at;
            }
        }
        if (at == last) {
            break;
        }
    }
    return NULL;
}

/* Moves *place, the predecessor of the use, behind conflicting uses that have begun or that the job
 * waits for. Returns a use that leads back to the job, or null. */
static const fl_queued_access *settle(fl_wait_walk *walk, const fl_queued_access *use,
                                      fl_queued_access **place)
{
    for (;;) {
        fl_queued_access *last = *place;
        fl_queued_access *at = *place != NULL ? (*place)->next : use->data->first;
        for (; at != NULL; at = at->next) {
            if (fl_access_queue_conflict(use, at) && (has_begun(at) || is_marked(walk, at))) {
                last = at;
            }
        }
        if (last == *place) {
            return NULL;
        }
        const fl_queued_access *circle = stand_behind(walk, use, *place, last);
        if (circle != NULL) {
            return circle;
        }
        *place = last;
    }
}

/* Searches the jobs with conflicting begun uses of the handle, and the jobs waited for in turn.
 * Returns a use that leads back to the job, or null. */
static const fl_queued_access *walk_to_begun(fl_wait_walk *walk, const fl_queued_access *use)
{
    for (const fl_queued_access *at = use->data->first; at != NULL; at = at->next) {
        if (!at->is_hold && fl_access_queue_conflict(use, at) && has_begun(at)) {
            walk_to(walk, at->job);
            walk_on(walk);
            if (walk->is_found) {
                return at;
            }
        }
    }
    return NULL;
}

/* Moves *place behind the uses of jobs submitted earlier, unless they wait for the job. */
static void give_way(fl_wait_walk *walk, const fl_queued_access *use, fl_queued_access **place)
{
    const filch_job *job = use->job;
    for (fl_queued_access *at = *place != NULL ? (*place)->next : use->data->first; at != NULL;
         at = at->next) {
        const filch_job *other = at->job;
        if (at->is_hold || !fl_access_queue_conflict(use, at) || other->sequence > job->sequence) {
            continue;
        }
        fl_queued_access *behind = at;
        if (stand_behind(walk, use, *place, at) != NULL || settle(walk, use, &behind) != NULL) {
            return;
        }
        *place = at = behind;
    }
}

const fl_queued_access *fl_order_find(const fl_queued_access *asking, bool is_last,
                                      fl_queued_access **place)
{
    filch_job *job = asking->job;
    fl_wait_walk walk = walk_begin(job->object.core, is_same, job);
    *place = NULL;
    begun_to_front(asking->data);
    /* Search the job's present waits; no job found waits for the job. */
    for (const fl_queued_access *late = job->late; late != NULL; late = late->late_next) {
        walk_use(&walk, late);
        walk_on(&walk);
    }
    if (is_last) {
        *place = asking->data->last;
        return stand_behind(&walk, asking, NULL, *place);
    }
    const fl_queued_access *circle = NULL;
    for (const fl_queued_access *use = asking; use != NULL && circle == NULL;
         use = use->late_next) {
        circle = walk_to_begun(&walk, use);
    }
    circle = circle == NULL ? settle(&walk, asking, place) : circle;
    if (circle == NULL) {
        give_way(&walk, asking, place);
    }
    return circle;
}

void fl_order_enter(fl_queued_access *use, fl_queued_access *place)
{
    filch_job *job = use->job;
    filch_data *data = use->data;
    fl_data_note_host(data);
    (void)fl_access_queue_enqueue_before(use, place != NULL ? place->next : data->first);
    use->late_next = job->late;
    job->late = use;
}

void fl_order_undo(filch_job *job)
{
    fl_queued_access *use = job->late;
    job->late = use->late_next;
    fl_access_queue_unlink(use);
}

void fl_order_pass(const fl_queued_access *use)
{
    for (fl_queued_access *at = use->next; at != NULL; at = at->next) {
        if (at->granted && fl_access_queue_conflict(use, at)) {
            filch_job *other = at->job; /* never a hold: a granted hold has begun */
            at->granted = false;
            other->blocked += !other->is_open;
        }
    }
}

/* --- Beginning --- */

void fl_order_begin(filch_job *job, const fl_queued_access *only)
{
    for (fl_queued_access **at = &job->late; *at != NULL;) {
        fl_queued_access *use = *at;
        if (!use->granted || (only != NULL && use != only)) {
            at = &use->late_next;
            continue;
        }
        *at = use->late_next;
        use->begun = true;
        fl_task *gate = use->gate;
        if (gate != NULL) {
            _Atomic uint32_t *begun = &gate->graph->gates_begun;
            fl_store_relaxed(begun, fl_load_relaxed(begun) + 1);
        }
        /* Acquire-release, as for a task's predecessors: the last decrement sees the effects of
         * every earlier job. */
        if (gate != NULL && fl_sub_acq_rel(&gate->pending, 1) == 1) {
            fl_scheduler *scheduler = job->object.core->scheduler;
            scheduler->task_ready(scheduler, gate);
        }
    }
}

void fl_order_describe(const filch_job *job, const fl_queued_access *circle, char *text,
                       size_t bytes)
{
    const filch_job *other = circle->job;
    const char *label = circle->data->label;
    /* The job already has the handle; the host waits for the handle, and the job would wait behind
     * the host. */
    if (other == job) {
        snprintf(text, bytes,
                 "job '%.40s' (%llu) would wait at '%.40s' for the host, which waits for it",
                 job->label, (unsigned long long)job->sequence, label);
        return;
    }
    snprintf(text, bytes,
             "job '%.40s' (%llu) would wait at '%.40s' for job '%.40s' (%llu), which waits for it",
             job->label, (unsigned long long)job->sequence, label, other->label,
             (unsigned long long)other->sequence);
}
