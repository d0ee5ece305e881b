/* SPDX-License-Identifier: Apache-2.0 */
/* Wall time, and quiet between measurements. */
#ifndef BENCH_TIMING_H
#define BENCH_TIMING_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Monotonic seconds from an arbitrary origin. */
double bench_now_s(void);

/* Processor seconds that all threads of the process have used. */
double bench_cpu_s(void);

/* Sleeps until the process uses next to no processor time, so that what ran last (OpenBLAS's and
 * libgomp's threads spin for milliseconds before they sleep) does not slow what runs next. False if
 * it still computes after limit_s seconds. */
bool bench_settle(double limit_s);

#ifdef __cplusplus
}
#endif

#endif
