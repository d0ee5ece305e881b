/* SPDX-License-Identifier: Apache-2.0 */
/* The loss report: the parts of each device's time, and the area bound. */
#include <string.h>

#include "sched/loss.h"

static uint64_t least_of(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static void settled(const fl_account *account, fl_parts *parts)
{
    /* Relaxed: who said that the job has ended had written all of it. */
    *parts = (fl_parts){.starved = fl_load_relaxed(&account->starved_ns),
                        .held = fl_load_relaxed(&account->held_ns),
                        .tail = fl_load_relaxed(&account->tail_ns),
                        .own = fl_load_relaxed(&account->own_ns),
                        .other = fl_load_relaxed(&account->other_ns),
                        .gap = fl_load_relaxed(&account->gap_ns)};
    for (int why = 0; why < FL_REFUSALS; ++why) {
        parts->refused[why] = fl_load_relaxed(&account->refusals[why]);
    }
}

/* Time on the job, less what was waited for data and what was spoiled: tiles, or between them. */
typedef struct fl_breakdown {
    const fl_device *device;
    uint64_t rest;
    uint64_t timed_ns;   /* of the tiles that were timed; no more than the rest */
    uint64_t guessed_ns; /* what others were predicted to take */
    uint64_t tiles;
    uint64_t timed;  /* of the tiles */
    uint64_t good;   /* of these, those that did not fail */
    uint64_t passed; /* tiles that were skipped: they cost a dispatch, too */
    uint64_t gap;
    bool copies; /* something was copied there */
} fl_breakdown;

/* On the host's devices: all is between tiles that is not in them; where some were not timed, what
 * a dispatch costs for each is. */
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

/* A simulated device's tile takes its overhead with it. */
static void divide_virtual(const fl_breakdown *by, filch_losses *losses)
{
    uint64_t overhead = least_of(by->good * by->device->overhead_ns, by->timed_ns);
    losses->busy_ns = by->timed_ns - overhead;
    losses->dispatch_ns = by->rest - losses->busy_ns;
}

/* On a device that computes by itself nobody sees whether it waits for copies between its tiles. */
static void divide_computing(const fl_breakdown *by, filch_losses *losses)
{
    losses->busy_ns = by->timed_ns + least_of(by->guessed_ns, by->rest - by->timed_ns);
    uint64_t left = by->rest - losses->busy_ns;
    losses->dispatch_ns = by->copies ? least_of(left, by->tiles * by->device->overhead_ns) : left;
    losses->data_ns += left - losses->dispatch_ns;
}

static void fill(const fl_sched *sched, const filch_job *job, uint32_t d, const fl_parts *parts,
                 filch_losses *losses)
{
    const fl_share *share = fl_job_share(job, d);
    const fl_account *account = &share->account;
    const fl_traffic *traffic = fl_job_traffic(job, sched->count) + d;
    const fl_device *device = sched->workers[d].device;
    uint64_t timed = fl_load_relaxed(&account->timed);
    uint64_t rest = parts->own;
    *losses = (filch_losses){.starved_ns = parts->starved,
                             .held_ns = parts->held,
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
    const fl_breakdown by = {
        .device = device,
        .rest = rest,
        .timed_ns = least_of(fl_load_relaxed(&account->timed_ns), rest),
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
    losses->wall_ns = parts->starved + parts->held + parts->tail + parts->own + parts->other;
}

static void add(filch_losses *sum, const filch_losses *losses)
{
    sum->wall_ns += losses->wall_ns;
    sum->busy_ns += losses->busy_ns;
    sum->dispatch_ns += losses->dispatch_ns;
    sum->data_ns += losses->data_ns;
    sum->spoiled_ns += losses->spoiled_ns;
    sum->starved_ns += losses->starved_ns;
    sum->held_ns += losses->held_ns;
    sum->tail_ns += losses->tail_ns;
    sum->other_ns += losses->other_ns;
    sum->estimated_ns += losses->estimated_ns;
    sum->refused_held += losses->refused_held;
    sum->refused_empty += losses->refused_empty;
    sum->refused_unable += losses->refused_unable;
    sum->refused_raced += losses->refused_raced;
    sum->refused_dear += losses->refused_dear;
    sum->restarts += losses->restarts;
    sum->restarts_won += losses->restarts_won;
    sum->restarts_lost += losses->restarts_lost;
    sum->restarts_refused += losses->restarts_refused;
    sum->divided += losses->divided;
    sum->pieces += losses->pieces;
}

/* Work done, and how fast. */
typedef struct fl_area {
    double useful;  /* work that was not spoiled */
    double speed;   /* work a nanosecond, of all */
    double fastest; /* of one */
    uint64_t items;
} fl_area;

/* A device's speed is its work over the time in its tiles, failed ones included in both. */
static void add_speed(fl_area *area, filch_report *report, const fl_share *share,
                      const filch_losses *losses)
{
    double work = fl_bits_double(fl_load_relaxed(&share->work));
    uint64_t tiles = fl_load_relaxed(&share->tiles);
    work = work > 0 ? work : (double)tiles;
    if (tiles == 0 || losses->busy_ns == 0) {
        return;
    }
    /* Not what runs took that did not count, as their work does not. */
    uint64_t failed_ns = least_of(fl_load_relaxed(&share->account.spoiled_ns), losses->spoiled_ns);
    double speed = work / (double)(losses->busy_ns + failed_ns);
    area->useful += speed * (double)losses->busy_ns;
    area->speed += speed;
    area->fastest = speed > area->fastest ? speed : area->fastest;
    area->items += fl_load_relaxed(&share->items);
    ++report->measured_count;
}

static void fill_bounds(const filch_job *job, const fl_area *area, filch_report *report)
{
    report->area_ns = area->speed > 0 ? (uint64_t)(area->useful / area->speed) : 0;
    if (job->batch == NULL || area->items == 0) {
        return;
    }
    /* One grain of what was run, of a batch that may have been cut short. */
    double grains = (double)fl_batch_grains(job->batch) * (double)area->items /
                    (double)fl_load_relaxed(&job->total);
    grains = grains > 1 ? grains : 1;
    report->path_ns = (uint64_t)(area->useful / grains / area->fastest);
}

void fl_loss_report(fl_scheduler *self, const filch_job *job, filch_report *report,
                    filch_losses *devices, size_t device_bytes, uint32_t count)
{
    const fl_sched *sched = (const fl_sched *)(const void *)self;
    /* Acquire: what was noted comes before. */
    uint32_t accounted = fl_load_acquire(&job->accounted);
    uint64_t end = accounted == FL_LOSS_BEGUN   ? fl_clock_now(&sched->core->clock)
                   : accounted == FL_LOSS_ENDED ? job->finished
                                                : 0;
    uint64_t begin = fl_load_relaxed(&job->started);
    fl_area area = {.items = 0};
    report->wall_ns = end > begin ? end - begin : 0;
    for (uint32_t d = 0; d < sched->count; ++d) {
        fl_parts parts = {.own = 0};
        filch_losses losses;
        if (accounted == FL_LOSS_ENDED) {
            settled(&fl_job_share(job, d)->account, &parts);
        } else if (accounted == FL_LOSS_BEGUN) {
            fl_loss_measure(sched, job, d, end, end, &parts);
        }
        fill(sched, job, d, &parts, &losses);
        add(&report->total, &losses);
        add_speed(&area, report, fl_job_share(job, d), &losses);
        if (d < count) {
            memcpy((char *)devices + d * device_bytes, &losses, device_bytes);
        }
    }
    fill_bounds(job, &area, report);
}
