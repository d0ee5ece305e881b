/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "kernels/blas/next.h"

#include <dlfcn.h>
#include <link.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* In order; the C names of reference BLAS and LAPACK are in libraries of their own. */
static const char *const usual[] = {"libblas.so.3",  "liblapack.so.3",  "libopenblas.so.0",
                                    "libcblas.so.3", "liblapacke.so.3", "libopenblas.so"};

/* More are not looked at. */
#define OBJECTS_MOST 1024

/* Base of the object that an address is in. */
static void *object_of(const void *address)
{
    Dl_info info;
    return dladdr(address, &info) ? info.dli_fbase : NULL;
}

/* A function of this library is none of the next. */
static void *foreign(void *found)
{
    return found && object_of(found) != object_of(usual) ? found : NULL;
}

/* Searches a library and the libraries that it needs. The handle is kept: what was found is used
 * until the end. */
static void *search(const char *path, int flags, const char *name)
{
    void *library = dlopen(path, flags);
    return library ? foreign(dlsym(library, name)) : NULL;
}

/* Paths of loaded objects. */
typedef struct object_paths {
    char *at[OBJECTS_MOST];
    size_t count;
} object_paths;

/* The loader is locked meanwhile: nothing is searched from inside. */
static int list_object(struct dl_phdr_info *info, size_t size, void *user)
{
    object_paths *paths = user;
    (void)size;
    /* The program itself is without a name, and in the global scope. */
    if (info->dlpi_name[0] == '/' && paths->count < OBJECTS_MOST)
        paths->at[paths->count++] = strdup(info->dlpi_name);
    return 0;
}

static void *search_loaded(const char *name)
{
    object_paths paths = {.count = 0};
    void *found = NULL;
    (void)dl_iterate_phdr(list_object, &paths);
    for (size_t k = 0; k < paths.count; k++) {
        if (!found && paths.at[k])
            found = search(paths.at[k], RTLD_LAZY | RTLD_NOLOAD, name);
        free(paths.at[k]);
    }
    return found;
}

void *fl_next_symbol(const char *name, const void *caller)
{
    const char *path = getenv("FILCH_BLAS_NEXT"); /* NOLINT: read once a routine */
    Dl_info info;
    if (path && *path)
        return search(path, RTLD_LAZY | RTLD_LOCAL, name);
    void *found = foreign(dlsym(RTLD_NEXT, name));
    if (!found && caller && dladdr(caller, &info) && info.dli_fname)
        found = search(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD, name);
    if (!found)
        found = search_loaded(name);
    for (size_t k = 0; k < sizeof usual / sizeof *usual && !found; k++)
        found = search(usual[k], RTLD_LAZY | RTLD_LOCAL, name);
    return found;
}

void *fl_next_find(fl_blas_entry *entry, const void *caller)
{
    void *found = fl_next_symbol(entry->name, caller);
    atomic_store_explicit(&entry->next, found, memory_order_relaxed);
    return found;
}

static void spoil(const fl_blas_call *call, const fl_blas_output *out)
{
    for (int64_t j = 0; j < out->cols; j++)
        for (int64_t i = 0; i < out->rows; i++)
            if (call->is_single)
                ((float *)out->ptr)[j * out->ld + i] = NAN;
            else
                ((double *)out->ptr)[j * out->ld + i] = NAN;
}

void fl_next_missing(fl_blas_entry *entry, fl_blas_call *call)
{
    fl_blas_output outputs[2];
    if (!atomic_exchange_explicit(&entry->is_reported, true, memory_order_relaxed))
        (void)fprintf(stderr,
                      "filch-blas: %s: no BLAS behind this library has it; %s. FILCH_BLAS_NEXT "
                      "names one.\n",
                      entry->name,
                      fl_call_is_lapack(call) ? "info is -1020" : "the result is not a number");
    call->info = FL_BLAS_NOT_RUN;
    if (fl_call_is_lapack(call) || !fl_call_settle(call))
        return;
    for (int k = fl_call_outputs(call, outputs); k > 0; k--)
        spoil(call, &outputs[k - 1]);
}
