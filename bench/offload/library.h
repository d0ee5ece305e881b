/* SPDX-License-Identifier: Apache-2.0 */
/* The vendor's libraries, found at run time. */
#ifndef BENCH_LIBRARY_H
#define BENCH_LIBRARY_H

#include "filch/status.h"

/* A library's names by the CUDA version that they came with, the newest first; null ends them. */
typedef struct bench_soname {
    const char *name;
    int driver; /* that it needs, e.g. 13000 */
} bench_soname;

extern const bench_soname bench_cuda_names[]; /* the driver itself */
extern const bench_soname bench_cublas_names[];
extern const bench_soname bench_cusolver_names[];
extern const bench_soname bench_cusolvermg_names[];

/* Null where none is installed for this driver. What the process has already goes before what could
 * be loaded. It stays loaded: the CUDA runtime inside does not stand being unloaded. */
void *bench_library_open(const bench_soname *names, int driver);
/* FILCH_NOT_FOUND that says so. */
filch_status bench_library_missing(const char *name, int driver, filch_error *error);
/* *function receives the symbol's address; FILCH_NOT_FOUND where the library lacks it. */
filch_status bench_library_find(void *library, const char *symbol, void *function,
                                filch_error *error);

#endif
