/* SPDX-License-Identifier: Apache-2.0 */
/* Queue depth of an asynchronous device: as few items in flight as keep the device busy, so that
 * other devices find the rest. */
#include "sched/decide/depth.h"

#include <math.h>

#include "sched/worker/device.h"
#include "sched/worker/sched.h"
#include "sched/worker/tuning.h"

/* Largest part of one item in the sum of long items, ns: the sum cannot overflow. */
#define MOST_PART_NS 1e15

/* Returns an item's part of w->pipeline.long_ns, ns; 0 for a short item, as many short items may be
 * in flight. An item of unknown time may be long. */
uint64_t fl_depth_part(const fl_in_flight *flight)
{
    double ns = flight->expected > 0 ? flight->expected : FL_DEPTH_NS;
    return ns > FL_SHORT_NS ? (uint64_t)fmin(ns, MOST_PART_NS) : 0;
}

bool fl_depth_is_launching(const fl_worker *w)
{
    return w->device->held_until != 0 && w->device->held_until > fl_worker_clock(w);
}

/* Returns the number of continuations in flight beyond FL_DEPTH_OF_LANE on a lane, or beyond its
 * part of a smaller window. */
static uint32_t beyond(const fl_worker *w, uint32_t window)
{
    uint32_t lanes = w->device->lanes, most = FL_DEPTH_OF_LANE * lanes, count = 0;
    uint32_t part = lanes != 0 ? (window < most ? window : most) / lanes : 0;
    part = part != 0 ? part : 1;
    for (uint32_t lane = 0; lane < lanes; ++lane) {
        uint32_t load = w->offload->lane_load[lane], over = load > part ? load - part : 0;
        uint32_t continued = w->offload->lane_continued[lane];
        count += over < continued ? over : continued;
    }
    return count;
}

/* Tells whether one more item may be put in flight. Items in write-back no longer keep the device
 * busy, but the operands stay in the device's memory until the items complete. A task being divided
 * has one piece in flight: other workers take the next pieces, and no item comes between. */
bool fl_depth_finds_room(const fl_worker *w, uint32_t window)
{
    uint32_t most = w->pipeline.flight_count;
    /* The queue depth may date from before memory became short: twice as much may exceed the flight
     * slots. */
    if (w->offload != NULL && w->offload->pressed != 0 && most / FL_DEPTH_WRITE_BACK > window) {
        most = FL_DEPTH_WRITE_BACK * window;
    }
    uint32_t count = w->pipeline.in_flight - w->pipeline.writing_back_count;
    if (w->offload != NULL && w->pipeline.long_ns != 0) {
        count -= beyond(w, window);
    }
    /* The depth follows from past items: after a job of short items, a device would take as many
     * long items from other devices at the beginning of the next job. */
    bool is_full = w->sched->mails && fl_worker_computes(w) &&
                   w->pipeline.long_ns > (uint64_t)FL_DEPTH_NS &&
                   count >= FL_DEPTH_OF_LANE * w->device->lanes;
    return count < window && w->pipeline.in_flight < most && !is_full && !w->ready.is_dividing &&
           FL_LIKELY(!fl_depth_is_launching(w));
}

bool fl_depth_may_continue(const fl_worker *w, uint32_t lane)
{
    return w->offload->lane_load[lane] < 2 * FL_DEPTH_OF_LANE && w->offload->pressed == 0 &&
           w->pipeline.in_flight < w->pipeline.flight_count && !w->ready.is_dividing &&
           FL_LIKELY(!fl_depth_is_launching(w));
}

/* Tells whether a second device runs items clearly faster than the worker's device. */
static bool is_outrun(const fl_worker *w, double ns)
{
    for (uint32_t d = 0; d < w->sched->count; ++d) {
        double other = fl_worker_mean_ns(&w->sched->workers[d]);
        if (other > 0 && other * FL_FASTER < ns) {
            return true;
        }
    }
    return false;
}

/* Returns the least queue depth: an item on every lane, and a second item on every lane, starting
 * without the host. An item as long as FL_DEPTH_NS waits behind no other while a second device is
 * hungry, or where a second device is clearly faster: that device could run the item. A device with
 * a single lane is an exception. */
static uint32_t least_window(const fl_worker *w, double ns)
{
    uint32_t lanes = w->device->lanes;
    /* Relaxed: a guess. */
    if (ns > FL_DEPTH_NS && (fl_load_relaxed(&w->sched->hungry) != 0 || is_outrun(w, ns))) {
        return lanes > FL_DEPTH_OF_LANE ? lanes : FL_DEPTH_OF_LANE;
    }
    return FL_DEPTH_OF_LANE * lanes;
}

uint32_t fl_depth_of(const fl_worker *w)
{
    uint32_t window = w->device->window;
    if (fl_worker_computes(w)) {
        double ns = fl_worker_mean_ns(w);
        double tiles = ns > FL_SHORT_NS ? FL_DEPTH_NS / ns + 1
                       : ns > 0         ? FL_IN_FLIGHT_COMPUTING
                                        : 0;
        uint32_t least = least_window(w, ns);
        window = (uint32_t)tiles;
        window = window > least ? window : least;
    }
    if (w->offload != NULL && w->offload->pressed != 0) {
        /* Enough to compute, and to bring the operands of the next items. */
        uint32_t most = w->device->lanes + FL_DEPTH_PRESSED;
        window = window < most ? window : most;
    }
    window = window < w->pipeline.flight_count ? window : w->pipeline.flight_count;
    return window != 0 ? window : 1;
}
