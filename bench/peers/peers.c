/* SPDX-License-Identifier: Apache-2.0 */
#include "peers/peer.h"

#include <string.h>

static const bench_peer *const peers[] = {
#ifdef BENCH_HAVE_OPENBLAS
    &bench_peer_openblas,
#endif
#ifdef BENCH_HAVE_OPENMP
    &bench_peer_openmp,
#endif
#ifdef BENCH_HAVE_TBB
    &bench_peer_tbb,
#endif
#ifdef BENCH_HAVE_STARPU
    &bench_peer_starpu,
#endif
    &bench_peer_bare,       &bench_peer_cublas,      &bench_peer_cublasxt, &bench_peer_cusolver,
    &bench_peer_cusolvermg, &bench_peer_cusolverirs, &bench_peer_cusparse, NULL,
};

const bench_peer *bench_peer_at(size_t index)
{
    return index < sizeof peers / sizeof *peers ? peers[index] : NULL;
}

const bench_peer *bench_peer_find(const char *name)
{
    for (size_t k = 0; peers[k]; k++)
        if (strcmp(peers[k]->name, name) == 0)
            return peers[k];
    return NULL;
}

const char *bench_peer_kind_name(bench_peer_kind kind)
{
    static const char *const names[BENCH_PEER_KINDS] = {
        [BENCH_PEER_EMPTY] = "empty",
        [BENCH_PEER_RERUN] = "rerun",
        [BENCH_PEER_WAVEFRONT] = "wavefront",
        [BENCH_PEER_CHAIN] = "chain",
        [BENCH_PEER_CHOLESKY] = "cholesky",
        [BENCH_PEER_GEMM] = "gemm",
        [BENCH_PEER_NARROW] = "narrow",
        [BENCH_PEER_NARROW_OPEN] = "narrow, open",
        [BENCH_PEER_HEAT] = "heat",
        [BENCH_PEER_CG] = "cg",
        [BENCH_PEER_LU] = "lu",
        [BENCH_PEER_QR] = "qr",
        [BENCH_PEER_SOLVE] = "solve",
        [BENCH_PEER_SYRK] = "syrk",
        [BENCH_PEER_TRSM] = "trsm",
        [BENCH_PEER_POTRS] = "potrs",
        [BENCH_PEER_GETRS] = "getrs",
    };
    return names[kind];
}

size_t bench_peer_tasks(const bench_peer_work *work)
{
    size_t tiles = work->tile ? (work->n + work->tile - 1) / work->tile : 1;
    switch (work->kind) {
    case BENCH_PEER_WAVEFRONT:
        return work->n * work->n;
    case BENCH_PEER_CHOLESKY:
        return tiles * (tiles + 1) * (tiles + 2) / 6;
    case BENCH_PEER_GEMM:
        return tiles * tiles;
    default:
        return work->n;
    }
}

void bench_peer_predecessors(const bench_peer_work *work, size_t task, size_t *before)
{
    before[0] = before[1] = task;
    if (work->kind == BENCH_PEER_CHAIN && task > 0)
        before[0] = task - 1;
    if (work->kind == BENCH_PEER_WAVEFRONT && task >= work->n)
        before[0] = task - work->n;
    if (work->kind == BENCH_PEER_WAVEFRONT && task % work->n > 0)
        before[1] = task - 1;
}

/* The length of the chain that ends with the longer of two predecessors. A plain access: the
 * dependency itself must order it, which is what a run with marks tests. */
static unsigned longest_before(const bench_peer_work *work, size_t task)
{
    size_t before[2];
    bench_peer_predecessors(work, task, before);
    unsigned first = before[0] == task ? 0 : work->marks[before[0]];
    unsigned second = before[1] == task ? 0 : work->marks[before[1]];
    return first > second ? first : second;
}

void bench_peer_mark(const bench_peer_work *work, size_t task)
{
    work->marks[task] += 1 + longest_before(work, task);
}

bool bench_peer_marks_hold(const bench_peer_work *work)
{
    size_t count = bench_peer_tasks(work);
    for (size_t t = 0; t < count; t++) {
        size_t expected = 1;
        if (work->kind == BENCH_PEER_CHAIN)
            expected = t + 1;
        if (work->kind == BENCH_PEER_WAVEFRONT)
            expected = t / work->n + t % work->n + 1;
        if (work->marks[t] != expected)
            return false;
    }
    return true;
}
