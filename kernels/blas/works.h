/* SPDX-License-Identifier: Apache-2.0 */
/* Calls as jobs of a runtime. */
#ifndef FILCH_BLAS_WORKS_H
#define FILCH_BLAS_WORKS_H

#include "kernels/blas/call.h"
#include "kernels/dense/dense.h"
#include "kernels/dense/tiles.h"

#include <pthread.h>

/* What calls of a runtime share. */
typedef struct fl_works {
    fl_tiles tiles;
    fl_vendor *vendor; /* null: no GPUs */
    pthread_mutex_t lock;
    fl_dense *dense[2]; /* double, single, when first needed; by one thread at a time */
} fl_works;

/* Codelets of a runtime; statuses as filch_codelet_create(). vendor or host may be null. */
filch_status fl_works_open(fl_works *works, filch_runtime *runtime, fl_vendor *vendor,
                           const fl_dense_host *host);
/* After the runtime ended. */
void fl_works_close(fl_works *works);
/* The caller's matrices are written to only after settle(user): until then results stay on the
 * GPUs, which must have room for all of the call. */
typedef struct fl_works_hold {
    void (*settle)(void *user);
    void *user;
} fl_works_hold;

/* Runs the call in tiles of about this size; 0: chosen by the size of the call. hold null: results
 * come home as they are made. FILCH_OK, and call->info is set; or a failure, with its details, and
 * the matrices that the call writes hold whatever the tasks left. */
filch_status fl_works_run(fl_works *works, uint64_t tile, const fl_works_hold *hold,
                          fl_blas_call *call, filch_error *error);

#endif
