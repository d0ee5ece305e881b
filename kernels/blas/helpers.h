/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that share a loop with the caller. They are made for a loop, look for the next one for a
 * moment after each, sleep for a second, and end. A child of a process that has made some makes
 * none. */
#ifndef FILCH_BLAS_HELPERS_H
#define FILCH_BLAS_HELPERS_H

#include <stdbool.h>
#include <stdint.h>

/* Threads of a loop, the caller among them. From 8 to 16 threads a copy still gained a quarter;
 * more were not measured. */
#define FL_HELPERS_MOST 16

/* Iterations [first, last). */
typedef void (*fl_helpers_part)(const void *user, int64_t first, int64_t last);

/* Runs iterations [0, count) in chunks, on this thread and the helpers; returns when all are over.
 * False: nothing ran. Another thread has the helpers, or there are none for this one: the setting
 * is 1 thread; there is no setting, and this thread may use one core alone; no thread could be
 * made; helpers on other cores than this thread's have not ended yet; or the process is a child of
 * one that had helpers. Thread safety: any thread. */
bool fl_helpers_share(fl_helpers_part part, const void *user, int64_t count, int64_t chunk);

#endif
