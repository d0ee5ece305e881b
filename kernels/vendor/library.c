/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "kernels/vendor/library.h"

#include "base/error.h"

#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

const fl_soname fl_cuda_names[] = {{"libcuda.so.1", 12000}, {0}};
const fl_soname fl_cublas_names[] = {{"libcublas.so.13", 13000}, {"libcublas.so.12", 12000}, {0}};
const fl_soname fl_cusolver_names[] = {
    {"libcusolver.so.12", 13000}, {"libcusolver.so.11", 12000}, {0}};
const fl_soname fl_cusolvermg_names[] = {
    {"libcusolverMg.so.12", 13000}, {"libcusolverMg.so.11", 12000}, {0}};
const fl_soname fl_cusparse_names[] = {{"libcusparse.so.12", 12000}, {0}};

void *fl_library_open(const fl_soname *names, int driver)
{
    void *library = NULL;
    for (const fl_soname *n = names; n->name && !library; n++)
        library = dlopen(n->name, RTLD_NOW | RTLD_NOLOAD);
    for (const fl_soname *n = names; n->name && !library; n++)
        for (size_t p = 0; p < 2 && n->driver <= driver && !library; p++) {
            char path[64];
            snprintf(path, sizeof path, "%s%s", p == 0 ? "" : "/usr/local/cuda/lib64/", n->name);
            library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        }
    return library;
}

filch_status fl_library_missing(const char *name, int driver, filch_error *error)
{
    return fl_error_fill(error, (fl_fault){.status = FILCH_NOT_FOUND, .label = name},
                         "is not installed for driver %d.%d", driver / 1000, driver % 1000 / 10);
}

filch_status fl_library_find(void *library, const char *symbol, void *function, filch_error *error)
{
    void *found = dlsym(library, symbol);
    if (!found)
        return fl_error_fill(error, (fl_fault){.status = FILCH_NOT_FOUND, .label = symbol},
                             "the library has no such function");
    /* POSIX lets a function's address stand in a void *; C has no cast for it. */
    memcpy(function, &found, sizeof found);
    return FILCH_OK;
}

filch_status fl_library_load(const fl_soname *names, const char *name, int driver,
                             const fl_symbol *symbols, size_t count, void *structure,
                             filch_error *error)
{
    void *library = fl_library_open(names, driver);
    filch_status status = library ? FILCH_OK : fl_library_missing(name, driver, error);
    for (size_t k = 0; k < count && status == FILCH_OK; k++)
        status =
            fl_library_find(library, symbols[k].name, (char *)structure + symbols[k].at, error);
    return status;
}
