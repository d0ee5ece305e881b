/* SPDX-License-Identifier: Apache-2.0 */
#include "sync/inbox.h"

#include <stddef.h>

void fl_inbox_init(fl_inbox *inbox)
{
    atomic_init(&inbox->head, NULL);
}

/* Turns newest -> ... -> oldest over; returns the new first, whose last link is `first`. */
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
    /* The stack holds the newest first, so the chain is turned over while it is still private. */
    last->next = NULL;
    (void)chain_reverse(first);
    /* Relaxed: the swap confirms it, and nothing is read through it. */
    fl_link *head = fl_load_relaxed(&inbox->head);
    do {
        first->next = head;
        /* Release: the links and what they belong to before the head that leads to them. Pushes on
         * top of this one are read-modify-writes and continue its release sequence, so a drain sees
         * every push below the head that it took. Seq_cst: against a worker that says that it
         * sleeps and looks here once more, for who then looks whether it sleeps (place.c). */
    } while (!fl_cas_seq_cst(&inbox->head, &head, last));
    return head == NULL;
}

fl_link *fl_inbox_take(fl_inbox *inbox)
{
    /* Relaxed: an idle drain leaves the line shared. */
    if (!fl_load_relaxed(&inbox->head))
        return NULL;
    /* Acquire: what every push released. Nothing is released: the next push starts from null. */
    return fl_exchange_acquire(&inbox->head, NULL);
}

fl_link *fl_inbox_drain(fl_inbox *inbox)
{
    return chain_reverse(fl_inbox_take(inbox));
}

bool fl_inbox_is_empty(const fl_inbox *inbox)
{
    /* Relaxed: a sleeper's re-check is ordered by the fence in fl_eventcount_announce, and the
     * links are reached through fl_inbox_drain only. */
    return fl_load_relaxed(&inbox->head) == NULL;
}
