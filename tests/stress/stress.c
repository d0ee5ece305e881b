/* SPDX-License-Identifier: Apache-2.0 */
#include "stress.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

enum { FAILURES_SHOWN = 10 };

static uint64_t parse_number(const char *text)
{
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    if (errno || end == text || *end || *text == '-') {
        fprintf(stderr, "not a number: %s\n", text);
        exit(2);
    }
    return value;
}

void stress_begin(stress *s, const char *name, int argc, char **argv, uint64_t operations,
                  uint64_t operations_long)
{
    const char *env = getenv("FL_TEST_LONG");
    int numbers = 0;
    s->name = name;
    s->operations = env && strcmp(env, "1") == 0 ? operations_long : operations;
    s->seed = fl_time_now();
    atomic_init(&s->failures, 0);
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--long") == 0)
            s->operations = operations_long;
        else if (numbers == 0)
            s->operations = parse_number(argv[i]), numbers++;
        else
            s->seed = parse_number(argv[i]);
    }
    printf("%s: %" PRIu64 " operations, seed %" PRIu64 "\n", name, s->operations, s->seed);
    fflush(stdout);
}

void stress_fail(stress *s, const char *what, uint64_t number)
{
    /* Relaxed: a count; the threads are joined before it is judged. */
    if (fl_add_relaxed(&s->failures, 1) < FAILURES_SHOWN)
        fprintf(stderr, "%s: %s: %" PRIu64 "\n", s->name, what, number);
}

int stress_end(stress *s)
{
    uint64_t failures = fl_load_relaxed(&s->failures);
    printf("%s: %s (%" PRIu64 " failures)\n", s->name, failures ? "FAILED" : "passed", failures);
    return failures ? 1 : 0;
}

uint64_t stress_below(fl_random *random, uint64_t n)
{
    return fl_random_next(random) % n;
}

uint64_t stress_hash(const stress *s, uint64_t item)
{
    uint64_t state = s->seed ^ item;
    return fl_splitmix64(&state);
}

void *stress_alloc(size_t count, size_t size)
{
    void *pointer = calloc(count ? count : 1, size);
    if (!pointer) {
        fprintf(stderr, "no memory for %zu elements of %zu bytes\n", count, size);
        exit(2);
    }
    return pointer;
}

static uint64_t set_words(const stress_set *set)
{
    return set->count / 64 + 1;
}

void stress_set_init(stress_set *set, uint64_t count)
{
    set->count = count;
    set->words = stress_alloc((size_t)set_words(set), sizeof *set->words);
}

void stress_set_fini(stress_set *set)
{
    free((void *)set->words);
}

void stress_set_clear(stress_set *set)
{
    for (uint64_t i = 0; i < set_words(set); i++)
        fl_store_relaxed(&set->words[i], 0);
}

bool stress_set_mark(stress_set *set, uint64_t item)
{
    if (item >= set->count)
        return false;
    uint64_t bit = UINT64_C(1) << item % 64;
    /* Relaxed, so that the set orders nothing that the structure under test ought to order. */
    return !(fl_or_relaxed(&set->words[item / 64], bit) & bit);
}

uint64_t stress_set_marked(const stress_set *set)
{
    uint64_t marked = 0;
    for (uint64_t i = 0; i < set_words(set); i++)
        marked += (uint64_t)__builtin_popcountll(fl_load_relaxed(&set->words[i]));
    return marked;
}
