/* SPDX-License-Identifier: Apache-2.0 */
/* Steal throttling: from whom a thief takes, and how much. The victim is the worker with the most
 * time left, and the amount lets thief and victim end together. A theft pays only where the thief
 * would end before the victim, with the transfer of missing data included. The functions change
 * nothing; execute/theft.c carries out the thefts. */
#ifndef FL_SCHED_DECIDE_STEAL_H
#define FL_SCHED_DECIDE_STEAL_H

#include "sched/model/cost.h"
#include "sched/model/missing.h"
#include "sched/model/speed.h"
#include "sched/worker/sched.h"

/* Time left of a victim that is unavailable or without capacity: every thief is faster. */
#define FL_STEAL_NEVER_NS 1e300

/* Steal candidate. */
typedef struct fl_steal_candidate {
    uint32_t victim;
    uint32_t slot;    /* slot of the job with the range; FL_ACTIVE_SLOTS: the victim's deques */
    double ns_left;   /* victim's time for the remaining work */
    double ns_thief;  /* thief's time for the entries */
    uint32_t entries; /* grains, roots or deque entries */
    uint32_t want;    /* number of entries wanted by a policy; 0: the fair share */
    double ns_fixed;  /* thief's time for every item, in addition to ns_thief */
    fl_speed *speed;  /* speed of a batch's codelet on the thief; else null */
    double ns_trial;  /* nonzero: predicted time of a single grain, or task, stolen to explore
                         whether the prediction still holds */
    double ns_bring;  /* time to bring an entry's missing data; 0: none, or unknown */
    double ns_way;    /* cores: transfer cost of an entry's data; 0: none, or unknown */
} fl_steal_candidate;

/* --- Candidates --- */

/* Whether the worker is the watched victim, and still at the item seen first. */
bool fl_steal_is_watched(const fl_worker *worker, uint32_t victim);
/* Candidate of the tasks in the victim's deques; no entries: the deques are empty. */
fl_steal_candidate fl_steal_of_deques(const fl_worker *worker, const fl_worker *victim);
/* Candidate of positions [lo, hi) of the victim's range of a job. is_left: the victim leaves the
 * range to others. */
fl_steal_candidate fl_steal_of_range(const fl_worker *worker, const filch_job *job, uint32_t victim,
                                     uint32_t lo, uint32_t hi, bool is_left);

/* --- Choice --- */

/* The rule of steal throttling: the thief, available after ns, ends a piece, with missing data and
 * the theft, before the victim ends the rest. */
static inline bool fl_theft_pays(double available, double bring, double piece, double theft,
                                 double ns_left)
{
    return fl_cost_finish(available, bring, piece, theft) < ns_left;
}

typedef enum fl_steal_choice {
    FL_STEAL_IGNORE, /* the best candidate so far has more time left */
    FL_STEAL_PREFER, /* the candidate, perhaps changed, is the best so far */
    FL_STEAL_REFUSE  /* the theft would not pay */
} fl_steal_choice;

/* Compares a candidate with the best one so far. The candidate may become an exploration, or a
 * theft after a wait. */
fl_steal_choice fl_steal_compare(const fl_worker *worker, const fl_steal_candidate *best,
                                 fl_steal_candidate *candidate);
/* Whether a theft pays with the transfer of missing data. */
typedef struct fl_steal_verdict {
    bool pays;
    fl_refusal why; /* if not */
    double ns_left; /* if not: victim's time for the remaining work */
} fl_steal_verdict;
/* Weighs the theft of n entries of a range, and adds the transfer to the candidate. */
fl_steal_verdict fl_steal_weigh_range(const fl_worker *worker, fl_steal_candidate *candidate,
                                      const fl_missing *missing, uint32_t n);
/* Weighs the theft of one of count similar tasks. */
fl_steal_verdict fl_steal_weigh_task(const fl_worker *worker, const fl_steal_candidate *candidate,
                                     const fl_missing *missing, uint32_t index, uint32_t count);

/* A victim's inbox. */
typedef struct fl_steal_inbox {
    bool is_refused; /* the victim ends the tasks before the thief would */
    double ns_left;  /* victim's time, if refused */
    double price;    /* time to wait before taking the tasks, ns; 0: none */
} fl_steal_inbox;
fl_steal_inbox fl_steal_of_inbox(const fl_worker *worker, const fl_worker *victim);

/* --- Amount --- */

/* Number of entries to take, so that victim and thief end together. */
uint32_t fl_steal_share(const fl_steal_candidate *candidate);
/* Number of tasks to take at once from deques. */
uint32_t fl_steal_haul(const fl_worker *worker, const fl_steal_candidate *candidate);
/* Number of entries to take from an absent device. Nobody robs the thief in turn, so the thief
 * takes a part, and the present devices share the rest regardless of speed. */
uint32_t fl_steal_part_of_absent(const fl_sched *sched, uint32_t entries);

#endif
