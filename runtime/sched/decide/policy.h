/* SPDX-License-Identifier: Apache-2.0 */
/* Policies: who places ready tasks, cuts batches and chooses victims in place of the default rules.
 *
 * The default policy has no functions: what it costs is one predictable branch where a task is made
 * ready with more than one kind of device, where a chunk is taken, and where a worker finds
 * nothing. The policies to compare with (compare.c) are records as the host's are, and go through
 * the same workers: placed tasks come by inboxes, pieces of batches by ranges, whose positions then
 * number pieces. What anyone may take stands in one queue, or in the first device's range. */
#ifndef FL_SCHED_DECIDE_POLICY_H
#define FL_SCHED_DECIDE_POLICY_H

#include "filch/policy.h"
#include "graph/job/job.h"
#include "sync/inbox.h"

struct fl_sched;
struct fl_item;
struct fl_worker;

/* Tasks that anyone may run, oldest first. */
typedef struct fl_common {
    fl_mutex lock;
    fl_link *first, *last;   /* under the lock */
    _Atomic uint32_t filled; /* whether there is any; release after the lists */
} fl_common;

/* What one function was asked; relaxed: statistics. */
typedef struct fl_asked {
    _Atomic uint64_t times, refused;
} fl_asked;

typedef struct fl_rules {
    filch_policy kind; /* as the host named it */
    char name[32];
    filch_policy_desc with;    /* its functions, or nulls */
    bool is_perfect;           /* predictions are true where a device tells */
    _Atomic uint64_t turn;     /* of the policy that goes round; relaxed */
    _Atomic uint64_t *free_at; /* where tasks are placed: predicted, one a device; relaxed */
    _Atomic uint32_t placing;  /* who is between asking and sending; relaxed: for predictions */
    fl_common common;
    _Alignas(64) fl_asked places;
    fl_asked chunks, steals;
    _Atomic uint32_t strays; /* places that answered a device that does not exist */
} fl_rules;

struct filch_policy_view {
    const struct fl_sched *sched;
    struct fl_worker *worker; /* who asks; null: a thread of the host */
    const fl_task *task;      /* or null … */
    const filch_job *job;     /* … where this, of a batch, is not */
    uint32_t lo, hi;          /* its grains */
    uint32_t rest;
};

/* desc: the host's, in full, or null. */
filch_status fl_rules_init(struct fl_sched *sched, filch_policy kind,
                           const filch_policy_desc *desc);
void fl_rules_fini(struct fl_sched *sched);
/* The record of a policy that comes with filch (compare.c); all nulls where it needs none. */
filch_policy_desc fl_compare_desc(filch_policy kind, fl_rules *rules);
/* Units of work a second that a device does, as it tells; 0: it does not. */
double fl_true_speed(const fl_device *device);

static inline bool fl_rules_place(const fl_rules *rules)
{
    return rules->with.place != NULL;
}

/* --- Tasks (policy.c) --- */

typedef enum fl_placed {
    FL_PLACED_AUTO, /* by the default rules */
    FL_PLACED_HERE, /* it stays with the worker that asked */
    FL_PLACED_AWAY  /* it was sent elsewhere, and may be over */
} fl_placed;

/* Places a ready task, the caller's, for a worker or a thread of the host (null). */
fl_placed fl_policy_place(struct fl_sched *sched, struct fl_worker *worker, fl_task *task);
/* The same with the roots of a job that has been made visible otherwise; it may be over then. */
void fl_policy_place_roots(struct fl_sched *sched, const filch_job *job);
/* Takes a task that anyone may run. */
bool fl_policy_pick(struct fl_worker *worker, struct fl_item *item);
/* For a wait: the same of the job's, and what it has in other inboxes; if there is nothing, and
 * that is not strictly what is wanted, of those that a wait may take besides. Only the job's
 * address counts: it may be over. */
bool fl_policy_pick_of(struct fl_worker *worker, const filch_job *job, bool is_strict,
                       struct fl_item *item);
/* Of a worker that was lost: takes a task out of those for anyone that nobody can run any more, as
 * is_left tells; null: there is none. */
fl_task *fl_policy_drop(struct fl_worker *worker,
                        bool (*is_left)(const struct fl_worker *worker, const fl_task *task));
/* The worker has nothing to do: neither had it been given too much. */
void fl_policy_note_idle(struct fl_worker *worker);
/* Whom to rob, and of how much; false: nobody. */
bool fl_policy_victim(struct fl_worker *worker, uint32_t *victim, uint32_t *amount);

/* --- Batches (pieces.c) --- */

/* How a job's work stands in its ranges. */
enum {
    FL_CUT_SHARES, /* each device's grains, or roots */
    FL_CUT_PIECES, /* positions of each device's pieces in job->pieces */
    FL_CUT_COMMON  /* all grains, in the first device's */
};

/* Fills the ranges of a batch as the policy has it; false: by the default rules. */
bool fl_pieces_fill(struct fl_sched *sched, filch_job *job);
/* Takes the next piece, or a chunk of what is for all. */
bool fl_pieces_pick(struct fl_worker *worker, filch_job *job, struct fl_item *item);
/* Grains to take of a share's rest; usual where the policy does not say. */
uint32_t fl_policy_chunk(struct fl_worker *worker, const filch_job *job, uint32_t lo, uint32_t rest,
                         uint32_t usual);
/* Takes some of the worker's part of any batch, so that no gap is in it. */
bool fl_pieces_take_any(const struct fl_worker *worker, filch_job *job, uint32_t *lo, uint32_t *hi);
/* Gives back a chunk that the worker took last from its part. False: it cannot be. */
bool fl_pieces_return(const struct fl_worker *worker, const struct fl_item *item);
/* What is left of the worker's part, in whatever the range counts. */
uint32_t fl_pieces_rest(const struct fl_worker *worker, const filch_job *job);
/* Work of positions [lo, hi) of a range, on the worker's device. */
double fl_pieces_work(const struct fl_worker *worker, const filch_job *job, uint32_t lo,
                      uint32_t hi);

/* --- What is known (view.c) --- */

/* Predicted ns of the view's item on a device, begun at a time. */
double fl_view_ns(const filch_policy_view *view, uint32_t device, uint64_t from);
/* What is placed on a device: its predicted time counts there from now on. */
void fl_view_charge(const filch_policy_view *view, uint32_t device);

#endif
