/* SPDX-License-Identifier: Apache-2.0 */
/* Two ways to hand a worker something from another thread.
 *
 * inbox: an unbounded stack linked through the entries themselves; anyone pushes, and whoever
 * drains it (its worker or a thief) takes the whole of it at once, so there is no ABA problem. For
 * work that is nowhere else.
 *
 * mailbox: a bounded ring of notes; a full mailbox drops the note. For hints to work that is also
 * somewhere else. Any thread puts and takes. Bounded MPMC queue after Dmitry Vyukov. */
#ifndef FL_SCHED_INBOX_H
#define FL_SCHED_INBOX_H

#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"

/* Embedded in what is linked. An item must stay valid until it has been drained. */
typedef struct fl_link {
    struct fl_link *next;
} fl_link;

typedef struct fl_inbox {
    _Alignas(64) _Atomic(fl_link *) head;
} fl_inbox;

void fl_inbox_init(fl_inbox *inbox);
/* Any thread; lock-free. Returns true when the inbox was empty before. */
bool fl_inbox_push(fl_inbox *inbox, fl_link *link);
/* Pushes a chain first -> ... -> last at once; it is drained in that order. */
bool fl_inbox_push_chain(fl_inbox *inbox, fl_link *first, fl_link *last);
/* Any thread; wait-free. All links, oldest push first, or null. */
fl_link *fl_inbox_drain(fl_inbox *inbox);
/* Likewise, but newest push first: the links are not touched. */
fl_link *fl_inbox_take(fl_inbox *inbox);
/* Any thread. After fl_event_announce it sees every push that its pusher notifies later. */
bool fl_inbox_is_empty(const fl_inbox *inbox);

#define FL_MAILBOX_NOTES 64 /* a power of two */

typedef struct fl_mailbox {
    _Alignas(64) _Atomic uint64_t head; /* next put */
    _Alignas(64) _Atomic uint64_t tail; /* next take */
    _Alignas(64) struct {
        _Atomic uint64_t turn; /* the put or take index + lap that may use the cell next */
        _Atomic uint64_t note;
    } cells[FL_MAILBOX_NOTES];
} fl_mailbox;

void fl_mailbox_init(fl_mailbox *mailbox);
/* false when full: the note is dropped. Between taking a cell and filling it a put holds up the
 * notes put after it, which stay invisible to take until it goes on; put never waits. */
bool fl_mailbox_put(fl_mailbox *mailbox, uint64_t note);
/* false when empty. */
bool fl_mailbox_take(fl_mailbox *mailbox, uint64_t *note);
bool fl_mailbox_is_empty(const fl_mailbox *mailbox);

#endif
