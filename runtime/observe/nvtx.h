/* SPDX-License-Identifier: Apache-2.0 */
/* Ranges for a profiler that speaks NVTX: of tasks, on the worker's thread, and of jobs. Their
 * domain is "filch". The profiler is attached to the process, not to a runtime, and stays until the
 * process ends: NVTX has no word for letting it go. */
#ifndef FL_OBSERVE_NVTX_H
#define FL_OBSERVE_NVTX_H

#include <stdint.h>

#include "base/log.h"

typedef struct fl_nvtx fl_nvtx;

/* Attaches the profiler whose library the variable NVTX_INJECTION64_PATH names, if that was not
 * done before. Null: the variable is not set, or the library cannot be used, which is logged as a
 * warning. Thread-safe. */
const fl_nvtx *fl_nvtx_attach(const fl_log *log);
/* Begin and end a range on the calling thread; ranges of a thread nest. The name is copied. */
void fl_nvtx_push(const fl_nvtx *nvtx, const char *name);
void fl_nvtx_pop(const fl_nvtx *nvtx);
/* Begins a range that any thread may end, and returns its number. The name is copied. */
uint64_t fl_nvtx_start(const fl_nvtx *nvtx, const char *name);
void fl_nvtx_end(const fl_nvtx *nvtx, uint64_t range);

#endif
