/* SPDX-License-Identifier: Apache-2.0 */
/* Task memory of a runtime: slabs that move between graphs and are freed only with the runtime, so
 * that a stale hint can always be read. */
#ifndef FL_GRAPH_TASK_STORE_H
#define FL_GRAPH_TASK_STORE_H

#include "graph/task/task.h"

#define FL_SLAB_TASKS 255

typedef struct fl_slab fl_slab;

struct fl_slab {
    _Alignas(128) fl_slab *next; /* of one graph, newest first; or of the store's free list */
    fl_slab *all;                /* every slab ever made */
    uint32_t used;               /* tasks handed out, by the owning graph */
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
/* A slab for one graph; any thread. Null when memory is out, or lies where hints cannot point. */
fl_slab *fl_store_take(fl_store *store);
/* Gives a chain of slabs back; none of their tasks is in use. */
void fl_store_give(fl_store *store, fl_slab *first);

#endif
