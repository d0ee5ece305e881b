/* SPDX-License-Identifier: Apache-2.0 */
/* A peer that is one call of a library of CUDA's for a whole problem: from the host's memory and
 * back, copies included, or resident: then the input is on the GPUs before the clock starts and the
 * result stays there until it has stopped. */
#ifndef BENCH_PEERS_ONE_CALL_H
#define BENCH_PEERS_ONE_CALL_H

#include "offload/gpu.h"
#include "peers/peer.h"

#define BENCH_ONE_CALL_BLOCKS 10

/* What a peer does in its turn. The state begins with the bench_one_call. */
typedef struct bench_one_call_steps {
    size_t size; /* of the state, which begins zeroed */
    /* Finds the library. */
    filch_status (*load)(void *state, filch_error *error);
    /* Undoes it; called also where it failed, before the GPU is closed. May be null. */
    void (*unload)(void *state);
    /* From here on the context of the first GPU is current. Readies the library, and tries out what
     * it can be set to. */
    filch_status (*start)(void *state, filch_error *error);
    /* Undoes what start did, or a part of it, but for the blocks and the stream. */
    void (*stop)(void *state);
    /* Does the work once. */
    filch_status (*run)(void *state, filch_error *error, double *seconds);
} bench_one_call_steps;

typedef struct bench_one_call {
    const bench_one_call_steps *steps;
    const bench_peer_work *work;
    bench_gpu gpu;                             /* the first of the run */
    CUstream stream;                           /* null: the peer makes none */
    CUdeviceptr blocks[BENCH_ONE_CALL_BLOCKS]; /* the peer's, on that GPU; 0: there is none */
    void *pinned[3];
} bench_one_call;

/* A peer's setup: opens the GPU, loads, locks the pages of matrices that the workload has not
 * locked already, and starts. */
filch_status bench_one_call_setup(const bench_one_call_steps *steps, const bench_peer_work *work,
                                  filch_error *error, void **state);
/* A peer's run and teardown. */
filch_status bench_one_call_run(void *state, filch_error *error, double *seconds);
void bench_one_call_teardown(void *state);

#define BENCH_ONE_CALL_SETTING 32
#define BENCH_ONE_CALL_TRIES 5

/* A library's one setting: the width of the blocks that it cuts matrices into. */
typedef struct bench_one_call_tuning {
    size_t blocks[BENCH_ONE_CALL_TRIES]; /* rising; 0 ends them. Those above the order are left out,
                                            but for the first, which is cut to it */
    filch_status (*set)(void *state, size_t block, filch_error *error);
    filch_status (*once)(void *state, filch_error *error, double *seconds);
} bench_one_call_tuning;

/* Tries each block and sets the fastest; setting receives "block N", for a peer's setting(). One
 * that fails, e.g. for want of memory, is passed over; where all do, the last one's status, and
 * its error. */
filch_status bench_one_call_tune(bench_one_call *one, const bench_one_call_tuning *tuning,
                                 char setting[BENCH_ONE_CALL_SETTING], filch_error *error);

/* FILCH_BACKEND where a library's call returned another status than 0. */
filch_status bench_one_call_check(const char *library, int code, const char *call,
                                  filch_error *error);

/* A step of a timed call, put on the stream. */
typedef filch_status (*bench_one_call_step)(void *state, filch_error *error);
/* Brings the input, calls and fetches the result; the call is timed, and unless the problem is
 * resident the copies are, too. */
filch_status bench_one_call_time(bench_one_call *one, bench_one_call_step bring,
                                 bench_one_call_step call, bench_one_call_step fetch,
                                 filch_error *error, double *seconds);

#endif
