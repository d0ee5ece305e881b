/* SPDX-License-Identifier: Apache-2.0 */
/* Report of the time accounting: the parts of every device's time, and the area bound. */
#include <math.h>
#include <string.h>

#include "observe/losses.h"
#include "sched/account/account.h"
#include "sched/account/bound.h"
#include "sched/account/rated.h"
#include "sched/worker/device.h"

static uint64_t least_of(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static void settled(const fl_account *account, fl_time_parts *parts)
{
    /* Relaxed: the caller saw FL_ACCOUNT_ENDED, stored after the values. */
    *parts = (fl_time_parts){.starved = fl_load_relaxed(&account->starved_ns),
                             .held = fl_load_relaxed(&account->held_ns),
                             .unshared = fl_load_relaxed(&account->unshared_ns),
                             .tail = fl_load_relaxed(&account->tail_ns),
                             .own = fl_load_relaxed(&account->own_ns),
                             .other = fl_load_relaxed(&account->other_ns),
                             .gap = fl_load_relaxed(&account->gap_ns)};
    for (int why = 0; why < FL_REFUSALS; ++why) {
        parts->refused[why] = fl_load_relaxed(&account->refusals[why]);
    }
}

/* Input for dividing a device's time on the job into work items and dispatch. Waits for data,
 * spoiled time and preemption are taken off already. */
typedef struct fl_breakdown {
    const fl_device *device;
    uint64_t rest;
    uint64_t timed_ns;   /* time of the timed items; at most `rest` */
    uint64_t guessed_ns; /* predicted time of the untimed items */
    uint64_t tiles;
    uint64_t timed;  /* number of timed items */
    uint64_t good;   /* number of timed items that did not fail */
    uint64_t passed; /* skipped items: a skip costs a dispatch, too */
    uint64_t gap;
    bool copies; /* the job copied data to or from the device */
} fl_breakdown;

/* Divides the time of a host device: time outside of timed items is dispatch. With untimed items,
 * dispatch is at most the cost of a dispatch times the number of items. */
static void divide_synchronous(const fl_breakdown *by, filch_losses *losses)
{
    uint64_t left = by->rest - by->timed_ns;
    if (by->timed < by->tiles) {
        uint64_t gap = by->gap != 0 ? by->gap : by->device->overhead_ns;
        uint64_t count = by->tiles + by->passed;
        left = gap < UINT64_MAX / (count + 1) ? least_of(left, gap * count) : left;
    }
    losses->dispatch_ns = left;
    losses->busy_ns = by->rest - left;
}

/* Divides the time of a simulated device: an item's measured time includes the overhead. */
static void divide_virtual(const fl_breakdown *by, filch_losses *losses)
{
    uint64_t overhead = least_of(by->good * by->device->overhead_ns, by->timed_ns);
    losses->busy_ns = by->timed_ns - overhead;
    losses->dispatch_ns = by->rest - losses->busy_ns;
}

/* Divides the time of a device computing asynchronously: the host does not see waits for copies
 * between items. */
static void divide_computing(const fl_breakdown *by, filch_losses *losses)
{
    losses->busy_ns = by->timed_ns + least_of(by->guessed_ns, by->rest - by->timed_ns);
    uint64_t left = by->rest - losses->busy_ns;
    losses->dispatch_ns = by->copies ? least_of(left, by->tiles * by->device->overhead_ns) : left;
    losses->data_ns += left - losses->dispatch_ns;
}

/* Returns the rest of `part` in proportion, after a loss of `lost` out of `whole`. */
static uint64_t without(uint64_t part, uint64_t lost, uint64_t whole)
{
    uint64_t rest = whole - lost;
    return lost == 0 ? part
                     : least_of((uint64_t)((double)part * ((double)rest / (double)whole)), rest);
}

static void fill(const fl_sched *sched, const filch_job *job, uint32_t d,
                 const fl_time_parts *parts, filch_losses *losses)
{
    const fl_share *share = fl_job_share(job, d);
    const fl_account *account = &share->account;
    const fl_traffic *traffic = fl_job_traffic(job, sched->count) + d;
    const fl_device *device = sched->workers[d].device;
    uint64_t timed = fl_load_relaxed(&account->timed);
    uint64_t rest = parts->own;
    *losses = (filch_losses){.starved_ns = parts->starved,
                             .held_ns = parts->held,
                             .unshared_ns = parts->unshared,
                             .tail_ns = parts->tail,
                             .other_ns = parts->other,
                             .refused_held = parts->refused[FL_REFUSED_HELD],
                             .refused_empty = parts->refused[FL_REFUSED_EMPTY],
                             .refused_unable = parts->refused[FL_REFUSED_UNABLE],
                             .refused_raced = parts->refused[FL_REFUSED_RACED],
                             .refused_dear = parts->refused[FL_REFUSED_DEAR]};
    losses->restarts = fl_load_relaxed(&account->restarts);
    losses->restarts_won = fl_load_relaxed(&account->restarts_won);
    losses->restarts_lost = fl_load_relaxed(&share->restarts_lost);
    losses->restarts_refused = fl_load_relaxed(&account->restarts_refused);
    losses->divided = fl_load_relaxed(&account->divided);
    losses->pieces = fl_load_relaxed(&account->pieces);
    losses->data_ns = least_of(fl_load_relaxed(&account->data_ns), rest);
    rest -= losses->data_ns;
    losses->spoiled_ns =
        least_of(fl_load_relaxed(&account->spoiled_ns) + fl_load_relaxed(&share->wasted_ns), rest);
    rest -= losses->spoiled_ns;
    losses->preempted_ns = least_of(fl_load_relaxed(&account->preempted_ns), rest);
    uint64_t tiles_ns = least_of(fl_load_relaxed(&account->timed_ns), rest);
    const fl_breakdown by = {
        .device = device,
        .rest = rest - losses->preempted_ns,
        .timed_ns = without(tiles_ns, losses->preempted_ns, rest),
        .guessed_ns = fl_load_relaxed(&account->guessed_ns),
        .tiles = fl_load_relaxed(&share->tiles),
        .timed = timed,
        .good = timed - least_of(fl_load_relaxed(&account->spoiled), timed),
        .passed = fl_load_relaxed(&share->skipped),
        .gap = parts->gap,
        .copies = (fl_load_relaxed(&traffic->in) | fl_load_relaxed(&traffic->out) |
                   fl_load_relaxed(&traffic->peer)) != 0,
    };
    if (device->is_synchronous) {
        divide_synchronous(&by, losses);
    } else if (sched->pool->is_virtual) {
        divide_virtual(&by, losses);
    } else {
        divide_computing(&by, losses);
    }
    losses->estimated_ns = losses->busy_ns > by.timed_ns ? losses->busy_ns - by.timed_ns : 0;
    losses->wall_ns =
        parts->starved + parts->held + parts->unshared + parts->tail + parts->own + parts->other;
}

/* --- Against the best speeds --- */

/* Assumed speed of a device in the bound. */
typedef struct fl_rating {
    double scale; /* factor of the best times: below 1 for a device faster than best in the job */
    double per_tile; /* ns an item of a codelet declaring work */
    double per_unit; /* ns a unit of unrated work; 0: no unrated work */
    uint32_t twin;   /* similar device supplying missing speeds; own index: no similar device */
    bool can_work;   /* the device takes part in the bound */
} fl_rating;

typedef struct fl_rates {
    const fl_sched *sched;
    const filch_job *job;
    uint32_t kinds; /* number of codelets declaring work; index `kinds` means unrated work */
    fl_rated_sum total[FL_RATED];
    double units; /* units of unrated work */
    uint64_t items;
    fl_rating of[FL_DEVICE_LIMIT];
} fl_rates;

/* Returns the work outside of every fl_rated: declared for items only, or 1 an item. */
static double unrated_units(const fl_share *share, uint64_t rated_tiles, double rated_work)
{
    double work = fl_bits_double(fl_load_relaxed(&share->work)), rest = work - rated_work;
    uint64_t tiles = fl_load_relaxed(&share->tiles);
    bool is_sum = rest <= 1e-9 * work; /* the rest is the rounding error of two sums */
    return is_sum ? (double)(tiles - least_of(rated_tiles, tiles)) : rest;
}

/* Divides busy_ns into the time at the best speed and the time lost beyond. */
static void rate(fl_rates *rates, uint32_t d, filch_losses *losses)
{
    const fl_share *share = fl_job_share(rates->job, d);
    uint64_t timed = fl_load_relaxed(&share->account.weighted_ns), tiles = 0, unknown = 0;
    double busy = (double)losses->busy_ns, work = 0, ideal = 0;
    for (uint32_t k = 0; k < rates->kinds; ++k) {
        const fl_rated *rated = &share->rated[k];
        const fl_rated_sum done = {.tiles = fl_load_relaxed(&rated->tiles),
                                   .work = fl_bits_double(fl_load_relaxed(&rated->work))};
        double best = fl_rated_best(rates->sched, rates->job, k, d, done);
        tiles += done.tiles;
        work += done.work;
        unknown += best > 0 ? 0 : done.tiles;
        ideal += best;
    }
    double units = unrated_units(share, tiles, work);
    /* A mixture of rated and unrated work is divided in the proportion of the timed items, each
     * for as many items as it stands for. */
    double part = tiles == 0   ? 0
                  : units == 0 ? 1
                  : timed == 0
                      ? 0
                      : (double)fl_load_relaxed(&share->account.weighted_rated_ns) / (double)timed;
    double rated = busy * (part < 1 ? part : 1);
    fl_rating *rating = &rates->of[d];
    rating->per_tile = tiles != 0 ? rated / (double)tiles : 0;
    double known = rated - rating->per_tile * (double)unknown;
    rating->scale = ideal > 0 && known < ideal ? known / ideal : 1;
    losses->slow_ns =
        ideal > 0 && known > ideal ? least_of((uint64_t)(known - ideal), losses->busy_ns) : 0;
    losses->busy_ns -= losses->slow_ns;
    losses->unrated_ns =
        ideal > 0 ? least_of((uint64_t)(busy - known), losses->busy_ns) : losses->busy_ns;
    /* Failed items count in the time and in the work. Discarded runs (wasted_ns) count in neither.
     */
    double failed =
        (double)least_of(fl_load_relaxed(&share->account.spoiled_ns), losses->spoiled_ns);
    rating->per_unit = units > 0 && busy > rated ? (busy - rated + failed) / units : 0;
    rates->units += rating->per_unit > 0 ? (busy - rated) / rating->per_unit : 0;
    rates->items += fl_load_relaxed(&share->items);
}

static bool is_alike(const fl_device *a, const fl_device *b)
{
    return a->info.score == b->info.score && a->info.backend == b->info.backend &&
           a->info.team == b->info.team && a->implementations == b->implementations &&
           strcmp(a->info.model, b->info.model) == 0;
}

/* Tells whether the job could have used the device. */
static bool could_work(const fl_rates *rates, uint32_t d, bool has_ended)
{
    const fl_worker *w = &rates->sched->workers[d];
    const filch_job *job = rates->job;
    bool is_off = has_ended ? fl_load_relaxed(&fl_job_share(job, d)->account.is_off) != 0
                            : fl_worker_is_unavailable(w);
    return !is_off && (job->batch == NULL || fl_devices_have(fl_batch_devices(job->batch), d));
}

static bool has_worked(const fl_rates *rates, uint32_t d)
{
    return rates->of[d].per_tile > 0 || rates->of[d].per_unit > 0;
}

/* Sets can_work and the twin of every device. The twin is the similar device with the most items.
 */
static void find_twins(fl_rates *rates, bool has_ended)
{
    const fl_sched *sched = rates->sched;
    for (uint32_t d = 0; d < sched->count; ++d) {
        fl_rating *rating = &rates->of[d];
        uint64_t most = 0;
        rating->twin = d;
        rating->can_work = has_worked(rates, d) || could_work(rates, d, has_ended);
        for (uint32_t e = 0; e < sched->count && rating->can_work; ++e) {
            uint64_t tiles = fl_load_relaxed(&fl_job_share(rates->job, e)->tiles);
            if (e != d && tiles > most && has_worked(rates, e) &&
                is_alike(sched->workers[d].device, sched->workers[e].device)) {
                rating->twin = e;
                most = tiles;
            }
        }
    }
}

/* Predicts the time of the job's whole work of a kind at the device's own speed, ns; 0: unknown. */
static double own_time(const fl_rates *rates, uint32_t kind, uint32_t d)
{
    const fl_rating *rating = &rates->of[d];
    if (kind == rates->kinds) {
        return rating->per_unit * rates->units;
    }
    const fl_rated_sum *total = &rates->total[kind];
    double best = fl_rated_best(rates->sched, rates->job, kind, d, *total);
    if (best > 0) {
        return best * rating->scale;
    }
    const fl_rated *rated = &fl_job_share(rates->job, d)->rated[kind];
    double tiles = (double)fl_load_relaxed(&rated->tiles);
    double work = fl_bits_double(fl_load_relaxed(&rated->work));
    return work > 0 ? rating->per_tile * tiles * (total->work / work)
                    : rating->per_tile * (tiles > 0 ? (double)total->tiles : 0);
}

static double time_on(const void *user, uint32_t kind, uint32_t d)
{
    const fl_rates *rates = user;
    if (!rates->of[d].can_work) {
        return INFINITY;
    }
    double ns = own_time(rates, kind, d);
    ns = ns > 0 ? ns : own_time(rates, kind, rates->of[d].twin);
    return ns > 0 ? ns : INFINITY;
}

static void fill_bounds(const fl_rates *rates, filch_report *report)
{
    const filch_job *job = rates->job;
    uint32_t kinds = rates->kinds + (rates->units > 0);
    double least = INFINITY;
    for (uint32_t d = 0; d < rates->sched->count; ++d) {
        double ns = INFINITY;
        for (uint32_t kind = 0; kind < kinds; ++kind) {
            ns = fmin(ns, time_on(rates, kind, d));
        }
        report->measured_count += has_worked(rates, d);
        report->known_count += isfinite(ns) ? 1 : 0;
        least = fmin(least, ns);
    }
    double area = fl_bound_area(time_on, rates, kinds, rates->sched->count);
    report->area_ns = least_of((uint64_t)(area + 0.5), report->wall_ns);
    if (job->batch == NULL || rates->items == 0 || !isfinite(least)) {
        return;
    }
    /* Path of a batch: a single grain of the work done; the batch may have been cut short. */
    double grains = (double)fl_batch_grains(job->batch) * (double)rates->items /
                    (double)fl_load_relaxed(&job->total);
    report->path_ns = (uint64_t)(least / (grains > 1 ? grains : 1));
}

/* Merges the parts unknown to the caller's header into older parts, so that the sum is kept. */
static void fold(filch_losses *losses, size_t bytes)
{
    if (bytes < offsetof(filch_losses, unrated_ns)) {
        losses->busy_ns += losses->slow_ns;
    }
    if (bytes < offsetof(filch_losses, preempted_ns) + sizeof losses->preempted_ns) {
        losses->busy_ns += losses->preempted_ns;
    }
    if (bytes < offsetof(filch_losses, unshared_ns) + sizeof losses->unshared_ns) {
        losses->starved_ns += losses->unshared_ns;
    }
}

void fl_account_report(fl_scheduler *self, const filch_job *job, filch_report *report,
                       filch_losses *devices, size_t device_bytes, uint32_t count)
{
    const fl_sched *sched = (const fl_sched *)(const void *)self;
    /* Acquire: the noted values are visible. */
    uint32_t accounted = fl_load_acquire(&fl_part_of_job(job)->accounted);
    uint64_t end = accounted == FL_ACCOUNT_BEGUN   ? fl_clock_now(&sched->core->clock)
                   : accounted == FL_ACCOUNT_ENDED ? job->finished
                                                   : 0;
    uint64_t begin = fl_load_relaxed(&job->started);
    fl_rates rates;
    rates.sched = sched;
    rates.job = job;
    rates.kinds = fl_rated_kinds(job);
    rates.units = 0;
    rates.items = 0;
    for (uint32_t k = 0; k < rates.kinds; ++k) {
        rates.total[k] = fl_rated_total(sched, job, k);
    }
    report->wall_ns = end > begin ? end - begin : 0;
    for (uint32_t d = 0; d < sched->count; ++d) {
        fl_time_parts parts = {.own = 0};
        filch_losses losses;
        if (accounted == FL_ACCOUNT_ENDED) {
            settled(&fl_job_share(job, d)->account, &parts);
        } else if (accounted == FL_ACCOUNT_BEGUN) {
            fl_account_measure(sched, job, d, end, end, &parts);
        }
        fill(sched, job, d, &parts, &losses);
        rate(&rates, d, &losses);
        fold(&losses, device_bytes);
        fl_losses_add(&report->total, &losses);
        if (d < count) {
            memcpy((char *)devices + d * device_bytes, &losses, device_bytes);
        }
    }
    find_twins(&rates, accounted == FL_ACCOUNT_ENDED);
    fill_bounds(&rates, report);
}

/* --- Totals of a job --- */

/* Adds the count of an ended run. Relaxed: readers take no snapshot, and the callers follow each
 * other. */
static void add_count(_Atomic uint64_t *sum, const _Atomic uint64_t *count)
{
    fl_count(sum, fl_load_relaxed(count));
}

void fl_account_add(fl_scheduler *self, filch_job *job, const filch_job *run)
{
    uint32_t devices = ((fl_sched *)(void *)self)->count;
    for (uint32_t d = 0; d < devices; ++d) {
        fl_share *to = fl_job_share(job, d);
        const fl_share *from = fl_job_share(run, d);
        add_count(&to->tiles, &from->tiles);
        add_count(&to->items, &from->items);
        add_count(&to->done, &from->done);
        add_count(&to->failed, &from->failed);
        add_count(&to->skipped, &from->skipped);
        add_count(&to->stolen_in, &from->stolen_in);
        add_count(&to->stolen_out, &from->stolen_out);
        add_count(&to->moved, &from->moved);
        add_count(&to->busy_ns, &from->busy_ns);
        add_count(&to->pended, &from->pended);
        add_count(&to->unpended, &from->unpended);
        double work = fl_bits_double(fl_load_relaxed(&to->work)) +
                      fl_bits_double(fl_load_relaxed(&from->work));
        fl_store_relaxed(&to->work, fl_double_bits(work));
        fl_traffic *sum = fl_job_traffic(job, devices) + d;
        const fl_traffic *traffic = fl_job_traffic(run, devices) + d;
        add_count(&sum->in, &traffic->in);
        add_count(&sum->out, &traffic->out);
        add_count(&sum->peer, &traffic->peer);
        add_count(&sum->evicted, &traffic->evicted);
        add_count(&sum->written_back, &traffic->written_back);
    }
}

void fl_account_skip(fl_scheduler *self, filch_job *job, uint64_t tasks)
{
    (void)self;
    fl_count(&fl_job_share(job, 0)->skipped, tasks);
}

void fl_account_stats(fl_scheduler *self, const filch_job *job, filch_job_info *info, void *devices,
                      size_t device_bytes, uint32_t count)
{
    const fl_sched *sched = (fl_sched *)(void *)self;
    fl_goal goal = {.job = job};
    /* Relaxed: loaded before the goal is tested. */
    uint64_t begin = fl_load_relaxed(&job->started);
    uint64_t end = fl_goal_is_met(&goal) ? job->finished : fl_clock_now(&sched->core->clock);
    bool has_begun = begin != 0 || sched->pool->is_virtual;
    info->seconds = has_begun && end > begin ? (double)(end - begin) / 1e9 : 0;
    info->done = info->failed = info->skipped = info->bytes = info->evicted = 0;
    info->moved = 0;
    uint64_t pended = 0, retired = 0;
    for (uint32_t d = 0; d < sched->count; ++d) {
        const fl_share *share = fl_job_share(job, d);
        info->done += fl_load_relaxed(&share->done);
        info->failed += fl_load_relaxed(&share->failed);
        info->skipped += fl_load_relaxed(&share->skipped);
        const fl_traffic *traffic = fl_job_traffic(job, sched->count) + d;
        uint64_t in = fl_load_relaxed(&traffic->in), out = fl_load_relaxed(&traffic->out);
        uint64_t peer = fl_load_relaxed(&traffic->peer);
        info->bytes += in + out + peer;
        info->evicted += fl_load_relaxed(&traffic->evicted);
        info->moved += fl_load_relaxed(&share->moved);
        pended += fl_load_relaxed(&share->pended);
        retired += fl_load_relaxed(&share->unpended);
        if (d >= count) {
            continue;
        }
        double busy = (double)fl_load_relaxed(&share->busy_ns) / 1e9;
        double work = fl_bits_double(fl_load_relaxed(&share->work));
        uint64_t tiles = fl_load_relaxed(&share->tiles);
        work = work > 0 ? work : (double)tiles;
        const filch_device_stats stats = {
            .tiles = tiles,
            .stolen_in = fl_load_relaxed(&share->stolen_in),
            .stolen_out = fl_load_relaxed(&share->stolen_out),
            .items = fl_load_relaxed(&share->items),
            .work = work,
            .busy_s = busy,
            .idle_s = info->seconds > busy ? info->seconds - busy : 0,
            .speed = busy > 0 ? work / busy : 0,
            .bytes_in = in,
            .bytes_out = out,
            .bytes_peer = peer,
            .evicted = fl_load_relaxed(&traffic->evicted),
            .bytes_evicted = fl_load_relaxed(&traffic->written_back),
            .moved = fl_load_relaxed(&share->moved),
            .pending = fl_load_relaxed(&share->pended),
        };
        memcpy((char *)devices + d * device_bytes, &stats, device_bytes);
    }
    /* Reads of a running job are no snapshot. */
    info->pending = pended > retired ? pended - retired : 0;
}
