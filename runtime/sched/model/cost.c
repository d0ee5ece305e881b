/* SPDX-License-Identifier: Apache-2.0 */
#include "sched/model/cost.h"

#include "sched/worker/device.h"
#include "sched/worker/sched.h"
#include "sched/worker/tuning.h"

double fl_cost_rate(const fl_sched *sched, const filch_codelet *codelet, uint32_t device)
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

double fl_cost_batch_rate(const fl_sched *sched, const filch_job *job, uint32_t device)
{
    double ns = fl_cost_rate(sched, fl_batch_codelet(job->batch), device);
    return fmax(ns, fl_bits_double(fl_load_relaxed(&fl_job_share(job, device)->recent)));
}

/* Returns ns, or the mean task of the device if shorter or if ns is 0: a first task that took too
 * long must not be the device's last. A device without a mean has another device's. */
static double by_means(const fl_worker *w, double ns, double score)
{
    const fl_sched *sched = w->sched;
    double mean = fl_worker_mean_ns(w);
    if (mean > 0) {
        return ns > 0 && ns < mean ? ns : mean;
    }
    for (uint32_t d = 0; ns <= 0 && d < sched->count; ++d) {
        ns = fl_worker_mean_ns(&sched->workers[d]) * sched->scores[d] / score;
    }
    return ns;
}

double fl_cost_of_work(const fl_worker *w, const filch_codelet *codelet, double work,
                       uint32_t guess)
{
    double score = fmax(w->sched->scores[w->index], FL_SCORE_LEAST);
    double ns = fl_speed_get(fl_codelet_speed(codelet, w->index)) * work;
    if (ns > 0) {
        return ns;
    }
    if ((guess & FL_GUESS_SCORES) != 0) {
        ns = fl_cost_rate(w->sched, codelet, w->index) * work;
    }
    if ((guess & FL_GUESS_MEANS) != 0) {
        ns = by_means(w, ns, score);
    }
    return ns > 0 || (guess & FL_GUESS_USUAL) == 0 ? ns : work * FL_WORK_USUAL_NS / score;
}

double fl_cost_of_any(const fl_worker *w, const fl_task *task)
{
    double work = task->work > 0 ? (double)task->work : 1;
    double ns = fl_cost_measured(task->codelet, w->index, work);
    ns = ns > 0 ? ns : fl_cost_of_work(w, task->codelet, work, FL_GUESS_ALL);
    return ns > 1 ? ns : 1;
}

double fl_cost_of_unseen(const fl_worker *thief, const fl_worker *victim)
{
    const double *scores = thief->sched->scores;
    double theirs = fl_worker_mean_ns(victim), own = fl_worker_mean_ns(thief);
    if (theirs > 0 && scores[thief->index] > 0) {
        double guess = theirs * scores[victim->index] / scores[thief->index];
        return own > 0 && own < guess ? own : guess;
    }
    return own;
}

double fl_cost_in_flight(const fl_worker *w, double unknown)
{
    double sum = 0;
    uint32_t left = w->pipeline.computing;
    for (uint32_t i = 0; i < w->pipeline.flight_count && left != 0; ++i) {
        const fl_in_flight *flight = &w->pipeline.flights[i];
        if (flight->item.state == FL_ITEM_LAUNCHED) {
            sum += flight->expected > 0 ? flight->expected : unknown;
            --left;
        }
    }
    return sum;
}
