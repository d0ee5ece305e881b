/* SPDX-License-Identifier: Apache-2.0 */
#include "sched/worker/others.h"

fl_worker *fl_other_for(const fl_sched *sched, const fl_worker *w, const fl_task *task,
                        fl_others state, uint64_t first, fl_may_take_fn may)
{
    for (uint32_t i = 0; i < sched->count; ++i) {
        fl_worker *other = &sched->workers[(first + i) % sched->count];
        if (fl_other_can(w, other, task, state) && (may == NULL || may(w, other, task))) {
            return other;
        }
    }
    return NULL;
}

bool fl_others_can_hint(const fl_worker *w, uint64_t hint, fl_others state)
{
    const fl_sched *sched = w->sched;
    for (uint32_t d = 0; d < sched->count; ++d) {
        const fl_worker *other = &sched->workers[d];
        if (fl_other_is(w, other, state) && (!sched->mails || fl_hint_is_for(other, hint))) {
            return true;
        }
    }
    return false;
}

bool fl_others_can_batch(const fl_worker *w, const filch_job *job, fl_others state)
{
    const fl_sched *sched = w->sched;
    for (uint32_t d = 0; d < sched->count && sched->rules.kind != FILCH_POLICY_STATIC; ++d) {
        if (fl_other_is(w, &sched->workers[d], state) &&
            fl_devices_have(fl_batch_devices(job->batch), d) &&
            fl_load_relaxed(&fl_job_share(job, d)->is_out) == 0) {
            return true;
        }
    }
    return false;
}
