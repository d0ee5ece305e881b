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

#include "filch/policy.h"
#include "graph/job/job.h"
#include "sync/ranked.h"

struct fl_sched;
struct fl_item;
struct fl_worker;

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

struct filch_policy_view {
    const struct fl_sched *sched;
    struct fl_worker *worker; /* asking worker; null: a thread of the host */
    const fl_task *task;      /* task in question, or null */
    const filch_job *job;     /* job of the batch in question, or null; null beside a task */
    uint32_t lo, hi;          /* grains of the batch */
    uint32_t rest;
};

/* desc: the host's complete record, or null. */
filch_status fl_rules_init(struct fl_sched *sched, filch_policy kind,
                           const filch_policy_desc *desc);
void fl_rules_fini(struct fl_sched *sched);

static inline bool fl_rules_place(const fl_rules *rules)
{
    return rules->with.place != NULL;
}

/* --- Tasks (policy.c) --- */

typedef enum fl_placed {
    FL_PLACED_AUTO, /* the default rules apply */
    FL_PLACED_HERE, /* the task stays with the asking worker */
    FL_PLACED_AWAY  /* the task was sent elsewhere, and may be over */
} fl_placed;

/* Places a ready task of the caller, for a worker or a thread of the host (null). */
fl_placed fl_policy_place(struct fl_sched *sched, struct fl_worker *worker, fl_task *task);
/* Places the roots of a job that is visible by other means; the job may be over on return. */
void fl_policy_place_roots(struct fl_sched *sched, const filch_job *job);
/* Takes a task from the common list. */
bool fl_policy_pick(struct fl_worker *worker, struct fl_item *item);
/* Takes a task for a nested wait: a task of the job, from the common list or a second worker's
 * inbox. If the job has no such task and is_strict is false, takes a different task permitted in a
 * wait. Only the job's address counts: the job may be over. */
bool fl_policy_pick_of(struct fl_worker *worker, const filch_job *job, bool is_strict,
                       struct fl_item *item);
/* Takes a task out of the common list that no device can run any more, for the worker of a failed
 * device; `may` tests a task. null: no such task. */
fl_task *fl_policy_drop(struct fl_worker *worker,
                        bool (*may)(const struct fl_worker *worker, const fl_task *task,
                                    const void *user));
/* Notes an idle worker: the worker had not been given too much work. */
void fl_policy_note_idle(struct fl_worker *worker);
/* Asks the policy for a victim and an amount; false: no victim. */
bool fl_policy_victim(struct fl_worker *worker, uint32_t *victim, uint32_t *amount);

/* --- Batches (pieces.c) --- */

/* Meaning of the positions in a job's ranges. */
enum {
    FL_CUT_SHARES, /* grains, or roots, of every device */
    FL_CUT_PIECES, /* positions of every device's pieces in fl_job_part.pieces */
    FL_CUT_COMMON  /* grains of the whole batch, in the first device's range */
};

/* Fills the ranges of a batch by the policy; false: the default rules apply. */
bool fl_pieces_fill(struct fl_sched *sched, filch_job *job);
/* Returns the number of grains to take from a share's rest; `usual` where the policy does not say.
 */
uint32_t fl_policy_chunk(struct fl_worker *worker, const filch_job *job, uint32_t lo, uint32_t rest,
                         uint32_t usual);

/* --- Predictions (view.c) --- */

/* Predicts the time of the view's item on a device, ns, if begun at `from`. */
double fl_view_ns(const filch_policy_view *view, uint32_t device, uint64_t from);
/* Charges a placed item to a device: adds the predicted time to the device's load. */
void fl_view_charge(const filch_policy_view *view, uint32_t device);

#endif
