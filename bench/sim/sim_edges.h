/* SPDX-License-Identifier: Apache-2.0 */
/* Which edges of a recorded graph are more than what follows from what its tasks use. */
#ifndef BENCH_SIM_EDGES_H
#define BENCH_SIM_EDGES_H

#include "sim/sim_trace.h"

/* Leaves those alone. A graph of which it is not known what its tasks use keeps all. False: no
 * memory, and nothing has changed. */
bool bench_sim_edges_trim(bench_sim_graph *graph);

#endif
