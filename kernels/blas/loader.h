/* SPDX-License-Identifier: Apache-2.0 */
/* Loads and starts the engine for the first call that needs it; knows when it is of no use. */
#ifndef FILCH_BLAS_LOADER_H
#define FILCH_BLAS_LOADER_H

#include "kernels/blas/engine.h"

/* Of the integers that the usual names take; each library has its own. */
extern const size_t fl_loader_integer_bytes;

/* Thread safety of all: any thread. */
bool fl_loader_is_started(void);
/* For ever: there is no device, or this is the child of a process that started the engine. */
bool fl_loader_is_over(void);
fl_blas_outcome fl_loader_run(fl_blas_call *call, const void *caller);

#endif
