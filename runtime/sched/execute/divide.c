/* SPDX-License-Identifier: Apache-2.0 */
/* Divisible tasks. Who begins one that is long enough opens a division of it (division.h) and runs
 * it piece by piece; those who find nothing to run or to steal join, and do likewise, until nothing
 * is left to begin. Whoever leaves last retires the task.
 *
 * Between two pieces a worker has the task as one that it has stolen: it is `adopted`, and picked
 * before all else. So what becomes of it where the device is withdrawn or lost, or the job is
 * cancelled meanwhile, is what becomes of any claimed task that is not begun; its part in the
 * division goes where the task goes.
 *
 * A piece is a part of the time that all who could take part need for the rest (factoring; Flynn
 * Hummel, Schonberg, Flynn, Comm. ACM 35, 1992), but lasts long enough for its dispatch to cost
 * little. Who would be done with its next piece later than the others with all of the rest leaves
 * that to them, as thieves do.
 *
 * All pieces run in one memory. On devices that run tiles by themselves, slices of a GPU say, a
 * division begins when its first piece has been launched: so whatever may go wrong before goes
 * wrong for a task as any. It holds what the task uses until it is over, by the pins of that first
 * launch, which no piece's end gives back; each later piece finds everything there, and waits, on
 * its lane, for what brings it. What is written is no tile's contents for anybody before all pieces
 * are seen to be over: then a flight of nothing but the way home makes it that, takes over what was
 * held, and retires the task (fl_in_flight_conclude). */
#include "sched/execute/divide.h"

#include <math.h>

#include "sched/account/rated.h"
#include "sched/decide/pick.h"
#include "sched/execute/in_flight.h"
#include "sched/execute/offload.h"
#include "sched/execute/step.h"
#include "sched/worker/device.h"
#include "sched/worker/item.h"
#include "sched/worker/sched.h"

/* A piece takes this part of the time that is left … */
#define PIECES_OF_REST 16.0
/* … on slices this one, as at the end of each piece its last blocks leave some idle; … */
#define PIECES_OF_REST_BESIDE 4.0
/* … but at least so many dispatches; fewer where others wait for the end, too, … */
#define CHEAP_DISPATCHES 50.0
#define FLOOR_DISPATCHES 20.0
/* … on a lane, of what a piece takes whatever its work, so many times, but no more than that part
 * of what is left; … */
#define FLOOR_FIXED 8.0
#define PIECES_OF_FIXED 4.0
/* … and has at most so many times the work of any tile that was timed. */
#define MOST_GROWTH 8.0
/* Where no speed was measured a piece is this part of the rest. */
#define PROBES_OF_REST 1024u
/* Of a device that runs tiles by itself, from the end of a piece, as its worker sees it, to the
 * beginning of the next. */
#define LATENCY_NS 10000.0
/* Finding a division and its cache lines. */
#define JOIN_NS 1000.0
#define LOOK_AGAIN_NS 20000.0
#define MOST_TRIES 4
/* Waking another worker takes a microsecond or two of whoever does it. */
#define WOKEN_AT_ONCE 2
/* How fast all together are is asked for each so many pieces; of many devices more seldom, so that
 * a piece looks at this many. */
#define ASKED_EACH 8u
#define DEVICES_A_PIECE 4u

/* The memory in which the device runs pieces: the host's where others have their own, or
 * everybody's; else its own, where it has any. */
static uint32_t memory_of(const fl_worker *w)
{
    return w->offload == NULL || w->device->is_synchronous ? 0 : w->device->place;
}

/* Estimates, here and below: no order. Of a division that one has a part in it is constant. */
static uint32_t place_of(const fl_division *division)
{
    return fl_load_relaxed(&division->place);
}

bool fl_divide_is_here(const fl_worker *w, const fl_task *task)
{
    return memory_of(w) == place_of(fl_task_items(task)->division);
}

/* Whether tasks are divided here at all: by the default rules. */
static bool is_on(const fl_worker *w)
{
    return w->sched->policy == FILCH_POLICY_STEAL && w->sched->count > 1;
}

static double dispatch_ns(const fl_worker *w)
{
    double ns = (double)(w->device->overhead_ns != 0 ? w->device->overhead_ns : 500);
    return fl_worker_computes(w) && !w->device->backend->is_virtual ? ns + LATENCY_NS : ns;
}

static uint64_t now(const fl_worker *w)
{
    return fl_clock_now(&w->sched->core->clock);
}

static const filch_codelet *codelet_of(const fl_division *division)
{
    return (const filch_codelet *)fl_load_relaxed(&division->codelet);
}

static double grain_work(const fl_division *division)
{
    return fl_bits_double(fl_load_relaxed(&division->grain_work));
}

/* Units of work a ns; 0: nothing is known. */
static double rate_of(const fl_worker *w, const filch_codelet *codelet)
{
    double ns = fl_sched_ns(w->sched, codelet, w->index);
    return ns > 0 ? 1 / ns : 0;
}

/* Pieces in that memory, of a codelet that the runtime keeps. */
static bool may_run(const fl_worker *w, const filch_codelet *codelet, uint32_t place)
{
    return memory_of(w) == place && !fl_worker_is_unavailable(w) &&
           fl_codelet_runs_on(codelet, w->index);
}

/* --- A tile --- */

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

/* Rate of all devices that could take part, as it was when last asked for. */
static double ask_rate(const fl_worker *w, fl_division *division)
{
    const fl_sched *sched = w->sched;
    uint32_t some = sched->count / DEVICES_A_PIECE;
    uint32_t begun = fl_load_relaxed(&division->begun);
    double rate = fl_bits_double(fl_load_relaxed(&division->rate));
    if (rate > 0 && begun % (some > ASKED_EACH ? some : ASKED_EACH) != 0) {
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

/* Rate of those that have a part, other than the worker. */
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

/* A look at what is left. */
typedef struct fl_rest {
    uint32_t grains;
    double work;
    double ns_others; /* until those who have a part are through with it without us; 0: not known */
    double ns_grain;  /* here; 0: not known */
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

/* How long a piece is to last at least, where a tile takes `fixed` whatever its work, and all of
 * the rest `alone`. */
static double least_ns(const fl_worker *w, const fl_rest *rest, double alone, double fixed)
{
    double dispatches = rest->ns_others > 0 ? FLOOR_DISPATCHES : CHEAP_DISPATCHES;
    /* Kernels that do not fill the device take so long, too: no reason to leave others none. */
    return memory_of(w) == 0 ? dispatches * (dispatch_ns(w) + fixed)
                             : fmax(dispatches * dispatch_ns(w),
                                    fmin(FLOOR_FIXED * fixed, alone / PIECES_OF_FIXED));
}

/* Grains for the next piece here; 0: the others would be done with all before. */
static uint32_t piece_size(const fl_worker *w, fl_division *division, const fl_rest *rest)
{
    const fl_speed *speed = fl_codelet_speed(codelet_of(division), w->index);
    double most = rest->grains;
    if (rest->ns_others > 0 && rest->ns_grain + dispatch_ns(w) > rest->ns_others) {
        return 0;
    }
    if (fl_speed_get(speed) == 0 || !(rest->ns_grain > 0)) {
        uint32_t probe = rest->grains / PROBES_OF_REST;
        return probe != 0 ? probe : 1;
    }
    double alone = rest->ns_grain * rest->grains;
    double least = least_ns(w, rest, alone, fl_speed_fixed(speed));
    double pieces = memory_of(w) != 0 ? PIECES_OF_REST_BESIDE : PIECES_OF_REST;
    double wanted = fmax(rest->work / ask_rate(w, division) / pieces, least);
    /* Until those who have a part, and this one, are through. */
    double fair = rest->ns_others > 0 ? 1 / (1 / rest->ns_others + 1 / alone) : alone;
    most = fmin(most, fmin(wanted, fair) / rest->ns_grain);
    most = fmin(most, MOST_GROWTH * fl_speed_most_work(speed) / grain_work(division));
    return most > 1 ? (uint32_t)most : 1;
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
        if (fl_division_is_free(&w->divisions[i])) {
            return &w->divisions[i];
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

/* Those who are idle look for divisions when they are woken; each who joins wakes others in turn.
 * ns: until those who have a part are through; 0: not known. */
static void wake_others(fl_worker *w, double ns)
{
    double some = ns > 0 ? fmin(ns / FL_WAKE_NS, WOKEN_AT_ONCE) : WOKEN_AT_ONCE;
    fl_sched_wake(w->sched, (uint32_t)some);
}

/* All of the task on the worker's device; 0: nothing is known. */
static double ns_whole(const fl_worker *w, const fl_task *task)
{
    double rate = rate_of(w, task->codelet);
    return rate > 0 ? (double)task->work / rate : 0;
}

bool fl_divide_is_due(const fl_worker *w, const fl_task *task)
{
    double ns = ns_whole(w, task), work = (double)task->work;
    /* On a lane scratch memory is had with a launch, or waited for: nothing waits in the middle of
     * a task that holds what others may wait for. */
    return is_on(w) && !task->commutes && !task->reduces && fl_task_items(task)->grains >= 2 &&
           work > 0 && isfinite(work) && (ns == 0 || ns >= 2 * CHEAP_DISPATCHES * dispatch_ns(w)) &&
           (memory_of(w) == 0 || fl_task_scratch(task) == 0) && has_others(w, task);
}

/* A division that the worker could open, of a task of its own, which is run in one call where there
 * is none. Nobody knows of it as yet. */
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
    items->division = division; /* before it is open: who joins finds it there */
    return division;
}

/* Lets others take part from grain lo on. */
static void publish(fl_worker *w, const fl_task *task, uint32_t lo)
{
    const fl_items *items = fl_task_items(task);
    fl_division_open(items->division, lo, items->grains);
    /* Its job need not be current any more, if it had to wait for memory. */
    fl_count(&fl_job_share(task->graph->job, w->index)->account.divided, 1);
    /* Relaxed: the wake-up has a fence before it looks who is idle. */
    fl_add_relaxed(&w->open, 1);
    fl_add_relaxed(&w->sched->dividing, 1);
    wake_others(w, ns_whole(w, task));
}

/* The same of all of a task that the worker is about to begin, whose job is current. False: it is
 * run in one call. */
static bool open_division(fl_worker *w, fl_task *task)
{
    if (prepare(w, task) == NULL) {
        return false;
    }
    publish(w, task, 0);
    return true;
}

/* Takes the next piece. False: there is none for this worker, which has left, or will look again.
 */
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
            want = 1; /* there is nobody to leave it to */
        }
    }
    if (want == 0 || !fl_range_take(&division->range, want, &item->lo, &item->hi)) {
        fl_worker_retire(w, item);
        return false;
    }
    fl_add_relaxed(&division->begun, 1);
    w->is_dividing = !w->device->is_synchronous;
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
        fl_item_set_timed(item, item->task->codelet); /* a piece costs more than two clock looks */
    }
    return true;
}

bool fl_divide_begin(fl_worker *w, fl_in_flight *flight)
{
    fl_item *item = &flight->item;
    fl_items *items = fl_task_items(item->task);
    /* Of one that is put behind others on a lane, other lanes would have to wait for these, too. */
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
    flight->expected = fl_speed_time(fl_codelet_speed(item->task->codelet, w->index), item->work);
    return true;
}

/* Whether the task's division is only prepared. Of one that we have a part in it is not free. */
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
    flight->is_admitted = false; /* the division holds what the flight did */
    w->is_dividing = true;
    publish(w, item->task, item->hi);
    note_member(w, division, true);
    fl_add_relaxed(&division->begun, 1);
}

void fl_divide_refused(const fl_item *item)
{
    if (is_first(item)) {
        fl_task_items(item->task)->division = NULL; /* a task as any */
    }
}

/* --- Joining --- */

/* What has been found that would keep those who are at it the longest. */
typedef struct fl_find {
    fl_division *division;
    uint64_t word;
    double ns_others;
} fl_find;

/* Whether it pays to join; if so, and if it is more than *best, it is that. */
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
    double here = want * rest.ns_grain + dispatch_ns(w) + JOIN_NS;
    if (want == 0 || here > ns_others) {
        /* By the predictions it never pays, but they may be wrong. */
        uint64_t at = now(w) + (uint64_t)fmax(fmin(ns_others, 1e15) / 4, LOOK_AGAIN_NS);
        w->ready_at = at < w->ready_at ? at : w->ready_at;
        fl_ledger_refuse(&w->ledger, FL_REFUSED_HELD);
    } else if (ns_others > best->ns_others) {
        *best = (fl_find){division, word, ns_others};
    }
}

/* Its own it may have left to others, or given away. */
static fl_find find(fl_worker *w)
{
    fl_sched *sched = w->sched;
    fl_find best = {0};
    for (uint32_t i = 1; i <= sched->count; ++i) {
        fl_worker *owner = &sched->workers[(w->index + i) % sched->count];
        for (uint32_t d = 0; d < FL_DIVISIONS && fl_load_relaxed(&owner->open) != 0; ++d) {
            weigh(w, &owner->divisions[d], &best);
        }
    }
    return best;
}

bool fl_divide_join(fl_worker *w)
{
    /* Relaxed: who opens one wakes idle workers. */
    if (FL_LIKELY(fl_load_relaxed(&w->sched->dividing) == 0) || !is_on(w) || w->frames != NULL) {
        return false;
    }
    for (int tries = 0; tries < MOST_TRIES; ++tries) {
        fl_find best = find(w);
        if (best.division == NULL) {
            return false;
        }
        if (fl_division_join(best.division, best.word)) {
            w->adopted = (fl_task *)fl_load_relaxed(&best.division->task);
            w->adopted_poisoned = false;
            wake_others(w, best.ns_others / 2);
            return true;
        }
        fl_ledger_refuse(&w->ledger, FL_REFUSED_RACED);
    }
    w->ready_at = now(w); /* others come and go: look again at once */
    return false;
}

/* --- The end --- */

/* What the piece says of the job and of the device; or how it failed, of one that never was. */
static void note_piece(fl_worker *w, const fl_item *item, bool has_run)
{
    fl_worker_note(w, item);
    if (has_run) {
        fl_share *share = w->share;
        double work = fl_bits_double(fl_load_relaxed(&share->work)) + fl_divide_work(item);
        fl_count(&share->tiles, 1);
        fl_count(&share->account.pieces, 1);
        fl_store_relaxed(&share->work, fl_double_bits(work));
        if (item->task->codelet->work != NULL && item->code == 0) {
            fl_rated_count(w, item->task->codelet, fl_divide_work(item));
        }
    }
}

/* Nobody begins any more of it. */
static void drop_rest(const fl_item *item, fl_division *division)
{
    uint32_t lo, hi;
    bool has_failed = (fl_load_relaxed(&division->flags) & FL_DIVISION_FAILED) != 0;
    if (fl_range_drain(&division->range, &lo, &hi) && !has_failed) {
        /* Relaxed, here and below: published by the part that we give up, or by the job's end. */
        fl_or_relaxed(&division->flags, FL_DIVISION_CUT);
        fl_store_relaxed(&item->task->graph->job->left_out, 1);
    }
}

typedef enum fl_leaving { FL_LEAVING_LEFT, FL_LEAVING_LAST, FL_LEAVING_STAYS } fl_leaving;

/* Gives the worker's part up, unless something is left that nobody else would run. */
static fl_leaving leave(fl_worker *w, fl_division *division, uint32_t *flags)
{
    fl_worker *owner = &w->sched->workers[fl_load_relaxed(&division->owner)];
    uint64_t word = fl_division_look(division);
    uint32_t lo, hi;
    note_member(w, division, false); /* before it is another task's */
    for (;;) {
        if (fl_division_parts_of(word) > 1) {
            fl_worker_flush(w); /* the job may be over, and another, as soon as we have left */
            if (fl_division_leave(division, &word)) {
                return FL_LEAVING_LEFT;
            }
        } else if (fl_range_peek(&division->range, &lo, &hi) != 0) {
            return FL_LEAVING_STAYS; /* who joins now may take it, or not */
        } else if (fl_division_end(division, &word, flags)) {
            fl_sub_relaxed(&owner->open, 1);
            fl_sub_relaxed(&w->sched->dividing, 1);
            return FL_LEAVING_LAST;
        }
    }
}

/* The worker's part in the task is what it picks next. */
static void go_on(fl_worker *w, fl_task *task)
{
    if (FL_LIKELY(w->adopted == NULL)) {
        w->adopted = task;
        w->adopted_poisoned = false;
        return;
    }
    /* It had joined another when it was given this one, which came by the link. */
    task->link.next = w->kept;
    w->kept = &task->link;
}

/* The task is over, and the worker's; how is in the flags. What all pieces wrote is told of now, as
 * nobody may use it before. True: it can be retired; else it will, when that has come home. */
static bool conclude(fl_worker *w, fl_item *item, uint32_t flags)
{
    fl_items *items = fl_task_items(item->task);
    item->code = (flags & FL_DIVISION_FAILED) != 0 ? -1 : 0;
    item->skip = item->code == 0 && (flags & FL_DIVISION_CUT) != 0;
    item->timed = item->is_refused = false;
    if (memory_of(w) != 0) {
        /* Though some failed: what is there now is what they left of it, as of any that fails. */
        items->is_over = true;
        fl_in_flight_conclude(w, item);
        return false;
    }
    items->division = NULL;
    if (w->offload != NULL && flags == 0 && fl_offload_concerns(item)) {
        fl_offload_commit_host(w, item);
        if (item->code != 0) {
            fl_worker_note(w, item);
        }
    }
    return true;
}

/* The flight that concluded the task has landed. */
static bool retire_concluded(fl_worker *w, fl_item *item)
{
    fl_items *items = fl_task_items(item->task);
    items->is_over = false;
    items->division = NULL;
    if (item->is_refused) { /* what was written did not come home; else it has been noted */
        fl_worker_note(w, item);
    }
    return true;
}

/* Whether the last to leave, on the worker's device, could conclude the task. */
static bool may_conclude(const fl_worker *w)
{
    return w->device->is_synchronous || w->in_flight < w->flight_count;
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
    w->is_dividing = false;
    if (has_run || item->code != 0) {
        note_piece(w, item, has_run);
    }
    if (item->code != 0) {
        fl_or_relaxed(&division->flags, FL_DIVISION_FAILED); /* as in drop_rest */
    }
    if (item->skip || (fl_load_relaxed(&division->flags) & FL_DIVISION_FAILED) != 0) {
        drop_rest(item, division);
    }
    bool was_timed = has_run && w->ledger.timed_at == w->retired + 1;
    if (was_timed) {
        w->ledger.timed_at = w->retired; /* nothing of the task's is counted as yet */
    }
    /* Who did not like the rest leaves it to others, as does who is to end what it is at, or has
     * another part: one that joined, and was then given what a withdrawn device had. */
    if ((!has_run || fl_worker_is_offline(w) || w->adopted == task ||
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

fl_task *fl_divide_part(fl_worker *w)
{
    fl_task *task = w->adopted;
    if (task != NULL && fl_task_is_divided(task)) {
        w->adopted = NULL;
        return task;
    }
    for (fl_link **at = &w->kept; *at != NULL; at = &(*at)->next) {
        task = fl_task_of_link(*at);
        if (fl_task_is_divided(task)) {
            *at = task->link.next;
            return task;
        }
    }
    return NULL;
}

bool fl_divide_drop(fl_worker *w, fl_task *task)
{
    fl_item item = {0};
    fl_worker_take(w, task, false, &item);
    fl_worker_retire(w, &item);
    bool stays = w->adopted == task;
    w->adopted = stays ? NULL : w->adopted;
    return !stays;
}
