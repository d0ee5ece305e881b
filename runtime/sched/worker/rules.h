/* SPDX-License-Identifier: Apache-2.0 */
/* The policy of a scheduler: the host's functions or none, tasks for every device, and counts of
 * the answers. */
#ifndef FL_SCHED_WORKER_RULES_H
#define FL_SCHED_WORKER_RULES_H

#include "filch/policy.h"
#include "graph/job/job.h"
#include "sync/ranked.h"

/* Tasks for every device, oldest first. */
typedef struct fl_common {
    fl_mutex lock;
    fl_ranked_lists tasks;   /* in the list of rank 0; under the lock */
    _Atomic uint32_t filled; /* nonzero: a task is listed; release, after the lists */
} fl_common;

/* Counts of a function's calls and of refused answers; relaxed: statistics. */
typedef struct fl_asked {
    _Atomic uint64_t times, refused;
} fl_asked;

typedef struct fl_rules {
    filch_policy kind; /* named by the host */
    char name[32];
    filch_policy_desc with;    /* functions of the policy, or nulls */
    bool is_true;              /* predictions are true where a device tells the true speed */
    _Atomic uint64_t *free_at; /* where tasks are placed: predicted end of a device's work, indexed
                                  by device; relaxed */
    _Atomic uint32_t placing;  /* threads between asking the policy and sending the task; relaxed:
                                  for predictions */
    fl_common common;
    _Alignas(64) fl_asked places;
    fl_asked chunks, steals;
    _Atomic uint32_t strays; /* answers of place() with a nonexistent device */
} fl_rules;

static inline bool fl_rules_place(const fl_rules *rules)
{
    return rules->with.place != NULL;
}

#endif
