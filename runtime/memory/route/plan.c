/* SPDX-License-Identifier: Apache-2.0 */
#include "memory/route/plan.h"

#include "memory/route/spread.h"

/* Minimum advantage of a relay over a direct route: larger than the spread of measurements of a
 * link. */
#define NOISE 1.25
/* Handicap of the host as a source: every device shares the host's memory, and bytes queued to
 * leave a peer mostly have not yet arrived at the peer. */
#define SPARED 4.0
/* Minimum bytes of a staged piece: smaller copies from and to pageable memory overlap with no
 * work. */
#define LEAST_STAGED 65536u

static double rate_or(double rate, double otherwise)
{
    return rate > 0 ? rate : otherwise;
}

/* A copy of a route with a stop. */
typedef struct hop {
    double wait, whole; /* seconds until the copy's start, and seconds of the copy */
} hop;

static double larger(double a, double b)
{
    return a > b ? a : b;
}

static double smaller(double a, double b)
{
    return a < b ? a : b;
}

/* Returns the end of the second copy. The last piece continues after its arrival, and no piece
 * continues before the second lane is free. */
static double join(hop first, hop second, uint32_t pieces)
{
    double begun = larger(second.wait, first.wait + first.whole / pieces);
    return larger(first.wait + first.whole + second.whole / pieces, begun + second.whole);
}

static uint32_t pieces_of(uint64_t bytes, double rate)
{
    const fl_spread two = {.depth = 2, .fanout = 1};
    return fl_spread_pieces(&two, (uint64_t)((double)bytes * (FL_SPREAD_RATE / rate)));
}

static fl_plan plan_staged(const fl_origin *source, fl_receiver receiver, uint64_t bytes)
{
    double in_rate = rate_or(source->rate, FL_HOST_RATE);
    double out_rate = rate_or(receiver.host_rate, FL_HOST_RATE);
    uint32_t pieces = pieces_of(bytes, smaller(in_rate, out_rate));
    uint64_t most = bytes / LEAST_STAGED > 1 ? bytes / LEAST_STAGED : 1;
    pieces = pieces < most ? pieces : (uint32_t)most;
    const hop in = {(double)source->queued / in_rate, (double)bytes / in_rate};
    const hop out = {(double)receiver.host_queued / out_rate, (double)bytes / out_rate};
    return (fl_plan){.is_staged = true, .pieces = pieces, .seconds = join(in, out, pieces)};
}

/* Seconds of queued work on the receiver's copy lane, for every source. */
static double busy_of(fl_receiver receiver)
{
    return (double)receiver.host_queued / rate_or(receiver.host_rate, FL_HOST_RATE);
}

static fl_plan plan_straight(const fl_origin *source, fl_receiver receiver, uint64_t bytes)
{
    bool is_host = source->place == 0;
    double rate =
        is_host ? rate_or(receiver.host_rate, FL_HOST_RATE) : rate_or(source->rate, FL_PEER_RATE);
    double queued = is_host ? 0 : (double)source->queued / rate;
    double alone = (double)bytes / rate;
    return (fl_plan){.pieces = 1, .seconds = larger(busy_of(receiver), queued) + alone};
}

static fl_plan plan_over(const fl_origin *source, const fl_relay *relay, fl_receiver receiver,
                         uint64_t bytes)
{
    uint32_t pieces = pieces_of(bytes, smaller(relay->in_rate, relay->out_rate));
    uint64_t queued = source->queued > relay->in_queued ? source->queued : relay->in_queued;
    const hop in = {(double)queued / relay->in_rate, (double)bytes / relay->in_rate};
    const hop out = {larger(busy_of(receiver), (double)relay->out_queued / relay->out_rate),
                     (double)bytes / relay->out_rate};
    return (fl_plan){.relay = relay->place, .pieces = pieces, .seconds = join(in, out, pieces)};
}

/* Returns the best plan from a single source. */
static fl_plan plan_from(const fl_origin *source, fl_receiver receiver, uint64_t bytes)
{
    bool is_one_copy = source->place == 0 || source->is_straight;
    fl_plan best =
        is_one_copy ? plan_straight(source, receiver, bytes) : plan_staged(source, receiver, bytes);
    double least = is_one_copy ? best.seconds / NOISE : best.seconds;
    for (uint32_t i = 0; i < source->relay_count; ++i) {
        fl_plan over = plan_over(source, &source->relays[i], receiver, bytes);
        if (over.seconds < least) {
            best = over;
            least = over.seconds;
        }
    }
    return best;
}

/* Cost factor of a source: larger for the host if a second source has a route as fast. */
static double burden(const fl_origin *sources, uint32_t count, uint32_t which, fl_receiver receiver)
{
    double rate = rate_or(receiver.host_rate, FL_HOST_RATE);
    bool is_spared = false;
    for (uint32_t i = 0; i < count && sources[which].place == 0; ++i) {
        is_spared = is_spared || (sources[i].place != 0 && sources[i].is_straight &&
                                  rate_or(sources[i].rate, FL_PEER_RATE) >= rate);
    }
    return is_spared ? SPARED : 1;
}

fl_plan fl_plan_copy(const fl_origin *sources, uint32_t count, fl_receiver receiver, uint64_t bytes)
{
    fl_plan best = {.source = FL_PLAN_NONE};
    double least = 0;
    for (uint32_t i = 0; i < count; ++i) {
        fl_plan plan = plan_from(&sources[i], receiver, bytes);
        double cost = plan.seconds * burden(sources, count, i, receiver);
        plan.source = i;
        if (best.source == FL_PLAN_NONE || cost < least) {
            best = plan;
            least = cost;
        }
    }
    return best;
}
