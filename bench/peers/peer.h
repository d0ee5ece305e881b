/* SPDX-License-Identifier: Apache-2.0 */
/* Other runtimes doing the bench's work, in this process, so that runs can be interleaved. */
#ifndef BENCH_PEERS_PEER_H
#define BENCH_PEERS_PEER_H

#include "filch/status.h"
#include "problems/tiles.h"

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum bench_peer_kind {
    BENCH_PEER_EMPTY,       /* n independent empty tasks, created and run */
    BENCH_PEER_RERUN,       /* the same, created beforehand and run again */
    BENCH_PEER_WAVEFRONT,   /* n x n empty tasks, each after its upper and left neighbour; created
                               beforehand and run again where the peer can */
    BENCH_PEER_CHAIN,       /* n empty tasks, each after the last; likewise */
    BENCH_PEER_CHOLESKY,    /* lower factor of a into c, by tiles where the peer has tasks */
    BENCH_PEER_GEMM,        /* c = a b, likewise */
    BENCH_PEER_NARROW,      /* a graph of narrow.h, created beforehand and run again where the peer
                               can */
    BENCH_PEER_NARROW_OPEN, /* the same, created in each run */
    BENCH_PEER_HEAT,        /* steps of heat.h; c receives the grid */
    BENCH_PEER_CG,          /* iterations of cg.h; c receives the solution */
    BENCH_PEER_LU,    /* factors of a with partial pivoting into c; pivots receives LAPACK's */
    BENCH_PEER_QR,    /* factors of a into c, in LAPACK's layout; tau receives theirs */
    BENCH_PEER_SOLVE, /* c = a^-1 b for vectors b and c, a factored in lower precision */
    BENCH_PEER_SYRK,  /* c = a a', lower triangle */
    BENCH_PEER_TRSM,  /* c = a^-1 b for the lower triangle of a */
    BENCH_PEER_POTRS, /* c = (a a')^-1 b, likewise */
    BENCH_PEER_GETRS, /* c = a^-1 b, a being LU's factors and pivots theirs */
    BENCH_PEER_KINDS
} bench_peer_kind;

#define BENCH_PEER_GPUS 64
/* Kinds below need no problem of a workload's. */
#define BENCH_PEER_ALONE BENCH_PEER_NARROW

#define BENCH_ANY_PRODUCT (-1)

typedef struct bench_peer_work {
    bench_peer_kind kind;
    unsigned workers; /* threads that run tasks */
    size_t n;         /* tasks, the side of the wavefront, or the order of the matrices */
    size_t tile;
    const void *problem;          /* of kinds from BENCH_PEER_ALONE on: narrow: bench_narrow_graph,
                                     whose cells receive the result; heat: bench_heat_grid; cg:
                                     bench_cg_system */
    const bench_kernels *kernels; /* of the matrices' elements; null: there are no matrices */
    const void *a;                /* n x n, column-major, not changed */
    const void *b;
    void *c;         /* receives the result */
    int32_t *pivots; /* of LU, and given to GETRS: n, from 1 */
    void *tau;       /* of QR: n elements */
    /* Null, or one element a task, zeroed: each task writes the length of the longest chain that
     * ends with it. With it a run proves that every task ran and in what order; measured runs go
     * without. */
    unsigned *marks;
    int product;                    /* of SOLVE: how products round, FL_VENDOR_COMPUTE_* or
                                       BENCH_ANY_PRODUCT: as is fastest */
    bool keeps_memory;              /* the matrices' pages are locked, or are not to be */
    bool is_resident;               /* peers on GPUs: copies of matrices are not timed */
    unsigned gpu_count;             /* peers on GPUs run on these */
    unsigned gpus[BENCH_PEER_GPUS]; /* ordinals */
} bench_peer_work;

typedef struct bench_peer {
    const char *name;
    const char *description;
    bool (*supports)(bench_peer_kind kind);
    /* Starts the peer and creates what it can beforehand. The work must outlive the state. */
    filch_status (*setup)(const bench_peer_work *work, filch_error *error, void **state);
    /* Does the work once; seconds is the time from the first call into the peer's tasks until all
     * have run. Copying the input is not part of it. */
    filch_status (*run)(void *state, filch_error *error, double *seconds);
    void (*teardown)(void *state);
    bool has_single; /* takes matrices in single precision, too; else in double only */
    bool needs_gpu;  /* else it runs on the host */
    /* What was tried out in setup and found best, e.g. "block 8192"; null: nothing was. */
    const char *(*setting)(const void *state);
    /* What its library is without, told where it does not support a kind; null: nothing is told. */
    const char *lacks;
} bench_peer;

/* The peers of this build, in a fixed order; null past the last. */
const bench_peer *bench_peer_at(size_t index);
/* Null where this build has no such peer. */
const bench_peer *bench_peer_find(const char *name);
const char *bench_peer_kind_name(bench_peer_kind kind);

/* Tasks of a work: the divisor of a cost per task. */
size_t bench_peer_tasks(const bench_peer_work *work);
/* What a run with marks must have written; false where a task did not run, or ran too early. */
bool bench_peer_marks_hold(const bench_peer_work *work);

void bench_peer_mark(const bench_peer_work *work, size_t task);
/* The tasks that a task comes after; the task itself stands for none. */
void bench_peer_predecessors(const bench_peer_work *work, size_t task, size_t *before);

/* The body of every empty task. Task i * n + j is the wavefront's (i, j). */
static inline void bench_peer_body(const bench_peer_work *work, size_t task)
{
    if (work->marks)
        bench_peer_mark(work, task);
}

extern const bench_peer bench_peer_openblas;
extern const bench_peer bench_peer_openmp;
extern const bench_peer bench_peer_tbb;
extern const bench_peer bench_peer_starpu;
extern const bench_peer bench_peer_bare;
extern const bench_peer bench_peer_cublas;
extern const bench_peer bench_peer_cublasxt;
extern const bench_peer bench_peer_cusolver;
extern const bench_peer bench_peer_cusolverirs;
extern const bench_peer bench_peer_cusolvermg;
extern const bench_peer bench_peer_cusparse;

#ifdef __cplusplus
}
#endif

#endif
