/* SPDX-License-Identifier: Apache-2.0 */
/* Task memory of a runtime. Slabs move between graphs and are freed only with the runtime. A stale
 * hint can therefore always be read. */
#ifndef FL_GRAPH_TASK_STORE_H
#define FL_GRAPH_TASK_STORE_H

#include "graph/task/task.h"

#define FL_SLAB_TASKS 255

typedef struct fl_slab fl_slab;

struct fl_slab {
    /* Next slab of a graph, newest first, or of the store's free list. */
    _Alignas(128) fl_slab *next;
    fl_slab *all;  /* list of every slab ever made */
    uint32_t used; /* tasks handed out, counted by the owning graph */
    fl_task tasks[FL_SLAB_TASKS];
};

typedef struct fl_store {
    const fl_memory *memory;
    fl_mutex lock;
    fl_slab *free;
    fl_slab *all;
    _Atomic uint64_t bytes; /* relaxed: a statistic */
} fl_store;

filch_status fl_store_init(fl_store *store, const fl_memory *memory);
void fl_store_fini(fl_store *store);
/* Takes a slab for a graph; thread-safe. Null: memory is out, or lies outside the range of
 * hints. */
fl_slab *fl_store_take(fl_store *store);
/* Gives a chain of slabs back; no task of the slabs is in use. */
void fl_store_give(fl_store *store, fl_slab *first);

#endif
