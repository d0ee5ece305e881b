/* SPDX-License-Identifier: Apache-2.0 */
/* Policies: records of functions for placing ready tasks, cutting batches and choosing victims in
 * place of the default rules.
 *
 * The default policy has no functions. The cost is a predictable branch in three places: where a
 * task becomes ready with more than one kind of device, where a worker takes a chunk, where a
 * worker finds nothing. A host's record works through the same workers: placed tasks arrive in
 * inboxes, pieces of batches in ranges, and range positions then number pieces. Work for every
 * device stands in a single queue, or in the first device's range. */
#ifndef FL_SCHED_DECIDE_POLICY_H
#define FL_SCHED_DECIDE_POLICY_H

#include "sched/worker/sched.h"

struct filch_policy_view {
    const fl_sched *sched;
    fl_worker *worker;    /* asking worker; null: a thread of the host */
    const fl_task *task;  /* task in question, or null */
    const filch_job *job; /* job of the batch in question, or null; null beside a task */
    uint32_t lo, hi;      /* grains of the batch */
    uint32_t rest;
};

/* desc: the host's complete record, or null. */
filch_status fl_rules_init(fl_sched *sched, filch_policy kind, const filch_policy_desc *desc);
void fl_rules_fini(fl_sched *sched);

/* --- Tasks (policy.c) --- */

/* Asks the policy about a ready task, for a worker or a thread of the host (null). Returns a device
 * able to run the task, FILCH_POLICY_ANYONE, or FILCH_POLICY_AUTO: the default rules apply. */
uint32_t fl_policy_ask_place(fl_sched *sched, fl_worker *worker, fl_task *task);
/* Asks the policy for a victim and an amount; false: no victim. */
bool fl_policy_victim(fl_worker *worker, uint32_t *victim, uint32_t *amount);

/* --- Batches (pieces.c) --- */

/* Cuts a batch into pieces and asks the policy to place them. Returns the pieces by device, to be
 * freed with the job; begins, sched->count + 1 zeroes before, receives at d the end of device d's
 * positions in the list. Null: no memory for the list. */
fl_pieces *fl_pieces_cut(fl_sched *sched, const filch_job *job, uint32_t *begins);
/* Returns the number of grains to take from a share's rest; `usual` where the policy does not say.
 */
uint32_t fl_policy_chunk(fl_worker *worker, const filch_job *job, uint32_t lo, uint32_t rest,
                         uint32_t usual);

/* --- Predictions (view.c) --- */

/* Charges a placed item to a device: adds the predicted time to the device's load. */
void fl_view_charge(const filch_policy_view *view, uint32_t device);

#endif
