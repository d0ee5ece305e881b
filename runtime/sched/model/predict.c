/* SPDX-License-Identifier: Apache-2.0 */
/* Predicted time and work of codelets and of parts of batches. */
#include "sched/model/predict.h"

#include <math.h>
#include <string.h>

#include "sched/model/cost.h"
#include "sched/model/prior.h"
#include "sched/model/speed.h"
#include "sched/worker/device.h"
#include "sched/worker/tuning.h"

/* Returns the declared work of a chunk without gaps. */
static double chunk_work(const fl_worker *w, const filch_job *job, uint32_t lo, uint32_t hi)
{
    const filch_codelet *codelet = fl_batch_codelet(job->batch);
    filch_call call = {
        .team = 1, .device = w->index, .args = fl_batch_args(job->batch), .user = codelet->user};
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

void fl_batch_learn(const fl_worker *w, const fl_item *item)
{
    /* A chunk of a few dispatches consists mostly of dispatch. */
    double took = (double)item->fair;
    bool counts = took > FL_CHUNK_FLOOR_DISPATCHES * fl_worker_dispatch_ns(w) && item->work > 0;
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

double fl_pieces_work(const fl_worker *w, const filch_job *job, uint32_t lo, uint32_t hi)
{
    if (fl_part_of_job(job)->cut != FL_CUT_PIECES) {
        return fl_batch_work(w, job, lo, hi);
    }
    /* Every piece is about as large as the first. */
    fl_piece first = fl_part_of_job(job)->pieces->at[lo];
    return fl_batch_work(w, job, first.lo, first.hi) * (hi - lo);
}

/* --- Functions of fl_scheduler --- */

void fl_predict_init(fl_scheduler *self, filch_codelet *codelet)
{
    fl_sched *sched = (fl_sched *)(void *)self;
    codelet->device_count = 0;
    memset(codelet->runs_on, 0, sizeof codelet->runs_on);
    for (uint32_t device = 0; device < sched->count; ++device) {
        fl_speed_init(fl_codelet_speed(codelet, device));
        if ((codelet->implementations & sched->pool->devices[device].implementations) != 0) {
            codelet->runs_on[device / 64] |= (uint64_t)1 << device % 64;
            ++codelet->device_count;
        }
    }
    codelet->kind_count = codelet->device_count;
    fl_prior_set(sched, codelet);
}

double fl_predict_estimate(fl_scheduler *self, const filch_codelet *codelet, double work)
{
    double least = 0;
    for (uint32_t device = 0; device < self->device_count; ++device) {
        double ns = fl_cost_measured(codelet, device, work);
        least = ns > 0 && (least == 0 || ns < least) ? ns : least;
    }
    return least > 0 ? least : work;
}

double fl_predict_least_ns(fl_scheduler *self, const filch_codelet *codelet)
{
    double least = 0;
    for (uint32_t device = 0; device < self->device_count; ++device) {
        double ns = fl_speed_get(fl_codelet_speed(codelet, device));
        fl_proven proven = fl_speed_proven(fl_codelet_speed(codelet, device));
        /* The best possible speed is unknown for tasks without declared work. */
        ns = codelet->work != NULL && proven.rate > 0 && proven.rate < ns ? proven.rate : ns;
        least = ns > 0 && (least == 0 || ns < least) ? ns : least;
    }
    return least;
}
