/* SPDX-License-Identifier: Apache-2.0 */
/* The life of one runtime: made at random, given jobs and faults, checked, destroyed. */
#ifndef BENCH_SOAK_WORLD_H
#define BENCH_SOAK_WORLD_H

#include "soak/soak.h"
#include "soak/watch.h"

/* Several at once, each on a thread of its own. What is wrong goes to soak_fail. */
void soak_world_live(soak *s, soak_watch *watch, uint64_t seed);

#endif
