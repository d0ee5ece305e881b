/* SPDX-License-Identifier: Apache-2.0 */
/* Chunk size: chunks of a range shrink with the rest (factoring; Flynn Hummel, Schonberg, Flynn,
 * Comm. ACM 35, 1992), but last long enough for a dispatch to cost little. */
#include "sched/decide/chunk.h"

#include <math.h>

#include "sched/model/cost.h"
#include "sched/model/predict.h"
#include "sched/worker/device.h"
#include "sched/worker/others.h"
#include "sched/worker/tuning.h"

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
        double ns = runs ? fl_cost_batch_rate(w->sched, job, d) : 0;
        all += ns > 0 ? 1 / ns : 0;
        own = ns > 0 && d == w->index ? 1 / ns : own;
        left += fl_range_peek(&fl_job_share(job, d)->range, &lo, &hi);
    }
    double fair = own > 0 ? ceil(left * own / all) : rest;
    return fmin(fl_job_share(job, w->index)->fill, fmin(fair, rest));
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
            rate += 1 / fl_cost_batch_rate(w->sched, job, d);
        }
    }
    return grains * work_a_grain / rate;
}

/* Returns ask_end, evaluated anew only once in several chunks, since devices may be many. */
static double ns_until_end(const fl_worker *w, const filch_job *job, double work_a_grain)
{
    fl_share *share = fl_job_share(job, w->index);
    if (share->chunk == 0 || share->believed == 0) {
        share->until_end = ask_end(w, job, work_a_grain);
        share->believed = fl_chunk_asked_each(w->sched);
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
        return fmax(FL_CHUNK_FIRST_DISPATCHES * fl_worker_dispatch_ns(w), least) / ns;
    }
    if (share->known != 0) {
        return FL_CHUNK_STEP * share->known;
    }
    double unseen = (double)share->unseen * share->chunk * ns;
    bool is_enough = share->unseen >= FL_UNSEEN_LEAST && unseen > FL_UNSEEN_NS;
    return is_enough && w->pipeline.computing != 0 ? 0 : share->chunk;
}

double fl_chunk_grains(const fl_speed *speed, const fl_chunk_ask *ask)
{
    if (ask->first > ask->elsewhere) {
        return 0;
    }
    if (fl_speed_get(speed) == 0 || !(ask->ns > 0)) {
        return fmax(1, floor(fmin(ask->grains / ask->probes, ask->most)));
    }
    double ns = fmin(fmax(ask->wanted, ask->least), ask->limit);
    double part = fmin(ns / ask->ns, FL_CHUNK_GROWTH * fl_speed_most_work(speed) / ask->work);
    return fmax(1, floor(fmin(ask->grains * fmin(part, 1), ask->most)));
}

uint32_t fl_chunk_size(const fl_worker *w, const filch_job *job, uint32_t lo, uint32_t rest)
{
    fl_speed *speed = fl_codelet_speed(fl_batch_codelet(job->batch), w->index);
    fl_share *share = fl_job_share(job, w->index);
    if (FL_UNLIKELY(share->chunk == 0 && speed->prior.rate > 0)) {
        fl_speed_rest(speed, fl_worker_clock(w));
    }
    if (fl_speed_get(speed) == 0) {
        /* An exploratory chunk, sizing the next chunk. A single item would leave a GPU mostly idle;
         * a GPU also has capacity for a second exploratory chunk, as the first measurement does not
         * count. */
        bool has_lanes = w->device->lanes != 0;
        const fl_chunk_ask ask = {.grains = rest,
                                  .most = has_lanes ? rest : 1,
                                  .probes = FL_PROBES_OF_REST,
                                  .elsewhere = INFINITY};
        uint32_t most = has_lanes ? FL_UNSEEN_LEAST : 1;
        return w->pipeline.in_flight >= most ? 0 : (uint32_t)fl_chunk_grains(speed, &ask);
    }
    double work_left = fl_batch_work(w, job, lo, lo + rest);
    double ns_left = work_left * fl_cost_batch_rate(w->sched, job, w->index);
    double dispatch = fl_worker_dispatch_ns(w);
    /* Thieves share the rest, so the time of all devices counts. */
    double until_end = fl_others_can_batch(w, job, FL_OTHERS_PRESENT)
                           ? fmin(ns_left, ns_until_end(w, job, work_left / rest))
                           : ns_left;
    double floor_ns = fl_speed_floor(speed), least = FL_CHUNK_LEAST_FIXED * floor_ns;
    double most = most_grains(w, share, ns_left / rest, floor_ns);
    if (most == 0) {
        return 0;
    }
    const fl_chunk_ask ask = {
        .grains = rest,
        .work = work_left,
        .ns = ns_left,
        .wanted = fmax(fmin(FL_CHUNK_DISPATCHES * dispatch, until_end / FL_CHUNKS_OF_REST),
                       until_end * FL_CHUNK_OF_REST),
        .least = fmax(
            FL_CHUNK_FLOOR_DISPATCHES * dispatch,
            fmin(FL_CHUNK_FLOOR_FIXED * floor_ns, fmax(until_end / FL_CHUNKS_OF_REST_DEAR, least))),
        .limit = INFINITY,
        .most = most,
        .probes = 1, /* a rest that takes no time is one chunk */
        .elsewhere = INFINITY,
    };
    double grains = fl_chunk_grains(speed, &ask);
    if (share->fill > grains) {
        grains = fmax(grains, filling(w, job, rest));
    }
    if (share->quantum > 1 && grains > share->quantum) {
        grains -= fmod(grains, share->quantum);
    }
    double ns = grains / (double)rest * ns_left;
    if ((double)rest < near_end(w) * grains && fl_others_can_batch(w, job, FL_OTHERS_PRESENT)) {
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

uint32_t fl_chunk_equal(const fl_sched *sched, const filch_job *job)
{
    uint64_t able = 0;
    for (uint32_t d = 0; d < sched->count; ++d) {
        able += fl_devices_have(fl_batch_devices(job->batch), d);
    }
    uint64_t parts = FL_POLICY_PIECES * (able != 0 ? able : 1);
    return (uint32_t)((fl_batch_grains(job->batch) + parts - 1) / parts);
}

bool fl_range_is_open(const fl_worker *w, const filch_job *job, uint32_t hi, uint32_t *floor)
{
    const fl_sched *sched = w->sched;
    *floor = 0;
    if (job->batch != NULL) {
        return fl_part_of_job(job)->cut != FL_CUT_COMMON &&
               fl_devices_have(fl_batch_devices(job->batch), w->index);
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
