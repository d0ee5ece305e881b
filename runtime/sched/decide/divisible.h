/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a worker divides a task, and the size of the pieces.
 *
 * A piece takes a fraction of the time needed for the rest by every device able to take part
 * (factoring; Flynn Hummel, Schonberg, Flynn, Comm. ACM 35, 1992). A piece also lasts long enough
 * for the dispatch to cost little. A worker whose next piece would end after the members' end of
 * the whole rest leaves the rest to the members, as thieves do. */
#ifndef FL_SCHED_DECIDE_DIVISIBLE_H
#define FL_SCHED_DECIDE_DIVISIBLE_H

#include "sched/worker/sched.h"

/* Tells whether tasks are divided: only under the default policy. */
static inline bool fl_divides(const fl_worker *w)
{
    return w->sched->policy == FILCH_POLICY_STEAL && w->sched->count > 1;
}

/* Memory node where the device runs pieces: 0, the host's memory, for host devices and for devices
 * sharing memory; otherwise the device's own. */
static inline uint32_t fl_piece_memory(const fl_worker *w)
{
    return w->offload == NULL || w->device->is_synchronous ? 0 : w->device->place;
}

/* Relaxed loads, here and below: estimates, no order needed. For a worker with a part in the
 * division the place is constant. */
static inline uint32_t fl_division_place(const fl_division *division)
{
    return fl_load_relaxed(&division->place);
}

static inline const filch_codelet *fl_division_codelet(const fl_division *division)
{
    return (const filch_codelet *)fl_load_relaxed(&division->codelet);
}

static inline double fl_division_grain_work(const fl_division *division)
{
    return fl_bits_double(fl_load_relaxed(&division->grain_work));
}

/* Snapshot of the work left. */
typedef struct fl_rest {
    uint32_t grains;
    double work;
    /* Predicted time for the members without us to finish the rest, ns; 0: unknown. */
    double ns_others;
    double ns_grain; /* time of a grain here, ns; 0: unknown */
} fl_rest;

/* Time of a piece's dispatch, ns. */
double fl_piece_dispatch_ns(const fl_worker *worker);
/* Rate of the device, units of work per ns; 0: unknown. */
double fl_piece_rate(const fl_worker *worker, const filch_codelet *codelet);
/* Tells whether the device can run pieces in the memory node `place`, of a codelet kept by the
 * runtime. */
bool fl_piece_may_run(const fl_worker *worker, const filch_codelet *codelet, uint32_t place);
fl_rest fl_piece_rest(const fl_worker *worker, const fl_division *division);
/* Number of grains for the next piece here; 0: the members would finish the whole rest before. */
uint32_t fl_piece_size(const fl_worker *worker, fl_division *division, const fl_rest *rest);
/* Whether a worker joins the members for a piece: the piece, with the theft, ends before the
 * members would finish the whole rest. */
bool fl_piece_pays(const fl_worker *worker, const fl_rest *rest, uint32_t grains);
/* Time of the whole task on the worker's device, ns; 0: unknown. */
double fl_divide_ns(const fl_worker *worker, const fl_task *task);
/* Whether the worker would divide a task with items: one of its own, or of a closed graph that
 * runs. */
bool fl_divide_is_due(const fl_worker *worker, const fl_task *task);

#endif
