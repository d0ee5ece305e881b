/* SPDX-License-Identifier: Apache-2.0 */
#include "sched/model/proven.h"

#include "sched/account/rated.h"
#include "sched/model/speed.h"
#include "sched/worker/tuning.h"

/* Returns the best speed of the device; rate 0: the speed is not proven for items of the given
 * work. */
static fl_proven look(const filch_codelet *codelet, uint32_t device, double work)
{
    fl_proven proven = {.rate = 0};
    if (fl_codelet_runs_on(codelet, device)) {
        proven = fl_speed_proven(fl_codelet_speed(codelet, device));
    }
    bool holds = work * FL_SPEED_APART >= proven.from &&
                 work <= proven.to * FL_SPEED_APART; /* false for NaN */
    return holds ? proven : (fl_proven){.rate = 0};
}

static void note(fl_rated *rated, const fl_proven *proven)
{
    /* Relaxed: a reader seeing a single new value has an estimate; after the job's end the values
     * are final. */
    fl_store_relaxed(&rated->rate, fl_double_bits(proven->rate));
    fl_store_relaxed(&rated->fixed, fl_double_bits(proven->fixed));
}

void fl_proven_note(fl_worker *w, const filch_codelet *codelet, double work)
{
    fl_share *share = w->now.share;
    if (share->rated_last == codelet && share->rated_at < FL_RATED) {
        fl_proven proven = look(codelet, w->index, work);
        note(&share->rated[share->rated_at], &proven);
    }
}

void fl_proven_end(const fl_sched *sched, const filch_job *job)
{
    uint32_t kinds = fl_rated_kinds(job);
    for (uint32_t kind = 0; kind < kinds; ++kind) {
        const filch_codelet *codelet = (const filch_codelet *)(uintptr_t)fl_load_relaxed(
            &fl_job_share(job, 0)->rated_of[kind]);
        fl_rated_sum total = fl_rated_total(sched, job, kind);
        double mean = total.work / (double)total.tiles;
        for (uint32_t d = 0; d < sched->count; ++d) {
            fl_proven proven = look(codelet, d, mean);
            note(&fl_job_share(job, d)->rated[kind], &proven);
        }
    }
}
