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
    return kind == BENCH_PEER_CHOLESKY || kind == BENCH_PEER_GEMM;
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

static filch_status run(void *opaque, filch_error *error, double *seconds)
{
    const bench_peer_work *w = ((state *)opaque)->work;
    int info = 0;
    if (w->kind == BENCH_PEER_CHOLESKY)
        memcpy(w->c, w->a, w->n * w->n * w->kernels->element);
    int before = bench_blas_threads_set((int)w->workers);
    double start = bench_now_s();
    if (w->kind == BENCH_PEER_CHOLESKY)
        info = w->kernels->potrf(w->n, w->c, w->n);
    else
        w->kernels->gemm_nn(w->n, w->n, w->n, w->a, w->n, w->b, w->n, 0, w->c, w->n);
    double end = bench_now_s();
    bench_blas_threads_set(before);
    if (info != 0)
        return bench_fail(error, FILCH_DATA, "openblas", 0, "minor %d is not positive", info);
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
