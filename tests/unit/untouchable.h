/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that traps whoever touches it, for the arena to hand out, and host memory that runs out
 * when asked to. */
#ifndef TEST_UNTOUCHABLE_H
#define TEST_UNTOUCHABLE_H

#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>

#include "base/memory.h"
#include "memory/alloc/heap.h"

#define GRANULARITY ((size_t)2 << 20)

/* A device's memory: how much there is, and how much is out. */
typedef struct untouchable {
    _Atomic uint64_t out, calls;
    uint64_t all;
    _Atomic int fails; /* of the next calls */
} untouchable;

/* Aligned to the granularity; the rest of the mapping is given back at once. */
static inline void *untouchable_take(untouchable *u, size_t bytes)
{
    atomic_fetch_add(&u->calls, 1);
    if (atomic_load(&u->fails) > 0 && atomic_fetch_sub(&u->fails, 1) > 0)
        return NULL;
    if (atomic_fetch_add(&u->out, bytes) + bytes > u->all) {
        atomic_fetch_sub(&u->out, bytes);
        return NULL;
    }
    size_t room = bytes + GRANULARITY;
    char *at = mmap(NULL, room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    size_t skip = (GRANULARITY - (uintptr_t)at % GRANULARITY) % GRANULARITY;
    if (skip != 0)
        (void)munmap(at, skip);
    (void)munmap(at + skip + bytes, GRANULARITY - skip);
    return at + skip;
}

static inline void untouchable_give(untouchable *u, void *memory, size_t bytes)
{
    (void)munmap(memory, bytes);
    atomic_fetch_sub(&u->out, bytes);
}

/* Host memory of which so many allocations succeed (negative: all). */
typedef struct scarce {
    fl_memory inner;
    _Atomic int left;
    _Atomic int64_t live; /* bytes */
} scarce;

static inline void *scarce_alloc(size_t size, size_t align, void *user)
{
    scarce *s = user;
    if (atomic_load(&s->left) >= 0 && atomic_fetch_sub(&s->left, 1) <= 0) {
        atomic_store(&s->left, 0);
        return NULL;
    }
    void *made = s->inner.alloc(size, align, s->inner.user);
    if (made != NULL)
        atomic_fetch_add(&s->live, (int64_t)size);
    return made;
}

static inline void scarce_free(void *pointer, size_t size, size_t align, void *user)
{
    scarce *s = user;
    atomic_fetch_sub(&s->live, (int64_t)size);
    s->inner.free(pointer, size, align, s->inner.user);
}

static inline fl_memory scarce_memory(scarce *s)
{
    s->inner = fl_memory_default();
    atomic_init(&s->left, -1);
    atomic_init(&s->live, 0);
    return (fl_memory){scarce_alloc, scarce_free, s, "caller"};
}

#endif
