/* SPDX-License-Identifier: Apache-2.0 */
#include "memory/alloc/slab.h"

#include <stdio.h>
#include <sys/types.h>

#include "base/memory.h"

#ifdef FL_HAVE_JEMALLOC
#include <jemalloc/jemalloc.h>
#if JEMALLOC_VERSION_MAJOR > 5 || (JEMALLOC_VERSION_MAJOR == 5 && JEMALLOC_VERSION_MINOR >= 3)
#define HAVE_SLABS 1
#endif
#endif

#ifdef HAVE_SLABS

/* Maximum size of a slab. jemalloc first asks for 2 MiB and more, and after a refusal for the
 * size needed. The rest of a larger extent would stay with jemalloc, without use for a second
 * consumer. */
#define SLAB_LARGEST ((size_t)32 << 10)

struct fl_slabs {
    extent_hooks_t hooks; /* first member: jemalloc passes its address to the hooks */
    fl_slab_pages pages;
    unsigned arena;
};

/* New value read by jemalloc 5.3 from "experimental.arenas_create_ext"; jemalloc's header lacks
 * a declaration. */
typedef struct arena_config {
    extent_hooks_t *hooks;
    bool metadata_use_hooks;
} arena_config;

static const fl_slab_pages *pages_of(extent_hooks_t *hooks)
{
    return &((fl_slabs *)(void *)hooks)->pages;
}

static void *pages_take(extent_hooks_t *hooks, void *wanted, size_t bytes, size_t align, bool *zero,
                        bool *commit, unsigned arena)
{
    (void)arena;
    if (wanted != NULL || bytes > SLAB_LARGEST) {
        return NULL; /* no caller needs neighbouring extents */
    }
    void *piece = pages_of(hooks)->take(pages_of(hooks)->user, bytes, align);
    *zero = false;
    *commit = piece != NULL;
    return piece;
}

static bool pages_give(extent_hooks_t *hooks, void *piece, size_t bytes, bool committed,
                       unsigned arena)
{
    (void)committed;
    (void)arena;
    pages_of(hooks)->give(pages_of(hooks)->user, piece, bytes);
    return false;
}

static void pages_destroy(extent_hooks_t *hooks, void *piece, size_t bytes, bool committed,
                          unsigned arena)
{
    (void)pages_give(hooks, piece, bytes, committed, arena);
}

static bool pages_split(extent_hooks_t *hooks, void *piece, size_t bytes, size_t first, size_t rest,
                        bool committed, unsigned arena)
{
    (void)bytes;
    (void)rest;
    (void)committed;
    (void)arena;
    return !pages_of(hooks)->split(pages_of(hooks)->user, piece, first);
}

static bool pages_merge(extent_hooks_t *hooks, void *piece, size_t bytes, void *next,
                        size_t next_bytes, bool committed, unsigned arena)
{
    (void)bytes;
    (void)next_bytes;
    (void)committed;
    (void)arena;
    return !pages_of(hooks)->merge(pages_of(hooks)->user, piece, next);
}

static int control(unsigned arena, const char *what, void *value, size_t bytes)
{
    char name[64];
    snprintf(name, sizeof name, "arena.%u.%s", arena, what);
    return mallctl(name, NULL, NULL, value, bytes);
}

bool fl_slabs_are_there(void)
{
    return true;
}

filch_status fl_slabs_new(const fl_memory *memory, const fl_slab_pages *pages, fl_slabs **slabs)
{
    fl_slabs *made = fl_alloc_zeroed(memory, sizeof *made);
    if (made == NULL) {
        return FILCH_OUT_OF_MEMORY;
    }
    made->pages = *pages;
    /* Pages need no commit or purge. */
    made->hooks = (extent_hooks_t){.alloc = pages_take,
                                   .dalloc = pages_give,
                                   .destroy = pages_destroy,
                                   .split = pages_split,
                                   .merge = pages_merge};
    arena_config config = {&made->hooks, false};
    size_t size = sizeof made->arena;
    if (mallctl("experimental.arenas_create_ext", &made->arena, &size, &config, sizeof config) !=
        0) {
        fl_free(memory, made, sizeof *made);
        return FILCH_OUT_OF_MEMORY;
    }
    /* Unused pages go back at once: a taker gets new pages from the heap's chunks. */
    ssize_t at_once = 0;
    if (control(made->arena, "dirty_decay_ms", &at_once, sizeof at_once) != 0 ||
        control(made->arena, "muzzy_decay_ms", &at_once, sizeof at_once) != 0) {
        fl_slabs_free(memory, made);
        return FILCH_OUT_OF_MEMORY;
    }
    *slabs = made;
    return FILCH_OK;
}

void fl_slabs_free(const fl_memory *memory, fl_slabs *slabs)
{
    if (slabs != NULL) {
        (void)control(slabs->arena, "destroy", NULL, 0);
        fl_free(memory, slabs, sizeof *slabs);
    }
}

static int flags_of(size_t align)
{
    return MALLOCX_LG_ALIGN(__builtin_ctzll(align)) | MALLOCX_TCACHE_NONE;
}

void *fl_slabs_take(fl_slabs *slabs, size_t bytes, size_t align)
{
    return mallocx(bytes, flags_of(align) | MALLOCX_ARENA(slabs->arena));
}

void fl_slabs_give(fl_slabs *slabs, void *block, size_t bytes, size_t align)
{
    (void)slabs;
    sdallocx(block, bytes, flags_of(align));
}

#else

bool fl_slabs_are_there(void)
{
    return false;
}

filch_status fl_slabs_new(const fl_memory *memory, const fl_slab_pages *pages, fl_slabs **slabs)
{
    (void)memory;
    (void)pages;
    (void)slabs;
    return FILCH_UNSUPPORTED;
}

void fl_slabs_free(const fl_memory *memory, fl_slabs *slabs)
{
    (void)memory;
    (void)slabs;
}

void *fl_slabs_take(fl_slabs *slabs, size_t bytes, size_t align)
{
    (void)slabs;
    (void)bytes;
    (void)align;
    return NULL;
}

void fl_slabs_give(fl_slabs *slabs, void *block, size_t bytes, size_t align)
{
    (void)slabs;
    (void)block;
    (void)bytes;
    (void)align;
}

#endif
