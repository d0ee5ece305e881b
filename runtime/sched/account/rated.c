/* SPDX-License-Identifier: Apache-2.0 */
#include "sched/account/rated.h"

#include <math.h>

#include "sched/worker/device.h"
#include "sched/worker/sched.h"
#include "sched/worker/tuning.h"

/* Finds or adds a codelet; FL_RATED: the list is full. The first device's share holds the codelets
 * of all devices in the order of discovery. An element is set once, after every element before. */
static uint32_t find(const filch_job *job, const filch_codelet *codelet)
{
    fl_share *first = fl_job_share(job, 0);
    uint32_t at = 0;
    while (at < FL_RATED) {
        uintptr_t known = 0;
        /* Relaxed: a codelet lives as long as the runtime. */
        if (fl_load_relaxed(&first->rated_of[at]) == (uintptr_t)codelet ||
            fl_cas_relaxed(&first->rated_of[at], &known, (uintptr_t)codelet) ||
            known == (uintptr_t)codelet) {
            break;
        }
        ++at;
    }
    return at;
}

static __attribute__((noinline)) void turn(fl_share *share, const filch_job *job,
                                           const filch_codelet *codelet)
{
    share->rated_at = find(job, codelet);
    share->rated_last = codelet;
}

void fl_rated_count(fl_worker *w, const filch_codelet *codelet, double work)
{
    fl_share *share = w->now.share;
    if (FL_UNLIKELY(share->rated_last != codelet)) {
        turn(share, w->now.job, codelet);
    }
    if (FL_LIKELY(share->rated_at < FL_RATED)) {
        fl_rated *rated = &share->rated[share->rated_at];
        double sum = fl_bits_double(fl_load_relaxed(&rated->work)) + work;
        fl_store_relaxed(&rated->work, fl_double_bits(sum));
        fl_count(&rated->tiles, 1);
    }
}

uint32_t fl_rated_kinds(const filch_job *job)
{
    const fl_share *first = fl_job_share(job, 0);
    uint32_t count = 0;
    while (count < FL_RATED &&
           fl_load_relaxed(&first->rated_of[count]) != 0) { /* relaxed: as in find */
        ++count;
    }
    return count;
}

fl_rated_sum fl_rated_total(const fl_sched *sched, const filch_job *job, uint32_t kind)
{
    fl_rated_sum sum = {0, 0};
    for (uint32_t d = 0; d < sched->count; ++d) {
        const fl_rated *rated = &fl_job_share(job, d)->rated[kind];
        sum.tiles += fl_load_relaxed(&rated->tiles); /* relaxed, twice: statistics */
        sum.work += fl_bits_double(fl_load_relaxed(&rated->work));
    }
    return sum;
}

double fl_rated_best(const fl_sched *sched, const filch_job *job, uint32_t kind, uint32_t device,
                     fl_rated_sum done)
{
    const fl_rated *rated = &fl_job_share(job, device)->rated[kind];
    double rate = fl_bits_double(fl_load_relaxed(&rated->rate));
    double fixed = fl_bits_double(fl_load_relaxed(&rated->fixed));
    /* A simulated device's measured time includes the overhead of the item, and overhead is no
     * work. */
    if (sched->pool->is_virtual) {
        fixed -= (double)sched->workers[device].device->overhead_ns;
    }
    double ns = rate * done.work + fixed * (double)done.tiles;
    return rate > 0 && ns > 0 && isfinite(ns) ? ns : 0;
}
