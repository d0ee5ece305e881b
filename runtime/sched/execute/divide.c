/* SPDX-License-Identifier: Apache-2.0 */
/* Divisible tasks. The worker beginning a long task opens a division (division.h), and runs the
 * task piece by piece. Workers with nothing to run or steal join and run pieces, too, until no
 * grain is left to begin. The last worker to leave retires the task.
 *
 * Between two pieces a worker holds the task like a stolen task: the task is `adopted`, and picked
 * before any further work. When the device goes offline or fails, or the job is cancelled, the task
 * is treated as any claimed task not yet begun. The worker's part in the division goes where the
 * task goes.
 *
 * A piece takes a fraction of the time needed for the rest by every device able to take part
 * (factoring; Flynn Hummel, Schonberg, Flynn, Comm. ACM 35, 1992). A piece also lasts long enough
 * for the dispatch to cost little. A worker whose next piece would end after the members' end of
 * the whole rest leaves the rest to the members, as thieves do.
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
#include "sched/decide/chunk.h"
#include "sched/execute/fetch.h"
#include "sched/execute/pipeline.h"
#include "sched/execute/publish.h"
#include "sched/execute/step.h"
#include "sched/model/cost.h"
#include "sched/model/speed.h"
#include "sched/ready/queue.h"
#include "sched/worker/device.h"
#include "sched/worker/item.h"
#include "sched/worker/sched.h"
#include "sched/worker/tuning.h"
#include "sched/worker/wake.h"

/* Memory node where the device runs pieces: 0, the host's memory, for host devices and for devices
 * sharing memory; otherwise the device's own. */
static uint32_t memory_of(const fl_worker *w)
{
    return w->offload == NULL || w->device->is_synchronous ? 0 : w->device->place;
}

/* Relaxed loads, here and below: estimates, no order needed. For a worker with a part in the
 * division the place is constant. */
static uint32_t place_of(const fl_division *division)
{
    return fl_load_relaxed(&division->place);
}

bool fl_divide_is_here(const fl_worker *w, const fl_task *task)
{
    return memory_of(w) == place_of(fl_task_items(task)->division);
}

/* Tells whether tasks are divided: only under the default policy. */
static bool is_on(const fl_worker *w)
{
    return w->sched->policy == FILCH_POLICY_STEAL && w->sched->count > 1;
}

static double dispatch_ns(const fl_worker *w)
{
    double ns = fl_worker_dispatch_ns(w);
    return fl_worker_computes(w) && !w->device->backend->is_virtual ? ns + FL_PIECE_LATENCY_NS : ns;
}

static const filch_codelet *codelet_of(const fl_division *division)
{
    return (const filch_codelet *)fl_load_relaxed(&division->codelet);
}

static double grain_work(const fl_division *division)
{
    return fl_bits_double(fl_load_relaxed(&division->grain_work));
}

/* Rate of the device, units of work per ns; 0: unknown. */
static double rate_of(const fl_worker *w, const filch_codelet *codelet)
{
    double ns = fl_cost_rate(w->sched, codelet, w->index);
    return ns > 0 ? 1 / ns : 0;
}

/* Tells whether the device can run pieces in the memory node `place`, of a codelet kept by the
 * runtime. */
static bool may_run(const fl_worker *w, const filch_codelet *codelet, uint32_t place)
{
    return memory_of(w) == place && !fl_worker_is_unavailable(w) &&
           fl_codelet_runs_on(codelet, w->index);
}

/* --- Items of divided tasks --- */

double fl_divide_work(const fl_item *item)
{
    const fl_division *division = fl_task_items(item->task)->division;
    return division != NULL ? grain_work(division) * (item->hi - item->lo)
                            : (double)item->task->work;
}

void fl_divide_range(const fl_item *item, uint64_t *lo, uint64_t *hi)
{
    const fl_items *items = fl_task_items(item->task);
    *lo = 0;
    *hi = items->count;
    if (items->division != NULL) {
        fl_items_range(items, item->lo, item->hi, lo, hi);
    }
}

double fl_divide_whole(const fl_item *item, double ns)
{
    double work = (double)item->task->work;
    return item->work > 0 && work > item->work ? ns * (work / item->work) : ns;
}

/* --- The size of a piece --- */

/* Rate of every device able to take part, as of the last full computation. */
static double ask_rate(const fl_worker *w, fl_division *division)
{
    const fl_sched *sched = w->sched;
    uint32_t begun = fl_load_relaxed(&division->begun);
    double rate = fl_bits_double(fl_load_relaxed(&division->rate));
    if (rate > 0 && begun % fl_chunk_asked_each(sched) != 0) {
        return rate;
    }
    rate = 0;
    for (uint32_t d = 0; d < sched->count; ++d) {
        if (may_run(&sched->workers[d], codelet_of(division), place_of(division))) {
            rate += rate_of(&sched->workers[d], codelet_of(division));
        }
    }
    fl_store_relaxed(&division->rate, fl_double_bits(rate));
    return rate;
}

/* Rate of the members, without the worker. */
static double others_rate(const fl_worker *w, const fl_division *division)
{
    double rate = 0;
    for (uint32_t word = 0; word * 64 < w->sched->count; ++word) {
        for (uint64_t bits = fl_load_relaxed(&division->members[word]); bits != 0;
             bits &= bits - 1) {
            uint32_t d = word * 64 + (uint32_t)__builtin_ctzll(bits);
            if (d != w->index && d < w->sched->count) {
                rate += rate_of(&w->sched->workers[d], codelet_of(division));
            }
        }
    }
    return rate;
}

/* Snapshot of the work left. */
typedef struct fl_rest {
    uint32_t grains;
    double work;
    /* Predicted time for the members without us to finish the rest, ns; 0: unknown. */
    double ns_others;
    double ns_grain; /* time of a grain here, ns; 0: unknown */
} fl_rest;

static fl_rest look_at_rest(const fl_worker *w, const fl_division *division)
{
    uint32_t lo, hi;
    double others = others_rate(w, division), own = rate_of(w, codelet_of(division));
    fl_rest rest = {.grains = fl_range_peek(&division->range, &lo, &hi)};
    rest.work = grain_work(division) * rest.grains;
    rest.ns_others = others > 0 ? rest.work / others : 0;
    rest.ns_grain = own > 0 ? grain_work(division) / own : 0;
    return rest;
}

/* Least duration of a piece, ns. fixed: time of an item independent of work. alone: time of the
 * whole rest here. */
static double least_ns(const fl_worker *w, const fl_rest *rest, double alone, double fixed)
{
    double dispatches = rest->ns_others > 0 ? FL_CHUNK_FLOOR_DISPATCHES : FL_PIECE_DISPATCHES;
    /* Kernels too small to fill the device have a large fixed time, too: no reason to leave the
     * members without work. */
    return memory_of(w) == 0
               ? dispatches * (dispatch_ns(w) + fixed)
               : fmax(dispatches * dispatch_ns(w),
                      fmin(FL_CHUNK_FLOOR_FIXED * fixed, alone / FL_CHUNKS_OF_REST_DEAR));
}

/* Number of grains for the next piece here; 0: the members would finish the whole rest before. */
static uint32_t piece_size(const fl_worker *w, fl_division *division, const fl_rest *rest)
{
    const fl_speed *speed = fl_codelet_speed(codelet_of(division), w->index);
    if (rest->ns_others > 0 && rest->ns_grain + dispatch_ns(w) > rest->ns_others) {
        return 0;
    }
    if (fl_speed_get(speed) == 0 || !(rest->ns_grain > 0)) {
        return fl_chunk_probe(rest->grains, FL_PIECE_PROBES_OF_REST);
    }
    double alone = rest->ns_grain * rest->grains;
    double pieces = memory_of(w) != 0 ? FL_CHUNKS_OF_REST_DEAR : FL_CHUNKS_OF_REST;
    const fl_chunk_ask ask = {
        .grains = rest->grains,
        .work = rest->work,
        .ns = alone,
        .wanted = rest->work / ask_rate(w, division) / pieces,
        .least = least_ns(w, rest, alone, fl_speed_fixed(speed)),
        /* Time until the members and the worker have finished together. */
        .limit = rest->ns_others > 0 ? 1 / (1 / rest->ns_others + 1 / alone) : alone,
        .most = rest->grains,
    };
    return (uint32_t)fl_chunk_grains(speed, &ask);
}

/* --- Beginning --- */

static bool has_others(const fl_worker *w, const fl_task *task)
{
    const fl_sched *sched = w->sched;
    for (uint32_t d = 0; d < sched->count; ++d) {
        if (d != w->index && may_run(&sched->workers[d], task->codelet, memory_of(w))) {
            return true;
        }
    }
    return false;
}

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

/* Time of the whole task on the worker's device, ns; 0: unknown. */
static double ns_whole(const fl_worker *w, const fl_task *task)
{
    double rate = rate_of(w, task->codelet);
    return rate > 0 ? (double)task->work / rate : 0;
}

bool fl_divide_is_due(const fl_worker *w, const fl_task *task)
{
    double ns = ns_whole(w, task), work = (double)task->work;
    /* Scratch memory on a lane comes with a launch, or is waited for. A task holding operands
     * needed elsewhere must not wait in the middle. */
    return is_on(w) && !task->commutes && !task->reduces && fl_task_items(task)->grains >= 2 &&
           work > 0 && isfinite(work) &&
           (ns == 0 || ns >= 2 * FL_PIECE_DISPATCHES * dispatch_ns(w)) &&
           (memory_of(w) == 0 || fl_task_scratch(task) == 0) && has_others(w, task);
}

/* Prepares a division that the worker could open for an own task; without a division the task runs
 * in one call. No second worker knows the division yet. */
static fl_division *prepare(fl_worker *w, fl_task *task)
{
    fl_items *items = fl_task_items(task);
    fl_division *division = fl_divide_is_due(w, task) ? find_free(w) : NULL;
    if (division != NULL) {
        fl_division_prepare(division,
                            &(fl_division_about){.task = (uintptr_t)task,
                                                 .codelet = (uintptr_t)task->codelet,
                                                 .grain_work = (double)task->work / items->grains,
                                                 .owner = w->index,
                                                 .place = memory_of(w)});
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
    wake_others(w, ns_whole(w, task));
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
        fl_rest rest = look_at_rest(w, division);
        want = piece_size(w, division, &rest);
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
                    (item->skip || memory_of(w) != 0 || !open_division(w, item->task));
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
        double rate = rate_of(w, item->task->codelet), work = (double)item->task->work;
        const fl_rest all = {.grains = items->grains,
                             .work = work,
                             .ns_grain = rate > 0 ? work / items->grains / rate : 0};
        item->lo = 0;
        item->hi = piece_size(w, items->division, &all);
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
    if (fl_division_parts_of(word) == 0 || !may_run(w, codelet_of(division), place_of(division))) {
        return;
    }
    fl_rest rest = look_at_rest(w, division);
    if (rest.grains == 0) {
        return;
    }
    double ns_others = rest.ns_others > 0 ? rest.ns_others : INFINITY;
    uint32_t want = piece_size(w, division, &rest);
    double here = want * rest.ns_grain + dispatch_ns(w) + FL_THEFT_NS;
    if (want == 0 || here > ns_others) {
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
    if (FL_LIKELY(fl_load_relaxed(&w->sched->dividing) == 0) || !is_on(w) ||
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
    if (memory_of(w) != 0) {
        /* Published despite failures: the contents are as after a failed undivided task. */
        items->is_over = true;
        fl_pipeline_conclude(w, item);
        return false;
    }
    items->division = NULL;
    if (w->offload != NULL && flags == 0 && fl_fetch_concerns(item)) {
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
    bool was_timed = has_run && w->ledger.timed_at == w->now.retired + 1;
    if (was_timed) {
        /* No grain of the task is counted yet. */
        w->ledger.timed_at = w->now.retired;
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
