/* SPDX-License-Identifier: Apache-2.0 */
/* The next BLAS: functions that the program would have called without this library. */
#ifndef FILCH_BLAS_NEXT_H
#define FILCH_BLAS_NEXT_H

#include "kernels/blas/call.h"

#include <stdatomic.h>

/* One entry point of this library. */
typedef struct fl_blas_entry {
    const char *name;
    const char *nancheck;    /* LAPACKE: name of the function that tells whether it looks for
                                not-a-numbers; else null */
    _Atomic(void *) next;    /* null: not looked for yet, or not found */
    atomic_bool is_reported; /* missing, and said so */
} fl_blas_entry;

/* Null where no library has the name. caller is an address in the calling object: the search goes
 * 1. FILCH_BLAS_NEXT, a path; 2. objects loaded after this library in the global scope; 3. the
 * caller's own libraries, which an extension of Python loads out of the global scope; 4. whatever
 * else is loaded; 5. usual names. Thread safety: any thread. */
void *fl_next_find(fl_blas_entry *entry, const void *caller);
void *fl_next_symbol(const char *name, const void *caller);

static inline void *fl_next(fl_blas_entry *entry, const void *caller)
{
    void *next = atomic_load_explicit(&entry->next, memory_order_relaxed);
    return next ? next : fl_next_find(entry, caller);
}

/* Nobody can compute the call: says so once on the standard error, fills BLAS's result with
 * not-a-numbers, and gives LAPACK's its info. */
void fl_next_missing(fl_blas_entry *entry, fl_blas_call *call);

#endif
