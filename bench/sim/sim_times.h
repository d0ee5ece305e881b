/* SPDX-License-Identifier: Apache-2.0 */
/* What the times in a trace say of its devices. */
#ifndef BENCH_SIM_TIMES_H
#define BENCH_SIM_TIMES_H

#include "sim/sim_trace.h"

/* Once the jobs are sorted out: the gaps, the tiles' shares of their devices' time, and the ratios.
 * False: no memory. */
bool bench_sim_times_find(bench_sim_record *record);

/* A way between two memories. */
typedef struct bench_sim_link {
    double rate;       /* bytes a second; 0: nothing went that way that tells it */
    double latency_us; /* of each copy */
} bench_sim_link;

/* What the copies say of a device's link in one direction; of BENCH_SIM_PEER: of the ways from a
 * device, or (from: the number of devices) from all, to a device, or likewise to all. False: no
 * memory. */
bool bench_sim_link_find(const bench_sim_record *record, bench_sim_way way, uint32_t device,
                         uint32_t from, bench_sim_link *link);

#endif
