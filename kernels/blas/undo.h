/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of the contents that a call reads and overwrites: after a failure of a GPU they bring the
 * operands back, and the next BLAS has the call. Threads make them, beside the call's first part
 * where that only reads. */
#ifndef FILCH_BLAS_UNDO_H
#define FILCH_BLAS_UNDO_H

#include "kernels/blas/call.h"

#include <pthread.h>

#define FL_UNDO_THREADS 8

struct fl_undo;

/* The largest block of copies of earlier calls: a new one would have to be cleared by the system
 * first, which takes longer than the copy. Its pages are the system's to take while no call has it.
 * Thread safety: any thread, once it is zeroed but for its lock. */
typedef struct fl_undo_memory {
    pthread_mutex_t lock;
    void *block;
    size_t bytes;
} fl_undo_memory;

/* Columns [first, last) of an output. */
typedef struct fl_undo_share {
    const struct fl_undo *undo;
    int which;
    int64_t first, last;
    pthread_t thread;
    bool is_begun; /* the thread has it */
} fl_undo_share;

typedef struct fl_undo {
    fl_blas_output outputs[2];
    void *copies[2]; /* without gaps between columns; null: nothing to bring back */
    size_t bytes[2]; /* of the blocks of the copies */
    size_t used[2];  /* of the copies */
    fl_undo_memory *memory;
    int count;
    size_t element;
    fl_undo_share shares[2 * FL_UNDO_THREADS];
    int share_count; /* not copied yet */
} fl_undo;

/* Begins to copy. False where memory is missing; nothing is kept then. The structure stays where it
 * is until fl_undo_drop(), and so does the memory. */
bool fl_undo_begin(fl_undo *undo, fl_undo_memory *memory, const fl_blas_call *call);
/* Returns when the copies are complete; once more is allowed. Nobody writes to the outputs before.
 */
void fl_undo_wait(fl_undo *undo);
/* From output `first` on. */
void fl_undo_restore(const fl_undo *undo, int first);
void fl_undo_drop(fl_undo *undo);
/* No call has copies any more. */
void fl_undo_close(fl_undo_memory *memory);

static inline bool fl_undo_has_copies(const fl_undo *undo)
{
    return undo->count > 0 && undo->copies[0];
}

#endif
