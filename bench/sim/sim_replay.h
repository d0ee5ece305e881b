/* SPDX-License-Identifier: Apache-2.0 */
/* A recorded run on simulated devices: how long the same work takes there. */
#ifndef BENCH_SIM_REPLAY_H
#define BENCH_SIM_REPLAY_H

#include "measure/policies.h"
#include "sim/sim_trace.h"

/* How a record is replayed. Zero-initialised: on its own devices, untraced. */
typedef struct bench_sim_setup {
    const char *devices; /* "sim:FILE", where a unit of speed is a nanosecond of the record's first
                            device, so that one like it has speed 1e9; null: those of the record,
                            each as fast as it was with each codelet */
    bench_policy policy; /* on the record's devices the true speeds of BENCH_POLICY_PERFECT are the
                            means over the record's work */
    const char *trace;   /* file for the trace of the run that the prediction is of, without the one
                            that is for learning; null: none */
} bench_sim_setup;

typedef struct bench_sim_prediction {
    char **names; /* of the devices */
    double *busy_s;
    uint64_t *tiles;
    uint64_t *stolen; /* of the tiles: from other devices */
    uint32_t devices;
    int run;                      /* which of the runs that count this is, from 0 */
    double *job_s;                /* by the record's jobs: each from its submission to its end */
    double bytes[BENCH_SIM_WAYS]; /* that all devices' copies moved */
    double seconds;               /* median of the runs that count, of which all here is … */
    double least_s, most_s;       /* … and the others */
} bench_sim_prediction;

/* The jobs run as they were recorded, one after the other where they did so there, and what they
 * use is copied to and fro. All of it runs several times, in runtimes that know their devices if
 * that of the record did. What the runtime refuses is its status; FILCH_IO, FILCH_OUT_OF_MEMORY.
 * Nothing is then held. */
filch_status bench_sim_predict(const bench_sim_record *record, const bench_sim_setup *setup,
                               bench_sim_prediction *prediction, filch_error *error);
void bench_sim_prediction_free(bench_sim_prediction *prediction);

#endif
