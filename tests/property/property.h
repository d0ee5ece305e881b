/* SPDX-License-Identifier: Apache-2.0 */
/* What the property tests share: seeds, failures, and random runtimes on host or simulated devices.
 */
#ifndef TESTS_PROPERTY_H
#define TESTS_PROPERTY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/thread.h"
#include "filch/filch.h"
#include "random.h"

enum { PROPERTY_MOST_DEVICES = 8, PROPERTY_MOST_POLLERS = 2 };

/* A random runtime, with threads that poll it where it has none of its own. */
typedef struct property_world {
    filch_runtime *runtime;
    uint32_t devices;
    bool is_sim;
    bool is_static;
    const char *policy; /* its name */
    char text[96];      /* what it is, for failures */
    uint32_t poller_count;
    fl_thread pollers[PROPERTY_MOST_POLLERS];
    _Atomic uint32_t stop;
} property_world;

/* One property: `check` runs one random case on a world. */
typedef void (*property_check)(property_world *world, fl_random *random);

/* test_NAME [COUNT [SEED]]: COUNT cases with seeds SEED, SEED + 1, ... without COUNT as many as
 * test_count(optimized) gives, without SEED from one that the clock gives. Prints the
 * seed; a failure names the arguments that repeat its case alone. The exit status of main. */
int property_main(const char *name, int argc, char **argv, property_check check,
                  uint64_t optimized);

/* Records a failure of the present case; any thread. printf-like. */
void property_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Fails where a call does not return what it should. */
void property_expect(filch_status got, filch_status wanted, const char *call);
#define property_ok(call) property_expect((call), FILCH_OK, #call)
bool property_has_failed(void);

bool property_chance(fl_random *random, uint32_t percent);
/* Any policy: the default, one to compare with, or one that answers anyhow. Returns its name. */
const char *property_policy(fl_random *random, bool is_sim, filch_runtime_desc *config);
uint64_t property_mix(uint64_t a, uint64_t b);
/* Zeroed; ends the process when there is none. */
void *property_alloc(size_t count, size_t size);

#endif
