/* SPDX-License-Identifier: Apache-2.0 */
/* Mailbox: hands a worker notes from another thread. A bounded ring; a full mailbox drops the note.
 * For hints to work that is also somewhere else. Any thread puts and takes. Bounded MPMC queue
 * after Dmitry Vyukov. */
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
