/* SPDX-License-Identifier: Apache-2.0 */
/* Taking from ranges: the device's own share of every active job, in chunks that shrink with the
 * rest (factoring; Flynn Hummel, Schonberg, Flynn, Comm. ACM 35, 1992). */
#include "sched/decide/pick.h"

#include <math.h>

#include "sched/decide/locality.h"
#include "sched/decide/slow.h"
#include "sched/execute/divide.h"
#include "sched/execute/full.h"
#include "sched/execute/graph_launch.h"
#include "sched/execute/step.h"
#include "sched/model/speed.h"
#include "sched/worker/device.h"
#include "sched/worker/sched.h"
#include "sched/worker/tuning.h"
#include "sched/worker/worker.h"

/* Takes a claimed task. Parts of divided tasks come first: other tasks may be waiting for memory
 * held by the parts. */
bool fl_pick_claimed(fl_worker *w, fl_item *item)
{
    fl_task *task = fl_divide_part(w);
    if (task != NULL) {
        /* The task was claimed at the beginning of the division. */
        fl_worker_take(w, task, false, item);
    } else if (w->ready.kept != NULL) {
        fl_link *link = w->ready.kept;
        w->ready.kept = link->next;
        fl_slow_note_taken(w);
        fl_worker_take(w, fl_task_of_link(link), false, item);
    } else {
        task = w->ready.adopted;
        w->ready.adopted = NULL;
        if (task->predecessors != 0) {
            /* Claiming a ready task does likewise. */
            fl_store_relaxed(&task->pending, task->predecessors);
        }
        fl_worker_take(w, task, w->ready.adopted_poisoned, item);
    }
    return true;
}

filch_job *fl_worker_visit(fl_worker *w, uint32_t slot)
{
    fl_sched *sched = w->sched;
    /* Acquire: the worker reads the job right away if the hazard names the job already. Otherwise
     * the decisive load is the load after the hazard is visible. */
    filch_job *job = fl_load_acquire(&sched->slots[slot]);
    if (job == fl_load_relaxed(&w->signals.hazard)) {
        return job; /* already protected, or null */
    }
    while (job != NULL) {
        /* Seq_cst: the hazard's store precedes the second load of the slot. Completion empties the
         * slot before loading the hazards. */
        fl_store_seq_cst(&w->signals.hazard, job);
        filch_job *again = fl_load_seq_cst(&sched->slots[slot]);
        if (again == job) {
            return job;
        }
        job = again;
    }
    /* An unconfirmed hazard protects nothing. */
    fl_worker_leave(w);
    return NULL;
}

void fl_worker_leave(fl_worker *w)
{
    /* Release: the worker's reads of the job precede a reuse of the job. */
    if (fl_load_relaxed(&w->signals.hazard) != NULL) {
        fl_store_release(&w->signals.hazard, NULL);
    }
}

/* Returns the declared work of a chunk without gaps. */
static double chunk_work(const fl_worker *w, const filch_job *job, uint32_t lo, uint32_t hi)
{
    const filch_codelet *codelet = fl_batch_codelet(job->batch);
    filch_call call = {.team = 1, .device = w->index, .args = fl_batch_args(job->batch)};
    fl_batch_range(job->batch, lo, hi, &call.lo, &call.hi);
    double work = codelet->work != NULL ? codelet->work(&call) : (double)(call.hi - call.lo);
    return work > 0 ? work : 0;
}

/* Estimates the work of grains with gaps between items, as gaps may be many. Samples the work at
 * the beginnings of a few equal parts. */
static double gapped_work(const fl_worker *w, const filch_job *job, uint32_t lo, uint32_t hi)
{
    uint64_t parts = hi - lo < FL_SAMPLED_PARTS ? hi - lo : FL_SAMPLED_PARTS;
    double work = 0;
    for (uint64_t part = 0; part < parts; ++part) {
        uint32_t from = lo + (uint32_t)((hi - lo) * part / parts);
        uint32_t to = lo + (uint32_t)((hi - lo) * (part + 1) / parts);
        uint32_t reach = fl_batch_reach(job->batch, from);
        uint32_t seen = reach < to ? reach : to;
        work += chunk_work(w, job, from, seen) * (to - from) / (seen - from);
    }
    return work;
}

double fl_batch_work(const fl_worker *w, const filch_job *job, uint32_t lo, uint32_t hi)
{
    return FL_LIKELY(fl_batch_reach(job->batch, lo) >= hi) ? chunk_work(w, job, lo, hi)
                                                           : gapped_work(w, job, lo, hi);
}

double fl_sched_ns(const fl_sched *sched, const filch_codelet *codelet, uint32_t device)
{
    double ns = fl_speed_get(fl_codelet_speed(codelet, device));
    for (uint32_t other = 0; ns == 0 && other < sched->count; ++other) {
        double theirs = fl_speed_get(fl_codelet_speed(codelet, other));
        if (theirs > 0 && sched->scores[device] > 0) {
            ns = theirs * sched->scores[other] / sched->scores[device];
        }
    }
    return ns;
}

static double dispatch_ns(const fl_worker *w)
{
    return (double)(w->device->overhead_ns != 0 ? w->device->overhead_ns : 500);
}

/* Returns the larger of the median and the last chunk's value: a last chunk dearer than the median
 * says more of the items to come. */
double fl_batch_ns(const fl_sched *sched, const filch_job *job, uint32_t device)
{
    double ns = fl_sched_ns(sched, fl_batch_codelet(job->batch), device);
    return fmax(ns, fl_bits_double(fl_load_relaxed(&fl_job_share(job, device)->recent)));
}

void fl_batch_learn(const fl_worker *w, const fl_item *item)
{
    /* A chunk of a few dispatches consists mostly of dispatch. */
    double took = (double)item->fair;
    bool counts = took > FL_CHUNK_FLOOR_DISPATCHES * dispatch_ns(w) && item->work > 0;
    double fixed = fl_speed_floor(fl_codelet_speed(fl_batch_codelet(item->job->batch), w->index));
    double ns = counts ? fmax(took - fixed, 0) / item->work : 0;
    fl_share *share = w->now.share;
    if (share->stolen_hi != 0 && (item->lo < share->stolen_lo || item->hi > share->stolen_hi)) {
        return; /* the chunk belongs to an earlier range */
    }
    share->known = item->hi - item->lo;
    if (item->timed) {
        fl_store_relaxed(&share->recent, fl_double_bits(ns)); /* an estimate: no order */
    }
}

/* Returns the number of grains that fill the device, where fewer grains would take as long. The
 * number is at most the device's fair part of the rest, by the measured speeds: items in flight
 * cannot be stolen. */
static double filling(const fl_worker *w, const filch_job *job, uint32_t rest)
{
    double own = 0, all = 0, left = 0;
    for (uint32_t d = 0; d < w->sched->count; ++d) {
        uint32_t lo, hi;
        bool runs = fl_devices_have(fl_batch_devices(job->batch), d) &&
                    !fl_worker_is_offline(&w->sched->workers[d]);
        double ns = runs ? fl_batch_ns(w->sched, job, d) : 0;
        all += ns > 0 ? 1 / ns : 0;
        own = ns > 0 && d == w->index ? 1 / ns : own;
        left += fl_range_peek(&fl_job_share(job, d)->range, &lo, &hi);
    }
    double fair = own > 0 ? ceil(left * own / all) : rest;
    return fmin(fl_job_share(job, w->index)->fill, fmin(fair, rest));
}

/* Tells whether a second device could take a part of the rest. */
static bool has_thieves(const fl_worker *w, const filch_job *job)
{
    bool may = w->sched->policy != FILCH_POLICY_STATIC;
    for (uint32_t d = 0; d < w->sched->count && may; ++d) {
        if (d != w->index && fl_devices_have(fl_batch_devices(job->batch), d) &&
            !fl_worker_is_offline(&w->sched->workers[d])) {
            return true;
        }
    }
    return false;
}

/* Predicts the time until the devices of known speed complete the rest, ns. Devices end at about
 * the same time, as idle devices steal from busy devices. A unit of work is assumed to be equally
 * many grains everywhere. */
static double ask_end(const fl_worker *w, const filch_job *job, double work_a_grain)
{
    double rate = 0, grains = 0;
    for (uint32_t d = 0; d < w->sched->count; ++d) {
        uint32_t lo, hi;
        const fl_speed *speed = fl_codelet_speed(fl_batch_codelet(job->batch), d);
        if (!fl_devices_have(fl_batch_devices(job->batch), d)) {
            continue;
        }
        grains += fl_range_peek(&fl_job_share(job, d)->range, &lo, &hi);
        if (fl_speed_get(speed) > 0 && !fl_worker_is_unavailable(&w->sched->workers[d])) {
            rate += 1 / fl_batch_ns(w->sched, job, d);
        }
    }
    return grains * work_a_grain / rate;
}

/* Returns ask_end, evaluated anew only once in several chunks, since devices may be many. */
static double ns_until_end(const fl_worker *w, const filch_job *job, double work_a_grain)
{
    fl_share *share = fl_job_share(job, w->index);
    if (share->chunk == 0 || share->believed == 0) {
        uint32_t some = w->sched->count / FL_CHUNK_DEVICES;
        share->until_end = ask_end(w, job, work_a_grain);
        share->believed = some > FL_CHUNK_ASKED_EACH ? some : FL_CHUNK_ASKED_EACH;
    }
    --share->believed;
    return share->until_end;
}

/* Returns the number of chunks left at which the device is near the end, by the items in flight. */
static double near_end(const fl_worker *w)
{
    return FL_NEAR_END_CHUNKS * (w->pipeline.computing + 1);
}

/* Returns the most grains of the next chunk, by earlier chunks of the range; 0: no chunk before an
 * earlier chunk is over. ns: predicted time of a grain; least: time of an item regardless of work.
 */
static double most_grains(const fl_worker *w, const fl_share *share, double ns, double least)
{
    if (share->chunk == 0) {
        return fmax(FL_CHUNK_FIRST_DISPATCHES * dispatch_ns(w), least) / ns;
    }
    if (share->known != 0) {
        return FL_CHUNK_STEP * share->known;
    }
    double unseen = (double)share->unseen * share->chunk * ns;
    bool is_enough = share->unseen >= FL_UNSEEN_LEAST && unseen > FL_UNSEEN_NS;
    return is_enough && w->pipeline.computing != 0 ? 0 : share->chunk;
}

/* Returns the grains of the next chunk of the device's share; `rest` grains from lo are left. 0: no
 * chunk while a different item is in flight. */
static uint32_t chunk_size(const fl_worker *w, const filch_job *job, uint32_t lo, uint32_t rest)
{
    fl_speed *speed = fl_codelet_speed(fl_batch_codelet(job->batch), w->index);
    fl_share *share = fl_job_share(job, w->index);
    if (FL_UNLIKELY(share->chunk == 0 && speed->prior.rate > 0)) {
        fl_speed_rest(speed, fl_clock_now(&w->sched->core->clock));
    }
    if (fl_speed_get(speed) == 0) {
        /* An exploratory chunk, sizing the next chunk. A single item would leave a GPU mostly idle;
         * a GPU also has capacity for a second exploratory chunk, as the first measurement does not
         * count. */
        uint32_t probe = w->device->lanes != 0 ? rest / FL_PROBES_OF_REST : 1;
        uint32_t most = w->device->lanes != 0 ? FL_PROBES_AT_ONCE : 1;
        return w->pipeline.in_flight >= most ? 0 : probe != 0 ? probe : 1;
    }
    double work_left = fl_batch_work(w, job, lo, lo + rest);
    double ns_left = work_left * fl_batch_ns(w->sched, job, w->index);
    double dispatch = dispatch_ns(w);
    /* Thieves share the rest, so the time of all devices counts. */
    double until_end =
        has_thieves(w, job) ? fmin(ns_left, ns_until_end(w, job, work_left / rest)) : ns_left;
    double wanted = fmin(FL_CHUNK_DISPATCHES * dispatch, until_end / FL_CHUNKS_OF_REST);
    wanted = fmax(wanted, until_end * FL_CHUNK_OF_REST);
    wanted = fmax(wanted, FL_CHUNK_FLOOR_DISPATCHES * dispatch);
    double floor_ns = fl_speed_floor(speed), least = FL_CHUNK_LEAST_FIXED * floor_ns;
    double most = most_grains(w, share, ns_left / rest, floor_ns);
    if (most == 0) {
        return 0;
    }
    wanted = fmax(
        wanted, fmin(FL_CHUNK_FLOOR_FIXED * floor_ns, fmax(until_end / FL_CHUNKS_OF_FIXED, least)));
    double part = fmin(wanted / ns_left, FL_CHUNK_GROWTH * fl_speed_most_work(speed) / work_left);
    double grains = fmin((double)rest * fmin(part, 1), most);
    grains = fmax(1, floor(grains));
    if (share->fill > grains) {
        grains = fmax(grains, filling(w, job, rest));
    }
    if (share->quantum > 1 && grains > share->quantum) {
        grains -= fmod(grains, share->quantum);
    }
    double ns = grains / (double)rest * ns_left;
    if ((double)rest < near_end(w) * grains && has_thieves(w, job)) {
        double all_left = ask_end(w, job, work_left / rest);
        bool is_near = speed->filled < FL_TRUSTED || all_left < near_end(w) * ns;
        uint32_t lanes = w->device->lanes > 1 ? w->device->lanes : 1;
        if (is_near && w->pipeline.computing != 0 &&
            (w->pipeline.computing >= lanes || speed->filled < FL_TRUSTED ||
             all_left < w->pipeline.computing * ns)) {
            return 0; /* items in flight cannot be stolen */
        }
        double most_parts = floor(fmax(1, grains * ns_left / ((double)rest * fmax(least, 1))));
        grains = is_near ? ceil(grains / fmin(lanes, most_parts)) : grains;
    }
    share->until_end -= ns;
    return (uint32_t)grains;
}

/* Limits a chunk so that several chunks fit into the device's memory at once: a computing chunk,
 * the next chunk on the way in, the previous chunk on the way out, and finished chunks not yet
 * handled. */
uint32_t fl_chunk_fit(const fl_worker *w, const filch_job *job, uint32_t lo, uint32_t want)
{
    const fl_device *device = w->device;
    uint64_t whole, budget;
    if (w->offload == NULL || device->place == 0) {
        return want;
    }
    budget = fl_place_budget(w->sched->core->places, device->place);
    while (want > 1) {
        uint64_t bytes = fl_batch_bytes(job->batch, lo, lo + want, device->place, &whole);
        if (whole < budget && bytes <= (budget - whole) / FL_CHUNKS_IN_MEMORY) {
            break;
        }
        want /= 2;
    }
    return want;
}

static bool pick_chunk(fl_worker *w, filch_job *job, fl_item *item)
{
    if (FL_UNLIKELY(job->cut != FL_CUT_SHARES)) {
        return fl_pieces_pick(w, job, item);
    }
    fl_range *range = &fl_job_share(job, w->index)->range;
    uint32_t lo, hi;
    bool is_cancelled = fl_load_relaxed(&job->cancelled) != 0;
    uint32_t rest = fl_range_peek(range, &lo, &hi);
    bool is_others = rest != 0 && !is_cancelled && fl_full_is_out(w, job);
    uint32_t want = rest == 0 || is_others ? 0 : is_cancelled ? rest : chunk_size(w, job, lo, rest);
    if (FL_UNLIKELY(w->sched->rules.with.chunk != NULL) && want != 0 && !is_cancelled) {
        want = fl_policy_chunk(w, job, lo, rest, want);
    }
    /* Only the owner takes from the front of the range, so lo stays valid. */
    uint32_t most = want != 0 ? fl_batch_reach(job->batch, lo) - lo : 0;
    want = want < most ? want : most;
    if (want > 1 && !is_cancelled) {
        want = fl_chunk_fit(w, job, lo, want);
    }
    if (want == 0 || !fl_range_take(range, want, &lo, &hi)) {
        return false;
    }
    fl_job_share(job, w->index)->chunk = hi - lo;
    ++fl_job_share(job, w->index)->unseen;
    *item = (fl_item){.job = job, .lo = lo, .hi = hi, .skip = is_cancelled, .timed = true};
    item->work = is_cancelled ? 0 : fl_batch_work(w, job, lo, hi);
    return true;
}

/* Takes up to `want` roots from the worker's range. Roots at the beginning of the range that are
 * better left to other devices are given away. */
static bool take_roots(fl_worker *w, filch_job *job, uint32_t want, uint32_t *lo, uint32_t *hi)
{
    while (fl_range_take(&fl_job_share(job, w->index)->range, want, lo, hi)) {
        if (FL_LIKELY(!fl_slow_is_on(w))) {
            return true;
        }
        /* The job may be over as soon as a second worker has the root. */
        fl_worker_flush(w);
        if (!fl_slow_sends(w, job->graph->roots[*lo])) {
            return true;
        }
    }
    return false;
}

/* Chooses the root to begin with from the worker's roots; the worker keeps the rest. */
static void choose_root(fl_worker *w, const filch_graph *graph, uint32_t lo, uint32_t hi,
                        fl_item *item)
{
    for (uint32_t root = lo; root < hi; ++root) {
        fl_locality_add(w, graph->roots[root]);
    }
    fl_locality_take(w, item);
}

/* Takes more roots to choose from, beside the first root of a device without a completed item. The
 * first root was taken before missing tiles were known; the root keeps the job from ending. */
static void begin_to_choose(fl_worker *w, filch_job *job, uint32_t first, fl_item *item)
{
    uint32_t lo, hi;
    fl_locality_expect(w, job->graph->roots[first]);
    if (!fl_locality_chooses(w)) {
        return;
    }
    uint32_t rest = fl_range_peek(&fl_job_share(job, w->index)->range, &lo, &hi);
    fl_locality_add(w, job->graph->roots[first]);
    bool has_more = rest != 0 && take_roots(w, job, fl_locality_room(w, rest), &lo, &hi);
    choose_root(w, job->graph, lo, has_more ? hi : lo, item);
}

static bool pick_root(fl_worker *w, filch_job *job, fl_item *item)
{
    uint32_t lo, hi;
    if (FL_UNLIKELY(w->sched->looks_ahead) && fl_graph_launch_pick(w, job, item)) {
        return true;
    }
    fl_range *range = &fl_job_share(job, w->index)->range;
    uint32_t want = 1;
    if (FL_UNLIKELY(fl_locality_chooses(w))) {
        want = fl_locality_room(w, fl_range_peek(range, &lo, &hi));
    }
    if (!take_roots(w, job, want, &lo, &hi)) {
        return false;
    }
    const filch_graph *graph = job->graph;
    item->is_graph = item->is_claimed = false;
    item->task = graph->roots[lo];
    if (FL_UNLIKELY(hi - lo > 1)) {
        choose_root(w, graph, lo, hi, item);
    } else if (FL_UNLIKELY(fl_locality_is_new(w))) {
        begin_to_choose(w, job, lo, item);
    } else if (lo + FL_ROOTS_AHEAD < graph->root_count) {
        const fl_task *soon = graph->roots[lo + FL_ROOTS_AHEAD];
        __builtin_prefetch(soon, 1);
        __builtin_prefetch(&soon->more);
    }
    return true;
}

bool fl_range_is_open(const fl_worker *w, const filch_job *job, uint32_t hi, uint32_t *floor)
{
    const fl_sched *sched = w->sched;
    *floor = 0;
    if (job->batch != NULL) {
        return job->cut != FL_CUT_COMMON && fl_devices_have(fl_batch_devices(job->batch), w->index);
    }
    if (!sched->mails) { /* every device runs the same tasks */
        return true;
    }
    /* Roots keep the restrictions of the piece assigned at sealing, through every number of thefts.
     */
    uint32_t low = 0, high = sched->count - 1;
    while (low < high) {
        uint32_t middle = high - (high - low) / 2;
        if (fl_job_share(job, middle)->root_begin < hi) {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    if (low != w->index) {
        uint32_t theirs = sched->pool->devices[low].implementations;
        bool is_such = (w->device->implementations & theirs) == theirs;
        const fl_share *share = fl_job_share(job, low);
        *floor = is_such ? share->root_kind : share->root_free;
    }
    return true;
}

bool fl_pick_range(fl_worker *w, fl_item *item)
{
    fl_sched *sched = w->sched;
    bool has_near = w->offload != NULL && w->offload->window_count != 0;
    if (FL_UNLIKELY(has_near) && fl_locality_room(w, FL_LOCALITY_WINDOW) == 1) {
        fl_locality_take(w, item);
        return true;
    }
    for (uint32_t word = 0; word < FL_ACTIVE_SLOTS / 64; ++word) {
        /* Acquire: the slot of a set bit is filled. */
        uint64_t bits = fl_load_acquire(&sched->active[word]);
        while (bits != 0) {
            uint32_t slot = word * 64 + (uint32_t)__builtin_ctzll(bits);
            bits &= bits - 1;
            filch_job *job = fl_worker_visit(w, slot);
            if (job != NULL && (job->batch == NULL ? pick_root(w, job, item)
                                                   : !has_near && pick_chunk(w, job, item))) {
                return true;
            }
        }
    }
    if (FL_UNLIKELY(has_near)) { /* kept tasks precede work not yet begun */
        fl_locality_take(w, item);
        return true;
    }
    return FL_UNLIKELY(fl_rules_place(&sched->rules)) && fl_policy_pick(w, item);
}

static bool cut_half(const fl_worker *w, const filch_job *job, fl_range *range, uint32_t *lo,
                     uint32_t *hi)
{
    uint32_t rest, floor;
    while ((rest = fl_range_peek(range, lo, hi)) != 0 && fl_range_is_open(w, job, *hi, &floor) &&
           floor < *hi) {
        if (fl_range_cut(range, rest / 2 + rest % 2, floor, *hi, lo, hi)) {
            return true;
        }
    }
    return false;
}

bool fl_pick_goal(fl_worker *w, filch_job *job, fl_item *item)
{
    fl_sched *sched = w->sched;
    /* Acquire: until then, the ranges are being filled one by one, and grains put into the worker's
     * range would be lost. */
    if (fl_load_acquire(&job->is_offered) == 0) {
        return false;
    }
    for (uint32_t i = 0; i < sched->count; ++i) {
        uint32_t lo, hi;
        if (job->batch != NULL ? pick_chunk(w, job, item) : pick_root(w, job, item)) {
            return true;
        }
        /* The worker's own range is empty, and only the worker fills the range. Cuts half of a
         * second range, regardless of policy and predictions: the owner may be in a deep wait, and
         * take only work needed there. */
        fl_range *theirs = &fl_job_share(job, i)->range;
        if (i != w->index && cut_half(w, job, theirs, &lo, &hi)) {
            fl_count(&fl_job_share(job, w->index)->stolen_in, hi - lo);
            fl_add_relaxed(&fl_job_share(job, i)->stolen_out, hi - lo);
            fl_share_refill(fl_job_share(job, w->index), lo, hi);
        }
    }
    return job->batch != NULL ? pick_chunk(w, job, item) : pick_root(w, job, item);
}
