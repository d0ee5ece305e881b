/* SPDX-License-Identifier: Apache-2.0 */
/* Producers publish a piece of work, notify, and wait until the one sleeper has done it. A sleep
 * has a long time limit, and with nothing else to wake the sleeper a lost wake-up runs into it.
 * With one producer no other's notification can hide the loss. A piece of work is an operation. */
#include <inttypes.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/thread.h"
#include "stress.h"
#include "sync/eventcount.h"

enum { PRODUCERS_MAX = 3, LIMIT_S = 30, SPIN_MAX = 64 };

typedef struct producer {
    struct field *field;
    uint64_t self;
    uint64_t notified; /* its notifications that woke the sleeper */
    /* On a line of its own, which both sides hold until the post: the sleeper's re-check then reads
     * its copy at once while the post waits for the line, so a missing fence shows. */
    _Alignas(64) _Atomic uint64_t posted;
    _Alignas(64) _Atomic uint64_t done;
    _Alignas(64) uint64_t payload; /* plain: what a post publishes */
} producer;

typedef struct field {
    stress stress;
    fl_eventcount event;
    producer producers[PRODUCERS_MAX];
    uint64_t count, each; /* producers, and pieces of each */
    _Atomic bool given_up;
} field;

static void spin(fl_random *random)
{
    for (uint64_t n = stress_below(random, SPIN_MAX); n > 0; n--)
        fl_relax();
}

static int producer_main(void *arg)
{
    producer *p = arg;
    field *f = p->field;
    fl_random random;
    fl_random_init(&random, f->stress.seed, p->self);
    for (uint64_t n = 1; n <= f->each; n++) {
        p->payload = stress_hash(&f->stress, p->self * f->each + n);
        spin(&random);
        if (stress_below(&random, 2)) {
            /* Release: payload before posted; notify makes the fence. */
            fl_store_release(&p->posted, n);
            p->notified += fl_eventcount_notify(&f->event);
        } else {
            /* Release: payload before posted; then the fence that notify_fenced asks for. */
            fl_store_release(&p->posted, n);
            fl_fence_seq_cst();
            p->notified += fl_eventcount_notify_fenced(&f->event);
        }
        /* Acquire: the sleeper has read payload. */
        for (uint64_t turns = 0; fl_load_acquire(&p->done) != n;) {
            if (fl_load_relaxed(&f->given_up))
                return 0;
            if (++turns % 64 == 0)
                fl_thread_yield();
        }
    }
    return 0;
}

/* What the sleeper's check for work is made of: relaxed where announce alone must order it. */
static bool work_there(field *f)
{
    for (uint64_t i = 0; i < f->count; i++) {
        if (fl_load_relaxed(&f->producers[i].posted) != fl_load_relaxed(&f->producers[i].done))
            return true;
    }
    return false;
}

static uint64_t work(field *f)
{
    uint64_t done = 0;
    for (uint64_t i = 0; i < f->count; i++) {
        producer *p = &f->producers[i];
        uint64_t n = fl_load_relaxed(&p->done) + 1;
        /* Acquire: payload. */
        if (fl_load_acquire(&p->posted) != n)
            continue;
        if (p->payload != stress_hash(&f->stress, i * f->each + n))
            stress_fail(&f->stress, "work without what was written before it", n);
        /* Release: the read of payload before the producer's next write. */
        fl_store_release(&p->done, n);
        done++;
    }
    return done;
}

/* Runs rounds with `count` producers; adds to the counts of sleeps and cancels. */
static void run(field *f, uint64_t count, uint64_t each, uint64_t *sleeps, uint64_t *cancels)
{
    fl_thread threads[PRODUCERS_MAX];
    fl_random random;
    fl_random_init(&random, f->stress.seed, PRODUCERS_MAX + count);
    f->count = count;
    f->each = each;
    for (uint64_t i = 0; i < count; i++) {
        producer *p = &f->producers[i];
        p->field = f;
        p->self = i;
        fl_store_relaxed(&p->posted, 0);
        fl_store_relaxed(&p->done, 0);
        if (fl_thread_start(&threads[i], producer_main, p) != FILCH_OK) {
            stress_fail(&f->stress, "no thread", i);
            fl_store_relaxed(&f->given_up, true);
            count = i;
        }
    }
    for (uint64_t done = 0; done < count * each && !fl_load_relaxed(&f->given_up);) {
        done += work(f);
        spin(&random);
        if (done == count * each)
            break;
        fl_eventcount_announce(&f->event);
        if (work_there(f)) {
            fl_eventcount_cancel(&f->event);
            ++*cancels;
        } else if (fl_eventcount_sleep(&f->event, LIMIT_S * FL_NS_PER_S)) {
            ++*sleeps;
        } else {
            stress_fail(&f->stress, "wake-up lost after pieces", done);
            fl_store_relaxed(&f->given_up, true);
        }
    }
    for (uint64_t i = 0; i < count; i++)
        fl_thread_join(threads[i]);
}

int main(int argc, char **argv)
{
    static field f;
    stress_begin(&f.stress, "event", argc, argv, 500000, 10000000);
    if (fl_eventcount_init(&f.event) != FILCH_OK)
        return 2;
    atomic_init(&f.given_up, false);
    uint64_t sleeps = 0, cancels = 0, woken = 0;
    run(&f, 1, f.stress.operations / 2 + 1, &sleeps, &cancels);
    run(&f, PRODUCERS_MAX, f.stress.operations / 2 / PRODUCERS_MAX + 1, &sleeps, &cancels);
    for (int i = 0; i < PRODUCERS_MAX; i++)
        woken += f.producers[i].notified;
    /* A sleep that returns true was notified by one waker; a cancel may waste a notification. */
    if (woken < sleeps || woken > sleeps + cancels)
        stress_fail(&f.stress, "sleeps ended and notifications that woke differ; notifications",
                    woken);
    printf("%" PRIu64 " sleeps woken, %" PRIu64 " cancelled, %" PRIu64 " notifications that woke\n",
           sleeps, cancels, woken);
    fl_eventcount_fini(&f.event);
    return stress_end(&f.stress);
}
