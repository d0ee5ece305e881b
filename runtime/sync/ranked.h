/* SPDX-License-Identifier: Apache-2.0 */
/* Ranked lists: linked work in 64 lists by rank, each in order of arrival. The caller has a lock.
 */
#ifndef FL_SYNC_RANKED_H
#define FL_SYNC_RANKED_H

#include "sync/inbox.h"

/* Lists: as many as a mask has bits. */
#define FL_RANKS 64u

typedef struct fl_ranked_lists {
    uint64_t ranks; /* lists that are not empty */
    uint32_t count; /* links in all lists */
    fl_link *first[FL_RANKS], *last[FL_RANKS];
} fl_ranked_lists;

/* A place in the lists. */
typedef struct fl_ranked_spot {
    uint32_t rank;
    fl_link *before; /* null: the link is the first of its list */
    fl_link *link;   /* null: before all */
} fl_ranked_spot;

void fl_ranked_add(fl_ranked_lists *lists, uint32_t rank, fl_link *link);
/* Removes the link of the spot. */
void fl_ranked_remove(fl_ranked_lists *lists, fl_ranked_spot spot);
/* Steps to the next link after the spot, from the highest rank on or from the lowest (is_upwards).
 * False: the spot was the last. */
bool fl_ranked_step(const fl_ranked_lists *lists, fl_ranked_spot *spot, bool is_upwards);

#endif
