/* SPDX-License-Identifier: Apache-2.0 */
/* The vendor's libraries, found at run time. */
#ifndef FL_KERNELS_VENDOR_LIBRARY_H
#define FL_KERNELS_VENDOR_LIBRARY_H

#include "filch/status.h"

#include <stddef.h>

/* A library's names by the CUDA version that they came with, the newest first; null ends them. */
typedef struct fl_soname {
    const char *name;
    int driver; /* that it needs, e.g. 13000 */
} fl_soname;

extern const fl_soname fl_cuda_names[]; /* the driver itself */
extern const fl_soname fl_cublas_names[];
extern const fl_soname fl_cusolver_names[];
extern const fl_soname fl_cusolvermg_names[];
extern const fl_soname fl_cusparse_names[];

/* Null where none is installed for this driver. What the process has already goes before what could
 * be loaded. It stays loaded: the CUDA runtime inside does not stand being unloaded. */
void *fl_library_open(const fl_soname *names, int driver);
/* FILCH_NOT_FOUND that says so. */
filch_status fl_library_missing(const char *name, int driver, filch_error *error);
/* *function receives the symbol's address; FILCH_NOT_FOUND where the library lacks it. */
filch_status fl_library_find(void *library, const char *symbol, void *function, filch_error *error);

/* A function of a library, and at which byte of a structure its address belongs. */
typedef struct fl_symbol {
    const char *name;
    size_t at;
} fl_symbol;

/* Opens a library and puts the addresses of its functions into a structure. FILCH_NOT_FOUND as
 * above. */
filch_status fl_library_load(const fl_soname *names, const char *name, int driver,
                             const fl_symbol *symbols, size_t count, void *structure,
                             filch_error *error);

#endif
