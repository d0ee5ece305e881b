/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of the contents that a call reads and overwrites: after a failure of a GPU they bring the
 * operands back, and the next BLAS has the call. */
#ifndef FILCH_BLAS_UNDO_H
#define FILCH_BLAS_UNDO_H

#include "kernels/blas/call.h"

typedef struct fl_undo {
    fl_blas_output outputs[2];
    void *copies[2]; /* without gaps between columns; null: nothing to bring back */
    int count;
    size_t element;
} fl_undo;

/* False where memory is missing; nothing is kept then. */
bool fl_undo_keep(fl_undo *undo, const fl_blas_call *call);
/* From output `first` on. */
void fl_undo_restore(const fl_undo *undo, int first);
void fl_undo_drop(fl_undo *undo);

#endif
