/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "base/memory.h"
#include "base/thread.h"
#include "micro/micro.h"
#include "sync/deque.h"

enum {
    LOG2_SLOTS = 10,
    BURST = 256,          /* entries in the deque at its fullest */
    BURSTS_ALONE = 20000, /* about 5 million items a round */
    BURSTS_SHARED = 4000,
    THIEF_PAUSES = 8, /* pauses between looks at an empty deque, as an idle worker would make */
};

typedef struct thief {
    fl_deque *deque;
    _Atomic int state; /* 0 starting, 1 stealing, 2 told to stop */
    uint64_t stolen;
    uint64_t sum;
} thief;

static double ns_each(uint64_t start, uint64_t end, uint64_t count)
{
    return (double)(end - start) / (double)count;
}

/* Owner alone: pushes depth entries and pops them, over and over. */
static double round_owner(fl_deque *deque, uint64_t depth, uint64_t *sum)
{
    uint64_t bursts = (uint64_t)BURSTS_ALONE * BURST / depth, entry;
    uint64_t start = fl_time_now();
    for (uint64_t b = 0; b < bursts; b++) {
        for (uint64_t i = 0; i < depth; i++)
            (void)fl_deque_push(deque, i);
        while (fl_deque_pop(deque, &entry))
            *sum += entry;
    }
    return ns_each(start, fl_time_now(), 2 * bursts * depth);
}

/* Only the thefts are timed. */
static double round_steal(fl_deque *deque, uint64_t *sum)
{
    uint64_t bursts = BURSTS_ALONE / 8, spent = 0, entry;
    for (uint64_t b = 0; b < bursts; b++) {
        for (uint64_t i = 0; i < BURST; i++)
            (void)fl_deque_push(deque, i);
        uint64_t start = fl_time_now();
        while (fl_deque_steal(deque, &entry) == FL_STEAL_OK)
            *sum += entry;
        spent += fl_time_now() - start;
    }
    return (double)spent / (double)(bursts * BURST);
}

static int thief_main(void *arg)
{
    thief *t = arg;
    uint64_t entry;
    /* Release and acquire in pairs with the owner's: the counts, and the deque's life. */
    fl_store_release(&t->state, 1);
    while (fl_load_acquire(&t->state) != 2) {
        fl_steal outcome = fl_deque_steal(t->deque, &entry);
        if (outcome == FL_STEAL_OK) {
            t->stolen++;
            t->sum += entry;
        } else if (outcome == FL_STEAL_EMPTY) {
            for (int i = 0; i < THIEF_PAUSES; i++)
                fl_relax();
        }
    }
    return 0;
}

/* The owner's time for each item that it pushes while a thief steals as fast as it can; the owner
 * pops what is left of each burst. share: part of the items that the thief got. */
static int round_shared(fl_deque *deque, double *ns, double *share, uint64_t *sum)
{
    thief t = {.deque = deque};
    fl_thread thread;
    uint64_t entry;
    atomic_init(&t.state, 0);
    if (fl_thread_start(&thread, thief_main, &t) != FILCH_OK)
        return 1;
    while (fl_load_acquire(&t.state) != 1)
        fl_thread_yield();
    uint64_t start = fl_time_now();
    for (uint64_t b = 0; b < BURSTS_SHARED; b++) {
        for (uint64_t i = 0; i < BURST; i++)
            (void)fl_deque_push(deque, i);
        while (fl_deque_pop(deque, &entry))
            *sum += entry;
    }
    uint64_t end = fl_time_now();
    fl_store_release(&t.state, 2);
    fl_thread_join(thread);
    *sum += t.sum;
    *ns = ns_each(start, end, (uint64_t)BURSTS_SHARED * BURST);
    *share = (double)t.stolen / ((double)BURSTS_SHARED * BURST);
    return 0;
}

int micro_deque(FILE *out, micro_list *list)
{
    fl_memory memory = fl_memory_default();
    fl_deque deque;
    if (fl_deque_init(&deque, &memory, LOG2_SLOTS) != FILCH_OK) {
        fl_deque_fini(&deque);
        return 1;
    }
    double deep[MICRO_ROUNDS], shallow[MICRO_ROUNDS], steal[MICRO_ROUNDS], shared[MICRO_ROUNDS];
    double share[MICRO_ROUNDS];
    uint64_t sum = 0;
    int failed = 0;
    /* One round more than is kept: the first warms up. */
    for (int r = -1; r < MICRO_ROUNDS && !failed; r++) {
        int kept = r < 0 ? 0 : r;
        deep[kept] = round_owner(&deque, BURST, &sum);
        shallow[kept] = round_owner(&deque, 1, &sum);
        steal[kept] = round_steal(&deque, &sum);
        failed = round_shared(&deque, &shared[kept], &share[kept], &sum);
    }
    fl_deque_fini(&deque);
    if (failed)
        return 1;
    micro_report(out, list, "deque owner push+pop, 256 deep", micro_median(deep), "ns/operation");
    micro_report(out, list, "deque owner push+pop, 1 deep", micro_median(shallow), "ns/operation");
    micro_report(out, list, "deque uncontended steal", micro_median(steal), "ns");
    micro_report(out, list, "deque owner's cost under one thief", micro_median(shared), "ns/item");
    micro_report(out, list, "deque share stolen by that thief", 100 * micro_median(share), "%");
    /* The sum is used so that no compiler drops the reads. */
    return sum == UINT64_MAX;
}
