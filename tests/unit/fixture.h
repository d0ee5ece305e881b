/* SPDX-License-Identifier: Apache-2.0 */
/* What tests of the public calls share: a counting, failing allocator and short ways to make
 * objects. Nothing here may be used off the main thread but the functions said to be. */
#ifndef FL_TEST_FIXTURE_H
#define FL_TEST_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "filch/filch.h"

typedef struct fixture_memory {
    _Atomic int64_t bytes, pieces; /* live */
    _Atomic int64_t calls;         /* allocations asked for */
    _Atomic int64_t fail_at;       /* the number of the call that fails, from 1; 0: none */
    _Atomic int64_t fail_all;      /* not 0: every call fails */
    filch_allocator allocator;
} fixture_memory;

/* The next n-th call fails, once. 0: none. */
void fixture_memory_init(fixture_memory *memory);
void fixture_memory_fail_after(fixture_memory *memory, int64_t n);

#define assert_status(call, expected)                                           \
    do {                                                                        \
        filch_status status_ = (call);                                          \
        if (status_ != (expected)) {                                            \
            fail_msg("%s: %s instead of %s", #call, filch_status_name(status_), \
                     filch_status_name(expected));                              \
        }                                                                       \
    } while (0)
#define assert_ok(call) assert_status(call, FILCH_OK)

/* A runtime on the devices; memory may be null. */
filch_runtime *fixture_runtime(const char *devices, filch_drive drive, fixture_memory *memory);
filch_codelet *fixture_codelet(filch_runtime *runtime, const char *name, filch_host_fn host,
                               uint32_t arg_size);
/* One-dimensional. */
filch_data *fixture_vector(filch_runtime *runtime, void *ptr, uint64_t element, uint64_t n,
                           uint64_t tile);
/* Adds a task with the accesses; returns its name. */
filch_task fixture_add(filch_graph *graph, filch_codelet *codelet, const void *args,
                       const filch_access *accesses, uint32_t count);
filch_graph *fixture_graph(filch_runtime *runtime, filch_graph_kind kind);
/* Submits, waits, releases; returns the result. */
filch_status fixture_run(filch_graph *graph);
/* Newest error of this thread. */
filch_error fixture_error(filch_runtime *runtime);
/* Spins, yielding, until *flag is at least value; any thread. Returns false after PATIENCE. */
bool fixture_await(_Atomic int *flag, int value);
/* Threads of this process whose names begin so. */
int fixture_threads(const char *prefix);

/* Does nothing. */
int fixture_nothing(const filch_call *call);

#define fixture_access(handle, tile, how) \
    ((filch_access){.data = (handle), .row = (tile), .mode = (how)})

#endif
