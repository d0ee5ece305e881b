/* SPDX-License-Identifier: Apache-2.0 */
#include "sched/model/kind.h"

static fl_kind *kind_of(fl_worker *w, const filch_codelet *codelet)
{
    /* Uses the high bits of a product: addresses are multiples of the codelet's size. */
    return &w->theft.kinds[(uint32_t)((uintptr_t)codelet >> 4) * 2654435761u >> FL_KIND_SHIFT];
}

void fl_kind_turn(fl_worker *w, const filch_codelet *codelet)
{
    uint64_t mean =
        fl_load_relaxed(&w->queues.item_ns); /* relaxed: the worker is the only writer */
    if (codelet == NULL) {
        return; /* a gate takes no time */
    }
    if (w->theft.kind != NULL) {
        *kind_of(w, w->theft.kind) = (fl_kind){w->theft.kind, mean};
    }
    const fl_kind *kind = kind_of(w, codelet);
    w->theft.kind = codelet;
    if (kind->codelet == codelet && kind->mean != mean) {
        fl_store_relaxed(&w->queues.item_ns, kind->mean);
    }
}
