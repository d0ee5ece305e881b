/* SPDX-License-Identifier: Apache-2.0 */
#include "sync/inbox.h"

#include <stddef.h>

void fl_inbox_init(fl_inbox *inbox)
{
    atomic_init(&inbox->head, NULL);
}

/* Reverses newest -> ... -> oldest. Returns the new first link; the last link is `first`. */
static fl_link *chain_reverse(fl_link *first)
{
    fl_link *done = NULL;
    while (first) {
        fl_link *next = first->next;
        first->next = done;
        done = first;
        first = next;
    }
    return done;
}

bool fl_inbox_push(fl_inbox *inbox, fl_link *link)
{
    return fl_inbox_push_chain(inbox, link, link);
}

bool fl_inbox_push_chain(fl_inbox *inbox, fl_link *first, fl_link *last)
{
    /* The stack holds the newest first: the chain is reversed while still private. */
    last->next = NULL;
    (void)chain_reverse(first);
    /* Relaxed: the swap confirms the value; no load goes through the pointer. */
    fl_link *head = fl_load_relaxed(&inbox->head);
    do {
        first->next = head;
        /* Release: the links and their owners before the head leading to them. Later pushes are
         * read-modify-writes and continue the release sequence: a drain sees every push below the
         * head it took. Seq_cst: pairs with a worker that announces its sleep and then reads the
         * inbox again. The pusher reads the worker's state after the push (sched/decide/place.c).
         */
    } while (!fl_cas_seq_cst(&inbox->head, &head, last));
    return head == NULL;
}

fl_link *fl_inbox_take(fl_inbox *inbox)
{
    /* Relaxed: a drain of an empty inbox leaves the cache line shared. */
    if (!fl_load_relaxed(&inbox->head))
        return NULL;
    /* Acquire: data released by every push. No release is needed: the next push starts from null.
     */
    return fl_exchange_acquire(&inbox->head, NULL);
}

fl_link *fl_inbox_drain(fl_inbox *inbox)
{
    return chain_reverse(fl_inbox_take(inbox));
}
