/* SPDX-License-Identifier: Apache-2.0 */
#include "sync/ranked.h"

#include <stddef.h>

void fl_ranked_add(fl_ranked_lists *lists, uint32_t rank, fl_link *link)
{
    link->next = NULL;
    if ((lists->ranks >> rank & 1) != 0) {
        lists->last[rank]->next = link;
    } else {
        lists->first[rank] = link;
    }
    lists->last[rank] = link;
    lists->ranks |= (uint64_t)1 << rank;
    ++lists->count;
}

void fl_ranked_remove(fl_ranked_lists *lists, fl_ranked_spot spot)
{
    fl_link *next = spot.link->next;
    *(spot.before != NULL ? &spot.before->next : &lists->first[spot.rank]) = next;
    if (next == NULL) {
        lists->last[spot.rank] = spot.before;
    }
    if (lists->first[spot.rank] == NULL) {
        lists->ranks &= ~((uint64_t)1 << spot.rank);
    }
    --lists->count;
}

bool fl_ranked_step(const fl_ranked_lists *lists, fl_ranked_spot *spot, bool is_upwards)
{
    uint64_t rest = lists->ranks;
    if (spot->link != NULL) {
        spot->before = spot->link;
        spot->link = spot->link->next;
        if (spot->link != NULL) {
            return true;
        }
        uint64_t own = (uint64_t)1 << spot->rank;
        rest &= is_upwards ? ~(own | (own - 1)) : own - 1;
    }
    if (rest == 0) {
        return false;
    }
    spot->rank = (uint32_t)(is_upwards ? __builtin_ctzll(rest) : 63 - __builtin_clzll(rest));
    spot->before = NULL;
    spot->link = lists->first[spot->rank];
    return true;
}
