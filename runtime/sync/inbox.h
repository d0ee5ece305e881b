/* SPDX-License-Identifier: Apache-2.0 */
/* Inbox: hands a worker work from another thread. An unbounded stack linked through the entries
 * themselves; anyone pushes, and whoever drains it (its worker or a thief) takes the whole of it at
 * once, so there is no ABA problem. For work that is nowhere else. */
#ifndef FL_SYNC_INBOX_H
#define FL_SYNC_INBOX_H

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
/* Any thread. After fl_eventcount_announce it sees every push that its pusher notifies later. */
bool fl_inbox_is_empty(const fl_inbox *inbox);

#endif
