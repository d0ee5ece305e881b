/* SPDX-License-Identifier: Apache-2.0 */
#include "sync/mailbox.h"

/* Turns of a cell: p when put p may fill the cell, p + 1 when take p may empty the cell, and p +
 * FL_MAILBOX_NOTES afterwards. Indices have 64 bits and never wrap. */
enum { CELL_MASK = FL_MAILBOX_NOTES - 1 };

void fl_mailbox_init(fl_mailbox *mailbox)
{
    atomic_init(&mailbox->head, 0);
    atomic_init(&mailbox->tail, 0);
    for (uint64_t i = 0; i < FL_MAILBOX_NOTES; i++) {
        atomic_init(&mailbox->cells[i].turn, i);
        atomic_init(&mailbox->cells[i].note, 0);
    }
}

bool fl_mailbox_put(fl_mailbox *mailbox, uint64_t note)
{
    /* Relaxed: the cell's turn tells whether the index is current. */
    uint64_t index = fl_load_relaxed(&mailbox->head);
    for (;;) {
        uint64_t cell = index & CELL_MASK;
        /* Acquire: the take a lap ago has read the note before the put overwrites the note. */
        int64_t lead = (int64_t)(fl_load_acquire(&mailbox->cells[cell].turn) - index);
        if (lead < 0)
            return false;
        if (lead > 0) {
            index = fl_load_relaxed(&mailbox->head);
            continue;
        }
        /* Relaxed: the swap only assigns the cell; the turn carries the data. */
        if (!fl_cas_relaxed(&mailbox->head, &index, index + 1))
            continue;
        fl_store_relaxed(&mailbox->cells[cell].note, note);
        /* Release: the note and its subject before the take that finds the new turn. */
        fl_store_release(&mailbox->cells[cell].turn, index + 1);
        return true;
    }
}

bool fl_mailbox_take(fl_mailbox *mailbox, uint64_t *note)
{
    /* Relaxed: the cell's turn tells whether the index is current. */
    uint64_t index = fl_load_relaxed(&mailbox->tail);
    for (;;) {
        uint64_t cell = index & CELL_MASK;
        /* Acquire: the note released by the put. */
        int64_t lead = (int64_t)(fl_load_acquire(&mailbox->cells[cell].turn) - (index + 1));
        if (lead < 0)
            return false;
        if (lead > 0) {
            index = fl_load_relaxed(&mailbox->tail);
            continue;
        }
        /* Relaxed: the swap only decides who empties the cell. */
        if (!fl_cas_relaxed(&mailbox->tail, &index, index + 1))
            continue;
        *note = fl_load_relaxed(&mailbox->cells[cell].note);
        /* Release: the note has been read before the put a lap later overwrites the cell. */
        fl_store_release(&mailbox->cells[cell].turn, index + FL_MAILBOX_NOTES);
        return true;
    }
}

bool fl_mailbox_is_empty(const fl_mailbox *mailbox)
{
    /* Relaxed: the fence in fl_eventcount_announce orders a sleeper's re-check. The order of the
     * two loads does not matter: a difference only means a put or take in progress. */
    uint64_t tail = fl_load_relaxed(&mailbox->tail);
    return fl_load_relaxed(&mailbox->head) == tail;
}
