/* SPDX-License-Identifier: Apache-2.0 */
/* Earliest finish time (HEFT: Topcuoglu et al., IEEE TPDS 13, 2002), asked anew each time that a
 * device is free: which task of the shared ready queue a device takes. Under the queue's lock,
 * except fl_eft_depth. */
#ifndef FL_SCHED_DECIDE_EFT_H
#define FL_SCHED_DECIDE_EFT_H

#include "sched/worker/timeline.h"

/* The choice of a free worker among the queue's tasks. */
typedef struct fl_eft_choice {
    bool is_found;
    fl_ranked_spot spot;            /* the task, if is_found */
    bool explores;                  /* the task measures whether the device is as slow as before */
    bool leaves_all;                /* the queue's tasks were left to other devices */
    uint64_t look_at;               /* time to look again at tasks left, ns; 0: when told */
    uint64_t called[FL_IDLE_WORDS]; /* free devices with tasks left to them, to be woken */
} fl_eft_choice;

/* Tasks in flight up to which the worker may take more. */
uint32_t fl_eft_depth(const fl_worker *worker);
/* Chooses a task for the worker; *choice is zeroed. */
void fl_eft_choose(const fl_worker *worker, uint64_t t, fl_eft_choice *choice);
/* Whether the worker, behind the items in flight, would end a task first that depends on some of
 * these items. */
bool fl_eft_wins(const fl_worker *worker, uint64_t t, const fl_task *task);

#endif
