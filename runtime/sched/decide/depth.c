/* SPDX-License-Identifier: Apache-2.0 */
/* How many tiles are in flight on a device that runs them by itself: as few as keep it busy, so
 * that others find the rest. */
#include "sched/decide/depth.h"

#include <math.h>

#include "sched/worker/sched.h"

/* Work in flight that keeps a GPU busy while its worker looks elsewhere. */
#define WINDOW_NS 100000.0
#define WINDOW_LEAST 2u
/* No tile counts for more there; the sum is far from its type's end. */
#define MOST_PART_NS 1e15
/* Where memory is short, tiles in flight beyond one a lane: what they use stays there. */
#define PRESSED_AHEAD 2u
/* Times as many tiles as may compute may be in flight there, with those whose results go home. */
#define PRESSED_HOMING 2u

static bool computes(const fl_worker *w)
{
    return w->device->backend->mark != NULL;
}

/* Where short ones may be many. One of which nothing is known may be long. */
uint64_t fl_depth_part(const fl_in_flight *flight)
{
    double ns = flight->expected > 0 ? flight->expected : WINDOW_NS;
    return ns > FL_SHORT_NS ? (uint64_t)fmin(ns, MOST_PART_NS) : 0;
}

bool fl_depth_is_held(const fl_worker *w)
{
    return w->device->held_until != 0 &&
           w->device->held_until > fl_clock_now(&w->sched->core->clock);
}

/* Tiles whose results are on the way home keep the device busy no more; but what they use stays in
 * its memory until they land. Of a task that is being divided, one piece is in flight: others take
 * the next, and nothing comes between. */
bool fl_depth_has_room(const fl_worker *w, uint32_t window)
{
    uint32_t most =
        w->offload != NULL && w->offload->pressed != 0 ? PRESSED_HOMING * window : w->flight_count;
    uint32_t count = w->in_flight - w->homing_count;
    /* The window is by what tiles took before: after a job of short ones, a device would take from
     * others as many long ones at the next job's beginning. */
    bool is_full = w->sched->mails && computes(w) && w->long_ns > (uint64_t)WINDOW_NS &&
                   count >= WINDOW_LEAST * w->device->lanes;
    return count < window && w->in_flight < most && !is_full && !w->is_dividing &&
           FL_LIKELY(!fl_depth_is_held(w));
}

/* So many at least: one on each lane, and one behind it that needs no look of the host's. While
 * another device has nothing to do, none waits behind another here that is as long as a window,
 * but where there is one lane: it could run there. */
static uint32_t least_window(const fl_worker *w, double ns)
{
    uint32_t lanes = w->device->lanes;
    /* Relaxed: a guess. */
    if (ns > WINDOW_NS && fl_load_relaxed(&w->sched->hungry) != 0) {
        return lanes > WINDOW_LEAST ? lanes : WINDOW_LEAST;
    }
    return WINDOW_LEAST * lanes;
}

uint32_t fl_depth_of(const fl_worker *w)
{
    uint32_t window = w->device->window;
    if (computes(w)) {
        double ns = fl_bits_double(fl_load_relaxed(&w->item_ns));
        double tiles = ns > FL_SHORT_NS ? WINDOW_NS / ns + 1 : ns > 0 ? FL_IN_FLIGHT_COMPUTING : 0;
        uint32_t least = least_window(w, ns);
        window = (uint32_t)tiles;
        window = window > least ? window : least;
    }
    if (w->offload != NULL && w->offload->pressed != 0) {
        /* Enough to compute, and to bring what comes next. */
        uint32_t most = w->device->lanes + PRESSED_AHEAD;
        window = window < most ? window : most;
    }
    window = window < w->flight_count ? window : w->flight_count;
    return window != 0 ? window : 1;
}
