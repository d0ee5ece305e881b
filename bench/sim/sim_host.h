/* SPDX-License-Identifier: Apache-2.0 */
/* What the workers of a record's GPUs took of the host's time. */
#ifndef BENCH_SIM_HOST_H
#define BENCH_SIM_HOST_H

#include "sim/sim_trace.h"

/* Slices are devices of a GPU, too. */
bool bench_sim_is_gpu(const bench_sim_record *record, size_t device);
/* Fills in the record's has_host, keep_us, launch_us, copy_us and see_us, after its times. It has
 * none where there are chunks: what is between those counts as theirs. False: no memory. */
bool bench_sim_host_find(bench_sim_record *record);

#endif
