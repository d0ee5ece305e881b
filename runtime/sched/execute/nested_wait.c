/* SPDX-License-Identifier: Apache-2.0 */
#include "sched/execute/nested_wait.h"

#include "graph/job/job.h"
#include "sched/account/account.h"
#include "sched/account/stretch.h"
#include "sched/execute/divide.h"
#include "sched/execute/next.h"
#include "sched/execute/pick.h"
#include "sched/execute/placed.h"
#include "sched/execute/shared_queue.h"
#include "sched/execute/window.h"
#include "sched/ready/aside.h"
#include "sched/ready/queue.h"
#include "sched/worker/jobs.h"
#include "sched/worker/pressure.h"
#include "sched/worker/sched.h"
#include "sched/worker/wake.h"

/* Number of preceding jobs collected at once. */
#define MOST_AHEAD 16

typedef struct fl_ahead {
    uint32_t skip; /* number of jobs left out, which an earlier look collected */
    uint32_t count;
    fl_sought jobs[MOST_AHEAD];
} fl_ahead;

static bool note(const filch_job *job, const void *user)
{
    fl_ahead *ahead = (fl_ahead *)(uintptr_t)user;
    /* Under core->lock. */
    if (job->blocked == 0 && ahead->skip != 0) {
        --ahead->skip;
    } else if (job->blocked == 0) {
        ahead->jobs[ahead->count++] = (fl_sought){.job = job, .sequence = job->sequence};
    }
    return ahead->count == MOST_AHEAD;
}

static bool has(const fl_ahead *ahead, const filch_job *job)
{
    for (uint32_t i = 0; i < ahead->count; ++i) {
        if (fl_is_sought(&ahead->jobs[i], job)) {
            return true;
        }
    }
    return false;
}

/* Takes a ready task of the job, wherever it stands outside of ranges. */
static bool pick_ready(fl_worker *w, const fl_sought *sought, bool is_strict, fl_item *item)
{
    return fl_item_set_claimed(item, fl_aside_take_of(w, sought)) ||
           fl_placed_pick_of(w, sought, is_strict, item) ||
           (w->sched->shared_queue != NULL && fl_shared_queue_pick_of(w, sought, is_strict, item));
}

bool fl_nested_pick_goal(fl_worker *w, fl_item *item)
{
    filch_job *goal = (filch_job *)(uintptr_t)w->now.frames->goal;
    /* A task of another job might wait in turn, and many of them would fill the stack. */
    bool is_strict = fl_worker_is_deep(w);
    fl_sought sought = {.job = goal};
    return fl_pick_goal(w, goal, item) || pick_ready(w, &sought, is_strict, item);
}

/* Tells whether the job may wait for others: a batch or a run of a closed graph that has started
 * does not. Relaxed: a late look asks under the lock. */
static bool may_wait(const filch_job *job)
{
    return job->is_open || job->is_repetition || fl_load_relaxed(&job->started) == 0;
}

static bool pick_of(fl_worker *w, const fl_ahead *ahead, fl_item *item)
{
    for (uint32_t i = 0; i < ahead->count; ++i) {
        if (pick_ready(w, &ahead->jobs[i], true, item)) {
            return true;
        }
    }
    fl_jobs_walk walk = {0};
    for (filch_job *job; ahead->count != 0 && (job = fl_jobs_next(w, &walk)) != NULL;) {
        if (has(ahead, job) && fl_pick_goal(w, job, item)) {
            return true;
        }
    }
    return false;
}

bool fl_nested_pick_ahead(fl_worker *w, fl_item *item)
{
    filch_job *goal = (filch_job *)(uintptr_t)w->now.frames->goal;
    bool any = false, has_more = goal != NULL && may_wait(goal);
    for (uint32_t skip = 0; has_more && !any; skip += MOST_AHEAD) {
        fl_ahead ahead = {.skip = skip};
        has_more = fl_job_waits_for(goal, note, &ahead);
        any = pick_of(w, &ahead, item);
    }
    return any;
}

/* Tells whether any worker may run the claimed task: no part of its result is on the device. */
static bool is_free(const fl_task *task)
{
    return !fl_task_is_divided(task) && !task->combines;
}

static bool set_claimed_aside(fl_worker *w)
{
    fl_task *task;
    bool any = false;
    while ((task = fl_claimed_take_if(w, is_free)) != NULL) {
        fl_aside_put(w->sched, task, task->is_poisoned);
        any = true;
    }
    return any;
}

void fl_nested_set_claimed_aside(fl_worker *w)
{
    if (set_claimed_aside(w)) {
        fl_sched_wake(w->sched, w->sched->count);
    }
}

/* Sets aside every ready task of the worker. */
static bool set_aside(fl_worker *w)
{
    fl_task *task;
    bool poisoned, any = set_claimed_aside(w);
    while (fl_ready_take(w, &task, &poisoned) ||
           (w->sched->mails && fl_ready_take_mail(w, &task, &poisoned))) {
        fl_aside_put(w->sched, task, poisoned);
        any = true;
    }
    while (w->offload != NULL && w->offload->window_count != 0) {
        fl_item item;
        fl_window_take(w, &item);
        poisoned = item.is_claimed ? item.skip : fl_ready_own(item.task);
        fl_aside_put(w->sched, item.task, poisoned);
        any = true;
    }
    return any;
}

/* The worker's deques are empty: every later entry is made ready after the wait began. */
static void lower_floors(fl_frame *frame)
{
    for (uint32_t level = 0; level < FL_LEVELS; ++level) {
        /* Relaxed: the caller drives the worker, and nobody else moves the bottom. */
        int64_t bottom = fl_load_relaxed(&frame->worker->queues.levels[level].bottom);
        frame->floors[level] = bottom < frame->floors[level] ? bottom : frame->floors[level];
    }
}

bool fl_nested_set_aside(fl_worker *w)
{
    bool any = set_aside(w);
    for (fl_frame *frame = w->now.frames; frame != NULL; frame = frame->outer) {
        any = (frame->worker != w && set_aside(frame->worker)) || any;
    }
    for (fl_frame *frame = w->now.frames; any && frame != NULL; frame = frame->outer) {
        lower_floors(frame);
    }
    if (any) {
        fl_sched_wake(w->sched, w->sched->count);
    }
    return any;
}

/* The item's task does not count as live, nor as able to go on, while it waits. */
static void suspend(fl_worker *w)
{
    filch_job *job = w->now.item.job;
    fl_add_seq_cst(&job->suspended, 1);
    if (job->is_open) {
        fl_pressure_ended(w->sched, job->graph);
    }
}

filch_status fl_nested_open(fl_worker *w, fl_nested *nested, const filch_job *goal,
                            const char *call)
{
    fl_core *core = w->sched->core;
    fl_frame *outer = w->now.frames;
    filch_view *views = fl_alloc(&core->memory, FL_MOST_VIEWS * sizeof *views);
    if (views == NULL) {
        return fl_core_fail(core, FILCH_OUT_OF_MEMORY, call, NULL,
                            "no memory to run other tasks meanwhile");
    }
    *nested = (fl_nested){.frame = {.item = w->now.item,
                                    .goal = goal,
                                    .worker = w,
                                    .outer = outer,
                                    .depth = outer != NULL ? outer->depth + 1 : 1},
                          .views = w->call.views,
                          .scratch = w->call.scratch,
                          .scratch_bytes = w->call.scratch_bytes,
                          .text = w->call.text,
                          .begin = fl_clock_now(&core->clock),
                          .nested_ns = w->ledger.nested_ns};
    fl_stretch_restart(w, nested->begin);
    if (outer != NULL) {
        outer->has_nested = true;
    }
    suspend(w);
    for (uint32_t level = 0; level < FL_LEVELS; ++level) {
        /* Relaxed: only we move the bottom. */
        nested->frame.floors[level] = fl_load_relaxed(&w->queues.levels[level].bottom);
    }
    w->now.frames = &nested->frame;
    /* Release: orders the depth before the bits of idle workers, for wakers of offline devices'
     * workers. */
    fl_store_release(&w->signals.nested, nested->frame.depth);
    w->now.item.state = FL_ITEM_DONE;
    w->call.views = views;
    w->call.scratch = NULL;
    w->call.scratch_bytes = 0;
    w->call.text = NULL;
    return FILCH_OK;
}

void fl_nested_close(fl_worker *w, fl_nested *nested)
{
    const fl_memory *memory = &w->sched->core->memory;
    fl_free_aligned(memory, w->call.scratch, w->call.scratch_bytes, 64);
    fl_free(memory, w->call.views, FL_MOST_VIEWS * sizeof *w->call.views);
    fl_free(memory, w->call.text, sizeof *w->call.text);
    w->call.views = nested->views;
    w->call.scratch = nested->scratch;
    w->call.scratch_bytes = nested->scratch_bytes;
    w->call.text = nested->text;
    w->now.item = nested->frame.item;
    /* Acquire-release: whoever sees the task's end sees that it does not wait. */
    fl_sub_acq_rel(&w->now.item.job->suspended, 1);
    w->now.frames = nested->frame.outer;
    fl_store_release(&w->signals.nested, nested->frame.depth - 1);
    /* Nested waits inside the present wait are part of the present wait. */
    w->ledger.nested_ns = nested->nested_ns;
    fl_worker_resume(w, nested->begin);
}
