/* SPDX-License-Identifier: Apache-2.0 */
/* The shortest time T is the value of a linear program. The variables are fractions x[k][d] of
 * every kind k, with sum 1 for every k. The load of every device, the sum of x[k][d] * ns[k][d], is
 * at most T. The dual program puts a price p[d] on the time of every device. The prices sum to 1,
 * and the value is the sum over the kinds of the least p[d] * ns[k][d]. Every choice of prices
 * gives a lower bound of T (weak duality), so the search may end before the optimum. The search
 * raises the price of devices crowded by cheap work: the multiplicative weights of S. A. Plotkin,
 * D. B. Shmoys, E. Tardos, "Fast approximation algorithms for fractional packing and covering
 * problems", Math. Oper. Res. 20, 1995. */
#include "sched/account/bound.h"

#include <math.h>
#include <stdbool.h>

#include "backend/backend.h"
#include "sched/worker/tuning.h"

typedef struct fl_market {
    fl_bound_fn ns;
    const void *user;
    uint32_t kinds, devices;
    double price[FL_DEVICE_LIMIT];
    double load[FL_DEVICE_LIMIT];
} fl_market;

static double cost_of(const fl_market *market, uint32_t kind, uint32_t device)
{
    double price = market->price[device];
    return price > 0 ? price * market->ns(market->user, kind, device) : INFINITY;
}

static double least_cost(const fl_market *market, uint32_t kind)
{
    double least = INFINITY;
    for (uint32_t d = 0; d < market->devices; ++d) {
        least = fmin(least, cost_of(market, kind, d));
    }
    return least;
}

/* Sets the initial prices. Devices whose times differ by a constant factor earn equal pay for equal
 * work. */
static void begin(fl_market *market)
{
    for (uint32_t d = 0; d < market->devices; ++d) {
        double sum = 0;
        for (uint32_t k = 0; k < market->kinds; ++k) {
            double ns = market->ns(market->user, k, d);
            sum += isfinite(ns) ? ns : 0;
        }
        market->price[d] = sum > 0 ? 1 / sum : 0;
    }
}

static double value(const fl_market *market)
{
    double sum = 0, prices = 0;
    for (uint32_t d = 0; d < market->devices; ++d) {
        prices += market->price[d];
    }
    for (uint32_t k = 0; k < market->kinds; ++k) {
        double least = least_cost(market, k);
        sum += isfinite(least) ? least : 0;
    }
    return prices > 0 ? sum / prices : 0;
}

static double share_of(const fl_market *market, uint32_t kind, uint32_t device, double least)
{
    double share = least / cost_of(market, kind, device); /* 0: unable to do the kind */
    for (int i = 0; i < FL_BOUND_SHARPNESS; ++i) {
        share *= share;
    }
    return share;
}

/* Computes the loads resulting from the prices. */
static void spread(fl_market *market)
{
    for (uint32_t d = 0; d < market->devices; ++d) {
        market->load[d] = 0;
    }
    for (uint32_t k = 0; k < market->kinds; ++k) {
        double least = least_cost(market, k), sum = 0;
        for (uint32_t d = 0; isfinite(least) && d < market->devices; ++d) {
            sum += share_of(market, k, d, least);
        }
        for (uint32_t d = 0; sum > 0 && d < market->devices; ++d) {
            double share = share_of(market, k, d, least);
            market->load[d] += share > 0 ? share / sum * market->ns(market->user, k, d) : 0;
        }
    }
}

static void move(fl_market *market, double power)
{
    double sum = 0;
    uint32_t count = 0;
    for (uint32_t d = 0; d < market->devices; ++d) {
        sum += market->load[d];
        count += market->price[d] > 0;
    }
    double mean = sum / count;
    for (uint32_t d = 0; d < market->devices; ++d) {
        market->price[d] *= pow((market->load[d] + mean / 16) / mean, power);
    }
}

double fl_bound_area(fl_bound_fn ns, const void *user, uint32_t kinds, uint32_t devices)
{
    fl_market market;
    market.ns = ns;
    market.user = user;
    market.kinds = kinds;
    market.devices = devices;
    begin(&market);
    double best = value(&market);
    if (kinds < 2 || devices < 2 || !(best > 0)) {
        return best; /* exact, or nothing to search for */
    }
    uint32_t victim_order = FL_BOUND_LOOKS / kinds / devices < FL_BOUND_ROUNDS
                                ? FL_BOUND_LOOKS / kinds / devices
                                : FL_BOUND_ROUNDS;
    for (uint32_t i = 0; i < victim_order; ++i) {
        spread(&market);
        move(&market, FL_BOUND_STEP / (1 + 4.0 * i / victim_order));
        best = fmax(best, value(&market));
    }
    return best;
}
