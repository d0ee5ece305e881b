/* SPDX-License-Identifier: Apache-2.0 */
/* Mailbox: passes notes from other threads to a worker. A bounded ring; a full mailbox drops the
 * note. Holds hints to work also reachable elsewhere. Every thread may put and take. Bounded MPMC
 * queue after Dmitry Vyukov. */
#ifndef FL_SYNC_MAILBOX_H
#define FL_SYNC_MAILBOX_H

#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"

#define FL_MAILBOX_NOTES 64 /* a power of two */

typedef struct fl_mailbox {
    _Alignas(64) _Atomic uint64_t head; /* next put */
    _Alignas(64) _Atomic uint64_t tail; /* next take */
    _Alignas(64) struct {
        _Atomic uint64_t turn; /* index + lap of the put or take that may use the cell next */
        _Atomic uint64_t note;
    } cells[FL_MAILBOX_NOTES];
} fl_mailbox;

void fl_mailbox_init(fl_mailbox *mailbox);
/* Puts a note; returns false when the mailbox is full and drops the note. A put that has taken a
 * cell but not filled it hides the later notes from take until the cell is filled. put never waits.
 */
bool fl_mailbox_put(fl_mailbox *mailbox, uint64_t note);
/* Takes the oldest note; false when empty. */
bool fl_mailbox_take(fl_mailbox *mailbox, uint64_t *note);
bool fl_mailbox_is_empty(const fl_mailbox *mailbox);

#endif
