/* SPDX-License-Identifier: Apache-2.0 */
/* Inbox: passes work from other threads to a worker. An unbounded stack linked through the entries.
 * Every thread may push. The worker or a thief drains the whole stack at once, and the ABA problem
 * cannot arise. The inbox holds the only reference to the work. */
#ifndef FL_SYNC_INBOX_H
#define FL_SYNC_INBOX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/atomic.h"

/* Link embedded in an entry. An entry must stay valid until drained. */
typedef struct fl_link {
    struct fl_link *next;
} fl_link;

typedef struct fl_inbox {
    _Alignas(64) _Atomic(fl_link *) head;
} fl_inbox;

void fl_inbox_init(fl_inbox *inbox);
/* Pushes a link. Thread-safe; lock-free. Returns true when the inbox was empty before. */
bool fl_inbox_push(fl_inbox *inbox, fl_link *link);
/* Pushes a chain first -> ... -> last at once; a drain returns the chain in chain order. */
bool fl_inbox_push_chain(fl_inbox *inbox, fl_link *first, fl_link *last);
/* Takes every link, oldest push first, or returns null. Thread-safe; wait-free. */
fl_link *fl_inbox_drain(fl_inbox *inbox);
/* Takes every link, newest push first; the links are not touched. */
fl_link *fl_inbox_take(fl_inbox *inbox);
/* Tells whether the inbox is empty. Thread-safe. A call after fl_eventcount_announce sees every
 * push that is notified later. In line: called for every task. */
static inline bool fl_inbox_is_empty(const fl_inbox *inbox)
{
    /* Relaxed: the fence in fl_eventcount_announce orders a sleeper's re-check, and links are
     * reached only through fl_inbox_drain and fl_inbox_take. */
    return fl_load_relaxed(&inbox->head) == NULL;
}

#endif
