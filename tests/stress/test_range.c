/* SPDX-License-Identifier: Apache-2.0 */
/* Four workers, each with a range, divide a range among themselves over and over: take from the own
 * range, else cut from another's and keep the rest in the own one. Every grain is handed out
 * exactly once, with what was written before the range was set. A take, cut, drain or set that had
 * something to do is an operation. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/thread.h"
#include "patience.h"
#include "stress.h"
#include "sync/range.h"

enum { WORKERS = 4, GRAINS_MAX = 4096 };

typedef struct field {
    stress stress;
    fl_range ranges[WORKERS];
    stress_set taken;
    uint64_t payload[GRAINS_MAX]; /* plain memory that a set publishes */
    _Atomic uint64_t round;
    _Atomic uint64_t left; /* grains of the round that nobody has yet */
    _Atomic bool done;
} field;

typedef struct worker {
    field *field;
    uint32_t self;
    uint64_t takes, cuts, drains;
} worker;

static void consume(field *f, uint32_t lo, uint32_t hi)
{
    uint64_t round = fl_load_relaxed(&f->round);
    for (uint32_t grain = lo; grain < hi; grain++) {
        if (!stress_set_mark(&f->taken, grain))
            stress_fail(&f->stress, "grain handed out twice", grain);
        else if (f->payload[grain] != stress_hash(&f->stress, round + grain))
            stress_fail(&f->stress, "grain without what was written before the set", grain);
    }
    /* Release: the reads of payload before the next round's writes. */
    (void)fl_add_release(&f->left, (uint64_t)0 - (hi - lo));
}

/* One attempt; false when there was nothing. */
static bool work_once(worker *w, fl_random *random)
{
    field *f = w->field;
    fl_range *own = &f->ranges[w->self];
    uint32_t lo, hi, want = 1 + (uint32_t)stress_below(random, 4);
    if (fl_range_take(own, want, &lo, &hi)) {
        if (hi - lo > want)
            stress_fail(&f->stress, "more than was wanted", hi - lo);
        w->takes++;
        /* Sometimes the end of it goes back, unless somebody drained the rest meanwhile. */
        if (hi - lo > 1 && stress_below(random, 4) == 0 && fl_range_return(own, hi - 1, hi))
            hi--;
        consume(f, lo, hi);
        return true;
    }
    fl_range *victim = &f->ranges[stress_below(random, WORKERS)];
    if (victim == own)
        return false;
    if (stress_below(random, 16) == 0) {
        if (!fl_range_drain(victim, &lo, &hi))
            return false;
        w->drains++;
    } else {
        uint32_t left = fl_range_peek(victim, &lo, &hi);
        if (!fl_range_cut(victim, left / 2 + 1, 0, hi, &lo, &hi))
            return false;
        w->cuts++;
    }
    fl_range_set(own, lo, hi);
    return true;
}

static int worker_main(void *arg)
{
    worker *w = arg;
    fl_random random;
    fl_random_init(&random, w->field->stress.seed, w->self);
    for (uint64_t idle = 0; !fl_load_acquire(&w->field->done);) {
        if (!work_once(w, &random) && ++idle % 64 == 0)
            fl_thread_yield();
    }
    return 0;
}

/* false when grains got lost. */
static bool run_round(worker *w, fl_random *random, uint64_t round)
{
    field *f = w->field;
    uint32_t grains = 1 + (uint32_t)stress_below(random, GRAINS_MAX);
    stress_set_clear(&f->taken);
    for (uint32_t i = 0; i < grains; i++)
        f->payload[i] = stress_hash(&f->stress, round + i);
    fl_store_relaxed(&f->round, round);
    fl_store_relaxed(&f->left, grains);
    fl_range_set(&f->ranges[w->self], 0, grains);
    uint64_t start = fl_time_now();
    /* Acquire: pairs with the release in consume. */
    for (uint64_t idle = 0; fl_load_acquire(&f->left) != 0;) {
        if (work_once(w, random))
            continue;
        if (++idle % 64 == 0)
            fl_thread_yield();
        if (idle % 4096 == 0 && fl_time_now() - start > PATIENCE_S * FL_NS_PER_S) {
            stress_fail(&f->stress, "grains lost", fl_load_relaxed(&f->left));
            return false;
        }
    }
    if (stress_set_marked(&f->taken) != grains)
        stress_fail(&f->stress, "marked is not all", stress_set_marked(&f->taken));
    return true;
}

int main(int argc, char **argv)
{
    static field f;
    worker workers[WORKERS];
    fl_thread threads[WORKERS];
    stress_begin(&f.stress, "range", argc, argv, 5000000, 50000000);
    stress_set_init(&f.taken, GRAINS_MAX);
    atomic_init(&f.done, false);
    for (uint32_t i = 0; i < WORKERS; i++) {
        fl_range_set(&f.ranges[i], 0, 0);
        workers[i] = (worker){.field = &f, .self = i};
        if (i > 0 && fl_thread_start(&threads[i], worker_main, &workers[i]) != FILCH_OK)
            return 2;
    }
    fl_random random;
    fl_random_init(&random, f.stress.seed, 0);
    uint64_t victim_order = 0, grains_mean = GRAINS_MAX / 2;
    /* Takes of 2.5 grains on average are by far the most operations. */
    uint64_t rounds_wanted = f.stress.operations * 5 / 2 / grains_mean + 1;
    while (victim_order < rounds_wanted &&
           run_round(&workers[0], &random, victim_order * GRAINS_MAX))
        victim_order++;
    /* Release: pairs with the workers' acquire. */
    fl_store_release(&f.done, true);
    worker total = workers[0];
    for (uint32_t i = 1; i < WORKERS; i++) {
        fl_thread_join(threads[i]);
        total.takes += workers[i].takes;
        total.cuts += workers[i].cuts;
        total.drains += workers[i].drains;
    }
    printf("%" PRIu64 " rounds: %" PRIu64 " takes, %" PRIu64 " cuts, %" PRIu64 " drains\n",
           victim_order, total.takes, total.cuts, total.drains);
    stress_set_fini(&f.taken);
    return stress_end(&f.stress);
}
