/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of `filch-bench soak` share: what was asked for, counts, and the first thing that
 * went wrong. */
#ifndef BENCH_SOAK_H
#define BENCH_SOAK_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A job that has not ended after so long never will. */
#define SOAK_PATIENCE_S 120

/* X(member, title). */
#define SOAK_COUNTS(X)                  \
    X(runtimes, "runtimes")             \
    X(jobs, "jobs")                     \
    X(tasks, "tasks and items run")     \
    X(checks, "results checked")        \
    X(failures, "tasks that failed")    \
    X(cancels, "jobs cancelled")        \
    X(withdrawals, "devices withdrawn") \
    X(aborts, "runtimes aborted")       \
    X(limits, "memory limits")          \
    X(losses, "devices lost")

/* Relaxed: they order nothing. */
typedef struct soak_counts {
#define SOAK_COUNT(member, title) _Atomic uint64_t member;
    SOAK_COUNTS(SOAK_COUNT)
#undef SOAK_COUNT
} soak_counts;

typedef struct soak {
    const char *devices; /* null: host devices alone */
    soak_counts counts;
    _Atomic bool has_failed; /* relaxed: whoever asks late does one job more */
    pthread_mutex_t lock;
    char failure[512]; /* the first one; under the lock */
} soak;

/* Any thread. */
void soak_fail(soak *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
bool soak_has_failed(soak *s);

static inline void soak_count(_Atomic uint64_t *count, uint64_t more)
{
    atomic_fetch_add_explicit(count, more, memory_order_relaxed);
}

/* SplitMix64 (G. L. Steele, D. Lea, C. H. Flood, "Fast splittable pseudorandom number generators",
 * OOPSLA 2014): also mixes what tasks compute. */
static inline uint64_t soak_random(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static inline uint32_t soak_below(uint64_t *state, uint32_t n)
{
    return (uint32_t)(soak_random(state) % n);
}

static inline bool soak_chance(uint64_t *state, uint32_t percent)
{
    return soak_below(state, 100) < percent;
}

#endif
