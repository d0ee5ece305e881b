/* SPDX-License-Identifier: Apache-2.0 */
/* Times of jobs, recorded and predicted. */
#ifndef BENCH_SIM_JOBS_H
#define BENCH_SIM_JOBS_H

#include "sim/sim_replay.h"

#include <stdio.h>

/* Prints a row a job; runs of one graph, and batches alike, share a row. Rows from MOST_ROWS on are
 * one. FILCH_OUT_OF_MEMORY; FILCH_IO. */
filch_status bench_sim_jobs_show(const bench_sim_record *record,
                                 const bench_sim_prediction *prediction, FILE *out,
                                 filch_error *error);

#endif
