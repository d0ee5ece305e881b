/* SPDX-License-Identifier: Apache-2.0 */
/* Seeded pseudo-random numbers: the same seed gives the same sequence on every machine. Not for
 * secrets. One generator belongs to one thread.
 *
 * Sources: the generator is xorshift64* with shifts 12, 25, 27 from S. Vigna, "An experimental
 * exploration of Marsaglia's xorshift generators, scrambled", ACM Trans. Math. Softw. 42(4), 2016.
 * Seeds are spread by SplitMix64 from G. L. Steele, D. Lea, C. H. Flood, "Fast splittable
 * pseudorandom number generators", OOPSLA 2014, with Stafford's variant 13 of the mixer. */
#ifndef TESTS_RANDOM_H
#define TESTS_RANDOM_H

#include <stdint.h>

typedef struct fl_random {
    uint64_t state; /* never 0, where xorshift would stay for ever */
} fl_random;

/* SplitMix64: advances *state and returns the next number; any state is good. */
static inline uint64_t fl_splitmix64(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* Any seed is good, also 0; streams of the same seed but other numbers differ, so that each thread
 * has a sequence of its own. */
static inline void fl_random_init(fl_random *random, uint64_t seed, uint64_t stream)
{
    uint64_t mix = seed;

    mix = fl_splitmix64(&mix) ^ stream;
    random->state = fl_splitmix64(&mix);
    if (random->state == 0)
        random->state = 0x9e3779b97f4a7c15u;
}

/* Every value but 0, each once in a period of 2^64 - 1. */
static inline uint64_t fl_random_next(fl_random *random)
{
    uint64_t x = random->state;

    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    random->state = x;
    return x * 0x2545f4914f6cdd1du;
}

/* 0 to n - 1 by a multiplication of the upper half, which is the better one; n > 0. A value's
 * probability is off by at most 2^-32. D. Lemire, "Fast random integer generation in an interval",
 * ACM Trans. Model. Comput. Simul. 29(1), 2019, without its rejection step. */
static inline uint32_t fl_random_below(fl_random *random, uint32_t n)
{
    return (uint32_t)(((fl_random_next(random) >> 32) * n) >> 32);
}

/* 0 <= x < 1, a multiple of 2^-53. */
static inline double fl_random_unit(fl_random *random)
{
    return (double)(fl_random_next(random) >> 11) * 0x1p-53;
}

#endif
