/* SPDX-License-Identifier: Apache-2.0 */
/* In which order a thief looks at the others. All of a few at once; of many some at a time, until
 * there is something to be had: first those that were robbed or that held it off last, as who had
 * the most time left has most often still much, and as many in turn; then the rest in turn, each
 * time from where the last attempt ended. So a theft costs the same however many there are.
 *
 * Who is about to sleep looks at all, as whoever makes something available next need not wake
 * anybody who is not known to sleep. Most looks that find nothing are other ones: a worker that
 * slept wakes up by itself, since a theft that was held off may pay by now. What was made available
 * while it slept it would have been woken for, so such a look goes no further than the first few;
 * in turn it comes to everybody within as many attempts as FL_VICTIMS - FL_KNOWN goes into them. */
#ifndef FL_SCHED_DECIDE_VICTIMS_H
#define FL_SCHED_DECIDE_VICTIMS_H

#include "sched/worker/worker.h"

#define FL_VICTIMS 16u
_Static_assert(FL_KNOWN < FL_VICTIMS, "some are looked at in turn");

typedef struct fl_victim_list {
    uint32_t count;
    uint32_t victims[FL_VICTIMS];
    uint32_t left; /* to be looked at in turn */
    bool is_first;
} fl_victim_list;

void fl_victims_begin(fl_worker *worker, fl_victim_list *victims);
/* The next few; false: that was all. */
bool fl_victims_next(fl_worker *worker, fl_victim_list *victims);
/* That one had the most, or more than could be taken. */
void fl_victims_note(fl_worker *worker, uint32_t victim);

#endif
