/* SPDX-License-Identifier: Apache-2.0 */
/* What the stress tests share: arguments, seeds, and a set that notices an item handed out twice.
 */
#ifndef TESTS_STRESS_H
#define TESTS_STRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/atomic.h"
#include "random.h"

typedef struct stress {
    const char *name;
    uint64_t operations;
    uint64_t seed;
    _Atomic uint64_t failures; /* counted by all threads; the first few are printed */
} stress;

/* test_NAME [--long] [OPERATIONS [SEED]]; FL_TEST_LONG=1 means --long. Prints what will run, so
 * that a failing run can be repeated. Leaves the process with 2 on malformed arguments. */
void stress_begin(stress *s, const char *name, int argc, char **argv, uint64_t operations,
                  uint64_t operations_long);
void stress_fail(stress *s, const char *what, uint64_t number);
/* Prints the verdict; the process's exit status. */
int stress_end(stress *s);

/* 0 .. n - 1. */
uint64_t stress_below(fl_random *random, uint64_t n);
/* What item carries: a function of item and seed that no other item is likely to share. */
uint64_t stress_hash(const stress *s, uint64_t item);

/* A bit for each item. Any thread marks. */
typedef struct stress_set {
    _Atomic uint64_t *words;
    uint64_t count;
} stress_set;
/* Leaves the process with 2 when memory is out. */
void stress_set_init(stress_set *set, uint64_t count);
void stress_set_fini(stress_set *set);
void stress_set_clear(stress_set *set);
/* false when item is not in 0 .. count - 1 or was marked before. */
bool stress_set_mark(stress_set *set, uint64_t item);
uint64_t stress_set_marked(const stress_set *set);
/* Memory of count zeroed elements; leaves the process with 2 when there is none. */
void *stress_alloc(size_t count, size_t size);

#endif
