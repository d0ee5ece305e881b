/* SPDX-License-Identifier: Apache-2.0 */
/* Time accounting of a job's devices. Every worker records the present activity in a ledger. A job
 * reads every ledger at the job's beginning and at the end; the differences add up to the job's
 * time. Timed items tell how to divide the part of the time that a device spent on the job. */
#include "sched/account/account.h"

#include <math.h>

#include "sched/account/ledger.h"
#include "sched/account/stretch.h"
#include "sched/worker/device.h"
#include "sched/worker/item.h"
#include "sched/worker/jobs.h"
#include "sched/worker/pressure.h"
#include "sched/worker/tuning.h"

static uint64_t least_of(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* --- As the job runs --- */

/* Tells whether a thief could take ready tasks from the worker. Ranges of batches do not count: an
 * idle worker inspects every range anyway, and a range may be reserved for a few devices. */
static bool has_queued(const fl_worker *w)
{
    for (uint32_t mask = w->ready.mask; mask != 0; mask &= mask - 1) {
        const fl_deque *deque = &w->queues.levels[__builtin_ctz(mask)];
        /* Relaxed: only the owner pushes; a thief may have been quicker. */
        if (fl_load_relaxed(&deque->bottom) > fl_load_relaxed(&deque->top)) {
            return true;
        }
    }
    return !fl_inbox_is_empty(&w->queues.inbox);
}

static void look_at_backlog(fl_worker *w, uint64_t t)
{
    uint64_t from =
        w->ledger.looked_at > w->now.busy_since ? w->ledger.looked_at : w->now.busy_since;
    if (has_queued(w)) {
        fl_backlog_add(w->ledger.backlog, from, t);
    }
    w->ledger.looked_at = t;
}

static void record(fl_worker *w, const fl_item *item)
{
    fl_trace_ring *ring = fl_trace_of(w); /* null: no recording, or recording has just stopped */
    w->call.stretch.from = ring != NULL ? item->start + item->ns : 0;
    if (ring == NULL) {
        return;
    }
    fl_trace_event event = {.start = item->start,
                            .end = item->start + item->ns,
                            .name = fl_item_codelet(item)->name,
                            .kind = FL_TRACE_TILE};
    if (item->task != NULL) {
        event.tasks = 1;
        event.first = item->task->order;
        event.last = item->task->graph->number;
        event.other = (uint32_t)w->now.job->sequence;
        event.label = fl_trace_label(ring, item->task->label);
    } else {
        event.other = (uint32_t)item->job->sequence;
        fl_batch_range(item->job->batch, item->lo, item->hi, &event.first, &event.last);
    }
    fl_trace_add(ring, event);
}

void fl_account_pending(const fl_worker *w, const fl_pending_task *pending)
{
    fl_trace_ring *ring = fl_trace_of(w);
    const fl_task *task = pending->item.task;
    /* A task that was ended before its function returned was never pending. */
    if (ring != NULL && pending->ended > pending->since) {
        fl_trace_add(ring, (fl_trace_event){.start = pending->since,
                                            .end = pending->ended,
                                            .name = task->codelet->name,
                                            .first = task->order,
                                            .last = task->graph->number,
                                            .other = (uint32_t)pending->item.job->sequence,
                                            .kind = FL_TRACE_PENDING,
                                            .tasks = 1,
                                            .device = (uint16_t)pending->worker});
    }
}

static void end_gap(fl_worker *w, bool counts)
{
    if (!w->ledger.is_gap) {
        return;
    }
    uint64_t ns = counts ? fl_worker_clock(w) - w->idle.idle_since : 0;
    if (counts) {
        fl_ledger_add_gap(&w->ledger, ns > w->ledger.clock_ns ? ns - w->ledger.clock_ns : 0);
    }
    w->ledger.is_gap = false;
    w->idle.idle_since = 0;
}

/* Tells whether to measure the dispatch after a timed task: after one in FL_CLOCK_PERIOD, each for
 * up to FL_SPEED_PERIOD of the tasks that it stands for. */
static bool is_gap_due(fl_ledger *ledger, uint32_t stands)
{
    uint32_t turns = stands > FL_SPEED_PERIOD ? stands / FL_SPEED_PERIOD : 1;
    bool is_due = ledger->gap_turn < turns;
    ledger->gap_turn = is_due ? FL_CLOCK_PERIOD - 1 : ledger->gap_turn - turns;
    return is_due;
}

static void count_timed(fl_worker *w, const fl_item *item)
{
    fl_account *account = &w->now.share->account;
    bool is_synchronous = w->device->is_synchronous;
    uint64_t ns = is_synchronous ? w->ledger.own_ns : item->own;
    /* Items included in share->tiles. */
    bool is_counted = item->task == NULL || !fl_task_is_own(item->task);
    fl_count(&account->timed, is_counted);
    if (item->code == 0) {
        const filch_codelet *codelet = fl_item_codelet(item);
        /* A sample may stand for items of an earlier job. */
        uint64_t done = fl_load_relaxed(&w->now.share->tiles) + 1;
        uint64_t weighted = ns * least_of(item->stands, done);
        fl_count(&account->timed_ns, ns);
        fl_count(&account->weighted_ns, weighted);
        if (codelet->work != NULL && is_counted) {
            fl_count(&account->weighted_rated_ns, weighted);
        }
    } else {
        fl_count(&account->spoiled_ns, ns);
        fl_count(&account->spoiled, is_counted);
    }
    if (item->task != NULL) {
        look_at_backlog(w, is_synchronous ? item->start + item->ns : fl_worker_clock(w));
    }
    if (!is_synchronous) {
        return;
    }
    fl_account_note_taken(account, item->start);
    w->ledger.timed_at = fl_worker_retired(w) + (item->task != NULL ? 1 : item->hi - item->lo);
    if (item->task != NULL && is_gap_due(&w->ledger, item->stands)) {
        uint64_t before = fl_worker_clock(w);
        w->idle.idle_since = fl_worker_clock(w);
        w->ledger.clock_ns = w->idle.idle_since - before;
        w->ledger.is_gap = true;
    }
}

static void count_lost(fl_worker *w)
{
    const fl_in_flight *oldest = NULL;
    for (uint32_t i = 0; i < w->pipeline.flight_count; ++i) {
        const fl_in_flight *flight = &w->pipeline.flights[i];
        if (flight->item.state == FL_ITEM_LAUNCHED &&
            (oldest == NULL || flight->launched < oldest->launched)) {
            oldest = flight;
        }
    }
    if (oldest != NULL) {
        uint64_t t = fl_worker_clock(w);
        uint64_t since =
            oldest->launched > w->pipeline.last_done ? oldest->launched : w->pipeline.last_done;
        fl_count(&fl_job_share(oldest->item.job, w->index)->account.spoiled_ns,
                 t > since ? t - since : 0);
    }
}

static void wait_for_data(fl_worker *w, bool waits)
{
    if (waits == w->ledger.waits || w->now.job == NULL) {
        return;
    }
    uint64_t t = fl_worker_clock(w);
    if (!waits) {
        fl_count(&w->now.share->account.data_ns, t - w->ledger.wait_since);
    }
    w->ledger.waits = waits;
    w->ledger.wait_since = t;
}

static void leave_job(fl_worker *w)
{
    uint64_t t = fl_worker_clock(w);
    fl_account *account = &w->now.share->account;
    fl_stretch_end(w, t);
    fl_count(&w->now.share->busy_ns, t - w->now.busy_since);
    end_gap(w, false); /* time from now on is no dispatch of the job */
    if (w->ledger.waits) {
        fl_count(&account->data_ns, t - w->ledger.wait_since);
        w->ledger.waits = false;
    }
    /* An asynchronous device keeps running items while the worker's thread has no core. */
    if (w->device->is_synchronous && t - w->now.busy_since >= FL_PREEMPT_LEAST_NS) {
        fl_count(&account->preempted_ns, fl_preempt_take(&w->ledger.preempt, w->now.busy_since, t));
    }
    /* The last item was not timed: assumes the mean time. */
    int64_t retired = fl_worker_retired(w);
    if (w->device->is_synchronous && retired != 0 && w->ledger.timed_at != retired) {
        uint64_t mean = (uint64_t)fl_worker_mean_ns(w);
        uint64_t most = t - w->now.busy_since;
        fl_account_note_taken(account, t - (mean < most ? mean : most));
    }
    w->ledger.timed_at = 0;
    fl_ledger_turn(&w->ledger, FL_SPELL_STARVED, NULL, t);
}

static void note_idle(fl_worker *w)
{
    fl_spell kind = fl_worker_is_unavailable(w)         ? FL_SPELL_OFF
                    : w->idle.ready_at != FL_TIME_NEVER ? FL_SPELL_HELD
                                                        : FL_SPELL_STARVED;
    /* Relaxed: the worker's own value. */
    if (w->now.job == NULL && fl_load_relaxed(&w->ledger.kind) != (uint64_t)kind) {
        fl_ledger_turn(&w->ledger, kind, NULL, fl_worker_clock(w));
    }
}

void fl_account_note(fl_worker *w, fl_event event, const fl_item *item)
{
    fl_account *account =
        item != NULL ? &fl_job_share(item->job, w->index)->account : NULL; /* of the item's job */
    switch (event) {
    case FL_EVENT_JOB_TAKEN:
        w->now.busy_since = fl_worker_clock(w);
        fl_stretch_restart(w, w->now.busy_since);
        fl_ledger_turn(&w->ledger, FL_SPELL_ON, w->now.job, w->now.busy_since);
        break;
    case FL_EVENT_JOB_LEFT:
        leave_job(w);
        break;
    case FL_EVENT_IDLE:
        note_idle(w);
        break;
    case FL_EVENT_DISPATCHED:
        end_gap(w, true);
        break;
    case FL_EVENT_WAITS:
    case FL_EVENT_GOES_ON:
        wait_for_data(w, event == FL_EVENT_WAITS);
        break;
    case FL_EVENT_LAUNCHED:
    case FL_EVENT_LANDED:
        break; /* in the header */
    case FL_EVENT_SPOILED:
        fl_count(&account->spoiled_ns, item->ns);
        break;
    case FL_EVENT_TIMED:
        record(w, item);
        count_timed(w, item);
        break;
    case FL_EVENT_DEFEATED:
        record(w, item);
        break;
    case FL_EVENT_DEVICE_LOST:
        count_lost(w);
        break;
    }
}

/* Divides the time of chunks that run at once by their work: the last chunks, as many as lanes. */
static double divide_chunk(fl_worker *w, const fl_item *item)
{
    fl_offload *offload = w->offload;
    uint32_t lanes = w->device->lanes;
    double ns = 0, work = 0;
    if (offload->chunk_job != item->job->sequence) {
        offload->chunk_job = item->job->sequence;
        offload->chunk_count = 0;
    }
    offload->chunk_times[offload->chunk_count++ % lanes] =
        (fl_chunk_time){(double)item->own, item->work};
    for (uint32_t i = 0; i < lanes && i < offload->chunk_count; ++i) {
        ns += offload->chunk_times[i].ns;
        work += offload->chunk_times[i].work;
    }
    /* The fair time is at most the elapsed time. A caller's function may return arbitrary work. */
    return work > 0 && isfinite(work) ? fmin(ns * (item->work / work), (double)item->ns)
                                      : (double)item->own;
}

void fl_account_divide_timed(fl_worker *w, fl_item *item)
{
    const fl_queue_ops *queue = w->device->backend->queue;
    if (item->is_graph || w->offload == NULL || queue->own == NULL || w->device->lanes < 2) {
        return;
    }
    uint64_t own = queue->own(w->device);
    item->own = own != 0 ? own : item->ns;
    item->fair = item->task == NULL ? (uint64_t)divide_chunk(w, item) : item->own;
}

/* --- The current job --- */

/* Subtracts the grains and tasks retired for the current job. The last subtraction completes the
 * job, at the end of the step. */
void fl_worker_flush(fl_worker *w)
{
    filch_job *job = w->now.job;
    if (job == NULL) {
        return;
    }
    fl_account_event(w, FL_EVENT_JOB_LEFT, NULL);
    fl_pressure_left(w->sched);
    int64_t retired = fl_worker_retired(w);
    w->now.job = NULL;
    w->now.share = NULL;
    w->now.graph = NULL;
    /* Relaxed: statistics. A reader between the stores misses a few items for a moment. */
    fl_store_relaxed(&w->now.retired, 0);
    fl_store_relaxed(&w->ledger.ended, fl_load_relaxed(&w->ledger.ended) + (uint64_t)retired);
    if (retired != 0) {
        fl_jobs_count_off(w, job, retired);
    }
}

void fl_worker_switch(fl_worker *w, filch_job *job, const filch_graph *graph)
{
    if (w->now.job != job) {
        /* The second job's items may take long. */
        fl_worker_mark(w);
        fl_worker_flush(w);
        w->now.job = job;
        w->now.share = fl_job_share(job, w->index);
        fl_account_event(w, FL_EVENT_JOB_TAKEN, NULL);
    }
    w->now.graph = graph;
}

void fl_worker_turn(fl_worker *w, filch_job *job)
{
    fl_worker_switch(w, job, NULL);
}

void fl_worker_resume(fl_worker *w, uint64_t since)
{
    const fl_task *task = w->now.item.task;
    fl_worker_switch(w, w->now.item.job, task != NULL ? task->graph : NULL);
    uint64_t now = fl_worker_clock(w);
    fl_stretch_restart(w, now);
    w->ledger.nested_ns += now - since;
}

bool fl_worker_is_inside(const fl_worker *w, const filch_job *job)
{
    if (w->now.item.state != FL_ITEM_DONE && w->now.item.job == job) {
        return true;
    }
    for (const fl_frame *frame = w->now.frames; frame != NULL; frame = frame->outer) {
        if (frame->item.job == job) {
            return true;
        }
    }
    return false;
}

/* --- Beginning and end --- */

void fl_account_begin(fl_sched *sched, filch_job *job)
{
    uint64_t t = fl_load_relaxed(&job->started);
    for (uint32_t d = 0; d < sched->count; ++d) {
        fl_account *account = &fl_job_share(job, d)->account;
        fl_reading reading;
        fl_ledger_read(&sched->workers[d].ledger, t, &reading);
        for (int kind = 0; kind < FL_SPELLS; ++kind) {
            fl_store_relaxed(&account->begin[kind], reading.ns[kind]);
        }
        for (int why = 0; why < FL_REFUSALS; ++why) {
            fl_store_relaxed(&account->refused[why], reading.refused[why]);
        }
    }
    fl_store_release(&fl_part_of_job(job)->accounted,
                     FL_ACCOUNT_BEGUN); /* release: after every store above */
}

/* Returns the increase of a ledger's count, clamped to 0..most: concurrent writes may distort a
 * reading. */
static uint64_t added(uint64_t from, uint64_t to, uint64_t most)
{
    uint64_t ns = to - from;
    return (int64_t)ns < 0 ? 0 : least_of(ns, most);
}

/* Moves the time since `last`, when the job's last item was taken, out of the idle parts into the
 * tail. The final series of idle spells may consist of two kinds: an early kind, and the present
 * kind since the last change. */
static void take_tail(fl_time_parts *parts, const fl_reading *reading, uint64_t last, uint64_t end)
{
    uint64_t from = last > reading->idle_since ? last : reading->idle_since;
    if (reading->kind == FL_SPELL_ON || from >= end) {
        return;
    }
    uint64_t turn = reading->since > from ? reading->since : from;
    turn = turn < end ? turn : end;
    bool is_held = reading->kind == FL_SPELL_HELD;
    uint64_t *late = is_held ? &parts->held : &parts->starved;
    uint64_t *early = is_held ? &parts->starved : &parts->held;
    uint64_t tail = least_of(end - from, parts->starved + parts->held + parts->unshared);
    uint64_t before = least_of(least_of(turn - from, *early), tail);
    uint64_t after = least_of(tail - before, *late);
    *late -= after;
    /* Time missing in the early part comes out of the unshared part. */
    uint64_t rest = least_of(tail - after, *early);
    *early -= rest;
    parts->unshared -= tail - after - rest;
    parts->tail = tail;
}

void fl_account_measure(const fl_sched *sched, const filch_job *job, uint32_t d, uint64_t end,
                        uint64_t last, fl_time_parts *parts)
{
    const fl_share *share = fl_job_share(job, d);
    const fl_account *account = &share->account;
    const fl_ledger *ledger = &sched->workers[d].ledger;
    uint64_t begin = fl_load_relaxed(&job->started), wall = end > begin ? end - begin : 0;
    fl_reading reading;
    fl_ledger_read(ledger, end, &reading);
    uint64_t on =
        added(fl_load_relaxed(&account->begin[FL_SPELL_ON]), reading.ns[FL_SPELL_ON], wall);
    uint64_t held = added(fl_load_relaxed(&account->begin[FL_SPELL_HELD]),
                          reading.ns[FL_SPELL_HELD], wall - on);
    uint64_t unshared = added(fl_load_relaxed(&account->begin[FL_SPELL_UNSHARED]),
                              reading.ns[FL_SPELL_UNSHARED], wall - on - held);
    uint64_t own = fl_load_relaxed(&share->busy_ns);
    if (reading.kind == FL_SPELL_ON && reading.job == (uintptr_t)job && end > reading.since) {
        own += end - reading.since; /* the present spell is not yet in busy_ns */
    }
    own = least_of(own, on);
    *parts = (fl_time_parts){.starved = wall - on - held - unshared,
                             .unshared = unshared,
                             .held = held,
                             .own = own,
                             .other = on - own,
                             .gap = fl_load_relaxed(&ledger->gap_ns)};
    for (int why = 0; why < FL_REFUSALS; ++why) {
        parts->refused[why] = reading.refused[why] - fl_load_relaxed(&account->refused[why]);
    }
    take_tail(parts, &reading, last, end);
}

/* Returns the time at which the job's last item was taken; the job's end, if no item was taken. */
static uint64_t last_taken(const fl_sched *sched, const filch_job *job)
{
    uint64_t last = 0, begin = fl_load_relaxed(&job->started);
    for (uint32_t d = 0; d < sched->count; ++d) {
        uint64_t taken = fl_load_relaxed(&fl_job_share(job, d)->account.taken);
        last = taken > last ? taken : last;
    }
    if (last == 0) {
        return job->finished;
    }
    return last - 1 > begin ? last - 1 : begin; /* see fl_account_note_taken */
}

void fl_account_end(fl_sched *sched, filch_job *job)
{
    if (fl_load_relaxed(&fl_part_of_job(job)->accounted) != FL_ACCOUNT_BEGUN) {
        return; /* the job never began */
    }
    uint64_t last = last_taken(sched, job);
    for (uint32_t d = 0; d < sched->count; ++d) {
        fl_account *account = &fl_job_share(job, d)->account;
        fl_time_parts parts;
        fl_account_measure(sched, job, d, job->finished, last, &parts);
        fl_store_relaxed(&account->starved_ns, parts.starved);
        fl_store_relaxed(&account->held_ns, parts.held);
        fl_store_relaxed(&account->unshared_ns, parts.unshared);
        fl_store_relaxed(&account->tail_ns, parts.tail);
        fl_store_relaxed(&account->own_ns, parts.own);
        fl_store_relaxed(&account->other_ns, parts.other);
        fl_store_relaxed(&account->gap_ns, parts.gap);
        fl_store_relaxed(&account->is_off, fl_worker_is_unavailable(&sched->workers[d]));
        for (int why = 0; why < FL_REFUSALS; ++why) {
            fl_store_relaxed(&account->refusals[why], parts.refused[why]);
        }
    }
    fl_store_release(&fl_part_of_job(job)->accounted,
                     FL_ACCOUNT_ENDED); /* release: after every store above */
}
