/* SPDX-License-Identifier: Apache-2.0 */
#include "memory/plan.h"

/* Bytes a second of ways that nobody measured. */
#define HOST_RATE 25e9
#define PEER_RATE 100e9

static double seconds_of(uint64_t bytes, uint64_t queued, double rate, double otherwise)
{
    return (double)(bytes + queued) / (rate > 0 ? rate : otherwise);
}

fl_plan fl_plan_copy(const fl_origin *sources, uint32_t count, fl_receiver receiver, uint64_t bytes)
{
    fl_plan best = {.source = FL_PLAN_NONE};
    /* Copies to one receiver are on one lane, whatever the source. */
    double in = seconds_of(bytes, receiver.host_queued, receiver.host_rate, HOST_RATE);
    for (uint32_t i = 0; i < count; ++i) {
        const fl_origin *source = &sources[i];
        double seconds;
        bool is_staged = source->place != 0 && !source->is_straight;
        if (source->place == 0) {
            seconds = in;
        } else if (is_staged) { /* one after the other: the host's copy is of use later, too */
            seconds = seconds_of(bytes, source->queued, source->rate, HOST_RATE) + in;
        } else {
            double busy = seconds_of(0, receiver.host_queued, receiver.host_rate, HOST_RATE);
            double sent = seconds_of(bytes, source->queued, source->rate, PEER_RATE);
            double alone = seconds_of(bytes, 0, source->rate, PEER_RATE);
            seconds = busy + alone > sent ? busy + alone : sent;
        }
        if (best.source == FL_PLAN_NONE || seconds < best.seconds) {
            best = (fl_plan){i, is_staged, seconds};
        }
    }
    return best;
}
