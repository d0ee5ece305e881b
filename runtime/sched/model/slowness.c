/* SPDX-License-Identifier: Apache-2.0 */
#include "sched/model/slowness.h"

#include "memory/tiles/tiles.h"
#include "sched/model/cost.h"
#include "sched/worker/sched.h"
#include "sched/worker/tuning.h"

/* Timed tasks in a row that say a device is slow, where earlier ones said it is not. Measured:
 * docs/performance.md, "8 in a row". */
#define SLOW_AFTER (FL_SLOW_UNTIL / 8)

/* Tells whether copies come directly to the device's memory from a second device's memory. */
static bool is_linked(const fl_sched *sched, const fl_worker *w)
{
    for (uint32_t d = 0; d < sched->count; ++d) {
        uint32_t place = sched->workers[d].device->place;
        if (place != 0 && place != w->device->place && fl_device_reaches(w->device, place)) {
            return true;
        }
    }
    return false;
}

void fl_slow_init(fl_sched *sched)
{
    double most = 0;
    bool has_links = false;
    for (uint32_t d = 0; d < sched->count; ++d) {
        const fl_worker *w = &sched->workers[d];
        if (fl_worker_computes(w)) {
            most = fmax(most, sched->scores[d]);
            has_links = has_links || is_linked(sched, w);
        }
    }
    for (uint32_t d = 0; d < sched->count && sched->rules.kind == FILCH_POLICY_STEAL; ++d) {
        fl_worker *w = &sched->workers[d];
        fl_slow *slow = &w->theft.slow;
        double score = sched->scores[d];
        slow->by_score = score > 0 && most > score ? most / score : 1;
        slow->alike = slow->by_score >= FL_SLOW_FROM ? 0 : FL_SLOW_UNTIL;
        /* Relaxed, twice: no other thread exists yet. */
        fl_store_relaxed(&slow->times, fl_double_bits(slow->by_score));
        if (fl_worker_computes(w) && sched->mails) {
            slow->is_far = has_links && !is_linked(sched, w);
            fl_store_relaxed(&slow->is_on, slow->is_far || slow->alike < FL_SLOW_UNTIL);
        }
    }
}

/* Whether the device, with a memory of its own, may take the task. */
static bool can_take(const fl_worker *w, const fl_task *task)
{
    return fl_worker_computes(w) && !fl_worker_is_unavailable(w) && fl_worker_can_run(w, task);
}

void fl_slow_learn(fl_worker *w, const fl_task *task)
{
    const fl_sched *sched = w->sched;
    fl_slow *slow = &w->theft.slow;
    double own, least = INFINITY;
    if (!sched->mails || sched->rules.kind != FILCH_POLICY_STEAL || !fl_worker_computes(w) ||
        (own = fl_cost_of_task(w, task)) <= 0) {
        return;
    }
    for (uint32_t d = 0; d < sched->count; ++d) {
        double ns =
            can_take(&sched->workers[d], task) ? fl_cost_of_task(&sched->workers[d], task) : 0;
        least = ns > 0 ? fmin(least, ns) : least;
    }
    if (!(own >= least)) {
        return; /* the worker's device is unavailable */
    }
    if (own < FL_SLOW_FROM * least) {
        slow->unlike = 0;
        slow->alike += slow->alike < FL_SLOW_UNTIL;
    } else if (slow->alike < FL_SLOW_UNTIL || ++slow->unlike == SLOW_AFTER) {
        slow->alike = slow->unlike = 0;
    }
    /* Relaxed, twice: estimates for other workers. */
    fl_store_relaxed(&slow->times, fl_double_bits(own / least));
    fl_store_relaxed(&slow->is_on, slow->is_far || slow->alike < FL_SLOW_UNTIL);
}
