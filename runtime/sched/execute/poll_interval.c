/* SPDX-License-Identifier: Apache-2.0 */
/* Polling interval of a computing device: long while no item can be over, short when an item should
 * be over. */
#include "sched/execute/poll_interval.h"

#include <math.h>

#include "sched/model/speed.h"
#include "sched/worker/device.h"
#include "sched/worker/item.h"
#include "sched/worker/sched.h"
#include "sched/worker/tuning.h"

/* Returns the computing item in flight with the shortest predicted time, an unpredicted item first.
 * Null: no item computes. */
static fl_in_flight *shortest_flight(const fl_worker *w)
{
    fl_in_flight *found = NULL;
    uint32_t left = w->pipeline.computing;
    for (uint32_t i = 0; i < w->pipeline.flight_count && left != 0; ++i) {
        fl_in_flight *flight = &w->pipeline.flights[i];
        if (flight->item.state == FL_ITEM_LAUNCHED) {
            --left;
            found = found == NULL || flight->expected < found->expected ? flight : found;
        }
    }
    return found;
}

static uint64_t later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* Polling interval while every item in flight is in write-back. Each poll also looks for work to
 * steal. */
static uint64_t look_homing(const fl_worker *w, uint64_t t)
{
    uint64_t begun = w->pipeline.last_done;
    if (w->pipeline.writing_back_count != 0) {
        begun = later(begun, w->pipeline.flights[w->pipeline.writing_back_last].item.start);
    }
    uint64_t nap = t > begun ? (t - begun) / FL_POLL_OF_ITEM : 0;
    nap = nap > FL_POLL_NS ? nap : FL_POLL_NS;
    return nap < FL_POLL_MOST_NS ? nap : FL_POLL_MOST_NS;
}

/* Polls whether the item's data has arrived, as far as copies of the device bring the data. */
static bool has_arrived(const fl_worker *w, fl_in_flight *flight, uint64_t t)
{
    if (flight->arriving != 0 &&
        w->device->backend->lane->reached(w->device, flight->arriving, NULL) != FILCH_NOT_READY) {
        /* A failed copy is reported with the item. */
        flight->arriving = 0;
        flight->arrived = t;
    }
    return flight->arriving == 0;
}

/* Time of the next poll of computing items: just before the earliest predicted end. After a missed
 * prediction, the interval is a fraction of the time since the end predicted. Without a prediction,
 * the interval is a fraction of the time since the launch. Time spent waiting for copies is not
 * counted. */
uint64_t fl_poll_interval_next(const fl_worker *w)
{
    fl_in_flight *flight = shortest_flight(w);
    uint64_t t = fl_worker_clock(w), begun = w->pipeline.last_done, end, nap;
    if (flight == NULL) {
        return t + look_homing(w, t);
    }
    begun = later(flight->launched, begun);
    if (!has_arrived(w, flight, t)) {
        nap = later((t - begun) / FL_POLL_OF_LATE, FL_POLL_NS);
        return t + (nap < FL_POLL_BLIND_NS ? nap : FL_POLL_BLIND_NS);
    }
    begun = later(begun, flight->arrived);
    uint64_t least = (uint64_t)flight->expected / FL_POLL_OF_ITEM;
    /* Further items behind the first remove the hurry: one poll at the end is enough. */
    end = w->pipeline.computing > w->device->lanes
              ? begun + (uint64_t)flight->expected + least
              : begun + (uint64_t)fmax(flight->expected - FL_POLL_EARLY_NS, 0);
    if (end > t) {
        const fl_speed *speed = fl_codelet_speed(fl_item_codelet(&flight->item), w->index);
        bool is_known = flight->item.work <= FL_SPEED_APART * fl_speed_most_work(speed);
        uint64_t most = (t - begun) / FL_POLL_OF_WAIT;
        uint64_t always = is_known ? FL_POLL_MOST_NS : FL_POLL_BLIND_NS;
        most = most > always ? most : always;
        nap = end - t < most ? end - t : most;
    } else {
        nap = (t - end) / (flight->expected > 0 ? FL_POLL_OF_LATE : FL_POLL_OF_WAIT);
        /* A nap costs the host as much time as an item of a few microseconds. */
        nap = nap > least ? nap : least;
        nap = nap > FL_POLL_NS ? nap : FL_POLL_NS;
        nap = nap < FL_POLL_MOST_NS ? nap : FL_POLL_MOST_NS;
    }
    return t + nap;
}
