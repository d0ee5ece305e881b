/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/task/store.h"

#include <string.h>

filch_status fl_store_init(fl_store *store, const fl_memory *memory)
{
    *store = (fl_store){.memory = memory};
    return fl_mutex_init(&store->lock);
}

void fl_store_fini(fl_store *store)
{
    for (fl_slab *slab = store->all; slab != NULL;) {
        fl_slab *next = slab->all;
        fl_free_aligned(store->memory, slab, sizeof *slab, _Alignof(fl_slab));
        slab = next;
    }
    fl_mutex_fini(&store->lock);
}

static fl_slab *make(fl_store *store)
{
    fl_slab *slab = fl_alloc_aligned(store->memory, sizeof *slab, _Alignof(fl_slab));
    if (slab == NULL) {
        return NULL;
    }
    if (((uint64_t)(uintptr_t)slab + sizeof *slab) >> 48 != 0) {
        fl_free_aligned(store->memory, slab, sizeof *slab, _Alignof(fl_slab));
        return NULL;
    }
    memset(slab, 0, sizeof *slab);
    slab->all = store->all;
    store->all = slab;
    fl_add_relaxed(&store->bytes, sizeof *slab);
    return slab;
}

fl_slab *fl_store_take(fl_store *store)
{
    fl_mutex_lock(&store->lock);
    fl_slab *slab = store->free;
    if (slab != NULL) {
        store->free = slab->next;
    } else {
        slab = make(store);
    }
    fl_mutex_unlock(&store->lock);
    if (slab != NULL) {
        slab->next = NULL;
        slab->used = 0;
    }
    return slab;
}

void fl_store_give(fl_store *store, fl_slab *first)
{
    if (first == NULL) {
        return;
    }
    fl_slab *last = first;
    while (last->next != NULL) {
        last = last->next;
    }
    fl_mutex_lock(&store->lock);
    last->next = store->free;
    store->free = first;
    fl_mutex_unlock(&store->lock);
}
