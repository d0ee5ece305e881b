/* SPDX-License-Identifier: Apache-2.0 */
/* The policies for comparison see what every policy of a host sees.
 *
 * Guided self-scheduling takes a part of the rest each time (C. Polychronopoulos, D. Kuck, IEEE
 * Trans. Computers C-36, 1987); the part is half of a device's even part. Earliest finish time is
 * the rule of list schedulers for choosing a processor (H. Topcuoglu, S. Hariri, M. Wu,
 * "Performance-effective and low-complexity task scheduling for heterogeneous computing", IEEE
 * Trans. Parallel and Distributed Systems 13, 2002), without insertion into gaps: work is placed
 * when ready. */
#include "measure/policies.h"

#include "filch/device.h"

#include <math.h>
#include <string.h>

/* Pieces of a device's even part of a batch. */
#define PIECES 32
/* Fraction by which predictions differ from rounding: then the lower index wins. */
#define TIE 1e-12

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
        if (finish < soonest * (1 - TIE) || best == FILCH_POLICY_AUTO) {
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
    uint64_t *turn = user;
    uint32_t before = (uint32_t)(__atomic_fetch_add(turn, 1, __ATOMIC_RELAXED) % able_count(view));
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
    return part(item.grains, (uint64_t)PIECES * able_count(view));
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

static double true_speed(const filch_device_info *info, void *user)
{
    (void)user;
    return info->true_speed > 0 ? info->true_speed : info->score;
}

static void describe(bench_policy policy, bench_policy_room *room)
{
    filch_policy_desc *desc = &room->desc;
    switch (policy) {
    case BENCH_POLICY_CENTRAL:
    case BENCH_POLICY_GUIDED:
        desc->place = place_for_anyone;
        desc->chunk = policy == BENCH_POLICY_CENTRAL ? chunk_fixed : chunk_guided;
        desc->batches = FILCH_POLICY_BATCHES_COMMON;
        break;
    case BENCH_POLICY_ROUND_ROBIN:
        desc->place = place_in_turn;
        desc->user = &room->turn;
        desc->chunk = chunk_fixed;
        desc->batches = FILCH_POLICY_BATCHES_PLACED;
        break;
    default:
        desc->place = place_earliest;
        desc->chunk = chunk_fixed;
        desc->batches = FILCH_POLICY_BATCHES_PLACED;
        desc->flags = FILCH_POLICY_TRUE_TIMES;
        break;
    }
    desc->name = bench_policy_name(policy);
    desc->steal = steal_from_nobody;
}

static const char *const names[BENCH_POLICIES] = {
    [BENCH_POLICY_DEFAULT] = "",
    [BENCH_POLICY_STEAL] = "steal",
    [BENCH_POLICY_STATIC] = "static",
    [BENCH_POLICY_PERFECT] = "perfect",
    [BENCH_POLICY_CENTRAL] = "central",
    [BENCH_POLICY_GUIDED] = "guided",
    [BENCH_POLICY_ROUND_ROBIN] = "round-robin",
    [BENCH_POLICY_EARLIEST] = "earliest",
};

const char *bench_policy_name(bench_policy policy)
{
    return names[policy];
}

bench_policy bench_policy_find(const char *name)
{
    for (int k = BENCH_POLICY_STEAL; k < BENCH_POLICIES; ++k) {
        if (strcmp(name, names[k]) == 0) {
            return (bench_policy)k;
        }
    }
    return BENCH_POLICIES;
}

void bench_policy_choose(bench_policy policy, bench_policy_room *room, filch_runtime_desc *config)
{
    *room = (bench_policy_room){.desc = FILCH_POLICY_DESC_INIT};
    switch (policy) {
    case BENCH_POLICY_DEFAULT:
        config->policy = FILCH_POLICY_DEFAULT;
        break;
    case BENCH_POLICY_STEAL:
        config->policy = FILCH_POLICY_STEAL;
        break;
    case BENCH_POLICY_STATIC:
        config->policy = FILCH_POLICY_STATIC;
        break;
    case BENCH_POLICY_PERFECT:
        config->policy = FILCH_POLICY_STATIC;
        config->rate = config->rate != NULL ? config->rate : true_speed;
        break;
    default:
        describe(policy, room);
        config->policy = FILCH_POLICY_CUSTOM;
        config->custom_policy = &room->desc;
        break;
    }
}
