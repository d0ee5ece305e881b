/* SPDX-License-Identifier: Apache-2.0 */
/* Exploration by a device that once was fast, but has been slow and is refused tasks.
 * fl_speed_probe_is_due does the equivalent for batches. Thefts of tasks go by the mean of every
 * task run on the device; the mean stands for the device. Tasks that a core leaves to a GPU go by
 * the codelet's speed. The functions run only after a timed task, or before refusing a task. */
#include "sched/model/explore.h"

#include <math.h>

#include "sched/model/cost.h"
#include "sched/model/speed.h"
#include "sched/worker/device.h"
#include "sched/worker/sched.h"
#include "sched/worker/tuning.h"

double fl_explore_mean(fl_worker *w, const fl_item *item, double mean, double ns)
{
    fl_explore *trial = &w->theft.explore;
    trial->at = item->start + item->ns;
    trial->is_suspected = trial->is_on && FL_FASTER * (double)item->fair < mean;
    if (trial->is_suspected && FL_FASTER * ns < mean) {
        trial->is_suspected = false;
        trial->after = 0; /* the slow estimate was wrong */
        mean = ns;
    } else {
        /* Weight 1/4: a horizon of a few samples, for sizing chunks and thefts. Weight 1/2 of a
         * sample on a core that stands for more items than others. */
        bool is_rare = w->device->is_synchronous && item->stands > 2 * FL_SPEED_PERIOD;
        double rest = is_rare ? 0.5 : 0.75;
        mean = mean == 0 ? ns : ns + (mean - ns) * rest;
    }
    trial->is_on = false;
    if (trial->count < FL_TRUSTED) {
        ++trial->count;
    } else {
        trial->best = trial->best > 0 ? fmin(trial->best, mean) : mean;
    }
    return mean;
}

static double least_wait(double ns)
{
    return fmax(FL_EXPLORE_LEAST_NS, FL_EXPLORE_ITEMS * ns);
}

bool fl_explore_is_due(const fl_worker *w, double mean)
{
    uint64_t t = fl_worker_clock(w);
    return w->theft.explore.is_suspected ||
           (t >= w->theft.explore.next && t > w->theft.explore.at &&
            (double)(t - w->theft.explore.at) >= least_wait(mean));
}

void fl_explore_begin(fl_worker *w, double mean, const fl_task *task)
{
    fl_explore *trial = &w->theft.explore;
    double least = least_wait(mean);
    double wait = fmin(fmax(2.0 * (double)trial->after, least), FL_EXPLORE_GROWTH * least);
    trial->after = wait < 0x1p62 ? (uint64_t)wait : (uint64_t)1 << 62;
    trial->next = fl_worker_clock(w) + trial->after;
    trial->is_on = true;
    if (!task->is_gate) {
        fl_speed_ask(fl_codelet_speed(task->codelet, w->index));
    }
}

bool fl_explore_keeps(const fl_worker *w, const fl_worker *other, const fl_task *task)
{
    const fl_speed *speed = fl_codelet_speed(task->codelet, w->index);
    double own = fl_cost_of_task(w, task);
    double theirs = fl_cost_of_task(other, task);
    const double *scores = w->sched->scores;
    double hope = theirs * scores[other->index] / scores[w->index]; /* may be infinite */
    if (fl_speed_best(speed) > 0) {
        hope = fmin(hope, own * fl_speed_best(speed) / fl_speed_get(speed));
    }
    return hope < theirs && fl_speed_probe_is_due(speed, own, fl_worker_clock(w));
}

void fl_explore_keep(const fl_worker *w, const fl_task *task)
{
    fl_speed *speed = fl_codelet_speed(task->codelet, w->index);
    fl_speed_probe(speed, fl_cost_of_task(w, task), fl_worker_clock(w));
    fl_speed_ask(speed);
}
