/* SPDX-License-Identifier: Apache-2.0 */
#include "sched/account/sample.h"

#include "sched/account/ledger.h"

static uint64_t count_ready(const fl_worker *w)
{
    uint64_t ready = 0;
    for (uint32_t level = 0; level < FL_LEVELS; ++level) {
        ready += (uint64_t)fl_deque_size(&w->queues.levels[level]);
    }
    return ready;
}

fl_worker_sample fl_sample_worker(const fl_sched *sched, uint32_t worker, uint64_t now)
{
    const fl_worker *w = &sched->workers[worker];
    fl_reading reading;
    fl_ledger_read(&w->ledger, now, &reading);
    int64_t retired = fl_worker_retired(w);
    return (fl_worker_sample){
        .on_ns = reading.ns[FL_SPELL_ON],
        .idle_ns = reading.ns[FL_SPELL_STARVED] + reading.ns[FL_SPELL_HELD] +
                   reading.ns[FL_SPELL_UNSHARED],
        .off_ns = reading.ns[FL_SPELL_OFF],
        /* Relaxed: statistics. */
        .ended = fl_load_relaxed(&w->ledger.ended) + (uint64_t)(retired > 0 ? retired : 0),
        .stolen = fl_load_relaxed(&w->ledger.stolen),
        .ready = count_ready(w),
        .is_off = reading.kind == FL_SPELL_OFF,
    };
}
