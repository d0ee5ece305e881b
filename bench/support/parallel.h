/* SPDX-License-Identifier: Apache-2.0 */
/* Set-up over all cores, so that it does not take longer than what is measured. */
#ifndef BENCH_PARALLEL_H
#define BENCH_PARALLEL_H

#include <stddef.h>

typedef void (*bench_body)(void *context, size_t lo, size_t hi);

/* Calls the body for ranges that together are [0, count), of `grain` each but the last, on several
 * threads of which the caller is one; none is left afterwards. What the bodies wrote is seen by the
 * caller. Where threads cannot be had, fewer do it. */
void bench_parallel(size_t count, size_t grain, bench_body body, void *context);

#endif
