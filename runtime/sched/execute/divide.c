/* SPDX-License-Identifier: Apache-2.0 */
/* Divisible tasks. The worker beginning a long task opens a division (division.h), and runs the
 * task piece by piece. Workers with nothing to run or steal join and run pieces, too, until no
 * grain is left to begin. The last worker to leave retires the task.
 *
 * Between two pieces a worker holds the task like a stolen task: worker->ready.part names the task,
 * and the task is picked before any further work. When the device goes offline or fails, or the job
 * is cancelled, the task is treated as any claimed task not yet begun. The worker's part in the
 * division goes where the task goes.
 *
 * Every piece runs in one memory. On devices running items asynchronously, for instance slices of a
 * GPU, a division begins once the first piece is launched: an earlier error is handled as for any
 * task. The division holds the task's operands until the end, by the pins of the first launch; no
 * end of a piece returns the pins. Each later piece finds the operands in place, and waits on its
 * lane for copies under way. Written data is not valid for any reader before every piece is over.
 * An item in flight with write-back only then makes the data valid, takes over the pins, and
 * retires the task (fl_pipeline_conclude). */
#include "sched/execute/divide.h"

#include <math.h>

#include "sched/account/ledger.h"
#include "sched/account/rated.h"
#include "sched/decide/divisible.h"
#include "sched/execute/fetch.h"
#include "sched/execute/pipeline.h"
#include "sched/execute/publish.h"
#include "sched/execute/step.h"
#include "sched/model/cost.h"
#include "sched/ready/queue.h"
#include "sched/worker/device.h"
#include "sched/worker/item.h"
#include "sched/worker/sched.h"
#include "sched/worker/tuning.h"
#include "sched/worker/wake.h"

bool fl_divide_is_here(const fl_worker *w, const fl_task *task)
{
    return fl_piece_memory(w) == fl_division_place(fl_task_items(task)->division);
}

/* --- Items of divided tasks --- */

double fl_divide_work(const fl_item *item)
{
    const fl_division *division = fl_task_items(item->task)->division;
    return division != NULL ? fl_division_grain_work(division) * (item->hi - item->lo)
                            : (double)item->task->work;
}

double fl_divide_whole(const fl_item *item, double ns)
{
    double work = (double)item->task->work;
    return item->work > 0 && work > item->work ? ns * (work / item->work) : ns;
}

/* --- Beginning --- */

static fl_division *find_free(fl_worker *w)
{
    for (uint32_t i = 0; i < FL_DIVISIONS; ++i) {
        if (fl_division_is_free(&w->signals.divisions[i])) {
            return &w->signals.divisions[i];
        }
    }
    return NULL;
}

static void note_member(const fl_worker *w, fl_division *division, bool is_one)
{
    uint64_t bit = (uint64_t)1 << w->index % 64;
    if (is_one) {
        fl_or_relaxed(&division->members[w->index / 64], bit);
    } else {
        fl_and_relaxed(&division->members[w->index / 64], ~bit);
    }
}

/* Wakes idle workers to look for divisions; each joining worker wakes more. ns: predicted time
 * until the members have finished; 0: unknown. */
static void wake_others(fl_worker *w, double ns)
{
    double some = ns > 0 ? fmin(ns / FL_WAKE_UP_NS, FL_DIVIDE_WOKEN) : FL_DIVIDE_WOKEN;
    fl_sched_wake(w->sched, (uint32_t)some);
}

/* Prepares a division that the worker could open for an own task; without a division the task runs
 * in one call. No second worker knows the division yet. */
static fl_division *prepare(fl_worker *w, fl_task *task)
{
    fl_items *items = fl_task_items(task);
    fl_division *division = fl_divide_is_due(w, task) ? find_free(w) : NULL;
    if (division != NULL) {
        task->moves = 0; /* a divided task moves no more, and its members only read the count */
        fl_division_prepare(division,
                            &(fl_division_about){.task = (uintptr_t)task,
                                                 .codelet = (uintptr_t)task->codelet,
                                                 .grain_work = (double)task->work / items->grains,
                                                 .owner = w->index,
                                                 .place = fl_piece_memory(w)});
    }
    /* Set before the division is open: a joining worker finds the division here. */
    items->division = division;
    return division;
}

/* Opens the division to more workers, from grain lo on. */
static void publish(fl_worker *w, const fl_task *task, uint32_t lo)
{
    const fl_items *items = fl_task_items(task);
    fl_division_open(items->division, lo, items->grains);
    /* The task's job need not be current any more, if the task had to wait for memory. */
    fl_count(&fl_job_share(task->graph->job, w->index)->account.divided, 1);
    /* Relaxed: the wake-up makes a fence before loading the idle bits. */
    fl_add_relaxed(&w->signals.open, 1);
    fl_add_relaxed(&w->sched->dividing, 1);
    wake_others(w, fl_divide_ns(w, task));
}

/* Opens a division of the whole task. The worker is about to begin the task, and the task's job is
 * current. False: the task runs in one call. */
static bool open_division(fl_worker *w, fl_task *task)
{
    if (prepare(w, task) == NULL) {
        return false;
    }
    publish(w, task, 0);
    return true;
}

/* Takes the next piece. False: no piece is left for the worker: the worker has left the division,
 * or will look again. */
static bool begin_piece(fl_worker *w, fl_item *item)
{
    fl_division *division = fl_task_items(item->task)->division;
    uint32_t want = 0;
    item->lo = item->hi = 0;
    note_member(w, division, true);
    if (!item->skip) {
        fl_rest rest = fl_piece_rest(w, division);
        want = fl_piece_size(w, division, &rest);
        if (want == 0 && fl_division_parts_of(fl_division_look(division)) == 1) {
            want = 1; /* no member is left for the rest */
        }
    }
    if (want == 0 || !fl_range_take(&division->range, want, &item->lo, &item->hi)) {
        fl_worker_retire(w, item);
        return false;
    }
    fl_add_relaxed(&division->begun, 1);
    w->ready.is_dividing = !w->device->is_synchronous;
    return true;
}

bool fl_divide_admit(fl_worker *w, fl_item *item)
{
    const fl_items *items = fl_task_items(item->task);
    bool is_whole = items->division == NULL &&
                    (item->skip || fl_piece_memory(w) != 0 || !open_division(w, item->task));
    if (!is_whole && !begin_piece(w, item)) {
        return false;
    }
    if (!item->skip) {
        /* A piece costs more than two clock reads. */
        fl_item_set_timed(item, item->task->codelet);
    }
    return true;
}

bool fl_divide_begin(fl_worker *w, fl_in_flight *flight)
{
    fl_item *item = &flight->item;
    fl_items *items = fl_task_items(item->task);
    /* A task put behind items on a lane is not divided: pieces on further lanes would have to wait
     * for the items, too. */
    if (items->division == NULL && !item->is_ahead && prepare(w, item->task) != NULL) {
        double rate = fl_piece_rate(w, item->task->codelet), work = (double)item->task->work;
        const fl_rest all = {.grains = items->grains,
                             .work = work,
                             .ns_grain = rate > 0 ? work / items->grains / rate : 0};
        item->lo = 0;
        item->hi = fl_piece_size(w, items->division, &all);
        if (item->hi == items->grains) {
            items->division = NULL;
        }
    }
    if (items->division == NULL) {
        return false;
    }
    fl_item_set_timed(item, item->task->codelet);
    flight->expected = fl_cost_measured(item->task->codelet, w->index, item->work);
    return true;
}

/* Tells whether the task's division is only prepared. A division with our part in it is not
 * free. */
static bool is_first(const fl_item *item)
{
    return fl_division_is_free(fl_task_items(item->task)->division);
}

void fl_divide_launched(fl_worker *w, fl_in_flight *flight)
{
    fl_item *item = &flight->item;
    if (!is_first(item)) {
        return;
    }
    fl_division *division = fl_task_items(item->task)->division;
    /* The division now holds the pins of the item in flight. */
    flight->is_admitted = false;
    w->ready.is_dividing = true;
    publish(w, item->task, item->hi);
    note_member(w, division, true);
    fl_add_relaxed(&division->begun, 1);
}

void fl_divide_refused(const fl_item *item)
{
    if (is_first(item)) {
        /* The task runs undivided. */
        fl_task_items(item->task)->division = NULL;
    }
}

/* --- Joining --- */

/* Best division found: the division occupying the members longest. */
typedef struct fl_find {
    fl_division *division;
    uint64_t word;
    double ns_others;
} fl_find;

/* Weighs joining the division: stores the division in *best if joining pays, and the members need
 * longer than for *best. */
static void weigh(fl_worker *w, fl_division *division, fl_find *best)
{
    uint64_t word = fl_division_look(division);
    if (fl_division_parts_of(word) == 0 ||
        !fl_piece_may_run(w, fl_division_codelet(division), fl_division_place(division))) {
        return;
    }
    fl_rest rest = fl_piece_rest(w, division);
    if (rest.grains == 0) {
        return;
    }
    double ns_others = rest.ns_others > 0 ? rest.ns_others : INFINITY;
    uint32_t want = fl_piece_size(w, division, &rest);
    if (!fl_piece_pays(w, &rest, want)) {
        /* Joining never pays by the predictions, but the predictions may be wrong. */
        uint64_t at =
            fl_worker_clock(w) +
            (uint64_t)fmax(fmin(ns_others, 1e15) / FL_LOOK_AGAIN_OF_TIME, FL_LOOK_AGAIN_NS);
        w->idle.ready_at = at < w->idle.ready_at ? at : w->idle.ready_at;
        fl_ledger_refuse(&w->ledger, FL_REFUSED_HELD);
    } else if (ns_others > best->ns_others) {
        *best = (fl_find){division, word, ns_others};
    }
}

/* Finds the best division, own divisions included: the worker may have left an own division, or
 * given its part away. */
static fl_find find(fl_worker *w)
{
    fl_sched *sched = w->sched;
    fl_find best = {0};
    for (uint32_t i = 1; i <= sched->count; ++i) {
        fl_worker *owner = &sched->workers[(w->index + i) % sched->count];
        for (uint32_t d = 0; d < FL_DIVISIONS && fl_load_relaxed(&owner->signals.open) != 0; ++d) {
            weigh(w, &owner->signals.divisions[d], &best);
        }
    }
    return best;
}

bool fl_divide_join(fl_worker *w)
{
    /* Relaxed: a worker opening a division wakes idle workers. */
    if (FL_LIKELY(fl_load_relaxed(&w->sched->dividing) == 0) || !fl_divides(w) ||
        w->now.frames != NULL) {
        return false;
    }
    for (int tries = 0; tries < FL_RACE_TRIES; ++tries) {
        fl_find best = find(w);
        if (best.division == NULL) {
            return false;
        }
        if (fl_division_join(best.division, best.word)) {
            w->ready.part = (fl_task *)fl_load_relaxed(&best.division->task);
            wake_others(w, best.ns_others / 2);
            return true;
        }
        fl_ledger_refuse(&w->ledger, FL_REFUSED_RACED);
    }
    /* Workers come and go: look again at once. */
    w->idle.ready_at = fl_worker_clock(w);
    return false;
}

/* --- The end --- */

/* Notes the piece's share of the job and sample of the device, or the failure of a piece never
 * run. */
static void note_piece(fl_worker *w, const fl_item *item, bool has_run)
{
    fl_worker_note(w, item);
    if (has_run) {
        fl_share *share = w->now.share;
        double work = fl_bits_double(fl_load_relaxed(&share->work)) + fl_divide_work(item);
        fl_count(&share->tiles, 1);
        fl_count(&share->account.pieces, 1);
        fl_store_relaxed(&share->work, fl_double_bits(work));
        if (item->task->codelet->work != NULL && item->code == 0) {
            fl_rated_count(w, item->task->codelet, fl_divide_work(item));
        }
    }
}

/* Drains the rest: no worker begins a further piece. */
static void drop_rest(const fl_item *item, fl_division *division)
{
    uint32_t lo, hi;
    bool has_failed = (fl_load_relaxed(&division->flags) & FL_DIVISION_FAILED) != 0;
    if (fl_range_drain(&division->range, &lo, &hi) && !has_failed) {
        /* Relaxed, here and below: published by giving up our part, or by the job's end. */
        fl_or_relaxed(&division->flags, FL_DIVISION_CUT);
        fl_store_relaxed(&item->task->graph->job->left_out, 1);
    }
}

typedef enum fl_leaving { FL_LEAVING_LEFT, FL_LEAVING_LAST, FL_LEAVING_STAYS } fl_leaving;

/* Gives up the worker's part, unless grains are left without a member to run them. */
static fl_leaving leave(fl_worker *w, fl_division *division, uint32_t *flags)
{
    fl_worker *owner = &w->sched->workers[fl_load_relaxed(&division->owner)];
    uint64_t word = fl_division_look(division);
    uint32_t lo, hi;
    /* Precedes leaving: the division may then become a second task's. */
    note_member(w, division, false);
    for (;;) {
        if (fl_division_parts_of(word) > 1) {
            /* The job may be over, and the object reused, as soon as we have left. */
            fl_worker_flush(w);
            if (fl_division_leave(division, &word)) {
                return FL_LEAVING_LEFT;
            }
        } else if (fl_range_peek(&division->range, &lo, &hi) != 0) {
            /* A worker joining now may or may not take the rest. */
            return FL_LEAVING_STAYS;
        } else if (fl_division_end(division, &word, flags)) {
            fl_sub_relaxed(&owner->signals.open, 1);
            fl_sub_relaxed(&w->sched->dividing, 1);
            return FL_LEAVING_LAST;
        }
    }
}

/* Makes the worker's part in the task the next pick. */
static void go_on(fl_worker *w, fl_task *task)
{
    if (FL_LIKELY(w->ready.part == NULL)) {
        w->ready.part = task;
    } else {
        /* The worker had joined a second task when the present task arrived by the link. */
        fl_claimed_put(w, task, false);
    }
}

/* Concludes a finished task, now owned by the worker; flags has the outcome. Data written by the
 * pieces is published now, because no reader was allowed before. True: the task can be retired.
 * False: the task retires after write-back. */
static bool conclude(fl_worker *w, fl_item *item, uint32_t flags)
{
    fl_items *items = fl_task_items(item->task);
    item->code = (flags & FL_DIVISION_FAILED) != 0 ? -1 : 0;
    item->skip = item->code == 0 && (flags & FL_DIVISION_CUT) != 0;
    item->timed = item->is_refused = false;
    if (fl_piece_memory(w) != 0) {
        /* Published despite failures: the contents are as after a failed undivided task. */
        items->is_over = true;
        fl_pipeline_conclude(w, item);
        return false;
    }
    items->division = NULL;
    if (w->offload != NULL && flags == 0 && fl_operands_matter(item)) {
        fl_publish_on_host(w, item);
        if (item->code != 0) {
            fl_worker_note(w, item);
        }
    }
    return true;
}

/* Retires the task after the concluding item in flight has landed. */
static bool retire_concluded(fl_worker *w, fl_item *item)
{
    fl_items *items = fl_task_items(item->task);
    items->is_over = false;
    items->division = NULL;
    /* Write-back failed; any earlier failure is noted already. */
    if (item->is_refused) {
        fl_worker_note(w, item);
    }
    return true;
}

/* Tells whether the last worker to leave, on the worker's device, could conclude the task. */
static bool may_conclude(const fl_worker *w)
{
    return w->device->is_synchronous || w->pipeline.in_flight < w->pipeline.flight_count;
}

bool fl_divide_retire(fl_worker *w, fl_item *item)
{
    fl_task *task = item->task;
    fl_items *items = fl_task_items(task);
    fl_division *division = items->division;
    bool has_run = item->hi > item->lo;
    uint32_t lo, hi, flags = 0;
    fl_leaving leaving = FL_LEAVING_STAYS;
    if (items->is_over) {
        return retire_concluded(w, item);
    }
    w->ready.is_dividing = false;
    if (has_run || item->code != 0) {
        note_piece(w, item, has_run);
    }
    if (item->code != 0) {
        /* Relaxed: as in drop_rest. */
        fl_or_relaxed(&division->flags, FL_DIVISION_FAILED);
    }
    if (item->skip || (fl_load_relaxed(&division->flags) & FL_DIVISION_FAILED) != 0) {
        drop_rest(item, division);
    }
    bool was_timed = has_run && w->ledger.timed_at == fl_worker_retired(w) + 1;
    if (was_timed) {
        /* No grain of the task is counted yet. */
        w->ledger.timed_at = fl_worker_retired(w);
    }
    /* Three kinds of workers leave the rest to the members: a worker that declined the rest, a
     * worker going offline, and a worker with a second part in the task. A second part comes from
     * joining and then receiving the part of an offline device. */
    if ((!has_run || fl_worker_is_offline(w) || w->ready.part == task ||
         fl_range_peek(&division->range, &lo, &hi) == 0) &&
        may_conclude(w)) {
        leaving = leave(w, division, &flags);
    }
    if (leaving == FL_LEAVING_STAYS) {
        go_on(w, task);
    } else if (leaving == FL_LEAVING_LAST && conclude(w, item, flags)) {
        if (was_timed) {
            ++w->ledger.timed_at;
        }
        return true;
    }
    return false;
}

static bool is_divided(const fl_task *task)
{
    return fl_task_is_divided(task);
}

fl_task *fl_divide_part(fl_worker *w)
{
    fl_task *task = w->ready.part;
    w->ready.part = NULL;
    return task != NULL ? task : fl_claimed_take_if(w, is_divided);
}

bool fl_divide_drop(fl_worker *w, fl_task *task)
{
    fl_item item = {0};
    fl_worker_take(w, task, false, &item);
    fl_worker_retire(w, &item);
    bool stays = w->ready.part == task;
    w->ready.part = stays ? NULL : w->ready.part;
    return !stays;
}
