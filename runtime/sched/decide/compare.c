/* SPDX-License-Identifier: Apache-2.0 */
/* Policies for comparison, as the host could write. The policies see what the host's own would see.
 * The earliest finish may also use the true speeds of simulated devices.
 *
 * Guided self-scheduling takes a part of the rest each time (C. Polychronopoulos, D. Kuck, IEEE
 * Trans. Computers C-36, 1987); the part is half of a device's even part. Earliest finish time is
 * the rule of list schedulers for choosing a processor (H. Topcuoglu, S. Hariri, M. Wu,
 * "Performance-effective and low-complexity task scheduling for heterogeneous computing", IEEE
 * Trans. Parallel and Distributed Systems 13, 2002), without insertion into gaps: work is placed
 * when ready. */
#include <math.h>

#include "base/atomic.h"
#include "sched/decide/policy.h"
#include "sched/worker/tuning.h"

static uint32_t place_for_anyone(const filch_policy_view *view, void *user)
{
    (void)view;
    (void)user;
    return FILCH_POLICY_ANYONE;
}

static uint32_t place_earliest(const filch_policy_view *view, void *user)
{
    (void)user;
    uint32_t best = FILCH_POLICY_AUTO;
    double soonest = INFINITY;
    for (uint32_t device = 0; device < filch_policy_devices(view); ++device) {
        if (!filch_policy_can_run(view, device)) {
            continue;
        }
        double finish = filch_policy_load(view, device) + filch_policy_transfer(view, device) +
                        filch_policy_seconds(view, device);
        if (finish < soonest * (1 - FL_TIE) || best == FILCH_POLICY_AUTO) {
            soonest = finish;
            best = device;
        }
    }
    return best;
}

static uint32_t able_count(const filch_policy_view *view)
{
    uint32_t able = 0;
    for (uint32_t device = 0; device < filch_policy_devices(view); ++device) {
        able += filch_policy_can_run(view, device);
    }
    return able != 0 ? able : 1;
}

/* Places tasks on the able devices in turn, equally often. */
static uint32_t place_in_turn(const filch_policy_view *view, void *user)
{
    _Atomic uint64_t *turn = user;
    uint32_t before = (uint32_t)(fl_add_relaxed(turn, 1) % able_count(view));
    for (uint32_t device = 0; device < filch_policy_devices(view); ++device) {
        if (filch_policy_can_run(view, device) && before-- == 0) {
            return device;
        }
    }
    return FILCH_POLICY_AUTO;
}

/* Returns a / b, rounded up. */
static uint32_t part(uint32_t a, uint64_t b)
{
    return (uint32_t)((a + b - 1) / b);
}

static uint32_t chunk_fixed(const filch_policy_view *view, void *user)
{
    filch_policy_item item = {.size = sizeof item};
    (void)user;
    (void)filch_policy_item_get(view, &item);
    return part(item.grains, (uint64_t)FL_POLICY_PIECES * able_count(view));
}

static uint32_t chunk_guided(const filch_policy_view *view, void *user)
{
    filch_policy_item item = {.size = sizeof item};
    (void)user;
    (void)filch_policy_item_get(view, &item);
    return part(item.rest, 2 * (uint64_t)able_count(view));
}

static uint32_t steal_from_nobody(const filch_policy_view *view, uint32_t *amount, void *user)
{
    (void)view;
    (void)amount;
    (void)user;
    return FILCH_POLICY_NOBODY;
}

filch_policy_desc fl_compare_desc(filch_policy kind, fl_rules *rules)
{
    filch_policy_desc desc = FILCH_POLICY_DESC_INIT;
    switch (kind) {
    case FILCH_POLICY_CENTRAL:
    case FILCH_POLICY_GUIDED:
        desc.place = place_for_anyone;
        desc.chunk = kind == FILCH_POLICY_CENTRAL ? chunk_fixed : chunk_guided;
        desc.batches = FILCH_BATCHES_COMMON;
        break;
    case FILCH_POLICY_ROUND_ROBIN:
        desc.place = place_in_turn;
        desc.user = &rules->turn;
        desc.chunk = chunk_fixed;
        desc.batches = FILCH_BATCHES_PLACED;
        break;
    case FILCH_POLICY_EARLIEST:
        desc.place = place_earliest;
        desc.chunk = chunk_fixed;
        desc.batches = FILCH_BATCHES_PLACED;
        break;
    default:
        return desc;
    }
    desc.steal = steal_from_nobody;
    return desc;
}
