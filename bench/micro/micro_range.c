/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "base/thread.h"
#include "micro/micro.h"
#include "sync/range.h"

enum { GRAINS = 4000000, GRAINS_SHARED = 1000000 };

typedef bool (*range_op)(fl_range *range, uint32_t want, uint32_t *lo, uint32_t *hi);

typedef struct cutter {
    fl_range *range;
    _Atomic int state; /* 0 starting, 1 told to cut */
    uint64_t grains;
} cutter;

/* One grain an operation until the range is empty. */
static double round_alone(range_op op, uint64_t *grains)
{
    fl_range range;
    uint32_t lo, hi;
    fl_range_set(&range, 0, GRAINS);
    uint64_t start = fl_time_now();
    while (op(&range, 1, &lo, &hi))
        *grains += hi - lo;
    return (double)(fl_time_now() - start) / GRAINS;
}

static bool cut_back(fl_range *range, uint32_t want, uint32_t *lo, uint32_t *hi)
{
    while (fl_range_peek(range, lo, hi) != 0) {
        if (fl_range_cut(range, want, 0, *hi, lo, hi))
            return true;
    }
    return false;
}

static int cutter_main(void *arg)
{
    cutter *c = arg;
    uint32_t lo, hi;
    /* Acquire: the range's start before the first cut. */
    while (fl_load_acquire(&c->state) != 1)
        fl_relax();
    while (cut_back(c->range, 1, &lo, &hi))
        c->grains += hi - lo;
    return 0;
}

/* The owner's time for each grain that it takes while a thief cuts as fast as it can. */
static int round_shared(double *ns, uint64_t *grains)
{
    fl_range range;
    cutter c = {.range = &range};
    fl_thread thread;
    uint32_t lo, hi;
    uint64_t taken = 0;
    atomic_init(&c.state, 0);
    fl_range_set(&range, 0, GRAINS_SHARED);
    if (fl_thread_start(&thread, cutter_main, &c) != FILCH_OK)
        return 1;
    uint64_t start = fl_time_now();
    /* Release: pairs with the cutter's acquire. */
    fl_store_release(&c.state, 1);
    while (fl_range_take(&range, 1, &lo, &hi))
        taken += hi - lo;
    uint64_t end = fl_time_now();
    fl_thread_join(thread);
    *grains += taken + c.grains;
    *ns = taken ? (double)(end - start) / (double)taken : 0;
    return 0;
}

int micro_range(FILE *out, micro_list *list)
{
    double take[MICRO_ROUNDS], cut[MICRO_ROUNDS], shared[MICRO_ROUNDS];
    uint64_t grains = 0;
    /* One round more than is kept: the first warms up. */
    for (int r = -1; r < MICRO_ROUNDS; r++) {
        int kept = r < 0 ? 0 : r;
        take[kept] = round_alone(fl_range_take, &grains);
        cut[kept] = round_alone(cut_back, &grains);
        if (round_shared(&shared[kept], &grains))
            return 1;
    }
    micro_report(out, list, "range take", micro_median(take), "ns");
    micro_report(out, list, "range cut", micro_median(cut), "ns");
    micro_report(out, list, "range owner's take under one thief", micro_median(shared), "ns");
    /* Every grain was handed out once. */
    return grains != (uint64_t)(MICRO_ROUNDS + 1) * (2 * (uint64_t)GRAINS + GRAINS_SHARED);
}
