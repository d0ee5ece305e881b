/* SPDX-License-Identifier: Apache-2.0 */
/* Victim order: the order in which a thief looks at other workers. With few workers, the thief
 * looks at every worker at once. With many workers, the thief looks at a few at a time, until a
 * theft is possible. First come the victims robbed last or refused last by steal throttling, since
 * a victim with the most time left usually still has much; an equal number follows in turn. The
 * rest come in turn, from the position where the last attempt ended. The cost of a theft does not
 * depend on the number of workers.
 *
 * A worker about to sleep looks at every worker, since a producer of work wakes only workers known
 * to sleep. Most fruitless attempts are of a second type: a sleeping worker wakes up alone, since a
 * throttled theft may pay by now. New work would have woken the worker, so the attempt ends after
 * the first few victims. In turn, the attempts reach every worker; the number of attempts is the
 * number of workers divided by FL_VICTIMS - FL_KNOWN. */
#ifndef FL_SCHED_DECIDE_VICTIMS_H
#define FL_SCHED_DECIDE_VICTIMS_H

#include "sched/worker/worker.h"

#define FL_VICTIMS 16u
_Static_assert(FL_KNOWN < FL_VICTIMS, "some are looked at in turn");

typedef struct fl_victim_list {
    uint32_t count;
    uint32_t victims[FL_VICTIMS];
    uint32_t left; /* victims still to be visited in turn */
    bool is_first;
} fl_victim_list;

void fl_victims_begin(const fl_worker *worker, const fl_victim_order *order,
                      fl_victim_list *victims);
/* Lists the next few victims; false: no victims are left. */
bool fl_victims_next(const fl_worker *worker, fl_victim_order *order, fl_victim_list *victims);
/* Remembers a victim with the most work, or with more work than could be taken. */
void fl_victims_note(const fl_worker *worker, fl_victim_order *order, uint32_t victim);

#endif
