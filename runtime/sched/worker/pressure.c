/* SPDX-License-Identifier: Apache-2.0 */
#include "sched/worker/pressure.h"

#include "sched/worker/wake.h"

void fl_pressure_turn(fl_sched *sched)
{
    /* Release: the counts, or the state, that a wait looks at. */
    fl_add_release(&sched->pressure.turn, 1);
    fl_sched_tell(sched);
    /* Behind the fence of the call above. */
    if (fl_load_relaxed(&sched->pressure.nested) != 0) {
        fl_sched_wake(sched, sched->count);
    }
}

void fl_pressure_count(fl_sched *sched, filch_graph *graph)
{
    _Atomic uint64_t *pressed = &fl_part_of_graph(graph)->pressed;
    /* Relaxed: the swap confirms the value. */
    uint64_t left = fl_load_relaxed(pressed);
    while (left != 0 && !fl_cas_seq_cst(pressed, &left, left - 1)) {
    }
    if (left == 1) {
        fl_pressure_turn(sched);
    }
}

void fl_pressure_ease(fl_sched *sched)
{
    if (fl_exchange_seq_cst(&sched->pressure.eased, 0) != 0) {
        fl_pressure_turn(sched);
    }
}
