/* SPDX-License-Identifier: Apache-2.0 */
#include "sched/ready/queue.h"

void fl_ready_push(fl_worker *w, fl_task *task)
{
    uint32_t level = task->level;
    /* Relaxed: our own ready task. */
    uint64_t hint = fl_hint_make(task, fl_load_relaxed(&task->word));
    if (FL_UNLIKELY(!fl_deque_push(&w->queues.levels[level], hint))) {
        /* The inbox needs no memory. */
        fl_inbox_push(&w->queues.inbox, &task->link);
        return;
    }
    ++w->ready.queued;
    w->ready.pushed = true;
    if ((w->ready.mask & (1u << level)) == 0) {
        w->ready.mask |= 1u << level;
        /* Relaxed: the deque publishes the entry; a thief missing the bit is woken or looks
         * again. */
        fl_store_relaxed(&w->queues.level_mask, w->ready.mask);
    }
}

void fl_ready_drain(fl_worker *w)
{
    fl_link *link = fl_inbox_drain(&w->queues.inbox);
    while (link != NULL) {
        /* Read before the push: a thief may run the task immediately. */
        fl_link *next = link->next;
        fl_ready_push(w, fl_task_of_link(link));
        link = next;
    }
}

bool fl_ready_take_hint(fl_worker *w, uint64_t *hint)
{
    if (!fl_inbox_is_empty(&w->queues.inbox)) {
        fl_ready_drain(w);
    }
    while (w->ready.mask != 0) {
        uint32_t level = fl_ready_top(w);
        if (fl_deque_pop(&w->queues.levels[level], hint)) {
            w->ready.queued -= w->ready.queued != 0;
            return true;
        }
        fl_ready_note_empty(w, level);
    }
    return w->sched->mails && fl_mailbox_take(&w->queues.mailbox, hint);
}

bool fl_ready_take_mail(fl_worker *w, fl_task **task, bool *poisoned)
{
    uint64_t hint;
    while (fl_mailbox_take(&w->queues.mailbox, &hint)) {
        if (fl_ready_claim(w->sched, hint, task, poisoned)) {
            return true;
        }
    }
    return false;
}

fl_task *fl_claimed_take_if(fl_worker *w, bool (*is_it)(const fl_task *task))
{
    for (fl_link **at = &w->ready.claimed; *at != NULL; at = &(*at)->next) {
        fl_task *task = fl_task_of_link(*at);
        if (is_it(task)) {
            *at = task->link.next;
            return task;
        }
    }
    return NULL;
}

void fl_claimed_gather(fl_worker *w)
{
    for (fl_link *link = fl_inbox_drain(&w->queues.claimed); link != NULL;) {
        /* Read first: the task goes to a second list. */
        fl_link *next = link->next;
        fl_task *task = fl_task_of_link(link);
        if (w->device->is_synchronous) {
            /* The host's memory has room. */
            task->moves = 0;
        }
        fl_claimed_put(w, task, false);
        link = next;
    }
}

void fl_ready_each(fl_worker *w, void (*settle)(fl_worker *w, fl_task *task))
{
    uint64_t hint;
    for (fl_link *link = fl_inbox_drain(&w->queues.inbox); link != NULL;) {
        /* Read first: the task may go to a second worker. */
        fl_link *next = link->next;
        settle(w, fl_task_of_link(link));
        link = next;
    }
    while (fl_mailbox_take(&w->queues.mailbox, &hint)) {
    }
    while (w->ready.next_task != NULL) {
        fl_task *task = w->ready.next_task;
        w->ready.next_task = NULL;
        settle(w, task);
    }
}
