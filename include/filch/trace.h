/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file trace.h
 * Traces: tiles, thefts and waits, as Chrome/Perfetto JSON.
 */
#ifndef FILCH_TRACE_H
#define FILCH_TRACE_H

#include "filch/runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Starts recording into a ring a worker (FILCH_TRACE_EVENTS events of 56 bytes each; the newest are
 * kept). While it records, every tile is timed: two clock reads each.
 *
 * @param runtime the runtime.
 * @return FILCH_OK (also when it already records); FILCH_OUT_OF_MEMORY; FILCH_INVALID_HANDLE;
 *         FILCH_FORKED.
 *
 * Thread safety: any thread. Blocking: a short lock. Since 0.1.
 */
FILCH_API filch_status filch_trace_start(filch_runtime *runtime);

/**
 * Stops recording; what was recorded stays, and a later start goes on behind it.
 *
 * @param runtime the runtime.
 * @return FILCH_OK; FILCH_INVALID_HANDLE; FILCH_FORKED.
 *
 * Thread safety: any thread; wait-free. Since 0.1.
 */
FILCH_API filch_status filch_trace_stop(filch_runtime *runtime);

/**
 * Writes what was recorded to a file for chrome://tracing or ui.perfetto.dev. Times count from the
 * first event.
 *
 * @param runtime the runtime.
 * @param path    the file; an existing one is overwritten.
 * @return FILCH_OK; FILCH_BUSY (a job runs); FILCH_IO (a file that could not be written to its end
 *         is removed); FILCH_WRONG_STATE (nothing was ever recorded); FILCH_INVALID_ARGUMENT (null
 *         @p path); FILCH_OUT_OF_MEMORY; FILCH_INVALID_HANDLE; FILCH_FORKED.
 *
 * Thread safety: any thread, with no submission in progress. Blocking: writes a file. Since 0.1.
 */
FILCH_API filch_status filch_trace_write(filch_runtime *runtime, const char *path);

#ifdef __cplusplus
}
#endif

#endif
