/* SPDX-License-Identifier: Apache-2.0 */
#include "sched/decide/divisible.h"

#include <math.h>

#include "sched/account/rated.h"
#include "sched/decide/chunk.h"
#include "sched/decide/steal.h"
#include "sched/model/cost.h"
#include "sched/worker/device.h"
#include "sched/worker/item.h"
#include "sched/worker/others.h"
#include "sched/worker/tuning.h"

double fl_piece_dispatch_ns(const fl_worker *w)
{
    double ns = fl_worker_dispatch_ns(w);
    return fl_worker_computes(w) && !w->device->backend->is_virtual ? ns + FL_PIECE_LATENCY_NS : ns;
}

double fl_piece_rate(const fl_worker *w, const filch_codelet *codelet)
{
    double ns = fl_cost_rate(w->sched, codelet, w->index);
    return ns > 0 ? 1 / ns : 0;
}

bool fl_piece_may_run(const fl_worker *w, const filch_codelet *codelet, uint32_t place)
{
    return fl_piece_memory(w) == place && !fl_worker_is_unavailable(w) &&
           fl_codelet_runs_on(codelet, w->index);
}

/* --- The size of a piece --- */

/* Rate of every device able to take part, as of the last full computation. */
static double ask_rate(const fl_worker *w, fl_division *division)
{
    const fl_sched *sched = w->sched;
    uint32_t begun = fl_load_relaxed(&division->begun);
    double rate = fl_bits_double(fl_load_relaxed(&division->rate));
    if (rate > 0 && begun % fl_chunk_asked_each(sched) != 0) {
        return rate;
    }
    rate = 0;
    for (uint32_t d = 0; d < sched->count; ++d) {
        if (fl_piece_may_run(&sched->workers[d], fl_division_codelet(division),
                             fl_division_place(division))) {
            rate += fl_piece_rate(&sched->workers[d], fl_division_codelet(division));
        }
    }
    fl_store_relaxed(&division->rate, fl_double_bits(rate));
    return rate;
}

/* Rate of the members, without the worker. */
static double others_rate(const fl_worker *w, const fl_division *division)
{
    double rate = 0;
    for (uint32_t word = 0; word * 64 < w->sched->count; ++word) {
        for (uint64_t bits = fl_load_relaxed(&division->members[word]); bits != 0;
             bits &= bits - 1) {
            uint32_t d = word * 64 + (uint32_t)__builtin_ctzll(bits);
            if (d != w->index && d < w->sched->count) {
                rate += fl_piece_rate(&w->sched->workers[d], fl_division_codelet(division));
            }
        }
    }
    return rate;
}

fl_rest fl_piece_rest(const fl_worker *w, const fl_division *division)
{
    uint32_t lo, hi;
    double others = others_rate(w, division), own = fl_piece_rate(w, fl_division_codelet(division));
    fl_rest rest = {.grains = fl_range_peek(&division->range, &lo, &hi)};
    rest.work = fl_division_grain_work(division) * rest.grains;
    rest.ns_others = others > 0 ? rest.work / others : 0;
    rest.ns_grain = own > 0 ? fl_division_grain_work(division) / own : 0;
    return rest;
}

/* Least duration of a piece, ns. fixed: time of an item independent of work. alone: time of the
 * whole rest here. */
static double least_ns(const fl_worker *w, const fl_rest *rest, double alone, double fixed)
{
    double dispatches = rest->ns_others > 0 ? FL_CHUNK_FLOOR_DISPATCHES : FL_PIECE_DISPATCHES;
    /* Kernels too small to fill the device have a large fixed time, too: no reason to leave the
     * members without work. */
    return fl_piece_memory(w) == 0
               ? dispatches * (fl_piece_dispatch_ns(w) + fixed)
               : fmax(dispatches * fl_piece_dispatch_ns(w),
                      fmin(FL_CHUNK_FLOOR_FIXED * fixed, alone / FL_CHUNKS_OF_REST_DEAR));
}

uint32_t fl_piece_size(const fl_worker *w, fl_division *division, const fl_rest *rest)
{
    const fl_speed *speed = fl_codelet_speed(fl_division_codelet(division), w->index);
    double alone = fl_speed_get(speed) > 0 ? rest->ns_grain * rest->grains : 0;
    double pieces = fl_piece_memory(w) != 0 ? FL_CHUNKS_OF_REST_DEAR : FL_CHUNKS_OF_REST;
    const fl_chunk_ask ask = {
        .grains = rest->grains,
        .work = rest->work,
        .ns = alone,
        .wanted = alone > 0 ? rest->work / ask_rate(w, division) / pieces : 0,
        .least = least_ns(w, rest, alone, fl_speed_fixed(speed)),
        /* Time until the members and the worker have finished together. */
        .limit = rest->ns_others > 0 ? 1 / (1 / rest->ns_others + 1 / alone) : alone,
        .most = rest->grains,
        .probes = FL_PIECE_PROBES_OF_REST,
        .first = fl_cost_finish(0, 0, rest->ns_grain, fl_piece_dispatch_ns(w)),
        .elsewhere = rest->ns_others > 0 ? rest->ns_others : INFINITY,
    };
    return (uint32_t)fl_chunk_grains(speed, &ask);
}

bool fl_piece_pays(const fl_worker *w, const fl_rest *rest, uint32_t grains)
{
    double exec = grains * rest->ns_grain + fl_piece_dispatch_ns(w);
    return grains != 0 &&
           (!(rest->ns_others > 0) || fl_theft_pays(0, 0, exec, FL_THEFT_NS, rest->ns_others));
}

/* --- Whether to divide --- */

static bool has_our_memory(const fl_worker *w, const fl_worker *other, const fl_task *task)
{
    (void)task;
    return fl_piece_memory(other) == fl_piece_memory(w);
}

double fl_divide_ns(const fl_worker *w, const fl_task *task)
{
    double rate = fl_piece_rate(w, task->codelet);
    return rate > 0 ? (double)task->work / rate : 0;
}

bool fl_divide_is_due(const fl_worker *w, const fl_task *task)
{
    double ns = fl_divide_ns(w, task), work = (double)task->work;
    /* Scratch memory on a lane, and the private copy of a block, come with a launch, or are waited
     * for. A task holding operands needed elsewhere must not wait in the middle. */
    return fl_divides(w) && !task->commutes && !task->reduces && fl_task_items(task)->grains >= 2 &&
           work > 0 && isfinite(work) &&
           (ns == 0 || ns >= 2 * FL_PIECE_DISPATCHES * fl_piece_dispatch_ns(w)) &&
           (fl_piece_memory(w) == 0 || (fl_task_scratch(task) == 0 && !task->has_blocks)) &&
           fl_other_for(w->sched, w, task, FL_OTHERS_ONLINE, 0, has_our_memory) != NULL;
}
