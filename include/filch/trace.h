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
 * Starts recording into a ring a worker (FILCH_TRACE_EVENTS events each; the newest are kept).
 *
 * Returns FILCH_OK (also when it already records), FILCH_OUT_OF_MEMORY, FILCH_INVALID_HANDLE,
 * FILCH_FORKED. Any thread. Since 0.1.
 */
FILCH_API filch_status filch_trace_start(filch_runtime *runtime);

/** Stops recording; what was recorded stays. Returns FILCH_OK, FILCH_INVALID_HANDLE, FILCH_FORKED.
 */
FILCH_API filch_status filch_trace_stop(filch_runtime *runtime);

/**
 * Writes what was recorded to a file for chrome://tracing or ui.perfetto.dev.
 *
 * Returns FILCH_OK, FILCH_BUSY (a job runs), FILCH_IO (the file is not left behind),
 * FILCH_WRONG_STATE (nothing was ever recorded), FILCH_INVALID_ARGUMENT, FILCH_OUT_OF_MEMORY,
 * FILCH_INVALID_HANDLE, FILCH_FORKED. Any thread. Since 0.1.
 */
FILCH_API filch_status filch_trace_write(filch_runtime *runtime, const char *path);

#ifdef __cplusplus
}
#endif

#endif
