/* SPDX-License-Identifier: Apache-2.0 */
/* OpenBLAS's own threads on one whole-matrix call.
 *
 * Its threads spin for tens of milliseconds (2^26 cycles) after a call before they sleep. The
 * caller settles (timing.h) between measurements, so they neither slow the next nor start this one
 * awake. */
#include "peers/peer.h"
#include "problems/tiles.h"
#include "support/fail.h"
#include "support/timing.h"

#include <stdlib.h>
#include <string.h>

typedef struct state {
    const bench_peer_work *work;
} state;

static bool supports(bench_peer_kind kind)
{
    switch (kind) {
    case BENCH_PEER_CHOLESKY:
    case BENCH_PEER_GEMM:
    case BENCH_PEER_LU:
    case BENCH_PEER_QR:
    case BENCH_PEER_SYRK:
    case BENCH_PEER_TRSM:
    case BENCH_PEER_POTRS:
    case BENCH_PEER_GETRS:
        return true;
    default:
        return false;
    }
}

/* 0, or LAPACK's info. */
static int compute(const bench_peer_work *w)
{
    switch (w->kind) {
    case BENCH_PEER_CHOLESKY:
        return w->kernels->potrf(w->n, w->c, w->n);
    case BENCH_PEER_LU:
        return w->kernels->getrf(w->n, w->c, w->n, w->pivots);
    case BENCH_PEER_QR:
        return w->kernels->geqrf(w->n, w->c, w->n, w->tau);
    case BENCH_PEER_SYRK:
        w->kernels->gram(w->n, w->a, w->n, w->c, w->n);
        return 0;
    case BENCH_PEER_TRSM:
        w->kernels->trsm_left(w->n, w->a, w->n, w->c, w->n);
        return 0;
    case BENCH_PEER_POTRS:
        w->kernels->potrs(w->n, w->a, w->n, w->c, w->n);
        return 0;
    case BENCH_PEER_GETRS:
        w->kernels->getrs(w->n, w->a, w->n, w->pivots, w->c, w->n);
        return 0;
    default:
        w->kernels->gemm_nn(w->n, w->n, w->n, w->a, w->n, w->b, w->n, 0, w->c, w->n);
        return 0;
    }
}

static filch_status setup(const bench_peer_work *work, filch_error *error, void **out)
{
    state *s = malloc(sizeof *s);
    if (!s)
        return bench_fail(error, FILCH_OUT_OF_MEMORY, "openblas", 0, "no memory");
    s->work = work;
    *out = s;
    return FILCH_OK;
}

/* What becomes the result in place; null: nothing does. */
static const void *input_of(const bench_peer_work *w)
{
    switch (w->kind) {
    case BENCH_PEER_GEMM:
    case BENCH_PEER_SYRK:
        return NULL;
    case BENCH_PEER_TRSM:
    case BENCH_PEER_POTRS:
    case BENCH_PEER_GETRS:
        return w->b;
    default:
        return w->a;
    }
}

static filch_status run(void *opaque, filch_error *error, double *seconds)
{
    const bench_peer_work *w = ((state *)opaque)->work;
    const void *input = input_of(w);
    if (input)
        memcpy(w->c, input, w->n * w->n * w->kernels->element);
    int before = bench_blas_threads_set((int)w->workers);
    double start = bench_now_s();
    int info = compute(w);
    double end = bench_now_s();
    bench_blas_threads_set(before);
    if (info != 0)
        return bench_fail(error, FILCH_DATA, "openblas", 0, "LAPACK's info is %d", info);
    *seconds = end - start;
    return FILCH_OK;
}

static void teardown(void *opaque)
{
    free(opaque);
}

const bench_peer bench_peer_openblas = {
    .name = "openblas",
    .description = "one call of OpenBLAS on its own threads",
    .supports = supports,
    .setup = setup,
    .run = run,
    .teardown = teardown,
    .has_single = true,
};
