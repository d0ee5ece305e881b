/* SPDX-License-Identifier: Apache-2.0 */
/* How many random cases a test runs where nobody says: a number of its own, whatever the machine is
 * busy with, of which the slower builds take a part. */
#ifndef TESTS_COUNT_H
#define TESTS_COUNT_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#ifdef __has_feature
#define TEST_HAS(feature) __has_feature(feature)
#else
#define TEST_HAS(feature) 0
#endif

#if defined(__SANITIZE_THREAD__) || TEST_HAS(thread_sanitizer)
#define TEST_SHARE 10
#elif defined(__SANITIZE_ADDRESS__) || TEST_HAS(address_sanitizer)
#define TEST_SHARE 4
#elif !defined(NDEBUG)
#define TEST_SHARE 2
#else
#define TEST_SHARE 1
#endif

/* The thread sanitizer has nothing to say of a part of a test that has one thread: the part is
 * skipped there. */
#define TEST_SEEKS_RACES (TEST_SHARE == 10)

/* Rounds of a test that does one thing again and again with threads: a third of them under the
 * thread sanitizer, which finds a missing order in one round as in many. */
#define TEST_ROUNDS(rounds) (TEST_SEEKS_RACES ? (rounds + 2) / 3 : rounds)

/* `cases` are the optimized build's; FL_TEST_LONG=1: twenty times as many. */
static inline uint64_t test_count(uint64_t cases)
{
    const char *env = getenv("FL_TEST_LONG");
    return (env != NULL && strcmp(env, "1") == 0 ? 20 : 1) * (cases / TEST_SHARE);
}

#endif
