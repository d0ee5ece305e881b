/* SPDX-License-Identifier: Apache-2.0 */
/* A worker's ready queue: ready tasks in the next-task slot, deques by level, an inbox and a
 * mailbox, and claimed tasks in a list with an inbox of its own.
 *
 * Put: the owner pushes to a deque or the slot; other threads send to the inbox, offer a hint by
 * mail, or send a claimed task. Take: the owner takes, in the order slot, deques, mail. Steal: a
 * thief drains the inbox, or takes the oldest entries of the deques (sync/deque.h). Each: the owner
 * hands over every task that only the worker knows (fl_ready_each).
 *
 * A ready task has no owner but the one that its only hint or link leads to. A claimed task belongs
 * to the worker in whose list it stands, and its count of pending predecessors is set back. */
#ifndef FL_SCHED_READY_QUEUE_H
#define FL_SCHED_READY_QUEUE_H

#include "sched/worker/sched.h"
#include "sched/worker/worker.h"

/* --- Claims --- */

/* Sets the pending count back for the next run, whose first decrement follows the present run's
 * completion. A root counts no decrement, but fl_task_claim reads the count. */
static inline void fl_ready_reset(fl_task *task)
{
    if (task->predecessors != 0) {
        fl_store_relaxed(&task->pending, task->predecessors);
    }
}

/* Claims a ready task of the caller's. Returns whether to skip the task. */
static inline bool fl_ready_own(fl_task *task)
{
    fl_ready_reset(task);
    return fl_task_own(task);
}

/* Claims the task of a hint from a deque or a mailbox. Where no hints are mailed, an entry of a
 * deque is the only hint to its task. False: the hint is dead. */
static inline bool fl_ready_claim(const fl_sched *sched, uint64_t hint, fl_task **task,
                                  bool *poisoned)
{
    if (!sched->mails) {
        *task = fl_hint_task(hint);
        *poisoned = fl_ready_own(*task);
        return true;
    }
    if (!fl_task_claim(hint, task, poisoned)) {
        return false;
    }
    fl_ready_reset(*task);
    return true;
}

/* --- Put --- */

/* Pushes a ready task to the deque of its level. The owner. Out of line: most tasks go through the
 * slot. */
void fl_ready_push(fl_worker *worker, fl_task *task);

/* Puts a ready task into the next-task slot, or, below the level of the slot's task, into a deque.
 * The owner. */
static inline void fl_ready_put(fl_worker *w, fl_task *task)
{
    fl_task *next = w->ready.next_task;
    if (next == NULL) {
        w->ready.next_task = task;
    } else if (task->level > next->level) {
        fl_ready_push(w, next);
        w->ready.next_task = task;
    } else {
        fl_ready_push(w, task);
    }
}

/* Empties the next-task slot into a deque. The owner. */
static inline void fl_ready_unslot(fl_worker *w)
{
    if (w->ready.next_task != NULL) {
        fl_ready_push(w, w->ready.next_task);
        w->ready.next_task = NULL;
    }
}

/* Moves the tasks of the inbox to the deques. The owner. */
void fl_ready_drain(fl_worker *worker);

/* --- Take. The owner. --- */

/* Pops the newest hint of a level at or above the position `floor` that can be claimed. */
static inline bool fl_ready_pop_level(fl_worker *w, uint32_t level, int64_t floor, fl_task **task,
                                      bool *poisoned)
{
    fl_deque *deque = &w->queues.levels[level];
    uint64_t hint;
    /* Relaxed: only we move bottom. */
    while (fl_load_relaxed(&deque->bottom) > floor && fl_deque_pop(deque, &hint)) {
        w->ready.queued -= w->ready.queued != 0;
        if (fl_ready_claim(w->sched, hint, task, poisoned)) {
            return true;
        }
    }
    return false;
}

/* Highest level that may hold entries; w->ready.mask is not 0. */
static inline uint32_t fl_ready_top(const fl_worker *w)
{
    return 31u - (uint32_t)__builtin_clz(w->ready.mask);
}

/* Notes that a level is empty. */
static inline void fl_ready_note_empty(fl_worker *w, uint32_t level)
{
    w->ready.mask &= ~(1u << level);
    /* Relaxed: a hint for thieves. */
    fl_store_relaxed(&w->queues.level_mask, w->ready.mask);
    w->ready.queued = w->ready.mask != 0 ? w->ready.queued : 0;
}

/* Takes the newest task of the highest level from the slot or the deques, claimed. */
static inline __attribute__((always_inline)) bool fl_ready_take(fl_worker *w, fl_task **task,
                                                                bool *poisoned)
{
    fl_task *next = w->ready.next_task;
    if (next != NULL) {
        /* Levels above the task's own. */
        uint32_t above = w->ready.mask >> next->level >> 1;
        w->ready.next_task = NULL;
        if (FL_LIKELY(above == 0)) {
            *task = next;
            *poisoned = fl_ready_own(next);
            return true;
        }
        fl_ready_push(w, next);
    }
    if (FL_UNLIKELY(!fl_inbox_is_empty(&w->queues.inbox))) {
        fl_ready_drain(w);
    }
    while (w->ready.mask != 0) {
        uint32_t level = fl_ready_top(w);
        if (fl_ready_pop_level(w, level, -1, task, poisoned)) {
            return true;
        }
        fl_ready_note_empty(w, level);
    }
    return false;
}

/* Takes the next hint of the inbox, the deques, or the mailbox, live or not. */
bool fl_ready_take_hint(fl_worker *worker, uint64_t *hint);
/* Takes the oldest live hint of the mailbox, claimed. */
bool fl_ready_take_mail(fl_worker *worker, fl_task **task, bool *poisoned);

/* Hands over every ready task that no other worker finds: of the inbox and the slot. Empties the
 * mailbox: the sender of a hint has the task in a deque, too. The owner. */
void fl_ready_each(fl_worker *worker, void (*settle)(fl_worker *worker, fl_task *task));

/* --- Claimed tasks --- */

/* Puts a task claimed by the worker into the list, to be picked before any other. The owner. */
static inline void fl_claimed_put(fl_worker *w, fl_task *task, bool poisoned)
{
    task->is_poisoned = poisoned;
    task->link.next = w->ready.claimed;
    w->ready.claimed = &task->link;
}

/* Sends a claimed task, not poisoned, to another worker. The job may be over as soon as the other
 * worker has the task. Any thread. */
static inline void fl_claimed_send(fl_worker *other, fl_task *task)
{
    task->is_poisoned = false;
    fl_inbox_push(&other->queues.claimed, &task->link);
}

/* Takes the newest claimed task. Null: none. The owner. */
static inline fl_task *fl_claimed_take(fl_worker *w)
{
    fl_link *link = w->ready.claimed;
    if (link == NULL) {
        return NULL;
    }
    w->ready.claimed = link->next;
    return fl_task_of_link(link);
}

/* Takes the newest claimed task for which is_it is true. Null: none. The owner. */
fl_task *fl_claimed_take_if(fl_worker *worker, bool (*is_it)(const fl_task *task));
/* Whether tasks claimed for the worker, or parts of divided tasks, are waiting. The owner. */
static inline bool fl_claimed_has(const fl_worker *w)
{
    return w->ready.claimed != NULL || w->ready.part != NULL ||
           !fl_inbox_is_empty(&w->queues.claimed);
}
/* Moves the tasks that other workers sent into the list. The owner. */
void fl_claimed_gather(fl_worker *worker);

#endif
