/* SPDX-License-Identifier: Apache-2.0 */
/* The next-use oracle (Belady 1966): when a tile of data is used next on a memory node, as far as
 * the running jobs tell. */
#ifndef FL_SCHED_MODEL_NEXT_USE_H
#define FL_SCHED_MODEL_NEXT_USE_H

#include "sched/worker/worker.h"

/* User data of fl_foresight: the item that is being put on its device. */
typedef struct fl_outlook {
    const fl_worker *worker;
    const fl_item *item;
    bool is_ahead; /* the item is neither launched nor claimed yet */
} fl_outlook;

/* Members of fl_foresight; `user` is an fl_outlook. */
void fl_next_use_prepare(void *user);
uint64_t fl_next_use(void *user, const filch_data *data, uint32_t tile, uint32_t place,
                     bool *is_read);
/* Frees the users of the graph's tiles; the graph is being destroyed. */
void fl_next_use_drop(filch_graph *graph);

#endif
