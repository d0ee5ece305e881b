/* SPDX-License-Identifier: Apache-2.0 */
/* What an OpenMP programmer writes without tasks: one parallel region with loops over the parts of
 * the problem, in which each thread has the same parts in every step, and first touches them. */
#ifndef BENCH_PEERS_OPENMP_LOOPS_H
#define BENCH_PEERS_OPENMP_LOOPS_H

#include "peers/peer.h"

bool openmp_loops_do(bench_peer_kind kind);
/* Null: no memory. The work must outlive the loops. */
void *openmp_loops_create(const bench_peer_work *work);
/* One run; its seconds, without making the input and copying the result. */
double openmp_loops_run(void *loops);
/* Null is allowed. */
void openmp_loops_destroy(void *loops);

#endif
