/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "offload/library.h"

#include "support/fail.h"

#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

const bench_soname bench_cuda_names[] = {{"libcuda.so.1", 12000}, {0}};
const bench_soname bench_cublas_names[] = {
    {"libcublas.so.13", 13000}, {"libcublas.so.12", 12000}, {0}};
const bench_soname bench_cusolver_names[] = {
    {"libcusolver.so.12", 13000}, {"libcusolver.so.11", 12000}, {0}};
const bench_soname bench_cusolvermg_names[] = {
    {"libcusolverMg.so.12", 13000}, {"libcusolverMg.so.11", 12000}, {0}};

void *bench_library_open(const bench_soname *names, int driver)
{
    void *library = NULL;
    for (const bench_soname *n = names; n->name && !library; n++)
        library = dlopen(n->name, RTLD_NOW | RTLD_NOLOAD);
    for (const bench_soname *n = names; n->name && !library; n++)
        for (size_t p = 0; p < 2 && n->driver <= driver && !library; p++) {
            char path[64];
            snprintf(path, sizeof path, "%s%s", p == 0 ? "" : "/usr/local/cuda/lib64/", n->name);
            library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        }
    return library;
}

filch_status bench_library_missing(const char *name, int driver, filch_error *error)
{
    return bench_fail(error, FILCH_NOT_FOUND, name, 0, "is not installed for driver %d.%d",
                      driver / 1000, driver % 1000 / 10);
}

filch_status bench_library_find(void *library, const char *symbol, void *function,
                                filch_error *error)
{
    void *found = dlsym(library, symbol);
    if (!found)
        return bench_fail(error, FILCH_NOT_FOUND, symbol, 0, "the library has no such function");
    /* POSIX lets a function's address stand in a void *; C has no cast for it. */
    memcpy(function, &found, sizeof found);
    return FILCH_OK;
}
