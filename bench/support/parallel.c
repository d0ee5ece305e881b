/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "support/parallel.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#define THREADS_MOST 64

typedef struct work {
    bench_body body;
    void *context;
    size_t count, grain;
    atomic_size_t next;
} work;

static void *take_part(void *argument)
{
    work *w = argument;
    size_t lo;
    /* Relaxed: ranges are told apart by it, and nothing else; joining orders what was written. */
    while ((lo = atomic_fetch_add_explicit(&w->next, w->grain, memory_order_relaxed)) < w->count) {
        size_t hi = w->count - lo < w->grain ? w->count : lo + w->grain;
        w->body(w->context, lo, hi);
    }
    return NULL;
}

/* That the process may use. */
static size_t cores(void)
{
    cpu_set_t set;
    int count = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
    return count > 1 ? (size_t)count : 1;
}

void bench_parallel(size_t count, size_t grain, bench_body body, void *context)
{
    pthread_t threads[THREADS_MOST];
    work w = {.body = body, .context = context, .count = count, .grain = grain > 0 ? grain : 1};
    size_t ranges = (count + w.grain - 1) / w.grain, most = cores(), made = 0;
    most = ranges < most ? ranges : most;
    atomic_init(&w.next, 0);
    while (made + 1 < most && made < THREADS_MOST &&
           pthread_create(&threads[made], NULL, take_part, &w) == 0)
        made++;
    (void)take_part(&w);
    while (made > 0)
        (void)pthread_join(threads[--made], NULL);
}
